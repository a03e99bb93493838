/** What draws: on a canvas, or into the text of an SVG file. Both know the same few strokes; pixels are CSS pixels. */

import { Raster } from "./raster.js";
import { xml } from "./text.js";

const FEW = 4000;

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/** @typedef {{fill?: string, stroke?: string, width?: number, dash?: number[], alpha?: number}} Look */
/** @typedef {{fill: string, size?: number, align?: "left" | "center" | "right", bold?: boolean, turned?: boolean, halo?: string}} Letters turned: read upwards; halo: a colour around them */
/** @typedef {CanvasPen | SvgPen} Pen */

export class CanvasPen {
  /** @param {CanvasRenderingContext2D} context @param {number} ratio device pixels a CSS pixel */
  constructor(context, ratio) {
    this.context = context;
    /** @type {Raster | null} */
    this.raster = null;
    this.ratio = ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /**
   * Filled rectangles on whole device pixels, by `ink` and `block`. Many of them are set pixel by pixel, which is
   * several times as fast as `fillRect`.
   * @param {import("./scale.js").Pane} area @param {number} count of rectangles @param {() => void} draw
   */
  blocks(area, count, draw) {
    this.raster = count > FEW ? new Raster(area, this.ratio) : null;
    draw();
    if (this.raster) this.raster.copyTo(this.context);
    this.raster = null;
  }

  /** @param {string} fill that the next blocks have */
  ink(fill) {
    if (this.raster) this.raster.ink(fill);
    else this.context.fillStyle = fill;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  block(x, y, width, height) {
    if (this.raster) this.raster.block(x, y, width, height);
    else this.context.fillRect(x, y, width, height);
  }

  /** @param {Look} look */
  rect(x, y, width, height, look) {
    this.begin(look);
    if (look.fill) this.context.fillRect(x, y, width, height);
    if (look.stroke) this.context.strokeRect(x, y, width, height);
    this.context.restore();
  }

  /** @param {number[]} points x, y, x, y ... @param {Look} look */
  path(points, look) {
    this.begin(look);
    this.context.beginPath();
    for (let i = 0; i < points.length; i += 2) this.context.lineTo(points[i], points[i + 1]);
    if (look.fill) this.context.fill();
    if (look.stroke) this.context.stroke();
    this.context.restore();
  }

  /** @param {Look} look */
  dot(x, y, radius, look) {
    this.begin(look);
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.fill();
    if (look.stroke) this.context.stroke();
    this.context.restore();
  }

  /** @param {string} content @param {Letters} letters */
  text(x, y, content, letters) {
    const context = this.context;
    context.font = font(letters);
    context.fillStyle = letters.fill;
    context.textAlign = letters.align || "left";
    context.textBaseline = "middle";
    if (letters.turned) {
      context.save();
      context.translate(x, y);
      context.rotate(-Math.PI / 2);
      context.fillText(content, 0, 0);
      context.restore();
      return;
    }
    if (letters.halo) {
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeStyle = letters.halo;
      context.strokeText(content, x, y);
    }
    context.fillText(content, x, y);
  }

  /** @param {string} content @param {Letters} letters @returns {number} its width */
  measure(content, letters) {
    return measure(this.context, content, letters);
  }

  /** What `draw` draws stands so much lower. @param {number} down @param {() => void} draw */
  shifted(down, draw) {
    this.context.save();
    this.context.translate(0, down);
    draw();
    this.context.restore();
  }

  /** What `draw` draws is seen within the rectangle only. @param {() => void} draw */
  within(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  /** @param {Look} look */
  begin(look) {
    const context = this.context;
    context.save();
    context.globalAlpha = look.alpha ?? 1;
    context.fillStyle = look.fill || "#000";
    context.strokeStyle = look.stroke || "#000";
    context.lineWidth = look.width || 1;
    context.setLineDash(look.dash || []);
  }
}

export class SvgPen {
  /** @param {CanvasRenderingContext2D} context that measures texts */
  constructor(context) {
    this.ratio = 2;
    this.context = context;
    this.fill = "#000";
    this.clips = 0;
    /** @type {string[]} */
    this.parts = [];
  }

  blocks(_area, _count, draw) {
    draw();
  }

  ink(fill) {
    this.fill = fill;
  }

  block(x, y, width, height) {
    this.parts.push(`<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}" fill="${this.fill}"/>`);
  }

  rect(x, y, width, height, look) {
    this.parts.push(`<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}"${style(look)}/>`);
  }

  path(points, look) {
    const moves = [];
    for (let i = 0; i < points.length; i += 2) moves.push(`${i ? "L" : "M"}${r(points[i])} ${r(points[i + 1])}`);
    this.parts.push(`<path d="${moves.join("")}"${style(look)}/>`);
  }

  dot(x, y, radius, look) {
    this.parts.push(`<circle cx="${r(x)}" cy="${r(y)}" r="${radius}"${style(look)}/>`);
  }

  text(x, y, content, letters) {
    const anchor = { left: "start", center: "middle", right: "end" }[letters.align || "left"];
    const weight = letters.bold ? ' font-weight="600"' : "";
    const size = letters.size || 11;
    const turn = letters.turned ? ` transform="rotate(-90 ${r(x)} ${r(y)})"` : "";
    const halo = letters.halo ? ` stroke="${letters.halo}" stroke-width="4" paint-order="stroke" stroke-linejoin="round"` : "";
    const place = `x="${r(x)}" y="${r(y + size * 0.35)}" text-anchor="${anchor}"${turn}`;
    this.parts.push(`<text ${place} font-size="${size}"${weight}${halo} fill="${letters.fill}">${xml(content)}</text>`);
  }

  measure(content, letters) {
    return measure(this.context, content, letters);
  }

  shifted(down, draw) {
    this.parts.push(`<g transform="translate(0 ${down})">`);
    draw();
    this.parts.push("</g>");
  }

  within(x, y, width, height, draw) {
    const id = `clip${this.clips++}`;
    const box = `<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}"/>`;
    this.parts.push(`<clipPath id="${id}">${box}</clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  /** @param {number} width @param {number} height @returns {string} the whole file */
  file(width, height) {
    const size = `width="${r(width)}" height="${r(height)}" viewBox="0 0 ${r(width)} ${r(height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${xml(FONT)}">${this.parts.join("\n")}</svg>\n`;
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} content @param {Letters} letters @returns {number} its width */
export function measure(context, content, letters) {
  context.font = font(letters);
  return context.measureText(content).width;
}

/** @param {Letters} letters @returns {string} */
function font(letters) {
  return `${letters.bold ? "600 " : ""}${letters.size || 11}px ${FONT}`;
}

/** @param {number} n @returns {number} to a hundredth of a pixel */
function r(n) {
  return Math.round(n * 100) / 100;
}

/** @param {Look} look @returns {string} */
function style(look) {
  const dash = look.dash ? ` stroke-dasharray="${look.dash.join(" ")}"` : "";
  const stroke = look.stroke ? ` stroke="${look.stroke}" stroke-width="${look.width || 1}"${dash}` : "";
  return ` fill="${look.fill || "none"}"${stroke}${look.alpha === undefined ? "" : ` opacity="${look.alpha}"`}`;
}
