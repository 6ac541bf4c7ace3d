// view_diff.js: what each line costs more or less than in the base profile.

import { h, replace } from "./dom.js";
import { by } from "./format.js";
import { metricOf } from "./cost.js";
import { Table } from "./data.js";
import { DataTable, placeColumn } from "./table.js";
import { compile, matchesPlace } from "./search.js";
import { DiffFlame } from "./diff_flame.js";

export function mountDiff(root, app) {
  const { model } = app;
  const { diff } = model.document;
  if (!diff) {
    replace(root, h("p", { class: "note" }, "This report is of one profile. ", h("code", {}, "tapescope html --base OLD.prof NEW.prof"), " shows what is different."));
    return { update: () => app.setMatch(null) };
  }
  const columns = new Table(diff.rows);
  const rows = Array.from({ length: columns.n }, (_, i) => ({
    number: i, place: model.place(columns, i), base: model.cost(columns, i, "base_"), now: model.cost(columns, i, "new_"), in: columns.get("in", i), moved: columns.get("moved", i) > 0,
  }));
  const head = h("p", { class: "note" });
  const gone = h("input", { type: "checkbox", id: "gone", checked: true, onchange: () => show(app.state.now) });
  const table = new DataTable({ caption: "Lines by change", rows: [], sort: "change", keyOf: (r) => r.place.key, onSelect: (key) => app.state.set({ sel: key }), columns: [], empty: "No line is different in this." });
  const picture = h("section", {});
  replace(root, head, h("section", {}, h("h2", {}, "Calls by change"), picture),
    h("section", {}, h("h2", {}, "Lines by change"), h("div", { class: "tools" }, h("label", { for: "gone" }, gone, " lines that are gone")), table.element));
  const show = (state) => {
    const metric = metricOf(state.metric);
    const format = by[metric.unit];
    const of = (cost) => cost[metric.id];
    const chance = diff.chance[metric.id];
    const within = (change, i) => change !== 0 && Math.abs(change) < (chance?.[i] ?? 0);
    const changed = (r) => (within(of(r.now) - of(r.base), r.number) ? "gray" : of(r.now) >= of(r.base) ? "more" : "less");
    table.columns = [
      placeColumn("line", (r) => r.place),
      { id: "state", title: "state", value: (r) => String(r.in), text: (r) => (r.in === 1 ? "gone" : r.in === 2 ? "new" : r.moved ? "moved" : "·") },
      { id: "change", title: "change", bar: changed, value: (r) => Math.abs(of(r.now) - of(r.base)),
        text: (r) => (changed(r) === "gray" ? "~ " : "") + `${of(r.now) >= of(r.base) ? "+" : "−"}${format(Math.abs(of(r.now) - of(r.base)))}` },
      { id: "part", title: "relative", value: (r) => (of(r.base) ? Math.abs(of(r.now) / of(r.base) - 1) : Infinity),
        text: (r) => (!of(r.base) ? "new" : `${of(r.now) >= of(r.base) ? "+" : "−"}${(100 * Math.abs(of(r.now) / of(r.base) - 1)).toFixed(1)}\u202f%`) },
      { id: "base", title: "base", value: (r) => of(r.base), text: (r) => format(of(r.base)) },
      { id: "now", title: "now", value: (r) => of(r.now), text: (r) => format(of(r.now)) },
    ];
    const sum = (side) => rows.reduce((s, r) => s + of(r[side]), 0);
    const change = sum("now") - sum("base");
    const mean = (runs) => (runs > 1 ? `, the mean of ${runs} runs` : "");
    const base = diff.base_runs > 1 ? "the base" : diff.base_profile.path;
    const runs = diff.base_runs + diff.new_runs > 2 ? " ~ and grey: may be chance." : "";
    head.textContent = `${metric.name}: ${format(sum("base"))} in ${base}${mean(diff.base_runs)}; ${format(sum("now"))} now${mean(diff.new_runs)}: ${change >= 0 ? "+" : "−"}${format(Math.abs(change))}${within(change, rows.length) ? ", which may be chance" : ""}.${runs}`;
    table.setRows(rows.filter((r) => of(r.base) !== of(r.now) && (gone.checked || r.in !== 1)));
  };
  const flame = new DiffFlame(picture, app);
  const update = (state, before) => {
    if (before) flame.update(state, before);
    if (!before || before.metric !== state.metric) show(state);
    const { expression } = compile(state.q);
    table.mark(state.sel, expression && ((r) => matchesPlace(expression, r.place)));
    app.setMatch(expression && `${rows.filter((r) => matchesPlace(expression, r.place)).length} of ${rows.length} lines`);
  };
  gone.checked = true;
  update(app.state.now, null);
  return { update, key: (key) => flame.key(key), destroy: () => flame.destroy(), get canvases() { return flame.canvases; } };
}
