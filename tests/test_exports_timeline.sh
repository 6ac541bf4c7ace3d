#!/bin/sh
# test_exports_timeline.sh: exports of single events are decoded by their schemas, and their sums are
# compared with `tapescope info`.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/cli_support.inc
. "$TEST_SOURCE_DIR/cli_support.inc"
# shellcheck source=tests/consumers.inc
. "$TEST_SOURCE_DIR/consumers.inc"
need protoc protobuf-compiler
need jq jq
record_program

# Chrome's trace events: slices, an arrow from each op to its pullback, the greatest counter.
expect 0 "$tapescope" export -f chrome -o x.json
same "the slices' forward, recompute, backward" "$forward $recompute $backward" "$(jq -r '
    [.traceEvents[] | select(.cat == "sweep")] as $sweep |
    [.traceEvents[] | select(.cat == "forward") | . as $op |
        {dur, again: any($sweep[]; .ts <= $op.ts and $op.ts < .ts + .dur)}] as $op |
    ([$op[] | select(.again | not).dur] | add) as $forward | ([$op[] | select(.again).dur] | add) as $again |
    [$forward, $again, ([$sweep[].dur] | add) - $again] | map(. * 1000 | tostring) | join(" ")' x.json)"
same "arrows" "$(jq -c '[.traceEvents[] | select(.cat == "backward" and .args.record != null)] | length' x.json)" \
    "$(jq -c '[.traceEvents[] | select(.ph == "s")] as $s | [.traceEvents[] | select(.ph == "f")] as $f |
        if [$s[].id] | unique == ([$f[].id] | unique) then $f | length else "ids" end' x.json)"
same "the counter's peak" "$peak" "$(jq '[.traceEvents[] | select(.ph == "C").args.bytes] | max' x.json)"
TAPESCOPE_CLOCK=step:1000 expect 0 "$tapescope" record -o short.prof ./exports
expect 1 "$tapescope" export -f chrome -o y.json short.prof
said "export: short.prof: it has no timeline; record one by: tapescope record --timeline 64MiB"
[ ! -e y.json ] || fail "a file was left"

# Two processes: twice the slices and the arrows, none from one to the other.
expect 0 "$tapescope" merge -o sum.prof tapescope.prof tapescope.prof
expect 0 "$tapescope" export -f chrome -o sum.json sum.prof
same "slices of two processes" "1,2 $((2 * (forward + recompute)))" "$(jq -r '[.traceEvents[] | select(.cat == "forward")] |
    "\([.[].pid] | unique | join(",")) \([.[].dur] | add * 1000)"' sum.json)"
same "arrows of two processes" "$(jq '[.traceEvents[] | select(.ph == "f")] | length * 2' x.json)" \
    "$(jq '([.traceEvents[] | select(.ph == "s") | {(.id | tostring): .pid}] | add) as $from |
        [.traceEvents[] | select(.ph == "f" and $from[.id | tostring] == .pid)] | length' sum.json)"

# The document has the same events.
expect 0 "$tapescope" export -f json -o document.json
same "the document's events" "$(jq -c '[.traceEvents[] | select(.ph == "X") | [.ts * 1000, .dur * 1000, .cat]]' x.json)" \
    "$(jq -c '[.events[] | [.start_ns, .ns, .kind]]' document.json)"
same "the document's pairs" "$(jq '[.traceEvents[] | select(.ph == "f")] | length' x.json)" \
    "$(jq '[.events[] | select(.kind == "backward" and .pair > 0)] | length' document.json)"

# Perfetto's packets: nested slices, arrows, the greatest counter.
decode()
{
    expect 0 "$tapescope" export -f "$1" -o x.bin
    protoc -I "$TAPESCOPE_SOURCE_DIR/profiler/export" --decode="$1.$2" "$1.proto" <x.bin >x.txt 2>err ||
        fail "$1 does not decode"
}
decode perfetto Trace
awk -v bare='^ *[0-9]+' '
    $0 ~ bare { print "unknown field " $0; bad = 1 } # of a number that the schema has not
    /^packet/ { type = kind = track = value = flow = at = 0; next }
    $1 == "timestamp:" { at = $2 }
    $1 == "type:" { type = $2 }
    $1 == "category_iids:" { kind = $2 }
    $1 == "track_uuid:" { track = $2 }
    $1 == "counter_value:" && $2 > most { most = $2 }
    $1 == "flow_ids:" { flow = $2 }
    /^}/ && type == 1 {
        if (at < last[track]) { print "a slice begins before the one before"; bad = 1 }
        depth[track]++
        from[track, depth[track]] = at
        kinds[track, depth[track]] = kind
        last[track] = at
        if (flow && kind == 1) op[flow]++
        if (flow && kind == 2) { pullbacks++; if (op[flow] != 1) { print "an arrow from nowhere"; bad = 1 } }
    }
    /^}/ && type == 2 {
        sum[kinds[track, depth[track]]] += at - from[track, depth[track]]
        if (depth[track]-- == 0) { print "an end too many"; bad = 1 }
        last[track] = at
    }
    END {
        for (track in depth) if (depth[track]) { print "a slice without an end"; bad = 1 }
        print sum[1], sum[3], most, pullbacks
        exit bad }' x.txt >out || fail "the packets are not right"
same "Perfetto's ops, sweeps, peak, arrows" "$((forward + recompute)) $((backward + recompute)) $peak $(jq -c \
    '[.traceEvents[] | select(.ph == "f")] | length' x.json)" "$(cat out)"
for text in 'name: "tanh backward"' 'name: "forward depth=2"' 'file_name: "'"$PWD"'/exports.c"' \
    'function_name: "layer"' "line_number: $(grep -n 'ad_tanh(ad_matmul' exports.c | cut -d: -f1)"; do
    grep -qF "$text" x.txt || fail "Perfetto: no $text"
done

# TensorBoard's plane, decoded by the schema alone: TensorBoard itself is not run here.
decode xplane XSpace
awk '
    $1 == "events" { time = 0; event = 1 }
    $1 == "duration_ps:" && event { time = $2 / 1000; event = 0 }
    $1 == "str_value:" && NR == key + 1 && kind == 1 { sum[$2] += time }
    $1 == "metadata_id:" { kind = $2; key = NR }
    $1 == "uint64_value:" && kind == 5 && $2 > most { most = $2 }
    END { print sum["\"forward\""], sum["\"sweep\""], most }' x.txt >out
same "the plane's ops, sweeps, peak" "$((forward + recompute)) $((backward + recompute)) $peak" "$(cat out)"
for text in 'name: "/host:CPU"' 'name: "tanh backward"' 'str_value: "exports.c:'; do
    grep -qF "$text" x.txt || fail "the plane: no $text"
done

[ $failures -eq 0 ] || exit 1
echo "test_exports_timeline: ok"
