/* test_collect_residuals.c: what the collector writes of classes, of the stretch with the peak and
 * of live bytes, from ledgers made by hand.
 */
#include "collect_support.h"
#include "read.h"
#include "run_cases.h"
#include "tape_residuals.h"

#include <check.h>
#include <string.h>

enum { CLASSES = 3, CHANGES = 4, MOMENTS = 3 };

/* Of tapes 1 and 2: class 0 of row 0 for the op of row 1, class 1 of row 1, class 2 of row 0. */
static struct tape_residuals residuals[2];
static struct tape_class classes[2][TAPE_CLASS_CHUNK];
static struct tape_change changes[2][TAPE_CHANGE_CHUNK];
static struct tape_moment moments[2][TAPE_MOMENT_CHUNK];

static struct tape_ledger *make(unsigned t, uint64_t unit)
{
    static const uint32_t producer[CLASSES] = {0, 1, 0}, consumer[CLASSES] = {2, 0, 0};
    static const uint32_t kind[CLASSES] = {TAPE_SAVED, TAPE_VALUE, TAPE_RECORD};
    struct tape_ledger *ledger = collect_make_tape(t, unit);
    struct tape_residuals *r = &residuals[t];
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < CLASSES; i++)
        classes[t][i] = (struct tape_class){.producer = producer[i],
                                            .consumer = consumer[i],
                                            .kind = kind[i],
                                            .released_by = i,
                                            .count = 1,
                                            .bytes = unit * (i + 1),
                                            .live_bytes = unit,
                                            .peak_bytes = 10 * unit,
                                            .peak_stamp = ledger->peak_count,
                                            .largest_bytes = unit,
                                            .first_ticks = 100 * (t + 1),
                                            .byte_ticks = 5};
    for (uint32_t i = 0; i < CHANGES; i++)
        changes[t][i] = (struct tape_change){.ticks = 100 + 10 * i,
                                             .delta = i < 3 ? (int64_t)unit : -(int64_t)unit,
                                             .class_ = i % CLASSES,
                                             .flags = TAPE_CHANGE_ENDS};
    for (uint32_t i = 0; i < MOMENTS; i++)
        moments[t][i] = (struct tape_moment){100 + 10 * i, unit * (i + 1), unit, i == 2};
    r->n_classes = CLASSES;
    r->chunk[0] = classes[t];
    r->log[0].chunk[0] = changes[t];
    r->log[0].n = CHANGES;
    r->log[0].merged = 1;
    r->peak_inside = 1;
    r->moment[0] = moments[t];
    r->n_moments = MOMENTS - 1;
    r->now = moments[t][MOMENTS - 1];
    r->open = 1;
    r->peak_ticks = 120;
    ledger->residuals = r;
    return ledger;
}

/* The n-th packet of a kind for a tape, or NULL. */
static const Tapescope__Residuals *nth_residuals(uint64_t tape, size_t n)
{
    for (size_t i = 0; i < collect_profile.n; i++) {
        const Tapescope__Packet *p = collect_profile.packet[i];
        if (p->kind_case == TAPESCOPE__PACKET__KIND_RESIDUALS && p->residuals->tape == tape &&
            n-- == 0)
            return p->residuals;
    }
    return NULL;
}

static const Tapescope__Timeline *nth_timeline(uint64_t tape, size_t n)
{
    for (size_t i = 0; i < collect_profile.n; i++) {
        const Tapescope__Packet *p = collect_profile.packet[i];
        if (p->kind_case == TAPESCOPE__PACKET__KIND_TIMELINE && p->timeline->tape == tape &&
            n-- == 0)
            return p->timeline;
    }
    return NULL;
}

TEST(a_flush_writes_classes_stretch_and_moments)
{
    collect_start();
    collect_flush(make(0, 64), false);
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Residuals *r = nth_residuals(1, 0);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->n_part, CLASSES);
    ck_assert_uint_eq(r->part[0]->producer, 0);
    ck_assert_uint_eq(r->part[0]->consumer, 2);
    ck_assert_uint_eq(r->part[0]->peak_bytes, 640);
    ck_assert_uint_eq(r->part[2]->bytes, 192);
    ck_assert_ptr_nonnull(r->stretch);
    ck_assert_uint_eq(r->stretch->n_part, CHANGES);
    ck_assert_uint_eq(r->stretch->ticks[0], 100);
    ck_assert_uint_eq(r->stretch->ticks[1], 10);
    ck_assert_int_eq(r->stretch->delta[3], -64);
    const Tapescope__Timeline *timeline = nth_timeline(1, 0);
    ck_assert_ptr_nonnull(timeline);
    ck_assert_uint_eq(timeline->n_ticks, MOMENTS);
    ck_assert_uint_eq(timeline->most_bytes[2], 192);
    ck_assert_uint_eq(timeline->phase[2], 1);
    ck_assert_uint_eq(timeline->peak_ticks, 120);
}

TEST(a_later_packet_has_what_changed)
{
    collect_start();
    struct tape_ledger *ledger = make(0, 64);
    collect_flush(ledger, false);
    classes[0][1].bytes += 8;
    classes[0][1].live_bytes = 0;
    collect_flush(ledger, false);
    collect_read(collect_path);
    const Tapescope__Residuals *r = nth_residuals(1, 1);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->n_part, 1);
    ck_assert_uint_eq(r->part[0]->index, 1);
    ck_assert_uint_eq(r->part[0]->bytes, 136);
    ck_assert_ptr_null(r->stretch); /* the peak is the same */
    ck_assert_ptr_null(nth_timeline(1, 1));
    collect_stop();
    collect_read(collect_path);
    r = nth_residuals(1, 2); /* those that are live have lived longer */
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->n_part, 2);
}

TEST(a_log_that_is_being_rewritten_is_left_out)
{
    collect_start();
    struct tape_ledger *ledger = make(0, 64);
    residuals[0].sequence = 1;
    collect_flush(ledger, false);
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Residuals *r = nth_residuals(1, 0);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->n_part, CLASSES);
    ck_assert(r->stretch == NULL || r->stretch->n_part == 0);
    ck_assert_ptr_null(nth_timeline(1, 0));
}

TEST(a_moment_that_is_being_written_is_left_out)
{
    collect_start();
    struct tape_ledger *ledger = make(0, 64);
    residuals[0].now_version = 1;
    residuals[0].now.most_bytes = 4096; /* with the time of another */
    collect_flush(ledger, false);
    collect_read(collect_path);
    const Tapescope__Timeline *timeline = nth_timeline(1, 0);
    ck_assert_ptr_nonnull(timeline);
    ck_assert_uint_eq(timeline->n_ticks, MOMENTS - 1);
    ck_assert_uint_eq(timeline->most_bytes[1], 128);
    residuals[0].now = moments[0][MOMENTS - 1];
    residuals[0].now_version = 2;
    ledger->handed_out_bytes++;
    collect_flush(ledger, false);
    collect_stop();
    collect_read(collect_path);
    timeline = nth_timeline(1, 1);
    ck_assert_ptr_nonnull(timeline);
    ck_assert_uint_eq(timeline->n_ticks, 1);
    ck_assert_uint_eq(timeline->most_bytes[0], 192);
}

TEST(destroyed_tapes_are_merged_class_by_class)
{
    collect_start();
    struct tape_ledger *first = make(0, 64), *second = make(1, 100);
    moments[1][0].ticks = 105; /* they lived beside each other */
    classes[1][0].first_ticks = 3;
    classes[1][2].consumer = 1; /* a class that the first does not have */
    collect_flush(first, true);
    collect_flush(second, true);
    collect_stop();
    collect_read(collect_path);
    size_t last = 0;
    while (nth_residuals(0, last + 1))
        last++;
    const Tapescope__Residuals *r = nth_residuals(0, last);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->n_part, CLASSES + 1);
    ck_assert_uint_eq(r->part[0]->bytes, 164);
    ck_assert_uint_eq(r->part[0]->live_bytes, 0);
    ck_assert_uint_eq(r->part[0]->count, 2);
    ck_assert_uint_eq(r->part[0]->peak_bytes, 1000); /* of the second, whose peak is greater */
    ck_assert_uint_eq(r->part[0]->largest_bytes, 100);
    ck_assert_uint_eq(r->part[0]->first_ticks, 3);
    ck_assert_uint_eq(r->part[2]->peak_bytes, 0);
    ck_assert_uint_eq(r->part[3]->peak_bytes, 1000);
    ck_assert_uint_eq(r->part[3]->consumer, 1);
    ck_assert_ptr_nonnull(r->stretch);
    ck_assert_int_eq(r->stretch->delta[0], 100);
    ck_assert_uint_eq(r->stretch->part[2], 3);
    const Tapescope__Timeline *timeline = nth_timeline(0, 0);
    ck_assert_ptr_nonnull(timeline);
    ck_assert_uint_eq(timeline->n_ticks, 2 * MOMENTS);
    ck_assert_uint_eq(timeline->ticks[0], 100);
    ck_assert_uint_eq(timeline->ticks[1], 5);
}

TEST(what_was_before_an_observation_is_in_no_class)
{
    static const struct tape_scopes scopes = {.n = 1};
    char error[256];
    collect_start();
    collect_flush(make(0, 64), true);
    collect_wait_until_due();
    collect_flush(make(1, 8), false); /* writes what was destroyed */
    collect->hook.begin(&collect->hook, &scopes);
    collect_flush(make(1, 100), true);
    collect_stop();
    collect_read(collect_path);
    ck_assert_ptr_nonnull(nth_residuals(0, 1));
    struct read_profile *profile = read_profile(collect_path, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_uint_eq(profile->n_tapes, 1);
    const struct read_tape *tape = &profile->tape[0];
    ck_assert_uint_eq(tape->tapes, 1);
    ck_assert_uint_eq(tape->n_residuals, CLASSES);
    for (size_t i = 0; i < CLASSES; i++) {
        ck_assert_uint_eq(tape->residual[i].count, 1);
        ck_assert_uint_eq(tape->residual[i].bytes, 100 * (i + 1));
        ck_assert_uint_eq(tape->residual[i].peak_bytes, 1000);
    }
    ck_assert_uint_eq(tape->n_changes, CHANGES);
    for (size_t i = 0; i < tape->n_moments; i++)
        ck_assert_uint_eq(tape->moment[i].least_bytes, 100);
    read_profile_free(profile);
}

RUN_TESTS(collect_setup, collect_teardown)
