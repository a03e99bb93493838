/** From times and addresses to pixels and back, and where an axis has its marks. */

/** @typedef {{t0: number, t1: number, b0: number, b1: number}} Window what is seen: times and addresses */
/** @typedef {{index: number, left: number, width: number, top: number, height: number}} Pane one plan's part of a canvas, in CSS pixels */

const LEFT = 76;
const RIGHT = 12;
const GUTTER = 20;

/** @param {number} count of plans @param {number} width @param {number} top @param {number} height @returns {Pane[]} */
export function panes(count, width, top, height) {
  const each = Math.max(10, (width - LEFT - RIGHT - GUTTER * (count - 1)) / count);
  return Array.from({ length: count }, (_, index) => ({ index, left: LEFT + index * (each + GUTTER), width: each, top, height }));
}

/** @param {Pane} pane @param {Window} view @param {number} time @returns {number} */
export function toX(pane, view, time) {
  return pane.left + ((time - view.t0) / (view.t1 - view.t0)) * pane.width;
}

/** @param {Pane} pane @param {Window} view @param {number} address @returns {number} low addresses are at the bottom */
export function toY(pane, view, address) {
  return pane.top + pane.height - ((address - view.b0) / (view.b1 - view.b0)) * pane.height;
}

/** @param {Pane} pane @param {Window} view @param {number} x @returns {number} */
export function toTime(pane, view, x) {
  return view.t0 + ((x - pane.left) / pane.width) * (view.t1 - view.t0);
}

/** @param {Pane} pane @param {Window} view @param {number} y @returns {number} */
export function toAddress(pane, view, y) {
  return view.b0 + ((pane.top + pane.height - y) / pane.height) * (view.b1 - view.b0);
}

/** @param {Pane[]} all @param {number} x @returns {Pane} the one that x is in, or next to */
export function paneAt(all, x) {
  return all.find((pane) => x < pane.left + pane.width + GUTTER / 2) || all[all.length - 1];
}

/**
 * Zooms by `factor` (below 1: closer) around a point that stays where it is, within `home`.
 * @param {Window} view @param {Window} home @param {{t: number, b: number}} at @param {{t: number, b: number}} factor
 * @param {{t: number, b: number}} least that may be seen @returns {Window}
 */
export function zoomed(view, home, at, factor, least) {
  const [t0, t1] = stretched(view.t0, view.t1, at.t, factor.t, least.t, home.t1 - home.t0);
  const [b0, b1] = stretched(view.b0, view.b1, at.b, factor.b, least.b, home.b1 - home.b0);
  return kept({ t0, t1, b0, b1 }, home);
}

/** @returns {[number, number]} */
function stretched(low, high, at, factor, least, most) {
  const span = Math.min(most, Math.max(least, (high - low) * factor));
  const share = (at - low) / (high - low);
  return [at - share * span, at + (1 - share) * span];
}

/** @param {Window} view @param {Window} home @returns {Window} of the same size, moved into `home` */
export function kept(view, home) {
  const [t0, t1] = inside(view.t0, view.t1, home.t0, home.t1);
  const [b0, b1] = inside(view.b0, view.b1, home.b0, home.b1);
  return { t0, t1, b0, b1 };
}

/** @returns {[number, number]} */
function inside(low, high, least, most) {
  const span = Math.min(high - low, most - least);
  const start = Math.min(Math.max(low, least), most - span);
  return [start, start + span];
}

/** @param {number} low @param {number} high @param {number} count about as many @param {boolean} integers @returns {number[]} */
export function decimalMarks(low, high, count, integers) {
  const rough = (high - low) / Math.max(1, count);
  const ten = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= rough * 0.999) || ten;
  return marks(low, high, integers ? Math.max(1, step) : step);
}

/** @param {number} low @param {number} high @param {number} count @returns {number[]} at multiples of a power of two */
export function binaryMarks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  return marks(low, high, Math.max(1, 2 ** Math.ceil(Math.log2(rough || 1))));
}

/** @returns {number[]} */
function marks(low, high, step) {
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && found.length < 100; k++) found.push(k * step + 0);
  return found;
}
