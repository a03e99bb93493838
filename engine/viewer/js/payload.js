/** From the base64 text in the page to the columns of a plan; engine/viewer/payload.py writes them. */

const TYPES = { i4: Int32Array, f8: Float64Array };

/**
 * @typedef {object} Facts what is known of a plan as a whole; sizes in bytes
 * @property {string} model @property {string} mode @property {string} heap @property {string} policy
 * @property {string} strategy @property {string} status @property {number} alignment @property {number} arena_bytes
 * @property {number} lower_bound @property {number} budget_bytes @property {number} footprint_bytes @property {number} peak_bytes @property {number} peak_tick
 * @property {string} peak_operator @property {number} weights_bytes @property {number} prepacked_bytes
 * @property {number} resident_weights_bytes @property {number} ticks @property {number} threads
 * @property {number} stages @property {boolean} timed @property {string} clock @property {MemoryPart[]} memories
 */
/** @typedef {{name: string, capacity: number, start: number, arena_bytes: number, weights_bytes: number, used_bytes: number, seconds: number}} MemoryPart one of several memories; its tensors lie from `start` on in the arena */
/** @typedef {{[name: string]: Int32Array | Float64Array}} Columns */
/** @typedef {{title: string, facts: Facts, count: number, columns: Columns, strings: string[], tensors: number, band: number, lanes: import("./memories.js").Lane[]}} Payload `count` rows, of which the first `tensors` are no weights; weights lie in `band` bytes below the arena, or in the `lanes` of several memories */

/** @param {string} text base64 @returns {Uint8Array<ArrayBuffer>} */
function decoded(text) {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** @param {Uint8Array<ArrayBuffer>} data gzip @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function unpacked(data) {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack it; Chrome 80, Firefox 113, Safari 16.4 and later can");
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Uint8Array<ArrayBuffer>} raw a length, a JSON header of that many bytes, columns from the next multiple of 8 on */
function parsed(raw) {
  const length = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
  const base = Math.ceil((4 + length) / 8) * 8;
  /** @type {Columns} */
  const columns = {};
  for (const [name, [type, at, count]] of Object.entries(header.columns)) {
    columns[name] = new TYPES[/** @type {keyof typeof TYPES} */ (type)](raw.buffer, base + at, count);
  }
  return { ...header, columns, tensors: header.count, band: 0, lanes: [] };
}

/** @param {Element} element that holds the text @returns {Promise<Payload>} */
export async function readPayload(element) {
  return parsed(await unpacked(decoded((element.textContent || "").trim())));
}
