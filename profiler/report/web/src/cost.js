// cost.js: what can be asked of a line, a frame or everything, and what something cost.

const TAPE = ["record_bytes", "value_bytes", "adjoint_bytes"];

// What can be asked of a line, a frame or everything. "columns" are added up.
export const METRICS = [
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
export const metricOf = (id) => METRICS.find((m) => m.id === id) ?? METRICS[0];

export const COSTS = ["calls", "forward_ns", "backward_ns", "recompute_ns", "other_ns", "waiting_ns", "samples",
  ...TAPE, "kept_bytes", "live_bytes", "peak_bytes", "byte_ns", "forward_flops", "backward_flops",
  "forward_moved_bytes", "backward_moved_bytes"];

// What something cost, and by the names of the metrics what follows from that.
export class Cost {
  constructor() {
    for (const name of COSTS) this[name] = 0;
  }
  get forward() {
    return this.forward_ns;
  }
  get backward() {
    return this.backward_ns;
  }
  get recompute() {
    return this.recompute_ns;
  }
  get other() {
    return this.other_ns;
  }
  get total() {
    return this.forward_ns + this.backward_ns + this.recompute_ns + this.other_ns;
  }
  get tape() {
    return this.record_bytes + this.value_bytes + this.adjoint_bytes;
  }
  get peak() {
    return this.peak_bytes;
  }
  get lifetime() {
    return this.byte_ns;
  }
}
