#!/bin/sh
# The scalar problems of benchmarks/, as they are, compiled by `tapescope cc`: their gradients are
# those that were written by hand, at each level of optimisation; and no warning.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
includes=$(includes "$TAPESCOPE_INCLUDE_DIRS:$TAPESCOPE_SOURCE_DIR/benchmarks/problems")
passed=0
for level in -O0 "-O3 -DNDEBUG"; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g $includes \"$TAPESCOPE_SOURCE_DIR\"/benchmarks/problems/*.c \
        \"$programs/plain_problems.c\" -o problems" 2>err.txt ||
        { cat err.txt; exit 1; }
    ! grep 'warning' err.txt || { echo "$level: a warning"; exit 1; }
    ./problems >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: wrong"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
