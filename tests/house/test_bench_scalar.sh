#!/bin/sh
# The rows of the scalar suite have the members that their readers expect; what is missing is told
# and does not fail; what is wrong fails. Nothing here depends on how long anything took.
set -eu
failed=0
passed=0
bench=$(dirname "$TAPESCOPE_PROGRAM")/bench_scalar
folder=$(mktemp -d "$TEST_BINARY_DIR/bench_scalar.XXXXXX")
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

# run OPTION…: rows of a run as short as can be; its exit status is in $status.
run() {
    status=0
    "$bench" --rounds 1 --seconds 0.001 "$@" >"$folder/rows" 2>"$folder/log" </dev/null || status=$?
}

# rows N METRIC PEER UNIT: there are N such rows of the case, each whole.
rows() {
    [ "$(grep -c -E "^\{\"suite\":\"scalar(_clang)?\",\"case\":\"$case\",\"metric\":\"$2\",\
\"ours\":[0-9.e+-]+,\"peer_name\":\"$3\",\"peer\":[0-9.e+-]+,\"ratio\":[0-9.e+-]+,\
\"unit\":\"$4\"\}\$" "$folder/rows" || true)" -eq "$1" ]
}

lines() { [ "$(wc -l <"$folder/rows")" -eq "$1" ]; }
told() { grep -q -e "$1" "$folder/log"; }

case=hand1
run --case hand1 --peer primal,memory_limit,hand_written,codipack
check "it succeeds" [ "$status" -eq 0 ]
for metric in total_warm total_cold record_cold record_warm reverse_warm; do
    check "$metric of the primal" rows 1 "$metric" primal ns
done
check "by hand, warm" rows 1 total_warm hand_written ns
check "by hand, cold" rows 1 total_cold hand_written ns
check "bytes that are kept by hand" rows 1 tape_bytes hand_written B
check "bytes of a tape that was measured once" rows 1 tape_bytes codipack B
for metric in total_warm record_warm reverse_warm; do
    check "$metric of memory" rows 1 "$metric" memory_limit ns
done
check "and no others" lines 12
check "the primal's time of a statement is told" \
    told '^hand1: [0-9]* statements of [0-9.]* bytes; the primal takes .* ns a statement$'

case=ba1
run --case ba1 --peer primal
check "of many small tapes recording is told from sweeping" rows 1 record_warm primal ns

run --case hand1 --peer adolc
if [ -x "$(dirname "$bench")/peer_adolc" ]; then
    case=hand1
    check "another library has rows" rows 1 total_cold adolc ns
else
    check "a library that is missing is told" told '^skipped adolc: there is no program peer_adolc'
fi
check "and is no failure" [ "$status" -eq 0 ]

run --case hand1 --peer primal --data "$folder/nothing here"
check "inputs that are missing are a failure" [ "$status" -eq 1 ]
check "and give no rows" lines 0
check "and are named" told 'nothing here/hand/'

run --case nothing
check "a case that is not there is wrong usage" [ "$status" -eq 2 ]
check "and the cases are named" told 'gmm_d10_k25 .* mulchain .* bodies'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
