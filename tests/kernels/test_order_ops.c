/* test_order_ops.c: sorted numbers, the greatest and least ones, and their places, against plain
 * loops; ties, zeros of both signs, NaN and infinities; gradients and refusals.
 */
#include "check_gradient.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { MOST = 4096 };

static char error[KERNEL_ERROR_BYTES];

/* ---- the oracle ---- */

static bool comes_before(double a, double b, bool descending)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) && isnan(b);
    return descending ? a > b : a < b;
}

/* Places of x [n] in order: each goes behind all that it does not come before. */
static void order_plainly(const double *x, int64_t n, bool descending, int64_t *place)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0 && comes_before(x[i], x[place[at - 1]], descending); at--)
            place[at] = place[at - 1];
        place[at] = i;
    }
}

/* Few numbers, so that many are equal; some are special. */
static double drawn(int kinds)
{
    static const double special[] = {(double)INFINITY, -(double)INFINITY, 0, -0.0, (double)NAN};
    const int kind = (int)uniform(0, kinds);
    return kind < 5 ? special[kind] : floor(uniform(-20, 20)) / 4;
}

static void fill(struct box *box, int kinds)
{
    int64_t index[KERNEL_MAX_RANK] = {0};
    do
        set_at(&box->array, offset_of(&box->array, box->array.rank, index), drawn(kinds));
    while (index_next(box->array.rank, box->shape, index));
}

/* The line of x along the axis that the index is on. */
static void line_of(const struct box *x, int axis, const int64_t *index, double *line)
{
    int64_t at[KERNEL_MAX_RANK];
    memcpy(at, index, sizeof at);
    for (at[axis] = 0; at[axis] < x->shape[axis]; at[axis]++)
        line[at[axis]] = element(&x->array, at);
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

/* ---- values ---- */

/* sort (k < 0) or topk of numbers of these extents in every layout. */
static void check_order(int dtype, int rank, const int64_t *shape, int axis, int64_t k, int kinds)
{
    const struct kernel_op *const op = k < 0 ? &kernel_op_sort : &kernel_op_topk;
    int64_t extent[KERNEL_MAX_RANK];
    memcpy(extent, shape, sizeof *shape * (size_t)rank);
    extent[axis] = k < 0 ? shape[axis] : k;
    for (int way = 0; way < 2 * LAYOUTS; way++) {
        const bool descending = way % 2 != 0;
        const int64_t sort_attr[] = {axis - rank, descending}, topk_attr[] = {axis, k, !descending};
        static double line[MOST];
        static int64_t place[MOST];
        struct box x, y, indices;
        int64_t index[KERNEL_MAX_RANK] = {0};
        box_make(&x, dtype, rank, shape, (enum layout)(way / 2));
        box_make(&y, dtype, rank, extent, DENSE);
        box_make(&indices, KERNEL_I64, rank, extent, DENSE);
        fill(&x, kinds);
        const kernel_ref in = &x.array;
        ck_assert_int_eq(box_run(op, &in, &y.array, &indices.array, k < 0 ? 2 : 3,
                                 k < 0 ? sort_attr : topk_attr, false, error),
                         0);
        if (y.array.size > 0)
            do {
                line_of(&x, axis, index, line);
                order_plainly(line, shape[axis], descending, place);
                const int64_t want = place[index[axis]];
                ck_assert_msg(element(&indices.array, index) == (double)want,
                              "%s of %lld, way %d: number %lld is at %g, not %lld", op->name,
                              (long long)shape[axis], way, (long long)index[axis],
                              element(&indices.array, index), (long long)want);
                ck_assert(same(element(&y.array, index), line[want]));
            } while (index_next(rank, extent, index));
        box_free(&x);
        box_free(&y);
        box_free(&indices);
    }
}

TEST(sorted_numbers_and_their_places_agree_with_plain_loops)
{
    /* Insertion, merges, and distribution by bytes, with and without ties and special numbers. */
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 33, 48, 100, 127, 128, 300};
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int kinds = 8; kinds <= 1000; kinds += 992)
                check_order(dtype, 1, &lengths[i], 0, -1, kinds);
        for (int axis = 0; axis < 3; axis++)
            check_order(dtype, 3, SHAPE(5, 18, 4), axis, -1, 9);
    }
}

TEST(the_first_of_sorted_numbers_agree_with_plain_loops)
{
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        for (int64_t k = 0; k <= 40; k++)
            check_order(dtype, 1, SHAPE(40), 0, k, k % 2 ? 7 : 100);
        for (int64_t k = 1; k <= 400; k *= 3)
            check_order(dtype, 1, SHAPE(400), 0, k, 12);
        for (int axis = 0; axis < 3; axis++)
            for (int64_t k = 1; k <= 3; k++)
                check_order(dtype, 3, SHAPE(5, 30, 4), axis, k, 9);
    }
}

/* Random numbers of all magnitudes and both signs: every byte of a key counts. */
TEST(numbers_of_all_magnitudes_are_sorted)
{
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        struct box x, y, indices;
        box_make(&x, dtype, 1, SHAPE(MOST), DENSE);
        box_make(&y, dtype, 1, SHAPE(MOST), DENSE);
        box_make(&indices, KERNEL_I64, 1, SHAPE(MOST), DENSE);
        const double most = dtype == KERNEL_F32 ? 120 : 1000;
        for (int64_t i = 0; i < MOST; i++)
            set_at(&x.array, i, uniform(-1, 1) * exp2(uniform(-most, most)));
        const kernel_ref in = &x.array;
        ck_assert_int_eq(
            box_run(&kernel_op_sort, &in, &y.array, &indices.array, 2, SHAPE(0, 0), false, error),
            0);
        double sum = 0;
        for (int64_t i = 0; i < MOST; i++) {
            ck_assert(i == 0 || get_at(&y.array, i - 1) <= get_at(&y.array, i));
            const int64_t place = ((const int64_t *)indices.array.data)[i];
            ck_assert(get_at(&y.array, i) == get_at(in, place));
            sum += (double)place;
        }
        ck_assert(sum == (double)MOST * (MOST - 1) / 2);
        box_free(&x);
        box_free(&y);
        box_free(&indices);
    }
}

static void check_extreme(int dtype, int rank, const int64_t *shape, int axis, int kinds)
{
    int64_t extent[KERNEL_MAX_RANK];
    memcpy(extent, shape, sizeof *shape * (size_t)rank);
    extent[axis] = 1;
    for (int way = 0; way < 2 * LAYOUTS; way++) {
        const bool least = way % 2 != 0;
        static double line[MOST];
        struct box x, y;
        int64_t index[KERNEL_MAX_RANK] = {0};
        box_make(&x, dtype, rank, shape, (enum layout)(way / 2));
        box_make(&y, KERNEL_I64, rank, extent, DENSE);
        fill(&x, kinds);
        const kernel_ref in = &x.array;
        const struct kernel_op *const op = least ? &kernel_op_argmin : &kernel_op_argmax;
        ck_assert_int_eq(box_run(op, &in, &y.array, NULL, 2, SHAPE(axis - rank, 1), false, error),
                         0);
        do {
            line_of(&x, axis, index, line);
            int64_t want = 0;
            for (int64_t i = 1; i < shape[axis]; i++)
                if (!isnan(line[want]) &&
                    (isnan(line[i]) || (least ? line[i] < line[want] : line[i] > line[want])))
                    want = i;
            ck_assert_msg(element(&y.array, index) == (double)want, "%s of %lld, way %d", op->name,
                          (long long)shape[axis], way);
        } while (index_next(rank, extent, index));
        box_free(&x);
        box_free(&y);
    }
}

TEST(places_of_extremes_agree_with_plain_loops)
{
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 257};
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int repeat = 0; repeat < 20; repeat++)
                check_extreme(dtype, 1, &lengths[i], 0, repeat < 10 ? 8 : 2000);
        for (int axis = 0; axis < 3; axis++)
            for (int repeat = 0; repeat < 5; repeat++)
                check_extreme(dtype, 3, SHAPE(6, 20, 5), axis, 30);
    }
}

TEST(nan_and_ties_are_as_documented)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double x[6] = {0, nan, -0.0, inf, nan, 0};
    const int64_t up[6] = {0, 2, 5, 3, 1, 4}, down[6] = {3, 0, 2, 5, 1, 4};
    int64_t got[6];
    double y[6];
    ad_tensor indices = {0};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor t = ad_constant(tape, AD_F64, 1, SHAPE(6), x);
    ck_assert_int_eq(ad_value(ad_sort(t, 0, 0, &indices), y, 6), AD_OK);
    ck_assert(!signbit(y[0]) && signbit(y[1]) && !signbit(y[2]) && y[3] == inf && isnan(y[4]));
    ck_assert_int_eq(ad_value(indices, got, 6), AD_OK);
    ck_assert(memcmp(got, up, sizeof up) == 0);
    (void)ad_sort(t, 0, AD_DESCENDING, &indices);
    ck_assert_int_eq(ad_value(indices, got, 6), AD_OK);
    ck_assert(memcmp(got, down, sizeof down) == 0);
    (void)ad_topk(t, 0, 5, 0, &indices);
    ck_assert_int_eq(ad_value(indices, got, 5), AD_OK);
    ck_assert(memcmp(got, down, 5 * sizeof *down) == 0);
    ck_assert_int_eq(ad_value(ad_argmax(t, 0, 0), got, 1), AD_OK);
    ck_assert_int_eq(got[0], 1);
    ck_assert_int_eq(ad_value(ad_argmin(t, 0, 0), got, 1), AD_OK);
    ck_assert_int_eq(got[0], 1);
    const ad_tensor rest = ad_slice(t, 0, 2, 4, 1);
    ck_assert_int_eq(ad_value(ad_argmin(rest, 0, 0), got, 1), AD_OK);
    ck_assert_int_eq(got[0], 0);
    ck_assert_int_eq(ad_size(ad_sort(rest, 0, 0, NULL)), 2);
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- gradients ---- */

TEST(each_number_gets_the_gradient_of_its_place)
{
    const double x[2][4] = {{3, 1, 3, (double)NAN}, {-1, 5, 2, 5}};
    const double seed[2][4] = {{1, 2, 4, 8}, {16, 32, 64, 128}};
    const double sorted[2][4] = {{2, 1, 4, 8}, {16, 64, 32, 128}};
    const double first[2][4] = {{1, 0, 2, 0}, {0, 4, 0, 8}};
    const double pairs[4] = {1, 2, 4, 8};
    double g[8];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor t = ad_leaf(tape, AD_F64, 2, SHAPE(2, 4), x);
    const ad_tensor u = ad_constant(tape, AD_F64, 2, SHAPE(2, 4), seed);
    ck_assert_int_eq(ad_backward_seed(ad_sort(t, 1, 0, NULL), u), AD_OK);
    ck_assert_int_eq(ad_gradient(t, g, 8), AD_OK);
    ck_assert(memcmp(g, sorted, sizeof sorted) == 0);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    const ad_tensor v = ad_constant(tape, AD_F64, 2, SHAPE(2, 2), pairs);
    ck_assert_int_eq(ad_backward_seed(ad_topk(t, -1, 2, 0, NULL), v), AD_OK);
    ck_assert_int_eq(ad_gradient(t, g, 8), AD_OK);
    ck_assert(memcmp(g, first, sizeof first) == 0);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST(places_are_constant)
{
    static const struct kernel_op *const ops[] = {&kernel_op_argmax, &kernel_op_argmin};
    for (int k = 0; k < 2; k++) {
        struct kernel_sample sample;
        ck_assert(ops[k]->sample(0, &sample));
        const struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, 0);
        check_demand(check_constant(&c));
    }
}

/* ---- refusals ---- */

TEST(what_does_not_fit_is_named)
{
    static struct scene scene;
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x, none = ad_slice(x, 0, 0, 0, 1);
    const ad_tensor i = ad_constant(scene.tape, AD_I64, 1, SHAPE(1), SHAPE(7));
    ad_tensor indices = x;
    naive_refused(&scene, ad_sort(x, 2, 0, &indices), AD_ERROR_SHAPE,
                  "sort: f64 [3,4]: there is no axis 2 of 2");
    ck_assert_int_eq(indices.value, 0);
    naive_refused(&scene, ad_topk(x, -3, 1, 0, NULL), AD_ERROR_SHAPE,
                  "topk: f64 [3,4]: there is no axis -3 of 2");
    naive_refused(&scene, ad_topk(x, 1, 5, 0, NULL), AD_ERROR_SHAPE,
                  "topk: f64 [3,4]: k = 5 is not in 0..4 of axis 1");
    naive_refused(&scene, ad_topk(x, 1, -1, 0, NULL), AD_ERROR_SHAPE, "k = -1 is not in 0..4");
    naive_refused(&scene, ad_argmax(x, 2, 0), AD_ERROR_SHAPE,
                  "argmax: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_argmax(none, 0, 0), AD_ERROR_SHAPE,
                  "argmax: f64 [0,4]: axis 0 is empty and has no maximum");
    naive_refused(&scene, ad_argmin(none, 0, AD_KEEPDIM), AD_ERROR_SHAPE,
                  "argmin: f64 [0,4]: axis 0 is empty and has no minimum");
    ck_assert_int_eq(ad_size(ad_argmax(none, 1, 0)), 0);
    naive_refused(&scene, ad_sort(i, 0, 0, NULL), AD_ERROR_DTYPE, "sort takes f32 or f64, not");
    naive_refused(&scene, ad_topk(i, 0, 1, 0, NULL), AD_ERROR_DTYPE, "topk takes f32 or f64");
    naive_refused(&scene, ad_argmax(i, 0, AD_KEEPDIM), AD_ERROR_DTYPE,
                  "argmax takes f32 or f64, not i64");
    naive_refused(&scene, ad_argmin(i, 0, AD_KEEPDIM), AD_ERROR_DTYPE,
                  "argmin takes f32 or f64, not i64");
    scene_end(&scene);
}

RUN_TESTS(NULL, NULL)
