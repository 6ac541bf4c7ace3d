#!/bin/sh
# test_cli.sh: the program `tapescope` from outside: statuses, messages, tables, and programs that
# are recorded while they end well, crash or are killed.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# Usage.
expect 2 "$tapescope"
expect 0 "$tapescope" --help
shown "annotate"
expect 0 "$tapescope" --version
shown "tapescope "
expect 0 "$tapescope" --help
commands=$(awk '/^  [a-z]/ { print $1 }' out)
for command in record top tree annotate info help; do
    echo "$commands" | grep -qx $command || fail "--help does not list $command"
done
for command in $commands; do
    expect 0 "$tapescope" "$command" --help
    shown "Usage: tapescope $command"
    case $command in
    cc | c++) continue ;; # its options are the compiler's
    esac
    expect 2 "$tapescope" "$command" --nonsense
    said "--nonsense"
done
# By groups, each command in one.
expect 0 "$tapescope" --help
[ "$(awk '/^[A-Z][a-z]*:$/ { group = $1 } /^  [a-z]/ { printf "%s%s", group, $1; group = " " }' out)" = \
    "Measure:record live attach stat cc c++Look:top tree annotate tape ranks htmlDecide:whatif diff growth checkFiles:merge export infoHelp:help" ] ||
    fail "other groups of commands"
# One word a thing: a letter stands for one name, and every report has the names of what it can do.
for command in $commands; do
    case $command in
    cc | c++) continue ;;
    esac
    "$tapescope" "$command" --help | sed -n 's/^  -\([a-z]\), --\([a-z-]*\).*/\1 \2/p'
done | sort -u >letters
for letter in b:by d:max-depth e:expectations f:format h:help i:inverted k:checkpoint m:metric n:limit o:output p:patterns s:sort; do
    [ "$(grep "^${letter%:*} " letters)" = "${letter%:*} ${letter#*:}" ] || fail "-$letter has other names: $(cat letters)"
done
for need in "limit:top tape whatif diff growth ranks" "sort:top tree diff" "by:top tree tape whatif diff growth ranks export" \
    "metric:tree diff growth export" "focus:top tree annotate tape ranks html whatif diff growth check export" \
    "no-color:live stat top tree annotate tape whatif diff growth check info" \
    "json:stat top tree annotate tape ranks whatif diff growth check merge info" \
    "output:record live attach stat annotate html merge export"; do
    for command in ${need#*:}; do
        "$tapescope" "$command" --help | grep -qE -- "--${need%%:*}( |\$)" || fail "$command has no --${need%%:*}"
    done
done
for word in order top count rows group group-by filter colour quiet; do
    for command in $commands; do
        "$tapescope" "$command" --help | grep -qE -- "^ .*--$word( |\$)" && fail "$command has --$word"
    done
done
# What had other names, here and elsewhere.
for words in "view:html --open" "dump:tape --records" "pack:merge -o PACKED PROFILE" "completion:help --completion bash" "report:top"; do
    expect 2 "$tapescope" ${words%%:*}
    said "no command '${words%%:*}'; try 'tapescope ${words#*:}'"
done
expect 2 "$tapescope" cc
said "cc: no input files"
expect 2 "$tapescope" anotate
said "did you mean 'annotate'?"
expect 2 "$tapescope" xyzzy
said "no command 'xyzzy'"
expect 2 "$tapescope" top --sort size
said "top: --sort: 'size' is none of: total, forward, backward"
expect 2 "$tapescope" top --by mood
said "top: --by: 'mood' is none of: line, function, op"
expect 2 "$tapescope" top -n many
said "'many' is not a number"
for number in "" 5x -1 99999999999999999999999; do
    expect 2 "$tapescope" top -n "$number"
    said "'$number' is not a number"
done
expect 2 "$tapescope" top --sort ""
said "--sort: '' is none of"
expect 2 "$tapescope" top --sort t
said "--sort: 't' may be: total, tape"
expect 2 "$tapescope" top --sort toatl
said "; did you mean 'total'?"
# So is another program's word for one of ours, by what is a choice here.
for words in "top --sort time:total" "tree --sort time:cost" "top --sort mem:tape" "top --sort count:calls" \
    "growth --metric memory:tape" "top --by symbol:function" "export -f flamegraph:collapsed"; do
    # shellcheck disable=SC2086
    expect 2 "$tapescope" ${words%:*}
    said "; did you mean '${words#*:}'?"
done
expect 2 "$tapescope" top --phase forward,bakcward
said "--phase: 'bakcward' is none of: forward, backward, recompute; did you mean 'backward'?"
expect 2 "$tapescope" export -f pporf
said "; did you mean 'pprof'?"
expect 2 "$tapescope" export pprof
said "export: a format goes behind -f: tapescope export -f pprof"
expect 2 "$tapescope" --vresion
said "no command '--vresion'; did you mean '--version'?"
expect 2 "$tapescope" help --completion bsh
said "; did you mean 'bash'?"
expect 2 "$tapescope" a-name-that-no-one-would-give-to-a-command
said "try 'tapescope --help'"
# What findings name is in the docs beside the program; a heading has what is below it, no more.
named=$(grep -o 'docs/[a-z-]*/[a-z0-9-]*\.md[#a-z0-9-]*' "$TAPESCOPE_SOURCE_DIR/profiler/report/text/report_findings.c" | sort -u)
[ "$(echo "$named" | wc -l)" -ge 8 ] || fail "findings name $named"
for page in $named; do
    topic=$(basename "$page" | sed 's/\.md//')
    expect 0 "$tapescope" help "$topic"
    head -n 1 out | grep -q '^#' || fail "help $topic begins otherwise"
    [ "$(grep -c . out)" -gt 3 ] || fail "help $topic says little"
    cp out topic
    expect 0 "$tapescope" help "$page"
    cmp -s out topic || fail "another text of $page"
done
expect 0 "$tapescope" help profile.md#sampled-mode
[ "$(head -n 1 out)" = '## Sampled mode' ] || fail "another heading"
grep '^## ' out | sed 1d | grep . && fail "the next section as well"
for page in profile#none none.md ../../../etc/passwd how-to/../../LICENSE.md; do
    expect 2 "$tapescope" help $page
    said "help: no page $page in the docs"
done
# A word is looked up in the glossary, the options and the sections; a command is one before a page.
expect 0 "$tapescope" help frames
head -n 1 out | grep -qx -- '--frames is an option of record, live, attach, stat, tree, export\.' || fail "no option"
shown "frame: a part whose values are released at its end"
shown "    tapescope help 6-halve-the-tape#first-half-frames"
for word in frames rewind shapes NaN; do
    expect 0 "$tapescope" help $word
    sed -n 's/^    tapescope help //p' out >topics
    [ -s topics ] || fail "help $word names no section"
    while read -r topic; do
        "$tapescope" help "$topic" | grep -qiE "(^|[^a-z0-9])${word%s}s?([^a-z0-9]|\$)" || fail "help $topic has no '$word'"
    done <topics
done
pages=docs
mkdir -p $pages/how-to $pages/reference a/b/c
cp "$tapescope" a/b/c/
printf '# Top\nnothing\n' >$pages/how-to/top.md
printf '# Apples\npears and a pear\n## An *apple*: `one`\nAPPLES\n```\n# apple\n```\n## Else\npineapple apple2\n' >$pages/how-to/fruit.md
printf '# Fruit\n## Names\nan apple\nor apples\nhere\n' >$pages/reference/names.md
printf '# Words\n\n| [apple](../how-to/fruit.md) | a `pome`, *not* a pear |\n| pear | b |\n' >$pages/reference/glossary.md
expect 0 a/b/c/tapescope help apple
cat >wanted <<'END'
apple: a pome, not a pear.

Sections of the docs that have 'apple':
    tapescope help fruit
    tapescope help fruit#an-apple-one
    tapescope help names#names
    tapescope help glossary
END
cmp -s out wanted || fail "another list of sections"
expect 0 a/b/c/tapescope help Pears
shown "pear: b."
shown "    tapescope help fruit"
expect 2 a/b/c/tapescope help pea
said "no command 'pea'"
expect 2 a/b/c/tapescope help ''
said "no command ''"
expect 0 a/b/c/tapescope help fruit
[ "$(head -n 1 out)" = '# Apples' ] || fail "a page"
expect 0 a/b/c/tapescope help top
shown "Usage: tapescope top"
rm -r $pages a
for help in -h help; do
    expect 0 "$tapescope" $help
    shown "annotate"
done
expect 3 "$tapescope" top "$(printf 'a\001\177b')"
said "a??b: No such file or directory"
expect 2 "$tapescope" top a b
said "'b'"
expect 2 "$tapescope" info a b
said "'b'"
expect 2 "$tapescope" annotate
said "name one source file"
expect 2 "$tapescope" record
said "name the program"
expect 2 "$tapescope" record -o
said "'-o' lacks its value"
expect 2 "$tapescope" top --sotr tape
said "did you mean '--sort'?"
expect 2 "$tapescope" record -timeline ./program
said "record: no option '-timeline'; did you mean '--timeline'?"
expect 2 "$tapescope" top -n3 -x
said "top: no option '-x'"
expect 2 "$tapescope" top --me tape
said "top: no option '--me'"
expect 2 "$tapescope" tree --depth 3
said "tree: no option '--depth'; did you mean '--max-depth'?"
expect 2 "$tapescope" record --sample -- ./program
said "record: no option '--sample'; did you mean '--time sampled'?"
# What another command gives is said by its name, not by a likeness of letters.
for words in "top --csv:tapescope export -f csv" "tree --csv:tapescope export -f csv" \
    "info --csv=x:tapescope export -f csv" "html --json:tapescope export -f json" \
    "export --json:did you mean '--format json'?" "export --csv:--format csv" "record --json:tapescope top --json" \
    "record --html:--report html" \
    "top --svg:tapescope html" "tree --flamegraph:tapescope html" "top --html:tapescope html" \
    "top --width=80:COLUMNS" "top --version:tapescope --version"; do
    # shellcheck disable=SC2086
    expect 2 "$tapescope" ${words%%:*}
    said "${words#*:}"
done
expect 2 "$tapescope" export -f svg
said "; did you mean 'collapsed'?"
echo : >text
chmod +x text
expect 2 "$tapescope" ./text
said "to run it: tapescope record -- ./text"
chmod -x text
expect 2 "$tapescope" ./text
said "to see it: tapescope top ./text"
expect 2 "$tapescope" check --max-t=1
said "check: '--max-t=1' may be --max-total-tape or --max-tape"
expect 2 "$tapescope" check --max-paek=64MiB
said "check: no option '--max-paek=64MiB'; did you mean '--max-peak'?"

# Profiles that are none.
expect 3 "$tapescope" top
said "tapescope.prof: No such file or directory (make one by"
echo "hello, world" >text
expect 3 "$tapescope" info text
said "text: not a tapescope profile"
chmod +x text
expect 3 "$tapescope" info text
said "text: not a tapescope profile, but a program (make one by: tapescope record -- ./text)"
chmod -x text
printf 'TAPESCP9' >text
expect 3 "$tapescope" info text
said "text: a profile of another version of tapescope, whose program reads it"
printf 'TAPESCP1' >head
expect 3 "$tapescope" top head
said "no readable header"
mkdir directory
expect 3 "$tapescope" annotate x.c directory
said "directory: Is a directory"

# Names never move the cursor or turn the text: C0, C1, and the controls of direction.
expect 3 "$tapescope" top "$(printf 'a\033b\302\233c\342\200\256d.prof')"
said 'a?b?c?d.prof: No such file'

# Programs that cannot be recorded, or leave nothing.
expect 127 "$tapescope" record -- ./missing
said "cannot run ./missing: No such file"
expect 126 "$tapescope" record ./text
said "cannot run ./text: Permission denied"
expect 2 "$tapescope" record -o nowhere/x.prof true
said "cannot write nowhere/x.prof: No such file or directory"
expect 2 "$tapescope" record -o directory true
said "cannot write directory: Is a directory"
expect 125 "$tapescope" record true
said "true wrote no profile: it is not linked with libtapescope, or has said why"
[ ! -e tapescope.prof ] || fail "an empty profile was left"
cp text tapescope.prof
expect 127 "$tapescope" record -- ./missing
cmp -s text tapescope.prof || fail "the profile of before went with a program that is not there"
cp text tapescope.prof
expect 125 "$tapescope" record true
said "wrote no profile"
mkfifo pipe
expect 2 timeout 20 "$tapescope" record -o pipe true
said "cannot write pipe: Operation not supported"
expect 3 "$tapescope" record sh -c 'exit 3'
said "exited with status 3"
expect 139 "$tapescope" record sh -c 'kill -SEGV $$'
said "sh was killed by SIGSEGV"
expect 162 "$tapescope" record sh -c 'kill -34 $$'
said "sh was killed by signal 34; it wrote no profile"
expect 143 "$tapescope" record sh -c 'kill $PPID; sleep 20 & wait'
said "sh was killed by SIGTERM"
expect 125 "$tapescope" record sh -c 'test "$TAPESCOPE_PROFILE" = "$PWD/tapescope.prof"'

# Without a terminal, live is record.
expect 3 "$tapescope" live -- sh -c 'echo one; echo two; exit 3'
[ "$(cat out)" = "one
two" ] || fail "live does not leave the output alone"
said "sh exited with status 3; it wrote no profile"
expect 0 "$tapescope" live --time exact sh -c 'echo "$TAPESCOPE_OPTIONS"'
[ "$(cat out)" = "time=sampled,tape=on,depth=0,interval=125,time=exact" ] || fail "options of live"
expect 0 env TAPESCOPE_OPTIONS=interval=50 "$tapescope" live sh -c 'echo "$TAPESCOPE_OPTIONS"'
[ "$(cat out)" = "time=sampled,tape=on,depth=0,interval=125,interval=50" ] || fail "defaults of live"
expect 2 "$tapescope" live
said "name the program to run"
expect 127 "$tapescope" live -- ./missing
said "cannot run ./missing"

# Options of the recording travel in the environment, behind those that are there.
expect 125 "$tapescope" record --depth 3 --freq 99 --time sampled --tape off --frames all --unwind fp \
    --timeline 64KiB --steps 2:5 --warmup 1 --snapshot-signal usr2 --follow-fork -- \
    sh -c 'echo "$TAPESCOPE_OPTIONS"'
shown "time=sampled,tape=off,freq=99,depth=3,frames=all,unwind=fp,timeline=65536,steps=2:5,warmup=1,"
shown ",snapshot_signal=usr2,follow_fork=on"
expect 125 env TAPESCOPE_OPTIONS=depth=7 "$tapescope" record --depth 8 sh -c 'echo "$TAPESCOPE_OPTIONS"'
[ "$(cat out)" = "depth=7,depth=8" ] || fail "options are not behind those of the environment"
expect 125 "$tapescope" record sh -c 'echo "${TAPESCOPE_OPTIONS-none}"'
[ "$(cat out)" = "none" ] || fail "options that were not given"
expect 2 "$tapescope" record --time guessed true
said "--time: 'guessed' is none of: exact, sampled, off"

# A program with tapes.
cat >program.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tapescope/ad.h>
static ad_tensor layer(ad_tensor x)
{
    return ad_tanh(x);
}
int main(int argc, char **argv)
{
    double data[8] = {0.5};
    const char *end = argc > 1 ? argv[1] : "";
    for (int i = 0; i < 20; i++) {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){8}, data);
        ad_tensor y = ad_sum(
            ad_mul(layer(x),
                   ad_exp(x)));
        (void)!ad_backward(y);
        if (i == 15 && strcmp(end, "crash") == 0)
            signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
        if (i == 15 && strcmp(end, "kill") == 0)
            raise(SIGKILL);
        ad_tape_destroy(tape);
    }
    return strcmp(end, "fail") == 0 ? 7 : 0;
}
END
build program

# The step clock makes every reading a millisecond, so that flushes come during the run.
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record ./program
said "wrote tapescope.prof:"
grep -qF "20 tapes" err || fail "not 20 tapes"
expect 7 "$tapescope" record -o failed.prof -- ./program fail
said "./program exited with status 7; wrote failed.prof"
expect 139 "$tapescope" record -o crashed.prof ./program crash
grep -qF "was killed by SIGSEGV; crashed.prof holds what was measured until then" err ||
    fail "nothing of the crash"
expect 137 "$tapescope" record -o killed.prof ./program kill
said "was killed by SIGKILL; killed.prof holds what was measured until then"
expect 0 "$tapescope" top killed.prof
said "was killed or is still running; showing what was written before"
shown "program.c:18 "

expect 0 "$tapescope" record -o /dev/null ./program
said "wrote to /dev/null"
expect 7 "$tapescope" record -o /dev/null ./program fail
said "./program exited with status 7; wrote to /dev/null"
expect 125 "$tapescope" record -o /dev/full ./program
said "cannot write /dev/full: No space left on device"
# A pipe as TAPESCOPE_PROFILE is refused, with a reader or without, and nothing waits for one.
expect 0 env TAPESCOPE_PROFILE=pipe timeout 20 ./program
said "it is a pipe, and a profile needs a file"
exec 9<>pipe
expect 0 env TAPESCOPE_PROFILE=pipe timeout 20 ./program
said "it is a pipe, and a profile needs a file"
exec 9>&-
[ ! -e /dev/null ] || [ -c /dev/null ] || fail "/dev/null is no device any more"

# Tables.
for options in "" "--by op" "--by function" "--sort tape" "--sort peak -n 1"; do
    # shellcheck disable=SC2086 # the options are words
    expect 0 "$tapescope" top $options
    [ ! -s err ] || fail "a message"
    awk 'length($0) > 80 { exit 1 }' out || fail "wider than 80 columns: top $options"
    shown "(all)"
done
shown "more lines with"
expect 0 env COLUMNS=200 "$tapescope" top -n 0
shown "program.c:7 tanh layer"
cp out wide
# What narrow terminals lack is there on wide ones.
expect 0 env COLUMNS=140 "$tapescope" top -n 0
head -n 1 out | grep -qE '^share +total forward backward +b/f expect +tape at peak calls line, op, function$' || fail "columns at 140"
expect 0 env COLUMNS=140 "$tapescope" tree
head -n 1 out | grep -qE '^share +total +self forward backward +tape +calls call, op$' || fail "the tree's columns at 140"
expect 0 env COLUMNS=5000 "$tapescope" top -n 0
cmp -s out wide || fail "1000 columns show more than 200"
for columns in 10 x 40x 0 ""; do
    expect 0 env COLUMNS="$columns" "$tapescope" top
    awk 'length($0) > 80 { exit 1 }' out || fail "wider than 80 columns: COLUMNS=$columns"
done
expect 0 "$tapescope" top --sort ba --by fu
shown "function, file, op"
expect 0 "$tapescope" info
shown "complete"
expect 0 "$tapescope" annotate program.c
[ ! -s err ] || fail "a message"
shown "return ad_tanh(x);"
shown "elsewhere: the tape's own"
expect 0 "$tapescope" annotate ./program.c:layer
shown "elsewhere: the rest of the file"
expect 0 "$tapescope" annotate --color program.c
grep -q "$(printf '\033')" out || fail "no colour"
for command in top tree tape info "top --roofline"; do
    expect 0 "$tapescope" $command --color
    grep -q "$(printf '\033\[38;5;172m')" out || [ "$command" = info ] || fail "$command: backward is not orange"
    expect 0 "$tapescope" $command
    grep -q "$(printf '\033')" out && fail "$command: colours in a file"
done
expect 2 "$tapescope" annotate tapescope.prof
grep -q "the source is missing, as in: tapescope annotate program.c tapescope.prof; the profile has:" err ||
    fail "nothing is said of the source"
grep -qF "/program.c" err || fail "no list of files"
expect 2 "$tapescope" annotate tapescope.prof program.c
grep -q "the source is missing" err || fail "a profile is taken for a source"
expect 2 "$tapescope" annotate ./
grep -qF "it has:" err || fail "no hint at other files"
expect 0 "$tapescope" annotate "./../$(basename "$PWD")/program.c"
shown "return ad_tanh(x);"
expect 2 "$tapescope" annotate other.c
grep -qF "has no file 'other.c'; it has:" err || fail "no hint at other files"
grep -qF "/program.c" err || fail "no list of files"
expect 2 "$tapescope" annotate program.c:nothing
grep -qF "no function 'nothing'" err && grep -qE '^tapescope:   main$' err || fail "not the functions that there are"

# The tree of calls: its root has the totals, and each call its callers.
expect 0 "$tapescope" tree
[ ! -s err ] || fail "a message"
shown "layer program.c:7 tanh"
awk '/main program.c:/ { main = 1 } /^.*    ?layer program.c:7 tanh/ { found = main } END { exit !found }' \
    out || fail "layer is not below main"
for columns in 40 80 200; do
    expect 0 env COLUMNS=$columns "$tapescope" tree
    awk -v most=$columns 'length($0) > most { exit 1 }' out || fail "wider than $columns: tree"
done
expect 0 "$tapescope" info --exact
total=$(awk '$1 == "calls" { c = $2 } $1 == "forward" { f = $2 } $1 == "backward" { b = $2 }
    /^bytes handed out/ { h = $4 } END { print f + b, f, b, h, c }' out)
for options in "" "--by function" "--recursion=flat" "--frames all" "--max-depth 1" "--sort source"; do
    # shellcheck disable=SC2086 # the options are words
    expect 0 "$tapescope" tree --exact $options
    sum=$(awk '$NF == "(all)" { print $2, $4, $5, $6, $7 }' out)
    [ "$sum" = "$total" ] || fail "the tree's root has $sum, info has $total: $options"
done
expect 0 "$tapescope" tree --inverted -m calls
shown "its callers"
expect 0 "$tapescope" tree --focus layer
shown "(left out)"
expect 0 "$tapescope" top --cum --by function
shown "Each row has all that it called as well."
awk '/ main program.c/ { exit !($1 == "100%" || $1 + 0 > 99) }' out || fail "main is not all"
expect 2 "$tapescope" top --cum --by op
said "--cum goes with"
expect 0 "$tapescope" tree --exact --flat --by function
[ "$(grep -c ' layer program.c' out)" -eq 1 ] || fail "layer is not there once"
[ "$(awk '/ main program.c/ { print $2 }' out)" = "${total%% *}" ] || fail "main has not all"
shown "rows overlap"
expect 2 "$tapescope" tree --flat --inverted
said "does not go with --flat"
expect 0 "$tapescope" tree --frames all
shown "__libc_start"
expect 0 "$tapescope" tree --json
shown '"tapescope": "tree"'
expect 2 "$tapescope" tree --focus '('
said "is no regular expression"
expect 2 "$tapescope" tree --metric size
said "size"
expect 0 "$tapescope" record --depth 0 -o flat.prof ./program
expect 0 "$tapescope" tree flat.prof
shown "has no call paths"

# The columns add up to the totals: above the totals are the lines of the source and of elsewhere.
expect 0 "$tapescope" info --exact
total=$(awk '$1 == "calls" { c = $2 } $1 == "forward" { f = $2 } $1 == "backward" { b = $2 }
    /^bytes handed out/ { h = $4 } END { print c, f, b, h }' out)
for file in program.c program.c:layer; do
    expect 0 "$tapescope" annotate --exact $file
    sum=$(awk -v name="${file%%:*}" '
        function number(s) { return s ~ /^-?[0-9]+$/ || s == "-" }
        !number($2) || !number($3) || !number($5) || !number($7) { next }
        $9 == "total" || index($9, name) == 1 {
            if ($2 != c || $3 != f || $5 != b || $7 != h) exit 1
            if ($9 == "total") print $2, $3, $5, $7
            next
        }
        { c += $2; f += $3; b += $5; h += $7 }' out) || fail "the columns of $file do not add up"
    [ "$sum" = "$total" ] || fail "$file has $sum, info has $total"
done

# JSON is what python3 reads, and says the same.
if command -v python3 >/dev/null; then
    for options in "" "--by op" "--by file --phase backward" "--roofline" "--focus exp"; do
        # shellcheck disable=SC2086 # the options are words
        expect 0 "$tapescope" top --json $options
        python3 -m json.tool <out >/dev/null || fail "no JSON: $options"
    done
    expect 0 "$tapescope" info --json
    python3 -c 'import json, sys
t = json.load(open("out"))["total"]
print(t["calls"], t["forward_ns"], t["backward_ns"], t["tape_bytes"])' >sum
    [ "$(cat sum)" = "$total" ] || fail "JSON has $(cat sum), info has $total"
    expect 0 "$tapescope" top --json -n 0
    python3 -c 'import json
t = json.load(open("out"))
r = t["rows"]
print(*(sum(x[k] or 0 for x in r) for k in ("calls", "forward_ns", "backward_ns", "tape_bytes")))' >sum
    [ "$(cat sum)" = "$total" ] || fail "the rows of JSON have $(cat sum), info has $total"
fi

# Which lines and phases, and where their sources are.
expect 0 "$tapescope" top --focus 'program\.c:7' --by line
shown "tanh layer"
shown "(left out)"
grep -q 'mul main' out && fail "a line that does not match"
expect 0 "$tapescope" top --ignore layer
grep -q 'tanh layer' out && fail "a line that is ignored"
expect 2 "$tapescope" top --focus '('
said "no regular expression"
expect 0 "$tapescope" top --phase forward
grep -qE '^share.*backward' out && fail "a phase that was not asked for"
expect 2 "$tapescope" top --phase sideways
said "'sideways' is none of: forward, backward, recompute"
expect 0 "$tapescope" top --roofline
shown "Gflop/s"
for columns in 40 60 80 200; do
    for command in "top" "top --by function" "top --roofline" "top --sort ratio"; do
        # shellcheck disable=SC2086 # the command is words
        expect 0 env COLUMNS=$columns "$tapescope" $command
        awk -v w=$columns 'length($0) > w { exit 1 }' out || fail "wider than $columns: $command"
    done
done
expect 2 "$tapescope" top --map nothing
said "--map: 'nothing' is not OLD=NEW"

# Only what costs, with a line around it.
expect 0 "$tapescope" annotate --context 1 program.c
shown "return ad_tanh(x);"
grep -q 'strcmp(end, "fail")' out && fail "a line without cost, and far from any"
expect 2 "$tapescope" annotate --context many program.c
said "'many' is not a number"

# Files beside the sources, of which only our own are replaced.
expect 0 "$tapescope" annotate --write
shown "/program.c.tape"
grep -q "return ad_tanh(x);" program.c.tape || fail "no source in program.c.tape"
expect 0 "$tapescope" annotate --write --exact
grep -qF "elsewhere: the tape's own" program.c.tape || fail "the file was not replaced"
echo "my own notes" >program.c.tape
expect 1 "$tapescope" annotate --write
said "program.c.tape is no file of 'annotate --write': it stays as it is"
[ "$(cat program.c.tape)" = "my own notes" ] || fail "a file of another's was overwritten"
rm program.c.tape
ln -s nowhere program.c.tape
expect 1 "$tapescope" annotate --write
[ ! -e nowhere ] || fail "written through a link"
rm program.c.tape
mkdir tapes
expect 0 "$tapescope" annotate --write --output tapes
[ -s tapes/program.c.tape ] || fail "no tapes/program.c.tape"
expect 1 "$tapescope" annotate --write --output missing
said "annotate: cannot write missing/program.c.tape: No such file or directory"
expect 2 "$tapescope" annotate --write program.c tapescope.prof
said "--write takes a profile, no source files"

# Sources that lie elsewhere than where they were compiled, and such as were changed since.
mkdir moved
mv program.c moved/
expect 0 "$tapescope" annotate program.c
said "showing line numbers without text"
expect 0 "$tapescope" annotate --map "$PWD=$PWD/moved" program.c
[ ! -s err ] || fail "a message"
shown "return ad_tanh(x);"
shown "$PWD/moved/program.c"
mv moved/program.c .
touch -d tomorrow program.c
expect 0 "$tapescope" annotate program.c
said "program.c is newer than the program: its lines may have moved"
expect 0 "$tapescope" html -o aged.html
grep -q "program.c is newer than the program: costs may stand beside other lines" err ||
    fail "html says nothing of a changed source"
touch -r program program.c
expect 0 "$tapescope" html -o aged.html
grep -q newer err && fail "a source of the program's time is newer"
cp -p program kept
sleep 0.01 # the clock of files is coarse
touch program.c
touch -d tomorrow program # built again since it was recorded
expect 0 "$tapescope" annotate program.c
said "program.c is newer than the program"
mv kept program
touch -r program program.c

# Only what fits beside the source.
expect 0 "$tapescope" annotate program.c
grep -q '^share calls forward backward  b/f    tape through line ' out || fail "columns at 80"
expect 0 env COLUMNS=40 "$tapescope" annotate program.c
grep -q '^forward backward    tape line ' out || fail "columns at 40"
expect 0 env COLUMNS=200 "$tapescope" annotate program.c
grep -q '^share calls forward per call backward .* kept by ' out || fail "columns at 200"
if command -v python3 >/dev/null; then
    expect 0 "$tapescope" annotate --json program.c
    python3 -c 'import json
d = json.load(open("out"))
for key in ("calls", "forward_ns", "backward_ns", "tape_bytes"):
    assert sum(p[key] or 0 for p in d["parts"].values()) == d["total"][key], key
    assert sum(l[key] or 0 for l in d["lines"]) == (d["parts"]["shown"][key] or 0), key
assert any("ad_tanh" in l["text"] for l in d["lines"])' 2>err || fail "annotate --json"
fi

# Two processes under one record: neither takes the other's place.
expect 0 "$tapescope" record -o first.prof -- sh -c './program & wait; ./program'
grep -qF "first.prof holds another process" err || fail "nothing of the second process"
expect 0 "$tapescope" top first.prof
expect 0 "$tapescope" top first.prof.*

# Files of one name in two folders, compiled by their relative paths; line tables alone.
for folder in one two; do
    mkdir -p "$folder/src"
    cat >"$folder/src/f.c" <<END
#include <tapescope/ad.h>
ad_tensor $folder(ad_tensor x);
ad_tensor $folder(ad_tensor x)
{
    return ad_exp(x);
}
END
done
cat >both.c <<'END'
#include <tapescope/ad.h>
ad_tensor one(ad_tensor x), two(ad_tensor x);
int main(void)
{
    double data[2] = {1, 2};
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, data);
    two(two(one(x)));
    ad_tape_destroy(tape);
    return 0;
}
END
export CPATH="$TAPESCOPE_INCLUDE_DIRS"
for compiler in "$TEST_C_COMPILER -g" "${TEST_CLANG:+$TEST_CLANG -g1 -O2}"; do
    [ -n "$compiler" ] || continue
    case $compiler in *-g1*) [ -z "${TEST_SANITIZE_FLAGS:-}" ] || continue ;; esac
    # shellcheck disable=SC2086 # the compiler and its flags are several words
    (cd one && $compiler ${TEST_SANITIZE_FLAGS:-} -c src/f.c -o f.o) &&
        (cd two && $compiler ${TEST_SANITIZE_FLAGS:-} -c src/f.c -o f.o) &&
        $compiler ${TEST_SANITIZE_FLAGS:-} -o both both.c one/f.o two/f.o -L"$TAPESCOPE_LIB_DIR" \
            -ltapescope -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || fail "$compiler"
    expect 0 "$tapescope" record -o both.prof ./both
    expect 0 "$tapescope" annotate --exact one/src/f.c both.prof
    awk '/ return ad_exp/ && $2 == 1 { found = 1 } END { exit !found }' out ||
        fail "$compiler: one call in one/src/f.c"
    expect 0 "$tapescope" annotate --exact two/src/f.c both.prof
    awk '/ return ad_exp/ && $2 == 2 { found = 1 } END { exit !found }' out ||
        fail "$compiler: two calls in two/src/f.c"
    expect 2 "$tapescope" annotate f.c both.prof
    grep -qF "may be any of these" err || fail "two files of one name are not told apart"
done

# The source as it is now.
touch -d '+1 hour' program.c
expect 0 "$tapescope" annotate program.c
said "program.c is newer than the program"
mv program.c moved.c
expect 0 "$tapescope" annotate program.c
said "showing line numbers without text"
shown " 18"
expect 0 "$tapescope" annotate ./../program.c
shown " 18"

# A report that cannot be written.
"$tapescope" info >/dev/full 2>err
[ $? -eq 1 ] || fail "a full disk went unnoticed"
: >out
said "cannot write the report: No space left on device"

if [ $failures -gt 0 ]; then
    echo "test_cli: $failures failures"
    exit 1
fi
echo "test_cli: ok"
