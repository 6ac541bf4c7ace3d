// data.js: the document in the page as a model: lines, the call tree, and what belongs to a place.
// Its columns are written by profiler/report/html; a column that is not there is all zeros.

import { COSTS, Cost, METRICS, learn } from "./cost.js";
import { Places } from "./places.js";

export async function decode(base64) {
  const packed = bytesOf(base64.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function bytesOf(base64) {
  const { fromBase64 } = /** @type {any} */ (Uint8Array); // of newer browsers
  if (fromBase64) return fromBase64.call(Uint8Array, base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const PLACE = ["file", "line", "function", "ops", "kept_by", "own", "module", "offset"];

// Columns with a way to read them whether they are there or not.
export class Table {
  /** @type {any} */ placed;
  constructor(columns, n) {
    this.columns = columns ?? {};
    this.n = n ?? Math.max(0, ...Object.values(this.columns).map((c) => (Array.isArray(c) ? c.length : 0)));
  }
  get(name, i) {
    const column = this.columns[name];
    return (column && column[i]) || 0;
  }
  // The columns that say where a row is.
  placeColumns(prefix) {
    this.placed ??= {};
    return (this.placed[prefix] ??= Object.fromEntries(PLACE.map((name) => [name, this.columns[prefix + name]])));
  }
  // As numbers; of several columns their sum.
  numbers(...names) {
    const sum = new Float64Array(this.n);
    for (const name of names) {
      const column = this.columns[name];
      if (column) for (let i = 0; i < this.n; i++) sum[i] += column[i] || 0;
    }
    return sum;
  }
  total(name) {
    const column = this.columns[name];
    let sum = 0;
    if (column) for (let i = 0; i < this.n; i++) sum += column[i] || 0;
    return sum;
  }
}

export const CAUSES = ["call", "sweep", "frame", "rewind", "reset", "destroy"];

export class Model {
  /** @type {any} */ joined;
  /** @type {any} */ part;
  constructor(document) {
    learn(document);
    this.document = document;
    this.strings = document.strings;
    this.profile = document.profile;
    this.total = document.total;
    this.sampled = document.sampled;
    this.files = document.files;
    nameFiles(this.files, this.strings);
    this.fileByString = new Map(this.files.map((f) => [f.file, f]));
    this.fileByShort = new Map(this.files.map((f) => [f.short, f]));
    this.lines = new Table(document.lines, document.lines.expected_ratio.length);
    this.tree = new Table(document.tree, document.tree.parent.length);
    this.metrics = METRICS.filter((m) => !m.optional || m.columns.some((name) => this.lines.columns[name]));
  }

  // Samples alone count no calls and no bytes.
  get counted() {
    const sum = /** @type {any} */ (this.wholeSum);
    return !this.sampled || sum.calls > 0 || sum.tape > 0;
  }

  // Whether frames have callers; samples have those of other code at least.
  get hasPaths() {
    return this.tree.columns.has_paths || this.total.samples > 0;
  }

  // What all ops of a place cost. Made when it is asked for: a view may do without. part: the same
  // and the sum of a stretch of time; those of the whole run stay.
  get places() {
    return this.part?.places ?? this.wholePlaces;
  }

  get wholePlaces() {
    return (this.joined ??= new Places(this));
  }

  // What all lines cost.
  get sum() {
    return this.part?.sum ?? this.wholeSum;
  }

  get wholeSum() {
    if (!this.summed) {
      this.summed = new Cost();
      for (const name of COSTS) this.summed[name] = this.lines.total(name);
    }
    return this.summed;
  }

  text(number) {
    return this.strings[number] ?? "";
  }

  // Where row i of a table is; prefix: of its columns' names.
  place(table, i, prefix = "") {
    const of = table.placeColumns(prefix);
    const text = (column) => this.strings[(column && column[i]) || 0] ?? "";
    const number = (column) => (column && column[i]) || 0;
    const place = {
      key: "", file: this.fileByString.get(number(of.file)), line: number(of.line), function: text(of.function), ops: text(of.ops),
      kept: text(of.kept_by), own: number(of.own) > 0, module: text(of.module), offset: number(of.offset),
    };
    const { file } = place;
    if (file && place.line && !place.own) {
      place.key = `${file.short}:${place.line}`;
      return place;
    }
    const module = place.module.split("/").pop() || "?";
    const offset = place.offset ? "+0x" + place.offset.toString(16) : "";
    if (place.own) place.key = place.ops ? `(tape) ${place.ops}` : "(tape)";
    else if (file) place.key = `${file.short} ${place.function}`;
    else if (place.function) place.key = `${place.function} (${module}${offset})`;
    else place.key = place.line ? `${module} line ${place.line}` : module + offset;
    return place;
  }

  // Classes of the tape's bytes: who made them, what for, what became of them.
  holders() {
    if (this.holderRows || !this.document.space) return this.holderRows ?? [];
    const table = new Table(this.document.space.holders);
    this.holderRows = Array.from({ length: table.n }, (_, i) => {
      const get = (name) => table.get(name, i);
      const other = (prefix) => (get(`${prefix}ops`) ? this.place(table, i, prefix) : null);
      return {
        i, place: this.place(table, i), consumer: other("consumer_"), releasedBy: other("released_by_"), more: get("more") > 0,
        kinds: get("kinds"), held: get("held"), dead: get("dead_bytes"), unread: get("unread_bytes"), bytes: get("bytes"),
        live: get("live_bytes"), count: get("count"), byteNs: get("byte_ns"), read: get("read_bytes"), left: get("by_destroy") + get("live_bytes"),
        by: Object.fromEntries(CAUSES.map((cause) => [cause, get(`by_${cause}`)])),
      };
    });
    return this.holderRows;
  }

  // What each holder has at the moment of a stretch at which the tape with the peak holds most: {ns,
  // total, held}, held by row of holders(); null: what was held then is not known. Known is what was so
  // at the end of each of the moments that the document has, as changes since the one before.
  heldWithin([from, to]) {
    const { ns, total, moment, holder, delta } = this.document.space?.moments ?? { ns: [] };
    let best = -1;
    for (let i = 0; i < ns.length; i++) if (ns[i] >= from && ns[i] <= to && (best < 0 || total[i] > total[best])) best = i;
    if (best < 0) return null;
    const held = new Float64Array(this.holders().length);
    for (let k = 0; k < moment.length && moment[k] <= best; k++) held[holder[k]] += delta[k];
    return { ns: ns[best], total: total[best], held };
  }

  // The stretch of which that is known, or null.
  heldStretch() {
    const { ns } = this.document.space?.moments ?? { ns: [] };
    return ns.length ? [ns[0], ns[ns.length - 1]] : null;
  }

  // Lines whose saved values might be computed again.
  options() {
    if (!this.document.whatif) return [];
    const table = new Table(this.document.whatif.options);
    return Array.from({ length: table.n }, (_, i) => ({
      place: this.place(table, i), peak: table.get("new_peak_bytes", i), cost: table.get("cost_ns", i),
      saved: table.get("saved_bytes", i), count: table.get("count", i), best: table.get("best", i) > 0,
    }));
  }

  // Calls and loop bodies that might be checkpoints or sections.
  calls() {
    if (!this.document.whatif) return [];
    const table = new Table(this.document.whatif.calls);
    return Array.from({ length: table.n }, (_, i) => ({
      place: this.place(table, i), what: this.text(table.get("what", i)), call: this.text(table.get("call", i)),
      peak: table.get("new_peak_bytes", i), cost: table.get("cost_ns", i), estimate: table.get("estimate", i) > 0,
      inputs: table.get("inputs", i), outputs: table.get("outputs", i), best: table.get("best", i) > 0,
    }));
  }

  // Patterns of sparse derivatives that lines have found.
  patternRows() {
    const { found, pictures } = this.document.patterns;
    const table = new Table(found, pictures.length);
    return pictures.map((cells, i) => ({
      place: this.place(table, i), kind: table.get("hessian", i) ? "Hessian" : "Jacobian", rows: table.get("rows", i), columns: table.get("columns", i),
      nonzeros: table.get("nonzeros", i), colours: table.get("colours", i), calls: table.get("found", i), width: table.get("width", i), cells,
    }));
  }

  growthRows() {
    return (this.document.growth?.rows ?? []).map((row, i) => ({
      place: i ? this.place(new Table(row, 1), 0) : { key: "(all)", ops: "", own: true, function: "" },
      bytes: row.bytes, ns: row.ns, bytesFit: row.bytes_fit, timeFit: row.time_fit,
    }));
  }

  cost(table, i, prefix = "") {
    const cost = new Cost();
    for (const name of COSTS) cost[name] = table.get(prefix + name, i);
    return cost;
  }
}

// The shortest end of each file's path that no other file has: file.short.
function nameFiles(files, strings) {
  const ends = files.map((f) => (strings[f.file] ?? "").split("/"));
  let open = files.map((_, i) => i);
  for (let n = 1; open.length > 0; n++) {
    const names = new Map();
    for (const i of open) {
      files[i].short = ends[i].slice(-n).join("/");
      names.set(files[i].short, (names.get(files[i].short) ?? 0) + 1);
    }
    open = open.filter((i) => names.get(files[i].short) > 1 && n < ends[i].length);
  }
}
