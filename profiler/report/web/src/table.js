// table.js: a table that is sorted by its columns' heads, with bars behind numbers and rows that
// select a place.

import { h, keepFocus, replace } from "./dom.js";
import { firstOf } from "./select.js";

const STEP = 200;

// columns: {id, title, value(row), text(row), bar: class, max, sign, wide, hint}; a column without
// value() is not sorted by. keyOf(row): the place that the row selects. rows: an array, or what else
// has a length and at(i). A column may have values(rows), value() of all rows in a Float64Array: where
// those that it is sorted by and those with bars do, only rows that are shown are asked for.
export class DataTable {
  /** @type {any} */ caption;
  /** @type {any} */ columns;
  /** @type {any} */ empty;
  /** @type {any} */ keyOf;
  /** @type {any} */ onSelect;
  /** @type {any} */ range;
  /** @type {any} */ tab;
  /** @param {any} options */
  constructor({ columns, rows, sort, keyOf, onSelect, caption, empty }) {
    Object.assign(this, { columns, rows, keyOf, onSelect, caption, empty });
    this.shown = STEP;
    this.sort = sort;
    this.down = true; // the greatest first; names begin with the first
    this.element = h("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": caption });
    this.selected = "";
    this.matches = null;
    this.render();
  }

  setRows(rows) {
    this.rows = rows;
    this.render();
  }

  mark(selected, matches) {
    if (selected === this.selected && matches === this.matches) return;
    this.selected = selected;
    this.matches = matches;
    this.render();
  }

  // The rows that are shown in order, which a search or a selection does not change.
  ordered() {
    const key = `${this.sort} ${this.down} ${this.shown}`;
    if (this.order?.key !== key || this.order.of !== this.rows) this.order = { key, of: this.rows, rows: this.sorted().map((i) => this.rows.at(i)) };
    return this.order.rows;
  }

  sorted() {
    const column = this.columns.find((c) => c.id === this.sort);
    const key = column?.value && this.valuesOf(column);
    if (key instanceof Float64Array) return firstOf(key, this.shown, this.down);
    const all = Array.from({ length: this.rows.length }, (_, i) => i);
    const compare = (a, b) => (typeof key[a] === "string" ? key[a].localeCompare(key[b]) : key[a] < key[b] ? -1 : key[a] > key[b] ? 1 : 0);
    return (key ? all.sort((a, b) => (this.down ? -1 : 1) * compare(a, b) || a - b) : all).slice(0, this.shown);
  }

  valuesOf(column) {
    return column.values?.(this.rows) ?? Array.from({ length: this.rows.length }, (_, i) => column.value(this.rows.at(i)));
  }

  most(column) {
    let most = 0;
    for (const value of this.valuesOf(column)) if (Math.abs(value) > most) most = Math.abs(value);
    return most;
  }

  by(id) {
    const first = this.rows.length && this.columns.find((c) => c.id === id).value(this.rows.at(0));
    this.down = this.sort === id ? !this.down : typeof first !== "string";
    this.sort = id;
    this.render();
  }

  render() {
    const rows = this.ordered();
    const most = Object.fromEntries(this.columns.filter((c) => c.bar).map((c) =>
      [c.id, c.max ?? this.most(c)]));
    const head = this.columns.map((c) => h("th", { class: c.wide ? "wide" : "n", scope: "col",
      "aria-sort": c.id === this.sort ? (this.down ? "descending" : "ascending") : undefined, title: c.hint },
    c.value ? h("button", { "data-focus": `${this.caption} by ${c.id}`, onclick: () => this.by(c.id) }, c.title) : c.title));
    const body = rows.map((row, i) => this.row(row, most, `${this.caption} row ${i}`));
    keepFocus(this.element, () => replace(this.element,
      h("table", {}, h("caption", { class: "hidden" }, this.caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)),
      this.rows.length === 0 && h("p", { class: "note" }, this.empty ?? "Nothing."),
      this.rows.length > this.shown && h("button", { class: "load", "data-focus": `${this.caption} row ${this.shown}`,
        onclick: () => { this.shown += 5 * STEP; this.render(); } },
        `${this.rows.length - this.shown} more`)));
  }

  row(row, most, name) {
    const key = this.keyOf?.(row);
    const selected = key && key === this.selected;
    const dim = this.matches && !this.matches(row);
    const cells = this.columns.map((c) => {
      const text = c.text(row);
      const size = c.bar && most[c.id] > 0 ? Math.abs(c.value(row)) / most[c.id] : 0;
      const sign = c.bar && c.value(row) < 0 ? "less" : "";
      return h("td", { class: c.wide ? "wide" : "n" },
        size > 0 && h("span", { class: `bar ${typeof c.bar === "function" ? c.bar(row) : c.bar} ${sign}`, style: { "--part": `${(100 * size).toFixed(2)}%` } }),
        h("span", { class: "v" }, text));
    });
    return h("tr", { class: [selected ? "selected" : "", dim ? "dim" : "", key ? "link" : ""].join(" ").trim() || undefined,
      tabindex: key ? "0" : undefined, "data-focus": key ? name : undefined, "aria-selected": key ? String(Boolean(selected)) : undefined,
      onclick: key ? () => this.onSelect(key, row) : undefined,
      onkeydown: key ? (event) => { if (event.key === "Enter") { event.stopPropagation(); this.onSelect(key, row); } } : undefined }, cells);
  }
}

// The column that says where a row is.
export function placeColumn(title, placeOf, opsOf) {
  return {
    id: "place", title, wide: true, value: (row) => placeOf(row).key,
    text: (row) => whereText(placeOf(row), opsOf?.(row)),
  };
}

export function whereText(place, ops) {
  if (!place) return "–";
  return h("span", { class: "where" }, h("span", { class: "key" }, place.key),
    (ops ?? place.ops) && !place.own && h("span", { class: "op" }, ops ?? place.ops),
    place.function && place.file && h("span", { class: "fn" }, place.function));
}
