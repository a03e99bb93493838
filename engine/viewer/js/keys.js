/** The keyboard. */

import { announce, byId } from "./dom.js";
import { clearSearch, step } from "./search.js";
import { bytes, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */

const FAR = 0.2;
const CLOSER = 1 / 1.5;

/** @param {App} app @returns {{[key: string]: () => void}} */
function actions(app) {
  const zoom = (/** @type {number} */ f) => app.zoom({ t: f, b: f });
  return {
    ArrowLeft: () => app.pan(-FAR, 0),
    ArrowRight: () => app.pan(FAR, 0),
    ArrowUp: () => app.pan(0, FAR),
    ArrowDown: () => app.pan(0, -FAR),
    "+": () => zoom(CLOSER),
    "=": () => zoom(CLOSER),
    "-": () => zoom(1 / CLOSER),
    0: () => app.fit(),
    "/": () => byId("search").focus(),
    n: () => step(app, 1),
    N: () => step(app, -1),
    p: () => toPeak(app),
    "]": () => neighbour(app, 1),
    "[": () => neighbour(app, -1),
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
    act();
  });
  byId("open-help").addEventListener("click", known["?"]);
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
  const [largest] = app.plans[app.tablePane].aliveAt(facts.peak_tick);
  if (largest === undefined) return;
  const { t0, t1, b0, b1 } = app.view;
  const at = app.axis === "ticks" ? facts.peak_tick + 0.5 : app.plans[app.tablePane].columns.born[largest];
  const span = Math.min(t1 - t0, app.home.t1 / 4);
  app.look({ t0: at - span / 2, t1: at + span / 2, b0, b1 });
  announce(`Peak: ${bytes(facts.peak_bytes)} in tick ${whole(facts.peak_tick)}`);
}

/** Selects the tensor that came after the selected one, or before. @param {App} app @param {number} by */
function neighbour(app, by) {
  const pane = app.selected ? app.selected.pane : 0;
  const { begin } = app.plans[pane].columns;
  const order = Array.from(begin, (_, i) => i).sort((a, b) => begin[a] - begin[b] || a - b);
  if (!order.length) return;
  const at = app.selected ? order.indexOf(app.selected.chunk) : by > 0 ? -1 : 0;
  const spot = { pane, chunk: order[(at + by + order.length) % order.length] };
  app.select(spot);
  app.reveal(spot);
  announce(`Selected ${shown(app.plans[pane].text("name", spot.chunk), 80)}`);
}
