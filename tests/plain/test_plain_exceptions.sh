#!/bin/sh
# C++ in which exceptions pass through functions that are recorded (programs/plain_exceptions.cpp):
# no warning, no message at run time, and the gradients of differences. TAPESCOPE_EXHAUSTIVE: at
# four levels.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_exceptions.cpp
printf 'double pass_on(double (*f)(const double *), const double *x) { return f(x); }\n' >pass_on.c
"$TEST_C_COMPILER" -O1 -fexceptions -c pass_on.c
levels="-O0 -O2"
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || levels="-O0 -O1 -O2 -O3"
passed=0
for level in $levels; do
    eval "\"$TAPESCOPE_PROGRAM\" c++ --strict $level -g -Wall -Wextra $includes \"$source\" pass_on.o -o exceptions" 2>err.txt ||
        { cat err.txt; exit 1; }
    ! grep 'warning' err.txt || { echo "$level: a warning"; exit 1; }
    ./exceptions >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: wrong"; exit 1; }
    [ ! -s lost.txt ] || { cat lost.txt; echo "$level: a message"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
