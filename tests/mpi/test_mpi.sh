#!/bin/sh
# test_mpi.sh: messages between ranks as ops, on 1 to 5 of them, as root too; and what MPI itself does
# when one of them is killed.
#   TAPESCOPE_MPI_PROGRAMS=COUNT,SEED   so many random programs instead, on 1 to 5 ranks
#   TAPESCOPE_MPI_KILLS=COUNT,SEED      kills so often instead, at random moments
set -eu
bin=$(dirname "$TAPESCOPE_PROGRAM")
TAPESCOPE_MODULE_DIR="$TAPESCOPE_LIB_DIR/tapescope"
export TAPESCOPE_MODULE_DIR
unset TAPESCOPE_PROFILE TAPESCOPE_MPI_CHECK TAPESCOPE_MPI_SECONDS
work="$TEST_BINARY_DIR/mpi"
rm -rf "$work"
mkdir -p "$work"
cd "$work"

failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}

# ranks N PROGRAM...: more of them than there are processors, in shared memory, without the calls
# that a container forbids.
ranks()
{
    n=$1
    shift
    timeout 300 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "$TEST_MPIEXEC" --oversubscribe --mca btl self,vader \
        --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1 -n "$n" "$@"
}

# passes N PROGRAM...: it ends well on so many ranks.
passes()
{
    if ! ranks "$@" >log 2>&1; then
        cut -c1-300 log | head -n 20
        fail "$*"
    fi
}

# killed WHEN: the others are ended within 10 s, and what they have written can be read.
killed()
{
    rm -f killed.*
    status=0
    ranks 4 "$bin/mpi_killed" "$1" >log 2>&1 || status=$?
    ended=$(date +%s)
    [ "$status" = 137 ] || fail "mpi_killed $1: status $status: $(head -n 20 log)"
    [ -e killed.at ] && [ $((ended - $(date -r killed.at +%s))) -le 10 ] || fail "mpi_killed $1: not ended soon"
    for n in 0 1 2 3; do
        COLUMNS=160 "$TAPESCOPE_PROGRAM" top -n 0 "killed.prof.$n" >top 2>&1 || fail "killed.prof.$n: $(cat top)"
        grep -q mpi_allreduce top || fail "killed.prof.$n of $1 has no mpi_allreduce: $(cat top)"
    done
}

if [ -n "${TAPESCOPE_MPI_PROGRAMS-}" ]; then
    for n in 1 2 3 4 5; do
        passes "$n" "$bin/mpi_tests" programs "${TAPESCOPE_MPI_PROGRAMS%,*}" "${TAPESCOPE_MPI_PROGRAMS#*,}"
    done
    exit "$failed"
fi

if [ -n "${TAPESCOPE_MPI_KILLS-}" ]; then
    seed=${TAPESCOPE_MPI_KILLS#*,}
    for n in $(seq "${TAPESCOPE_MPI_KILLS%,*}"); do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        killed $((20 + seed / 65536 % 400))
    done
    exit "$failed"
fi

for n in 1 2 3 4 5; do
    passes "$n" "$bin/mpi_tests" cases reals averages programs 100 "$n"
done

# Checked, the same passes; and what does not fit is told on both sides.
TAPESCOPE_MPI_CHECK=1
export TAPESCOPE_MPI_CHECK
passes 3 "$bin/mpi_tests" cases reals averages
passes 4 "$bin/mpi_tests" programs 100 100
unset TAPESCOPE_MPI_CHECK
passes 3 "$bin/mpi_mismatch"

killed between
killed sweep
killed averages
killed 57

# The program of docs/how-to/mpi.md prints what the page says.
block()
{
    awk -v lang="$1" '$0 == "```" { on = 0 } on { print } $0 == "```" lang { on = 1 }' \
        "$TAPESCOPE_SOURCE_DIR/docs/how-to/mpi.md"
}
block c >page.c
block text >promised
[ -s page.c ] && [ -s promised ] || fail "no program on the page"
CPATH=$TAPESCOPE_INCLUDE_DIRS:$TAPESCOPE_SOURCE_DIR/mpi/include:$TEST_MPI_INCLUDE
export CPATH
"$TEST_C_COMPILER" -g -O2 -Wall -Wextra page.c -o page -L"$TAPESCOPE_LIB_DIR" \
    -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope_mpi -ltapescope "$TEST_MPI_LIBRARY"
passes 4 ./page
cmp promised log || fail "the page's program prints $(cat log)"
{
    printf '#include <tapescope/ad_mpi_real.h>\nenum { N = 4 };\n'
    printf 'void reals(ad_mpi_comm comm, ad_tape tape, const int64_t *rows, ad_real *x, ad_real *part)\n{\n'
    awk '/^```/ { ours = !inside && $0 == "```"; inside = !inside; next } ours' "$TAPESCOPE_SOURCE_DIR/docs/how-to/mpi.md"
    echo '}'
} >reals.c
grep -q ad_mpi_scatterv_reals reals.c || fail "no calls on the page"
"$TEST_C_COMPILER" -fsyntax-only reals.c || fail "what the page shows of arrays is no C"

# The benchmark of messages prints a row for each thing that it measures, from one rank.
if [ -x "$bin/bench_scale" ]; then
    passes 2 "$bin/bench_scale" --case bcast --rounds 1 --seconds 0.0001
    said=$(sed 's/"ours.*"peer_name/"peer_name/; s/"peer":.*//' log | tr '\n' ' ')
    [ "$said" = '{"suite":"scale","case":"bcast_1","metric":"2r_forward","peer_name":"mpi", '\
'{"suite":"scale","case":"bcast_1","metric":"2r_wrapper","peer_name":"bound", ' ] || fail "bench_scale: $said"
fi

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
