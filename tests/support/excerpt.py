"""Compares what a page of the docs shows of an output with what was printed.

    python3 excerpt.py [--exact] SHOWN PRINTED    two files; status 1, and the reasons, where they differ

Every line that was printed is shown, in its order. A line ⋮ alone, at the margin, stands for one line
or more that are left out, so that nothing is left out without a mark.

A line with times stands for the same line with other times and what follows from these: shares of
time, ratios, estimates of bytes, names that are cut at another column, the form of a plot. Rows with times that follow
one another may be printed in another order. A path stands for one that ends alike. --exact: without all
of this paragraph.
"""
import re
import sys

LEFT_OUT = "⋮"
TIME = r"[~+-]?\d[\d.]*(?:ns|µs|us|ms|s)"
# Behind a time: a ratio, an exponent, an interval.
NUMBERS = r"~?-?\d[\d.]*!?(?:…-?\d[\d.]*)?"
# What a line of a paragraph never begins with: the heads of tables.
HEADS = r"(share|total|tape|at peak|new peak|bytes|calls) "


class Line:
    """A line as it is compared: its words without times and what follows from these."""

    def __init__(self, texts, exact):
        self.texts, self.timed = texts, False
        line = " ".join(texts)
        if exact:
            self.words = [line]
            return
        line = re.sub(r" line /.*/", " line /", line)      # the head of annotate
        line = re.sub(r"\|[ ▁-█]*$", "|", line)            # a row of a plot, and its axis
        line = re.sub(r"\+[-=^]+$", "+", line)
        self.timed = bool(re.search(TIME + r"\b|\d%|^ *share |[|+]$", line))
        if self.timed:
            line = re.sub(r"\d[\d.]* times ", "times ", line)
        self.words, before = [], False
        for word in line.split():
            time = re.fullmatch(r"\(?(?:" + TIME + r"|[~+-]?\d[\d.]*%|~\d[\d.]*[KMGT]?i?B)[,.:;)]*|-", word)
            before = self.timed and bool(time or before and re.fullmatch(NUMBERS, word)) or \
                self.timed and word == "*"                 # the better of rows with times
            if not before:
                self.words.append(word)

    def stands_for(self, other):
        return len(self.words) == len(other.words) and all(map(alike, self.words, other.words))


def alike(word, other):
    """A name that is cut with an ellipsis may be cut elsewhere, or be whole."""
    if word == other:
        return True
    begin, end = word.split("…")[0], other.split("…")[0]
    return len(word) > 1 and len(other) > 1 and "…" in word + other and \
        (begin.startswith(end) or end.startswith(begin))


def lines_of(texts, exact):
    """Lines, of which a paragraph that was broken at the terminal's edge is one."""
    if exact:
        return [[text] for text in texts]
    lines = []
    for text in texts:
        last = lines[-1][-1] if lines else ""
        prose = re.match(r"[A-Za-z(*].*[.,:]", last) and "  " not in last and not re.match(HEADS, last)
        if prose and re.match(r"[A-Za-z0-9(~&<]", text) and \
                len(last) <= 80 < len(last) + 1 + len(text.split()[0]):
            lines[-1].append(text)
        else:
            lines.append([text])
    return lines


def differences(shown, printed, exact=False):
    """What is wrong with the lines shown, as pairs of a line's number (from 0) and words; and what
    was printed in their place: numbers of lines, how many they are, and other lines."""
    printed = [Line(texts, exact) for texts in lines_of(printed, exact)]
    problems, rows, number, taken, last = [], [], 0, set(), -1
    for texts in lines_of(shown, exact):
        if texts != [LEFT_OUT]:
            line = Line(texts, exact)
            found = [at for at, other in enumerate(printed)
                     if at not in taken and line.stands_for(other)]
            if found:
                last = min(found, key=lambda at, last=last: (at <= last, at))
                taken.add(last)
                rows.append((number, last, line.timed, len(texts)))
            else:
                problems.append((number, f"not printed: {' '.join(texts)}"))
        else:
            rows.append((number, None, False, 1))
        number += len(texts)
    if problems:
        return problems, []

    # Rows with times behind one another: their places in order.
    begin = 0
    while begin < len(rows):
        end = begin + 1
        if rows[begin][2]:
            while end < len(rows) and rows[end][2]:
                end += 1
            order = sorted(row[1] for row in rows[begin:end])
            rows[begin:end] = [(row[0], at, *row[2:]) for row, at in zip(rows[begin:end], order)]
        begin = end

    expected, left_out = 0, False
    for number, at, *_ in rows + [(number, len(printed))]:
        if at is None:
            left_out = True
            continue
        if at < expected:
            problems.append((number, f"printed before what stands above it: {' '.join(printed[at].texts)}"))
        elif left_out and at == expected:
            problems.append((number, f"a {LEFT_OUT} above it leaves nothing out"))
        elif not left_out and at > expected:
            problems.append((number, f"left out without a {LEFT_OUT}: {' '.join(printed[expected].texts)}"))
        expected, left_out = max(expected, at + 1), False
    return problems, [(number, count, printed[at].texts) for number, at, _, count in rows if at is not None]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().rstrip("\n").split("\n")


def main(shown, printed, exact=False):
    shown = read(shown)
    problems, _ = differences(shown, read(printed), exact)
    for number, words in problems:
        print(f"line {number + 1} of what is shown: {words}")
    return bool(problems) or not any(line.strip() for line in shown)


if __name__ == "__main__":
    files = [argument for argument in sys.argv[1:] if argument != "--exact"]
    sys.exit(main(*files, "--exact" in sys.argv))
