/** Tensors whose name or operator a regular expression matches. */

import { announce, byId } from "./dom.js";
import { counted, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./app.js").Spot} Spot */

/** @param {App} app */
export function bindSearch(app) {
  const input = /** @type {HTMLInputElement} */ (byId("search"));
  input.addEventListener("input", () => search(app, input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(app, event.shiftKey ? -1 : 1);
    if (event.key === "Escape") clearSearch(app);
  });
  byId("search-next").addEventListener("click", () => step(app, 1));
  byId("search-previous").addEventListener("click", () => step(app, -1));
}

/** @param {App} app */
export function clearSearch(app) {
  /** @type {HTMLInputElement} */ (byId("search")).value = "";
  search(app, "");
  byId("plot").focus();
}

/** @param {App} app @param {string} text */
export function search(app, text) {
  const input = byId("search");
  input.setAttribute("aria-invalid", "false");
  try {
    find(app, text);
    tell(app, text);
  } catch (error) {
    find(app, "");
    input.setAttribute("aria-invalid", "true");
    byId("search-count").textContent = reason(error);
  }
  app.tell("search");
}

/** @param {unknown} error @returns {string} what browsers say, without the expression in it */
function reason(error) {
  const text = error instanceof Error ? error.message : String(error);
  return `no regular expression: ${text.slice(text.lastIndexOf(": ") + 1).trim().toLowerCase()}`;
}

/** @param {App} app @param {string} text */
function find(app, text) {
  app.match = -1;
  app.matches = [];
  app.found = [];
  if (!text) return;
  const expression = new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "u" : "iu");
  app.found = app.plans.map((plan) => {
    const fits = plan.strings.map((string) => expression.test(string));
    const { name, operator } = plan.columns;
    return Uint8Array.from({ length: plan.count }, (_, i) => Number(fits[name[i]] || fits[operator[i]]));
  });
  app.matches = app.found.flatMap((of, pane) => [...places(of)].map((chunk) => ({ pane, chunk })));
  const begin = (/** @type {Spot} */ spot) => app.plans[spot.pane].columns.begin[spot.chunk];
  app.matches.sort((a, b) => a.pane - b.pane || begin(a) - begin(b) || a.chunk - b.chunk);
}

/** @param {Uint8Array} flags @returns {Generator<number>} */
function* places(flags) {
  for (let i = 0; i < flags.length; i++) if (flags[i]) yield i;
}

/** @param {App} app @param {string} text */
function tell(app, text) {
  const { matches, match } = app;
  const at = match < 0 ? "" : `${whole(match + 1)} of `;
  byId("search-count").textContent = text ? `${at}${counted(matches.length, "tensor")}` : "";
}

/** @param {App} app @param {number} by how many matches to go on */
export function step(app, by) {
  const { matches } = app;
  if (!matches.length) return;
  app.match = app.match < 0 && by < 0 ? matches.length - 1 : (app.match + by + matches.length) % matches.length;
  const spot = matches[app.match];
  tell(app, "found");
  app.select(spot);
  app.reveal(spot);
  announce(`${whole(app.match + 1)} of ${whole(matches.length)}: ${shown(app.plans[spot.pane].text("name", spot.chunk), 80)}`);
}
