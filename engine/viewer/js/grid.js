/** Which rectangle lies at a point, without asking all of them: a grid of cells over time and address. */

/** @typedef {import("./plan.js").Pieces} Pieces */

const SIDE = 256;

export class Grid {
  /** @param {Pieces} pieces @param {ArrayLike<number>} size by chunk @param {number} ends @param {number} top @param {number} [bottom] */
  constructor(pieces, size, ends, top, bottom = 0) {
    this.pieces = pieces;
    this.size = size;
    this.bottom = bottom;
    this.perTime = SIDE / (ends || 1);
    this.perByte = SIDE / (top - bottom || 1);
    this.start = this.counted();
    this.members = this.filled();
  }

  /** @param {number} k a piece @param {(cell: number) => void} visit */
  cells(k, visit) {
    const { from, to, low, chunk } = this.pieces;
    const height = this.size[chunk[k]];
    if (!height) return;
    const column = (/** @type {number} */ time) => Math.min(SIDE - 1, Math.max(0, Math.floor(time * this.perTime)));
    const row = (/** @type {number} */ at) => Math.min(SIDE - 1, Math.max(0, Math.floor((at - this.bottom) * this.perByte)));
    const [left, right, bottom, top] = [column(from[k]), column(to[k]), row(low[k]), row(low[k] + height)];
    for (let y = bottom; y <= top; y++) for (let x = left; x <= right; x++) visit(y * SIDE + x);
  }

  /** @returns {Int32Array} where the members of each cell begin */
  counted() {
    const start = new Int32Array(SIDE * SIDE + 1);
    for (let k = 0; k < this.pieces.count; k++) this.cells(k, (cell) => void start[cell + 1]++);
    for (let cell = 0; cell < SIDE * SIDE; cell++) start[cell + 1] += start[cell];
    return start;
  }

  /** @returns {Int32Array} */
  filled() {
    const next = this.start.slice();
    const members = new Int32Array(this.start[SIDE * SIDE]);
    for (let k = 0; k < this.pieces.count; k++) this.cells(k, (cell) => void (members[next[cell]++] = k));
    return members;
  }

  /** @param {number} time @param {number} address @returns {number} the piece there, or -1 */
  at(time, address) {
    if (time < 0 || address < this.bottom) return -1;
    const x = Math.min(SIDE - 1, Math.floor(time * this.perTime));
    const y = Math.min(SIDE - 1, Math.floor((address - this.bottom) * this.perByte));
    const cell = y * SIDE + x;
    for (let m = this.start[cell]; m < this.start[cell + 1]; m++) if (this.holds(this.members[m], time, address)) return this.members[m];
    return -1;
  }

  /** @param {number} k @param {number} time @param {number} address */
  holds(k, time, address) {
    const { from, to, low, chunk } = this.pieces;
    return from[k] <= time && time < to[k] && low[k] <= address && address < low[k] + this.size[chunk[k]];
  }

  /** @returns {number} as `at`, or of what lies within the given distances @param {number} time @param {number} address @param {number} dt @param {number} db */
  near(time, address, dt, db) {
    for (const [a, b] of [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]]) {
      const found = this.at(time + a * dt, address + b * db);
      if (found >= 0) return found;
    }
    return -1;
  }
}
