// The table of topics.
const MOST_ROWS = 400;

const value = (system, topic) => {
  const own = raw(system, topic);
  if (state.base < 0) return own;
  const other = raw(state.base, topic);
  return own === null || other === null ? null : own - other;
};
const uncovered = (topic) => {
  const found = data.intents.topics[topic];
  const ranks = found.ranks.map((text) => text.split(";"));
  return found.names.some((_, intent) => ranks.every((of) => !of[intent]));
};

const FILTERS = {
  all: ["all topics", () => true],
  ...(data.systems.length > 1 && { apart: ["systems differ by 0.1 or more", (topic) => spread(topic) >= 0.1 - 1e-9] }),
  ...(data.unjudged && { unjudged: ["with unjudged documents", (topic) => unjudged(topic) > 0] }),
  ...(data.intents && { uncovered: ["with an intent that no system covers", uncovered] }),
  zero: ["all systems score 0", (topic) => known(topic).every((one) => one === 0)],
};

const columns = () => [
  { key: "topic", title: "Topic", of: (topic) => data.topics[topic] },
  ...(data.queries ? [{ key: "query", title: "Query", of: (topic) => data.queries[topic] }] : []),
  ...data.systems.map((name, system) => ({ key: system, title: name, of: (topic) => value(system, topic) })),
  ...(data.systems.length > 1 ? [{ key: "spread", title: "Range", of: spread }] : []),
  ...(data.unjudged ? [{ key: "unjudged", title: `Unjudged of ${data.cutoff}, maximum`, of: unjudged }] : []),
];

const listed = () => {
  const wanted = state.search.trim().toLocaleLowerCase();
  const says = (text) => text.toLocaleLowerCase().includes(wanted);
  const test = FILTERS[state.filter][1];
  const kept = places(data.topics).filter(
    (topic) => test(topic) && (!wanted || says(data.topics[topic]) || (data.queries && says(data.queries[topic]))));
  const { of } = columns().find((column) => column.key === state.sort);
  const sign = state.falling ? -1 : 1;
  return kept.sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    // Missing values come last in both orders.
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    return sign * (typeof left === "string" ? natural.compare(left, right) : left - right) || a - b;
  });
};

const tinted = (cell, number, least, most) => {
  if (number === null) return cell;
  const size = state.base < 0 ? (most > least ? (number - least) / (most - least) : 0) : Math.min(Math.abs(number), 1);
  cell.style.setProperty("--size", Math.max(0, Math.min(1, size)).toFixed(3));
  if (state.base >= 0 && number < 0) cell.classList.add("less");
  return cell;
};

const head = (column) => {
  const sorted = state.sort === column.key;
  const way = sorted ? (state.falling ? "descending" : "ascending") : "none";
  const arrow = el("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (state.falling ? "▾" : "▴") : "");
  const button = el("button", { type: "button", "data-key": column.key }, bdi(column.title), arrow);
  button.addEventListener("click", () => {
    // Scores are sorted in descending order first, names in ascending order.
    state.falling = sorted ? !state.falling : !["topic", "query"].includes(column.key);
    state.sort = column.key;
    draw();
    at("table").querySelector(`button[data-key="${column.key}"]`).focus();
  });
  const isText = ["topic", "query"].includes(column.key);
  return el("th", { scope: "col", "aria-sort": way, class: isText ? column.key : "number" }, button);
};

const row = (topic, least, most) => {
  const button = el("button", { type: "button", "data-topic": topic, "aria-haspopup": "dialog" }, bdi(data.topics[topic]));
  const cells = places(data.systems).map((system) => {
    const number = value(system, topic);
    return tinted(el("td", { class: "number score" }, shown(number)), number, least, most);
  });
  const made = el("tr", {}, el("th", { scope: "row" }, button),
    data.queries ? el("td", { class: "query" }, bdi(data.queries[topic])) : null, cells,
    data.systems.length > 1 ? el("td", { class: "number ends" }, shown(spread(topic))) : null,
    data.unjudged ? el("td", { class: "number ends" }, String(unjudged(topic))) : null);
  made.addEventListener("click", () => show(topic));
  return made;
};

const draw = () => {
  const topics = listed();
  const first = state.all ? topics : topics.slice(0, MOST_ROWS);
  const numbers = data.values[state.measure].flat().filter((one) => one !== null);
  const [least, most] = [Math.min, Math.max].map((end) => numbers.reduce((a, b) => end(a, b), 0));
  const what = data.measures[state.measure];
  const caption = state.base < 0 ? `${what} of each topic` : `difference in ${what} from ${data.systems[state.base]}`;
  const table = el("table", {},
    el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, columns().map(head))),
    el("tbody", {}, first.map((topic) => row(topic, least, most))));
  at("table").replaceChildren(table);
  const rest = topics.length - first.length;
  at("rest").hidden = rest === 0;
  at("rest").textContent = `Show ${rest} more`;
  at("count").textContent = `${topics.length} of ${data.topics.length} topics. ${caption}; choose a topic to open it.`;
};

offer(at("measure"), data.measures.map((measure, place) => [place, measure]), 0);
offer(at("base"), [[-1, "scores"], ...data.systems.map((name, system) => [system, `differences from ${name}`])], -1);
const refilter = () =>
  offer(at("filter"), Object.entries(FILTERS).map(([key, [text, test]]) =>
    [key, `${text} (${places(data.topics).filter(test).length})`]), state.filter);
refilter();
at("base").parentElement.hidden = data.systems.length < 2;
at("measure").addEventListener("change", (event) => { state.measure = Number(event.target.value); refilter(); draw(); });
at("base").addEventListener("change", (event) => { state.base = Number(event.target.value); draw(); });
at("filter").addEventListener("change", (event) => { state.filter = event.target.value; draw(); });
at("search").addEventListener("input", (event) => { state.search = event.target.value; draw(); });
at("controls").addEventListener("submit", (event) => event.preventDefault());
at("rest").addEventListener("click", () => { state.all = true; draw(); at("table").focus(); });
window.addEventListener("beforeprint", () => {
  state.all = true;
  draw();
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
at("controls").hidden = false;
at("table").hidden = false;
draw();
