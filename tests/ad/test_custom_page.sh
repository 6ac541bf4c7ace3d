#!/bin/sh
# The programs of docs/how-to/custom-ops.md are built and run, and print what the page says; a profile of the
# first has the op under the rule's name, on the lines of the calls. Runs in a folder with a space in its name.
set -eu
LC_ALL=C
export LC_ALL
unset TAPESCOPE_PROFILE TAPESCOPE_OPTIONS
page=$TAPESCOPE_SOURCE_DIR/docs/how-to/custom-ops.md
work=$(mktemp -d "$TEST_BINARY_DIR/custom page XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH

block() { awk -v lang="$1" '$0 == "```" { on = 0 } on { print } $0 == "```" lang { on = 1 }' "$page"; }
block c >poisson.c
block text >promised.txt
[ -s poisson.c ] && [ -s promised.txt ]
block 'c lambert.c' >lambert.c
for program in poisson lambert; do
    # shellcheck disable=SC2086 # a list of options
    "$TEST_C_COMPILER" -g -O2 -Wall -Wextra -Werror $TEST_SANITIZE_FLAGS $program.c -o $program \
        -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope
done
# shellcheck disable=SC2016 # the backquotes are the page's
sed -n 's/^It prints `\(.*\)`\.$/\1/p' "$page" >promised.w
[ -s promised.w ]
./lambert | diff promised.w -
./poisson >printed.txt
diff promised.txt printed.txt
"$TAPESCOPE_PROGRAM" record -o poisson.prof -- ./poisson >/dev/null 2>&1
COLUMNS=160 "$TAPESCOPE_PROGRAM" top -n 0 poisson.prof >top.txt
for call in 'NULL, 1, &f, 1, &u' 'payload, 1, &c->out_adjoint'; do
    line=$(grep -nF "$call" poisson.c | cut -d: -f1)
    grep -q " poisson.c:$line poisson" top.txt || { cat top.txt; exit 1; }
done
echo "2 passed, 0 failed"
