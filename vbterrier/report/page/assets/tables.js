"use strict";
// Elements and tables of all pages. All texts become text nodes, never markup.
// Rows that a table does not show, and what shows all rows of a table before it is saved.
const page = { more: () => [], complete: () => {} };
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
// Every table can be saved as CSV. Cells with several parts become several columns.
const PARTS = {
  means: [[".mean", ""], [".mark", " mark"], [".ends", " intervals"]],
  rankings: [[".id", ""], [".chip", " judgments and intents"], [".move", " move"], [".snippet", " text"]],
};
const plain = (element) => {
  if (element.dataset.name) return element.dataset.name;
  const copy = element.cloneNode(true);
  for (const one of copy.querySelectorAll("[aria-hidden=true], svg")) one.remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
};
const quoted = (text) => {
  const number = text.replace("−", "-");
  if (/^-?[\d.]+$/.test(number)) return number;
  // Spreadsheets take such texts for formulas.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = (table) => [...[...table.rows].map((row) => [...row.cells].flatMap((cell, place) => {
  if (cell.matches(".bar, .gap")) return [];
  const parts = place && (PARTS[table.id] ?? PARTS[table.className.split(" ")[0]]);
  if (!parts || cell.matches(".number")) return [plain(cell)];
  if (cell.matches("th")) return parts.map(([, title]) => plain(cell) + title);
  return parts.map(([css]) => [...cell.querySelectorAll(css)].map(plain).filter(Boolean).join("; "));
})), ...page.more(table)].map((cells) => cells.map(quoted).join(",")).join("\r\n");
const saver = (scroll) => {
  const button = el("button", { type: "button", class: "link csv" }, "CSV", spoken(` of ${scroll.ariaLabel ?? plain(scroll.querySelector("caption"))}`));
  button.addEventListener("click", () => {
    page.complete(scroll);
    const address = URL.createObjectURL(new Blob(["\ufeff", csv(scroll.querySelector("table")), "\r\n"], { type: "text/csv" }));
    el("a", { href: address, download: `${plain(scroll.querySelector("caption")).replace(/[^\w@.-]+/g, "-")}.csv` }).click();
    URL.revokeObjectURL(address);
  });
  return button;
};
const saveable = (root) => {
  // A topic that the address names is open, and has its buttons, before those of the page are added.
  for (const scroll of root.querySelectorAll(".scroll:has(table)")) if (!scroll.nextElementSibling?.matches(".csv")) scroll.after(saver(scroll));
};

// A shadow shows that a table continues to the right.
const cue = (scroll) => scroll.classList.toggle("continues", scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 2);
const cues = () => { for (const scroll of document.querySelectorAll(".scroll")) cue(scroll); };
document.addEventListener("scroll", (event) => { if (event.target.matches?.(".scroll")) cue(event.target); }, true);
window.addEventListener("resize", cues);
