// The table of topics.
const MOST_ROWS = 400;

const uncovered = (topic) => {
  const found = data.intents.topics[topic];
  const ranks = found.ranks.map((text) => text.split(";"));
  return found.names.some((_, intent) => ranks.every((of) => !of[intent]));
};
const difficulty = (topic) => {
  const all = known(topic);
  return all.length ? all.reduce((sum, one) => sum + one, 0) / all.length : 0;
};
// Topics in three parts of equal size by the mean of all systems, the most difficult first.
const third = (part) => {
  const sign = data.lower[state.measure] ? -1 : 1;
  const order = places(data.topics).sort((a, b) => sign * (difficulty(a) - difficulty(b)) || a - b);
  const kept = new Set(order.slice(Math.round((part * order.length) / 3), Math.round(((part + 1) * order.length) / 3)));
  return (topic) => kept.has(topic);
};

const length = (topic) => data.queries[topic].split(/\s+/).filter(Boolean).length;
const meanings = (topic) => data.intents.topics[topic].names.length + (data.intents.topics[topic].more ?? 0);
const band = (of, least, most) => () => (topic) => of(topic) >= least && of(topic) <= most;

// For each select: the text of each option, and a function that returns the test of topics.
const FILTERS = {
  unjudged: {
    all: ["any share", () => () => true],
    ...(data.unjudged && {
      none: ["no unjudged documents", () => (topic) => unjudged(topic) === 0],
      some: ["unjudged documents", () => (topic) => unjudged(topic) > 0],
      many: ["20 % or more", () => (topic) => unjudged(topic) >= 0.2 * data.cutoff],
    }),
  },
  difficulty: {
    all: ["all", () => () => true], hard: ["hardest third", () => third(0)], middle: ["middle third", () => third(1)],
    easy: ["easiest third", () => third(2)],
  },
  length: {
    all: ["any length", () => () => true],
    ...(data.queries && {
      short: ["up to 2 words", band(length, 0, 2)], medium: ["3 to 5 words", band(length, 3, 5)], long: ["6 words or more", band(length, 6, Infinity)],
    }),
  },
  intents: {
    all: ["any number", () => () => true],
    ...(data.intents && {
      few: ["up to 2 intents", band(meanings, 0, 2)], several: ["3 to 5 intents", band(meanings, 3, 5)], many: ["6 intents or more", band(meanings, 6, Infinity)],
    }),
  },
  filter: {
    all: ["all topics", () => () => true],
    ...(data.systems.length > 1 && {
      apart: ["systems differ by 0.1 or more", () => (topic) => spread(topic) >= 0.1 - 1e-9],
      up: ["second system higher", () => (topic) => change(topic) > 0],
      down: ["second system lower", () => (topic) => change(topic) < 0],
    }),
    ...(data.intents && { uncovered: ["with an intent that no system covers", () => uncovered] }),
    zero: ["all systems score 0", () => (topic) => known(topic).every((one) => one === 0)],
  },
};

const columns = () => [
  { key: "topic", title: "Topic", of: (topic) => data.topics[topic] },
  ...(data.queries ? [{ key: "query", title: "Query", of: (topic) => data.queries[topic] }] : []),
  ...(data.systems.length > 1 ? [{ key: "change", title: "Change", of: change }] : []),
  ...data.systems.map((name, system) => ({ key: system, title: short(system), name, of: (topic) => raw(system, topic) })),
  ...(data.systems.length > 1 ? [{ key: "spread", title: "Range", of: spread }] : []),
  ...(data.unjudged ? [{ key: "unjudged", title: `Unjudged of ${data.cutoff}, maximum`, of: unjudged }] : []),
];

const listed = () => {
  const wanted = state.search.trim().toLocaleLowerCase();
  const says = (text) => text.toLocaleLowerCase().includes(wanted);
  const tests = Object.entries(FILTERS).map(([name, filters]) => filters[state[name]][1]());
  const kept = places(data.topics).filter(
    (topic) => tests.every((test) => test(topic)) && (!wanted || says(data.topics[topic]) || (data.queries && says(data.queries[topic]))));
  const { of } = columns().find((column) => column.key === state.sort);
  const sign = state.falling ? -1 : 1;
  return kept.sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    // Missing values come last in both orders.
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    return sign * (typeof left === "string" ? natural.compare(left, right) : left - right) || a - b;
  });
};

const tinted = (cell, size, isLess = false) => {
  cell.style.setProperty("--size", Math.max(0, Math.min(1, size)).toFixed(3));
  cell.classList.toggle("less", isLess);
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
  return el("th", { scope: "col", title: column.name, "data-name": column.name, "aria-sort": way, class: isText ? column.key : "number" }, button);
};

const row = (topic, least, most) => {
  const button = el("button", { type: "button", "data-topic": topic, "aria-haspopup": "dialog" }, bdi(data.topics[topic]));
  const by = change(topic);
  const worse = by !== null && by < 0 !== data.lower[state.measure];
  const cells = places(data.systems).map((system) => {
    const number = raw(system, topic);
    return tinted(el("td", { class: "number score" }, shown(number)), number === null || most === least ? 0 : (number - least) / (most - least));
  });
  const made = el("tr", {}, el("th", { scope: "row" }, button),
    data.queries ? el("td", { class: "query" }, bdi(data.queries[topic])) : null,
    data.systems.length > 1 ? tinted(el("td", { class: "number score change" }, shown(by)), Math.abs(by ?? 0), worse) : null, cells,
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
  const caption = `${what} of each topic`;
  const table = el("table", {},
    el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, columns().map(head))),
    el("tbody", {}, first.map((topic) => row(topic, least, most))));
  at("table").replaceChildren(table);
  const rest = topics.length - first.length;
  at("rest").hidden = rest === 0;
  at("rest").textContent = `Show ${rest} more`;
  const [from, to] = state.systems.map((system) => data.systems[system]);
  const about = data.systems.length > 1 ? ` Change: ${to} − ${from}.` : "";
  at("count").textContent = `${topics.length} of ${data.topics.length} topics. ${caption}; choose a topic to open it.${about}`;
  if (data.systems.length > 1) compare(topics);
  remember();
  cues();
};

// Options of all selects, with the number of topics that each filter keeps.
const refill = () => {
  offer(at("measure"), data.measures.map((measure, place) => [place, measure]), state.measure);
  for (const [place, id] of ["from", "to"].entries()) offer(at(id), data.systems.map((name, system) => [system, name]), state.systems[place]);
  for (const [name, filters] of Object.entries(FILTERS)) {
    offer(at(name), Object.entries(filters).map(([key, [text, test]]) => [key, `${text} (${places(data.topics).filter(test()).length})`]), state[name]);
    at(name).parentElement.hidden = Object.keys(filters).length < 2;
  }
  at("search").value = state.search;
};
const redraw = () => { refill(); draw(); };
const restore = () => {
  const open = recall();
  redraw();
  if (open >= 0) show(open);
  else if (dialog.open) dialog.close();
};
for (const [place, id] of ["from", "to"].entries()) {
  at(id).parentElement.hidden = data.systems.length < 2;
  at(id).addEventListener("change", (event) => { state.systems = state.systems.with(place, Number(event.target.value)); redraw(); });
}
at("measure").addEventListener("change", (event) => { state.measure = Number(event.target.value); redraw(); });
for (const name of Object.keys(FILTERS)) at(name).addEventListener("change", (event) => { state[name] = event.target.value; draw(); });
at("search").addEventListener("input", (event) => { state.search = event.target.value; draw(); });
at("table").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !event.target.matches("[data-topic]")) return;
  event.preventDefault();
  const buttons = [...at("table").querySelectorAll("[data-topic]")];
  buttons[buttons.indexOf(event.target) + by]?.focus();
});
at("controls").addEventListener("submit", (event) => event.preventDefault());
at("rest").addEventListener("click", () => { state.all = true; draw(); at("table").focus(); });
window.addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
window.addEventListener("beforeprint", () => {
  state.all = true;
  draw();
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
at("controls").hidden = false;
at("table").hidden = false;
restore();
saveable(document);
