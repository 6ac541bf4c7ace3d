#!/bin/sh
# Loops and nests of plain C (programs/plain_loops.c, and random ones of
# programs/plain_loops_generate.c) have the gradients that their statements have, whichever arrays
# are active; those that can be are one record, on their own line, to the byte. Random ones of
# several loops in one may be chaotic: only they are not compared with differences. What is written
# is compiled at the lowest level, what is random at the highest, with functions of one body.
# TAPESCOPE_EXHAUSTIVE: what is written there too; 7500 random loops, as many nests, and 625 of
# several loops in one, at each level.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
cp "$programs/plain_loops.c" .
passed=0
last=
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || last="-O3 -DOPEN"
for level in -O1 ${last:+"$last"}; do
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g1 $includes plain_loops.c -o loops -lm"
    ./loops >out.txt 2>err.txt || { cat out.txt err.txt; echo "$level: one that must be right is wrong"; exit 1; }
    grep -q ' 0 wrong' out.txt || { cat out.txt; echo "$level: not all ran"; exit 1; }
    "$TAPESCOPE_PROGRAM" record -o loops.prof ./loops lines >out.txt 2>err.txt || { cat err.txt; exit 1; }
    read -r bytes <out.txt
    "$TAPESCOPE_PROGRAM" top --json loops.prof >top.json
    first=$(grep -n 'b\[i\] = 0.3 \* a\[i - 1\]' plain_loops.c | cut -d: -f1)
    second=$(grep -n '^            a\[i\] = b\[i\] \* s;' plain_loops.c | cut -d: -f1)
    third=$(grep -n 'b\[i \* m + j\] = 0.25 \*' plain_loops.c | cut -d: -f1)
    fourth=$(grep -n 'a\[i \* m + j\] += s \* b\[i \* m + j\]' plain_loops.c | cut -d: -f1)
    fifth=$(grep -n 'c\[i\] = exp(-a\[i\]) / a\[i\]' plain_loops.c | cut -d: -f1)
    sixth=$(grep -n 'y += a\[i \* m + k\] \* b\[k \* m + j\]' plain_loops.c | cut -d: -f1)
    mixture=$(grep -n 'y\[r\] += \*l++ \* u\[c\]' plain_loops.c | cut -d: -f1)
    carried=$(grep -n 'z = z \* 0.9 + sin(y \* a\[i \* of + j\]) \* s;' plain_loops.c | cut -d: -f1)
    smoothed=$(grep -n 'a\[i\] = (a\[i\] + s \* a\[i + 1\]) \* 0.7' plain_loops.c | cut -d: -f1)
    # Four records a line of loops, three of nests, one of several loops in one, with their time both
    # ways; those of several statements on the dearest one's line; all lines together are the tape.
    jq -e --argjson bytes "$bytes" --argjson loops "[$first, $second]" --argjson nests "[$third, $fourth]" \
        --argjson dear "$fifth" --argjson within "$sixth" \
        --argjson regions "[$mixture, $carried, $smoothed]" \
        'def records(lines; n): [.rows[] | select(.line as $line | lines | index($line)) | select(.ops | index("loop"))]
           | length == (lines | length) and all(.calls == n and .forward_ns > 0 and .backward_ns > 0);
         records($loops; 4) and records($nests; 3) and records([$dear]; 1) and records([$within]; 1)
         and records($regions; 1)
         and ([.rows[] | select(.ops | index("loop") or index("statement")) | .record_bytes] | add)
           as $all | $all >= $bytes and $all < $bytes + 4096' top.json >/dev/null ||
        { cat out.txt; jq -c '.rows[] | [.ops, .file, .line, .calls, .record_bytes]' top.json; echo "$level: other lines or bytes"; exit 1; }
    # And so it is beside the source.
    "$TAPESCOPE_PROGRAM" annotate --context 0 plain_loops.c loops.prof >annotated.txt 2>&1
    grep -Eq " 1 .* $sixth +y \+= a" annotated.txt ||
        { cat annotated.txt; echo "$level: not beside its line"; exit 1; }
    passed=$((passed + 1))
done

"$TEST_C_COMPILER" -O1 "$programs/plain_loops_generate.c" -o generate
seeds='5 23 29' loops=6 regions=2 # of each kind some, at -O3 -DOPEN
if [ -n "${TAPESCOPE_EXHAUSTIVE-}" ]; then
    seeds=$(seq 625) loops=30 regions=5
fi
for seed in $seeds; do
    count=$loops
    case $((seed % 5)) in
    0 | 1) kind= ;;
    2 | 3) kind=nests ;;
    *) kind=regions count=$regions ;;
    esac
    ./generate "$seed" $count $kind >random.h
    level=-O$((seed % 3 + 1))
    [ $((seed % 2)) -eq 0 ] || level="$level -DOPEN"
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -DRANDOM -I. $includes plain_loops.c -o random -lm"
    ./random >out.txt 2>&1 || { head -n 20 out.txt; echo "seed $seed, $level"; exit 1; }
    grep -q "^$count loops, 0 wrong, [1-9][0-9]* with a record$" out.txt || { cat out.txt; echo "no records, or not all ran"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
