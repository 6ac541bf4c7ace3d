#!/bin/sh
# test_exports_memory.sh: exports of bytes over time are opened by programs that read them, and what
# those find is compared with `tapescope info`.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need jq jq
need ms_print valgrind
need heaptrack_print heaptrack
record_program
line=$(grep -n 'ad_tanh(ad_matmul' exports.c | cut -d: -f1)
place="layer ($PWD/exports.c:$line)"

# massif: the peak is one snapshot, whose holders add up to it.
expect 0 "$tapescope" export -f massif -o x.massif
expect 0 ms_print --threshold=0 x.massif
shown " (peak)]"
shown "100.00% ($(echo "$peak" | sed 's/\(.*\)\(...\)$/\1,\2/')B) (held at the peak)"
shown "$place"
same "massif's holders" "$peak" "$(sed -n 's/^->[0-9.]*% (\([0-9,]*\)B).*/\1/p' out | tr -d , |
    awk '{ n += $1 } END { print n }')"
# Its snapshots are the live bytes over time, with one at the beginning, the peak and the end.
"$tapescope" tape --json | jq -r '.at_ns as $at | (.live | map(.ns >= $at) | index(true)) as $i |
    {ns: 0, most_bytes: 0}, .live[:$i][], {ns: $at, most_bytes: .held_bytes}, .live[$i:][],
    {ns: .profile.duration_ns, most_bytes: 0} | "\(.ns) \(.most_bytes)"' >snapshots
awk '$1 ~ /^[0-9]+$/ && NF == 6 { gsub(",", ""); printf "%.0f %d\n", $2 * 1e6, $3 }' out |
    diff snapshots - >differences || fail "massif has other snapshots: $(cat differences)"

# heaptrack adds up all changes and finds the peak itself.
expect 0 "$tapescope" export -f heaptrack -o x.heaptrack
expect 0 heaptrack_print -f x.heaptrack -F stacks --flamegraph-cost-type peak
same "heaptrack's peak" "$peak" "$(awk '{ n += $NF } END { print n }' stacks)"
shown "at $PWD/exports.c:$line"
# Of each function and purpose it finds as much as the command.
"$tapescope" tape --json -n 0 | jq -r '.rows[] | .producer as $at | .kinds[0] as $kind |
    (if $at.own then "(tape) \($at.ops[0])" else "\($at.function) (exports.c)" end) +
    ";\({saved: "saved value"}[$kind] // $kind): \($at.ops[0]) \(.held_bytes)"' | sort >held
awk -F'; *' '{ n[$(NF - 2) ";" $(NF - 1)] += $NF }
    END { for (i in n) if (n[i] > 0) print i, n[i] }' stacks |
    sort | diff held - >differences || fail "heaptrack finds others: $(cat differences)"
expect 0 heaptrack_print -f x.heaptrack -F stacks --flamegraph-cost-type leaked
same "heaptrack's rest" 0 "$(awk '{ n += $NF } END { print n + 0 }' stacks)"

# Its times are whole milliseconds; what it says of one is what was live until then.
TAPESCOPE_CLOCK=step:1000000 expect 0 "$tapescope" record -o slow.prof ./exports
expect 0 "$tapescope" export -f heaptrack -o x.heaptrack slow.prof
expect 0 heaptrack_print -f x.heaptrack -M x.massif
"$tapescope" tape --json slow.prof |
    jq -r '.live[] | "\(.ns / 1000000) \(.least_bytes) \(.most_bytes)"' >live
awk -F'[= ]' 'NR == FNR { least[$1] = $2; most[$1] = $3; next }
    $1 == "time" { at = sprintf("%.0f", $2 * 1000) }
    $1 == "mem_heap_B" && at > 0 && at in least {
        if (n++ > 0 && ($2 < least[last] || $2 > most[last])) print at, $2; last = at }
    END { if (n < 50) print n " times" }' live x.massif >out
[ ! -s out ] || fail "heaptrack's bytes over time are others"

# A call path alone.
expect 0 "$tapescope" export -f heaptrack --focus network -o x.heaptrack
expect 0 heaptrack_print -f x.heaptrack -F stacks --flamegraph-cost-type peak
! grep -qv network stacks || fail "heaptrack has what is not in focus"

# Without bytes there is nothing to show.
expect 0 "$tapescope" record --time sampled -o sampled.prof ./exports
for format in massif heaptrack dhat; do
    expect 1 "$tapescope" export -f $format -o none sampled.prof
    said "it does not know what tapes held and when; record that by"
    [ ! -e none ] || fail "a file was left"
done

[ $failures -eq 0 ] || exit 1
echo "test_exports_memory: ok"
