#!/bin/sh
# test_scalar_lines.sh: what the commands say of statements: no caller that nobody saw, "-" where no
# time was measured, "~" where it is an estimate.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# One run of statements, whose first is in axpy; rhs is called by step, and never by axpy.
cat >step.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>
__attribute__((noinline)) static ad_real axpy(ad_real a, ad_real x, ad_real y)
{
    ad_real r;
    ad_set(&r, ad_real_add(ad_real_mul(a, x), y));
    return r;
}
__attribute__((noinline)) static ad_real rhs(ad_real y)
{
    ad_real r;
    ad_set(&r, ad_real_sin(y));
    return r;
}
/* Of records of other kinds in the same run, too, nobody saw who called. */
__attribute__((noinline)) static ad_real norm(ad_real y)
{
    const ad_real both[2] = {y, ad_real_of(0)}; /* so few values alone would be a statement */
    return ad_real_dot(2, both, both);
}
static void half(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    (void)data, (void)m, (void)n;
    dx[0] += 0.5 * dy[0];
}
__attribute__((noinline)) static ad_real halve(ad_real x)
{
    const double value = 0.5 * x.value;
    ad_real y;
    ad_real_custom(1, &x, 1, &value, &y, "halve", half, NULL, 0);
    return y;
}
__attribute__((noinline)) static ad_real step(ad_real h, ad_real y)
{
    ad_real k = axpy(h, y, y), q = halve(norm(rhs(k)));
    ad_set(&q, ad_real_mul(q, 2.0));
    return axpy(h, q, y);
}
int main(void)
{
    ad_tape tape;
    ad_real x[2], y;
    if (ad_tape_create(&tape, NULL) != AD_OK ||
        ad_real_leaves(tape, 2, (double[]){0.01, 1}, x) != AD_OK)
        return 1;
    y = x[1];
    for (int i = 0; i < 8; i++) /* as much as one block holds */
        y = step(x[0], y);
    return ad_real_backward(tape, y) != AD_OK || ad_tape_destroy(tape) != AD_OK;
}
END
build step
expect 0 env TAPESCOPE_CLOCK=step:1000000 "$tapescope" record -o step.prof ./step
expect 0 "$tapescope" tree --json --by function step.prof

# path FUNCTION: the functions that lead to its statements, from the outermost.
path()
{
    jq -r --arg f "$1" '(.nodes | map({(.id | tostring): .}) | add) as $all |
        def names: .function, (if .parent then ($all[.parent | tostring] | names) else empty end);
        [.nodes[] | select(.function == $f and .self.calls > 0) | [names]] |
        if length == 1 then .[0] | map(select(. != null)) | reverse | join(" ") else "several" end' \
        out
}
[ "$(path axpy)" = "main step axpy" ] || fail "axpy: $(path axpy)"
[ "$(path step)" = "main step" ] || fail "step: $(path step)"
[ "$(path rhs)" = "main (run) rhs" ] || fail "rhs: $(path rhs)"
[ "$(path norm)" = "main (run) norm" ] || fail "norm: $(path norm)"
[ "$(path halve)" = "main (run) halve" ] || fail "halve: $(path halve)"
expect 0 "$tapescope" tree --inverted step.prof
shown "(run)"

# By a clock that only its readings move nobody looks: forward times are not known. Backward times
# are the run's, divided.
expect 0 "$tapescope" top --json -n 0 step.prof
[ "$(jq -c '[.rows[] | select(.ops == ["statement"]) | .forward_ns] | unique' out)" = "[null]" ] ||
    fail "a forward time"
[ "$(jq -c '[.rows[] | select(.ops == ["statement"]) |
    .backward_ns > 0 and .backward_ns == .estimated_backward_ns and .backward_error_ns > 0 and
        .forward_error_ns == null and .ratio == null] | unique' out)" = "[true]" ] ||
    fail "backward times are not estimates"
[ "$(jq '[.rows[].backward_ns] | add' out)" = "$(jq .total.backward_ns out)" ] || fail "a sum"
expect 0 "$tapescope" top -n 0 step.prof
grep -qE ' - +~[0-9.]+[num]?s +- .* step.c:6 statement' out || fail "no estimate beside a dash"
expect 0 "$tapescope" annotate step.c step.prof
grep -qE ' - .*~[0-9.]+[num]?s .*ad_real_sin' out || fail "none beside the source"
grep -qE ' ~[0-9.]+[num]?s .* total$' out || fail "a sum of estimates as if it were exact"
expect 0 "$tapescope" tree step.prof
grep -qE '^ *[0-9.]+% +~[0-9.]+[num]?s +~[0-9.]+[num]?s .* step.c:6 statement' out ||
    fail "no estimate in the tree"
expect 0 "$tapescope" tree --metric forward step.prof
grep -qE '^ *[0-9.]+% +- +- .* step.c:6 statement' out || fail "no dash in the tree"
expect 0 "$tapescope" export -f csv step.prof
grep -qE '"rhs".*"statement",[0-9]+,,([0-9]+),.*,0,,\1,,[0-9]+.?$' out ||
    fail "a forward time in the table, or no estimate: $(grep '"rhs"' out)"
grep -qE '"halve".*"halve",[0-9]+,[0-9]+,[0-9]+,.*,0,0,,.?$' out ||
    fail "an estimate of what is exact: $(grep '"halve"' out)"

# What part of the run all of that was, in figures.
expect 0 "$tapescope" info --json step.prof
jq -e '.total | .ad_is == "at_least" and .profiler_ns == 0 and .run_ns > .ad_ns and
    .ad_ns == .forward_ns + .backward_ns + .recompute_ns' out >parts || fail "parts: $(cat parts)"

# A statement keeps 26 bits of its address. Two functions have code more than 2^26 bytes apart, and a
# third lies in another object; all of their addresses are found.
cat >near.c <<'END'
#include <tapescope/ad_real.h>
ad_real near(ad_real y), far(ad_real y), beside(ad_real y);
__attribute__((noinline)) ad_real near(ad_real y)
{
    ad_set(&y, ad_real_sin(y));
    return y;
}
int main(void)
{
    ad_tape tape;
    ad_real x;
    if (ad_tape_create(&tape, NULL) != AD_OK ||
        ad_real_leaves(tape, 1, (double[]){0.01}, &x) != AD_OK)
        return 1;
    const ad_real y = beside(far(near(x)));
    return ad_real_backward(tape, y) != AD_OK || ad_tape_destroy(tape) != AD_OK;
}
END
cat >between.c <<'END'
__asm__(".text\n.skip 70000000\n");
END
cat >far.c <<'END'
#include <tapescope/ad_real.h>
ad_real far(ad_real y);
ad_real far(ad_real y)
{
    ad_set(&y, ad_real_exp(y));
    return y;
}
END
cat >beside.c <<'END'
#include <tapescope/ad_real.h>
ad_real beside(ad_real y);
ad_real beside(ad_real y)
{
    ad_set(&y, ad_real_tanh(y));
    return y;
}
END
export CPATH="$TAPESCOPE_INCLUDE_DIRS"
# shellcheck disable=SC2086
"$TEST_C_COMPILER" -g -O2 ${TEST_SANITIZE_FLAGS:-} -shared -fPIC -o libbeside.so beside.c || exit 1
# shellcheck disable=SC2086
"$TEST_C_COMPILER" -g -O2 ${TEST_SANITIZE_FLAGS:-} -o near near.c between.c far.c \
    -L. -lbeside -Wl,-rpath,"$PWD" -L"$TAPESCOPE_LIB_DIR" -ltapescope \
    -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -lm || exit 1
expect 0 "$tapescope" record -o near.prof ./near
expect 0 "$tapescope" top --json -n 0 near.prof
[ "$(jq -r '[.rows[] | select(.ops == ["statement"]) | .function] | sort | join(" ")' out)" = \
    "beside far near" ] || fail "functions: $(cat out)"
rm near # large

if [ $failures -gt 0 ]; then
    echo "test_scalar_lines: $failures failures"
    exit 1
fi
echo "test_scalar_lines: ok"
