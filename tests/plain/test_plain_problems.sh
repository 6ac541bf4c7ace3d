#!/bin/sh
# The scalar problems of benchmarks/, as they are, compiled by `tapescope cc`: their gradients are
# those that were written by hand, at each level of optimisation; and no warning. The code of one of
# them is no longer than what its records need.
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
# Ten times the code that the same compiler makes of it alone; twenty if what is alive across the
# calls that are hardly ever made has to be moved out of their way.
for compiler in clang-19 "\"$TAPESCOPE_PROGRAM\" cc"; do
    eval "$compiler -O2 $includes -c \"$TAPESCOPE_SOURCE_DIR\"/benchmarks/problems/hand.c -o hand.o"
    size hand.o | awk 'NR == 2 {print $1}' >>bytes.txt
done
awk 'NR == 1 {alone = $1} END {exit !(NR == 2 && alone > 0 && $1 < 13 * alone)}' bytes.txt ||
    { cat bytes.txt; echo "hand.c: too long"; exit 1; }
passed=$((passed + 1))
echo "$passed passed, 0 failed"
