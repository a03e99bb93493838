/** Addresses upwards: the marks beside them, what is reserved, and the memories with the copies between them. */

import { stepLine } from "./curves.js";
import { crisp, fitted } from "./marks.js";
import { binaryMarks, toX, toY } from "./scale.js";
import { bytes, duration, markedBytes } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./scale.js").Window} Window */
/** @typedef {import("./inks.js").Inks} Inks */

/** Bytes that the memory holds and nobody uses. @param {Pen} pen @param {App} app @param {Pane} pane @param {Window} view @param {Inks} inks */
export function shadeGaps(pen, app, pane, view, inks) {
  const plan = app.plans[pane.index];
  if (plan.lanes.length) {
    const [left, right] = [toX(pane, view, 0), toX(pane, view, plan.ends(app.axis))];
    for (const { low, shown: size } of plan.lanes) {
      const [top, floor] = [toY(pane, view, low + size), toY(pane, view, low)];
      pen.rect(left, top, right - left, floor - top, { fill: inks.gap });
    }
    return;
  }
  const line = stepLine(plan.curve(app.axis), "footprint", pane, view, view);
  if (!line.length) return;
  const floor = Math.min(pane.top + pane.height + 1, toY(pane, view, 0));
  pen.path([line[0], floor, ...line, line[line.length - 2], floor], { fill: inks.gap });
}

/** @param {App} app @param {Pane} pane @returns {[number, string][]} marks, and what they say: an address in the arena, or in a memory */
export function byteMarks({ view, plans }, pane) {
  const { lanes } = plans[pane.index];
  const many = pane.height / 64;
  if (!lanes.length) return binaryMarks(view.b0, view.b1, many).filter((at) => at >= 0).map((at) => [at, markedBytes(at)]);
  const step = binaryMarks(0, view.b1 - view.b0, many)[1] || 1;
  return lanes.flatMap(({ name, low, shown: size }) => {
    const [first, last] = [Math.max(1, Math.ceil((view.b0 - low) / step)), Math.floor(Math.min(size, view.b1 - low) / step)];
    const marks = Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
    const named = low >= view.b0 ? [[low, name]] : [];
    return /** @type {[number, string][]} */ ([...named, ...marks.map((at) => [low + at, markedBytes(at)])]);
  });
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
export function addressAxis(pen, app, pane, inks) {
  const { view, plans } = app;
  const letters = /** @type {const} */ ({ fill: inks.muted, align: "right" });
  const [top, bottom] = [toY(pane, view, 0), pane.top + pane.height].map((y) => Math.max(pane.top, y));
  if (bottom - top > 30 && !plans[pane.index].lanes.length) pen.text(pane.left - 8, (top + bottom) / 2, "weights", letters);
  for (const [at, text] of byteMarks(app, pane)) pen.text(pane.left - 8, toY(pane, view, at), text, letters);
}

/** The top of each memory, and what it is. @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
export function paintMemories(pen, app, pane, inks) {
  for (const { name, low, shown: size, used_bytes: used, capacity, seconds } of app.plans[pane.index].lanes) {
    const [floor, top] = [low, low + size].map((address) => toY(pane, app.view, address));
    for (const y of [floor, top]) pen.path([pane.left, crisp(y), pane.left + pane.width, crisp(y)], { stroke: inks.muted });
    const text = `${name}: ${bytes(used)} of ${bytes(capacity)} used${seconds ? `, transfers ${duration(seconds)}` : ""}`;
    const letters = { fill: inks.text, bold: true, halo: inks.paper };
    const y = Math.max(top, pane.top + 18) - 9;
    if (y < floor) pen.text(pane.left + 6, y, fitted(pen, text, pane.width - 12, letters), letters);
  }
}

/** Copies from one memory to another, as arrows in their ticks. @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
export function paintMoves(pen, app, pane, inks) {
  const plan = app.plans[pane.index];
  const { move_tick: ticks, move_chunk: targets, move_source: sources } = plan.columns;
  const { low, size, op_begin: begin, op_end: end } = plan.columns;
  const middle = (/** @type {number} */ chunk) => toY(pane, app.view, low[chunk] + size[chunk] / 2);
  for (let k = 0; k < ticks.length; k++) {
    if (sources[k] >= plan.count) continue; // a weight, and weights are not drawn
    const i = plan.operatorAt.get(ticks[k]);
    const time = app.axis === "seconds" && i !== undefined ? (begin[i] + end[i]) / 2 : ticks[k] + 0.5;
    const [x, from, to] = [toX(pane, app.view, time), middle(sources[k]), middle(targets[k])];
    const head = Math.sign(from - to) * 7;
    for (const look of [{ stroke: inks.paper, width: 4 }, { stroke: inks.accent, width: 1.75 }]) pen.path([x, from, x, to], look);
    pen.path([x, to, x - 4, to + head, x + 4, to + head], { fill: inks.accent });
  }
}
