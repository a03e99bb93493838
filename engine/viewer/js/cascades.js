/** Cascades, which are computed stripe after stripe: when each of them runs, and each of its stripes. */

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {{begin: number, end: number, row: number, name: string, about: string[]}} Nested a cascade, in row 0, or a stripe, in row 1 */

/** Rows above the operators, where a plan has cascades. */
export const NESTED = ["cascades", "stripes"];

/** @param {Plan} plan @param {"ticks" | "seconds"} axis @returns {Nested[]} */
export function nested(plan, axis) {
  const { strings, columns } = plan;
  const { stripe_cascade: cascade, stripe_name: name, stripe_number: number, stripe_count: count } = columns;
  const { stripe_first: first, stripe_last: last, stripe_begin: begin, stripe_end: end } = columns;
  const isColumns = columns.stripe_columns;
  /** @type {Nested[]} */
  const found = [];
  for (let k = 0, from = 0; k < cascade.length; k++) {
    const [title, at] = [strings[name[k]], times(plan, axis, begin[k], end[k])];
    const lines = isColumns[k] ? "columns" : "rows";
    const rows = first[k] < last[k] ? `${lines} ${first[k]} to ${last[k] - 1} of the result` : `no ${lines} of the result yet`;
    const about = [`stripe ${number[k] + 1} of ${count[k]}`, rows, title];
    found.push({ ...at, row: 1, name: `${number[k] + 1} of ${count[k]}`, about });
    if (cascade[k + 1] === cascade[k]) continue;
    const whole = times(plan, axis, begin[from], end[k]);
    found.push({ ...whole, row: 0, name: title, about: [title, `a cascade in ${count[k]} stripes`] });
    from = k + 1;
  }
  return found;
}

/** @param {Plan} plan @param {"ticks" | "seconds"} axis @param {number} begin @param {number} end ticks @returns {{begin: number, end: number}} */
function times(plan, axis, begin, end) {
  if (axis === "ticks") return { begin, end };
  const at = (/** @type {number} */ tick) => plan.operatorAt.get(tick) ?? 0;
  return { begin: plan.columns.op_begin[at(begin)], end: plan.columns.op_end[at(end - 1)] };
}
