/** One plan as the page shows it: names by chunk, who follows whom, and the pieces that are drawn. */

import { nested } from "./cascades.js";
import { stack } from "./stacking.js";

/** @typedef {import("./payload.js").Payload} Payload */
/** @typedef {import("./payload.js").Facts} Facts */
/** @typedef {import("./cascades.js").Nested} Nested */
/** @typedef {"ticks" | "seconds"} Axis */
/** @typedef {{count: number, chunk: ArrayLike<number>, from: ArrayLike<number>, to: ArrayLike<number>, low: ArrayLike<number>, way: string}} Pieces rectangles: a chunk, its times, its lowest address */
/** @typedef {{begin: ArrayLike<number>, end: ArrayLike<number>, lane: ArrayLike<number>, lanes: number}} Runs of operators, in order; `lanes` without that of the copy engine, which is BESIDE */
/** @typedef {{time: ArrayLike<number>, live: ArrayLike<number>, footprint: ArrayLike<number>, ends: number}} Curve which keeps its last value until it ends */

const NOTHING = -1;
/** The lane of copies that a copy engine makes beside operators. */
export const BESIDE = -1;

export class Plan {
  /** @param {Payload} payload */
  constructor(payload) {
    this.title = payload.title;
    /** @type {Facts} */
    this.facts = payload.facts;
    this.count = payload.count;
    this.tensors = payload.tensors;
    this.band = payload.band;
    this.lanes = payload.lanes;
    this.columns = payload.columns;
    this.strings = payload.strings;
    this.follower = inverse(payload.columns.overwrites);
    this.hasAddresses = !this.tensors || payload.columns.offset.some((at, i) => at !== NOTHING && i < this.tensors);
    /** @type {Map<string, any>} */
    this.made = new Map();
    /** Where a chunk is drawn to end: in the tick in which another takes its bytes, both are alive. */
    const { begin, end } = payload.columns;
    this.stop = Float64Array.from(end, (last, i) => (this.follower[i] < 0 ? last : Math.min(last, begin[this.follower[i]])));
    this.views = grouped(payload.columns.view_chunk);
    this.reads = grouped(payload.columns.read_chunk);
    const { move_tick: copies, move_beside: beside } = payload.columns;
    /** Ticks of the copies that a copy engine makes. */
    this.beside = new Set(Array.from(copies).filter((_, k) => beside[k]));
    this.atPeak = new Set(payload.columns.at_peak);
    this.operatorAt = new Map(Array.from(payload.columns.op_tick, (tick, i) => [tick, i]));
  }

  /** @template T @param {string} what @param {() => T} make @returns {T} what was made before, if it was */
  once(what, make) {
    if (!this.made.has(what)) this.made.set(what, make());
    return this.made.get(what);
  }

  /** @param {"name" | "operator" | "schema" | "shape" | "dtype" | "role" | "layer" | "reason"} what @param {number} chunk */
  text(what, chunk) {
    return this.strings[this.columns[what][chunk]];
  }

  /** @returns {boolean} whether it is known who reads what; a saved trace does not say */
  get knowsReads() {
    return this.reads.size > 0;
  }

  /** @param {number} chunk @returns {number[]} the ticks in which it is read, in order */
  readsOf(chunk) {
    return (this.reads.get(chunk) || []).map((k) => this.columns.read_tick[k]);
  }

  /** @param {number} chunk @returns {number} its first byte, counted from that of its memory */
  addressOf(chunk) {
    const { low, memory } = this.columns;
    return memory[chunk] < 0 ? low[chunk] : low[chunk] - this.lanes[memory[chunk]].low;
  }

  /** @param {number} tick @returns {string} the operator that runs then, or "" */
  operator(tick) {
    const i = this.operatorAt.get(tick);
    return i === undefined ? "" : this.strings[this.columns.op_name[i]];
  }

  /** @param {Axis} axis @returns {[ArrayLike<number>, ArrayLike<number>]} when chunks come and go */
  times(axis) {
    return axis === "seconds" ? [this.columns.born, this.columns.died] : [this.columns.begin, this.stop];
  }

  /** @param {Axis} axis @returns {Pieces} */
  pieces(axis) {
    return this.once(`pieces in ${axis}`, () => this.placed(axis));
  }

  /** @param {Axis} axis @returns {Nested[]} cascades, and their stripes in the row below */
  nested(axis) {
    return this.once(`nested in ${axis}`, () => nested(this, axis));
  }

  /** @param {Axis} axis @returns {Runs} */
  runs(axis) {
    return this.once(`runs in ${axis}`, () => this.lined(axis));
  }

  /** @param {Axis} axis @returns {Runs} a lane a thread, or one lane of ticks; and that of the copy engine */
  lined(axis) {
    const { op_tick: tick, op_begin: begin, op_end: end, op_thread: thread } = this.columns;
    const lane = thread.map((t, i) => (this.beside.has(tick[i]) ? BESIDE : axis === "ticks" ? 0 : Math.max(0, t)));
    const lanes = maximum(lane, 0) + 1;
    return axis === "ticks" ? { begin: tick, end: tick.map((t) => t + 1), lane, lanes } : { begin, end, lane, lanes };
  }

  /** @param {Axis} axis @returns {Pieces} */
  placed(axis) {
    const [from, to] = this.times(axis);
    if (!this.hasAddresses) return this.stacked(from, to);
    const chunk = Int32Array.from({ length: this.count }, (_, i) => i);
    return { count: this.count, chunk, from, to, low: this.columns.low, way: "address" };
  }

  /** @param {ArrayLike<number>} from @param {ArrayLike<number>} to @returns {Pieces} tensors upon each other; weights have places */
  stacked(from, to) {
    const { size, offset } = this.columns;
    const tower = stack(Array.from(from).slice(0, this.tensors), to, size);
    const weights = Array.from({ length: this.count - this.tensors }, (_, k) => this.tensors + k);
    const joined = (/** @type {ArrayLike<number>} */ of, /** @type {number[]} */ more) => [...Array.from(of), ...more];
    return {
      count: tower.count + weights.length,
      chunk: joined(tower.chunk, weights),
      from: joined(tower.from, weights.map((i) => from[i])),
      to: joined(tower.to, weights.map((i) => to[i])),
      low: joined(tower.low, weights.map((i) => offset[i])),
      way: tower.way,
    };
  }

  /** @param {Axis} axis @returns {Curve} */
  curve(axis) {
    const times = axis === "seconds" ? this.columns.curve_seconds : this.columns.curve_tick;
    return this.once(`curve in ${axis}`, () => ({ ...settled(times, this.columns), ends: this.ends(axis) }));
  }

  /** @param {Axis} axis @returns {number} where time ends */
  ends(axis) {
    const { died, end, curve_seconds: seconds, curve_tick: ticks } = this.columns;
    return axis === "seconds" ? maximum(died, maximum(seconds, 0)) : maximum(end, maximum(ticks, 0));
  }

  /** @returns {number} bytes of the arena, of what a heap held, or of what was alive at once where nothing is known of either */
  get need() {
    const { mode, heap, arena_bytes: arena, footprint_bytes: held, peak_bytes: peak } = this.facts;
    return mode === "static" ? arena : heap ? held : peak;
  }

  /** @returns {number} bytes that no plan can do without; 0 where it is no plan that ran, which may need less at each moment */
  get bound() {
    return this.facts.mode === "static" ? this.facts.lower_bound : 0;
  }

  /** @returns {number} the bytes that the plan was to keep within; 0 where nobody said */
  get budget() {
    return this.facts.budget_bytes;
  }

  /** @param {Axis} axis @returns {number} the bytes that must fit into the picture */
  top(axis) {
    return this.lanes.length ? this.lanes[this.lanes.length - 1].high : this.most(axis);
  }

  /** @param {Axis} axis @returns {number} the most bytes at once, or the highest address */
  most(axis) {
    if (this.lanes.length) return this.need;
    const { count, chunk, low } = this.pieces(axis);
    const { size, curve_footprint: footprint } = this.columns;
    let most = Math.max(this.need, maximum(footprint, 0));
    for (let k = 0; k < count; k++) if (low[k] + size[chunk[k]] > most) most = low[k] + size[chunk[k]];
    return most;
  }

  /** @returns {number[]} chunks in the order in which they came */
  arrivals() {
    const { begin } = this.columns;
    return this.once("arrivals", () => Array.from({ length: this.tensors }, (_, i) => i).sort((a, b) => begin[a] - begin[b] || a - b));
  }

  /** @param {number} time in seconds @returns {number} the tick of the operator that runs, or last began, then; -1 if none is known */
  tickAt(time) {
    const { op_tick: tick, op_begin: begin } = this.columns;
    let last = 0;
    for (let i = 1; i < tick.length; i++) if (begin[i] <= time && (begin[i] >= begin[last] || begin[last] > time)) last = i;
    return tick.length ? tick[last] : -1;
  }

  /** @param {number} tick @returns {number | undefined} seconds at which its operator begins; of a run on one thread none are needed */
  moment(tick) {
    const i = this.facts.threads > 1 ? this.operatorAt.get(tick) : undefined;
    return i === undefined ? undefined : this.columns.op_begin[i];
  }

  /** @param {number} tick @returns {number[]} the chunks that are alive in it, or when its operator begins beside others, largest first */
  aliveAt(tick) {
    const moment = this.moment(tick);
    const [from, to] = moment === undefined ? this.times("ticks") : this.times("seconds");
    const at = moment === undefined ? tick : moment;
    const alive = [];
    for (let i = 0; i < this.tensors; i++) if (from[i] <= at && at < to[i]) alive.push(i);
    return this.bySize(alive);
  }

  /** @returns {number[]} the chunks that are alive at the peak, largest first */
  aliveAtPeak() {
    return this.bySize(Array.from(this.columns.at_peak));
  }

  /** @param {number[]} chunks @returns {number[]} the largest first */
  bySize(chunks) {
    const { size } = this.columns;
    return chunks.sort((a, b) => size[b] - size[a] || a - b);
  }
}

/** @param {ArrayLike<number>} column @param {number} least @returns {number} */
export function maximum(column, least) {
  let most = least;
  for (let i = 0; i < column.length; i++) if (column[i] > most) most = column[i];
  return most;
}

/**
 * One point a moment: what was freed in it is gone, and most that was alive after that counts.
 * @param {ArrayLike<number>} times @param {import("./payload.js").Columns} columns
 */
function settled(times, { curve_live: all, curve_footprint: held }) {
  /** @type {{time: number[], live: number[], footprint: number[]}} */
  const made = { time: [], live: [], footprint: [] };
  for (let i = 0; i < times.length; ) {
    const now = times[i];
    while (i + 1 < times.length && times[i + 1] === now && all[i + 1] < all[i]) i++;
    let [live, footprint] = [all[i], held[i]];
    for (; i < times.length && times[i] === now; i++) [live, footprint] = [Math.max(live, all[i]), Math.max(footprint, held[i])];
    made.time.push(now);
    made.live.push(live);
    made.footprint.push(footprint);
  }
  return made;
}

/** @param {ArrayLike<number>} before @returns {Int32Array} by chunk, who takes its bytes */
function inverse(before) {
  const found = new Int32Array(before.length).fill(NOTHING);
  for (let i = 0; i < before.length; i++) if (before[i] !== NOTHING) found[before[i]] = i;
  return found;
}

/** @param {ArrayLike<number>} keys @returns {Map<number, number[]>} places by key */
function grouped(keys) {
  const found = new Map();
  for (let i = 0; i < keys.length; i++) {
    const places = found.get(keys[i]);
    if (places) places.push(i);
    else found.set(keys[i], [i]);
  }
  return found;
}
