"""Does the chapters of docs/tutorial as a reader would.

    python3 tutorial.py CHAPTERS FOLDER [WRITTEN]
    python3 tutorial.py --printed PROMISED OUTPUT     the lines of one file are in another

Every block of C becomes the file that its first comment names. The blocks of sh of a chapter are run
one after the other, in FOLDER. Each line of the block of text that follows one of sh is a line that
it printed; where the line has times, whatever the times are, and with other columns between.
WRITTEN: a folder for the chapters with the lines as they were printed now.
"""
import os
import re
import subprocess
import sys


def stable(line):
    """Whether a line has times, and its words without them and what follows from them."""
    timed = bool(re.search(r"\d(ns|µs|us|ms|s)\b|\d%|^ *share ", line))
    words, before = [], False
    for word in line.split():
        time = re.fullmatch(r"[~+-]?\d[\d.]*(ns|µs|us|ms|s)[,)]?|\(?[+-]?\d[\d.]*%[,)]*|-", word)
        before = bool(timed and (time or before and re.fullmatch(r"~?\d[\d.]*!?", word)))
        if not before:
            words.append(word)
    return timed, words


def printed_as(line, printed):
    """The printed line that a promised one stands for, or None. Those with times may have more
    columns on another terminal, and names that are cut with an ellipsis may be whole."""
    timed, words = stable(line)
    for candidate in printed:
        if not timed:
            if candidate.split() == words:
                return candidate
            continue
        rest = iter(stable(candidate)[1])
        if all(any(word == other or (word[-1] == "…" and other.startswith(word[:-1]))
                   for other in rest) for word in words):
            return candidate
    return None


def blocks(text):
    """Pairs of kind and lines, and where they begin."""
    kind, at, lines = None, 0, []
    for number, line in enumerate(text.split("\n")):
        if kind is None and line.startswith("```"):
            kind, at, lines = line[3:], number + 1, []
        elif line == "```":
            yield kind, at, lines
            kind = None
        elif kind is not None:
            lines.append(line)


def chapter(path, folder, written):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = text.split("\n")
    printed, failures, promised = None, 0, 0
    for kind, at, lines in blocks(text):
        if kind == "c":
            name = re.match(r"/\* (\w+\.c)\b", lines[0]).group(1)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        elif kind == "sh":
            run = subprocess.run(["sh", "-e"], input="\n".join(lines), cwd=folder, text=True,
                                 capture_output=True)
            if run.returncode != 0:
                print(f"{path}:{at}: status {run.returncode}\n{run.stdout}{run.stderr}")
                return 1
            printed = run.stdout.split("\n")
        elif kind == "text":
            for number, line in enumerate(lines, at):
                promised += 1
                now = printed_as(line, printed)
                if now is None:
                    print(f"{path}:{number + 1}: not printed: {line}")
                    failures += 1
                elif not line.lstrip().startswith("share"):
                    page[number] = now
            if failures:
                print("\n".join(printed))
    if promised == 0:
        print(f"{path}: promises nothing")
        return 1
    if written:
        with open(os.path.join(written, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write("\n".join(page))
    return failures


def main(chapters, folder, written=None):
    names = sorted(name for name in os.listdir(chapters) if re.match(r"\d", name))
    if os.environ.get("TAPESCOPE_PLAIN") != "ON":
        names.remove("4-plain-c.md")
    failures = sum(chapter(os.path.join(chapters, name), folder, written) for name in names)
    print(f"{len(names)} chapters, {failures} failures")
    return failures > 0


def compare(promised, output):
    with open(output, encoding="utf-8") as file:
        printed = file.read().split("\n")
    with open(promised, encoding="utf-8") as file:
        missing = [line for line in file.read().splitlines() if printed_as(line, printed) is None]
    for line in missing:
        print(f"not printed: {line}")
    return bool(missing)


if sys.argv[1] == "--printed":
    sys.exit(compare(*sys.argv[2:]))
sys.exit(main(*sys.argv[1:]))
