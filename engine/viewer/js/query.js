/**
 * The language of the search: words with spaces between them, which must all hold, such as `relu kind:conv size>1MiB`.
 * A word is a regular expression, or a text as it stands where it is in quotes; in small letters it ignores case.
 */

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {"name" | "operator" | "schema" | "layer" | "shape" | "dtype" | "role"} Column */
/** @typedef {(plan: Plan) => (chunk: number) => boolean} Condition */

/** @type {{[key: string]: Column}} what may stand before a colon */
const KEYS = { name: "name", operator: "operator", kind: "schema", layer: "layer", shape: "shape", dtype: "dtype", role: "role" };
/** @type {Column[]} where a word without a key is looked for */
const ANY = ["name", "operator", "schema"];
const WORD = /size\s*(?:[<>]=?|=)\s*[\d.]*\s*(?:[kmg]i?b|b)?(?!\S)|(?:[^\s"]|"[^"]*"?)+/giu;
const SIZE = /^size\s*([<>]=?|=)\s*(.*)$/iu;
/** The units of engine/text/units.py. */
const NUMBER = /^(\d+(?:\.\d+)?)\s*(?:([kmg])(i?)b|b)?$/iu;
/** @type {{[sign: string]: (size: number, limit: number) => boolean}} */
const COMPARED = {
  "<": (size, limit) => size < limit,
  "<=": (size, limit) => size <= limit,
  "=": (size, limit) => size === limit,
  ">=": (size, limit) => size >= limit,
  ">": (size, limit) => size > limit,
};

/** @param {string} text @returns {Condition[]} that must all hold; throws an error that says what cannot be read */
export function conditions(text) {
  return [...text.matchAll(WORD)].map(([word]) => condition(word));
}

/** @param {string} word @returns {Condition} */
function condition(word) {
  const size = SIZE.exec(word);
  if (size) return sized(size[1], size[2]);
  const [, key, rest] = /^(\w+):(.*)$/su.exec(word) || [];
  const isKey = key !== undefined && Object.hasOwn(KEYS, key.toLowerCase());
  return matching(isKey ? [KEYS[key.toLowerCase()]] : ANY, expression(isKey ? rest : word));
}

/** @param {string} sign @param {string} limit such as "1MiB" @returns {Condition} */
function sized(sign, limit) {
  const bytes = parsedBytes(limit);
  return ({ columns }) => (chunk) => COMPARED[sign](columns.size[chunk], bytes);
}

/** @param {string} text such as "1.5 MiB", "64 kB" or "100" @returns {number} */
function parsedBytes(text) {
  const [, number, letter, binary] = NUMBER.exec(text.trim()) || [];
  if (number === undefined) throw new Error(`size${text ? `: ${text.slice(0, 20)} is no number` : " needs a number"} of bytes, such as 1MiB`);
  return Number(number) * (binary ? 1024 : 1000) ** " kmg".indexOf((letter || " ").toLowerCase());
}

/** @param {Column[]} columns @param {RegExp} wanted @returns {Condition} each text of a plan is tested once */
function matching(columns, wanted) {
  return (plan) => {
    const fits = plan.strings.map((text) => wanted.test(text));
    const places = columns.map((name) => plan.columns[name]);
    return (chunk) => places.some((of) => fits[of[chunk]]);
  };
}

/** @param {string} word @returns {RegExp} of which the parts in quotes stand for themselves */
function expression(word) {
  const pattern = word.replace(/"([^"]*)"?/gu, (_, plain) => plain.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&"));
  try {
    return new RegExp(pattern, /[A-Z]/.test(pattern.replace(/\\./g, "")) ? "u" : "iu");
  } catch (error) {
    throw new Error(`no regular expression: ${reason(error)}`, { cause: error });
  }
}

/** @param {unknown} error @returns {string} what browsers say, without the expression in it */
function reason(error) {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(text.lastIndexOf(": ") + 1).trim().toLowerCase();
}
