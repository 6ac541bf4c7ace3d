// view_timeline.js: live bytes of the tape with the greatest peak over time, what each thread was
// doing, and the scopes of the program as spans. A stretch that is dragged over is what times and
// calls are of in all views; what is zoomed to concerns this one alone.

import { h, replace } from "./dom.js";
import { bytes, count, time } from "./format.js";
import { spansOf } from "./events.js";
import { MOST_ARROWS, TimeCanvas } from "./time_canvas.js";
import { DataTable } from "./table.js";
import { nothingIn } from "./nothing.js";

export function mountTimeline(root, app) {
  return new TimelineView(root, app);
}

class TimelineView {
  constructor(root, app) {
    this.app = app;
    const { model, events } = app;
    const { space } = model.document;
    this.live = space?.live.ns.at(-1) > 0 ? space.live : null; // without times: none
    this.peak = this.live ? space.at_ns : undefined;
    this.spans = spansOf(model);
    this.brushes = Boolean(events?.known);
    const last = this.live ? this.live.ns[this.live.ns.length - 1] : 0;
    const busy = this.brushes || this.spans.length > 0;
    this.whole = [busy ? 0 : this.live?.ns[0] ?? 0, Math.max(1, last, busy ? model.profile.duration_ns : 0)];
    this.shown = this.live !== null || busy;
    this.chart = h("div", { class: "chart", role: "img", "aria-label": "Live bytes of the tape, phases and scopes over time; the line of text below says what is under the pointer, the tables what the scopes are" });
    this.readout = h("p", { class: "note", role: "status" });
    const scopes = scopesTable(app);
    replace(root,
      h("section", {}, h("h2", {}, "The tape over time"),
        this.shown ? [this.tools(), this.chart, this.readout] : h("p", { class: "note" }, nothingIn(model, "timeline")),
        notes(model, events).map((text) => h("p", { class: "note" }, text))),
      h("section", {}, h("h2", {}, "Scopes"), scopes ?? h("p", { class: "note" }, "The program names no scopes (AD_SCOPE).")),
      this.spans.length > 0 && h("section", {}, h("h2", {}, "Spans of scopes in view"), this.table().element));
    if (this.shown) {
      this.plot = new TimeCanvas(this.chart, { live: this.live, peak: this.peak, events: this.brushes ? events : null, spans: this.spans, threads: threadNames(model), arrows: arrowsOf(model), label: (node) => this.labelOf(node),
        onHover: (...at) => this.say(...at), onDrag: (from, to) => (this.brushes ? this.select(from, to) : this.zoom(from, to)),
        onPick: (span, slice) => (span ? this.pick(span) : this.pickOp(slice)), onOpen: (span) => (span ? this.zoom(span.from, span.to) : this.select()) });
      this.update(app.state.now, null);
    }
    app.setMatch(null);
  }

  destroy() {
    this.plot?.destroy();
  }

  tools() {
    const chip = (text, act) => h("button", { class: "chip", onclick: act }, text);
    return h("div", { class: "tools" },
      this.peak !== undefined && chip("Go to the peak", () => this.goToPeak()), chip("Whole time", () => this.app.state.set({ time: "" })),
      this.brushes && [chip("Zoom to the range", () => this.zoomToRange()), chip("Clear the range", () => this.select())],
      h("span", { class: "legend" }, this.live && h("span", { class: "swatch mem" }, "live bytes (full colour: from the least to the most)"),
        this.brushes ? [h("span", { class: "swatch fwd" }, "forward"), h("span", { class: "swatch bwd" }, "backward"), this.app.model.total.recompute_ns > 0 && h("span", { class: "swatch rec" }, "recomputed")]
          : this.live && [h("span", { class: "swatch bwd" }, "in sweeps"), h("span", { class: "swatch" }, "not in sweeps")]));
  }

  // What is zoomed to; in the address "from-to" in ns.
  window() {
    const m = /^(\d+)-(\d+)$/.exec(this.app.state.now.time);
    const [from, to] = m ? [Math.max(this.whole[0], Number(m[1])), Math.min(this.whole[1], Number(m[2]))] : this.whole;
    return from < to ? [from, to] : this.whole;
  }

  zoom(from, to) {
    const least = Math.max(2, (this.whole[1] - this.whole[0]) / 1e6);
    if (to - from < least) [from, to] = [(from + to - least) / 2, (from + to + least) / 2];
    const all = from <= this.whole[0] && to >= this.whole[1];
    this.app.state.set({ time: all ? "" : `${Math.round(Math.max(this.whole[0], from))}-${Math.round(Math.min(this.whole[1], to))}` });
  }

  // The range of all views; without times: none.
  select(from, to) {
    this.app.state.set({ range: from === undefined ? "" : this.app.events.snap(from, to).join("-"), zoom: "" });
  }

  pick(span) {
    if (this.brushes) this.select(span.from, span.to);
    else this.zoom(span.from, span.to);
  }

  labelOf(node) {
    const calls = this.app.calls();
    return calls.opLabel(node);
  }

  // An op selects its line, in all views.
  pickOp({ lane, i }) {
    const calls = this.app.calls();
    const place = calls.place(calls.frame[lane.node[i]]);
    if (!place.root) this.app.state.set({ sel: place.key });
  }

  goToPeak() {
    const width = (this.whole[1] - this.whole[0]) / 50;
    if (this.peak !== undefined) this.zoom(this.peak - width, this.peak + width);
  }

  zoomToRange() {
    if (this.app.range) this.zoom(...this.app.range);
  }

  // Of the time under the pointer, or null, and of the span or the op there.
  say(at, index, span, slice) {
    if (at === null) {
      const { space } = this.app.model.document;
      const [from, to] = this.window();
      this.readout.textContent = `${time(from)} to ${time(to)} after the start` +
        (this.peak !== undefined ? `; the peak of ${bytes(space.total_bytes)} is at ${time(this.peak)}` : "") +
        (this.brushes ? `. Drag to select a range for the summary, flame and source, double-click to clear it; w and s zoom, to single ops.` : ". Drag to look closer.");
      return;
    }
    const parts = [];
    if (this.live) {
      const { most_bytes: most, least_bytes: least, backward } = this.live;
      parts.push(`${least[index] === most[index] ? "" : `${bytes(least[index])} to `}${bytes(most[index])} live${backward[index] ? ", in a sweep" : ""}`);
    }
    if (span) parts.push(`${span.path}: ${time(span.to - span.from)} from ${time(span.from)} on`);
    if (slice) {
      const { lane, i } = slice;
      parts.push(`${this.app.calls().label(this.app.calls().frame[lane.node[i]])}, ${this.app.events.kinds[lane.kind[i]].phase}: ${time(lane.to[i] - lane.from[i])} from ${time(lane.from[i])} on`);
    }
    this.readout.textContent = [time(at), parts.join("; ")].filter(Boolean).join(": ");
  }

  update(state, before) {
    if (!this.plot) return;
    if (before && before.time === state.time && before.range === state.range) return this.plot.draw();
    const [from, to] = this.window();
    this.plot.show(from, to, this.app.range);
    this.list?.setRows(this.spans.filter((span) => span.to >= from && span.from <= to));
    this.list?.mark(state.range, null);
    this.say(null);
  }

  key(key) {
    if (!this.plot) return false;
    const [from, to] = this.window();
    const width = to - from;
    const moves = { w: [0.1, -0.1], s: [-0.125, 0.125], a: [-0.1, -0.1], d: [0.1, 0.1], ArrowLeft: [-0.1, -0.1], ArrowRight: [0.1, 0.1] };
    if (key === "Enter") return this.app.range ? this.zoomToRange() : this.goToPeak(), true;
    if (!moves[key]) return false;
    let [a, b] = [from + moves[key][0] * width, to + moves[key][1] * width];
    if (moves[key][0] === moves[key][1]) { // a pan stops where the time ends
      const off = Math.max(0, this.whole[0] - a) - Math.max(0, b - this.whole[1]);
      [a, b] = [a + off, b + off];
    }
    this.zoom(a, b);
    return true;
  }

  escape() {
    const { now } = this.app.state;
    if (!now.range && !now.time) return false;
    this.app.state.set(now.range ? { range: "" } : { time: "" });
    return true;
  }

  // The spans as rows, which do what a click on the picture does.
  table() {
    const { threads } = this.app.model.document.timeline;
    const key = (span) => (this.brushes ? this.app.events.snap(span.from, span.to).join("-") : `${span.from}-${span.to}`);
    this.list = new DataTable({
      caption: "Spans of scopes", rows: this.spans, sort: "", keyOf: key, onSelect: (_, span) => this.pick(span), empty: "None is in view.",
      columns: [{ id: "path", title: "scope", wide: true, value: (span) => span.path, text: (span) => span.path },
        { id: "from", title: "begin", value: (span) => span.from, text: (span) => time(span.from) },
        { id: "length", title: "lasts", bar: "gray", value: (span) => span.to - span.from, text: (span) => time(span.to - span.from) },
        ...(threads.number.length > 1 ? [{ id: "thread", title: "thread", value: (span) => span.thread, text: (span) => threadNames(this.app.model)[span.thread] }] : [])],
    });
    return this.list;
  }
}

function threadNames(model) {
  const { threads } = model.document.timeline ?? { threads: { number: [] } };
  const of = (i) => (threads.rank[i] >= 0 ? `rank ${threads.rank[i]} ` : threads.process[i] ? `process ${threads.process[i]} ` : "");
  return threads.number.map((number, i) => `${of(i)}thread ${number}`);
}

// Messages between ranks: from the first thread of one to that of another.
function arrowsOf(model) {
  const { arrows, threads } = model.document.timeline ?? {};
  if (!arrows?.from.length) return [];
  const thread = (process) => threads.process.indexOf(process);
  return arrows.from.map((from, i) => ({ from: thread(from), to: thread(arrows.to[i]), sent: arrows.sent_ns[i], came: arrows.came_ns[i] }));
}

// What the picture lacks, and why.
function notes(model, events) {
  const { timeline } = model.document;
  if (model.sampled) return ["Samples have no times, so no range can be selected: that takes an exact profile with single events, by tapescope record --timeline 64MiB -- ./program"];
  if (!events?.known && model.document.ranks) return ["There is no row for each rank and no range of time: the profiles have no single events. They are recorded by tapescope record --timeline 64MiB -- ./program. What each rank waited and transferred is known without them: tapescope ranks."];
  if (!events?.known) return ["No range of time can be selected for the other views: the profile has no single events. They are recorded by tapescope record --timeline 64MiB -- ./program"];
  const texts = [`A range begins and ends at a multiple of ${time(events.binNs)}; what it sums is exact.`];
  if (timeline.events_left_out > 0) texts.push(`${count(timeline.events_left_out)} events beyond the limit of --timeline are in no range: from ${time(events.cut)} on (hatched) the bytes and the sweeps of the tape are known, and no single op.`);
  if (timeline.folded) texts.push("In ranges, lines that cost least are part of their callers.");
  if (timeline.slices_left_out > 0) texts.push(`Of the ops the ${count(timeline.slices.node.length)} longest are drawn one by one; all are in the phases.`);
  if (timeline.arrows.from.length > 0) texts.push(`Arrows are messages between ranks, from where one was sent to where it had come, and lead from the last rank of a collective call to those that waited; they are drawn where up to ${count(MOST_ARROWS)} are in view.`);
  if (timeline.arrows_left_out > 0) texts.push(`${count(timeline.arrows_left_out)} later messages have no arrow.`);
  if (timeline.spans_left_out > 0) texts.push(`${count(timeline.spans_left_out)} shorter spans of scopes are not shown.`);
  return texts;
}

function scopesTable(app) {
  const { model } = app;
  const scopes = model.document.scopes;
  if (!scopes?.name.length) return null;
  const depth = [];
  const rows = scopes.name.map((name, i) => {
    depth[i] = scopes.parent[i] < 0 ? 0 : depth[scopes.parent[i]] + 1;
    return { i, name: model.text(name), depth: depth[i] };
  });
  // A scope comes behind the one that it is in.
  const below = new Map();
  for (const row of rows) below.set(scopes.parent[row.i], [...(below.get(scopes.parent[row.i]) ?? []), row]);
  const ordered = [];
  const visit = (i) => { for (const row of below.get(i) ?? []) { ordered.push(row); visit(row.i); } };
  visit(-1);
  const column = (id, title, format, bar) => ({ id, title, bar, value: (row) => scopes[id][row.i], text: (row) => format(scopes[id][row.i]) });
  return new DataTable({
    caption: "Scopes", rows: ordered, sort: "",
    columns: [{ id: "name", title: "scope", wide: true, text: (row) => h("span", { style: { "padding-left": `${row.depth * 14}px` } }, row.name) },
      ...(scopes.wall_ns.some(Boolean) ? [column("wall_ns", "wall", time, "gray"), column("self_ns", "self", time), column("forward_ns", "forward", time, "fwd"), column("backward_ns", "backward", time, "bwd")] : []),
      column("tape_bytes", "tape", bytes, "mem"), column("peak_bytes", "at peak", bytes, "mem"), column("begun", "calls", count)],
  }).element;
}
