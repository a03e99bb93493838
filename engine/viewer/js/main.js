/** Opens the page: reads the plans in it, draws them, and listens. */

import { App } from "./app.js";
import { bindDetails } from "./details.js";
import { announce, byId } from "./dom.js";
import { fillHeader } from "./header.js";
import { bindKeys } from "./keys.js";
import { bindLegend } from "./legend.js";
import { readPayload } from "./payload.js";
import { Plan } from "./plan.js";
import { plotPanes } from "./plot.js";
import { bindPointer } from "./pointer.js";
import { bindSave, png, svg } from "./save.js";
import { toX, toY } from "./scale.js";
import { Screen } from "./screen.js";
import { bindSearch, search } from "./search.js";
import { bindTable } from "./table.js";
import { shown } from "./text.js";

/** @typedef {import("./app.js").Axis} Axis */

async function open() {
  bindTheme();
  const sources = [...document.querySelectorAll("script.payload")];
  const app = new App((await Promise.all(sources.map(readPayload))).map((payload) => new Plan(payload)));
  fillHeader(app);
  const screen = new Screen(app);
  bindSearch(app);
  bindDetails(app);
  bindTable(app);
  bindLegend(app);
  bindPointer(app);
  bindKeys(app);
  bindSave(app);
  bindButtons(app);
  app.setTheme(isDark());
  byId("theme").addEventListener("click", () => app.setTheme(isDark()));
  bindPrint(app, screen);
  Object.assign(window, { arenaplan: scripting(app, screen) });
  screen.redraw();
  document.body.dataset.ready = "true";
}

/** @param {App} app */
function bindButtons(app) {
  byId("fit").addEventListener("click", () => app.fit());
  byId("box").addEventListener("click", () => {
    app.boxing = !app.boxing;
    byId("box").setAttribute("aria-pressed", String(app.boxing));
    byId("plot").classList.toggle("boxing", app.boxing);
    announce(app.boxing ? "Drag a box to zoom to it" : "Drag to move");
  });
  const axis = /** @type {HTMLSelectElement} */ (byId("axis"));
  byId("axis-choice").hidden = !app.plans.every((plan) => plan.facts.timed);
  axis.value = app.axis;
  axis.addEventListener("change", () => app.setAxis(/** @type {Axis} */ (axis.value)));
}

/** @returns {boolean} */
function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** Light or dark as the system says, until somebody chooses. */
function bindTheme() {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let isChosen = false;
  const use = (/** @type {string} */ theme) => {
    root.dataset.theme = theme;
    byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  };
  use(system.matches ? "dark" : "light");
  system.addEventListener("change", () => {
    if (isChosen) return;
    byId("theme").click();
    isChosen = false;
  });
  byId("theme").addEventListener("click", () => {
    isChosen = true;
    use(root.dataset.theme === "dark" ? "light" : "dark");
  });
}

/** Paper is white. @param {App} app @param {Screen} screen */
function bindPrint(app, screen) {
  const root = document.documentElement;
  let before = "";
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme || "light";
    root.dataset.theme = "light";
    app.setTheme(false);
    screen.redraw();
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = before;
    app.setTheme(isDark());
    screen.redraw();
  });
}

/** What scripts and tests may use. @param {App} app @param {Screen} screen */
function scripting(app, screen) {
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

open().catch((/** @type {unknown} */ error) => {
  byId("failure").textContent = `This page cannot show its plan: ${shown(error instanceof Error ? error.message : String(error), 300)}`;
  byId("failure").hidden = false;
  document.body.dataset.ready = "failed";
});
