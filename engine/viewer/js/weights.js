/** The weights of a model, which are there for the whole run: a band below the arena, or in their memories. */

import { maximum } from "./plan.js";

/** @typedef {import("./payload.js").Payload} Payload */

/** The space between the band and the arena, as a share of the larger of the two. */
const APART = 0.02;

/** @param {Payload} payload @returns {boolean} */
export function hasWeights({ columns }) {
  return columns.weight_bytes.length > 0;
}

/** @param {Payload} payload @returns {Payload} with a row a weight behind its tensors, at addresses in their memories, or else below 0, the first weight at the top */
export function withWeights(payload) {
  if (!hasWeights(payload)) return payload;
  const { columns, count, facts } = payload;
  const strings = [...payload.strings, "weight", ""];
  const [role, nothing] = [strings.length - 2, strings.length - 1];
  const size = Array.from(columns.weight_bytes);
  const total = size.reduce((all, bytes) => all + bytes, 0);
  let at = -Math.ceil(APART * Math.max(total, facts.arena_bytes, facts.footprint_bytes)) - 2;
  const below = Float64Array.from(size, (bytes) => (at -= bytes));
  const offset = facts.memories.length ? columns.weight_offset : below;
  const ends = facts.timed ? maximum(columns.died, 0) : -1;
  const same = (/** @type {number} */ value) => new Array(size.length).fill(value);
  /** @type {{[name: string]: ArrayLike<number>}} */
  const more = {
    ...{ begin: same(0), end: same(facts.ticks), born: same(facts.timed ? 0 : -1), died: same(ends) },
    ...{ offset, size, padding: same(0), overwrites: same(-1), stage: same(-1), thread: same(-1) },
    ...{ name: columns.weight_name, operator: same(nothing), schema: same(nothing), shape: columns.weight_shape },
    reason: columns.weight_reason,
    ...{ dtype: columns.weight_dtype, role: same(role), layer: columns.weight_layer },
    ...{ read_tick: columns.weight_read_tick, read_chunk: Array.from(columns.weight_read, (weight) => count + weight) },
  };
  const all = { ...columns };
  for (const [name, values] of Object.entries(more)) all[name] = Float64Array.from([...columns[name], ...Array.from(values)]);
  return { ...payload, strings, columns: all, count: count + size.length, tensors: count, band: -at };
}
