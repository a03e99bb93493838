/** What scripts and tests may use: `window.arenaplan`. */

import { byId } from "./dom.js";
import { link } from "./link.js";
import { plotPanes } from "./plot.js";
import { png, svg } from "./save.js";
import { toX, toY } from "./scale.js";
import { search } from "./search.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app @param {import("./screen.js").Screen} screen */
export function scripting(app, screen) {
  return {
    state: () => ({
      plans: app.plans.map((plan) => ({ title: plan.title, chunks: plan.count, facts: { ...plan.facts } })),
      axis: app.axis,
      view: { ...app.view },
      home: { ...app.home },
      colour: app.mode,
      isolated: app.isolated,
      matches: app.matches.length,
      match: app.match,
      link: link(app),
      theme: document.documentElement.dataset.theme,
      selected: told(app, app.selected),
      hovered: told(app, app.hovered),
      tick: app.tableTick(),
    }),
    select: (/** @type {number} */ chunk, pane = 0) => app.select(chunk < 0 ? null : { pane, chunk }),
    reveal: (/** @type {number} */ chunk, pane = 0) => app.reveal({ pane, chunk }),
    rectAt: (/** @type {number} */ chunk, pane = 0) => rectAt(app, chunk, pane),
    hitAt: (/** @type {number} */ time, /** @type {number} */ address, pane = 0) => app.spotAt(pane, time, address, 0, 0)?.chunk ?? -1,
    find: (/** @type {string} */ text) => search(app, text),
    redraw: () => screen.redraw(),
    svg: () => svg(app),
    png: () => png(app),
  };
}

/** @param {App} app @param {import("./app.js").Spot | null} spot */
function told(app, spot) {
  return spot && { ...spot, name: app.plans[spot.pane].text("name", spot.chunk) };
}

/** @param {App} app @param {number} chunk @param {number} pane @returns {DOMRect} in the window, of what is in sight or not */
function rectAt(app, chunk, pane) {
  const canvas = byId("plot");
  const place = plotPanes(app, canvas.clientWidth, canvas.clientHeight)[pane];
  const { t0, t1, b0, b1 } = app.extent({ pane, chunk });
  const [x, y] = [toX(place, app.view, t0), toY(place, app.view, b1)];
  const { left, top } = canvas.getBoundingClientRect();
  return new DOMRect(left + x, top + y, toX(place, app.view, t1) - x, toY(place, app.view, b0) - y);
}
