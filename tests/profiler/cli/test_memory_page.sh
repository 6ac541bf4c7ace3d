#!/bin/sh
# Every command of docs/how-to/memory.md is run on the program of the tutorial's chapter on memory; they
# print what the page says, but for times and what follows from them. Runs in a folder with a space in its
# name.
set -eu
LC_ALL=C.UTF-8
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

printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$TEST_C_COMPILER" "$TEST_SANITIZE_FLAGS" >bin/cc
chmod +x bin/cc
LIBRARY_PATH=$TAPESCOPE_LIB_DIR LD_RUN_PATH=$TAPESCOPE_LIB_DIR
export LIBRARY_PATH LD_RUN_PATH
python3 "$TEST_SOURCE_DIR/support/pages.py" "$work" "$chapter:c"
cc -g -O2 chain.c -o chain -ltapescope
python3 "$TEST_SOURCE_DIR/support/pages.py" "$work" "$page"

# The frames halve the peak, and a checkpoint on a line takes what the line saves, but for one value.
peak() { tapescope tape --exact "$1" | awk '/live at the tape/ { print $1 }'; }
before=$(peak plain.prof)
after=$(peak frames.prof)
[ $((before - after)) -eq $((32 * 262144)) ] || { echo "from $before to $after"; exit 1; }
tapescope whatif --exact frames.prof >exact.txt
grep -q "^ *$((after - 15 * 262144)) .* chain.c:13 exp" exact.txt || { cat exact.txt; exit 1; }
echo "1 passed, 0 failed"
