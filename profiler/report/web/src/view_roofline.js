// view_roofline.js: flops a second against flops a byte moved, of each line in each direction,
// below the highest rates that the profile itself has seen.

import { h, svg, replace } from "./dom.js";
import { share, time } from "./format.js";
import { axes, chartWidth, dot, extent, powers, scale } from "./chart.js";
import { DataTable, placeColumn } from "./table.js";
import { PHASES } from "./cost.js";
import { compile, matchesPlace } from "./search.js";
import { nothingIn } from "./nothing.js";

const H = 380;
const SHAPES = { fwd: "round", bwd: "square", rec: "diamond" };
const MARGIN = { left: 64, top: 30, right: 20, bottom: 42 };
const short = (x) => (x >= 1000 || (x > 0 && x < 0.01) ? x.toExponential(0).replace("e+", "e") : String(Number(x.toPrecision(3))));
const rate = (x) => (x > 0 ? (x < 9.995 ? x.toFixed(2) : x < 99.95 ? x.toFixed(1) : x.toFixed(0)) : "–");

function flows(model, roof) {
  const out = [];
  for (const entry of model.wholePlaces.values())
    for (const phase of PHASES) {
      const [ns, flops, moved] = ["ns", "flops", "moved_bytes"].map((what) => entry.cost[`${phase.name}_${what}`]);
      if (!(ns > 0) || !(flops > 0 || moved > 0)) continue;
      const intensity = moved > 0 ? flops / moved : Infinity;
      const limit = flops > 0 ? Math.min(roof.flops_per_ns, roof.bytes_per_ns * intensity) : roof.bytes_per_ns;
      const got = flops > 0 ? flops / ns : moved / ns;
      out.push({ place: entry.place, ops: [...entry.ops].join(", "), phase, ns, flopRate: flops / ns, byteRate: moved / ns, intensity, roof: limit > 0 ? Math.min(1, got / limit) : 0,
        limit: moved > 0 && roof.bytes_per_ns * intensity < roof.flops_per_ns ? "bytes" : "flops" });
    }
  return out;
}

export function mountRoofline(root, app) {
  const { roof } = app.model.document;
  const rows = flows(app.model, roof);
  if (nothingIn(app.model, "roofline")) {
    replace(root, h("p", { class: "note" }, nothingIn(app.model, "roofline")));
    return { update: () => app.setMatch(null) };
  }
  const chart = h("div", { class: "chart" });
  const table = new DataTable({
    caption: "Rates of each line and direction", rows, sort: "time", keyOf: (r) => r.place.key, onSelect: (key) => app.state.set({ sel: key }),
    columns: [
      placeColumn("line", (r) => r.place, (r) => r.ops),
      { id: "phase", title: "phase", value: (r) => r.phase.name, text: (r) => h("span", { class: `swatch ${r.phase.class}` }, r.phase.name) },
      { id: "time", title: "time", bar: (r) => r.phase.class, value: (r) => r.ns, text: (r) => time(r.ns) },
      { id: "flops", title: "Gflop/s", value: (r) => r.flopRate, text: (r) => rate(r.flopRate) },
      { id: "bytes", title: "GB/s", value: (r) => r.byteRate, text: (r) => rate(r.byteRate) },
      { id: "intensity", title: "flop/B", value: (r) => r.intensity, text: (r) => (Number.isFinite(r.intensity) ? rate(r.intensity) : "–") },
      { id: "roof", title: "of the roof", bar: "gray", max: 1, value: (r) => r.roof, text: (r) => share(r.roof, 1) },
      { id: "limit", title: "limit", value: (r) => r.limit, text: (r) => r.limit },
    ],
  });
  replace(root,
    h("section", {}, h("h2", {}, "Flops a second against flops a byte"),
      h("div", { class: "tools" }, h("span", { class: "legend" }, PHASES.filter((phase) => rows.some((r) => r.phase === phase)).map((phase) =>
        h("span", { class: `swatch ${phase.class}` }, `${phase.name} (${SHAPES[phase.class] ?? "square"})`)))),
      chart, h("p", { class: "note" }, `The roof is made of the highest rates in this profile, ${rate(roof.flops_per_ns)} Gflop/s and ${rate(roof.bytes_per_ns)} GB/s: what the machine could do is not known. Ops without flops are in the table alone.`)),
    h("section", {}, h("h2", {}, "Lines"), table.element));
  const update = (state) => {
    const { expression } = compile(state.q);
    const matches = expression && ((r) => matchesPlace(expression, r.place, r.ops));
    table.mark(state.sel, matches);
    app.setMatch(expression && `${share(rows.filter(matches).reduce((s, r) => s + r.ns, 0), rows.reduce((s, r) => s + r.ns, 0))} of the time`);
    replace(chart, draw(app, rows, roof, state));
  };
  update(app.state.now);
  return { update };
}

function draw(app, rows, roof, state) {
  const W = chartWidth(app.main);
  const dots = rows.filter((r) => r.flopRate > 0 && Number.isFinite(r.intensity));
  if (!dots.length) return h("p", { class: "note" }, "No op of the profile counts flops and bytes.");
  const knee = roof.bytes_per_ns > 0 ? roof.flops_per_ns / roof.bytes_per_ns : 1;
  const [left, right] = extent(dots, (r) => r.intensity, knee);
  const xs = [left / 2, right * 2];
  const ys = [extent(dots, (r) => r.flopRate)[0] / 2, roof.flops_per_ns * 2];
  const x = scale(...xs, MARGIN.left, W - MARGIN.right, true);
  const y = scale(...ys, H - MARGIN.bottom, MARGIN.top, true);
  const all = rows.reduce((s, r) => Math.max(s, r.ns), 0);
  const begin = Math.max(xs[0], ys[0] / roof.bytes_per_ns);
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Roofline; the table below has the numbers" },
    axes(W, H, MARGIN, { at: x, ticks: powers(...xs), text: short, name: "flops a byte moved (logarithmic)" }, { at: y, ticks: powers(...ys), text: short, name: "Gflop/s (logarithmic)" }),
    svg("path", { class: "roof", d: `M${x(begin)},${y(begin * roof.bytes_per_ns)}L${x(knee)},${y(roof.flops_per_ns)}H${x(xs[1])}` }),
    dots.map((r) => dot(x(r.intensity), y(r.flopRate), {
      shape: SHAPES[r.phase.class], kind: r.phase.class, selected: state.sel === r.place.key, radius: 3 + 7 * Math.sqrt(r.ns / all),
      title: `${r.place.key} ${r.ops} ${r.phase.name}: ${rate(r.flopRate)} Gflop/s, ${time(r.ns)}`, onclick: () => app.state.set({ sel: r.place.key }),
    })));
}
