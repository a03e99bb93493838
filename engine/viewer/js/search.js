/** Tensors that a search finds; query.js has its language. */

import { announce, byId } from "./dom.js";
import { conditions } from "./query.js";
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
  app.listeners.push((change) => {
    if (change === "plans") search(app, app.query);
  });
  byId("search-next").addEventListener("click", () => step(app, 1));
  byId("search-previous").addEventListener("click", () => step(app, -1));
}

/** @param {App} app */
export function clearSearch(app) {
  search(app, "");
  byId("plot").focus();
}

/** @param {App} app @param {string} text */
export function search(app, text) {
  const input = /** @type {HTMLInputElement} */ (byId("search"));
  if (input.value !== text) input.value = text;
  app.query = text;
  input.setAttribute("aria-invalid", "false");
  try {
    find(app, text);
    tell(app, text);
  } catch (error) {
    find(app, "");
    input.setAttribute("aria-invalid", "true");
    byId("search-count").textContent = error instanceof Error ? error.message : String(error);
  }
  app.tell("search");
}

/** @param {App} app @param {string} text */
function find(app, text) {
  app.match = -1;
  app.matches = [];
  app.found = [];
  if (!text.trim()) return;
  const all = conditions(text);
  app.found = app.plans.map((plan) => {
    const tests = all.map((condition) => condition(plan));
    return Uint8Array.from({ length: plan.count }, (_, i) => Number(tests.every((holds) => holds(i))));
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
