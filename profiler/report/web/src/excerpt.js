// excerpt.js: the lines of the source about a place, with what each cost.

import { h, replace } from "./dom.js";
import { by } from "./format.js";
import { tokens } from "./c_tokens.js";

const AROUND = 6; // lines before and after

// place: of a file, or null.
export function excerpt(root, app, place, metric) {
  root.hidden = !place?.file || !place.line;
  if (root.hidden) return;
  const { file, line } = place;
  const go = h("button", { class: "go", "data-focus": "excerpt source", onclick: () => app.goTo("source", place.key) }, "Source →");
  if (!file.text) return replace(root, h("h2", {}, place.key, " ", go), h("p", { class: "note" }, `The text is not here: ${file.why}.`));
  const first = Math.max(1, line - AROUND);
  const last = Math.min(file.text.length, line + AROUND);
  let inside = false; // a comment
  for (let i = 0; i < first - 1; i++) ({ inside } = tokens(file.text[i], inside));
  const rows = [];
  for (let i = first; i <= last; i++) {
    const read = tokens(file.text[i - 1], inside);
    ({ inside } = read);
    const value = app.model.places.get(`${file.short}:${i}`)?.cost[metric.id] ?? 0;
    rows.push(h("div", { class: i === line ? "src selected" : "src" }, h("span", { class: "g" }, value > 0 && by[metric.unit](value)), h("span", { class: "no" }, String(i)),
      h("span", { class: "code" }, read.pieces.map(([kind, text]) => (kind ? h("i", { class: kind }, text) : text)))));
  }
  replace(root, h("h2", {}, place.key, " ", go), h("div", { class: "source" }, rows));
  const chosen = rows[line - first];
  if (chosen) root.scrollTop = Math.max(0, chosen.offsetTop - root.clientHeight / 2);
}
