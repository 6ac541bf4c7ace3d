#!/bin/sh
# test_json_page.sh: docs/reference/json.md is what the reports and exports write: every member of every
# document (json_page.py), and every column. With TAPESCOPE_UPDATE=FILE the page is written there.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_SOURCE_DIR, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS,
# TEST_C_COMPILER, TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
page=$TAPESCOPE_SOURCE_DIR/docs/reference/json.md
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE SLURM_PROCID SLURM_NTASKS \
    SLURM_STEP_NUM_TASKS

# A program with a chain of calls that could be checkpoints, scopes, and a message if it is a rank.
cat >all.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_message.h>
#include <tapescope/ad_scope.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* Ranks of one run are there at one time. */
static void meet(const char *rank)
{
    char name[8] = "at.0";
    name[3] = *rank;
    fclose(fopen(name, "w"));
    while (access("at.0", F_OK) != 0 || access("at.1", F_OK) != 0)
        usleep(1000);
}
static ad_tensor layer(ad_tensor x)
{
    return ad_exp(ad_tanh(ad_exp(x)));
}
int main(int argc, char **argv)
{
    static double data[4096];
    int64_t n = argc > 1 ? atol(argv[1]) : 100;
    const double seconds = argc > 2 ? atof(argv[2]) : 0;
    if (getenv("OMPI_COMM_WORLD_RANK"))
        meet(getenv("OMPI_COMM_WORLD_RANK"));
    do {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        AD_SCOPE("train", "n", n) {
            AD_EXPECT_RATIO(100);
            AD_EXPECT_TAPE_BYTES(1 << 30);
            ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
            for (int i = 0; i < 8; i++)
                x = layer(x);
            (void)!ad_backward(ad_sum(x));
        }
        if (getenv("OMPI_COMM_WORLD_RANK"))
            ad_message_tell(&(ad_message){.kind = AD_MESSAGE_ALL, .op = "mpi_barrier", .root = -1,
                .to = -1, .from = -1, .ranks = 2, .comm = 1, .caller = (const void *)main,
                .start = ad_message_clock()});
        ad_tape_destroy(tape);
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    return 0;
}
END
build all
build patterns "$TEST_SOURCE_DIR/programs/patterns.c"
expect 0 "$tapescope" record --time sampled --tape on --freq 1000 -o sampled.prof ./all 1000 0.3
TAPESCOPE_CLOCK=step:1000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record --shapes on --steps 0:0 -o a.prof ./all 100
expect 0 "$tapescope" record --timeline 1MiB -o b.prof ./all 200
expect 0 "$tapescope" record -o c.prof ./all 400
expect 0 "$tapescope" record -o patterns.prof ./patterns
for rank in 0 1; do
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 "$tapescope" record -o set.prof ./all 2>err.$rank &
done
wait

# make NAME COMMAND...: a document of the report NAME, or a table of it.
made=0
make()
{
    made=$((made + 1))
    file=$to/$1.$made
    shift
    expect "${status:-0}" "$tapescope" "$@"
    cp out "$file"
}
mkdir json csv
to=json
make top top --json a.prof
make top top --json sampled.prof
make top top --by shape --json --focus tanh a.prof
make top top --ranks --json set.prof
make 'top --by scope' top --by scope --json a.prof
make 'top --expectations' top --expectations --json a.prof
make 'top --roofline' top --roofline --json a.prof
make 'top --roofline' top --roofline --by shape --json a.prof
make 'top --patterns' top --patterns --json patterns.prof
make tree tree --json a.prof
make tree tree --ranks --json set.prof
make annotate annotate --json all.c a.prof
make annotate annotate --json --ranks all.c set.prof
make tape tape --json a.prof
make tape tape --dead --json a.prof
make tape tape --lifetime --json patterns.prof
make tape tape --ranks --json set.prof
make 'tape --records' tape --records --json b.prof
make ranks ranks --json set.prof
make whatif whatif --json a.prof
make whatif whatif --json patterns.prof
make whatif whatif --budget 1MiB --json a.prof
make diff diff --json a.prof b.prof
make growth growth --json --size-key n a.prof b.prof c.prof
status=1 make check check --max-peak 1 --json a.prof
make stat stat -r 2 --json --primal './all 100' -- ./all 100
make merge merge --json -o sum.prof a.prof c.prof
make info info --json a.prof
make info info --json sampled.prof
make 'export -f json' export -f json b.prof
make 'export -f json' export -f json set.prof
to=csv
make 'top --by scope --csv' top --by scope --csv a.prof
make 'tape --csv' tape --csv a.prof
make 'diff --csv' diff --csv a.prof b.prof
make 'growth --csv' growth --csv --sizes 1,2 a.prof b.prof
make 'export -f csv' export -f csv sampled.prof

python3 "$TEST_SOURCE_DIR/profiler/report/json_page.py" json csv \
    "$TAPESCOPE_SOURCE_DIR/profiler/report/text/members.txt" "$page" >made.md || failures=$((failures + 1))
if [ -n "${TAPESCOPE_UPDATE-}" ]; then
    cp made.md "$TAPESCOPE_UPDATE"
elif ! diff -u "$page" made.md; then
    echo "FAILED: docs/reference/json.md is another than the reports make; scripts/reference writes it"
    failures=$((failures + 1))
fi
[ $failures -eq 0 ] || exit 1
echo "test_json_page: ok"
