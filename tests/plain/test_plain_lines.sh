#!/bin/sh
# What plain C records stands on its own lines, to the byte, with whole stacks, though the file knows
# nothing of tapes; its main program is compiled by another compiler. A break on such a line stops at
# its records.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
cp "$programs/plain_lines.c" .
first=$(grep -n '^static double inner' plain_lines.c | cut -d: -f1)
last=$(grep -n '^#else' plain_lines.c | cut -d: -f1)
passed=0
for level in -O0 -O1 -O2; do
    "$TAPESCOPE_PROGRAM" cc $level -g -c plain_lines.c -o lines.o
    eval "\"$TEST_C_COMPILER\" -g -DPLAIN_MAIN $includes -c plain_lines.c -o main.o"
    "$TAPESCOPE_PROGRAM" cc main.o lines.o -o lines
    "$TAPESCOPE_PROGRAM" record -o lines.prof ./lines >out.txt 2>err.txt || { cat err.txt; exit 1; }
    read -r statements bytes <out.txt
    "$TAPESCOPE_PROGRAM" top --json lines.prof >top.json
    # Every statement lies within the two functions, and their bytes are the tape's.
    jq -e --argjson n "$statements" --argjson bytes "$bytes" --argjson first "$first" --argjson last "$last" \
        '[.rows[] | select(.ops == ["statement"])] | map(.calls) as $calls | map(.record_bytes) as $b
         | all(.line > $first and .line < $last and (.file | endswith("plain_lines.c")))
           and ($calls | add) == $n and ($b | add) >= $bytes and ($b | add) < $bytes + 4096' top.json >/dev/null ||
        { cat out.txt; jq -c '.rows[] | [.ops, .file, .line, .calls, .record_bytes]' top.json; echo "$level: other lines or bytes"; exit 1; }
    # Stacks are followed from each of them to the outermost function.
    "$TAPESCOPE_PROGRAM" tree lines.prof >tree.txt
    if grep 'cut off' tree.txt || ! grep -q 'main plain_lines.c' tree.txt; then
        cat tree.txt
        echo "$level: not the whole stack"
        exit 1
    fi
    # Which call a statement is of is its run's: that is said where it is shown, and times are estimates.
    "$TAPESCOPE_PROGRAM" annotate plain_lines.c lines.prof >annotate.txt
    for shown in tree annotate; do
        grep -q "^Statements have their run's callers: tapescope help profile#call-paths$" $shown.txt ||
            { cat $shown.txt; echo "$level: $shown does not say whose callers it shows"; exit 1; }
    done
    grep -q '  *~[0-9][^ ]*  *[0-9]*  *plain_lines(x, 1000, &y);' annotate.txt ||
        { cat annotate.txt; echo "$level: what was called is no estimate"; exit 1; }
    # Each of the 1000 rounds records on the line, and is swept there.
    line=$(grep -n '/\* sum \*/' plain_lines.c | cut -d: -f1)
    ./lines "$line" >out.txt 2>err.txt || { cat err.txt; exit 1; }
    sort err.txt | uniq -c | sed 's/^ *//' >told.txt
    printf '1000 tapescope: break: statement at plain_lines.c:%s in plain_lines, %s\n' \
        "$line" backward "$line" forward >promised.txt
    if [ "$(cat out.txt)" != "1000 2000" ] || ! cmp told.txt promised.txt; then
        cat out.txt told.txt
        echo "$level: it breaks elsewhere"
        exit 1
    fi
    ./lines 1 >out.txt 2>err.txt
    if [ "$(cat out.txt)" != "0 0" ] || [ -s err.txt ]; then
        echo "$level: it breaks without a record"
        exit 1
    fi
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
