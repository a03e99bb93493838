/** Heights for a run without addresses: tensors lie upon each other in the order in which they came. */

/** @typedef {import("./plan.js").Pieces} Pieces */
/** @typedef {ArrayLike<number>} Numbers */

const MOST_PIECES = 400000;

/**
 * A tensor sinks when one below it goes, and is a piece more then. Where that were too many pieces, each tensor stays
 * at the lowest height that was free when it came.
 * @param {Numbers} from @param {Numbers} to @param {Numbers} size in bytes @returns {Pieces}
 */
export function stack(from, to, size) {
  const order = happenings(from, to);
  return sinking(order, from, to, size) || staying(order, from, to, size);
}

/** @param {Numbers} from @param {Numbers} to @returns {number[]} in time: 2i is that i goes, 2i + 1 that it comes */
function happenings(from, to) {
  const all = [];
  for (let i = 0; i < from.length; i++) if (from[i] < to[i]) all.push(2 * i, 2 * i + 1);
  const time = (/** @type {number} */ k) => (k & 1 ? from : to)[k >> 1];
  return all.sort((a, b) => time(a) - time(b) || (a & 1) - (b & 1) || a - b);
}

/** @param {number[]} order @param {Numbers} from @param {Numbers} to @param {Numbers} size @returns {Pieces | null} */
function sinking(order, from, to, size) {
  const tower = new Tower(size);
  for (const k of order) {
    if (k & 1) tower.add(k >> 1, from[k >> 1]);
    else tower.remove(k >> 1, to[k >> 1]);
    if (tower.chunk.length > MOST_PIECES) return null;
  }
  return { count: tower.chunk.length, chunk: tower.chunk, from: tower.from, to: tower.to, low: tower.low, way: "arrival" };
}

class Tower {
  /** @param {Numbers} size */
  constructor(size) {
    this.size = size;
    this.since = new Float64Array(size.length);
    this.height = new Float64Array(size.length);
    /** @type {number[]} */
    this.standing = [];
    /** @type {number[]} */
    this.chunk = [];
    /** @type {number[]} */
    this.from = [];
    /** @type {number[]} */
    this.to = [];
    /** @type {number[]} */
    this.low = [];
  }

  /** @param {number} i @param {number} time */
  add(i, time) {
    const top = this.standing[this.standing.length - 1];
    this.height[i] = top === undefined ? 0 : this.height[top] + this.size[top];
    this.since[i] = time;
    this.standing.push(i);
  }

  /** @param {number} i @param {number} time */
  remove(i, time) {
    const at = this.standing.indexOf(i);
    this.cut(i, time);
    this.standing.splice(at, 1);
    for (const other of this.size[i] ? this.standing.slice(at) : []) {
      this.cut(other, time);
      this.height[other] -= this.size[i];
    }
  }

  /** @param {number} i @param {number} time */
  cut(i, time) {
    if (time > this.since[i]) {
      this.chunk.push(i);
      this.from.push(this.since[i]);
      this.to.push(time);
      this.low.push(this.height[i]);
    }
    this.since[i] = time;
  }
}

/** @param {number[]} order @param {Numbers} from @param {Numbers} to @param {Numbers} size @returns {Pieces} */
function staying(order, from, to, size) {
  const low = new Float64Array(size.length);
  /** @type {number[]} */
  const standing = [];
  for (const k of order) {
    const i = k >> 1;
    if (k & 1) settle(i, standing, low, size);
    else standing.splice(standing.indexOf(i), 1);
  }
  return { count: size.length, chunk: Int32Array.from(low, (_, i) => i), from, to, low, way: "first place" };
}

/** @param {number} i @param {number[]} standing by height @param {Float64Array} low @param {Numbers} size */
function settle(i, standing, low, size) {
  let height = 0;
  let at = 0;
  while (at < standing.length && low[standing[at]] - height < size[i]) {
    height = low[standing[at]] + size[standing[at]];
    at++;
  }
  low[i] = height;
  standing.splice(at, 0, i);
}
