// keys.js: what keys do, and the sheet that says so.

import { h } from "./dom.js";

const SHEET = [
  ["1 – 9  0", "the views, in order"],
  ["/", "search; Esc ends it"],
  ["n  N", "next and previous match or line"],
  ["← → ↑ ↓", "move the selection: siblings, caller, callee; lines in the source"],
  ["Enter", "zoom to the selected frame"],
  ["Enter", "timeline: zoom to the range, or else to the peak"],
  ["Esc", "zoom out, then clear search, selection and range of time"],
  ["w s a d", "flame and timeline: zoom in and out, left and right"],
  ["m  M", "next and previous metric"],
  ["c  i  f  x", "flame: calls, inverted, mirrored, sandwich"],
  ["t", "dark or light"],
  ["?", "this sheet"],
];
const MODE_KEYS = { c: "calls", i: "inverted", f: "mirror", x: "sandwich" };

export function helpSheet() {
  const sheet = h("dialog", { class: "help", "aria-labelledby": "help-title" }, h("h2", { id: "help-title" }, "Keys"),
    h("dl", {}, SHEET.map(([keys, what]) => [h("dt", {}, keys.split(/\s{2,}/).map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
    h("p", { class: "note" }, "Click a frame, row or line to select it everywhere; double-click a frame to zoom. Blue is forward, orange backward, hatched recomputed."),
    h("form", { method: "dialog" }, h("button", { class: "chip" }, "Close")));
  sheet.addEventListener("click", (event) => { if (event.target === sheet) sheet.close(); });
  return sheet;
}

function escape(app) {
  const { now } = app.state;
  if (app.mounted?.escape?.()) return;
  if (now.zoom) app.state.set({ zoom: "" });
  else if (now.q) app.state.set({ q: "" });
  else if (now.sel) app.state.set({ sel: "" });
  else if (now.range) app.state.set({ range: "", zoom: "" });
}

function metric(app, step) {
  const ids = app.model.metrics.map((m) => m.id);
  app.state.set({ metric: ids[(ids.indexOf(app.state.now.metric) + step + ids.length) % ids.length], zoom: "" });
}

export function installKeys(app) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || app.help.open) return;
    const { key } = event;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("input, select, textarea")) {
      if (key === "Escape" || (key === "Enter" && target === app.search)) {
        if (key === "Escape") app.state.set({ q: "" });
        target.blur();
        event.preventDefault();
      }
      return;
    }
    if (key === "Enter" && target.closest("button:not([role=tab]), a, [role=row], tr")) return;
    if (act(app, key)) event.preventDefault();
  });
}

function act(app, key) {
  if (/^[0-9]$/.test(key)) return app.state.set({ view: app.views[(Number(key) + 9) % 10].id }), true;
  if (key === "/") return app.search.focus(), app.search.select(), true;
  if (key === "?") return app.help.showModal(), true;
  if (key === "Escape") return escape(app), true;
  if (key === "m" || key === "M") return metric(app, key === "m" ? 1 : -1), true;
  if (key === "t") return app.toggleTheme(), true;
  if (app.view.id === "flame" && MODE_KEYS[key]) return app.state.set({ mode: MODE_KEYS[key], zoom: "" }), true;
  return app.mounted?.key?.(key) ?? false;
}
