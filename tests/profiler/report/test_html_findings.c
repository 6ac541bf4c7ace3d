/* test_html_findings.c: what the page says of profiles made by hand: which pullbacks are out of
 * proportion (the document's list "slow_backward", of which the page makes its findings), and that
 * paths were left out (its "warning", which the summary begins with).
 */
#include "analyze.h"
#include "html_data.h"
#include "profile_maker.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 105 }; /* as long as the op, where twice is to be expected */

static struct maker_bytes bytes;
static struct maker_ledger *made;
static char *text;

static void setup(void)
{
    bytes = (struct maker_bytes){0};
    maker_put_header(&bytes, "step:1", 1);
    made = maker_new_ledger(1);
}

static void teardown(void)
{
    free(text);
    text = NULL;
}

/* A line of its own: calls that take 1000 ticks each forward. */
static void add(const char *op, uint64_t calls, uint64_t times)
{
    const uint32_t index = (uint32_t)made->ledger.n_row;
    Tapescope__Row *row = maker_add_row(made, index, 4096 + 16 * index, op);
    row->calls = row->backward_calls = calls;
    row->forward_ticks = 1000 * calls;
    row->backward_ticks = row->steady_backward_ticks = 1000 * calls * times;
    row->forward_flops = 1000 * calls;
    row->backward_flops = 2000 * calls;
    made->ledger.forward_ticks += row->forward_ticks;
    made->ledger.backward_ticks += row->backward_ticks;
}

static void make_document(void)
{
    size_t n = 0;
    maker_put_ledger(&bytes, made);
    struct read_profile *profile = maker_read(&bytes);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    FILE *out = open_memstream(&text, &n);
    html_put_data(out, analysis, &(struct html_options){.sources = HTML_SOURCES_NONE});
    fclose(out);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* How many lines the page says so of. */
static int found(void)
{
    int lines = 0;
    make_document();
    const char *list = strstr(text, "\"slow_backward\": [");
    ck_assert_ptr_nonnull(list);
    for (list = strchr(list, '['); *list != ']'; list++)
        lines += (*list == '[' || *list == ',') && list[1] != ']';
    return lines;
}

TEST(one_call_of_each_op_is_never_out_of_proportion)
{
    add("reshape", 1, 2);
    add("sub", 1, TIMES);
    add("square", 1, TIMES);
    add("sum", 1, TIMES);
    ck_assert_int_eq(found(), 0);
}

TEST(two_calls_that_take_so_long_are)
{
    add("reshape", 1, 2);
    add("sub", 1, TIMES);
    add("square", 2, TIMES);
    add("sum", 2, 2);
    ck_assert_int_eq(found(), 1);
}

TEST(more_paths_than_there_is_room_for_are_said)
{
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    paths.refused = 7;
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_PATHS, &paths);
    add("exp", 2, 2);
    make_document();
    ck_assert_ptr_nonnull(strstr(text, "\"warning\": \"too many call paths: 7 calls are shown "
                                       "without some of their callers\""));
}

TEST(without_them_there_is_no_warning)
{
    add("exp", 2, 2);
    make_document();
    ck_assert_ptr_nonnull(strstr(text, "\"warning\": null"));
}

RUN_TESTS(setup, teardown)
