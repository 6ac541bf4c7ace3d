// hierarchy.js: trees of frames and where their rectangles lie. Node 0 is the root and a parent
// comes before its children, so that sums need no recursion.

import { PHASES, metricOf } from "./cost.js";

export class Hierarchy {
  // frame[i]: number of the place of node i; self[k][i]: what of the k-th value is its own. The
  // first value is what widths are made of, the others are its parts.
  constructor(parent, frame, self) {
    this.n = parent.length;
    this.parent = parent;
    this.frame = frame;
    this.values = self.map((own) => {
      const value = Float64Array.from(own);
      for (let i = this.n - 1; i > 0; i--) value[parent[i]] += value[i];
      return value;
    });
    this.value = this.values[0];
  }

  // Rectangles: x from 0 to 1, the dearest child first; rows[d]: the nodes of depth d from left to right.
  layout() {
    const { n, parent, value } = this;
    this.x0 = new Float64Array(n);
    this.x1 = new Float64Array(n);
    this.depth = new Uint16Array(n);
    const total = value[0];
    const first = new Int32Array(n + 1);
    for (let i = 1; i < n; i++) first[parent[i] + 1]++;
    for (let i = 0; i < n; i++) first[i + 1] += first[i];
    const child = new Int32Array(Math.max(0, n - 1));
    const at = first.slice();
    for (let i = 1; i < n; i++) child[at[parent[i]]++] = i;
    this.first = first;
    this.child = child;
    this.rows = [[0]];
    this.x1[0] = total > 0 ? 1 : 0;
    const dearestFirst = (a, b) => value[b] - value[a] || a - b;
    for (let d = 0; d < this.rows.length && d < 4000; d++) {
      const next = [];
      for (const node of this.rows[d]) {
        const end = first[node + 1];
        sortChildren(child, first[node], end, dearestFirst);
        let x = this.x0[node];
        for (let k = first[node]; k < end && value[child[k]] > 0; k++) {
          const c = child[k];
          this.x0[c] = x;
          x += value[c] / total;
          this.x1[c] = x;
          this.depth[c] = d + 1;
          next.push(c);
        }
      }
      if (next.length) this.rows.push(next);
    }
    return this;
  }

  children(node) {
    return [...this.child.subarray(this.first[node], this.first[node + 1])].filter((c) => this.value[c] > 0);
  }

  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parent[at]) path.unshift(at);
    return path;
  }
}

// Most nodes have a few children, for which a call of sort() costs more than the sorting.
function sortChildren(child, begin, end, compare) {
  if (end - begin > 32) {
    child.subarray(begin, end).sort(compare);
    return;
  }
  for (let i = begin + 1; i < end; i++) {
    const node = child[i];
    let at = i;
    for (; at > begin && compare(child[at - 1], node) > 0; at--) child[at] = child[at - 1];
    child[at] = node;
  }
}

// The calls of a model: its tree, frames by place, and views of it.
export class Calls {
  constructor(model) {
    this.model = model;
    const tree = model.tree;
    this.n = tree.n;
    this.parent = Int32Array.from(tree.columns.parent);
    this.frame = new Int32Array(this.n);
    this.first = []; // by frame: the first node of it
    this.ops = []; // by frame: the number of the text that names its ops, or a set of them
    this.known = []; // by frame: what place() and label() gave before
    this.labels = [];
    this.cut = new Set(tree.columns.cut);
    const byLine = new Map();
    const byKey = new Map();
    for (let i = 0; i < this.n; i++) this.frame[i] = this.intern(i, byLine, byKey);
    this.self = new Map();
    this.made = new Map();
  }

  // The frame of a node: equal for equal keys of places. Most have a file and a line, for which no
  // text need be made.
  intern(node, byLine, byKey) {
    const { file: files, line: lines, own, ops: texts } = this.model.tree.placeColumns("");
    const file = (files && files[node]) || 0;
    const line = (lines && lines[node]) || 0;
    const simple = file > 0 && line > 0 && !this.cut.has(node) && !(own && own[node]);
    const table = simple ? byLine : byKey;
    const key = simple ? file * 16777216 + line : this.makePlace(node).key;
    let frame = table.get(key);
    if (frame === undefined) {
      frame = this.first.length;
      table.set(key, frame);
      this.first.push(node);
      this.ops.push(0);
    }
    const ops = texts && texts[node];
    if (ops) this.addOps(frame, ops);
    return frame;
  }

  addOps(frame, ops) {
    const known = this.ops[frame];
    if (known === 0 || known === ops) this.ops[frame] = ops;
    else if (known instanceof Set) known.add(ops);
    else this.ops[frame] = new Set([known, ops]);
  }

  makePlace(node) {
    if (node === 0) return rootPlace();
    return this.cut.has(node) ? cutPlace() : this.model.place(this.model.tree, node);
  }

  get nFrames() {
    return this.first.length;
  }

  place(frame) {
    return (this.known[frame] ??= this.makePlace(this.first[frame]));
  }

  // The frame with this key, or undefined.
  frameOf(key) {
    if (!key) return undefined;
    if (!this.byKey) {
      this.byKey = new Map();
      for (let frame = 0; frame < this.nFrames; frame++) this.byKey.set(this.place(frame).key, frame);
    }
    return this.byKey.get(key);
  }

  // sums: by metric what nodes have themselves in a stretch of time; null: all of it.
  within(sums) {
    this.stretch = sums;
    this.made.clear();
  }

  selfOf(metric) {
    if (this.stretch?.[metric]) return this.stretch[metric];
    if (!this.self.has(metric)) this.self.set(metric, this.model.tree.numbers(...metricOf(metric).columns));
    return this.self.get(metric);
  }

  // mode: calls, inverted, callers or callees (of the frame `of`).
  hierarchy(mode, metric, of = -1) {
    const key = `${mode} ${metric} ${of}`;
    if (!this.made.has(key)) {
      if (this.made.size > 24) this.made.clear();
      this.made.set(key, this.build(mode, metric, of).layout());
    }
    return this.made.get(key);
  }

  build(mode, metric, of) {
    const names = metric === "total" ? ["total", ...PHASES.map((phase) => phase.name)] : [metric];
    const self = names.map((name) => this.selfOf(name));
    if (mode === "inverted") return this.merge(self, (i) => self[0][i] > 0);
    if (mode === "callers" || mode === "callees") {
      const outermost = this.outermost(of);
      if (mode === "callees") return this.mergeBelow(self, outermost);
      return this.merge(this.hierarchy("calls", metric).values, (i) => outermost[i] === 2);
    }
    return new Hierarchy(this.parent, this.frame, self);
  }

  // 2: a node of the frame that is within no other such; 1: below one.
  outermost(frame) {
    const mark = new Uint8Array(this.n);
    for (let i = 1; i < this.n; i++) mark[i] = mark[this.parent[i]] ? 1 : this.frame[i] === frame ? 2 : 0;
    return mark;
  }

  // What was called through each frame, which those frames have as their own: of a metric, by frame. A
  // frame that calls itself counts once.
  through(metric) {
    const key = `through ${metric}`;
    if (!this.made.has(key)) this.made.set(key, this.addThrough(this.hierarchy("calls", metric), this.selfOf(metric)));
    return this.made.get(key);
  }

  addThrough({ first, child, value }, self) {
    const sums = new Float64Array(this.nFrames);
    const open = new Uint32Array(this.nFrames); // how many nodes of the frame are on the path
    const at = first.slice(0, this.n); // by node: the child that is visited next
    const path = this.n > 0 ? [0] : [];
    const enter = (node) => {
      const frame = this.frame[node];
      if (open[frame]++ === 0) sums[frame] += value[node];
      sums[frame] -= self[node];
    };
    enter(0);
    while (path.length) {
      const node = path[path.length - 1];
      if (at[node] < first[node + 1]) {
        const next = child[at[node]++];
        path.push(next);
        enter(next);
      } else {
        open[this.frame[node]]--;
        path.pop();
      }
    }
    return sums;
  }

  // Callers below what they call: each chosen node's value goes up its path.
  merge(values, chosen) {
    const trie = new Trie(this.frame[0], values.length);
    for (let i = 1; i < this.n; i++) {
      if (!chosen(i)) continue;
      let at = 0;
      for (let up = i; up > 0; up = this.parent[up]) at = trie.child(at, this.frame[up]);
      trie.add(at, values, i);
    }
    return trie.hierarchy();
  }

  mergeBelow(self, mark) {
    const trie = new Trie(this.frame[0], self.length);
    const to = new Int32Array(this.n).fill(-1);
    for (let i = 1; i < this.n; i++) {
      if (!mark[i]) continue;
      to[i] = trie.child(mark[i] === 2 ? 0 : to[this.parent[i]], this.frame[i]);
      trie.add(to[i], self, i);
    }
    return trie.hierarchy();
  }

  // The ops of a frame, "" where it records nothing.
  opsOf(frame) {
    const known = this.ops[frame];
    if (known === 0) return "";
    if (!(known instanceof Set)) return this.model.text(known);
    const names = new Set();
    for (const text of known) for (const op of this.model.text(text).split(", ")) names.add(op);
    return [...names].join(", ");
  }

  label(frame) {
    return (this.labels[frame] ??= this.makeLabel(frame));
  }

  // What a node records, for where there is little room: its ops, or else its frame.
  opLabel(node) {
    const { ops } = this.model.tree.placeColumns("");
    return this.model.text((ops && ops[node]) || 0) || this.label(this.frame[node]);
  }

  // All labels, which the first search would wait for: some at a time, while nothing else is to do.
  labelAhead(from = 0) {
    const more = (deadline) => {
      let frame = from;
      for (; frame < this.nFrames && deadline.timeRemaining() > 1; frame++) this.label(frame);
      if (frame < this.nFrames) this.labelAhead(frame);
    };
    requestIdleCallback(more);
  }

  makeLabel(frame) {
    const place = this.place(frame);
    if (place.root || place.own) return place.key;
    const ops = this.opsOf(frame);
    return `${place.function || place.key}${place.file && place.function ? ` ${place.key}` : ""}${ops && ` · ${ops}`}`;
  }
}

class Trie {
  constructor(rootFrame, nValues) {
    this.parent = [-1];
    this.frame = [rootFrame];
    this.self = Array.from({ length: nValues }, () => [0]);
    this.known = new Map();
  }
  child(at, frame) {
    const key = at * 4294967296 + frame;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.parent.length;
      this.known.set(key, node);
      this.parent.push(at);
      this.frame.push(frame);
      for (const own of this.self) own.push(0);
    }
    return node;
  }
  add(node, values, i) {
    for (let k = 0; k < values.length; k++) this.self[k][node] += values[k][i];
  }
  hierarchy() {
    return new Hierarchy(Int32Array.from(this.parent), Int32Array.from(this.frame), this.self);
  }
}

const noPlace = { line: 0, function: "", ops: "", kept: "", own: false, module: "", offset: 0 };
const rootPlace = () => ({ ...noPlace, key: "(all)", root: true });
const cutPlace = () => ({ ...noPlace, key: "(frames left out)", root: true });
