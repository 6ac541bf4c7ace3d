#!/bin/sh
# The first program of docs/PROGRAMS.md prints what the page says; the second, model.c, writes C that
# has what the page shows, and is compiled without a warning.
set -eu
# shellcheck source=tests/support/page.inc
. "$TEST_SOURCE_DIR/support/page.inc"
page_runs PROGRAMS.md

block() {
    awk -v begin="\`\`\`$1" '$0 == "```" { on = 0 } on { print } $0 == begin { on = 1 }' "$page"
}
block 'c model.c' >model.c
block text >shown
if [ ! -s model.c ] || [ ! -s shown ]; then
    echo "the page shows no file that is written"
    exit 1
fi
TAPESCOPE_MODULE_DIR=$TAPESCOPE_LIB_DIR/tapescope
export TAPESCOPE_MODULE_DIR
# shellcheck disable=SC2086 # lists of options
"$TEST_C_COMPILER" -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
    $TEST_SANITIZE_FLAGS model.c -o model \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
./model >written.c
"$TEST_C_COMPILER" -std=c99 -O2 -Wall -Wextra -Werror -c written.c -o written.o
while IFS= read -r line; do
    grep -Fqx -- "$line" written.c || { echo "the file lacks: $line"; cat written.c; exit 1; }
done <shown
