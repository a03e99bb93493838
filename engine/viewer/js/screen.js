/** The three canvases: a picture that is drawn seldom, and marks upon it that follow the pointer. */

import { curvesHeight, paintCurveMarks, paintCurves } from "./curves.js";
import { byId } from "./dom.js";
import { inks } from "./inks.js";
import { lanePanes, lanesHeight, paintLanes } from "./lanes.js";
import { hairline } from "./marks.js";
import { paintBrush, paintOverview } from "./overview.js";
import { CanvasPen } from "./pen.js";
import { paintMarks, paintPlot } from "./plot.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {(pen: CanvasPen, app: App, inks: import("./inks.js").Inks, width: number, height: number) => void} Painter */

/** @typedef {"plot" | "lanes" | "curves" | "overview"} Name */
/** @type {Name[]} */
const NAMES = ["plot", "lanes", "curves", "overview"];

/** @type {Painter} */
function paintLaneMarks(pen, app, colours, width, height) {
  for (const pane of lanePanes(app, width, height)) hairline(pen, app, pane, colours);
}

class Layered {
  /** @param {string} id @param {Painter} picture @param {Painter} marks */
  constructor(id, picture, marks) {
    this.canvas = /** @type {HTMLCanvasElement} */ (byId(id));
    this.front = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.back = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    this.picture = picture;
    this.marks = marks;
  }

  /** @param {App} app @param {boolean} whole or only the marks */
  draw(app, whole) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    const colours = inks();
    if (whole || fit(this.front.canvas, width, height, ratio)) {
      fit(this.front.canvas, width, height, ratio);
      fit(this.back.canvas, width, height, ratio);
      const pen = new CanvasPen(this.back, ratio);
      this.back.clearRect(0, 0, width, height);
      this.picture(pen, app, colours, width, height);
    }
    this.front.setTransform(1, 0, 0, 1, 0, 0);
    this.front.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.front.drawImage(this.back.canvas, 0, 0);
    this.marks(new CanvasPen(this.front, ratio), app, colours, width, height);
  }
}

/** @param {HTMLCanvasElement} canvas @returns {boolean} whether its size had to change */
function fit(canvas, width, height, ratio) {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width === w && canvas.height === h) return false;
  canvas.width = w;
  canvas.height = h;
  return true;
}

export class Screen {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.plot = new Layered("plot", paintPlot, paintMarks);
    this.lanes = new Layered("lanes", paintLanes, paintLaneMarks);
    this.curves = new Layered("curves", paintCurves, paintCurveMarks);
    this.overview = new Layered("overview", paintOverview, paintBrush);
    /** @type {Set<Name>} */
    this.stale = new Set(NAMES);
    this.waiting = 0;
    app.listeners.push((change) => this.changed(change));
    new ResizeObserver(() => this.later(...NAMES)).observe(this.plot.canvas);
  }

  /** @param {import("./app.js").Change} change */
  changed(change) {
    if (change === "view") this.later("plot", "lanes", "curves");
    else if (["colour", "search", "theme", "axis", "plans"].includes(change)) this.later(...NAMES);
    else this.later();
  }

  /** Draws before the next frame. @param {...Name} names of pictures that are not true any more */
  later(...names) {
    for (const name of names) this.stale.add(name);
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = 0;
    this.measure();
    for (const name of NAMES) this[name].draw(this.app, this.stale.has(name));
    this.stale.clear();
  }

  /** Operators have as many lanes as threads, and the key of the curves as many rows as it needs. */
  measure() {
    const height = lanesHeight(this.app);
    this.lanes.canvas.hidden = !height;
    this.lanes.canvas.style.height = `${height}px`;
    this.curves.canvas.style.height = `${curvesHeight(this.app, this.curves.canvas.clientWidth)}px`;
  }

  /** Draws everything at once. @returns {number} how long that took, in milliseconds */
  redraw() {
    this.later(...NAMES);
    cancelAnimationFrame(this.waiting);
    const begin = performance.now();
    this.draw();
    return performance.now() - begin;
  }
}
