/** Operators as they run: in their ticks, or in a lane a thread where there are seconds; above them their cascades, below them the copies beside them. */

import { NESTED } from "./cascades.js";
import { inkOn, mixed } from "./colours.js";
import { KINDS, OTHER } from "./palette.js";
import { fitted } from "./marks.js";
import { BESIDE } from "./plan.js";
import { panes, toX } from "./scale.js";
import { duration, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./inks.js").Inks} Inks */

const LANE = 18;
const EDGE = 3;
const LABELLED = 34;

/** @param {App} app @returns {number} lanes that operators need */
function threads(app) {
  return Math.max(...app.plans.map((plan) => plan.runs(app.axis).lanes));
}

/** @param {App} app @returns {string[]} the names of the lanes of operators, and of the copy engine below them */
function laneNames(app) {
  const many = threads(app);
  const names = Array.from({ length: many }, (_, lane) => (many > 1 ? `thread ${lane}` : "operators"));
  return app.plans.some((plan) => plan.beside.size) ? [...names, "engine"] : names;
}

/** @param {App} app @returns {number} lanes above those of operators */
function nestedLanes(app) {
  return app.plans.some((plan) => plan.nested(app.axis).length) ? NESTED.length : 0;
}

/** @param {App} app @returns {number} CSS pixels; none where nothing is known of operators */
export function lanesHeight(app) {
  return app.plans.some((plan) => plan.columns.op_tick.length) ? (nestedLanes(app) + laneNames(app).length) * LANE + 2 * EDGE : 0;
}

/** @param {App} app @param {number} width @param {number} height @returns {Pane[]} */
export function lanePanes(app, width, height) {
  return panes(app.plans.length, width, EDGE, height - 2 * EDGE);
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintLanes(pen, app, inks, width, height) {
  const all = lanePanes(app, width, height);
  [...NESTED.slice(0, nestedLanes(app)), ...laneNames(app)].forEach((name, lane) => {
    pen.text(all[0].left - 8, EDGE + (lane + 0.5) * LANE, name, { fill: inks.muted, align: "right" });
  });
  for (const pane of all) {
    pen.within(pane.left, pane.top, pane.width, pane.height, () => {
      paintNested(pen, app, pane, inks);
      paintRuns(pen, app, { ...pane, top: pane.top + nestedLanes(app) * LANE }, inks);
    });
  }
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintNested(pen, app, pane, inks) {
  const fill = mixed(inks.accent, inks.paper, 0.25);
  for (const { begin, end, row, name } of app.plans[pane.index].nested(app.axis)) {
    const left = Math.max(pane.left - 2, toX(pane, app.view, begin));
    const width = Math.min(pane.left + pane.width + 2, toX(pane, app.view, end)) - left;
    if (width <= 0) continue;
    const y = pane.top + row * LANE;
    pen.rect(left, y + 1, width > 3 ? width - 1 : width, LANE - 2, { fill });
    const letters = { fill: inks.text, size: 10 };
    if (width >= LABELLED) pen.text(left + 4, y + LANE / 2, fitted(pen, shown(name, 60), width - 8, letters), letters);
  }
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintRuns(pen, app, pane, inks) {
  const plan = app.plans[pane.index];
  const { begin, end, lane } = plan.runs(app.axis);
  const { op_schema: schema, op_name: name } = plan.columns;
  const below = threads(app);
  /** @type {[number, number, number, string, string][]} */
  const labels = [];
  let edge = -1;
  for (let i = 0; i < begin.length; i++) {
    if (end[i] <= app.view.t0 || begin[i] >= app.view.t1) continue;
    const [left, right] = [toX(pane, app.view, begin[i]), toX(pane, app.view, end[i])];
    const row = lane[i] === BESIDE ? below : lane[i];
    const y = pane.top + row * LANE;
    const pixel = Math.floor(left * pen.ratio) * 64 + row;
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
  const row = laneAt(app, y);
  const wanted = row === threads(app) ? BESIDE : row < 0 ? NaN : row;
  for (let i = 0; i < begin.length; i++) if (begin[i] <= time && time < end[i] && lane[i] === wanted) return i;
  return -1;
}

/** @param {App} app @param {number} y @returns {number} the lane of operators there; below 0 above them */
function laneAt(app, y) {
  return Math.floor((y - EDGE) / LANE) - nestedLanes(app);
}

/** @param {App} app @param {number} pane @param {number} time @param {number} y @returns {string[]} lines about the cascade or stripe there */
export function nestedLines(app, pane, time, y) {
  const row = laneAt(app, y) + nestedLanes(app);
  const all = row < nestedLanes(app) ? app.plans[pane].nested(app.axis) : [];
  return all.find((one) => one.row === row && one.begin <= time && time < one.end)?.about || [];
}

/** @param {App} app @param {number} pane @param {number} i @returns {string[]} lines about an operator */
export function operatorLines(app, pane, i) {
  if (i < 0) return [];
  const plan = app.plans[pane];
  const { op_name: name, op_schema: schema, op_tick: tick, op_begin: begin, op_end: end, op_thread: thread } = plan.columns;
  const lines = [shown(plan.strings[name[i]], 90)];
  if (plan.strings[schema[i]]) lines.push(shown(plan.strings[schema[i]], 60));
  lines.push(`tick ${whole(tick[i])}`);
  const where = plan.beside.has(tick[i]) ? "copy engine" : `thread ${whole(thread[i])}`;
  if (plan.facts.timed) lines.push(`${duration(end[i] - begin[i])} from ${duration(begin[i])} on, ${where}`);
  return lines;
}
