/* test_reduce_values.c: values of reductions, softmax and products against long double, and where
 * numbers are extreme, infinite, NaN or missing.
 *
 * Oracles are plain loops in long double.
 */
#include "kernel_box.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char error[KERNEL_ERROR_BYTES];

static double epsilon(int dtype)
{
    return dtype == KERNEL_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static void check_value(const char *op, int dtype, double ours, long double right)
{
    ck_assert_msg(fabsl((long double)ours - right) <=
                      16 * (long double)epsilon(dtype) * (1 + fabsl(right)),
                  "%s: %.17g, right is %.20Lg", op, ours, right);
}

/* ---- reductions ---- */

struct reduction {
    const struct kernel_op *op;
    bool has_word;
    int64_t word; /* between keepdim and the axes */
    long double (*oracle)(int64_t n, const long double *x, int64_t word);
};

static long double least(int64_t n, const long double *x, int64_t word)
{
    long double y = x[0];
    (void)word;
    for (int64_t i = 1; i < n; i++)
        y = x[i] < y ? x[i] : y;
    return y;
}

static long double product(int64_t n, const long double *x, int64_t word)
{
    long double y = 1;
    (void)word;
    for (int64_t i = 0; i < n; i++)
        y *= x[i];
    return y;
}

static long double logsumexp(int64_t n, const long double *x, int64_t word)
{
    long double y = 0;
    (void)word;
    for (int64_t i = 0; i < n; i++)
        y += expl(x[i]);
    return logl(y);
}

static long double norm(int64_t n, const long double *x, int64_t word)
{
    const double p = kernel_attr_real(word);
    long double y = 0;
    for (int64_t i = 0; i < n; i++)
        y = isinf(p) ? fmaxl(y, fabsl(x[i])) : y + powl(fabsl(x[i]), (long double)p);
    return isinf(p) ? y : powl(y, 1 / (long double)p);
}

static long double variance(int64_t n, const long double *x, int64_t word)
{
    long double mean = 0, y = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (long double)n;
    for (int64_t i = 0; i < n; i++)
        y += (x[i] - mean) * (x[i] - mean);
    return y / (long double)(n - word);
}

/* One reduction over one set of axes. */
static void check_reduction(const struct reduction *r, const struct box *x, unsigned axes,
                            bool keepdim)
{
    const kernel_ref in = &x->array;
    int64_t attr[KERNEL_MAX_ATTR] = {keepdim, r->word}, kept[KERNEL_MAX_RANK];
    int n_attr = r->has_word ? 2 : 1;
    for (int axis = 0; axis < in->rank; axis++) {
        kept[axis] = axes >> axis & 1 ? 1 : in->shape[axis];
        if (axes >> axis & 1)
            attr[n_attr++] = axis % 2 ? axis - in->rank : axis;
    }
    struct kernel_call call = {.op = r->op,
                               .in = &in,
                               .n_in = 1,
                               .n_out = 1,
                               .attr = attr,
                               .n_attr = n_attr,
                               .error = error};
    struct kernel_shape shape;
    struct box y;
    ck_assert_msg(kernel_infer(&call, &shape) == 0, "%s", error);
    box_make(&y, in->dtype, shape.rank, shape.extent, DENSE);
    ck_assert_int_eq(box_run(r->op, &in, &y.array, NULL, n_attr, attr, false, error), 0);
    long double *group = calloc((size_t)in->size, sizeof *group);
    int64_t outer[KERNEL_MAX_RANK] = {0}, at = 0;
    do {
        int64_t index[KERNEL_MAX_RANK] = {0}, n = 0;
        do {
            bool here = true;
            for (int axis = 0; axis < in->rank; axis++)
                here = here && (kept[axis] == 1 || index[axis] == outer[axis]);
            if (here)
                group[n++] = (long double)element(in, index);
        } while (index_next(in->rank, x->shape, index));
        check_value(r->op->name, in->dtype, get_at(&y.array, at++), r->oracle(n, group, r->word));
    } while (index_next(in->rank, kept, outer));
    ck_assert_int_eq(at, y.array.size);
    free(group);
    box_free(&y);
}

TEST(reductions_agree_with_long_double_over_all_axes)
{
    static const int64_t shapes[][3] = {{3, 4, 5}, {2, 17, 1}, {9, 2, 8}};
    const struct reduction all[] = {
        {&kernel_op_min, false, 0, least},
        {&kernel_op_prod, false, 0, product},
        {&kernel_op_logsumexp, false, 0, logsumexp},
        {&kernel_op_var, true, 0, variance},
        {&kernel_op_norm, true, kernel_attr_word(1), norm},
        {&kernel_op_norm, true, kernel_attr_word(1.5), norm},
        {&kernel_op_norm, true, kernel_attr_word(2), norm},
        {&kernel_op_norm, true, kernel_attr_word(7), norm},
        {&kernel_op_norm, true, kernel_attr_word((double)INFINITY), norm},
    };
    for (int s = 0; s < 3; s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
                struct box x;
                box_make(&x, dtype, 3, shapes[s], (enum layout)layout);
                box_random(&x, -2, 2);
                for (unsigned axes = 1; axes < 8; axes++)
                    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
                        if (all[k].op != &kernel_op_prod || axes != 7)
                            check_reduction(&all[k], &x, axes, axes % 2);
                box_free(&x);
            }
}

/* A vector's reduction over everything. */
static double reduce(const struct kernel_op *op, int dtype, int64_t n, const double *x, bool has,
                     int64_t word)
{
    struct box in, y;
    const int64_t attr[] = {0, word};
    box_make(&in, dtype, 1, &n, DENSE);
    box_make(&y, dtype, 0, NULL, DENSE);
    for (int64_t i = 0; i < n; i++)
        set_at(&in.array, i, x[i]);
    const kernel_ref ref = &in.array;
    ck_assert_int_eq(box_run(op, &ref, &y.array, NULL, has ? 2 : 1, attr, false, error), 0);
    const double result = get_at(&y.array, 0);
    box_free(&in);
    box_free(&y);
    return result;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

TEST(infinities_nan_and_nothing_give_what_is_documented)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const int64_t two = kernel_attr_word(2), one = kernel_attr_word(1);
    const int64_t three = kernel_attr_word(3), most = kernel_attr_word(inf);
    const struct {
        const struct kernel_op *op;
        bool has;
        int64_t word;
        int n;
        double x[3], y;
    } cases[] = {
        {&kernel_op_min, false, 0, 3, {1, nan, -inf}, nan},
        {&kernel_op_min, false, 0, 3, {nan, 2, 3}, nan},
        {&kernel_op_min, false, 0, 3, {inf, -inf, 0}, -inf},
        {&kernel_op_min, false, 0, 2, {inf, inf}, inf},
        {&kernel_op_prod, false, 0, 0, {0}, 1},
        {&kernel_op_prod, false, 0, 3, {2, 0, -3}, 0},
        {&kernel_op_prod, false, 0, 3, {2, nan, 0}, nan},
        {&kernel_op_prod, false, 0, 2, {0, inf}, nan},
        {&kernel_op_prod, false, 0, 2, {-2, inf}, -inf},
        {&kernel_op_logsumexp, false, 0, 0, {0}, -inf},
        {&kernel_op_logsumexp, false, 0, 3, {-inf, -inf, -inf}, -inf},
        {&kernel_op_logsumexp, false, 0, 3, {-inf, 5, -inf}, 5},
        {&kernel_op_logsumexp, false, 0, 3, {inf, -inf, 1}, inf},
        {&kernel_op_logsumexp, false, 0, 3, {inf, nan, 1}, nan},
        {&kernel_op_norm, true, two, 0, {0}, 0},
        {&kernel_op_norm, true, most, 0, {0}, 0},
        {&kernel_op_norm, true, two, 3, {0, -0.0, 0}, 0},
        {&kernel_op_norm, true, two, 3, {3, -inf, 0}, inf},
        {&kernel_op_norm, true, three, 3, {3, -inf, 0}, inf},
        {&kernel_op_norm, true, one, 3, {3, -inf, 0}, inf},
        {&kernel_op_norm, true, two, 3, {3, nan, inf}, nan},
        {&kernel_op_norm, true, most, 3, {3, nan, 4}, nan},
        {&kernel_op_norm, true, three, 3, {3, nan, 4}, nan},
        {&kernel_op_norm, true, two, 2, {3, -4}, 5},
        {&kernel_op_var, true, 0, 0, {0}, nan},
        {&kernel_op_var, true, 1, 1, {3}, nan},
        {&kernel_op_var, true, 2, 1, {3}, nan},
        {&kernel_op_var, true, 0, 1, {3}, 0},
        {&kernel_op_var, true, 1, 3, {1, 2, 3}, 1},
        {&kernel_op_var, true, 0, 2, {1, inf}, nan},
        {&kernel_op_var, true, 0, 2, {1, nan}, nan},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
            const double y =
                reduce(cases[k].op, dtype, cases[k].n, cases[k].x, cases[k].has, cases[k].word);
            ck_assert_msg(same(y, cases[k].y), "%s, case %zu: %g, right is %g", cases[k].op->name,
                          k, y, cases[k].y);
        }
}

TEST(nothing_overflows_or_vanishes_on_the_way)
{
    const double factors[] = {1e300, 1e300, 1e-300, 1e-300, 3}, tiny[] = {3e-200, 4e-200};
    const double huge[] = {3e200, -4e200}, far[] = {1000, 1000}, low[] = {-1000, -1000};
    const double large[] = {1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 4};
    const int64_t two = kernel_attr_word(2), nine = kernel_attr_word(9);
    const int f64 = KERNEL_F64;
    ck_assert_double_eq_tol(reduce(&kernel_op_prod, f64, 5, factors, false, 0), 3, 4e-15);
    ck_assert_double_eq_tol(reduce(&kernel_op_norm, f64, 2, huge, true, two) / 5e200, 1, 4e-16);
    ck_assert_double_eq_tol(reduce(&kernel_op_norm, f64, 2, tiny, true, two) / 5e-200, 1, 4e-16);
    const double right = pow(pow(3, 9) + pow(4, 9), 1 / 9.0);
    ck_assert_double_eq_tol(reduce(&kernel_op_norm, f64, 2, huge, true, nine) / 1e200, right,
                            4e-15);
    ck_assert_double_eq(reduce(&kernel_op_logsumexp, f64, 2, far, false, 0), 1000 + log(2));
    ck_assert_double_eq(reduce(&kernel_op_logsumexp, f64, 2, low, false, 0), -1000 + log(2));
    ck_assert_double_eq_tol(reduce(&kernel_op_var, f64, 4, large, true, 0), 1.25, 1e-15);
    const double odd[] = {16777215, 16777214, 16777213, 16777208, 16777209};
    ck_assert_double_eq_tol(reduce(&kernel_op_var, KERNEL_F32, 5, odd, true, 0), 7.76, 1e-6);
}

/* Of numbers whose squares, sums or differences to the first leave the range. */
TEST(variances_keep_the_range_of_their_results)
{
    const double inf = (double)INFINITY, below[] = {1e-200, 3e-200},
                 above[] = {-1e308, -1e308, 1e308};
    const double high[] = {1e300, 3e300}, tiny[] = {0x1p-1074, 0x3p-1074},
                 sum[] = {1.5e308, 1.5e308};
    const double one[] = {0x1.8p-540, 0x1.8p-539}, narrow[] = {1e-30, 3e-30}, wide[] = {1e30, 3e30};
    const int f64 = KERNEL_F64, f32 = KERNEL_F32;
    ck_assert_double_eq_tol(reduce(&kernel_op_std, f64, 2, below, true, 0) / 1e-200, 1, 1e-15);
    ck_assert_double_eq_tol(reduce(&kernel_op_std, f64, 2, high, true, 0) / 1e300, 1, 1e-15);
    ck_assert_double_eq(reduce(&kernel_op_std, f64, 2, tiny, true, 0), 0x1p-1074);
    ck_assert_double_eq(reduce(&kernel_op_std, f64, 2, sum, true, 0), 0);
    ck_assert_double_eq(reduce(&kernel_op_var, f64, 2, sum, true, 0), 0);
    ck_assert_double_eq(reduce(&kernel_op_var, f64, 3, above, true, 0), inf);
    ck_assert_double_eq_tol(reduce(&kernel_op_std, f64, 3, above, true, 0) / 1e308, sqrt(8.0 / 9),
                            1e-15);
    ck_assert_double_eq(reduce(&kernel_op_var, f64, 2, one, true, 0), 0);
    ck_assert_double_eq(reduce(&kernel_op_std, f64, 2, one, true, 0), 0x1.8p-541);
    ck_assert_double_eq_tol(reduce(&kernel_op_std, f32, 2, narrow, true, 0) / 1e-30, 1, 1e-6);
    ck_assert_double_eq_tol(reduce(&kernel_op_std, f32, 2, wide, true, 0) / 1e30, 1, 1e-6);
}

/* ---- softmax ---- */

TEST(softmax_and_its_logarithm_agree_with_long_double_along_each_axis)
{
    static const int64_t shape[] = {3, 9, 4};
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
            for (int64_t axis = 0; axis < 3; axis++) {
                struct box x, y, z;
                box_make(&x, dtype, 3, shape, (enum layout)layout);
                box_make(&y, dtype, 3, shape, DENSE);
                box_make(&z, dtype, 3, shape, DENSE);
                box_random(&x, -9, 9);
                const kernel_ref in = &x.array;
                const int64_t back = axis - 3;
                ck_assert(!box_run(&kernel_op_softmax, &in, &y.array, NULL, 1, &axis, 0, error));
                ck_assert(
                    !box_run(&kernel_op_log_softmax, &in, &z.array, NULL, 1, &back, 0, error));
                int64_t index[KERNEL_MAX_RANK] = {0};
                do {
                    int64_t along[KERNEL_MAX_RANK];
                    long double sum = 0;
                    memcpy(along, index, sizeof along);
                    for (along[axis] = 0; along[axis] < shape[axis]; along[axis]++)
                        sum += expl((long double)element(in, along));
                    const long double v = (long double)element(in, index);
                    check_value("softmax", dtype, element(&y.array, index), expl(v) / sum);
                    check_value("log_softmax", dtype, element(&z.array, index), v - logl(sum));
                } while (index_next(3, shape, index));
                box_free(&x);
                box_free(&y);
                box_free(&z);
            }
}

TEST(softmax_of_infinities_and_nan)
{
    const double inf = (double)INFINITY, nan = (double)NAN, third = log(1 / 2.0);
    const double x[4][3] = {{-inf, 1000, 1000}, {inf, 0, 0}, {nan, 0, 0}, {-inf, -inf, -inf}};
    const double p[4][3] = {{0, 0.5, 0.5}, {nan, nan, nan}, {nan, nan, nan}, {nan, nan, nan}};
    const int64_t n = 3, axis = 0;
    for (int k = 0; k < 4; k++) {
        struct box in, y;
        box_make(&in, KERNEL_F64, 1, &n, DENSE);
        box_make(&y, KERNEL_F64, 1, &n, DENSE);
        for (int i = 0; i < 3; i++)
            set_at(&in.array, i, x[k][i]);
        const kernel_ref ref = &in.array;
        ck_assert(!box_run(&kernel_op_softmax, &ref, &y.array, NULL, 1, &axis, false, error));
        for (int i = 0; i < 3; i++)
            ck_assert_msg(same(get_at(&y.array, i), p[k][i]), "softmax %d %d", k, i);
        ck_assert(!box_run(&kernel_op_log_softmax, &ref, &y.array, NULL, 1, &axis, false, error));
        for (int i = 0; i < 3; i++)
            ck_assert_msg(same(get_at(&y.array, i), k > 0   ? nan
                                                    : i > 0 ? third
                                                            : -inf),
                          "log_softmax %d %d: %g", k, i, get_at(&y.array, i));
        box_free(&in);
        box_free(&y);
    }
}

/* ---- products ---- */

/* Element of an operand of a product at the output's batch index, as matmul broadcasts it. */
static long double part(const struct box *x, int batch_rank, const int64_t *batch, int64_t row,
                        int64_t column, bool vector)
{
    int64_t at[KERNEL_MAX_RANK] = {0};
    const int leading = x->array.rank - (vector ? 1 : 2);
    for (int axis = 0; axis < leading; axis++)
        at[axis] = x->shape[axis] == 1 ? 0 : batch[batch_rank - leading + axis];
    if (!vector)
        at[leading] = row;
    at[x->array.rank - 1] = column;
    return (long double)element(&x->array, at);
}

static void check_product(const struct kernel_sample *s, int dtype, enum layout layout)
{
    struct box a, b, c;
    box_make(&a, dtype, s->rank[0], s->shape[0], layout);
    box_make(&b, dtype, s->rank[1], s->shape[1], (enum layout)((layout + 1) % LAYOUTS));
    box_random(&a, -1, 1);
    box_random(&b, -1, 1);
    const bool row = s->rank[0] == 1, column = s->rank[1] == 1;
    const kernel_ref in[] = {&a.array, &b.array};
    struct kernel_call call = {.op = &kernel_op_matmul, .in = in, .n_in = 2, .error = error};
    struct kernel_shape shape;
    ck_assert_msg(kernel_infer(&call, &shape) == 0, "%s", error);
    box_make(&c, dtype, shape.rank, shape.extent, DENSE);
    box_random(&c, 1, 1);
    ck_assert(!box_run(&kernel_op_matmul, in, &c.array, NULL, 0, NULL, true, error));
    const int batch = shape.rank - !row - !column;
    const int64_t depth = s->shape[0][s->rank[0] - 1];
    int64_t at[KERNEL_MAX_RANK] = {0};
    if (c.array.size > 0)
        do {
            const int64_t i = row ? 0 : at[batch], j = column ? 0 : at[shape.rank - 1];
            long double sum = 1; /* what was there */
            for (int64_t k = 0; k < depth; k++)
                sum += part(&a, batch, at, i, k, row) * (column ? part(&b, batch, at, 0, k, true)
                                                                : part(&b, batch, at, k, j, false));
            check_value("matmul", dtype, element(&c.array, at), sum);
        } while (index_next(shape.rank, shape.extent, at));
    box_free(&a);
    box_free(&b);
    box_free(&c);
}

TEST(matmul_agrees_with_long_double_for_vectors_batches_and_layouts)
{
    struct kernel_sample s;
    int vectors = 0, batches = 0;
    for (int k = 0; kernel_op_matmul.sample(k, &s); k++) {
        vectors += s.rank[0] == 1 || s.rank[1] == 1;
        batches += s.rank[0] > 2 || s.rank[1] > 2;
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
                check_product(&s, dtype, (enum layout)layout);
    }
    ck_assert_int_ge(vectors, 4);
    ck_assert_int_ge(batches, 4);
}

TEST(dot_and_outer_agree_with_long_double)
{
    for (int64_t n = 0; n < 20; n++)
        for (int k = 0; k < 4; k++) {
            const int dtype = k & 1 ? KERNEL_F32 : KERNEL_F64;
            const int64_t m = n / 2 + 1, shape[] = {m, n};
            struct box a, b, c, y, z;
            box_make(&a, dtype, 1, &n, k & 2 ? GAPPED : DENSE);
            box_make(&b, dtype, 1, &n, DENSE);
            box_make(&c, dtype, 1, &m, k & 2 ? GAPPED : DENSE);
            box_make(&y, dtype, 0, NULL, DENSE);
            box_make(&z, dtype, 2, shape, DENSE);
            box_random(&a, -1, 1);
            box_random(&b, -1, 1);
            box_random(&c, -1, 1);
            const kernel_ref in[] = {&a.array, &b.array}, sides[] = {&c.array, &a.array};
            ck_assert(!box_run(&kernel_op_dot, in, &y.array, NULL, 0, NULL, false, error));
            ck_assert(!box_run(&kernel_op_outer, sides, &z.array, NULL, 0, NULL, false, error));
            long double sum = 0;
            for (int64_t i = 0; i < n; i++) {
                const long double v = (long double)element(&a.array, &i);
                sum += v * (long double)element(&b.array, &i);
                for (int64_t r = 0; r < m; r++)
                    check_value("outer", dtype, element(&z.array, (int64_t[]){r, i}),
                                (long double)element(&c.array, &r) * v);
            }
            check_value("dot", dtype, get_at(&y.array, 0), sum);
            struct box *const all[] = {&a, &b, &c, &y, &z};
            for (int i = 0; i < 5; i++)
                box_free(all[i]);
        }
}

RUN_TESTS(NULL, NULL)
