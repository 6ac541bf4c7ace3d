#!/bin/sh
# Random functions (programs/plain_generate.c) have the same gradients as plain C, compiled at four
# levels, and over ad_real by another compiler; and no message. TAPESCOPE_EXHAUSTIVE: 10 000 of them,
# each at all levels; else each at two.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
"$TEST_C_COMPILER" -O1 "$programs/plain_generate.c" -o generate
count=5
last=2
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || { count=40 last=250; }
for seed in $(seq $last); do
    ./generate "$seed" $count >random.h
    eval "\"$TEST_C_COMPILER\" -O0 -DREALS -DNDEBUG -I. $includes -c \"$programs/plain_random.c\" -o reals.o"
    levels="-O0 -O1 -O2 -O3"
    if [ -z "${TAPESCOPE_EXHAUSTIVE-}" ]; then
        levels="-O0 -O2"
        [ "$seed" -eq 1 ] || levels="-O1 -O3"
    fi
    for level in $levels; do
        eval "\"$TAPESCOPE_PROGRAM\" cc --strict $level -I. $includes -c \"$programs/plain_random.c\" -o plain.o"
        eval "\"$TAPESCOPE_PROGRAM\" cc --strict $level -I. $includes -DCOMPARES \"$programs/plain_random.c\" \
            plain.o reals.o -o random"
        ./random >out.txt 2>&1 || { head -n 20 out.txt; echo "seed $seed, $level"; exit 1; }
        grep -q "^$count compared$" out.txt || { cat out.txt; echo "not all ran"; exit 1; }
    done
done
echo "$last passed, 0 failed"
