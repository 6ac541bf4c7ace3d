#!/bin/sh
# test_disk_example.sh: examples/disk has a tape of ten times its budget; on disk the process takes
# hardly more memory of its own than the budget, and the gradients are those of memory.
set -eu
work="$TEST_BINARY_DIR/disk_example"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failed=0
"$TAPESCOPE_BINARY_DIR/bin/disk" . >out 2>&1 || failed=1
grep -qx 'the tape has 1[56][0-9] MiB, its budget is 16 MiB' out || failed=1
grep -qx 'the gradients are the same, bit for bit' out || failed=1
# A sanitizer takes some of its own for each byte.
awk '/^memory of/ { found = 1; if ($8 * 2 > $12) exit 1 } END { exit !found }' out || failed=1
[ -z "$(ls -A . | grep -v '^out$')" ] || failed=1
[ "$failed" = 0 ] && echo "1 passed, 0 failed" || { echo "FAILED:"; cat out; }
exit "$failed"
