#!/bin/sh
# test_reports.sh: what several reports share, on a program of which calls, bytes and shapes are
# known: files under other names, lines left out, the calls through a line.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
build()
{
    # shellcheck disable=SC2086 # the flags are several words or none
    "$TEST_C_COMPILER" -g -O1 -fno-optimize-sibling-calls ${TEST_SANITIZE_FLAGS:-} -o "$1" "$1.c" \
        -L"$TAPESCOPE_LIB_DIR" -ltapescope -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || exit 1
}

# Arrays of 8192 bytes. Line 4 saves one of them a call, line 8 another.
cat >nest.c <<'END'
#include <tapescope/ad.h>
__attribute__((noinline)) static ad_tensor inner(ad_tensor x)
{
    return ad_tanh(x);
}
__attribute__((noinline)) static ad_tensor outer(ad_tensor x)
{
    x = ad_exp(inner(x));
    return inner(x);
}
int main(void)
{
    static double data[1024];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){1024}, data);
    x = outer(x);
    (void)!ad_backward(ad_sum(outer(x)));
    ad_tape_destroy(tape);
    return 0;
}
END
build nest
TAPESCOPE_CLOCK=step:1000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record ./nest

# Files under other names, wherever they are shown and asked for.
there=/else/where
for command in 'tree' 'tape' 'whatif' 'top' 'top --cum' 'tree --inverted'; do
    # shellcheck disable=SC2086 # the command is several words
    expect 0 "$tapescope" $command --json --map "$PWD=$there"
    grep -qF "\"file\": \"$there/nest.c\"" out || fail "$command: no file under its new name"
    grep -qF "\"file\": \"$PWD" out && fail "$command: a file under its old name"
    # shellcheck disable=SC2086 # the command is several words
    expect 0 "$tapescope" $command --map "$PWD=$there" --focus "^$there/nest.c:4$"
    grep -q 'nest.c:4' out || fail "$command: the new name is not found"
    # shellcheck disable=SC2086 # the command is several words
    expect 0 "$tapescope" $command --map "$PWD=/one" --map "/one=$there" --ignore "^/one"
    grep -q 'nest.c:4' out || fail "$command: two maps, one after the other"
done

# Who holds the peak: what is left out stays in the sum.
expect 0 "$tapescope" tape --exact
whole=$(awk '/ live at the tape/ { print $1 }' out)
for filter in '--focus tanh' '--ignore outer' '--focus nest.c:8'; do
    # shellcheck disable=SC2086 # the filter is two words
    expect 0 "$tapescope" tape --exact $filter
    sum=$(awk '$2 ~ /%$/ && $1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }' out)
    [ "$sum" = "$whole" ] || fail "$filter: the rows add up to $sum, the peak is $whole"
    shown "(left out)"
    grep -q "^$whole live" out || fail "$filter: another peak"
done
expect 0 "$tapescope" tape --exact --focus tanh
grep -q ' saved .* nest.c:4 tanh' out || fail "no tanh in focus"
grep -q ' nest.c:8 exp -> ' out && fail "exp is not in focus"
expect 0 "$tapescope" tape --exact --by op --ignore inner
grep -q ' exp -> ' out || fail "exp is ignored"
grep -q ' tanh' out && fail "tanh is in inner"
for view in --lifetime --leaks '--at end' --dead; do
    # shellcheck disable=SC2086 # the view is two words perhaps
    expect 0 "$tapescope" tape $view --focus no-such-line
    grep -q 'nest.c' out && fail "$view: a line out of focus"
    shown "(left out)"
done
# Where there is no room a list of ops is shortened before the function is cut.
COLUMNS=62 expect 0 "$tapescope" top -n 0
grep -qE ' nest.c:18 (backward,~|sum,~) main$' out || fail "not the function behind a shorter list"
# A pattern that matches nothing is told, with what is near, or what there is.
expect 0 "$tapescope" top --focus tanhh
said "--focus: 'tanhh' matches no file:line, function or op of tapescope.prof; did you mean 'tanh'?"
expect 0 "$tapescope" diff --ignore '^nset.c:4$' tapescope.prof tapescope.prof
said "--ignore: '^nset.c:4\$' matches no file:line, function or op of tapescope.prof; did you mean 'nest.c'?"
expect 0 "$tapescope" tape --focus no-such-line
said "matches no file:line, function or op of tapescope.prof; its functions: "
expect 0 "$tapescope" top --focus 'nest.c:17$'
said "--focus: 'nest.c:17\$' matches callers in tapescope.prof, but no line with costs of its own: tapescope tree --focus"
for callers in tree "top --cum" "export -f json"; do
    # shellcheck disable=SC2086
    expect 0 "$tapescope" $callers --focus 'nest.c:17$'
    [ ! -s err ] || fail "$callers: line 17 is said to match nothing"
done
expect 0 "$tapescope" tree --focus mian
said "did you mean 'main'?"
expect 0 "$tapescope" diff --focus exp tapescope.prof tapescope.prof
[ ! -s err ] || fail "exp is said to match nothing"
expect 2 "$tapescope" tape --focus '['
said "--focus: '[' is no regular expression"

# What may be computed again.
expect 0 "$tapescope" whatif --exact
before=$(awk '/Peak now/ { print $3 }' out)
grep -q 'nest.c:8 exp' out || fail "no exp among all lines"
expect 0 "$tapescope" whatif --exact --focus tanh
grep -q 'nest.c:4 tanh' out || fail "no tanh in focus"
grep -q 'nest.c:8 exp' out && fail "exp is not in focus"
[ "$(awk '/Peak now/ { print $3 }' out)" = "$before" ] || fail "another peak"
shown "left out"
expect 0 "$tapescope" whatif --ignore tanh --budget 1
grep -q 'nest.c:4 tanh' out && fail "tanh was chosen though it is ignored"
shown "nest.c:8"
expect 0 "$tapescope" whatif --focus no-such-line
shown "Every line that saves values was left out."
expect 2 "$tapescope" whatif --focus tanh --checkpoint nest.c:8
said "no line 'nest.c:8' has saved values"

# Beside the source: what a line called stands apart from what it recorded, and in no sum. A call of
# an op takes a microsecond, its pullback another.
expect 0 "$tapescope" annotate --exact nest.c
columns=$(awk '/ line \// { for (i = 1; i <= NF; i++) if ($i == "through") print i }' out)
[ -n "$columns" ] || fail "no column of what was called"
# through NUMBER NS BYTES: the cells before the line's number are these, and of calls alone the first.
through()
{
    awk -v line="$1" -v ns="$2" -v bytes="$3" '{
        for (i = 3; i <= NF; i++)
            if ($i == line && $(i - 2) == ns && $(i - 1) == bytes) { found = 1; print i; exit }
    } END { exit !found }' out >place || fail "line $1: not $2 ns and $3 bytes through it"
}
each=$(awk '/ return ad_tanh/ { print $7 / 4 }' out)
exp=$(awk '/ ad_exp.inner/ { print $7 / 2 }' out)
through 8 4000 $((2 * each))
through 9 4000 $((2 * each))
[ "$(cat place)" -eq 3 ] || fail "line 9 has a cost of its own"
through 17 6000 $((2 * each + exp))
[ "$(cat place)" -eq 3 ] || fail "line 17 has a cost of its own"
through 18 6000 $((2 * each + exp))
tape=$(awk '$NF == "total" { print $7 }' out)
sum=$(awk '/ (x = |return|\(void\)!ad_backward|ad_tensor x = )/ && NF > 9 { sum += $7 } / own \(/ { sum += $7 }
    END { print sum }' out)
[ "$sum" = "$tape" ] || fail "the lines and the tape's own have $sum, the total is $tape"
for columns in 40 80 200; do
    expect 0 env COLUMNS=$columns "$tapescope" annotate nest.c
    case $columns in
    40) grep -q through out && fail "no room for what was called" ;;
    *) grep -q '^through: ' out || fail "$columns columns: through is not explained" ;;
    esac
done
expect 0 "$tapescope" annotate --exact nest.c:main
through 17 6000 $((2 * each + exp))
grep -q ' 8  *x = ' out && fail "a line of another function"
expect 0 "$tapescope" annotate --exact --focus exp nest.c
through 17 2000 "$exp"
grep -qE '[0-9] +9 +return inner' out && fail "line 9 calls nothing in focus"
expect 0 "$tapescope" annotate --context 0 nest.c
grep -q ' 17  *x = outer' out || fail "a line that calls is left out"
expect 0 "$tapescope" annotate --write
grep -q ' 6.00us .* 17  *x = outer' nest.c.tape || fail "--write: nothing through line 17"
expect 0 "$tapescope" record --depth 0 -o flat.prof ./nest
expect 0 "$tapescope" annotate nest.c flat.prof
grep -q 'through' out && fail "something was called though there are no paths"

# By shape: rows of an op with the shapes that it has had, whatever became of their tapes.
cat >dense.c <<'END'
#include <tapescope/ad.h>
static ad_tensor dense(ad_tensor x, ad_tensor w)
{
    return ad_tanh(ad_matmul(x, w));
}
int main(void)
{
    static double data[4096];
    for (int step = 0; step < 3; step++) {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        ad_tensor x = ad_leaf(tape, AD_F64, 2, (int64_t[]){4, 16}, data);
        ad_tensor a = ad_leaf(tape, AD_F64, 2, (int64_t[]){16, 64}, data);
        ad_tensor b = ad_leaf(tape, AD_F64, 2, (int64_t[]){64, 2}, data);
        (void)!ad_backward(ad_sum(dense(dense(x, a), b)));
        ad_tape_destroy(tape);
    }
    return 0;
}
END
build dense
expect 0 "$tapescope" record --shapes on -o dense.prof ./dense
expect 0 "$tapescope" record -o plain.prof ./dense
expect 3 "$tapescope" top --by shape plain.prof
said "plain.prof has no shapes: they are recorded by 'tapescope record --shapes on'"
COLUMNS=200
expect 0 "$tapescope" merge -o merged.prof dense.prof dense.prof
expect 0 "$tapescope" merge -o packed.prof dense.prof
# shape_calls PROFILE CALLS: each op has as many calls on each of its shapes.
shape_calls()
{
    expect 0 "$tapescope" top --by shape -n 0 "$1"
    for row in 'matmul f64[4,64] of [4,16], [16,64]' 'matmul f64[4,2] of [4,64], [64,2]' \
        'tanh f64[4,64]' 'tanh f64[4,2]' 'sum f64[] of [4,2]' 'leaf f64[16,64]'; do
        grep -F " $2 $row" out | grep -q "$(printf '%s' "$row" | sed 's/[][]/\\&/g')\$" ||
            fail "$1: not $2 calls of $row"
    done
}
shape_calls dense.prof 3
shape_calls merged.prof 6
shape_calls packed.prof 3
COLUMNS=80
expect 0 "$tapescope" top --by shape --json dense.prof
shown '"shape": "f64[4,2] of [4,64], [64,2]"'
expect 0 "$tapescope" top --by shape --focus matmul dense.prof
grep -q tanh out && fail "tanh is not in focus"

# The roofline, by construction: every op and pullback takes a microsecond. The product of [4,16] and
# [16,64] has 2*4*16*64 flops and (4*16 + 16*64 + 4*64) * 8 bytes, backward twice both; tanh of [4,64]
# reads and writes 2048 bytes each. These are the peak rates: 16384 flops and 21504 bytes.
expect 0 "$tapescope" top --by shape --roofline -n 0 dense.prof
shown "roof: part of what 16.38 Gflop/s and"
shown "21.5 GB/s allow, the highest"
COLUMNS=200
expect 0 "$tapescope" top --by shape --roofline -n 0 dense.prof
# rates GFLOPS GBS FLOPB ROOF LIMIT PHASE OP...: there is a row of three microseconds with these.
rates()
{
    awk -v row="3.00us $*" '{ $1 = $1 } $0 == row { found = 1 } END { exit !found }' out ||
        fail "no row 3.00us $*"
}
rates 8.19 10.8 0.76 50.0% flops forward 'matmul f64[4,64] of [4,16], [16,64]'
rates 16.4 21.5 0.76 100% flops backward 'matmul f64[4,64] of [4,16], [16,64]'
rates 1.02 3.14 0.33 14.6% bytes forward 'matmul f64[4,2] of [4,64], [64,2]'
rates 2.05 6.27 0.33 29.2% bytes backward 'matmul f64[4,2] of [4,64], [64,2]'
expect 0 "$tapescope" top --by shape --roofline --json -n 0 dense.prof
shown '"shape": "f64[4,2] of [4,64], [64,2]", "phase": "forward"'
expect 0 "$tapescope" top --roofline --json --phase backward --focus matmul dense.prof
shown '"phase": "backward", "ns": 6000, "flops": 55296, "moved_bytes": 83328'
grep -q '"phase": "forward"' out && fail "forward was not asked for"
COLUMNS=80
# Other views are as they were without shapes.
for view in 'top' 'top --by op --phase forward' 'tree --exact' 'tape --exact' 'annotate --exact dense.c' \
    'whatif --exact' 'top --cum'; do
    # shellcheck disable=SC2086 # the view is several words
    expect 0 "$tapescope" $view dense.prof
    mv out with
    # shellcheck disable=SC2086 # the view is several words
    expect 0 "$tapescope" $view plain.prof
    cmp -s with out || fail "$view differs with shapes"
done
expect 0 "$tapescope" diff dense.prof plain.prof
grep -qE '^ +[0-9]+ lines without change|^[0-9]+ lines without change' out || fail "diff differs"

# The size of the problem as a scope's key; two calls on one line that expect one thing.
cat >sized.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
#include <tapescope/ad_scope.h>
int main(int argc, char **argv)
{
    static double data[4096];
    int64_t n = atol(argv[argc - 1]);
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    AD_SCOPE("train", "n", n, "m", argc) {
        ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
        for (int i = 0; i < 4; i++) {
            AD_EXPECT_TAPE_BYTES(1 << 20); AD_EXPECT_TAPE_BYTES(1 << 20);
            AD_EXPECT_RATIO(0.0938); AD_EXPECT_RATIO(0.0938);
        }
        (void)!ad_backward(ad_sum(ad_tanh(x)));
    }
    AD_SCOPE("check", "n", argc == 2 ? n : 2 * n) {
        ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
        ad_sum(x);
    }
    ad_tape_destroy(tape);
    return 0;
}
END
build sized
for n in 100 200 400; do
    expect 0 "$tapescope" record -o sized$n.prof ./sized $n
done
expect 0 "$tapescope" growth --size-key n sized100.prof sized200.prof sized400.prof
shown "n: n: 100 200 400"
grep -q ' 1\.00 .*sized.c:11 leaf' out || grep -q '0\.9[0-9] .*sized.c:11 leaf' out ||
    fail "the leaf does not grow as n"
expect 2 "$tapescope" growth --size-key k sized100.prof sized200.prof
said "sized100.prof: neither an argument nor a scope has the key k"
expect 0 "$tapescope" record -o differ.prof ./sized x 100
expect 2 "$tapescope" growth --size-key n sized100.prof differ.prof
said "differ.prof: n is 100 in one scope and 200 in another"
expect 0 "$tapescope" check --max-growth 1.1 --size-key n sized100.prof sized200.prof sized400.prof
expect 0 "$tapescope" top --expectations --exact sized100.prof
[ "$(grep -c 'sized.c:13 scope train' out)" -eq 1 ] || fail "a line has more than one expectation"
grep -qE '^ok +tape +1048576 .* 8 sized.c:13' out || fail "not passed eight times"
grep -qE '^FAIL +b/f .* 8 sized.c:14' out || fail "the ratio holds"
bytes=$(awk '/sized.c:13/ { print $4 * 8 }' out)
if [ "$bytes" -le 2400 ] || [ "$bytes" -ge 4096 ]; then
    fail "eight times the bytes a time are $bytes"
fi
expect 0 "$tapescope" top --expectations --json sized100.prof
shown '"tapescope": "expectations"'
shown '"times": 8'
expect 2 "$tapescope" top --expectations --by op sized100.prof
said "--expectations does not go with --by"
# What top says and what check says is one number.
expect 0 "$tapescope" top sized100.prof
is=$(sed -n 's/.*expects b\/f <= 0.0938, measured \([^:]*\):.*/\1/p' out)
[ -n "$is" ] || fail "top does not say what is expected"
expect 1 "$tapescope" check --expectations sized100.prof
grep -qF ": $is, at most 0.0938" out || fail "check has another number than $is"

# What had not ended when the profile did, and nothing else: not what began in the profile before.
cat >left.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
#include <tapescope/ad_profile.h>
static void layer(int i)
{
    AD_SCOPE("layer", "index", i) {
        if (i == 2)
            exit(0);
    }
}
int main(int argc, char **argv)
{
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    if (argc > 1) {
        ad_profile_start("first.prof");
        ad_scope_begin("over");
        ad_profile_stop();
        ad_profile_start("second.prof");
        ad_scope_end();
        ad_scope_begin("within");
        ad_scope_end();
        ad_profile_stop();
        return argv == NULL;
    }
    ad_scope_begin("train");
    for (int i = 0; i < 4; i++)
        layer(i);
    return 0;
}
END
build left
expect 0 "$tapescope" record -o left.prof ./left
grep -qF ', scope "train" and 1 more not ended' err || fail "record does not say what is open"
expect 0 "$tapescope" info left.prof
grep -qE '^scopes not ended +train: 1 of 1$' out || fail "the scope that was begun by a call"
grep -qE '^ +train/layer index=2: 1 of 1$' out || fail "the scope that the program left by exit"
grep -q 'index=1' out && fail "a scope that has ended is open"
expect 0 "$tapescope" info --json left.prof
shown '{"scope": "train/layer index=2", "open_calls": 1, "calls": 1}'
expect 0 "$tapescope" merge -o twice.prof left.prof left.prof
expect 0 "$tapescope" info twice.prof
grep -qE '^scopes not ended +train: 2 of 2$' out || fail "the sum of two"
expect 0 ./left in parts
expect 0 "$tapescope" info first.prof
grep -qE '^scopes not ended +over: 1 of 1$' out || fail "open when the profile stopped"
for ended in second sized100; do
    expect 0 "$tapescope" info --json $ended.prof
    grep -qE '"open_scopes": \[\]' out || fail "$ended: something is open"
done

if [ $failures -gt 0 ]; then
    echo "test_reports: $failures failures"
    exit 1
fi
echo "test_reports: ok"
