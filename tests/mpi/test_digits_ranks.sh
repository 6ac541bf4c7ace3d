#!/bin/sh
# test_digits_ranks.sh: examples/digits_ranks has the same losses and the same weights on 1, 2 and 4
# ranks, to the last bit; and they are what docs/explanation/gallery.md shows.
set -eu
bin=$(dirname "$TAPESCOPE_PROGRAM")
unset TAPESCOPE_PROFILE TAPESCOPE_MPI_CHECK TAPESCOPE_MPI_SECONDS
work="$TEST_BINARY_DIR/digits_ranks"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failed=0

# ranks N ARGUMENTS...
ranks()
{
    n=$1
    shift
    timeout 100 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "$TEST_MPIEXEC" --oversubscribe --mca btl self,vader \
        --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1 -n "$n" \
        "$bin/digits_ranks" "$@" >out 2>err || { echo "FAILED on $n ranks:"; head -n 20 out err; failed=1; }
    sed -n '$p' out | grep -q '^the weights.* [0-9a-f]\{16\}$' || { echo "FAILED: no weights"; cat out; failed=1; }
}

for n in 1 2 4; do
    ranks "$n" 3
    cp out "out.$n"
    [ "$(wc -l <out)" -eq 4 ] && cmp out.1 out || { echo "FAILED: $n ranks differ"; cat out.1 out; failed=1; }
done
TAPESCOPE_MPI_CHECK=1
export TAPESCOPE_MPI_CHECK
ranks 4 3
cmp out.1 out || { echo "FAILED: checked ranks differ"; failed=1; }
unset TAPESCOPE_MPI_CHECK

# Sums round differently by compiler and processor, so the page's last digits are not compared.
awk '/^```$/ { on = 0 } on { print } /^## / { digits = /[Oo]n more ranks/ }
    digits && /^```text/ { on = 1 }' "$TAPESCOPE_SOURCE_DIR/docs/explanation/gallery.md" >promised
[ "$(wc -l <promised)" -eq 4 ] || { echo "FAILED: nothing is shown"; failed=1; }
short() { sed 's/\(loss [0-9.]\{5\}\).*/\1/; s/[0-9a-f]\{16\}$/SUM/' "$1"; }
[ "$(short promised)" = "$(short out.1)" ] || { cat out.1; failed=1; }

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
