#!/bin/sh
# test_tree_terminal.sh: on a terminal `tapescope tree` leaves out calls of less than 0.5 %, and says
# how many; in a file it has all. Reports on a terminal go through $PAGER, and what takes more than a
# second says what it does.
#
# Environment: as test_tape_command.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
command -v script >/dev/null || { echo "skipped: no script"; exit 77; }
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK
export PAGER=cat TERM=xterm
unset LESS LV NO_COLOR

# 251 lines of one op each, of which one is called 400 times: with a clock that steps, each of the
# others has 0.15 % of the time.
{
    echo '#include <tapescope/ad.h>'
    echo 'int main(void) {'
    echo 'static double data[8];'
    echo 'ad_tape t;'
    echo 'if (ad_tape_create(&t, NULL) != AD_OK) return 1;'
    echo 'ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){8}, data);'
    i=0
    while [ $i -lt 250 ]; do
        echo 'x = ad_sin(x);'
        i=$((i + 1))
    done
    echo 'for (int i = 0; i < 400; i++) x = ad_cos(x);'
    echo 'return ad_backward(ad_sum(x)) != AD_OK; }'
} >many.c
# shellcheck disable=SC2086 # a list of options
CPATH=$TAPESCOPE_INCLUDE_DIRS expect 0 "$TEST_C_COMPILER" -std=gnu11 -g -O0 $TEST_SANITIZE_FLAGS \
    many.c -o many -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope
expect 0 "$tapescope" record -o many.prof ./many

expect 0 "$tapescope" tree many.prof
[ "$(grep -c ' sin' out)" -eq 250 ] || fail "a file has all calls"
expect 0 script -qec "'$tapescope' tree many.prof" /dev/null
grep -q ' cos' out || fail "the dear call is not there"
[ "$(grep -c ' sin' out)" -eq 0 ] || fail "calls of 0.15 % are on a terminal"
grep -q '253 more nodes, counted in those above' out || fail "nothing is said of those left out"
for more in --all '--min-calls 1' '--max-depth 9'; do
    expect 0 script -qec "'$tapescope' tree $more many.prof" /dev/null
    [ "$(grep -c ' sin' out)" -eq 250 ] || fail "not all of them with $more"
done

esc=$(printf '\033')
# paged COMMAND...: on a terminal, by a pager that marks its lines; what it got is in `paged`.
cat >marks <<'END'
#!/bin/sh
sed 's/^/paged: /'
echo "LESS=$LESS"
END
chmod +x marks
paged()
{
    PAGER="'$PWD/marks'" expect 0 script -qec "'$tapescope' $*" /dev/null
    tr -d '\r' <out >paged
}
for command in "tree many.prof" "top many.prof" "tape many.prof" "info many.prof" "diff many.prof many.prof" \
    "annotate many.c many.prof" "whatif many.prof" "help profile"; do
    paged "$command"
    grep -q '^paged: .' paged || fail "$command: no pager"
    grep -v '^paged: ' paged | grep -qv '^LESS=FRX$' && fail "$command: beside the pager: $(grep -v '^paged: ' paged)"
done
paged tree many.prof
[ "$(grep -c ' sin' paged)" -eq 0 ] || fail "a pager gets all calls"
grep -q "$(printf '\033\[38;5;172m')" paged || fail "no colours in a pager"
paged --help
grep -q '^paged:' paged && fail "--help is paged"
PAGER="'$PWD/marks'" expect 0 "$tapescope" tree many.prof
grep -q '^paged:' out && fail "a file is paged"
for pager in '' cat; do
    PAGER=$pager expect 0 script -qec "'$tapescope' top many.prof" /dev/null
    grep -q ' cos' out || fail "nothing with PAGER='$pager'"
done
TERM=dumb PAGER="'$PWD/marks'" expect 0 script -qec "'$tapescope' top many.prof" /dev/null
grep -q '^paged:' out && fail "a terminal that can do nothing is paged"
# The user may leave before the report ends.
# Colours are on a terminal, unless NO_COLOR is something; --color is above it.
for command in top tree tape "annotate many.c" info; do
    NO_COLOR=1 expect 0 script -qec "'$tapescope' $command many.prof" /dev/null
    grep -q "$esc\[" out && fail "$command: colours with NO_COLOR"
    NO_COLOR='' expect 0 script -qec "'$tapescope' $command many.prof" /dev/null
    grep -q "$esc\[" out || fail "$command: no colours with an empty NO_COLOR"
    NO_COLOR=1 expect 0 script -qec "'$tapescope' $command --color many.prof" /dev/null
    grep -q "$esc\[" out || fail "$command: no colours with --color"
done
PAGER=true expect 0 script -qec "'$tapescope' tree --all many.prof" /dev/null
[ ! -s out ] || fail "a pager that shows nothing: $(cat out)"

# What takes long says what it does, and the line goes away.
mkfifo slow.prof
slowly()
{
    { head -c 1000 many.prof; sleep 2; tail -c +1001 many.prof; } >slow.prof &
    "$@"
    wait
}
slowly expect 0 script -qec "'$tapescope' top slow.prof" /dev/null
tr '\r' '\n' <out >lines
grep -q "^$esc\[Ktapescope: reading slow.prof, [1-9] s\$" lines || fail "no progress"
sed -n "/reading slow.prof/,\$p" lines | grep -q "^$esc\[Kshare" || fail "the progress stays"
slowly expect 0 script -qec "'$tapescope' html -o slow.html slow.prof" /dev/null
tr '\r' '\n' <out >lines
grep -q "^$esc\[Ktapescope: reading slow.prof, [1-9] s\$" lines || fail "html: no progress"
# A pipe takes what is written when its reader comes.
mkfifo late
for command in html merge; do
    { sleep 2; cat late >/dev/null; } &
    expect 0 script -qec "'$tapescope' $command -o late many.prof" /dev/null
    wait
    tr '\r' '\n' <out >lines
    grep -q "^$esc\[Ktapescope: writing late, [1-9] s\$" lines || fail "$command: no progress"
done
slowly expect 0 script -qec "'$tapescope' top slow.prof 2>err.txt" /dev/null
[ ! -s err.txt ] || fail "progress in a file: $(cat err.txt)"
expect 0 script -qec "'$tapescope' top many.prof" /dev/null
grep -q reading out && fail "progress of what is quick"

if [ $failures -gt 0 ]; then
    echo "test_tree_terminal: $failures failures"
    exit 1
fi
echo "test_tree_terminal: ok"
