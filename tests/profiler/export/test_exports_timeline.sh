#!/bin/sh
# test_exports_timeline.sh: exports of single events are decoded by their schemas, and their sums are
# compared with `tapescope info`.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need protoc protobuf-compiler
need jq jq
record_program

# What every timeline has, a line for each: "start|ns|kind|name|place|tape|record" of an event,
# "start of an op|start of its pullback", "time|live bytes".
expect 0 "$tapescope" tape --records --json -n 0
mv out dump.json
jq -r '.events[] | [.start_ns, .ns, {op: "forward", pullback: "backward"}[.kind] // .kind,
    {scope, op, pullback: "\(.op) backward", sweep: "sweep"}[.kind],
    if .file then "\(.file | split("/") | last):\(.line)" else null end,
    if .kind == "scope" then null else .tape end, .place] | map(tostring) | join("|")' dump.json |
    sort >slices.ours
jq -r '.events as $all | $all[] | select(.kind == "pullback" and .place) | . as $to |
    [$all[] | select(.kind == "op" and .place == $to.place and .tape == $to.tape and
        .start_ns < $to.start_ns).start_ns] | "\(max)|\($to.start_ns)"' dump.json | sort >arrows.ours
"$tapescope" tape --json | jq -r '.live[] | "\(.ns)|\(.most_bytes)"' >bytes.ours

# alike FORMAT: the files slices, arrows and bytes have the same lines.
alike()
{
    for what in slices arrows bytes; do
        [ $what = bytes ] || sort -o $what $what
        diff $what.ours $what >out || fail "$1: other $what"
        [ "$(wc -l <$what)" -gt 30 ] || fail "$1: few $what"
    done
}

# slices_of TRACE: its slices in ns, in the order in which they begin, from begins and ends, which are
# nested in the order of the file, as are their times. Times have three digits behind the point.
slices_of()
{
    grep -o '"ts": [^,]*' "$1" | grep -qv '"ts": [0-9]*\.[0-9]\{3\}$' && fail "$1: a time that is not whole ns"
    jq '[.traceEvents[] | select(.ph == "B" or .ph == "E" or .ph == "i")] |
        reduce to_entries[] as {key: $at, value: $e} ({open: {}, last: {}, done: []};
            "\($e.pid) \($e.tid)" as $row | ($e.ts * 1000 | round) as $ts |
            if $ts < (.last[$row] // 0) then error("an event is before the one before") else . end |
            .last[$row] = $ts | (.open[$row] // []) as $open |
            ({cat: $e.cat, name: $e.name, pid: $e.pid} + $e.args) as $slice |
            if $e.ph == "B" then .open[$row] = $open + [$slice + {at: $at, ts: $ts}]
            elif $e.ph == "i" then .done += [$slice + {at: $at, ts: $ts, dur: 0}]
            elif $open == [] or $open[-1].name != $e.name then error("the end of no begin")
            else .open[$row] = $open[:-1] |
                .done += [$open[-1] + $e.args + {dur: ($ts - $open[-1].ts)}] end) |
        if [.open[][]] != [] then error("ends are missing") else .done | sort_by(.at) end' "$1"
}

# Chrome's trace events. An arrow begins and ends within slices, at the one that begins there.
expect 0 "$tapescope" export -f chrome -o x.json
slices_of x.json >slices.json
jq -r '.[] | [.ts, .dur, .cat, .name, .line, .tape, .record] | map(tostring) | join("|")' slices.json >slices
jq -r '.traceEvents | (map(select(.ph == "s") | {key: "\(.id) \(.pid) \(.tid)", value: .ts}) |
    from_entries) as $from | .[] | select(.ph == "f" and .bp == "e") |
    "\($from["\(.id) \(.pid) \(.tid)"] * 1000)|\(.ts * 1000)"' x.json >arrows
jq -r '.traceEvents[] | select(.ph == "C") | "\(.ts * 1000)|\(.args.bytes)"' x.json >bytes
alike Chrome
same "the slices' forward, recompute, backward" "$forward $recompute $backward" "$(jq -r '
    [.[] | select(.cat == "sweep")] as $sweep |
    [.[] | select(.cat == "forward") | . as $op |
        {dur, again: any($sweep[]; .ts <= $op.ts and $op.ts < .ts + .dur)}] as $op |
    ([$op[] | select(.again | not).dur] | add) as $forward |
    ([$op[] | select(.again).dur] | add) as $again |
    [$forward, $again, ([$sweep[].dur] | add) - $again] | map(tostring) | join(" ")' slices.json)"
same "the counter's peak" "$peak" "$(cut -d'|' -f2 bytes | sort -n | tail -1)"
TAPESCOPE_CLOCK=step:1000 expect 0 "$tapescope" record -o short.prof ./exports
expect 1 "$tapescope" export -f chrome -o y.json short.prof
said "export: short.prof: it has no timeline; record one by: tapescope record --timeline 64MiB"
[ ! -e y.json ] || fail "a file was left"

# Two processes: twice the slices and the arrows, none from one to the other.
expect 0 "$tapescope" merge -o sum.prof tapescope.prof tapescope.prof
expect 0 "$tapescope" export -f chrome -o sum.json sum.prof
same "slices of two processes" "1,2 $((2 * (forward + recompute)))" "$(slices_of sum.json |
    jq -r '[.[] | select(.cat == "forward")] | "\([.[].pid] | unique | join(",")) \([.[].dur] | add)"')"
same "arrows of two processes" "$(jq '[.traceEvents[] | select(.ph == "f")] | length * 2' x.json)" \
    "$(jq '([.traceEvents[] | select(.ph == "s") | {(.id | tostring): .pid}] | add) as $from |
        [.traceEvents[] | select(.ph == "f" and $from[.id | tostring] == .pid)] | length' sum.json)"

# The Firefox Profiler's form, version 70: its tables have the columns of src/types/profile.ts, all of
# one length, and every index is one of the table that it is of.
expect 0 "$tapescope" export -f firefox -o firefox.json
jq -r '
    def of(n): type == "number" and . == floor and . >= 0 and . < n;
    def table($columns): keys == ($columns + ["length"] | sort) and
        (.length as $n | all(.[$columns[]]; length == $n));
    def check(name; good): if good then empty else name end;
    .shared as $s | (.meta.categories | length) as $categories | ($s.stringArray | length) as $texts |
    check("versions"; .meta | .preprocessedProfileVersion == 70 and (.version | type) == "number" and
        has("interval") and has("startTime") and has("product") and has("stackwalk") and has("processType")),
    check("categories"; any(.meta.categories[]; .color == "grey") and
        all(.meta.categories[]; .subcategories[0] == "Other")),
    check("stacks"; $s.stackTable | table(["frame", "prefixOffset"]) and
        all(.frame[]; of($s.frameTable.length)) and
        all(.prefixOffset | to_entries[]; .key as $i | .value | of($i + 1))),
    check("frames"; $s.frameTable | table(["address", "lib", "inlineDepth", "category", "subcategory", "func",
            "nativeSymbol", "innerWindowID", "line", "column", "originalLocation"]) and
        all(.func[]; of($s.funcTable.length)) and all(.category[]; . == null or of($categories)) and
        all([.category, .subcategory] | transpose[]; (.[0] == null) == (.[1] == null)) and
        all((.address[], .lib[]); . == -1)),
    check("functions"; $s.funcTable | table(["name", "isJS", "relevantForJS", "resource", "source", "lineNumber",
            "columnNumber", "originalLocation"]) and
        all(.name[]; of($texts)) and all(.source[]; . == null or of($s.sources.length))),
    check("sources"; $s.sources | table(["id", "filename", "startLine", "startColumn", "sourceMapURL", "content"]) and
        all(.filename[]; of($texts))),
    check("what is empty"; ($s.resourceTable | table(["name", "host", "type"])) and
        ($s.nativeSymbols | table(["libIndex", "address", "name", "functionSize"])) and
        ($s.sourceLocationTable | table(["source", "line", "column"])) and .libs == []),
    check("samples"; all(.threads[] | (.samples, (.nativeAllocations | values)); .length as $n |
        (.stack | length) == $n and (.time | length) == $n and .time == (.time | sort) and
        (.weight == null or (.weight | length) == $n) and
        all(.stack[]; . == null or of($s.stackTable.length)))),
    check("markers"; [.meta.markerSchema[].name] as $known | all(.threads[].markers;
        table(["data", "name", "startTime", "endTime", "phase", "category"]) and all(.name[]; of($texts)) and
        all(.category[]; of($categories)) and all(.phase[]; . == 1) and all(.data[]; [.type] - $known == []))),
    check("threads"; all(.threads[]; (.pid | type) == "string" and has("processStartupTime") and
        has("processShutdownTime") and has("registerTime") and has("unregisterTime") and has("pausedRanges")) and
        ([.threads[] | select(.isMainThread)] | length) == 1),
    check("counters"; (.threads | length) as $threads | all(.counters[]; (.samples | table(["time", "count"])) and
        (.mainThreadIndex | of($threads)) and (.display | has("graphType") and has("unit") and has("color") and
        has("markerSchemaLocation") and has("sortWeight") and has("label") and has("tooltipRows"))))
    ' firefox.json >out 2>&1 || fail "Firefox's form cannot be checked"
[ ! -s out ] || fail "Firefox's form is not as documented"
same "Firefox's time, bytes and phases" "$time $tape $forward $backward $recompute" "$(jq -r '
    .shared as $s | [.meta.categories[].name] as $names |
    [.threads[].samples | select(.weightType == "tracing-ms")] as $samples |
    def ms: map(. * 1e6 | round) | add;
    def phase($name): [$samples[] | [.stack, .weight] | transpose[] |
        select($names[$s.frameTable.category[$s.stackTable.frame[.[0]]]] == $name)[1]] | ms;
    "\([$samples[].weight[]] | ms) \([.threads[].nativeAllocations | values | .weight[]] | add) " +
    "\(phase("forward")) \(phase("backward")) \(phase("recompute"))"' firefox.json)"
same "a stack" "main,step,network,network,layer" "$(jq -r '.shared as $s | $s.stackTable as $t |
    def path: . as $i | [$s.stringArray[$s.funcTable.name[$s.frameTable.func[$t.frame[$i]]]]] as $own |
        if $t.prefixOffset[$i] == 0 then $own else ($i - $t.prefixOffset[$i] | path) + $own end;
    [.threads[0].samples.stack[] | path | select(length == 5 and .[2] == "network")][0] | join(",")' firefox.json)"
jq -r '.shared.stringArray as $text | .threads[].markers | . as $m | range(.length) | . as $i |
    [$m.startTime[$i] * 1e6, ($m.endTime[$i] - $m.startTime[$i]) * 1e6] + [$m.data[$i].type, $text[$m.name[$i]],
    $m.data[$i].line, $m.data[$i].tape, $m.data[$i].record] |
    map(if type == "number" then round else . end | tostring) | join("|")' firefox.json >slices
jq -r '.counters[].samples | . as $c | reduce range(.length) as $i ({n: 0, out: []}; .n += $c.count[$i] |
    .out += ["\($c.time[$i] * 1e6 | round)|\(.n)"]) | .out[]' firefox.json >bytes
cp arrows.ours arrows
alike "Firefox's form"

# The document has the same events.
expect 0 "$tapescope" export -f json -o document.json
same "the document's events" "$(jq -c '[.[] | [.ts, .dur, .cat]]' slices.json)" \
    "$(jq -c '[.events[] | [.start_ns, .ns, .kind]]' document.json)"
same "the document's pairs" "$(jq '[.traceEvents[] | select(.ph == "f")] | length' x.json)" \
    "$(jq '[.events[] | select(.kind == "backward" and .pair > 0)] | length' document.json)"

# Statements have no op's slice: no arrow leads to them from the op that had their place before.
cat >places.c <<'END'
#include <tapescope/ad_real.h>
int main(void)
{
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_real x;
    ad_real_leaves(tape, 1, (double[]){0.5}, &x);
    ad_tensor one = ad_leaf(tape, AD_F64, 0, NULL, (double[]){1});
    ad_mark mark = ad_tape_mark(tape);
    ad_exp(one);
    ad_tape_rewind(tape, mark);
    ad_tape_record_begin(tape);
    ad_real y = x;
    ad_set(&y, ad_real_mul(y, x));
    (void)!ad_real_backward(tape, y);
    ad_tape_record_end(tape);
    ad_tape_rewind(tape, mark);
    (void)!ad_backward(ad_exp(one));
    return ad_tape_status(tape) != AD_OK;
}
END
compile places
expect 0 "$tapescope" record --timeline 1MiB -o places.prof ./places
expect 0 "$tapescope" export -f json -o places.json places.prof
same "who has a pullback" "backward exp,forward exp statement" "$(jq -r '
    ([.events[] | select(.pair > 0) | "\(.kind) \(.name)"] | sort | join(",")) + " " +
    ([.events[] | select(.kind == "backward" and .record != null and .pair == 0).name] | unique |
        map(select(. != "leaf")) | join(","))' places.json)"

# decode FORMAT MESSAGE: the export as x.txt, and as decoded.json, in which a message is a list of
# its fields. A field that the schema has not has a number for a name, which is no JSON.
decode()
{
    expect 0 "$tapescope" export -f "$1" -o x.bin
    protoc -I "$TAPESCOPE_SOURCE_DIR/profiler/export" --decode="$1.$2" "$1.proto" <x.bin >x.txt 2>err ||
        fail "$1 does not decode"
    sed '1s/^/[/; s/\([a-z][a-z_0-9]*\) {$/{"\1": [/; s/^ *}$/null]},/
        s/^ *\([a-z][a-z_0-9]*\): \(.*\)/{"\1": \2},/; $s/$/ null]/' x.txt >decoded.json
}
fields='def all(k): .[] | .[k] | values; def one(k): [all(k)][0];
    def row: map(tostring) | join("|");
    def table(list; key; name): [list | {key: one(key) | tostring, value: name}] | from_entries;
    def base: split("/") | last;'

# Perfetto's packets: a slice ends where the last one ends that is open on its track.
decode perfetto Trace
jq -r "$fields"'[all("packet")] as $packet | [$packet[] | all("interned_data")] as $text |
    table($text[] | all("event_names"); "iid"; one("name")) as $name |
    table($text[] | all("event_categories"); "iid"; one("name")) as $kind |
    table($text[] | all("source_locations"); "iid";
        "\(one("file_name") | base):\(one("line_number"))") as $place |
    $packet[] | one("timestamp") as $at | all("track_event") |
    table(all("debug_annotations"); "name"; one("uint_value")) as $note |
    [one("type"), $at, one("track_uuid"), one("flow_ids"), one("counter_value"),
        $kind[one("category_iids") | tostring], $name[one("name_iid") | tostring],
        $place[one("source_location_iid") | tostring], $note.tape, $note.record] |
    row' decoded.json >edges
rm slices arrows bytes
awk -F'|' '
    $1 != 4 && $2 + 0 < last[$3] { print "an event is before the one before"; bad = 1 }
    $1 != 4 { last[$3] = $2 + 0 }
    $1 == 1 { start[$3, ++depth[$3]] = $2
        rest[$3, depth[$3]] = $6 "|" $7 "|" $8 "|" $9 "|" $10 }
    $1 == 1 && $4 != "null" && $6 == "forward" { from[$4] = $2 }
    $1 == 1 && $4 != "null" && $6 != "forward" { print from[$4] "|" $2 >"arrows" }
    $1 == 2 { at = start[$3, depth[$3]]
        print at "|" $2 - at "|" rest[$3, depth[$3]--] >"slices" }
    $1 == 4 { print $2 "|" $5 >"bytes" }
    END { for (track in depth) if (depth[track] != 0) { print "ends are missing"; bad = 1 }
        exit bad }' edges >out || fail "the packets are not right"
alike Perfetto
same "Perfetto's tracks of a process, and of bytes" "1 1" "$(jq -r "$fields"'
    [all("packet") | all("track_descriptor")] as $track |
    [$track[] | select(one("process")) | one("uuid")] as $process |
    [$track[] | select([one("parent_uuid")] - $process == [])] as $of |
    "\([$of[] | select(one("thread"))] | length) " +
    "\([$of[] | all("counter") | select(one("unit") == 3)] | length)"' decoded.json)"
for text in 'file_name: "'"$PWD"'/exports.c"' 'function_name: "layer"'; do
    grep -qF "$text" x.txt || fail "Perfetto: no $text"
done

# TensorBoard's plane, decoded by the schema alone: TensorBoard itself is not run here. It has no
# arrows; a number of live bytes ends where the next begins.
decode xplane XSpace
jq -r "$fields"'all("planes") |
    table(all("event_metadata"); "key"; one("value") | one("name")) as $name |
    table(all("stat_metadata"); "key"; one("value") | one("name")) as $stat |
    all("lines") | all("events") |
    ([all("stats") | {key: $stat[one("metadata_id") | tostring],
        value: (one("str_value") // one("uint64_value"))}] | from_entries) as $stat |
    [(one("offset_ps") // 0) / 1000, (one("duration_ps") // 0) / 1000, $stat.kind,
        $name[one("metadata_id") | tostring], $stat.line, $stat.tape, $stat.record, $stat.bytes] |
    row' decoded.json >events
sed -n 's/|null$//p' events >slices
cp arrows.ours arrows
awk -F'|' '$4 == "live bytes" { if (NR > 1 && end != "" && end != $1) print "a gap"
    end = $1 + $2; print $1 "|" $8 }' events >bytes
alike "the plane"
start=$("$tapescope" info --json | sed -n 's/.*"start_unix_ns": *\([0-9]*\).*/\1/p')
for text in 'name: "/host:CPU"' "timestamp_ns: $start"; do
    grep -qF "$text" x.txt || fail "the plane: no $text"
done

[ $failures -eq 0 ] || exit 1
echo "test_exports_timeline: ok"
