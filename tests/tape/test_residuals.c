/* test_residuals.c: what a tape's bytes are for, how long they live and who gives them back, on
 * programs whose answers are known.
 */
#include "observe_support.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_residuals.h"

#include <check.h>
#include <string.h>

enum { SIZE = 64, BYTES = SIZE * 8 };

static const int64_t shape[1] = {SIZE};
static const double data[SIZE] = {0.5, -0.25, 1};

static ad_tape tape;

static ad_tensor leaf(void)
{
    return ad_leaf(tape, AD_F64, 1, shape, data);
}

static void setup(void)
{
    tape = observe_tape();
    observe_begin(UINT64_MAX);
}

static void teardown(void)
{
    ad_tape_destroy(tape);
    tape_observe_end();
}

static const char *op_of(const struct tape_ledger *ledger, uint32_t row)
{
    return tape_ledger_row(ledger, row)->op;
}

/* The class of an op that is called on one line, or NULL. consumer: "" for none. */
static const struct tape_class *find(const struct tape_ledger *ledger, const char *producer,
                                     const char *consumer, enum tape_residual_kind kind)
{
    const struct tape_residuals *r = ledger->residuals;
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct tape_class *c = tape_class_at(r, i);
        const char *by = c->consumer ? op_of(ledger, c->consumer - 1) : "";
        if (c->kind == (uint32_t)kind && strcmp(op_of(ledger, c->producer), producer) == 0 &&
            strcmp(by, consumer) == 0)
            return c;
    }
    return NULL;
}

static const struct tape_class *class_of(const struct tape_ledger *ledger, const char *producer,
                                         const char *consumer, enum tape_residual_kind kind)
{
    const struct tape_class *c = find(ledger, producer, consumer, kind);
    ck_assert_msg(c != NULL, "no class {%s, %s, %d}", producer, consumer, (int)kind);
    return c;
}

TEST(a_value_is_saved_for_the_first_op_whose_pullback_reads_it)
{
    ad_tensor a = ad_neg(leaf()); /* its pullback reads nothing */
    ad_tensor b = ad_square(a);   /* reads a */
    ad_tensor c = ad_sin(a);      /* reads it, too */
    ad_tensor d = ad_exp(ad_add(b, c));
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_class *saved = class_of(ledger, "neg", "square", TAPE_SAVED);
    ck_assert_uint_eq(saved->bytes, BYTES);
    ck_assert_uint_eq(saved->live_bytes, BYTES);
    ck_assert_uint_eq(saved->count, 1);
    ck_assert_uint_eq(saved->largest_bytes, BYTES);
    ck_assert_uint_eq(saved->shared, 1);
    ck_assert_ptr_null(find(ledger, "neg", "sin", TAPE_SAVED));
    ck_assert_uint_eq(class_of(ledger, "exp", "exp", TAPE_SAVED)->live_bytes, BYTES);
    ck_assert_uint_eq(class_of(ledger, "exp", "exp", TAPE_SAVED)->shared, 0);
    /* What nobody reads stays a plain value; of neg nothing is left in that class. */
    ck_assert_uint_eq(class_of(ledger, "add", "", TAPE_VALUE)->live_bytes, BYTES);
    ck_assert_uint_eq(class_of(ledger, "neg", "", TAPE_VALUE)->bytes, 0);
    ck_assert_uint_eq(class_of(ledger, "neg", "", TAPE_VALUE)->count, 0);
    ck_assert_int_eq(ad_rank(d), 1);
}

TEST(a_saved_value_that_no_pullback_read_is_dead)
{
    ad_tensor x = leaf();
    ad_tensor y = ad_exp(x);
    ad_tanh(x); /* nothing of it reaches the loss */
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_class *read = class_of(ledger, "exp", "exp", TAPE_SAVED);
    const struct tape_class *dead = class_of(ledger, "tanh", "tanh", TAPE_SAVED);
    ck_assert_uint_eq(read->read_bytes, BYTES);
    ck_assert_uint_eq(read->read_live_bytes, BYTES);
    ck_assert_uint_eq(dead->bytes, BYTES);
    ck_assert_uint_eq(dead->read_bytes, 0);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK); /* read again, counted once */
    ck_assert_uint_eq(read->read_bytes, BYTES);
    ad_tape_reset(tape);
    ck_assert_uint_eq(read->read_live_bytes, 0);
    ck_assert_uint_eq(read->read_bytes, BYTES);
}

TEST(a_recorded_pullback_reads_as_well)
{
    ad_tensor x = leaf(), gradient;
    ad_tensor y = ad_sum(ad_exp(x));
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0, 0, 0, 0}, 1, &x, &gradient), AD_OK);
    ck_assert_uint_eq(class_of(observe_ledger(), "exp", "exp", TAPE_SAVED)->read_bytes, BYTES);
}

TEST(each_way_of_giving_back_is_counted_as_such)
{
    ad_tensor x = leaf();
    ad_mark mark = ad_tape_mark(tape);
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor y = ad_exp(ad_neg(x)); /* neg's value is read by nobody */
    ad_frame_end(frame, &y, 1);
    ad_tensor z = ad_tanh(y);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_class *neg = class_of(ledger, "neg", "", TAPE_VALUE);
    ck_assert_uint_eq(neg->by_frame, BYTES);
    ck_assert_uint_eq(neg->live_bytes, 0);
    ck_assert_str_eq(op_of(ledger, neg->released_by - 1), "frame_end");
    ck_assert_int_eq(ad_backward(ad_sum(z)), AD_OK);
    const struct tape_class *adjoint = class_of(ledger, "tanh", "", TAPE_ADJOINT);
    ck_assert_uint_ge(adjoint->by_sweep, BYTES);
    ck_assert_uint_eq(adjoint->live_bytes, 0);
    ad_tape_rewind(tape, mark);
    ck_assert_uint_eq(class_of(ledger, "exp", "exp", TAPE_SAVED)->by_rewind, BYTES);
    ck_assert_uint_eq(class_of(ledger, "tanh", "tanh", TAPE_SAVED)->by_rewind, BYTES);
    z = ad_sigmoid(x);
    ck_assert_int_eq(ad_backward_release(ad_sum(ad_neg(z))), AD_OK);
    const struct tape_class *swept = class_of(ledger, "sigmoid", "sigmoid", TAPE_SAVED);
    ck_assert_uint_eq(swept->by_sweep, BYTES);
    ck_assert_str_eq(op_of(ledger, swept->released_by - 1), "backward_release");
    ad_tape_reset(tape);
    ck_assert_uint_eq(swept->by_reset, 0);
    ck_assert_uint_eq(class_of(ledger, "leaf", "", TAPE_ADJOINT)->by_reset, BYTES);
    ck_assert_uint_eq(class_of(ledger, "leaf", "", TAPE_ADJOINT)->by_rewind, 0);
}

static uint64_t destroyed_bytes;

static void note_destroyed(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    (void)hook;
    if (final)
        destroyed_bytes = class_of(ledger, "exp", "exp", TAPE_SAVED)->by_destroy;
}

TEST(what_a_tape_holds_when_it_is_destroyed_was_left)
{
    void (*flush)(struct tape_hook *, const struct tape_ledger *, bool) = observe_hook.flush;
    observe_hook.flush = note_destroyed;
    ad_tape other = observe_tape();
    ad_exp(ad_leaf(other, AD_F64, 1, shape, data));
    ad_tape_destroy(other);
    observe_hook.flush = flush;
    ck_assert_uint_eq(destroyed_bytes, BYTES);
}

TEST(bytes_are_multiplied_by_the_time_that_they_lived)
{
    ad_tensor x = leaf();
    const uint64_t born = observe_ticks + 1; /* the op reads the clock as it begins */
    ad_tensor y = ad_neg(x);
    observe_ticks += 1000;
    ad_square(y); /* from now on it is saved, and was from its birth */
    observe_ticks += 500;
    const uint64_t gone = observe_ticks + 1;
    ad_tape_reset(tape);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_class *saved = class_of(ledger, "neg", "square", TAPE_SAVED);
    ck_assert_double_eq(saved->byte_ticks, (double)BYTES * (double)(gone - born));
    ck_assert_double_eq(class_of(ledger, "neg", "", TAPE_VALUE)->byte_ticks, 0);
    ck_assert_uint_eq(saved->first_ticks, born);
    ck_assert_uint_eq(saved->last_ticks, gone);
}

TEST(each_line_of_a_chain_holds_its_bytes_at_the_peak)
{
    ad_tensor x = leaf();
    volatile int three = 3, five = 5; /* loops that are not unrolled have one call each */
    for (int i = 0; i < three; i++)
        x = ad_exp(x);
    for (int i = 0; i < five; i++)
        x = ad_tanh(x);
    ck_assert_int_eq(ad_backward(ad_sum(x)), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const uint64_t peaks = ledger->peak_count;
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "exp", "exp", TAPE_SAVED), peaks),
                      3 * BYTES);
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "tanh", "tanh", TAPE_SAVED), peaks),
                      5 * BYTES);
    ad_tape_reset(tape); /* the peak stays what it was */
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "exp", "exp", TAPE_SAVED), peaks),
                      3 * BYTES);
    observe_check_sums(ledger);
}

TEST(a_value_that_is_saved_after_the_peak_was_so_at_the_peak)
{
    ad_tensor x = leaf();
    ad_tensor y = ad_neg(x);
    ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_backward(ad_sum(ad_neg(ad_neg(y)))), AD_OK); /* the peak */
    ad_tape_rewind(tape, mark);
    const struct tape_ledger *ledger = observe_ledger();
    const uint64_t peaks = ledger->peak_count;
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "neg", "", TAPE_VALUE), peaks), BYTES);
    ad_square(y);
    ck_assert_uint_eq(ledger->peak_count, peaks);
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "neg", "", TAPE_VALUE), peaks), 0);
    ck_assert_uint_eq(tape_class_at_peak(class_of(ledger, "neg", "square", TAPE_SAVED), peaks),
                      BYTES);
    observe_check_sums(ledger);
}

/* ---- what was live when ---- */

static const struct tape_log *log_of_peak(const struct tape_residuals *r)
{
    return &r->log[r->peak_inside ? r->current : r->current ^ 1];
}

/* The most that was live in the log, moment by moment. */
static uint64_t most_of(const struct tape_log *log)
{
    int64_t live = 0, most = 0;
    for (uint32_t i = 0; i < log->n; i++) {
        const struct tape_change *c = tape_change_at(log, i);
        live += c->delta;
        if ((c->flags & TAPE_CHANGE_ENDS) && live > most)
            most = live;
    }
    return (uint64_t)most;
}

TEST(the_log_of_the_peak_is_kept_after_smaller_steps)
{
    const struct tape_ledger *ledger = NULL;
    for (int step = 0; step < 6; step++) {
        ad_tensor x = leaf();
        for (int i = 0; i < (step == 2 ? 20 : 5); i++)
            x = ad_exp(x);
        ck_assert_int_eq(ad_backward(ad_sum(x)), AD_OK);
        ledger = ledger ? ledger : observe_ledger();
        ck_assert_uint_eq(most_of(log_of_peak(ledger->residuals)), ledger->peak_bytes);
        ad_tape_reset(tape);
        ck_assert_uint_eq(most_of(log_of_peak(ledger->residuals)), ledger->peak_bytes);
    }
    ck_assert_uint_eq(ledger->residuals->log[ledger->residuals->current].n, 0);
    ck_assert_uint_eq(ledger->residuals->peak_inside, 0);
    ck_assert_uint_eq(log_of_peak(ledger->residuals)->merged, 1);
}

TEST(a_small_rewind_within_a_step_does_not_end_its_log)
{
    ad_tensor x = leaf();
    for (int i = 0; i < 8; i++)
        x = ad_exp(x);
    const struct tape_ledger *ledger = observe_ledger();
    const uint32_t n = ledger->residuals->log[0].n;
    ad_mark mark = ad_tape_mark(tape);
    ad_exp(x);
    ad_tape_rewind(tape, mark);
    ck_assert_uint_eq(ledger->residuals->current, 0);
    ck_assert_uint_gt(ledger->residuals->log[0].n, n);
    ad_exp(x);
    ck_assert_uint_eq(most_of(&ledger->residuals->log[0]), ledger->peak_bytes);
}

TEST(a_full_log_is_merged_and_keeps_the_peak)
{
    ad_tensor x = leaf();
    const struct tape_ledger *ledger = observe_ledger();
    for (int round = 0; round < 60; round++) {
        ad_mark mark = ad_tape_mark(tape);
        ad_tensor y = x;
        for (int i = 0; i < (round == 30 ? 150 : 100); i++)
            y = ad_exp(ad_neg(y));
        ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
        ad_release(y);
        if (round < 59)
            ad_tape_rewind(tape, mark);
        x = round % 8 == 7 ? ad_exp(leaf()) : x; /* so that no rewind comes to the beginning */
    }
    const struct tape_log *log = log_of_peak(ledger->residuals);
    ck_assert_uint_eq(most_of(log), ledger->peak_bytes);
    ck_assert(!log->truncated);
    observe_check_sums(ledger);
}

TEST(a_long_stretch_is_merged_and_comes_to_what_is_live)
{
    ad_tensor x = leaf();
    const struct tape_ledger *ledger = observe_ledger();
    for (int i = 0; i < 18000; i++) {
        ad_tensor y = ad_exp(x);
        if (i == 7000)
            ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    }
    const struct tape_log *log = &ledger->residuals->log[ledger->residuals->current];
    ck_assert_uint_gt(log->merged, 1);
    ck_assert_uint_le(log->n, TAPE_CHANGE_CHUNK * TAPE_CHANGE_CHUNKS);
    ck_assert(!log->truncated);
    ck_assert_uint_eq(most_of(log), ledger->peak_bytes);
    observe_check_sums(ledger);
}

TEST(live_bytes_over_time_are_thinned_and_keep_most_and_least)
{
    ad_tensor x = leaf();
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_residuals *r = ledger->residuals;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 9000; i++) {
        ad_tensor y = ad_exp(x);
        if (i == 4321)
            ad_exp(ad_exp(y));
        ad_tape_rewind(tape, mark);
    }
    ck_assert_uint_le(r->n_moments, TAPE_MOMENT_CHUNK * TAPE_MOMENT_CHUNKS);
    uint64_t most = 0, least = UINT64_MAX, at = 0, before = 0;
    for (uint32_t i = 0; i < r->n_moments; i++) {
        const struct tape_moment *m = tape_moment_at(r, i);
        ck_assert_uint_ge(m->ticks, before);
        ck_assert_uint_ge(m->most_bytes, m->least_bytes);
        before = m->ticks;
        if (m->most_bytes > most)
            at = m->ticks;
        most = m->most_bytes > most ? m->most_bytes : most;
        least = m->least_bytes < least && i > 10 ? m->least_bytes : least;
    }
    ck_assert_uint_eq(most, ledger->peak_bytes);
    ck_assert_uint_eq(at, r->peak_ticks);
    ck_assert_uint_eq(least, ledger->live_bytes); /* the leaf alone */
}

TEST(a_new_observation_counts_what_is_there_and_forgets_the_rest)
{
    ad_tensor x = leaf();
    ad_exp(ad_neg(x));
    tape_observe_end();
    observe_begin(UINT64_MAX);
    ad_square(ad_sin(x));
    const struct tape_ledger *ledger = observe_ledger();
    observe_check_sums(ledger);
    ck_assert_uint_eq(class_of(ledger, "exp", "exp", TAPE_SAVED)->bytes, BYTES);
    ck_assert_uint_eq(class_of(ledger, "sin", "square", TAPE_SAVED)->bytes, BYTES);
    ck_assert_uint_eq(class_of(ledger, "neg", "", TAPE_VALUE)->bytes, BYTES);
}

/* ---- the tape's file ---- */

static struct tape *tape_of(const struct tape_ledger *ledger)
{
    return (void *)((char *)(uintptr_t)ledger - offsetof(struct tape, ledger));
}

TEST(what_lies_on_disk_is_of_another_kind_until_it_is_back)
{
    ad_tensor a = ad_neg(leaf());
    ad_tensor b = ad_square(a);
    const struct tape_ledger *ledger = observe_ledger();
    struct tape *t = tape_of(ledger);
    const struct tape_value *v = &t->entries[a.value];
    const uint64_t live = ledger->live_bytes, handed_out = ledger->handed_out_bytes;
    tape_account_disk_value(t, v, TAPE_DISK_OUT);
    tape_account_disk_value(t, v, TAPE_DISK_OUT); /* it lies there already */
    const struct tape_class *disk = class_of(ledger, "neg", "square", TAPE_DISK),
                            *saved = class_of(ledger, "neg", "square", TAPE_SAVED);
    ck_assert_uint_eq(disk->live_bytes, BYTES);
    ck_assert_uint_eq(disk->bytes + disk->count, 0);
    ck_assert_uint_eq(saved->live_bytes, 0);
    ck_assert_uint_eq(saved->bytes, BYTES);
    ck_assert_uint_eq(ledger->disk_bytes, BYTES);
    ck_assert_uint_eq(ledger->spilled_bytes, BYTES);
    ck_assert_uint_eq(observe_row(ledger, "neg")->spilled_bytes, BYTES);
    ck_assert_uint_eq(ledger->live_bytes, live);
    ck_assert_uint_eq(ledger->handed_out_bytes, handed_out);
    ck_assert_uint_eq(ledger->memory_peak_bytes, live);
    observe_check_sums(ledger);
    tape_account_disk(t, v->row, TAPE_RECORD, 40, TAPE_DISK_OUT);
    ck_assert_uint_eq(class_of(ledger, "neg", "", TAPE_DISK)->live_bytes, 40);
    tape_account_disk(t, v->row, TAPE_RECORD, 40, TAPE_DISK_BACK);
    tape_account_disk_value(t, v, TAPE_DISK_BACK);
    tape_account_disk_value(t, v, TAPE_DISK_BACK);
    ck_assert_uint_eq(ledger->disk_bytes, 0);
    ck_assert_uint_eq(saved->live_bytes, BYTES);
    ck_assert_uint_eq(ledger->spilled_bytes, BYTES + 40);
    ck_assert_uint_eq(ledger->memory_peak_bytes, live);
    observe_check_sums(ledger);
    (void)b;
}

TEST(the_peak_knows_what_lay_on_disk_then)
{
    ad_tensor a = ad_neg(leaf());
    const struct tape_ledger *ledger = observe_ledger();
    struct tape *t = tape_of(ledger);
    const uint64_t before = ledger->peak_bytes;
    tape_account_disk_value(t, &t->entries[a.value], TAPE_DISK_OUT);
    ad_exp(leaf()); /* the peak of all, and of memory too: a leaf's gradient comes with it */
    const uint64_t memory = ledger->live_bytes - BYTES;
    ck_assert_uint_gt(memory, before);
    ck_assert_uint_eq(ledger->memory_peak_bytes, memory);
    tape_account_disk_value(t, &t->entries[a.value], TAPE_DISK_BACK);
    const struct tape_class *disk = class_of(ledger, "neg", "", TAPE_DISK);
    ck_assert_uint_eq(disk->live_bytes, 0);
    ck_assert_uint_eq(tape_class_at_peak(disk, ledger->peak_count), BYTES);
    ck_assert_uint_eq(
        tape_class_at_peak(class_of(ledger, "neg", "", TAPE_VALUE), ledger->peak_count), 0);
    ck_assert_uint_eq(ledger->memory_peak_bytes, memory + BYTES);
    observe_check_sums(ledger);
}

TEST(what_is_dropped_while_it_lies_on_disk_is_given_back_as_what_it_was)
{
    ad_tensor x = leaf();
    ad_mark mark = ad_tape_mark(tape);
    ad_tensor a = ad_neg(x);
    ad_square(a);
    const struct tape_ledger *ledger = observe_ledger();
    struct tape *t = tape_of(ledger);
    tape_account_disk_value(t, &t->entries[a.value], TAPE_DISK_OUT);
    ad_sin(a); /* another reader: the class stays that of the first */
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_uint_eq(ledger->disk_bytes, 0);
    ck_assert_uint_eq(class_of(ledger, "neg", "square", TAPE_DISK)->live_bytes, 0);
    ck_assert_uint_eq(class_of(ledger, "neg", "square", TAPE_SAVED)->by_rewind, BYTES);
    observe_check_sums(ledger);
    ad_tensor b = ad_exp(x);
    tape_account_disk_value(t, &t->entries[b.value], TAPE_DISK_OUT);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(ledger->disk_bytes, 0);
    ck_assert_uint_eq(class_of(ledger, "exp", "exp", TAPE_SAVED)->by_reset, BYTES);
    observe_check_sums(ledger);
}

RUN_TESTS(setup, teardown)
