#!/bin/sh
# test_cli_sampled.sh: `record` until a line has enough samples, and `attach`.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

OPENBLAS_NUM_THREADS=1
export OPENBLAS_NUM_THREADS

# Runs for so many hundredths of a second of processor time, or for the second argument's status.
cat >busy.c <<'END'
#include <stdlib.h>
#include <time.h>
#include <tapescope/ad.h>
static double data[96 * 96];
static void step(ad_tape tape)
{
    ad_tape_reset(tape);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, (int64_t[]){96, 96}, data);
    ad_backward(ad_sum(
        ad_matmul(x, x)));
}
static void never(void)
{
    exit(9);
}
int main(int argc, char **argv)
{
    const clock_t end = clock() + atol(argv[1]) * CLOCKS_PER_SEC / 100;
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    do
        step(tape);
    while (clock() < end);
    ad_tape_destroy(tape);
    if (argc > 3)
        never();
    return argc > 2 ? atoi(argv[2]) : 0;
}
END
build busy

# last TEXT: the last line of standard error holds TEXT.
last()
{
    tail -n 1 err | grep -qF -- "$1" || fail "no '$1' in the last line on standard error"
}

# number NAME: what `info --exact` says of it.
number()
{
    sed -n "s/^ *$1 *\([0-9][0-9]*\)\$/\1/p" out
}

# Some 10 samples a run, and 205 are wanted: an error of 7 % of the share.
expect 0 "$tapescope" record --freq 100 --until-error busy.c:10=7% --max-runs 90 -o sum.prof ./busy 10
last "busy.c:10: standard error "
runs=$(grep -c 'busy.c:10: standard error' err)
[ "$runs" -gt 1 ] || fail "one run is enough"
grep -qE ' runs?, some [0-9]+ more needed\)$' err || fail "nothing is said between the runs"
! tail -n 1 err | grep -q 'more needed' || fail "it ended before"
[ ! -e sum.prof.run ] || fail "a run's profile was left"
expect 0 "$tapescope" info --exact sum.prof
[ "$(number 'runs, added up')" = "$runs" ] || fail "info says another number of runs"
expect 0 "$tapescope" top --exact sum.prof
samples=$(awk '$NF == "matmul" || /busy.c:10/ { print; exit }' out | wc -l)
[ "$samples" -eq 1 ] || fail "top does not show the line"
# A function is a place as well; several goals are all to be met.
expect 0 "$tapescope" record --freq 1000 --until-error step=50% --until-error busy.c:10=50% ./busy 30
grep -qE '^tapescope: step: standard error .* 1 run\)$' err || fail "step is not enough in one run"

# The formulas of scalar statements, which are inlined in the program, are its forward time: in the
# mean of runs as in the profile of one.
cat >formulas.c <<'END'
#include <stdlib.h>
#include <time.h>
#include <tapescope/ad_real.h>
int main(int argc, char **argv)
{
    const clock_t end = clock() + atol(argv[argc - 1]) * CLOCKS_PER_SEC / 100;
    ad_tape tape;
    ad_real x[2];
    ad_tape_create(&tape, NULL);
    do {
        ad_tape_reset(tape);
        ad_real_leaves(tape, 2, (double[]){0.5, 0.25}, x);
        for (int i = 0; i < 1000; i++)
            ad_set(&x[0], ad_real_sin(ad_real_add(ad_real_exp(x[1]), x[0])));
        (void)!ad_real_backward(tape, x[0]);
    } while (clock() < end);
    ad_tape_destroy(tape);
}
END
build formulas
# shellcheck disable=SC2016 # of the inner shell
expect 0 "$tapescope" stat --json --warmup-runs 0 -r 1 --time sampled --freq 1000 \
    sh -c './formulas 30; cp "$TAPESCOPE_PROFILE" formulas.prof'
sed -n 's/.*"forward_ns": *{[^}]*"mean": *\([0-9]*\).*/\1/p' out >mean
expect 0 "$tapescope" info --exact formulas.prof
[ "$(cat mean)" = "$(number forward)" ] || fail "stat has $(cat mean) ns forward, info $(number forward)"
expect 0 "$tapescope" top --exact --sort forward formulas.prof
grep -q 'formulas.c:14 statement' out || fail "no forward time of a formula"

# What cannot be.
expect 1 "$tapescope" record --until-error busy.c:14=5% ./busy 3
grep -qE '^tapescope: busy.c:14: no sample of its work in 3 runs$' err || fail "no sample in three runs"
last "the error that --until-error names cannot be reached"
expect 1 "$tapescope" record --freq 200 --until-error step=0.1% --max-runs 2 ./busy 5
last "not reached in 2 runs, the most that --max-runs lets be"
expect 0 "$tapescope" info --exact
[ "$(number 'runs, added up')" = 2 ] || fail "not two runs"

# A run that fails ends it, and what there is stays.
cat >second.sh <<'END'
if [ -e once ]; then
    exec ./busy 3 7
fi
: >once
exec ./busy 3
END
expect 7 "$tapescope" record --until-error step=0.1% sh second.sh
last "failed (status 7): its samples are not added"
expect 0 "$tapescope" info
! grep -q 'runs, added up' out || fail "the run that failed was added"
expect 7 "$tapescope" record --until-error step=0.1% ./busy 1 7
! grep -q 'standard error' err || fail "judged after a first run that failed"

# What is no goal.
expect 2 "$tapescope" record --until-error busy.c:10 true
said "'busy.c:10' is not FILE:LINE=P% or FUNCTION=P%"
expect 2 "$tapescope" record --until-error =5% true
said "is not FILE:LINE=P% or FUNCTION=P%"
expect 2 "$tapescope" record --until-error step=0% true
said "no number of samples has an error of 0"
expect 2 "$tapescope" record --until-error step=many true
said "'many'"
expect 2 "$tapescope" record --time exact --until-error step=5% true
said "--until-error needs --time sampled"
expect 2 "$tapescope" record --until-error step=5% --max-runs 0 true
said "--max-runs: at least one"
expect 125 "$tapescope" record --until-error step=5% true
last "true wrote no profile"

# ---- attach: a program that runs, whose threads may be in no op ----

cat >server.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <tapescope/ad.h>
static double data[64 * 64];
static volatile double sink;
static void step(ad_tape tape)
{
    ad_tape_reset(tape);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, (int64_t[]){64, 64}, data);
    ad_backward(ad_sum(
        ad_matmul(x, x)));
}
static void burn(void)
{
    for (int i = 0; i < 100000; i++)
        sink = sink * 0.5 + i;
}
int main(int argc, char **argv)
{
    const time_t end = time(NULL) + 1000; /* should the test forget it */
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    if (argc > 1 && strcmp(argv[1], "default") == 0)
        signal(SIGUSR2, SIG_DFL);
    fclose(fopen("up", "w"));
    for (;;) {
        if (argc > 1 && strcmp(argv[1], "ops") == 0)
            step(tape);
        else
            burn();
        if (access("stop", F_OK) == 0 || time(NULL) > end)
            break;
    }
    ad_tape_destroy(tape);
    puts("done");
    return 0;
}
END
build server

# serve OPTIONS [ARGUMENT]: starts it in the background, as $pid.
serve()
{
    rm -f stop up
    options=$1
    shift
    TAPESCOPE_OPTIONS=$options ./server "$@" >served 2>served.err &
    pid=$!
    i=0
    while [ $i -lt 12000 ]; do
        [ -e up ] && [ "$options" = tape=on ] && break
        [ -e up ] && cat /proc/$pid/task/*/comm 2>/dev/null | grep -q '^tapescope-usr' && break
        sleep 0.05
        i=$((i + 1))
    done
}

# served: the program goes on, and ends well once it is asked to.
served()
{
    kill -0 $pid || fail "the program has ended"
    : >stop
    wait $pid || fail "the program's status is $?"
    grep -q '^done$' served || fail "the program did not come to its end"
}

# stopped PROCESS: until each of its threads is; the signal alone does not say so.
stopped()
{
    kill -STOP "$1"
    i=0
    until ! grep '^State:' /proc/"$1"/task/*/status | grep -qv 'T (stopped)' || [ $i -ge 12000 ]; do
        sleep 0.05
        i=$((i + 1))
    done
}

# asked BIT: the process, which is stopped, has the signal whose bit that is.
asked()
{
    i=0
    until pending=$(sed -n 's/^ShdPnd:[^0-9a-f]*/0x/p' /proc/$pid/status) &&
        [ $((pending & $1)) -ne 0 ] || [ $i -ge 12000 ]; do
        sleep 0.05
        i=$((i + 1))
    done
}

# wait_for_ops PROFILE: until it is being written and has an op.
wait_for_ops()
{
    i=0
    until [ $i -ge 12000 ] || "$tapescope" top "$1" 2>/dev/null | grep -q matmul; do
        sleep 0.05
        i=$((i + 1))
    done
}

# Code without any op, by samples; the options of both sides count.
serve attach=usr2,freq=500
# On a busy machine the program may not have run in so short a time.
i=0
: >out
while [ $i -lt 1000 ] && ! grep -q "burn server.c" out; do
    expect 0 "$tapescope" attach $pid --seconds 0.5 --time sampled -o code.prof
    said "wrote $PWD/code.prof: "
    expect 0 "$tapescope" top --by function code.prof
    i=$((i + 1))
done
shown "burn server.c"
expect 0 "$tapescope" info code.prof
shown "attach=usr2,freq=500,time=sampled"
# Again, exactly, while it records nothing; and a wish that cannot be.
expect 0 "$tapescope" attach $pid --seconds 0.1 -o none.prof
expect 1 "$tapescope" attach $pid -o missing/none.prof
said "cannot write $PWD/missing/none.prof: No such file or directory"
expect 1 "$tapescope" attach $pid --depth 4096
said "profile option depth takes a number from 0 to 1024"
[ ! -s served.err ] || fail "the program was told: $(cat served.err)"
served

# Ops, exactly; a second one at the same time is refused, and does not take the answer to the first,
# however late that one looks for it; Ctrl-C ends the first.
serve attach=usr1,depth=9 ops
stopped $pid
"$tapescope" attach $pid --seconds 1000 -o ops.prof 2>first &
first=$!
asked 0x200 # SIGUSR1
stopped $first
kill -CONT $pid
wait_for_ops ops.prof
"$tapescope" attach $pid --seconds 1 -o second.prof >out 2>err &
second=$!
sleep 0.2 # what it could take, it would have taken
kill -CONT $first
wait $second
[ $? -eq 1 ] || fail "a second profile at the same time"
said "a profile is being taken already"
kill -TERM $first
wait $first || fail "attach failed: $(cat first)"
grep -q "wrote $PWD/ops.prof: .* 1 tape, " first || fail "no summary: $(cat first)"
expect 0 "$tapescope" top ops.prof
shown "matmul"
served

# Who does not wait gets no signal, and lives.
serve tape=on
expect 1 "$tapescope" attach $pid --seconds 1
said "process $pid does not wait for tapescope: start it with TAPESCOPE_OPTIONS=attach=usr2"
served
serve attach=usr2 default
expect 1 "$tapescope" attach $pid --seconds 1
said "process $pid does not handle SIGUSR2 any more, which would end it"
served
sleep 100 &
pid=$!
expect 1 "$tapescope" attach $pid
kill -0 $pid || fail "a process that does not know us was ended"
kill $pid
# The signal alone asks for nothing.
serve attach=usr2
kill -USR2 $pid
sleep 0.1
expect 0 "$tapescope" attach $pid --seconds 0.1 -o after.prof
served
# The process ends first: what it wrote is complete.
serve attach=usr2 ops
"$tapescope" attach $pid --seconds 1000 -o early.prof 2>first &
first=$!
wait_for_ops early.prof
served
wait $first || fail "attach failed: $(cat first)"
grep -q "process $pid has ended" first || fail "the end of the process: $(cat first)"
grep -q "wrote $PWD/early.prof: " first || fail "it is not complete: $(cat first)"
# One that ends before it answers is not waited for.
serve attach=usr2
stopped $pid
"$tapescope" attach $pid -o never.prof 2>first &
first=$!
asked 0x800 # SIGUSR2
kill -KILL $pid
wait $first
[ $? -eq 1 ] || fail "attach to a process that was killed: status is not 1"
grep -q "process $pid has ended" first || fail "the process was killed: $(cat first)"
wait $pid
expect 2 "$tapescope" attach
said "name one process by its number"
expect 2 "$tapescope" attach 12x
said "name one process by its number"
expect 1 "$tapescope" attach 999999999
said "there is no process 999999999"

if [ $failures -gt 0 ]; then
    echo "test_cli_sampled: $failures failures"
    exit 1
fi
echo "test_cli_sampled: ok"
