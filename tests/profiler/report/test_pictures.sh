#!/bin/sh
# test_pictures.sh: the pictures that the pages show are there, small, and made by scripts/pictures,
# which also looks whether each shows what the text says of it.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
npm_packages
source=$TAPESCOPE_SOURCE_DIR

find "$source/README.md" "$source/docs" -name '*.md' -exec grep -oh '([a-z./]*pictures/[^)]*)' {} + |
    sed 's|.*pictures/\(.*\))|docs/pictures/\1|' >named
sort -u named >shown
(cd "$source" && find docs/pictures -type f | sort) >there
[ "$(wc -l <there)" -ge 5 ] || fail "hardly any picture"
diff shown there >out || fail "pictures that are shown (<) are not those that are there (>)"
while read -r picture; do
    [ "$(wc -c <"$source/$picture")" -le 153600 ] || fail "$picture has over 150 KiB"
done <there

expect 0 "$source/scripts/pictures" "$TAPESCOPE_BINARY_DIR/bin" "$PWD/made" --quick
find made -type f | sed 's|^made|docs/pictures|' | sort >written
sed -i "/svg$/d; /\/\(disk\|kinetics\|ode\|strips\|digits_ranks\)-/d" there # benchmarks; what runs for seconds
cmp -s written there || fail "other pictures are made than are there: $(cat written)"
for picture in made/*; do
    head -c 8 "$picture" | grep -q PNG || fail "$picture is no picture"
done

[ $failures -eq 0 ] || exit 1
echo "test_pictures: ok"
