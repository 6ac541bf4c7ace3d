#!/bin/sh
# test_exports_browser.sh: exports are opened in a browser, by the pages that read them, and what
# those add up is compared with `tapescope info`.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
# The browser with its DevTools, which the one for pages alone does not have.
need chromium chromium
TEST_CHROMIUM=$(command -v chromium)
export TEST_CHROMIUM
npm_packages
record_program

# row FILE PROFILE N: the N fields behind these two; PROFILE is a regular expression.
row()
{
    awk -F'\t' -v file="$1" -v name="$2" -v n="$3" '$1 == file && $2 ~ name {
        for (i = 3; i < 3 + n; i++) printf "%s%s", $i, i < 2 + n ? " " : "\n"
        exit }' speedscope.out
}

# speedscope, and what it imports.
for format in speedscope callgrind pprof; do
    expect 0 "$tapescope" export -f $format -o x.$format
done
mv x.speedscope x.speedscope.json
metrics="time forward backward tape peak"
for metric in $metrics; do
    expect 0 "$tapescope" export -f collapsed -m "$metric" -o "$metric.collapsed"
done

# DHAT's page: bytes in all, at the peak, at the end.
view=
for folder in /usr/libexec/valgrind /usr/lib/*/valgrind /usr/local/libexec/valgrind; do
    [ ! -e "$folder/dh_view.html" ] || view=$folder/dh_view.html
done
[ -n "$view" ] || fail "dh_view.html is missing; scripts/install-deps --tests installs it (Debian: valgrind)"
expect 0 "$tapescope" export -f dhat -o x.dhat

# Timelines; DevTools' Performance panel shows tenths of a millisecond: there a step of the clock is one.
expect 0 "$tapescope" export -f chrome -o x.trace.json
TAPESCOPE_CLOCK=step:1000000 expect 0 "$tapescope" record --timeline 1MiB -o slow.prof ./exports
expect 0 "$tapescope" export -f chrome -o slow.json slow.prof

# What each page says: fields separated by tabs, of DHAT's its text.
# shellcheck disable=SC2046,SC2086
expect 0 node "$TEST_SOURCE_DIR/npm/run.cjs" \
    speedscope.out speedscope.cjs x.speedscope.json x.trace.json x.callgrind x.pprof $(printf '%s.collapsed ' $metrics) \
    -- dhat.out dh_view.cjs "$view" x.dhat \
    -- devtools.out devtools.cjs slow.json
for what in "time nanoseconds $time" "forward nanoseconds $forward" "backward nanoseconds $backward" \
    "recompute nanoseconds $recompute" "calls none $calls" "tape bytes $tape" "peak bytes $peak"; do
    name=${what%% *}
    same "speedscope's $name" "${what#* }" "$(row x.speedscope.json "^$name\$" 2)"
    same "speedscope's $name of callgrind's" "none ${what##* }" "$(row x.callgrind " $name\$" 2)"
done
for metric in $metrics; do
    eval "wanted=\$$metric"
    same "speedscope's $metric of stacks" "none $wanted" "$(row "$metric.collapsed" . 2)"
done
same "speedscope's time of pprof's" "nanoseconds $time" "$(row x.pprof . 2)"

for what in "Total $tape" "At.t-gmax $peak" "At.t-end 0"; do
    same "DHAT's ${what% *}" "${what#* }" "$(sed -n \
        "/PP 1\/1 /,/}/s/^ *${what% *}: *\([0-9,]*\) bytes.*/\1/p" dhat.out | tr -d ,)"
done
cp dhat.out out
shown "layer (${PWD}/exports.c:$(grep -n 'ad_tanh(ad_matmul' exports.c | cut -d: -f1))"
# Of one purpose all that it says is the command's: bytes, blocks, lifetime, the most, who.
"$tapescope" tape --lifetime --json -n 0 | jq -r '.rows[] |
    select(.kinds == ["saved"] and .producer.ops == ["exp"]) |
    "\(.peak_bytes) \(.peak_bytes / .largest_bytes)" as $peak |
    "\(.bytes) \(.count) \(.byte_seconds * 1e9 / .bytes | round) \($peak) \($peak)"' >point
same "DHAT's saved exponentials" "$(cat point) saved value: exp block step main" \
    "$(awk -v RS='PP ' '/: saved value: exp/' dhat.out | tr -d , | sed -n '
        s/.*Total: *\([0-9]*\) bytes .* in \([0-9]*\) blocks .*lifetime \([0-9]*\) ns.*/\1 \2 \3/p
        s/.*Max: *\([0-9]*\) bytes in \([0-9]*\) .*/\1 \2/p
        s/.*t-gmax: *\([0-9]*\) bytes .* in \([0-9]*\) blocks.*/\1 \2/p
        s/.* 0x[0-9A-F]*: \([a-z: ]*[a-z]\).*/\1/p' | paste -sd ' ')"
same "DHAT's times" "$("$tapescope" tape --json | jq -r '"\(.at_ns) \(.profile.duration_ns)"')" \
    "$(sed -n '/^Times/,/}/s/^ *t-[a-z]*: *\([0-9,]*\) ns.*/\1/p' dhat.out | tr -d , | paste -sd ' ')"

# Timelines: the whole is that of the scopes, then ops and sweeps.
wall=$("$tapescope" export -f json | jq '[.scopes[].wall_ns] | add')
sweeps=$((backward + recompute))
same "speedscope's timeline" "nanoseconds $wall $forward $sweeps" \
    "$(row x.speedscope.json 'over time$' 4)"
same "speedscope's timeline of Chrome's" "microseconds $((wall / 1000)) $((forward / 1000)) $((sweeps / 1000))" \
    "$(row x.trace.json exports 4)"

# In DevTools a sweep's own time is backward; its whole is all within.
totals_of slow.prof
same "DevTools' ops, backward, sweeps" "$((forward + recompute)) $backward $((backward + recompute))" "$(awk -F'\t' '
    $2 == "sweep" { whole = $4 }
    $2 == "sweep" || / backward\t/ { backward += $3; next }
    $2 != "learn" && $2 != "forward depth=2" { ops += $3 }
    END { printf "%d %d %d\n", ops * 1e6, backward * 1e6, whole * 1e6 }' devtools.out)"

[ $failures -eq 0 ] || exit 1
echo "test_exports_browser: ok"
