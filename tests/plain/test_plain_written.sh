#!/bin/sh
# Functions that run as they were written while there was never a variable
# (programs/plain_written.c): values are the same, and no gradient is lost behind the first one.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
"$TEST_C_COMPILER" -O2 -DFOREIGN -c "$programs/plain_written.c" -o foreign.o
passed=0
for level in -O0 -O1 -O2 -O3; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -pthread $includes \"$programs/plain_written.c\" foreign.o -o written -lm"
    ./written >cases
    while read -r name; do
        # At -O0 functions are recorded from the beginning.
        [ "$level$name" != -O0untouched ] || continue
        ./written "$name" >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: $name is wrong"; exit 1; }
        passed=$((passed + 1))
    done <cases
    [ "$(wc -l <cases)" -eq 9 ] || { cat cases; echo "$level: not all ran"; exit 1; }
done
echo "$passed passed, 0 failed"
