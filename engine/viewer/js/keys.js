/** The keyboard. */

import { announce, byId } from "./dom.js";
import { peakTime } from "./marks.js";
import { clearSearch, step } from "./search.js";
import { bytes, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */

const FAR = 0.2;
const CLOSER = 1 / 1.5;

/** @param {App} app @returns {{[key: string]: (event: KeyboardEvent) => void}} */
function actions(app) {
  const closer = (/** @type {KeyboardEvent} */ { shiftKey }) => app.zoom({ t: CLOSER, b: shiftKey ? 1 : CLOSER });
  const farther = (/** @type {KeyboardEvent} */ { shiftKey }) => app.zoom({ t: 1 / CLOSER, b: shiftKey ? 1 : 1 / CLOSER });
  return {
    ArrowLeft: () => app.pan(-FAR, 0),
    ArrowRight: () => app.pan(FAR, 0),
    ArrowUp: () => app.pan(0, FAR),
    ArrowDown: () => app.pan(0, -FAR),
    "+": closer,
    "=": closer,
    "*": closer,
    "-": farther,
    _: farther,
    0: () => app.fit(),
    "/": () => byId("search").focus(),
    n: () => step(app, 1),
    N: () => step(app, -1),
    p: () => toPeak(app),
    "]": () => neighbour(app, 1),
    "[": () => neighbour(app, -1),
    ".": () => otherTick(app, 1),
    ",": () => otherTick(app, -1),
    b: () => byId("box").click(),
    t: () => byId("theme").click(),
    "?": () => /** @type {HTMLDialogElement} */ (byId("help")).showModal(),
    Escape: () => escape(app),
  };
}

/** @param {App} app */
export function bindKeys(app) {
  const known = actions(app);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = /^(INPUT|SELECT|TEXTAREA|DIALOG)$/.test(target.tagName) || Boolean(target.closest("dialog"));
    const isScrolling = event.key.startsWith("Arrow") && Boolean(target.closest("aside"));
    const act = known[event.key];
    if (isTyping || isScrolling || event.ctrlKey || event.metaKey || event.altKey || !act) return;
    event.preventDefault();
    act(event);
  });
  byId("open-help").addEventListener("click", () => /** @type {HTMLDialogElement} */ (byId("help")).showModal());
}

/** One thing after the other: the box, the search, the legend, the selection. @param {App} app */
function escape(app) {
  if (app.boxing) byId("box").click();
  else if (/** @type {HTMLInputElement} */ (byId("search")).value) clearSearch(app);
  else if (app.isolated >= 0) app.isolate(-1);
  else app.select(null);
}

/** @param {App} app */
function toPeak(app) {
  const { facts } = app.plans[app.tablePane];
  app.showTick(app.tablePane, -1);
  const { t0, t1, b0, b1 } = app.view;
  const at = peakTime(app, app.tablePane);
  const span = Math.min(t1 - t0, app.home.t1 / 4);
  app.look({ t0: at - span / 2, t1: at + span / 2, b0, b1 });
  announce(`Peak: ${bytes(facts.peak_bytes)} in tick ${whole(facts.peak_tick)}`);
}

/** Selects the tensor that came after the selected one, or before. @param {App} app @param {number} by */
function neighbour(app, by) {
  const pane = app.selected ? app.selected.pane : 0;
  const order = app.plans[pane].arrivals();
  if (!order.length) return;
  const at = app.selected ? order.indexOf(app.selected.chunk) : by > 0 ? -1 : 0;
  const spot = { pane, chunk: order[(at + by + order.length) % order.length] };
  app.select(spot);
  app.reveal(spot);
  announce(`Selected ${shown(app.plans[pane].text("name", spot.chunk), 80)}`);
}

/** The table shows the tick before, or after. @param {App} app @param {number} by */
function otherTick(app, by) {
  const { facts } = app.plans[app.tablePane];
  const tick = Math.max(0, Math.min(facts.ticks - 1, app.tableTick() + by));
  app.showTick(app.tablePane, tick);
  announce(`${byId("table-title").textContent}: ${byId("table-totals").textContent}`);
}
