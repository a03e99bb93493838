/** Gunzip for browsers without DecompressionStream. RFC 1951 (deflate) and RFC 1952 (gzip); one member, no checksum. */

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const HEADER = 10;
const MOST_BITS = 15;

/** @typedef {{counts: Uint16Array, symbols: Uint16Array}} Code a canonical Huffman code */
/** @typedef {{data: Uint8Array, at: number, hold: number, held: number, out: Uint8Array<ArrayBuffer>, made: number}} Stream */

/** @param {ArrayLike<number>} lengths of the code words, in bits @returns {Code} */
function huffman(lengths) {
  const counts = new Uint16Array(MOST_BITS + 1);
  for (let i = 0; i < lengths.length; i++) counts[lengths[i]]++;
  counts[0] = 0;
  const next = new Uint16Array(MOST_BITS + 2);
  for (let n = 1; n <= MOST_BITS; n++) next[n + 1] = next[n] + counts[n];
  const symbols = new Uint16Array(lengths.length);
  for (let i = 0; i < lengths.length; i++) if (lengths[i]) symbols[next[lengths[i]]++] = i;
  return { counts, symbols };
}

/** @param {Stream} s @param {number} n @returns {number} the next n bits */
function bits(s, n) {
  while (s.held < n) {
    if (s.at >= s.data.length) throw new Error("the data of this page end too early");
    s.hold |= s.data[s.at++] << s.held;
    s.held += 8;
  }
  const value = s.hold & ((1 << n) - 1);
  s.hold >>>= n;
  s.held -= n;
  return value;
}

/** @param {Stream} s @param {Code} code @returns {number} the next symbol */
function symbol(s, code) {
  let word = 0;
  let first = 0;
  let index = 0;
  for (let length = 1; length <= MOST_BITS; length++) {
    word |= bits(s, 1);
    const count = code.counts[length];
    if (word - count < first) return code.symbols[index + (word - first)];
    index += count;
    first = (first + count) << 1;
    word <<= 1;
  }
  throw new Error("the data of this page are damaged");
}

/** @param {Stream} s @param {number} count of bytes @param {number} back where from */
function repeat(s, count, back) {
  if (back > s.made) throw new Error("the data of this page are damaged");
  for (let i = 0; i < count; i++, s.made++) s.out[s.made] = s.out[s.made - back];
}

/** @param {Stream} s @param {Code} literals @param {Code} distances */
function inflateBlock(s, literals, distances) {
  for (let got = symbol(s, literals); got !== 256; got = symbol(s, literals)) {
    if (got < 256) {
      s.out[s.made++] = got;
      continue;
    }
    const count = LENGTH_BASE[got - 257] + bits(s, LENGTH_BITS[got - 257]);
    const far = symbol(s, distances);
    const extra = far < 4 ? 0 : (far >> 1) - 1;
    const base = far < 4 ? far + 1 : ((2 + (far & 1)) << extra) + 1;
    repeat(s, count, base + bits(s, extra));
  }
}

/** @param {Stream} s */
function storedBlock(s) {
  s.hold = s.held = 0;
  const size = s.data[s.at] | (s.data[s.at + 1] << 8);
  s.out.set(s.data.subarray(s.at + 4, s.at + 4 + size), s.made);
  s.at += 4 + size;
  s.made += size;
}

/** @returns {[Code, Code]} that every reader knows */
function fixedCodes() {
  const lengths = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
  return [huffman(lengths), huffman(new Array(30).fill(5))];
}

/** @param {Stream} s @returns {[Code, Code]} that the block brings along */
function dynamicCodes(s) {
  const literals = bits(s, 5) + 257;
  const distances = bits(s, 5) + 1;
  const count = bits(s, 4) + 4;
  const lengths = new Uint8Array(19);
  for (let i = 0; i < count; i++) lengths[ORDER[i]] = bits(s, 3);
  const code = huffman(lengths);
  /** @type {number[]} */
  const found = [];
  while (found.length < literals + distances) {
    const got = symbol(s, code);
    if (got < 16) found.push(got);
    else if (got === 16) found.push(...new Array(3 + bits(s, 2)).fill(found[found.length - 1]));
    else found.push(...new Array(got === 17 ? 3 + bits(s, 3) : 11 + bits(s, 7)).fill(0));
  }
  return [huffman(found.slice(0, literals)), huffman(found.slice(literals))];
}

/** @param {Uint8Array} data a gzip file without a name in it @returns {Uint8Array<ArrayBuffer>} */
export function gunzip(data) {
  const size = new DataView(data.buffer, data.byteOffset).getUint32(data.length - 4, true);
  const s = { data, at: HEADER, hold: 0, held: 0, out: new Uint8Array(size), made: 0 };
  for (let last = 0; !last; ) {
    last = bits(s, 1);
    const kind = bits(s, 2);
    if (kind === 0) storedBlock(s);
    else inflateBlock(s, ...(kind === 1 ? fixedCodes() : dynamicCodes(s)));
  }
  if (s.made !== size) throw new Error("the data of this page are damaged");
  return s.out;
}
