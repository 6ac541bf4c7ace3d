#!/bin/sh
# Each mistake of programs/mistakes.c ends in its error with its line and in no number, by each
# compiler, with and without NDEBUG.
set -eu
work=$(mktemp -d "$TEST_BINARY_DIR/mistakes XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
includes=$(printf '%s' "$TAPESCOPE_INCLUDE_DIRS" | tr ':' '\n' | sed 's/.*/-I"&"/' | tr '\n' ' ')
list=$TEST_C_COMPILER
[ -z "$TEST_CLANG" ] || [ -n "$TEST_SANITIZE_FLAGS" ] || list="$list $TEST_CLANG"
passed=0
for compiler in $list; do
    for options in -O0 -O2 "-O2 -DNDEBUG"; do
        eval "\"$compiler\" -std=gnu11 -g $options -Wall -Wextra -Werror $includes \
            $TEST_SANITIZE_FLAGS \"$TAPESCOPE_SOURCE_DIR/tests/programs/mistakes.c\" -o mistakes \
            -L\"$TAPESCOPE_LIB_DIR\" -Wl,-rpath,\"$TAPESCOPE_LIB_DIR\" -ltapescope -lm -lpthread"
        ./mistakes >out.txt 2>err.txt || { cat out.txt err.txt; echo "$compiler $options"; exit 1; }
        grep -q '^0 of 16 wrong$' out.txt || { cat out.txt; echo "not all ran"; exit 1; }
        # of_two_tapes never asks the second tape: that one is loud of its own accord.
        grep -q 'a tape is destroyed whose error nobody asked for: .* at mistakes.c:' err.txt ||
            { cat err.txt; echo "$compiler $options: an ignored error is silent"; exit 1; }
        passed=$((passed + 1))
    done
done
echo "$passed passed, 0 failed"
