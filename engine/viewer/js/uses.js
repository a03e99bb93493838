/** Who writes and reads a tensor, and why it is alive at the peak. */

import { counted, shown, whole } from "./text.js";

/** @typedef {import("./plan.js").Plan} Plan */

/** @param {Plan} plan @param {number} tick @returns {string} the operator that runs then, with its kind; or the caller */
export function actor(plan, tick) {
  const i = plan.operatorAt.get(tick);
  if (i === undefined) return tick === plan.facts.ticks - 1 ? "the caller, as an output" : `tick ${whole(tick)}`;
  const [name, kind] = [plan.strings[plan.columns.op_name[i]], plan.strings[plan.columns.op_schema[i]]];
  return named(name, kind);
}

/** @param {string} name @param {string} kind @returns {string} an operator, with its kind where the name is another */
export function named(name, kind) {
  return `${shown(name, 100)}${kind && kind !== name ? ` (${shown(kind, 60)})` : ""}`;
}

/** @param {Plan} plan @param {number} chunk @returns {string} of the operator that writes it; "" where that is not known */
export function attributes(plan, chunk) {
  const i = plan.operatorAt.get(plan.columns.begin[chunk]);
  const isWriter = i !== undefined && plan.strings[plan.columns.op_name[i]] === plan.text("operator", chunk);
  return isWriter ? plan.strings[plan.columns.op_attributes[i]] : "";
}

/** @param {Plan} plan @param {number} chunk @returns {string} why it is alive at the peak; "" if it is not */
export function whyAtPeak(plan, chunk) {
  if (!plan.atPeak.has(chunk)) return "";
  const { facts, columns } = plan;
  const tick = facts.peak_tick;
  const reads = plan.readsOf(chunk);
  const follower = plan.follower[chunk];
  const isTaken = follower >= 0 && columns.begin[follower] === tick;
  const reasons = isAlone(plan) ? [now(plan, chunk, tick)] : [];
  if (isTaken) reasons.push(`${shown(plan.text("name", follower), 60)} is written over it then`);
  else if (reads.length || !plan.knowsReads) reasons.push(later(plan, chunk, reads, isAlone(plan) ? tick : columns.begin[chunk]));
  else if (stays(plan, chunk)) reasons.push("kept from run to run");
  return reasons.filter(Boolean).join("; ");
}

/** @param {Plan} plan @returns {boolean} whether operators run one after the other, so that the peak is in one tick */
function isAlone({ facts }) {
  return facts.threads < 2 && !facts.policy;
}

/** @param {Plan} plan @param {number} chunk @param {number} tick @returns {string} what happens to it then */
function now(plan, chunk, tick) {
  const reads = plan.readsOf(chunk);
  if (plan.columns.begin[chunk] === tick) return plan.text("role", chunk) === "workspace" ? "scratch space of its operator" : "written then";
  if (reads.includes(tick)) return `read then by ${actor(plan, tick)}`;
  return plan.knowsReads ? "not needed then" : "";
}

/** @param {Plan} plan @param {number} chunk @param {number[]} reads ticks @param {number} tick @returns {string} for whom it is kept after it */
function later(plan, chunk, reads, tick) {
  if (!plan.knowsReads) return `kept until tick ${whole(plan.columns.end[chunk] - 1)}`;
  const after = reads.filter((t) => t > tick);
  if (!after.length) return stays(plan, chunk) ? "kept from run to run" : "";
  const [next, last] = [after[0], after[after.length - 1]];
  const first = `kept for ${actor(plan, next)}, ${counted(next - tick, "tick")} later`;
  return last === next ? first : `${first}, and until ${actor(plan, last)}, ${counted(last - tick, "tick")} later`;
}

/** @param {Plan} plan @param {number} chunk @returns {boolean} whether it is there at the end though nobody reads it any more */
function stays({ facts, columns }, chunk) {
  return columns.end[chunk] >= facts.ticks;
}
