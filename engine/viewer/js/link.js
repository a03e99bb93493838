/** What is seen, as the part of the page's address behind "#": who opens that address sees the same. */

import { byId } from "./dom.js";
import { search } from "./search.js";
import { hasWeights } from "./weights.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./app.js").Mode} Mode */

const LATER = 200;

/** @param {App} app */
export function bindLink(app) {
  if (location.hash.length > 1) restore(app, location.hash);
  let waiting = 0;
  app.listeners.push((change) => {
    if (change === "hover" || change === "theme") return;
    clearTimeout(waiting);
    waiting = window.setTimeout(() => history.replaceState(null, "", `#${link(app)}`), LATER);
  });
  window.addEventListener("hashchange", () => restore(app, location.hash));
}

/** @param {App} app @returns {string} */
export function link(app) {
  const { view, home, selected, query, isolated, mode, tick } = app;
  const found = new URLSearchParams();
  if (query) found.set("search", query);
  if (mode !== "schema") found.set("colour", mode);
  if (isolated >= 0) found.set("only", String(isolated));
  if (app.showsWeights) found.set("weights", "1");
  if (app.axis !== app.usualAxis) found.set("time", app.axis);
  if (Object.keys(home).some((side) => view[side] !== home[side])) found.set("view", [view.t0, view.t1, view.b0, view.b1].map(short).join(","));
  if (selected) found.set("tensor", `${"AB"[selected.pane]}${selected.chunk}`);
  if (tick >= 0 || app.tablePane) found.set("tick", `${"AB"[app.tablePane]}${tick >= 0 ? tick : ""}`);
  return found.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** @param {number} n @returns {string} as many digits as a pixel needs */
function short(n) {
  return String(Number(n.toPrecision(7)));
}

/** Shows what an address says; what it does not say, or says wrongly, is as when the page is opened. @param {App} app @param {string} hash */
export function restore(app, hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const mode = said.get("colour") || "";
  const time = said.get("time") || "";
  const canTell = /** @type {HTMLSelectElement} */ (byId("colour")).querySelector(`option[value="${CSS.escape(mode)}"]`);
  if (app.showsWeights !== said.has("weights") && app.payloads.some(hasWeights)) app.setWeights(said.has("weights"));
  app.setAxis(time === "ticks" || (time === "seconds" && app.isTimed) ? time : app.usualAxis);
  app.setMode(canTell ? /** @type {Mode} */ (mode) : "schema");
  const only = whole(said.get("only"), app.colouring.entries.length);
  if (only >= 0) app.isolate(only);
  search(app, said.get("search") || "");
  const [t0, t1, b0, b1] = (said.get("view") || "").split(",").map(Number);
  if (t1 - t0 >= app.least.t && b1 - b0 >= app.least.b) app.look({ t0, t1, b0, b1 });
  const [pane, chunk] = spot(app, said.get("tensor"), (plan) => plan.count);
  app.select(chunk < 0 ? null : { pane, chunk });
  app.showTick(...spot(app, said.get("tick"), (plan) => plan.facts.ticks));
}

/** @param {string | null} text @param {number} below @returns {number} or -1 */
function whole(text, below) {
  return text && /^\d{1,15}$/.test(text) && Number(text) < below ? Number(text) : -1;
}

/** @param {App} app @param {string | null} text such as "B12" @param {(plan: import("./plan.js").Plan) => number} count @returns {[number, number]} a plan and a number, or -1 */
function spot(app, text, count) {
  const [, letter, number] = /^([AB])(\d*)$/.exec(text || "") || [];
  const pane = "AB".indexOf(letter || "-");
  return pane >= 0 && pane < app.plans.length ? [pane, whole(number, count(app.plans[pane]))] : [0, -1];
}
