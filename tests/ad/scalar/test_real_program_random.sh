#!/bin/sh
# Random functions (programs/plain_generate.c) as programs of numbers: gradients, Hessians and
# replays are those of statements. TAPESCOPE_EXHAUSTIVE: 800 of them; else 4.
set -eu
programs=$TAPESCOPE_SOURCE_DIR/tests/programs
work=$(mktemp -d "$TEST_BINARY_DIR/program XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
includes=$(printf '%s' "$TAPESCOPE_INCLUDE_DIRS" | tr ':' '\n' | sed 's/.*/-I"&"/' | tr '\n' ' ')
export TAPESCOPE_MODULE_DIR="$TAPESCOPE_LIB_DIR/tapescope"
"$TEST_C_COMPILER" -O1 "$programs/plain_generate.c" -o generate
count=4
last=1
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || { count=20 last=40; }
options="-g -DUNROUNDED -I. $includes $TEST_SANITIZE_FLAGS"
for seed in $(seq $last); do
    ./generate "$seed" $count >random.h
    # The program's level takes turns; code over ad_real takes long to optimise.
    eval "\"$TEST_C_COMPILER\" -O0 -DREALS $options -c \"$programs/plain_random.c\" -o reals.o"
    eval "\"$TEST_C_COMPILER\" -O$((seed % 3)) -DPROGRAM $options -c \"$programs/plain_random.c\" \
        -o program.o"
    eval "\"$TEST_C_COMPILER\" -O1 $options \"$programs/program_compares.c\" reals.o program.o \
        -o compares -L\"$TAPESCOPE_LIB_DIR\" -Wl,-rpath,\"$TAPESCOPE_LIB_DIR\" -ltapescope -lm"
    ./compares >out.txt 2>&1 || { cat out.txt; echo "seed $seed"; exit 1; }
    grep -Eq '^[1-9][0-9]* compared' out.txt || { cat out.txt; echo "nothing was compared"; exit 1; }
    [ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || echo "seed $seed: $(cat out.txt)"
done
echo "$last passed, 0 failed"
