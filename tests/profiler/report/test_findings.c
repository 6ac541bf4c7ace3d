/* test_findings.c: what stands out in profiles made by hand, to the letter; and what must not. */
#include "profile_maker.h"
#include "report_findings.h"
#include "report_text.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_PC = 0x2008, OTHER_PC = 0x3008, MS = 1000000, MIB = 1 << 20 };

static struct maker_bytes bytes;
static struct maker_ledger *made;
static struct read_profile *profile;
static struct analyze_result *analysis;
static struct report_findings found;
static char *text;

static void setup(void)
{
    bytes = (struct maker_bytes){0};
    maker_put_header(&bytes, "step:1", 1);
    maker_put_symbols(&bytes, KNOWN_PC, 41, OTHER_PC);
    made = maker_new_ledger(1);
    profile = NULL;
    analysis = NULL;
    text = NULL;
    found = (struct report_findings){.n = 0};
}

/* What was found says what to do, with what to paste, and where that is explained. */
static void teardown(void)
{
    for (size_t i = 0; i < found.n; i++) {
        const struct report_finding *finding = &found.finding[i];
        const bool functions = strcmp(finding->kind, "function") == 0;
        ck_assert_msg(functions || (finding->advice && finding->call && finding->howto), "%s",
                      finding->text);
        ck_assert_msg(!finding->call || finding->advice, "%s", finding->call);
    }
    report_findings_free(&found);
    analyze_free(analysis);
    read_profile_free(profile);
    free(text);
}

/* Calls of an op at mlp.c:41, at another place, or (pc 0) of the tape's own; times in ms. */
static Tapescope__Row *add(uint64_t pc, const char *op, uint64_t calls, uint64_t forward,
                           uint64_t backward)
{
    Tapescope__Row *row = maker_add_row(made, (uint32_t)made->ledger.n_row, pc, op);
    row->line = pc == KNOWN_PC ? 41 : 0;
    row->calls = row->backward_calls = calls;
    row->forward_ticks = forward * MS;
    row->backward_ticks = row->steady_backward_ticks = backward * MS;
    made->ledger.forward_ticks += row->forward_ticks;
    made->ledger.backward_ticks += row->backward_ticks;
    return row;
}

static void read_it(void)
{
    maker_put_ledger(&bytes, made);
    profile = maker_read(&bytes);
    profile->duration_ns = 0; /* what part of a run it is: not known */
}

static void find(void)
{
    const struct report_style words = {.utf8 = false};
    analysis = analyze_profile(profile, NULL, NULL);
    report_findings_make(&found, analysis, &(struct report_known){.growth = NULL}, &words);
}

/* All that is found, one word each. */
static const char *found_kinds(void)
{
    static char kinds[256];
    size_t n = 0;
    kinds[0] = '\0';
    for (size_t i = 0; i < found.n; i++)
        n += (size_t)snprintf(kinds + n, sizeof kinds - n, "%s%s", i ? " " : "",
                              found.finding[i].kind);
    return kinds;
}

static const char *printed(void)
{
    size_t n = 0;
    struct report_style style = {.out = open_memstream(&text, &n)};
    report_findings_print(&found, &style);
    fclose(style.out);
    return text;
}

static void read_and_find(void)
{
    read_it();
    find();
}

/* ---- times ---- */

TEST(a_line_with_much_of_the_time_is_found_with_what_to_paste)
{
    add(KNOWN_PC, "linear", 100, 20, 40)->forward_moved = MIB;
    add(OTHER_PC, "exp", 100, 20, 20);
    read_and_find();
    ck_assert_str_eq(printed(),
                     "\nOne line has much of the time. mlp.c:41 (linear in dense) takes 60.0% of "
                     "AD's time (60.0ms): forward 20.0ms, backward 40.0ms, in 100 calls. Whether "
                     "arithmetic or memory limits it, and how near it comes to what this program "
                     "reaches:\n"
                     "    tapescope top --roofline --focus 'mlp.c:41$' x\n"
                     "    tapescope help profile#roofline\n");
}

TEST(few_calls_may_be_chance_unless_they_are_long)
{
    add(KNOWN_PC, "linear", 9, 20, 40);
    for (uint64_t i = 0; i < 4; i++)
        add(OTHER_PC + 16 * (i + 1), "exp", 100, 5, 5);
    read_and_find();
    ck_assert_str_eq(found_kinds(), "function");
}

TEST(few_calls_of_100_ms_are_not_chance)
{
    add(KNOWN_PC, "linear", 1, 50, 50);
    add(OTHER_PC, "exp", 100, 5, 5);
    read_and_find();
    ck_assert_str_eq(found_kinds(), "line");
}

/* Whose time it may be that nobody wrote, or that says only where a sweep was called. */
TEST_EACH(nothing_is_found_of_rows_that_nobody_can_change, 5)
{
    static const struct {
        uint64_t pc;
        const char *op;
    } is[] = {{0, "padding"},
              {0, "other"},
              {KNOWN_PC, "backward"},
              {KNOWN_PC, "backward_release"},
              {KNOWN_PC, "real_backward"}};
    add(is[_i].pc, is[_i].op, 100, 20, 400);
    for (uint64_t i = 0; i < 5; i++)
        add(OTHER_PC + 16 * (i + 1), "exp", 100, 5, 5);
    read_and_find();
    ck_assert_str_eq(found_kinds(), "function");
    for (size_t i = 0; i < found.n; i++)
        ck_assert_msg(!strstr(found.finding[i].text, is[_i].op), "%s", found.finding[i].text);
}

TEST(where_nothing_stands_out_the_time_is_said_by_function)
{
    add(KNOWN_PC, "linear", 9, 20, 10);
    add(OTHER_PC, "exp", 9, 5, 5);
    read_and_find();
    ck_assert_str_eq(printed(), "\nNothing stands out. AD's time by function: dense 75.0%, dense "
                                "25.0%. All of them:\n"
                                "    tapescope top --by function x\n");
}

/* A program that recorded nothing is told why. */
TEST_EACH(what_recorded_nothing_is_told_why, 5)
{
    static const char *const why[] = {
        "the program made no tape while it was profiled (ad_tape_create).",
        "the program made 1 tape, and no op ran on it while it was profiled.",
        "the program made 2 tapes, and no op ran on them while it was profiled.",
        "--steps 5:6 was asked for, and the program ended 3 steps.",
        ("the program ended before a sample was taken. --freq asks for more, --time exact counts "
         "every op."),
    };
    const struct report_style words = {.utf8 = false};
    read_it();
    profile->has_steps = _i == 3;
    profile->first_step = 5, profile->last_step = 6, profile->seen_steps = 3;
    profile->is_sampled = _i == 4;
    analysis = analyze_profile(profile, NULL, NULL);
    analysis->total.tapes = _i < 3 ? (uint64_t)_i : 1;
    report_findings_make(&found, analysis, &(struct report_known){.growth = NULL}, &words);
    ck_assert_str_eq(found_kinds(), "function");
    ck_assert_ptr_nonnull(strstr(found.finding[0].text, "Nothing was recorded: "));
    ck_assert_str_eq(found.finding[0].text + strlen("Nothing was recorded: "), why[_i]);
}

/* What a profile does before the time of a call begins is not the program's. */
TEST(where_the_profiler_may_be_most_of_the_rest_the_part_of_the_run_says_so)
{
    char part[REPORT_TEXT_PART_ROOM];
    add(KNOWN_PC, "linear", 100000, 20, 10);
    read_it();
    profile->duration_ns = 200 * (uint64_t)MS;
    find();
    ck_assert_str_eq(found_kinds(), "line");
    ck_assert(report_text_part(part, analysis, false));
    ck_assert_str_eq(part, "15.0% of the run (30.0ms of 200ms): forward 10.0%, backward 5.0%; the "
                           "profiler's looks at 100k calls are part of the rest");
    profile->duration_ns = 2000 * (uint64_t)MS; /* not most of it */
    ck_assert(report_text_part(part, analysis, false));
    ck_assert_ptr_null(strstr(part, "looks"));
}

TEST(a_part_of_ad_that_is_less_than_a_twentieth_of_the_run_is_not_found)
{
    add(KNOWN_PC, "linear", 100, 20, 40);
    read_it();
    profile->duration_ns = 2000 * (uint64_t)MS;
    find();
    ck_assert_str_eq(found_kinds(), "rest");
    ck_assert_str_eq(found.finding[0].text,
                     "97.0% of the run (1.94s of 2.00s) are neither ops nor sweeps, but other "
                     "code or waiting. A cheaper gradient makes none of that shorter.");
}

/* Two standard errors less must still be a quarter: of 30 % by 10 samples 11 % are left, by 300
 * samples 26.5 %. */
TEST_EACH(a_line_with_few_samples_may_be_chance, 2)
{
    const struct report_style words = {.utf8 = false};
    add(KNOWN_PC, "linear", 0, 100, 200);
    for (uint64_t i = 0; i < 4; i++)
        add(OTHER_PC + 16 * (i + 1), "exp", 0, 175, 0);
    read_it();
    profile->is_sampled = true;
    analysis = analyze_profile(profile, NULL, NULL);
    for (size_t i = 0; i < analysis->n_lines; i++) {
        struct analyze_cost *cost = &analysis->line[i].cost;
        cost->cpu_samples = (cost->forward_ns + cost->backward_ns) / MS / (_i == 0 ? 30 : 1);
    }
    report_findings_make(&found, analysis, &(struct report_known){.growth = NULL}, &words);
    ck_assert_str_eq(found_kinds(), _i == 0 ? "function" : "line");
}

/* What the profiler does between ops is no part of the program. */
TEST(the_rest_of_a_run_of_many_small_ops_may_be_the_profilers)
{
    add(KNOWN_PC, "linear", 800000, 200, 200);
    read_it();
    profile->duration_ns = 2000 * (uint64_t)MS;
    find();
    ck_assert_str_eq(found_kinds(), "line");
}

/* A pullback of 105 times the op where twice is to be expected. */
static void add_slow(uint64_t calls)
{
    Tapescope__Row *row = add(KNOWN_PC, "sub", calls, 1, 105), *other;
    row->forward_flops = MS;
    row->backward_flops = 2 * MS;
    other = add(OTHER_PC, "reshape", 1000, 100, 200);
    other->forward_flops = 100 * (uint64_t)MS;
    other->backward_flops = 200 * (uint64_t)MS;
}

TEST(a_pullback_out_of_proportion_is_found)
{
    add_slow(10);
    read_and_find();
    ck_assert_str_eq(found_kinds(), "pullback line");
    ck_assert_str_eq(found.finding[0].text,
                     "mlp.c:41 (sub in dense): the pullback takes 105 times as long as the op "
                     "(105ms); flops and bytes predict 2.0 times. What is beyond that is 103ms, "
                     "25.4% of AD's time.");
}

TEST(a_pullback_that_ran_once_is_not)
{
    add_slow(1);
    read_and_find();
    ck_assert_str_eq(found_kinds(), "line");
}

/* ---- shapes ---- */

static void add_grid(const char *shape, uint64_t forward)
{
    Tapescope__Row *row = add(KNOWN_PC, "sub", 100, forward, 1);
    row->shape = (char *)(uintptr_t)shape;
    for (uint64_t i = 0; i < 5; i++)
        add(OTHER_PC + 16 * (i + 1), "exp", 100, 10, 9);
    read_and_find();
}

TEST(a_grid_of_a_prediction_and_a_target_is_asked_about)
{
    add_grid("f64[256,256] of [256,1], [256]", 4);
    ck_assert_str_eq(printed(),
                     "\nA result much larger than its operands. mlp.c:41 (sub in dense) makes "
                     "[256,256] of [256,1] and [256], 256 times as many elements as either: it "
                     "takes each element of the one with each of the other. That is 5.0% of AD's "
                     "time (5.00ms). Is it meant? If not, give the operand [256] the other's "
                     "shape:\n"
                     "    x = ad_reshape(x, (int64_t[]){256, 1}, 2); /* x: that of [256] */\n"
                     "    tapescope help read-a-report#findings\n");
}

/* It has a finding of its own, so that of its time is none. */
TEST(a_grid_with_much_of_the_time_is_asked_about_alone)
{
    add_grid("f64[2,8,8] of f32[8], [8,1], [2,1,1]", 100);
    ck_assert_str_eq(found_kinds(), "grid");
}

/* Less than a twentieth; as many dimensions; other sizes; not so much larger; no broadcast; a
 * matrix product; no shape at all. */
TEST_EACH(nothing_is_asked_of_other_shapes, 9)
{
    static const char *const shape[] = {
        "f64[256,256] of [256,1], [256]",
        "f64[256,256] of [256,1], [1,256]",
        "f64[256,255] of [256,1], [255]",
        "f64[7,7] of [7,1], [7]",
        "f64[256,256] of [256,256], [256]",
        "f64[256,256] of [2,128], [256]",
        "f64[256,256] of [256,1], [256",
        "f64[] of [], []",
        "(other shapes)",
    };
    add_grid(shape[_i], _i == 0 ? 3 : 20);
    ck_assert_ptr_null(strstr(found_kinds(), "grid"));
}

/* ---- bytes ---- */

/* What a row holds at the peak, of `held` bytes; the peak was in a sweep, unless a test says so. */
static struct read_residual *hold(uint32_t row, enum read_residual_kind kind, uint64_t held)
{
    struct read_tape *tape = &profile->tape[0];
    tape->residual = realloc(tape->residual, (tape->n_residuals + 1) * sizeof *tape->residual);
    ck_assert_ptr_nonnull(tape->residual);
    struct read_residual *residual = &tape->residual[tape->n_residuals];
    *residual = (struct read_residual){
        .index = (uint32_t)tape->n_residuals, .producer = row + 1, .kind = kind};
    residual->count = 8;
    residual->bytes = residual->peak_bytes = residual->by_rewind = held;
    tape->change = realloc(tape->change, (tape->n_changes + 1) * sizeof *tape->change);
    ck_assert_ptr_nonnull(tape->change);
    tape->change[tape->n_changes++] =
        (struct read_change){.ticks = tape->n_changes,
                             .delta = (int64_t)held,
                             .residual = (uint32_t)tape->n_residuals++,
                             .ends = true,
                             .backward = true};
    tape->peak_bytes += held;
    tape->handed_out_bytes += held;
    return residual;
}

TEST(values_that_no_pullback_reads_are_found_with_their_release)
{
    add(KNOWN_PC, "linear", 100, 1, 1);
    read_it();
    hold(0, READ_VALUE, 3 * MIB);
    hold(0, READ_RECORD, MIB);
    find();
    ck_assert_str_eq(printed(),
                     "\nKept, and read by no pullback. 75.0% of the peak (3.00MiB of 4.00MiB) are "
                     "results of mlp.c:41 (linear in dense) that no pullback reads. Give each back "
                     "after its last use, or those of a step at once by a frame (ad_frame_begin, "
                     "ad_frame_end):\n"
                     "    ad_release(y); /* y: the result of linear at mlp.c:41 */\n"
                     "    tapescope help memory#a-peak-whose-holder-is-found\n");
}

/* No call gives these back: padding is the tape's, a leaf's array the user's; what a call gave back
 * is given back; in the forward pass a value may be needed yet; what ad_create_graph made has no
 * handle; a 21st of the peak is little; so is a peak of 1 MiB less a byte. */
TEST_EACH(nothing_is_said_of_bytes_that_no_call_gives_back_sooner, 8)
{
    static const char *const op[] = {"padding", "leaf",         "linear", "linear",
                                     "other",   "create_graph", "linear", "linear"};
    const bool own = _i == 0 || _i == 4;
    add(own ? 0 : KNOWN_PC, op[_i], 100, 1, 1);
    read_it();
    const uint64_t held = _i == 7 ? MIB - 1 : 3 * (uint64_t)MIB;
    struct read_residual *residual = hold(0, READ_VALUE, held);
    if (_i == 2) {
        residual->by_rewind = 0;
        residual->by_call = held;
    }
    if (_i == 3)
        profile->tape[0].change[0].backward = false;
    if (_i == 6)
        hold(0, READ_RECORD, 20 * held);
    find();
    ck_assert_str_eq(found_kinds(), "function");
}

TEST(what_was_saved_in_vain_is_found)
{
    add(KNOWN_PC, "exp", 100, 1, 1);
    read_it();
    hold(0, READ_SAVED, 2 * MIB)->read_bytes = MIB;
    find();
    ck_assert_str_eq(found_kinds(), "dead");
    ck_assert_str_eq(
        found.finding[0].text,
        "50.0% of all that went on the tape (1.00MiB of 2.00MiB) was saved for "
        "pullbacks and given back before one read it, most of it (100%) of mlp.c:41 (exp in "
        "dense).");
    ck_assert_str_eq(found.finding[0].call,
                     "ad_tape_no_grad_begin(tape); ... ad_tape_no_grad_end(tape);");
}

/* Sixteen steps, each of 1 MiB and a sweep; each leaves so many bytes. */
static void step(uint64_t left)
{
    enum { STEPS = 16 };
    struct read_tape *tape = &profile->tape[0];
    tape->moment = realloc(tape->moment, 2 * STEPS * sizeof *tape->moment);
    ck_assert_ptr_nonnull(tape->moment);
    for (uint64_t i = 0; i < STEPS; i++) {
        tape->moment[2 * i] = (struct read_moment){2 * i, left * i + MIB, left * i, false};
        tape->moment[2 * i + 1] = (struct read_moment){2 * i + 1, left * i + MIB, left * i, true};
    }
    tape->n_moments = 2 * STEPS;
    tape->sweeps = STEPS;
    hold(0, READ_SAVED, left * (STEPS - 1) + MIB)->read_bytes = left * (STEPS - 1) + MIB;
}

/* Who holds most is said by line and op, as `growth` has them; a sum of two ops is no row. */
TEST(a_forgotten_rewind_is_found_with_its_bytes_a_step)
{
    add(KNOWN_PC, "exp", 100, 1, 1)->peak_bytes = 15 * MIB;
    add(KNOWN_PC, "neg", 100, 1, 1)->peak_bytes = MIB;
    read_it();
    step(MIB);
    find();
    ck_assert_str_eq(printed(),
                     "\nEach step leaves bytes on the tape. ~93.8% of the peak (~15.0MiB of "
                     "16.0MiB) is what earlier steps left: every sweep leaves ~1.00MiB more on "
                     "the tape. Of the peak mlp.c:41 (exp in dense) holds most (93.8%). Mark the "
                     "tape before the first step, "
                     "and rewind after each:\n"
                     "    ad_mark start = ad_tape_mark(tape); ... ad_tape_rewind(tape, start);\n"
                     "    tapescope help memory#a-peak-whose-holder-is-found\n");
}

/* "Most" is more than half; of equal bytes the row with more time comes first, as in `growth`. */
TEST(half_of_the_peak_is_the_largest_share_and_not_most)
{
    add(KNOWN_PC, "exp", 100, 1, 1)->peak_bytes = 8 * MIB;
    add(KNOWN_PC, "neg", 100, 2, 1)->peak_bytes = 8 * MIB;
    add(0, "padding", 100, 1, 1)->peak_bytes = 9 * MIB;
    read_it();
    step(MIB);
    find();
    ck_assert_str_eq(found_kinds(), "rewind");
    const char *largest = strstr(found.finding[0].text, "Of the peak");
    ck_assert_str_eq(largest, "Of the peak mlp.c:41 (neg in dense) holds the largest share "
                              "(50.0%).");
}

TEST(steps_that_are_rewound_leave_nothing)
{
    add(KNOWN_PC, "exp", 100, 1, 1);
    read_it();
    step(0);
    find();
    ck_assert_str_eq(found_kinds(), "function");
}

RUN_TESTS(setup, teardown)
