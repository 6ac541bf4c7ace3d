#!/bin/sh
# test_html_views.sh: the page of `tapescope html` of every kind of profile: each view opens, in both
# themes, wide and narrow (of each page in one of them, unless it is exhaustive); a reload shows the same; and every key that the page's sheet names works.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
npm_packages
record_program

# page NAME OPTION...: NAME.html of a profile
page()
{
    name=$1
    shift
    expect 0 "$tapescope" html -o "$name.html" "$@"
}

# record NAME OPTION...: NAME.prof, and its page
record()
{
    name=$1
    shift
    expect 0 "$tapescope" record -o "$name.prof" "$@"
    page "$name" "$name.prof"
}

# With all there is, to compare with others, and with as little as there can be.
page all --base plain.prof --sizes 1,2 plain.prof tapescope.prof
page recompute tapescope.prof
page difference --source none --base tapescope.prof plain.prof
page growth --sizes 1,2,3 plain.prof plain.prof tapescope.prof
record minimal --depth 0 --frames none ./exports
record counted --time off ./exports
record sampled --time sampled --freq 2000 ./exports long
record waiting --time sampled --tape off --depth 8 ./exports long
record steps --steps 1:2 --shapes on --timeline 1MiB ./exports
expect 0 "$tapescope" merge -o packed.prof tapescope.prof
page packed packed.prof
expect 0 "$tapescope" merge -o sum.prof tapescope.prof plain.prof
page sum sum.prof

# Statements alone, which have no forward time that a backward time could be compared with.
cat >statements.c <<'END_OF_C'
#include <tapescope/ad_real.h>
int main(void)
{
    ad_tape tape;
    ad_real x, y;
    ad_tape_create(&tape, NULL);
    ad_real_leaves(tape, 1, (double[]){2}, &x);
    ad_set(&y, ad_real_square(x));
    return ad_real_backward(tape, y) != AD_OK;
}
END_OF_C
compile statements
record statements ./statements

# Patterns of sparse derivatives: views.cjs looks at those of this page.
cp "$TEST_SOURCE_DIR/programs/patterns.c" .
compile patterns
record patterns ./patterns

# A thread that waits for input for as long as samples are taken.
cat >waits.c <<'END_OF_C'
#include <tapescope/ad.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    static double data[64];
    ad_tape tape;
    char byte;
    int ends[2];
    ad_tape_create(&tape, NULL);
    (void)!ad_backward(ad_sum(ad_tanh(ad_leaf(tape, AD_F64, 1, (int64_t[]){64}, data))));
    if (pipe(ends) != 0)
        return 1;
    if (fork() == 0) {
        usleep(500000);
        _exit(write(ends[1], "", 1) != 1);
    }
    for (long n; (n = read(ends[0], &byte, 1)) != 1;)
        if (n == 0)
            return 1;
    ad_tape_destroy(tape);
    return wait(NULL) < 0;
}
END_OF_C
compile waits
record waits --time sampled --freq 1000 ./waits

# A profile of nothing, and one of which the end is missing.
cat >empty.c <<'END_OF_C'
#include <tapescope/ad.h>
int main(void)
{
    return ad_profile_start("empty.prof") != AD_OK || ad_profile_stop() != AD_OK;
}
END_OF_C
compile empty
expect 0 ./empty
page empty empty.prof
head -c $(($(wc -c <tapescope.prof) * 2 / 3)) tapescope.prof >prefix.prof
page prefix prefix.prof
head -c 300 tapescope.prof >begun.prof
page begun begun.prof

set -- *.html
[ $# -eq 17 ] || fail "$# pages, not 17"
# axe takes its time: all it can find is in these. test_html.sh has it look at the page with all there is
# at the width of a desk, so that this page has the second turn here.
mkdir closely
mv all.html sampled.html empty.html patterns.html closely
drive 4 axe.out views.cjs --axe --turns closely/empty.html closely/all.html closely/sampled.html closely/patterns.html \
    -- views.out views.cjs --turns ./*.html \
    -- columns.out columns.cjs waits.html 'waiting,for io' \
    -- keys.out keys.cjs closely/all.html

[ $failures -eq 0 ] || exit 1
echo "test_html_views: ok"
