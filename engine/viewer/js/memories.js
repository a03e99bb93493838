/** Several memories as lanes upon each other, the first at the bottom; and a run in one memory, which has none. */

import { withWeights } from "./weights.js";

/** @typedef {import("./payload.js").Payload} Payload */
/** @typedef {import("./payload.js").MemoryPart} MemoryPart */
/** @typedef {MemoryPart & {low: number, shown: number, high: number}} Lane a memory, of which `shown` bytes are drawn from `low` on in the picture; up to `high` there is room for its name */

/** The space above each lane, for its name, as a share of all bytes; in whole bytes, so that addresses stay exact. */
const APART = 0.045;

/** @param {Payload} payload @param {boolean} hasWeights whether they are drawn @returns {Payload} with the place of each row in the picture */
export function arranged(payload, hasWeights) {
  const rows = hasWeights ? withWeights(payload) : payload;
  const { memories } = rows.facts;
  const { tensors, columns } = rows;
  const { offset, weight_memory: ofWeights } = columns;
  const none = new Int32Array(offset.length).fill(-1);
  if (!memories.length) return { ...rows, columns: { ...columns, low: offset, memory: none } };
  const lanes = lanesOf(memories, hasWeights);
  const memory = none.map((_, i) => (i < tensors ? memoryAt(memories, offset[i]) : ofWeights[i - tensors]));
  const low = Float64Array.from(offset, (at, i) => lanes[memory[i]].low + at - (i < tensors ? lanes[memory[i]].start : 0));
  return { ...rows, columns: { ...columns, low, memory }, lanes, band: 0 };
}

/** @param {MemoryPart[]} memories @param {boolean} hasWeights @returns {Lane[]} */
function lanesOf(memories, hasWeights) {
  const sizes = memories.map((part) => (hasWeights ? part.used_bytes : part.arena_bytes));
  const all = sizes.reduce((sum, size) => sum + size, 0) || 1;
  let low = 0;
  return memories.map((part, m) => {
    const lane = { ...part, low, shown: sizes[m], high: low + sizes[m] + Math.ceil(APART * all) };
    low = lane.high;
    return lane;
  });
}

/** @param {MemoryPart[]} memories @param {number} at a byte of the arena @returns {number} the memory that has it; the first for what has no bytes */
function memoryAt(memories, at) {
  return Math.max(0, memories.findIndex(({ start, arena_bytes: size }) => start <= at && at < start + size));
}
