#!/bin/sh
# BLAS and LAPACK called by plain C (programs/plain_blas.c): gradients are those of loops; what has
# no rule is said; a call is one record on its own line; and BLAS that was compiled by `tapescope
# cc` itself records itself.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
# That which Tapescope itself is linked with.
library=$(ldd "$(dirname "$TAPESCOPE_PROGRAM")/../lib/libtapescope.so" | sed -n 's/.*=> \(.*openblas[^ ]*\).*/\1/p')
OPENBLAS_NUM_THREADS=1
export OPENBLAS_NUM_THREADS
"$TEST_C_COMPILER" -O1 -c "$programs/plain_lapacke.c" -o lapacke.o
passed=0

# compile LEVEL SOURCE OPTION...: without a warning.
compile() {
    level=$1
    source=$2
    shift 2
    eval "\"$TAPESCOPE_PROGRAM\" cc $level -g $includes \"\$programs/\$source\" \"\$@\" \"\$library\"" 2>err.txt || {
        cat err.txt
        exit 1
    }
    ! grep 'warning' err.txt || { echo "$source $level: a warning"; exit 1; }
}

for level in -O0 -O2; do
    for type in DOUBLES FLOATS; do
        compile $level plain_blas.c -DOF_$type lapacke.o -o blas
        ./blas >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level $type: wrong"; exit 1; }
        passed=$((passed + 1))
    done
    compile $level plain_blas_lost.c -o lost
    ./lost >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: not said"; exit 1; }
    line=$(grep -n 'dsyev_("N"' "$programs/plain_blas_lost.c" | cut -d: -f1)
    grep -q "plain_blas_lost.c:$line in eigenvalues: a gradient is lost: .* went into dsyev_, for which there is no rule" lost.txt ||
        { cat lost.txt; echo "$level: the call is not named by its line"; exit 1; }
    passed=$((passed + 1))
done
compile -O1 plain_blas_lost.c --strict -o strict
./strict strict >out.txt 2>&1 || { cat out.txt; echo "--strict: no error"; exit 1; }

# One record, named as the function, on the line of the call.
compile -O2 plain_blas_lost.c -o lost
"$TAPESCOPE_PROGRAM" record -o blas.prof ./lost >out.txt 2>&1
"$TAPESCOPE_PROGRAM" top --json blas.prof >top.json
line=$(grep -n 'return cblas_ddot(3, y' "$programs/plain_blas_lost.c" | cut -d: -f1)
jq -e --argjson line "$line" '[.rows[] | select(.ops == ["cblas_ddot"])] | length == 1 and
    (.[0] | .calls == 1 and .line == $line and (.file | endswith("plain_blas_lost.c")))' top.json >/dev/null ||
    { jq -c '.rows[] | [.ops, .file, .line, .calls]' top.json; echo "another line"; exit 1; }

# The program's own ddot has statements and no record.
compile -O2 plain_blas_lost.c -DOWN -c -o own.o
compile -O2 plain_blas_lost.c own.o -o lost
"$TAPESCOPE_PROGRAM" record -o own.prof ./lost >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "own ddot: wrong"; exit 1; }
"$TAPESCOPE_PROGRAM" top --json own.prof >top.json
line=$(grep -n 'sum += x\[i' "$programs/plain_blas_lost.c" | cut -d: -f1)
jq -e --argjson line "$line" '([.rows[] | select(.ops == ["cblas_ddot"])] | length == 0) and
    any(.rows[]; .line == $line and .ops == ["statement"])' top.json >/dev/null ||
    { jq -c '.rows[] | [.ops, .file, .line, .calls]' top.json; echo "own ddot: other records"; exit 1; }
echo "$((passed + 3)) passed, 0 failed"
