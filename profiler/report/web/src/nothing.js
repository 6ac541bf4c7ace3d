// nothing.js: why a view has nothing to show. Why nothing was recorded: profiler/report/text/report_findings.c.

const flops = ({ roof, lines }) => roof.flops_per_ns > 0 && ["forward_ns", "backward_ns", "recompute_ns"].some((name) => lines[name]);

const WHY = {
  source: ({ files }) => !files.length && "No line of the profile has a source file. Compile with -g to see lines.",
  timeline: ({ space, timeline }) => !(space?.live.ns.at(-1) > 0) && !(timeline?.cells.bin.length || timeline?.spans.scope.length) && "The profile has no bytes over time.",
  residuals: ({ space }) => !space?.holders.kinds.length && "The profile has no classes of bytes.",
  whatif: ({ whatif }) => (!whatif ? "The profile has no changes of the tape to replay."
    : !whatif.options.new_peak_bytes.length && !whatif.calls.what?.length && "No line saves values for a pullback, and no call is worth a checkpoint."),
  roofline: (document) => !flops(document) && "The profile has no times and counts of flops to compare.",
  diff: ({ diff }) => !diff && "This report is of one profile.",
  growth: ({ growth }) => !growth && "This report is of one size.",
  patterns: ({ patterns }) => !patterns.found.rows.length && "The program found no pattern of a sparse derivative while it was profiled.",
};

// Why the view has nothing; "": it has something.
export function nothingIn(model, view) {
  return WHY[view]?.(model.document) || "";
}
