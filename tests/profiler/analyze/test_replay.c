/* test_replay.c: the short replay of a tape against the whole one, choice by choice.
 *
 * The tapes are made by hand.
 */
#include "analyze_space.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>

enum { OPTIONS = 5, RESIDUALS = 12, CHANGES = 400, TAPES = 40 };

static struct read_residual residual[RESIDUALS];
static struct read_change change[CHANGES];
static struct analyze_option option[OPTIONS];
static uint32_t of[RESIDUALS], first[OPTIONS], next[RESIDUALS];
static struct read_tape tape;
static struct analyze_whatif whatif;
static uint64_t seed;

/* Marsaglia, "Xorshift RNGs", doi:10.18637/jss.v008.i14 */
static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* Bytes come and go in moments of one to six changes, the second half of them in sweeps. */
static void make_tape(uint64_t number)
{
    uint64_t live[RESIDUALS] = {0};
    seed = 88172645463325252u + number;
    tape = (struct read_tape){
        .residual = residual, .n_residuals = RESIDUALS, .change = change, .n_changes = CHANGES};
    whatif = (struct analyze_whatif){
        .tape = &tape, .option = option, .n = OPTIONS, .of = of, .first = first, .next = next};
    for (uint32_t k = 0; k < OPTIONS; k++) {
        option[k] = (struct analyze_option){0};
        first[k] = 0;
    }
    for (uint32_t i = 0; i < RESIDUALS; i++) {
        residual[i] = (struct read_residual){.read_bytes = any(3), .largest_bytes = 1 + any(60)};
        of[i] = (uint32_t)any(OPTIONS + 1);
        next[i] = of[i] ? first[of[i] - 1] : 0;
        if (of[i])
            first[of[i] - 1] = i + 1;
    }
    bool backward = false;
    for (size_t i = 0; i < CHANGES; i++) {
        const uint32_t at = (uint32_t)any(RESIDUALS);
        const bool takes = live[at] == 0 || any(2) == 0;
        const uint64_t n = takes ? 1 + any(100) : live[at];
        live[at] = takes ? live[at] + n : 0;
        change[i] = (struct read_change){.residual = at,
                                         .delta = takes ? (int64_t)n : -(int64_t)n,
                                         .ends = any(6) == 0,
                                         .backward = backward};
        if (change[i].ends)
            backward = i > CHANGES / 2 && any(2) == 0;
    }
}

/* What analyze_space.h says of a replay. */
static uint64_t peak_of(const struct analyze_replay *replay)
{
    int64_t live[RESIDUALS] = {0}, peak = 0;
    size_t at = 0;
    for (size_t m = 0; m < replay->n_moments; m++) {
        for (uint32_t k = 0; k < replay->moment[m].n_changes; k++, at++)
            live[replay->change[at].class_] += replay->change[at].delta;
        int64_t now = replay->moment[m].rest, again = 0;
        for (size_t i = 0; i < replay->n_classes; i++) {
            const int64_t most = (int64_t)replay->class_[i].again;
            const bool chosen = option[replay->class_[i].option].chosen;
            now += chosen ? 0 : live[i];
            if (chosen && replay->moment[m].backward) {
                const int64_t one = live[i] < most ? live[i] : most;
                again = one > again ? one : again;
            }
        }
        peak = now + again > peak ? now + again : peak;
    }
    ck_assert_uint_eq(at, replay->n_changes);
    return (uint64_t)peak;
}

TEST_EACH(every_choice_has_the_same_peak, TAPES)
{
    struct analyze_replay replay;
    make_tape((uint64_t)_i);
    analyze_replay_make(&replay, &whatif);
    ck_assert_uint_lt(replay.n_moments, CHANGES / 3);
    ck_assert_uint_le(replay.n_changes, CHANGES);
    for (uint32_t bits = 0; bits < 1 << OPTIONS; bits++) {
        for (uint32_t k = 0; k < OPTIONS; k++)
            option[k].chosen = bits >> k & 1;
        ck_assert_uint_eq(peak_of(&replay), analyze_whatif_peak(&whatif));
    }
    analyze_replay_free(&replay);
}

TEST(moments_that_only_the_rest_changes_are_one)
{
    struct analyze_replay replay;
    make_tape(0);
    for (size_t i = 0; i < RESIDUALS; i++)
        of[i] = i == 0;
    residual[0] = (struct read_residual){.read_bytes = 1, .largest_bytes = 8};
    const struct read_change few[] = {
        {.residual = 1, .delta = 10, .ends = true},
        {.residual = 1, .delta = 30, .ends = true},
        {.residual = 1, .delta = -20, .ends = true},
        {.residual = 0, .delta = 8},
        {.residual = 0, .delta = 8, .ends = true},
        {.residual = 1, .delta = 1, .ends = true, .backward = true},
        {.residual = 0, .delta = 100}, /* no moment */
    };
    tape.n_changes = sizeof few / sizeof *few;
    for (size_t i = 0; i < tape.n_changes; i++)
        change[i] = few[i];
    analyze_replay_make(&replay, &whatif);
    ck_assert_uint_eq(replay.n_classes, 1);
    ck_assert_uint_eq(replay.class_[0].again, 8);
    ck_assert_uint_eq(replay.n_moments, 3);
    ck_assert_int_eq(replay.moment[0].rest, 40);
    ck_assert_int_eq(replay.moment[1].rest, 20);
    ck_assert_int_eq(replay.moment[2].rest, 21);
    ck_assert(!replay.moment[1].backward && replay.moment[2].backward);
    ck_assert_uint_eq(replay.n_changes, 1);
    ck_assert_int_eq(replay.change[0].delta, 16);
    analyze_replay_free(&replay);
}

RUN_TESTS(NULL, NULL)
