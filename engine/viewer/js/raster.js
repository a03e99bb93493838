/** Rectangles set pixel by pixel: for pictures of so many that a canvas is slow to fill them one by one. */

/** @typedef {import("./scale.js").Pane} Pane */

const scratch = document.createElement("canvas");

export class Raster {
  /** @param {Pane} area in CSS pixels @param {number} ratio device pixels a CSS pixel */
  constructor(area, ratio) {
    this.ratio = ratio;
    this.left = Math.round(area.left * ratio);
    this.top = Math.round(area.top * ratio);
    this.width = Math.ceil(area.width * ratio) + 1;
    this.height = Math.ceil(area.height * ratio) + 1;
    this.image = new ImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.colour = 0;
  }

  /** @param {string} fill such as "#77aadd" */
  ink(fill) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16));
    this.colour = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height in CSS pixels */
  block(x, y, width, height) {
    const { ratio, pixels } = this;
    const left = Math.max(0, Math.round(x * ratio) - this.left);
    const top = Math.max(0, Math.round(y * ratio) - this.top);
    const right = Math.min(this.width, Math.round((x + width) * ratio) - this.left);
    const bottom = Math.min(this.height, Math.round((y + height) * ratio) - this.top);
    for (let row = top; row < bottom; row++) pixels.fill(this.colour, row * this.width + left, row * this.width + Math.max(left, right));
  }

  /** @param {CanvasRenderingContext2D} context */
  copyTo(context) {
    scratch.width = this.width;
    scratch.height = this.height;
    /** @type {CanvasRenderingContext2D} */ (scratch.getContext("2d")).putImageData(this.image, 0, 0);
    const { ratio } = this;
    context.drawImage(scratch, this.left / ratio, this.top / ratio, this.width / ratio, this.height / ratio);
  }
}
