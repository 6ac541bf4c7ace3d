// view_flame.js: the calls as rectangles: as wide as what they cost, callees below their callers.
// Beside the canvas the same frames are a tree of rows, for keyboards and screen readers.

import { h, replace } from "./dom.js";
import { by, count, share } from "./format.js";
import { PHASES, metricOf, timesNote } from "./cost.js";
import { palette, shadesOf } from "./colors.js";
import { FlameCanvas } from "./flame_canvas.js";
import { frameList } from "./flame_list.js";
import { compile, matchFrames, matchedValue } from "./search.js";
import { inSlices } from "./replay.js";
import { excerpt } from "./excerpt.js";

export const MODES = [
  { id: "calls", name: "Calls", hint: "callers above what they call" },
  { id: "inverted", name: "Inverted", hint: "the lines that record above their callers" },
  { id: "mirror", name: "Mirrored", hint: "forward above, backward below, on one stack" },
  { id: "sandwich", name: "Sandwich", hint: "callers and callees of the selected frame" },
];

export function mountFlame(root, app) {
  return new FlameView(root, app, app.calls());
}

// The view of the differences is one as well: diff_flame.js.
export class FlameView {
  constructor(root, app, calls) {
    this.app = app;
    this.calls = calls;
    this.tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
    this.note = h("p", { class: "note" });
    this.tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Flame graph" });
    this.stage = h("div", { class: "flame-stage" });
    this.list = h("div", { class: "flame-list" });
    this.code = h("section", { class: "flame-source", tabindex: "0", "aria-label": "Source of the selected frame", hidden: true });
    replace(root, this.tools, this.note, h("div", { class: "flame" }, this.stage, h("div", { class: "flame-side" }, this.list, this.code)), this.tooltip);
    this.update(app.state.now, null);
  }

  destroy() {
    for (const canvas of this.canvases ?? []) canvas.destroy();
    this.stopSearch?.();
  }

  metric() {
    return this.app.state.now.mode === "mirror" ? "total" : this.app.state.now.metric;
  }

  // The hierarchies that are shown, from above, each with how its canvas is to be.
  panes(state) {
    const metric = this.metric();
    const frame = this.calls.frameOf(state.sel);
    if (state.mode === "sandwich" && frame !== undefined)
      return [
        { title: "Callers", hierarchy: this.calls.hierarchy("callers", metric, frame), up: true },
        { title: "Callees", hierarchy: this.calls.hierarchy("callees", metric, frame) },
      ];
    if (state.mode === "mirror") {
      const hierarchy = this.calls.hierarchy("calls", "total");
      return [
        { title: "Forward", hierarchy, up: true, only: 1 },
        { title: "Backward", hierarchy, only: 2 },
      ];
    }
    return [{ title: "", hierarchy: this.calls.hierarchy(state.mode === "inverted" ? "inverted" : "calls", metric) }];
  }

  // While it stays the same, so do the panes.
  shapeOf(state) {
    return [state.mode, state.metric, state.mode === "sandwich" ? state.sel : "", this.app.themeNow()].join(" ");
  }

  update(state, before) {
    const shape = this.shapeOf(state);
    if (shape !== this.shape) this.build(state);
    this.shape = shape;
    const frame = this.calls.frameOf(state.sel);
    this.search(state);
    for (const [i, pane] of this.shown.entries())
      this.canvases[i].show({ hierarchy: pane.hierarchy, matched: this.matched, selected: frame });
    if (!before || before.zoom !== state.zoom)
      for (const [i, canvas] of this.canvases.entries()) canvas.zoomTo(this.zoomOf(state, i), Boolean(before));
    this.describe(state);
    frameList(this.list, this, this.zoomOf(state, 0));
    excerpt(this.code, this.app, frame === undefined ? null : this.calls.place(frame), metricOf(this.metric()));
  }

  // The node that a pane is zoomed to. In the address it is "7", or "b7" where it is of the second of
  // two panes with hierarchies of their own.
  zoomOf(state, i) {
    const m = /^([bd]?)(\d+)$/.exec(state.zoom);
    const node = m && m[1] === this.zoomPrefix(this.shown[i]) ? Number(m[2]) : 0;
    return node < this.shown[i].hierarchy.n ? node : 0;
  }

  zoomText(pane, node) {
    return node > 0 ? `${this.zoomPrefix(pane)}${node}` : "";
  }

  /** @returns {string} */
  zoomPrefix(pane) {
    return pane.hierarchy === this.shown[0].hierarchy ? "" : "b";
  }

  build(state) {
    for (const canvas of this.canvases ?? []) canvas.destroy();
    this.shown = this.panes(state);
    this.canvases = this.shown.map((pane) => this.makeCanvas(pane));
    replace(this.stage, this.shown.map((pane, i) => h("section", { class: `pane ${pane.up ? "up" : ""}` },
      pane.title && h("h2", {}, pane.title), this.canvases[i].element)));
    this.stage.className = `flame-stage ${this.shown.length > 1 ? "two" : ""}`;
    this.active = this.shown.length - 1; // the pane that was used last
    this.cursor = this.nodeOf(this.calls.frameOf(state.sel)); // the node that keys move from
    replace(this.tools, this.toolbar(state));
  }

  // The first node of a frame in the pane that is used; of none, the root.
  nodeOf(frame) {
    return Math.max(0, this.shown[this.active].hierarchy.frame.indexOf(frame));
  }

  toolbar(state) {
    return [h("div", { class: "group", role: "group", "aria-label": "Arrangement" }, MODES.map((mode) =>
        h("button", { class: "chip", title: mode.hint, "data-focus": `mode ${mode.id}`, "aria-pressed": String(mode.id === state.mode),
          onclick: () => this.app.state.set({ mode: mode.id, zoom: "" }) }, mode.name))),
      state.mode === "mirror" ? h("span", { class: "legend" }, swatch("fwd", "forward"), swatch("bwd", "backward")) : this.legend()];
  }

  legend() {
    const metric = this.metric();
    if (metric !== "total") return null;
    return h("span", { class: "legend" }, swatch("fwd", "forward"), swatch("bwd", "backward"),
      this.app.model.sum.recompute > 0 && swatch("rec", "recomputed"), this.app.model.sum.other > 0 && swatch("", "other code"));
  }

  makeCanvas(pane) {
    const metric = this.metric();
    const shades = shadesOf(metric);
    const colors = palette();
    const h0 = pane.hierarchy;
    const shade = (node) => h0.frame[node] % 3;
    const parts = h0.values.length > 1;
    return new FlameCanvas({
      up: pane.up,
      paint: (node) => ({ fill: parts ? colors.plain[shade(node)] : shades[shade(node)] }),
      parts: parts ? (node) => this.partsOf(h0, node, pane.only, shade(node)) : null,
      label: (node) => this.label(h0, node),
      ...this.events(pane),
    });
  }

  label(h0, node) {
    return this.calls.label(h0.frame[node]);
  }

  events(pane) {
    return {
      onPick: (node) => this.pick(pane, node),
      onZoom: (node) => this.app.state.set({ zoom: this.zoomText(pane, node) }),
      onHover: (node, event) => this.hover(pane, node, event),
    };
  }

  partsOf(h0, node, only, shade) {
    const whole = h0.value[node];
    const colors = palette();
    const part = (k, name) => ({ share: h0.values[k][node] / whole, fill: colors[name][shade], hatched: name === "recompute" });
    if (only === 1) return [part(1, "forward")];
    if (only === 2) return [part(2, "backward")];
    return PHASES.map(({ name }, i) => part(i + 1, name));
  }

  pick(pane, node) {
    this.cursor = node;
    this.active = this.shown.indexOf(pane);
    const place = this.calls.place(pane.hierarchy.frame[node]);
    const zoomed = this.zoomOf(this.app.state.now, this.active);
    const outside = zoomed > 0 && node !== zoomed && pane.hierarchy.path(zoomed).includes(node);
    this.app.state.set({ sel: place.root ? "" : place.key, ...(outside ? { zoom: this.zoomText(pane, node) } : {}) });
  }

  hover(pane, node, event) {
    if (node < 0) {
      this.tooltip.hidden = true;
      return;
    }
    const h0 = pane.hierarchy;
    const metric = metricOf(this.metric());
    replace(this.tooltip, h("b", {}, this.calls.label(h0.frame[node])), this.details(h0, node, metric, by[metric.unit]));
    this.tooltip.hidden = false;
    const box = this.tooltip.getBoundingClientRect();
    this.tooltip.style.setProperty("left", `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`);
    this.tooltip.style.setProperty("top", `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`);
  }

  details(h0, node, metric, format) {
    const [value, forward, backward, recompute] = h0.values.map((v) => v[node]);
    return [h("div", {}, `${metric.name}: ${format(value)}, ${share(value, h0.value[0])}`),
      forward !== undefined && h("div", {}, `forward ${format(forward)}, backward ${format(backward)}`,
        recompute > 0 && `, recomputed ${format(recompute)}`),
      h0.parent === this.calls.parent && this.app.model.tree.get("folded", node) > 0 && h("div", {}, `with ${count(this.app.model.tree.get("folded", node))} frames that cost least`)];
  }

  // Of many frames a few are looked at at a time: a key of the search does not wait for the one before.
  search(state) {
    const { expression } = compile(state.q);
    if (state.q === this.searched) return this.showFound();
    this.searched = state.q;
    this.stopSearch?.();
    this.stopSearch = null;
    this.matched = null;
    let later = false;
    const stop = expression && inSlices(matchFrames(this.calls, expression), (matched) => {
      this.matched = matched;
      this.stopSearch = null;
      if (!later) return;
      this.showFound();
      for (const canvas of this.canvases) canvas.show({ ...canvas, matched });
    });
    later = true;
    if (this.matched || !expression) return this.showFound();
    this.stopSearch = stop;
    this.found = null;
    this.app.setMatch("searching…");
  }

  showFound() {
    if (this.stopSearch) return; // it will be shown
    this.found = this.matched ? matchedValue(this.shown[0].hierarchy, this.matched) : null;
    this.app.setMatch(this.found && `${share(this.found.value, this.shown[0].hierarchy.value[0])} in ${this.found.nodes.length} frame${this.found.nodes.length === 1 ? "" : "s"}`);
  }

  describe(state) {
    const metric = metricOf(this.metric());
    const h0 = this.shown[0].hierarchy;
    const texts = [];
    if (!(h0.value[0] > 0)) texts.push(`Nothing is known of this: ${metric.name.toLowerCase()} is 0 everywhere.`);
    else if (!this.app.model.hasPaths) texts.push("The profile has no call paths: only the lines that record are shown.");
    else if (!this.app.model.tree.columns.has_paths && this.app.model.wholeSum.forward + this.app.model.wholeSum.backward > 0) texts.push("Callers of ops were not recorded: --depth 64 of tapescope record asks for them.");
    texts.push(...treeNotes(this.app.model.tree));
    if (state.mode === "sandwich" && this.calls.frameOf(state.sel) === undefined) texts.push("Select a frame to see its callers and callees.");
    if (state.mode === "mirror") texts.push("A call has the same place above and below, as wide as its total time: blue is forward, orange backward, grey the rest.");
    texts.push(timesNote(this.app.model, metric));
    this.note.textContent = texts.join(" ");
    this.note.hidden = !this.note.textContent;
  }

  // Moves the selection; true if the key was one of this view's.
  key(key) {
    if ((key === "n" || key === "N") && this.shown[this.active].hierarchy !== this.shown[0].hierarchy) this.active = 0;
    const pane = this.shown[this.active];
    const h0 = pane.hierarchy;
    const canvas = this.canvases[this.active];
    const go = (node) => {
      if (node === undefined || node < 0) return true;
      this.pick(pane, node);
      canvas.reveal(h0.depth[node]);
      this.show(pane, node);
      return true;
    };
    const at = this.cursor < h0.n ? this.cursor : 0;
    const siblings = () => (at > 0 ? h0.children(h0.parent[at]) : [0]);
    const moves = {
      ArrowDown: () => go(h0.children(at)[0]),
      ArrowUp: () => go(h0.parent[at]),
      ArrowLeft: () => go(siblings()[siblings().indexOf(at) - 1]),
      ArrowRight: () => go(siblings()[siblings().indexOf(at) + 1]),
      Enter: () => (this.app.state.set({ zoom: this.zoomText(pane, at) }), true),
      w: () => this.moveAll(0, 0.8),
      s: () => this.moveAll(0, 1.25),
      a: () => this.moveAll(-0.1),
      d: () => this.moveAll(0.1),
      n: () => go(this.next(1)),
      N: () => go(this.next(-1)),
    };
    return moves[key] ? moves[key]() : false;
  }

  next(step) {
    const nodes = this.found?.nodes ?? [];
    if (!nodes.length) return undefined;
    const at = nodes.indexOf(this.cursor);
    return nodes[at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length];
  }

  moveAll(pan, factor) {
    for (const canvas of this.canvases) canvas.move(pan, factor);
    return true;
  }

  // A node that is out of what is zoomed to is zoomed out to.
  show(pane, node) {
    const h0 = pane.hierarchy;
    const zoomed = this.zoomOf(this.app.state.now, this.shown.indexOf(pane));
    if (h0.x1[node] <= h0.x0[zoomed] || h0.x0[node] >= h0.x1[zoomed]) this.app.state.set({ zoom: "" });
  }
}

// What a tree lacks.
export function treeNotes({ columns }) {
  return [
    columns.too_large && "The tree is too large: some paths are cut.",
    columns.n_folded > 0 && `${count(columns.n_folded)} frames that cost least are part of their callers.`,
  ].filter(Boolean);
}

export function swatch(name, text) {
  return h("span", { class: `swatch ${name}` }, text);
}
