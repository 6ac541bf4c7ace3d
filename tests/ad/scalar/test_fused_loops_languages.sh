#!/bin/sh
# Fused loops give the same in C and in C++, by each compiler, without a warning.
set -eu
work=$(mktemp -d "$TEST_BINARY_DIR/fused loops XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
includes=$(printf '%s' "$TAPESCOPE_INCLUDE_DIRS" | tr ':' '\n' | sed 's/.*/-I"&"/' | tr '\n' ' ')
passed=0
# try COMPILER LANGUAGE STANDARD
try() {
    eval "\"$1\" -x $2 $3 -O1 -Wall -Wextra -Wshadow -Werror $includes $TEST_SANITIZE_FLAGS \
        \"$TAPESCOPE_SOURCE_DIR/tests/programs/fused_loops.c\" -x none -o loops -L\"$TAPESCOPE_LIB_DIR\" \
        -Wl,-rpath,\"$TAPESCOPE_LIB_DIR\" -ltapescope -lm"
    ./loops || { echo "$1 -x $2: values or gradients are wrong"; exit 1; }
    passed=$((passed + 1))
}
try "$TEST_C_COMPILER" c -std=gnu11
[ -z "$TEST_CXX_COMPILER" ] || try "$TEST_CXX_COMPILER" c++ -std=c++14
if [ -n "$TEST_CLANG" ] && [ -z "$TEST_SANITIZE_FLAGS" ]; then
    try "$TEST_CLANG" c -std=gnu11
    try "$TEST_CLANG" c++ -std=c++14
fi
echo "$passed passed, 0 failed"
