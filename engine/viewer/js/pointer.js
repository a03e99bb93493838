/** Mouse, wheel and fingers upon the pictures. */

import { curvePanes } from "./curves.js";
import { lanePanes, nestedLines, operatorAt, operatorLines } from "./lanes.js";
import { overviewPanes } from "./overview.js";
import { plotPanes } from "./plot.js";
import { paneAt, toAddress, toTime } from "./scale.js";
import { curveLines, plotLines, showTip } from "./tip.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./scale.js").Pane} Pane */
/** @typedef {{canvas: HTMLCanvasElement, panes: (app: App, width: number, height: number) => Pane[], hasAddresses: boolean, lines: (app: App, pane: Pane, time: number, y: number) => string[], tick: (app: App, pane: Pane, time: number, y: number) => number}} Surface */
/** @typedef {{x: number, y: number}} Point */

const CLICK = 4;
const NEAR = 3;
const WHEEL = 0.0016;
const LINE = 30;
/** Where what is known of a tensor lies over the page: the picture moves up, so that both are seen. */
const NARROW = window.matchMedia("(max-width: 760px)");

/** @param {App} app */
export function bindPointer(app) {
  const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ (document.getElementById(id));
  new Hand(app, { canvas: canvas("plot"), panes: plotPanes, hasAddresses: true, lines: plotLines, tick: () => -1 });
  new Hand(app, { canvas: canvas("lanes"), panes: lanePanes, hasAddresses: false, lines: laneLines, tick: laneTick });
  new Hand(app, { canvas: canvas("curves"), panes: curvePanes, hasAddresses: false, lines: curveLines, tick: curveTick });
  bindOverview(app, canvas("overview"));
}

/** @param {App} app @param {Pane} pane @param {number} time @param {number} y @returns {string[]} */
function laneLines(app, pane, time, y) {
  return [...nestedLines(app, pane.index, time, y), ...operatorLines(app, pane.index, operatorAt(app, pane.index, time, y))];
}

/** @param {App} app @param {Pane} pane @param {number} time @param {number} y @returns {number} */
function laneTick(app, pane, time, y) {
  const found = operatorAt(app, pane.index, time, y);
  return found < 0 ? -1 : app.plans[pane.index].columns.op_tick[found];
}

/** @param {App} app @param {Pane} pane @param {number} time @returns {number} */
function curveTick(app, pane, time) {
  return app.axis === "ticks" ? Math.max(0, Math.floor(time)) : app.plans[pane.index].tickAt(time);
}

/** @param {HTMLCanvasElement} canvas @param {MouseEvent} event @returns {Point} in its CSS pixels */
function pointIn(canvas, event) {
  const { left, top } = canvas.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

class Hand {
  /** @param {App} app @param {Surface} surface */
  constructor(app, surface) {
    this.app = app;
    this.surface = surface;
    /** @type {Map<number, Point>} fingers, or the mouse with its button down */
    this.down = new Map();
    this.moved = 0;
    /** @type {Point | null} where a box began */
    this.corner = null;
    const { canvas } = surface;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.lift(event));
    canvas.addEventListener("pointercancel", (event) => void this.down.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", () => app.fit());
  }

  /** @param {Point} point @returns {{pane: Pane, time: number, address: number}} */
  at({ x, y }) {
    const { canvas, panes } = this.surface;
    const pane = paneAt(panes(this.app, canvas.clientWidth, canvas.clientHeight), x);
    return { pane, time: toTime(pane, this.app.view, x), address: toAddress(pane, this.app.view, y) };
  }

  /** Both axes; with Shift time alone, with Alt addresses alone. @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const { pane, time, address } = this.at(pointIn(this.surface.canvas, event));
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey) {
      this.app.pan(event.deltaX / pane.width, 0);
      return;
    }
    const delta = (event.deltaY || event.deltaX) * (event.deltaMode ? LINE : 1) * (event.ctrlKey ? 6 : 1);
    const factor = Math.exp(Math.max(-400, Math.min(400, delta)) * WHEEL);
    const isTime = !event.altKey;
    const isAddress = this.surface.hasAddresses && !event.shiftKey;
    this.app.zoom({ t: isTime ? factor : 1, b: isAddress ? factor : 1 }, { t: time, b: address });
  }

  /** @param {PointerEvent} event */
  press(event) {
    const point = pointIn(this.surface.canvas, event);
    this.surface.canvas.setPointerCapture(event.pointerId);
    if (!this.down.size) this.moved = 0;
    this.down.set(event.pointerId, point);
    this.corner = (event.shiftKey || this.app.boxing) && this.surface.hasAddresses && this.down.size === 1 ? point : null;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const point = pointIn(this.surface.canvas, event);
    const last = this.down.get(event.pointerId);
    if (!last) {
      this.hover(point, event);
      return;
    }
    this.moved += Math.abs(point.x - last.x) + Math.abs(point.y - last.y);
    if (this.down.size === 2) this.pinch(event.pointerId, last, point);
    else if (this.corner) this.drawBox(point);
    else if (this.moved > CLICK) this.drag(last, point);
    this.down.set(event.pointerId, point);
  }

  /** @param {Point} last @param {Point} point */
  drag(last, point) {
    const { pane } = this.at(last);
    showTip(0, 0, []);
    this.surface.canvas.classList.add("dragged");
    this.app.pan((last.x - point.x) / pane.width, this.surface.hasAddresses ? (point.y - last.y) / pane.height : 0);
  }

  /** Two fingers: each axis by how far they are apart in it. @param {number} id @param {Point} last @param {Point} point */
  pinch(id, last, point) {
    const still = [...this.down].find(([other]) => other !== id)?.[1];
    if (!still) return;
    const share = (/** @type {"x" | "y"} */ axis) => {
      const [before, after] = [Math.abs(last[axis] - still[axis]), Math.abs(point[axis] - still[axis])];
      return before > 24 && after > 24 ? before / after : 1;
    };
    const { time, address } = this.at(still);
    this.app.zoom({ t: share("x"), b: this.surface.hasAddresses ? share("y") : 1 }, { t: time, b: address });
  }

  /** @param {Point} point */
  drawBox(point) {
    const corner = /** @type {Point} */ (this.corner);
    this.app.box = { x0: corner.x, y0: corner.y, x1: point.x, y1: point.y };
    this.app.tell("hover");
  }

  /** @param {PointerEvent} event */
  lift(event) {
    const point = pointIn(this.surface.canvas, event);
    const { corner } = this;
    if (!this.down.delete(event.pointerId) || this.down.size) return;
    this.corner = null;
    this.app.box = null;
    this.surface.canvas.classList.remove("dragged");
    if (corner && this.moved > CLICK) this.zoomTo(corner, point);
    else if (this.moved <= CLICK) this.click(point);
  }

  /** @param {Point} a @param {Point} b */
  zoomTo(a, b) {
    const { pane } = this.at(a);
    const { view, least } = this.app;
    const inside = (/** @type {number} */ x) => Math.max(pane.left, Math.min(pane.left + pane.width, x));
    const [t0, t1] = [inside(a.x), inside(b.x)].map((x) => toTime(pane, view, x)).sort((p, q) => p - q);
    const [b0, b1] = [a.y, b.y].map((y) => toAddress(pane, view, y)).sort((p, q) => p - q);
    this.app.look({ t0, t1: Math.max(t1, t0 + least.t), b0, b1: Math.max(b1, b0 + least.b) });
  }

  /** @param {Point} point */
  click(point) {
    const { pane, time, address } = this.at(point);
    if (this.surface.hasAddresses) {
      this.app.select(this.spot(pane, time, address));
      if (this.app.selected) showTip(0, 0, []); // the panel says more, and the tip might lie over it
      if (this.app.selected && NARROW.matches) this.surface.canvas.scrollIntoView();
    } else {
      const tick = this.surface.tick(this.app, pane, time, point.y);
      if (tick >= 0) this.app.showTick(pane.index, tick);
    }
  }

  /** @param {Pane} pane @param {number} time @param {number} address */
  spot(pane, time, address) {
    const { t0, t1, b0, b1 } = this.app.view;
    return this.app.spotAt(pane.index, time, address, (NEAR * (t1 - t0)) / pane.width, (NEAR * (b1 - b0)) / pane.height);
  }

  /** @param {Point} point @param {PointerEvent} event */
  hover(point, event) {
    const { pane, time, address } = this.at(point);
    const isInside = point.x >= pane.left && point.x <= pane.left + pane.width;
    const spot = isInside && this.surface.hasAddresses ? this.spot(pane, time, address) : null;
    this.app.hover(spot, isInside ? { time, x: point.x, pane: pane.index } : null);
    showTip(event.clientX, event.clientY, isInside ? this.surface.lines(this.app, pane, time, point.y) : []);
    this.surface.canvas.classList.toggle("pointing", Boolean(spot));
  }

  leave() {
    this.app.hover(null, null);
    showTip(0, 0, []);
  }
}

/** The part that is seen follows the pointer. @param {App} app @param {HTMLCanvasElement} canvas */
function bindOverview(app, canvas) {
  const centre = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons) return;
    const point = pointIn(canvas, event);
    const pane = paneAt(overviewPanes(app, canvas.clientWidth, canvas.clientHeight), point.x);
    const [time, address] = [toTime(pane, app.home, point.x), toAddress(pane, app.home, point.y)];
    const { t0, t1, b0, b1 } = app.view;
    const [dt, db] = [(t1 - t0) / 2, (b1 - b0) / 2];
    app.look({ t0: time - dt, t1: time + dt, b0: address - db, b1: address + db });
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    centre(event);
  });
  canvas.addEventListener("pointermove", centre);
  canvas.addEventListener("dblclick", () => app.fit());
}
