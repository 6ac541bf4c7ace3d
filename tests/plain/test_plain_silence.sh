#!/bin/sh
# No gradient is lost without a message: random functions (programs/plain_silence_generate.c) with
# foreign functions, bits, text, files, threads and assembly. Each gradient is that of differences,
# or somebody has said that it is not: the compiler, with a line of the function, or the library. Of
# functions that have nothing of that nothing is said.
# TAPESCOPE_EXHAUSTIVE: thousands, at four levels.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
"$TEST_C_COMPILER" -O1 "$programs/plain_silence_generate.c" -o generate
"$TEST_C_COMPILER" -O2 -c "$programs/plain_silence_foreign.c" -o foreign.o
ar rc libforeign.a foreign.o
count=120
last=1
levels="-O0 -O2"
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || { last=${TAPESCOPE_SILENCE:-40} levels="-O0 -O1 -O2 -O3"; }
passed=0
for seed in $(seq $last); do
    ./generate "$seed" $count >silence.h
    # NAME FIRST LAST: the lines of each function.
    awk '/^static double [a-z]+_[0-9]+\(/ { name = $3; sub(/\(.*/, "", name); first = NR }
        /^}/ && name != "" { print name, first, NR; name = "" }' silence.h >places
    for level in $levels; do
        eval "\"$TAPESCOPE_PROGRAM\" cc $level -gline-tables-only -I. $includes -D_GNU_SOURCE -pthread \"$programs/plain_silence.c\" \
            libforeign.a -lm -o silence" 2>err.txt || { cat err.txt; exit 1; }
        sed -n 's/.*silence\.h:\([0-9]*\):[0-9]*: warning: .*the gradient is lost here.*/\1/p' err.txt >warned
        if grep 'the gradient is lost here' err.txt | grep -v 'silence\.h:'; then
            echo "seed $seed, $level: a warning of what is no random function"
            exit 1
        fi
        ./silence >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "seed $seed, $level: it fails"; exit 1; }
        [ "$(wc -l <out.txt)" -eq $count ] || { echo "seed $seed, $level: not all ran"; exit 1; }
        awk 'FILENAME == "places" { first[$1] = $2; last[$1] = $3; next }
            FILENAME == "warned" { line[$1]; next }
            {
                said = $3 > 0
                for (l = first[$1]; l <= last[$1]; l++)
                    if (l in line) said = 1
                if ($2 == "wrong" && !said) print $0, "and nobody has said so"
                if ($1 ~ /harmless/ && said) print $0, "and harmless"
            }' places warned out.txt >silent
        while read -r name rest; do
            sed -n "/^static double $name(/,/^}/p" silence.h
            echo "seed $seed, $level: $name: $rest"
        done <silent
        [ ! -s silent ] || exit 1
        passed=$((passed + 1))
    done
done

# Memory that a function has kept since before the recording, or from another thread; short text.
"$TEST_C_COMPILER" -DFOREIGN -O2 -c "$programs/plain_given.c" -o given_foreign.o
eval "\"$TAPESCOPE_PROGRAM\" cc -O1 -g -pthread $includes \"$programs/plain_given.c\" given_foreign.o -o given"
for when in before thread never text; do
    expected="21 1"
    [ $when != never ] || expected="9 0"
    [ $when != text ] || expected="67 8"
    [ "$(./given $when 2>lost.txt)" = "$expected" ] || { cat lost.txt; echo "given, $when: $(./given $when)"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
