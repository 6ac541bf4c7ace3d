/* test_checkpoint_cost.c: what proposals of `whatif` cost, of numbers: profiles made by hand, of a
 * loop of two statements.
 */
#include "analyze_checkpoint.h"
#include "profile_maker.h"
#include "run_cases.h"
#include "trace.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { STEPS = 150, WORDS = 5, MUL = 0x1000, SIN = 0x2000, MUL_BYTES = 28, SIN_BYTES = 16 };

/* One that was found in all looks, one that was found in none; and more of these of another run,
 * of which the trace has nothing. */
struct loop {
    uint64_t mul_ticks, mul_looks, others;
};

static uint32_t trace[2 * STEPS * WORDS];

/* Newest first, as a run is walked. */
static size_t make_trace(void)
{
    size_t n = 0;
    for (uint32_t result = 2 * STEPS; result > 0; result--) {
        const uint32_t class_ = result % 2 ? 0 : 1, bytes = class_ ? SIN_BYTES : MUL_BYTES;
        const uint32_t entry[WORDS] = {TRACE_STATEMENT | WORDS << TRACE_KIND_BITS, class_,
                                       result + 1, bytes, result};
        for (uint32_t k = 0; k < WORDS; k++)
            trace[n++] = entry[k];
    }
    return n;
}

static Tapescope__Row *add_statement(struct maker_ledger *made, uint64_t pc, uint64_t calls,
                                     uint64_t bytes)
{
    Tapescope__Row *row = maker_add_row(made, (uint32_t)made->ledger.n_row, pc, "statement");
    row->calls = calls;
    row->record_bytes = calls * bytes;
    made->ledger.handed_out_bytes += row->record_bytes;
    return row;
}

static void put_ledger(struct maker_bytes *bytes, const struct loop *loop)
{
    Tapescope__Path path = TAPESCOPE__PATH__INIT, *list[] = {&path};
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    struct maker_ledger *made = maker_new_ledger(1);
    path.id = 1;
    path.pc = MUL;
    paths.path = list;
    paths.n_path = 1;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_PATHS, &paths);
    Tapescope__Row *mul = add_statement(made, MUL, STEPS, MUL_BYTES);
    mul->forward_ticks = mul->estimated_forward_ticks = loop->mul_ticks;
    mul->forward_looks = loop->mul_looks;
    mul->backward_calls = STEPS;
    mul->backward_ticks = mul->estimated_backward_ticks = made->ledger.backward_ticks = 1000;
    add_statement(made, SIN, STEPS, SIN_BYTES);
    if (loop->others > 0)
        add_statement(made, SIN, loop->others, SIN_BYTES)->path = 1;
    made->ledger.forward_ticks = loop->mul_ticks;
    made->ledger.peak_bytes = STEPS * (MUL_BYTES + SIN_BYTES + 16);
    maker_put_ledger(bytes, made);
}

static void put_residuals(struct maker_bytes *bytes)
{
    Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
    Tapescope__ResidualClass of[2], *list[2];
    Tapescope__Stretch stretch = TAPESCOPE__STRETCH__INIT;
    for (uint32_t i = 0; i < 2; i++) {
        tapescope__residual_class__init(&of[i]);
        of[i].index = of[i].producer = i;
        of[i].kind = 2;
        of[i].peak_bytes = of[i].bytes = STEPS * (uint64_t)(i ? SIN_BYTES : MUL_BYTES);
        list[i] = &of[i];
    }
    residuals.tape = 1;
    residuals.part = list;
    residuals.n_part = 2;
    stretch.n_trace = make_trace();
    stretch.trace = trace;
    residuals.stretch = &stretch;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_RESIDUALS, &residuals);
}

struct cost {
    struct analyze_proposal checkpoint, section;
};

static struct cost cost_of(struct loop loop)
{
    static struct maker_bytes bytes;
    struct analyze_proposals all;
    struct cost cost = {.checkpoint.times = 0};
    bytes = (struct maker_bytes){.n = 0};
    maker_put_header(&bytes, "step:1", 1);
    maker_put_symbols(&bytes, MUL, 0, SIN);
    put_ledger(&bytes, &loop);
    put_residuals(&bytes);
    struct read_profile *profile = maker_read(&bytes);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    analyze_proposals_make(&all, analysis, NULL);
    for (size_t i = 0; i < all.n; i++)
        if (all.proposal[i].times == STEPS)
            *(all.proposal[i].deed == ANALYZE_PREACCUMULATE ? &cost.section : &cost.checkpoint) =
                all.proposal[i];
    ck_assert_uint_eq(cost.checkpoint.times, STEPS);
    ck_assert_uint_eq(cost.section.times, STEPS);
    analyze_proposals_free(&all);
    analyze_free(analysis);
    read_profile_free(profile);
    return cost;
}

TEST(a_line_that_no_look_found_is_part_of_the_estimate)
{
    const struct cost once = cost_of((struct loop){.mul_ticks = 90000, .mul_looks = 9}),
                      twice = cost_of((struct loop){.mul_ticks = 180000, .mul_looks = 36});
    ck_assert(once.checkpoint.cost_known && once.checkpoint.cost_is_estimate);
    /* All of the loop is computed again, which is all of the time that the looks stand for. */
    ck_assert_uint_gt(once.checkpoint.cost_ns, 90000);
    ck_assert_uint_eq(twice.checkpoint.cost_ns - once.checkpoint.cost_ns, 90000);
    ck_assert_uint_eq(once.checkpoint.error_ns, 30000);
    ck_assert_uint_eq(twice.checkpoint.error_ns, 30000);
}

TEST(without_a_look_only_a_section_has_a_cost)
{
    const struct cost none = cost_of((struct loop){.mul_looks = 0}),
                      some = cost_of((struct loop){.mul_ticks = 90000, .mul_looks = 9});
    ck_assert(!none.checkpoint.cost_known);
    ck_assert(none.section.cost_known && none.section.cost_is_estimate);
    ck_assert_uint_gt(none.section.cost_ns, 0);
    ck_assert_uint_eq(none.section.cost_ns, some.section.cost_ns);
    ck_assert_uint_eq(none.section.error_ns, 0);
}

TEST(statements_of_other_runs_cost_as_much)
{
    const struct cost one = cost_of((struct loop){.mul_ticks = 90000, .mul_looks = 9}),
                      more = cost_of((struct loop){90000, 9, 2 * STEPS});
    ck_assert_uint_eq(more.section.cost_ns, 2 * one.section.cost_ns);
    ck_assert_uint_eq(more.checkpoint.cost_ns - 90000, 2 * (one.checkpoint.cost_ns - 90000));
}

RUN_TESTS(NULL, NULL)
