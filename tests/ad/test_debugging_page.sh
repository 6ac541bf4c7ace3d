#!/bin/sh
# The session of docs/how-to/debugging.md, typed into gdb, shows what the page says; so does a core file. gdb
# finds what it prints handles by itself, beside the library. Garbage, and memory that is not there,
# are said in words.
set -eu
LC_ALL=C
export LC_ALL
unset TAPESCOPE_PROFILE TAPESCOPE_OPTIONS DEBUGINFOD_URLS
if ! command -v gdb >/dev/null; then
    echo "skipped: gdb is not installed (scripts/install-deps --tests)"
    exit 0
fi
page=$TAPESCOPE_SOURCE_DIR/docs/how-to/debugging.md
work=$(mktemp -d "$TEST_BINARY_DIR/debugging page XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
HOME=$work # no settings of anybody's
export HOME

block() { awk -v lang="$1" '$0 == "```" { on = 0 } on { print } $0 == "```" lang { on = 1 }' "$page"; }
# gdb writes what is reserved into a core file, which is 64 GiB unless it is said.
block c | sed 's/ad_tape_create(&tape, NULL)/ad_tape_create(\&tape, \&(ad_tape_options){.reserve_bytes = 4 << 20})/' >net.c
grep -q reserve_bytes net.c
block text >session.txt
[ -s net.c ] && [ -s session.txt ]
"$TEST_C_COMPILER" -g -O0 -Wall -Wextra -Werror net.c -o net \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm

gdb_runs() {
    timeout 60 gdb -nx -batch -iex "add-auto-load-safe-path $TAPESCOPE_LIB_DIR" -iex "set debuginfod enabled off" \
        -ex "set width 0" -ex "set confirm off" -ex "set trace-commands on" -x commands.gdb "$@" >shown.txt 2>&1
}

# shows FILE: each line of FILE is one that gdb has shown, in this order.
shows() {
    awk -v promised="$1" '{ line[n++] = $0 }
        END { at = 0
              while ((getline wanted < promised) > 0) {
                  while (at < n && line[at] != wanted) at++
                  if (at == n) { print "not shown, or not there: " wanted; exit 1 }
                  at++ } }' shown.txt || { cat shown.txt; exit 1; }
}

sed -n 's/^(gdb) //p' session.txt >commands.gdb
cat >>commands.gdb <<'END'
generate-core-file net.core
print (ad_tensor){tape.slot, tape.generation, 4000000000, 1}
print (ad_tensor){4000000000, 1, 1, 1}
print (ad_tensor){2, 1, 1, 1}
print (ad_tape){tape.slot, tape.generation + 1}
print (ad_real){1, 4000000000, b.tag}
print (ad_real){1, 2, b.tag - 1}
print (ad_real){1, 3, 0xffff0001}
print (ad_real){1, 0, 7}
set var ad_slots[tape.slot].tape->entries[y.value].array.data = 16
print y
set var ad_slots[tape.slot].tape = 16
print y
print b
print tape
kill
END
gdb_runs ./net || { cat shown.txt; exit 1; }
sed -n '/^+generate-core-file/q; s/^+/(gdb) /; p' shown.txt >session.shown
python3 "$TEST_SOURCE_DIR/support/excerpt.py" --exact session.txt session.shown || { cat shown.txt; exit 1; }
cat >promised.txt <<'END'
$9 = {dropped by a reset or a rewind, tape = 1, tape_generation = 1, value = 4000000000, value_generation = 1}
$10 = {no handle, tape = 4000000000, tape_generation = 1, value = 1, value_generation = 1}
$11 = {of a tape that was destroyed, tape = 2, tape_generation = 1, value = 1, value_generation = 1}
$12 = {of a tape that was destroyed, slot = 1, generation = 2}
$13 = {1, index 4000000000, dropped by a reset or a rewind}
$14 = {1, index 2, dropped by a reset or a rewind}
$15 = {1, index 3, of a tape that was destroyed}
$16 = {1, poisoned}
END
shows promised.txt
grep -q '^[$]17 = {its memory cannot be read, ' shown.txt || { cat shown.txt; exit 1; }
for n in 18 19 20; do
    grep -q "^\$$n = {not readable: .*Cannot access memory at address 0x" shown.txt ||
        { echo "\$$n:"; cat shown.txt; exit 1; }
done

cat >commands.gdb <<'END'
frame function main
print w
print y
print b
print tape
print wrong
END
gdb_runs ./net net.core || { cat shown.txt; exit 1; }
n=0
for at in 6 3 4 7 8; do # as they are above
    n=$((n + 1))
    sed -n "s/^[$]$at = /\$$n = /p" session.txt
done >promised.txt
shows promised.txt

# What ad_tape_print writes of the same program, without the break.
mkdir print
sed 's/.*ad_break_on_op.*//; s/ad_real a, b;/ad_tape_print(stdout, tape, 10); &/' net.c >print/net.c
"$TEST_C_COMPILER" -g -O0 print/net.c -o print/net \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
./print/net >shown.txt
sed -n '/^## See the whole/,/^Behind/s/^    //p' "$page" >promised.txt
[ -s promised.txt ]
shows promised.txt
echo "2 passed, 0 failed"
