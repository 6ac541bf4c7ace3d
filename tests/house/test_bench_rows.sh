#!/bin/sh
# The benchmark's rows have the members that their readers expect, and scripts/plot draws them:
# bars as long as the ratios, with their figures. Nothing here depends on how long anything took.
set -eu
failed=0
passed=0
plot=$TAPESCOPE_SOURCE_DIR/scripts/plot
bench=$(dirname "$TAPESCOPE_PROGRAM")/bench_tensor
folder=$(mktemp -d "$TEST_BINARY_DIR/bench_rows.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# check WORDS COMMAND…: counts a condition.
check() {
    words=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $words"
    fi
}

# row CASE METRIC PEER RATIO
row() {
    printf '{"suite":"tensor","case":"%s","metric":"%s",' "$1" "$2"
    printf '"ours":1.5e+06,"peer_name":"%s",' "$3"
    printf '"peer":3000.25,"ratio":%s,"unit":"ns"}\n' "$4"
}

# count N PATTERN: the picture has N lines with it.
count() { [ "$(grep -c -e "$2" "$folder/plot.svg" || true)" -eq "$1" ]; }

draw() { "$plot" "$1" >"$folder/plot.svg"; }
ends() { [ "$(grep . "$folder/plot.svg" | tail -n 1)" = "</svg>" ]; }
lines() { [ "$(wc -l <"$2")" -eq "$1" ]; }
refused() { ! "$plot" "$1" >"$folder/refused.svg" 2>"$folder/error"; }

{
    row mlp32 f64_1t_total libtorch 0.5
    row mlp32 f64_1t_total libtorch_tuned_malloc 0.75
    row mlp32 f32_1t_total libtorch 0.25
    row mlp32 f32_1t_forward libtorch 0.125
    row mlp32 f64_1t_total bare_gemm 1.05
    row mlp32 f64_1t_saved_bytes torch 1
    row chain1 f64_1t_total libtorch 0.02
    row mlp32 f64_2t_total libtorch 1e-01
} >"$folder/rows"
check "good rows are drawn" draw "$folder/rows"
# The widths of the bars of a colour, in whole points, one a line.
widths() {
    tr '\n' ' ' <"$folder/plot.svg" | grep -o "fill = '$1'[^>]*points = '[^']*'" |
        sed "s/.*points = '\([0-9.]*\),[0-9.]* \([0-9.]*\),.*/\1 \2/" |
        awk '{ printf "%.0f\n", $2 - $1 }'
}
check "bars of f64 are as long as 0.5, 0.02 and 0.1" \
    [ "$(widths 'rgb( 58, 111, 176)' | tr '\n' ' ')" = "141 6 28 " ]
check "and that of f32 as 0.25" [ "$(widths 'rgb(224, 138,  43)')" = 70 ]
figure() { count "$1" "<tspan[^>]*>$2</tspan>"; }
check "the figure of each bar: a half" figure 1 0.5
check "a quarter" figure 1 0.25
check "a small one has three digits" figure 1 0.02
check "the one of two threads" figure 1 0.1
check "panels say how many threads" figure 1 '1 thread'
check "and the other" figure 1 '2 threads'
check "workloads are named in both panels" figure 2 mlp32
check "no figure is missing" count 0 'nan\|inf'
check "it is one whole element" ends

for wrong in nan null '"0.5"' '0.5,"more":1' ''; do
    { cat "$folder/rows"; row mlp32 f64_1t_total libtorch "$wrong"; } >"$folder/wrong"
    check "a ratio of '$wrong' is refused" refused "$folder/wrong"
    check "and its line is named" grep -q 'wrong:9: not a row' "$folder/error"
done
: >"$folder/empty"
check "no rows are refused" refused "$folder/empty"
row mlp32 f64_1t_forward libtorch 0.5 >"$folder/nothing"
check "nothing to draw is refused" refused "$folder/nothing"

# Tables of a page are written again from rows; what they do not have stays as it was.
page=$folder/page.md
figures() { python3 "$TAPESCOPE_SOURCE_DIR/benchmarks/figures.py" "$1" "$2" "$page" 2>"$folder/error"; }
printf 'a\n<!-- table: M, tensor, 1 thread -->\nold\n<!-- end -->\nb\n' >"$page"
cp "$page" "$folder/before.md"
figures_refused() { ! figures "$1" "$2" && cmp -s "$page" "$folder/before.md"; }
check "a table that the page lacks is refused" figures_refused "$folder/rows" "another machine"
check "and named" grep -q 'no table another machine, tensor, 1 thread' "$folder/error"
check "a wrong row is refused" figures_refused "$folder/wrong" M
check "and its line is named" grep -q 'wrong:9: not a row' "$folder/error"
check "rows of no table are refused" figures_refused "$folder/nothing" M
{
    row lstm f64_1t_total libtorch_tuned_malloc 0.9
    row lstm f64_1t_total libtorch_tuned_malloc 0.456
    row lstm f64_1t_total libtorch 0.1
    row mlp32 f32_1t_backward libtorch_tuned_malloc 1
} >"$folder/figures"
check "a table is written" figures "$folder/figures" M
cat >"$folder/expected.md" <<'END'
a
<!-- table: M, tensor, 1 thread -->
| case | f64 forward | backward | total | f32 forward | backward | total |
|---|---|---|---|---|---|---|
| `lstm` |  |  | 0.46 |  |  |  |
| `mlp32` |  |  |  |  | 1.00 |  |
<!-- end -->
b
END
check "as it stands in rows" cmp "$page" "$folder/expected.md"

# Rows of the program itself, as short as they can be: only their form matters.
"$bench" --case mlp32 --dtype f64 --threads 1 --peer bare_gemm --rounds 1 --seconds 0.001 \
    >"$folder/own" 2>"$folder/log" </dev/null
"$bench" --case chain64 --dtype f64 --threads 1 --peer unprofiled --rounds 1 --seconds 0.001 \
    >>"$folder/own" 2>>"$folder/log" </dev/null
row mlp32 f64_1t_total libtorch 0.5 >>"$folder/own"
check "the program's rows are rows" draw "$folder/own"
begin='^{"suite":"tensor","case":"mlp32","metric":"f64_1t_total",'
check "against bare products" grep -q "$begin.*\"peer_name\":\"bare_gemm\",.*\"unit\":\"ns\"}\$" \
    "$folder/own"
check "under a profile" grep -q '"metric":"f64_1t_total_profiled",.*"peer_name":"unprofiled"' \
    "$folder/own"
check "and no others" lines 3 "$folder/own"

"$bench" --case mlp32 --threads 1 --peer torch >"$folder/bytes" 2>"$folder/log" </dev/null
check "bytes saved are told" \
    grep -q 'mlp32 f64: after the forward pass 49152 bytes of buffers are saved' "$folder/log"

status=0
"$bench" --case nothing 2>"$folder/log" </dev/null || status=$?
check "a case that is not there is wrong usage" [ "$status" -eq 2 ]
check "and the cases are named" grep -q 'chain1 .* gp512\|chain1 .* attn' "$folder/log"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
