/* test_scan_ops.c: cumulative sums and products, recurrences, standard deviations: values against
 * plain loops in long double, gradients against closed forms, special values, refusals.
 */
#include "check_gradient.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

static char error[KERNEL_ERROR_BYTES];

static long double epsilon(int dtype)
{
    return dtype == KERNEL_F32 ? (long double)FLT_EPSILON : (long double)DBL_EPSILON;
}

/* ---- values ---- */

enum scan { SUM, SUM_REVERSED, PRODUCT };

/* Along each axis, in every layout. */
static void check_scan(enum scan scan, int dtype, int rank, const int64_t *shape, int axis)
{
    const struct kernel_op *const op = scan == PRODUCT ? &kernel_op_cumprod : &kernel_op_cumsum;
    const int64_t attr[] = {axis % 2 ? axis - rank : axis, scan == SUM_REVERSED};
    for (int layout = DENSE; layout < LAYOUTS; layout++) {
        struct box x, y;
        int64_t index[KERNEL_MAX_RANK] = {0};
        box_make(&x, dtype, rank, shape, (enum layout)layout);
        box_make(&y, dtype, rank, shape, DENSE);
        box_random(&x, scan == PRODUCT ? 0.8 : -1, scan == PRODUCT ? 1.25 : 1);
        const kernel_ref in = &x.array;
        ck_assert_int_eq(
            box_run(op, &in, &y.array, NULL, scan == PRODUCT ? 1 : 2, attr, false, error), 0);
        do {
            int64_t term[KERNEL_MAX_RANK];
            long double want = scan == PRODUCT ? 1 : 0;
            memcpy(term, index, sizeof term);
            for (int64_t k = 0; k < shape[axis]; k++) {
                term[axis] = k;
                const long double t = element(&x.array, term);
                if (scan == SUM_REVERSED ? k < index[axis] : k > index[axis])
                    continue;
                want = scan == PRODUCT ? want * t : want + t;
            }
            /* A running product is rounded at each factor. */
            const long double steps = scan == PRODUCT ? (long double)shape[axis] : 1;
            const long double got = element(&y.array, index);
            ck_assert_msg(fabsl(got - want) <= steps * epsilon(dtype) * fabsl(want) + 0x1p-60L,
                          "%s %d: %.17Lg, not %.17Lg", op->name, axis, got, want);
        } while (index_next(rank, shape, index));
        box_free(&x);
        box_free(&y);
    }
}

TEST(scans_agree_with_plain_loops_in_long_double)
{
    for (int scan = SUM; scan <= PRODUCT; scan++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
            for (int axis = 0; axis < 3; axis++)
                check_scan((enum scan)scan, dtype, 3, SHAPE(7, 5, 9), axis);
            check_scan((enum scan)scan, dtype, 1, SHAPE(1000), 0);
            check_scan((enum scan)scan, dtype, 2, SHAPE(130, 33), 0);
        }
}

/* 1, then terms that plain additions would lose, one and all. */
TEST(a_sum_of_many_small_terms_loses_none)
{
    enum { N = 4096 };
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
        for (int columns = 1; columns <= 3; columns += 2) {
            const double small = (double)epsilon(dtype) / 8;
            const int64_t shape[] = {N, columns}, attr[] = {0, 0};
            struct box x, y;
            box_make(&x, dtype, 2, shape, DENSE);
            box_make(&y, dtype, 2, shape, DENSE);
            for (int64_t i = 0; i < N * columns; i++)
                set_at(&x.array, i, i < columns ? 1 : small);
            const kernel_ref in = &x.array;
            ck_assert_int_eq(box_run(&kernel_op_cumsum, &in, &y.array, NULL, 2, attr, false, error),
                             0);
            ck_assert(
                get_at(&y.array, (N - 1) * columns) ==
                (dtype == KERNEL_F32 ? (double)(float)(1 + (N - 1) * small) : 1 + (N - 1) * small));
            box_free(&x);
            box_free(&y);
        }
}

static void values_of(ad_tensor y, double *to, int64_t n)
{
    ck_assert_int_eq(ad_value(y, to, n), AD_OK);
}

/* got and want are equal, NaN is NaN, zeros have their sign. */
static void check_equal(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg((isnan(want[i]) && isnan(got[i])) ||
                          (got[i] == want[i] && !signbit(got[i]) == !signbit(want[i])),
                      "element %d is %g, not %g", i, got[i], want[i]);
}

TEST(infinities_and_nan_stay_from_where_they_are)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double terms[6] = {1, inf, 2, -inf, 3, 4}, factors[6] = {2, 0, 3, inf, 1, nan};
    double got[6];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor x = ad_constant(tape, AD_F64, 1, SHAPE(6), terms);
    values_of(ad_cumsum(x, 0, 0), got, 6);
    check_equal(got, (double[]){1, inf, inf, nan, nan, nan}, 6);
    values_of(ad_cumsum(x, 0, AD_REVERSE), got, 6);
    check_equal(got, (double[]){nan, nan, -inf, -inf, 7, 4}, 6);
    const ad_tensor rows = ad_constant(tape, AD_F64, 2, SHAPE(3, 2), terms);
    values_of(ad_cumsum(rows, 0, 0), got, 6);
    check_equal(got, (double[]){1, inf, 3, nan, 6, nan}, 6);
    values_of(ad_cumprod(ad_constant(tape, AD_F64, 1, SHAPE(6), factors), 0), got, 6);
    check_equal(got, (double[]){2, 0, 0, nan, nan, nan}, 6);
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST(scans_of_nothing_are_empty)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(0, 3), NULL);
    const ad_tensor y[] = {ad_cumsum(x, 0, 0), ad_cumsum(x, 1, AD_REVERSE), ad_cumprod(x, 0)};
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(ad_size(y[k]), 0);
        ck_assert_int_eq(ad_backward(ad_sum(y[k])), AD_OK);
    }
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- gradients ---- */

/* The gradient in x [n] of <seed, y>, and that gradient's own in x along v: by the sweep. */
static void gradient_of(ad_tensor (*f)(ad_tensor), int64_t n, const double *x, const double *seed,
                        double *g)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 1, &n, x);
    const ad_tensor y = f(leaf);
    const int64_t size = ad_size(y);
    const ad_tensor u = ad_constant(tape, AD_F64, ad_rank(y), &size, seed);
    ck_assert_msg(ad_backward_seed(y, u) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_gradient(leaf, g, n), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor products(ad_tensor x)
{
    return ad_cumprod(x, 0);
}

/* By the definition: the sum over i of seed_i times the product of the other factors up to i. */
TEST(gradients_of_cumulative_products_are_right_where_factors_are_zero)
{
    static const double cases[][6] = {{2, 3, 0, 4, -1, 5}, {0, 2, 3, 0.5, 7, 1},
                                      {0, 0, 3, 4, 5, 6},  {2, 3, 4, 5, 6, 0},
                                      {1, 0, 2, 0, 3, 0},  {-0.0, 3, -0.0, 1, 1, 2}};
    const double seed[6] = {1, -2, 3, 5, -7, 11};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const double *const x = cases[k];
        double g[6];
        gradient_of(products, 6, x, seed, g);
        for (int j = 0; j < 6; j++) {
            double want = 0;
            for (int i = j; i < 6; i++) {
                double others = seed[i];
                for (int f = 0; f <= i; f++)
                    others *= f == j ? 1 : x[f];
                want += others;
            }
            ck_assert_msg(g[j] == want, "case %zu, factor %d: %g, not %g", k, j, g[j], want);
        }
    }
}

/* The Hessian of the last product of {0, 0, z} is z for the first two factors. */
TEST(second_derivatives_of_cumulative_products_are_right_where_factors_are_zero)
{
    const double x[3] = {0, 0, 5}, last[3] = {0, 0, 1}, first[3] = {1, 0, 0};
    double h[3];
    ad_tensor g = {0};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 1, SHAPE(3), x);
    const ad_tensor seed = ad_constant(tape, AD_F64, 1, SHAPE(3), last);
    ck_assert_int_eq(ad_create_graph(ad_cumprod(leaf, 0), seed, 1, &leaf, &g), AD_OK);
    ck_assert_int_eq(ad_backward_seed(g, ad_constant(tape, AD_F64, 1, SHAPE(3), first)), AD_OK);
    ck_assert_int_eq(ad_gradient(leaf, h, 3), AD_OK);
    ck_assert_msg(h[0] == 0 && h[1] == 5 && h[2] == 0, "%g %g %g", h[0], h[1], h[2]);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor deviation(ad_tensor x)
{
    return ad_std(x, 0);
}

static ad_tensor sample_deviation(ad_tensor x)
{
    return ad_std(x, 1);
}

/* Elements whose sum is not three times the element: a rounded mean is none of them. */
TEST(equal_elements_have_no_deviation_and_a_gradient_of_zero)
{
    const double equal[3] = {0.1, 0.1, 0.1}, large[3] = {1e300 / 3, 1e300 / 3, 1e300 / 3}, one = 1;
    const double *const cases[] = {equal, large};
    for (int k = 0; k < 2; k++) {
        double g[3], value[2];
        ad_tape tape;
        ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
        const ad_tensor x = ad_constant(tape, AD_F64, 1, SHAPE(3), cases[k]);
        values_of(ad_std(x, 1), value, 1);
        values_of(ad_var(x, 1), value + 1, 1);
        ck_assert_msg(value[0] == 0 && value[1] == 0, "%g %g", value[0], value[1]);
        ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
        gradient_of(deviation, 3, cases[k], &one, g);
        ck_assert_msg(g[0] == 0 && g[1] == 0 && g[2] == 0, "%g %g %g", g[0], g[1], g[2]);
    }
}

TEST(deviations_without_enough_terms_or_of_infinities_are_nan)
{
    const double one = 1, infinite[2] = {1, (double)INFINITY}, number = 3, three[3] = {1, 2, 4};
    double g[3];
    gradient_of(sample_deviation, 1, &number, &one, g);
    ck_assert(isnan(g[0]));
    gradient_of(deviation, 2, infinite, &one, g);
    ck_assert(isnan(g[0]) && isnan(g[1]));
    gradient_of(deviation, 1, &number, &one, g);
    ck_assert(g[0] == 0);
    /* mean 7/3, y^2 = 7/3 */
    gradient_of(sample_deviation, 3, three, &one, g);
    for (int i = 0; i < 3; i++)
        ck_assert(fabs(g[i] - (three[i] - 7 / 3.0) / (2 * sqrt(7 / 3.0))) < 1e-15);
}

TEST(large_scans_agree_with_differences)
{
    static const struct {
        const struct kernel_op *op;
        int n_in, rank, n_attr;
        int64_t shape[3], attr[3];
    } cases[] = {
        {&kernel_op_cumsum, 1, 2, 2, {33, 129}, {1, 0}},
        {&kernel_op_cumsum, 1, 2, 2, {129, 33}, {0, 1}},
        {&kernel_op_cumprod, 1, 2, 1, {17, 65}, {1}},
        {&kernel_op_cumprod, 1, 3, 1, {3, 33, 9}, {1}},
        {&kernel_op_std, 1, 2, 3, {65, 33}, {0, 1, 0}},
        {&kernel_op_linear_scan, 2, 2, 2, {33, 17}, {0, 0}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct kernel_sample sample = {.n_in = cases[k].n_in, .n_attr = cases[k].n_attr};
        const bool product = cases[k].op == &kernel_op_cumprod;
        memcpy(sample.attr, cases[k].attr, sizeof cases[k].attr);
        for (int i = 0; i < sample.n_in; i++) {
            sample.dtype[i] = KERNEL_F64;
            sample.rank[i] = (uint8_t)cases[k].rank;
            memcpy(sample.shape[i], cases[k].shape, sizeof cases[k].shape);
            sample.low[i] = product ? 0.9 : -0.9;
            sample.high[i] = product ? 1.1 : 0.9;
        }
        struct check_case c = check_case_of(cases[k].op, &sample, KERNEL_F64, -1);
        c.aim = "large";
        check_demand(check_direction(&c));
        check_demand(check_held(&c));
        c = check_case_of(cases[k].op, &sample, KERNEL_F32, -1);
        c.aim = "large";
        check_demand(check_narrow(&c));
    }
}

/* ---- refusals ---- */

TEST(axes_that_are_not_there_and_integers_are_refused)
{
    static struct scene scene;
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x, i = ad_constant(scene.tape, AD_I64, 1, SHAPE(1), SHAPE(7));
    naive_refused(&scene, ad_cumsum(x, 2, 0), AD_ERROR_SHAPE,
                  "cumsum: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_cumprod(x, -3), AD_ERROR_SHAPE,
                  "cumprod: f64 [3,4]: there is no axis -3 of 2");
    naive_refused(&scene, ad_std_axes(x, SHAPE(5), 1, 0, 0), AD_ERROR_SHAPE,
                  "std: f64 [3,4]: there is no axis 5");
    naive_refused(&scene, ad_cumsum(i, 0, 0), AD_ERROR_DTYPE, "cumsum takes f32 or f64, not i64");
    naive_refused(&scene, ad_cumprod(i, 0), AD_ERROR_DTYPE, "cumprod takes f32 or f64, not i64");
    naive_refused(&scene, ad_std(i, 0), AD_ERROR_DTYPE, "std takes f32 or f64, not i64");
    scene_end(&scene);
}

static void check_recurrence_refused(int rank_a, const int64_t *a, int rank_b, const int64_t *b,
                                     int64_t axis, const char *text)
{
    struct box box[2];
    struct kernel_shape shape[KERNEL_MAX_OUT];
    const int64_t attr[] = {axis, 0};
    box_make(&box[0], KERNEL_F64, rank_a, a, DENSE);
    box_make(&box[1], KERNEL_F64, rank_b, b, DENSE);
    const kernel_ref in[] = {&box[0].array, &box[1].array};
    const struct kernel_call call = {.op = &kernel_op_linear_scan,
                                     .in = in,
                                     .n_in = 2,
                                     .n_out = 1,
                                     .attr = attr,
                                     .n_attr = 2,
                                     .error = error};
    ck_assert_int_eq(kernel_infer(&call, shape), KERNEL_REFUSED);
    ck_assert_str_eq(error, text);
    box_free(&box[0]);
    box_free(&box[1]);
}

TEST(recurrences_of_unequal_shapes_are_refused)
{
    check_recurrence_refused(1, SHAPE(3), 1, SHAPE(4), 0,
                             "linear_scan: f64 [3] and f64 [4]: the shapes differ");
    check_recurrence_refused(2, SHAPE(3, 1), 1, SHAPE(3), 0,
                             "linear_scan: f64 [3,1] and f64 [3]: the shapes differ");
    check_recurrence_refused(1, SHAPE(3), 1, SHAPE(3), 1,
                             "linear_scan: f64 [3]: there is no axis 1 of 1");
}

RUN_TESTS(NULL, NULL)
