/* test_recorded_constants.c: a derivative by a constant is refused, since nothing is recorded of
 * ops on constants alone: what came through them would be missing.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { N = 3 };

static const ad_tensor zero;
static const int64_t shape[] = {N};
static double data[N] = {0.5, -1.25, 2}, other[N] = {3, 4, -5};
static ad_tape tape;
static ad_tensor x, c;

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    c = ad_constant(tape, AD_F64, 1, shape, other);
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* The derivative by `by` is refused, named by its place, and the tape is as it was. */
static void check_refused(ad_tensor y, ad_tensor by)
{
    ad_tensor gradient[2] = {x, x};
    ad_stats before, after;
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, zero, 2, (ad_tensor[]){x, by}, gradient), AD_ERROR_STATE);
    ck_assert_uint_eq(gradient[0].value, 0);
    ck_assert_uint_eq(gradient[1].value, 0);
    ck_assert_msg(strstr(ad_tape_message(tape), "create_graph: x[1] is constant") &&
                      strstr(ad_tape_message(tape), "test_recorded_constants.c:"),
                  "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_mem_eq(&before, &after, sizeof before);
}

/* A leaf gives both parts of the derivative of sum(c^2 x c). */
static void check_whole(ad_tensor y, ad_tensor by)
{
    ad_tensor gradient;
    double got[N];
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &by, &gradient), AD_OK);
    ck_assert_int_eq(ad_value(gradient, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(got[i], 3 * other[i] * other[i] * data[i], 1e-12);
}

static ad_tensor cubic(ad_tensor v)
{
    return ad_sum(ad_mul(ad_square(v), ad_mul(x, v)));
}

TEST(a_constant_part_of_whose_way_has_no_record_is_refused)
{
    check_refused(cubic(c), c);
}

TEST(a_leaf_in_its_place_gives_the_whole_derivative)
{
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other);
    check_whole(cubic(leaf), leaf);
}

TEST(what_was_computed_from_constants_or_cut_off_is_refused)
{
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other), h = ad_square(c);
    check_refused(cubic(h), h);
    ad_tensor cut = ad_detach(ad_square(leaf));
    check_refused(cubic(cut), cut);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ad_tensor silent = ad_square(leaf);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    check_refused(cubic(silent), silent);
    ad_tensor scalar = ad_scalar_f64(tape, 2);
    check_refused(cubic(scalar), scalar);
}

TEST(a_frame_takes_nothing_that_a_derivative_by_a_leaf_needs)
{
    ad_tensor gradient;
    double got[N];
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor y = ad_sum(ad_mul(ad_scale(x, 2), c)); /* 2 x is read for c alone, and freed */
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, &gradient), AD_OK);
    ck_assert_int_eq(ad_value(gradient, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(got[i], 2 * other[i]);
    check_refused(y, c);
}

/* The derivative by a leaf of before, by a leaf of the check's, by a leaf of its own. */
static ad_tensor slope(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    const int which = *(const int *)payload;
    ad_tensor own = ad_leaf(t, AD_F64, 1, shape, data), g = zero;
    ad_tensor by[] = {x, v[0], own};
    (void)n;
    ad_tensor y = ad_sum(ad_mul(ad_square(by[which]), ad_exp(v[0])));
    (void)!ad_create_graph(y, zero, 1, &by[which], &g);
    return g;
}

TEST(within_a_gradient_check_what_it_does_not_vary_is_constant)
{
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other);
    other[2] = 1;
    int which = 0;
    ck_assert_int_eq(ad_check_gradient(tape, slope, 1, &leaf, 1e-6, &which, NULL), AD_ERROR_STATE);
    ck_assert_msg(strstr(ad_tape_message(tape), "outside a gradient check that runs") &&
                      strstr(ad_tape_message(tape), "in slope"),
                  "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    for (which = 1; which < 3; which++)
        ck_assert_msg(ad_check_gradient(tape, slope, 1, &leaf, 1e-6, &which, NULL) == AD_OK, "%s",
                      ad_tape_message((ad_tape){0, 0}));
}

RUN_TESTS(setup, teardown)
