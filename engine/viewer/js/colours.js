/** Which colour a tensor has, and what the legend says of it. */

import { KINDS, OTHER } from "./palette.js";
import { markedBytes, shown, whole } from "./text.js";

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {{label: string, fill: string, count: number, bytes: number, counts: number[]}} Entry of the legend; counts by plan */
/** @typedef {{entries: Entry[], classes: Uint8Array[], place: Map<string, number>}} Colouring by plan, the entry of each chunk; of names, where they have colours */

/** After Paul Tol's YlOrBr turned blue: one hue, lighter to darker, so that order is seen without colour. */
export const STEPS = ["#eaf3fb", "#cfe3f4", "#aacdea", "#7fb2dd", "#5594ca", "#3375b0", "#1d568c", "#103a63"];

export const MODES = { schema: "operator kind", size: "size", role: "role", layer: "layer", stage: "stage", thread: "thread" };

/** @param {Plan[]} plans @param {keyof typeof MODES} mode @param {boolean} isDark the ground @returns {Colouring} */
export function colouring(plans, mode, isDark) {
  return mode === "size" ? bySize(plans, isDark ? [...STEPS].reverse() : STEPS) : byName(plans, mode);
}

/** @param {Plan} plan @param {string} mode @returns {(chunk: number) => string} */
function namer(plan, mode) {
  const column = plan.columns[mode];
  if (mode === "schema" || mode === "role" || mode === "layer") return (i) => plan.strings[column[i]] || (mode === "schema" && plan.text("role", i)) || `no ${mode}`;
  return (i) => (column[i] < 0 ? `no ${mode}` : `${mode} ${column[i]}`);
}

/** @param {Plan[]} plans @param {string} mode @returns {Colouring} the names with most bytes get colours */
function byName(plans, mode) {
  /** @type {Map<string, Entry>} */
  const found = new Map();
  const names = plans.map((plan, pane) => {
    const name = namer(plan, mode);
    return Array.from({ length: plan.count }, (_, i) => {
      const label = name(i);
      const entry = found.get(label) || blank(label, OTHER, plans.length);
      tally(entry, pane, plan.columns.size[i]);
      found.set(label, entry);
      return label;
    });
  });
  const ranked = [...found.values()].sort((a, b) => b.bytes - a.bytes || (a.label < b.label ? -1 : 1));
  const most = mode === "stage" || mode === "thread" ? byNumber(ranked) : ranked;
  const entries = most.slice(0, ranked.length > KINDS.length ? KINDS.length : ranked.length);
  entries.forEach((entry, k) => (entry.fill = KINDS[k]));
  const rest = most.slice(entries.length);
  if (rest.length) entries.push(merged(rest));
  const place = new Map(entries.map((entry, k) => [entry.label, k]));
  const other = entries.length - 1;
  const classes = names.map((of) => Uint8Array.from(of, (name) => place.get(name) ?? other));
  return { entries: entries.map((e) => ({ ...e, label: shown(e.label, 40) })), classes, place };
}

/** @param {Entry[]} entries @returns {Entry[]} stage 2 before stage 10 */
function byNumber(entries) {
  return entries.sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
}

/** @param {string} label @param {string} fill @param {number} plans @returns {Entry} of nothing yet */
function blank(label, fill, plans) {
  return { label, fill, count: 0, bytes: 0, counts: new Array(plans).fill(0) };
}

/** @param {Entry} entry @param {number} pane @param {number} size of one more tensor */
function tally(entry, pane, size) {
  entry.count++;
  entry.counts[pane]++;
  entry.bytes += size;
}

/** @param {Entry[]} rest @returns {Entry} */
function merged(rest) {
  const sum = (/** @type {"count" | "bytes"} */ what) => rest.reduce((all, entry) => all + entry[what], 0);
  const label = `${whole(rest.length)} other${rest.length === 1 ? "" : "s"}`;
  const counts = rest[0].counts.map((_, pane) => rest.reduce((all, entry) => all + entry.counts[pane], 0));
  return { label, fill: OTHER, count: sum("count"), bytes: sum("bytes"), counts };
}

/**
 * By powers of two, as many in each step as it takes for the steps to reach from the smallest to the largest.
 * @param {Plan[]} plans @param {string[]} fills smallest first @returns {Colouring}
 */
function bySize(plans, fills) {
  const [low, high] = doublings(plans);
  const wide = Math.max(1, Math.ceil((high - low + 1) / fills.length));
  const first = fills.length - Math.floor((high - low) / wide) - 1;
  const step = (/** @type {number} */ size) => (size < 2 ** low ? 0 : Math.floor((doubling(size) - low) / wide));
  const entries = fills.slice(first).map((fill, k) => blank(`from ${markedBytes(2 ** (low + k * wide))}`, fill, plans.length));
  const classes = plans.map((plan) => Uint8Array.from(plan.columns.size, step));
  plans.forEach((plan, pane) => classes[pane].forEach((k, i) => tally(entries[k], pane, plan.columns.size[i])));
  return { entries, classes, place: new Map() };
}

/** @param {number} size @returns {number} how often a byte is doubled to reach it, rounded down */
function doubling(size) {
  return Math.floor(Math.log2(Math.max(1, size)));
}

/** @param {Plan[]} plans @returns {[number, number]} of the smallest tensor that has bytes, and of the largest */
function doublings(plans) {
  let [low, high] = [Infinity, 0];
  for (const plan of plans) {
    for (const size of plan.columns.size) {
      if (size > 0) [low, high] = [Math.min(low, doubling(size)), Math.max(high, doubling(size))];
    }
  }
  return [Math.min(low, high), high];
}

/** @param {string} fill such as "#77aadd" @param {string} paper @param {number} share of the fill @returns {string} */
export function mixed(fill, paper, share) {
  const [a, b] = [rgb(fill), rgb(paper)];
  return `#${a.map((v, i) => Math.round(v * share + b[i] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}

/** @param {string} fill @returns {string} of a text on it: dark or light, whichever is seen better (WCAG 2.2) */
export function inkOn(fill) {
  const [r, g, b] = rgb(fill).map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#14181d" : "#ffffff";
}

/** @param {string} colour "#rgb" or "#rrggbb" @returns {number[]} */
function rgb(colour) {
  const full = colour.length === 4 ? colour.replace(/[^#]/g, "$&$&") : colour;
  return [1, 3, 5].map((at) => parseInt(full.slice(at, at + 2), 16));
}
