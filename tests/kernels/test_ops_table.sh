#!/bin/sh
# The table of ops that the build prints for people: complete, with cells that stand in one row.
set -eu
table=$TAPESCOPE_BINARY_DIR/generated/docs/OPS.md
ops=$(grep -c '^| `' "$table")
[ "$ops" -gt 140 ] || { echo "hardly any op in the table"; exit 1; }
grep -q "tensors: $ops ops" "$TAPESCOPE_SOURCE_DIR/README.md" || { echo "the README has another number than $ops"; exit 1; }
broken=$(awk '/^\|/ { row = $0; gsub(/\\\|/, "", row); if (gsub(/\|/, "", row) != 9) print }' "$table")
[ -z "$broken" ] || { echo "not eight cells: $broken"; exit 1; }
grep -qF '| `silu` | x [...] -> [...] | y = x / (1 + e^-x) |' "$table" || { echo "silu is missing"; exit 1; }
grep -qF '| 5 times 1 + \|x\| where e^x is subnormal |' "$table" || { echo "no error bound"; exit 1; }
header=$TAPESCOPE_BINARY_DIR/generated/include/tapescope/ad_ops.h
for op in $(sed -n 's/^| `\([a-z0-9_]*\)`.*/\1/p' "$table"); do
    grep -q "ad_$op" "$header" || { echo "$op is not in the header"; exit 1; }
done
echo "1 passed, 0 failed"
