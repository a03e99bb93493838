/** Small things that more than one picture needs. */

import { toX } from "./scale.js";
import { ends } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./inks.js").Inks} Inks */

/** @param {App} app @param {number} pane @returns {number} in the middle of its tick; where the curve is highest, in seconds */
export function peakTime(app, pane) {
  const plan = app.plans[pane];
  if (app.axis === "ticks") return plan.facts.peak_tick + 0.5;
  const { time, live } = plan.curve(app.axis);
  let best = 0;
  for (let i = 1; i < live.length; i++) if (live[i] > live[best]) best = i;
  return time[best] || 0;
}

/** @param {Pen} pen @param {App} app @param {Pane} pane @param {Inks} inks */
export function hairline(pen, app, pane, inks) {
  if (!app.pointed) return;
  const x = crisp(toX(pane, app.view, app.pointed.time));
  if (x < pane.left || x > pane.left + pane.width) return;
  pen.path([x, pane.top, x, pane.top + pane.height], { stroke: inks.muted, alpha: 0.7 });
}

/** @param {Pen} pen @param {string} text @param {number} room @param {import("./pen.js").Letters} letters @returns {string} the text, or both its ends */
export function fitted(pen, text, room, letters) {
  const width = pen.measure(text, letters);
  if (width <= room) return text;
  const all = [...text];
  let fits = Math.max(1, Math.floor((all.length * room) / width) - 1);
  while (fits > 1 && pen.measure(ends(all, fits), letters) > room) fits--;
  return ends(all, fits);
}

/** @param {number} v @returns {number} where a line of one pixel is sharp */
export function crisp(v) {
  return Math.round(v) + 0.5;
}
