#!/bin/sh
# Floating values that share a register with integers (programs/plain_words.c), given and returned
# by value, in one file and in two: gradients are right, and nothing is said. Where one of the two
# files is of another compiler, each that is wrong is said.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_words.c
passed=0
# compiled OPTIONS: whole, and in two files where programs_made says so
compiled() {
    eval "\"$TAPESCOPE_PROGRAM\" cc $1 -gline-tables-only $includes \"$source\" -lm -o one" 2>err.txt || return 1
    [ "$programs_made" = "one two" ] || return 0
    for side in HERE THERE; do
        eval "\"$TAPESCOPE_PROGRAM\" cc $1 -gline-tables-only -D$side $includes -c \"$source\" -o $side.o" 2>>err.txt || return 1
    done
    "$TAPESCOPE_PROGRAM" cc HERE.o THERE.o -lm -o two
}
for level in -O0 -O1 -O2 -O3; do
    programs_made=one
    case $level in -O0 | -O2) programs_made="one two" ;; esac
    compiled $level || { cat err.txt; exit 1; }
    for program in $programs_made; do
        ./$program >out.txt 2>lost.txt || { cat out.txt lost.txt; exit 1; }
        [ "$(wc -l <out.txt)" -eq 36 ] || { cat out.txt; echo "$level, $program: not all ran"; exit 1; }
        if grep -v ' right 0$' out.txt || grep 'the gradient is lost here' err.txt; then
            cat lost.txt
            echo "$level, $program: wrong, or said to be"
            exit 1
        fi
        passed=$((passed + 1))
    done
done
eval "\"$TEST_C_COMPILER\" -O1 -DTHERE $includes -c \"$source\" -o foreign.o"
for level in -O0 -O2; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -DHERE $includes \"$source\" foreign.o -lm -o apart" 2>err.txt || { cat err.txt; exit 1; }
    ./apart >out.txt 2>lost.txt
    if [ "$(grep -c wrong out.txt)" -ne 36 ] || grep 'wrong 0' out.txt; then
        cat out.txt lost.txt
        echo "$level, apart: nobody has said so"
        exit 1
    fi
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
