/* test_moved_ops.c: elements turned round, moved on, padded, cut to triangles, put on diagonals and
 * repeated, against plain loops: values, gradients, refusals.
 */
#include "check_gradient.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static struct scene scene;
static const ad_dtype dtypes[] = {AD_F32, AD_F64, AD_I64};

/* x, and x with its first and last axes exchanged, which has gaps. */
static ad_tensor operand[2];
static struct naive plain[2];

static void begin(ad_dtype dtype, const int64_t *shape)
{
    scene_begin(&scene, dtype, 3, shape);
    operand[0] = scene.x;
    plain[0] = scene.plain;
    operand[1] = ad_permute(scene.x, SHAPE(2, 1, 0), 3);
    plain[1] = naive_permuted(&scene.plain, SHAPE(2, 1, 0));
}

/* Where element `index` of a result comes from: false if it is no element of x. */
typedef bool place_fn(const struct naive *x, const int64_t *index, int64_t *from,
                      const int64_t *word);

/* The result of these extents, element by element; `other` where nothing comes. */
static struct naive made(const struct naive *x, int rank, const int64_t *shape, place_fn *place,
                         const int64_t *word, double other)
{
    struct naive y = {.rank = rank};
    int64_t index[NAIVE_RANK] = {0}, i = 0;
    memcpy(y.shape, shape, (size_t)rank * sizeof *shape);
    if (naive_size(&y) > 0)
        do {
            int64_t from[NAIVE_RANK] = {0};
            const bool any = place(x, index, from, word);
            y.at[i++] = any ? naive_get(x, from) : NAIVE_OTHER(other);
        } while (naive_next(&y, index));
    return y;
}

/* ---- orders ---- */

static bool flipped(const struct naive *x, const int64_t *index, int64_t *from, const int64_t *word)
{
    for (int axis = 0; axis < x->rank; axis++)
        from[axis] = word[0] >> axis & 1 ? x->shape[axis] - 1 - index[axis] : index[axis];
    return true;
}

TEST_EACH(flips_agree_with_plain_loops, 3)
{
    begin(dtypes[_i], SHAPE(3, 4, 5));
    for (int k = 0; k < 2; k++) {
        for (int64_t mask = 1; mask < 8; mask++) {
            int64_t axes[3];
            int n = 0;
            for (int axis = 2; axis >= 0; axis--)
                if (mask >> axis & 1)
                    axes[n++] = axis == 1 ? -2 : axis;
            const struct naive want = made(&plain[k], 3, plain[k].shape, flipped, &mask, 0);
            naive_expect(&scene, ad_flip_axes(operand[k], axes, n), &want);
        }
        const int64_t all = 7;
        const struct naive want = made(&plain[k], 3, plain[k].shape, flipped, &all, 0);
        naive_expect(&scene, ad_flip(operand[k]), &want);
    }
    scene_end(&scene);
}

static bool rolled(const struct naive *x, const int64_t *index, int64_t *from, const int64_t *word)
{
    memcpy(from, index, (size_t)x->rank * sizeof *from);
    const int64_t n = x->shape[word[0]];
    from[word[0]] = (index[word[0]] + 100 * n - word[1]) % n;
    return true;
}

TEST_EACH(rolls_agree_with_plain_loops, 3)
{
    begin(dtypes[_i], SHAPE(3, 4, 5));
    for (int k = 0; k < 2; k++)
        for (int64_t axis = 0; axis < 3; axis++)
            for (int64_t shift = -11; shift <= 11; shift++) {
                const int64_t word[] = {axis, shift};
                const struct naive want = made(&plain[k], 3, plain[k].shape, rolled, word, 0);
                naive_expect(&scene, ad_roll(operand[k], shift % 2 ? axis : axis - 3, shift),
                             &want);
            }
    /* 2^63 is 3 modulo 5. */
    const struct naive want = made(&plain[0], 3, plain[0].shape, rolled, SHAPE(2, -3), 0);
    naive_expect(&scene, ad_roll(scene.x, 2, INT64_MIN), &want);
    scene_end(&scene);
}

/* ---- borders and triangles ---- */

static bool padded(const struct naive *x, const int64_t *index, int64_t *from, const int64_t *word)
{
    bool inside = true;
    for (int axis = 0; axis < x->rank; axis++) {
        from[axis] = index[axis] - word[2 * axis];
        inside = inside && from[axis] >= 0 && from[axis] < x->shape[axis];
    }
    return inside;
}

TEST_EACH(pads_agree_with_plain_loops, 3)
{
    static const int64_t widths[][6] = {{0, 0, 0, 0, 0, 0}, {1, 2, 0, 3, 2, 0}, {0, 0, 0, 0, 1, 1},
                                        {2, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0}, {0, 1, 0, 1, 0, 1}};
    begin(dtypes[_i], SHAPE(2, 3, 4));
    for (int k = 0; k < 2; k++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            int64_t shape[3];
            for (int axis = 0; axis < 3; axis++)
                shape[axis] = plain[k].shape[axis] + widths[w][2 * axis] + widths[w][2 * axis + 1];
            const struct naive want = made(&plain[k], 3, shape, padded, widths[w], 7);
            naive_expect(&scene, ad_pad(operand[k], widths[w], 6, 7), &want);
        }
    scene_end(&scene);
}

TEST_EACH(pads_of_nothing_are_their_value, 3)
{
    scene_begin(&scene, dtypes[_i], 2, SHAPE(0, 2));
    const struct naive want = {2, {3, 2}, {-4, -4, -4, -4, -4, -4}};
    naive_expect(&scene, ad_pad(scene.x, SHAPE(1, 2, 0, 0), 4, 3), &want);
    scene_end(&scene);
}

/* word: diagonal, and 1 for what lies above. */
static bool in_triangle(const struct naive *x, const int64_t *index, int64_t *from,
                        const int64_t *word)
{
    const int64_t i = index[x->rank - 2], j = index[x->rank - 1];
    memcpy(from, index, (size_t)x->rank * sizeof *from);
    return word[1] ? j >= i + word[0] : j <= i + word[0];
}

TEST_EACH(triangles_agree_with_plain_loops, 3)
{
    begin(dtypes[_i], SHAPE(3, 4, 5));
    for (int k = 0; k < 2; k++)
        for (int64_t diagonal = -6; diagonal <= 6; diagonal++) {
            struct naive want =
                made(&plain[k], 3, plain[k].shape, in_triangle, SHAPE(diagonal, 0), 0);
            naive_expect(&scene, ad_tril(operand[k], diagonal), &want);
            want = made(&plain[k], 3, plain[k].shape, in_triangle, SHAPE(diagonal, 1), 0);
            naive_expect(&scene, ad_triu(operand[k], diagonal), &want);
        }
    struct naive none = made(&plain[0], 3, plain[0].shape, in_triangle, SHAPE(-9, 0), 0);
    naive_expect(&scene, ad_tril(scene.x, INT64_MIN), &none);
    naive_expect(&scene, ad_triu(scene.x, INT64_MAX), &none);
    naive_expect(&scene, ad_triu(scene.x, INT64_MIN), &plain[0]);
    naive_expect(&scene, ad_tril(scene.x, INT64_MAX), &plain[0]);
    scene_end(&scene);
}

TEST(what_is_outside_of_a_triangle_or_diagonal_may_be_nan)
{
    const double x[4] = {1, (double)NAN, 3, 4}, y[4] = {1, 0, 3, 4};
    double got[4], trace;
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor matrix = ad_leaf(tape, AD_F64, 2, SHAPE(2, 2), x);
    ck_assert_int_eq(ad_value(ad_tril(matrix, 0), got, 4), AD_OK);
    ck_assert(memcmp(got, y, sizeof y) == 0);
    ck_assert_int_eq(ad_value(ad_trace(matrix), &trace, 1), AD_OK);
    ck_assert(trace == 5);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- diagonals ---- */

static bool diagonal_of(const struct naive *x, const int64_t *index, int64_t *from,
                        const int64_t *word)
{
    const int64_t i = index[x->rank - 2];
    memcpy(from, index, (size_t)(x->rank - 2) * sizeof *from);
    from[x->rank - 2] = word[0] < 0 ? i - word[0] : i;
    from[x->rank - 1] = word[0] < 0 ? i : i + word[0];
    return true;
}

static bool on_diagonal(const struct naive *x, const int64_t *index, int64_t *from,
                        const int64_t *word)
{
    const int64_t i = index[x->rank - 1], j = index[x->rank];
    memcpy(from, index, (size_t)x->rank * sizeof *from);
    if (word[0] < 0)
        from[x->rank - 1] = j;
    return j == i + word[0];
}

TEST_EACH(diagonals_agree_with_plain_loops, 3)
{
    begin(dtypes[_i], SHAPE(3, 4, 5));
    for (int k = 0; k < 2; k++) {
        const int64_t m = plain[k].shape[1], n = plain[k].shape[2];
        for (int64_t diagonal = -m; diagonal <= n; diagonal++) {
            const int64_t rows = diagonal < 0 ? m + diagonal : m;
            const int64_t columns = diagonal > 0 ? n - diagonal : n;
            const int64_t shape[] = {plain[k].shape[0], 4, rows < columns ? rows : columns};
            struct naive want =
                made(&plain[k], 2, SHAPE(shape[0], shape[2]), diagonal_of, &diagonal, 0);
            naive_expect(&scene, ad_diagonal(operand[k], diagonal), &want);
        }
        for (int64_t diagonal = -2; diagonal <= 2; diagonal++) {
            const int64_t side = n + (diagonal < 0 ? -diagonal : diagonal);
            struct naive want = made(&plain[k], 4, SHAPE(plain[k].shape[0], m, side, side),
                                     on_diagonal, &diagonal, 0);
            const ad_tensor y = ad_diag(operand[k], diagonal);
            naive_expect(&scene, y, &want);
            naive_expect(&scene, ad_diagonal(y, diagonal), &plain[k]);
        }
    }
    scene_end(&scene);
}

/* ---- repetitions ---- */

static bool repeated(const struct naive *x, const int64_t *index, int64_t *from,
                     const int64_t *word)
{
    for (int axis = 0; axis < x->rank; axis++)
        from[axis] = index[axis + word[0]] % x->shape[axis];
    return true;
}

TEST_EACH(repetitions_agree_with_plain_loops, 3)
{
    static const int64_t times[][4] = {{1, 1, 1, 1}, {2, 1, 3, 1}, {3, 1, 1, 1},
                                       {1, 2, 2, 2}, {1, 1, 1, 4}, {1, 0, 2, 1}};
    begin(dtypes[_i], SHAPE(2, 3, 2));
    for (int k = 0; k < 2; k++)
        for (size_t t = 0; t < sizeof times / sizeof *times; t++)
            for (int more = 0; more < 2; more++) {
                int64_t shape[4];
                const int64_t *const by = times[t] + 1 - more, word = more;
                for (int axis = 0; axis < 3 + more; axis++)
                    shape[axis] = by[axis] * (axis < more ? 1 : plain[k].shape[axis - more]);
                const struct naive want = made(&plain[k], 3 + more, shape, repeated, &word, 0);
                naive_expect(&scene, ad_repeat(operand[k], by, 3 + more), &want);
            }
    scene_end(&scene);
}

/* Five axes and five numbers of times are ten axes to walk. */
TEST_EACH(more_axes_than_an_array_has_are_repeated_and_summed, 3)
{
    scene_begin(&scene, dtypes[_i], 5, SHAPE(2, 2, 2, 2, 2));
    const int64_t shape[] = {4, 4, 4, 4, 4}, word = 0;
    const struct naive want = made(&scene.plain, 5, shape, repeated, &word, 0);
    naive_expect(&scene, ad_repeat(scene.x, SHAPE(2, 2, 2, 2, 2), 5), &want);
    scene_end(&scene);
}

static bool interleaved(const struct naive *x, const int64_t *index, int64_t *from,
                        const int64_t *word)
{
    memcpy(from, index, (size_t)x->rank * sizeof *from);
    from[word[0]] = index[word[0]] / (word[1] > 0 ? word[1] : 1);
    return true;
}

TEST_EACH(elements_in_a_row_agree_with_plain_loops, 3)
{
    begin(dtypes[_i], SHAPE(3, 4, 2));
    for (int k = 0; k < 2; k++)
        for (int64_t axis = 0; axis < 3; axis++)
            for (int64_t times = 0; times < 4; times++) {
                int64_t shape[3];
                memcpy(shape, plain[k].shape, sizeof shape);
                shape[axis] *= times;
                const struct naive want =
                    made(&plain[k], 3, shape, interleaved, SHAPE(axis, times), 0);
                naive_expect(&scene,
                             ad_repeat_interleave(operand[k], times % 2 ? axis : axis - 3, times),
                             &want);
            }
    scene_end(&scene);
}

/* ---- arithmetic ---- */

TEST(traces_and_kronecker_products_agree_with_plain_loops)
{
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
        for (int layout = DENSE; layout < LAYOUTS; layout++) {
            struct box a, b, y, t;
            char error[KERNEL_ERROR_BYTES];
            int64_t i[2] = {0};
            box_make(&a, dtype, 2, SHAPE(3, 4), (enum layout)layout);
            box_make(&b, dtype, 2, SHAPE(5, 2), (enum layout)layout);
            box_make(&y, dtype, 2, SHAPE(15, 8), DENSE);
            box_make(&t, dtype, 0, NULL, DENSE);
            box_random(&a, -1, 1);
            box_random(&b, -1, 1);
            const kernel_ref in[] = {&a.array, &b.array};
            ck_assert_int_eq(box_run(&kernel_op_kron, in, &y.array, NULL, 0, NULL, false, error),
                             0);
            do {
                const double want = element(in[0], SHAPE(i[0] / 5, i[1] / 2)) *
                                    element(in[1], SHAPE(i[0] % 5, i[1] % 2));
                ck_assert(element(&y.array, i) ==
                          (dtype == KERNEL_F32 ? (double)(float)want : want));
            } while (index_next(2, y.shape, i));
            ck_assert_int_eq(box_run(&kernel_op_trace, in, &t.array, NULL, 0, NULL, false, error),
                             0);
            const double sum = element(in[0], SHAPE(0, 0)) + element(in[0], SHAPE(1, 1)) +
                               element(in[0], SHAPE(2, 2));
            ck_assert(fabs(get_at(&t.array, 0) - sum) <= (dtype == KERNEL_F32 ? 1e-6 : 1e-15));
            box_free(&a);
            box_free(&b);
            box_free(&y);
            box_free(&t);
        }
}

TEST(large_ones_agree_with_differences)
{
    static const struct check_large cases[] = {
        {&kernel_op_flip, 1, 2, 1, {{65, 129}}, {1}},
        {&kernel_op_roll, 1, 2, 2, {{65, 129}}, {1, 40}},
        {&kernel_op_pad, 1, 2, 5, {{33, 65}}, {0, 3, 0, 7, 9}},
        {&kernel_op_tril, 1, 2, 1, {{65, 70}}, {3}},
        {&kernel_op_diag, 1, 1, 1, {{90}}, {-3}},
        {&kernel_op_trace, 1, 2, 0, {{129, 65}}, {0}},
        {&kernel_op_kron, 2, 2, 0, {{9, 17}, {17, 5}}, {0}},
        {&kernel_op_repeat, 1, 2, 2, {{17, 33}}, {3, 5}},
        {&kernel_op_repeat_interleave, 1, 2, 2, {{17, 33}}, {1, 9}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_large(&cases[k]);
}

/* ---- refusals ---- */

#define HUGE_EXTENT ((int64_t)1 << 62)

TEST(what_does_not_fit_is_named)
{
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x, row = ad_select(x, 0, 0);
    const ad_tensor deep = ad_reshape(x, SHAPE(1, 1, 1, 1, 1, 1, 3, 4), 8);
    naive_refused(&scene, ad_flip_axes(x, SHAPE(0, -2), 2), AD_ERROR_SHAPE,
                  "flip: f64 [3,4]: axis -2 is named twice");
    naive_refused(&scene, ad_flip_axes(x, SHAPE(2), 1), AD_ERROR_SHAPE, "there is no axis 2");
    naive_refused(&scene, ad_roll(x, 2, 1), AD_ERROR_SHAPE,
                  "roll: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_pad(x, SHAPE(1, 2), 2, 0), AD_ERROR_SHAPE,
                  "pad: f64 [3,4]: 2 widths, but 4 are wanted: before and after each axis");
    naive_refused(&scene, ad_pad(x, SHAPE(1, 2, -3, 0), 4, 0), AD_ERROR_ARGUMENT,
                  "pad: f64 [3,4]: width -3 before axis 1 is negative");
    naive_refused(&scene, ad_pad(x, SHAPE(1, -2, 3, 0), 4, 0), AD_ERROR_ARGUMENT,
                  "width -2 after axis 0 is negative");
    naive_refused(&scene, ad_pad(x, SHAPE(INT64_MAX, 0, 0, 0), 4, 0), AD_ERROR_SHAPE, "overflows");
    naive_refused(&scene, ad_pad(x, SHAPE(HUGE_EXTENT, HUGE_EXTENT, 0, 0), 4, 0), AD_ERROR_SHAPE,
                  "overflows");
    naive_refused(&scene, ad_pad(x, NULL, 4, 0), AD_ERROR_ARGUMENT,
                  "pad: widths is a null pointer");
    naive_refused(&scene, ad_tril(row, 0), AD_ERROR_SHAPE,
                  "tril: f64 [4]: a matrix [...,m,n] is wanted");
    naive_refused(&scene, ad_triu(row, 0), AD_ERROR_SHAPE, "triu: f64 [4]: a matrix");
    naive_refused(&scene, ad_diagonal(row, 0), AD_ERROR_SHAPE, "diagonal: f64 [4]: a matrix");
    naive_refused(&scene, ad_trace(row), AD_ERROR_SHAPE, "trace: f64 [4]: a matrix");
    naive_refused(&scene, ad_diagonal(x, 5), AD_ERROR_SHAPE,
                  "diagonal: f64 [3,4]: diagonal 5 is not in -3..4");
    naive_refused(&scene, ad_diagonal(x, -4), AD_ERROR_SHAPE, "diagonal -4 is not in -3..4");
    naive_refused(&scene, ad_diag(ad_sum(x), 0), AD_ERROR_SHAPE,
                  "diag: f64 []: 1 to 7 axes are wanted");
    naive_refused(&scene, ad_diag(deep, 0), AD_ERROR_SHAPE, "1 to 7 axes are wanted");
    naive_refused(&scene, ad_diag(x, INT64_MIN), AD_ERROR_SHAPE, "the result's size overflows");
    naive_refused(&scene, ad_diag(x, INT64_MAX), AD_ERROR_SHAPE, "the result's size overflows");
    naive_refused(&scene, ad_kron(deep, row), AD_ERROR_SHAPE,
                  "kron: f64 [1,1,1,1,1,1,3,4] x f64 [4]: at most 4 axes");
    const ad_tensor wide = ad_broadcast_to(ad_slice(row, 0, 0, 1, 1), SHAPE(INT64_MAX / 16), 1);
    naive_refused(&scene, ad_kron(wide, wide), AD_ERROR_SHAPE, "the result's size overflows");
    naive_refused(&scene, ad_repeat(x, SHAPE(2), 1), AD_ERROR_SHAPE,
                  "repeat: f64 [3,4]: 1 times are named, 2 to 8 are wanted");
    naive_refused(&scene, ad_repeat(x, SHAPE(2, -1), 2), AD_ERROR_ARGUMENT, "-1 times is negative");
    naive_refused(&scene, ad_repeat(x, SHAPE(1, INT64_MAX), 2), AD_ERROR_SHAPE, "overflows");
    naive_refused(&scene, ad_repeat_interleave(x, 2, 2), AD_ERROR_SHAPE,
                  "repeat_interleave: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_repeat_interleave(x, 0, -2), AD_ERROR_ARGUMENT,
                  "-2 times is negative");
    naive_refused(&scene, ad_repeat_interleave(x, 0, INT64_MAX), AD_ERROR_SHAPE, "overflows");
    scene_end(&scene);
}

static void refused(const struct kernel_op *op, int rank, const int64_t *shape, int n_attr,
                    const int64_t *attr, const char *text)
{
    char error[KERNEL_ERROR_BYTES];
    struct kernel_shape out[KERNEL_MAX_OUT];
    struct box x;
    box_make(&x, KERNEL_F64, rank, shape, DENSE);
    const kernel_ref in = &x.array;
    const struct kernel_call call = {
        .op = op, .in = &in, .n_in = 1, .n_out = 1, .attr = attr, .n_attr = n_attr, .error = error};
    ck_assert_int_eq(kernel_infer(&call, out), KERNEL_REFUSED);
    ck_assert_str_eq(error, text);
    box_free(&x);
}

TEST(ops_of_pullbacks_refuse_what_does_not_fit)
{
    refused(&kernel_op_diagonal_add, 0, NULL, 3, SHAPE(0, 1, 1),
            "diagonal_add: f64 []: 1 to 7 axes are wanted");
    refused(&kernel_op_diagonal_add, 1, SHAPE(3), 3, SHAPE(0, 3, 2),
            "diagonal_add: f64 [3]: this is not diagonal 0 of [3,2]");
    refused(&kernel_op_diagonal_add, 1, SHAPE(3), 3, SHAPE(4, 3, 3),
            "diagonal_add: f64 [3]: this is not diagonal 4 of [3,3]");
    refused(&kernel_op_diagonal_add, 1, SHAPE(0), 3, SHAPE(0, -1, 3),
            "diagonal_add: f64 [0]: this is not diagonal 0 of [-1,3]");
    refused(&kernel_op_repeat_sum, 1, SHAPE(4), 2, SHAPE(2, 2),
            "repeat_sum: f64 [4]: 1 axes do not become 2");
    refused(&kernel_op_repeat_sum, 1, SHAPE(4), 1, SHAPE(3),
            "repeat_sum: f64 [4]: extent 4 is no multiple of 3");
    refused(&kernel_op_repeat_sum, 1, SHAPE(4), 1, SHAPE(0),
            "repeat_sum: f64 [4]: extent 4 is no multiple of 0");
    refused(&kernel_op_repeat_sum, 1, SHAPE(4), 1, SHAPE(-2),
            "repeat_sum: f64 [4]: extent 4 is no multiple of -2");
}

RUN_TESTS(NULL, NULL)
