// view_growth.js: how bytes at the peak and time of each line grow with the size of the problem.

import { h, svg, replace } from "./dom.js";
import { bytes, time } from "./format.js";
import { axes, chartWidth, dot, extent, powers, scale } from "./chart.js";
import { DataTable, placeColumn } from "./table.js";
import { compile, matchesPlace } from "./search.js";

const H = 320;
const MARGIN = { left: 76, top: 30, right: 20, bottom: 42 };

const power = (x) => (Math.abs(x) < 0.005 ? 0 : x).toFixed(2).replace("-", "−");

export function mountGrowth(root, app) {
  const { growth } = app.model.document;
  if (!growth) {
    replace(root, h("p", { class: "note" }, "This report is of one size. ", h("code", {}, "tapescope html A.prof B.prof C.prof"), " of one program at several sizes shows how each line grows."));
    return { update: () => app.setMatch(null) };
  }
  const rows = app.model.growthRows();
  const chart = h("div", { class: "chart" });
  const fit = (f) => (f.exponent === undefined ? "–" : power(f.exponent));
  const interval = (f) => (f.low === undefined ? "" : `${power(f.low)} … ${power(f.high)}`);
  const table = new DataTable({
    caption: "Growth of each line", rows, sort: "", keyOf: (r) => (r.place.own ? "" : r.place.key), onSelect: (key) => app.state.set({ sel: key }),
    columns: [
      placeColumn("line", (r) => r.place),
      { id: "bytes", title: "at peak", bar: "mem", value: (r) => r.bytes.at(-1), text: (r) => bytes(r.bytes.at(-1)) },
      { id: "exponent", title: "~ n^", value: (r) => r.bytesFit.exponent ?? -Infinity, text: (r) => fit(r.bytesFit) },
      { id: "interval", title: "95 %", text: (r) => interval(r.bytesFit) },
      { id: "time", title: "time", bar: "gray", value: (r) => r.ns.at(-1), text: (r) => time(r.ns.at(-1)) },
      { id: "time_exponent", title: "~ n^", value: (r) => r.timeFit.exponent ?? -Infinity, text: (r) => fit(r.timeFit) },
      { id: "time_interval", title: "95 %", text: (r) => interval(r.timeFit) },
    ],
  });
  replace(root, h("section", {}, h("h2", {}, `Bytes at the peak against ${growth.size}`), chart,
    h("p", { class: "note" }, "Lines are powers of the size, n, fitted to the logarithms; 95 % is the interval of the exponent. Bold: all together, or what is selected.")), h("section", {}, h("h2", {}, "Lines"), table.element));
  const update = (state) => {
    const { expression } = compile(state.q);
    table.mark(state.sel, expression && ((r) => matchesPlace(expression, r.place)));
    app.setMatch(expression && `${rows.filter((r) => matchesPlace(expression, r.place)).length} of ${rows.length} lines`);
    replace(chart, draw(app, growth, rows, state));
  };
  update(app.state.now);
  return { update };
}

function draw(app, growth, rows, state) {
  const W = chartWidth(app.main);
  const shown = rows.slice(0, 20);
  const chosen = rows.find((r) => r.place.key === state.sel) ?? rows[0];
  if (!shown.includes(chosen)) shown.push(chosen);
  const all = shown.flatMap((r) => r.bytes.filter((b) => b > 0));
  if (!all.length) return h("p", { class: "note" }, "Nothing is on the tape.");
  const sizes = growth.sizes;
  const xs = [Math.min(...sizes) / 1.1, Math.max(...sizes) * 1.1];
  const [low, high] = extent(all, (b) => b);
  const ys = [low / 1.5, high * 1.5];
  const x = scale(...xs, MARGIN.left, W - MARGIN.right, true);
  const y = scale(...ys, H - MARGIN.bottom, MARGIN.top, true);
  const clamp = (b) => Math.min(ys[1], Math.max(ys[0], b));
  const line = (r) => r.bytesFit.exponent !== undefined && svg("path", { class: r === chosen ? "fit chosen" : "fit",
    d: `M${x(sizes[0])},${y(clamp(r.bytesFit.factor * sizes[0] ** r.bytesFit.exponent))}L${x(sizes.at(-1))},${y(clamp(r.bytesFit.factor * sizes.at(-1) ** r.bytesFit.exponent))}` });
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Bytes against size; the table below has the numbers" },
    axes(W, H, MARGIN, { at: x, ticks: [...sizes], text: (s) => String(s), name: `${growth.size} (logarithmic)` }, { at: y, ticks: powers(...ys, 2), text: bytes, name: "bytes at the peak (logarithmic)" }),
    shown.map(line),
    shown.flatMap((r) => r.bytes.map((b, i) => b > 0 && dot(x(sizes[i]), y(b), { kind: r === chosen ? "mem" : "gray", radius: r === chosen ? 5 : 3,
      selected: false, title: `${r.place.key} ${r.place.ops}: ${bytes(b)} at ${sizes[i]}`, onclick: () => app.state.set({ sel: r.place.key }) }))));
}
