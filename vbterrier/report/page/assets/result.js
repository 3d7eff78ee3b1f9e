// Tables that are sorted by a click on a title and searched; the fragment of the address keeps their state.
const MOST = 10;
const parts = [...document.querySelectorAll(".part")];
const states = new Map(parts.map((part) => [part.id, { sort: -1, falling: false, search: "" }]));
const number = (text) => (/^[-−]?\d/.test(text) ? Number.parseFloat(text.replace("−", "-")) : Number.NaN);
const first = new Map(parts.map((part) => [part.id, [...part.querySelectorAll("tbody tr")]]));

const show = (part) => {
  const { sort, falling, search } = states.get(part.id);
  const body = part.querySelector("tbody");
  const key = (row) => plain(row.cells[sort] ?? row.cells[0]);
  const rows = first.get(part.id).filter((row) => row.cells.length > 1 || !search);
  if (sort >= 0) {
    rows.sort((a, b) => {
      const [one, other] = [key(a), key(b)];
      if (!one || !other) return !one - !other;
      const by = number(one) - number(other);
      return (falling ? -1 : 1) * (Number.isNaN(by) ? natural.compare(one, other) : by);
    });
  }
  body.replaceChildren(...rows.filter((row) => plain(row).toLowerCase().includes(search.toLowerCase())));
  [...part.querySelectorAll("thead th")].forEach((head, place) => {
    head.ariaSort = place === sort ? (falling ? "descending" : "ascending") : null;
  });
};
const remember = () => {
  const said = new URLSearchParams();
  for (const [id, { sort, falling, search }] of states) {
    if (sort >= 0) said.set(`sort-${id}`, `${falling ? "-" : ""}${sort}`);
    if (search) said.set(`search-${id}`, search);
  }
  for (const folded of document.querySelectorAll("details[id][open]")) said.append("open", folded.id);
  const fragment = String(said);
  if (fragment || location.hash.includes("=")) history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
};
const recall = () => {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const part of parts) {
    const sort = said.get(`sort-${part.id}`) ?? "";
    const place = Number.parseInt(sort.replace("-", ""), 10);
    Object.assign(states.get(part.id), {
      sort: place < part.querySelectorAll("thead th").length ? place : -1, falling: sort.startsWith("-"),
      search: said.get(`search-${part.id}`) ?? "",
    });
    const field = part.querySelector("input");
    if (field) field.value = states.get(part.id).search;
    show(part);
  }
  for (const id of said.getAll("open")) document.getElementById(id)?.setAttribute("open", "");
};
for (const part of parts) {
  const state = states.get(part.id);
  [...part.querySelectorAll("thead th")].forEach((head, place) => {
    if (!plain(head)) return;
    const button = el("button", { type: "button", title: "Sort" }, ...head.childNodes);
    button.addEventListener("click", () => {
      Object.assign(state, { sort: place, falling: state.sort === place && !state.falling });
      show(part);
      remember();
    });
    head.append(button);
  });
  if (first.get(part.id).length > MOST) {
    const field = el("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    field.addEventListener("input", () => {
      state.search = field.value;
      show(part);
      remember();
    });
    part.querySelector(".scroll").before(el("form", { class: "controls", role: "search" }, el("label", {}, "Search ", field)));
  }
}
window.addEventListener("beforeprint", () => { for (const folded of document.querySelectorAll("details")) folded.open = true; });
document.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("toggle", (event) => { if (event.target.matches?.("details[id]")) remember(); cues(); }, true);
window.addEventListener("hashchange", () => { if (location.hash.includes("=")) recall(); });
recall();
saveable(document);
cues();
