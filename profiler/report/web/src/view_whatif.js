// view_whatif.js: the tape's peak if the saved values of some lines were computed again, against what
// that would cost in time: of each line alone, of those that are chosen, and the cheapest choice for
// a budget. Then the same of calls and loop bodies as checkpoints or sections.

import { h, svg, replace } from "./dom.js";
import { bytes, bytesOf, count, share, time } from "./format.js";
import { axes, chartWidth, dot, extent, scale, ticks } from "./chart.js";
import { DataTable, placeColumn } from "./table.js";
import { Replay, inSlices } from "./replay.js";
import { compile, matchesPlace } from "./search.js";
import { swatch } from "./view_flame.js";
import { nothingIn } from "./nothing.js";

const H = 320;
const MARGIN = { left: 76, top: 30, right: 20, bottom: 42 };

export function mountWhatif(root, app) {
  const whatif = app.model.document.whatif;
  const options = app.model.options();
  if (!whatif || !options.length) {
    const calls = whatif && callsTable(app, whatif);
    replace(root, h("p", { class: "note" }, nothingIn(app.model, "whatif") || "No line saves values for a pullback: there are only calls and loop bodies."),
      whatif && [replayNotes(whatif), spillNote(whatif, app.model.total)], calls?.element);
    return { update: (state) => { app.setMatch(null); calls?.mark(state); } };
  }
  return new WhatifView(root, app, whatif, options);
}

// A section with a table of them: {element, mark(state)}.
function callsTable(app, whatif) {
  const rows = app.model.calls();
  const timed = whatif.run_ns > 0;
  const less = (r) => whatif.peak_bytes - r.peak;
  const again = (r) => (r.cost < 0 || !timed ? "–" : `${r.estimate ? "~" : ""}${time(r.cost)} (${share(r.cost, whatif.run_ns)})`);
  const table = rows.length > 0 && new DataTable({
    caption: "Calls and loop bodies", rows, sort: "less", keyOf: (r) => r.place.key, onSelect: (key) => app.state.set({ sel: key }),
    columns: [
      { id: "best", title: "best", value: (r) => (r.best ? 1 : 0), text: (r) => (r.best ? "★" : "") },
      { id: "what", title: "call or loop", wide: true, value: (r) => r.what, text: (r) => r.what },
      { id: "call", title: "as", value: (r) => r.call, text: (r) => h("code", {}, r.call) },
      { id: "peak", title: "new peak", value: (r) => r.peak, text: (r) => `${whatif.calls.lower_bound ? "≥ " : ""}${bytes(r.peak)}` },
      { id: "less", title: "less", bar: "mem", value: less, text: (r) => `${bytes(less(r))} (${share(less(r), whatif.peak_bytes)})` },
      { id: "cost", title: "more time", bar: "rec", value: (r) => Math.max(0, r.cost), text: again },
      { id: "in", title: "in, out", value: (r) => r.inputs, text: (r) => `${r.call === "ad_frame_begin" ? "–" : count(r.inputs)}, ${count(r.outputs)}` },
    ],
  });
  const element = h("section", {}, h("h2", {}, "Calls and loop bodies"),
    h("p", { class: "note" }, !whatif.calls.traced ? "What they would save is not known."
      : !table ? "None would lower the peak by 2 %, or by 5 % in a frame."
        : "What to write: tapescope whatif."),
    table && table.element);
  return { element, mark: (state) => table && table.mark(state.sel, null) };
}

// What the replay lacks, where that makes its figures wrong for the whole run.
function replayNotes(whatif) {
  const texts = [
    whatif.truncated && "The replay ends before the tape was emptied: there was no room.",
    whatif.peak_bytes !== whatif.tape_peak_bytes && `The replay's peak is not the tape's, which was ${bytes(whatif.tape_peak_bytes)}.`,
    whatif.lines_left_out > 0 && `${count(whatif.lines_left_out)} ${whatif.lines_left_out === 1 ? "row that saves values was" : "rows that save values were"} left out by --focus or --ignore.`,
  ].filter(Boolean);
  return texts.length > 0 && h("div", { class: "notice", role: "status" }, texts.map((text) => h("p", {}, text)));
}

// The tape in a file, beside values that are computed again.
function spillNote({ spill }, total) {
  const may = spill.tensor_bytes + spill.statement_bytes;
  return may > 0 && h("p", { class: "note" }, `In a file, by spill of ad_tape_options, ${bytes(may)} (${share(may, total.peak_bytes)}) of the peak may lie. `,
    total.spilled_bytes > 0 ? `In this run ${bytes(total.spilled_bytes)} went there, in ${time(total.disk_write_ns)}, and were read in ${time(total.disk_read_ns)}.` : "What that costs is known once a run has done it.");
}

class WhatifView {
  /** @type {any} */ app;
  /** @type {any} */ chosen;
  /** @type {any} */ options;
  /** @type {any} */ replay;
  /** @type {any} */ timed;
  /** @type {any} */ whatif;
  constructor(root, app, whatif, options) {
    Object.assign(this, { app, whatif, options, replay: new Replay(whatif), chosen: [], timed: whatif.run_ns > 0 });
    options.forEach((option, k) => { option.number = k; });
    this.chart = h("div", { class: "chart" });
    this.said = h("p", { class: "said", role: "status" });
    this.budget = h("input", { id: "budget", size: "12", placeholder: "such as 1.5 MiB", autocomplete: "off", spellcheck: "false" });
    this.clear = h("button", { class: "chip", type: "button", onclick: () => app.state.set({ pick: "", budget: "" }) }, "None");
    this.table = new DataTable({
      caption: "What computing again would save", rows: options, sort: "less", keyOf: (o) => o.place.key, onSelect: (key) => app.state.set({ sel: key }),
      columns: this.columns(),
    });
    this.calls = callsTable(app, whatif);
    replace(root,
      h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); app.state.set({ budget: this.budget.value.trim(), pick: "" }); } },
        h("label", { class: "field", for: "budget" }, "Peak at most", this.budget),
        h("button", { class: "chip" }, "Choose the cheapest lines"), this.clear),
      this.said,
      replayNotes(whatif),
      h("section", {}, h("h2", {}, `${whatif.truncated ? "The peak of the replayed part" : "The peak"} is ${bytes(whatif.peak_bytes)}; what it would be with one line's values computed again`), this.timed &&
        h("div", { class: "tools" }, h("span", { class: "legend" }, swatch("ink", "best ★: none has a lower peak at no more cost"), swatch("dots", "others"), swatch("all", "checked, together"))), this.chart,
        h("p", { class: "note" }, "Each value is made again just before the pullback that reads it, one at a time, from operands that are there then. ",
          whatif.changes_per_moment > 1 ? `Replayed in moments of up to ${whatif.changes_per_moment} changes: the new peak may be higher between two of them.` : "Replayed change by change."),
        spillNote(whatif, app.model.total)),
      h("section", {}, h("h2", {}, "Lines"), this.table.element), this.calls.element);
    this.update(app.state.now, null);
  }

  destroy() {
    this.stop?.();
  }

  columns() {
    const { whatif } = this;
    const less = (o) => whatif.peak_bytes - o.peak;
    return [
      { id: "again", title: "again", value: (o) => Number(this.chosen.includes(o.number)), hint: "which lines are computed again, all together",
        text: (o) => h("input", { type: "checkbox", checked: this.chosen.includes(o.number), "data-option": o.number, "data-focus": `again ${o.number}`, "aria-label": `Compute ${o.place.key} again`,
          onclick: (event) => event.stopPropagation(), onchange: () => this.toggle(o.number) }) },
      { id: "best", title: "best", value: (o) => (o.best ? 1 : 0), text: (o) => (o.best ? "★" : ""), hint: "no other line has a lower peak at no more cost" },
      placeColumn("line", (o) => o.place),
      { id: "peak", title: "new peak", value: (o) => o.peak, text: (o) => bytes(o.peak) },
      { id: "less", title: "less", bar: "mem", value: less, text: (o) => `${bytes(less(o))} (${share(less(o), whatif.peak_bytes)})` },
      { id: "cost", title: "more time", bar: "rec", value: (o) => o.cost, text: (o) => (this.timed ? `${time(o.cost)} (${share(o.cost, whatif.run_ns)})` : "–") },
      { id: "count", title: "values", value: (o) => o.count, text: (o) => count(o.count) },
    ];
  }

  toggle(number) {
    const next = this.chosen.includes(number) ? this.chosen.filter((k) => k !== number) : [...this.chosen, number];
    this.app.state.set({ pick: next.sort((a, b) => a - b).join("."), budget: "" });
  }

  update(state, before) {
    const { app, options } = this;
    const { expression } = compile(state.q);
    const matches = expression && ((o) => matchesPlace(expression, o.place));
    app.setMatch(expression && `${options.filter(matches).length} of ${options.length} lines`);
    if (!before || before.pick !== state.pick || before.budget !== state.budget) this.choose(state);
    this.table.mark(state.sel, matches);
    this.calls.mark(state);
    this.draw(state);
  }

  choose(state) {
    this.stop?.();
    this.stop = null;
    this.budget.value = state.budget;
    const budget = bytesOf(state.budget);
    this.budget.setAttribute("aria-invalid", String(state.budget !== "" && !(budget >= 0)));
    const picked = state.pick.split(".").filter((text) => /^\d+$/.test(text)).map(Number).filter((k) => k < this.options.length);
    if (!state.budget) return this.show(picked, picked.length > 0 ? this.replay.peakOf(picked) : this.whatif.peak_bytes, null);
    if (!(budget >= 0)) return this.show([], this.whatif.peak_bytes, "This is no size: write one such as 4096, 64 KiB or 1.5 MiB.");
    this.said.textContent = "Choosing…";
    this.stop = inSlices(this.replay.fit(budget), ({ chosen, peak, optimal }) => {
      this.show(chosen, peak, peak > budget ? "No choice fits; this one has the least peak."
        : chosen.length === 0 ? "No line need be computed again."
          : optimal ? "Every choice of lines was tried: none that reaches it costs less; the peak is a lower bound." : "Chosen one by one: a cheaper choice may exist; the peak is a lower bound.");
      this.draw(this.app.state.now);
    });
  }

  // What is chosen, and what is to be said of how.
  show(chosen, peak, how) {
    const { whatif } = this;
    const cost = this.replay.costOf(chosen);
    Object.assign(this, { chosen, peak, cost });
    const lines = new Set(chosen.map((k) => this.options[k].place.key)).size;
    this.clear.hidden = chosen.length === 0 && !this.app.state.now.budget;
    replace(this.said, chosen.length === 0 ? !how && [this.options.every((o) => o.peak >= whatif.peak_bytes) && "No line by itself lowers the peak. ", "Check lines below to see what computing all of them again would save together."]
      : ["With ", h("b", {}, lines === 1 ? "1 line" : `${lines} lines`), " computed again the peak is ", h("b", { title: `${peak} bytes` }, bytes(peak)),
        `, ${bytes(whatif.peak_bytes - peak)} (${share(whatif.peak_bytes - peak, whatif.peak_bytes)}) less`, this.timed && [", for ", h("b", { title: `${cost} ns` }, time(cost)),
        ` (${share(cost, whatif.run_ns)}) more time`], ".", chosen.length > 1 && " Where one of them feeds another, both are lower bounds."],
    how && ` ${how}`);
    this.table.render();
  }

  draw(state) {
    replace(this.chart, this.timed ? draw(this, state) : "What it would cost is not known: that is from exact times.");
  }
}

/** @param {any} view */
function draw({ app, whatif, options, chosen, peak, cost }, state) {
  const W = chartWidth(app.main);
  const several = chosen.length > 1;
  const worst = extent(options, (o) => o.cost, 1, several ? cost : 1)[1];
  const least = extent(options, (o) => o.peak, ...(several ? [peak] : []))[0] * 0.9;
  const x = scale(0, worst * 1.05, MARGIN.left, W - MARGIN.right);
  const y = scale(least, whatif.peak_bytes * 1.02, H - MARGIN.bottom, MARGIN.top);
  const front = options.filter((o) => o.best).sort((a, b) => a.cost - b.cost);
  let path = `M${x(0)},${y(whatif.peak_bytes)}`;
  for (const o of front) path += `H${x(o.cost)}V${y(o.peak)}`;
  path += `H${W - MARGIN.right}`;
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "New peak against time for each line; the table below has the numbers" },
    axes(W, H, MARGIN, { at: x, ticks: ticks(0, worst, 6), text: time, name: "time to compute again" },
      { at: y, ticks: ticks(least, whatif.peak_bytes, 5, 2), text: bytes, name: least > 0 ? `new peak (the axis begins at ${bytes(least)}, not at 0)` : "new peak" }),
    svg("path", { class: "front", d: path }),
    options.map((o) => dot(x(o.cost), y(o.peak), {
      kind: o.best ? "mem" : "gray", selected: state.sel === o.place.key, radius: o.best ? 6 : 4, title: `${o.place.key} ${o.place.ops}: ${bytes(o.peak)} for ${time(o.cost)}`,
      onclick: () => app.state.set({ sel: o.place.key }),
    })),
    several && dot(x(cost), y(peak), { shape: "square", kind: "all", radius: 6, title: `${chosen.length} lines together: ${bytes(peak)} for ${time(cost)}` }));
}
