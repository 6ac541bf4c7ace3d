"""Does what pages of the docs say, as a reader would.

    python3 pages.py [--exact] [--written FOLDER] FOLDER PAGE...

Every block of C becomes the file that its first comment names. The blocks of sh are run one after the
other, in FOLDER. The block of text that follows one of sh is what a terminal shows of it, as excerpt.py
compares them. Of a page that ends in :c only the programs are taken.

--exact: times are the same as well. --written FOLDER: the pages are written there, with the lines as
they were printed now.
"""
import argparse
import os
import re
import subprocess
import sys

import excerpt


def blocks(text):
    """Kinds and lines, and where they begin."""
    kind, at, lines = None, 0, []
    for number, line in enumerate(text.split("\n")):
        if kind is None and line.startswith("```"):
            kind, at, lines = line[3:], number + 1, []
        elif line == "```":
            yield kind, at, lines
            kind = None
        elif kind is not None:
            lines.append(line)


def replace(page, at, count, texts):
    """What was printed stands where it was shown; the head of annotate keeps its folder."""
    folder = re.search(r" line /.*/", page[at])
    page[at:at + count] = ["\n".join(texts)] + [None] * (count - 1)
    if folder:
        page[at] = re.sub(r" line /.*/", folder[0], page[at])


def run(path, args):
    path, _, programs = path.partition(":")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = text.split("\n")
    printed, failures, shown = None, 0, 0
    for kind, at, lines in blocks(text):
        if kind == "c":
            name = re.match(r"/\* (\w+\.c)\b", lines[0]).group(1)
            with open(os.path.join(args.folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        elif programs:
            continue
        elif kind == "sh":
            done = subprocess.run(["sh", "-e"], input="\n".join(lines), cwd=args.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                print(f"{path}:{at}: status {done.returncode}\n{done.stdout}")
                return 1
            printed = done.stdout.rstrip("\n").split("\n")
        elif kind == "text":
            shown += 1
            problems, now = excerpt.differences(lines, printed, args.exact)
            for number, words in problems:
                print(f"{path}:{at + number + 1}: {words}")
            for number, count, texts in now:
                replace(page, at + number, count, texts)
            if problems:
                failures += len(problems)
                print("\n".join(printed))
    if shown == 0 and not programs:
        print(f"{path}: shows no output")
        return 1
    if args.written and not programs:
        with open(os.path.join(args.written, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write("\n".join(line for line in page if line is not None))
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--written")
    parser.add_argument("folder")
    parser.add_argument("pages", nargs="+")
    args = parser.parse_args()
    failures = sum(run(page, args) for page in args.pages)
    print(f"{len(args.pages)} pages, {failures} failures")
    return failures > 0


sys.exit(main())
