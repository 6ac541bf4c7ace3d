/* test_tensor_program.c: a recording that is computed again on what its leaves and constants hold,
 * and what is refused. Every replay is compared bit for bit with a recording on another tape.
 */
#include <tapescope/ad_functional.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_tensor_program.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { BATCH = 6, WIDTH = 5, BATCHES = 4, N = BATCH * WIDTH, STEPS = 7 };

static const int64_t square[2] = {WIDTH, WIDTH}, row[1] = {WIDTH}, batch_shape[2] = {BATCH, WIDTH},
                     labels_shape[1] = {BATCH};
static double batch[BATCHES][N], w_data[WIDTH * WIDTH], b_data[WIDTH];
static int64_t labels[BATCHES][BATCH];
static int asked; /* for memory, of the tape's allocator */

static void *counted_resize(void *p, size_t bytes, void *payload)
{
    (void)payload;
    asked++;
    return realloc(p, bytes);
}

static void counted_release(void *p, void *payload)
{
    (void)payload;
    free(p);
}

static void *counted_reserve(size_t bytes, void *payload)
{
    (void)payload;
    asked++;
    void *p = aligned_alloc(2 << 20, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

static void counted_unreserve(void *p, size_t bytes, void *payload)
{
    (void)payload;
    (void)bytes;
    free(p);
}

static const ad_allocator counted = {counted_reserve, counted_unreserve, counted_resize,
                                     counted_release, NULL};
static const ad_tape_options small = {
    .budget_bytes = 4 << 20, .reserve_bytes = 4 << 20, .allocator = &counted};

static void numbers_set(void)
{
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < N; i++)
            batch[k][i] = ((i * 37 + k * 11) % 61 - 30) / 25.0;
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < BATCH; i++)
            labels[k][i] = (i * 3 + k) % WIDTH;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w_data[i] = (i * 7 % 13 - 6) / 10.0;
    for (int i = 0; i < WIDTH; i++)
        b_data[i] = (i - 2) / 8.0;
}

static void setup(void)
{
    numbers_set();
    tape_begin(&small);
}

/* ---- training ---- */

struct model {
    ad_tensor w, b, x, labels, loss, right;
};

/* right: how many rows have their largest element where the label says; no gradient goes there. */
static void model_record(ad_tape t, struct model *m)
{
    ad_frame frame = ad_frame_begin(t);
    ad_tensor z = ad_linear(ad_tanh(ad_linear(m->x, m->w, m->b)), m->w, m->b);
    ad_tensor best = ad_argmax(z, 1, 0);
    m->right = ad_sum(ad_equal(ad_cast(best, AD_F64), ad_cast(m->labels, AD_F64)));
    m->loss =
        ad_add(ad_softmax_cross_entropy(z, m->labels), ad_mean(ad_square(ad_transpose(m->x))));
    ad_frame_end(frame, (ad_tensor[]){m->loss, m->right}, 2);
}

static void model_begin(ad_tape t, struct model *m)
{
    m->w = ad_leaf(t, AD_F64, 2, square, w_data);
    m->b = ad_leaf(t, AD_F64, 1, row, b_data);
    m->x = ad_constant(t, AD_F64, 2, batch_shape, batch[0]);
    m->labels = ad_constant(t, AD_I64, 1, labels_shape, labels[0]);
}

struct step {
    double loss, right, w[WIDTH * WIDTH], b[WIDTH];
};

/* The gradients, and a step along them. */
static void step_take(const struct model *m, struct step *s)
{
    s->loss = ad_item(m->loss);
    s->right = ad_item(m->right);
    check_ok(ad_backward(m->loss));
    check_ok(ad_gradient(m->w, s->w, WIDTH * WIDTH));
    check_ok(ad_gradient(m->b, s->b, WIDTH));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w_data[i] -= 0.5 * s->w[i];
    for (int i = 0; i < WIDTH; i++)
        b_data[i] -= 0.5 * s->b[i];
}

static void train_by_recordings(struct step *steps)
{
    struct model m;
    ad_tape t;
    check_ok(ad_tape_create(&t, NULL));
    for (int k = 0; k < STEPS; k++) {
        check_ok(ad_tape_reset(t));
        m.w = ad_leaf(t, AD_F64, 2, square, w_data);
        m.b = ad_leaf(t, AD_F64, 1, row, b_data);
        m.x = ad_constant(t, AD_F64, 2, batch_shape, batch[k % BATCHES]);
        m.labels = ad_constant(t, AD_I64, 1, labels_shape, labels[k % BATCHES]);
        model_record(t, &m);
        step_take(&m, &steps[k]);
    }
    check_ok(ad_tape_destroy(t));
}

TEST(training_by_replays_is_training_by_recordings_and_asks_for_no_memory)
{
    static struct step want[STEPS], got[STEPS];
    struct model m;
    train_by_recordings(want);
    numbers_set();
    model_begin(tape, &m);
    check_ok(ad_tensor_program_begin(tape));
    model_record(tape, &m);
    check_ok(ad_tensor_program_end(tape));
    step_take(&m, &got[0]);
    const uint64_t records = stats().records, live = stats().live_bytes;
    const int before = asked;
    for (int k = 1; k < STEPS; k++) {
        const ad_tensor x[2] = {m.x, m.labels};
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_tensor_replay(tape, 2, x,
                                  (const void *const[]){batch[k % BATCHES], labels[k % BATCHES]}));
        step_take(&m, &got[k]);
    }
    ck_assert_int_eq(asked, before);
    ck_assert_uint_eq(stats().records, records);
    ck_assert_uint_eq(stats().live_bytes, live);
    ck_assert_int_eq(memcmp(got, want, sizeof got), 0);
    ck_assert_int_ne(memcmp(&want[0], &want[1], sizeof want[0]), 0);
}

/* ---- what depends on inputs in other ways ---- */

/* Views of x, a detached one, what no_grad computes of that, and a copy of an array. */
static ad_tensor views(ad_tensor x, ad_tensor copy)
{
    ad_tensor part = ad_slice(x, 0, 1, 4, 1);
    ad_tensor turned = ad_transpose(part), fixed = ad_detach(turned);
    check_ok(ad_tape_no_grad_begin(tape));
    ad_tensor weight = ad_exp(ad_mul(fixed, ad_scalar_f64(tape, 0.25)));
    check_ok(ad_tape_no_grad_end(tape));
    return ad_sum(ad_mul(ad_mul(turned, weight), ad_tanh(copy)));
}

TEST(views_detached_tensors_copies_and_no_grad_follow)
{
    double got[2][N + WIDTH * 3], want[2][N + WIDTH * 3];
    const int64_t copy_shape[2] = {WIDTH, 3};
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    ad_tensor copy = ad_leaf_copy(tape, AD_F64, 2, copy_shape, batch[1]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = views(x, copy);
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_tensor_replay(tape, 2, (ad_tensor[]){x, copy},
                              (const void *const[]){batch[2], batch[3]}));
    for (int k = 0; k < 2; k++) {
        double *to = k == 0 ? got[0] : want[0];
        check_ok(ad_backward(y));
        check_ok(ad_gradient(x, to, N));
        check_ok(ad_gradient(copy, to + N, WIDTH * 3));
        (k == 0 ? got : want)[1][0] = ad_item(y);
        if (k == 1)
            break;
        check_ok(ad_tape_reset(tape));
        x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[2]);
        copy = ad_leaf_copy(tape, AD_F64, 2, copy_shape, batch[3]);
        y = views(x, copy);
    }
    ck_assert_int_eq(memcmp(got[0], want[0], sizeof got[0]), 0);
    ck_assert_double_eq(got[1][0], want[1][0]);
}

TEST(recorded_derivatives_are_part_of_a_program)
{
    const ad_tensor ones = {0, 0, 0, 0};
    double got[N], want[N];
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]), g;
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_exp(ad_mul(x, x)));
    check_ok(ad_create_graph(y, ones, 1, &x, &g));
    ad_tensor penalty = ad_sum(ad_square(g));
    check_ok(ad_tensor_program_end(tape));
    memcpy(batch[0], batch[1], sizeof batch[0]); /* written to in place */
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    check_ok(ad_backward(penalty));
    check_ok(ad_gradient(x, got, N));
    const double value = ad_item(penalty);
    check_ok(ad_tape_reset(tape));
    x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[1]);
    y = ad_sum(ad_exp(ad_mul(x, x)));
    check_ok(ad_create_graph(y, ones, 1, &x, &g));
    penalty = ad_sum(ad_square(g));
    check_ok(ad_backward(penalty));
    check_ok(ad_gradient(x, want, N));
    ck_assert_double_eq(value, ad_item(penalty));
    ck_assert_int_eq(memcmp(got, want, sizeof got), 0);
}

/* What a replay alone needs is not what sweeps read. */
TEST(what_is_saved_for_backward_is_what_pullbacks_read)
{
    ad_saved saved[2];
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_reset(tape));
        ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
        if (k == 1)
            check_ok(ad_tensor_program_begin(tape));
        ad_sum(ad_exp(ad_add(ad_scale(x, 2), x)));
        ad_sum(ad_tanh(ad_detach(x))); /* its result is what a pullback would read */
        if (k == 1)
            check_ok(ad_tensor_program_end(tape));
        check_ok(ad_tape_saved_for_backward(tape, &saved[k]));
    }
    ck_assert_uint_eq(saved[0].buffers, saved[1].buffers);
    ck_assert_uint_eq(saved[0].buffer_bytes, saved[1].buffer_bytes);
}

/* A released tensor is computed again, into its own buffer. */
TEST(what_is_released_in_a_program_stays_for_replays)
{
    double got[N], want[N];
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor h = ad_scale(x, 2), y = ad_square(ad_add(h, x));
    check_ok(ad_release(h));
    ad_tensor filler = ad_exp(x); /* would take its buffer */
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_tensor_replay(tape, 1, &x, (const void *const[]){batch[1]}));
    check_ok(ad_value(y, got, N));
    for (int i = 0; i < N; i++)
        want[i] = (2 * batch[1][i] + batch[1][i]) * (2 * batch[1][i] + batch[1][i]);
    ck_assert_int_eq(memcmp(got, want, sizeof got), 0);
    check_ok(ad_value(filler, got, N));
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(got[i], exp(batch[1][i]), 1e-12);
}

/* A tensor without elements may have no array. */
TEST(empty_arrays_are_bound_as_well)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, (int64_t[]){0, 3}, NULL);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_exp(ad_transpose(x)));
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_tensor_replay(tape, 1, &x, (const void *const[]){NULL}));
    ck_assert_double_eq(ad_item(y), 0);
    check_ok(ad_backward(y));
}

/* ---- ops of the user's own ---- */

static int forwards; /* calls */

/* y = own x, z = x^2; own begins as 2 and is 3 afterwards: another call begins with 2 again. A
 * number above 100 is refused. */
static ad_status custom_forward(ad_custom_call *c, void *payload)
{
    const double *x = c->in[0].data;
    double *factor = c->own, *y = c->out[0].data, *z = c->out[1].data;
    forwards++;
    ck_assert_ptr_eq(payload, batch);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        if (x[i] > 100) {
            snprintf(c->message, AD_CUSTOM_MESSAGE, "it is above 100");
            return AD_ERROR_VALUE;
        }
        y[i] = *factor * x[i];
        z[i] = x[i] * x[i];
    }
    *factor += 1;
    return AD_OK;
}

static ad_status custom_pullback(ad_custom_call *c, void *payload)
{
    const double *x = c->in[0].data, *y = c->out_adjoint[0].data, *z = c->out_adjoint[1].data;
    (void)payload;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->in_adjoint[0].data)[i] +=
            (*(double *)c->own - 1) * (y ? y[i] : 0) + 2 * x[i] * (z ? z[i] : 0);
    return AD_OK;
}

static void custom(ad_tensor x, ad_tensor *y)
{
    static const double factor = 2;
    const ad_custom_array like = {.dtype = AD_F64, .rank = 2, .shape = {BATCH, WIDTH}};
    const ad_custom_rule rule = {.name = "own",
                                 .forward = custom_forward,
                                 .pullback = custom_pullback,
                                 .saves = AD_SAVES_OPERANDS,
                                 .own_bytes = sizeof factor,
                                 .own = &factor,
                                 .results = (ad_custom_array[]){like, like}};
    check_ok(ad_custom(tape, &rule, batch, 1, &x, 2, y));
}

/* Of a leaf, and of what needs no gradient. */
TEST(ops_of_the_users_own_are_called_again)
{
    double got[N], gradient[N];
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]), y[2], fixed[2];
    check_ok(ad_tensor_program_begin(tape));
    custom(x, y);
    custom(ad_detach(x), fixed);
    ad_tensor sum = ad_add(ad_add(y[0], y[1]), ad_mul(fixed[0], fixed[1]));
    ad_tensor loss = ad_sum(sum);
    check_ok(ad_tensor_program_end(tape));
    forwards = 0;
    for (int k = 1; k < 3; k++) {
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_tensor_replay(tape, 1, &x, (const void *const[]){batch[k]}));
        ck_assert_int_eq(forwards, 2 * k);
        check_ok(ad_value(sum, got, N));
        check_ok(ad_backward(loss));
        check_ok(ad_gradient(x, gradient, N));
        for (int i = 0; i < N; i++) {
            const double a = batch[k][i];
            ck_assert_double_eq_tol(got[i], 2 * a + a * a + 2 * a * (a * a), 1e-13);
            ck_assert_double_eq_tol(gradient[i], 2 + 2 * a, 1e-13);
        }
    }
    batch[2][7] = 101;
    check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_VALUE,
                       "own: its forward failed: it is above 100; the call is at "
                       "test_tensor_program.c:");
    check_call_refused(ad_backward(loss), AD_ERROR_STATE, "has failed: some values are new");
}

/* ---- arrays that change ---- */

TEST(an_array_that_changes_after_a_replay_is_found_by_the_sweep)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_square(x));
    check_ok(ad_tensor_program_end(tape));
    batch[0][3] += 1;
    ck_assert(ad_leaf_changed(x));
    check_call_refused(ad_backward(y), AD_ERROR_STATE, "changed after square");
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    ck_assert(!ad_leaf_changed(x));
    check_ok(ad_backward(y));
    check_ok(ad_tensor_replay(tape, 1, &x, (const void *const[]){batch[1]}));
    batch[0][3] += 1; /* it reads another */
    check_ok(ad_backward(y));
    batch[1][3] += 1;
    check_call_refused(ad_backward(y), AD_ERROR_STATE, "changed after square");
}

/* ---- what a program cannot have ---- */

static void checkpointed(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    (void)t, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_exp(in[0]);
}

static ad_tensor residual(ad_tape t, ad_tensor y, int n, const ad_tensor *x, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sub(ad_mul(y, y), ad_exp(x[0]));
}

static ad_tensor input; /* of what is refused: a leaf, or a constant */

static void have_checkpoint(void)
{
    ad_tensor y;
    ad_checkpoint(tape, checkpointed, NULL, 1, &input, 1, &y);
}

static void have_root(void)
{
    ad_tensor guess = ad_constant(tape, AD_F64, 2, batch_shape, batch[3]);
    for (int i = 0; i < N; i++)
        batch[3][i] = 1;
    ad_root(tape, residual, NULL, guess, 1, &input, NULL);
}

static void have_dropout(void)
{
    ad_dropout(input, 0.5, 3);
}

static void have_value(void)
{
    double out[N];
    ad_value(ad_exp(input), out, N);
}

static void have_item(void)
{
    ad_item(ad_sum(ad_exp(input)));
}

static void have_view_read(void)
{
    double out[N];
    ad_value(ad_transpose(ad_exp(input)), out, N);
}

static void have_elements(void)
{
    ad_real out[N];
    ad_reals_of_tensor(ad_exp(input), N, out);
}

static const struct refused {
    void (*have)(void);
    const char *leaf, *constant; /* in the message, where the input is one */
} refused[] = {
    {have_checkpoint, "checkpoint", "exp"},
    {have_root, "root", "root"},
    {have_dropout, "dropout", "dropout"},
    {have_value, "value", "value"},
    {have_item, "item", "item"},
    {have_view_read, "value", "value"},
    {have_elements, "reals_of_tensor", "reals_of_tensor"},
};

TEST_EACH(what_cannot_be_computed_again_is_refused_with_its_line,
          2 * sizeof refused / sizeof *refused)
{
    const struct refused *r = &refused[_i / 2];
    char words[64];
    check_ok(ad_tape_record_begin(tape));
    input = _i % 2 ? ad_constant(tape, AD_F64, 2, batch_shape, batch[0])
                   : ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_exp(input));
    r->have();
    check_ok(ad_tape_status(tape));
    ck_assert_int_eq(ad_tensor_program_end(tape), AD_ERROR_STATE);
    snprintf(words, sizeof words,
             "tensor_program_end: %s at test_tensor_program.c:", _i % 2 ? r->constant : r->leaf);
    check_error(AD_ERROR_STATE, words);
    check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_STATE, "no program");
    if (_i % 2 == 0)
        check_ok(ad_backward(y)); /* what was recorded stays */
    check_ok(ad_tape_record_end(tape));
}

TEST(leaves_and_constants_may_be_read_and_made)
{
    double out[N];
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    ad_tensor c = ad_leaf_copy(tape, AD_F64, 2, batch_shape, batch[1]);
    check_ok(ad_value(x, out, N));
    check_ok(ad_value(c, out, N));
    ck_assert_double_eq(ad_item(ad_scalar_f64(tape, 2)), 2);
    ad_tensor y = ad_sum(ad_mul(x, ad_mul(c, ad_scalar_f64(tape, 2))));
    check_ok(ad_tensor_program_end(tape));
    const double before = ad_item(y);
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    ck_assert_double_eq(ad_item(y), before);
}

TEST(sweeps_wait_for_the_end_and_may_not_release)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_exp(x));
    check_call_refused(ad_backward(y), AD_ERROR_STATE, "backward: not while a program is recorded");
    check_ok(ad_tensor_program_end(tape));
    check_call_refused(ad_backward_release(y), AD_ERROR_STATE, "a replay needs what it would give");
    check_ok(ad_backward(y));
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
}

/* ---- its life ---- */

TEST(what_lies_behind_a_program_goes_before_a_replay)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_exp(x));
    check_ok(ad_tensor_program_end(tape));
    const ad_mark mark = ad_tape_mark(tape);
    ad_tensor z = ad_square(y);
    check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_STATE,
                       "square at test_tensor_program.c:");
    check_ok(ad_backward(z));
    check_ok(ad_tape_rewind(tape, mark));
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    check_ok(ad_backward(y));
}

TEST(a_rewind_or_a_reset_drops_a_program)
{
    for (int k = 0; k < 4; k++) {
        check_ok(ad_tape_reset(tape));
        ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
        const ad_mark before = ad_tape_mark(tape);
        check_ok(ad_tensor_program_begin(tape));
        ad_tensor y = ad_exp(x);
        const ad_mark within = ad_tape_mark(tape);
        ad_tensor sum = ad_sum(y);
        if (k == 3) { /* it is still being recorded */
            check_ok(ad_tape_rewind(tape, within));
            sum = ad_mean(y);
        }
        check_ok(ad_tensor_program_end(tape));
        check_ok(k == 0   ? ad_tape_reset(tape)
                 : k == 1 ? ad_tape_rewind(tape, before)
                 : k == 2 ? ad_tape_rewind(tape, within)
                          : AD_OK);
        if (k == 3) {
            check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
            check_ok(ad_backward(sum));
        } else {
            check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_STATE,
                               "the tape has no program");
        }
    }
}

TEST(a_program_begins_on_a_tape_without_records)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_call_refused(ad_tensor_program_end(tape), AD_ERROR_STATE, "no program is being recorded");
    const ad_mark mark = ad_tape_mark(tape);
    ad_exp(x);
    check_call_refused(ad_tensor_program_begin(tape), AD_ERROR_STATE,
                       "exp at test_tensor_program.c:");
    check_ok(ad_tape_rewind(tape, mark));
    check_ok(ad_tensor_program_begin(tape));
    check_ok(ad_tensor_program_begin(tape)); /* it is empty yet */
    ad_exp(x);
    check_call_refused(ad_tensor_program_begin(tape), AD_ERROR_STATE,
                       "in a program that has no end");
    check_ok(ad_tensor_program_end(tape));
}

static double refused_in_function;

static ad_tensor replaying(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)n, (void)payload;
    refused_in_function = ad_tensor_replay(t, 0, NULL, NULL);
    return ad_sum(x[0]);
}

TEST(handles_and_arguments_are_checked_before_anything_changes)
{
    void *gradients[1] = {NULL};
    const int64_t counts[1] = {N};
    double gradient[N];
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor h = ad_exp(x), y = ad_sum(h), v = ad_transpose(x);
    check_ok(ad_tensor_program_end(tape));
    const double before = ad_item(y);
    const void *const to[2] = {batch[1], NULL};
    check_call_refused(ad_tensor_replay(tape, -1, &x, to), AD_ERROR_ARGUMENT, "n is negative");
    check_call_refused(ad_tensor_replay(tape, 1, NULL, to), AD_ERROR_ARGUMENT, "a null pointer");
    check_call_refused(ad_tensor_replay(tape, 1, &x, NULL), AD_ERROR_ARGUMENT, "a null pointer");
    check_call_refused(ad_tensor_replay(tape, 2, (ad_tensor[]){x, x}, to), AD_ERROR_ARGUMENT,
                       "arrays[1] is a null pointer");
    check_call_refused(ad_tensor_replay(tape, 2, (ad_tensor[]){x, h}, to), AD_ERROR_HANDLE,
                       "x[1] is neither a leaf nor a constant");
    check_call_refused(ad_tensor_replay(tape, 2, (ad_tensor[]){x, v}, to), AD_ERROR_HANDLE,
                       "x[1] is neither a leaf nor a constant");
    check_call_refused(ad_tensor_replay(tape, 2, (ad_tensor[]){x, {0, 0, 0, 0}}, to),
                       AD_ERROR_HANDLE, "x[1]");
    gradients[0] = gradient;
    const ad_status status =
        ad_value_and_gradient(tape, replaying, 1, &x, NULL, NULL, gradients, counts);
    ck_assert_int_eq((int)refused_in_function, AD_ERROR_STATE);
    check_call_refused(status, AD_ERROR_STATE, "tensor_replay: not while a");
    ck_assert_double_eq(ad_item(y), before);
    check_ok(ad_backward(y));
    check_ok(ad_tensor_replay(tape, 1, &x, to));
    ck_assert_double_ne(ad_item(y), before);
}

/* ---- failures ---- */

TEST(a_replay_that_fails_is_swept_no_more)
{
    double got[N], want[N];
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    ad_tensor rows = ad_constant(tape, AD_I64, 1, (int64_t[]){2}, labels[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_square(ad_index_select(ad_exp(x), rows, 0)));
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_backward(y));
    check_ok(ad_gradient(x, want, N));
    labels[0][1] = BATCH;
    check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_VALUE,
                       "test_tensor_program.c:");
    check_call_refused(ad_backward(y), AD_ERROR_STATE, "has failed: some values are new");
    check_call_refused(ad_create_graph(y, (ad_tensor){0, 0, 0, 0}, 1, &x, &rows), AD_ERROR_STATE,
                       "has failed");
    labels[0][1] = 3 % WIDTH;
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    check_ok(ad_backward(y));
    check_ok(ad_gradient(x, got, N));
    ck_assert_int_eq(memcmp(got, want, sizeof got), 0);
}

TEST(a_trap_looks_at_replays)
{
    for (int i = 0; i < N; i++)
        batch[0][i] = i + 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor y = ad_sum(ad_log(ad_square(x)));
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_tape_trap(tape, AD_TRAP_ALL));
    batch[0][2] = 0;
    check_call_refused(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_NONFINITE, "log");
    batch[0][2] = 1;
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    check_ok(ad_backward(y));
}

RUN_TESTS(setup, teardown)
