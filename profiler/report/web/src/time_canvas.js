// time_canvas.js: time from left to right on a canvas: live bytes, below them for each thread what it
// was doing and the scopes that were open. Of each pixel the most and the least, or what was done in
// it, is drawn, so that a picture costs the same whatever was recorded. Dragging selects a stretch.

import { bytes, times } from "./format.js";
import { palette } from "./colors.js";
import { PHASES } from "./cost.js";
import { h } from "./dom.js";
import { scale, ticks } from "./chart.js";
import { slicesWithin } from "./events.js";

const MARGIN = { left: 78, top: 16, right: 14, bottom: 24 };
const PLOT = 240; // of the bytes
const LANE = 14; // a row of phases
const ROW = 19; // a row of spans, or of ops
const MOST_THREADS = 8; // of ranks 64
const MOST_ROWS = 10; // of spans of one thread
export const MOST_ARROWS = 500; // in view, or none is drawn

export class TimeCanvas {
  /** @type {any} */ arrows;
  /** @type {any} */ events;
  /** @type {any} */ from;
  /** @type {any} */ label;
  /** @type {any} */ live;
  /** @type {any} */ onDrag;
  /** @type {any} */ onHover;
  /** @type {any} */ onOpen;
  /** @type {any} */ onPick;
  /** @type {any} */ peak;
  /** @type {any} */ range;
  /** @type {any} */ spans;
  /** @type {any} */ threads;
  /** @type {any} */ to;
  // live: columns ns, most_bytes, least_bytes, backward, or null; peak: its time in ns, or undefined;
  // events: see Events, or null; spans: see spansOf; threads: their names; arrows: from and to a
  // thread, when sent and come; label(node): of an op.
  constructor(root, { live, peak, events, spans, threads, arrows, label, onHover, onDrag, onPick, onOpen }) {
    Object.assign(this, { live, peak, events, spans, threads, arrows, label, onHover, onDrag, onPick, onOpen });
    this.arrange();
    this.canvas = h("canvas", { class: "time-canvas", "aria-hidden": "true", style: { height: `${this.height}px` } });
    root.append(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.start(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.end(event));
    this.canvas.addEventListener("pointercancel", () => this.leave());
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("dblclick", (event) => this.onOpen(this.spanAt(event)));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
  }

  destroy() {
    this.observer.disconnect();
  }

  // Where the rows lie, from above: lanes are of a thread, or of all where only the tape's sweeps are known.
  arrange() {
    let y = MARGIN.top + (this.live ? PLOT + 6 : 0);
    this.plotEnd = y - (this.live ? 6 : 0);
    this.lanes = [];
    const n = Math.min(this.threads.some((name) => name.startsWith("rank")) ? 64 : MOST_THREADS, this.threads.length);
    this.more = this.threads.length - n;
    for (let thread = 0; thread < n; thread++) {
      const spans = this.spans.filter((span) => span.thread === thread);
      const rows = Math.min(MOST_ROWS, spans.reduce((most, span) => Math.max(most, span.depth + 1), 0));
      if (n > 1) y += 18;
      const slices = this.events?.slices[thread];
      const slicesY = y + (this.events ? LANE + 3 : 0);
      const spansY = slicesY + (slices?.from.length ? ROW + 1 : 0);
      this.lanes.push({ thread, y, slices, slicesY, spans, spansY, rows });
      y = spansY + rows * ROW + 4;
    }
    if ((!this.events || this.events.cut !== null) && this.live) {
      this.sweepsY = y;
      y += LANE + 3;
    }
    if (this.more > 0) y += 18;
    this.height = y + MARGIN.bottom;
  }

  // From and to when; range: what is selected, or null.
  show(from, to, range) {
    Object.assign(this, { from, to, range });
    this.draw();
  }

  // The last moment that is not after a time.
  index(ns) {
    const all = this.live.ns;
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[middle] <= ns) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    return this.from + Math.min(1, Math.max(0, part)) * (this.to - this.from);
  }

  // The span under the pointer, of those that are as narrow as a pixel the last.
  spanAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    const at = this.timeAt(event);
    const slack = (this.to - this.from) / Math.max(1, box.width - MARGIN.left - MARGIN.right);
    const lane = this.lanes.find((l) => y >= l.spansY && y < l.spansY + l.rows * ROW);
    const depth = lane && Math.floor((y - lane.spansY) / ROW);
    return lane?.spans.findLast((span) => span.depth === depth && span.from <= at && at <= Math.max(span.to, span.from + slack)) ?? null;
  }

  // The op under the pointer: {lane, i}, or null.
  sliceAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    const at = this.timeAt(event);
    const lane = this.lanes.find((l) => l.slices && y >= l.slicesY && y < l.slicesY + ROW && l.slicesY < l.spansY)?.slices;
    if (!lane) return null;
    const [first, end] = slicesWithin(lane, at, at);
    for (let i = end - 1; i >= first; i--) if (lane.from[i] <= at && at <= lane.to[i]) return { lane, i };
    return null;
  }

  start(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.begun = this.timeAt(event);
    this.begunX = event.clientX;
  }

  move(event) {
    this.at = this.timeAt(event);
    this.onHover(this.at, this.live && this.index(this.at), this.spanAt(event), this.sliceAt(event));
    this.draw();
  }

  end(event) {
    if (this.begun === undefined) return;
    const [from, to] = [this.begun, this.timeAt(event)].sort((a, b) => a - b);
    const dragged = Math.abs(event.clientX - this.begunX) > 4;
    this.begun = undefined;
    const span = dragged ? null : this.spanAt(event);
    if (dragged) this.onDrag(from, to);
    else if (span) this.onPick(span, null);
    else if (this.sliceAt(event)) this.onPick(null, this.sliceAt(event));
    else this.draw();
  }

  leave() {
    this.at = null;
    this.begun = undefined;
    this.onHover(null);
    this.draw();
  }

  draw() {
    const width = this.canvas.clientWidth;
    const { height } = this;
    if (!(width > 0) || this.from === undefined) return;
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const c = this.canvas.getContext("2d");
    const colors = palette();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    const box = { x0: MARGIN.left, x1: width - MARGIN.right, y0: MARGIN.top, y1: this.plotEnd, bottom: height - MARGIN.bottom };
    const x = scale(this.from, this.to, box.x0, box.x1);
    this.times(c, colors, box, x, width);
    const range = this.stretch();
    if (range) {
      const left = Math.max(box.x0, x(range[0]));
      c.fillStyle = colors.accent;
      c.globalAlpha = 0.16;
      c.fillRect(left, box.y0 - 4, Math.max(1, Math.min(box.x1, x(range[1])) - left), box.bottom - box.y0 + 4);
      c.globalAlpha = 1;
    }
    const bytesDrawn = this.live && this.bytesAxis(c, colors, box);
    this.names(c, colors, box);
    c.save();
    c.beginPath();
    c.rect(box.x0, 0, box.x1 - box.x0, height);
    c.clip();
    if (bytesDrawn) this.area(c, colors, box, x, bytesDrawn);
    if (this.sweepsY !== undefined) this.sweeps(c, colors, box, x);
    for (const lane of this.lanes) {
      if (this.events) this.phases(c, colors, box, lane);
      if (lane.slicesY < lane.spansY) this.ops(c, colors, box, x, lane);
      this.scopes(c, colors, box, x, lane);
    }
    if (this.events && this.events.cut !== null) this.hatch(c, colors, box, x(this.events.cut));
    this.messages(c, colors, x);
    this.marks(c, colors, box, x, range);
    c.restore();
  }

  times(c, colors, box, x, width) {
    c.strokeStyle = colors.line;
    c.fillStyle = colors.soft;
    c.lineWidth = 1;
    c.textAlign = "center";
    c.textBaseline = "top";
    c.beginPath();
    const at = ticks(this.from, this.to, Math.max(2, width / 130));
    for (const [i, text] of times(at).entries()) {
      c.moveTo(Math.round(x(at[i])) + 0.5, box.y0);
      c.lineTo(Math.round(x(at[i])) + 0.5, box.bottom);
      c.fillText(text, Math.min(x(at[i]), width - 4 - c.measureText(text).width / 2), box.bottom + 6);
    }
    c.stroke();
  }

  // Returns what is drawn of the bytes: which moments, and where.
  bytesAxis(c, colors, box) {
    const first = this.index(this.from);
    const last = this.index(this.to);
    let most = 1;
    for (let i = first; i <= last; i++) most = Math.max(most, this.live.most_bytes[i]);
    const y = scale(0, most * 1.05, box.y1, box.y0);
    c.fillStyle = colors.soft;
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.beginPath();
    for (const t of ticks(0, most * 1.05, 6, 2)) {
      c.moveTo(box.x0, Math.round(y(t)) + 0.5);
      c.lineTo(box.x1, Math.round(y(t)) + 0.5);
      c.fillText(bytes(t), box.x0 - 8, y(t));
    }
    c.stroke();
    return { first, last, y };
  }

  names(c, colors, box) {
    c.fillStyle = colors.soft;
    c.textBaseline = "middle";
    const name = (text, y) => { c.textAlign = "right"; c.fillText(text, box.x0 - 8, y); };
    for (const lane of this.lanes) {
      c.textAlign = "left";
      if (this.lanes.length > 1) c.fillText(this.threads[lane.thread], 2, lane.y - 9);
      if (this.events) name("phases", lane.y + LANE / 2);
      if (lane.slicesY < lane.spansY) name("ops", lane.slicesY + ROW / 2);
      if (lane.rows) name("scopes", lane.spansY + ROW / 2);
    }
    if (this.sweepsY !== undefined) name("sweeps", this.sweepsY + LANE / 2);
    c.textAlign = "left";
    if (this.more > 0) c.fillText(`${this.more} more thread${this.more === 1 ? " is" : "s are"} not drawn`, box.x0, box.bottom - 10);
  }

  // Of each pixel the part of it that is in a sweep.
  sweeps(c, colors, box, x) {
    const { ns, backward } = this.live;
    const pixels = Math.max(1, Math.round(box.x1 - box.x0));
    const part = new Float64Array(pixels + 2);
    for (let i = this.index(this.from); i <= this.index(this.to); i++) {
      if (!backward[i]) continue;
      const from = Math.max(0, x(ns[i]) - box.x0);
      const to = Math.min(pixels, x(ns[Math.min(i + 1, ns.length - 1)]) - box.x0);
      for (let p = Math.floor(from); p <= to; p++) part[p] += Math.max(0, Math.min(to, p + 1) - Math.max(from, p));
    }
    c.fillStyle = colors.plain[0]; // forward, or any other code
    c.fillRect(box.x0, this.sweepsY, pixels, LANE);
    c.fillStyle = colors.backward[0];
    for (let p = 0; p < pixels; p++) {
      const height = Math.min(1, part[p]) * LANE;
      if (height > 0) c.fillRect(box.x0 + p, this.sweepsY + LANE - height, 1, height);
    }
  }

  // Of each pixel the parts of it that the thread was in each phase, from below.
  phases(c, colors, box, { thread, y }) {
    const lane = this.events.lane(thread);
    const pixels = Math.max(1, Math.round(box.x1 - box.x0));
    const step = (this.to - this.from) / pixels;
    c.fillStyle = colors.line;
    c.globalAlpha = 0.5;
    c.fillRect(box.x0, y, pixels, LANE);
    c.globalAlpha = 1;
    for (let p = 0; p < pixels; p++) {
      let bottom = y + LANE;
      for (const { name } of PHASES) {
        const at = this.from + p * step;
        const height = Math.min(bottom - y, ((this.events.before(lane[name], at + step) - this.events.before(lane[name], at)) / step) * LANE);
        if (!(height > 0)) continue;
        c.fillStyle = colors[name][0];
        c.fillRect(box.x0 + p, bottom - height, 1, height);
        bottom -= height;
      }
    }
  }

  // Each op and pullback as long as it ran, with its name where there is room. What is narrower than a
  // pixel is drawn once a pixel.
  ops(c, colors, box, x, { slices, slicesY: top }) {
    c.textAlign = "left";
    c.textBaseline = "middle";
    const [first, end] = slicesWithin(slices, this.from, this.to);
    let drawn = -Infinity; // up to which pixel
    let wide = 0;
    for (let i = first; i < end; i++) {
      const left = Math.max(box.x0 - 2, x(slices.from[i]));
      const right = Math.min(box.x1 + 2, x(slices.to[i]));
      if (right < box.x0 || right <= drawn) continue;
      drawn = Math.max(right, Math.floor(left) + 1);
      const width = Math.max(1, right - left);
      const { phase } = this.events.kinds[slices.kind[i]];
      c.fillStyle = colors[phase][slices.node[i] % 3];
      c.fillRect(left, top, width > 3 ? width - 1 : width, ROW - 2);
      if (width >= 26) this.text(c, colors, box, this.label(slices.node[i]), left, width, top);
      if (width >= 3) wide++;
    }
    this.canvas.dataset.ops = wide;
  }

  // A text in a rectangle, cut to what fits.
  text(c, colors, box, text, left, width, top) {
    const at = Math.max(left, box.x0) + 5;
    const room = Math.max(1, Math.min(left + width, box.x1) - 4 - at);
    const part = room / c.measureText(text).width;
    c.fillStyle = colors.ink;
    c.fillText(part >= 1 ? text : `${text.slice(0, Math.max(0, Math.floor(text.length * part) - 1))}…`, at, top + ROW / 2, room);
  }

  // From where on nothing is known of threads.
  hatch(c, colors, box, from) {
    const left = Math.max(box.x0, from);
    this.canvas.dataset.cut = from < box.x1;
    if (!(left < box.x1) || !this.lanes.length) return;
    const top = this.lanes[0].y;
    const last = this.lanes[this.lanes.length - 1];
    const bottom = last.spansY + last.rows * ROW;
    c.save();
    c.beginPath();
    c.rect(left, top, box.x1 - left, bottom - top);
    c.clip();
    c.strokeStyle = colors.soft;
    c.globalAlpha = 0.55;
    c.lineWidth = 1;
    c.beginPath();
    for (let s = left - (bottom - top); s < box.x1; s += 7) {
      c.moveTo(s, bottom);
      c.lineTo(s + bottom - top, top);
    }
    c.stroke();
    c.restore();
    c.fillStyle = colors.text;
    c.textAlign = "left";
    c.textBaseline = "middle";
    c.fillText("no events from here on", left + 6, top + LANE / 2, Math.max(1, box.x1 - left - 6));
  }

  scopes(c, colors, box, x, lane) {
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const span of lane.spans) {
      if (span.to < this.from || span.from > this.to || span.depth >= MOST_ROWS) continue;
      const left = Math.max(box.x0 - 2, x(span.from));
      const width = Math.max(1, Math.min(box.x1 + 2, x(span.to)) - left);
      const top = lane.spansY + span.depth * ROW;
      c.fillStyle = colors.plain[span.scope % 3];
      c.fillRect(left, top, width > 3 ? width - 1 : width, ROW - 2);
      if (width >= 26) this.text(c, colors, box, span.name, left, width, top);
    }
  }

  messages(c, colors, x) {
    const seen = this.arrows.filter(({ from, to, sent, came }) => came >= this.from && sent <= this.to && this.lanes[from] && this.lanes[to]);
    this.canvas.dataset.arrows = seen.length > MOST_ARROWS ? 0 : seen.length;
    if (seen.length > MOST_ARROWS) return;
    c.strokeStyle = c.fillStyle = colors.accent;
    c.lineWidth = 1;
    for (const { from, to, sent, came } of seen) {
      const [x0, y0, x1, y1] = [x(sent), this.lanes[from].y + LANE / 2, x(came), this.lanes[to].y + LANE / 2];
      const angle = Math.atan2(y1 - y0, x1 - x0);
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
      c.beginPath();
      c.moveTo(x1, y1);
      for (const side of [-0.4, 0.4]) c.lineTo(x1 - 7 * Math.cos(angle + side), y1 - 7 * Math.sin(angle + side));
      c.fill();
    }
  }

  area(c, colors, box, x, { first, last, y }) {
    const { ns, most_bytes: most, least_bytes: least } = this.live;
    const pixels = Math.max(1, Math.round(box.x1 - box.x0));
    const high = new Float64Array(pixels + 1);
    const low = new Float64Array(pixels + 1).fill(Infinity);
    for (let i = first; i <= last; i++) {
      const from = Math.max(0, Math.floor(x(ns[i]) - box.x0));
      const to = Math.min(pixels, i + 1 < ns.length ? Math.ceil(x(ns[i + 1]) - box.x0) : pixels);
      for (let p = from; p <= to; p++) {
        high[p] = Math.max(high[p], most[i]);
        low[p] = Math.min(low[p], least[i]);
      }
    }
    for (let p = 0; p <= pixels; p++) {
      const bottom = Number.isFinite(low[p]) ? y(low[p]) : box.y1;
      const top = y(high[p]);
      c.fillStyle = colors.space[0];
      c.globalAlpha = 0.35;
      c.fillRect(box.x0 + p, bottom, 1, box.y1 - bottom);
      c.globalAlpha = 0.9;
      c.fillRect(box.x0 + p, Math.min(top, bottom - 1.5), 1, Math.max(1.5, bottom - top));
    }
    c.globalAlpha = 1;
  }

  // What is selected, or would be if the pointer were let go.
  stretch() {
    if (this.begun === undefined || this.at === null || this.at === undefined) return this.range;
    const dragged = [this.begun, this.at].sort((a, b) => a - b);
    return this.events ? this.events.snap(...dragged) : dragged;
  }

  marks(c, colors, box, x, range) {
    const line = (at, dash, to = box.bottom) => {
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(Math.round(x(at)) + 0.5, box.y0 - 4);
      c.lineTo(Math.round(x(at)) + 0.5, to);
      c.stroke();
      c.setLineDash([]);
    };
    c.strokeStyle = colors.text;
    if (this.peak !== undefined) {
      line(this.peak, [4, 4], box.y1);
      c.fillStyle = colors.text;
      const atRight = x(this.peak) > box.x1 - 50;
      c.textAlign = atRight ? "right" : "left";
      c.textBaseline = "top";
      c.fillText("peak", x(this.peak) + (atRight ? -5 : 5), 1);
    }
    c.strokeStyle = colors.accent;
    for (const edge of range ?? []) line(edge, []);
    if (this.at === null || this.at === undefined) return;
    c.strokeStyle = colors.soft;
    line(this.at, []);
  }
}
