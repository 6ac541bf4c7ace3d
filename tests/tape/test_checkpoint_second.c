/* test_checkpoint_second.c: derivatives recorded through checkpoints: those without one bit for
 * bit, and those of differences.
 */
#include "run_cases.h"

#include <tapescope/ad.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 4, SIZE = N * N, LEAVES = 2, LAYERS = 16 };

static const int64_t square[2] = {N, N};
static double data[LEAVES][SIZE];
static ad_tensor leaf[LEAVES];
static const ad_tensor ones = {0, 0, 0, 0};

static void setup(void)
{
    for (int k = 0; k < LEAVES; k++)
        for (int i = 0; i < SIZE; i++)
            data[k][i] = (i * (37 - 10 * k) % SIZE + 3.5) / 23 + (i % (N + 1) ? 0 : 1);
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    tape_begin(&small);
    for (int k = 0; k < LEAVES; k++)
        leaf[k] = ad_leaf(tape, AD_F64, 2, square, data[k]);
}

/* ---- functions ---- */

typedef ad_tensor op(ad_tensor a, ad_tensor b);

static ad_tensor do_tanh(ad_tensor a, ad_tensor b)
{
    return ad_mul(ad_tanh(a), b);
}
static ad_tensor do_exp(ad_tensor a, ad_tensor b)
{
    return ad_div(ad_exp(a), ad_add(b, ad_square(a)));
}
static ad_tensor do_matmul(ad_tensor a, ad_tensor b)
{
    return ad_matmul(ad_matmul(a, ad_transpose(b)), a);
}
static ad_tensor do_softmax(ad_tensor a, ad_tensor b)
{
    return ad_mul(ad_softmax(ad_mul(a, b), 1), ad_log(b));
}
static ad_tensor do_solve(ad_tensor a, ad_tensor b)
{
    return ad_solve(a, ad_sigmoid(b));
}
static ad_tensor do_sums(ad_tensor a, ad_tensor b)
{
    return ad_mul(ad_square(a), ad_sqrt(ad_sum_axes(ad_square(b), (int64_t[]){0}, 1, AD_KEEPDIM)));
}
static ad_tensor do_nothing_with_one(ad_tensor a, ad_tensor b)
{
    (void)b;
    return ad_mul(ad_sin(a), ad_tanh(a));
}

static op *const ops[] = {do_tanh,  do_exp,  do_matmul,          do_softmax,
                          do_solve, do_sums, do_nothing_with_one};
enum { OPS = sizeof ops / sizeof *ops };

/* ---- with and without checkpoints ---- */

enum way { PLAIN, GIVEN, READ, NESTED, FRAMES, WAYS };

struct job {
    op *f;
    enum way way;
    bool nested; /* also without checkpoints */
    ad_tensor b; /* READ: by the function itself */
    int calls;
};

static void part(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    struct job *j = payload;
    (void)n_out;
    j->calls++;
    ad_frame frame = {0};
    if (j->way == FRAMES)
        frame = ad_frame_begin(on);
    out[0] = ad_add(j->f(in[0], n_in > 1 ? in[1] : j->b), ad_scale(in[0], 0.5));
    if (j->way == FRAMES)
        ad_frame_end(frame, out, 1);
}

static ad_tensor call(struct job *j, ad_checkpoint_function *f, const ad_tensor *in, int n_in)
{
    ad_tensor y;
    if (j->way == PLAIN)
        f(tape, n_in, in, 1, &y, j);
    else
        ad_checkpoint(tape, f, j, n_in, in, 1, &y);
    return y;
}

static void two_parts(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                      void *payload)
{
    ad_tensor half[2] = {ad_scale(in[0], 0.5), in[1]};
    (void)on;
    (void)n_out;
    half[0] = ad_mul(call(payload, part, half, n_in), half[0]);
    out[0] = call(payload, part, half, n_in);
}

/* Something nonlinear before, between and behind the checkpoints. */
static ad_tensor whole(struct job *j, const ad_tensor *x)
{
    ad_tensor in[2] = {ad_square(x[0]), x[1]};
    j->b = x[1];
    ad_checkpoint_function *f = j->nested ? two_parts : part;
    ad_tensor h = call(j, f, in, j->way == READ ? 1 : 2);
    in[0] = ad_mul(ad_tanh(h), in[0]);
    return ad_sum(ad_square(call(j, f, in, j->way == READ ? 1 : 2)));
}

/* The gradient by both leaves in one tensor. */
static ad_tensor gradient(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    (void)on;
    ad_tensor g[LEAVES];
    if (ad_create_graph(whole(payload, x), ones, n, x, g) != AD_OK)
        return g[0];
    return ad_add(g[0], ad_transpose(g[1]));
}

struct result {
    double g[LEAVES][SIZE], second[LEAVES][SIZE];
};

static void derive(struct job *j, struct result *r)
{
    ad_tensor g[LEAVES];
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    const ad_status status = ad_create_graph(whole(j, leaf), ones, LEAVES, leaf, g);
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
    for (int k = 0; k < LEAVES; k++)
        ck_assert_int_eq(ad_value(g[k], r->g[k], SIZE), AD_OK);
    ad_tensor s = ad_sum(ad_mul(ad_tanh(g[0]), ad_sin(g[1])));
    for (int again = 0; again < 2; again++) { /* what was made again stays */
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        ck_assert_msg(ad_backward(s) == AD_OK, "%s", ad_tape_message(tape));
        for (int k = 0; k < LEAVES; k++)
            ck_assert_int_eq(ad_gradient(leaf[k], r->second[k], SIZE), AD_OK);
    }
}

TEST(first_and_second_derivatives_are_those_without_a_checkpoint)
{
    for (int i = 0; i < OPS; i++)
        for (int way = GIVEN; way < WAYS; way++) {
            static struct result plain, got;
            struct job j = {.f = ops[i], .way = (enum way)way, .nested = way == NESTED};
            ad_mark mark = ad_tape_mark(tape);
            derive(&j, &got);
            ck_assert_int_gt(j.calls, way == NESTED ? 4 : 2);
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
            j = (struct job){.f = ops[i], .way = PLAIN, .nested = way == NESTED};
            derive(&j, &plain);
            ck_assert_msg(memcmp(plain.g, got.g, sizeof got.g) == 0, "op %d, way %d: first", i,
                          way);
            for (int k = 0; k < LEAVES; k++)
                for (int e = 0; e < SIZE; e++) /* sums over several ways come in another order */
                    ck_assert_double_eq_tol(plain.second[k][e], got.second[k][e],
                                            1e-12 * (1 + fabs(plain.second[k][e])));
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        }
}

TEST(second_derivatives_are_those_of_differences)
{
    for (int i = 0; i < OPS; i++)
        for (int way = PLAIN; way < WAYS; way++) {
            struct job j = {.f = ops[i], .way = (enum way)way, .nested = way == NESTED};
            ad_gradient_report report;
            const ad_status status =
                ad_check_gradient(tape, gradient, LEAVES, leaf, 1e-6, &j, &report);
            ck_assert_msg(status == AD_OK, "op %d, way %d: %s", i, way, report.message);
            ck_assert_int_eq(report.compared, LEAVES * SIZE);
        }
}

static ad_tensor third(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    (void)on;
    ad_tensor g[LEAVES], h[LEAVES];
    if (ad_create_graph(whole(payload, x), ones, n, x, g) != AD_OK ||
        ad_create_graph(ad_sum(ad_square(g[0])), ones, n, x, h) != AD_OK)
        return x[0];
    return h[0];
}

TEST(third_derivatives_go_through_what_was_made_again)
{
    for (int way = PLAIN; way < WAYS; way++) {
        struct job j = {.f = do_tanh, .way = (enum way)way, .nested = way == NESTED};
        ad_gradient_report report;
        const ad_status status = ad_check_gradient(tape, third, LEAVES, leaf, 1e-5, &j, &report);
        ck_assert_msg(status == AD_OK, "way %d: %s", way, report.message);
    }
}

static ad_status fickle_graph(struct job *j, ad_tensor *g)
{
    ad_tensor x[LEAVES] = {leaf[0], leaf[1]}, y;
    j->f = do_tanh;
    ad_checkpoint(tape, part, j, LEAVES, x, 1, &y);
    j->f = do_exp;
    return ad_create_graph(ad_sum(y), ones, LEAVES, leaf, g);
}

TEST(a_function_that_does_otherwise_is_told_and_leaves_the_tape_as_it_was)
{
    struct job j = {.way = GIVEN};
    ad_tensor g[LEAVES];
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fickle_graph(&j, g), AD_ERROR_STATE);
        ck_assert_msg(strstr(ad_tape_message(tape), "checkpoint: its function did not do the same"),
                      "%s", ad_tape_message(tape));
        ad_tape_clear_error(tape);
        for (int k = 0; k < LEAVES; k++)
            ck_assert_uint_eq(g[k].value, 0);
        const ad_stats after = stats(); /* two leaves, the checkpoint, its result, the sum */
        ck_assert_uint_eq(after.records, 2);
        ck_assert_uint_eq(after.values, 4);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    struct result r;
    j = (struct job){.f = do_tanh, .way = GIVEN};
    derive(&j, &r);
}

/* Sums beside the checkpoint do not call it; what lies between y and x does, once each. */
TEST(a_checkpoint_beside_the_way_is_not_called)
{
    struct job j = {.f = do_tanh, .way = GIVEN};
    ad_tensor in[2] = {ad_square(leaf[0]), ad_exp(leaf[0])}, h, g;
    ad_checkpoint(tape, part, &j, 2, in, 1, &h);
    ad_tensor y = ad_sum(ad_mul(h, ad_square(leaf[1])));
    ck_assert_int_eq(j.calls, 1);
    ck_assert_int_eq(ad_create_graph(y, ones, 1, &leaf[1], &g), AD_OK);
    ck_assert_int_eq(j.calls, 1);
    ck_assert_int_eq(ad_create_graph(y, ones, 1, &leaf[0], &g), AD_OK);
    ck_assert_int_eq(j.calls, 2);
}

/* Each part that lies between stays as if it had been no checkpoint; those that do not, do not. */
TEST(memory_is_that_of_the_parts_on_the_way)
{
    uint64_t bytes[2];
    for (int checkpoints = 0; checkpoints < 2; checkpoints++) {
        struct job j = {.f = do_tanh, .way = checkpoints ? GIVEN : PLAIN};
        ad_mark mark = ad_tape_mark(tape);
        ad_tensor h[2] = {leaf[0], leaf[1]}, g, middle;
        for (int i = 0; i < LAYERS; i++) {
            h[0] = call(&j, part, h, 2);
            middle = i == LAYERS / 2 ? h[0] : middle;
        }
        const uint64_t before = stats().live_bytes;
        ck_assert_int_eq(ad_create_graph(ad_sum(ad_square(h[0])), ones, 1, &middle, &g), AD_OK);
        if (checkpoints)
            ck_assert_int_eq(j.calls, LAYERS + LAYERS / 2 - 1);
        bytes[checkpoints] = stats().live_bytes - before;
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ck_assert_uint_gt(bytes[1], bytes[0]);
    /* tanh, its product, the half, their sum: four values of a part and their records. */
    ck_assert_uint_lt(bytes[1] - bytes[0], (LAYERS / 2 - 1) * 4 * (SIZE * sizeof(double) + 320));
}

RUN_TESTS(setup, teardown_fine)
