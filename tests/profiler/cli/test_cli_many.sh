#!/bin/sh
# test_cli_many.sh: the commands that run a program or read profiles more than once: stat, growth,
# diff, check; on a program whose tape grows as the square of its argument by construction.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS, TEST_C_COMPILER,
# TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"

# python CODE: the JSON in the file out, as d; skipped where there is no python3.
python()
{
    command -v python3 >/dev/null || return 0
    python3 -c "import json, os
d = json.load(open('out'))
$1" 2>err || fail "python: $1"
}

# n * n values on the tape in pairs(), n in each().
cat >grow.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
static ad_tensor pairs(ad_tensor x, int64_t n)
{
    ad_tensor row = ad_reshape(x, (int64_t[]){1, n}, 2);
    ad_tensor column = ad_reshape(x, (int64_t[]){n, 1}, 2);
    return ad_sum(ad_sub(row, column));
}
static ad_tensor each(ad_tensor x)
{
    return ad_sum(ad_exp(x));
}
int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atol(argv[1]) : 1;
    double *data = calloc((size_t)n, sizeof *data);
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
    ad_status status = ad_backward(ad_add(pairs(x, n), each(x)));
    ad_tape_destroy(tape);
    free(data);
    return status != AD_OK;
}
END
build grow grow.c

# Every reading of the clock is a millisecond, so that times are the same in every run.
TAPESCOPE_CLOCK=step:1000000
export TAPESCOPE_CLOCK
for n in 100 200 400 800; do
    expect 0 "$tapescope" record -o g$n.prof ./grow $n
done

# growth finds the line whose tape is quadratic, and no other.
expect 0 "$tapescope" growth g100.prof g200.prof g400.prof g800.prof
shown "n: argument 1: 100 200 400 800"
grep -qE ' 2\.00! 2\.00\.\.2\.00 .* grow\.c:7 sub pairs$' out || fail "the quadratic line"
grep -E 'each|leaf' out | grep -q '!' && fail "a line that is not quadratic"
shown "! significantly above n^1 (95 %)."
expect 0 "$tapescope" growth --json g100.prof g200.prof g400.prof g800.prof
python '
row = [r for r in d["rows"] if r["ops"] == ["sub"]][0]
assert abs(row["bytes"]["exponent"] - 2) < 0.01 and row["bytes"]["above"]
assert row["bytes"]["low"] <= row["bytes"]["exponent"] <= row["bytes"]["high"]
assert not [r for r in d["rows"] if r["function"] == "each" and r["bytes"]["above"]]
assert [p["size"] for p in d["profiles"]] == [100, 200, 400, 800]'
# The page finds it too, with what to do.
expect 0 "$tapescope" html -o growth.html g100.prof g200.prof g400.prof g800.prof
sed -n 's|.*id="profile-data">\([^<]*\)<.*|\1|p' growth.html | base64 -d | gzip -dc >out
python '
found = [f for f in d["findings"] if f["kind"] == "growth"]
assert [f["where"] for f in found] == ["grow.c:7"], found
assert "grow as n^2.00" in found[0]["text"] and found[0]["advice"] and found[0]["howto"]
assert found[0]["call"] == "tapescope check --max-growth 1.1 PROFILE..."'
expect 0 "$tapescope" growth --max-growth 2.5 g100.prof g200.prof g400.prof
grep -q '!' out && fail "an exponent below --max-growth is marked"
expect 0 "$tapescope" growth g100.prof g200.prof
shown "Two sizes give no interval: record a third."
grep -q '!' out && fail "two sizes mark an exponent"
expect 0 "$tapescope" growth --sizes 1,2,4 g100.prof g200.prof g400.prof
shown "n: --sizes: 1 2 4"
expect 0 "$tapescope" growth --size-arg 1 --metric peak g100.prof g200.prof g400.prof
shown " 2.00! 2.00..2.00"

# The runs that stat keeps are a side of a comparison; by this clock they do not vary.
expect 0 "$tapescope" stat -o runs -r 3 --warmup-runs 0 -- ./grow 100
[ "$(ls runs)" = "$(printf '1.prof\n2.prof\n3.prof')" ] || fail "other files of stat"
expect 1 "$tapescope" stat -o runs -- ./grow 100
said "runs has profiles already"
expect 0 "$tapescope" diff --metric tape --json runs --base g200.prof --base g200.prof
python 'assert (d["base_runs"], d["new_runs"]) == (2, 3) and d["rows"][0]["significant"]'
expect 0 "$tapescope" diff runs g200.prof
grep -q '^Means of 1 run against 3' out || fail "no means"
expect 0 "$tapescope" check --base runs --time-tolerance 0% g100.prof
expect 1 "$tapescope" check --base runs --time-tolerance 0% g200.prof
expect 0 "$tapescope" html -o runs.html --base runs runs
mkdir none
expect 3 "$tapescope" diff none g100.prof
said "none: no profiles (*.prof) are in this folder"
expect 2 "$tapescope" diff --base g100.prof
said "name the profiles to compare with --base"

# A rewind that was forgotten is said by itself, of the bytes at the peak; where it is there, nothing.
cat >steps.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
int main(int argc, char **argv)
{
    static double data[1024];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){1024}, data);
    ad_mark start = ad_tape_mark(tape);
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (ad_backward(ad_sum(ad_exp(x))) != AD_OK)
            return 1;
        if (argc > 2)
            ad_tape_rewind(tape, start);
        ad_tape other;
        if (argc > 3 && ad_tape_create(&other, NULL) == AD_OK)
            ad_exp(ad_leaf(other, AD_F64, 1, (int64_t[]){1024}, data));
    }
    ad_tape_destroy(tape);
    return 0;
}
END
build steps steps.c
for n in 16 32 64; do
    expect 0 "$tapescope" record -o forgot$n.prof ./steps $n
    expect 0 "$tapescope" record -o rewound$n.prof ./steps $n rewind
    expect 0 "$tapescope" record -o left$n.prof ./steps $n rewind tapes
done
expect 0 env COLUMNS=400 "$tapescope" growth forgot16.prof forgot32.prof forgot64.prof
grep -qE '^ *at peak .* line' out || fail "the bytes are not those at the peak"
grep -qE 'The peak grows with each step: ~9[0-9]\.[0-9]% of the peak .* every sweep leaves ~8\.[0-9]*KiB more on the tape\. Of the peak steps\.c:11 \(exp in main\) holds most \([5-9][0-9]\.[0-9]%\)\. Mark the tape before the first step, and rewind after each:$' out ||
    fail "a rewind that was forgotten"
shown "    ad_mark start = ad_tape_mark(tape); ... ad_tape_rewind(tape, start);"
expect 0 "$tapescope" growth --json forgot16.prof forgot32.prof forgot64.prof
python 'assert d["metric"] == "peak" and "8." in d["each_step_leaves"]'
expect 0 "$tapescope" growth rewound16.prof rewound32.prof rewound64.prof
grep -qE 'each step|live at the end' out && fail "a rewind that is there"
# So are tapes that no step destroys.
expect 0 env COLUMNS=400 "$tapescope" growth left16.prof left32.prof left64.prof
shown "The number of tapes that are live at the end grows, from 16 to 64. End each tape where its step ends:"
shown "    ad_tape_destroy(tape);"
expect 0 "$tapescope" growth --json left16.prof left32.prof left64.prof
python 'assert "from 16 to 64" in d["each_step_leaves"]'
expect 2 "$tapescope" growth --sizes 1,2 g100.prof g200.prof g400.prof
said "--sizes names 2 sizes for 3 profiles"
expect 2 "$tapescope" growth --sizes 1,x g100.prof g200.prof
said "'1,x' is no list of sizes"
expect 2 "$tapescope" growth --size-key n g100.prof g200.prof
said "g100.prof: neither an argument nor a scope has the key n"
expect 2 "$tapescope" growth --size-key n --size-arg 1 g100.prof g200.prof
said "exclude each other"
expect 2 "$tapescope" growth g100.prof g100.prof
said "no argument of the programs is a number that differs"
expect 2 "$tapescope" growth g100.prof
said "name two profiles or more"
for key in "n=7" "--n=7" "--n 7" "-n 7"; do
    # shellcheck disable=SC2086 # the key is one word or two
    expect 0 "$tapescope" record -o key.prof ./grow 300 $key
    expect 0 "$tapescope" growth --size-key n key.prof key.prof
    shown "n: n: 7 7"
done

# diff: what grew, what is new or gone, what has only moved.
expect 0 "$tapescope" diff --metric tape g100.prof g200.prof
awk 'NR == 2 { exit !($5 == "grow.c:7" || $0 ~ /grow.c:7 sub pairs/) }' out || fail "not the greatest"
expect 0 "$tapescope" diff --exact --metric tape -n 0 g100.prof g200.prof
awk '/\(all\)/ { exit sum != $1 + 0 } { sum += $1 }' out || fail "changes do not add up"
expect 0 "$tapescope" diff g100.prof g100.prof
shown "lines without change."
expect 0 "$tapescope" diff --sort relative --metric tape g100.prof g200.prof
# What has no column here is no key either.
expect 2 "$tapescope" diff --metric ratio g100.prof g200.prof
said "'ratio' is none of: total, forward, backward, tape, peak, calls, lifetime"
expect 2 "$tapescope" diff g100.prof
said "name two profiles"
sed 's/^static ad_tensor each/\n\n&/; s/ad_sum(ad_exp(x))/ad_sum(ad_tanh(x))/' grow.c >moved.c
sed -i '1i #line 1 "grow.c"' moved.c
build changed moved.c
expect 0 "$tapescope" record -o changed.prof ./changed 100
expect 0 "$tapescope" diff --metric tape -n 0 g100.prof changed.prof
shown "new: grow.c:13 tanh each"
shown "gone: grow.c:11 exp each"
expect 0 "$tapescope" diff --json -n 0 --metric calls g100.prof changed.prof
python '
assert not [r for r in d["rows"] if r["ops"] == ["leaf"]], "a line that moved is no change"
assert [r for r in d["rows"] if r["base"] is None and r["ops"] == ["tanh"]]
assert d["base_total"]["tape_bytes"] == d["new_total"]["tape_bytes"]'
# What went to another file is told by its function and op, where no line of its own file is left.
sed 's/^static ad_tensor each/\n\n&/' grow.c >other.c
build other other.c
expect 0 "$tapescope" record -o other.prof ./other 200
expect 0 env COLUMNS=200 "$tapescope" diff --metric tape -n 0 --color g100.prof other.prof
grep -qE 'other\.c:9 sub pairs \(was grow\.c:7\)|other\.c:7 sub pairs \(was grow\.c:7\)' out || fail "another file"
grep -E 'new:|gone:' out && fail "a file of another name is new"
esc=$(printf '\033')
grep -q "^ *$esc\[38;5;167m+[0-9].* $esc\[38;5;167m" out || fail "no colour of more"
expect 0 "$tapescope" diff --metric tape --color other.prof g100.prof
grep -q "$esc\[38;5;71m-[0-9]" out || fail "no colour of less"
expect 0 "$tapescope" diff --json -n 0 --metric tape g100.prof other.prof
python 'assert all(r["base"] and r["new"] for r in d["rows"])'

# A packed profile needs no program any more, and every command reads it.
expect 0 "$tapescope" top --exact g100.prof
mv out before
expect 0 "$tapescope" merge -o packed.prof g100.prof
cat out err >said
[ ! -s said ] || fail "pack says something"
mv grow elsewhere
expect 0 "$tapescope" top --exact packed.prof
cmp -s out before || fail "top of a packed profile"
expect 0 "$tapescope" diff --metric tape packed.prof packed.prof
shown "lines without change."
mv elsewhere grow
expect 0 "$tapescope" record --pack -o packed.prof ./grow 100
said "wrote packed.prof: 6 lines, 1 tape"
mv grow elsewhere
expect 0 "$tapescope" top --exact packed.prof
cmp -s out before || fail "top of a profile that was recorded with --pack"
mv elsewhere grow
expect 1 "$tapescope" merge -o missing/x g100.prof
said "merge: cannot write missing/x: No such file or directory"
expect 1 "$tapescope" merge -o missing/x g100.prof g200.prof
said "merge: cannot write missing/x: No such file or directory"
expect 1 "$tapescope" merge -o /dev/full g100.prof
said "merge: cannot write /dev/full: No space left on device"
# So says every command with a file to write.
echo x >plain.txt
for command in "html -o missing/x" "export -f csv -o missing/x" "annotate --write -o missing" \
    "annotate --write -o plain.txt" "check --max-ratio 1e9 --junit missing/x" \
    "check --max-ratio 1e9 --sarif missing/x"; do
    # shellcheck disable=SC2086 # the command is words
    expect 1 "$tapescope" $command g100.prof
    said "cannot write "
    grep -qE ': (No such file or directory|Not a directory)$' err || fail "no reason: $command"
done
expect 2 "$tapescope" record -o missing/x ./grow 100
said "cannot write missing/x: No such file or directory"
expect 2 "$tapescope" live -o missing/x ./grow 100
said "cannot write missing/x: No such file or directory"
expect 1 "$tapescope" stat -o missing/x ./grow 100
said "cannot make missing/x: No such file or directory"
expect 3 "$tapescope" merge -o x.prof grow.c

# merge: sums by place, wherever the program was loaded.
expect 0 "$tapescope" merge -o sum.prof g100.prof g200.prof g100.prof
expect 0 "$tapescope" info --json sum.prof
python '
from subprocess import run, PIPE
one = [json.loads(run([os.environ["TAPESCOPE_PROGRAM"], "info", "--json", p], stdout=PIPE).stdout)
       for p in ("g100.prof", "g200.prof", "g100.prof")]
for key in ("tapes", "sweeps", "records", "calls", "forward_ns", "backward_ns", "tape_bytes"):
    assert d["total"][key] == sum(o["total"][key] for o in one), key
for key in ("forward_ns", "value_bytes", "backward_calls", "forward_moved_bytes"):
    assert d["sum"][key] == sum(o["sum"][key] for o in one), key
assert d["total"]["peak_bytes"] == one[1]["total"]["peak_bytes"] == d["sum"]["peak_bytes"]
assert d["lines"] == one[0]["lines"] and d["profile"]["complete"]'
mv grow elsewhere
expect 0 "$tapescope" top --focus pairs sum.prof
shown "grow.c:7"
mv elsewhere grow
expect 0 "$tapescope" merge -o sum.prof sum.prof
expect 2 "$tapescope" merge -o sum.prof g100.prof changed.prof
said "changed.prof is of another program than g100.prof"
expect 0 "$tapescope" tree --exact g100.prof
cp out tree
expect 0 "$tapescope" merge --json -o one.prof g100.prof
python '
assert d["tapescope"] == "merge" and d["from"] == ["g100.prof"] and d["tapes"] == 1
assert d["profile"]["path"] == "one.prof" and d["bytes"] == os.stat("one.prof").st_size
assert d["rows"] > 0 and d["symbols"] > 0 and d["call_paths"] > 0 and d["events"] == 0'
expect 0 "$tapescope" merge --json -o packed.prof g100.prof
python '
assert d["tapescope"] == "merge" and d["bytes"] == os.stat("packed.prof").st_size
assert d["symbols"] >= d["call_paths"] > 0 and d["profile"]["complete"]'
expect 0 "$tapescope" tree --exact one.prof
cmp -s out tree || fail "the tree of a sum of one"
(unset TAPESCOPE_CLOCK && "$tapescope" record --time=sampled -o sampled.prof ./grow 100) >out 2>err ||
    fail "record --time=sampled"
expect 2 "$tapescope" merge -o sum.prof g100.prof sampled.prof
said "g100.prof has exact times and sampled.prof has samples"
expect 0 "$tapescope" merge -o sum.prof sampled.prof sampled.prof
expect 2 "$tapescope" merge g100.prof
said "name the file to write"
expect 1 "$tapescope" merge -o missing/sum.prof g100.prof
said "missing/sum.prof: No such file"
expect 3 "$tapescope" merge -o sum.prof g100.prof grow.c

# check: bytes are exact, and what fails is said first.
expect 0 "$tapescope" check --max-peak 1MiB --max-total-tape 1MiB --max-ratio 10 g100.prof
[ "$(grep -c '^ok ' out)" -eq 3 ] || fail "not three gates"
expect 1 "$tapescope" check --max-ratio 10 --max-peak 64KiB --junit junit.xml g100.prof
[ "$(head -n 1 out | cut -c 1-6)" = FAILED ] || fail "the failing gate is not first"
if command -v python3 >/dev/null; then
    python3 -c 'import xml.etree.ElementTree as e
r = e.parse("junit.xml").getroot()
c = r.findall(".//testcase")
assert r.get("tests") == "2" and r.get("failures") == "1" and len(c) == 2
assert [x.get("classname") for x in c if x.find("failure") is not None] == ["max-peak"]' 2>err ||
        fail "junit.xml"
fi
# SARIF and GitHub's annotations have what failed, at its line; files below the folder are named from it.
expect 1 "$tapescope" check --max-ratio 10 --max-peak 64KiB --max-tape grow.c:7=1 --sarif failed.sarif --github g100.prof
[ "$(grep -c '^::error ' out)" -eq 2 ] || fail "not two annotations"
grep -q '^::error title=tapescope check max-peak::g100\.prof: .*, at most 64\.0KiB$' out || fail "no annotation of the whole"
grep -q '^::error file=grow\.c,line=7,title=tapescope check max-tape::grow\.c:7: .*, at most 1B*$' out || fail "no annotation of a line"
if command -v python3 >/dev/null; then
    python3 -c 'import json
d = json.load(open("failed.sarif"))
assert d["version"] == "2.1.0" and d["$schema"].endswith("sarif-2.1.0.json") and len(d["runs"]) == 1
run = d["runs"][0]
rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
assert run["tool"]["driver"]["name"] == "tapescope" and sorted(rules) == ["max-peak", "max-ratio", "max-tape"]
got = {}
for r in run["results"]:
    assert rules[r["ruleIndex"]] == r["ruleId"] and r["level"] == "error" and r["message"]["text"]
    place, = [l["physicalLocation"] for l in r["locations"]]
    assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    got[r["ruleId"]] = (place["artifactLocation"]["uri"], place.get("region", {}).get("startLine"))
assert got == {"max-peak": ("g100.prof", None), "max-tape": ("grow.c", 7)}, got' 2>err || fail "failed.sarif"
fi
mv failed.sarif first.sarif
GITHUB_WORKSPACE=/elsewhere expect 1 "$tapescope" check --max-tape grow.c:7=1 --sarif failed.sarif g100.prof
grep -qF "\"uri\": \"file://$(echo "$PWD" | sed 's/ /%20/g')/grow.c\"" failed.sarif || fail "no absolute file"
expect 1 "$tapescope" check --max-tape grow.c:7=1 --github --map "$PWD=$PWD/a,b:c%d" g100.prof
grep -q '^::error file=a%2Cb%3Ac%25d/grow\.c,line=7,' out || fail "a name is not escaped"
expect 2 "$tapescope" check --max-peak 1 --github --json g100.prof
said "check: --github does not go with --json"
expect 0 "$tapescope" check --max-peak 1MiB --sarif passed.sarif --github g100.prof
! grep -q '^::' out || fail "an annotation of what passed"
grep -qF '"results": []' passed.sarif || fail "results of what passed"
# All of it is what SARIF 2.1.0 has, of names that no URI may have too.
mkdir "a \"folder\" 100 %"
cp g100.prof "a \"folder\" 100 %/g.prof"
expect 1 "$tapescope" check --max-peak 1 --max-total-tape 1 --max-ratio 0 --max-tape grow.c:7=1 --max-tape none.c:1=1 --sarif names.sarif \
    --base g100.prof --expectations "a \"folder\" 100 %/g.prof" g200.prof
expect 0 python3 "$TEST_SOURCE_DIR/support/sarif.py" first.sarif failed.sarif passed.sarif names.sarif
[ "$(grep -o '"ruleId"' names.sarif | wc -l)" -ge 10 ] || fail "results of all gates"
expect 0 "$tapescope" top --exact -n 0 --focus 'grow\.c:7' g100.prof
bytes=$(awk '$NF == "pairs" { sum += $7 } END { print sum }' out)
expect 0 "$tapescope" check --max-tape "grow.c:7=$bytes" g100.prof
expect 1 "$tapescope" check --max-tape "grow.c:7=$((bytes - 1))" g100.prof
shown "grow.c:7: $bytes bytes, at most $((bytes - 1))"
expect 1 "$tapescope" check --max-tape grow.c:3=1GiB g100.prof
shown "has no cost on that line"
expect 1 "$tapescope" check --max-tape other.c:3=1GiB g100.prof
shown "has no such file"
for wrong in grow.c:3 grow.c=3 grow.c:x=3 :3=4; do
    expect 2 "$tapescope" check --max-tape "$wrong" g100.prof
    said "'$wrong' is not FILE:LINE=BYTES"
done
expect 1 "$tapescope" check --max-ratio 0.1 g100.prof
expect 1 "$tapescope" check --max-growth 1.5 g100.prof g200.prof g400.prof
grep -q '^FAILED max-growth grow.c:7 sub pairs: bytes grow as n^2.00' out || fail "the growing line"
grep -q each out && fail "a line that does not grow as fast"
grep -qF '(tape)' out && fail "padding that grows is no line"
expect 0 "$tapescope" check --max-growth 2.1 g100.prof g200.prof g400.prof
expect 2 "$tapescope" check --max-growth 2 g100.prof g200.prof
said "needs three profiles"
expect 0 "$tapescope" check --base g100.prof g100.prof
expect 1 "$tapescope" check --base g100.prof g200.prof
shown "base-peak"
expect 0 "$tapescope" check --base g200.prof g100.prof
expect 0 "$tapescope" check --base g100.prof --tolerance 400% g200.prof
expect 1 "$tapescope" check --base g100.prof --tolerance 99999% --time-tolerance 0% changed.prof \
    g100.prof
shown "base-time"

# What a line saves may come back as padding: that is no line's fault, and the whole is what it was.
cat >pad.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
int main(int argc, char **argv)
{
    static double data[2048];
    int64_t n = argc > 1 ? atol(argv[1]) : 1024;
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_status status = ad_backward(ad_sum(ad_exp(ad_leaf(tape, AD_F64, 1, &n, data))));
    ad_tape_destroy(tape);
    return status != AD_OK;
}
END
build pad pad.c
for n in 1024 1023 1032; do
    expect 0 "$tapescope" record -o pad$n.prof ./pad $n
done
expect 0 "$tapescope" diff --metric tape --exact pad1024.prof pad1023.prof
grep -qE '^ *\+[0-9]+ .* \(tape\) padding' out || fail "no more padding"
expect 0 "$tapescope" check --base pad1024.prof pad1023.prof
expect 1 "$tapescope" check --base pad1023.prof pad1032.prof
shown "base-tape all:"
grep -qF '(tape)' out && fail "padding is judged as a line"
cat >stated.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_scope.h>
static ad_tensor small(ad_tensor x)
{
    AD_EXPECT_TAPE_BYTES(1 << 20);
    return ad_exp(x);
}
static ad_tensor large(ad_tensor x)
{
    AD_EXPECT_TAPE_BYTES(64);
    return ad_tanh(x);
}
int main(void)
{
    double data[100] = {0};
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){100}, data);
    ad_status status = ad_backward(ad_sum(large(small(x))));
    ad_tape_destroy(tape);
    return status != AD_OK;
}
END
build stated stated.c
expect 0 "$tapescope" record -o stated.prof ./stated
expect 1 "$tapescope" check --expectations stated.prof
grep -qE '^FAILED expect-tape-bytes stated\.c:10 large: [0-9]+, at most 64$' out || fail "large() holds"
grep -qE '^ok     expect-tape-bytes stated\.c:5 small: [0-9]+, at most 1048576$' out || fail "small()"
expect 1 "$tapescope" check --expectations g100.prof
shown "the program states none"
expect 1 "$tapescope" check --json --max-peak 1 g100.prof
python 'assert d["failed"] == 1 and d["gates"][0]["ok"] is False'
expect 2 "$tapescope" check g100.prof
said "name a gate"
expect 3 "$tapescope" check --max-peak 1 missing.prof
head -c 1000 g100.prof >cut.prof
expect 3 "$tapescope" check --max-peak 1GiB cut.prof
grep -qF "is not complete: no gate can be judged" err || fail "a cut profile was judged"
expect 1 "$tapescope" check --max-peak 1GiB --junit missing/x.xml g100.prof
said "cannot write missing/x.xml"

# What was sampled without bytes is held against no limit of bytes, and nothing says that they are 0.
expect 0 "$tapescope" record --time sampled -o sampled.prof ./grow 100
for gate in "--max-peak 1GiB" "--max-total-tape 1GiB" "--max-tape grow.c:9=1GiB" \
    "--base g100.prof" "--max-growth 9 --sizes 1,2,3 g100.prof g200.prof"; do
    # shellcheck disable=SC2086 # the gate is words
    expect 1 "$tapescope" check $gate sampled.prof
    grep -qE '^FAILED .*(sampled without tape=on|has no such file)' out || fail "no reason: $gate"
done
expect 1 "$tapescope" check --base sampled.prof g100.prof
expect 0 "$tapescope" record --time sampled --tape on -o both.prof ./grow 100
expect 0 "$tapescope" check --max-peak 1GiB --base g100.prof both.prof
expect 1 "$tapescope" check --base g100.prof --time-tolerance 900% both.prof
shown "exact and sampled times cannot be compared"
# Bytes are counted beside samples, but not how long each lives: that is unknown and not 0.
for report in "top" "top --by scope" "tree" "info" "tape"; do
    # shellcheck disable=SC2086 # the report is words
    expect 0 "$tapescope" $report --json both.prof
    grep -qF '"byte_seconds": null' out || fail "$report: byte-seconds are known"
    grep -q '"byte_seconds": [0-9]' out && fail "$report: byte-seconds of a sampled profile"
    grep -qE '"(tape|total)_bytes": [1-9]' out || fail "$report: no bytes"
done
expect 0 "$tapescope" tape --lifetime both.prof
shown "Not known: lifetimes are from exact times"
grep -qF 'Nothing.' out && fail "lifetimes are nothing"
expect 0 "$tapescope" tape --lifetime --json g100.prof
grep -q '"byte_seconds": [0-9]' out || fail "no byte-seconds of exact times"
expect 1 "$tapescope" export -f collapsed -m lifetime both.prof
said "both.prof: lifetimes need exact times"
for command in tape whatif; do
    expect 3 "$tapescope" $command sampled.prof
    said "has no bytes: it was sampled without --tape=on"
done

# Nor are its times compared with exact ones; those of two have an error.
expect 2 "$tapescope" diff g100.prof sampled.prof
said "diff: g100.prof has exact times, sampled.prof has sampled times: these cannot be compared"
expect 2 "$tapescope" growth --sizes 1,2,3 g100.prof g200.prof sampled.prof
said "growth: g100.prof has exact times, sampled.prof has sampled times"
expect 2 "$tapescope" html -o none.html --base g100.prof sampled.prof
[ ! -e none.html ] || fail "a page of two kinds of times"
expect 3 "$tapescope" diff --metric tape g100.prof sampled.prof
said "diff: sampled.prof has no bytes"
expect 2 "$tapescope" diff g100.prof both.prof
said "(but bytes can: --metric tape)"
expect 2 "$tapescope" diff --metric lifetime both.prof both.prof
said "diff: lifetimes need exact times"
expect 0 "$tapescope" diff --metric tape g100.prof both.prof
expect 0 env COLUMNS=120 "$tapescope" diff sampled.prof both.prof
head -n 1 out | grep -qE '^ *~total +~error +change +base +new +line' || fail "times without errors"
shown "~ sampled: an error is one standard"
expect 0 env COLUMNS=120 "$tapescope" growth --sizes 1,2,3 sampled.prof both.prof both.prof
head -n 1 out | grep -qE '^ *~time +~n\^ +95 % +line' || fail "bytes that were not counted"
expect 0 env COLUMNS=120 "$tapescope" growth --sizes 1,2,3 --json sampled.prof both.prof both.prof
python 'assert d["total"]["largest_bytes"] is None and d["profiles"][0]["sampled"]'

# What was not measured is no 0: bytes of samples, and times that were switched off.
expect 0 "$tapescope" record --time off -o untimed.prof ./grow 100
for command in top tree; do
    expect 0 env COLUMNS=200 "$tapescope" $command sampled.prof
    ! head -n 1 out | grep -qw tape || fail "$command: bytes that were not counted"
done
for command in top tree "annotate grow.c"; do
    # shellcheck disable=SC2086 # the command is words
    expect 0 env COLUMNS=200 "$tapescope" $command untimed.prof
    ! head -n 1 out | grep -qwE 'forward|backward|total' || fail "$command: times that were off"
    head -n 1 out | grep -qw tape || fail "$command: no bytes"
    shown "No times were taken (--time off)."
done
expect 0 "$tapescope" top --by scope sampled.prof
shown "Scopes have times with --time exact alone."
expect 0 "$tapescope" whatif -n 0 untimed.prof
tr '\n' ' ' <out | grep -qF "The cost is not known" || fail "a cost without times"
expect 0 "$tapescope" info --json sampled.prof
python 'assert d["total"]["tape_bytes"] is None and d["sum"]["calls"] is None
assert d["total"]["forward_ns"] is not None and d["profile"]["sampled"]'
expect 0 "$tapescope" info --json untimed.prof
python 'assert d["total"]["tape_bytes"] > 0 and d["sum"]["forward_ns"] is None'
expect 0 "$tapescope" diff untimed.prof untimed.prof
head -n 1 out | grep -qE '^ *tape ' || fail "no difference of bytes where there are no times"
expect 2 "$tapescope" diff untimed.prof g100.prof

# stat: the step clock makes runs alike.
expect 0 "$tapescope" stat -r 3 --warmup-runs 2 --primal true -- ./grow 100
shown "3 runs after 2 that are not counted."
grep -qE '^forward .* \+- +0 ' out || fail "a spread in runs that are alike"
grep -q '^recompute' out && fail "recomputation of a program without a checkpoint"
expect 0 "$tapescope" stat --json -r 2 ./grow 100
cp out stat.json
expect 0 "$tapescope" info --json g100.prof
python '
s = json.load(open("stat.json"))["metrics"]
for stat, info in (("forward_ns",) * 2, ("backward_ns",) * 2, ("tape_bytes",) * 2):
    assert s[stat]["mean"] == d["total"][info] and s[stat]["sd"] == 0 and s[stat]["n"] == 2
assert s["gradient_over_forward"]["mean"] == 1 + s["backward_ns"]["mean"] / s["forward_ns"]["mean"]
assert "primal_wall_ns" not in s'
build exports "$TEST_SOURCE_DIR/programs/exports.c"
expect 0 "$tapescope" stat --json --warmup-runs 0 -r 4 sh -c \
    'mkdir turn 2>/dev/null && exec ./exports; rmdir turn; exec ./exports once'
python '
s = d["metrics"]["recompute_ns"] # every second run has some
assert s["n"] == 4 and s["min"] == 0 and s["mean"] == s["max"] / 2 > 0'
expect 0 "$tapescope" record -o exports.prof ./exports
expect 0 "$tapescope" info --json exports.prof
cp out info.json
expect 0 "$tapescope" growth --json -n 0 --sizes 1,2 exports.prof exports.prof
python '
t = json.load(open("info.json"))["total"]
assert t["recompute_ns"] > 0
assert d["total"]["largest_ns"] == t["forward_ns"] + t["backward_ns"] + t["recompute_ns"]
assert d["total"]["largest_ns"] == sum(r["largest_ns"] for r in d["rows"])'
expect 0 "$tapescope" stat -r 1 --time sampled ./grow 100
grep -q '^~forward ' out || fail "sampled times as if they were exact"
grep -q '^tape' out && fail "bytes that were not counted"
shown "~ sampled: processor time, of all threads."
expect 127 "$tapescope" stat ./missing
said "cannot run ./missing"
expect 1 "$tapescope" stat true
said "true wrote no profile"
expect 3 "$tapescope" stat sh -c 'exit 3'
said "exited with status 3"
expect 4 "$tapescope" stat --primal 'exit 4' ./grow 10
expect 2 "$tapescope" stat -r 0 true
said "at least one"
expect 2 "$tapescope" stat
said "name the program to run"
expect 1 env TMPDIR="$PWD/nowhere" "$tapescope" stat true
said "cannot make a folder"

for columns in 40 60 80 200; do
    for command in "growth g100.prof g200.prof g400.prof" "diff g100.prof g200.prof" \
        "stat -r 1 ./grow 10"; do
        # shellcheck disable=SC2086 # the command is words
        expect 0 env COLUMNS=$columns "$tapescope" $command
        awk -v w=$columns 'length($0) > w { exit 1 }' out || fail "wider than $columns: $command"
    done
done

if [ $failures -gt 0 ]; then
    echo "test_cli_many: $failures failures"
    exit 1
fi
echo "test_cli_many: ok"
