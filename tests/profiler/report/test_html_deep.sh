#!/bin/sh
# test_html_deep.sh: reports of a program of more call paths than a tape has rows: who calls, and what
# bytes are for, is still known; the page says all that a terminal says; its timeline is fine, and
# hatched where there was no room for more events; `tree` on a terminal leaves out what is small.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
need jq jq
npm_packages
command -v script >/dev/null || { echo "skipped: no script"; exit 77; }

# 40 functions, each of which calls two others: 2^15 calls in all, up to 15 deep, each by a path of its
# own, with 5 to 7 lines that record. What a path costs is the same for all.
awk 'BEGIN {
    n = 40
    split("sin cos tanh sigmoid neg square relu", op, " ")
    print "#include <tapescope/ad.h>"
    for (i = 0; i < n; i++)
        printf "static ad_tensor layer_%d(ad_tensor x, int depth);\n", i
    for (i = 0; i < n; i++) {
        printf "__attribute__((noinline)) static ad_tensor layer_%d(ad_tensor x, int depth)\n{\n", i
        printf "    ad_tensor a = ad_%s(x);\n", op[i % 7 + 1]
        printf "    ad_tensor b = ad_%s(a);\n", op[(i + 2) % 7 + 1]
        printf "    ad_tensor c = ad_%s(b);\n", op[(i + 4) % 7 + 1]
        printf "    ad_tensor d = ad_%s(c);\n", op[(i + 5) % 7 + 1]
        print "    if (depth > 0) {"
        printf "        d = ad_add(d, layer_%d(a, depth - 1));\n", (3 * i + 1) % n
        printf "        d = ad_add(d, layer_%d(b, depth - 1));\n", (7 * i + 2) % n
        print "    }"
        print "    return ad_scale(d, 0.5);\n}"
    }
    print "int main(void)\n{\n    static double data[8];\n    ad_tape tape;"
    print "    if (ad_tape_create(&tape, NULL) != AD_OK)\n        return 1;"
    print "    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){8}, data);"
    print "    ad_status status = ad_backward(ad_sum(layer_0(x, 14)));"
    print "    ad_tape_destroy(tape);\n    return status != AD_OK;\n}"
}' >deep.c
compile deep
TAPESCOPE_CLOCK=step:1000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record -o deep.prof --timeline 64MiB ./deep
expect 0 "$tapescope" record -o cut.prof --depth 0 --timeline 4MiB ./deep
expect 0 "$tapescope" html -o cut.html cut.prof
expect 0 "$tapescope" html -o deep.html deep.prof
grep 'too many call paths' err >warning || fail "no warning of the paths: $(cat err)"

# Nothing is the tape's "other"; of AD's time none of 40 functions has a twentieth.
expect 0 "$tapescope" top --by op --limit 0 --json deep.prof
[ "$(jq '[.rows[] | select(.ops == ["other"])] | length' out)" -eq 0 ] || fail "rows of nobody: $(cat out)"
"$tapescope" tape --limit 0 --json deep.prof >tape.json 2>err || fail "no tape"
[ "$(jq '([.rows[] | select(.producer.ops == ["other"]) | .held_bytes] | add // 0) < 0.01 * .held_bytes
    and ([.rows[].held_bytes] | add) == .held_bytes and (.rows | length > 400)' tape.json)" = true ] ||
    fail "bytes of nobody at the peak: $(jq -c '[.rows[] | select(.producer.own)]' tape.json)"
expect 0 "$tapescope" info cut.prof
shown "Nothing stands out. AD's time by function: layer_"

# A terminal has the nodes that matter, and is told how many do not; and the same warning.
PAGER=cat TERM=xterm expect 0 script -qec "'$tapescope' tree deep.prof" /dev/null
[ "$(wc -l <out)" -lt 400 ] || fail "$(wc -l <out) lines of a tree on a terminal"
grep -q 'more nodes, counted in those above' out || fail "nothing is said of those left out"
tr -d '\r' <out | sed 's/cut\.prof/deep.prof/' | grep -q 'too many call paths' || fail "no warning on a terminal"
expect 0 "$tapescope" tree deep.prof
[ "$(wc -l <out)" -gt 90000 ] || fail "only $(wc -l <out) lines of a tree in a file"

sed 's/.*: too many/too many/' warning >text
drive 1 deep.out deep.cjs deep.html cut.html "$(cat text)"

[ $failures -eq 0 ] || exit 1
echo "test_html_deep: ok"
