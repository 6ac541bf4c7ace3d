#!/bin/sh
# test_exports_memory.sh: exports of bytes over time are opened by programs that read them, and what
# those find is compared with `tapescope info`.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/cli_support.inc
. "$TEST_SOURCE_DIR/cli_support.inc"
# shellcheck source=tests/consumers.inc
. "$TEST_SOURCE_DIR/consumers.inc"
need ms_print valgrind
need heaptrack_print heaptrack
record_program
place="layer ($PWD/exports.c:$(grep -n 'ad_tanh(ad_matmul' exports.c | cut -d: -f1))"

# massif: the peak is one snapshot, whose holders add up to it.
expect 0 "$tapescope" export -f massif -o x.massif
expect 0 ms_print --threshold=0 x.massif
shown " (peak)]"
shown "100.00% ($(echo "$peak" | sed 's/\(.*\)\(...\)$/\1,\2/')B) (held at the peak)"
shown "$place"
same "massif's holders" "$peak" "$(sed -n 's/^->[0-9.]*% (\([0-9,]*\)B).*/\1/p' out | tr -d , |
    awk '{ n += $1 } END { print n }')"
same "massif's greatest snapshot" "$peak" "$(awk '$1 ~ /^[0-9]+$/ && NF == 6 {
    gsub(",", ""); if ($3 > most) most = $3 } END { print most }' out)"

# heaptrack adds up all changes and finds the peak itself.
expect 0 "$tapescope" export -f heaptrack -o x.heaptrack
expect 0 heaptrack_print -f x.heaptrack -F stacks --flamegraph-cost-type peak
same "heaptrack's peak" "$peak" "$(awk '{ n += $NF } END { print n }' stacks)"
shown "at $PWD/exports.c:"
grep -q "saved value: tanh" stacks || fail "no saved values in heaptrack's stacks"
expect 0 heaptrack_print -f x.heaptrack -F stacks --flamegraph-cost-type leaked
same "heaptrack's rest" 0 "$(awk '{ n += $NF } END { print n + 0 }' stacks)"

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
