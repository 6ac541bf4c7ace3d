// view_residuals.js: the tape's bytes by what they are for: who made them, whose pullback reads
// them, who gave them back, and how long they lived.

import { h, replace } from "./dom.js";
import { byteSeconds, bytes, count, share, time } from "./format.js";
import { CAUSES } from "./data.js";
import { partsBar } from "./chart.js";
import { DataTable, placeColumn, whereText } from "./table.js";
import { compile, matchesPlace } from "./search.js";
import { nothingIn } from "./nothing.js";
import { heldSomewhere, holderColumns } from "./ranks.js";

const KINDS = ["saved", "value", "record", "adjoint", "disk"];
const DISK = 1 << 4;
const KIND_HINTS = ["read by a pullback", "read by none", "the tape's own", "gradients", "in the tape's file"];
const KIND_COLORS = ["mem", "gray", "record", "adjoint", "disk"];
const TABS = [
  { id: "", name: "At the peak", value: (r) => r.at ?? r.held, what: "bytes at the peak" },
  { id: "lifetime", name: "Lifetime", value: (r) => r.byteNs, what: "byte-seconds" },
  { id: "dead", name: "Saved in vain", value: (r) => (r.kinds & 1 ? r.dead + r.unread : 0), what: "bytes saved and not read" },
  { id: "left", name: "Left at the end", value: (r) => r.left, what: "bytes that nothing gave back but the tape's end" },
];
const kindsOf = (row) => KINDS.filter((_, k) => row.kinds & (1 << k));

export function mountResiduals(root, app) {
  const { model } = app;
  const rows = model.holders();
  if (!rows.length) {
    replace(root, h("p", { class: "note" }, nothingIn(model, "residuals")));
    return { update: () => app.setMatch(null) };
  }
  const tabs = h("div", { class: "group", role: "group", "aria-label": "What is shown" });
  const bar = h("div", {});
  const head = h("h2", {});
  const table = new DataTable({ caption: "Classes of bytes", rows: [], sort: "key", keyOf: (row) => row.place.key, onSelect: (key) => app.state.set({ sel: key }), columns: [], empty: "None." });
  const lacking = h("p", { class: "note" });
  replace(root, h("div", { class: "tools" }, tabs), h("section", {}, head, bar, lacking, table.element));
  const update = (state) => {
    const tab = TABS.find((t) => t.id === state.tab) ?? TABS[0];
    const range = String(app.range ?? "");
    if (tab !== table.tab || range !== table.range) {
      const at = app.range && model.heldWithin(app.range); // who held what then
      rows.forEach((row, i) => { row.at = at ? at.held[i] : undefined; });
      table.range = range;
      table.tab = tab;
      table.columns = [...columns(tab), ...(tab.id ? [] : holderColumns(model))];
      table.sort = "key";
      table.down = true;
      table.setRows(rows.filter((row) => tab.value(row) > 0 || (!tab.id && !at && heldSomewhere(model, row))));
      replace(tabs, TABS.map((t) => h("button", { class: "chip", "data-focus": `tab ${t.id}`, "aria-pressed": String(t === tab), onclick: () => app.state.set({ tab: t.id }) }, !t.id && at ? "Most in the range" : t.name)));
      head.textContent = title(model, tab, at);
      kindsBar(bar, rows, tab);
      lacking.textContent = tab.id ? "" : app.range ? rangeNote(model, at) : notes(model.document.space).join(" ");
      lacking.hidden = !lacking.textContent;
    }
    const { expression } = compile(state.q);
    const matches = (row) => [row.place, row.consumer].some((p) => p && matchesPlace(expression, p));
    table.mark(state.sel, expression && matches);
    const whole = rows.reduce((s, r) => s + tab.value(r), 0);
    app.setMatch(expression && `${share(rows.filter(matches).reduce((s, r) => s + tab.value(r), 0), whole)} of ${tab.what}`);
  };
  update(app.state.now);
  return { update };
}

// What is said of a range of time, of which at is the moment at which most was held.
function rangeNote(model, at) {
  if (at) return "Who held what at the moment of the range at which the tape with the greatest peak held most.";
  const known = model.heldStretch();
  return `Who held what in the range is not known, so this is the peak.${known ? ` It is known from ${time(known[0])} to ${time(known[1])}, about the peak.` : ""}`;
}

function title(model, tab, at) {
  if (at && !tab.id) return `${bytes(at.total)} at most in the range, ${time(at.ns)} after the start`;
  const { space } = model.document;
  if (tab.id) return tab.what[0].toUpperCase() + tab.what.slice(1);
  const when = space.at_ns === undefined ? "" : `, ${time(space.at_ns)} after the start${space.backward ? ", in a sweep" : ""}`;
  return `${bytes(space.total_bytes)} at the peak${when}`;
}

// What the rows of the peak lack.
function notes({ total_bytes: total, held_bytes: held, truncated }) {
  return [
    total > held && `${bytes(total - held)} (${share(total - held, total)}) of the peak are of no class.`,
    truncated && "The changes of the tape end before it was emptied: there was no room. What the peak holds is exact; times after that are not known.",
  ].filter(Boolean);
}

function kindsBar(bar, rows, tab) {
  replace(bar, partsBar(KINDS.map((name, k) => ({ kind: KIND_COLORS[k], name, hint: KIND_HINTS[k],
    value: rows.filter((r) => r.kinds & (1 << k)).reduce((s, r) => s + tab.value(r), 0) }))));
}

function columns(tab) {
  const handed = (row) => row.kinds !== DISK; // what lies in the file was handed out as of another kind
  const lifetime = (row) => (handed(row) && row.bytes > 0 ? row.byteNs / row.bytes : 0);
  const format = tab.id === "lifetime" ? byteSeconds : bytes;
  const end = (row) => {
    const most = CAUSES.filter((cause) => row.by[cause] > 0).sort((a, b) => row.by[b] - row.by[a]);
    return most.length ? `${most[0]}${most.length > 1 ? " +" : ""}` : "–";
  };
  return [
    { id: "key", title: tab.id === "lifetime" ? "byte-seconds" : "bytes", bar: "mem", value: tab.value, text: (row) => format(tab.value(row)) },
    { id: "kind", title: "kind", value: (row) => kindsOf(row).join(" "), text: (row) => h("span", {}, kindsOf(row).map((kind) => h("span", { class: `kind ${KIND_COLORS[KINDS.indexOf(kind)]}` }, kind))) },
    placeColumn("made by", (row) => row.place),
    { id: "for", title: "read by the pullback of", wide: true, value: (row) => row.consumer?.key ?? "", text: (row) => (row.consumer ? [whereText(row.consumer), row.more ? " +" : ""] : "–"), hint: "+: and others" },
    { id: "end", title: "given back by", value: end, text: (row) => (row.releasedBy ? [end(row), " ", h("span", { class: "fn" }, row.releasedBy.key)] : end(row)), hint: "what gave most of the bytes back, and the line that did; +: and others" },
    { id: "life", title: "mean life", value: lifetime, text: (row) => (handed(row) && row.byteNs > 0 ? time(lifetime(row)) : "–") },
    { id: "all", title: "in all", value: (row) => row.bytes, text: (row) => (handed(row) ? bytes(row.bytes) : "–"), hint: "bytes over the whole profile" },
    { id: "count", title: "values", value: (row) => row.count, text: (row) => (handed(row) ? count(row.count) : "–") },
  ];
}
