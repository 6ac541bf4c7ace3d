#!/usr/bin/env python3
"""Holds SARIF files to version 2.1.0 (OASIS, sections 3.13 to 3.51 and the schema): required members,
types, bounds, and no member that the format does not have. Of each object those members are here
that `tapescope check --sarif` writes or might.

    sarif.py FILE...      says what is wrong; afterwards breaks each file in every way it knows and
                          wants to see that refused
"""
import copy
import json
import re
import sys

TEXT, WHOLE = str, int
# Object: (members and their types: a name of another, [of many], a set of words; required; of these
# one is). Members with a least value are in LEAST.
FORMAT = {
    "sarifLog": ({"$schema": TEXT, "version": {"2.1.0"}, "runs": ["run"]}, ["version", "runs"], []),
    "run": ({"tool": "tool", "results": ["result"], "columnKind": {"utf16CodeUnits", "unicodeCodePoints"}},
            ["tool"], []),
    "tool": ({"driver": "toolComponent"}, ["driver"], []),
    "toolComponent": ({"name": TEXT, "version": TEXT, "semanticVersion": TEXT, "informationUri": "uri",
                       "rules": ["reportingDescriptor"]}, ["name"], []),
    "reportingDescriptor": ({"id": TEXT, "name": TEXT, "shortDescription": "multiformatMessageString",
                             "fullDescription": "multiformatMessageString",
                             "help": "multiformatMessageString", "helpUri": "uri"}, ["id"], []),
    "multiformatMessageString": ({"text": TEXT, "markdown": TEXT}, ["text"], []),
    "result": ({"ruleId": TEXT, "ruleIndex": WHOLE, "level": {"none", "note", "warning", "error"},
                "kind": {"notApplicable", "pass", "fail", "review", "open", "informational"}, "message": "message",
                "locations": ["location"]}, ["message"], []),
    "message": ({"text": TEXT, "markdown": TEXT, "id": TEXT, "arguments": [TEXT]}, [], ["text", "id"]),
    "location": ({"id": WHOLE, "physicalLocation": "physicalLocation", "message": "message"}, [], []),
    "physicalLocation": ({"artifactLocation": "artifactLocation", "region": "region"},
                         [], ["address", "artifactLocation"]),
    "artifactLocation": ({"uri": "uri", "uriBaseId": TEXT, "index": WHOLE}, [], []),
    "region": ({"startLine": WHOLE, "startColumn": WHOLE, "endLine": WHOLE, "endColumn": WHOLE},
               [], ["startLine", "charOffset", "byteOffset"]),
}
LEAST = {"ruleIndex": -1, "index": -1, "id": -1,
         "startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
UNIQUE = {"rules"}
# RFC 3986: a reference has these characters alone, others in percent.
URI = re.compile(r"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")


def check(value, kind, at, name=""):
    """What is wrong with a value, a line each."""
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"{at}: no array"]
        if name in UNIQUE and len({json.dumps(one, sort_keys=True) for one in value}) < len(value):
            return [f"{at}: twice the same"]
        return [wrong for i, one in enumerate(value) for wrong in check(one, kind[0], f"{at}[{i}]")]
    if isinstance(kind, set):
        ok = isinstance(value, str) and value in kind
        return [] if ok else [f"{at}: {value!r} is none of {sorted(kind)}"]
    if kind is WHOLE:
        ok = isinstance(value, int) and not isinstance(value, bool) and value >= LEAST.get(name, 0)
        return [] if ok else [f"{at}: {value!r} is no such number"]
    if kind is TEXT or kind == "uri":
        ok = isinstance(value, str) and (kind is TEXT or URI.fullmatch(value))
        return [] if ok else [f"{at}: {value!r} is no {'text' if kind is TEXT else 'URI'}"]
    if not isinstance(value, dict):
        return [f"{at}: no object"]
    members, required, one_of = FORMAT[kind]
    wrong = [f"{at}: a {kind} has no {name}" for name in value if name not in members]
    wrong += [f"{at}: a {kind} lacks {name}" for name in required if name not in value]
    if one_of and not any(name in value for name in one_of):
        wrong.append(f"{at}: a {kind} has none of {', '.join(one_of)}")
    for name, of in members.items():
        if name in value:
            wrong += check(value[name], of, f"{at}.{name}", name)
    return wrong


def references(log):
    """Section 3.27.6: a rule's index is its place among the rules, and its id is that rule's."""
    for run in log["runs"]:
        rules = run["tool"]["driver"].get("rules", [])
        for result in run.get("results", []):
            at = result.get("ruleIndex", -1)
            if at >= len(rules) or (at >= 0 and rules[at]["id"] != result.get("ruleId")):
                yield f"ruleIndex {at} is not {result.get('ruleId')}"


def objects(value):
    """All objects of a document, from the outside in."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)


def broken(log):
    """The document with one thing wrong, in every way."""
    for place, whole in enumerate(list(objects(log))):
        for name in list(whole):
            for wrong in (1.5, None, True):
                made = copy.deepcopy(log)
                list(objects(made))[place][name] = wrong
                yield made, f"{name} = {wrong!r}"
            made = copy.deepcopy(log)
            one = list(objects(made))[place]
            one[name + "s"] = one.pop(name)
            yield made, f"{name}s"


def main():
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as opened:
            log = json.load(opened)
        wrong = check(log, "sarifLog", file) or list(references(log))
        if wrong:
            sys.exit("\n".join(wrong))
        for made, how in broken(log):
            if not check(made, "sarifLog", file):
                sys.exit(f"{file}: the checker lets {how} pass")


main()
