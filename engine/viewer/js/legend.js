/** What colours mean. A click shows the tensors of one entry alone. */

import { MODES } from "./colours.js";
import { announce, byId, make } from "./dom.js";
import { bytes, counted, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */

/** Letters of a label up to which two entries stand beside each other. */
const SHORT = 12;

/** @param {App} app */
export function bindLegend(app) {
  const choice = /** @type {HTMLSelectElement} */ (byId("colour"));
  for (const [mode, title] of Object.entries(MODES)) if (isWorth(app, mode)) choice.append(make("option", { value: mode }, title));
  choice.addEventListener("change", () => app.setMode(/** @type {keyof typeof MODES} */ (choice.value)));
  app.listeners.push((change) => {
    if (["colour", "theme", "plans"].includes(change)) fill(app);
  });
  fill(app);
}

/** @param {App} app @param {string} mode @returns {boolean} whether it tells tensors apart */
function isWorth(app, mode) {
  if (mode !== "layer" && mode !== "stage" && mode !== "thread") return true;
  return app.plans.some((plan) => plan.columns[mode].some((value) => value !== plan.columns[mode][0]));
}

/** @param {import("./colours.js").Entry} entry @returns {string} */
function tallies({ counts }) {
  return counts.map((count, k) => `${counted(count, "tensor")}${counts.length > 1 ? ` in ${"AB"[k]}` : ""}`).join(", ");
}

/** @param {App} app */
function fill(app) {
  const used = app.colouring.entries.map((entry, k) => ({ entry, k })).filter(({ entry }) => entry.count);
  const items = used.map(({ entry, k }) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.backgroundColor = entry.fill;
    const press = make("button", { type: "button", "aria-pressed": String(k === app.isolated), title: `${entry.label}: ${tallies(entry)}, ${bytes(entry.bytes)} in all` });
    press.append(swatch, make("span", { class: "name" }, entry.label), " ", make("span", { class: "tally" }, entry.counts.map(whole).join(" | ")));
    press.addEventListener("click", () => {
      app.isolate(k);
      announce(app.isolated < 0 ? "All tensors" : `Only ${entry.label}`);
      /** @type {HTMLElement | null} */ (byId("legend").querySelector(`li:nth-child(${used.findIndex((u) => u.k === k) + 1}) button`))?.focus();
    });
    return make("li", {}, press);
  });
  byId("legend").classList.toggle("long", used.some(({ entry }) => entry.label.length > SHORT));
  byId("legend").replaceChildren(...items);
  /** @type {HTMLSelectElement} */ (byId("colour")).value = app.mode;
}
