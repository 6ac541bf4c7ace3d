#!/bin/sh
# test_ranks.sh: the profiles of the ranks of one run: their names, and the set of them read as one.
# What a launcher tells its processes is told here without one.
#
# Environment: as test_dump.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE SLURM_PROCID SLURM_NTASKS SLURM_STEP_NUM_TASKS

# Rank r records r + 1 exponentials; with an argument it writes and starts profiles itself. The ranks
# of a run are there at one time: each waits until the file at.RANK of each is there.
cat >ranks.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void meet(int rank, int size)
{
    char name[20];
    snprintf(name, sizeof name, "at.%d", rank);
    fclose(fopen(name, "w"));
    for (int k = 0; k < size; k++)
        for (snprintf(name, sizeof name, "at.%d", k); access(name, F_OK) != 0;)
            usleep(1000);
}
int main(int argc, char **argv)
{
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    ad_tape tape;
    void *data;
    size_t bytes;
    if (argc > 1 && ad_profile_start(argv[1]) != AD_OK)
        return 2;
    ad_tape_create(&tape, NULL);
    if (getenv("MEET"))
        meet(atoi(rank), atoi(getenv("MEET")));
    ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, &(double){1});
    for (int k = 0; k <= (rank ? atoi(rank) : 0); k++)
        x = ad_exp(x);
    (void)!ad_backward(x);
    if (argc > 1 && (ad_profile_write("shot.prof") != AD_OK || ad_profile_fetch(&data, &bytes) != AD_OK))
        return puts(ad_tape_message((ad_tape){0, 0})), 3;
    if (argc > 1)
        free(data);
    ad_tape_destroy(tape);
    return 0;
}
END
build ranks

# run SIZE: the ranks of a run of SIZE.
run()
{
    rm -f at.*
    for rank in $(seq 0 $(($1 - 1))); do
        OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$1 MEET=$1 \
            TAPESCOPE_CLOCK=step:1000 "$tapescope" record -- ./ranks >out 2>"err.$rank" &
    done
    wait
}


run 3
cp err.2 err
said "wrote tapescope.prof.2: "
for rank in 0 1 2; do
    expect 0 "$tapescope" info "tapescope.prof.$rank"
    shown "$rank of 3, from 0"
done
[ ! -e tapescope.prof ] || fail "there is a profile of no rank"

# The set is read by its name, and by the files'; the default is a name as well.
COLUMNS=120 expect 0 "$tapescope" top -n 0
grep -qE ' 6 ranks.c:28 exp ' out || fail "not six exponentials"
COLUMNS=120 expect 0 "$tapescope" top -n 0 tapescope.prof.2 tapescope.prof.0 tapescope.prof.1
grep -qE ' 6 ranks.c:28 exp ' out || fail "not six exponentials of the files"
expect 0 "$tapescope" info tapescope.prof
grep -qE '^ranks +3$' out || fail "not three ranks"
expect 0 "$tapescope" info --json tapescope.prof
shown '"ranks": 3'
expect 0 "$tapescope" merge -o sum.prof tapescope.prof.*
expect 0 "$tapescope" info sum.prof
grep -qE '^ranks +3$' out || fail "not three ranks in the sum"
expect 0 "$tapescope" annotate ranks.c tapescope.prof
expect 0 "$tapescope" export -f pprof -o set.pprof tapescope.prof
expect 0 "$tapescope" html -o set.html tapescope.prof

# Side by side: rank 2 has the most exponentials, three where the mean is two.
expect 0 "$tapescope" ranks -n 0
[ "$(grep -cE '^ +[012] +[0-9.]+us ' out)" -eq 3 ] || fail "not a row for each rank"
shown "Rank 2 has the most to do in ops that are no messages."
[ "$(awk '/ranks.c:28 exp/ { print $2, $3 }' out)" = "1.50 2" ] || fail "not 1.50 of the mean on rank 2"
cp out by-name
expect 0 "$tapescope" ranks -n 0 tapescope.prof.1 tapescope.prof.2 tapescope.prof.0
[ "$(grep exp out)" = "$(grep exp by-name)" ] || fail "by files it is another table"
expect 0 "$tapescope" ranks --json -n 1
shown '"slowest": 2'
shown '"rank": 1, "path": "tapescope.prof.1"'
expect 2 "$tapescope" ranks nothing.prof
said "there are no profiles nothing.prof.0, nothing.prof.1, ..."
expect 2 "$tapescope" ranks tapescope.prof.0 sum.prof
said "these are not all profiles of ranks of MPI"
expect 3 "$tapescope" ranks tapescope.prof.0 tapescope.prof.0
grep -qF "are both of rank 0" err || fail "one rank twice"

# A column for each rank, and the most over the mean: of 6 exponentials rank 2 has 3, where the mean is 2.
COLUMNS=200 expect 0 "$tapescope" top -n 0 --ranks --sort calls
grep -qE ' max/mean +most +rank 0 +rank 1 +rank 2 +line' out || fail "no columns of ranks"
grep -qE ' 6 +1.50 +2 +1 +2 +3 ranks.c:28 exp ' out || fail "not 1, 2 and 3 exponentials"
COLUMNS=60 expect 0 "$tapescope" top -n 0 --ranks --sort calls
grep -qE ' 1.50 +2 .*ranks.c:28 exp' out || fail "not 1.50 of the mean on rank 2 where it is narrow"
expect 0 "$tapescope" top -n 0 --ranks --sort calls --by op --json
[ "$(jq -c '.by_rank, (.rows[] | select(.ops[0] == "exp") | [.by_rank, .max_over_mean, .most])' out | tr '\n' ' ')" = \
    '{"metric":"calls","ranks":[0,1,2]} [[1,2,3],1.5,2] ' ] || fail "other ranks by op"
COLUMNS=200 expect 0 "$tapescope" tree --ranks --metric calls
grep -qE ' 1.50 +2 +1 +2 +3 .*ranks.c:28 exp' out || fail "not 1, 2 and 3 exponentials in the tree"
for format in "" --flat; do
    # shellcheck disable=SC2086 # it may be no word
    expect 0 "$tapescope" tree --ranks $format --metric tape --json --rank 2,0
    jq -c '.nodes[] | .all.record_bytes + .all.value_bytes + .all.adjoint_bytes' out >sums
    jq -c '.nodes[] | .by_rank | add' out >added
    [ "$(wc -l <sums)" -gt 3 ] && cmp -s sums added || fail "$format: the ranks' columns are not the sum's"
done
# So have the source and what holds the tape, each rank at its own peak: its own profile says the same.
COLUMNS=200 expect 0 "$tapescope" annotate --ranks ranks.c tapescope.prof
grep -qE ' max/mean +most +rank 0 +rank 1 +rank 2 +line ' out || fail "annotate: no columns of ranks"
grep -qE ' 1.50 +2 .* 28 +x = ad_exp' out || fail "annotate: not 1.50 of the mean on rank 2"
expect 0 "$tapescope" annotate --ranks --json ranks.c tapescope.prof
cp out apart
for view in "" "--dead" "--leaks" "--lifetime" "--by op"; do
    # shellcheck disable=SC2086 # words
    expect 0 "$tapescope" tape --ranks --json -n 0 $view tapescope.prof
    cp out "tape$view"
done
jq -r '.by_rank.metric' apart "tape" "tape--dead" "tape--leaks" "tape--lifetime" | paste -sd ' ' >out
shown "total held dead left lifetime"
for rank in 0 1 2; do
    expect 0 "$tapescope" annotate --json ranks.c tapescope.prof.$rank
    jq -c "[.lines[] | select(.ops[0] == \"exp\") | .forward_ns + .backward_ns]" out >own
    [ "$(jq -c "[.lines[] | select(.ops[0] == \"exp\") | .by_rank[$rank]]" apart)" = "$(cat own)" ] ||
        fail "annotate: rank $rank"
    for view in "" "--by op"; do
        # shellcheck disable=SC2086
        expect 0 "$tapescope" tape --json -n 0 $view tapescope.prof.$rank
        jq -c '[.rows[] | {key: ([.producer.line, .producer.ops, .consumer.line, .kinds] | tostring),
            value: .held_bytes} | select(.value > 0)] | sort_by(.key)' out >own
        jq -c "[.rows[] | {key: ([.producer.line, .producer.ops, .consumer.line, .kinds] | tostring),
            value: .by_rank[$rank]} | select(.value > 0)] | sort_by(.key)" "tape$view" >out
        cmp -s own out || { diff own out >err; fail "tape $view: rank $rank"; }
    done
done
expect 2 "$tapescope" tape --ranks --at 0.001
expect 3 "$tapescope" tape --ranks tapescope.prof.0
expect 3 "$tapescope" annotate --ranks ranks.c tapescope.prof.0
expect 3 "$tapescope" top --ranks tapescope.prof.0
said "tapescope.prof.0 is not the profiles of several ranks, but one"
expect 3 "$tapescope" tree --ranks --rank 1
expect 2 "$tapescope" top --ranks --by scope
said "--ranks does not go with --by scope"

# Some ranks alone: their sum, or the one; the document of several has each of them.
COLUMNS=120 expect 0 "$tapescope" top -n 0 --rank 0,2
grep -qE ' 4 ranks.c:28 exp ' out || fail "not four exponentials of two ranks"
[ ! -s err ] || fail "a rank that nobody asked for is missed"
COLUMNS=120 expect 0 "$tapescope" top -n 0 --rank 1 tapescope.prof.*
grep -qE ' 2 ranks.c:28 exp ' out || fail "not two exponentials of one rank"
expect 0 "$tapescope" info --rank 1
shown "1 of 3, from 0"
expect 0 "$tapescope" annotate --rank 2 ranks.c
expect 0 "$tapescope" tree --rank 2,0
expect 0 "$tapescope" html --rank 1 -o set.html
expect 0 "$tapescope" diff --rank 1 tapescope.prof tapescope.prof
expect 0 "$tapescope" ranks --rank 2,0
[ "$(grep -cE '^ +[02] +[0-9.]+us ' out)" -eq 2 ] || fail "not a row for each of two ranks"
expect 0 "$tapescope" export -f json --rank 2,0
[ "$(jq -c '[.ranks[].rank]' out)" = "[0,2]" ] || fail "not the two ranks"
[ "$(jq -c '[.messages, .profile.ranks]' out)" = "[[],2]" ] || fail "messages, or not two ranks"
expect 0 "$tapescope" export -f json --rank 1
[ "$(jq -c '[.ranks, .messages, .profile.rank]' out)" = "[null,null,1]" ] || fail "one rank is no set"
expect 3 "$tapescope" top --rank 1,3
said "--rank: there is no profile of rank 3; there are 3, of ranks 0 to 2"
expect 3 "$tapescope" top --rank 1,x
said "--rank: '1,x' is not ranks separated by commas, as in 0,2"
expect 3 "$tapescope" top --rank ""
said "--rank: '' is not ranks separated by commas, as in 0,2"
expect 0 "$tapescope" top --rank 1 tapescope.prof.1
expect 3 "$tapescope" top --rank 0 tapescope.prof.1
expect 0 "$tapescope" record -o plain.prof ./ranks
expect 3 "$tapescope" top --rank 0 plain.prof
said "--rank: plain.prof is not apart by ranks"
expect 2 "$tapescope" ranks plain.prof

# A sum that is stored keeps its ranks, in whatever order they were given: each report of it is that of
# the set but for the files' names, without the set and the program.
expect 0 "$tapescope" merge -o sum.prof tapescope.prof.2 tapescope.prof.0 tapescope.prof.1
expect 0 "$tapescope" merge -o set.prof tapescope.prof
expect 0 "$tapescope" merge -o again.prof set.prof

# report FILE COMMAND...: what it says of the file, which is called FILE there.
report()
{
    name=$1
    shift
    expect 0 "$tapescope" "$@" "$name"
    sed "s/${name}\\(\\.[012]\\)\\{0,1\\}/FILE/g" out
}
while read -r command; do
    # shellcheck disable=SC2086 # words
    report tapescope.prof $command >wanted
    mv ranks hidden
    for file in sum.prof set.prof again.prof; do
        # shellcheck disable=SC2086
        report $file $command >got
        cmp -s got wanted || { diff got wanted | cut -c -300 >out; fail "$command: $file differs"; }
    done
    mv hidden ranks
done <<'END'
top --json -n 0 --ranks --sort calls
tree --json --ranks
ranks --json
ranks
ranks --json --rank 0,2
top --json --rank 1
top --json --rank 0,2
top --json --rank 2,0 --ranks
export -f json
export -f json --rank 1
tape --json --ranks
END
expect 3 "$tapescope" top --rank 1,3 sum.prof
said "--rank: there is no profile of rank 3"
expect 0 "$tapescope" merge -o twice.prof sum.prof sum.prof
expect 3 "$tapescope" top --ranks twice.prof
said "twice.prof is not the profiles of several ranks, but one"

# A page of files of different ranks is of the run, not of several sizes.
expect 0 "$tapescope" html -o files.html tapescope.prof.2 tapescope.prof.0 tapescope.prof.1
expect 0 "$tapescope" html -o sum.html sum.prof

# More ranks than files may be open at once: no command needs all of them. And a forged number of
# ranks is no reason to look for so many files.
python3 - <<'END'
import struct, zlib
data = open("tapescope.prof.0", "rb").read()
n, = struct.unpack("<I", data[8:12])
packet = data[16:16 + n]  # of the header alone: its tag, its length, and it
at = next(i for i in range(1, n) if packet[i] < 128) + 1
def forge(name, fields):  # rank and ranks, in place of those before
    header = packet[at:] + fields
    forged = packet[:1] + bytes([len(header) & 127 | 128, len(header) >> 7]) + header
    open(name, "wb").write(data[:8] + struct.pack("<II", len(forged), zlib.crc32(forged)) +
                           forged + data[16 + n:])
forge("forged.prof.0", b"\x70\xff\xff\xff\xff\x0f")
def varint(n):
    return bytes([n & 127]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
for ranks in (64, 1000):
    for rank in range(ranks):
        forge(f"many.prof.{rank}" if ranks == 64 else f"more.prof.{rank}",
              b"\x68" + varint(rank) + b"\x70" + varint(ranks))
END
few()
{
    (ulimit -n 16 && exec "$@")
}
expect 0 few "$tapescope" merge -o many.sum many.prof
for profile in many.prof many.sum; do
    expect 0 few "$tapescope" top -n 0 --ranks --json --sort calls $profile
    [ "$(jq '[.by_rank.ranks[]] == [range(64)]' out)" = true ] || fail "$profile: not 64 ranks"
    expect 0 few "$tapescope" export -f json --rank 63,7 -o few.json $profile
    [ "$(jq -c '[.ranks[].rank]' few.json)" = "[7,63]" ] || fail "$profile: not ranks 7 and 63"
    expect 0 few "$tapescope" html -o many.html $profile
    expect 0 few "$tapescope" merge -o again.prof $profile
done
# Of many ranks those at either end, and how all are spread; every one where it is asked for.
expect 0 few "$tapescope" merge -o more.sum more.prof
for profile in more.prof more.sum; do
    expect 0 few "$tapescope" ranks $profile
    [ "$(awk '/^ *[0-9]+ +[0-9.]+us/ { n++ } /^ *(min|25 %|median|75 %|max) +[0-9.]+us/ { p++ } END { print n, p }' out)" = "16 5" ] ||
        fail "$profile: not 16 of 1000 ranks, and five parts of them"
    shown "Of 1000 ranks these are the 8 with the most and the 8 with the least rest."
    expect 0 few "$tapescope" ranks -n 0 $profile
    [ "$(grep -cE '^ *[0-9]+ +[0-9.]+us ' out)" -eq 1000 ] || fail "$profile: not every rank"
    expect 0 few "$tapescope" ranks --json $profile
    [ "$(jq '[.ranks[].rank] == [range(1000)]' out)" = true ] || fail "$profile: not all ranks in JSON"
    COLUMNS=200 expect 0 few "$tapescope" top --ranks -n 0 --sort calls $profile
    grep -qE ' max/mean +most +min +25 % +median +75 % +max +line' out || fail "$profile: no spread"
    grep -qE ' 1000 +1.00 +0 +1 +1 +1 +1 +1 ranks.c:28 exp' out || fail "$profile: not one exponential on each"
done
rm more.*
COLUMNS=120 expect 0 "$tapescope" top --rank 5,63 -n 0 again.prof
grep -qE ' 2 ranks.c:28 exp ' out || fail "not two exponentials of ranks 5 and 63"
expect 3 timeout 20 "$tapescope" top forged.prof
grep -qF "forged.prof.0 says that it is of 4294967295 ranks: more than 16777216 are none" err || fail "a forged number"

# What does not belong together is refused, what is missing is told.
rm tapescope.prof.1
expect 0 "$tapescope" top -n 0
said "no profile of rank 1 of 3"
cp tapescope.prof.2 twice.prof
expect 3 "$tapescope" top tapescope.prof.2 twice.prof
grep -qF "tapescope.prof.2 and twice.prof are both of rank 2" err || fail "not both of rank 2"
expect 2 "$tapescope" merge -o sum.prof tapescope.prof.2 twice.prof
cp tapescope.prof.2 of3.prof
run 4
expect 3 "$tapescope" top tapescope.prof.0 tapescope.prof.1 of3.prof
grep -qF "of a run of 4 ranks, of3.prof of one of 3" err || fail "runs of two sizes"
expect 2 "$tapescope" top tapescope.prof.0 sum.prof
said "one profile at a time"

run 2
sleep 0.1
mv tapescope.prof.1 earlier.1
run 2
mv earlier.1 tapescope.prof.1
expect 3 "$tapescope" top
said "are of two runs: one had ended before the other began"

# A run of fewer ranks later: what is left of the earlier one is not taken for its own.
run 2
expect 0 "$tapescope" info
grep -qE '^ranks +2$' out || fail "not two ranks"
[ ! -s err ] || fail "something was said"

# A launcher that is recorded: what an earlier run left is gone, and the ranks' profiles are told of.
cat >launcher <<'END'
rm -f at.*
for rank in 0 1; do PMI_RANK=$rank PMI_SIZE=2 MEET=2 ./ranks & done
wait
exit "${1-0}"
END
rm tapescope.prof.*
run 3
expect 0 "$tapescope" record sh launcher
said "wrote tapescope.prof.RANK of 2 ranks: "
[ "$(echo tapescope.prof.*)" = "tapescope.prof.0 tapescope.prof.1" ] || fail "$(echo tapescope.prof.*)"
expect 127 "$tapescope" record ./no-such-launcher
[ -e tapescope.prof.1 ] || fail "what was there is gone though nothing ran"
expect 3 "$tapescope" record sh launcher 3
said "exited with status 3; wrote tapescope.prof.RANK of 2 ranks"

# What is asked for beside is done for each, or refused.
expect 0 "$tapescope" record --pack --report html -o beside.prof sh launcher
[ -s beside.html ] || fail "no page of the ranks"
mv ranks elsewhere
"$tapescope" top -n 0 beside.prof.1 2>/dev/null | grep -qF "ranks.c:28 exp" || fail "not packed"
mv elsewhere ranks
expect 1 "$tapescope" record --until-error ranks.c:28=50% -o until.prof sh launcher
grep -qF "not for a program of several ranks" err || fail "samples of several ranks"
PMI_RANK=1 PMI_SIZE=2 expect 2 "$tapescope" record --until-error ranks.c:28=50% ./ranks
said "a rank of MPI cannot be run again alone"

# An older profile of the same name, of one process, is shown, and hides nothing unsaid.
rm tapescope.prof.*
expect 0 "$tapescope" record ./ranks
run 2
expect 0 "$tapescope" info
said "tapescope.prof is of one process, and older than the ranks' profiles tapescope.prof.0, ..."
expect 0 "$tapescope" ranks
[ "$(grep -cE '^ +[01] +[0-9.]+us ' out)" -eq 2 ] || fail "not a row for each of two ranks"
rm tapescope.prof
expect 0 "$tapescope" merge -o tapescope.prof tapescope.prof.0 tapescope.prof.1
expect 0 "$tapescope" info
[ ! -s err ] || fail "the ranks' own sum is said to hide them"
rm tapescope.prof

# attach names one process: its profile is where it is asked for.
rm -f at.*
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 MEET=2 TAPESCOPE_OPTIONS=attach=usr2 ./ranks &
pid=$!
while [ ! -e at.0 ]; do sleep 0.01; done
expect 0 "$tapescope" attach --seconds 0.1 -o now.prof $pid
touch at.1
wait $pid
expect 0 "$tapescope" info now.prof
shown "0 of 2, from 0"

# A program's own calls name their files alike; a process that is alone is no rank.
PMI_RANK=1 PMI_SIZE=2 expect 0 ./ranks own.prof
[ -e own.prof.1 ] && [ -e shot.prof.1 ] || fail "no own.prof.1 or no shot.prof.1"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 expect 0 ./ranks own.prof
[ -e own.prof ] && [ -e shot.prof ] || fail "a rank of one"
SLURM_PROCID=x SLURM_STEP_NUM_TASKS=2 expect 0 "$tapescope" record -o odd.prof ./ranks
[ -e odd.prof ] || fail "a rank that is no number"
SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 expect 0 "$tapescope" record -o step.prof ./ranks
[ -e step.prof.1 ] || fail "no rank of a step"
SLURM_PROCID=0 SLURM_NTASKS=2 expect 0 "$tapescope" record -o batch.prof sh launcher
[ -e batch.prof.0 ] && [ -e batch.prof.1 ] || fail "a batch script was taken for a rank"
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 expect 0 "$tapescope" record -o /dev/null ./ranks

exit $((failures > 0))
