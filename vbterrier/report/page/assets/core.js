"use strict";
// The data of the page, its state, and elements. All texts become text nodes, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const places = (list) => list.map((_, place) => place);
const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const bdi = (text) => el("bdi", {}, text);
const spoken = (text) => el("span", { class: "hidden" }, text);
const region = (label, ...content) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...content);
const offer = (select, options, chosen) =>
  select.replaceChildren(...options.map(([key, text]) =>
    el("option", { value: key, selected: String(key) === String(chosen) }, text)));

const shown = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");

const state = {
  measure: 0, base: -1, systems: data.order.slice(0, 2), filter: "all", search: "", sort: "topic", falling: false, all: false, open: -1,
};

const raw = (system, topic, measure = state.measure) => data.values[measure][system][topic];
const known = (topic) => places(data.systems).map((system) => raw(system, topic)).filter((one) => one !== null);
const spread = (topic) => {
  const all = known(topic);
  return all.length ? Math.max(...all) - Math.min(...all) : null;
};
const unjudged = (topic) => (data.unjudged ? Math.max(...data.unjudged.map((counts) => counts[topic])) : 0);
