/** What is alive by colour over time: areas that stand upon each other below the curve of live bytes. */

import { toX, toY } from "./scale.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./scale.js").Window} Window */
/** @typedef {{time: Float64Array, entry: Uint8Array, bytes: Float64Array}} Changes in time: of which colour how many bytes come, or go (below 0) */

/** @param {App} app @param {number} pane @returns {Changes} */
function changes(app, pane) {
  const plan = app.plans[pane];
  const [from, to] = plan.times(app.axis);
  const { size } = plan.columns;
  const come = [];
  for (let i = 0; i < plan.tensors; i++) if (from[i] < to[i] && size[i]) come.push(i);
  const go = come.slice().sort((a, b) => to[a] - to[b]);
  come.sort((a, b) => from[a] - from[b]);
  const many = 2 * come.length;
  const made = { time: new Float64Array(many), entry: new Uint8Array(many), bytes: new Float64Array(many) };
  for (let k = 0, c = 0, g = 0; k < many; k++) {
    const isCome = c < come.length && from[come[c]] < to[go[g]];
    const i = isCome ? come[c++] : go[g++];
    made.time[k] = isCome ? from[i] : to[i];
    made.entry[k] = app.colouring.classes[pane][i];
    made.bytes[k] = isCome ? size[i] : -size[i];
  }
  return made;
}

/**
 * For each pixel across, the bytes by colour in the moment within it in which most are alive.
 * @param {Changes} all @param {number} entries @param {Pane} pane @param {Window} view @returns {Float64Array} `entries` numbers a pixel
 */
function columns({ time, entry, bytes }, entries, pane, view) {
  const wide = Math.max(1, Math.ceil(pane.width));
  const made = new Float64Array(wide * entries);
  const best = new Float64Array(wide);
  const alive = new Float64Array(entries);
  const pixel = (/** @type {number} */ t) => Math.max(0, Math.floor(toX(pane, view, t) - pane.left));
  let total = 0;
  for (let k = 0; k < time.length; ) {
    const now = time[k];
    if (now >= view.t1) break;
    for (; k < time.length && time[k] === now; k++) {
      alive[entry[k]] += bytes[k];
      total += bytes[k];
    }
    const until = k < time.length ? time[k] : view.t1;
    if (until <= view.t0) continue;
    const end = Math.min(wide - 1, Math.ceil(toX(pane, view, until) - pane.left) - 1);
    for (let x = pixel(now); x <= end; x++) {
      if (total <= best[x]) continue;
      best[x] = total;
      made.set(alive, x * entries);
    }
  }
  return made;
}

/** @param {App} app @param {Pane} pane @param {Window} scale of bytes @returns {number[][]} an area an entry of the legend, as x, y, x, y ... */
export function areas(app, pane, scale) {
  const entries = app.colouring.entries.length;
  const alive = columns(app.once(`changes of ${pane.index}`, () => changes(app, pane.index)), entries, pane, app.view);
  const wide = alive.length / entries;
  const base = new Float64Array(wide);
  return Array.from({ length: entries }, (_, entry) => {
    const below = outline(pane, scale, base);
    for (let x = 0; x < wide; x++) base[x] += alive[x * entries + entry];
    const above = outline(pane, scale, base);
    return [...above, ...reversed(below)];
  });
}

/** @param {Pane} pane @param {Window} scale @param {Float64Array} heights a pixel @returns {number[]} a line of steps; a point only where it turns */
function outline(pane, scale, heights) {
  const points = [];
  for (let x = 0; x < heights.length; x++) {
    if (x && heights[x] === heights[x - 1]) continue;
    if (x) points.push(pane.left + x, toY(pane, scale, heights[x - 1]));
    points.push(pane.left + x, toY(pane, scale, heights[x]));
  }
  points.push(pane.left + pane.width, toY(pane, scale, heights[heights.length - 1]));
  return points;
}

/** @param {number[]} points @returns {number[]} from the last to the first */
function reversed(points) {
  const turned = [];
  for (let i = points.length - 2; i >= 0; i -= 2) turned.push(points[i], points[i + 1]);
  return turned;
}
