/** A few lines beside the pointer. */

import { lastUpTo } from "./curves.js";
import { brief } from "./details.js";
import { byId, make } from "./dom.js";
import { bytes, duration, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */

const AWAY = 16;

/** @param {number} x @param {number} y of the pointer, in the window @param {string[]} lines */
export function showTip(x, y, lines) {
  const tip = byId("tip");
  tip.hidden = !lines.length;
  if (!lines.length) return;
  const [first, ...rest] = lines;
  tip.replaceChildren(make("b", {}, first), ...rest.map((line) => make("span", {}, line)));
  const { offsetWidth: width, offsetHeight: height } = tip;
  const isLeft = x + AWAY + width > window.innerWidth - 8;
  const isUp = y + AWAY + height > window.innerHeight - 8;
  tip.style.left = `${Math.max(8, isLeft ? x - AWAY - width : x + AWAY)}px`;
  tip.style.top = `${Math.max(8, isUp ? y - AWAY - height : y + AWAY)}px`;
}

/** @param {App} app @returns {string[]} of the tensor under the pointer */
export function plotLines(app) {
  return app.hovered ? brief(app, app.hovered) : [];
}

/** @param {App} app @returns {string[]} of the moment under the pointer */
export function curveLines(app) {
  if (!app.pointed) return [];
  const plan = app.plans[app.pointed.pane];
  const curve = plan.curve(app.axis);
  const isTick = app.axis === "ticks";
  const tick = Math.floor(app.pointed.time);
  const [low, high] = [lastUpTo(curve.time, isTick ? tick : app.pointed.time), isTick ? lastUpTo(curve.time, tick + 0.999) : -1];
  if (low < 0) return [];
  const at = Math.max(low, high);
  const title = isTick ? `tick ${whole(tick)}` : duration(app.pointed.time);
  const name = isTick ? plan.operator(tick) : "";
  const idle = curve.footprint[at] - curve.live[at];
  return [`${title}${name ? ` · ${shown(name, 60)}` : ""}`, `alive ${bytes(curve.live[at])}`, `reserved ${bytes(curve.footprint[at])}`, `idle ${bytes(idle)}`];
}
