#!/bin/sh
# test_strips.sh: examples/strips finds the best state on 1 to 4 ranks, by a gradient that is that of
# one rank bit for bit; what it prints, the state's error and the cost among it, is the same on all
# of them, and is what docs/explanation/gallery.md shows.
set -eu
bin=$(dirname "$TAPESCOPE_PROGRAM")
unset TAPESCOPE_PROFILE TAPESCOPE_MPI_CHECK TAPESCOPE_MPI_SECONDS
work="$TEST_BINARY_DIR/strips"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failed=0

awk '/^```$/ { on = 0 } on { print } /^## / { strips = /in strips/ }
    strips && /^```text/ { on = 1 }' "$TAPESCOPE_SOURCE_DIR/docs/explanation/gallery.md" | sed 's/[0-9.]*e-[0-9]*/E/' >promised
[ "$(wc -l <promised)" -eq 3 ] || { echo "FAILED: nothing is shown"; failed=1; }
for n in 1 2 3 4; do
    timeout 100 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "$TEST_MPIEXEC" --oversubscribe --mca btl self,vader \
        --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1 -n "$n" \
        "$bin/strips" >"out.$n" 2>err || { echo "FAILED on $n ranks:"; head -n 20 "out.$n" err; failed=1; }
    cmp out.1 "out.$n" || failed=1
done
sed 's/[0-9.]*e-[0-9]*/E/' out.1 | cmp promised - || { cat out.1; failed=1; }

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
