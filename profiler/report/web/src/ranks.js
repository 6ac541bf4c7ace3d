// ranks.js: a set of ranks of MPI: what each has of what the page shows as their sum.

import { COSTS, Cost, METRICS, metricOf } from "./cost.js";
import { Table } from "./data.js";
import { by } from "./format.js";

const MOST_COLUMNS = 8; // of ranks; of more the greatest alone is shown

// The place of the rank in the address, or -1: all.
export function rankAt(model, text) {
  return text === "" ? -1 : (model.document.ranks?.rank.indexOf(Number(text)) ?? -1);
}

// Places and their sum as a model has them, of one rank; and for Calls.within() what nodes have.
export function partOfRank(model, at) {
  const { lines, tree } = model.document.ranks;
  const sum = new Cost();
  const table = new Table(lines[at], model.lines.n);
  for (const name of COSTS) sum[name] = table.total(name);
  const nodes = new Table(tree[at], model.tree.n);
  const sums = Object.fromEntries(METRICS.map((m) => [m.id, nodes.numbers(...m.columns)]));
  return { sums, part: { sum, places: placesOf(model, at) } };
}

function placesOf(model, at) {
  model.rankPlaces ??= [];
  const whole = model.wholePlaces;
  const columns = model.document.ranks.lines[at];
  return (model.rankPlaces[at] ??= whole.with(Object.fromEntries(COSTS.map((name) => [name, whole.add(columns[name])]))));
}

// What the values of all ranks say of a row: the most over the mean, 0 where there is none, and who has it.
function spread(values) {
  let most = 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    sum += values[i];
    if (values[i] > values[most]) most = i;
  }
  return { over: sum > 0 ? (values[most] * values.length) / sum : 0, most };
}

// valuesOf(row): what each rank has; format: of one value.
function columnsOf(model, valuesOf, format) {
  const { rank } = model.document.ranks;
  const all = (row) => spread(valuesOf(row));
  const text = (row) => { const { over, most } = all(row); return over > 0 ? `${over.toFixed(2)} (${rank[most]})` : "–"; };
  return [{ id: "ranks", title: "max/mean (rank)", value: (row) => all(row).over, text, hint: "the most of any rank over the mean of all, and which rank has it" },
    ...(rank.length > MOST_COLUMNS ? [] : rank.map((number, i) => ({ id: `rank${number}`, title: `rank ${number}`, value: (row) => valuesOf(row)[i], text: (row) => (valuesOf(row)[i] ? format(valuesOf(row)[i]) : "·") })))];
}

// Columns for a table of places, by a metric; none where there are no ranks, or one is chosen.
export function placeColumns(app, metric) {
  const { model } = app;
  if (!model.document.ranks || rankAt(model, app.state.now.rank) >= 0) return [];
  const of = model.document.ranks.rank.map((_, i) => placesOf(model, i).metric(metric.id));
  return columnsOf(model, (entry) => of.map((values) => values[entry.number]), by[metric.unit]);
}

// Those for classes of bytes at the peak.
export function holderColumns(model) {
  const { ranks } = model.document;
  return ranks ? columnsOf(model, (row) => ranks.held.map((held) => held[row.i]), by.B) : [];
}

// Whether a rank holds something of the class that the rank with the greatest peak does not.
export const heldSomewhere = (model, row) => model.document.ranks?.held.some((held) => held[row.i] > 0) ?? false;

// "1.50 (2)" of a place, for where there is one column; null without ranks.
export function placeSpread(app, id) {
  const column = placeColumns(app, metricOf(id))[0];
  return column ? (entry) => column.text(entry) : null;
}
