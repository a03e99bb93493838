/** What the page shows at the moment; whoever changes it calls one of these methods, and the page is drawn again. */

import { colouring } from "./colours.js";
import { Grid } from "./grid.js";
import { arranged } from "./memories.js";
import { Plan } from "./plan.js";
import { kept, zoomed } from "./scale.js";

/** @typedef {import("./payload.js").Payload} Payload */
/** @typedef {import("./plan.js").Axis} Axis */
/** @typedef {import("./scale.js").Window} Window */
/** @typedef {keyof typeof import("./colours.js").MODES} Mode */
/** @typedef {{pane: number, chunk: number}} Spot a chunk of a plan */
/** @typedef {"view" | "hover" | "selection" | "colour" | "search" | "theme" | "axis" | "table" | "plans"} Change */

const MARGIN = 1.03;

export class App {
  /** @param {Payload[]} payloads one, or two side by side */
  constructor(payloads) {
    this.payloads = payloads;
    this.plans = payloads.map((payload) => new Plan(arranged(payload, false)));
    this.showsWeights = false;
    /** @type {Axis} */
    this.axis = this.usualAxis;
    this.home = this.whole();
    /** @type {Window} */
    this.view = { ...this.home };
    /** @type {Mode} */
    this.mode = "schema";
    this.isolated = -1;
    /** What is searched for. */
    this.query = "";
    /** @type {Uint8Array[]} by plan: 1 for each chunk that the search found; empty without a search */
    this.found = [];
    /** @type {Spot[]} in time */
    this.matches = [];
    this.match = -1;
    /** @type {Spot | null} */
    this.selected = null;
    /** @type {Spot | null} */
    this.hovered = null;
    /** @type {{time: number, x: number, pane: number} | null} where the pointer is */
    this.pointed = null;
    /** @type {{x0: number, y0: number, x1: number, y1: number} | null} the box that is being drawn, in pixels */
    this.box = null;
    this.boxing = false;
    this.tick = -1;
    this.tablePane = 0;
    /** @type {((change: Change) => void)[]} */
    this.listeners = [];
    /** @type {Map<string, Grid>} */
    this.grids = new Map();
    this.namesakes = this.named();
    this.isDark = false;
    /** @type {Map<string, any>} what holds until colours, search, theme or axis change */
    this.made = new Map();
    this.colouring = colouring(this.plans, this.mode, this.isDark);
  }

  /** @returns {Map<string, number>[]} by plan, the chunk of each name */
  named() {
    return this.plans.map((plan) => new Map(Array.from({ length: plan.count }, (_, i) => [plan.text("name", i), i])));
  }

  /** @param {boolean} on whether weights are seen, too */
  setWeights(on) {
    this.showsWeights = on;
    this.plans = this.payloads.map((payload) => new Plan(arranged(payload, on)));
    this.grids.clear();
    this.namesakes = this.named();
    this.hovered = null;
    this.isolated = -1;
    if (this.selected && this.selected.chunk >= this.plans[this.selected.pane].count) this.selected = null;
    this.home = this.whole();
    this.view = { ...this.home };
    this.recolour();
    this.tell("plans");
  }

  /** @returns {boolean} whether there are seconds */
  get isTimed() {
    return this.plans.every((plan) => plan.facts.timed);
  }

  /** @returns {Axis} with which the page opens */
  get usualAxis() {
    return this.isTimed ? "seconds" : "ticks";
  }

  /** @returns {Window} in which everything is seen */
  whole() {
    const ends = Math.max(...this.plans.map((plan) => plan.ends(this.axis)));
    const top = Math.max(...this.plans.map((plan) => plan.top(this.axis)));
    const band = Math.max(...this.plans.map((plan) => plan.band));
    return { t0: 0, t1: ends || 1, b0: -band * MARGIN, b1: (top || 1) * MARGIN };
  }

  /** @returns {number} the bytes that the curves must have room for */
  get most() {
    return (Math.max(...this.plans.map((plan) => plan.most(this.axis))) || 1) * MARGIN;
  }

  /** @param {Change} change */
  tell(change) {
    if (["colour", "search", "theme", "axis", "plans"].includes(change)) this.made.clear();
    for (const listener of this.listeners) listener(change);
  }

  /** @template T @param {string} what @param {() => T} make @returns {T} what was made before, if it still holds */
  once(what, make) {
    if (!this.made.has(what)) this.made.set(what, make());
    return this.made.get(what);
  }

  /** @param {Window} view */
  look(view) {
    this.view = kept(view, this.home);
    this.tell("view");
  }

  /** @returns {{t: number, b: number}} the least that may be seen at once: half a tick, or a nanosecond; 16 bytes */
  get least() {
    return { t: this.axis === "ticks" ? 0.5 : 1e-9, b: 16 };
  }

  /** @param {{t: number, b: number}} factor @param {{t: number, b: number}} [at] the middle, if it is left out */
  zoom(factor, at) {
    const { t0, t1, b0, b1 } = this.view;
    this.view = zoomed(this.view, this.home, at || { t: (t0 + t1) / 2, b: (b0 + b1) / 2 }, factor, this.least);
    this.tell("view");
  }

  /** Moves what is seen. @param {number} right and @param {number} up as shares of what is seen */
  pan(right, up) {
    const { t0, t1, b0, b1 } = this.view;
    const [dt, db] = [right * (t1 - t0), up * (b1 - b0)];
    this.look({ t0: t0 + dt, t1: t1 + dt, b0: b0 + db, b1: b1 + db });
  }

  fit() {
    this.look(this.home);
  }

  /** @param {Axis} axis */
  setAxis(axis) {
    this.axis = axis;
    this.home = this.whole();
    this.view = { ...this.home };
    this.tell("axis");
  }

  /** @param {Mode} mode */
  setMode(mode) {
    this.mode = mode;
    this.isolated = -1;
    this.recolour();
    this.tell("colour");
  }

  recolour() {
    this.colouring = colouring(this.plans, this.mode, this.isDark);
  }

  /** @param {boolean} isDark the ground */
  setTheme(isDark) {
    this.isDark = isDark;
    if (this.mode === "size") this.recolour();
    this.tell("theme");
  }

  /** @param {number} entry of the legend, or -1 for all */
  isolate(entry) {
    this.isolated = entry === this.isolated ? -1 : entry;
    this.tell("colour");
  }

  /** @param {number} pane @param {number} chunk @returns {boolean} whether it is shown in full colour */
  isLit(pane, chunk) {
    const found = this.found[pane];
    if (found && !found[chunk]) return false;
    return this.isolated < 0 || this.colouring.classes[pane][chunk] === this.isolated;
  }

  /** @param {Spot | null} spot */
  select(spot) {
    this.selected = spot;
    this.tell("selection");
  }

  /** @param {Spot | null} spot @param {{time: number, x: number, pane: number} | null} pointed */
  hover(spot, pointed) {
    this.hovered = spot;
    this.pointed = pointed;
    this.tell("hover");
  }

  /** @param {number} pane @param {number} time @param {number} address @param {number} dt @param {number} db @returns {Spot | null} */
  spotAt(pane, time, address, dt, db) {
    const pieces = this.plans[pane].pieces(this.axis);
    const piece = this.grid(pane).near(time, address, dt, db);
    return piece < 0 ? null : { pane, chunk: pieces.chunk[piece] };
  }

  /** @param {number} pane @returns {Grid} */
  grid(pane) {
    const key = `${pane} ${this.axis}`;
    const { t1, b0, b1 } = this.home;
    const plan = this.plans[pane];
    const grid = this.grids.get(key) || new Grid(plan.pieces(this.axis), plan.columns.size, t1, b1, b0);
    this.grids.set(key, grid);
    return grid;
  }

  /** @param {Spot} spot @returns {Spot[]} tensors of that name in the other plans */
  twins(spot) {
    const name = this.plans[spot.pane].text("name", spot.chunk);
    return this.namesakes.flatMap((chunks, pane) => {
      const chunk = pane === spot.pane ? undefined : chunks.get(name);
      return chunk === undefined ? [] : [{ pane, chunk }];
    });
  }

  /** Brings a chunk into sight, closer only where it is too small to be seen. @param {Spot} spot */
  reveal(spot) {
    const { t0, t1, b0, b1 } = this.extent(spot);
    const view = this.view;
    const spanT = Math.min(Math.max(Math.min(view.t1 - view.t0, (t1 - t0) * 60), (t1 - t0) * 1.5), this.home.t1);
    const spanB = Math.min(Math.max(Math.min(view.b1 - view.b0, (b1 - b0) * 60), (b1 - b0) * 1.5), this.home.b1 - this.home.b0);
    const isSeen = t0 >= view.t0 && t1 <= view.t1 && b0 >= view.b0 && b1 <= view.b1;
    const isLarge = spanT === view.t1 - view.t0 && spanB === view.b1 - view.b0;
    if (isSeen && isLarge) return;
    const [t, b] = [(t0 + t1) / 2, (b0 + b1) / 2];
    this.look({ t0: t - spanT / 2, t1: t + spanT / 2, b0: b - spanB / 2, b1: b + spanB / 2 });
  }

  /** @param {Spot} spot @returns {Window} that just holds it */
  extent({ pane, chunk }) {
    const { count, chunk: chunks, from, to, low } = this.plans[pane].pieces(this.axis);
    const size = this.plans[pane].columns.size[chunk];
    const box = { t0: Infinity, t1: -Infinity, b0: Infinity, b1: -Infinity };
    for (let k = 0; k < count; k++) {
      if (chunks[k] !== chunk) continue;
      box.t0 = Math.min(box.t0, from[k]);
      box.t1 = Math.max(box.t1, to[k]);
      box.b0 = Math.min(box.b0, low[k]);
      box.b1 = Math.max(box.b1, low[k] + size);
    }
    return box.t0 === Infinity ? { t0: 0, t1: 1, b0: 0, b1: 1 } : box;
  }

  /** @returns {number} the tick whose tensors the table shows: the peak's, or one that was clicked */
  tableTick() {
    return this.tick < 0 ? this.plans[this.tablePane].facts.peak_tick : this.tick;
  }

  /** @returns {number[]} the chunks that the table shows, largest first */
  tableChunks() {
    const plan = this.plans[this.tablePane];
    return this.tick < 0 ? plan.aliveAtPeak() : plan.aliveAt(this.tick);
  }

  /** @param {number} pane @param {number} tick or -1 for the peak */
  showTick(pane, tick) {
    this.tablePane = pane;
    this.tick = tick;
    this.tell("table");
  }
}
