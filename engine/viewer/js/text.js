/** Numbers and names as people read them; the same words and digits as engine/text/units.py and engine/text/names.py. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
/** Characters that have no picture of their own; some of them turn the order of others. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** @param {number} n @returns {string} such as "12.30 MiB" */
export function bytes(n) {
  let [value, unit] = [n, 0];
  for (; Math.abs(value) >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return unit ? `${(evenly(value * 100) / 100).toFixed(2)} ${UNITS[unit]}` : `${n} B`;
}

/** @param {number} value @returns {number} the nearest integer; of two, the even one, as Python rounds */
function evenly(value) {
  const [low, rest] = [Math.floor(value), value - Math.floor(value)];
  return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low;
}

/** @param {number} n @returns {string} at a mark of an axis, such as "3.5 MiB" */
export function markedBytes(n) {
  return bytes(n).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

/** @param {number} n @returns {string} with groups of three digits */
export function whole(n) {
  return Math.round(n).toLocaleString("en-US");
}

/** @param {number} n @returns {string} both for people and to the byte */
export function exact(n) {
  return n < 1024 ? `${whole(n)} B` : `${bytes(n)} (${whole(n)} B)`;
}

/** @param {number} part @param {number} of @returns {string} such as "12.3 %"; nothing of nothing */
export function percent(part, of) {
  return of ? `${((100 * part) / of).toFixed(1)} %` : "";
}

/** @param {number} s @returns {string} a time with a unit that suits it */
export function duration(s) {
  const [value, unit] = s === 0 ? [0, "s"] : Math.abs(s) < 1e-3 ? [s * 1e6, "µs"] : Math.abs(s) < 1 ? [s * 1e3, "ms"] : [s, "s"];
  return `${Number(value.toPrecision(4))} ${unit}`;
}

/**
 * A name on one line that hides nothing: what cannot be seen is a box or a control picture, such as ␊ for a line end.
 * @param {string} name @param {number} [most] characters @returns {string}
 */
export function shown(name, most = 160) {
  const letters = name.length > most ? [...name] : [];
  return seen(letters.length > most ? ends(letters, most - 1) : name) || "(no name)";
}

/** @param {string[]} letters @param {number} kept @returns {string} both ends: names often differ in a number at the end */
export function ends(letters, kept) {
  const tail = Math.floor(kept / 2);
  return `${letters.slice(0, kept - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
}

/** @param {string} text @returns {string} */
function seen(text) {
  return text.replace(HIDDEN, (c) => (c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : c === "\x7f" ? "\u2421" : "\ufffd"));
}

/** @param {number} n @param {string} what @returns {string} such as "1 tensor", "2 tensors" */
export function counted(n, what) {
  return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** @param {string} text @returns {string} as the content or an attribute of an XML element */
export function xml(text) {
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return seen(text).replace(/[&<>"']/g, (c) => marks[/** @type {keyof typeof marks} */ (c)]);
}
