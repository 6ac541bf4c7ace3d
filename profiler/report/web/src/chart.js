// chart.js: what small charts have in common: scales, ticks, dots with names, and bars of parts.

import { h, svg } from "./dom.js";
import { share } from "./format.js";

export function scale(from, to, a, b, log) {
  const f = log ? Math.log : (x) => x;
  const span = f(to) - f(from) || 1;
  return (x) => a + ((f(x) - f(from)) / span) * (b - a);
}

// The least and the greatest of what is given and of value(row) of all rows.
export function extent(rows, value, ...more) {
  return rows.reduce(([least, most], row) => [Math.min(least, value(row)), Math.max(most, value(row))],
    [Math.min(Infinity, ...more), Math.max(-Infinity, ...more)]);
}

// Round numbers between two values: about n of them, or the powers of 10 or of `base`.
export function ticks(from, to, n, base = 10) {
  const raw = (to - from) / Math.max(1, n);
  if (!(raw > 0)) return [from];
  const power = base === 2 ? 2 ** Math.floor(Math.log2(raw)) : 10 ** Math.floor(Math.log10(raw));
  const step = base === 2 ? (raw / power > 1.5 ? 2 : 1) * power : [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const out = [];
  for (let x = Math.ceil(from / step) * step; x <= to * (1 + 1e-12); x += step) out.push(x);
  return out;
}

// Powers of 10, or of 2 for bytes.
export function powers(from, to, base = 10, most = 8) {
  const log = (v) => Math.log(v) / Math.log(base);
  const low = Math.ceil(log(from) - 1e-9);
  const high = Math.floor(log(to) + 1e-9);
  const step = Math.max(1, Math.ceil((high - low + 1) / most));
  const out = [];
  for (let e = low; e <= high; e += step) out.push(base ** e);
  return out;
}

// What a chart within `main` is wide, in pixels.
export const chartWidth = (main) => Math.max(300, Math.min(1400, main.clientWidth - (innerWidth <= 720 ? 54 : 74)));

// The frame of a chart with its axes. x, y: {at, ticks, text, name}.
export function axes(width, height, margin, x, y) {
  const { left, top, right, bottom } = margin;
  const parts = [];
  const texts = x.ticks.map(x.text);
  const widest = 7.2 * Math.max(0, ...texts.map((text) => text.length)) + 6;
  const nearest = Math.min(Infinity, ...x.ticks.slice(1).map((t, i) => x.at(t) - x.at(x.ticks[i])));
  const every = Math.max(1, Math.ceil(widest / nearest)); // else texts would run into each other
  for (const [i, t] of x.ticks.entries()) {
    const at = x.at(t);
    parts.push(svg("line", { class: "grid", x1: at, x2: at, y1: top, y2: height - bottom }),
      i % every === 0 && svg("text", { class: "tick", x: at, y: height - bottom + 16, "text-anchor": "middle" }, texts[i]));
  }
  for (const t of y.ticks)
    parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y.at(t), y2: y.at(t) }),
      svg("text", { class: "tick", x: left - 6, y: y.at(t) + 4, "text-anchor": "end" }, y.text(t)));
  parts.push(svg("text", { class: "axis", x: width - right, y: height - 4, "text-anchor": "end" }, x.name),
    svg("text", { class: "axis", x: 4, y: top - 12 }, y.name));
  return parts;
}

// A dot that selects a place: "round", "square" or "diamond".
/** @param {number} x @param {number} y @param {any} options */
export function dot(x, y, { shape = "round", kind, title, selected, radius = 5, onclick }) {
  const cls = `dot ${kind} ${selected ? "selected" : ""}`;
  const shown = shape === "round" ? svg("circle", { class: cls, cx: x, cy: y, r: radius })
    : svg("rect", { class: cls, x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, transform: shape === "diamond" ? `rotate(45 ${x} ${y})` : null });
  shown.append(svg("title", {}, title));
  if (onclick) shown.addEventListener("click", onclick);
  return shown;
}

// A bar of what a whole is made of, and what each part is below it: {kind, name, value, hint}.
export function partsBar(parts) {
  const shown = parts.filter((part) => part.value > 0);
  const all = shown.reduce((sum, part) => sum + part.value, 0);
  return all > 0 && h("div", { class: "parts" },
    h("div", { class: "phases", "aria-hidden": "true" }, shown.map((part) => h("div", { class: part.kind, style: { "flex-grow": String(part.value / all) } }))),
    h("div", { class: "legend" }, shown.map((part) => h("span", { class: `swatch ${part.kind}` }, `${part.name} ${share(part.value, all)}`, part.hint && `, ${part.hint}`))));
}
