// cost.js: what can be asked of a line, a frame or everything, and what something cost. The document
// brings the names of the costs and of the phases (counters.def, phases.def): no list of them is here.

import { ratio, time } from "./format.js";

const TAPE = ["record_bytes", "value_bytes", "adjoint_bytes"];
const OWN = [
  { id: "total", name: "Total time", unit: "ns", columns: ["forward_ns", "backward_ns", "recompute_ns", "other_ns"] },
  { id: "forward", name: "Forward time", unit: "ns", columns: ["forward_ns"] },
  { id: "backward", name: "Backward time", unit: "ns", columns: ["backward_ns"] },
  { id: "recompute", name: "Recomputation", unit: "ns", columns: ["recompute_ns"], optional: true },
  { id: "other", name: "Other code", unit: "ns", columns: ["other_ns"], optional: true },
  { id: "calls", name: "Calls", unit: "n", columns: ["calls"] },
  { id: "tape", name: "Tape bytes", unit: "B", columns: TAPE },
  { id: "peak", name: "Bytes at the peak", unit: "B", columns: ["peak_bytes"] },
  { id: "lifetime", name: "Byte-seconds", unit: "Bs", columns: ["byte_ns"], optional: true },
];

// What can be asked of a line, a frame or everything. "columns" are added up.
export const METRICS = [...OWN];
export const metricOf = (id) => METRICS.find((m) => m.id === id) ?? METRICS[0];

// The names of the columns of costs.
export const COSTS = [];
// The phases of time, each with the class of its colour: {name, class}.
export const PHASES = [];

// What something cost, and by the names of the metrics what follows from that.
export class Cost {
  constructor() {
    for (const name of COSTS) this[name] = 0;
  }
}

const estimated = (cost, id) => (id === "total" ? cost.estimated_forward_ns + cost.estimated_backward_ns : cost[`estimated_${id}_ns`]) > 0;

// A time of a cost, "total", "forward" or "backward": "~" before an estimate, "–" where it is not known.
export function timeOf(cost, id) {
  if (id === "forward" && !cost.forward && cost.untimed_calls > 0) return "–";
  return `${estimated(cost, id) ? "~" : ""}${time(cost[id])}`;
}

// Backward over forward time, likewise.
export function ratioOf(cost, { forward, backward } = cost) {
  return `${forward > 0 && estimated(cost, "total") ? "~" : ""}${ratio(backward, forward)}`;
}

// What a picture of a metric's times says of them where it has no room for marks, or "".
export function timesNote(model, metric) {
  const which = model.sampled ? "" : "of statements ";
  return metric.unit === "ns" && (!which || estimated(model.wholeSum, metric.id)) ? `Times ${which}are estimates.` : "";
}

// To be called with a document before anything is made of it.
export function learn({ costs, phases }) {
  COSTS.splice(0, Infinity, ...costs.map((cost) => cost.name), "byte_ns", "untimed_calls");
  PHASES.splice(0, Infinity, ...phases);
  METRICS.splice(OWN.length, Infinity, ...costs.filter((cost) => cost.label).map(({ name, unit, label }) =>
    ({ id: name.replace(/_(ns|bytes)$/, ""), name: label, unit, columns: [name], optional: true })));
  for (const { id, columns } of METRICS)
    if (!COSTS.includes(id)) Object.defineProperty(Cost.prototype, id, { configurable: true, get: sumOf(columns) });
}

function sumOf(columns) {
  if (columns.length === 1) return function one() { return this[columns[0]]; };
  return function sum() { return columns.reduce((all, name) => all + this[name], 0); };
}
