/* test_kernel_ops.c: values and errors of reductions, products and losses against plain loops. */
#include "check_quietly.h"
#include "elementwise.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static char error[KERNEL_ERROR_BYTES];

static double tolerance(int dtype)
{
    return dtype == KERNEL_F32 ? 2e-5 : 1e-13;
}

/* sum, mean and max of one array over one set of axes, by plain indexing. */
static void check_reduction(const struct box *x, unsigned axes, bool keepdim, enum layout layout)
{
    static const struct kernel_op *const ops[] = {&kernel_op_sum, &kernel_op_mean, &kernel_op_max};
    const kernel_ref in = &x->array;
    int64_t attr[KERNEL_MAX_ATTR] = {keepdim}, kept[KERNEL_MAX_RANK], count = 1;
    int n_attr = 1;
    for (int axis = 0; axis < in->rank; axis++) {
        const bool reduced = (axes >> axis & 1) != 0;
        kept[axis] = reduced ? 1 : in->shape[axis];
        count *= reduced ? in->shape[axis] : 1;
        if (reduced)
            attr[n_attr++] = axis % 2 ? axis - in->rank : axis;
    }
    for (int k = 0; k < 3; k++) {
        struct kernel_call call = {.op = ops[k],
                                   .in = &in,
                                   .n_in = 1,
                                   .n_out = 1,
                                   .attr = attr,
                                   .n_attr = n_attr,
                                   .error = error};
        struct kernel_shape shape;
        struct box y;
        ck_assert_msg(kernel_infer(&call, &shape) == 0, "%s", error);
        box_make(&y, in->dtype, shape.rank, shape.extent, layout);
        ck_assert_msg(box_run(ops[k], &in, &y.array, NULL, n_attr, attr, false, error) == 0, "%s",
                      error);
        int64_t outer[KERNEL_MAX_RANK] = {0}, at[KERNEL_MAX_RANK] = {0};
        do {
            double sum = 0, most = -INFINITY;
            int64_t index[KERNEL_MAX_RANK] = {0};
            do {
                bool here = true;
                for (int axis = 0; axis < in->rank; axis++)
                    here = here && (kept[axis] == 1 || index[axis] == outer[axis]);
                if (here) {
                    sum += element(in, index);
                    most = fmax(most, element(in, index));
                }
            } while (index_next(in->rank, x->shape, index));
            const double right = k == 0 ? sum : k == 1 ? sum / (double)count : most;
            const double ours = element(&y.array, at);
            ck_assert_msg(fabs(ours - right) <= tolerance(in->dtype) * (1 + fabs(right)),
                          "%s over axes %x: %.17g, right is %.17g", ops[k]->name, axes, ours,
                          right);
            (void)index_next(shape.rank, shape.extent, at);
        } while (index_next(in->rank, kept, outer));
        box_free(&y);
    }
}

static void reductions(void)
{
    static const int64_t shapes[][4] = {{3, 4, 5, 1}, {2, 1, 17, 3}, {70, 2, 3, 9}};
    for (int s = 0; s < 3; s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
                struct box x;
                box_make(&x, dtype, 4, shapes[s], (enum layout)layout);
                box_random(&x, -1, 1);
                for (unsigned axes = 1; axes < 16; axes++)
                    check_reduction(&x, axes, axes % 2, (enum layout)(axes % LAYOUTS));
                box_free(&x);
            }
}

static void each_isa(void (*check)(void))
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    for (int i = 0; i < 3; i++)
        if (kernel_isa_use(names[i]))
            check();
    (void)kernel_isa_use(NULL);
}

TEST(reductions_agree_with_plain_loops_over_all_axes)
{
    each_isa(reductions);
}

static void long_sums(void)
{
    const int64_t shapes[][2] = {{1000000, 1}, {1, 1000000}, {300000, 3}, {3, 300000}};
    for (int s = 0; s < 4; s++)
        for (int along = 0; along < 2; along++) {
            struct box x, y;
            const int64_t n = shapes[s][along], rest = shapes[s][1 - along];
            const int64_t attr[] = {0, along};
            box_make(&x, KERNEL_F32, 2, shapes[s], DENSE);
            box_make(&y, KERNEL_F32, 1, &rest, DENSE);
            box_random(&x, 0.1, 0.1);
            const kernel_ref in = &x.array;
            ck_assert_msg(box_run(&kernel_op_sum, &in, &y.array, NULL, 2, attr, false, error) == 0,
                          "%s", error);
            const double right = (double)0.1F * (double)n;
            for (int64_t i = 0; i < rest; i++)
                CHECK_NEAR(get_at(&y.array, i) / right, 1, 2e-6);
            box_free(&x);
            box_free(&y);
        }
}

TEST(long_f32_sums_stay_accurate)
{
    each_isa(long_sums);
}

/* mul accumulated into every shape that broadcasts to the operands'. */
static void folded_products(void)
{
    static const int64_t full[3] = {20, 3, 37}, part[3] = {20, 1, 37};
    for (unsigned axes = 0; axes < 8; axes++)
        for (int layout = 0; layout < LAYOUTS * LAYOUTS * LAYOUTS; layout++) {
            int64_t small[3], index[3] = {0};
            double right[20 * 3 * 37] = {0};
            struct box a, b, y, where;
            for (int axis = 0; axis < 3; axis++)
                small[axis] = axes >> axis & 1 ? 1 : full[axis];
            box_make(&a, KERNEL_F64, 3, full, (enum layout)(layout % LAYOUTS));
            box_make(&b, KERNEL_F64, 3, part, (enum layout)(layout / LAYOUTS % LAYOUTS));
            box_make(&y, KERNEL_F64, 3, small, (enum layout)(layout / LAYOUTS / LAYOUTS));
            box_make(&where, KERNEL_F64, 3, small, DENSE);
            box_random(&a, -1, 1);
            box_random(&b, -1, 1);
            const kernel_ref in[] = {&a.array, &b.array};
            do
                right[offset_of(&where.array, 3, index)] +=
                    element(&a.array, index) * get_at(&b.array, offset_of(&b.array, 3, index));
            while (index_next(3, full, index));
            box_random(&y, 1, 1);
            ck_assert_msg(box_run(&kernel_op_mul, in, &y.array, NULL, 0, NULL, true, error) == 0,
                          "%s", error);
            do
                CHECK_NEAR(element(&y.array, index), 1 + right[offset_of(&where.array, 3, index)],
                           1e-12);
            while (index_next(3, small, index));
            box_free(&a);
            box_free(&b);
            box_free(&y);
            box_free(&where);
        }
}

TEST(accumulation_sums_over_broadcast_axes)
{
    each_isa(folded_products);
}

TEST(sums_and_maxima_of_special_values)
{
    static const int64_t n = 70, none = 0, all = 0;
    struct box x, y, empty;
    box_make(&x, KERNEL_F64, 1, &n, DENSE);
    box_make(&empty, KERNEL_F64, 1, &none, DENSE);
    box_make(&y, KERNEL_F64, 0, &n, DENSE);
    kernel_ref in = &x.array;
    box_random(&x, -1, 1);
    for (int64_t at = 0; at < n; at++) {
        const double old = get_at(in, at);
        set_at(in, at, INFINITY);
        (void)box_run(&kernel_op_sum, &in, &y.array, NULL, 1, &all, false, error);
        ck_assert(get_at(&y.array, 0) == INFINITY);
        set_at(in, at, NAN);
        (void)box_run(&kernel_op_max, &in, &y.array, NULL, 1, &all, false, error);
        ck_assert(isnan(get_at(&y.array, 0)));
        set_at(in, at, old);
    }
    in = &empty.array;
    (void)box_run(&kernel_op_sum, &in, &y.array, NULL, 1, &all, false, error);
    ck_assert(get_at(&y.array, 0) == 0);
    (void)box_run(&kernel_op_mean, &in, &y.array, NULL, 1, &all, false, error);
    ck_assert(isnan(get_at(&y.array, 0)));
    box_free(&x);
    box_free(&y);
    box_free(&empty);
}

TEST(products_agree_with_plain_loops_for_all_strides)
{
    static const int64_t sizes[][3] = {{3, 4, 5}, {1, 1, 1}, {1, 7, 2},  {6, 1, 1},
                                       {2, 0, 3}, {0, 2, 2}, {17, 9, 33}};
    for (int s = 0; s < 7; s++)
        for (int way = 0; way < LAYOUTS * LAYOUTS * LAYOUTS * 8; way++) {
            const int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
            const int dtype = way / 2 % 2 ? KERNEL_F32 : KERNEL_F64, layout = way / 8;
            const bool accumulate = way % 2, affine = way / 4 % 2;
            struct box a, b, c, bias;
            box_make(&a, dtype, 2, (int64_t[]){m, k}, (enum layout)(layout % LAYOUTS));
            box_make(&b, dtype, 2, (int64_t[]){k, n}, (enum layout)(layout / LAYOUTS % LAYOUTS));
            box_make(&c, dtype, 2, (int64_t[]){m, n}, (enum layout)(layout / LAYOUTS / LAYOUTS));
            box_make(&bias, dtype, 1, &n, way % 3 ? GAPPED : DENSE);
            box_random(&a, -1, 1);
            box_random(&b, -1, 1);
            box_random(&c, 2, 2);
            box_random(&bias, -1, 1);
            const kernel_ref in[] = {&a.array, &b.array, &bias.array};
            ck_assert_msg(box_run(affine ? &kernel_op_linear : &kernel_op_matmul, in, &c.array,
                                  NULL, 0, NULL, accumulate, error) == 0,
                          "%s", error);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double right = accumulate ? 2 : 0;
                    right += affine ? element(&bias.array, &j) : 0;
                    for (int64_t l = 0; l < k; l++)
                        right += element(&a.array, (int64_t[]){i, l}) *
                                 element(&b.array, (int64_t[]){l, j});
                    CHECK_NEAR(element(&c.array, (int64_t[]){i, j}), right, tolerance(dtype) * 2);
                }
            box_free(&a);
            box_free(&b);
            box_free(&c);
            box_free(&bias);
        }
}

TEST(linear_folds_leading_axes_of_any_strides)
{
    for (int way = 0; way < LAYOUTS * LAYOUTS * 2; way++) {
        const int rank_b = way < LAYOUTS * LAYOUTS ? 1 : 3;
        struct box x, w, b, y;
        box_make(&x, KERNEL_F64, 3, (int64_t[]){2, 3, 4}, (enum layout)(way % LAYOUTS));
        box_make(&w, KERNEL_F64, 2, (int64_t[]){4, 5}, DENSE);
        box_make(&b, KERNEL_F64, rank_b, &(int64_t[]){2, 3, 5}[3 - rank_b], DENSE);
        box_make(&y, KERNEL_F64, 3, (int64_t[]){2, 3, 5}, (enum layout)(way / LAYOUTS % LAYOUTS));
        box_random(&x, -1, 1);
        box_random(&w, -1, 1);
        box_random(&b, -1, 1);
        const kernel_ref in[] = {&x.array, &w.array, &b.array};
        int64_t at[3] = {0};
        (void)box_run(&kernel_op_linear, in, &y.array, NULL, 0, NULL, false, error);
        do {
            double right = element(&b.array, &at[3 - rank_b]);
            for (int64_t l = 0; l < 4; l++)
                right += element(&x.array, (int64_t[]){at[0], at[1], l}) *
                         element(&w.array, (int64_t[]){l, at[2]});
            CHECK_NEAR(element(&y.array, at), right, 1e-14);
        } while (index_next(3, y.shape, at));
        box_free(&x);
        box_free(&w);
        box_free(&b);
        box_free(&y);
    }
}

static void losses(void)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 10}, {130, 7}, {2, 3000}, {5, 16}};
    for (int s = 0; s < 5; s++)
        for (int way = 0; way < LAYOUTS * 2; way++) {
            const int dtype = way % 2 ? KERNEL_F32 : KERNEL_F64;
            const int64_t rows = sizes[s][0], columns = sizes[s][1];
            struct box x, labels, loss, p;
            box_make(&x, dtype, 2, sizes[s], (enum layout)(way / 2));
            box_make(&labels, KERNEL_I64, 1, sizes[s], way / 2 == GAPPED ? GAPPED : DENSE);
            box_make(&loss, dtype, 0, sizes[s], DENSE);
            box_make(&p, dtype, 2, sizes[s], DENSE);
            box_random(&x, 600, 640);
            box_random(&labels, 0, (double)columns);
            const kernel_ref in[] = {&x.array, &labels.array};
            ck_assert_msg(box_run(&kernel_op_softmax_cross_entropy, in, &loss.array, &p.array, 0,
                                  NULL, false, error) == 0,
                          "%s", error);
            double right = 0;
            for (int64_t i = 0; i < rows; i++) {
                double sum = 0, shift = 620;
                for (int64_t j = 0; j < columns; j++)
                    sum += exp(element(&x.array, (int64_t[]){i, j}) - shift);
                for (int64_t j = 0; j < columns; j++)
                    CHECK_NEAR(element(&p.array, (int64_t[]){i, j}),
                               exp(element(&x.array, (int64_t[]){i, j}) - shift) / sum,
                               tolerance(dtype));
                const int64_t label = (int64_t)element(&labels.array, &i);
                right += log(sum) - (element(&x.array, (int64_t[]){i, label}) - shift);
            }
            right /= (double)rows;
            CHECK_NEAR(get_at(&loss.array, 0), right, tolerance(dtype) * 20);
            box_free(&x);
            box_free(&labels);
            box_free(&loss);
            box_free(&p);
        }
}

TEST(cross_entropy_agrees_with_its_formula_and_does_not_overflow)
{
    each_isa(losses);
}

TEST(cross_entropy_of_special_rows)
{
    static const double special[] = {INFINITY, NAN, -INFINITY};
    struct box x, labels, loss, p;
    box_make(&x, KERNEL_F64, 2, (int64_t[]){2, 3}, DENSE);
    box_make(&labels, KERNEL_I64, 1, (int64_t[]){2}, DENSE);
    box_make(&loss, KERNEL_F64, 0, NULL, DENSE);
    box_make(&p, KERNEL_F64, 2, (int64_t[]){2, 3}, DENSE);
    const kernel_ref in[] = {&x.array, &labels.array};
    for (int k = 0; k < 3; k++) {
        set_at(&x.array, 1, special[k]);
        (void)box_run(&kernel_op_softmax_cross_entropy, in, &loss.array, &p.array, 0, NULL, false,
                      error);
        if (k < 2)
            ck_assert(isnan(get_at(&loss.array, 0)));
        else
            CHECK_NEAR(get_at(&loss.array, 0), (log(2) + log(3)) / 2, 1e-15);
    }
    set_at(&labels.array, 1, 3);
    ck_assert_int_eq(
        box_run(&kernel_op_softmax_cross_entropy, in, &loss.array, &p.array, 0, NULL, false, error),
        -1);
    ck_assert_ptr_nonnull(strstr(error, "f64 [2,3], i64 [2]: label 3 of row 1 is not in 0..2"));
    box_free(&x);
    box_free(&labels);
    box_free(&loss);
    box_free(&p);
}

struct refusal {
    const struct kernel_op *op;
    int dtype[3], rank[3];
    int64_t shape[3][3];
    int n_attr;
    int64_t attr[4];
    const char *text;
};

/* The first REFUSED_DTYPES are about dtypes. */
enum { REFUSED_DTYPES = 3 };

static const struct refusal refusals[] = {
    {&kernel_op_add, {2, 2}, {1, 1}, {{3}, {3}}, 0, {0}, "add takes f32 or f64, not i64"},
    {&kernel_op_mul,
     {0, 1},
     {1, 1},
     {{3}, {3}},
     0,
     {0},
     "mul: f32 [3] and f64 [3]: operands of one call must have one dtype"},
    {&kernel_op_softmax_cross_entropy,
     {1, 1},
     {2, 1},
     {{3, 4}, {3}},
     0,
     {0},
     "softmax_cross_entropy: labels must be i64, not f64"},
    {&kernel_op_add,
     {1, 1},
     {2, 2},
     {{3, 4}, {5, 4}},
     0,
     {0},
     "add: f64 [3,4] and f64 [5,4]: extents 3 and 5 do not broadcast"},
    {&kernel_op_matmul,
     {1, 1},
     {2, 2},
     {{3, 4}, {5, 6}},
     0,
     {0},
     "matmul: f64 [3,4] x f64 [5,6]: inner extents 4 and 5 differ"},
    {&kernel_op_matmul,
     {1, 1},
     {0, 2},
     {{0}, {4, 6}},
     0,
     {0},
     "matmul: f64 [] x f64 [4,6]: both operands must have an axis at least"},
    {&kernel_op_matmul,
     {1, 1},
     {2, 2},
     {{INT64_C(1) << 31, 1}, {1, 1}},
     0,
     {0},
     "matmul: f64 [2147483648,1] x f64 [1,1]: an extent is beyond the range of BLAS"},
    {&kernel_op_add,
     {1, 1},
     {2, 2},
     {{INT64_C(1) << 31, 1}, {1, INT64_C(1) << 31}},
     0,
     {0},
     "add: f64 [2147483648,1], f64 [1,2147483648]: the result's size overflows"},
    {&kernel_op_sum, {1}, {2}, {{3, 4}}, 2, {0, 2}, "sum: f64 [3,4]: there is no axis 2"},
    {&kernel_op_sum, {1}, {2}, {{3, 4}}, 3, {0, 1, -1}, "sum: f64 [3,4]: axis -1 is named twice"},
    {&kernel_op_max,
     {1},
     {2},
     {{3, 0}},
     2,
     {0, 1},
     "max: f64 [3,0]: axis 1 is empty and has no maximum"},
    {&kernel_op_transpose,
     {1},
     {1},
     {{3}},
     0,
     {0},
     "transpose: f64 [3]: at least two axes are wanted"},
    {&kernel_op_reshape,
     {1},
     {2},
     {{3, 4}},
     2,
     {5, -1},
     "reshape: f64 [3,4]: 12 elements do not fill the new shape [5,-1]"},
    {&kernel_op_reshape,
     {1},
     {1},
     {{6}},
     2,
     {-2, 3},
     "reshape: f64 [6]: extent -2 of axis 0 of [-2,3] is negative"},
    {&kernel_op_linear,
     {1, 1, 1},
     {2, 2, 1},
     {{3, 4}, {4, 5}, {6}},
     0,
     {0},
     "linear: f64 [3,4], f64 [4,5], f64 [6]: w gives 5 columns, b has 6"},
};

TEST(refusals_name_the_op_and_the_shapes)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        struct kernel_array in[3] = {{0}};
        kernel_ref refs[3];
        int64_t strides[3][KERNEL_MAX_RANK];
        struct kernel_shape out[KERNEL_MAX_OUT];
        for (int k = 0; k < r->op->n_in; k++) {
            in[k] = (struct kernel_array){.shape = r->shape[k],
                                          .strides = strides[k],
                                          .dtype = (uint8_t)r->dtype[k],
                                          .rank = (uint8_t)r->rank[k],
                                          .contiguous = true};
            in[k].size = kernel_strides(r->rank[k], r->shape[k], 8, strides[k]);
            refs[k] = &in[k];
        }
        struct kernel_call call = {.op = r->op,
                                   .in = refs,
                                   .n_in = r->op->n_in,
                                   .n_out = r->op->n_out,
                                   .attr = r->attr,
                                   .n_attr = r->n_attr,
                                   .error = error};
        ck_assert_int_eq(kernel_infer(&call, out),
                         i < REFUSED_DTYPES ? KERNEL_REFUSED_DTYPE : KERNEL_REFUSED);
        ck_assert_str_eq(error, r->text);
    }
}

RUN_TESTS(NULL, NULL)
