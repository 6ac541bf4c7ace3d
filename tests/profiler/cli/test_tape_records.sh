#!/bin/sh
# test_tape_records.sh: `tapescope tape --records`: the events of a program whose ops, places and times are known; that
# they stream; and what a profile of a million records with a timeline takes.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# exp saves its value of 80 bytes; a record of it takes 40. With an argument the second step has one
# element less. Compilers do not know how many steps there are: unrolled, each would be a site.
cat >few.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_scope.h>
int main(int argc, char **argv)
{
    static double data[10];
    static volatile int steps = 2; ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (int step = 0; step < steps; step++) {
        AD_SCOPE("step", "i", step) {
            ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){argc > 1 ? 10 - step : 10}, data);
            AD_SCOPE("layer") {
                x = ad_exp(x);
                x = ad_exp(x);
            }
            (void)!ad_backward(ad_sum(x));
        }
        ad_tape_reset(tape);
    }
    ad_tape_destroy(tape);
    return argv == NULL;
}
END
build few
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record -o few.prof --timeline 1MiB -- ./few

# Every bracket that opens closes; ops, pullbacks and sweeps are where the source has them.
expect 0 "$tapescope" tape --records few.prof
cp out few.txt
[ "$(grep -c '{$' out)" -eq 6 ] || fail "not six brackets that open"
[ "$(grep -cE '(scope|sweep) .*\} ' out)" -eq 6 ] || fail "not six that close"
[ "$(grep -cE ' op +[0-9]+ +80B +1[0-9][0-9]B +few.c:1[23] exp main$' out)" -eq 4 ] || fail "four exp"
grep -qE ' op .* few.c:15 sum main$' out || fail "no sum"
sed -n '/ sweep {/,/} few/p' out | sed -n '2,4p' >sweep
[ "$(awk '{ print $3, $NF, $(NF - 1), $(NF - 2) }' sweep)" = "pullback main sum few.c:15
pullback main exp few.c:13
pullback main exp few.c:12" ] || { cp sweep out; fail "the order of the sweep"; }
# The pullbacks have the places of their ops, backwards.
[ "$(awk '$3 == "op" { print $4 }' few.txt | head -n 3 | tac)" = "$(awk '{ print $4 }' sweep)" ] ||
    fail "places of pullbacks"
grep -qE '^ *step i=0 \{$' few.txt || fail "the first step does not open"
grep -qE 'scope +\} step i=1$' few.txt || fail "the second step does not close"
expect 0 "$tapescope" tape --records --exact few.prof
grep -qE '^ +[0-9]+000000 +1000000 +op ' out || fail "no exact times"

# The shape of a line whose ops had one, and none of others.
expect 0 "$tapescope" record -o shapes.prof --timeline 1MiB --shapes on -- ./few
expect 0 env COLUMNS=200 "$tapescope" tape --records shapes.prof
[ "$(grep -cE ' (op|pullback) .* exp main f64\[10\]$' out)" -eq 8 ] || fail "eight exp of a shape"
expect 0 "$tapescope" tape --records --json shapes.prof
[ "$(grep -c '"shape": "f64\[10\]"' out)" -eq 8 ] || fail "eight shapes in JSON"
[ "$(grep -c '"shape": null' out)" -ge 6 ] || fail "scopes and sweeps have a shape"
expect 0 "$tapescope" record -o shapes.prof --timeline 1MiB --shapes on -- ./few less
expect 0 env COLUMNS=200 "$tapescope" tape --records shapes.prof
[ "$(grep -cE ' (op|pullback) .* exp main$' out)" -eq 8 ] || fail "a shape of lines that had several"

expect 0 "$tapescope" tape --records -n 3 few.prof
shown " more events; -n 0 shows everything."
expect 0 "$tapescope" tape --records --phase forward few.prof
grep -qE 'pullback|sweep' out && fail "--phase forward has pullbacks"
expect 0 "$tapescope" tape --records --phase backward few.prof
[ "$(grep -c ' pullback ' out)" -eq 6 ] || fail "--phase backward: not six pullbacks"
grep -q ' op ' out && fail "--phase backward has ops"
expect 0 "$tapescope" tape --records --from 100000 few.prof
[ "$(wc -l <out)" -eq 1 ] || fail "--from beyond the end"
expect 2 "$tapescope" tape --records --from 3 --to 2 few.prof
said "--from is after --to"
for columns in 40 60 80 200; do
    expect 0 env COLUMNS=$columns "$tapescope" tape --records few.prof
    awk -v w=$columns 'length($0) > w { exit 1 }' out || fail "wider than $columns"
done

# What was measured is the sum of what is dumped, and each part of the time is there.
if command -v python3 >/dev/null; then
    cat >dump.py <<'END'
import json, os, subprocess, sys
def report(*words):
    return json.loads(subprocess.run([os.environ["TAPESCOPE_PROGRAM"], *words], check=True,
                                     stdout=subprocess.PIPE).stdout)
d, info = report("tape", "--records", "--json", "-n", "0", "few.prof"), report("info", "--json", "few.prof")
assert d["tapescope"] == "records" and d["events_not_shown"] == 0 == d["events_left_out"]
events = d["events"]
assert len(events) == info["profile"]["events"] == 18, len(events)
ops = [e for e in events if e["kind"] == "op"]
back = [e for e in events if e["kind"] == "pullback"]
assert len(ops) == len(back) == info["total"]["records"] == 6
assert sum(e["ns"] for e in ops) == 6000000
sweeps = [e for e in events if e["kind"] == "sweep"]
assert sum(e["ns"] for e in sweeps) == info["total"]["backward_ns"]
for e in back: # of the newest op with that place
    before = [o for o in ops if o["start_ns"] < e["start_ns"] and o["place"] == e["place"]]
    assert (before[-1]["op"], before[-1]["line"]) == (e["op"], e["line"])
    assert any(s["start_ns"] <= e["start_ns"] and
               e["start_ns"] + e["ns"] <= s["start_ns"] + s["ns"] for s in sweeps)
assert [e["scope"] for e in ops] == ["layer", "layer", "step i=0", "layer", "layer", "step i=1"]
assert {e["saved_bytes_per_op"] for e in ops if e["op"] == "exp"} == {80}
some = report("tape", "--records", "--json", "--from", "10", "--to", "20", "few.prof")["events"]
assert some == [e for e in events if e["start_ns"] <= 20e6 and e["start_ns"] + e["ns"] >= 10e6]
both = report("tape", "--records", "--json", "-n", "0", "both.prof")["events"]
assert [e["process"] for e in both] == [1] * 18 + [2] * 18
assert {e["tape"] for e in both if e["tape"]} == {1, 2}
first = events[0]["start_ns"] - both[0]["start_ns"]
for e, f in zip(events, both):
    assert all(e[k] == f[k] for k in ("kind", "ns", "place", "op", "line", "function", "scope"))
    assert e["start_ns"] - f["start_ns"] == first
END
    expect 0 "$tapescope" merge -o both.prof few.prof few.prof
    expect 0 python3 dump.py
fi
expect 0 "$tapescope" merge -o both.prof few.prof few.prof
expect 0 "$tapescope" tape --records both.prof
[ "$(grep -cE '^process [12], thread [0-9]+:$' out)" -eq 2 ] || fail "not two processes"

# Without a timeline it is said how to make one; beyond its limit, what is left out.
expect 0 "$tapescope" record -o none.prof -- ./few
expect 2 "$tapescope" tape --records none.prof
said "tapescope record --timeline 64MiB -- ./program"
expect 3 "$tapescope" tape --records missing.prof

# A million records, each swept once.
cat >many.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    double one = 1;
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (int i = 0; i < RECORDS / 1000; i++) {
        ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, &one);
        for (int j = 0; j < 1000; j++)
            x = ad_neg(x);
        if (ad_backward(x) != AD_OK || ad_tape_reset(tape) != AD_OK)
            return 1;
    }
    ad_tape_destroy(tape);
    return 0;
}
END
records=1000000
[ -z "${TEST_SANITIZE_FLAGS:-}" ] || records=100000
CFLAGS_RECORDS=-DRECORDS=$records
TEST_SANITIZE_FLAGS="${TEST_SANITIZE_FLAGS:-} $CFLAGS_RECORDS" build many
expect 0 "$tapescope" record -o many.prof --timeline 64MiB -- ./many
bytes=$(stat -c %s many.prof)
[ "$bytes" -lt $((64 * records)) ] || fail "$bytes bytes for $records records"
expect 0 "$tapescope" info --exact many.prof
grep -q 'left out' out && fail "events are left out"
# 512 MiB of address space are enough for any number of events; a sanitizer takes more for itself.
if [ -z "${TEST_SANITIZE_FLAGS:-}" ]; then
    # shellcheck disable=SC3045 # dash has it, as do all shells of Debian
    (ulimit -v 524288 && "$tapescope" tape --records -n 0 many.prof) >out 2>err || fail "records in 512 MiB"
    [ "$(grep -c ' op ' out)" -eq $records ] || fail "not $records ops"
    [ "$(grep -c ' pullback ' out)" -eq $records ] || fail "not $records pullbacks"
    : >out
    # shellcheck disable=SC3045 # dash has it, as do all shells of Debian
    (ulimit -v 524288 && "$tapescope" merge -o twice.prof many.prof many.prof) 2>err ||
        fail "merge in 512 MiB"
    # shellcheck disable=SC3045 # dash has it, as do all shells of Debian
    (ulimit -v 524288 && "$tapescope" html -o many.html many.prof) 2>err || fail "html in 512 MiB"
    [ "$(stat -c %s many.html)" -lt 10000000 ] || fail "a page of $(stat -c %s many.html) bytes"
fi
expect 0 "$tapescope" record -o cut.prof --timeline 64KiB -- ./many
expect 0 "$tapescope" tape --records -n 1 cut.prof
shown " more were beyond the recording's limit in bytes."

if [ $failures -gt 0 ]; then
    echo "test_tape_records: $failures failures"
    exit 1
fi
echo "test_tape_records: ok"
