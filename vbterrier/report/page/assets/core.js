// The data of the report and its state.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const places = (list) => list.map((_, place) => place);
// Of many pairs, the page shows some, and its data have the others.
page.more = (table) => data.rest?.[table.dataset.rest] ?? [];
page.complete = (scroll) => {
  if (scroll.id !== "table") return;
  state.all = true;
  draw();
};
const offer = (select, options, chosen) =>
  select.replaceChildren(...options.map(([key, text]) =>
    el("option", { value: key, selected: String(key) === String(chosen) }, text)));

const shown = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");

const MOST_SYSTEMS = 4;
// Long names are cut where they begin to differ.
const prefix = data.systems.reduce((one, other) => {
  const end = [...one].findIndex((sign, place) => sign !== other[place]);
  return end < 0 ? one : one.slice(0, end);
});
const short = (system) => {
  const name = data.systems[system];
  return data.systems.length > 1 && name.length > 16 && prefix.length > 8 ? `…${name.slice(prefix.length - 3)}` : name;
};
const FIRST = data.order.slice(0, 2);
const state = {
  measure: 0, systems: FIRST, search: "", sort: "topic", falling: false, all: false, open: -1,
};

const raw = (system, topic, measure = state.measure) => data.values[measure][system][topic];
const known = (topic) => places(data.systems).map((system) => raw(system, topic)).filter((one) => one !== null);
const spread = (topic) => {
  const all = known(topic);
  return all.length ? Math.max(...all) - Math.min(...all) : null;
};
// The change from the first chosen system to the second.
const change = (topic) => {
  const [from, to] = state.systems.map((system) => raw(system, topic));
  return state.systems.length < 2 || from === null || to === null ? null : to - from;
};
const unjudged = (topic) => (data.unjudged ? Math.max(...data.unjudged.map((counts) => counts[topic])) : 0);

// The state is kept in the fragment of the address, so that a link shows what its author saw.
const remember = () => {
  const said = new URLSearchParams();
  if (state.measure) said.set("measure", data.measures[state.measure]);
  if (String(state.systems) !== String(FIRST)) for (const system of state.systems) said.append("system", data.systems[system]);
  for (const name of Object.keys(FILTERS)) if (state[name] !== "all") said.set(name, state[name]);
  if (state.search) said.set("search", state.search);
  if (state.sort !== "topic" || state.falling) said.set("sort", `${state.falling ? "-" : ""}${data.systems[state.sort] ?? state.sort}`);
  if (state.open >= 0) said.set("topic", data.topics[state.open]);
  const fragment = String(said);
  if (fragment || location.hash.includes("=")) history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
};
const recall = () => {
  const said = new URLSearchParams(location.hash.slice(1));
  const systems = said.getAll("system").map((name) => data.systems.indexOf(name)).filter((system) => system >= 0);
  const sort = (said.get("sort") ?? "topic").replace(/^-/, "");
  const open = data.topics.indexOf(said.get("topic"));
  Object.assign(state, {
    measure: Math.max(data.measures.indexOf(said.get("measure")), 0),
    systems: systems.length > 1 ? systems.slice(0, MOST_SYSTEMS) : FIRST,
    search: said.get("search") ?? "", falling: (said.get("sort") ?? "").startsWith("-"), open: -1,
    sort: data.systems.includes(sort) ? data.systems.indexOf(sort) : sort,
  });
  for (const [name, filters] of Object.entries(FILTERS)) state[name] = Object.hasOwn(filters, said.get(name)) ? said.get(name) : "all";
  if (!columns().some((column) => column.key === state.sort)) state.sort = "topic";
  return open;
};
