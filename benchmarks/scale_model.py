#!/usr/bin/env python3
"""What an MPI program takes on N ranks, from profiles of a few: docs/explanation/scale.md.

    mpirun -n 2 tapescope record -o p strips 256 256 20 30
    tapescope merge -o all.prof p
    scripts/bench scale >rows
    benchmarks/scale_model.py --machine rows --units 256 all.prof

A profile is a merged one of ranks, the name of a set of them, or what `tapescope top --json -n 0`
says of one rank, where no line with a message has other ops.

  --machine FILE     latency, time of a byte and of an op, from rows of scripts/bench scale
  --latency NS, --byte NS, --combine NS, --call NS, --op NS
                     of a message, of each byte, of adding two, of an op more than MPI's call, of
                     an op without elements and its sweep: instead of the machine's
  --ranks N,N,...    (100,1000,10000)
  --units N          what the ranks divide among them, such as rows: a rank has a whole number of
                     them (else work is divided evenly)
  --work X           strong scaling of so many times the work of the profiles, in so many units
  --cores N          so many processors for all ranks: those that share one take turns
  --tapescope FILE   the program that reads profiles (tapescope)
  --json             one JSON object a line

Messages are those of the first profile; of collective calls bcast, reduce, allreduce and barrier
are known. A message is as long on any number of ranks, and what it brought takes as much memory.

Invariant: a profile's times of messages are not used, since waiting is part of them. Messages take
what the model says, on each rank after its computations; ranks that exchange wait for the later.
"""
import argparse
import json
import math
import subprocess
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


def ask(program, *words):
    """The document that a command of the program says."""
    try:
        said = subprocess.run([program, words[0], "--json", *words[1:]], check=True,
                              stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        fail(str(error))
    return json.loads(said)


def new_step(peak):
    """A step of one rank: its messages [(op, phase, times, bytes)], ns of computing, peak bytes."""
    return {"messages": [("backward", "backward", 1, 0)], "forward": 0, "backward": 0, "ops": 0,
            "fixed": 0, "peak": peak}


def add_message(step, op, times, n, where):
    """A message that each step sends so often, forward and in its sweep."""
    if op not in COLLECTIVE and op not in POINT_TO_POINT:
        fail(f"{where}: there is no model of mpi_{op}")
    step["messages"].append((op, "forward", times, n))
    step["messages"].append((COLLECTIVE.get(op, op), "backward", times, n))


def add_computing(step, row, sweeps):
    swept = row["backward_calls"] / row["calls"] if row["backward_calls"] else 1
    step["forward"] += (row["forward_ns"] or 0) * min(swept, 1) / sweeps
    step["ops"] += row["backward_calls"] / sweeps
    step["backward"] += ((row["backward_ns"] or 0) + (row["recompute_ns"] or 0)) / sweeps


def step_of_document(document, path):
    """Of what top says of one rank, by line."""
    if document.get("tapescope") != "top" or document.get("by") != "line":
        fail(f"{path} is not of tapescope top --json")
    rows = document["rows"]
    sweeps = sum(r["calls"] // len(r["ops"]) for r in rows
                 if "mpi_backward" in r["ops"])
    if sweeps == 0:
        fail(f"{path} has no mpi_backward")
    step = new_step(document["total"]["peak_bytes"])
    for r in rows:
        where = f'{r["file"]}:{r["line"]}'
        ops = [op[4:] for op in r["ops"] if op.startswith("mpi_")]
        if ops and set(r["ops"]) <= {"backward", "mpi_backward"}:
            continue
        if ops and len(r["ops"]) > 1 and (ops[0] in COLLECTIVE or ops[0] in POINT_TO_POINT):
            fail(f"{where} has other ops beside {r['ops'][0]}: read the profile itself, or put "
                 "the message on a line of its own")
        if ops:
            # In and out are counted; what was not swept (no_grad) is no part of a step.
            n = r["backward_moved_bytes"]
            n = n / r["backward_calls"] / 2 if r["backward_calls"] else 0
            step["fixed"] += r["peak_bytes"]
            add_message(step, ops[0], r["backward_calls"] / sweeps, n, where)
        else:
            add_computing(step, r, sweeps)
    return step


def step_of_rank(rank, messages, document, path):
    """Of the messages that a rank logged, and what top says of its ops."""
    mine = [m for m in messages if m["rank"] == rank]
    sweeps = sum(m["calls"] for m in mine if m["op"] == "mpi_backward")
    if sweeps == 0:
        fail(f"{path}: rank {rank} has no mpi_backward")
    step = new_step(document["total"]["peak_bytes"])
    calls = {}
    for m in mine:
        if m["op"] != "mpi_backward":
            calls.setdefault((m["file"], m["line"], m["op"]), {})[m["phase"]] = m
    for (file, line, op), of in calls.items():
        back = of.get("backward", {"calls": 0})
        n = max(m["bytes"] / m["calls"] for m in of.values())
        add_message(step, op[4:], back["calls"] / sweeps, n, f"{file}:{line}")
    for r in document["rows"]:
        if r["ops"][0].startswith("mpi_"):
            step["fixed"] += r["peak_bytes"]
        elif r["ops"][0] != "backward":  # the sweep's own beginning, as above
            add_computing(step, r, sweeps)
    return step


def read_steps(path, program):
    """Of each rank of a profile, or of the document of one."""
    try:
        with open(path, encoding="utf-8") as file:
            return [step_of_document(json.load(file), path)]
    except (OSError, ValueError):  # of a set there is no file; else it is a profile
        said = ask(program, "ranks", path)
    left_out = sum(rank["messages_left_out"] for rank in said["ranks"])
    if left_out > 0:
        fail(f"{path}: {left_out} messages had no room: profile fewer steps")
    return [step_of_rank(rank["rank"], said["messages"],
                         ask(program, "top", "-n", "0", "--by", "op", "--rank", str(rank["rank"]),
                             path), path)
            for rank in said["ranks"]]


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
    p.add_argument("--tapescope", default="tapescope")
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
    steps = [step for path in given.profile for step in read_steps(path, given.tapescope)]
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
