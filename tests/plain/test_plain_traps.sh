#!/bin/sh
# Plain C in which gradients are easily lost (programs/plain_traps.c): each is right, or somebody
# has said that it is not: the compiler, with a line of the trap, or the library at run time.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_traps.c
"$TEST_C_COMPILER" -O2 -DWITH_GLOBAL -c "$programs/plain_foreign.c" -o foreign.o

# NAME FIRST LAST: the lines of each trap with the functions that stand before it.
awk '/^static double [a-z_]+\(const double \*x\)$/ { name = $3; sub(/\(.*/, "", name) }
    name != "" && /^}/ { print name, last + 1, NR; last = NR; name = "" }' "$source" >places

# said NAME: whether the compiler has warned of a line of the trap.
said() {
    awk -v name="$1" 'NR == FNR { if ($1 == name) { first = $2; last = $3 } next }
        $1 >= first && $1 <= last { found = 1 } END { exit !found }' places warned
}

passed=0
for level in -O0 -O1 -O2 -O3; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -Wall -Wextra $includes \"$source\" foreign.o -o traps" 2>err.txt ||
        { cat err.txt; exit 1; }
    sed -n 's/.*plain_traps\.c:\([0-9]*\):[0-9]*: warning: .*the gradient is lost here.*/\1/p' err.txt >warned
    if grep 'warning:' err.txt | grep -v 'the gradient is lost here'; then
        echo "$level: a warning of another kind"
        exit 1
    fi
    ./traps >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: one that must be right is wrong"; exit 1; }
    while read -r name how lost; do
        if [ "$how" = wrong ] && [ "$lost" = 0 ] && ! said "$name"; then
            cat err.txt
            echo "$level: $name is wrong, and nobody has said so"
            exit 1
        fi
    done <out.txt
    [ "$(wc -l <out.txt)" -eq "$(wc -l <places)" ] || { echo "$level: not all ran"; exit 1; }
    # The line that is named is the trap's own.
    line=$(grep -n 'return foreign_sum(x, 4) \* x\[0\];' "$source" | cut -d: -f1)
    grep -q "plain_traps.c:$line in summed_elsewhere: a gradient is lost" lost.txt ||
        { cat lost.txt; echo "$level: the foreign call is not named by its line"; exit 1; }
    # What is right is not warned of where all code is optimised.
    if [ $level != -O0 ]; then
        for name in structures by_value copied copied_on_two_ways copied_by_choice sorted vectors mathematics chosen; do
            ! said $name || { cat err.txt; echo "$level: $name is right, and warned of"; exit 1; }
        done
    fi
    passed=$((passed + 1))
done

# A build without warnings is told of as much.
eval "\"$TAPESCOPE_PROGRAM\" cc -w $level -g -c $includes \"$source\" -o quiet.o" 2>err.txt
sed -n 's/.*plain_traps\.c:\([0-9]*\):[0-9]*: warning: .*the gradient is lost here.*/\1/p' err.txt >quiet
sort -u warned >warned.lines
sort -u quiet | diff warned.lines - || { echo "-w: not the same lines"; exit 1; }

# --strict: an error of the compiler, and of the tape at run time.
if eval "\"$TAPESCOPE_PROGRAM\" cc --strict -O2 -c $includes \"$source\" -o strict.o" 2>err.txt; then
    echo "--strict compiles what loses gradients"
    exit 1
fi
grep -q 'plain_traps.c:[0-9]*:[0-9]*: error: .*the gradient is lost here' err.txt ||
    { cat err.txt; echo "--strict: no error"; exit 1; }
echo "$passed passed, 0 failed"
