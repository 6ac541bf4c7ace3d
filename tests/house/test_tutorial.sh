#!/bin/sh
# The programs and commands of docs/tutorial do what the chapters say. With TAPESCOPE_UPDATE=FOLDER
# the chapters, with the lines as they are printed now, are written there.
set -eu
work=$(mktemp -d "$TEST_BINARY_DIR/tutorial XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/done"
unset TAPESCOPE_PROFILE TAPESCOPE_CLOCK TAPESCOPE_OPTIONS

# What the tutorial's first page sets in the reader's shell. cc is the compiler under test.
printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$TEST_C_COMPILER" "$TEST_SANITIZE_FLAGS" >"$work/bin/cc"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$TAPESCOPE_PROGRAM" >"$work/bin/tapescope"
chmod +x "$work/bin/cc" "$work/bin/tapescope"
PATH="$work/bin:$PATH"
CPATH=$TAPESCOPE_INCLUDE_DIRS
LIBRARY_PATH=$TAPESCOPE_LIB_DIR
LD_RUN_PATH=$TAPESCOPE_LIB_DIR
COLUMNS=80
LC_ALL=C.UTF-8
export PATH CPATH LIBRARY_PATH LD_RUN_PATH COLUMNS LC_ALL
set -- "$TAPESCOPE_SOURCE_DIR"/docs/tutorial/[0-9]*.md
if [ "$TAPESCOPE_PLAIN" != ON ]; then
    for page; do
        shift
        [ "${page##*/}" = 4-plain-c.md ] || set -- "$@" "$page"
    done
fi
python3 "$TEST_SOURCE_DIR/support/pages.py" ${TAPESCOPE_UPDATE+--written "$TAPESCOPE_UPDATE"} "$work/done" "$@"
