#!/usr/bin/env python3
"""What a step of an MPI program takes on N ranks, from profiles of a few: docs/SCALE.md.

    mpirun -n 2 sh -c 'tapescope record -o p.$OMPI_COMM_WORLD_RANK -- strips 256 256 20 30'
    for r in 0 1; do tapescope top --json -n 0 p.$r >p.$r.json; done
    scripts/bench scale >rows
    benchmarks/scale_model.py --machine rows --units 256 p.0.json p.1.json

  --machine FILE     latency, time of a byte and of an op, from rows of scripts/bench scale
  --latency NS, --byte NS, --combine NS, --call NS, --op NS
                     of a message, of each byte, of adding two, of an op more than MPI's call, of
                     an op without elements and its sweep: instead of the machine's
  --ranks N,N,...    (100,1000,10000)
  --units N          what the ranks divide among them, such as rows: a rank has a whole number of
                     them (else work is divided evenly)
  --work X           strong scaling of so many times the work of the profiles, in so many units
  --cores N          so many processors for all ranks: those that share one take turns
  --json             one JSON object a line

Messages are those of the first profile; of collective calls bcast, reduce, allreduce and barrier
are known. A message is as long on any number of ranks, and what it brought takes as much memory.

Invariant: a profile's times of messages are not used, since waiting is part of them. Messages take
what the model says, on each rank after its computations; ranks that exchange wait for the later.
"""
import argparse
import json
import math
import sys

# Those that wait for all ranks, and their adjoints; others wait for their neighbours.
COLLECTIVE = {"bcast": "reduce", "reduce": "bcast", "allreduce": "allreduce",
              "barrier": "barrier", "backward": "backward"}
POINT_TO_POINT = ("send", "recv", "sendrecv", "isend", "irecv", "wait")


def fail(words):
    sys.exit("scale_model: " + words)


def read_machine(path):
    """{latency, byte, combine, call, op} in ns, of the rows of one and two ranks."""
    row = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            r = json.loads(line)
            row[r["case"], r["metric"]] = r["ours"]
    try:
        byte = row["pingpong", "2r_byte"]
        return {"latency": row["pingpong", "2r_latency"], "byte": byte,
                "combine": max(0, row["allreduce", "2r_byte"] - byte),
                "call": row["pingpong_1", "2r_wrapper"], "op": row["op", "1r_op"]}
    except KeyError as missing:
        fail(f"{path} has no row {missing}")


def message_ns(op, n, ranks, m):
    """Of one message of n bytes: Thakur, Rabenseifner, Gropp, doi:10.1177/1094342005051521."""
    a, b, c = m["latency"], m["byte"], m["combine"]
    if op == "wait":
        return 0
    if op in POINT_TO_POINT:
        return a + n * b
    if ranks == 1:
        return 0
    steps, part = math.ceil(math.log2(ranks)), (ranks - 1) / ranks
    if op == "backward" or op == "barrier":  # some words, agreed on
        return steps * a
    if op == "bcast":
        return min(steps * (a + n * b), (steps + ranks - 1) * a + 2 * part * n * b)
    return min(steps * (a + n * (b + c)), 2 * steps * a + part * n * (2 * b + c))


def read_profile(path):
    """A step of one rank: its messages [(op, phase, times, bytes)], ns of computing, peak bytes."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if document.get("tapescope") != "top" or document.get("by") != "line":
        fail(f"{path} is not of tapescope top --json")
    rows = document["rows"]
    sweeps = sum(r["calls"] // len(r["ops"]) for r in rows
                 if "mpi_backward" in r["ops"])
    if sweeps == 0:
        fail(f"{path} has no mpi_backward")
    step = {"messages": [], "forward": 0, "backward": 0, "ops": 0, "fixed": 0,
            "peak": document["total"]["peak_bytes"]}
    for r in rows:
        ops = [op[4:] for op in r["ops"] if op.startswith("mpi_")]
        if ops and set(r["ops"]) <= {"backward", "mpi_backward"}:
            step["messages"].append(("backward", "backward", 1, 0))
        elif ops and ops[0] not in COLLECTIVE and ops[0] not in POINT_TO_POINT:
            fail(f'{r["file"]}:{r["line"]}: there is no model of {r["ops"][0]}')
        elif ops and len(r["ops"]) > 1:
            fail(f'{r["file"]}:{r["line"]} has other ops beside {r["ops"][0]}: '
                 "put the message on a line of its own")
        elif ops:
            # In and out are counted; what was not swept (no_grad) is no part of a step.
            times, n = r["backward_calls"] / sweeps, r["backward_moved_bytes"]
            n = n / r["backward_calls"] / 2 if r["backward_calls"] else 0
            step["fixed"] += r["peak_bytes"]
            step["messages"].append((ops[0], "forward", times, n))
            step["messages"].append((COLLECTIVE.get(ops[0], ops[0]), "backward", times, n))
        else:
            swept = r["backward_calls"] / r["calls"] if r["backward_calls"] else 1
            step["forward"] += (r["forward_ns"] or 0) * min(swept, 1) / sweeps
            step["ops"] += r["backward_calls"] / sweeps
            step["backward"] += ((r["backward_ns"] or 0) + (r["recompute_ns"] or 0)) / sweeps
    return step


def units_of(rank, ranks, units):
    return units * (rank + 1) // ranks - units * rank // ranks


def simulate(steps, ranks, scaling, machine, units, cores, work):
    """One step on so many ranks: each computes a piece, passes a message, and so on."""
    measured = len(steps) * work  # the whole work, in a measured rank's
    mean = {key: sum(s[key] for s in steps) / len(steps)
            for key in ("forward", "backward", "ops", "fixed", "peak")}
    if units:
        per_unit = measured / units
        share = [per_unit * units_of(r, ranks, units) if scaling == "strong" else 1.0
                 for r in range(ranks)]
    else:
        share = [measured / ranks if scaling == "strong" else 1.0] * ranks
    slow = max(1, ranks / cores) if cores else 1
    clock, computed = [0.0] * ranks, [0.0] * ranks  # and what of it the latest path computed
    volume = 0
    for phase in ("forward", "backward"):
        calls = [(op, n) for op, of, times, n in steps[0]["messages"] if of == phase
                 for _ in range(round(times))]
        # An op takes its least, however little of the work a rank has.
        least = min(mean["ops"] * machine["op"] / 2, mean[phase])
        pieces = max(1, len(calls))
        for op, n in calls or [(None, 0)]:
            for r in range(ranks):
                piece = (least + (mean[phase] - least) * share[r]) * slow / pieces
                clock[r] += piece
                computed[r] += piece
            if op is None:
                continue
            takes = message_ns(op, n, ranks, machine) + machine["call"] * slow
            volume += n
            if op in COLLECTIVE:
                last = max(range(ranks), key=clock.__getitem__)
                clock, computed = [clock[last] + takes] * ranks, [computed[last]] * ranks
            else:
                at = [max(range(max(0, r - 1), min(ranks, r + 2)), key=clock.__getitem__)
                      for r in range(ranks)]
                clock, computed = [clock[k] + takes for k in at], [computed[k] for k in at]
    last = max(range(ranks), key=clock.__getitem__)
    return {"ranks": ranks, "scaling": scaling, "step_ns": clock[last],
            "compute_ns": computed[last], "message_ns": clock[last] - computed[last],
            "critical_rank": last, "sent_bytes_a_rank": volume, "sent_bytes": volume * ranks,
            "peak_bytes_a_rank": mean["fixed"] + (mean["peak"] - mean["fixed"]) * max(share),
            "work_a_rank": max(share)}


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("-h", "--help", action="store_true")
    p.add_argument("--machine")
    for name in ("latency", "byte", "combine", "call", "op"):
        p.add_argument("--" + name, type=float)
    p.add_argument("--ranks", default="100,1000,10000")
    p.add_argument("--units", type=int, default=0)
    p.add_argument("--work", type=float, default=1)
    p.add_argument("--cores", type=int, default=0)
    p.add_argument("--json", action="store_true")
    p.add_argument("profile", nargs="*")
    given = p.parse_args()
    if given.help:
        print(__doc__)
        return
    if not given.profile:
        fail("no profile; --help says how they are made")
    machine = read_machine(given.machine) if given.machine else dict.fromkeys(
        ("latency", "byte", "combine", "call", "op"), 0.0)
    for name in machine:
        if getattr(given, name) is not None:
            machine[name] = getattr(given, name)
    steps = [read_profile(path) for path in given.profile]
    if not given.json:
        print("scaling  ranks    step, us  computing  messages"
              "  sent a rank  sent, all  peak a rank")
    for scaling in ("strong", "weak"):
        for ranks in (int(n) for n in given.ranks.split(",")):
            if scaling == "strong" and given.units and ranks > given.units:
                continue  # some would have nothing
            r = simulate(steps, ranks, scaling, machine, given.units, given.cores, given.work)
            if given.json:
                print(json.dumps(r))
            else:
                print(f'{scaling:7} {ranks:6} {r["step_ns"] / 1e3:11.1f}'
                      f' {r["compute_ns"] / 1e3:10.1f} {r["message_ns"] / 1e3:9.1f}'
                      f' {r["sent_bytes_a_rank"]:12.0f}'
                      f' {r["sent_bytes"]:10.3g} {r["peak_bytes_a_rank"]:12.0f}')


main()
