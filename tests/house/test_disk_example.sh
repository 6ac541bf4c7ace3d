#!/bin/sh
# test_disk_example.sh: examples/disk has tapes of ten times their budget; on disk the process takes
# hardly more memory of its own than the budget, and the gradients are those of memory.
set -eu
work="$TEST_BINARY_DIR/disk_example"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failed=0
"$TAPESCOPE_BINARY_DIR/bin/disk" . >out 2>&1 || failed=1
# What docs/explanation/gallery.md shows is what it prints, but for the memory that the process takes.
awk '/^## / { disk = /Tapes of ten times/ } disk && /^```$/ { on = 0 } on
    disk && /^```text/ { on = 1 }' "$TAPESCOPE_SOURCE_DIR/docs/explanation/gallery.md" | grep -v '^  memory' >promised
[ "$(grep -c 'bit for bit' promised)" = 2 ] || failed=1
grep -v '^  memory' out | cmp -s - promised || failed=1
# A sanitizer takes some of its own for each byte.
awk '/^  memory of/ { found++; if ($8 * 2 > $12) exit 1 } END { exit found != 2 }' out || failed=1
[ -z "$(ls -A . | grep -v -x -e out -e promised)" ] || failed=1
[ "$failed" = 0 ] && echo "1 passed, 0 failed" || { echo "FAILED:"; cat out; }
exit "$failed"
