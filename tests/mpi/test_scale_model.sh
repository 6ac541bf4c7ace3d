#!/bin/sh
# test_scale_model.sh: what benchmarks/scale_model.py says of a step on more ranks is what it is by
# hand: two sendrecv of 50 bytes and 2 us of computing forward, 1 us backward.
set -eu
work="$TEST_BINARY_DIR/scale_model"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failed=0
model="python3 $TEST_SOURCE_DIR/../benchmarks/scale_model.py --json --latency 100 --byte 1 --combine 1 --call 10"

# row OPS CALLS FORWARD-NS BACKWARD-NS BACKWARD-BYTES PEAK: of two sweeps
row()
{
    printf '{"file":"a.c","line":7,"ops":[%s],"calls":%s,"forward_ns":%s,"backward_calls":%s,"backward_ns":%s,' \
        "$1" "$2" "$3" "$2" "$4"
    printf '"recompute_ns":0,"backward_moved_bytes":%s,"peak_bytes":%s}' "$5" "$6"
}
# profile ROW...: with the row of sweeps
profile()
{
    printf '{"tapescope":"top","by":"line","total":{"peak_bytes":1000},"rows":['
    for one in "$@"; do
        printf '%s,' "$one"
    done
    row '"backward","mpi_backward"' 4 900 900 0 0
    printf ']}\n'
}
profile "$(row '"add"' 4 4000 2000 0 300)" "$(row '"mpi_sendrecv"' 4 777 888 400 100)" >halo
profile "$(row '"add"' 4 4000 2000 0 300)" "$(row '"mpi_allreduce"' 2 777 888 4000 100)" >sum
profile "$(row '"mpi_allreduce","add"' 4 4000 2000 0 300)" >mixed
profile "$(row '"mpi_alltoall"' 4 4000 2000 0 300)" >unknown

# says WHAT WANTED OPTIONS...: step, of it computing, sent by a rank, its peak; strong, then weak
says()
{
    what=$1
    wanted=$2
    shift 2
    said=$($model "$@" | jq -r '[.step_ns,.compute_ns,.sent_bytes_a_rank,.peak_bytes_a_rank]|map(round)|join(" ")' |
        paste -sd ';' -)
    [ "$said" = "$wanted" ] || { echo "FAILED: $what: $said, not $wanted"; failed=1; }
}
# Messages: 4 (100 + 50 + 10), and the sweeps are agreed on in two steps: 2 x 100 + 10.
says "four ranks" "1600 750 200 325;3850 3000 200 1000" --ranks 4 halo
says "one rank, which has neighbours of no rows" "3650 3000 200 1000;3650 3000 200 1000" --ranks 1 halo
says "two units of six on the slower ranks" "1850 1000 200 400;3850 3000 200 1000" --ranks 4 --units 6 halo
says "ops that take 100 ns at least" "1750 900 200 325;3850 3000 200 1000" --ranks 4 --op 100 halo
# Two processors for four ranks: all but latencies and bytes twice.
says "shared processors" "2400 1500 200 325;6900 6000 200 1000" --ranks 4 --cores 2 halo
# An allreduce of 1000 bytes: 2 x 2 x 100 + 3/4 x 1000 x (2 + 1), forward and backward.
says "a sum" "6280 750 2000 325;8530 3000 2000 1000" --ranks 4 sum
# Of profiles of two ranks, one has half of the work.
says "two profiles" "2350 1500 200 550;3850 3000 200 1000" --ranks 4 halo halo
# So it is of one file of both, which the program that reads profiles has apart: messages as they
# were logged, computing by op.
cat >reads <<'END'
#!/bin/sh
case "$*" in
"ranks --json all") cat ranks ;;
"top --json -n 0 --by op --rank 0 all" | "top --json -n 0 --by op --rank 3 all") cat ops ;;
*) exit 2 ;;
esac
END
chmod +x reads
cp halo ops
printf 'TAPESCP1\377' >all
# logged RANK OP PHASE CALLS BYTES
logged()
{
    printf '{"file":"a.c","line":7,"rank":%s,"op":"%s","phase":"%s","calls":%s,"bytes":%s},' "$@"
}
{
    printf '{"ranks":[{"rank":0,"messages_left_out":0},{"rank":3,"messages_left_out":0}],"messages":['
    for rank in 0 3; do
        logged $rank mpi_backward forward 2 16
        logged $rank mpi_sendrecv forward 4 200
        logged $rank mpi_sendrecv backward 4 200
    done
    printf '{"file":"b.c","line":1,"rank":7,"op":"mpi_send","phase":"forward","calls":9,"bytes":9}]}'
} >ranks
says "a profile of two ranks" "2350 1500 200 550;3850 3000 200 1000" --ranks 4 --tapescope ./reads all
sed 's/_left_out":0/_left_out":1/g' ranks >ranks.cut
mv ranks.cut ranks
if $model --tapescope ./reads all 2>said || ! grep -q 'all: 2 messages had no room' said; then
    echo "FAILED: messages without room: $(cat said)"
    failed=1
fi
says "three times the work" "3100 2250 200 775;3850 3000 200 1000" --ranks 4 --work 3 halo
if $model mixed 2>said || ! grep -q 'a.c:7 has other ops beside mpi_allreduce' said; then
    echo "FAILED: a line with other ops: $(cat said)"
    failed=1
fi

if $model unknown 2>said || ! grep -q 'a.c:7: there is no model of mpi_alltoall' said; then
    echo "FAILED: an op that has no model: $(cat said)"
    failed=1
fi

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
