// view_source.js: a source file with what each line cost beside it, as numbers over bars.

import { h, replace } from "./dom.js";
import { byteSeconds, bytes, count, share, time } from "./format.js";
import { COSTS, Cost, metricOf, ratioOf, timeOf } from "./cost.js";
import { tokens } from "./c_tokens.js";
import { compile } from "./search.js";
import { firstOf, greatest, pick } from "./select.js";
import { matchText } from "./view_summary.js";
import { nothingIn } from "./nothing.js";
import { placeSpread } from "./ranks.js";

const CHUNK = 200;
const MOST_AT_ONCE = 10000; // rows; of more, those are made that come into view
const counted = (model) => model.counted;
const COLUMNS = [
  { id: "forward", title: "forward", bar: "fwd", text: (_, cost) => timeOf(cost, "forward") },
  { id: "backward", title: "backward", bar: "bwd", text: (_, cost) => timeOf(cost, "backward") },
  { id: "recompute", title: "recomp.", bar: "rec", text: time, when: (model) => model.sum.recompute > 0 },
  { id: "other", title: "other", bar: "gray", text: time, when: (model) => model.sum.other > 0, hint: "code that has nothing to do with tapes" },
  { id: "tape", title: "tape", bar: "mem", text: bytes, when: counted },
  { id: "peak", title: "peak", bar: "mem", text: bytes, when: counted },
  { id: "ratio", title: "b/f", text: null },
  { id: "calls", title: "calls", text: count, when: counted },
  { id: "through", title: "through", bar: "gray", through: "total", text: time, when: (model) => model.hasPaths, hint: "time of what the line called, which has it on its own lines as well" },
  { id: "through_tape", title: "thr. tape", bar: "gray", through: "tape", text: bytes, when: (model) => model.hasPaths && model.counted, hint: "bytes of what the line called" },
  { id: "kept", title: "kept by", text: null, when: (model) => Boolean(model.lines.columns.kept_by), hint: "ops whose pullbacks need what the line made" },
  { id: "lifetime", title: "byte-s", bar: "mem", text: byteSeconds, when: (_, metric) => metric.id === "lifetime" },
];

export function mountSource(root, app) {
  return new SourceView(root, app);
}

class SourceView {
  constructor(root, app) {
    this.app = app;
    this.files = fileCosts(app.model);
    this.side = h("nav", { class: "files", "aria-label": "Files" });
    this.body = h("div", { class: "source", tabindex: "0", role: "region", "aria-label": "Source" });
    this.tools = h("div", { class: "tools" });
    replace(root, h("div", { class: "source-view" }, this.side, h("div", { class: "source-side" }, this.tools, this.body)));
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.fill(Number(/** @type {HTMLElement} */ (entry.target).dataset.chunk));
    }, { rootMargin: "1000px" });
    this.print = () => this.chunks.forEach((_, i) => this.fill(i));
    addEventListener("beforeprint", this.print);
    this.update(app.state.now, null);
  }

  destroy() {
    this.seen.disconnect();
    removeEventListener("beforeprint", this.print);
  }

  fileOf(state) {
    const selected = this.app.model.places.get(state.sel)?.place.file ?? this.app.model.fileByShort.get(state.sel.replace(/:\d+$/, ""));
    return this.app.model.fileByShort.get(state.file) ?? selected ?? this.files[0]?.file ?? null;
  }

  update(state, before) {
    const jumped = !before || before.sel !== state.sel;
    if (before && jumped && state.file) {
      const selected = this.app.model.places.get(state.sel)?.place.file;
      if (selected && selected.short !== state.file) return this.app.state.set({ file: "" });
    }
    const file = this.fileOf(state);
    const shape = `${file?.short} ${state.q} ${state.metric} ${state.hot}`;
    if (shape !== this.shape) this.build(file, state);
    this.shape = shape;
    this.markRow(state, jumped);
    const { expression } = compile(state.q);
    this.app.setMatch(expression && matchText(this.app.model, expression, state.metric));
  }

  build(file, state) {
    const { model } = this.app;
    const metric = metricOf(state.metric);
    const within = file ? placesIn(model, file) : [];
    replace(this.side, h("h2", {}, "Files"), this.files.map((entry) => h("button", { class: "file", "data-focus": `file ${entry.file.short}`, title: model.text(entry.file.file),
      "aria-current": String(entry.file === file), onclick: () => this.app.state.set({ file: entry.file.short, sel: "" }) },
    h("span", {}, entry.file.short), h("span", { class: "n" }, share(entry.cost[metric.id], model.sum[metric.id])))),
    this.hotLines(within, metric));
    this.seen.disconnect();
    this.chunks = [];
    this.entries = [];
    this.tools.hidden = !file;
    const chip = (text, props) => h("button", { class: "chip", "data-focus": `source ${text}`, ...props }, text);
    replace(this.tools, chip("Hot lines only", { "aria-pressed": String(Boolean(state.hot)), onclick: () => this.app.state.set({ hot: state.hot ? "" : "1" }) }),
      chip("Previous", { title: "the line with costs before (N)", onclick: () => this.key("N") }), chip("Next", { title: "the next line with costs (n)", onclick: () => this.key("n") }));
    if (!file) {
      replace(this.body, h("p", { class: "note" }, nothingIn(model, "source")));
      return;
    }
    const { places } = model;
    const lines = places.where("line");
    const placeOf = []; // by line
    const numbers = [];
    for (const at of within) {
      if (placeOf[lines[at]] === undefined) numbers.push(lines[at]);
      placeOf[lines[at]] = at;
    }
    this.columns = COLUMNS.filter((c) => c.when?.(model, metric) ?? true);
    const spread = placeSpread(this.app, metric.id);
    if (spread) this.columns = [...this.columns, { id: "ranks", title: "max/mean", spread }];
    const all = pick(placeOf, numbers);
    this.through = throughIn(this.app, file, this.columns);
    const most = Object.fromEntries(this.columns.map((c) => [c.id, c.through ? [...this.through.values()].reduce((a, one) => Math.max(a, one[c.id]), 0)
      : c.bar ? places.metric(c.id)[greatest(places.metric(c.id), all)] : 0]));
    this.dearest = lines[greatest(places.metric(metric.id), all)];
    const sorted = Float64Array.from(file.text ? numbers.filter((line) => line > 0) : numbers).sort();
    this.entries = pick(placeOf, sorted);
    this.numbers = file.text && !state.hot ? null : sorted;
    const textRow = file.text && this.textRow(file, placeOf, most, compile(state.q).expression);
    const row = textRow && !state.hot ? textRow : textRow ? (i) => {
      const made = textRow(sorted[i] - 1);
      if (i > 0 && sorted[i] !== sorted[i - 1] + 1) made.classList.add("gap");
      return made;
    } : (i) => this.line(this.numbers[i], [["", [...places.at(this.entries[i]).ops].join(", ")]], places.at(this.entries[i]), most);
    replace(this.body, this.head(), !file.text && h("p", { class: "note" }, `The text of ${model.text(file.file)} is not here: ${file.why}.`),
      this.makeChunks(this.numbers ? this.entries.length : file.text.length, row));
    if (this.chunks.length * CHUNK <= MOST_AT_ONCE) this.print();
    else for (const chunk of this.chunks) this.seen.observe(chunk.element);
  }

  makeChunks(n, row) {
    for (let from = 0; from < n; from += CHUNK) {
      const size = Math.min(CHUNK, n - from);
      this.chunks.push({ element: h("div", { class: "chunk", "data-chunk": this.chunks.length, style: { "--lines": String(size) } }), from, size, row });
    }
    return this.chunks.map((chunk) => chunk.element);
  }

  fill(index) {
    const chunk = this.chunks[index];
    if (!chunk?.row) return;
    replace(chunk.element, Array.from({ length: chunk.size }, (_, i) => chunk.row(chunk.from + i)));
    chunk.row = null;
  }

  // The element of a line, or undefined.
  rowOf(line) {
    const at = this.numbers ? this.numbers.indexOf(line) : line - 1;
    this.fill(Math.floor(at / CHUNK));
    return this.chunks[Math.floor(at / CHUNK)]?.element.querySelector(`[data-line="${line}"]`);
  }

  head() {
    return h("div", { class: "src head" }, this.columns.map((c) => h("span", { class: `g ${c.id}`, title: c.hint }, c.title)), h("span", { class: "no" }, "line"), h("span", { class: "code" }, ""));
  }

  hotLines(within, metric) {
    const { places, sum } = this.app.model;
    const hot = firstOf(pick(places.metric(metric.id), within), 8, true).map((i) => places.at(within[i])).filter((e) => e.cost[metric.id] > 0);
    return hot.length > 0 && [h("h2", {}, metric.name), hot.map((e) => h("button", { class: "file", "data-focus": `hot ${e.place.key}`, onclick: () => this.app.state.set({ sel: e.place.key }) },
      h("span", {}, `${e.place.line} ${[...e.ops].join(", ")}`), h("span", { class: "n" }, share(e.cost[metric.id], sum[metric.id]))))];
  }

  // Makes the row of line i from 0. Whether a line begins within a comment follows from those before
  // it: inside[i], as far as it is known.
  textRow(file, placeOf, most, expression) {
    const { places } = this.app.model;
    const inside = [false];
    return (i) => {
      while (inside.length <= i) inside.push(tokens(file.text[inside.length - 1], inside[inside.length - 1]).inside);
      const row = this.line(i + 1, tokens(file.text[i], inside[i]).pieces, placeOf[i + 1] === undefined ? undefined : places.at(placeOf[i + 1]), most);
      if (expression && expression.test(file.text[i])) row.classList.add("found");
      return row;
    };
  }

  line(number, pieces, entry, most) {
    const through = this.through.get(number);
    const cells = this.columns.map((c) => {
      if (c.id === "kept" && entry) return h("span", { class: "g kept", title: [...entry.kept].join(", ") }, h("span", { class: "v" }, [...entry.kept].join(", ")));
      if (c.spread && entry) return h("span", { class: `g ${c.id}`, title: "the most of any rank over the mean of all (that rank)" }, h("span", { class: "v" }, c.spread(entry)));
      if (c.through ? !through : !entry) return h("span", { class: `g ${c.id}` });
      const value = c.through ? through[c.id] : c.id === "ratio" ? null : entry.cost[c.id];
      const text = c.id === "ratio" ? (entry.cost.forward > 0 && entry.cost.backward > 0 ? ratioOf(entry.cost) + (entry.slow ? "!" : "") : "")
        : value || (c.id === "forward" && entry.cost.untimed_calls > 0) ? c.text(value, entry?.cost) : "";
      const part = c.bar && most[c.id] > 0 ? (100 * value) / most[c.id] : 0;
      return h("span", { class: `g ${c.id}` }, part > 0 && h("span", { class: `bar ${c.bar}`, style: { "--part": `${part.toFixed(2)}%` } }), h("span", { class: "v" }, text));
    });
    const key = entry?.place.key ?? through?.key;
    return h("div", { class: entry ? "src cost" : through ? "src calls" : "src", "data-line": number, onclick: key ? () => this.app.state.set({ sel: key }) : undefined },
      cells, h("span", { class: "no" }, String(number)), h("span", { class: "code" }, pieces.map(([kind, text]) => (kind ? h("i", { class: kind }, text) : text))));
  }

  markRow(state, scroll) {
    this.body.querySelector(".src.selected")?.classList.remove("selected");
    const line = Number(/:(\d+)$/.exec(state.sel)?.[1]);
    const row = line > 0 && this.rowOf(line);
    if (!row && scroll && this.dearest) this.rowOf(this.dearest)?.scrollIntoView({ block: "center" });
    if (!row || this.fileOf(state) !== (this.app.model.places.get(state.sel)?.place.file ?? this.fileOf(state))) return;
    row.classList.add("selected");
    if (scroll) row.scrollIntoView({ block: "center" });
  }

  key(key) {
    const step = { ArrowDown: 1, ArrowUp: -1, n: 1, N: -1 }[key];
    if (!step || !this.entries.length) return false;
    const { places } = this.app.model;
    const at = this.entries.indexOf(places.find(this.app.state.now.sel));
    this.app.state.set({ sel: places.at(this.entries[Math.max(0, Math.min(this.entries.length - 1, at + step))]).place.key });
    return true;
  }
}

// What was called through lines of a file, by line, with the line's key; none where it is shown nowhere.
function throughIn(app, file, columns) {
  const byLine = new Map();
  const calls = app.calls();
  for (const { id, through } of columns) {
    if (!through) continue;
    const sums = calls.through(through);
    for (let frame = 1; frame < calls.nFrames; frame++) {
      if (!(sums[frame] > 0)) continue;
      const place = calls.place(frame);
      if (place.file !== file || !place.line || place.own) continue;
      if (!byLine.has(place.line)) byLine.set(place.line, { key: place.key, through: 0, through_tape: 0 });
      byLine.get(place.line)[id] += sums[frame];
    }
  }
  return byLine;
}

// The numbers of the places in a file.
function placesIn(model, file) {
  const files = model.places.where("file");
  const numbers = [];
  for (let i = 0; i < files.length; i++) if (files[i] === file.file) numbers.push(i);
  return numbers;
}

// The files with places and what these cost, the dearest first.
function fileCosts({ places, fileByString }) {
  const byText = new Map();
  const files = places.where("file");
  const number = new Int32Array(files.length); // of a place's file, in order of appearance
  for (let i = 0; i < files.length; i++) {
    if (i > 0 && files[i] === files[i - 1]) {
      number[i] = number[i - 1];
      continue;
    }
    if (!byText.has(files[i])) byText.set(files[i], { number: byText.size, file: fileByString.get(files[i]), cost: new Cost() });
    number[i] = byText.get(files[i]).number;
  }
  for (const name of COSTS) {
    const values = places.sum(name);
    if (values === places.zeros) continue;
    const sums = new Float64Array(byText.size);
    for (let i = 0; i < values.length; i++) sums[number[i]] += values[i];
    for (const entry of byText.values()) entry.cost[name] = sums[entry.number];
  }
  return [...byText.values()].filter((entry) => entry.file).sort((a, b) => b.cost.total + b.cost.tape / 1e6 - a.cost.total - a.cost.tape / 1e6);
}
