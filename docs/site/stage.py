"""Lays out what Sphinx reads, in FOLDER: the pages of the tree where they are, the pages that are
generated, and the index.

    python3 docs/site/stage.py FOLDER GENERATED HEADERS...

GENERATED: the build's folder generated/; HEADERS: the public headers.
"""
import os
import re
import shutil
import sys

# The parts of the site. Pages of a folder come in the order of ORDER, others behind them; a page of
# docs/ itself that stands in no part is an error.
ORDER = ["README", "install", "tapes", "scalars", "plain", "memory", "checkpoint", "disk",
         "functional", "sparse", "programs", "custom-ops", "files", "debugging", "ode", "mpi",
         "profile", "read-a-report", "ci", "exports", "benchmark", "how-it-works", "gallery", "limits",
         "architecture"]
PARTS = [
    ("Tutorial", "docs/tutorial", []),
    ("How to", "docs/how-to", []),
    ("Reference", "docs/reference", []),
    ("Explanation", "docs/explanation", []),
]
MORE = ["README", "docs/decisions/README", "CHANGELOG", "CONTRIBUTING", "SECURITY"]
ONLY_IN_TREE = {"docs/README"}

INDEX = """# Tapescope

Reverse-mode automatic differentiation for C, with a profiler that attributes every nanosecond and byte of
forward and backward pass to a line of your program. [What it looks like](README.md).

PAGES
What is generated: [the C interface](docs/reference/api.md), [the ops](docs/reference/ops.md),
[the commands' options](docs/reference/commands.md).

"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def toctree(caption, pages, depth=1, hidden=True):
    lines = ["```{toctree}", f":maxdepth: {depth}"]
    if caption:
        lines.append(f":caption: {caption}")
    if hidden:
        lines.append(":hidden:")
    return "\n".join(lines + [""] + pages + ["```", "", ""])


def interface(to, headers):
    """A page for each header."""
    pages = []
    text = "# The C interface\n\nMade from the public headers. Calls are shown as functions; "
    text += "some are macros that add the line of the call.\n\n"
    for header in sorted(headers):
        name = os.path.basename(header)
        with open(header, encoding="utf-8") as file:
            first = re.match(r"/\* \S+: (.*?)[.;:](?:\s|$)", file.read(), re.S)
        if not first:
            sys.exit(f"stage.py: {name} does not say what it is")
        said = re.sub(r"\s*\n \* ?", " ", first.group(1))
        text += f"- [`{name}`](api/{name[:-2]}.rst): {said}\n"
        write(f"{to}/docs/reference/api/{name[:-2]}.rst",
              f"{name}\n{'=' * len(name)}\n\n.. code-block:: c\n\n   #include <tapescope/{name}>\n\n"
              f".. doxygenfile:: {name}\n   :sections: briefdescription detaileddescription innerclass"
              " public-attrib define enum typedef func var\n")
        pages.append(f"api/{name[:-2]}")
    write(f"{to}/docs/reference/api.md", text + "\n" + toctree("", pages))


def keep_numbers_whole(text):
    """A line breaks neither within 10 000 nor within 5 %. Headings keep their anchors, code its spaces."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not line.startswith(("#", "    ")):
            parts = re.split(r"(`[^`]*`|\]\([^)]*\))", line)
            parts[::2] = [re.sub(r"(?<=\d) (?=\d{3}(?!\d)|%|(?:[nµm]?s|[kKMGT]i?B|B)\b)", "\u00a0", part)
                          for part in parts[::2]]
            lines[i] = "".join(parts)
    return "\n".join(lines)


def name_links(to, headers):
    """A link that is called as its file gets the title of what it leads to. A header that a page names
    leads to its page of the interface."""
    names = {os.path.basename(header)[:-2] for header in headers}
    pages = [f"{to}/{page}" for page in os.listdir(to) if page.endswith(".md")]
    for folder, _, files in os.walk(f"{to}/docs"):
        pages += [os.path.join(folder, page) for page in files if page.endswith(".md")]
    for path in pages:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        api = os.path.relpath(f"{to}/docs/reference/api", os.path.dirname(path))
        parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S)
        for i in range(0, len(parts), 2):
            parts[i] = keep_numbers_whole(parts[i])
            parts[i] = re.sub(r"\[[\w-]+\.md\](?=\([^)\s]+\.md[)#])", "[]", parts[i])
            if "decisions" not in path:
                parts[i] = re.sub(
                    r"(?<!\[)`(?:<tapescope/)?(ad\w*)\.h>?`(?!\])",
                    lambda m: f"[{m[0]}]({api}/{m[1]}.rst)" if m[1] in names else m[0], parts[i])
        write(path, "".join(parts))


def main(to, generated, *headers):
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree("docs", f"{to}/docs", ignore=shutil.ignore_patterns("site", "__pycache__"))
    for page in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        if os.path.exists(page):
            shutil.copy(page, f"{to}/{page}")
    shutil.copytree("docs/site/static", f"{to}/static")

    shutil.copy(f"{generated}/docs/OPS.md", f"{to}/docs/reference/ops.md")
    interface(to, headers)
    name_links(to, headers)
    decisions = sorted(f[:-3] for f in os.listdir("docs/decisions") if re.match(r"\d+-", f))
    with open(f"{to}/docs/decisions/README.md", "a", encoding="utf-8") as file:
        file.write("\n" + toctree("", decisions))

    with open("docs/README.md", encoding="utf-8") as file:
        rows = [line.strip("| \n").split(" | ") for line in file if line.startswith("|")][2:]
    if not rows or rows[0][0] != "tutorial":
        sys.exit("stage.py: docs/README.md has no table of pages")
    listed = "".join(f"- **{sort[0].upper()}{sort[1:]}**, {use}: {pages}\n" for sort, use, pages in rows)
    index = INDEX.replace("PAGES", re.sub(r"\]\((?!\w+:)", "](docs/", listed))
    seen = set(ONLY_IN_TREE)
    for caption, folder, pages in PARTS:
        names = sorted(f[:-3] for f in os.listdir(f"{to}/{folder}") if f.endswith(".md"))
        names.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        pages = [f"{folder}/{name}" for name in names] + [f"docs/{page}" for page in pages]
        index += toctree(caption, pages)
        seen.update(pages)
    more = [page for page in MORE if os.path.exists(f"{to}/{page}.md")]
    index += toctree("More", more)
    seen.update(more)
    write(f"{to}/index.md", index)
    for page in os.listdir(f"{to}/docs"):
        if page.endswith(".md") and f"docs/{page[:-3]}" not in seen:
            sys.exit(f"stage.py: docs/{page} stands in no part of the site")
    for page in ONLY_IN_TREE:
        if os.path.exists(f"{to}/{page}.md"):
            os.remove(f"{to}/{page}.md")


main(*sys.argv[1:])
