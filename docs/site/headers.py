"""A public header as Doxygen reads it: a filter, `python3 headers.py HEADER`.

What a reader needs stays: prototypes, types, macros, and their comments as
Doxygen's. What only the compiler needs goes: bodies, the C++ side, names that end in _, _site, _at.
"""
import re
import sys

FALSE = ("__cplusplus", "AD_LINE_MACROS", "__clang__")


def branches(text):
    """Without the branches of C++ and of the macros that add lines."""
    out, stack = [], []
    for line in text.split("\n"):
        word = re.match(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if not word:
            if all(shown for _, shown in stack):
                out.append(line)
            continue
        verb, rest = word.groups()
        if verb in ("if", "ifdef", "ifndef"):
            known = any(name in rest for name in FALSE) and "_H" not in rest
            stack.append((known, not known or verb == "ifndef" or "!" in rest))
        elif verb in ("else", "elif"):
            known, shown = stack.pop()
            other = verb == "elif" and any(name in rest for name in FALSE)
            stack.append((known, not shown and not other if known else True))
        elif verb == "endif":
            stack.pop()
    return "\n".join(out)


def words(comment):
    """The text of a comment as Doxygen's: paragraphs, and what is indented as code."""
    lines = [re.sub(r"^ ?\* ?", "", line.strip(" ")) if number else line.strip()
             for number, line in enumerate(comment[2:-2].split("\n"))]
    out, code = [], False
    for line in lines:
        indented = line.startswith("    ") or (code and not line.strip())
        if indented and not code:
            out += ["", "@verbatim"]
        elif code and not indented:
            while out[-1] == "":
                out.pop()
            out += ["@endverbatim", ""]
        code = indented
        # The lines of an op begin with one space each: a line here too.
        item = re.match(r" (\S.*)", line)
        text = item.group(1) if item else line
        if code:
            text = line[4:]
        else:
            text = re.sub(r"([@\\<>&#%$])", r"\\\1", text)
            text = text.replace("::", "\\::")
            text = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)
            if item:
                text = ("@n " if re.match(r"[A-Z][a-z]+: ", text) else "") + text
        out.append(text)
    if code:
        out.append("@endverbatim")
    return "\n".join(out).strip("\n")


def main(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    name = path.rsplit("/", 1)[-1]
    text = branches(text)
    text = re.sub(r'extern "C" \{|^#include.*$', "", text, flags=re.M)
    # What a map of the preprocessor makes of an enum is written out.
    rows = re.findall(r'^ +X\((\w+), "([^"]*)"\)', text, re.M)
    text = re.sub(r"^#define X\(name, text\) AD_##name,\n.*\n#undef X$",
                  "\n".join(f"    AD_{name}, /* {said} */" for name, said in rows), text, flags=re.M)
    text = re.sub(r"^#define AD_STATUS_MAP\(X\)(?:.*\\\n)*.*$", "", text, flags=re.M)
    # Macros: none that is private; of the others the head.
    whole = r"^#define (\w+)(\([^)\n]*\))?((?:.*\\\n)*.*)$"

    def macro(match):
        title, parameters, body = match.groups()
        if re.search(r"(_|_site|_at|_H)$", title) or title in ("X",):
            return match.group(0) if title == "X" else ""
        if parameters is None or "_MAP" in title:
            return match.group(0)
        return f"#define {title}{parameters}"
    text = re.sub(whole, macro, text, flags=re.M)
    text = re.sub(r"^AD_INLINE([^;{]*)\n\{\n.*?\n\}$", r"\1;", text, flags=re.M | re.S)
    # Their prototypes are above.
    text = re.sub(r"AD_SITED(?:_MUST_USE)?\([^,()]+,\s*\w+,\s*\((?:[^()]|\([^()]*\))*\),"
                  r"\s*\((?:[^()]|\([^()]*\))*\)\)", "", text)
    # Declarations of private names, with the comment before them.
    comment = r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?"
    text = re.sub(comment + r"^[\w *]+\b\w+(?:_|_site|_at)\([^;{]*\)[^;{]*;$", "", text, flags=re.M)
    text = re.sub(comment + r"^(?:struct|enum) \w+_(?: \{.*?^\})?;$", "", text, flags=re.M | re.S)
    text = re.sub(comment + r"^extern [^;]*_;$", "", text, flags=re.M)
    # What is in a handle is nobody's business.
    text = re.sub(r"(struct \w+ \{\n)(?:    uint32_t [\w, ]+;\n)+\}", r"\1}", text)
    # One name for a struct and its type.
    text = re.sub(r"^typedef (struct|enum) (\w+) (\{.*?\}) \2;", r"\1 \2 \3;", text, flags=re.M | re.S)
    text = text.replace(" AD_LINE_PARAMETER_", "")
    text = re.sub(r"\b(AD_API|AD_INLINE|AD_NO_MERGE|AD_MUST_USE)\b ?", "", text)
    text = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text)
    out, at, first = [], 0, True
    for comment in re.finditer(r"/\*.*?\*/", text, re.S):
        out.append(text[at:comment.start()])
        at = comment.end()
        before = text[text.rfind("\n", 0, comment.start()) + 1:comment.start()]
        said = words(comment.group(0))
        if first:
            said = re.sub(r"^\S+?\.h: (.)", lambda m: m[1].upper(), said)
            out.append(f"/** @file {name}\n\n{said} */")
            first = False
        elif re.match(r"-+ ", said) or before.startswith("#"):
            continue
        elif before.strip():
            out.append(f"/**< {said} */")
        else:
            out.append(f"/** {said} */")
    out.append(text[at:])
    print("".join(out))


main(sys.argv[1])
