#!/bin/sh
# The functions of <tapescope/ad_plain.h> beyond leaves and gradients (programs/plain_interface.c):
# Jacobians, comparison with differences, skipped functions, rules, checkpoints, sections. And what
# records call leaves all registers as they are (programs/plain_kept.c).
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
"$TEST_C_COMPILER" -O2 -c "$programs/plain_foreign.c" -o foreign.o
passed=0
for level in -O0 -O1 -O2 -O3; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -Wall -Wextra $includes \"$programs/plain_interface.c\" \
        foreign.o -o interface" 2>err.txt || { cat err.txt; exit 1; }
    ! grep 'warning' err.txt || { echo "$level: a warning"; exit 1; }
    ./interface >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: wrong"; exit 1; }
    line=$(grep -n '/\* the line \*/' "$programs/plain_interface.c" | cut -d: -f1)
    grep -q "^where plain_interface.c:$line in losing_late$" out.txt ||
        { cat out.txt; echo "$level: the check names another line than $line"; exit 1; }
    line=$(grep -n '/\* all constant \*/' "$programs/plain_interface.c" | cut -d: -f1)
    [ "$(grep -c 'plain_jacobian: all y are constants' lost.txt)" -eq 1 ] &&
        grep -q "^tapescope: plain_interface.c:$line in constants: plain_jacobian" lost.txt ||
        { cat lost.txt; echo "$level: constant results are not said once"; exit 1; }
    passed=$((passed + 1))
done
# Linked without the runtime: one name among those that are missing says what to do.
eval "\"$TAPESCOPE_PROGRAM\" cc -O2 $includes -c \"$programs/plain_interface.c\" -o interface.o"
if LC_ALL=C "$TEST_C_COMPILER" interface.o foreign.o -lm -o without 2>err.txt; then
    echo "it is linked without the runtime"
    exit 1
fi
grep -q 'undefined reference to .ad_plain_must_be_linked_by_tapescope_cc' err.txt || { cat err.txt; exit 1; }
passed=$((passed + 1))
eval "\"$TEST_C_COMPILER\" -g $includes -c \"$programs/plain_kept.c\" -o kept.o"
"$TAPESCOPE_PROGRAM" cc kept.o -o kept
./kept >out.txt || { cat out.txt; echo "registers are changed"; exit 1; }
passed=$((passed + 1))
echo "$passed passed, 0 failed"
