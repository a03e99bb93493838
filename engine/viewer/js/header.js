/** What the plan is and needs, above the pictures. */

import { byId, make } from "./dom.js";
import { bytes, counted, duration, percent, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {import("./payload.js").Facts} Facts */

/** @param {App} app */
export function fillHeader(app) {
  const [first] = app.plans;
  byId("model").textContent = shown(first.facts.model || first.title, 80);
  byId("model").title = shown(first.facts.model || first.title, 2000);
  const isPair = app.plans.length > 1;
  byId("figures").replaceChildren(...(isPair ? pairFigures(app) : figures(first)));
  byId("headings").hidden = !isPair;
  byId("headings").replaceChildren(...(isPair ? app.plans.map(heading) : []));
  byId("summary").textContent = app.plans.map(sentence).join(" ");
  byId("note").textContent = notes(app.plans);
  byId("note").hidden = !byId("note").textContent;
}

/** @param {string} name @param {string} value @param {string} more @returns {HTMLElement} */
function figure(name, value, more) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value, ...(more ? [make("small", {}, more)] : [])));
}

/** @param {Plan} plan @returns {HTMLElement[]} */
function figures(plan) {
  const { facts } = plan;
  const made = [figure("peak, live", bytes(facts.peak_bytes), `tick ${whole(facts.peak_tick)} ${facts.peak_operator ? shown(facts.peak_operator, 24) : ""}`)];
  if (facts.mode === "static") made.unshift(figure("arena", bytes(plan.need), over(plan)));
  else if (facts.heap) made.unshift(figure(`held by ${shown(facts.heap, 24)}`, bytes(plan.need), over(plan)));
  if (facts.lower_bound > 0) made.push(figure("lower bound", bytes(facts.lower_bound), facts.status));
  if (facts.timed) made.push(figure("time", duration(plan.ends("seconds")), facts.clock));
  made.push(figure("tensors", whole(plan.count), counted(facts.ticks, "tick")));
  return made;
}

/** @param {Plan} plan @returns {string} */
function over({ need, facts }) {
  if (!facts.lower_bound) return "";
  const more = need - facts.lower_bound;
  return more ? `${percent(more, facts.lower_bound)} above bound` : "as small as can be";
}

/** @param {App} app @returns {HTMLElement[]} */
function pairFigures({ plans: [a, b] }) {
  const difference = b.need - a.need;
  const word = difference === 0 ? "both need the same" : `B needs ${difference > 0 ? "more" : "less"}`;
  const change = figure(word, difference ? bytes(Math.abs(difference)) : bytes(a.need), difference ? percent(Math.abs(difference), a.need) : "");
  change.className = difference > 0 ? "worse" : difference < 0 ? "better" : "";
  return [figure("A", bytes(a.need), kindOf(a)), figure("B", bytes(b.need), kindOf(b)), change];
}

/** @param {Plan} plan @returns {string} what tells it from another of the same model */
function kindOf({ title, facts }) {
  const named = `${facts.model} · `;
  if (title.startsWith(named)) return shown(title.slice(named.length), 32);
  if (facts.mode === "dynamic") return facts.heap ? `heap ${shown(facts.heap, 24)}` : "reference counting";
  return shown([facts.strategy, facts.policy].filter(Boolean).join(", ") || facts.mode, 32);
}

/** @param {Plan} plan @param {number} k @returns {HTMLElement} */
function heading(plan, k) {
  return make("div", {}, make("b", {}, "AB"[k]), make("span", { title: shown(plan.title, 400) }, shown(plan.title, 90)), make("span", { class: "size" }, bytes(plan.need)));
}

/** @param {Plan} plan @returns {string} for people who hear the page */
function sentence(plan) {
  const { facts } = plan;
  const arena = ` in ${bytes(plan.need)}`;
  const bound = facts.lower_bound > 0 ? ` The lower bound is ${bytes(facts.lower_bound)}.` : "";
  const peak = `At most ${bytes(facts.peak_bytes)} are alive, in tick ${whole(facts.peak_tick)}${facts.peak_operator ? `, ${shown(facts.peak_operator, 60)}` : ""}.`;
  return `${shown(plan.title, 90)}: ${counted(plan.count, "tensor")}${arena}. ${peak}${bound}`;
}

/** @param {Plan[]} plans @returns {string} what the picture is not */
function notes(plans) {
  const without = plans.filter((plan) => !plan.hasAddresses);
  if (!without.length) return "";
  const which = plans.length > 1 ? ` of ${without.map((plan) => "AB"[plans.indexOf(plan)]).join(" and ")}` : "";
  const ways = { arrival: "stacked in the order in which they came", "first place": "each at the lowest height that was free when it came" };
  const way = ways[/** @type {keyof typeof ways} */ (without[0].pieces("ticks").way)];
  return `The tensors${which} have no addresses: they are ${way}.`;
}
