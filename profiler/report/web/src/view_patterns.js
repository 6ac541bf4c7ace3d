// view_patterns.js: which elements of sparse Jacobians and Hessians are not always 0.

import { h, svg, replace } from "./dom.js";
import { count, share } from "./format.js";
import { DataTable, placeColumn } from "./table.js";
import { compile, matchesPlace } from "./search.js";

const LEVELS = 4;
const size = (r) => `${count(r.rows)} × ${count(r.columns)}`;
const filled = (r) => share(r.nonzeros, r.rows * r.columns);

export function mountPatterns(root, app) {
  const rows = app.model.patternRows();
  const { left_out: leftOut } = app.model.document.patterns;
  const lacking = leftOut > 0 && h("p", { class: "note" }, `${count(leftOut)} more ${leftOut === 1 ? "pattern was" : "patterns were"} found, for which there was no room.`);
  if (!rows.length) {
    replace(root, h("p", { class: "note" }, "The program found no pattern of a sparse derivative while it was profiled (", h("code", {}, "ad_jacobian_pattern"), ")."), lacking);
    return { update: () => app.setMatch(null) };
  }
  let chosen = rows[0];
  const picture = h("section", {});
  const table = new DataTable({
    caption: "Patterns of sparse derivatives", rows, sort: "nonzeros", keyOf: (r) => r.place.key,
    onSelect: (key, row) => {
      chosen = row;
      app.state.set({ sel: key });
      show();
    },
    columns: [
      placeColumn("line", (r) => r.place),
      { id: "kind", title: "of", value: (r) => r.kind, text: (r) => r.kind },
      { id: "size", title: "rows × columns", value: (r) => r.rows * r.columns, text: size },
      { id: "nonzeros", title: "nonzeros", value: (r) => r.nonzeros, text: (r) => count(r.nonzeros) },
      { id: "share", title: "share", bar: "mem", max: 1, value: (r) => (r.rows * r.columns > 0 ? r.nonzeros / (r.rows * r.columns) : 0), text: filled },
      { id: "colours", title: "colours", hint: "groups of rows, each of which takes one sweep", value: (r) => r.colours, text: (r) => (r.colours < 0 ? "–" : count(r.colours)) },
      { id: "calls", title: "calls", value: (r) => r.calls, text: (r) => count(r.calls) },
    ],
  });
  const show = () => replace(picture, h("h2", {}, `${chosen.kind} of ${chosen.place.key}`), draw(chosen),
    h("p", { class: "note" }, `${size(chosen)}, ${count(chosen.nonzeros)} ${chosen.nonzeros === 1 ? "nonzero" : "nonzeros"}, ${filled(chosen)}${chosen.colours < 0 ? "" : `; ${count(chosen.colours)} ${chosen.colours === 1 ? "colour: one sweep fills" : "colours: as many sweeps fill"} the values`}. `,
      "A cell is darker the more nonzeros it has. The newest pattern of the line."));
  replace(root, picture, h("section", {}, h("h2", {}, "Lines"), table.element, lacking));
  const update = (state) => {
    const { expression } = compile(state.q);
    const matches = expression && ((r) => matchesPlace(expression, r.place));
    if (chosen.place.key !== state.sel) chosen = rows.find((r) => r.place.key === state.sel) ?? rows[0];
    table.mark(state.sel, matches);
    app.setMatch(expression && `${rows.filter(matches).length} of ${rows.length} patterns`);
    show();
  };
  update(app.state.now);
  return { update };
}

// One path for each level: a picture may have 4096 cells.
function draw(r) {
  const height = r.width > 0 ? r.cells.length / r.width : 0;
  if (!height) return h("p", { class: "note" }, "It has no elements.");
  const most = r.cells.reduce((a, b) => Math.max(a, b), 0);
  const paths = Array.from({ length: LEVELS }, () => "");
  for (const [i, n] of r.cells.entries())
    if (n > 0) paths[Math.ceil((LEVELS * n) / most) - 1] += `M${i % r.width} ${Math.floor(i / r.width)}h1v1h-1z`;
  return svg("svg", { class: "pattern", viewBox: `0 0 ${r.width} ${height}`, role: "img", "aria-label": "Where the nonzeros are; the table below has the numbers" },
    paths.map((d, i) => d && svg("path", { d, "fill-opacity": (i + 1) / LEVELS })));
}
