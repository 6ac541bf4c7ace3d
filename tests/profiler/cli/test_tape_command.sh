#!/bin/sh
# test_tape_command.sh: `tapescope tape` and `tapescope whatif` on programs whose bytes are known.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# row EXPRESSION TEXT: a line of the output matches the expression and holds the text.
row()
{
    grep -E -- "$1" out | grep -qF -- "$2" || fail "no row '$1' with '$2'"
}

# Arrays of 8192 bytes: lines 11 and 13 save 4 and 5 of them, line 15 saves one in vain, and what line
# 16 makes is read by nobody. The tape is destroyed with all of it, after a reset of the same.
cat >chain.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    static double data[1024];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (int step = 0; step < 2; step++) {
        ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){1024}, data);
        ad_tensor y = x;
        for (int i = 0; i < 4; i++)
            y = ad_sin(ad_exp(y));
        for (int i = 0; i < 5; i++)
            y = ad_tanh(y);
        ad_tensor loss = ad_sum(y);
        ad_exp(x);
        ad_neg(x);
        (void)!ad_backward(loss);
        if (step == 0)
            ad_tape_reset(tape);
    }
    ad_tape_destroy(tape);
    return 0;
}
END
build chain
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record ./chain

# Who holds the peak: exp is read by the pullbacks of exp itself and of sin.
expect 0 "$tapescope" tape --exact
row '^ *32768 .* saved ' 'chain.c:11 exp -> chain.c:11 exp +'
row '^ *40960 .* saved ' 'chain.c:13 tanh -> chain.c:13 tanh'
row '^ *8192 .* saved ' 'chain.c:15 exp -> chain.c:15 exp'
row '^ *32768 .* value ' 'chain.c:11 sin'
row '^ *8192 .* value ' 'chain.c:16 neg'
peak=$(awk '/ live at the tape/ { print $1 }' out)
[ "${peak:-0}" -gt 122880 ] || fail "the peak is $peak"
sum=$(awk '$2 ~ /%$/ && $1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }' out)
[ "$sum" = "$peak" ] || fail "the rows add up to $sum, the peak is $peak"
grep -q 'in a sweep' out || fail "the peak is in no sweep"
expect 0 "$tapescope" info --exact
grep -q "peak.* $peak" out || fail "info has another peak than $peak"
expect 0 "$tapescope" tape --exact --by line
row '^ *[0-9]+ .* several ' 'chain.c:11 exp,sin'
expect 0 "$tapescope" tape --exact --by op
row '^ *[0-9]+ ' 'tanh -> tanh'

# What no pullback read, in both steps; and what nobody reads.
expect 0 "$tapescope" tape --exact --dead
row '^ *16384 +16384 +8192 +[a-z]+' 'chain.c:15 exp'
[ "$(grep -c 'chain.c:' out)" -eq 1 ] || fail "more than one line saves in vain"
grep -q 'At the peak, .* are values that no' out || fail "nothing of values that nobody reads"

# One step was reset, the other was left.
expect 0 "$tapescope" tape --exact --leaks
row '^ *40960 +0 +40960 +saved ' 'chain.c:13 tanh'
expect 0 "$tapescope" tape --exact --lifetime
row 'reset\+ ' 'chain.c:13 tanh'
row ' sweep\+? ' 'chain.c:13 tanh'
# Lines, calls, scopes and classes have the same of it.
lived=$(awk '/%/ { sum += $1 } END { printf "%.0f", sum }' out)
for command in "top --sort lifetime -n 0" "tree --metric lifetime" "top --by scope --sort lifetime"; do
    # shellcheck disable=SC2086 # words
    expect 0 "$tapescope" $command --exact
    grep -q 'B\*ns' out || fail "no column of byte-seconds: $command"
    grep -E '\((all|no scope)\)$' out | grep -qF " $lived " || fail "not $lived: $command"
done
expect 0 "$tapescope" top --by scope --json
[ "$(jq '.no_scope.byte_seconds * 1e9 | round' out)" = "$lived" ] || fail "another in JSON"
expect 0 "$tapescope" tape --at end
grep -q '^0 live at the end' out || fail "something is live at the end"

# A time within the stretch, and others. Every reading of the clock is a millisecond.
expect 0 "$tapescope" tape --exact --at 0.01
grep -q 'at that time, 10.0ms after the start' out || fail "no time"
row '^ *[0-9]+ .* saved ' 'chain.c:11 exp'
expect 2 "$tapescope" tape --at 1000
said 'are known change by change'
expect 2 "$tapescope" tape --at soon
said "'soon' is neither peak nor end nor a number of seconds"

# JSON has the same numbers.
expect 0 "$tapescope" tape --json
grep -q "\"total_bytes\": *$peak" out || fail "the JSON has another peak"
grep -q '"held_bytes": *40960' out || fail "the JSON lacks a holder"

# Computed again: of n values one at a time is live while a sweep runs, which is when the peak is.
expect 0 "$tapescope" whatif --exact
row "^ *$((peak - 3 * 8192)) .* 8000000 .* 8 " 'chain.c:11 exp'
row "^ *$((peak - 4 * 8192)) .* 10000000 .* 10 " 'chain.c:13 tanh'
row "^ *$((peak - 8192)) .* 0 .* 0 " 'chain.c:15 exp'
grep -q 'change by change (exact)' out || fail "no resolution"
expect 0 "$tapescope" whatif --exact --checkpoint chain.c:11 --checkpoint chain.c:13
tr '\n' ' ' <out | grep -q "computed again: at least $((peak - 8 * 8192))\." || fail "two lines at once"
expect 2 "$tapescope" whatif --checkpoint chain.c:12
said "no line 'chain.c:12' has saved values at any time"
expect 2 "$tapescope" whatif --checkpoint chain.c:11 --budget 1MiB
said "at a time"

# The cheapest choice: line 15 costs nothing, line 11 a little less than line 13.
chosen()
{
    sed '1,/^Cost:/d' out | grep -o 'chain.c:[0-9]*' | sort | tr '\n' ' '
}
expect 0 "$tapescope" whatif --budget $((peak - 8192))
[ "$(chosen)" = "chain.c:15 " ] || fail "chosen: $(chosen)"
expect 0 "$tapescope" whatif --budget $((peak - 4 * 8192))
[ "$(chosen)" = "chain.c:11 chain.c:15 " ] || fail "chosen: $(chosen)"
expect 0 "$tapescope" whatif --budget $((peak - 5 * 8192))
[ "$(chosen)" = "chain.c:13 chain.c:15 " ] || fail "chosen: $(chosen)"
expect 0 "$tapescope" whatif --budget $((peak - 6 * 8192))
[ "$(chosen)" = "chain.c:11 chain.c:13 chain.c:15 " ] || fail "chosen: $(chosen)"
tr '\n' ' ' <out | grep -q 'none that reaches the budget costs less' || fail "not optimal"
expect 0 "$tapescope" whatif --budget 10000
# Nothing fits: how far it is from that, and what no line can save.
expect 0 "$tapescope" whatif --json --budget 10000
least=$(grep -o '"new_peak_bytes": *[0-9]*' out | grep -o '[0-9]*$')
expect 0 env COLUMNS=1000 "$tapescope" whatif --exact --budget 10000
shown "No choice of lines fits the budget of 10000: the least peak is $((least - 10000)) above it."
shown "Of the tape's peak $((peak - 10 * 8192)) are not a line's saved values, and stay: value "
shown "'tapescope tape' names who holds them, 'tapescope tape --dead' what no pullback reads."
expect 0 env COLUMNS=1000 "$tapescope" whatif --exact --focus no-such-line --budget 10000
shown "the least peak is $((peak - 10000)) above it."
shown "No line would lower it."
shown "Of the tape's peak $peak are not a line's saved values, and stay: saved 81920, value "
grep -q 'No line need' out && fail "no line is needed where none helps"
expect 0 "$tapescope" whatif --budget 1MiB
grep -q 'No line need be computed again' out || fail "a budget that all fits"
expect 0 "$tapescope" whatif --by function
row '^ *[0-9]' main
expect 0 "$tapescope" whatif --by function --checkpoint main
expect 0 "$tapescope" whatif --json --budget 100KiB
grep -q '"fits"' out || fail "no fits in the JSON"
expect 0 "$tapescope" whatif --json
grep -q '"pareto": *true' out || fail "no line is on the front"

# No line is wider than the terminal, and the lines are named: columns go before their names do.
for columns in 40 80 200; do
    for command in tape 'tape --lifetime' 'tape --dead' 'tape --leaks' whatif \
        'whatif --budget 100000'; do
        # shellcheck disable=SC2086 # the command is several words
        expect 0 env COLUMNS=$columns "$tapescope" $command
        awk -v most=$columns 'length($0) > most { exit 1 }' out ||
            fail "wider than $columns columns: $command"
        grep -q 'chain\.c:1[0-9]' out || fail "no line is named in $columns columns: $command"
    done
done
expect 0 env LC_ALL=C.UTF-8 "$tapescope" tape
grep -q "$(printf '\342\226\210')" out || fail "no blocks in the plot"

# A tape for each step: what was destroyed is merged, and the peak is that of the largest.
cat >many.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    static double data[1024];
    for (int step = 0; step < 30; step++) {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        ad_tensor y = ad_leaf(tape, AD_F64, 1, (int64_t[]){1024}, data);
        for (int i = 0; i < (step == 11 ? 9 : 3); i++)
            y = ad_exp(y);
        (void)!ad_backward(ad_sum(y));
        ad_tape_destroy(tape);
    }
    return 0;
}
END
build many
expect 0 "$tapescope" record -o many.prof ./many
expect 0 "$tapescope" tape --exact many.prof
row '^ *73728 .* saved ' 'many.c:10 exp'
expect 0 "$tapescope" tape --exact --leaks many.prof
row "^ *$((8192 * (29 * 3 + 9))) +0 +73728 +saved " 'many.c:10 exp'
expect 0 "$tapescope" whatif --exact many.prof
row '^ *[0-9]+ .* 96 ' 'many.c:10 exp'

# What would not lower the peak is no advice.
cat >apart.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    static double data[1024];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){1024}, data);
    ad_tensor y = ad_exp(ad_exp(ad_exp(x)));
    (void)!ad_backward(ad_tanh(ad_sum(y)));
    return 0;
}
END
build apart
expect 0 "$tapescope" record -o apart.prof ./apart
expect 0 "$tapescope" whatif apart.prof
row '' 'apart.c:8 exp'
grep -q 'tanh' out && fail "a value of 8 bytes would lower the peak"
tr '\n' ' ' <out | grep -q '1 line would lower the peak by less than 0.05 %; -n 0 shows' ||
    fail "nothing is said of the line that is left out"
expect 0 "$tapescope" whatif -n 0 apart.prof
row '' 'apart.c:9 tanh'
expect 0 "$tapescope" whatif --focus tanh apart.prof
tr '\n' ' ' <out >line
grep -q 'No line would lower it by 0.05 % if its saved values were computed again; -n 0 shows all 1' \
    line || fail "a line that gains nothing is listed"
grep -q 'by less than' line && fail "two statements of the same"
expect 0 "$tapescope" whatif --focus no-such-line apart.prof
shown "Every line that saves values was left out."

# A program without a tape, and one that is killed.
expect 3 "$tapescope" tape none.prof
if [ $failures -gt 0 ]; then
    echo "test_tape_command: $failures failures"
    exit 1
fi
echo "test_tape_command: ok"
