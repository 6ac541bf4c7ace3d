// page.test.js: the page's logic without a browser: node --test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Model } from "../src/data.js";
import { Calls } from "../src/hierarchy.js";
import { Events, slicesWithin } from "../src/events.js";
import { bytes, bytesOf, byteSeconds, count, ratio, share, time, times } from "../src/format.js";
import { compile, matchFrames, matchedValue } from "../src/search.js";
import { firstOf, greatest } from "../src/select.js";
import { tokens } from "../src/c_tokens.js";
import { Replay } from "../src/replay.js";
import { nothingIn } from "../src/nothing.js";
import { blocks, inline } from "../src/prose.js";

// main calls f twice, from lines 3 and 4; f calls itself once and records on line 9.
const strings = ["", "/src/a.c", "main", "f", "tanh", "exp"];
function document(more = {}) {
  const tree = { has_paths: true, too_large: false, n_folded: 0, cut: [], parent: [-1, 0, 1, 2, 0, 4], frame: [0, 1, 2, 2, 3, 2], file: [0, 1, 1, 1, 1, 1], line: [0, 3, 9, 9, 4, 9],
    function: [0, 2, 3, 3, 2, 3], ops: [0, 0, 4, 4, 0, 4], calls: [0, 0, 1, 2, 0, 4], forward_ns: [0, 0, 10, 20, 0, 40], backward_ns: [0, 0, 1, 2, 0, 4], value_bytes: [0, 0, 8, 8, 0, 8] };
  return {
    costs: ["calls", "forward_ns", "backward_ns", "recompute_ns", "other_ns", "record_bytes", "value_bytes", "adjoint_bytes", "peak_bytes"].map((name) => ({ name, unit: "n", label: "" })),
    phases: [{ name: "forward", class: "fwd" }, { name: "backward", class: "bwd" }, { name: "recompute", class: "rec" }],
    strings, files: [{ file: 1, text: ["int main(void)"] }], profile: { steps: null }, total: { records: 7, tapes: 1 }, sampled: false, roof: { flops_per_ns: 0, bytes_per_ns: 0 },
    lines: { expected_ratio: [1], slow_backward: [], file: [1], line: [9], function: [3], ops: [4], kept_by: [5], calls: [7], forward_ns: [70], backward_ns: [7], value_bytes: [24] },
    tree, space: null, whatif: null, diff: null, growth: null, timeline: null, patterns: { found: { rows: [] }, pictures: [] }, ...more,
  };
}

test("numbers have units", () => {
  assert.equal(time(0), "0");
  assert.equal(time(null), "–");
  assert.equal(time(1500), "1.50\u202fµs");
  assert.equal(time(999.999e6), "1.00\u202fs");
  assert.equal(bytes(1024 * 1024 - 1), "1.00\u202fMiB");
  assert.equal(byteSeconds(2048e9), "2.00\u202fKiB·s");
  assert.equal(count(99999), "99\u202f999");
  assert.equal(count(100000), "100k");
  assert.equal(share(1, 0), "–");
  assert.equal(ratio(3, 2), "1.50");
  assert.equal(bytesOf(" 1.5 MiB "), 1.5 * 1024 ** 2);
  assert.ok(Number.isNaN(bytesOf("much")));
});

test("times along an axis are told apart", () => {
  assert.deepEqual(times([0, 1e9, 2e9]), ["0", "1\u202fs", "2\u202fs"]);
  assert.deepEqual(times([12345600000, 12345610000, 12345620000]), ["12.34560\u202fs", "12.34561\u202fs", "12.34562\u202fs"]);
  assert.deepEqual(times([100001, 100002]), ["100.001\u202fµs", "100.002\u202fµs"]);
  assert.deepEqual(times([5]), ["5\u202fns"]);
});

test("costs of callees are their callers', and rectangles are as wide", () => {
  const calls = new Calls(new Model(document()));
  const { value, x0, x1, rows } = calls.hierarchy("calls", "forward");
  assert.deepEqual([...value], [70, 30, 30, 20, 40, 40]);
  assert.deepEqual(rows.map((row) => [...row]), [[0], [4, 1], [5, 2], [3]]); // the dearest first
  assert.equal(x1[4] - x0[4], 40 / 70);
  assert.deepEqual([...calls.hierarchy("inverted", "forward").value].slice(0, 2), [70, 70]);
});

test("what a line calls is counted through it once, and not what is its own", () => {
  const calls = new Calls(new Model(document()));
  const through = calls.through("forward");
  const of = (key) => through[calls.frameOf(key)];
  assert.equal(of("a.c:3"), 30);
  assert.equal(of("a.c:4"), 40);
  assert.equal(of("a.c:9"), 0);
});

test("a search finds frames, and what they cost counts once", () => {
  const calls = new Calls(new Model(document()));
  const search = matchFrames(calls, compile("^f .*tanh").expression);
  let step = search.next();
  while (!step.done) step = search.next();
  const { value, nodes } = matchedValue(calls.hierarchy("calls", "forward"), step.value);
  assert.equal(value, 70);
  assert.deepEqual(nodes, [2, 3, 5]);
  assert.equal(compile("(").expression, null);
  assert.ok(compile("(").error);
});

test("a search of many frames rests between some of them", () => {
  const calls = { nFrames: 5000, label: (i) => `f${i}` };
  const search = matchFrames(/** @type {any} */ (calls), /7$/);
  let rests = 0;
  let step = search.next();
  for (; !step.done; step = search.next()) rests++;
  assert.ok(rests >= 5);
  assert.equal(step.value.reduce((a, b) => a + b), 500);
});

test("the first of many numbers", () => {
  const values = Float64Array.from({ length: 1000 }, (_, i) => (i * 7919) % 1000);
  assert.deepEqual(firstOf(values, 3, true).map((i) => values[i]), [999, 998, 997]);
  assert.deepEqual(firstOf(values, 2, false).map((i) => values[i]), [0, 1]);
  assert.equal(values[greatest(values, [3, 1, 2])], Math.max(values[1], values[2], values[3]));
});

test("words of C", () => {
  assert.deepEqual(tokens("int x = 1; /* a", false).pieces.map(([kind]) => kind).filter(Boolean), ["word", "number", "comment"]);
  assert.equal(tokens("int x; /* a", false).inside, true);
  assert.equal(tokens("b */ ad_sum(x)", true).pieces.find(([kind]) => kind === "ad")?.[1], "ad_sum");
});

test("places have the ops that need what they made", () => {
  const { places } = new Model(document());
  assert.deepEqual([...places.get("a.c:9").kept], ["exp"]);
  assert.equal(places.get("a.c:9").cost.total, 77);
});

test("who holds what at the moment of a range with the most", () => {
  const moments = { ns: [10, 20, 30], total: [8, 24, 16], moment: [0, 1, 1, 2], holder: [0, 0, 1, 1], delta: [8, 8, 8, -8] };
  const holders = { kinds: [1, 2], more: [0, 0], byte_ns: [0, 0], file: [1, 1], line: [9, 9], ops: [4, 5] };
  const model = new Model(document({ space: { holders, moments, live: { ns: [0] } } }));
  assert.deepEqual(model.heldWithin([0, 100]), { ns: 20, total: 24, held: Float64Array.of(16, 8) });
  assert.deepEqual(model.heldWithin([0, 15])?.held, Float64Array.of(8, 0));
  assert.deepEqual(model.heldWithin([25, 35])?.held, Float64Array.of(16, 0));
  assert.equal(model.heldWithin([31, 35]), null);
  assert.deepEqual(model.heldStretch(), [10, 30]);
});

test("ranges are sums of whole bins; ops are found by their time", () => {
  const timeline = { series: { thread: [0, 0], node: [2, 3], kind: [0, 1], cells: [2, 1] }, cells: { bin: [0, 2, 1], ns: [10, 5, 7], count: [1, 1, 1] },
    kinds: [{ phase: "forward", calls: true, swept: false }, { phase: "backward", calls: false, swept: true }], bins: 4, bin_ns: 100, threads: { number: [1], process: [0] },
    forward_overhead_ns: 0, backward_overhead_ns: 0, events_left_out: 3, events_end_ns: 250, slices: { thread: [0, 0, 0], start_ns: [0, 50, 100], ns: [200, 10, 20], node: [2, 2, 3], kind: [0, 0, 1] } };
  const events = new Events(document({ timeline }));
  assert.deepEqual(events.snap(120, 130), [100, 200]);
  const sums = events.sums([0, 200]);
  assert.deepEqual([sums.forward[2], sums.backward[3], sums.calls[2]], [10, 7, 1]);
  assert.equal(events.before(events.lane(0).forward, 400), 15);
  assert.equal(events.cut, 250);
  const [lane] = events.slices;
  assert.deepEqual([lane.from, lane.to], [[0, 50, 150], [200, 60, 170]]);
  assert.deepEqual(slicesWithin(lane, 160, 165), [0, 3]); // the first still runs
  assert.deepEqual(slicesWithin(lane, 201, 300), [3, 3]);
});

test("a choice of lines that are computed again has the peak that it leaves", () => {
  const replay = new Replay({ peak_bytes: 30, tries_all: true, options: { cost_ns: [5, 1], saved_bytes: [10, 20] },
    replay: { option: [0, 1], again: [10, 0], rest: [0, 0, 0], changes: [1, 1, 2], backward: [0, 0, 1], class: [0, 1, 0, 1], delta: [10, 20, -10, -20] } });
  assert.equal(replay.peakOf([]), 30);
  assert.equal(replay.peakOf([1]), 10);
  assert.equal(replay.costOf([0, 1]), 6);
  const run = (work) => { for (;;) { const { value, done } = work.next(); if (done) return value; } };
  assert.deepEqual(run(replay.fit(10)), { chosen: [1], peak: 10, optimal: true });
});

test("what is not there says why", () => {
  const model = new Model(document());
  assert.equal(nothingIn(model, "summary"), "");
  assert.equal(nothingIn(model, "source"), "");
  const replayed = (calls) => new Model(document({ whatif: { options: { new_peak_bytes: [] }, calls } }));
  assert.equal(nothingIn(replayed({ what: [1] }), "whatif"), ""); // a table of calls is something
  assert.match(nothingIn(replayed({ what: [] }), "whatif"), /^No line saves .*\.$/);
  for (const view of ["timeline", "residuals", "whatif", "roofline", "diff", "growth", "patterns"]) assert.match(nothingIn(model, view), /^[A-Z].*\.$/);
});

test("a section of the docs is shown in blocks, and leads nowhere", () => {
  const text = "## A *peak*\n\nIt is `high`\n([see](x.md#y)).\n\n- one\n  more\n- two\n\n```c\n# code\n\nmore\n```\n![a picture](p.png)\n| a | b |\n|---|---|\n| `c` | d |\nend";
  assert.deepEqual(blocks(text).map(({ kind, text: t }) => [kind, t]), [["head", "A *peak*"], ["text", "It is `high` ([see](x.md#y))."], ["item", "one more"], ["item", "two"],
    ["code", "# code\n\nmore"], ["item", "`c`: d"], ["text", "end"]]);
  assert.deepEqual(inline("It is `high` ([see](x.md#y)), **very**."), ["It is ", { code: "high" }, " (see), ", { strong: "very" }, "."]);
});

test("of samples alone no calls and bytes are shown, and callers are", () => {
  const columns = { ...document().lines, calls: undefined, value_bytes: undefined };
  const none = { ...document().tree, has_paths: false };
  const model = new Model(document({ sampled: true, lines: columns, tree: none, total: { samples: 12, tapes: null } }));
  assert.equal(model.counted, false);
  assert.equal(model.hasPaths, true);
  assert.equal(new Model(document({ sampled: true })).counted, true);
  assert.equal(new Model(document({ tree: none })).hasPaths, false);
});

test("blue and orange are forward and backward alone, in each theme", () => {
  const css = readFileSync(new URL("../src/base.css", import.meta.url), "utf8");
  const hue = (hex) => {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
    const most = Math.max(r, g, b), range = most - Math.min(r, g, b);
    const sixth = most === r ? ((g - b) / range + 6) % 6 : most === g ? (b - r) / range + 2 : (r - g) / range + 4;
    return 60 * sixth;
  };
  const all = (name) => [...css.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, "g"))].map((found) => hue(found[1]));
  for (const phase of ["fwd-1", "bwd-1"])
    for (const name of ["rec-1", "mem-1", "adjoint", "more", "less"]) {
      const [phases, others] = [all(phase), all(name)];
      assert.deepEqual([phases.length, others.length], [3, 3]); // light, dark by choice, dark by the system
      for (const [i, other] of others.entries()) {
        const apart = Math.abs(other - phases[i]);
        assert.ok(Math.min(apart, 360 - apart) > 20, `--${name} is as --${phase}: ${other}, ${phases[i]}`);
      }
    }
});
