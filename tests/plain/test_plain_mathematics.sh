#!/bin/sh
# The functions of <math.h> (programs/plain_mathematics.c) have right gradients in each floating
# type. Where one is lost, the message has the program's own line, once, and the name of a function
# of another compiler.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_mathematics.c
passed=0
line_of() { grep -n "/\* $1 \*/" "$source" | cut -d: -f1; }
for level in -O0 -O2; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -w $includes \"$source\" -lm -o mathematics" 2>err.txt ||
        { cat err.txt; exit 1; }
    ./mathematics >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: wrong"; exit 1; }
    ./mathematics lost >out.txt 2>lost.txt
    [ -z "$(sort lost.txt | uniq -d)" ] || { cat lost.txt; echo "$level: twice for a line"; exit 1; }
    grep -q "c:$(line_of unknown) in lost: a gradient is lost: active values went into canonicalize (not compiled by" lost.txt ||
        { cat lost.txt; echo "$level: canonicalize is not named"; exit 1; }
    grep -q "c:$(line_of text) in lost: a gradient is lost: a number is read from text" lost.txt ||
        { cat lost.txt; echo "$level: atof has not the program's line"; exit 1; }
    if [ $level = -O0 ]; then
        grep -q "c:$(line_of overwritten) in lost: .*overwritten by arithmetic on its bits" lost.txt ||
            { cat lost.txt; echo "$level: no cause of what was overwritten"; exit 1; }
    fi
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
