// places.js: what all ops of a place cost together. Places have numbers, in the order of their
// first lines, and what they cost is in columns by number: a profile may have 100 000 of them, of
// which a view names a few. What one of them is, as an object, is made when it is asked for.

import { COSTS, Cost, metricOf } from "./cost.js";

export class Places {
  /** @type {any} */ slow;
  /** @type {any} */ zeros;
  constructor(model) {
    this.model = model;
    const { n } = model.lines;
    this.of = new Int32Array(n); // by line: the number of its place
    this.next = new Int32Array(n); // by line: the next of the same place, 0: there is none
    this.first = []; // by place: its first line
    this.byLine = new Map(); // by a file's short name: its places by line
    this.byKey = new Map(); // those without a file or a line
    this.located = {};
    this.sums = {};
    this.asked = {};
    this.entries = [];
    this.names = new Map(); // by a text that names ops: they
    this.join();
  }

  // Gives lines to places: equal keys, equal places. Most have a file and a line, for which no text
  // need be made.
  join() {
    const { file: files, line: numbers, own } = this.model.lines.placeColumns("");
    const last = []; // by place: its last line
    let within; // the places of the file that the line before is in
    for (let i = 0, before = -1; i < this.of.length; i++) {
      const file = (files && files[i]) || 0;
      if (file !== before) within = this.placesOf(file);
      before = file;
      const line = (numbers && numbers[i]) || 0;
      const simple = within && line > 0 && !(own && own[i]);
      const key = simple ? "" : this.model.place(this.model.lines, i).key;
      const known = simple ? within[line] : this.byKey.get(key);
      if (known === undefined) {
        this.of[i] = this.first.length;
        if (simple) within[line] = this.of[i];
        else this.byKey.set(key, this.of[i]);
        this.first.push(i);
        last.push(i);
      } else {
        this.of[i] = known;
        this.next[last[known]] = i;
        last[known] = i;
      }
    }
  }

  // By line those of the file whose name is this text; undefined: it is no file.
  placesOf(text) {
    const short = this.model.fileByString.get(text)?.short;
    if (short !== undefined && !this.byLine.has(short)) this.byLine.set(short, []);
    return this.byLine.get(short);
  }

  get length() {
    return this.first.length;
  }

  // The number of the place with this key, or undefined.
  find(key) {
    const [, short, line] = /^(.*):(\d+)$/s.exec(key) ?? [];
    const at = this.byKey.get(key) ?? this.byLine.get(short)?.[line];
    return at !== undefined && this.at(at).place.key === key ? at : undefined;
  }

  get(key) {
    const at = this.find(key);
    return at === undefined ? undefined : this.at(at);
  }

  at(i) {
    return (this.entries[i] ??= new Entry(this, i));
  }

  *values() {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }

  // A column of where lines are ("file", "line"), by place.
  where(name) {
    if (this.located[name]) return this.located[name];
    const values = new Float64Array(this.length);
    const column = this.model.lines.columns[name];
    if (column) for (let i = 0; i < values.length; i++) values[i] = column[this.first[i]] || 0;
    return (this.located[name] = values);
  }

  // One of COSTS by place; zeros: the profile has none of it.
  sum(name) {
    return (this.sums[name] ??= this.add(this.model.lines.columns[name]));
  }

  add(column) {
    if (!column) return (this.zeros ??= new Float64Array(this.length));
    const sum = new Float64Array(this.length);
    for (let i = 0; i < this.of.length; i++) sum[this.of[i]] += column[i] || 0;
    return sum;
  }

  // A metric by place.
  metric(id) {
    if (this.asked[id]) return this.asked[id];
    const [sum, ...others] = metricOf(id).columns.map((name) => this.sum(name));
    const values = others.length ? sum.slice() : sum;
    for (const other of others) for (let i = 0; i < values.length; i++) values[i] += other[i];
    return (this.asked[id] = values);
  }

  // The same with other sums.
  with(sums) {
    return Object.assign(Object.create(this), { sums: { ...this.sums, ...sums }, asked: {}, entries: [] });
  }

  makePlace(i) {
    return this.model.place(this.model.lines, this.first[i]);
  }

  makeCost(i) {
    const cost = new Cost();
    for (const name of COSTS) cost[name] = this.sum(name)[i];
    return cost;
  }

  makeOps(i) {
    let ops = this.namesOn(this.first[i]);
    for (let line = this.next[this.first[i]]; line; line = this.next[line]) {
      const more = this.namesOn(line);
      if (more !== ops) ops = new Set([...ops, ...more]);
    }
    return ops;
  }

  // The ops whose pullbacks need what the place has made.
  makeKept(i) {
    const { kept_by: kept } = this.model.lines.placeColumns("");
    const names = new Set();
    for (let line = this.first[i], more = Boolean(kept); more; line = this.next[line], more = line > 0)
      for (const name of this.model.text(kept[line] || 0).split(", ")) if (name) names.add(name);
    return names;
  }

  namesOn(line) {
    const { ops } = this.model.lines.placeColumns("");
    const text = this.model.text((ops && ops[line]) || 0);
    if (!this.names.has(text)) this.names.set(text, new Set(text.split(", ").filter(Boolean)));
    return this.names.get(text);
  }

  isSlow(i) {
    this.slow ??= new Set(this.model.document.lines.slow_backward.map((line) => this.of[line]));
    return this.slow.has(i);
  }
}

// What is known of a place.
class Entry {
  /** @type {any} */ madeCost;
  /** @type {any} */ madeKept;
  /** @type {any} */ madeOps;
  /** @type {any} */ madePlace;
  constructor(places, number) {
    this.places = places;
    this.number = number;
  }
  get place() {
    return (this.madePlace ??= this.places.makePlace(this.number));
  }
  get cost() {
    return (this.madeCost ??= this.places.makeCost(this.number));
  }
  get ops() {
    return (this.madeOps ??= this.places.makeOps(this.number));
  }
  get kept() {
    return (this.madeKept ??= this.places.makeKept(this.number));
  }
  get slow() {
    return this.places.isSlow(this.number);
  }
}
