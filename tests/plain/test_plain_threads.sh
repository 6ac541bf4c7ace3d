#!/bin/sh
# Plain C in several threads (programs/plain_threads.c): each gradient is right with any number of
# threads, or somebody has said that it is not; where the program fixes the order it is the same to
# the bit in each run. TAPESCOPE_EXHAUSTIVE: more levels and numbers of threads, and 20 runs of each.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_threads.c
levels="-O0 -O2"
numbers="1 2 4"
runs=2
# Threads that wait leave the processors to other tests.
export OMP_WAIT_POLICY=passive
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || { levels="-O0 -O1 -O2 -O3" numbers="1 2 3 4 5 8" runs=20; }

# NAME FIRST LAST: the lines of each case with the functions that stand before it.
awk '/^static double [a-z_]+\(const double \*x\)$/ { name = $3; sub(/\(.*/, "", name) }
    name != "" && /^}/ { print name, last + 1, NR; last = NR; name = "" }' "$source" >places

# said NAME: whether the compiler has warned of a line of the case.
said() {
    awk -v name="$1" 'NR == FNR { if ($1 == name) { first = $2; last = $3 } next }
        $1 >= first && $1 <= last { found = 1 } END { exit !found }' places warned
}

passed=0
for level in $levels; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g -fopenmp -Wall -Wextra $includes \"$source\" -o threads" 2>err.txt ||
        { cat err.txt; exit 1; }
    sed -n 's/.*plain_threads\.c:\([0-9]*\):[0-9]*: warning: .*the gradient is lost here.*/\1/p' err.txt >warned
    for name in $(cut -d' ' -f1 places); do
        case $name in multiplied_at_once | in_tasks) continue ;; esac
        ! said "$name" || { cat err.txt; echo "$level: $name is right, and warned of"; exit 1; }
    done
    rm -f alike
    for n in $numbers; do
        for run in $(seq $runs); do
            ./threads "$n" >out.txt 2>lost.txt || { cut -c1-90 out.txt; cat lost.txt; echo "$level, $n threads: wrong"; exit 1; }
            while read -r name how lost rest; do
                if [ "$how" = wrong ] && [ "$lost" = 0 ] && ! said "$name"; then
                    cat err.txt lost.txt
                    echo "$level, $n threads: $name is wrong, and nobody has said so"
                    exit 1
                fi
            done <out.txt
            # Nothing is said of differences, which threads take when the tape was reset.
            sed -n 's/.*plain_threads\.c:\([0-9]*\) in .*: a gradient is lost.*/\1/p' lost.txt |
                awk 'NR == FNR { name[++n] = $1; first[n] = $2; last[n] = $3; next }
                    { for (k = 1; k <= n; k++) if ($1 >= first[k] && $1 <= last[k]) print name[k] }' \
                    places - | grep -vE '^(multiplied_at_once|in_tasks|flagged)$' >false.txt &&
                { cat false.txt lost.txt; echo "$level, $n threads: what is right was said to be lost"; exit 1; }
            [ "$(wc -l <out.txt)" -eq "$(grep -c '^    X(' "$source")" ] || { cat out.txt; echo "not all ran"; exit 1; }
            grep -E ' (same|alike) ' out.txt >same.now
            [ "$run" -gt 1 ] || cp same.now same
            cmp same same.now || { echo "$level, $n threads: another gradient, run $run"; exit 1; }
            grep ' alike ' out.txt >alike.now
            [ -e alike ] || cp alike.now alike
            cmp alike alike.now || { echo "$level: another gradient with $n threads"; exit 1; }
            passed=$((passed + 1))
        done
    done
done

# What is handed over without order is named by its line.
line=$(grep -n 'b = a \* x\[2\];' "$source" | cut -d: -f1)
grep -q "plain_threads.c:$line in flagged.*: a gradient is lost" lost.txt ||
    { cat lost.txt; echo "the read without order is not named by its line"; exit 1; }

# An atomic addition stands on the program's line.
"$TAPESCOPE_PROGRAM" record -o atomic.prof ./threads 2 added >out.txt 2>&1 || { cat out.txt; exit 1; }
"$TAPESCOPE_PROGRAM" top --json -n 0 atomic.prof >atomic.json
for text in 'sum += sin(x\[i\]) \* x\[1\];' 'less -= x\[i\] \* x\[i\];'; do
    line=$(grep -n "$text" "$source" | cut -d: -f1)
    jq -e --arg file "$source" --argjson line "$line" \
        '[.rows[] | select(.file == $file and .line == $line and (.ops | index("statement")))] | length == 1' \
        atomic.json >out.txt || { cat atomic.json; echo "no atomic addition on line $line"; exit 1; }
done
jq -e '[.rows[] | select((.file // "") | contains("/plain/runtime/"))] | length == 0' atomic.json >out.txt ||
    { cat atomic.json; echo "a row is on a line of the runtime"; exit 1; }
echo "$passed passed, 0 failed"
