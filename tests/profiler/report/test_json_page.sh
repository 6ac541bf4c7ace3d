#!/bin/sh
# test_json_page.sh: every member that docs/PROFILER.md#json lists for a report is in what the report
# prints, and no other.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_SOURCE_DIR, TAPESCOPE_LIB_DIR, TAPESCOPE_INCLUDE_DIRS,
# TEST_C_COMPILER, TEST_BINARY_DIR, TEST_SANITIZE_FLAGS.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
sed '1,/^## JSON/d' "$TAPESCOPE_SOURCE_DIR/docs/PROFILER.md" >page

# names: the members that a piece of the page names, one a line.
names()
{
    grep -oE "\`[a-z_]+\`" | tr -d "\`" | grep -vx null | sort -u
}

# members FILE...: those that documents have.
members()
{
    grep -ohE '"[a-z_0-9]+": ' "$@" | tr -d '": ' | sort -u
}

# group NAME: the page's list of what several reports have.
group()
{
    awk -v head="- *$1*:" 'index($0, head) == 1 { on = 1; sub(/^- /, "") } on && /^- / { exit }
        on' page | names
}

# report TITLE GROUPS FILE...: compares the row of the page with the documents.
report()
{
    title=$1
    groups=$2
    shift 2
    awk -v head="| \`$title\`" 'index($0, head " |") == 1 || index($0, head ":") == 1' page |
        cut -d'|' -f3 | names >row
    [ -s row ] || { : >out; fail "the page has no row $title"; }
    {
        cat row
        printf 'tapescope\nversion\n'
        for name in $groups; do
            group "$(echo "$name" | tr _ ' ')"
        done
    } | sort -u >allowed
    members "$@" >out
    comm -13 allowed out >added.txt
    [ ! -s added.txt ] || fail "$title: not on the page: $(tr '\n' ' ' <added.txt)"
    comm -23 row out >missing.txt
    [ ! -s missing.txt ] || fail "$title: on the page alone: $(tr '\n' ' ' <missing.txt)"
}

cat >all.c <<'END'
#include <tapescope/ad.h>
#include <tapescope/ad_scope.h>
#include <stdlib.h>
#include <time.h>
static ad_tensor layer(ad_tensor x)
{
    return ad_tanh(x);
}
int main(int argc, char **argv)
{
    static double data[4096];
    int64_t n = argc > 1 ? atol(argv[1]) : 100;
    const double seconds = argc > 2 ? atof(argv[2]) : 0;
    do {
        ad_tape tape;
        ad_tape_create(&tape, NULL);
        AD_SCOPE("train", "n", n) {
            AD_EXPECT_RATIO(100);
            AD_EXPECT_TAPE_BYTES(1 << 30);
            ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
            (void)!ad_backward(ad_sum(layer(layer(x))));
        }
        ad_tape_destroy(tape);
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    return 0;
}
END
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
# shellcheck disable=SC2086 # the flags are several words or none
"$TEST_C_COMPILER" -g -O1 ${TEST_SANITIZE_FLAGS:-} -o all all.c -L"$TAPESCOPE_LIB_DIR" -ltapescope \
    -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || exit 1
expect 0 "$tapescope" record --time sampled --tape on --freq 1000 -o sampled.prof ./all 1000 0.3
TAPESCOPE_CLOCK=step:1000
export TAPESCOPE_CLOCK
expect 0 "$tapescope" record --shapes on --steps 0:0 -o a.prof ./all 100
expect 0 "$tapescope" record -o b.prof ./all 200
expect 0 "$tapescope" record -o c.prof ./all 400

# make FILE COMMAND...: the document that a command prints.
make()
{
    file=$1
    shift
    expect "${status:-0}" "$tapescope" "$@"
    cp out "$file"
}
make top.json top --json a.prof
make top-sampled.json top --json sampled.prof
make top-shape.json top --by shape --json --focus tanh a.prof
make scope.json top --by scope --json a.prof
make expected.json top --expectations --json a.prof
make roofline.json top --roofline --json a.prof
make roofline-shape.json top --roofline --by shape --json a.prof
make tree.json tree --json a.prof
make tape.json tape --json a.prof
make dead.json tape --dead --json a.prof
make whatif.json whatif --json a.prof
make choice.json whatif --budget 1MiB --json a.prof
make annotate.json annotate --json all.c a.prof
make info.json info --json a.prof
make info-sampled.json info --json sampled.prof
make stat.json stat -r 2 --json --primal './all 100' -- ./all 100
make growth.json growth --json --size-key n a.prof b.prof c.prof
make diff.json diff --json a.prof b.prof
status=1 make check.json check --max-peak 1 --json a.prof

report 'top' 'profile place cost total' top.json top-sampled.json top-shape.json
report 'top --by scope' 'profile scope_cost total' scope.json
report 'top --expectations' profile expected.json
report 'top --roofline' 'profile place' roofline.json roofline-shape.json
report 'tree' 'profile place cost total' tree.json
report 'tape' 'profile place holder' tape.json dead.json
# Calls that would be checkpoints: steps of a chain.
cat >chain.c <<'END'
#include <tapescope/ad.h>
int main(void)
{
    static double data[4096];
    ad_tape t;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){4096}, data);
    for (int i = 0; i < 8; i++)
        x = ad_exp(ad_tanh(ad_exp(x)));
    return ad_backward(ad_sum(x)) != AD_OK;
}
END
# shellcheck disable=SC2086 # a list of options
"$TEST_C_COMPILER" -g -O1 ${TEST_SANITIZE_FLAGS:-} -o chain chain.c -L"$TAPESCOPE_LIB_DIR" -ltapescope \
    -Wl,-rpath,"$TAPESCOPE_LIB_DIR" || exit 1
expect 0 "$tapescope" record -o chain.prof ./chain
make calls.json whatif --json chain.prof
report 'whatif' 'profile place' whatif.json choice.json calls.json
report 'annotate' 'profile place cost total' annotate.json
report 'info' 'profile cost total' info.json info-sampled.json
report 'stat' metrics stat.json
report 'growth' 'place fits' growth.json
report 'diff' 'profile place cost total' diff.json
report 'check' '' check.json
rows=$(sed '/^<!-- table: costs/,/^<!-- end/d' page | grep -c "^| \`")
[ "$rows" -ge 13 ] || { : >out; fail "the page has $rows reports, 13 are compared"; }

# What a list names is printed somewhere.
members ./*.json >all
grep -oE '^- \*[a-z ]+\*:' page | sed 's/^- \*//; s/\*:$//' >groups
[ "$(wc -l <groups)" -ge 8 ] || { : >out; fail "the page lacks lists"; }
while read -r name; do
    group "$name" >list
    comm -23 list all >out
    if [ ! -s list ] || [ -s out ]; then fail "$name: on the page alone"; fi
done <groups

if [ $failures -gt 0 ]; then
    echo "test_json_page: $failures failures"
    exit 1
fi
echo "test_json_page: ok"
