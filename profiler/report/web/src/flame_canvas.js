// flame_canvas.js: draws a hierarchy on a canvas of the size of what is seen. Rows that are out of
// view are not looked at, and frames narrower than a pixel are drawn as one, so that the cost of a
// picture depends on its size and not on the number of frames.

import { palette } from "./colors.js";
import { h, reducedMotion } from "./dom.js";

export const ROW = 20;
const PAD = 5;
const MOST_ROWS = 400; // on paper

export class FlameCanvas {
  /** @type {any} */ font;
  // options: paint(node) → {fill, text}, hatched(node), label(node), onPick(node), onHover(node, event), onZoom(node), up
  constructor(options) {
    this.options = options;
    this.view = { x0: 0, x1: 1 };
    this.focus = 0;
    this.widths = new Map(); // of labels, in pixels
    this.canvas = h("canvas", { class: "flame-canvas", "aria-hidden": "true" });
    this.spacer = h("div", { class: "flame-spacer" });
    this.element = h("div", { class: "flame-scroll", tabindex: "-1" }, this.canvas, this.spacer);
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.element.addEventListener("scroll", () => this.request());
    this.canvas.addEventListener("click", (event) => this.hit(event, (node) => options.onPick?.(node)));
    this.canvas.addEventListener("dblclick", (event) => this.hit(event, (node) => options.onZoom?.(node)));
    this.canvas.addEventListener("mousemove", (event) => options.onHover?.(this.nodeAt(event), event));
    this.canvas.addEventListener("mouseleave", (event) => options.onHover?.(-1, event));
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.pending);
  }

  // What is drawn; matched: by frame, or null.
  show({ hierarchy, matched, selected }) {
    this.hierarchy = hierarchy;
    this.matched = matched;
    this.selected = selected;
    this.spacer.style.setProperty("height", `${hierarchy.rows.length * ROW + 2}px`);
    this.request();
  }

  zoomTo(node, animate = true) {
    const { x0, x1 } = this.hierarchy;
    this.focus = node;
    const to = x1[node] > x0[node] ? { x0: x0[node], x1: x1[node] } : { x0: 0, x1: 1 };
    this.glide(to, animate && !reducedMotion() ? 140 : 0);
  }

  // Pans and zooms by parts of what is seen; about: where, from 0 to 1.
  move(pan, factor = 1, about = 0.5) {
    const width = this.view.x1 - this.view.x0;
    const next = Math.min(1, Math.max(1e-12, width * factor));
    let x0 = this.view.x0 + about * (width - next) + pan * width;
    x0 = Math.min(1 - next, Math.max(0, x0));
    this.glide({ x0, x1: x0 + next }, 0);
  }

  glide(to, ms) {
    cancelAnimationFrame(this.gliding);
    const from = { ...this.view };
    const start = performance.now();
    const step = () => {
      const t = ms > 0 ? Math.min(1, (performance.now() - start) / ms) : 1;
      const eased = 1 - (1 - t) ** 3;
      this.view = { x0: from.x0 + (to.x0 - from.x0) * eased, x1: from.x1 + (to.x1 - from.x1) * eased };
      this.draw();
      if (t < 1) this.gliding = requestAnimationFrame(step);
    };
    step();
  }

  wheel(event) {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    if (event.ctrlKey) this.move(0, Math.exp(event.deltaY / 200), (event.clientX - box.left) / box.width);
    else this.move(event.deltaX / box.width);
  }

  resize() {
    const { clientWidth: w, clientHeight: hgt } = this.element;
    const scale = devicePixelRatio || 1;
    this.width = w;
    this.height = hgt;
    this.canvas.width = Math.round(w * scale);
    this.canvas.height = Math.round(hgt * scale);
    this.canvas.style.setProperty("width", `${w}px`);
    this.canvas.style.setProperty("height", `${hgt}px`);
    this.scale = scale;
    this.draw();
  }

  // As high as all rows and from now on of one size, for paper.
  showAll() {
    const { style } = this.element;
    this.observer.disconnect();
    style.setProperty("flex", "none");
    style.setProperty("height", `${Math.min(this.hierarchy.rows.length, MOST_ROWS) * ROW + 4}px`);
    this.resize();
  }

  request() {
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(() => this.draw());
  }

  rowY(depth) {
    return this.options.up ? this.height - (depth + 1) * ROW + this.element.scrollTop : depth * ROW - this.element.scrollTop;
  }

  draw() {
    if (!this.hierarchy || !(this.width > 0)) return;
    const start = performance.now();
    const c = this.context;
    this.colors = palette();
    c.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    c.fillStyle = this.colors.panel;
    c.fillRect(0, 0, this.width, this.height);
    c.font = `12px ${this.font ??= getComputedStyle(this.element).fontFamily}`;
    c.textBaseline = "middle";
    const rows = this.hierarchy.rows;
    for (let d = 0; d < rows.length; d++) {
      const y = this.rowY(d);
      if (y > -ROW && y < this.height) this.drawRow(rows[d], y);
    }
    this.lastDraw = performance.now() - start;
  }

  // The first of a row's nodes, from one on, that ends right of x: near to that one most often.
  find(row, x, from = 0) {
    let low = from;
    let high = from;
    for (let step = 1; high < row.length && this.hierarchy.x1[row[high]] <= x; step *= 2) {
      low = high + 1;
      high += step;
    }
    high = Math.min(high, row.length);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.hierarchy.x1[row[middle]] > x) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  drawRow(row, y) {
    const { x0, x1 } = this.hierarchy;
    const { x0: left, x1: right } = this.view;
    const perUnit = this.width / (right - left);
    for (let i = this.find(row, left); i < row.length && x0[row[i]] < right; i++) {
      const node = row[i];
      const from = (x0[node] - left) * perUnit;
      const to = (x1[node] - left) * perUnit;
      if (to - from < 0.8) {
        // As one: up to the first frame that ends beyond the pixel.
        const until = left + (Math.floor(from) + 1) / perUnit;
        i = Math.max(i, this.find(row, until, i) - 1);
        this.context.globalAlpha = 0.6;
        this.context.fillStyle = this.narrowFill(node);
        this.context.fillRect(Math.floor(from), y, 1, ROW - 1);
        continue;
      }
      this.context.globalAlpha = 1;
      this.drawFrame(node, Math.max(-2, from), y, Math.min(this.width + 2, to));
    }
    this.context.globalAlpha = 1;
  }

  // What is too narrow for bars has the colour of the greatest of them.
  narrowFill(node) {
    if (this.isDim(node)) return this.colors.blur;
    const most = (this.options.parts?.(node) ?? []).reduce((a, b) => (b.share > a.share ? b : a), { share: 0.3, fill: "" });
    return most.fill || this.options.paint(node).fill;
  }

  isDim(node) {
    return this.matched !== null && this.matched !== undefined && !this.matched[this.hierarchy.frame[node]];
  }

  drawFrame(node, from, y, to) {
    const c = this.context;
    const width = to - from - (to - from > 3 ? 1 : 0);
    const dim = this.isDim(node);
    c.fillStyle = dim ? this.colors.blur : this.options.paint(node).fill;
    c.fillRect(from, y, width, ROW - 1);
    const parts = dim ? null : this.options.parts?.(node);
    if (parts) this.drawParts(parts, from, y, width);
    if (this.matched && !dim) {
      c.fillStyle = this.colors.match;
      c.fillRect(from, y + ROW - 4, width, 3);
    }
    if (this.hierarchy.frame[node] === this.selected) {
      c.strokeStyle = this.colors.text;
      c.lineWidth = 2;
      c.strokeRect(from + 1, y + 1, Math.max(0, width - 2), ROW - 3);
    }
    const start = Math.max(from, 0) + PAD;
    const room = to - start - PAD;
    if (room > 22) {
      c.fillStyle = this.colors.ink;
      c.globalAlpha = dim ? 0.6 : 1;
      c.fillText(this.fit(this.options.label(node), room), start, y + ROW / 2, room);
      c.globalAlpha = 1;
    }
  }

  // Bars within a frame: {share, fill, hatched}.
  drawParts(parts, from, y, width) {
    const c = this.context;
    let x = from;
    for (const part of parts) {
      const w = part.share * width;
      c.fillStyle = part.fill;
      c.fillRect(x, y, w, ROW - 1);
      if (part.hatched && w > 3) {
        c.save();
        c.beginPath();
        c.rect(x, y, w, ROW - 1);
        c.clip();
        c.strokeStyle = this.colors.panel;
        c.lineWidth = 1;
        c.beginPath();
        for (let s = x - ROW; s < x + w; s += 6) {
          c.moveTo(s, y + ROW);
          c.lineTo(s + ROW, y);
        }
        c.stroke();
        c.restore();
      }
      x += w;
    }
  }

  // The label, cut to what fits by its mean width, which is measured once.
  fit(label, room) {
    let width = this.widths.get(label);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      width = this.context.measureText(label).width;
      this.widths.set(label, width);
    }
    if (width <= room) return label;
    const length = Math.floor((label.length * room) / width) - 2;
    const number = label.indexOf("  "); // what is before it, a change, is there as a whole or not at all
    if (length < number + 3) return number > 0 && number <= length + 2 ? label.slice(0, number) : "";
    return label.slice(0, length) + "…";
  }

  nodeAt(event) {
    if (!this.hierarchy) return -1;
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    const depth = Math.floor(this.options.up ? (this.height - y + this.element.scrollTop) / ROW : (y + this.element.scrollTop) / ROW);
    const row = this.hierarchy.rows[depth];
    if (!row) return -1;
    const x = this.view.x0 + ((event.clientX - box.left) / this.width) * (this.view.x1 - this.view.x0);
    const i = this.find(row, x);
    return i < row.length && this.hierarchy.x0[row[i]] <= x ? row[i] : -1;
  }

  hit(event, then) {
    const node = this.nodeAt(event);
    if (node >= 0) then(node);
  }

  // Scrolls so that a depth is seen.
  reveal(depth) {
    const top = depth * ROW;
    const element = this.element;
    if (top < element.scrollTop) element.scrollTop = Math.max(0, top - ROW);
    else if (top + ROW > element.scrollTop + this.height) element.scrollTop = top + 2 * ROW - this.height;
  }
}
