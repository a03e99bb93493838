/** Who is alive at the peak, or in a tick that was clicked: a table that sorts, and whose rows select. */

import { byId, make } from "./dom.js";
import { csv } from "./csv.js";
import { button } from "./details.js";
import { offer } from "./save.js";
import { bytes, counted, percent, shown, whole } from "./text.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plan.js").Plan} Plan */

const MOST = 300;
/** Letters of lifetimes from which on they need more room. */
const WIDE = 9;
/** Letters of a name that are seen: of a longer one both ends, as often a number in one of them alone tells it from others. */
const LONG = 48;
/** @type {{name: string, key: (plan: Plan, i: number) => string | number, numeric: boolean}[]} */
const COLUMNS = [
  { name: "tensor", key: (plan, i) => plan.text("name", i), numeric: false },
  { name: "size", key: (plan, i) => plan.columns.size[i], numeric: true },
  { name: "ticks", key: (plan, i) => plan.columns.begin[i], numeric: true },
];
const sorting = { column: 1, up: false };

/** @param {App} app */
export function bindTable(app) {
  const table = byId("peak-table");
  const head = make("tr");
  COLUMNS.forEach(({ name, numeric }, k) => {
    const press = button(name, () => sortBy(app, k));
    head.append(make("th", { scope: "col", class: numeric ? "number" : "" }, press));
  });
  table.append(make("caption", { id: "table-totals" }), make("thead", {}, head), make("tbody"));
  app.listeners.push((change) => {
    if (["table", "colour", "theme", "plans"].includes(change)) fill(app);
    if (change === "selection") mark(app);
  });
  byId("at-peak").addEventListener("click", () => app.showTick(app.tablePane, -1));
  byId("save-csv").addEventListener("click", () => {
    const text = csv(app.plans[app.tablePane], sorted(app));
    offer(new Blob([text], { type: "text/csv;charset=utf-8" }), "csv", app);
  });
  const choice = byId("table-pane");
  choice.hidden = app.plans.length < 2;
  app.plans.forEach((plan, pane) => choice.append(button("AB"[pane], () => app.showTick(pane, app.tick))));
  fill(app);
}

/** @param {App} app @param {number} column */
function sortBy(app, column) {
  sorting.up = sorting.column === column ? !sorting.up : !COLUMNS[column].numeric;
  sorting.column = column;
  fill(app);
}

/** @param {App} app @returns {number[]} the chunks of the table, as it is sorted */
function sorted(app) {
  const plan = app.plans[app.tablePane];
  const { key } = COLUMNS[sorting.column];
  return app.tableChunks().sort((a, b) => (sorting.up ? 1 : -1) * compared(key(plan, a), key(plan, b)) || a - b);
}

/** @param {App} app */
function fill(app) {
  const plan = app.plans[app.tablePane];
  const tick = app.tableTick();
  const alive = sorted(app);
  const table = byId("peak-table");
  const sum = alive.reduce((all, i) => all + plan.columns.size[i], 0);
  /** @type {HTMLElement} */ (table.querySelector("caption")).textContent = caption(app, plan, tick, alive.length, sum);
  const shownNow = alive.slice(0, MOST);
  table.classList.toggle("long", shownNow.some((chunk) => ticks(plan, chunk).length > WIDE));
  const rows = shownNow.map((chunk) => row(app, plan, chunk, sum));
  if (alive.length > MOST) rows.push(make("tr", {}, make("td", { colspan: "3", class: "hint" }, `and ${counted(alive.length - MOST, "more tensor")}`)));
  /** @type {HTMLElement} */ (table.querySelector("tbody")).replaceChildren(...rows);
  table.querySelectorAll("th").forEach((th, k) => th.setAttribute("aria-sort", k !== sorting.column ? "none" : sorting.up ? "ascending" : "descending"));
  byId("at-peak").hidden = app.tick < 0;
  byId("table-title").textContent = app.tick < 0 ? "Alive at the peak" : `Alive in tick ${whole(tick)}`;
  byId("table-pane").querySelectorAll("button").forEach((b, k) => b.setAttribute("aria-pressed", String(k === app.tablePane)));
  mark(app);
}

/** @param {App} app @param {number} chunk @returns {HTMLElement} its colour in the picture */
function swatch(app, chunk) {
  const { entries, classes } = app.colouring;
  const plan = app.plans[app.tablePane];
  const made = make("span", { class: "swatch", title: `${shown(kind(plan, chunk), 60)}, by ${shown(plan.text("operator", chunk), 300)}` });
  made.style.backgroundColor = entries[classes[app.tablePane][chunk]].fill;
  return made;
}

/** @param {string} name @param {() => void} choose @returns {HTMLElement} whose lines end between parts of the name */
function named(name, choose) {
  const made = button("", choose);
  made.setAttribute("aria-label", name);
  for (const part of shown(name, LONG).split(/(?<=[/_.:])/u)) made.append(part, make("wbr"));
  return made;
}

/** @param {Plan} plan @param {number} chunk @returns {string} of the operator that made it, or its role */
function kind(plan, chunk) {
  return plan.text("schema", chunk) || plan.text("role", chunk);
}

/** @param {string | number} a @param {string | number} b @returns {number} */
function compared(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param {App} app @param {Plan} plan @param {number} tick @param {number} count @param {number} sum @returns {string} */
function caption(app, plan, tick, count, sum) {
  const where = plan.operator(tick);
  const which = app.plans.length > 1 ? `${"AB"[app.tablePane]}: ` : "";
  const when = app.tick < 0 || plan.moment(tick) === undefined ? `in tick ${whole(tick)}` : `when tick ${whole(tick)} begins`;
  return `${which}${counted(count, "tensor")}, ${bytes(sum)}, ${when}${where ? `, ${shown(where, 60)}` : ""}`;
}

/** @param {App} app @param {Plan} plan @param {number} chunk @param {number} sum @returns {HTMLElement} */
function row(app, plan, chunk, sum) {
  const { size } = plan.columns;
  const spot = { pane: app.tablePane, chunk };
  const choose = () => {
    app.select(spot);
    app.reveal(spot);
  };
  const name = shown(plan.text("name", chunk), 120);
  const made = make(
    "tr",
    { "data-chunk": String(chunk) },
    make("td", { title: name }, make("span", { class: "named" }, swatch(app, chunk), named(name, choose))),
    make("td", { class: "number", title: `${whole(size[chunk])} bytes, ${percent(size[chunk], sum)}` }, bytes(size[chunk])),
    make("td", { class: "number", title: ticks(plan, chunk) }, ticks(plan, chunk)),
  );
  made.addEventListener("click", choose);
  return made;
}

/** @param {Plan} plan @param {number} chunk @returns {string} the first and the last in which it lives */
function ticks(plan, chunk) {
  const { begin, end } = plan.columns;
  return `${whole(begin[chunk])}–${whole(end[chunk] - 1)}`;
}

/** @param {App} app */
function mark(app) {
  const { selected, tablePane } = app;
  const chosen = selected && selected.pane === tablePane ? String(selected.chunk) : "";
  for (const tr of byId("peak-table").querySelectorAll("tr[data-chunk]")) {
    if (tr.getAttribute("data-chunk") === chosen) tr.setAttribute("aria-current", "true");
    else tr.removeAttribute("aria-current");
  }
}
