/* test_account_paths.c: rows by call path, with paths of the test's own: what each path is charged.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "tape_residuals.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4 };

static const int64_t shape[1] = {SIZE};
static const double data[SIZE] = {0.25, 0.5, 0.75, 1};
static ad_tape tape;

/* What the next ops are told, and what they said. */
static uint32_t path_now;
static uintptr_t last_site;
static int asked;

static uint32_t path(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root)
{
    (void)root;
    ck_assert_ptr_eq(hook, &observe_hook);
    last_site = site;
    asked++;
    return path_now;
}

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    observe_hook.path = path;
    observe_begin(UINT64_MAX);
    tape = observe_tape();
    path_now = 0;
    asked = 0;
}

static void teardown(void)
{
    tape_observe_end();
    observe_hook.path = NULL;
    observe_hook.path_cut = NULL;
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* One call of tanh, so that its rows differ by their path alone. */
__attribute__((noinline)) static ad_tensor layer(uint32_t on, ad_tensor x)
{
    path_now = on;
    return ad_tanh(x);
}

static const struct tape_row *row_of(const struct tape_ledger *ledger, const char *op, uint32_t on)
{
    const struct tape_row *found = NULL;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (row->path != on || strcmp(row->op, op) != 0)
            continue;
        ck_assert_msg(found == NULL, "two rows of %s on path %u", op, on);
        found = row;
    }
    ck_assert_msg(found != NULL, "no row of %s on path %u", op, on);
    return found;
}

TEST(a_line_has_a_row_for_each_path_that_leads_to_it)
{
    path_now = 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = layer(3, layer(2, layer(2, x)));
    path_now = 4;
    ad_tensor s = ad_sum(y);
    path_now = 5;
    ck_assert_int_eq(ad_backward(s), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *two = row_of(ledger, "tanh", 2), *three = row_of(ledger, "tanh", 3);
    ck_assert_uint_eq(two->pc, three->pc);
    ck_assert_uint_eq(two->calls, 2);
    ck_assert_uint_eq(three->calls, 1);
    /* A pullback belongs to the path that recorded its op, the sweep's own to that of the call. */
    ck_assert_uint_eq(two->backward_calls, 2);
    ck_assert_uint_eq(two->backward_ticks, 2);
    ck_assert_uint_eq(three->backward_ticks, 1);
    ck_assert_uint_eq(row_of(ledger, "leaf", 1)->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "sum", 4)->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "backward", 5)->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "padding", 0)->path, 0);
    ck_assert_int_eq(asked, 6);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

TEST(the_path_is_asked_for_by_the_return_address_of_the_call)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    layer(7, x);
    ck_assert_uint_eq(last_site, row_of(observe_ledger(), "tanh", 7)->pc);
}

TEST(recorded_derivatives_stay_on_the_path_of_their_op)
{
    path_now = 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data), gradient;
    ad_tensor y = layer(2, x);
    path_now = 3;
    ad_tensor s = ad_sum(y);
    path_now = 4;
    asked = 0;
    ck_assert_int_eq(ad_create_graph(s, (ad_tensor){0}, 1, &x, &gradient), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t more = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        ck_assert(row->path != 4 || row->calls == 0 || row->forward_ticks == 0 ||
                  strcmp(row->op, "ones") == 0 || strcmp(row->op, "create_graph") == 0);
        more += row->path == 2 && strcmp(row->op, "tanh") != 0 ? row->calls : 0;
    }
    ck_assert_uint_gt(more, 0);
    path_now = 5; /* and what follows is asked for again */
    ad_exp(x);
    ck_assert_uint_eq(row_of(observe_ledger(), "exp", 5)->calls, 1);
    observe_check_sums(ledger);
}

/* The time of all that ad_create_graph does is the call's, and no line's whose derivative it is:
 * these have the bytes. With a clock that moves as it is read, and with counting timed apart. */
TEST(what_is_taken_to_record_derivatives_is_the_call_s)
{
    for (int apart = 0; apart < 2; apart++) {
        tape_observe_end();
        observe_hook.apart = apart;
        observe_begin(UINT64_MAX);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        path_now = 1;
        ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data), gradient;
        ad_tensor y = layer(2, x);
        path_now = 3;
        ad_tensor s = ad_sum(y);
        path_now = 4;
        const uint64_t forward = observe_ledger()->forward_ticks, begun = observe_ticks;
        ck_assert_int_eq(ad_create_graph(s, (ad_tensor){0}, 1, &x, &gradient), AD_OK);
        const struct tape_ledger *ledger = observe_ledger();
        const struct tape_row *graph = row_of(ledger, "create_graph", 4);
        ck_assert_uint_eq(graph->calls, 1);
        ck_assert_uint_gt(graph->forward_ticks, 0);
        ck_assert_uint_le(graph->forward_ticks, observe_ticks - begun);
        ck_assert_uint_eq(graph->forward_ticks, ledger->forward_ticks - forward);
        ck_assert_uint_gt(graph->forward_flops, 0);
        uint64_t derivatives = 0, bytes = 0;
        for (uint32_t i = 0; i < ledger->n_rows; i++) {
            const struct tape_row *row = tape_ledger_row(ledger, i);
            if (row->path != 2 || strcmp(row->op, "tanh") == 0)
                continue;
            ck_assert_uint_eq(row->forward_ticks, 0);
            ck_assert_uint_eq(row->forward_flops, 0);
            derivatives += row->calls;
            bytes += row->live_bytes;
        }
        ck_assert_uint_gt(derivatives, 0);
        ck_assert_uint_gt(bytes, 0);
        ck_assert_uint_eq(row_of(ledger, "tanh", 2)->forward_ticks, 1);
        ck_assert_int_eq(ad_backward(ad_sum(gradient)), AD_OK);
        observe_check_sums(observe_ledger());
        /* What follows has its own time again. */
        ck_assert_uint_eq(graph->calls, 1);
        const uint64_t before = graph->forward_ticks;
        path_now = 5;
        ad_exp(x);
        ck_assert_uint_gt(row_of(observe_ledger(), "exp", 5)->forward_ticks, 0);
        ck_assert_uint_eq(graph->forward_ticks, before);
    }
}

/* What the thread says that it does while derivatives are recorded. */
static const struct tape_now *published;

static void note_thread(struct tape_hook *hook, const struct tape_now *now)
{
    (void)hook;
    published = now;
}

static uint32_t look_path(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root)
{
    (void)hook, (void)site, (void)root;
    return path_now;
}

static bool said_wrong;
static size_t said;

/* The clock is read as each op begins and ends. */
static uint64_t looking_clock(void)
{
    if (published && published->doing.op && path_now == 4) {
        said++;
        said_wrong = said_wrong || strcmp(published->doing.op, "create_graph") != 0 ||
                     published->doing.path != 4 || published->doing.phase != TAPE_PHASE_FORWARD;
    }
    return ++observe_ticks;
}

TEST(samples_while_derivatives_are_recorded_are_the_call_s)
{
    uint64_t (*const clock)(void) = observe_hook.clock;
    tape_observe_end();
    observe_hook.path = look_path;
    observe_hook.thread = note_thread;
    observe_hook.clock = looking_clock;
    observe_begin(UINT64_MAX);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    path_now = 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data), gradient;
    ad_tensor s = ad_sum(layer(2, x));
    said = said_wrong = 0;
    path_now = 4;
    ck_assert_int_eq(ad_create_graph(s, (ad_tensor){0}, 1, &x, &gradient), AD_OK);
    path_now = 5;
    ck_assert_uint_gt(said, 2);
    ck_assert(!said_wrong);
    tape_observe_end();
    observe_hook.clock = clock;
    observe_hook.thread = NULL;
    published = NULL;
    observe_begin(UINT64_MAX);
}

__attribute__((noinline)) static ad_real step(ad_real y, ad_real x)
{
    ad_set(&y, ad_real_mul(y, x));
    return y;
}

TEST(a_run_of_statements_belongs_to_the_path_where_it_opened)
{
    ad_real x;
    path_now = 1;
    ck_assert_int_eq(ad_real_leaves(tape, 1, (double[]){0.5}, &x), AD_OK);
    path_now = 2;
    ad_real y = step(x, x); /* opens a run */
    path_now = 3;
    y = step(y, x); /* goes on with it */
    ad_exp(ad_leaf(tape, AD_F64, 1, shape, data));
    y = step(y, x); /* opens another */
    const int before = asked;
    path_now = 4;
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(asked, before + 1);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t calls[5] = {0};
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, "statement") == 0)
            calls[row->path] += row->calls;
    }
    ck_assert_uint_eq(calls[2], 2);
    ck_assert_uint_eq(calls[3], 1);
    observe_check_sums(ledger);
    ad_tape_reset(tape);
    ledger = observe_ledger();
    ck_assert_uint_eq(ledger->live_bytes, 0);
    observe_check_sums(ledger);
}

TEST(a_fork_is_joined_on_the_path_of_the_join)
{
    ad_real x, y;
    ad_tape fork;
    path_now = 1;
    ck_assert_int_eq(ad_real_leaves(tape, 1, (double[]){0.5}, &x), AD_OK);
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    path_now = 2;
    y = step(x, x);
    ck_assert_int_eq(ad_tape_record_end(fork), AD_OK);
    path_now = 3;
    ck_assert_int_eq(ad_tape_join(tape, fork, 1, &y), AD_OK);
    path_now = 4;
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_n_flushed = 0;
    tape_observe_flush();
    uint64_t on[5] = {0};
    for (int k = 0; k < observe_n_flushed; k++) {
        const struct tape_ledger *ledger = observe_flushed[k].ledger;
        observe_check_sums(ledger);
        for (uint32_t i = 0; i < ledger->n_rows; i++)
            on[tape_ledger_row(ledger, i)->path] += tape_ledger_row(ledger, i)->calls;
    }
    ck_assert_uint_eq(on[2], 1); /* the statement, of the fork's own tape */
    ck_assert_uint_eq(on[3], 1); /* the join */
    ck_assert_uint_eq(on[4], 1); /* the sweep */
}

TEST(a_profile_without_paths_asks_for_none_and_keeps_the_rows_of_before)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    layer(2, x);
    tape_observe_end();
    observe_hook.path = NULL;
    asked = 0;
    observe_begin(UINT64_MAX);
    layer(3, x);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_int_eq(asked, 0);
    ck_assert_uint_eq(row_of(ledger, "tanh", 0)->calls, 1);
    /* What was recorded on a path is charged to it still. */
    ck_assert_uint_eq(row_of(ledger, "tanh", 2)->value_bytes, SIZE * sizeof(double));
    observe_check_sums(ledger);
}

enum { CUT = 1 << 20, OFTEN = 1000 };

static uint32_t path_cut(struct tape_hook *hook, uint32_t path, uintptr_t site, unsigned keep)
{
    ck_assert_ptr_eq(hook, &observe_hook);
    ck_assert(keep == 0 || path == path_now);
    last_site = keep > 0 ? site : last_site;
    return keep == TAPE_PATH_KEPT ? CUT : CUT + 1 + keep;
}

TEST(lines_have_rows_where_there_is_no_room_for_their_paths)
{
    const uint32_t n = TAPE_ROW_CHUNK * TAPE_ROW_CHUNKS;
    observe_hook.path_cut = path_cut;
    path_now = 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    const ad_mark mark = ad_tape_mark(tape);
    for (uint32_t i = 0; i < n; i++) {
        layer(2 + i, x);
        if (i % 4096 == 0)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    path_now = n + 2;
    ad_tensor y = ad_exp(layer(2, x));
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t whole = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        whole += row->path < CUT && strcmp(row->op, "tanh") == 0;
    }
    ck_assert_uint_ge(whole, n / 2);
    const struct tape_row *cut = row_of(ledger, "tanh", CUT);
    ck_assert_uint_eq(cut->calls, n - whole);
    ck_assert_uint_eq(cut->forward_ticks, n - whole);
    ck_assert_uint_eq(cut->pc, row_of(ledger, "tanh", 2)->pc);
    /* A path that has a row keeps it, and a line that comes late gets one. */
    ck_assert_uint_eq(row_of(ledger, "tanh", 2)->calls, 2);
    ck_assert_uint_eq(row_of(ledger, "exp", CUT)->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "exp", CUT)->pc, last_site);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    ck_assert_uint_eq(row_of(ledger, "exp", CUT)->backward_calls, 1);
    const struct tape_row *other = tape_ledger_row(ledger, TAPE_ROW_OTHER);
    ck_assert_uint_eq(other->calls + other->record_bytes + other->value_bytes, 0);
    /* There are fewer classes of bytes than rows: those of later paths are of the line. */
    const struct tape_residuals *r = ledger->residuals;
    uint64_t of_line[TAPE_RESIDUAL_KINDS] = {0}, of_paths = 0;
    ck_assert_uint_eq(tape_class_at(r, 0)->bytes, 0);
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct tape_class *c = tape_class_at(r, i);
        const struct tape_row *row = tape_ledger_row(ledger, c->producer);
        if (strcmp(row->op, "tanh") != 0)
            continue;
        if (row->path == CUT + 1)
            of_line[c->kind] += c->bytes;
        else
            of_paths += c->bytes;
        ck_assert(row->path != CUT + 1 || row->calls == 0);
    }
    ck_assert_uint_gt(of_paths, 0);
    ck_assert_uint_gt(of_line[TAPE_RECORD], 0);
    ck_assert_uint_gt(of_line[TAPE_SAVED], 0);
    ck_assert_uint_eq(of_line[TAPE_VALUE], 0); /* each tanh is saved for its own pullback */
    observe_check_sums(ledger);
    /* A path that comes late and often gets a row, too; its first calls stay where they are. */
    const uint64_t before = cut->calls;
    path_now = n + 3;
    for (int i = 0; i < OFTEN; i++)
        layer(path_now, x);
    const uint64_t own = row_of(ledger, "tanh", n + 3)->calls;
    ck_assert_uint_ge(own, OFTEN - 40);
    ck_assert_uint_eq(own + cut->calls, before + OFTEN);
}

RUN_TESTS(setup, teardown)
