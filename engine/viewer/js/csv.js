/** The tensors that the table lists as CSV (RFC 4180), with all that is known of each in a row. */

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plan.js").Plan} Plan */

/** @type {[string, (plan: Plan, chunk: number) => string | number][]} sizes and offsets in bytes; `last` is the last tick in which it lives */
const COLUMNS = [
  ["name", (plan, i) => plan.text("name", i)],
  ["operator", (plan, i) => plan.text("operator", i)],
  ["kind", (plan, i) => plan.text("schema", i)],
  ["layer", (plan, i) => plan.text("layer", i)],
  ["shape", (plan, i) => plan.text("shape", i)],
  ["dtype", (plan, i) => plan.text("dtype", i)],
  ["role", (plan, i) => plan.text("role", i)],
  ["bytes", (plan, i) => plan.columns.size[i]],
  ["padding", (plan, i) => plan.columns.padding[i]],
  ["offset", (plan, i) => (plan.columns.offset[i] < 0 ? "" : plan.columns.offset[i])],
  ["first", (plan, i) => plan.columns.begin[i]],
  ["last", (plan, i) => plan.columns.end[i] - 1],
  ["overwrites", (plan, i) => (plan.columns.overwrites[i] < 0 ? "" : plan.text("name", plan.columns.overwrites[i]))],
];

/** @param {Plan} plan @param {number[]} chunks @returns {string} */
export function csv(plan, chunks) {
  const rows = [COLUMNS.map(([name]) => name), ...chunks.map((i) => COLUMNS.map(([, value]) => quoted(value(plan, i))))];
  return rows.map((row) => `${row.join(",")}\r\n`).join("");
}

/** @param {string | number} value @returns {string} */
function quoted(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
