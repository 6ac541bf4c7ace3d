// view_summary.js: the whole in a few numbers, what is remarkable in words, and the dearest lines.

import { h, replace } from "./dom.js";
import { by, bytes, count, share, time, date } from "./format.js";
import { partsBar } from "./chart.js";
import { metricOf, ratioOf, timeOf } from "./cost.js";
import { findings } from "./findings.js";
import { DataTable, placeColumn } from "./table.js";
import { compile, matchesPlace } from "./search.js";
import { blocks, inline, prose } from "./prose.js";
import { treeNotes } from "./view_flame.js";
import { placeColumns } from "./ranks.js";

export function mountSummary(root, app) {
  const { model } = app;
  const { total, wholeSum: sum } = model;
  const table = linesTable(app);
  replace(root,
    model.document.ad_part && h("p", { class: "part" }, `AD is ${model.document.ad_part}.`),
    h("div", { class: "tiles" },
      tile("Forward", timeOf({ ...sum, forward: total.forward_ns }, "forward"), `${count(model.counted ? sum.calls : null)} call${sum.calls === 1 ? "" : "s"} of ops`, "fwd", total.forward_ns && `${total.forward_ns} ns`),
      tile("Backward", timeOf({ ...sum, backward: total.backward_ns }, "backward"), `${count(total.sweeps)} sweep${total.sweeps === 1 ? "" : "s"}`, "bwd", `${total.backward_ns} ns`),
      tile("Backward ÷ forward", ratioOf(sum, { forward: total.forward_ns, backward: total.backward_ns }), total.recompute_ns > 0 ? `${time(total.recompute_ns)} recomputed` : "of time within ops"),
      tile("Tape bytes", bytes(total.tape_bytes), `${count(total.records)} record${total.records === 1 ? "" : "s"}`, "mem", `${total.tape_bytes} bytes`),
      tile("Peak of a tape", bytes(total.peak_bytes), total.spilled_bytes > 0 ? `of it ${bytes(total.memory_peak_bytes)} memory` : `${count(total.tapes)} tape${total.tapes === 1 ? "" : "s"}`, "mem", `${total.peak_bytes} bytes`)),
    phases(total),
    notices(model),
    h("section", {}, h("h2", {}, "What stands out"), h("ul", { class: "findings" }, findings(model).map((f) => finding(app, f)))),
    h("section", {}, h("h2", {}, "The costliest lines"), table.element),
    about(model));
  const update = (state) => {
    const { expression } = compile(state.q);
    table.mark(state.sel, expression && ((entry) => matchesPlace(expression, entry.place, [...entry.ops].join(" "))));
    app.setMatch(expression && matchText(model, expression, state.metric));
    const metric = metricOf(state.metric);
    if (table.metric !== metric) {
      table.metric = metric;
      table.columns = [...table.own, ...placeColumns(app, metric)];
      table.sort = sortOf(metric, table.columns);
      table.down = true;
      table.render();
    }
  };
  update(app.state.now);
  return { update };
}

// What share of a metric the lines have that match.
export function matchText(model, expression, id) {
  const metric = metricOf(id);
  const costs = model.places.metric(metric.id);
  let value = 0;
  let n = 0;
  for (const entry of model.places.values())
    if (matchesPlace(expression, entry.place, [...entry.ops].join(" "))) {
      value += costs[entry.number];
      n++;
    }
  return `${share(value, model.sum[metric.id])} in ${n} line${n === 1 ? "" : "s"}`;
}

// exact: the value in full, for who points at it.
function tile(title, value, below, kind = "", exact = null) {
  return h("div", { class: `tile ${kind}` }, h("span", { class: "label" }, title), h("span", { class: "value", title: exact }, value), h("span", { class: "below" }, below));
}

const phases = (total) => partsBar([{ kind: "fwd", name: "forward", value: total.forward_ns }, { kind: "bwd", name: "backward", value: total.backward_ns },
  { kind: "rec", name: "recomputation", value: total.recompute_ns }, { kind: "gray", name: "other", value: total.other_ns ?? 0 }]);

function notices(model) {
  const { profile } = model;
  const texts = [];
  if (profile.warning) texts.push(profile.warning);
  else if (!profile.complete) texts.push("The profile is not complete: the program ended before it could write the rest.");
  if (model.sampled) texts.push(`Times are estimates from ${count(model.total.samples ?? 0)} sample${model.total.samples === 1 ? "" : "s"}; ${model.counted ? "bytes and calls are exact" : "bytes and calls were not counted (--tape on counts them)"}.`);
  texts.push(...model.document.warnings, ...treeNotes(model.tree));
  if (model.document.lines_left_out > 0) texts.push(`${model.document.lines_left_out} lines were left out by --focus or --ignore.`);
  return texts.length > 0 && h("div", { class: "notice", role: "status" }, texts.map((text) => h("p", {}, text)));
}

function finding(app, f) {
  return h("li", { class: f.kind }, h("h3", {}, f.title),
    h("p", {}, f.text.map((part) => (typeof part === "string" ? part
      : part?.strong !== undefined ? h("strong", {}, part.strong)
        : part?.key !== undefined ? h("button", { class: "place", onclick: () => app.goTo("source", part.key) }, part.key) : null))),
    f.advice && h("p", { class: "advice" }, f.advice),
    f.call && h("pre", { class: "call" }, f.call),
    f.howto && howto(f.howto),
    h("button", { class: "go", onclick: () => app.state.set({ view: f.view, sel: f.key || app.state.now.sel, tab: f.tab ?? "" }) }, app.viewName(f.view), " →"));
}

// The section of the docs that explains it; without the docs the command that prints it where they are.
function howto({ topic, text }) {
  const command = h("code", {}, `tapescope help ${topic}`);
  if (!text) return h("p", { class: "howto" }, command);
  return h("details", { class: "howto" }, h("summary", {}, "How: ", inline(blocks(text)[0].text).map((part) => part.code ?? part.strong ?? part).join("")),
    prose(text).slice(1), h("p", {}, command));
}

const column = (id, title, bar) => {
  const metric = metricOf(id);
  return { id, title, bar, value: (e) => e.cost[id], values: (places) => places.metric(id), text: (e) => (["total", "forward", "backward"].includes(id) && (e.cost[id] || (id === "forward" && e.cost.untimed_calls > 0)) ? timeOf(e.cost, id) : e.cost[id] ? by[metric.unit](e.cost[id]) : "·") };
};

const quotient = (backward, forward) => (forward ? backward / forward : 0);

// The column that a metric is in.
const sortOf = ({ id }, columns) => (columns.some((c) => c.id === id) ? id : "total");

function linesTable(app) {
  const metric = metricOf(app.state.now.metric);
  const known = (id) => app.model.metrics.some((m) => m.id === id);
  const columns = [
    placeColumn("Line", (e) => e.place, (e) => [...e.ops].join(", ")),
    column("total", "total", "gray"), column("forward", "forward", "fwd"), column("backward", "backward", "bwd"), known("recompute") && column("recompute", "recomputed", "rec"),
    { id: "ratio", title: "b/f", value: (e) => quotient(e.cost.backward, e.cost.forward),
      values: (places) => places.metric("backward").map((ns, i) => quotient(ns, places.metric("forward")[i])),
      text: (e) => `${ratioOf(e.cost)}${e.slow ? " !" : ""}`, hint: "backward over forward time; !: far over what its flops and bytes predict" },
    column("tape", "tape", "mem"), column("peak", "at peak", "mem"), known("spilled") && column("spilled", "to disk", "mem"), column("calls", "calls"),
    known("lifetime") && column("lifetime", "byte-seconds", "mem"), known("other") && column("other", "other code", "gray"),
    known("waiting") && column("waiting", "waiting"), known("waiting_io") && column("waiting_io", "for io"), known("waiting_lock") && column("waiting_lock", "for locks"),
  ].filter(Boolean);
  const table = new DataTable({
    caption: "Lines by cost", rows: app.model.places, sort: sortOf(metric, columns),
    keyOf: (e) => e.place.key, onSelect: (key) => app.state.set({ sel: key }), columns: [...columns, ...placeColumns(app, metric)],
  });
  return Object.assign(table, { metric, own: columns });
}

function about(model) {
  const { profile } = model;
  const row = (name, value) => (value ? [h("dt", {}, name), h("dd", {}, value)] : null);
  return h("section", { class: "about" }, h("h2", {}, "What was measured"), h("dl", {},
    row("Program", [profile.program, ...(profile.arguments ?? []).slice(1)].filter(Boolean).join(" ")),
    row("Folder", profile.directory), row("Profile", profile.path), row("Started", profile.start_unix_ns > 0 && date(profile.start_unix_ns)),
    row("Lasted", time(profile.duration_ns)), row("Clock", `${profile.clock}${profile.clock_calibrated ? "" : ", not calibrated: times are ticks"}`),
    row("The profiler's own time", `${time(model.document.overhead_ns)}, taken off`), row("Collector", profile.collector), row("Library", profile.library_version)));
}
