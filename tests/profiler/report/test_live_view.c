/* test_live_view.c: what a program does at a time, from states of a profile that are made here, and
 * the gauge of it at every size.
 */
#include "analyze_live.h"

#include "report_live.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
enum { MATMUL = 0x2001, TANH = 0x3001 };

/* A profile of two lines in one tape, whose numbers the cases change. */
static struct made {
    struct read_symbol symbol[2];
    struct read_row row[2];
    struct read_tape tape;
    struct read_sample sample[3];
    struct read_profile profile;
} m;
static struct analyze_live *live;

static void setup(void)
{
    m = (struct made){
        .symbol = {{.pc = MATMUL,
                    .outermost = true,
                    .function = (char *)"dense",
                    .file = (char *)"/src/mlp.c",
                    .source_line = 41},
                   {.pc = TANH,
                    .outermost = true,
                    .function = (char *)"layer",
                    .file = (char *)"/src/mlp.c",
                    .source_line = 52}},
        .row = {{.pc = MATMUL, .op = "matmul"}, {.pc = TANH, .op = "tanh", .index = 1}},
        .tape = {.tape = 1, .tapes = 1, .n_rows = 2},
        .profile = {.ticks_per_ns = 1, .n_tapes = 1, .n_symbols = 2, .clock = (char *)"monotonic"},
    };
    m.tape.row = m.row;
    m.profile.tape = &m.tape;
    m.profile.symbol = m.symbol;
    live = analyze_live_new();
    ck_assert_ptr_nonnull(live);
    ck_assert_ptr_null(analyze_live_view(live));
}

static void teardown(void)
{
    analyze_live_free(live);
}

static const struct analyze_live_view *take(uint64_t now_ms)
{
    analyze_live_take(live, &m.profile, now_ms * MS);
    ck_assert_ptr_nonnull(analyze_live_view(live));
    return analyze_live_view(live);
}

/* Some more of a line, in milliseconds. */
static void run(unsigned row, uint64_t forward, uint64_t backward)
{
    m.row[row].forward_ticks += forward * MS;
    m.row[row].backward_ticks += backward * MS;
    m.tape.forward_ticks += forward * MS;
    m.tape.backward_ticks += backward * MS;
    m.profile.duration_ns += (forward + backward) * MS;
}

TEST(the_line_that_took_the_most_since_the_last_state_is_under_way)
{
    run(0, 30, 50);
    const struct analyze_live_view *view = take(100);
    ck_assert_ptr_null(view->line); /* there is nothing to compare with */
    run(1, 10, 2);
    run(0, 0, 8);
    view = take(120);
    ck_assert_uint_eq(view->line->line, 52);
    ck_assert_int_eq(view->line_phase, ANALYZE_LIVE_FORWARD);
    ck_assert_uint_eq(view->line_ns, 12 * MS);
    ck_assert_uint_eq(view->all_ns, 20 * MS);
    ck_assert_uint_eq(view->recent_ns, 20 * MS);
    run(0, 1, 8);
    view = take(140);
    ck_assert_uint_eq(view->line->line, 41);
    ck_assert_int_eq(view->line_phase, ANALYZE_LIVE_BACKWARD);
    view = take(160);
    ck_assert_ptr_null(view->line);
    ck_assert_uint_eq(view->all_ns, 0);
}

TEST(phases_are_shares_of_the_last_second)
{
    (void)take(0);
    run(0, 100, 300);
    m.profile.duration_ns += 600 * MS;
    m.tape.sweeps = 7;
    const struct analyze_live_view *view = take(1000);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_FORWARD], 100 * MS);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_BACKWARD], 300 * MS);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_OUTSIDE], 600 * MS);
    ck_assert_uint_eq(view->span_sweeps, 7);
    ck_assert_uint_eq(view->span_ns, 1000 * MS);
    run(1, 40, 0);
    view = take(1500);
    run(1, 2, 3);
    m.tape.sweeps = 8;
    view = take(2200); /* the state of 1500 is the oldest of that second */
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_FORWARD], 2 * MS);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_BACKWARD], 3 * MS);
    ck_assert_uint_eq(view->span_sweeps, 1);
    ck_assert_uint_eq(view->span_ns, 700 * MS);
}

TEST(samples_outside_of_ops_are_told_apart)
{
    m.profile.is_sampled = true;
    m.profile.sample = m.sample;
    m.profile.n_samples = 3;
    m.sample[0] = (struct read_sample){.phase = READ_PHASE_BACKWARD, .pc = MATMUL, .op = "matmul"};
    m.sample[1] = (struct read_sample){.phase = READ_PHASE_RECOMPUTE, .pc = TANH, .op = "tanh"};
    m.sample[2] = (struct read_sample){.phase = READ_PHASE_NONE, .op = ""};
    (void)take(0);
    m.sample[0].cpu_ns = 5 * MS;
    m.sample[1].cpu_ns = 9 * MS;
    m.sample[2].cpu_ns = 2 * MS;
    const struct analyze_live_view *view = take(250);
    ck_assert(view->is_sampled);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_BACKWARD], 5 * MS);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_RECOMPUTE], 9 * MS);
    ck_assert_uint_eq(view->phase_ns[ANALYZE_LIVE_OUTSIDE], 2 * MS);
    ck_assert_int_eq(view->line_phase, ANALYZE_LIVE_RECOMPUTE);
    ck_assert_uint_eq(view->line->line, 52);
    ck_assert_uint_eq(view->all_ns, 16 * MS);
}

TEST(the_history_keeps_the_greatest_and_stays_bounded)
{
    const struct analyze_live_view *view = NULL;
    for (uint64_t i = 1; i <= 5 * ANALYZE_LIVE_HISTORY; i++) {
        m.tape.live_bytes = i == 3 ? 1000000 : i;
        view = take(i);
        ck_assert_uint_le(view->n_history, ANALYZE_LIVE_HISTORY);
    }
    ck_assert_uint_gt(view->n_history, ANALYZE_LIVE_HISTORY / 2 - 1);
    ck_assert_uint_eq(view->history[0], 1000000);
    for (unsigned i = 2; i < view->n_history; i++)
        ck_assert_uint_gt(view->history[i], view->history[i - 1]);
    ck_assert_uint_eq(view->history[view->n_history - 1], 5 * ANALYZE_LIVE_HISTORY);
}

/* ---- the gauge ---- */

static char *gauge(const struct analyze_live_view *view, unsigned rows, struct report_style style)
{
    char *text = NULL;
    size_t n = 0;
    const struct report_live shown = {.view = view,
                                      .program = "./train",
                                      .now_ns = 2300 * MS,
                                      .running_ns = 2300 * MS,
                                      .cpu_ns = 2100 * MS,
                                      .cores = 0.93,
                                      .rows = rows,
                                      .sort = -1};
    style.out = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(style.out);
    report_live(&shown, &style);
    fclose(style.out);
    return text;
}

static const struct analyze_live_view *some_view(void)
{
    (void)take(0);
    run(0, 100, 300);
    m.profile.duration_ns += 600 * MS;
    m.tape.sweeps = 7;
    m.tape.live_bytes = 2048;
    m.row[0].live_bytes = m.row[0].peak_bytes = 2048;
    m.tape.peak_bytes = 4096;
    (void)take(1000);
    run(1, 40, 0);
    return take(2200);
}

TEST(a_gauge_says_phases_line_bytes_and_the_costliest_lines)
{
    const struct report_style style = {.width = 80};
    char *text = gauge(some_view(), 8, style);
    ck_assert_str_eq(
        text, "- ./train 2.3s, 7 sweeps, 0/s, processor 2.1s (0.93 cores), exact --------------\n"
              "now   outside of ops and sweeps, last: forward mlp.c:52 tanh layer\n"
              "phase forward 100% backward 0.0% outside 0.0% FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF\n"
              "tape  2.00KiB now, peak 4.00KiB _##\n"
              "share forward backward    live at peak line, op, function\n"
              "90.9%   100ms    300ms 2.00KiB 2.00KiB mlp.c:41 matmul dense\n"
              " 9.1%  40.0ms        0       0       0 mlp.c:52 tanh layer\n"
              "\n");
    free(text);
    text = gauge(NULL, 4, style);
    ck_assert_ptr_nonnull(strstr(text, "\nnow   no profile yet\n"));
    free(text);
}

/* Columns of a line without its colours, and where it ends. */
static unsigned columns_of(const char *text, const char **end)
{
    unsigned n = 0;
    for (; *text != '\n'; text++) {
        ck_assert_int_ne(*text, '\0');
        if (*text == '\033')
            text += strcspn(text, "m");
        else
            n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    *end = text + 1;
    return n;
}

TEST_EACH(every_size_has_its_rows_and_none_is_too_long, 8)
{
    const struct analyze_live_view *view = some_view();
    struct report_style style = {.utf8 = _i & 1, .color = _i & 2};
    m.row[1].op = "an_op_with_a_long_name_so_that_its_row_is_cut_at_its_end";
    if (_i & 4) {
        m.profile.is_sampled = true;
        m.row[0].recompute_calls = 1;
        m.tape.tapes = 3;
        view = take(2250);
    }
    for (style.width = 1; style.width < 240; style.width += style.width < 100 ? 1 : 17) {
        for (unsigned rows = 1; rows < 12; rows++) {
            char *text = gauge(view, rows, style);
            const char *at = text;
            for (unsigned i = 0; i < rows; i++) {
                const char *line = at;
                const unsigned n = columns_of(line, &at);
                ck_assert_msg(n <= style.width, "%u of %u columns: %.*s", n, style.width,
                              (int)(at - line), line);
            }
            ck_assert_msg(*at == '\0', "%u rows and: %s", rows, at);
            ck_assert(style.color || !strchr(text, '\033'));
            free(text);
        }
    }
}

RUN_TESTS(setup, teardown)
