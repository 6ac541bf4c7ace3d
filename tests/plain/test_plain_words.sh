#!/bin/sh
# Floating values that share a register with integers (programs/plain_words.c), given and returned
# by value, in one file and in two: the gradient is right, or its loss is said; and with --strict it
# is an error.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_words.c
passed=0
# compiled OPTIONS: whole and in two files
compiled() {
    eval "\"$TAPESCOPE_PROGRAM\" cc $1 -g $includes \"$source\" -lm -o one" 2>err.txt || return 1
    for side in HERE THERE; do
        eval "\"$TAPESCOPE_PROGRAM\" cc $1 -g -D$side $includes -c \"$source\" -o $side.o" 2>>err.txt || return 1
    done
    "$TAPESCOPE_PROGRAM" cc HERE.o THERE.o -lm -o two
}
for level in -O0 -O1 -O2 -O3; do
    compiled $level || { cat err.txt; exit 1; }
    for program in one two; do
        ./$program >out.txt 2>lost.txt || { cat out.txt lost.txt; exit 1; }
        [ "$(wc -l <out.txt)" -eq 36 ] || { cat out.txt; echo "$level, $program: not all ran"; exit 1; }
        awk '$2 == "wrong" && $3 == 0' out.txt >silent
        if [ -s silent ] && ! grep -q 'the gradient is lost here' err.txt; then
            cat silent
            echo "$level, $program: nobody has said so"
            exit 1
        fi
        passed=$((passed + 1))
    done
done
echo "$passed passed, 0 failed"
