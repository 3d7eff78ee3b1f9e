// One topic: scores, rankings side by side, possible scores, intents.
const STEPS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const dialog = at("topic");

const heads = (...titles) =>
  el("thead", {}, el("tr", {}, titles.map(([title, isNumber]) =>
    el("th", { scope: "col", class: isNumber ? "number" : null }, typeof title === "string" ? bdi(title) : title))));
const named = (caption, header, rows) =>
  region(caption, el("table", {}, el("caption", { class: "hidden" }, caption), header, el("tbody", {}, rows)));

const scores = (topic) => [
  el("h3", {}, "Scores"),
  named("Scores of this topic", heads(["System", false], ...data.measures.map((measure) => [measure, true])),
    data.systems.map((name, system) =>
      el("tr", {}, el("th", { scope: "row" }, bdi(name)),
        places(data.measures).map((measure) => el("td", { class: "number" }, shown(raw(system, topic, measure), 4)))))),
];

// The intents that the document at each rank covers.
const coveredBy = (system, topic) => {
  const covered = [];
  if (!data.intents) return covered;
  const { names, ranks } = data.intents.topics[topic];
  ranks[system].split(";").forEach((text, intent) => {
    for (const rank of text ? text.split(",") : []) (covered[rank - 1] ??= []).push(names[intent]);
  });
  return covered;
};

const moved = (rank, ranks, column, chosen) => {
  const first = data.systems[chosen[0]];
  const mark = (kind, sign, said) => el("span", { class: `move ${kind}` }, el("span", { "aria-hidden": "true" }, sign), spoken(said));
  if (column === 0) return ranks.slice(1).some((of) => of !== undefined) ? null : mark("only", "only", "in no other of these rankings");
  if (ranks[0] === undefined) return mark("new", "new", `not in ${first}`);
  const up = ranks[0] - rank;
  if (up === 0) return mark("same", "=", `the same rank as in ${first}`);
  return up > 0 ? mark("up", `▲ ${up}`, `${up} higher than in ${first}`) : mark("down", `▼ ${-up}`, `${-up} lower than in ${first}`);
};

const judged = (found, place) => {
  if (!found.grades) return [];
  const grade = found.grades[place];
  const chance = found.chances && grade < 0 ? found.chances[place] : -1;
  return [
    grade < 0 ? el("span", { class: "chip unjudged" }, "unjudged") : el("span", { class: `chip grade g${Math.min(grade, 4)}` }, `grade ${grade}`),
    chance < 0 ? null : el("span", { class: "chip", title: "probability of relevance" }, spoken("probability of relevance "), `P ${(chance / 100).toFixed(2)}`),
    ...data.rankings.labellers.map((name, labeller) => {
      const label = found[`label${labeller}`][place];
      return label === null ? null : el("span", { class: "chip machine", title: `label of ${name}, a machine` }, bdi(name), ` ${label}`);
    }),
  ];
};

// Lines between the ranks of shared documents in two neighbouring columns, a unit of height for each rank.
const joined = (left, right, n) => {
  const lines = left.map((place, rank) => [place, rank, right.indexOf(place)]).filter(([, , other]) => other >= 0);
  return svg("svg", { class: "joins", viewBox: `0 0 10 ${n}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    lines.map(([place, from, to]) => svg("path", {
      d: `M0 ${from + 0.5}C5 ${from + 0.5} 5 ${to + 0.5} 10 ${to + 0.5}`, "data-place": place,
      class: from === to ? "same" : to < from ? "up" : "down",
    })));
};

const ranking = (topic) => {
  const { ids, texts, depth, topics } = data.rankings;
  const found = topics[topic];
  const chosen = state.systems;
  const lists = chosen.map((system) => found.ranks[system]);
  const rankOf = lists.map((list) => new Map(list.map((place, rank) => [place, rank])));
  const covered = chosen.map((system) => coveredBy(system, topic));
  const n = Math.max(...lists.map((list) => list.length));
  if (n === 0) return el("p", { class: "note" }, "These systems retrieved nothing for this topic.");
  const card = (column, rank) => {
    const place = lists[column][rank];
    if (place === undefined) return el("td", {});
    const ranks = rankOf.map((of) => of.get(place));
    const docno = ids[found.ids[place]];
    const text = texts && texts[found.ids[place]];
    return el("td", { tabindex: "-1", "data-place": place, "data-column": column, "data-rank": rank },
      el("div", { class: "card" },
        el("div", { class: "line" }, el("span", { class: "id", title: docno }, bdi(docno)), chosen.length > 1 ? moved(rank, ranks, column, chosen) : null),
        el("div", { class: "line chips" }, judged(found, place),
          (covered[column][rank] || []).map((name) => el("span", { class: "chip intent", title: name }, spoken("covers "), bdi(name)))),
        texts ? el("div", { class: "snippet", title: text }, text ? bdi(text) : "") : null));
  };
  const heading = (system, column) => [
    column ? el("td", { class: "gap" }) : null,
    el("th", { scope: "col" }, bdi(data.systems[system]), el("span", { class: "ends" }, ` ${shown(raw(system, topic))}`)),
  ];
  const row = (rank) => el("tr", {}, el("th", { scope: "row" }, String(rank + 1)), chosen.map((_, column) => [
    column && rank === 0 ? el("td", { class: "gap", rowspan: n, "aria-hidden": "true" }, joined(lists[column - 1], lists[column], n)) : null,
    card(column, rank),
  ]).flat());
  const label = `Rankings of this topic, to rank ${depth}`;
  const table = el("table", { class: `rankings${texts ? " texts" : ""}` }, el("caption", { class: "hidden" }, label),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, spoken("Rank"), el("span", { "aria-hidden": "true" }, "#")), chosen.map(heading).flat())),
    el("tbody", {}, places(Array.from({ length: n })).map(row)));
  table.style.setProperty("--n", n);
  table.style.setProperty("--columns", chosen.length);
  return steered(region(label, table));
};

// One document takes part in the order of Tab; arrow keys move among documents. All places of a document are marked.
const steered = (area) => {
  const cards = [...area.querySelectorAll("[data-place]:is(td)")];
  const mark = (place) => {
    for (const one of area.querySelectorAll("[data-place]")) one.classList.toggle("hit", one.dataset.place === place);
  };
  const of = (target) => target.closest("td[data-place]");
  const unmark = () => mark(of(document.activeElement)?.dataset.place);
  if (cards.length) cards[0].tabIndex = 0;
  area.addEventListener("mouseover", (event) => { if (of(event.target)) mark(of(event.target).dataset.place); });
  area.addEventListener("mouseleave", unmark);
  area.addEventListener("focusin", unmark);
  area.addEventListener("focusout", () => mark(undefined));
  area.addEventListener("keydown", (event) => {
    const card = of(event.target);
    if (!card) return;
    const [column, rank] = [Number(card.dataset.column), Number(card.dataset.rank)];
    const way = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const next = area.querySelector(`td[data-column="${column + way[0]}"][data-rank="${rank + way[1]}"]`);
    if (!next) return;
    card.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  return area;
};

const rankings = (topic) => {
  const { depth } = data.rankings;
  const holder = el("div", { id: "rankings" }, ranking(topic));
  const most = Math.min(MOST_SYSTEMS, data.systems.length);
  const choose = (column) => {
    const select = el("select", { "data-column": column });
    const own = data.systems.map((name, system) => [system, name]);
    offer(select, column < 2 ? own : [["", "none"], ...own], state.systems[column] ?? "");
    select.addEventListener("change", () => {
      const chosen = state.systems.slice();
      if (select.value === "") chosen.splice(column);
      else chosen[Math.min(column, chosen.length)] = Number(select.value);
      state.systems = chosen;
      redraw();
      show(topic);
      dialog.querySelector(`select[data-column="${column}"]`).focus();
    });
    return el("label", {}, ["First", "Second", "Third", "Fourth"][column] + " system", select);
  };
  const said = [
    `The first ${depth} documents of each system, with its ${data.measures[state.measure]}.`,
    data.systems.length > 1 ? " Lines join the same document; marks give its move from the first system." : "",
    depth < data.cutoff ? ` Ranks ${depth + 1} to ${data.cutoff} are left out to limit the size of the page.` : "",
    data.rankings.are_texts_cut ? " To limit the size of the page, only documents at high ranks have a text." : "",
    data.rankings.topics[topic].chances ? " P is the probability that an unjudged document is relevant." : "",
  ];
  return [
    el("h3", {}, "Rankings"),
    el("p", { class: "note" }, said.join("")),
    most > 1 ? el("div", { class: "controls", role: "group", "aria-label": "Systems to compare" }, places(Array.from({ length: most })).map(choose)) : null,
    holder,
  ];
};

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
    named("Distributions of the score of this topic", heads(["System", false], ["Unjudged", true], ["Mean", true], [percent, true], [scale, false]),
      data.systems.map((name, system) => {
        const mean = raw(system, topic, measure);
        const sure = !data.distributions.shapes[system][topic];
        const ends = sure ? "–" : `${shown(data.distributions.low[system][topic])} to ${shown(data.distributions.high[system][topic])}`;
        return el("tr", {}, el("th", { scope: "row" }, bdi(name)),
          el("td", { class: "number" }, data.unjudged ? String(data.unjudged[system][topic]) : "–"),
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
  if (!found.names.length) return [el("h3", {}, "Intents"), el("p", { class: "note" }, "This topic has no known intents.")];
  return [
    el("h3", {}, "Intents"),
    el("p", { class: "note" }, `Possible meanings of the query, and the ranks among the first ${data.intents.cutoff} that cover them.`),
    named("Intents of this topic", heads(["Intent", false], ["Probability", true], ...data.systems.map((name) => [name, true])),
      found.names.map((name, intent) =>
        el("tr", {}, el("th", { scope: "row" }, bdi(name)),
          el("td", { class: "number" }, shown(found.prob[intent]), bar(found.prob[intent])),
          ranks.map((of) => of[intent]
            ? el("td", { class: "number" }, of[intent].replaceAll(",", ", "))
            : el("td", { class: "number none" }, "–"))))),
    found.more ? el("p", { class: "note" }, `${found.more} more intents have ${shown(found.left)} of the probability.`) : null,
  ];
};

const step = (by) => {
  const order = listed();
  const place = order.indexOf(state.open) + by;
  return place >= 0 && place < order.length ? order[place] : -1;
};
const go = (by) => {
  const next = step(by);
  if (next < 0) return;
  show(next);
  const same = dialog.querySelector(`button[data-step="${by}"]`);
  (same.disabled ? dialog.querySelector("h2") : same).focus();
};
const way = (by, label) => {
  const button = el("button", { type: "button", disabled: step(by) < 0, "data-step": by }, label);
  button.addEventListener("click", () => go(by));
  return button;
};
const show = (topic) => {
  const top = state.open === topic ? dialog.scrollTop : 0;
  state.open = topic;
  const close = el("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    el("div", { class: "top" },
      el("h2", { id: "topic-title", tabindex: "-1" }, "Topic ", bdi(data.topics[topic])),
      el("div", { class: "ways" }, way(-1, "Previous"), way(1, "Next"), close)),
    ...(data.queries && data.queries[topic] ? [el("p", { class: "said" }, bdi(data.queries[topic]))] : []),
    ...[...rankings(topic), ...scores(topic), ...distributions(topic), ...intents(topic)].filter((part) => part !== null));
  saveable(dialog);
  if (!dialog.open) {
    dialog.showModal();
    dialog.querySelector("h2").focus();
  }
  dialog.scrollTop = top;
  cues();
  remember();
};
dialog.addEventListener("close", () => {
  const button = at("table").querySelector(`button[data-topic="${state.open}"]`);
  if (button) button.focus();
  state.open = -1;
  remember();
});
// A click outside the content of a dialog hits its backdrop.
dialog.addEventListener("click", (event) => {
  const box = dialog.getBoundingClientRect();
  if (event.target === dialog && (event.clientX < box.left || event.clientX > box.right)) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  // Selects and tables that scroll use these keys themselves.
  if (!by || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, .scroll")) return;
  event.preventDefault();
  go(by);
});
