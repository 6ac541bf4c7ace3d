/* observe_support.c: see observe_support.h. */
#include "observe_support.h"
#include "check_quietly.h"

#include "tape_residuals.h"

#include <stdlib.h>
#include <string.h>

uint64_t observe_ticks;
struct observe_flush observe_flushed[OBSERVE_LOG];
int observe_n_flushed;

static uint64_t read_clock(void)
{
    return __atomic_add_fetch(&observe_ticks, 1, __ATOMIC_RELAXED); /* threads may share it */
}

static void flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    (void)hook;
    observe_flushed[observe_n_flushed % OBSERVE_LOG].ledger = ledger;
    observe_flushed[observe_n_flushed % OBSERVE_LOG].live_bytes = ledger->live_bytes;
    observe_flushed[observe_n_flushed++ % OBSERVE_LOG].final = final;
}

/* Of each tape since the observation began: the time of all events that are ops. */
enum { TAPES = 4096 };
static uint64_t ticks_of_ops[TAPES];
struct tape_event observe_event[OBSERVE_LOG];
int observe_n_events;

static void take_event(struct tape_hook *hook, const struct tape_event *event)
{
    (void)hook;
    const int n = __atomic_fetch_add(&observe_n_events, 1, __ATOMIC_RELAXED);
    if (n < OBSERVE_LOG)
        observe_event[n] = *event;
    if (event->kind == TAPE_EVENT_FORWARD)
        __atomic_fetch_add(&ticks_of_ops[event->tape % TAPES], event->end - event->start,
                           __ATOMIC_RELAXED);
}

const struct tape_scopes *observe_scopes;

static void take_scopes(struct tape_hook *hook, const struct tape_scopes *scopes)
{
    (void)hook;
    observe_scopes = scopes;
}

struct tape_hook observe_hook = {
    .abi = TAPE_HOOK_ABI,
    .clock = read_clock,
    .flush = flush,
    .begin = take_scopes,
    .event = take_event,
};

void observe_begin(uint64_t due)
{
    observe_hook.due = due;
    observe_n_flushed = observe_n_events = 0;
    memset(ticks_of_ops, 0, sizeof ticks_of_ops);
    ck_assert(tape_observe_begin(&observe_hook));
}

ad_tape observe_tape(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    return tape;
}

const struct tape_ledger *observe_ledger(void)
{
    observe_n_flushed = 0;
    tape_observe_flush();
    ck_assert_int_eq(observe_n_flushed, 1);
    return observe_flushed[0].ledger;
}

const struct tape_row *observe_row(const struct tape_ledger *ledger, const char *op)
{
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (strcmp(tape_ledger_row(ledger, i)->op, op) == 0)
            return tape_ledger_row(ledger, i);
    ck_abort_msg("no row of %s", op);
    return NULL;
}

/* Whose classes a row adds up with: its own; where there are too many, those of its line. */
static uint32_t adds_up_with(const struct tape_ledger *ledger, uint32_t i)
{
    static uint32_t first[64]; /* rows of lines; programs with so many rows have few */
    static uint32_t n;
    const struct tape_row *row = tape_ledger_row(ledger, i);
    if (ledger->residuals->n_classes < TAPE_CLASS_CHUNK * TAPE_CLASS_CHUNKS / 8 * 7)
        return i;
    n = i == 0 ? 0 : n;
    for (uint32_t k = 0; k < n; k++)
        if (tape_ledger_row(ledger, first[k])->pc == row->pc &&
            strcmp(tape_ledger_row(ledger, first[k])->op, row->op) == 0)
            return first[k];
    ck_assert_uint_lt(n, 64);
    return first[n++] = i;
}

/* The classes of each row add up to it, as integers. */
static void check_classes(const struct tape_ledger *ledger)
{
    const struct tape_residuals *r = ledger->residuals;
    ck_assert_ptr_nonnull(r);
    uint64_t *sum = calloc(ledger->n_rows, 5 * sizeof *sum);
    ck_assert_ptr_nonnull(sum);
    uint64_t disk = 0;
    uint32_t *with = calloc(ledger->n_rows, sizeof *with);
    ck_assert_ptr_nonnull(with);
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        with[i] = adds_up_with(ledger, i);
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct tape_class *c = tape_class_at(r, i);
        ck_assert_uint_lt(c->producer, ledger->n_rows);
        uint64_t *row = sum + (size_t)5 * with[c->producer];
        row[c->kind == TAPE_RECORD ? 0 : c->kind == TAPE_ADJOINT ? 1 : 2] += c->bytes;
        row[3] += c->live_bytes;
        row[4] += tape_class_at_peak(c, ledger->peak_count);
        const uint64_t gone =
            c->by_call + c->by_sweep + c->by_frame + c->by_rewind + c->by_reset + c->by_destroy;
        /* Room is live, and nobody's until it is used; what lies on disk is of another class. */
        if (c->kind == TAPE_DISK)
            ck_assert_uint_eq(c->bytes + c->count + gone, 0);
        else if (c->producer != TAPE_ROW_ROOM && ledger->disk_bytes == 0)
            ck_assert_uint_eq(c->bytes, c->live_bytes + gone);
        disk += c->kind == TAPE_DISK ? c->live_bytes : 0;
        ck_assert_uint_le(c->read_live_bytes, c->live_bytes + ledger->disk_bytes);
        ck_assert_uint_le(c->read_bytes, c->bytes);
        ck_assert(c->byte_ticks >= 0);
    }
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        uint64_t *of = sum + (size_t)5 * with[i];
        of[0] -= row->record_bytes;
        of[1] -= row->adjoint_bytes;
        of[2] -= row->value_bytes;
        of[3] -= row->live_bytes;
        of[4] -= tape_row_at_peak(ledger, row);
    }
    for (size_t i = 0; i < (size_t)5 * ledger->n_rows; i++)
        ck_assert_uint_eq(sum[i], 0);
    ck_assert_uint_eq(disk, ledger->disk_bytes);
    free(with);
    free(sum);
}

/* Replayed, the log comes to what each class has now. */
static void check_log(const struct tape_ledger *ledger)
{
    const struct tape_residuals *r = ledger->residuals;
    const struct tape_log *log = &r->log[r->current];
    ck_assert_uint_eq(r->now_version % 2, 0);
    static unsigned calls; /* long ones not every time: they are looked at after every call */
    if (log->n > 1000 && ++calls % 64 != 0)
        return;
    int64_t *live = calloc(r->n_classes + (size_t)1, sizeof *live);
    ck_assert_ptr_nonnull(live);
    for (uint32_t i = 0; i < log->n; i++)
        live[tape_change_at(log, i)->class_] += tape_change_at(log, i)->delta;
    for (uint32_t i = 0; i < r->n_classes && !log->truncated; i++)
        ck_assert_int_eq(live[i], (int64_t)tape_class_at(r, i)->live_bytes);
    free(live);
}

void observe_check_sums(const struct tape_ledger *ledger)
{
    check_classes(ledger);
    check_log(ledger);
    uint64_t bytes = 0, live = 0, peak = 0, forward = 0, backward = 0, recompute = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        bytes += row->record_bytes + row->value_bytes + row->adjoint_bytes;
        live += row->live_bytes;
        peak += tape_row_at_peak(ledger, row);
        forward += row->forward_ticks;
        backward += row->backward_ticks;
        recompute += row->recompute_ticks;
    }
    ck_assert_uint_eq(bytes, ledger->handed_out_bytes);
    ck_assert_uint_eq(live, ledger->live_bytes);
    ck_assert_uint_eq(peak, ledger->peak_bytes);
    ck_assert_uint_eq(forward, ledger->forward_ticks);
    ck_assert_uint_eq(backward, ledger->backward_ticks);
    ck_assert_uint_eq(recompute, ledger->recompute_ticks);
    ck_assert_uint_eq(ticks_of_ops[ledger->tape % TAPES], forward + recompute);
}

void observe_check_pairs(void)
{
    ck_assert_int_le(observe_n_events, OBSERVE_LOG);
    for (int i = 0; i < observe_n_events; i++) {
        const struct tape_event *pullback = &observe_event[i];
        if (pullback->kind != TAPE_EVENT_BACKWARD ||
            pullback->row->forward_ticks + pullback->row->recompute_ticks == 0)
            continue;
        int k = i - 1;
        while (k >= 0 && (observe_event[k].kind != TAPE_EVENT_FORWARD ||
                          observe_event[k].record != pullback->record))
            k--;
        ck_assert_msg(k >= 0, "a pullback of %s has no op", pullback->row->op);
        ck_assert_ptr_eq(observe_event[k].row, pullback->row);
    }
}

/* Beside the rows' bytes there is only the entry that stands for failed values. */
void observe_check_live(const struct tape_ledger *ledger, ad_tape tape)
{
    ad_stats stats;
    const int flushed = observe_n_flushed;
    tape_observe_flush(); /* statements of an open run are counted */
    observe_n_flushed = flushed;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    const uint64_t room = tape_ledger_row(ledger, TAPE_ROW_ROOM)->live_bytes;
    ck_assert_uint_eq(ledger->live_bytes - room, stats.live_bytes);
}
