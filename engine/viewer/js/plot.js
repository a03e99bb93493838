/** The picture of the arena: time to the right, addresses upwards, a rectangle a tensor. */

import { addressAxis, byteMarks, paintMemories, paintMoves, shadeGaps } from "./addresses.js";
import { mixed, inkOn } from "./colours.js";
import { crisp, fitted, hairline, peakTime } from "./marks.js";
import { decimalMarks, panes, toX, toY } from "./scale.js";
import { bytes, duration, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./app.js").Spot} Spot */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./scale.js").Window} Window */
/** @typedef {import("./inks.js").Inks} Inks */

const TOP = 8;
const BOTTOM = 24;
const LABEL = { width: 44, height: 13, most: 700, turned: 60 };
const DIM = 0.16;

/** @param {App} app @param {number} width @param {number} height @returns {Pane[]} */
export function plotPanes(app, width, height) {
  return panes(app.plans.length, width, TOP, Math.max(10, height - TOP - BOTTOM));
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintPlot(pen, app, inks, width, height) {
  const all = plotPanes(app, width, height);
  addressAxis(pen, app, all[0], inks);
  for (const pane of all) {
    pen.rect(pane.left, pane.top, pane.width, pane.height, { fill: inks.paper });
    pen.within(pane.left, pane.top, pane.width, pane.height, () => paintPane(pen, app, pane, inks));
    pen.rect(pane.left - 0.5, pane.top - 0.5, pane.width + 1, pane.height + 1, { stroke: inks.line });
    timeAxis(pen, app, pane, inks);
  }
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintPane(pen, app, pane, inks) {
  shadeGaps(pen, app, pane, app.view, inks);
  for (const [at] of byteMarks(app, pane)) {
    const y = crisp(toY(pane, app.view, at));
    pen.path([pane.left, y, pane.left + pane.width, y], { stroke: inks.line });
  }
  const labelled = paintPieces(pen, app, pane, app.view, inks);
  for (const label of labelled) paintLabel(pen, app, pane, label);
  paintLevels(pen, app, pane, inks);
  paintMoves(pen, app, pane, inks);
}

/**
 * @typedef {{chunk: number, x: number, y: number, w: number, h: number, fill: string}} Label
 * @param {Pen} pen @param {App} app @param {Pane} pane @param {Window} view @param {Inks} inks
 * @returns {Label[]} rectangles that have room for a text
 */
export function paintPieces(pen, app, pane, view, inks) {
  const plan = app.plans[pane.index];
  const pieces = plan.pieces(app.axis);
  const { chunk, from, to, low } = pieces;
  const size = plan.columns.size;
  const { order, starts, fills, last } = app.once(`inks of ${pane.index}`, () => arrange(app, pane.index, inks));
  const pixel = 1 / pen.ratio;
  const perTime = pane.width / (view.t1 - view.t0);
  const perByte = pane.height / (view.b1 - view.b0);
  const floor = pane.top + pane.height;
  const round = (/** @type {number} */ v) => Math.round(v * pen.ratio) / pen.ratio;
  /** @type {Label[]} */
  const labels = [];
  pen.blocks(pane, pieces.count, () => {
    for (const ink of last) {
      pen.ink(fills[ink]);
      paintInk(ink);
    }
  });
  return labels;

  function paintInk(/** @type {number} */ ink) {
    for (let n = starts[ink]; n < starts[ink + 1]; n++) {
      const k = order[n];
      const bottom = low[k];
      const height = size[chunk[k]];
      if (from[k] >= view.t1 || to[k] <= view.t0 || bottom >= view.b1 || bottom + height <= view.b0) continue;
      const x = round(Math.max(pane.left - 2, pane.left + (from[k] - view.t0) * perTime));
      const y = round(Math.max(pane.top - 2, floor - (bottom + height - view.b0) * perByte));
      let w = round(Math.min(pane.left + pane.width + 2, pane.left + (to[k] - view.t0) * perTime)) - x;
      let h = round(Math.min(floor + 2, floor - (bottom - view.b0) * perByte)) - y;
      w = w > 4 ? w - pixel : Math.max(pixel, w);
      h = h > 4 ? h - pixel : Math.max(pixel, h);
      pen.block(x, y, w, h);
      const isRoomy = h >= LABEL.height && w >= LABEL.height && (w >= LABEL.width || h >= LABEL.turned);
      if (isRoomy && labels.length < LABEL.most && ink >= fills.length / 2) labels.push({ chunk: chunk[k], x, y, w, h, fill: fills[ink] });
    }
  }
}

/** @typedef {{order: Int32Array, starts: Int32Array, fills: string[], last: number[]}} Arranged pieces by ink: first the dim ones; `last` to be seen is what has most bytes */
/** @param {App} app @param {number} pane @param {Inks} inks @returns {Arranged} */
function arrange(app, pane, inks) {
  const { count, chunk } = app.plans[pane].pieces(app.axis);
  const { entries, classes } = app.colouring;
  const inkOf = new Uint8Array(count);
  const starts = new Int32Array(2 * entries.length + 1);
  for (let k = 0; k < count; k++) {
    inkOf[k] = classes[pane][chunk[k]] + (app.isLit(pane, chunk[k]) ? entries.length : 0);
    starts[inkOf[k] + 1]++;
  }
  for (let ink = 0; ink < starts.length - 1; ink++) starts[ink + 1] += starts[ink];
  const next = starts.slice();
  const order = new Int32Array(count);
  for (let k = 0; k < count; k++) order[next[inkOf[k]]++] = k;
  const lit = entries.map((entry) => entry.fill);
  const dim = entries.map((entry) => mixed(entry.fill, inks.gap, DIM));
  const last = [...dim.keys()].reverse();
  return { order, starts, fills: [...dim, ...lit], last: [...last, ...last.map((ink) => ink + lit.length)] };
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Label} label */
function paintLabel(pen, app, pane, { chunk, x, y, w, h, fill }) {
  const plan = app.plans[pane.index];
  const left = Math.max(x, pane.left);
  const room = Math.min(x + w, pane.left + pane.width) - left - 8;
  const [top, bottom] = [Math.max(y, pane.top), Math.min(y + h, pane.top + pane.height)];
  const text = shown(plan.text("name", chunk), 80);
  const letters = { fill: inkOn(fill), size: 11 };
  if (room < LABEL.width - 8 && room > 4 && bottom - top >= LABEL.turned) {
    const up = { ...letters, turned: true, align: /** @type {const} */ ("center") };
    pen.text(left + room / 2 + 4, (top + bottom) / 2, fitted(pen, text, bottom - top - 8, up), up);
  }
  if (room < LABEL.width - 8 || bottom - top < LABEL.height) return;
  const small = { ...letters, size: pen.measure(text, letters) <= room ? 11 : 9.5 };
  const size = bytes(plan.columns.size[chunk]);
  const middle = (top + bottom) / 2;
  const hasTwo = bottom - top >= 30 && pen.measure(size, letters) <= room;
  pen.text(left + 4, hasTwo ? middle - 7 : middle, fitted(pen, text, room, small), small);
  if (hasTwo) pen.text(left + 4, middle + 7, size, { ...letters, size: 10 });
}

/** The top of the arena, and the tick of the peak. @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintLevels(pen, app, pane, inks) {
  const { need, bound, budget, count, lanes } = app.plans[pane.index];
  const right = pane.left + pane.width;
  if (lanes.length) paintMemories(pen, app, pane, inks);
  else if (need > 0) {
    const y = crisp(toY(pane, app.view, need));
    pen.path([pane.left, y, right, y], { stroke: inks.muted });
  }
  if (!lanes.length && bound > 0 && bound !== need) {
    const y = crisp(toY(pane, app.view, bound));
    pen.path([pane.left, y, right, y], { stroke: inks.bound, dash: [5, 4] });
  }
  if (budget > 0 && budget <= app.view.b1) {
    const y = crisp(toY(pane, app.view, budget));
    pen.path([pane.left, y, right, y], { stroke: inks.budget, dash: [9, 4] });
  }
  paintStages(pen, app, pane, inks);
  if (!count) return;
  const x = crisp(toX(pane, app.view, peakTime(app, pane.index)));
  pen.path([x, pane.top, x, pane.top + pane.height], { stroke: inks.peak, dash: [2, 3], alpha: 0.9 });
}

/** Where stages begin, if there are several. @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
function paintStages(pen, app, pane, inks) {
  const { stage_tick: ticks, stage_seconds: seconds } = app.plans[pane.index].columns;
  if (ticks.length < 2) return;
  const times = app.axis === "seconds" ? seconds : ticks;
  for (let k = 0; k < times.length; k++) {
    const x = crisp(toX(pane, app.view, times[k]));
    const right = pane.left + pane.width;
    const room = (k + 1 < times.length ? Math.min(right, toX(pane, app.view, times[k + 1])) : right) - x;
    pen.path([x, pane.top, x, pane.top + pane.height], { stroke: inks.accent });
    if (room > 60) pen.text(x + 5, pane.top + 10, `stage ${k + 1}`, { fill: inks.accent, bold: true, halo: inks.paper });
  }
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
export function timeAxis(pen, app, pane, inks) {
  const { view, axis } = app;
  const each = pane.width / (view.t1 - view.t0);
  const isNamed = axis === "ticks" && each >= 64;
  const wide = Math.max(66, pen.measure(whole(view.t1), { fill: inks.muted })) + 24;
  const found = decimalMarks(view.t0, view.t1, isNamed ? Infinity : pane.width / wide, axis === "ticks");
  const y = pane.top + pane.height + 13;
  for (const at of isNamed ? decimalMarks(view.t0, view.t1, view.t1 - view.t0, true) : found) {
    const x = toX(pane, view, at) + (axis === "ticks" ? each / 2 : 0);
    const edge = toX(pane, view, at);
    if (edge < pane.left - 1 || x > pane.left + pane.width) continue;
    pen.path([crisp(edge), pane.top + pane.height, crisp(edge), pane.top + pane.height + 4], { stroke: inks.line });
    const name = isNamed ? app.plans[pane.index].operator(at) : "";
    const text = axis === "seconds" ? duration(at) : name ? `${whole(at)} ${shown(name, 40)}` : whole(at);
    const letters = /** @type {const} */ ({ fill: inks.muted, align: axis === "ticks" && each >= 20 ? "center" : "left" });
    const fits = fitted(pen, text, isNamed ? each - 6 : wide, letters);
    const begin = letters.align === "center" ? x - pen.measure(fits, letters) / 2 : edge + 3;
    if (begin + pen.measure(fits, letters) <= pane.left + pane.width + 4) pen.text(begin, y, fits, { fill: inks.muted });
  }
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintMarks(pen, app, inks, width, height) {
  const all = plotPanes(app, width, height);
  const { selected, hovered, matches, match } = app;
  const frame = (/** @type {Spot | null | undefined} */ spot, /** @type {object} */ look) => {
    if (spot) outline(pen, app, all, spot, look, inks);
  };
  frame(matches[match], { stroke: inks.accent, width: 2 });
  if (selected) {
    for (const near of neighbours(app, selected)) frame(near, { stroke: inks.accent, width: 1.5, dash: [4, 3] });
    for (const twin of app.twins(selected)) frame(twin, { stroke: inks.accent, width: 1.5 });
    frame(selected, { stroke: inks.text, width: 2.5 });
  }
  if (hovered) for (const twin of app.twins(hovered)) frame(twin, { stroke: inks.accent, width: 2 });
  frame(hovered, { stroke: inks.text, width: 1.5 });
  for (const pane of all) hairline(pen, app, pane, inks);
  if (app.box) paintBox(pen, app.box, inks);
}

/** @param {App} app @param {Spot} spot @returns {Spot[]} whose bytes it took, and who takes its bytes */
function neighbours(app, { pane, chunk }) {
  const plan = app.plans[pane];
  return [plan.columns.overwrites[chunk], plan.follower[chunk]].filter((c) => c >= 0).map((c) => ({ pane, chunk: c }));
}

/**
 * A line that is seen on dark and on light.
 * @param {Pen} pen @param {App} app @param {Pane[]} all @param {Spot} spot
 * @param {import("./pen.js").Look} look @param {Inks} inks
 */
function outline(pen, app, all, { pane: index, chunk }, look, inks) {
  const pane = all[index];
  const plan = app.plans[index];
  const { count, chunk: chunks, from, to, low } = plan.pieces(app.axis);
  pen.within(pane.left, pane.top, pane.width, pane.height, () => {
    for (let k = 0; k < count; k++) {
      if (chunks[k] !== chunk) continue;
      const [x, right] = [toX(pane, app.view, from[k]), toX(pane, app.view, to[k])];
      const [y, bottom] = [toY(pane, app.view, low[k] + plan.columns.size[chunk]), toY(pane, app.view, low[k])];
      const place = /** @type {const} */ ([x, y, Math.max(2, right - x), Math.max(2, bottom - y)]);
      if (!look.dash) pen.rect(...place, { ...look, stroke: inks.paper, width: (look.width || 1) + 2, alpha: 0.75 });
      pen.rect(...place, look);
    }
  });
}

/** @param {Pen} pen @param {{x0: number, y0: number, x1: number, y1: number}} box @param {Inks} inks */
function paintBox(pen, { x0, y0, x1, y1 }, inks) {
  const place = /** @type {const} */ ([Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)]);
  pen.rect(...place, { fill: inks.accent, alpha: 0.12 });
  pen.rect(...place, { stroke: inks.accent, width: 1.5 });
}
