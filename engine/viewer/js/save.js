/** What is seen, as a picture: SVG or PNG. */

import { paintCurves } from "./curves.js";
import { byId } from "./dom.js";
import { inks } from "./inks.js";
import { lanesHeight, paintLanes } from "./lanes.js";
import { fitted } from "./marks.js";
import { CanvasPen, SvgPen, measure } from "./pen.js";
import { paintPlot } from "./plot.js";
import { bytes, shown } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./pen.js").Pen} Pen */

const TITLE = 40;
const ROW = 22;
const SHARP = 2;

/** @param {App} app */
export function bindSave(app) {
  byId("save-svg").addEventListener("click", () => offer(new Blob([svg(app)], { type: "image/svg+xml" }), "svg", app));
  byId("save-png").addEventListener("click", () => png(app).then((blob) => offer(blob, "png", app)));
}

/** @param {App} app @returns {string} the content of an SVG file */
export function svg(app) {
  const pen = new SvgPen(ruler());
  const { width, height } = paintAll(pen, app);
  return pen.file(width, height);
}

/** @param {App} app @returns {Promise<Blob>} a PNG file, with two pixels each way for one of the screen's */
export function png(app) {
  const canvas = document.createElement("canvas");
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const { width, height } = size(app);
  canvas.width = width * SHARP;
  canvas.height = height * SHARP;
  paintAll(new CanvasPen(context, SHARP), app);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("this picture is too large for a PNG file"))), "image/png");
  });
}

/** @returns {CanvasRenderingContext2D} which measures texts */
function ruler() {
  return /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
}

/** @param {App} app */
function size(app) {
  const [plot, curves] = [byId("plot"), byId("curves")];
  const legend = ROW * legendRows(app, plot.clientWidth).length + 10;
  const heights = { plot: plot.clientHeight, lanes: lanesHeight(app), curves: curves.clientHeight, legend };
  return { width: plot.clientWidth, height: TITLE + heights.plot + heights.lanes + heights.curves + legend, heights };
}

/** @param {Pen} pen @param {App} app @returns {{width: number, height: number}} */
function paintAll(pen, app) {
  const colours = inks();
  const { width, height, heights } = size(app);
  pen.rect(0, 0, width, height, { fill: colours.panel });
  paintTitle(pen, app, colours, width);
  pen.shifted(TITLE, () => paintPlot(pen, app, colours, width, heights.plot));
  const below = TITLE + heights.plot + heights.lanes;
  if (heights.lanes) pen.shifted(TITLE + heights.plot, () => paintLanes(pen, app, colours, width, heights.lanes));
  pen.shifted(below, () => paintCurves(pen, app, colours, width, heights.curves));
  pen.shifted(below + heights.curves, () => paintLegend(pen, app, colours, width));
  return { width, height };
}

/** @param {Pen} pen @param {App} app @param {import("./inks.js").Inks} colours @param {number} width */
function paintTitle(pen, app, colours, width) {
  const titles = app.plans.map((plan) => `${shown(plan.title, 60)}: ${bytes(plan.need)}`);
  titles.forEach((title, k) => {
    const letters = { fill: colours.text, size: 14, bold: true };
    const room = (width - 76) / titles.length;
    pen.text(76 + k * room, TITLE / 2 + 4, fitted(pen, title, room - 12, letters), letters);
  });
}

/** @param {App} app @param {number} width @returns {{label: string, fill: string, x: number}[][]} */
function legendRows(app, width) {
  const rows = [/** @type {{label: string, fill: string, x: number}[]} */ ([])];
  const context = ruler();
  let x = 76;
  for (const { label, fill, count } of app.colouring.entries) {
    if (!count) continue;
    const wide = 40 + measure(context, label, { fill: "#000" });
    if (x + wide > width && rows[rows.length - 1].length) {
      rows.push([]);
      x = 76;
    }
    rows[rows.length - 1].push({ label, fill, x });
    x += wide;
  }
  return rows;
}

/** @param {Pen} pen @param {App} app @param {import("./inks.js").Inks} colours @param {number} width */
function paintLegend(pen, app, colours, width) {
  legendRows(app, width).forEach((row, k) => {
    for (const { label, fill, x } of row) {
      pen.rect(x, 6 + k * ROW, 12, 12, { fill });
      pen.text(x + 18, 12 + k * ROW, label, { fill: colours.text });
    }
  });
}

/** @param {Blob} blob @param {string} suffix @param {App} app */
export function offer(blob, suffix, app) {
  const link = document.createElement("a");
  const name = shown(app.plans[0].facts.model || "plan", 60).replace(/[^\p{L}\p{N}._-]+/gu, "_");
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
