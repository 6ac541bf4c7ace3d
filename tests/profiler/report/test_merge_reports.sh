#!/bin/sh
# test_merge_reports.sh: the reports of a sum are the sums of the reports of its parts: totals, lines,
# call paths, scopes, what holds the tape, steps and events; of a program whose runs differ by their
# argument, on a clock that counts its readings.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

cat >steps.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
#include <tapescope/ad_profile.h>
#include <tapescope/ad_scope.h>
static void layer(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)tape, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_tanh(ad_exp(in[0]));
}
static ad_tensor down(ad_tensor x, int levels)
{
    if (levels == 0)
        return ad_sin(x);
    AD_SCOPE("level", "of", levels) {
        x = down(ad_square(x), levels - 1);
    }
    return x;
}
int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atol(argv[1]) : 10;
    double *data = calloc((size_t)n, sizeof *data);
    for (int step = 0; step < (int)(n / 10); step++) {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        AD_SCOPE("step") {
            AD_EXPECT_RATIO(1000);
            ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data), y = x;
            AD_SCOPE("levels") {
                y = down(x, step % 3);
            }
            ad_checkpoint(tape, layer, NULL, 1, &y, 1, &y);
            if (ad_backward(ad_sum(n > 10 ? ad_cos(y) : y)) != AD_OK)
                return 1;
        }
        ad_tape_destroy(tape);
        ad_profile_step();
    }
    free(data);
    return 0;
}
END
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
# shellcheck disable=SC2086 # the flags are several words or none
"$TEST_C_COMPILER" -g -O2 ${TEST_SANITIZE_FLAGS:-} -o steps steps.c \
    -L"$TAPESCOPE_LIB_DIR" -ltapescope -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || exit 1
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK

# Of two processes, three runs of one, and of a sum.
expect 0 "$tapescope" record --steps 1: --timeline 1MiB -o a.prof -- ./steps 40
expect 0 "$tapescope" record --steps 1: --timeline 1MiB -o b.prof -- ./steps 70
expect 0 "$tapescope" record --steps 1: -o c.prof -- ./steps 10 # none of that number
expect 0 "$tapescope" merge -o ab.prof a.prof b.prof
expect 0 "$tapescope" merge -o aaa.prof a.prof a.prof a.prof
expect 0 "$tapescope" merge -o abc.prof c.prof ab.prof
expect 0 "$tapescope" merge -o one.prof b.prof

# A sum of one says what its part says, in text and to the byte.
for report in "top --exact -n 0" "tree --exact" "top --by scope --exact" "tape --exact -n 0" \
    "tape --lifetime --exact -n 0" "tape --dead --exact" "whatif --exact" "annotate steps.c"; do
    # shellcheck disable=SC2086 # the report is several words
    expect 0 "$tapescope" $report b.prof
    sed 's/b\.prof/one.prof/g' out >part
    # shellcheck disable=SC2086
    expect 0 "$tapescope" $report one.prof
    cmp -s part out || { diff part out >err; fail "of one: $report"; }
done

cat >sums.py <<'END'
import json, os, subprocess, sys
def report(profile, *words):
    made = subprocess.run([os.environ["TAPESCOPE_PROGRAM"], *words, "--json", profile],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(made.stdout)
def place(row, *more):
    named = tuple(str(row.get(key)) for key in ("file", "line", "function") + more)
    return named + (str(sorted(row.get("ops") or [])),)
def line(row): # its ops in a part may be fewer than in the sum
    return place({**row, "ops": row["ops"] if row["own"] else []})
PEAKS = {"peak_bytes", "held_bytes", "largest_bytes", "touched_bytes", "reserved_bytes",
         "memory_peak_bytes"}
def counters(row):
    return {k: v for k, v in row.items() if isinstance(v, (int, float)) and k not in PEAKS
            and not isinstance(v, bool) and k not in ("line", "id", "parent", "depth", "offset",
                                                      "ratio", "expected_ratio", "function_line")}
def by(rows, key, value):
    found = {}
    for row in rows:
        to = found.setdefault(key(row), {})
        for name, n in counters(value(row)).items():
            to[name] = to.get(name, 0) + n
    return {k: v for k, v in found.items() if any(v.values())}
def add(parts):
    total = {}
    for part in parts:
        for key, row in part.items():
            to = total.setdefault(key, {})
            for name, n in row.items():
                to[name] = to.get(name, 0) + n
    return total
def same(what, got, want):
    for rows in (got, want):
        for row in rows.values():
            if "byte_seconds" in row: # the one that is no whole number
                row["byte_seconds"] = round(row["byte_seconds"], 9)
    if got != want:
        for key in sorted(set(got) | set(want), key=str):
            if got.get(key) != want.get(key):
                print("differs:", what, key, got.get(key), want.get(key))
        sys.exit(1)
def path_of(nodes):
    known = {}
    for node in nodes:
        known[node["id"]] = known.get(node["parent"], ()) + (line(node),)
    return lambda node: known[node["id"]]
def held(row):
    other = row["consumer"] and place(row["consumer"])
    return place(row["producer"]), other, str(row["kinds"])
def all_of(profile):
    top = report(profile, "top", "-n", "0")
    tree = report(profile, "tree", "--frames", "all")["nodes"]
    scopes = report(profile, "top", "--by", "scope", "-n", "0")
    tape = report(profile, "tape", "--lifetime", "-n", "0")
    lived = sum(row["byte_seconds"] for row in tape["rows"])
    assert round(lived - report(profile, "info")["sum"]["byte_seconds"], 9) == 0, lived
    return {
        "total": by([top["total"]], lambda r: 0, lambda r: r),
        "info": by([report(profile, "info")["sum"]], lambda r: 0, lambda r: r),
        "lines": by(top["rows"], line, lambda r: r),
        "tree": by(tree, path_of(tree), lambda r: r["self"]),
        "tree with all": by(tree, path_of(tree), lambda r: r["all"]),
        "scopes": by(scopes["rows"], lambda r: r["scope"], lambda r: r),
        "no scope": by([scopes["no_scope"]], lambda r: 0, lambda r: r),
        "tape": by(tape["rows"], held, lambda r: r),
        "released": by(tape["rows"], held, lambda r: r["released_bytes"]),
    }
whole, parts = sys.argv[1], sys.argv[2:]
got, every = all_of(whole), [all_of(part) for part in parts]
for what in got:
    assert got[what], what
    same(what, got[what], add([one[what] for one in every]))
# Peaks are those of the one tape with the greatest.
tops = [report(part, "tape", "-n", "0") for part in parts]
best = max(tops, key=lambda t: t["total_bytes"])
tape = report(whole, "tape", "-n", "0")
for key in ("total_bytes", "held_bytes", "backward"):
    assert tape[key] == best[key], key
peak = lambda t: {held(r): {"held": r["held_bytes"]} for r in t["rows"] if r["held_bytes"]}
same("peak", peak(tape), peak(best))
what_if = [report(part, "whatif") for part in parts if report(part, "info")["total"]["tapes"]]
assert report(whole, "whatif")["peak_bytes"] == max(w["peak_bytes"] for w in what_if)
END
if command -v python3 >/dev/null; then
    expect 0 python3 sums.py ab.prof a.prof b.prof
    expect 0 python3 sums.py aaa.prof a.prof a.prof a.prof
    expect 0 python3 sums.py abc.prof a.prof b.prof c.prof
fi

if [ $failures -gt 0 ]; then
    echo "test_merge_reports: $failures failures"
    exit 1
fi
echo "test_merge_reports: ok"
