/** Heights for a run without addresses: tensors lie upon each other in the order in which they came. */

/** @typedef {import("./plan.js").Pieces} Pieces */
/** @typedef {ArrayLike<number>} Numbers */

/** Tensors that may sink at once when one below them goes; after so many, they sink only where the tower gets high. */
const PATIENCE = 400000;
/** How high a tower may get then, in times what was alive at most. */
const SLACK = 1.25;

/**
 * A tensor that sinks is a piece more from then on.
 * @param {Numbers} from @param {Numbers} to @param {Numbers} size in bytes @param {number} [patience] @returns {Pieces}
 */
export function stack(from, to, size, patience = PATIENCE) {
  const tower = new Tower(size, patience);
  for (const k of happenings(from, to)) {
    if (k & 1) tower.add(k >> 1, from[k >> 1]);
    else tower.remove(k >> 1, to[k >> 1]);
  }
  const { chunk, from: since, to: until, low } = tower;
  return { count: chunk.length, chunk, from: since, to: until, low, way: tower.patience > 0 ? "arrival" : "arrival, late" };
}

/** @param {Numbers} from @param {Numbers} to @returns {number[]} in time: 2i is that i goes, 2i + 1 that it comes */
function happenings(from, to) {
  const all = [];
  for (let i = 0; i < from.length; i++) if (from[i] < to[i]) all.push(2 * i, 2 * i + 1);
  const time = (/** @type {number} */ k) => (k & 1 ? from : to)[k >> 1];
  return all.sort((a, b) => time(a) - time(b) || (a & 1) - (b & 1) || a - b);
}

/** Those that stand are a ring in the order in which they came; `ground`, below the first, closes it. */
class Tower {
  /** @param {Numbers} size @param {number} patience */
  constructor(size, patience) {
    this.size = size;
    this.patience = patience;
    this.ground = size.length;
    this.above = new Int32Array(size.length + 1).fill(size.length);
    this.below = this.above.slice();
    this.since = new Float64Array(size.length + 1);
    this.height = new Float64Array(size.length + 1);
    this.rank = new Float64Array(size.length + 1);
    this.came = 0;
    this.alive = 0;
    this.most = 0;
    /** Above it somebody went, at `left`; -1: nobody did. */
    this.hole = -1;
    this.left = 0;
    /** @type {number[]} */
    this.chunk = [];
    /** @type {number[]} */
    this.from = [];
    /** @type {number[]} */
    this.to = [];
    /** @type {number[]} */
    this.low = [];
  }

  /** @param {number} i of those that stand, or the ground @returns {number} */
  top(i) {
    return i === this.ground ? 0 : this.height[i] + this.size[i];
  }

  /** @param {number} i @param {number} time */
  add(i, time) {
    this.alive += this.size[i];
    this.most = Math.max(this.most, this.alive);
    const last = this.below[this.ground];
    if (this.patience > 0) this.sink(this.left);
    else if (this.top(last) + this.size[i] > SLACK * this.most) this.sink(time);
    this.height[i] = this.top(last);
    this.since[i] = time;
    this.rank[i] = ++this.came;
    [this.below[i], this.above[i]] = [last, this.ground];
    this.above[last] = this.below[this.ground] = i;
  }

  /** @param {number} i @param {number} time */
  remove(i, time) {
    if (this.patience > 0 && time > this.left) this.sink(this.left);
    this.cut(i, time);
    this.alive -= this.size[i];
    const [below, above] = [this.below[i], this.above[i]];
    this.above[below] = above;
    this.below[above] = below;
    if (this.hole < 0 || this.hole === i || this.rank[below] < this.rank[this.hole]) this.hole = below;
    this.left = time;
  }

  /** @param {number} time */
  sink(time) {
    if (this.hole < 0) return;
    let height = this.top(this.hole);
    for (let i = this.above[this.hole]; i !== this.ground; i = this.above[i]) {
      if (this.height[i] !== height) this.cut(i, time);
      this.height[i] = height;
      height += this.size[i];
      this.patience--;
    }
    this.hole = -1;
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
