"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_ROWS = 400;
  const STEPS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const places = (list) => list.map((_, place) => place);
  const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // All elements are created here: texts become text nodes, never markup.
  const fill = (made, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  };
  const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const bdi = (text) => el("bdi", {}, text);

  const shown = (value, digits = 3) =>
    value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");

  const state = { measure: 0, base: -1, filter: "all", search: "", sort: "topic", falling: false, all: false, open: -1 };

  const raw = (system, topic, measure = state.measure) => data.values[measure][system][topic];
  const value = (system, topic) => {
    const own = raw(system, topic);
    if (state.base < 0) return own;
    const other = raw(state.base, topic);
    return own === null || other === null ? null : own - other;
  };
  const known = (topic) => places(data.systems).map((system) => raw(system, topic)).filter((one) => one !== null);
  const spread = (topic) => {
    const all = known(topic);
    return all.length ? Math.max(...all) - Math.min(...all) : null;
  };
  const unjudged = (topic) => (data.unjudged ? Math.max(...data.unjudged.counts.map((counts) => counts[topic])) : 0);
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
    ...(data.unjudged ? [{ key: "unjudged", title: `Unjudged of ${data.unjudged.cutoff}, maximum`, of: unjudged }] : []),
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

  // One topic.

  const region = (label, content) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);
  const heads = (...titles) =>
    el("thead", {}, el("tr", {}, titles.flat().map(([title, isNumber]) =>
      el("th", { scope: "col", class: isNumber ? "number" : null }, typeof title === "string" ? bdi(title) : title))));
  const named = (caption, header, rows) =>
    region(caption, el("table", {}, el("caption", { class: "hidden" }, caption), header, el("tbody", {}, rows)));
  const systems = () => data.systems.map((name) => [name, true]);

  const scores = (topic) => [
    el("h3", {}, "Scores"),
    named("Scores of this topic", heads([["System", false]], data.measures.map((measure) => [measure, true])),
      data.systems.map((name, system) =>
        el("tr", {}, el("th", { scope: "row" }, bdi(name)),
          places(data.measures).map((measure) => el("td", { class: "number" }, shown(raw(system, topic, measure), 4)))))),
  ];

  const distribution = (system, topic, mean) => {
    const { shapes, low, high, bars } = data.distributions;
    const [shape, from, to] = [shapes[system][topic], low[system][topic], high[system][topic]];
    const x = (number) => (4 + 232 * number).toFixed(1);
    const sure = !shape;
    const said = sure ? `known: ${shown(mean, 4)}` : `mean ${shown(mean, 4)}, interval ${shown(from, 4)} to ${shown(to, 4)}`;
    const heights = [...shape].map((sign) => (22 * STEPS.indexOf(sign)) / (STEPS.length - 1));
    return svg("svg", { class: "distribution", viewBox: "0 0 240 34", role: "img", "aria-label": said },
      svg("path", { class: "axis", d: "M4 24H236M4 22v4M120 22v4M236 22v4" }),
      heights.map((height, bar) => height > 0
        ? svg("rect", { class: "mass", x: x(bar / bars), width: (232 / bars).toFixed(2), y: (24 - height).toFixed(1), height: height.toFixed(1) })
        : null),
      sure ? null : svg("path", { class: "line", d: `M${x(from)} 30H${x(to)}` }),
      mean === null ? null : svg("circle", { class: sure ? "known" : null, cx: x(mean), cy: 30, r: 2.8 }));
  };

  const distributions = (topic) => {
    if (!data.distributions) return [];
    const measure = data.measures.indexOf(data.distributions.measure);
    const percent = `${(100 * data.distributions.level).toFixed(0)}% interval`;
    const scale = el("span", { class: "scale" }, ["0", "0.5", "1"].map((text) => el("span", {}, text)));
    return [
      el("h3", {}, "Possible scores"),
      el("p", { class: "note" }, `Distribution of ${data.distributions.measure} over the labels of unjudged documents: bars show probability, scaled to the highest bar of each system; the line below shows the interval and the mean. A hollow point is a known score.`),
      named("Distributions of the score of this topic", heads([["System", false], ["Unjudged", true], ["Mean", true], [percent, true], [scale, false]]),
        data.systems.map((name, system) => {
          const mean = raw(system, topic, measure);
          const sure = !data.distributions.shapes[system][topic];
          const ends = sure ? "–" : `${shown(data.distributions.low[system][topic])} to ${shown(data.distributions.high[system][topic])}`;
          return el("tr", {}, el("th", { scope: "row" }, bdi(name)),
            el("td", { class: "number" }, data.unjudged ? String(data.unjudged.counts[system][topic]) : "–"),
            el("td", { class: "number" }, shown(mean)), el("td", { class: "number ends" }, ends),
            el("td", {}, distribution(system, topic, mean)));
        })),
    ];
  };

  const intents = (topic) => {
    if (!data.intents) return [];
    const found = data.intents.topics[topic];
    const ranks = found.ranks.map((text) => text.split(";"));
    const bar = (prob) => {
      const made = el("span", { class: "share", "aria-hidden": "true" });
      made.style.setProperty("--size", prob);
      return made;
    };
    return [
      el("h3", {}, "Intents"),
      found.names.length
        ? el("p", { class: "note" }, `Possible meanings of the query, and the ranks among the first ${data.intents.cutoff} that cover them.`)
        : el("p", { class: "note" }, "This topic has no known intents."),
      found.names.length
        ? named("Intents of this topic", heads([["Intent", false], ["Probability", true]], systems()),
          found.names.map((name, intent) =>
            el("tr", {}, el("th", { scope: "row" }, bdi(name)),
              el("td", { class: "number" }, shown(found.prob[intent]), bar(found.prob[intent])),
              ranks.map((of) => of[intent]
                ? el("td", { class: "number" }, of[intent].replaceAll(",", ", "))
                : el("td", { class: "number none" }, "–")))))
        : null,
      found.more ? el("p", { class: "note" }, `${found.more} more intents have ${shown(found.left)} of the probability.`) : null,
    ];
  };

  const documents = (topic) => {
    if (!data.unjudged) return [];
    const { documents: ids, ranks, more, cutoff } = data.unjudged;
    const found = ids[topic];
    const title = el("h3", {}, "Unjudged documents");
    if (!found.length) return [title, el("p", { class: "note" }, `All of the first ${cutoff} documents of all systems are judged.`)];
    return [
      title,
      el("p", { class: "note" }, `Unjudged documents among the first ${cutoff}, and the rank at which each system retrieves them.`),
      named("Unjudged documents of this topic", heads([["Document", false]], systems()),
        found.map((docno, place) => {
          const of = new Map();
          ranks[topic][place].forEach((number, index, all) => { if (index % 2 === 0) of.set(number, all[index + 1]); });
          return el("tr", {}, el("th", { scope: "row" }, bdi(docno)),
            places(data.systems).map((system) => of.has(system)
              ? el("td", { class: "number" }, String(of.get(system)))
              : el("td", { class: "number none" }, "–")));
        })),
      more[topic] ? el("p", { class: "note" }, `${more[topic]} more are not listed.`) : null,
    ];
  };

  const dialog = at("topic");
  const step = (by) => {
    const order = listed();
    const place = order.indexOf(state.open) + by;
    return place >= 0 && place < order.length ? order[place] : -1;
  };
  const go = (by, label) => {
    const next = step(by);
    const button = el("button", { type: "button", disabled: next < 0, "data-step": by }, label);
    button.addEventListener("click", () => {
      show(next);
      const same = dialog.querySelector(`button[data-step="${by}"]`);
      (same.disabled ? dialog.querySelector("h2") : same).focus();
    });
    return button;
  };
  const show = (topic) => {
    state.open = topic;
    const close = el("button", { type: "button", class: "close" }, "Close");
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(
      el("div", { class: "top" },
        el("h2", { id: "topic-title", tabindex: "-1" }, "Topic ", bdi(data.topics[topic])),
        el("div", { class: "ways" }, go(-1, "Previous"), go(1, "Next"), close)),
      ...(data.queries && data.queries[topic] ? [el("p", { class: "said" }, bdi(data.queries[topic]))] : []),
      ...[...scores(topic), ...distributions(topic), ...intents(topic), ...documents(topic)].filter((part) => part !== null));
    dialog.scrollTop = 0;
    if (!dialog.open) {
      dialog.showModal();
      dialog.querySelector("h2").focus();
    }
  };
  dialog.addEventListener("close", () => {
    const button = at("table").querySelector(`button[data-topic="${state.open}"]`);
    if (button) button.focus();
  });
  // A click outside the content of a dialog hits its backdrop.
  dialog.addEventListener("click", (event) => {
    const box = dialog.getBoundingClientRect();
    if (event.target === dialog && (event.clientX < box.left || event.clientX > box.right)) dialog.close();
  });

  const offer = (select, options, chosen) => {
    select.replaceChildren(...options.map(([key, text]) => el("option", { value: key, selected: String(key) === String(chosen) }, text)));
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
  window.addEventListener("beforeprint", () => { state.all = true; draw(); });
  at("controls").hidden = false;
  at("table").hidden = false;
  draw();
})();
