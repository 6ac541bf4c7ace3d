// diff_flame.js: the calls of two profiles as one picture: a frame is as wide as what it costs now, red
// where that is more than in the base and green where it is less, with the change before its name.

import { h } from "./dom.js";
import { share } from "./format.js";
import { metricOf, timesNote } from "./cost.js";
import { Table } from "./data.js";
import { mix, palette } from "./colors.js";
import { FlameCanvas } from "./flame_canvas.js";
import { FlameView, swatch } from "./view_flame.js";
import { Calls, Hierarchy } from "./hierarchy.js";

const FULL = 0.5; // a frame that is twice or half of what it was has the full colour

// The calls of both: the values of a hierarchy are widths, costs now, and costs in the base. mode: "now",
// or "all" where calls that are gone are as wide as they were.
class BothCalls extends Calls {
  constructor(model) {
    const { tree } = model.document.diff;
    super({ tree: new Table(tree, tree.parent.length), place: (table, i) => model.place(table, i), text: (number) => model.text(number) });
    this.in = tree.in;
    this.chance = tree.chance;
  }

  build(mode, metric) {
    const { columns } = metricOf(metric);
    const [base, now] = ["base_", "new_"].map((prefix) => this.model.tree.numbers(...columns.map((name) => prefix + name)));
    const width = mode === "all" ? now.map((value, i) => value + (this.in[i] === 1 ? base[i] : 0)) : now;
    return new Hierarchy(this.parent, this.frame, [width, now, base]);
  }
}

const percent = (x) => (x >= 10 ? `${x.toFixed(0)}\u202f×` : `${(100 * x).toFixed(x < 0.1 ? 1 : 0)}\u202f%`);

export class DiffFlame extends FlameView {
  constructor(root, app) {
    super(root, app, new BothCalls(app.model));
  }

  metric() {
    return this.app.state.now.metric;
  }

  shapeOf(state) {
    return [state.metric, state.gone, this.app.themeNow()].join(" ");
  }

  panes(state) {
    return [{ title: "", hierarchy: this.calls.hierarchy(state.gone ? "all" : "now", this.metric()) }];
  }

  zoomPrefix() {
    return "d";
  }

  toolbar(state) {
    return [h("label", { for: "gone-calls" }, h("input", { type: "checkbox", id: "gone-calls", checked: Boolean(state.gone),
      onchange: (event) => this.app.state.set({ gone: event.target.checked ? "1" : "", zoom: "" }) }), " calls that are gone"),
    h("span", { class: "legend" }, swatch("more", "+ more"), swatch("less", "− less"), swatch("", "as before"))];
  }

  makeCanvas(pane) {
    const colors = palette();
    const h0 = pane.hierarchy;
    return new FlameCanvas({
      paint: (node) => {
        const change = this.change(h0, node);
        const part = Math.min(1, Math.abs(change) / FULL);
        return { fill: mix(colors.plain[h0.frame[node] % 3], change > 0 ? colors.more : colors.less, part) };
      },
      label: (node) => this.label(h0, node),
      ...this.events(pane),
    });
  }

  // Whether a change may be chance, as of the lines below: where the runs say how they differ.
  isChance(h0, node) {
    const [, now, base] = h0.values.map((values) => values[node]);
    return now !== base && Math.abs(now - base) < (this.calls.chance?.[metricOf(this.metric()).id]?.[node] ?? 0);
  }

  // Of the greater of what a frame costs now and did: from -1, gone, to 1, new; 0 where chance makes it.
  change(h0, node) {
    const now = h0.values[1][node];
    const base = h0.values[2][node];
    return now === base || this.isChance(h0, node) ? 0 : (now - base) / Math.max(now, base);
  }

  changeText(h0, node) {
    const [, now, base] = h0.values.map((values) => values[node]);
    if (this.calls.in[node] === 1) return "gone";
    if (this.calls.in[node] === 2) return "new";
    if (now === base) return "=";
    const sign = `${this.isChance(h0, node) ? "~ " : ""}${now > base ? "+" : "−"}`;
    return base === 0 ? "+" : `${sign}${percent(Math.abs(now - base) / base)}`;
  }

  label(h0, node) {
    return `${this.changeText(h0, node)}  ${this.calls.label(h0.frame[node])}`;
  }

  lastColumn(h0) {
    return { title: "Change", text: (node) => this.changeText(h0, node) };
  }

  details(h0, node, metric, format) {
    const [, now, base] = h0.values.map((values) => values[node]);
    return [h("div", {}, `${metric.name}: ${format(now)} now, ${format(base)} in the base`),
      h("div", {}, `${now >= base ? "+" : "−"}${format(Math.abs(now - base))} (${this.changeText(h0, node)}), ${share(now, h0.values[1][0])} of all now`)];
  }

  describe(state) {
    const [width, now, base] = this.shown[0].hierarchy.values.map((values) => values[0]);
    const texts = [];
    if (now === 0) texts.push(`Now ${metricOf(this.metric()).name.toLowerCase()} is 0 everywhere.`);
    else texts.push("A frame is as wide as what it costs now; the change since the base stands before its name.");
    if (state.gone) texts.push(width > now ? "Calls that are gone are as wide as they were." : "No call is gone.");
    if (this.calls.chance) texts.push("Of several runs it shows the one in the middle. ~ and grey: may be chance.");
    if (base > 0) texts.push(timesNote(this.app.model, metricOf(this.metric())));
    this.note.textContent = texts.join(" ");
  }
}
