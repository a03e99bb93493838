/** Opens the page: reads the plans in it, draws them, and listens. */

import { App } from "./app.js";
import { bindDetails } from "./details.js";
import { announce, byId } from "./dom.js";
import { fillHeader } from "./header.js";
import { bindKeys } from "./keys.js";
import { bindLegend } from "./legend.js";
import { bindLink } from "./link.js";
import { readPayload } from "./payload.js";
import { bindPointer } from "./pointer.js";
import { bindSave } from "./save.js";
import { Screen } from "./screen.js";
import { scripting } from "./scripting.js";
import { bindSearch } from "./search.js";
import { bindTable } from "./table.js";
import { shown } from "./text.js";
import { hasWeights } from "./weights.js";

/** @typedef {import("./app.js").Axis} Axis */

async function open() {
  bindTheme();
  const sources = [...document.querySelectorAll("script.payload")];
  const app = new App(await Promise.all(sources.map(readPayload)));
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
  bindLink(app);
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
  byId("weights").hidden = !app.payloads.some(hasWeights);
  byId("weights").addEventListener("click", () => app.setWeights(!app.showsWeights));
  app.listeners.push((change) => {
    if (change === "plans") byId("weights").setAttribute("aria-pressed", String(app.showsWeights));
  });
  const axis = /** @type {HTMLSelectElement} */ (byId("axis"));
  byId("axis-choice").hidden = !app.isTimed;
  app.listeners.push((change) => {
    if (change === "axis") axis.value = app.axis;
  });
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
    app.hover(null, null);
    app.setTheme(false);
    screen.redraw();
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = before;
    app.setTheme(isDark());
    screen.redraw();
  });
}

open().catch((/** @type {unknown} */ error) => {
  byId("failure").textContent = `This page cannot show its plan: ${shown(error instanceof Error ? error.message : String(error), 300)}`;
  byId("failure").hidden = false;
  document.body.dataset.ready = "failed";
});
