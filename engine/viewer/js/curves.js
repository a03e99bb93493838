/** Bytes that are alive, by colour, and that are reserved over time, with the lower bound and the peak. */

import { areas } from "./bands.js";
import { mixed } from "./colours.js";
import { hairline, peakTime } from "./marks.js";
import { binaryMarks, panes, toX, toY } from "./scale.js";
import { bytes, markedBytes, shown } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./scale.js").Window} Window */
/** @typedef {import("./plan.js").Curve} Curve */
/** @typedef {import("./inks.js").Inks} Inks */

const [ROW, EDGE, BOTTOM] = [18, 4, 6];
const HEIGHT = 132;
/** Of an entry of the key: its line, the space around it, and what a letter may be wide at most. */
const KEY = { line: 18, before: 6, after: 18, letter: 6.6 };
/** Room for the words of a peak, such as "peak 149.63 MiB". */
const PEAK = 110;
const DIM = 0.16;

/** @typedef {{name: string, ink: string, dash: number[], x: number, row: number}} KeyEntry */

/** @param {App} app @param {number} width @returns {{entries: KeyEntry[], rows: number, peaks: number}} what lines mean, in as many rows as that takes; `peaks` is the row of the peaks */
function key(app, width) {
  /** @type {[string, string, number[]][]} */
  const lines = [["alive", "live", []]];
  if (app.plans.some(({ facts }) => facts.mode === "static" || facts.heap)) lines.push(["reserved", "footprint", []]);
  if (app.plans.some((plan) => plan.bound > 0)) lines.push(["lower bound", "bound", [5, 4]]);
  if (app.plans.some((plan) => plan.budget > 0)) lines.push(["budget", "budget", [9, 4]]);
  const [pane] = panes(app.plans.length, width, 0, 0);
  let [x, row] = [pane.left, 0];
  const entries = lines.map(([name, ink, dash]) => {
    const wide = KEY.line + KEY.before + name.length * KEY.letter + KEY.after;
    if (x + wide > width && x > pane.left) [x, row] = [pane.left, row + 1];
    const entry = { name, ink, dash, x, row };
    x += wide;
    return entry;
  });
  const peaks = x + PEAK > pane.left + pane.width ? row + 1 : row;
  return { entries, rows: peaks + 1, peaks };
}

/** @param {App} app @param {number} width @returns {number} CSS pixels */
export function curvesHeight(app, width) {
  return HEIGHT + (key(app, width).rows - 1) * ROW;
}

/** @param {App} app @param {number} width @param {number} height @returns {Pane[]} */
export function curvePanes(app, width, height) {
  const top = EDGE + key(app, width).rows * ROW;
  return panes(app.plans.length, width, top, Math.max(10, height - top - BOTTOM));
}

/** @param {ArrayLike<number>} column sorted @param {number} value @returns {number} the last place whose value is not above, or -1 */
export function lastUpTo(column, value) {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The curve as x, y, x, y ...: it keeps its value until the next point. Where many points share a pixel, its highest
 * and lowest values are kept.
 * @param {Curve} curve @param {"live" | "footprint"} what @param {Pane} pane @param {Window} view @param {Window} scale of bytes
 * @returns {number[]}
 */
export function stepLine(curve, what, pane, view, scale) {
  const { time } = curve;
  const values = curve[what];
  if (!time.length) return [];
  const first = Math.max(0, lastUpTo(time, view.t0));
  const last = Math.min(time.length - 1, lastUpTo(time, view.t1) + 1);
  const y = (/** @type {number} */ value) => toY(pane, scale, value);
  const points = [Math.max(pane.left - 2, toX(pane, view, time[first])), y(values[first])];
  for (let i = first + 1; i <= last; ) {
    const x = toX(pane, view, time[i]);
    let [low, high] = [values[i], values[i]];
    let end = i;
    while (end + 1 <= last && toX(pane, view, time[end + 1]) - x < 0.5) {
      end++;
      low = Math.min(low, values[end]);
      high = Math.max(high, values[end]);
    }
    points.push(x, points[points.length - 1], x, y(high), x, y(low), x, y(values[end]));
    i = end + 1;
  }
  const end = Math.min(pane.left + pane.width + 2, toX(pane, view, curve.ends));
  points.push(Math.max(end, points[points.length - 2]), points[points.length - 1]);
  return points;
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintCurves(pen, app, inks, width, height) {
  const all = curvePanes(app, width, height);
  const scale = { ...app.view, b0: 0, b1: app.most * 1.02 };
  for (const at of binaryMarks(0, scale.b1, all[0].height / 28)) {
    pen.text(all[0].left - 8, toY(all[0], scale, at), markedBytes(at), { fill: inks.muted, align: "right" });
  }
  const { entries, peaks } = key(app, width);
  const ends = entries.map((entry) => paintKey(pen, entry, inks));
  const keyEnds = Math.max(...ends.map((x, k) => (entries[k].row === peaks ? x : 0)));
  for (const pane of all) {
    namePeak(pen, app, pane, { from: Math.max(pane.left, keyEnds), y: rowAt(peaks) }, inks);
    pen.rect(pane.left, pane.top, pane.width, pane.height, { fill: inks.paper });
    pen.within(pane.left, pane.top, pane.width, pane.height, () => paintLines(pen, app, pane, scale, inks));
    pen.rect(pane.left - 0.5, pane.top - 0.5, pane.width + 1, pane.height + 1, { stroke: inks.line });
  }
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Window} scale @param {Inks} inks */
function paintLines(pen, app, pane, scale, inks) {
  const plan = app.plans[pane.index];
  const curve = plan.curve(app.axis);
  const right = pane.left + pane.width;
  for (const at of binaryMarks(0, scale.b1, pane.height / 28)) {
    const y = Math.round(toY(pane, scale, at)) + 0.5;
    pen.path([pane.left, y, right, y], { stroke: inks.line });
  }
  const live = stepLine(curve, "live", pane, app.view, scale);
  areas(app, pane, scale).forEach((area, k) => {
    const fill = app.colouring.entries[k].fill;
    pen.path(area, { fill: app.isolated < 0 || app.isolated === k ? fill : mixed(fill, inks.gap, DIM) });
  });
  pen.path(stepLine(curve, "footprint", pane, app.view, scale), { stroke: inks.footprint, width: 1.5 });
  pen.path(live, { stroke: inks.live, width: 1.5 });
  if (plan.bound > 0) {
    const y = toY(pane, scale, plan.bound);
    pen.path([pane.left, y, right, y], { stroke: inks.bound, width: 1.5, dash: [5, 4] });
  }
  if (plan.budget > 0 && plan.budget <= scale.b1) {
    const y = toY(pane, scale, plan.budget);
    pen.path([pane.left, y, right, y], { stroke: inks.budget, width: 1.5, dash: [9, 4] });
  }
  paintPeak(pen, app, pane, scale, inks);
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Window} scale @param {Inks} inks */
function paintPeak(pen, app, pane, scale, inks) {
  const { facts, count } = app.plans[pane.index];
  const [x, y] = [toX(pane, app.view, peakTime(app, pane.index)), toY(pane, scale, facts.peak_bytes)];
  if (!count || x < pane.left || x > pane.left + pane.width) return;
  pen.dot(x, y, 4, { fill: inks.peak, stroke: inks.paper, width: 1.5 });
}

/** What the peak is, above the curves, at the right. @param {Pen} pen @param {App} app @param {Pane} pane @param {{from: number, y: number}} place where it is free @param {Inks} inks */
function namePeak(pen, app, pane, { from, y }, inks) {
  const { facts, count } = app.plans[pane.index];
  if (!count) return;
  const right = pane.left + pane.width;
  const letters = /** @type {const} */ ({ fill: inks.peak, bold: true, align: "right" });
  const size = bytes(facts.peak_bytes);
  const short = `peak ${size}`;
  const long = facts.peak_operator ? `${short} at ${shown(facts.peak_operator, 40)}` : short;
  const room = right - from;
  const words = [long, short, size].find((text) => pen.measure(text, letters) < room);
  if (words) pen.text(right, y, words, letters);
}

/** @param {number} row of the key @returns {number} the y of its middle */
function rowAt(row) {
  return EDGE + (row + 0.4) * ROW;
}

/** @param {Pen} pen @param {KeyEntry} entry @param {Inks} inks @returns {number} the x behind it */
function paintKey(pen, { name, ink, dash, x, row }, inks) {
  const y = rowAt(row);
  pen.path([x, y, x + KEY.line, y], { stroke: inks[ink], width: 2, dash });
  pen.text(x + KEY.line + KEY.before, y, name, { fill: inks.muted });
  return x + KEY.line + KEY.before + pen.measure(name, { fill: inks.muted }) + KEY.after;
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintCurveMarks(pen, app, inks, width, height) {
  for (const pane of curvePanes(app, width, height)) hairline(pen, app, pane, inks);
}
