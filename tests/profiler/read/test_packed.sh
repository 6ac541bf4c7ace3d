#!/bin/sh
# test_packed.sh: a packed profile says the same when its program is gone, or another is in its place:
# every report, of a profile with exact times and call paths and of one with samples.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# Inlined functions, a scope, an expectation; with a second argument also code that is no op, for a
# while.
cat >fit.c <<'END'
#include <stdlib.h>
#include <time.h>
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_scope.h>
static inline __attribute__((always_inline)) ad_tensor twice(ad_tensor x)
{
    return ad_tanh(ad_exp(x));
}
static inline __attribute__((always_inline)) ad_tensor four_times(ad_tensor x)
{
    return twice(twice(x));
}
static __attribute__((noinline)) ad_tensor layer(ad_tensor x)
{
    AD_EXPECT_TAPE_BYTES(1 << 20);
    return four_times(x);
}
static volatile double sink;
static __attribute__((noinline)) void spin(void)
{
    for (int i = 0; i < 100000; i++)
        sink += i;
}
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* of which samples are taken */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
int main(int argc, char **argv)
{
    static double data[1000];
    const double end = seconds() + (argc > 1 ? atof(argv[1]) : 0);
    ad_status status = AD_OK;
    do {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        AD_SCOPE("step") {
            ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){1000}, data);
            status = ad_backward(ad_sum(layer(x)));
        }
        ad_tape_destroy(tape);
        if (argc > 1)
            spin();
    } while (status == AD_OK && seconds() < end);
    return status != AD_OK;
}
END
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
# shellcheck disable=SC2086 # the flags are several words or none
"$TEST_C_COMPILER" -g -O2 -fno-omit-frame-pointer ${TEST_SANITIZE_FLAGS:-} -o fit fit.c \
    -L"$TAPESCOPE_LIB_DIR" -ltapescope -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || exit 1

exact="top|top --json -n 0|top --cum|top --by scope|tree|tree --by function|tree --inverted|tree --frames all
tree --json|tape --json|tape --lifetime|whatif|annotate fit.c|annotate --json fit.c:twice|info
check --expectations"
sampled="top|top --json -n 0|tree|top --by function|annotate fit.c|info"

# The reports of packed.prof into the folder $1, a file for each line.
write_reports()
{
    mkdir -p "$1"
    echo "$2" | tr '|' '\n' >list
    n=0
    while read -r report; do
        n=$((n + 1))
        # shellcheck disable=SC2086 # the report is several words
        "$tapescope" $report packed.prof >"$1/$n" 2>"$1/$n.err" </dev/null ||
            { cp "$1/$n" out; cp "$1/$n.err" err; fail "$report of a packed profile"; }
    done <list
}

# compare WHERE: the reports in the folder of that name are those from before.
compare()
{
    n=0
    while read -r report; do
        n=$((n + 1))
        { cmp -s "before/$n" "$1/$n" && cmp -s "before/$n.err" "$1/$n.err"; } ||
            { diff "before/$n" "$1/$n" >out; cp "$1/$n.err" err; fail "$report: $1"; }
    done <list
}

check_kind()
{
    rm -rf before gone changed
    expect 0 "$tapescope" merge -o packed.prof plain.prof
    write_reports before "$1"
    mv fit elsewhere
    write_reports gone "$1"
    compare gone
    echo "no program" >fit
    write_reports changed "$1"
    compare changed
    expect 0 "$tapescope" merge -o packed.prof packed.prof
    write_reports again "$1"
    compare again
    rm fit
    expect 0 "$tapescope" merge -o sum.prof packed.prof
    mv sum.prof packed.prof
    mv elsewhere fit
}

expect 0 env TAPESCOPE_CLOCK=step:1000 "$tapescope" record -o plain.prof -- ./fit
check_kind "$exact"
expect 0 "$tapescope" tree packed.prof
cp out sum
expect 0 "$tapescope" tree plain.prof
cmp -s out sum || { diff out sum >err; fail "the tree of a sum of one that is packed"; }
grep -q 'four_times fit.c' out || fail "no inlined function"
expect 0 "$tapescope" record --time=sampled --freq 1000 -o plain.prof -- ./fit 0.5
expect 0 env COLUMNS=200 "$tapescope" top -n 0 plain.prof
grep -q 'spin' out || fail "no samples of the program's own code"
check_kind "$sampled"

if [ $failures -gt 0 ]; then
    echo "test_packed: $failures failures"
    exit 1
fi
echo "test_packed: ok"
