// findings.js: what stands out, as profiler/report/text found and worded it, for the page: each with
// its text in pieces, the place that it is about and the view that shows more of it.

import { Table } from "./data.js";

// The text in pieces: the place as {key}, what weighs most as {strong}. The key is the page's own name
// of the place; a text has both at most once.
function pieces({ text, where, weighs }, key) {
  const marks = [[where, { key }], [weighs, { strong: weighs }]]
    .map(([mark, piece]) => ({ at: mark ? text.indexOf(mark) : -1, mark, piece }))
    .filter(({ at, piece }) => at >= 0 && piece.key !== "").sort((a, b) => a.at - b.at);
  const out = [];
  let from = 0;
  for (const { at, mark, piece } of marks) {
    if (at < from) continue;
    out.push(text.slice(from, at), piece);
    from = at + mark.length;
  }
  return [...out, text.slice(from)];
}

// What explains a finding: the topic of `tapescope help`, and the text; null: it was not installed.
const howtoOf = (page, text) => page && { topic: page.replace(/^.*\/|\.md/g, ""), text };

export function findings(model) {
  const { document } = model;
  const { findings: rows, finding_places: columns } = document;
  const places = new Table(columns, rows.length);
  return rows.map((row, i) => {
    const key = row.where ? model.place(places, i).key : "";
    return { kind: row.sort, title: row.title, text: pieces(row, key), advice: row.advice, call: row.call, howto: howtoOf(row.howto, document.howtos[i]), view: row.view, tab: row.tab, key };
  });
}
