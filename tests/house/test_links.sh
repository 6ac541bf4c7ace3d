#!/bin/sh
# Every link of the docs, and every page that a source names, is there; a broken one is found.
set -eu
check=$TAPESCOPE_SOURCE_DIR/docs/site/links.py
python3 "$check" "$TAPESCOPE_SOURCE_DIR"

work=$(mktemp -d "$TEST_BINARY_DIR/links XXXXXX")
trap 'rm -rf "$work"' EXIT
d=docs # so that the pages named below are not taken for this project's
mkdir "$work/$d"
printf '# A page\n\n## Its part\n\n[part](#its-part) [page](other.md#there) [none](#nowhere)\n' >"$work/$d/page.md"
printf '# There\n\n[page](gone.md) `[code](no.md)`\n\n    [code](no.md)\n' >"$work/$d/other.md"
printf '/* %s/page.md, %s/absent.md */\n' $d $d >"$work/file.c"
if python3 "$check" "$work" >"$work/found"; then
    echo "broken links are not found"
    exit 1
fi
cat >"$work/expected" <<END
$d/other.md:3: there is no $d/gone.md
$d/page.md:5: $d/page.md has no heading #nowhere
file.c:1: there is no $d/absent.md
END
sort "$work/found" | diff "$work/expected" -
echo "2 passed, 0 failed"
