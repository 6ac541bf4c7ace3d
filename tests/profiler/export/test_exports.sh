#!/bin/sh
# test_exports.sh: each export is opened by a program that reads its format, and what that adds up is
# compared with `tapescope info`.
#
# Environment: as test_cli.sh; TEST_SOURCE_DIR, TAPESCOPE_BINARY_DIR.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need go golang-go
need callgrind_annotate valgrind
need jq jq
need ms_print valgrind
need heaptrack_print heaptrack
need script bsdutils

record_program
line=$(grep -n 'ad_tanh(ad_matmul' exports.c | cut -d: -f1)

# What is wrong is one line.
expect 2 "$tapescope" export -f pdf
said "export: --format: 'pdf' is none of: pprof, callgrind"
expect 2 "$tapescope" export
grep -q '^tapescope: export: name a format by -f:$' err || fail "no format, and nothing is said"
expect 2 "$tapescope" export -f pprof --split-phase
said "export: --split-phase: pprof always tells the phases apart"
expect 2 "$tapescope" export -f json --split-phase
said "export: --split-phase goes with collapsed, speedscope and callgrind"
expect 1 "$tapescope" export -f csv -o missing/x.csv
said "export: cannot write missing/x.csv: No such file or directory"
# shellcheck disable=SC2016
expect 1 sh -c 'exec "$0" export -f csv >/dev/full' "$tapescope"
said "No space left on device"
expect 3 "$tapescope" export -f csv -o x.csv exports.c
[ ! -e x.csv ] || fail "a file was left"
mkdir folder
expect 1 "$tapescope" export -f csv -o folder
said "export: cannot write folder: Is a directory"
for left in *.??????; do
    [ ! -e "$left" ] || fail "a file that was written aside was left: $left"
done

# What is no file stays what it is.
mkfifo pipe
for format in csv pprof; do
    cat pipe >got &
    expect 0 "$tapescope" export -f $format -o pipe
    wait
    "$tapescope" export -f $format | cmp -s - got || fail "$format: a pipe got something else"
    [ -p pipe ] || fail "a file is in the place of a pipe"
done

# A terminal is sent text alone; a file is sent anything.
"$tapescope" export --help >out
formats=$(tr -s ' \n' ' ' <out |
    sed 's/.*the form of the file: \([a-z, ]*\).*/\1/' | tr -d ,)
expect 2 "$tapescope" export
same "formats that are named" "$(echo "$formats" | tr ' ' '\n' | grep .)" "$(sed -n 's/^  \([a-z]*\)  *for [^:]*: [^*`]*$/\1/p' err)"
for format in $formats; do
    expect 0 "$tapescope" export -f "$format"
    kind=text wanted=0
    tr -d '\000-\010\016-\037' <out >text
    cmp -s text out || kind=binary wanted=2
    expect $wanted script -qec "'$tapescope' export -f $format" /dev/null </dev/null
    if [ $kind = binary ]; then
        shown "export: $format is binary, nothing for a terminal: name a file by -o, or redirect"
        [ "$(wc -l <out)" -eq 1 ] || fail "$format: more than a line on the terminal"
    fi
    echo "$kind" >>kinds
done
same "binary formats" 3 "$(grep -c binary kinds)"

# Sources under other names.
for format in $formats; do
    expect 0 "$tapescope" export -f "$format" --map "$PWD=/else/where" -o plain
    expect 0 sh -c 'gzip -dcf <plain'
    ! grep -qaF "$PWD/exports.c" out || fail "$format: a file under its old name"
    case $format in
    collapsed | chrome | xplane) grep -qaF exports.c: out || fail "$format: no base name" ;;
    *) grep -qaF "/else/where/exports.c" out || fail "$format: no file under its new name" ;;
    esac
done

# pprof: totals, lines of the source, labels, the difference of a profile and itself.
expect 0 "$tapescope" export -f pprof -o x.pb.gz
for what in "forward $forward ns" "backward $backward ns" "recompute $recompute ns" \
    "time $time ns" "tape $tape B" "peak $peak B" "calls $calls "; do
    # shellcheck disable=SC2086
    set -- $what
    expect 0 go tool pprof -top -nodefraction=0 -unit="${3-}" -sample_index="$1" x.pb.gz
    same "pprof's $1" "$2" "$(sed -n "s/.* of \([0-9]*\)\(\.[0-9]*\)\{0,1\}${3-} total\$/\1/p" out)"
    same "pprof's sum of $1" "$2" "$(awk -v unit="${3-}" \
        '/flat%/ { on = 1; next } on { sub(unit "$", "", $1); n += $1 } END { print n }' out)"
done
expect 0 go tool pprof -list '^layer$' -unit=ns -sample_index=backward x.pb.gz
same "pprof's line" "$("$tapescope" export -f csv | awk -F, -v line="$line" \
    '$6 == line { n += $11 } END { print n "ns" }')" \
    "$(awk -v line="$line:" '$3 == line { print $1 }' out)"
shown "return ad_tanh(ad_matmul(x, w));"
expect 0 go tool pprof -tags x.pb.gz
shown "matmul,tanh"
for what in "forward $forward" "backward $backward" "recompute $recompute"; do
    expect 0 go tool pprof -top -nodefraction=0 -unit=ns -sample_index=time -tagfocus="phase=${what% *}" x.pb.gz
    same "pprof's phase $what" "${what#* }ns" "$(sed -n 's/^Showing nodes accounting for \([0-9]*ns\),.*/\1/p' out)"
done
expect 0 go tool pprof -top -diff_base=x.pb.gz x.pb.gz
shown "Showing nodes accounting for 0, 0% of"
expect 0 go tool pprof -peek '^network$' x.pb.gz

# callgrind: totals, the sum of all lines, and inclusive figures that count nothing twice.
expect 0 "$tapescope" export -f callgrind -o x.callgrind
expect 0 callgrind_annotate --auto=no --threshold=100 --show-percs=no x.callgrind
numbers="$time $forward $backward $recompute $calls $tape $peak"
same "callgrind's totals" "$numbers" "$(sed -n 's/,//g; s/ *PROGRAM TOTALS$//p' out | tr -s ' ')"
same "callgrind's sum of functions" "$numbers" "$(sed 's/,//g' out | awk '
    $8 ~ /:/ && $1 ~ /^[0-9]+$/ { for (i = 1; i < 8; i++) n[i] += $i }
    END { for (i = 1; i < 8; i++) printf "%d%s", n[i], i < 7 ? " " : "" }')"
expect 0 callgrind_annotate --auto=no --inclusive=yes --show-percs=no x.callgrind
awk -F'  +' -v time="$time" '{ gsub(",", "", $1) } $1 + 0 > time { exit 1 }' out ||
    fail "callgrind: a function has more than there is"
shown "exports.c:network'3"
expect 0 callgrind_annotate --auto=yes --show-percs=no x.callgrind
shown "    return ad_tanh(ad_matmul(x, w));"

# Stacks: one figure a file.
for what in "time $time" "backward $backward" "peak $peak"; do
    # shellcheck disable=SC2086
    set -- $what
    expect 0 "$tapescope" export -f collapsed -m "$1" -o x.collapsed
    same "the stacks' $1" "$2" "$(awk '{ n += $NF } END { print n }' x.collapsed)"
done
expect 0 "$tapescope" export -f collapsed -m lifetime -o x.collapsed
whole=$("$tapescope" info --json | jq '.sum.byte_seconds * 1e6')
awk -v whole="$whole" '{ n += $NF } END { exit !(n > 0 && n - whole <= NR && whole - n <= NR) }' \
    x.collapsed || fail "the stacks' lifetimes are not the $whole B*us of info"
expect 0 "$tapescope" export -f collapsed -m forward --by function --focus network
shown "main exports.c;step exports.c;network exports.c;network exports.c;layer exports.c "

# Phases side by side: as outermost frames, as the first columns.
for what in "forward $forward" "backward $backward" "recompute $recompute"; do
    expect 0 "$tapescope" export -f collapsed --split-phase
    same "the stacks' $what" "${what#* }" \
        "$(awk -F';' -v phase="${what% *}" '$1 == phase { sub(".* ", ""); n += $0 } END { print n }' out)"
    expect 0 "$tapescope" export -f speedscope --split-phase
    same "speedscope's $what" "${what#* } time" "$(jq -r --arg phase "${what% *}" '.shared.frames as $frame |
        .profiles[0] | [.samples, .weights] | [transpose[] | select($frame[.[0][0]].name == $phase)[1]] |
        add' out) $(jq -r '.profiles[0].name' out)"
done
expect 0 "$tapescope" export -f callgrind --split-phase -o x.callgrind
expect 0 callgrind_annotate --auto=no --threshold=100 --show-percs=no x.callgrind
same "callgrind's phases" "$forward $backward $recompute $time" \
    "$(sed -n 's/,//g; s/ *PROGRAM TOTALS$//p' out | tr -s ' ' | sed 's/^ //' | cut -d ' ' -f 1-4)"

# An editor's list: lines by cost, with their shares.
expect 0 "$tapescope" export -f quickfix
! grep -qv "^$PWD/exports\.c:[1-9][0-9]*: [0-9].*[0-9][KMB]*i*B: [a-z,]*\$" out || fail "what is no line of an editor's list"
same "the first of the list" "$line" "$(sed -n '1s/.*exports\.c:\([0-9]*\): .*/\1/p' out)"
cp out list
if command -v vim >/dev/null; then # which jumps to the first
    expect 0 vim -es -u NONE -i NONE -n -c 'cfile list' \
        -c 'call writefile([len(filter(getqflist(), "v:val.valid")) . " " . expand("%:t") . " " . line(".")], "place")' -c 'qa!'
    same "vim's list" "$(wc -l <list) exports.c $line" "$(cat place)"
fi
"$tapescope" export -f csv | awk -F, -v line="$line" -v time="$time" '
    $6 == line { f += $(NF - 12); b += $(NF - 11); r += $(NF - 10); t += $(NF - 8) }
    END { printf "%.0f %% forward, %.0f %% backward, %.1f %% recompute, %.0fKiB",
        100 * f / time, 100 * b / time, 100 * r / time, t / 1024 }' >wanted
same "its shares" "$(cat wanted)" "$(sed -n '1s/.*:[0-9]*: \(.*\): .*/\1/p' list)"
expect 0 "$tapescope" export -f quickfix -m tape
same "the list by bytes" "$line exp" "$(sed -n '1s/.*:\([0-9]*\): .*/\1/p; 2s/.*: //p' out | paste -sd ' ')"

# CSV and JSON.
expect 0 "$tapescope" export -f csv
same "the table's sums" "$time $forward $backward $recompute $calls $tape $peak" "$(tr -d '\r' <out |
    awk -F'"?,"?' 'NR > 1 { for (i = 0; i < 7; i++) n[i] += $(NF - 13 + i) }
        END { for (i = 0; i < 7; i++) printf "%d%s", n[i], i < 6 ? " " : "" }')"
expect 0 "$tapescope" export -f json -o x.json
for what in "forward_ns $forward" "backward_ns $backward" "recompute_ns $recompute" "tape_bytes $tape" \
    "peak_bytes $peak"; do
    # shellcheck disable=SC2086
    set -- $what
    same "the document's $1" "$2 $2" \
        "$(jq -r --arg key "$1" '"\([.nodes[].self[$key]] | add) \(.total[$key])"' x.json)"
done
same "the moments' peak" "$peak" "$(jq '[.tapes[].moments[].most_bytes] | max' x.json)"
same "the scopes" "forward depth=2,learn" "$(jq -r '[.scopes[].name] | join(",")' x.json)"

# The table is the document's nodes, each line as RFC 4180 has it; a quote may be in a name.
expect 0 "$tapescope" export -f csv --map "$PWD=/a \"quoted\", name"
sed -n "s/$(printf '\r')\$//p" out >table
"$tapescope" export -f json --map "$PWD=/a \"quoted\", name" | jq -r '
    "id,parent,depth,function,file,line,module,ops,time_ns,forward_ns,backward_ns,recompute_ns," +
        "calls,tape_bytes,peak_bytes,other_ns,waiting_ns,samples,estimated_forward_ns," +
        "estimated_backward_ns,forward_error_ns,backward_error_ns",
    (.nodes[] | .self as $own | [.id, .parent, .depth,
        if .id == 0 then "(all)" elif .own then "(tape) \(.ops[0])" else .function end,
        .file // "", .line, .module // "", (.ops | join(",")),
        $own.forward_ns + $own.backward_ns + $own.recompute_ns, $own.forward_ns, $own.backward_ns,
        $own.recompute_ns, $own.calls, $own.tape_bytes, $own.peak_bytes, 0, 0, 0,
        $own.estimated_forward_ns, $own.estimated_backward_ns, null, null] | @csv)' |
    diff - table >differences || fail "the table is another: $(cat differences)"
grep -qF '"/a ""quoted"", name/exports.c"' table || fail "no quotes in the table"

# rows_alike COMMAND...: its table in `out` has the rows of its document, all of them; numbers that are
# not whole are compared to six places.
places='{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9]+\.[0-9]+/) $i = sprintf("%.6f", $i) } 1'
rows_alike()
{
    sed -n "s/$(printf '\r')\$//p" out >table
    "$tapescope" "$@" -n 0 --json | jq -r 'def where: [(.ops | join(",")), .function // if .own then "(tape)" else "" end,
            .file // .module // "", .line];
        def side: if . == null then [range(6) | null] else [.forward_ns, .backward_ns, .recompute_ns, .calls,
            .tape_bytes, .peak_bytes] end;
        .rows[] | if has("kinds") then (.producer | where) + [(.kinds | join(",")), .held_bytes, .peak_bytes,
                .live_bytes, .bytes, .count, .largest_bytes, .read_bytes, .dead_bytes, .unread_bytes,
                .byte_seconds] + [.released_bytes[]] + (.consumer // {ops: [], line: 0} | where) +
                [if .more_consumers then 1 else 0 end]
            elif has("moved") then where + [if .base == null then "new" elif .new == null then "gone"
                elif .moved then "moved" else "" end, .base.line] + (.base | side) + (.new | side)
            else where + [.bytes, .time | (.exponent, .low, .high)] end | @csv' >wanted
    [ "$(wc -l <wanted)" -gt 3 ] || fail "few rows: $*"
    awk -F, -v OFS=, "$places" wanted >wanted.rows
    sed 1d table | cut -d, -f "1-$(head -n 1 wanted | awk -F, '{ print NF }')" |
        awk -F, -v OFS=, "$places" | diff - wanted.rows >differences ||
        fail "$*: the table is another: $(cat differences)"
}
expect 0 "$tapescope" tape --csv
rows_alike tape
same "the tape's bytes" "$peak" "$(sed 1d table | awk -F'"?,"?' '{ n += $(NF - 20) } END { print n }')"
expect 0 "$tapescope" diff --csv plain.prof tapescope.prof
rows_alike diff plain.prof tapescope.prof
expect 0 "$tapescope" growth --csv --sizes 1,2 plain.prof tapescope.prof
rows_alike growth --sizes 1,2 plain.prof tapescope.prof
same "the profiles' bytes" "$("$tapescope" export -f json plain.prof | jq '.total.tape_bytes') $tape" \
    "$(sed 1d table | awk -F'"?,"?' '{ a += $(NF - 5); b += $(NF - 2) } END { print a, b }')"
expect 2 "$tapescope" diff --csv --json plain.prof tapescope.prof
said "diff: --json does not go with --csv"
expect 2 "$tapescope" tape --csv --records
said "tape: --records does not go with --csv"

# Every format is in docs/how-to/exports.md, and its command there does what it says.
page=$TAPESCOPE_SOURCE_DIR/docs/how-to/exports.md
for format in $formats; do
    command=$(sed -n "s/^| \`$format\` |[^|]*| \`\([^\`]*\)\` |.*/\1/p" "$page")
    grep -q "^| \`$format\` |" "$page" || fail "$format is not in the page"
    case $command in
    "go tool"* | callgrind_annotate* | ms_print* | heaptrack_print* | jq*)
        expect 0 "$tapescope" export -f "$format" -o OUT
        expect 0 sh -c "$command" </dev/null
        [ -s out ] || fail "$command prints nothing"
        echo "$format" >>run
        ;;
    esac
done
[ "$(wc -l <run)" -eq 5 ] || fail "not all commands of the page were run"

# Of samples the times are said to be estimates, and all samples are there.
expect 0 "$tapescope" record --time sampled --freq 4000 -o sampled.prof ./exports long
samples=$("$tapescope" info --json sampled.prof | jq .total.samples)
[ "$samples" -gt 0 ] || fail "no samples"
expect 0 "$tapescope" export -f pprof -o x.pb.gz sampled.prof
expect 0 go tool pprof -comments x.pb.gz
shown "times are estimates, from samples"
expect 0 go tool pprof -top -nodefraction=0 -sample_index=samples x.pb.gz
same "pprof's samples" "$samples" "$(sed -n 's/.* of \([0-9]*\) total$/\1/p' out)"
expect 0 go tool pprof -tags -sample_index=samples x.pb.gz
same "pprof's samples of threads" "$samples" "$(sed -n 's/^ *thread: Total \([0-9]*\)\(\.0\)\{0,1\}$/\1/p' out)"
# In an exact profile too, though the tapes are destroyed.
cat >threads.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <tapescope/ad.h>
static void *work(void *calls)
{
    for (int k = 0; k < 3; k++) {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, &(double){1});
        for (int i = 0; i < *(int *)calls; i++)
            x = ad_exp(x);
        if (ad_backward(x) != AD_OK)
            exit(1);
        ad_tape_destroy(tape);
    }
    return NULL;
}
int main(void)
{
    int calls[] = {5, 9};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, work, &calls[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
END
build threads
expect 0 "$tapescope" record -o threads.prof ./threads
expect 0 "$tapescope" merge -o packed.prof threads.prof
for profile in threads.prof packed.prof; do
    expect 0 "$tapescope" export -f pprof --focus '^exp$' -o x.pb.gz $profile
    expect 0 go tool pprof -tags -sample_index=calls x.pb.gz
    same "$profile: calls of threads" "27 15 thread" "$(awk '/: Total/ { on = $1 == "thread:" }
        on && !/: Total/ && NF { sub("[.]0$", "", $1); printf "%s ", $1; n++ } END { if (n) print "thread" }' out)"
done
expect 0 "$tapescope" export -f callgrind -o x.callgrind sampled.prof
expect 0 callgrind_annotate --auto=no --show=samples --show-percs=no x.callgrind
same "callgrind's samples" "$samples" "$(sed -n 's/,//g; s/ *PROGRAM TOTALS$//p' out | tr -d ' ')"

[ $failures -eq 0 ] || exit 1
echo "test_exports: ok"
