#!/bin/sh
# test_waiting.sh: what calls waited is worked out of the profiles of all ranks: who is late by a
# sleep makes the others wait at least so long, in the right call and phase, and nobody else.
set -eu
bin=$(dirname "$TAPESCOPE_PROGRAM")
TAPESCOPE_MODULE_DIR="$TAPESCOPE_LIB_DIR/tapescope"
export TAPESCOPE_MODULE_DIR
work="$TEST_BINARY_DIR/waiting"
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# waits_run NAME OPTIONS: the profiles NAME.0 to NAME.2
waits_run()
{
    timeout 100 env TAPESCOPE_OPTIONS="$2" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    "$TEST_MPIEXEC" --oversubscribe --mca btl self,vader --mca btl_vader_single_copy_mechanism none \
    --mca mpi_yield_when_idle 1 -n 3 \
        sh -c '[ -z '"$1"' ] || export TAPESCOPE_PROFILE='"$1"'.$OMPI_COMM_WORLD_RANK; exec "$0"' "$bin/mpi_waits"
}
waits_run waits ""

# rows PROFILE...: rank, op, phase, calls, those measured, milliseconds waited and transferred, of each
# line and rank; then of each rank "rank", messages that were left out, whether its clock has met.
rows()
{
    "$TAPESCOPE_PROGRAM" ranks --json -n 1 "$@" >json 2>said || { cat said; exit 1; }
    jq -r '(.messages[] | "\(.rank) \(.op) \(.phase) \(.calls) \(.measured_calls) \((.waiting_ns // 0) / 1e6) \((.transfer_ns // 0) / 1e6)"),
        (.ranks[] | "rank \(.messages_left_out) \(.clock.met)")' json
}

# Of profiles that begin behind ad_mpi_init, clocks meet before the first sweep.
MPI_WAITS_PROFILE=late waits_run "" ""
rows late >late.rows
[ "$(grep -c '^rank 0 true$' late.rows)" -eq 3 ] || { echo "FAILED: clocks of late profiles"; cat late.rows; exit 1; }

rows waits >rows

failed=0
# waits RANK OP PHASE LEAST MOST: milliseconds, of the sleep of 200
waits()
{
    awk -v rank="$1" -v op="$2" -v phase="$3" -v least="$4" -v most="$5" '
        $1 == rank && $2 == op && $3 == phase {
            calls += $4; measured += $5; ms += $6; least_transfer = $7 < 0 ? -1 : 0
        }
        END { exit !(calls > 0 && measured == calls && ms >= least && ms < most && least_transfer == 0) }
    ' rows || { echo "FAILED: rank $1 $2 $3: not from $4 to $5 ms"; failed=1; }
}

waits 0 mpi_bcast forward 0 100
waits 1 mpi_bcast forward 150 100000
waits 2 mpi_bcast forward 150 100000
waits 0 mpi_allreduce forward 150 100000
waits 1 mpi_allreduce forward 0 100
waits 2 mpi_allreduce forward 150 100000
waits 0 mpi_send forward 0 100
waits 1 mpi_recv forward 150 100000
waits 2 mpi_send forward 0 100
waits 0 mpi_allreduce backward 150 100000
waits 1 mpi_allreduce backward 150 100000
waits 2 mpi_allreduce backward 0 100
awk '$1 == "rank" { n++; if ($2 != 0 || $3 != "true") bad = 1 } END { exit !(n == 3 && !bad) }' rows ||
    { echo "FAILED: clocks"; failed=1; }

# A message that takes much of the time is waiting, not arithmetic: info says where that is told apart.
"$TAPESCOPE_PROGRAM" info waits.0 waits.1 waits.2 >info
grep -q ' tapescope ranks waits.0$' info && ! grep -q roofline info ||
    { cat info; echo "FAILED: what info says of a message"; failed=1; }

# Packed profiles say the same.
for n in 0 1 2; do
    "$TAPESCOPE_PROGRAM" merge -o packed.$n waits.$n >/dev/null 2>&1 || { echo "FAILED: packed"; failed=1; }
done
rows packed.0 packed.1 packed.2 >packed
cmp -s rows packed || { diff rows packed; echo "FAILED: packed profiles differ"; failed=1; }

# Exports have a process for each rank with a row of its messages; each send and what came of it have
# one number, and the transfer begins behind the send by rank 0's clock.
"$TAPESCOPE_PROGRAM" export -f json -o all.json waits.0 waits.1 waits.2
"$TAPESCOPE_PROGRAM" ranks --json waits.0 waits.1 waits.2 >ranks.json
for member in ranks messages; do
    [ "$(jq -c ".$member" all.json)" = "$(jq -c ".$member" ranks.json)" ] ||
        { echo "FAILED: $member of export and ranks"; failed=1; }
done
# A collective call has them from the last to all that have waited.
pairs=$(jq -r '[.events[] | select(.pair > 0)] as $e | [$e[] | select(.kind == "message") | . as $send |
    $e[] | select(.kind == "transfer" and .pair >= $send.pair and .pair < $send.pair + $send.pairs) |
    {from: ($send.process - 1), to: (.process - 1), what: $send.name, late: (.start_ns > $send.start_ns)}] |
    sort_by(.what, .from, .to) | map("\(.what) \(.from) \(.to) \(.late)") | .[]' all.json |
    grep -E '^mpi_(recv|send|wait|allreduce|bcast [0-9])' | paste -sd ,)
[ "$pairs" = "mpi_allreduce 1 0 true,mpi_allreduce 1 2 true,mpi_allreduce backward 2 0 true,mpi_allreduce backward 2 1 true,mpi_bcast 0 1 true,mpi_bcast 0 2 true,mpi_recv backward 1 0 true,mpi_send 0 1 true,mpi_send 2 1 true,mpi_wait backward 1 2 true" ] ||
    { echo "FAILED: pairs $pairs"; failed=1; }
waited=$(jq -r '[.events[] | select(.kind == "waiting" and .process == 2) | .ns] | add' all.json)
[ "$waited" = "$(jq -r '[.messages[] | select(.rank == 1) | .waiting_ns] | add' all.json)" ] ||
    { echo "FAILED: rank 1 waited $waited"; failed=1; }
"$TAPESCOPE_PROGRAM" export -f chrome -o chrome.json waits.0 waits.1 waits.2
lanes=$(jq -r '[.traceEvents[] | select(.ph == "M") | "\(.pid) \(.args.name | split("/") | first + last)"] | join(",")' chrome.json)
[ "$lanes" = "1 rank 0 mpi_waits,1 rank 0 messagesrank 0 messages,2 rank 1 mpi_waits,2 rank 1 messagesrank 1 messages,3 rank 2 mpi_waits,3 rank 2 messagesrank 2 messages" ] ||
    { echo "FAILED: lanes $lanes"; failed=1; }
# The first four are of messages, the others of collective calls: each begins and ends once.
arrows=$(jq -r '[.traceEvents[] | select(.ph == "f" and .name == "message")] as $to |
    [.traceEvents[] | select(.ph == "s") | . as $s | $to[] | select(.id == $s.id) |
    {id, text: "\($s.pid) \(.pid) \(.ts > $s.ts)"}] |
    [([.[] | select(.id <= 4) | .text] | sort | join(",")), (map(.id) | sort == [range(1; length + 1)]), length >= 10] | map(tostring) | join(" ")' chrome.json)
[ "$arrows" = "1 2 true,2 1 true,2 3 true,3 2 true true true" ] || { echo "FAILED: arrows $arrows"; failed=1; }
n_arrows=$(jq '[.traceEvents[] | select(.ph == "s")] | length' chrome.json)
"$TAPESCOPE_PROGRAM" export -f perfetto -o perfetto.bin waits.0 waits.1 waits.2
protoc -I "$TAPESCOPE_SOURCE_DIR/profiler/export" --decode=perfetto.Trace perfetto.proto \
    <perfetto.bin >perfetto.txt
[ "$(grep -c 'process_name: "rank [012] ' perfetto.txt)" -eq 3 ] &&
    [ "$(grep -c '    name: "messages"' perfetto.txt)" -eq 3 ] || { echo "FAILED: tracks"; failed=1; }
awk '$1 == "timestamp:" { at = $2 } $1 == "track_uuid:" { track = $2 }
    $1 == "flow_ids:" { n[$2]++; if (n[$2] == 1) { first[$2] = at; of[$2] = track } else { last[$2] = at; to[$2] = track } }
    END { for (id in n) { all++; if (n[id] != 2 || of[id] == to[id] || first[id] == last[id]) bad = 1 } exit !(all == '"$n_arrows"' && !bad) }' perfetto.txt ||
    { echo "FAILED: flows of Perfetto"; failed=1; }

# With a timeline the page has a row for each rank's thread, arrows of messages, and rank 0's time; so
# does an export: what is done and the message that it does are at one time.
waits_run lanes timeline=1MiB
"$TAPESCOPE_PROGRAM" html -o lanes.html lanes 2>said || { cat said; failed=1; }
sed -n 's|.*<script type="application/octet-stream" id="profile-data">\([^<]*\)<.*|\1|p' lanes.html |
    base64 -d | gzip -dc >page.json
arrows=$(jq -c '.timeline | [.threads.rank, .threads.process, (.arrows | [.from[:4], .to[:4]] | transpose | sort),
    ([.arrows.sent_ns[:4], .arrows.came_ns[:4]] | transpose | map(.[1] > .[0]) | unique), .arrows_left_out]' page.json)
[ "$arrows" = '[[0,1,2],[1,2,3],[[1,2],[2,1],[2,3],[3,2]],[true],0]' ] || { echo "FAILED: the page's arrows $arrows"; failed=1; }
# drawn TIME ARROWS: so many, of the time in ns that is in view
drawn()
{
    timeout 60 "${TEST_CHROMIUM:-chromium-headless-shell}" --no-sandbox --disable-gpu --dump-dom \
        --virtual-time-budget=20000 "file://$work/lanes.html#view=timeline&time=$1" >dom 2>chromium.err ||
        { cat chromium.err; failed=1; }
    grep -qF "data-arrows=\"$2\"" dom || { echo "FAILED: not $2 arrows drawn of $1"; failed=1; }
}
drawn "" "$(jq '.timeline.arrows.from | length' page.json)"
drawn 0-1000 0
# Around the first one: that, and what else was under way then.
first=$(jq '.timeline.arrows.sent_ns | min' page.json)
some=$(jq "[.timeline.arrows | [.sent_ns, .came_ns] | transpose[] |
    select(.[1] >= $first and .[0] <= $first + 2000)] | length" page.json)
drawn "$first-$((first + 2000))" "$some"
# opened PLACE: the page at this place, in dom.
opened()
{
    timeout 60 "${TEST_CHROMIUM:-chromium-headless-shell}" --no-sandbox --disable-gpu --dump-dom \
        --virtual-time-budget=20000 "file://$work/lanes.html#$1" 2>chromium.err | sed 's/<tr/\n<tr/g; s/<[^>]*>/ /g' >dom
}
# Its tables have a column for each rank and the most over the mean; of one rank alone they have its own.
opened "view=summary&metric=calls"
grep -E 'mpi_recv .* 3\.00 \(1\) +· +1 +·' dom >/dev/null || { echo "FAILED: the page's columns of ranks"; failed=1; }
opened "view=summary&metric=calls&rank=1"
grep -E 'mpi_recv ' dom >/dev/null && ! grep -F '3.00 (1)' dom >/dev/null && grep -E 'Rank 1 .* of all ranks' dom >/dev/null ||
    { echo "FAILED: the page of rank 1"; failed=1; }
opened "view=summary&metric=calls&rank=0"
grep -E 'mpi_recv .* 0 ' dom >/dev/null || grep -E 'mpi_recv .*·' dom >/dev/null || { echo "FAILED: the page of rank 0"; failed=1; }
opened "view=residuals"
grep -F 'max/mean (rank)' dom >/dev/null || { echo "FAILED: no ranks of classes of bytes"; failed=1; }
"$TAPESCOPE_PROGRAM" export -f json -o lanes.json lanes
within=$(jq -c '.events as $e | [$e[] | select(.kind == "message" and .name == "mpi_recv") | . as $m |
    $e[] | select(.kind == "forward" and .name == "mpi_recv" and .process == $m.process) |
    .start_ns <= $m.start_ns + 2000 and .start_ns + .ns + 2000 >= $m.start_ns + $m.ns] | unique' lanes.json)
[ "$within" = "[true]" ] || { echo "FAILED: a message is not within its op: $within"; failed=1; }

"$TAPESCOPE_PROGRAM" export -f json -o met.json waits.0 waits.1 waits.2 2>said
[ ! -s said ] || { echo "FAILED: something is said of clocks that have met"; failed=1; }
"$TAPESCOPE_PROGRAM" export -f json -o unmet.json waits.1 waits.2 2>said
grep -qF "clocks of 2 of 2 ranks have not met rank 0's: they are laid together by the systems' clocks" said ||
    { echo "FAILED: clocks that have not met"; cat said; failed=1; }

# Without the others nothing is measured, but what waits for nobody.
rm waits.1 waits.2
rows waits >alone
awk '$2 == "mpi_allreduce" && $5 != 0 { bad = 1 } $2 == "mpi_allreduce" { n++ } END { exit !(n > 0 && !bad) }' alone ||
    { echo "FAILED: of one rank"; failed=1; }
"$TAPESCOPE_PROGRAM" ranks packed.0 packed.1 packed.2 >table
grep -qE 'waiting' table && grep -qE "^The ranks' clocks are laid together to [0-9.]+ us" table ||
    { echo "FAILED: the table"; cat table; failed=1; }
[ $failed = 0 ] || cat rows alone
exit $failed
