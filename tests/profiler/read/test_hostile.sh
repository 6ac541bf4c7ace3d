#!/bin/sh
# test_hostile.sh: profiles that nobody would record, made by hand with protoc: names of 1 MB (10 MB
# with TAPESCOPE_EXHAUSTIVE), bytes that are no text, markup and escapes in every name, counters and
# doubles without bounds, call paths and scopes that are their own callers, paths of 100 000 frames,
# thousands of tapes. Every report and export is made of each, or refused in one line, in bounded time
# and memory; and the page opens.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need protoc protobuf-compiler
need chromium-headless-shell chromium-headless-shell
need jq jq
npm_packages
schema=$TAPESCOPE_BINARY_DIR/generated/private/profile

# ---- profiles by hand ----

# packet <TEXT: one packet as protoc reads it; '\377' there is written \\377 and is not text then.
packet()
{
    protoc --proto_path="$schema" --encode=tapescope.Packet "$schema/profile.proto" >payload ||
        fail "protoc takes no such packet"
    LC_ALL=C sed 's/@NOTEXT@/\xff\xfe\xc0\x80\xed\xa0\x80\x1b/g' payload >bytes
    size=$(wc -c <bytes)
    for shift in 0 8 16 24; do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\$(printf %03o $((size >> shift & 255)))"
    done
    gzip -c bytes | tail -c 8 | head -c 4 # its CRC-32
    cat bytes
}

# text N: a name of N bytes.
text() { head -c "$1" /dev/zero | tr '\0' a; }

# begin NAME: what every profile begins with; a time of 1 ns a tick.
begin()
{
    printf TAPESCP1
    packet <<EOF
header { version: 1 library_version: "0.1" program: "$1" argument: "$1" working_directory: "$1"
    clock: "tsc" collector: "$1" options: "$1" }
EOF
    echo 'clock { ticks: 0 monotonic_ns: 0 }' | packet
    echo 'clock { ticks: 1000000 monotonic_ns: 1000000 }' | packet
}

# named NAME [OTHER]: a profile whose functions, files, ops and scopes are NAME, and all other
# names OTHER, which is NAME if it is not given.
named()
{
    other=${2-$1}
    begin "$other"
    packet <<EOF
modules { module { path: "$other" build_id: "1234" start: 4096 end: 65536 } }
EOF
    packet <<EOF
scopes { scope { id: 1 name: "$1" calls: 2 ticks: 9 key { key: "$other" value: -3 } } }
EOF
    packet <<EOF
symbols { symbol { pc: 8192 line: 7 function: "$1" file: "$1" module: "$other" source_line: 7 }
    symbol { pc: 8000 function: "$other" file: "$other.c" source_line: 9 } }
EOF
    packet <<EOF
paths { path { id: 1 pc: 8000 } path { id: 2 parent: 1 pc: 8193 } }
EOF
    packet <<EOF
ledger { tape: 1 row { pc: 8192 line: 7 op: "$1" calls: 3 forward_ticks: 900 backward_ticks: 800
    backward_calls: 3 value_bytes: 4096 peak_bytes: 4096 path: 2 scope: 1 shape: "$other" }
    forward_ticks: 900 backward_ticks: 800 handed_out_bytes: 4096 peak_bytes: 4096 sweeps: 1 }
EOF
    packet <<EOF
residuals { tape: 1 part { count: 3 bytes: 4096 peak_bytes: 4096 last_ticks: 900
    byte_ticks: 5000 by_sweep: 4096 } }
EOF
    packet <<EOF
timeline { tape: 1 ticks: [10, 20] most_bytes: [4096, 10] least_bytes: [0, 0] phase: [0, 1]
    site { op: "$other" pc: 8192 line: 7 tape: 1 thread: 1 } event_site: 0 event_record: 1
    event_start: 5 event_ticks: 7 }
EOF
    packet <<EOF
threads { thread { index: 1 tid: 5 name: "$other" fired: 2 recorded: 2 wall_ns: 9 cpu_ns: 9 } }
EOF
    packet <<EOF
samples { period_ns: 4 sample { index: 1 thread: 1 phase: 1 pc: 8192 line: 7 op: "$other" path: 2
    count: 2 wall_ns: 9 cpu_ns: 9 } }
EOF
    echo 'end { reason: "exit" ticks: 1000000 }' | packet
}

# The counters of a row.
row_counters=$(sed -n 's/^ *ROW(X, \([a-z_]*\), [0-9].*/\1/p' \
    "$TAPESCOPE_SOURCE_DIR/profiler/contract/counters.def")
[ "$(echo "$row_counters" | wc -l)" -ge 18 ] || fail "$(echo "$row_counters" | wc -l) counters"

# counters VALUE DOUBLE: a profile all of whose counters are VALUE and all of whose doubles DOUBLE.
counters()
{
    begin program
    echo "overhead { forward_ticks: $2 backward_ticks: $2 taken_ticks: $1 }" | packet
    packet <<EOF
scopes { scope { id: 1 name: "s" calls: $1 recorded_calls: $1 ticks: $1 sweep_ticks: $1 }
    expectation { id: 1 kind: 0 scope: 1 bound: $2 times: $1 }
    expectation { id: 2 kind: 1 scope: 1 bound: $2 times: $1 } lost: $1 }
EOF
    for op in exp tanh; do # two, the sum of which runs over
        cat <<EOF
row { index: $([ $op = exp ] && echo 1 || echo 2) pc: 8192 line: 7 op: "$op" scope: 1
EOF
        for counter in $row_counters; do echo "$counter: $1"; done
        echo "}"
    done >rows
    {
        echo "ledger { tape: 1 forward_ticks: $1 backward_ticks: $1 handed_out_bytes: $1"
        echo "live_bytes: $1 peak_bytes: $1 peak_count: $1 reserved_bytes: $1 sweeps: $1 ticks: $1"
        cat rows
        echo "}"
    } | packet
    packet <<EOF
residuals { tape: 1 part { producer: 1 count: $1 bytes: $1 peak_bytes: $1 largest_bytes: $1
    first_ticks: $1 by_sweep: $1 byte_ticks: $2 } stretch { part: [0, 0]
    delta: [9223372036854775807, -9223372036854775808] ticks: [$1, $1] flags: [1, 3] } }
EOF
    packet <<EOF
timeline { tape: 1 ticks: [$1, $1] most_bytes: [$1, $1] least_bytes: [$1, $1] phase: [0, 1]
    peak_ticks: $1 site { op: "exp" pc: 8192 tape: 1 } event_site: [0, 0] event_record: [1, -5]
    event_start: [9223372036854775807, 9223372036854775807] event_ticks: [$1, $1] }
EOF
    packet <<EOF
threads { thread { index: 1 fired: $1 recorded: $1 wall_ns: $1 cpu_ns: $1 } process_cpu_ns: $1 }
EOF
    packet <<EOF
samples { period_ns: $1 sample { index: 1 thread: 1 pc: 8192 op: "exp" phase: 1 count: $1
    wall_ns: $1 cpu_ns: $1 } sample { index: 2 thread: 9 stack: [$1, 8000] count: $1 } }
EOF
    echo "end { reason: \"exit\" ticks: $1 }" | packet
}

# paths PATHS ROW_PATH SCOPES ROW_SCOPE: a row with that call path and scope.
paths()
{
    begin program
    echo "modules { module { path: \"/nowhere\" start: 4096 end: 900000000 } }" | packet
    echo "scopes { $3 }" | packet
    {
        echo "paths {"
        eval "$1"
        echo "}"
    } | packet
    packet <<EOF
ledger { tape: 1 row { pc: 8192 op: "exp" calls: 3 forward_ticks: 900 value_bytes: 4096
    peak_bytes: 4096 path: $2 scope: $4 } forward_ticks: 900 handed_out_bytes: 4096
    peak_bytes: 4096 }
EOF
    echo "timeline { tape: 1 ticks: 9 most_bytes: 1 least_bytes: 1 phase: 0 site { op: \"exp\"
        pc: 8192 scope: $4 } event_site: 0 event_record: 1 event_start: 1 event_ticks: 5 }" | packet
    echo 'end { reason: "exit" }' | packet
}

# steep: a line whose forward time was not measured, and one that took next to none. Both have a
# pullback of a second that their flops do not explain; only of the second it is a finding.
steep()
{
    begin program
    packet <<EOF
symbols { symbol { pc: 8192 line: 7 function: "f" file: "/f.c" module: "/m" source_line: 7 }
    symbol { pc: 8208 line: 9 function: "f" file: "/f.c" module: "/m" source_line: 9 } }
EOF
    for i in 0 1; do
        cat <<EOF
row { index: $((i + 1)) pc: $((8192 + 16 * i)) line: $((7 + 2 * i)) op: "exp" calls: 1
    forward_ticks: $i forward_flops: 9 forward_moved: 9 backward_calls: 2
    backward_ticks: 1000000000 steady_backward_ticks: 1000000000 backward_flops: 9 backward_moved: 9
    value_bytes: 1047552 peak_bytes: 1047552 }
EOF
    done >rows
    {
        echo "ledger { tape: 1 sweeps: 1 forward_ticks: 1 backward_ticks: 2000000000"
        echo "handed_out_bytes: 2095104 peak_bytes: 2095104"
        cat rows
        echo "}"
    } | packet
    packet <<EOF
residuals { tape: 1 part { producer: 1 count: 1 bytes: 1047552 peak_bytes: 1047552
    byte_ticks: 1047552000000 } }
EOF
    packet <<EOF
timeline { tape: 1 ticks: [10, 20] most_bytes: [2095104, 10] least_bytes: [0, 0] phase: [0, 1]
    site { op: "exp" pc: 8192 line: 7 tape: 1 } event_site: 0 event_record: 1 event_start: 5
    event_ticks: 1000000000 }
EOF
    echo 'end { reason: "exit" ticks: 2000000000 }' | packet
}

# deep N: the call paths 1 to N, each called by the one before.
deep() { awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++)
    print "path { id: " i " parent: " i - 1 " pc: " 8000 + 16 * i " }" }'; }

# ---- what is made of them ----

# Memory and processor time that suffice for any of these profiles, however busy the machine is;
# sanitizers need more of both.
memory=unlimited seconds=40
[ -n "${TEST_SANITIZE_FLAGS:-}" ] || memory=1048576 seconds=20
long=1000000
[ -z "${TAPESCOPE_EXHAUSTIVE:-}" ] || long=10000000

# wrong WHAT: as fail, of files that may be very long.
wrong()
{
    echo "FAILED: $*"
    head -c 2000 err
    failures=$((failures + 1))
}

# bounded COMMAND...: what it ends with is 0, or 1 or 3 and one line that is not long.
bounded()
{
    # shellcheck disable=SC3045 # dash has -v and -t; what waits for ever ends by timeout
    (ulimit -v $memory && ulimit -t $seconds && exec timeout $((3 * seconds)) "$@") >out 2>err </dev/null
    got=$?
    case $got in
    0) return 0 ;;
    1 | 3) ;;
    *) wrong "status $got: $*" ;;
    esac
    # Warnings about the file, and about programs that are not there, come before it.
    lines=$(grep -vcE ': no symbols: |bytes after its end' err)
    if [ "$lines" -ne 1 ] || [ "$(wc -c <err)" -ge 100000 ]; then wrong "not one line: $*"; fi
    return "$got"
}

# plain WHAT: the file out is text that a terminal shows and does not obey.
plain()
{
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]\|\302[\200-\237]')" out ||
        wrong "no text for a terminal: $1"
}

# The formats of exports, each with its form.
export_formats=$(sed -n 's/^ *ROW(X, \([a-z]*\), \([A-Z]*\),.*/\1:\2/p' \
    "$TAPESCOPE_SOURCE_DIR/profiler/export/export_formats.def")
[ "$(echo "$export_formats" | wc -l)" -ge 12 ] || fail "formats: $export_formats"

# Every report, of $profile.
reports()
{
    cat <<EOF
info
info --exact
info --json
top
top --sort tape
top --by op
top --by function
top --by scope
top --by shape
top --roofline
top --expectations
top --json
tree
tree --inverted
tree --flat
tree --json
tape
tape --dead
tape --json
whatif
whatif --json
tape --records -n 20
tape --records --json
diff $profile
diff --json $profile
merge -o sum.prof $profile
merge -o packed.prof
html -o $1.html --base $profile
html -o growth.html --sizes 1,2,3 $profile $profile
growth --sizes 1,2,3 $profile $profile
EOF
}

# They are of every command that reads a profile and writes a report of it: of all that the program
# has, but those that run or serve something, and those that the tests below or their own tests try.
elsewhere=" record live attach stat help annotate check export cc c++ "
for command in $("$tapescope" help --completion bash | sed -n "s/^        choices='\\([a-z ]*\\)--help.*/\\1/p"); do
    case $elsewhere in
    *" $command "*) ;;
    *) profile=x reports x | grep -q "^$command\\>" || fail "$command is not tried" ;;
    esac
done

# taken COMMAND: whether it is tried on this profile. Each profile has the page and a third of the rest,
# the next one the next third; with TAPESCOPE_EXHAUSTIVE it has all.
n=0
taken()
{
    turn=$((turn + 1))
    [ "$1" = html ] || [ -n "${TAPESCOPE_EXHAUSTIVE:-}" ] || [ $(((turn + n) % 3)) -eq 0 ] || return 1
    tried=$((tried + 1))
}

# survives NAME: every report, export and page of NAME.prof. The page is NAME.html.
survives()
{
    profile=$1.prof
    made=0 tried=0 n=$((n + 1)) turn=0
    while read -r command; do
        taken "${command%% *}" || continue
        # shellcheck disable=SC2086 # words
        if bounded "$tapescope" $command "$profile"; then
            made=$((made + 1))
            case $command in
            *--json*) jq -e . <out >/dev/null 2>&1 || fail "no JSON: $command $profile" ;;
            *) plain "$command $profile" ;;
            esac
        fi
    done <<EOF
$(reports "$1")
EOF
    for row in $export_formats; do
        format=${row%:*}
        taken "$format" || continue
        bounded "$tapescope" export -f "$format" -o "x.$format" "$profile" || continue
        made=$((made + 1))
        case ${row#*:} in
        JSON)
            jq -e . "x.$format" >/dev/null 2>&1 || fail "no JSON: export -f $format $profile" ;;
        TEXT)
            tr -d '\r' <"x.$format" >out # which ends lines of csv
            plain "export -f $format $profile" ;;
        esac
    done
    echo "$1: $made of $tried are made"
    [ $made -ge $((tried - 5)) ] && [ $tried -ge 14 ] || fail "$1: only $made of $tried"
}

# ---- the profiles ----

named 'a\033]0;b\007\r\n\t\010\302\233\"\\,;|%s%n</script><script>alert(1)</script><!--' >escapes.prof
named '@NOTEXT@' >notext.prof
named "$(text $long)" short >long.prof
counters 18446744073709551615 nan >most.prof
counters 4000000000000000000 inf >infinite.prof
counters 3 -1e300 >negative.prof
counters 0 nan >nothing.prof
paths 'echo "path { id: 1 parent: 1 pc: 8000 }"' 1 'scope { id: 1 parent: 1 name: "a" }' 1 >self.prof
paths 'echo "path { id: 1 parent: 2 pc: 8000 } path { id: 2 parent: 1 pc: 8000 }"' 2 \
    'scope { id: 1 parent: 2 name: "a" } scope { id: 2 parent: 1 name: "b" }' 2 >cycle.prof
paths 'echo "path { id: 1 pc: 8000 }"' 7 'scope { id: 1 name: "a" }' 9 >nowhere.prof
paths 'deep 100000' 100000 'scope { id: 1 name: "a" }' 1 >deep.prof
steep >steep.prof
named name >beyond.prof
head -c 100 /dev/zero >>beyond.prof
cat >tapes.c <<'END_OF_C'
#include <tapescope/ad.h>
int main(void)
{
    static ad_tape tape[1000];
    static double x[8];
    for (int i = 0; i < 1000; i++) {
        if (ad_tape_create(&tape[i], &(ad_tape_options){.budget_bytes = 1 << 20}) != AD_OK)
            return 1;
        (void)!ad_backward(ad_sum(ad_exp(ad_leaf(tape[i], AD_F64, 1, (int64_t[]){8}, x))));
    }
    return 0;
}
END_OF_C
compile tapes
expect 0 "$tapescope" record -o tapes-1.prof --timeline 1MiB ./tapes
expect 0 "$tapescope" merge -o tapes.prof tapes-1.prof tapes-1.prof tapes-1.prof tapes-1.prof

pages=
for name in escapes notext long most infinite negative nothing self cycle nowhere deep steep beyond \
    tapes; do
    survives $name
    [ -s $name.html ] && pages="$pages $name.html"
done
grep -q 'alert(' escapes.html && fail "a name is in the page as it is"
"$tapescope" top --json steep.prof >out
[ "$(jq -c '[.rows[] | [.forward_ns, .slow_backward]] | sort' out)" = '[[null,false],[1,true]]' ] ||
    fail "nothing is slow"
if [ -z "${TEST_SANITIZE_FLAGS:-}" ]; then # which changes no page
    # shellcheck disable=SC2086 # words
    expect 0 node "$TEST_SOURCE_DIR/npm/views.cjs" --turns $pages
    shown 'views: ok'
fi

[ $failures -eq 0 ] || exit 1
echo "test_hostile: ok"
