#!/bin/sh
# Every command of docs/how-to/memory.md is run on the program of the tutorial's chapter on memory; they
# print what the page says, but for times and what follows from them. Runs in a folder with a space in its
# name.
set -eu
LC_ALL=C
COLUMNS=80
export LC_ALL COLUMNS
unset TAPESCOPE_PROFILE TAPESCOPE_OPTIONS
page=$TAPESCOPE_SOURCE_DIR/docs/how-to/memory.md
chapter=$TAPESCOPE_SOURCE_DIR/docs/tutorial/6-halve-the-tape.md
work=$(mktemp -d "$TEST_BINARY_DIR/memory page XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin"
cd "$work"
ln -s "$TAPESCOPE_PROGRAM" bin/tapescope
PATH="$work/bin:$PATH"
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH

block() { awk -v lang="$1" '$0 == "```" { on = 0 } on { print } $0 == "```" lang { on = 1 }' "$2"; }
block c "$chapter" >chain.c
block sh "$page" >commands.sh
block text "$page" >promised.txt
[ -s chain.c ] && [ -s commands.sh ] && [ -s promised.txt ]
# shellcheck disable=SC2086 # a list of options
"$TEST_C_COMPILER" -g -O2 $TEST_SANITIZE_FLAGS chain.c -o chain \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope
sh -eux commands.sh >printed.txt 2>err.txt || { cat printed.txt err.txt; exit 1; }
cat printed.txt

# Without times, shares of time, what depends on which of two lines took longer, and the plot, whose
# width is one of time.
stable() {
    tr -s ' ' <"$1" | sed -E -e 's/[0-9.]+(ns|us|ms|s)( |,)/T\2/g' \
        -e 's/T [0-9.]+% /T S /' -e 's/ \*? ?chain/ chain/' -e 's/^ //' |
        grep -vE '^( *[0-9.]+[KM]iB)? ?\||^0 \||^\+|^T  *T' | grep -v '^[0-9.]*[numsT]* *[0-9.]*[num]*s$'
}
stable promised.txt >promised.stable
stable printed.txt >printed.stable
missing=0
while IFS= read -r line; do
    grep -qxF -- "$line" printed.stable || { echo "not printed: $line"; missing=1; }
done <promised.stable
[ $missing -eq 0 ] || { cat printed.stable; exit 1; }

# The frames halve the peak, and a checkpoint on a line takes what the line saves, but for one value.
peak() { tapescope tape --exact "$1" | awk '/live at the tape/ { print $1 }'; }
before=$(peak plain.prof)
after=$(peak frames.prof)
[ $((before - after)) -eq $((32 * 262144)) ] || { echo "from $before to $after"; exit 1; }
tapescope whatif --exact frames.prof >exact.txt
grep -q "^ *$((after - 15 * 262144)) .* chain.c:13 exp" exact.txt || { cat exact.txt; exit 1; }
echo "1 passed, 0 failed"
