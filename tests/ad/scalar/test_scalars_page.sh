#!/bin/sh
# The program of docs/SCALARS.md is built with every warning, and prints what the page says. Runs in
# a folder with a space in its name.
set -eu
page=$TAPESCOPE_SOURCE_DIR/docs/SCALARS.md
work=$(mktemp -d "$TEST_BINARY_DIR/scalars page XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
cd "$work"
awk '$0 == "```" { on = 0 } on { print } $0 == "```c" { on = 1 }' "$page" >page.c
[ -s page.c ] || { echo "no program on the page"; exit 1; }
promised=$(sed -n 's/^It prints `\(.*\)`\.$/\1/p' "$page")
[ -n "$promised" ] || { echo "the page promises no output"; exit 1; }

CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
for optimized in -O0 '-O2 -DNDEBUG'; do
    # shellcheck disable=SC2086 # lists of options
    "$TEST_C_COMPILER" -std=gnu11 -g $optimized -Wall -Wextra -Wno-unused-parameter -Werror \
        $TEST_SANITIZE_FLAGS page.c -o page \
        -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
    printed=$(./page)
    [ "$printed" = "$promised" ] || { echo "it prints: $printed, not: $promised"; exit 1; }
done
echo "1 passed, 0 failed"
