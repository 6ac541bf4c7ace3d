// nothing.js: why a view has nothing to show, and why a program may have recorded nothing.

import { count } from "./format.js";

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

// Why nothing was recorded, in sentences; none where something was.
export function unrecorded({ document, wholeSum: sum }) {
  const { total, profile, sampled } = document;
  if (sum.calls > 0 || total.records > 0 || sum.total > 0) return [];
  if (profile.steps && !(profile.steps.ended > profile.steps.first))
    return [`Nothing was recorded: --steps ${profile.steps.first}:${profile.steps.last} was asked for, and the program ended ${count(profile.steps.ended)} step${profile.steps.ended === 1 ? "" : "s"}.`];
  if (sampled) return ["Nothing was recorded: the program ended before a sample was taken. --freq asks for more, --time exact counts every op."];
  if (!(total.tapes > 0)) return ["Nothing was recorded: the program made no tape while it was profiled (ad_tape_create)."];
  return [`Nothing was recorded: the program made ${count(total.tapes)} tape${total.tapes === 1 ? "" : "s"}, and no op ran on ${total.tapes === 1 ? "it" : "them"} while it was profiled.`];
}
