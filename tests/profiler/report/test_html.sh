#!/bin/sh
# test_html.sh: the page of `tapescope html` in a browser, and the command itself.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
need jq jq
npm_packages
record_program

# data PAGE: the JSON in a page.
data()
{
    sed -n 's|.*<script type="application/octet-stream" id="profile-data">\([^<]*\)<.*|\1|p' "$1" |
        base64 -d | gzip -dc
}

# The whole of it, with differences and growth.
expect 0 "$tapescope" html --base plain.prof --sizes 1,2 plain.prof tapescope.prof
said 'wrote report.html'
report_totals="$forward $backward $tape $peak"
[ "$(data report.html | jq '.diff.rows.in | length > 2')" = true ] || fail "no differences"
[ "$(data report.html | jq '.growth.sizes == [1, 2]')" = true ] || fail "no growth"
[ "$(data report.html | jq '.growth.rows[0].bytes[1] == .total.peak_bytes')" = true ] ||
    fail "growth is not of the peak"
[ "$(data report.html | jq '.diff.tree.chance')" = null ] || fail "one run a side says what chance is"

# Of several runs a side, each call has what chance makes of its change.
expect 0 "$tapescope" html -o several.html --base plain.prof --base tapescope.prof tapescope.prof
[ "$(data several.html | jq '.diff.tree | (.chance.total | length) == (.parent | length) and
    (.chance.total | max) > 0')" = true ] || fail "no chance of calls"
expect 0 "$tapescope" html -o steady.html --base plain.prof --base plain.prof tapescope.prof
[ "$(data report.html | jq '.total.recompute_ns')" = "$recompute" ] || fail "another recomputation"

# What `top` says of all rows is in the page's columns: every number of a cost, added up.
expect 0 "$tapescope" top --json --limit 0
jq -S '[.rows[] | to_entries[] | select(.value | type == "number")] | group_by(.key) |
    map({key: .[0].key, value: (map(.value) | add)}) | from_entries |
    del(.line, .offset, .tape_bytes, .byte_seconds, .ratio, .expected_ratio) | with_entries(select(.value > 0))' out >top.json
data report.html | jq -S --slurpfile top top.json '.lines | with_entries(select($top[0][.key]) |
    .value |= add)' >page.json
diff top.json page.json >out || fail "other costs on the page"
for name in recompute_ns recompute_flops recompute_moved_bytes; do
    jq -e --arg name $name '.[$name] > 0' page.json >out || fail "no $name on the page"
done

# The first line of the page begins as that of `info`, which has rows for the phases.
part=$(LC_ALL=C.UTF-8 "$tapescope" info | sed -n 's/^AD  *//p')
[ "$part" ] || fail "no part of the run"
[ "$(data report.html | jq --arg part "$part" '.ad_part | startswith($part + ": forward ")')" = true ] ||
    fail "another part of the run"

# What stands out is on the page as `info` says it; what that is: test_findings.c.
expect 0 "$tapescope" html -o alone.html
LC_ALL=C.UTF-8 "$tapescope" info --json >info.json
[ "$(data alone.html | jq -c .findings)" = "$(jq -c .findings info.json)" ] || fail "other findings"
[ "$(jq '.findings | length > 0' info.json)" = true ] || fail "no findings, nor functions"

# With the text that explains each.
[ "$(data alone.html | jq '[.findings, .howtos] | transpose | all((.[0].howto == null) == (.[1] == null)) and
    (.[0][0].howto == null or (.[0][1] | startswith("#")))')" = true ] || fail "findings are not explained"

# The same profile gives the same page.
expect 0 "$tapescope" html -o again.html --base plain.prof --sizes 1,2 plain.prof tapescope.prof
cmp -s report.html again.html || fail "two pages of one profile differ"

# Sources are put in as asked.
for pair in project:1 all:1 none:0; do
    expect 0 "$tapescope" html -o x.html --source "${pair%:*}"
    texts=$(data x.html | jq '. as $page | [.files[] |
        select(.text and ($page.strings[.file] | endswith("/exports.c")))] | length')
    [ "$texts" = "${pair#*:}" ] ||
        fail "--source=${pair%:*} has other texts"
done
data x.html | grep -q 'int64_t' && fail "--source=none has a text"
expect 0 "$tapescope" html -o x.html --theme dark
[ "$(data x.html | jq -r .theme)" = dark ] || fail "not dark"

# To standard output; what cannot be written is said, and what was there stays.
"$tapescope" html -o - >x.html 2>err || fail "no page on standard output"
[ "$(data x.html | jq -r .tapescope)" = html ] || fail "another page on standard output"
expect 1 "$tapescope" html -o none/x.html
said 'cannot write none/x.html: No such file'
expect 1 "$tapescope" html -o /dev/full
said 'cannot write /dev/full'
expect 3 "$tapescope" html -o x.html none.prof
expect 2 "$tapescope" html --theme blue
cp x.html before.html
expect 3 "$tapescope" html -o x.html --base none.prof
cmp -s x.html before.html || fail "a page was changed by a failure"

# With a recording, whatever the program's status; where nothing was recorded there is no page.
expect 0 "$tapescope" record --report html -o once.prof ./exports
grep -q 'wrote once.html' err || fail "the page is not named"
[ "$(data once.html | jq -r '.profile.path')" = "$PWD/once.prof" ] || fail "another profile"
expect 3 "$tapescope" record --report html -o once.data sh -c './exports; exit 3'
[ -s once.data.html ] || fail "no page of a program that failed"

# A range of the timeline is what the events have in it; without events there is none.
"$tapescope" tape --records --json tapescope.prof >events.json 2>err || fail "no events"
"$tapescope" top --by scope --json tapescope.prof >scopes.json 2>err || fail "no scopes"
[ "$(data once.html | jq .timeline)" = null ] || fail "single events out of nothing"

# Each node has in its cells what it has in the tree, in a sum of processes too.
expect 0 "$tapescope" merge -o sum.prof tapescope.prof plain.prof
expect 0 "$tapescope" html -o sum.html sum.prof
for pair in forward:0,0 backward:1,3 recompute:2,2; do
    [ "$(data sum.html | jq --arg column "${pair%:*}_ns" --argjson kinds "[${pair#*:}]" '
        .timeline as $t | .tree[$column] as $tree | reduce range($t.series.cells | length) as $s
            ({at: 0, ns: [$tree[] * 0]};
            ($t.cells.ns[.at:.at + $t.series.cells[$s]] | add) as $ns |
            .at += $t.series.cells[$s] |
            if $kinds | index($t.series.kind[$s]) then .ns[$t.series.node[$s]] += $ns else . end) |
        .ns == $tree and (.ns | add) > 0')" = true ] || fail "other ${pair%:*} times of nodes"
done
[ "$(data sum.html | jq -c '[.timeline.threads.process, (.timeline.spans.scope | length)]')" = \
    "[[1,2],12]" ] || fail "other threads or spans"
expect 125 "$tapescope" record --report html -o nothing.prof true
[ ! -e nothing.html ] || fail "a page of nothing"

# Names that are markup stay names.
cat >hostile.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    static double data[8];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    AD_SCOPE("</script><script>alert(1)</script><!--") {
        ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){8}, data);
        AD_SCOPE("@TAPESCOPE-DATA@ <img src=x onerror=alert(2)>\342\200\256") {
#line 7 "<\/script><script>alert(3)<\/script><img src=x onerror=alert(4)>.c"
            (void)!ad_backward(ad_sum(ad_tanh(ad_mul(x, ad_exp(x)))));
        }
    }
    ad_tape_destroy(tape);
    return 0;
}
END
sed 's|<\\/|</|g' hostile.c >markup.c
compile markup
TAPESCOPE_CLOCK=step:1000 expect 0 "$tapescope" record -o markup.prof ./markup
totals_of markup.prof
expect 0 "$tapescope" html -o markup.html --source all markup.prof
grep -c 'alert(' markup.html >/dev/null && fail "a name is in the page as it is"
[ "$(data markup.html | jq '[.strings[] | select(test("alert"))] | length')" -ge 3 ] ||
    fail "the names are not in the data"
[ "$(data markup.html | jq '[.strings[] | select(test("alert.2.>[?]$"))] | length')" -eq 1 ] ||
    fail "a control of direction is in the page"

# All three in a browser.
drive 5 report.out report.cjs report.html "$report_totals" \
    -- several.out several.cjs several.html all \
    -- steady.out several.cjs steady.html none \
    -- timeline.out timeline.cjs report.html events.json once.html scopes.json \
    -- markup.out report.cjs markup.html "$forward $backward $tape $peak" open

# What docs/how-to/read-a-report.md tells to do.
mkdir bin page
ln -s "$tapescope" bin/tapescope
cp exports page/train
awk '$0 == "```" { on = 0 } on { print } $0 == "```sh" { on = 1 }' \
    "$TAPESCOPE_SOURCE_DIR/docs/how-to/read-a-report.md" >page/commands.sh
[ "$(grep -c 'tapescope html' page/commands.sh)" -ge 4 ] || fail "no commands in docs/how-to/read-a-report.md"
expect 0 env PATH="$PWD/bin:$PATH" sh -ec 'cd page && . ./commands.sh'
for file in report growth small before; do
    [ -s page/$file.html ] || fail "no $file.html"
done
[ "$(data page/growth.html | jq -c .growth.sizes)" = '[10,20,40]' ] || fail "other sizes"

[ $failures -eq 0 ] || exit 1
echo "test_html: ok"
