#!/bin/sh
# docs/OPS.md is what the op table says today: it is printed from it, never edited.
set -eu
printed=$TEST_BINARY_DIR/OPS.md
"$(find "$TAPESCOPE_BINARY_DIR" -name tapescope_generate -type f)" docs >"$printed"
if ! cmp -s "$printed" "$TAPESCOPE_SOURCE_DIR/docs/OPS.md"; then
    diff "$TAPESCOPE_SOURCE_DIR/docs/OPS.md" "$printed" | head -20
    echo "docs/OPS.md is not what the op table says: print it again by tapescope_generate docs"
    exit 1
fi
[ "$(grep -c '^| `' "$printed")" -gt 50 ] || { echo "hardly any op in the table"; exit 1; }
echo "1 passed, 0 failed"
