#!/bin/sh
# test_html_lines.sh: what the page of `tapescope html` works out by itself is what the commands
# say: byte-seconds, several lines computed again at once, the cheapest of them for a budget, what
# calls cost more or less than in a base, which of many lines come first, what is an estimate,
# what was not measured, and what calls would save as checkpoints.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
need jq jq
npm_packages
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK

# make NAME [SOURCE]: SOURCE.c, or NAME.c, is compiled and recorded as NAME.prof.
optimize=-O1
make()
{
    # shellcheck disable=SC2086
    CPATH=$TAPESCOPE_INCLUDE_DIRS expect 0 "$TEST_C_COMPILER" -std=gnu11 -g $optimize \
        $TEST_SANITIZE_FLAGS "${2-$1}.c" -o "$1" -L"$TAPESCOPE_LIB_DIR" \
        -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
    expect 0 "$tapescope" record -o "$1.prof" "./$1"
}

# program N...: three lines for each number, which record arrays of so many elements, N % 7 of them
# in a loop; what ad_neg() makes has no pullback.
program()
{
    echo '#include <tapescope/ad.h>'
    echo 'static double data[1 << 12];'
    echo '#define leaf(t, n) ad_leaf(t, AD_F64, 1, (int64_t[]){n}, data)'
    echo 'int main(void) {'
    echo '    ad_tape t;'
    echo '    ad_tape_create(&t, NULL);'
    echo '    ad_tensor sum = ad_sum(leaf(t, 8));'
    for n; do
        echo "    ad_tensor x$n = ad_tanh(leaf(t, $n));"
        echo "    for (int i = 0; i < $n % 7; i++)"
        echo "        x$n = ad_exp(ad_sin(x$n));"
        echo "    sum = ad_add(sum, ad_sum(x$n)), ad_neg(x$n);"
    done
    echo '    ad_backward(sum);'
    echo '    ad_tape_destroy(t);'
    echo '}'
}
program 100 900 37 250 512 >few.c
program 64 900 130 71 333 512 48 205 401 96 720 155 67 >many.c
make few
make many

# answer PROFILE WORD...: "peak cost optimal" of a choice, and its lines.
answer()
{
    of=$1
    shift
    "$tapescope" whatif --json "$@" "$of" | jq -c '{peak: .new_peak_bytes, cost: .recompute_ns,
        fits: .reached, optimal: .optimal,
        lines: [.lines[] | "\(.file | split("/") | last):\(.line)"] | sort}'
}

# The questions, each with what the command says: lines, or a budget.
questions()
{
    whole=$("$tapescope" whatif --json "$1" | jq .peak_bytes)
    exact=$(answer "$1" --budget $((whole * 3 / 4)) | jq .peak) # which fits to the byte
    for budget in $((whole * 99 / 100)) $((whole * 9 / 10)) $((whole * 3 / 4)) "$exact" \
        $((whole * 3 / 5)) $((whole / 2)) $((whole * 2 / 5)) $((whole * 3 / 10)) $((whole / 20)) \
        $((whole * 2)); do
        echo "{\"budget\": \"$budget\", \"answer\": $(answer "$1" --budget "$budget")}"
    done
    # Sizes as people write them.
    kib=$((whole * 3 / 4096))
    echo "{\"budget\": \"$kib.5 KiB\", \"answer\": $(answer "$1" --budget $((kib * 1024 + 512)))}"
    echo "{\"budget\": \" ${kib}k\", \"answer\": $(answer "$1" --budget $((kib * 1024)))}"
    echo "{\"budget\": \"0.03125 MiB\", \"answer\": $(answer "$1" --budget 32768)}"
    echo "{\"budget\": \"1.5 MiB\", \"answer\": $(answer "$1" --budget 1572864)}"
    "$tapescope" whatif --json -n 0 "$1" | jq -r '.lines[] | "\(.file):\(.line)"' | sort -u >places
    for picked in '1p;2p' '2p;4p;5p' '1p;3p;6p;7p' 'p'; do
        sed -n "$picked" places >picked
        set --
        while read -r place; do
            set -- "$@" --checkpoint "$place"
        done <picked
        echo "{\"picked\": $(jq -Rn '[inputs | split("/") | last]' <picked)," \
            "\"answer\": $(answer "$of" "$@")}"
    done
}

# ask NAME: the page of NAME.prof, and the command's answers.
ask()
{
    name=$1
    set -- "$1.prof"
    expect 0 "$tapescope" html -o "$name.html" "$1"
    of=$1
    questions "$1" | jq -s . >"$name.questions"
    "$tapescope" top --json -n 0 "$1" | jq '[.rows[].byte_seconds] | add' >lifetime
    "$tapescope" tape --lifetime --json -n 0 "$1" | jq '[.rows[].byte_seconds] | add' >held
    [ "$(jq -n --argjson a "$(cat lifetime)" --argjson b "$(cat held)" \
        '$a > 0 and (($a - $b) / $a | fabs) < 1e-12')" = true ] ||
        fail "$1: lines have $(cat lifetime) byte-seconds, classes $(cat held)"
    "$tapescope" top --json -n 0 "$1" >"$name.lines"
    mv lifetime "$name.lifetime"
}
ask few
[ "$(jq '[.[].answer.optimal] | any' few.questions)" = true ] || fail "not every choice was tried"
ask many
[ "$(jq '[.[0:8][].answer.optimal] | any' many.questions)" = false ] ||
    fail "every choice was tried"

# Against a base: one line has an op more, one is called less often, one is new, one is gone.
sed -e 's/ad_sum(x37)/ad_tanh(ad_sum(x37))/' \
    -e '/250 % 7/s/.*/    for (int i = 0; i < 2; i++) ad_neg(x250);/' \
    -e '/x512 = ad_exp/s/.*/            ;/' few.c >changed.c
cmp -s few.c changed.c && fail "nothing was changed"
cp changed.c few.c
make now few
expect 0 "$tapescope" html -o diff.html --base few.prof now.prof
for side in few now; do
    "$tapescope" top --json -n 0 $side.prof | jq --arg side $side '[.rows[] | {side: $side,
        key: (if .own then "(tape) " + .ops[0] else "\(.file | split("/") | last):\(.line)" end),
        tape: .tape_bytes, forward: .forward_ns, calls}]' >$side.json
done
jq -s 'def of(side): map(select(.side == side)) | {tape: (map(.tape) | add // 0),
        forward: (map(.forward) | add // 0), calls: (map(.calls) | add // 0)};
    add | group_by(.key) | map({key: .[0].key, base: of("few"), now: of("now"),
        in: ((if any(.[]; .side == "few") then 1 else 0 end) +
            (if any(.[]; .side == "now") then 2 else 0 end))})' few.json now.json >changes.json
expect 0 "$tapescope" diff --json -n 0 few.prof now.prof
[ "$(jq '[.rows[] | (.new.tape_bytes // 0) - (.base.tape_bytes // 0)] | add' out)" = \
    "$(jq '[.[] | .now.tape - .base.tape] | add' changes.json)" ] || fail "other changes"
[ "$(jq -c '[.[].in] | unique' changes.json)" = '[1,2,3]' ] ||
    fail "no line is new, or none is gone"

# Of many lines those that are shown are the first of all, by each column and both ways.
# shellcheck disable=SC2046
program $(seq 430) >thousands.c
optimize=-O0 # of one function so long
make thousands
expect 0 "$tapescope" html -o thousands.html thousands.prof
"$tapescope" top --json -n 0 thousands.prof | jq '[.rows[] | {
    key: (if .own then "(tape) " + .ops[0] else "\(.file | split("/") | last):\(.line)" end),
    ops, forward: .forward_ns, backward: .backward_ns, tape: .tape_bytes, peak: .peak_bytes,
    calls}]' >thousands.json

# Statements, whose times are estimates or not known, beside an op and a custom record.
cat >marked.c <<'PROGRAM'
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>
static void half(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    (void)data, (void)m, (void)n;
    dx[0] += 0.5 * dy[0];
}
int main(void)
{
    ad_tape t;
    ad_real x[2], y;
    ad_tape_create(&t, NULL);
    ad_tensor v = ad_exp(ad_leaf(t, AD_F64, 1, (int64_t[]){2}, (double[]){1, 2}));
    if (ad_reals_of_tensor(v, 2, x) != AD_OK)
        return 1;
    y = x[0];
    for (int i = 0; i < 20; i++)
        ad_set(&y, ad_real_mul(y, x[1]));
    ad_real_custom(1, &y, 1, (double[]){0.5 * y.value}, &x[0], "half", half, NULL, 0);
    return ad_real_backward(t, x[0]) != AD_OK || ad_tape_destroy(t) != AD_OK;
}
PROGRAM
optimize=-O1
make marked
expect 0 "$tapescope" html -o marked.html marked.prof
"$tapescope" top --json -n 0 marked.prof >marked.lines

# A call of numbers, which may be a checkpoint or a section. By this clock it would take several times
# as long again as the whole run.
cat >calls.c <<'PROGRAM'
#include <tapescope/ad_real.h>
static __attribute__((noinline)) ad_real path(ad_real x, ad_real a)
{
    for (int k = 0; k < 50; k++)
        ad_set(&x, ad_real_sin(ad_real_mul(x, a)));
    return x;
}
int main(void)
{
    ad_tape t;
    ad_real x[2], sum = ad_real_of(0);
    if (ad_tape_create(&t, NULL) != AD_OK || ad_real_leaves(t, 2, (double[]){1, 2}, x) != AD_OK)
        return 1;
    for (int i = 0; i < 100; i++)
        ad_set(&sum, ad_real_add(sum, path(x[0], x[1])));
    return ad_real_backward(t, sum) != AD_OK || ad_tape_destroy(t) != AD_OK;
}
PROGRAM
TAPESCOPE_CLOCK=step:1000
make calls
expect 0 "$tapescope" html -o calls.html calls.prof
"$tapescope" whatif --json -n 0 calls.prof >calls.json
# Nobody looked at the statements by that clock: their forward time is not known.
"$tapescope" info --json calls.prof | jq -e '.total.forward_ns == null' >out || fail "info: forward is known"
"$tapescope" annotate calls.c calls.prof >out
grep -qE '^ +100% +[0-9]+ +- +~.* total$' out || { cat out; fail "annotate: forward is known"; }
"$tapescope" diff --metric forward calls.prof calls.prof >out
grep -qE '^ +- +- +- +- +0 \(all\)$' out || { cat out; fail "diff: forward is known"; }
"$tapescope" diff calls.prof calls.prof >out
grep -qE '^ +0 +\+0\.0% +~[0-9.]+(us|µs|ms) +~[0-9.]+(us|µs|ms) +0 \(all\)$' out ||
    { cat out; fail "diff: the total is no estimate"; }

drive 6 few.out report_lines.cjs few.html few.questions "$(cat few.lifetime)" few.lines \
    -- many.out report_lines.cjs many.html many.questions "$(cat many.lifetime)" many.lines \
    -- diff.out report_diff.cjs diff.html changes.json \
    -- order.out report_order.cjs thousands.html thousands.json \
    -- marked.out report_estimates.cjs marked.html marked.lines \
    -- calls.out report_calls.cjs calls.html calls.json

[ $failures -eq 0 ] || exit 1
echo "test_html_lines: ok"
