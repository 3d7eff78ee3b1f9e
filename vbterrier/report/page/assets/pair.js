// Two systems: a scatter plot of topics, their sorted changes, and the topics that decide.
const WIDTH = 340;
const MARGIN = 48;

// The fewest topics without which the mean change has not its sign.
const deciding = (topics) => {
  const total = topics.reduce((sum, topic) => sum + change(topic), 0);
  const gains = topics.map((topic) => [topic, Math.sign(total) * change(topic)]).sort((a, b) => b[1] - a[1]);
  let left = Math.abs(total);
  const tolerance = 1e-12 * gains.reduce((sum, [, gain]) => sum + Math.abs(gain), 0);
  const found = [];
  while (total && left > tolerance && found.length < gains.length) {
    found.push(gains[found.length][0]);
    left -= gains[found.length - 1][1];
  }
  return found;
};

const kind = (topic) => (change(topic) === 0 ? "same" : change(topic) < 0 === data.lower[state.measure] ? "gain" : "loss");
const about = (topic) => `${data.topics[topic]}: ${state.systems.slice(0, 2).map((system) => shown(raw(system, topic))).join(" → ")}`;
const ticks = (least, most) => [least, (least + most) / 2, most];

const scatter = (topics, decide) => {
  const [from, to] = state.systems;
  const numbers = topics.flatMap((topic) => [raw(from, topic), raw(to, topic)]);
  const [least, most] = [Math.min(0, ...numbers), Math.max(0, ...numbers) || 1];
  const x = (number) => MARGIN + ((WIDTH - MARGIN - 12) * (number - least)) / (most - least);
  const y = (number) => WIDTH - x(number);
  const points = topics.map((topic) => svg("circle", {
    class: `point ${kind(topic)}${decide.has(topic) ? " decides" : ""}`, cx: x(raw(from, topic)).toFixed(1), cy: y(raw(to, topic)).toFixed(1),
    r: topics.length > 100 ? 3 : 4.5, "data-topic": topic,
  }, svg("title", {}, about(topic))));
  const label = (number) => shown(number, 2);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${WIDTH}`, role: "img", "aria-label": `Scatter plot of ${topics.length} topics: ${data.systems[from]} across, ${data.systems[to]} upwards` },
    svg("path", { class: "axis", d: `M${x(least)} ${y(most)}V${y(least)}H${x(most)}` }),
    svg("path", { class: "axis diagonal", d: `M${x(least)} ${y(least)}L${x(most)} ${y(most)}` }),
    ticks(least, most).map((number) => [
      svg("text", { x: x(number), y: y(least) + 15, "text-anchor": "middle" }, label(number)),
      svg("text", { x: x(least) - 6, y: y(number) + 4, "text-anchor": "end" }, label(number)),
    ]).flat(),
    svg("text", { x: x((least + most) / 2), y: WIDTH - 8, "text-anchor": "middle" }, short(from)),
    svg("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(10 ${y((least + most) / 2)}) rotate(-90)` }, short(to)),
    points);
};

const bars = (topics, decide) => {
  const order = topics.slice().sort((a, b) => change(b) - change(a) || a - b);
  const most = Math.max(...order.map((topic) => Math.abs(change(topic)))) || 1;
  const step = 600 / order.length;
  const y = (number) => 150 - (149 * number) / most;
  const drawn = svg("svg", { viewBox: "0 0 600 300", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    order.map((topic, place) => svg("rect", {
      class: `delta ${kind(topic)}${decide.has(topic) ? " decides" : ""}`, "data-topic": topic,
      x: (place * step).toFixed(2), width: Math.max(step * 0.85, 0.5).toFixed(2),
      y: Math.min(y(change(topic)), 150).toFixed(1), height: Math.max(Math.abs(y(change(topic)) - 150), 1).toFixed(1),
    }, svg("title", {}, about(topic)))),
    svg("path", { class: "axis", d: "M0 150H600" }));
  const scale = el("div", { class: "scale", "aria-hidden": "true" }, [most, 0, -most].map((number) => el("span", {}, shown(number, 2))));
  // Arrow keys move along the bars, which are a slider for screen readers; Enter opens a topic.
  const slider = el("div", { class: "bars", tabindex: "0", role: "slider", "aria-label": "Changes of topics, sorted; Enter opens one", "aria-valuemin": 1, "aria-valuemax": order.length }, scale, drawn);
  const said = el("p", { class: "note", role: "status" });
  const select = (place) => {
    const topic = order[place];
    slider.setAttribute("aria-valuenow", place + 1);
    slider.setAttribute("aria-valuetext", `${about(topic)}, ${shown(change(topic))}`);
    for (const bar of drawn.querySelectorAll(".delta")) bar.classList.toggle("hit", Number(bar.dataset.topic) === topic);
  };
  select(0);
  slider.addEventListener("focus", () => { said.textContent = slider.getAttribute("aria-valuetext"); });
  slider.addEventListener("keydown", (event) => {
    const place = Number(slider.getAttribute("aria-valuenow")) - 1;
    const next = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: order.length - 1 }[event.key];
    if (event.key === "Enter") show(order[place]);
    if (next === undefined) return;
    event.preventDefault();
    select(Math.max(0, Math.min(order.length - 1, next)));
    said.textContent = slider.getAttribute("aria-valuetext");
  });
  return [slider, said];
};

const compare = (listedTopics) => {
  const topics = listedTopics.filter((topic) => change(topic) !== null);
  const [from, to] = state.systems.map((system) => data.systems[system]);
  if (!topics.length) return at("pair").replaceChildren();
  const decide = deciding(topics);
  const n = (wanted) => topics.filter((topic) => Math.sign(change(topic)) === wanted).length;
  const mean = topics.reduce((sum, topic) => sum + change(topic), 0) / topics.length;
  const counts = `${to} is higher on ${n(1)}, lower on ${n(-1)} and equal on ${n(0)} of ${topics.length} topics; the mean change is ${shown(mean)}.`;
  const button = (topic) => {
    const made = el("button", { type: "button", class: "link", "aria-haspopup": "dialog" }, bdi(data.topics[topic]));
    made.addEventListener("click", () => show(topic));
    return made;
  };
  const first = decide.slice(0, 8).flatMap((topic, place) => [place ? ", " : "", button(topic)]);
  const more = decide.length > 8 ? ` and ${decide.length - 8} more` : "";
  const decides = decide.length && decide.length < topics.length
    ? el("p", {}, `Without ${decide.length} of these topics, the mean change would not have this sign: `, ...first, `${more}.`)
    : null;
  const set = new Set(decide.length < topics.length ? decide : []);
  const view = el("div", { class: "views" }, el("div", { class: "scatter" }, scatter(topics, set)), el("div", {}, bars(topics, set)));
  view.addEventListener("click", (event) => {
    const { topic } = event.target.dataset;
    if (topic) show(Number(topic));
  });
  at("pair").replaceChildren(...[el("h3", {}, bdi(from), " → ", bdi(to)), el("p", {}, counts), decides, view].filter(Boolean));
};
