/** What is known of a tensor: beside the pointer in short, and at the side in full once it is clicked. */

import { byId, make } from "./dom.js";
import { bytes, counted, duration, exact, percent, shown, whole } from "./text.js";
import { actor, attributes, named, whyAtPeak } from "./uses.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./app.js").Spot} Spot */
/** @typedef {import("./plan.js").Plan} Plan */

const LONG = 12000;
/** Views and readers that are listed. */
const MOST = 8;

/** @param {App} app */
export function bindDetails(app) {
  app.listeners.push((change) => {
    if (["selection", "axis", "plans"].includes(change)) showDetails(app);
  });
  byId("close-tensor").addEventListener("click", () => app.select(null));
  showDetails(app);
}

/** @param {App} app */
function showDetails(app) {
  const place = byId("details");
  document.body.classList.toggle("chosen", Boolean(app.selected));
  if (!app.selected) {
    place.replaceChildren(make("p", { class: "hint" }, "Click a rectangle, or a row of the table, to see all that is known of a tensor."));
    return;
  }
  const { pane, chunk } = app.selected;
  const plan = app.plans[pane];
  const size = plan.columns.size[chunk];
  const head = make("h3", {}, shown(plan.text("name", chunk), LONG));
  const sub = make("p", { class: "lead" }, app.plans.length > 1 ? `in ${"AB"[pane]}: ` : "", make("b", {}, bytes(size)), ` · ${share(plan, chunk)}`);
  const list = make("dl");
  for (const [name, value] of rows(app, plan, pane, chunk)) list.append(make("dt", {}, name), make("dd", {}, value));
  place.replaceChildren(head, sub, list);
}

/** @param {Plan} plan @param {number} chunk @returns {string} of all weights, or of what the run needs */
function share(plan, chunk) {
  const size = plan.columns.size[chunk];
  if (chunk >= plan.tensors) return `${percent(size, plan.facts.weights_bytes) || "nothing"} of the weights`;
  return `${percent(size, plan.need) || "nothing"} of the ${plan.facts.mode === "static" ? "arena" : plan.facts.heap ? "heap" : "peak"}`;
}

/** @param {App} app @param {Plan} plan @param {number} pane @param {number} chunk @returns {[string, Node | string][]} */
function rows(app, plan, pane, chunk) {
  const { size, padding, stage, thread, overwrites } = plan.columns;
  /** @type {[string, Node | string | false][]} */
  const all = [
    ["written by", writer(app, pane, chunk)],
    ["attributes", attributes(plan, chunk) && shown(attributes(plan, chunk), 300)],
    ["read by", readers(app, pane, chunk)],
    ["layer", shown(plan.text("layer", chunk) || "", 200)],
    ["shape", plan.text("shape", chunk) && `${shown(plan.text("shape", chunk), 200)} ${shown(plan.text("dtype", chunk), 40)}`],
    ["role", shown(plan.text("role", chunk) || "", 60)],
    ["alive", lifetime(plan, chunk)],
    ["at the peak", whyAtPeak(plan, chunk)],
    ["in seconds", plan.facts.timed && seconds(plan, chunk)],
    ["bytes", exact(size[chunk])],
    ["address", address(plan, chunk)],
    ["memory", reasons(plan, chunk)],
    ["padding", padding[chunk] > 0 && `${exact(padding[chunk])}, at its end`],
    ["overwrites", overwrites[chunk] >= 0 && link(app, pane, overwrites[chunk])],
    ["overwritten by", plan.follower[chunk] >= 0 && link(app, pane, plan.follower[chunk])],
    ["seen through", views(plan, chunk)],
    ["stage", plan.facts.stages > 1 && stage[chunk] >= 0 && whole(stage[chunk])],
    ["thread", thread[chunk] >= 0 && whole(thread[chunk])],
    ["in the other", twin(app, pane, chunk)],
  ];
  return /** @type {[string, Node | string][]} */ (all.filter(([, value]) => value && value !== "(no name)"));
}

/** @param {App} app @param {number} pane @param {number} chunk @returns {Node | false} */
function writer(app, pane, chunk) {
  const plan = app.plans[pane];
  const operator = plan.text("operator", chunk);
  if (!operator) return false;
  const begin = plan.columns.begin[chunk];
  return tickLink(app, pane, begin, begin ? named(operator, plan.text("schema", chunk)) : "the caller");
}

/** @param {App} app @param {number} pane @param {number} chunk @returns {Node | false} */
function readers(app, pane, chunk) {
  const plan = app.plans[pane];
  const ticks = plan.readsOf(chunk);
  const items = ticks.slice(0, MOST).map((tick) => make("li", {}, tickLink(app, pane, tick, `${actor(plan, tick)}, tick ${whole(tick)}`)));
  if (ticks.length > MOST) items.push(make("li", {}, `and ${whole(ticks.length - MOST)} more`));
  return items.length > 0 && make("ul", {}, ...items);
}

/** @param {App} app @param {number} pane @param {number} tick @param {string} text @returns {Node} which lists who is alive in a tick */
function tickLink(app, pane, tick, text) {
  return button(text, () => app.showTick(pane, tick));
}

/** @param {Plan} plan @param {number} chunk @returns {string} */
export function lifetime(plan, chunk) {
  const [begin, end] = [plan.columns.begin[chunk], plan.columns.end[chunk]];
  const [first, last] = [plan.operator(begin), plan.operator(end - 1)];
  const names = end - begin === 1 || first === last ? first && `, in ${shown(first, 60)}` : spanned(first, last);
  return `${end - begin === 1 ? `tick ${whole(begin)}` : `ticks ${whole(begin)} to ${whole(end - 1)} (${whole(end - begin)})`}${names}`;
}

/** @param {string} first @param {string} last operators, or "" in ticks without one @returns {string} */
function spanned(first, last) {
  if (!last) return `, from ${shown(first, 60)} on`;
  return first ? `, from ${shown(first, 60)} to ${shown(last, 60)}` : `, to ${shown(last, 60)}`;
}

/** @param {Plan} plan @param {number} chunk @returns {string} */
function seconds(plan, chunk) {
  const { born, died } = plan.columns;
  return `${duration(born[chunk])} to ${duration(died[chunk])} (${duration(died[chunk] - born[chunk])})`;
}

/** @param {Plan} plan @param {number} chunk @returns {string} */
function address(plan, chunk) {
  const { offset, size } = plan.columns;
  if (chunk >= plan.tensors && !memory(plan, chunk)) return "none: weights lie outside the arena";
  if (offset[chunk] < 0) return "none: this run has no arena";
  const at = plan.addressOf(chunk);
  return `${whole(at)} up to ${whole(at + size[chunk])}${memory(plan, chunk)}`;
}

/** @param {Plan} plan @param {number} chunk @returns {string} in which memory it lies, if there are several */
function memory(plan, chunk) {
  const lane = plan.lanes[plan.columns.memory[chunk]];
  return lane ? ` in ${lane.name}` : "";
}

/** @param {Plan} plan @param {number} chunk @returns {Node | false} why it lies in its memory, if there are several */
function reasons(plan, chunk) {
  const lines = plan.text("reason", chunk).split("\n");
  return lines[0] !== "" && make("ul", {}, ...lines.map((line) => make("li", {}, shown(line.trim(), 300))));
}

/** @param {Plan} plan @param {number} chunk @returns {Node | false} */
function views(plan, chunk) {
  const places = plan.views.get(chunk);
  if (!places) return false;
  const { view_name: name, view_tick: tick, view_bytes: size } = plan.columns;
  const items = places.slice(0, MOST).map((k) => make("li", {}, `${shown(plan.strings[name[k]], 100)} (${bytes(size[k])}, tick ${whole(tick[k])})`));
  if (places.length > MOST) items.push(make("li", {}, `and ${counted(places.length - MOST, "more view")}`));
  return make("ul", {}, ...items);
}

/** @param {App} app @param {number} pane @param {number} chunk @returns {Node | false} */
function twin(app, pane, chunk) {
  const [other] = app.twins({ pane, chunk });
  if (!other) return false;
  const plan = app.plans[other.pane];
  const text = `${bytes(plan.columns.size[other.chunk])}${plan.columns.offset[other.chunk] < 0 ? "" : ` at ${whole(plan.addressOf(other.chunk))}${memory(plan, other.chunk)}`}, ${lifetime(plan, other.chunk)}`;
  return button(text, () => app.select(other));
}

/** @param {App} app @param {number} pane @param {number} chunk @returns {Node} a name that is clicked */
function link(app, pane, chunk) {
  return button(shown(app.plans[pane].text("name", chunk), 100), () => app.select({ pane, chunk }));
}

/** @param {string} text @param {() => void} act @returns {HTMLElement} */
export function button(text, act) {
  const made = make("button", { type: "button", class: "link" }, text);
  made.addEventListener("click", act);
  return made;
}

/** @param {App} app @param {Spot} spot @returns {string[]} lines for the tip beside the pointer */
export function brief(app, { pane, chunk }) {
  const plan = app.plans[pane];
  const { size, offset, overwrites } = plan.columns;
  const lines = [shown(plan.text("name", chunk), 90), `${bytes(size[chunk])}  ${shown(plan.text("shape", chunk) || "", 60)} ${shown(plan.text("dtype", chunk) || "", 20)}`.replace(/\(no name\)/g, "")];
  if (plan.text("operator", chunk)) lines.push(`by ${named(plan.text("operator", chunk), plan.text("schema", chunk))}`);
  lines.push(lifetime(plan, chunk));
  if (offset[chunk] >= 0 && !plan.text("reason", chunk)) lines.push(`at ${whole(plan.addressOf(chunk))}${memory(plan, chunk)}`);
  if (overwrites[chunk] >= 0) lines.push(`written over ${shown(plan.text("name", overwrites[chunk]), 60)}`);
  lines.push(...plan.text("reason", chunk).split("\n").filter((line) => line && !line.startsWith(" ")).map((line) => shown(line, 300)));
  return lines;
}
