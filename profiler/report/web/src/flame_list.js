// flame_list.js: the frames about the one that is zoomed to, as rows of a tree.

import { h, replace } from "./dom.js";
import { by, share } from "./format.js";
import { metricOf } from "./cost.js";

const MOST = 100;

export function frameList(root, view, zoom) {
  const pane = view.shown[0];
  const { hierarchy } = pane;
  const metric = metricOf(view.metric());
  const format = by[metric.unit];
  const last = view.lastColumn?.(hierarchy) ?? { title: "Share", text: (node) => share(hierarchy.value[node], hierarchy.value[0]) };
  const rows = [];
  const row = (node, level, expanded) => {
    const place = view.calls.place(hierarchy.frame[node]);
    const selected = !place.root && place.key === view.app.state.now.sel;
    rows.push(h("div", { role: "row", class: selected ? "row selected" : "row", "aria-level": level, "aria-expanded": expanded,
      "aria-selected": String(selected), tabindex: rows.length ? "-1" : "0", "data-node": node,
      onclick: () => view.app.state.set({ zoom: view.zoomText(pane, node), ...(place.root ? {} : { sel: place.key }) }) },
    h("span", { role: "gridcell", class: "name", title: view.calls.label(hierarchy.frame[node]), style: { "padding-left": `${Math.min(level - 1, 12) * 10}px` } },
      view.calls.label(hierarchy.frame[node])),
    h("span", { role: "gridcell", class: "n", title: String(hierarchy.value[node]) }, format(hierarchy.value[node])),
    h("span", { role: "gridcell", class: "n" }, last.text(node))));
  };
  const path = hierarchy.path(zoom);
  for (let only = hierarchy.children(zoom); only.length === 1; only = hierarchy.children(only[0])) path.push(only[0]);
  for (const [i, node] of path.entries()) row(node, i + 1, hierarchy.children(node).length ? "true" : undefined);
  const children = hierarchy.children(path[path.length - 1]);
  for (const node of children.slice(0, MOST)) row(node, path.length + 1, hierarchy.children(node).length ? "false" : undefined);
  const focused = root.contains(document.activeElement);
  replace(root,
    h("div", { role: "treegrid", class: "treegrid", "aria-label": `Frames by ${metric.name.toLowerCase()}`, onkeydown: (event) => move(event) },
      h("div", { role: "row", class: "row head" }, h("span", { role: "columnheader" }, (!pane.only && pane.title) || "Frame"),
        h("span", { role: "columnheader", class: "n" }, metric.name), h("span", { role: "columnheader", class: "n" }, last.title)),
      rows),
    children.length > MOST && h("p", { class: "note" }, `${children.length - MOST} more are in the picture.`));
  if (focused) root.querySelector(`[data-node="${zoom}"]`)?.focus();
}

function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest("[data-node]");
  if (!row) return;
  if (event.key === "Enter" || event.key === " ") row.click();
  else if (!step) return;
  else {
    let next = row;
    do next = step > 0 ? next.nextElementSibling : next.previousElementSibling;
    while (next && !next.dataset.node);
    if (next) {
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  }
  event.preventDefault();
  event.stopPropagation();
}
