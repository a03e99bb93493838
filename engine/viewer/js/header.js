/** What the plan is and needs, above the pictures. */

import { byId, make } from "./dom.js";
import { bytes, counted, duration, percent, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {import("./payload.js").Facts} Facts */

/** How many times smaller than the other a plan is, when it is hardly seen on one scale. */
const FAINT = 50;

/** @param {App} app */
export function fillHeader(app) {
  const [first] = app.plans;
  const names = [...new Set(app.plans.map((plan) => plan.facts.model || plan.title))];
  byId("model").textContent = names.map((name) => shown(name, 80 / names.length)).join(" beside ");
  byId("model").title = names.map((name) => shown(name, 2000)).join(" beside ");
  document.body.classList.toggle("pair", app.plans.length > 1);
  document.body.classList.toggle("empty", !app.plans.some((plan) => plan.count));
  const isPair = app.plans.length > 1;
  byId("figures").replaceChildren(...(isPair ? pairFigures(app) : figures(first)));
  byId("headings").hidden = !isPair;
  byId("headings").replaceChildren(...(isPair ? app.plans.map((plan, k) => heading(plan, k, names.length > 1 ? plan.title : kindOf(plan))) : []));
  byId("memories").hidden = !app.plans.some(({ facts }) => facts.memories.length);
  byId("memories").replaceChildren(make("h2", {}, "Memories"), ...app.plans.flatMap((plan, k) => memories(plan, isPair ? "AB"[k] : "")));
  byId("summary").textContent = app.plans.map(sentence).join(" ");
  byId("note").textContent = notes(app.plans);
  byId("note").hidden = !byId("note").textContent;
}

/** @param {string} name @param {string} value @param {string} more @returns {HTMLElement} */
function figure(name, value, more) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value, ...(more ? [" ", make("small", {}, more)] : [])));
}

/** @param {Plan} plan @returns {HTMLElement[]} */
function figures(plan) {
  const { facts } = plan;
  const made = [figure("alive at the peak", bytes(facts.peak_bytes), `tick ${whole(facts.peak_tick)} ${facts.peak_operator ? shown(facts.peak_operator, 24) : ""}`)];
  if (facts.mode === "static") made.unshift(figure("arena", bytes(plan.need), over(plan)));
  else if (facts.heap) made.unshift(figure(`reserved by ${shown(facts.heap, 24)}`, bytes(plan.need), over(plan)));
  if (plan.bound > 0) made.push(figure("lower bound", bytes(plan.bound), facts.status));
  if (plan.budget > 0) made.push(figure("budget", bytes(plan.budget), plan.need > plan.budget ? `missed by ${bytes(plan.need - plan.budget)}` : "met"));
  if (!(plan.bound > 0) && facts.mode !== "static" && facts.arena_bytes > 0) made.push(figure("a plan needs", bytes(facts.arena_bytes), ""));
  if (facts.timed) made.push(figure("time", duration(plan.ends("seconds")), facts.clock));
  if (facts.resident_weights_bytes > 0) {
    made.push(figure("weights", bytes(facts.weights_bytes), `${bytes(facts.prepacked_bytes)} prepacked`));
    made.push(figure("resident weights", bytes(facts.resident_weights_bytes), "not in the arena"));
  }
  made.push(figure("tensors", whole(plan.tensors), counted(facts.ticks, "tick")));
  return made;
}

/** @param {Plan} plan @returns {string} */
function over({ need, bound, facts }) {
  const [least, name] = facts.mode === "static" ? [bound, "the bound"] : [facts.arena_bytes, "a plan"];
  if (!least) return "";
  if (need === least) return facts.mode === "static" ? "as small as can be" : "as much as a plan";
  return `${percent(Math.abs(need - least), least)} ${need > least ? "above" : "below"} ${name}`;
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

/** @param {Plan} plan @param {number} k @param {string} name @returns {HTMLElement} */
function heading(plan, k, name) {
  return make("div", {}, make("b", {}, "AB"[k]), make("span", { title: shown(plan.title, 400) }, shown(name, 90)), make("span", { class: "size" }, bytes(plan.need)));
}

/** @param {Plan} plan @param {string} name @returns {HTMLElement[]} what is in its memories, if there are several, and what transfers take */
function memories({ facts }, name) {
  if (!facts.memories.length) return [];
  const row = (/** @type {string[]} */ [first, ...cells], /** @type {"th" | "td"} */ as) =>
    make("tr", {}, make(as, {}, first), ...cells.map((cell) => make(as, { class: "number" }, cell)));
  const rows = facts.memories.map((part) => [part.name, bytes(part.used_bytes), bytes(part.capacity), duration(part.seconds)]);
  const head = row([name ? `memory of ${name}` : "memory", "used", "capacity", "transfers"], "th");
  return [make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map((cells) => row(cells, "td"))))];
}

/** @param {Plan} plan @returns {string} for people who hear the page */
function sentence(plan) {
  const { facts } = plan;
  const arena = ` in ${bytes(plan.need)}`;
  if (!plan.count) return `${shown(plan.title, 90)} has no tensors.`;
  const ran = facts.mode !== "static" && facts.arena_bytes > 0 ? ` A plan would need ${bytes(facts.arena_bytes)}.` : "";
  const bound = plan.bound > 0 ? ` The lower bound is ${bytes(plan.bound)}.` : ran;
  const peak = `At most ${bytes(facts.peak_bytes)} are alive, in tick ${whole(facts.peak_tick)}${facts.peak_operator ? `, ${shown(facts.peak_operator, 60)}` : ""}.`;
  const parts = facts.memories.map((part) => ` ${part.name} has ${bytes(part.used_bytes)} of ${bytes(part.capacity)} in use.`).join("");
  return `${shown(plan.title, 90)}: ${counted(plan.tensors, "tensor")}${arena}. ${peak}${bound}${parts}`;
}

/** @param {Plan[]} plans @returns {string} what the picture is not */
function notes(plans) {
  return [nothing(plans), unplaced(plans), differing(plans), tiny(plans)].filter(Boolean).join(" ");
}

/** @param {Plan[]} plans @returns {string} */
function nothing(plans) {
  const empty = plans.filter((plan) => !plan.count);
  if (!empty.length) return "";
  return plans.length > 1 && empty.length === 1 ? `${"AB"[plans.indexOf(empty[0])]} has no tensors.` : "This plan has no tensors.";
}

/** @param {Plan[]} plans @returns {string} whether the addresses at the left are not those of both */
function differing(plans) {
  const [first, ...others] = plans.map(({ lanes }) => lanes.map(({ name, low }) => `${name} ${low}`).join());
  return others.some((other) => other !== first) ? "The addresses at the left are those of A." : "";
}

/** @param {Plan[]} plans @returns {string} of two that share one scale, whether one of them is hardly to be seen on it */
function tiny(plans) {
  const [least, most] = [0, 1].map((want) => [...plans].sort((a, b) => (want ? b.need - a.need : a.need - b.need))[0]);
  const [short, long] = [0, 1].map((want) => [...plans].sort((a, b) => (a.ends("ticks") - b.ends("ticks")) * (want ? -1 : 1))[0]);
  const small = least.count && least.need * FAINT < most.need ? least : short.count && short.ends("ticks") * FAINT < long.ends("ticks") ? short : null;
  if (!small) return "";
  const other = plans.indexOf(small) ? "A" : "B";
  return `Both have one scale, on which ${"AB"[plans.indexOf(small)]} is small beside ${other}: select one of its tensors in the table, or zoom to its lower left corner.`;
}

/** @param {Plan[]} plans @returns {string} */
function unplaced(plans) {
  const without = plans.filter((plan) => !plan.hasAddresses);
  if (!without.length) return "";
  const which = plans.length > 1 ? ` of ${without.map((plan) => "AB"[plans.indexOf(plan)]).join(" and ")}` : "";
  const ways = { arrival: "stacked in the order in which they came", "arrival, late": "stacked in the order in which they came, with gaps where others went, for they are too many to close them all" };
  const way = ways[/** @type {keyof typeof ways} */ (without[0].pieces("ticks").way)];
  return `The tensors${which} have no addresses: they are ${way}.`;
}
