/** Numbers and names as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]/gu;

/** @param {number} n @returns {string} such as "12.3 MiB" */
export function bytes(n) {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, Math.abs(n))) / 10));
  const value = n / 1024 ** unit;
  const digits = unit === 0 || Number.isInteger(value) || Math.abs(value) >= 1000 ? 0 : Math.abs(value) < 100 ? 2 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** @param {number} n @returns {string} at a mark of an axis, such as "3.5 MiB" */
export function markedBytes(n) {
  return bytes(n).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

/** @param {number} n @returns {string} with thin groups of three digits */
export function whole(n) {
  return Math.round(n).toLocaleString("en-US");
}

/** @param {number} n @returns {string} both for people and to the byte */
export function exact(n) {
  return n < 1024 ? `${whole(n)} B` : `${bytes(n)} (${whole(n)} B)`;
}

/** @param {number} part @param {number} of @returns {string} such as "12.3 %" */
export function percent(part, of) {
  return of ? `${((100 * part) / of).toFixed(1)} %` : "–";
}

/** @param {number} s @returns {string} a time with a unit that suits it */
export function duration(s) {
  const [value, unit] = s === 0 ? [0, "s"] : Math.abs(s) < 1e-3 ? [s * 1e6, "µs"] : Math.abs(s) < 1 ? [s * 1e3, "ms"] : [s, "s"];
  return `${Number(value.toPrecision(4))} ${unit}`;
}

/**
 * A name on one line that hides nothing: controls, line ends and marks of direction are shown as a box.
 * @param {string} name @param {number} [most] characters @returns {string}
 */
export function shown(name, most = 160) {
  const cut = name.length > most ? `${name.slice(0, most - 1)}…` : name;
  return cut.replace(HIDDEN, "␣") || "(no name)";
}

/** @param {number} n @param {string} what @returns {string} such as "1 tensor", "2 tensors" */
export function counted(n, what) {
  return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** @param {string} text @returns {string} as the content or an attribute of an XML element */
export function xml(text) {
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(HIDDEN, "␣").replace(/[&<>"']/g, (c) => marks[/** @type {keyof typeof marks} */ (c)]);
}
