#!/bin/sh
# The README's program is built, run and profiled by the README's own commands, and prints what the
# README says it prints. Runs in a folder with a space in its name.
set -eu
readme=$TAPESCOPE_SOURCE_DIR/README.md
work="$TEST_BINARY_DIR/read me"
rm -rf "$work"
mkdir -p "$work/build" "$work/bin"
cd "$work"
ln -s "$TAPESCOPE_SOURCE_DIR/ad" ad
ln -s "$TAPESCOPE_BINARY_DIR" build/release

# The README says cc: here that is the compiler under test, with the sanitizer's flags if any.
printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$TEST_C_COMPILER" "$TEST_SANITIZE_FLAGS" >bin/cc
chmod +x bin/cc
PATH="$work/bin:$PATH"

block() { awk -v lang="$1" '$0 == "```" { on = 0 } on { print } $0 == "```" lang { on = 1 }' "$readme"; }
block c >quickstart.c
block sh >commands.sh
[ -s quickstart.c ] && [ -s commands.sh ]
COLUMNS=80 sh -eux commands.sh >out.txt 2>err.txt || { cat out.txt err.txt; exit 1; }
cat out.txt

promised=$(sed -n 's/^It prints `\(.*\)`\. The last command.*/\1/p' "$readme")
[ -n "$promised" ] || { echo "the README promises no output"; exit 1; }
grep -qxF "$promised" out.txt || { echo "the program does not print: $promised"; exit 1; }
# Both tables charge the line of ad_sum(ad_mul(v, ad_exp(v))), the tenth of the program.
line=$(grep -n 'ad_sum(ad_mul' quickstart.c | cut -d: -f1)
grep -q "quickstart.c:$line exp" out.txt || { echo "top does not name the ops of line $line"; exit 1; }
grep -q " $line .*ad_sum(ad_mul" out.txt || { echo "annotate does not show line $line"; exit 1; }
[ -s report.html ] || { echo "html has left no page"; exit 1; }
# Rows of top: annotate never cuts its source.
awk '/^share +total/ { top = 1 } /^share +calls/ { top = 0 } top && /^ *[0-9.]+%/' out.txt >rows.txt
[ -s rows.txt ] || { echo "no rows of top"; exit 1; }
widest=$(LC_ALL=C.UTF-8 wc -L <rows.txt)
[ "$widest" -le 80 ] || { echo "a row of top is $widest columns wide"; exit 1; }

# The tables of the README are what the demo prints, but for times and what a mark says is left out.
tapescope=$TAPESCOPE_BINARY_DIR/bin/tapescope
"$tapescope" record -o digits.prof -- "$TAPESCOPE_BINARY_DIR/bin/digits" >digits.txt
COLUMNS=80 "$tapescope" top digits.prof >demo.txt
COLUMNS=80 "$tapescope" annotate --context 1 digits.c digits.prof >>demo.txt
awk '$0 == "```" { on = 0 } on { print } $0 == "```text" { on = 1 }' "$readme" >tables.txt
[ "$(wc -l <tables.txt)" -ge 9 ] || { echo "the README has no tables"; exit 1; }
python3 "$TEST_SOURCE_DIR/support/excerpt.py" tables.txt demo.txt || { cat demo.txt; exit 1; }
[ "$(wc -l <"$readme")" -le 120 ] || { echo "the README is longer than 120 lines"; exit 1; }
echo "2 passed, 0 failed"
