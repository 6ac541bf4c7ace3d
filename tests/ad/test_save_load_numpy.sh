#!/bin/sh
# What ad_save writes NumPy reads, and Python's zipfile finds whole; what NumPy writes ad_load
# reads, of every dtype that it takes, in both byte orders and both orders of axes, compressed or
# not, or it says which tensor has which dtype.
set -eu
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
unset TAPESCOPE_PROFILE
python=
for candidate in python3 /usr/bin/python3; do
    [ "$python" ] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
[ "$python" ] || need "NumPy of python3" python3-numpy
work=$(mktemp -d "$TEST_BINARY_DIR/numpy XXXXXX")
files=$(mktemp -d "/dev/shm/tapescope numpy XXXXXX") # in memory: no disk is waited for
trap 'rm -rf "$work" "$files"' EXIT
cd "$work"
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
# shellcheck disable=SC2086 # lists of options
"$TEST_C_COMPILER" -g -Wall -Wextra -Werror $TEST_SANITIZE_FLAGS \
    "$TEST_SOURCE_DIR/programs/files.c" -o files \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
cd "$files"
"$python" "$TEST_SOURCE_DIR/references/npz_files.py" "$TEST_SOURCE_DIR/programs/files.c" \
    "$work/files"
