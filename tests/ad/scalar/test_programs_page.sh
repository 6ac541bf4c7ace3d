#!/bin/sh
# The first program of docs/how-to/programs.md prints what the page says; the second, model.c, writes C
# that has what the page shows, and is compiled without a warning; so does the third, net.c.
set -eu
# shellcheck source=tests/support/page.inc
. "$TEST_SOURCE_DIR/support/page.inc"
page_runs how-to/programs.md

block() {
    awk -v begin="\`\`\`$1" '$0 == "```" { on = 0 } on { print } $0 == begin { on = 1 }' "$page"
}
# The text blocks, one file each.
awk '$0 == "```" { on = 0 } on { print > ("shown" n) } $0 == "```text" { on = 1; n++ }' "$page"
TAPESCOPE_MODULE_DIR=$TAPESCOPE_LIB_DIR/tapescope
export TAPESCOPE_MODULE_DIR

# writes NAME N: the program NAME.c of the page writes a file of which the N-th text is an excerpt.
writes() {
    block "c $1.c" >"$1.c"
    if [ ! -s "$1.c" ] || [ ! -s "shown$2" ]; then
        echo "the page shows no file that $1 writes"
        exit 1
    fi
    # shellcheck disable=SC2086 # lists of options
    "$TEST_C_COMPILER" -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
        $TEST_SANITIZE_FLAGS "$1.c" -o "$1" \
        -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
    "./$1" >written.c
    "$TEST_C_COMPILER" -std=c99 -O2 -Wall -Wextra -Werror -c written.c -o written.o
    python3 "$TEST_SOURCE_DIR/support/excerpt.py" --exact "shown$2" written.c || { cat written.c; exit 1; }
}
writes model 1
writes net 2
