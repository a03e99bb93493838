/** Operators as they run: in their ticks, or in a lane a thread where there are seconds. */

import { inkOn, mixed } from "./colours.js";
import { KINDS, OTHER } from "./palette.js";
import { fitted } from "./marks.js";
import { panes, toX } from "./scale.js";
import { duration, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./inks.js").Inks} Inks */

const LANE = 18;
const EDGE = 3;
const LABELLED = 34;

/** @param {App} app @returns {number} lanes that are needed */
function lanes(app) {
  return Math.max(...app.plans.map((plan) => plan.runs(app.axis).lanes));
}

/** @param {App} app @returns {number} CSS pixels; none where nothing is known of operators */
export function lanesHeight(app) {
  return app.plans.some((plan) => plan.columns.op_tick.length) ? lanes(app) * LANE + 2 * EDGE : 0;
}

/** @param {App} app @param {number} width @param {number} height @returns {Pane[]} */
export function lanePanes(app, width, height) {
  return panes(app.plans.length, width, EDGE, height - 2 * EDGE);
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintLanes(pen, app, inks, width, height) {
  const all = lanePanes(app, width, height);
  const many = lanes(app);
  for (let lane = 0; lane < many; lane++) {
    const name = many > 1 ? `thread ${lane}` : "operators";
    pen.text(all[0].left - 8, EDGE + (lane + 0.5) * LANE, name, { fill: inks.muted, align: "right" });
  }
  for (const pane of all) pen.within(pane.left, pane.top, pane.width, pane.height, () => paintRuns(pen, app, pane, inks));
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintRuns(pen, app, pane, inks) {
  const plan = app.plans[pane.index];
  const { begin, end, lane } = plan.runs(app.axis);
  const { op_schema: schema, op_name: name } = plan.columns;
  /** @type {[number, number, number, string, string][]} */
  const labels = [];
  let edge = -1;
  for (let i = 0; i < begin.length; i++) {
    if (end[i] <= app.view.t0 || begin[i] >= app.view.t1) continue;
    const [left, right] = [toX(pane, app.view, begin[i]), toX(pane, app.view, end[i])];
    const y = pane.top + lane[i] * LANE;
    const pixel = Math.floor(left * pen.ratio) * 64 + lane[i];
    if (right - left < 1 / pen.ratio && pixel === edge) continue;
    edge = pixel;
    const fill = colour(app, plan.strings[schema[i]], inks);
    pen.ink(fill);
    pen.block(left, y + 1, Math.max(1 / pen.ratio, right - left > 3 ? right - left - 1 : right - left), LANE - 2);
    const [shownLeft, shownRight] = [Math.max(left, pane.left), Math.min(right, pane.left + pane.width)];
    if (shownRight - shownLeft >= LABELLED) labels.push([shownLeft, shownRight, y, plan.strings[name[i]], fill]);
  }
  for (const [left, right, y, text, fill] of labels) {
    const letters = { fill: inkOn(fill), size: 10 };
    pen.text(left + 4, y + LANE / 2, fitted(pen, shown(text, 60), right - left - 8, letters), letters);
  }
}

/** @param {App} app @param {string} kind @param {Inks} inks @returns {string} that of the legend, if it is of kinds */
function colour(app, kind, inks) {
  if (app.mode !== "schema") return mixed(KINDS[0], inks.gap, 0.45);
  const at = app.colouring.place.get(kind);
  const fill = at === undefined ? OTHER : app.colouring.entries[at].fill;
  return app.isolated < 0 || app.isolated === at ? fill : mixed(fill, inks.gap, 0.16);
}

/** @param {App} app @param {number} pane @param {number} time @param {number} y @returns {number} the operator there, or -1 */
export function operatorAt(app, pane, time, y) {
  const { begin, end, lane } = app.plans[pane].runs(app.axis);
  const wanted = Math.floor((y - EDGE) / LANE);
  for (let i = 0; i < begin.length; i++) if (begin[i] <= time && time < end[i] && lane[i] === wanted) return i;
  return -1;
}

/** @param {App} app @param {number} pane @param {number} i @returns {string[]} lines about an operator */
export function operatorLines(app, pane, i) {
  if (i < 0) return [];
  const plan = app.plans[pane];
  const { op_name: name, op_schema: schema, op_tick: tick, op_begin: begin, op_end: end, op_thread: thread } = plan.columns;
  const lines = [shown(plan.strings[name[i]], 90)];
  if (plan.strings[schema[i]]) lines.push(shown(plan.strings[schema[i]], 60));
  lines.push(`tick ${whole(tick[i])}`);
  if (plan.facts.timed) lines.push(`${duration(end[i] - begin[i])} from ${duration(begin[i])} on, thread ${whole(thread[i])}`);
  return lines;
}
