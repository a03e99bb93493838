/** The whole run in small, and which part of it is seen. */

import { shadeGaps } from "./addresses.js";
import { paintPieces } from "./plot.js";
import { panes, toX, toY } from "./scale.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {import("./inks.js").Inks} Inks */

/** @param {App} app @param {number} width @param {number} height @returns {Pane[]} */
export function overviewPanes(app, width, height) {
  return panes(app.plans.length, width, 6, Math.max(10, height - 12));
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintOverview(pen, app, inks, width, height) {
  for (const pane of overviewPanes(app, width, height)) {
    pen.rect(pane.left, pane.top, pane.width, pane.height, { fill: inks.paper });
    pen.within(pane.left, pane.top, pane.width, pane.height, () => {
      shadeGaps(pen, app, pane, app.home, inks);
      paintPieces(pen, app, pane, app.home, inks);
    });
    pen.rect(pane.left - 0.5, pane.top - 0.5, pane.width + 1, pane.height + 1, { stroke: inks.line });
  }
}

/** @param {Pen} pen @param {App} app @param {Inks} inks @param {number} width @param {number} height */
export function paintBrush(pen, app, inks, width, height) {
  const { view, home } = app;
  for (const pane of overviewPanes(app, width, height)) {
    const [left, right] = [toX(pane, home, view.t0), toX(pane, home, view.t1)];
    const [top, bottom] = [toY(pane, home, view.b1), toY(pane, home, view.b0)];
    const veil = { fill: inks.panel, alpha: 0.6 };
    pen.rect(pane.left, pane.top, left - pane.left, pane.height, veil);
    pen.rect(right, pane.top, pane.left + pane.width - right, pane.height, veil);
    pen.rect(left, pane.top, right - left, top - pane.top, veil);
    pen.rect(left, bottom, right - left, pane.top + pane.height - bottom, veil);
    pen.rect(left, top, Math.max(3, right - left), Math.max(3, bottom - top), { stroke: inks.accent, width: 1.5 });
  }
}
