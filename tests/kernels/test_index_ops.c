/* test_index_ops.c: elements by indices and by masks, and sums by indices, against plain loops:
 * values, gradients, refusals.
 */
#include "check_gradient.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static struct scene scene;
static const ad_dtype dtypes[] = {AD_F32, AD_F64, AD_I64};

/* x [3,4,5], and x with its first and last axes exchanged, which has gaps. */
static ad_tensor operand[2];
static struct naive plain[2];

static void begin(ad_dtype dtype)
{
    scene_begin(&scene, dtype, 3, SHAPE(3, 4, 5));
    operand[0] = scene.x;
    plain[0] = scene.plain;
    operand[1] = ad_permute(scene.x, SHAPE(2, 1, 0), 3);
    plain[1] = naive_permuted(&scene.plain, SHAPE(2, 1, 0));
}

/* Indices of these extents from 0 to n - 1, in no order, some equal. */
static struct naive index_of(int rank, const int64_t *shape, int64_t n)
{
    struct naive a = {.rank = rank};
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    for (int64_t i = 0; i < naive_size(&a); i++)
        a.at[i] = (double)((i * 7 + i / 3) % n);
    return a;
}

/* The same on the tape; with gaps it is a view of an array of twice the last extent. */
static ad_tensor index_tensor(const struct naive *a, bool gaps)
{
    static int64_t data[4][2 * NAIVE_MOST];
    static int next;
    int64_t shape[NAIVE_RANK], *const at = data[next++ % 4];
    const int64_t size = naive_size(a);
    gaps = gaps && size > 0;
    memcpy(shape, a->shape, sizeof shape);
    for (int64_t i = 0; i < size; i++)
        at[gaps ? 2 * i + 1 : i] = (int64_t)a->at[i];
    shape[a->rank - 1] *= gaps ? 2 : 1;
    const ad_tensor t = ad_constant(scene.tape, AD_I64, a->rank, shape, at);
    return gaps ? ad_slice(t, -1, 1, INT64_MAX, 2) : t;
}

/* ---- gather, index_select ---- */

static struct naive gathered(const struct naive *x, const struct naive *indices, int axis)
{
    struct naive y = *indices;
    int64_t at[NAIVE_RANK] = {0}, from[NAIVE_RANK] = {0}, i = 0;
    if (naive_size(&y) > 0)
        do {
            memcpy(from, at, sizeof from);
            from[axis] = (int64_t)indices->at[i];
            y.at[i++] = naive_get(x, from);
        } while (naive_next(&y, at));
    return y;
}

TEST_EACH(gathered_elements_agree_with_plain_loops, 3)
{
    begin(dtypes[_i]);
    for (int k = 0; k < 2; k++)
        for (int axis = 0; axis < 3; axis++)
            for (int64_t m = 0; m < 8; m += m ? 3 : 1) {
                int64_t shape[3];
                memcpy(shape, plain[k].shape, sizeof shape);
                shape[axis] = m;
                const struct naive indices = index_of(3, shape, plain[k].shape[axis]);
                const struct naive want = gathered(&plain[k], &indices, axis);
                naive_expect(&scene, ad_gather(operand[k], index_tensor(&indices, false), axis),
                             &want);
                naive_expect(&scene, ad_gather(operand[k], index_tensor(&indices, true), axis - 3),
                             &want);
            }
    scene_end(&scene);
}

TEST_EACH(selected_parts_agree_with_plain_loops, 3)
{
    begin(dtypes[_i]);
    for (int k = 0; k < 2; k++)
        for (int axis = 0; axis < 3; axis++)
            for (int64_t m = 0; m < 8; m += m ? 3 : 1) {
                const struct naive indices = index_of(1, &m, plain[k].shape[axis]);
                struct naive whole = {.rank = 3}, want;
                int64_t at[NAIVE_RANK] = {0}, i = 0;
                memcpy(whole.shape, plain[k].shape, sizeof whole.shape);
                whole.shape[axis] = m;
                if (m > 0)
                    do
                        whole.at[i++] = indices.at[at[axis]];
                    while (naive_next(&whole, at));
                want = gathered(&plain[k], &whole, axis);
                naive_expect(&scene,
                             ad_index_select(operand[k], index_tensor(&indices, false), axis),
                             &want);
                naive_expect(&scene,
                             ad_index_select(operand[k], index_tensor(&indices, true), axis - 3),
                             &want);
            }
    scene_end(&scene);
}

/* ---- scatter_add ---- */

/* Sums of whole numbers are exact in both dtypes; the gradient is the seed, gathered. */
TEST_EACH(scattered_sums_agree_with_plain_loops, 2)
{
    enum { EXTENT = 4 };
    begin(dtypes[_i]);
    for (int k = 0; k < 2; k++)
        for (int axis = 0; axis < 3; axis++) {
            const struct naive indices = index_of(3, plain[k].shape, EXTENT);
            struct naive want = {.rank = 3};
            int64_t at[NAIVE_RANK] = {0}, to[NAIVE_RANK], i = 0;
            double got[NAIVE_MOST], seed[NAIVE_MOST], g[NAIVE_MOST];
            memcpy(want.shape, plain[k].shape, sizeof want.shape);
            want.shape[axis] = EXTENT;
            do {
                int64_t offset = 0;
                memcpy(to, at, sizeof to);
                to[axis] = (int64_t)indices.at[i];
                for (int a = 0; a < 3; a++)
                    offset = offset * want.shape[a] + to[a];
                want.at[offset] += plain[k].at[i++];
            } while (naive_next(&plain[k], at));
            const ad_tensor y =
                ad_scatter_add(operand[k], index_tensor(&indices, k != 0), axis - 3 * k, EXTENT);
            ck_assert_msg(ad_value(ad_cast(y, AD_F64), got, naive_size(&want)) == AD_OK, "%s",
                          ad_tape_message(scene.tape));
            for (int64_t j = 0; j < naive_size(&want); j++) {
                ck_assert(got[j] == want.at[j]);
                seed[j] = (double)(j * 3 % 17);
            }
            const ad_tensor u =
                ad_cast(ad_constant(scene.tape, AD_F64, 3, want.shape, seed), scene.dtype);
            ck_assert_int_eq(ad_tape_zero_gradients(scene.tape), AD_OK);
            ck_assert_msg(ad_backward_seed(y, u) == AD_OK, "%s", ad_tape_message(scene.tape));
            char raw[NAIVE_MOST * 8];
            ck_assert_int_eq(ad_gradient(scene.x, raw, naive_size(&scene.plain)), AD_OK);
            for (int64_t j = 0; j < naive_size(&scene.plain); j++)
                g[j] = scene.dtype == AD_F32 ? (double)((float *)(void *)raw)[j]
                                             : ((double *)(void *)raw)[j];
            memcpy(want.at, seed, sizeof seed);
            const struct naive back = gathered(&want, &indices, axis);
            for (int64_t j = 0; j < naive_size(&back); j++)
                ck_assert(g[(int64_t)plain[k].at[j]] == back.at[j]);
        }
    scene_end(&scene);
}

TEST(the_sum_of_no_element_is_zero)
{
    double got[6] = {1, 1, 1, 1, 1, 1};
    scene_begin(&scene, AD_F64, 2, SHAPE(2, 3));
    const ad_tensor none = ad_slice(scene.x, 1, 0, 0, 1);
    const ad_tensor index = ad_constant(scene.tape, AD_I64, 2, SHAPE(2, 0), NULL);
    ck_assert_int_eq(ad_value(ad_scatter_add(none, index, 1, 3), got, 6), AD_OK);
    for (int i = 0; i < 6; i++)
        ck_assert(got[i] == 0);
    scene_end(&scene);
}

/* ---- masks ---- */

/* A mask of x's elements that are multiples of 3, in the dtype of the scene. */
static ad_tensor mask_of(const struct naive *x, int64_t *n)
{
    static float narrow[2][NAIVE_MOST];
    static double wide[2][NAIVE_MOST];
    static int next;
    const int which = next++ % 2;
    *n = 0;
    for (int64_t i = 0; i < naive_size(x); i++) {
        const bool taken = (int64_t)x->at[i] % 3 == 0;
        wide[which][i] = taken ? *n % 2 ? -0.25 : (double)NAN : 0;
        narrow[which][i] = (float)wide[which][i];
        *n += taken;
    }
    return ad_constant(scene.tape, scene.dtype, x->rank, x->shape,
                       scene.dtype == AD_F32 ? (void *)narrow[which] : (void *)wide[which]);
}

TEST_EACH(masked_elements_agree_with_plain_loops, 2)
{
    begin(dtypes[_i]);
    for (int k = 0; k < 2; k++) {
        int64_t n;
        const ad_tensor mask = mask_of(&plain[k], &n);
        struct naive taken = {.rank = 1, .shape = {n}}, filled = plain[k];
        int64_t count = 0;
        for (int64_t i = 0; i < naive_size(&plain[k]); i++)
            if ((int64_t)plain[k].at[i] % 3 == 0) {
                taken.at[count++] = plain[k].at[i];
                filled.at[i] = NAIVE_OTHER(2.5);
            }
        naive_expect(&scene, ad_masked_select(operand[k], mask, n), &taken);
        naive_expect(&scene, ad_masked_fill(operand[k], mask, 2.5), &filled);
        /* Of a mask with gaps, and of a constant one that is repeated. */
        const ad_tensor turned = ad_permute(ad_permute(mask, SHAPE(2, 1, 0), 3), SHAPE(2, 1, 0), 3);
        naive_expect(&scene, ad_masked_select(operand[k], turned, n), &taken);
        struct naive all = plain[k];
        all.rank = 1;
        all.shape[0] = naive_size(&plain[k]);
        const ad_tensor one = ad_broadcast_to(
            ad_select(ad_select(ad_select(mask, 0, 0), 0, 0), 0, 0), SHAPE(4, 1), 2);
        naive_expect(&scene, ad_masked_select(operand[k], one, all.shape[0]), &all);
    }
    scene_end(&scene);
}

TEST(a_mask_of_rows_or_columns_is_repeated)
{
    const double row[4] = {1, 0, 0, 1}, column[3] = {0, 1, 0};
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    struct naive want = {1, {6}, {0, 3, 4, 7, 8, 11}};
    naive_expect(&scene,
                 ad_masked_select(scene.x, ad_constant(scene.tape, AD_F64, 1, SHAPE(4), row), 6),
                 &want);
    want = (struct naive){1, {4}, {4, 5, 6, 7}};
    const ad_tensor middle = ad_constant(scene.tape, AD_F64, 2, SHAPE(3, 1), column);
    naive_expect(&scene, ad_masked_select(scene.x, middle, 4), &want);
    want = (struct naive){2, {3, 4}, {0, 1, 2, 3, -8, -8, -8, -8, 8, 9, 10, 11}};
    naive_expect(&scene, ad_masked_fill(scene.x, middle, 7), &want);
    scene_end(&scene);
}

/* Where x is filled its gradient is exactly 0, whatever x and the adjoint are. */
TEST(filled_elements_get_no_gradient_at_all)
{
    const double x[2] = {(double)NAN, 1}, mask[2] = {1, 0}, seed[2] = {(double)INFINITY, 3};
    double y[2], g[2];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor t = ad_leaf(tape, AD_F64, 1, SHAPE(2), x);
    const ad_tensor f = ad_masked_fill(t, ad_constant(tape, AD_F64, 1, SHAPE(2), mask), -1);
    ck_assert_int_eq(ad_value(f, y, 2), AD_OK);
    ck_assert(y[0] == -1 && y[1] == 1);
    ck_assert_int_eq(ad_backward_seed(f, ad_constant(tape, AD_F64, 1, SHAPE(2), seed)), AD_OK);
    ck_assert_int_eq(ad_gradient(t, g, 2), AD_OK);
    ck_assert(g[0] == 0 && g[1] == 3);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- large ones, refusals ---- */

TEST(large_ones_agree_with_differences)
{
    static const struct {
        const struct kernel_op *op;
        int rank, index_rank, n_attr;
        int64_t shape[2], index[2], attr[2];
    } cases[] = {
        {&kernel_op_gather, 2, 2, 1, {33, 65}, {33, 200}, {1}},
        {&kernel_op_scatter_add, 2, 2, 2, {200, 17}, {200, 17}, {0, 33}},
        {&kernel_op_index_select, 2, 1, 1, {33, 65}, {100}, {0}},
        {&kernel_op_index_select, 2, 1, 1, {33, 65}, {100}, {1}},
        {&kernel_op_index_add, 2, 1, 2, {17, 100}, {100}, {1, 33}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct kernel_sample sample = {
            .n_in = 2,
            .dtype = {KERNEL_F64, KERNEL_I64},
            .rank = {(uint8_t)cases[k].rank, (uint8_t)cases[k].index_rank},
            .low = {-1, 0},
            .high = {1, 33},
            .n_attr = cases[k].n_attr};
        memcpy(sample.shape[0], cases[k].shape, sizeof cases[k].shape);
        memcpy(sample.shape[1], cases[k].index, sizeof cases[k].index);
        memcpy(sample.attr, cases[k].attr, sizeof cases[k].attr);
        struct check_case c = check_case_of(cases[k].op, &sample, KERNEL_F64, -1);
        c.aim = "large";
        check_demand(check_direction(&c));
        check_demand(check_held(&c));
        c = check_case_of(cases[k].op, &sample, KERNEL_F32, -1);
        c.aim = "large";
        check_demand(check_narrow(&c));
    }
}

TEST(what_does_not_fit_is_named)
{
    static const int64_t far[4] = {0, 1, 4, 2}, minus[3] = {0, 1, -1}, four[4] = {0, 1, 2, 3};
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tape tape = scene.tape;
    const ad_tensor x = scene.x, scalar = ad_sum(x);
    const ad_tensor row = ad_constant(tape, AD_I64, 1, SHAPE(4), far);
    const ad_tensor wide = ad_broadcast_to(row, SHAPE(3, 4), 2);
    const ad_tensor below = ad_constant(tape, AD_I64, 2, SHAPE(3, 1), minus);
    const ad_tensor good = ad_constant(tape, AD_I64, 2, SHAPE(2, 2), four);
    naive_refused(&scene, ad_gather(x, wide, 1), AD_ERROR_VALUE,
                  "gather: f64 [3,4], i64 [3,4]: index 4 at position 2 is not in 0..3");
    naive_refused(&scene, ad_gather(ad_select(x, 0, 0), row, 0), AD_ERROR_VALUE,
                  "gather: f64 [4], i64 [4]: index 4 at position 2 is not in 0..3");
    naive_refused(&scene, ad_gather(x, below, 1), AD_ERROR_VALUE,
                  "gather: f64 [3,4], i64 [3,1]: index -1 at position 2 is not in 0..3");
    naive_refused(&scene, ad_gather(x, good, 0), AD_ERROR_SHAPE,
                  "gather: f64 [3,4], i64 [2,2]: the extents differ beside axis 0");
    naive_refused(&scene, ad_gather(x, row, 0), AD_ERROR_SHAPE, "the extents differ beside axis 0");
    naive_refused(&scene, ad_gather(x, good, 2), AD_ERROR_SHAPE,
                  "gather: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_gather(x, x, 0), AD_ERROR_DTYPE,
                  "gather: indices must be i64, not f64");
    naive_refused(&scene, ad_scatter_add(x, wide, 1, 4), AD_ERROR_VALUE,
                  "scatter_add: f64 [3,4], i64 [3,4]: index 4 at position 2 is not in 0..3");
    naive_refused(&scene, ad_scatter_add(x, below, 1, 4), AD_ERROR_SHAPE,
                  "scatter_add: f64 [3,4], i64 [3,1]: the extents differ (axis 1)");
    naive_refused(&scene, ad_scatter_add(x, wide, 1, -1), AD_ERROR_SHAPE, "extent -1 is negative");
    naive_refused(&scene, ad_scatter_add(x, x, 1, 4), AD_ERROR_DTYPE,
                  "indices must be i64, not f64");
    naive_refused(&scene, ad_scatter_add(good, good, 1, 4), AD_ERROR_DTYPE,
                  "scatter_add takes f32 or f64, not i64");
    naive_refused(&scene, ad_index_select(x, row, 1), AD_ERROR_VALUE,
                  "index_select: f64 [3,4], i64 [4]: index 4 at position 2 is not in 0..3");
    naive_refused(&scene, ad_index_select(x, good, 1), AD_ERROR_SHAPE,
                  "index_select: f64 [3,4], i64 [2,2]: indices [m] are wanted");
    naive_refused(&scene, ad_index_select(x, row, -3), AD_ERROR_SHAPE, "there is no axis -3 of 2");
    naive_refused(&scene, ad_index_select(x, x, 1), AD_ERROR_DTYPE, "indices must be i64, not f64");
    naive_refused(&scene, ad_masked_fill(x, ad_slice(x, 1, 0, 3, 1), 0), AD_ERROR_SHAPE,
                  "masked_fill: f64 [3,4] and f64 [3,3]: extents 4 and 3 do not broadcast");
    naive_refused(&scene, ad_masked_fill(x, wide, 0), AD_ERROR_DTYPE, "takes f32 or f64, not i64");
    naive_refused(&scene, ad_masked_select(x, ad_slice(x, 1, 0, 3, 1), 1), AD_ERROR_SHAPE,
                  "masked_select: f64 [3,4] and f64 [3,3]: the mask does not broadcast to x");
    naive_refused(&scene, ad_masked_select(scalar, x, 1), AD_ERROR_SHAPE,
                  "does not broadcast to x");
    naive_refused(&scene, ad_masked_select(x, x, 13), AD_ERROR_SHAPE, "n = 13 is not in 0..12");
    naive_refused(&scene, ad_masked_select(x, x, -1), AD_ERROR_SHAPE, "n = -1 is not in 0..12");
    naive_refused(&scene, ad_masked_select(x, wide, 1), AD_ERROR_DTYPE,
                  "takes f32 or f64, not i64");
    naive_refused(&scene, ad_masked_select(x, x, 12), AD_ERROR_VALUE,
                  "masked_select: f64 [3,4] and f64 [3,4]: the mask names 11 elements, n is 12");
    naive_refused(&scene, ad_masked_select(x, x, 3), AD_ERROR_VALUE,
                  "masked_select: f64 [3,4] and f64 [3,4]: the mask names 11 elements, n is 3");
    scene_end(&scene);
}

TEST(sums_by_index_of_pullbacks_refuse_what_does_not_fit)
{
    char error[KERNEL_ERROR_BYTES];
    struct kernel_shape out[KERNEL_MAX_OUT];
    const int64_t shape[] = {2, 3}, strides[] = {3, 1}, along[] = {1};
    struct kernel_array x = {NULL, shape, strides, 6, KERNEL_F64, 2, true, 0};
    struct kernel_array indices = {NULL, shape + 1, along, 3, KERNEL_I64, 1, true, 0};
    const kernel_ref in[] = {&x, &indices};
    struct kernel_call call = {
        .op = &kernel_op_index_add, .in = in, .n_in = 2, .n_out = 1, .n_attr = 2, .error = error};
    call.attr = SHAPE(1, 5);
    ck_assert_int_eq(kernel_infer(&call, out), 0);
    call.attr = SHAPE(2, 5);
    ck_assert_int_eq(kernel_infer(&call, out), KERNEL_REFUSED);
    ck_assert_str_eq(error, "index_add: f64 [2,3]: there is no axis 2 of 2");
    call.attr = SHAPE(0, 5);
    ck_assert_int_eq(kernel_infer(&call, out), KERNEL_REFUSED);
    ck_assert_str_eq(error,
                     "index_add: f64 [2,3], i64 [3]: indices [m] of axis 0 and an extent are "
                     "wanted");
    call.attr = SHAPE(1, -5);
    ck_assert_int_eq(kernel_infer(&call, out), KERNEL_REFUSED);
    indices.dtype = KERNEL_F64;
    ck_assert_int_eq(kernel_infer(&call, out), KERNEL_REFUSED_DTYPE);
    ck_assert_str_eq(error, "index_add: indices must be i64, not f64");
}

RUN_TESTS(NULL, NULL)
