// events.js: times of single events by when they were: bins of one width, and what each node of the
// call tree has in which of them. What a stretch of whole bins has is exact, so stretches begin and
// end where bins do.

import { Cost, PHASES } from "./cost.js";

export class Events {
  /** @type {any} */ binNs;
  /** @type {any} */ bins;
  /** @type {any} */ kinds;
  /** @type {any} */ n;
  /** @type {any} */ series;
  constructor(document) {
    const { series, cells, kinds, bins, bin_ns: binNs, threads } = document.timeline;
    Object.assign(this, { series, kinds, bins, binNs, n: document.tree.parent.length });
    this.overhead = [document.timeline.forward_overhead_ns, document.timeline.backward_overhead_ns];
    this.threads = threads.number.map((number, i) => (threads.process[i] ? `${threads.process[i]}/${number}` : String(number)));
    this.ns = cells.ns ?? [];
    this.count = cells.count ?? [];
    this.bin = Int32Array.from(cells.bin);
    this.known = this.bin.length > 0;
    this.each((_, i, first) => { if (i > first) this.bin[i] += this.bin[i - 1]; });
    this.lanes = new Map();
    this.slices = slicesOf(document.timeline);
    // From when on there are no events; null: they are there to the end.
    this.cut = document.timeline.events_left_out > 0 ? document.timeline.events_end_ns : null;
  }

  // visit(series, cell, first cell of the series)
  each(visit) {
    let i = 0;
    for (let s = 0; s < this.series.cells.length; s++) {
      const first = i;
      for (const end = first + this.series.cells[s]; i < end; i++) visit(s, i, first);
    }
  }

  // The bins that have any of a stretch in ns, as a stretch.
  snap(from, to) {
    const first = Math.min(this.bins - 1, Math.max(0, Math.floor(from / this.binNs)));
    const end = Math.min(this.bins, Math.max(first + 1, Math.ceil(to / this.binNs)));
    return [first * this.binNs, end * this.binNs];
  }

  // From the address: "from-to" in ns; null: none.
  parse(text) {
    const m = this.known && /^(\d+)-(\d+)$/.exec(text);
    return m && Number(m[1]) < Number(m[2]) ? this.snap(Number(m[1]), Number(m[2])) : null;
  }

  // By metric what each node has itself in a stretch; the profiler's own time is taken off as from
  // the whole. A call is where it began.
  sums([from, to]) {
    const [first, end] = [Math.round(from / this.binNs), Math.round(to / this.binNs)];
    const make = () => new Float64Array(this.n);
    const sums = { total: make(), other: make(), calls: make() };
    for (const phase of PHASES) sums[phase.name] = make();
    const swept = make(); // calls of pullbacks, and sweeps
    const { node, kind } = this.series;
    this.each((s, i) => {
      if (this.bin[i] < first || this.bin[i] >= end) return;
      const of = this.kinds[kind[s]];
      sums[of.phase][node[s]] += this.ns[i] ?? 0;
      if (of.calls) sums.calls[node[s]] += this.count[i] ?? 0;
      if (of.swept) swept[node[s]] += this.count[i] ?? 0;
    });
    for (let i = 0; i < this.n; i++) {
      sums.forward[i] = Math.max(0, sums.forward[i] - sums.calls[i] * this.overhead[0]);
      sums.backward[i] = Math.max(0, sums.backward[i] - swept[i] * this.overhead[1]);
      for (const phase of PHASES) sums.total[i] += sums[phase.name][i];
    }
    return sums;
  }

  // What a thread has done before the begin of each bin, in ns by phase.
  lane(thread) {
    if (!this.lanes.has(thread)) {
      const lane = {};
      for (const { name } of PHASES) lane[name] = new Float64Array(this.bins + 1);
      this.each((s, i) => { if (this.series.thread[s] === thread) lane[this.kinds[this.series.kind[s]].phase][this.bin[i] + 1] += this.ns[i] ?? 0; });
      for (const sum of Object.values(lane)) for (let i = 1; i <= this.bins; i++) sum[i] += sum[i - 1];
      this.lanes.set(thread, lane);
    }
    return this.lanes.get(thread);
  }

  // Of a column of a lane, what lies before a time.
  before(column, ns) {
    const at = Math.min(this.bins, Math.max(0, ns / this.binNs));
    const bin = Math.min(this.bins - 1, Math.floor(at));
    return column[bin] + (column[bin + 1] - column[bin]) * (at - bin);
  }
}

// Ops and pullbacks one by one, by thread and in the order of their begins: columns from, to, node, kind.
function slicesOf({ slices, threads }) {
  const of = threads.number.map(() => ({ from: [], to: [], node: [], kind: [] }));
  for (let i = 0, from = 0; i < slices.node.length; i++) {
    from += slices.start_ns[i];
    const lane = of[slices.thread[i]];
    lane.from.push(from);
    lane.to.push(from + slices.ns[i]);
    lane.node.push(slices.node[i]);
    lane.kind.push(slices.kind[i]);
  }
  // Until when any of those before has run: who looks for what runs at a time need not go back further.
  for (const lane of of) {
    let last = 0;
    lane.until = lane.to.map((to) => (last = Math.max(last, to)));
  }
  return of;
}

// Those of a lane that run within a stretch: [first, end) by number, of which a few may be over before.
export function slicesWithin(lane, from, to) {
  const first = firstWhere(lane.until, (until) => until >= from);
  return [first, Math.max(first, firstWhere(lane.from, (begin) => begin > to))];
}

// The first of an ascending column of which it holds, or its length.
function firstWhere(column, holds) {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(column[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Places and their sum as a model has them, with the times and calls of a stretch; places are made
// when they are asked for.
export function partOf(model, calls, sums) {
  const columns = Object.entries({ ...Object.fromEntries(PHASES.map(({ name }) => [`${name}_ns`, sums[name]])), other_ns: sums.other, calls: sums.calls });
  const whole = { places: model.places, sum: Object.assign(new Cost(), model.sum) };
  for (const [name, own] of columns) whole.sum[name] = own.reduce((a, b) => a + b, 0);
  const make = () => {
    const byPlace = columns.map(() => new Float64Array(whole.places.length));
    const byFrame = columns.map(() => new Float64Array(calls.nFrames));
    for (const [k, [, own]] of columns.entries()) for (let i = 0; i < calls.n; i++) byFrame[k][calls.frame[i]] += own[i];
    for (let frame = 0; frame < calls.nFrames; frame++) {
      const at = whole.places.find(calls.place(frame).key);
      for (const [k] of columns.entries()) if (at !== undefined) byPlace[k][at] += byFrame[k][frame];
    }
    return whole.places.with(Object.fromEntries(columns.map(([name], k) => [name, byPlace[k]])));
  };
  return { sum: whole.sum, get places() { return (this.made ??= make()); } };
}

// Spans of scopes, as the page draws them: by thread in rows of scopes that hold each other.
export function spansOf(model) {
  const { spans, threads } = model.document.timeline ?? {};
  if (!spans?.scope.length) return [];
  const { name, parent } = model.document.scopes;
  const depth = [];
  const path = [];
  for (let i = 0; i < name.length; i++) {
    depth[i] = parent[i] < 0 ? 0 : depth[parent[i]] + 1;
    path[i] = (parent[i] < 0 ? "" : `${path[parent[i]]} › `) + model.text(name[i]);
  }
  let start = 0;
  return spans.scope.map((scope, i) => {
    start += spans.start_ns[i];
    return { i, scope, name: model.text(name[scope]), path: path[scope], depth: depth[scope], thread: spans.thread[i],
      number: threads.number[spans.thread[i]], from: start, to: start + spans.ns[i] };
  });
}
