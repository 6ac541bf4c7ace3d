"""Checks the links of the docs, without a browser and without the site.

    python3 docs/site/links.py [ROOT]

Links between pages lead to a file and to a heading that are there. A page that a source, a script or
a test names ("docs/….md") is there. Addresses of other sites are not visited.
"""
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
SKIPPED = {".git", "build", "node_modules", "dist", "site"}
SOURCES = (".c", ".h", ".hpp", ".cc", ".cpp", ".def", ".cmake", ".txt", ".sh", ".inc", ".py", ".md",
           ".js", ".cjs", ".in", "")
# The text that examples/characters learns from is a copy of old pages.
QUOTED = {os.path.join("examples", "data", "text.txt")}


def files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if os.path.splitext(name)[1] in SOURCES and path not in QUOTED:
                yield path


def prose(text):
    """The lines of a page with their numbers, without code."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and line.strip() == fence:
            fence = None
        elif fence is None and not line.startswith("    "):
            yield number, line


def anchors(text):
    """As GitHub and MyST name headings."""
    seen = {}
    for _, line in prose(text):
        heading = re.match(r"#{1,6} +(.*)", line)
        if heading:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            count = seen[slug] = seen.get(slug, -1) + 1
            yield slug if count == 0 else f"{slug}-{count}"


def main():
    problems = []
    links = 0
    pages = {}
    for path in files():
        try:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue
        if path.endswith(".md"):
            pages[path] = text
        if "docs/" not in text:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for named in re.findall(r"(?<![\w/.])docs/[\w/.-]+\.(?:md|svg|png)\b", line):
                links += 1
                if not os.path.exists(os.path.join(ROOT, named)):
                    problems.append(f"{path}:{number}: there is no {named}")
    names = {path: set(anchors(text)) for path, text in pages.items()}
    for path, text in pages.items():
        for number, line in prose(text):
            for target in re.findall(r"\[[^\]\[]*\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "`", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                links += 1
                file, _, anchor = target.partition("#")
                found = path if not file else os.path.normpath(
                    os.path.join(os.path.dirname(path), file))
                if not os.path.exists(os.path.join(ROOT, found)):
                    problems.append(f"{path}:{number}: there is no {found}")
                elif anchor and anchor not in names.get(found, set()):
                    problems.append(f"{path}:{number}: {found} has no heading #{anchor}")
    print("\n".join(problems) or f"{links} links in {len(pages)} pages lead somewhere")
    return 1 if problems or links == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
