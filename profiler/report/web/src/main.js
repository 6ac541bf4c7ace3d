// main.js: reads the document and sets up the frame that all views share: the bar with the views,
// the metric, the search, and the strip with what is selected.

import { h, keepFocus, replace } from "./dom.js";
import { by, count, share, time } from "./format.js";
import { METRICS, ratioOf, timeOf } from "./cost.js";
import { Model, decode } from "./data.js";
import { State } from "./state.js";
import { Calls } from "./hierarchy.js";
import { compile } from "./search.js";
import { forget } from "./colors.js";
import { Events, partOf } from "./events.js";
import { partOfRank, rankAt } from "./ranks.js";
import { installKeys, helpSheet } from "./keys.js";
import { mountSummary } from "./view_summary.js";
import { mountFlame } from "./view_flame.js";
import { mountSource } from "./view_source.js";
import { mountTimeline } from "./view_timeline.js";
import { mountResiduals } from "./view_residuals.js";
import { mountWhatif } from "./view_whatif.js";
import { mountRoofline } from "./view_roofline.js";
import { mountDiff } from "./view_diff.js";
import { mountGrowth } from "./view_growth.js";
import { mountPatterns } from "./view_patterns.js";
import { nothingIn } from "./nothing.js";

// What a view shows of the whole run when a range of time is selected; others show nothing else.
const WHOLE = { summary: "bytes and tiles are", flame: "bytes are", source: "bytes are", timeline: "bytes and the table of scopes are",
  residuals: "all but who holds the bytes is" };

// The same of a rank.
const OF_RANK = { summary: "tiles and findings are", flame: "nothing is", source: "nothing is" };

export const VIEWS = [
  { id: "summary", name: "Summary", mount: mountSummary },
  { id: "flame", name: "Flame", mount: mountFlame },
  { id: "source", name: "Source", mount: mountSource },
  { id: "timeline", name: "Timeline", mount: mountTimeline },
  { id: "residuals", name: "Residuals", mount: mountResiduals },
  { id: "whatif", name: "What-if", mount: mountWhatif },
  { id: "roofline", name: "Roofline", mount: mountRoofline },
  { id: "diff", name: "Diff", mount: mountDiff },
  { id: "growth", name: "Growth", mount: mountGrowth },
  { id: "patterns", name: "Patterns", mount: mountPatterns },
];

const item = (kind, name, value) => h("span", { class: `item ${kind}` }, h("span", { class: "label" }, name), " ", value);

class App {
  /** @type {any} */ made;
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.state = new State();
    this.events = model.document.timeline ? new Events(model.document) : null;
    this.views = VIEWS;
    this.build();
    this.state.onChange((now, before) => this.update(now, before));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    addEventListener("resize", () => this.mounted?.update?.(this.state.now, this.state.now));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    installKeys(this);
    this.update(this.state.now, null);
  }

  calls() {
    return (this.made ??= new Calls(this.model));
  }

  viewName(id) {
    return VIEWS.find((view) => view.id === id)?.name ?? id;
  }

  build() {
    const { profile } = this.model;
    const program = profile.program?.split("/").pop() || "program";
    document.title = `${program} – Tapescope`;
    this.tabs = VIEWS.map((view, i) => {
      const nothing = nothingIn(this.model, view.id);
      return h("button", { id: `tab-${view.id}`, role: "tab", "aria-controls": "view", class: nothing ? "nothing" : null,
        title: `${view.name} (${(i + 1) % 10})${nothing && `: ${nothing}`}`, onclick: () => this.state.set({ view: view.id }) }, view.name);
    });
    this.metric = h("select", { id: "metric", onchange: () => this.state.set({ metric: this.metric.value, zoom: "" }) },
      this.model.metrics.map((m) => h("option", { value: m.id }, m.name)));
    const { ranks } = this.model.document;
    this.rank = ranks && h("select", { id: "rank", onchange: () => this.state.set({ rank: this.rank.value, range: "", zoom: "" }) },
      h("option", { value: "" }, "all"), ranks.rank.map((number) => h("option", { value: String(number) }, String(number))));
    this.search = h("input", { id: "search", type: "search", placeholder: "Search (regex)", title: "A regular expression (/)", "aria-label": "Search", spellcheck: "false", autocomplete: "off",
      oninput: () => this.state.set({ q: this.search.value }) });
    this.match = h("output", { class: "match", for: "search" });
    this.main = h("div", { id: "view", role: "tabpanel", tabindex: "-1" });
    this.strip = h("aside", { class: "strip", "aria-label": "Selection", "aria-live": "polite" });
    this.stretch = h("aside", { class: "stretch", "aria-label": "Range of time", "aria-live": "polite", hidden: true });
    this.help = helpSheet();
    replace(this.root,
      h("header", {},
        h("div", { class: "title" }, h("span", { class: "brand" }, "Tapescope"), h("h1", {}, program), h("span", { class: "args" }, (profile.arguments ?? []).slice(1).join(" "))),
        h("div", { class: "controls" }, h("label", { class: "field" }, h("span", {}, "Metric"), this.metric), this.rank && h("label", { class: "field" }, h("span", {}, "Rank"), this.rank), h("div", { class: "search" }, this.search, this.match),
          h("button", { class: "icon", title: "Dark or light (t)", "aria-label": "Dark or light", onclick: () => this.toggleTheme() }, "◐"),
          h("button", { class: "icon", title: "Keys (?)", "aria-label": "Keys", onclick: () => this.help.showModal() }, "?")),
        h("div", { class: "tabs", role: "tablist", "aria-label": "Views", onkeydown: (event) => this.tabKey(event) }, this.tabs)),
      h("main", {}, this.main), this.stretch, this.strip, this.help);
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = VIEWS.findIndex((view) => view.id === this.state.now.view);
    const next = VIEWS[(at + step + VIEWS.length) % VIEWS.length];
    this.state.set({ view: next.id });
    this.tabs[VIEWS.indexOf(next)].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  update(now, before) {
    const view = VIEWS.find((v) => v.id === now.view) ?? VIEWS[0];
    for (const [i, tab] of this.tabs.entries()) {
      const current = VIEWS[i] === view;
      tab.setAttribute("aria-selected", String(current));
      tab.tabIndex = current ? 0 : -1;
      if (current && (!before || before.view !== now.view)) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.metric.value = this.model.metrics.some((m) => m.id === now.metric) ? now.metric : METRICS[0].id;
    if (this.rank) this.rank.value = rankAt(this.model, now.rank) < 0 ? "" : now.rank;
    if (this.search.value !== now.q) this.search.value = now.q;
    const { error } = compile(now.q);
    this.search.setAttribute("aria-invalid", String(Boolean(error)));
    const other = this.showStretch(now) && view.id !== "timeline"; // what views have made is of another time
    keepFocus(this.root, () => {
      if (this.view === view && this.mounted && !other) this.mounted.update(now, before);
      else this.mount(view);
      this.showStrip(now);
    });
    this.match.classList.toggle("error", Boolean(error));
    if (error) this.match.textContent = "not a regular expression";
  }

  mount(view) {
    this.mounted?.destroy?.();
    this.view = view;
    this.mounted = null;
    this.setMatch(null);
    this.main.className = `view-${view.id}`;
    this.main.setAttribute("aria-labelledby", `tab-${view.id}`);
    replace(this.main);
    this.main.scrollTop = 0;
    this.mounted = view.mount(this.main, this);
  }

  setMatch(text) {
    this.match.textContent = text || "";
  }

  goTo(view, key) {
    this.state.set({ view, sel: key, ...(view === "source" ? { file: "" } : {}) });
  }

  showStrip(now) {
    this.strip.hidden = !now.sel;
    if (!now.sel) return;
    const entry = this.model.places.get(now.sel);
    if (!entry) {
      const frame = this.calls().frameOf(now.sel);
      replace(this.strip, h("b", {}, now.sel), frame !== undefined && this.frameCost(frame), this.stripButtons(now, Boolean(frame !== undefined)));
      return;
    }
    const { cost, place } = entry;
    replace(this.strip, h("b", {}, place.key), h("span", { class: "op" }, [...entry.ops].join(", ")), place.function && place.file && h("span", { class: "fn" }, place.function),
      item("fwd", "forward", timeOf(cost, "forward")), item("bwd", "backward", timeOf(cost, "backward")), cost.recompute > 0 && item("rec", "recomputed", time(cost.recompute)),
      item("", "b/f", ratioOf(cost)),
      item("mem", "tape", by.B(cost.tape)), item("mem", "peak", by.B(cost.peak)), item("", "calls", by.n(cost.calls)), this.stripButtons(now, true));
  }

  // Makes all that times and calls are asked of be of the range in the address. True: it was another.
  showStretch(now) {
    const range = this.events?.parse(now.range) ?? null;
    const rank = range ? -1 : rankAt(this.model, now.rank);
    const key = `${range} ${rank} ${now.view}`;
    if (key === this.stretchKey) return false;
    this.stretchKey = key;
    const other = `${range} ${rank}` !== (this.chosen ?? "null -1");
    this.chosen = `${range} ${rank}`;
    if (other && rank < 0) this.sumStretch(range);
    if (other && rank >= 0) this.sumRank(rank);
    this.stretch.hidden = !range && rank < 0;
    if (range) this.fillStretch(range, now);
    else if (rank >= 0) this.fillRank(now);
    return other;
  }

  sumRank(at) {
    const { sums, part } = partOfRank(this.model, at);
    this.range = null;
    this.calls().within(sums);
    this.model.part = part;
  }

  fillRank(now) {
    const { sum } = this.model.part;
    replace(this.stretch, h("b", {}, `Rank ${now.rank}`), item("fwd", "forward", time(sum.forward)), item("bwd", "backward", time(sum.backward)),
      item("mem", "tape", by.B(sum.tape)), item("", "calls", count(sum.calls)),
      h("span", { class: "fn" }, `${OF_RANK[now.view] ?? "this view is"} of all ranks`),
      h("span", { class: "actions" }, h("button", { class: "chip", "aria-label": "All ranks", onclick: () => this.state.set({ rank: "", zoom: "" }) }, "×")));
  }

  sumStretch(range) {
    this.range = range;
    const sums = range && this.events.sums(range);
    this.calls().within(sums);
    this.model.part = null;
    this.model.part = sums && partOf(this.model, this.calls(), sums);
  }

  fillStretch(range, now) {
    const { sum } = this.model.part;
    replace(this.stretch, h("b", {}, `Range ${time(range[0])} – ${time(range[1])}`), item("fwd", "forward", time(sum.forward)), item("bwd", "backward", time(sum.backward)),
      sum.recompute > 0 && item("rec", "recomputed", time(sum.recompute)), item("", "calls", count(sum.calls)),
      h("span", { class: "fn" }, `${WHOLE[now.view] ?? "this view is"} of the whole run`),
      h("span", { class: "actions" }, ["timeline", "flame"].map((id) => now.view !== id && h("button", { class: "chip", onclick: () => this.state.set({ view: id, zoom: "" }) }, this.viewName(id))),
        h("button", { class: "chip", "aria-label": "Clear the range", onclick: () => this.state.set({ range: "", zoom: "" }) }, "×")));
  }

  // What a frame that records nothing itself cost with all that it called.
  frameCost(frame) {
    const calls = this.calls();
    const mark = calls.outermost(frame);
    return [["fwd", "forward"], ["bwd", "backward"], ["mem", "tape"]].map(([kind, name]) => {
      const { values } = calls.hierarchy("calls", name);
      let value = 0;
      for (let i = 0; i < mark.length; i++) if (mark[i] === 2) value += values[0][i];
      return item(kind, `${name} with callees`,
        `${by[name === "tape" ? "B" : "ns"](value)}, ${share(value, values[0][0])}`);
    });
  }

  stripButtons(now, known) {
    const to = (view, name, more) => now.view !== view && known && h("button", { class: "chip", onclick: () => this.state.set({ view, zoom: "", ...more }) }, name);
    return h("span", { class: "actions" }, to("flame", "Flame"), to("source", "Source", { file: "" }), h("button", { class: "chip", "aria-label": "Clear the selection", onclick: () => this.state.set({ sel: "" }) }, "×"));
  }

  themeNow() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }

  toggleTheme() {
    document.documentElement.dataset.theme = this.themeNow() === "dark" ? "light" : "dark";
    this.repaint();
  }

  // Paper is light: what is on canvases too, and all of it.
  print(begins) {
    const { dataset } = document.documentElement;
    const { scrollTop } = this.main;
    if (begins) this.themeBefore = dataset.theme;
    dataset.theme = begins ? "light" : this.themeBefore;
    if (dataset.theme === "undefined") delete dataset.theme;
    this.repaint();
    this.main.scrollTop = scrollTop;
    if (begins) for (const canvas of this.mounted.canvases ?? []) canvas.showAll();
  }

  // Canvases have their colours from the style sheet when they are made.
  repaint() {
    forget();
    this.mount(this.view);
  }
}

async function boot() {
  const root = document.getElementById("app");
  const data = document.getElementById("profile-data");
  try {
    const contents = await decode(data.textContent);
    data.remove();
    if (contents.theme !== "auto") document.documentElement.dataset.theme = contents.theme;
    const app = new App(root, new Model(contents));
    const { dataset } = document.documentElement;
    dataset.ready = "true";
    // When the first picture is on the screen, in ms since the page was asked for.
    requestAnimationFrame(() => setTimeout(() => {
      dataset.drawn = String(Math.round(performance.now()));
      globalThis.requestIdleCallback?.(() => app.calls().labelAhead());
    }));
    return app;
  } catch (error) {
    replace(root, h("p", { class: "boot", role: "alert" }, `The report cannot be shown: ${error.message}`));
    throw error;
  }
}

boot();
