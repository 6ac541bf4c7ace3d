/* test_kernels.c: values, edges and errors of the kernels on every instruction set of the machine.
 *
 * What is computed in loops is compared with the C library and plain indexing. Seeds are fixed.
 */
#include "check_quietly.h"
#include "elementwise.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[] = {"portable", "avx2", "avx512"};

/* Rounded more than once: no bits are promised. */
static bool is_rounded_often(const struct row_check *row)
{
    return row->cancels ? row->apart > 0 : row->op->ulps[KERNEL_F64] > 0.51;
}

static void check_value(const struct row_check *row, int dtype, double ours, const double *x,
                        const double *p)
{
    if (!is_rounded_often(row)) {
        double right = row->value(x[0], x[1], x[2], p);
        if (dtype == KERNEL_F32)
            right = (double)(float)right;
        ck_assert_msg(isnan(right) ? isnan(ours) : ours == right,
                      "%s %s on %s: %.17g, right is %.17g", row->op->name, kernel_dtype_name(dtype),
                      kernel_isa_name(), ours, right);
        return;
    }
    const long double exact = row->exact(x[0], x[1], x[2], p);
    const double bound = row->cancels ? row->apart : row->op->ulps[dtype];
    const double far = row_distance(ours, exact, dtype);
    ck_assert_msg(far == 0 || far / row_grows(row, x[0], (double)exact, dtype) <= bound,
                  "%s %s on %s at (%g, %g): %.17g, right is %.17Lg", row->op->name,
                  kernel_dtype_name(dtype), kernel_isa_name(), x[0], x[1], ours, exact);
}

/* The same added to 3: the sum has its own rounding. */
static void check_sum(const struct row_check *row, int dtype, double ours, const double *x,
                      const double *p)
{
    const double exact = row->value(x[0], x[1], x[2], p);
    const double ulps = is_rounded_often(row) ? row->op->ulps[dtype] : 0;
    const double grows = ulps > 0 ? row_grows(row, x[0], exact, dtype) : 1;
    CHECK_NEAR(ours, 3 + exact,
               (dtype == KERNEL_F32 ? 1e-5 : 1e-14) +
                   ulps * grows * (dtype == KERNEL_F32 ? 0 : DBL_EPSILON) * fabs(exact));
}

static int rows(const struct kernel_op *const **ops)
{
    int n, count = 0;
    *ops = kernel_ops(&n);
    while (count < n && (*ops)[count]->elementwise)
        count++;
    return count;
}

static void each_isa(void (*check)(void))
{
    for (int i = 0; i < 3; i++)
        if (kernel_isa_use(isa_names[i]))
            check();
    (void)kernel_isa_use(NULL);
}

static void round_down(struct kernel_array *a)
{
    int64_t index[KERNEL_MAX_RANK] = {0};
    if (a->size > 0)
        do {
            const int64_t at = offset_of(a, a->rank, index);
            set_at(a, at, floor(get_at(a, at)));
        } while (index_next(a->rank, a->shape, index));
}

/* One row on one sample with operands and output laid out in these ways. */
static void check_row(const struct kernel_op *op, const struct kernel_sample *s, int dtype,
                      const enum layout *layout, bool accumulate)
{
    const struct row_check *row = row_check(op);
    struct box in[3], out;
    kernel_ref refs[3];
    struct kernel_shape shape;
    char error[KERNEL_ERROR_BYTES];
    for (int i = 0; i < op->n_in; i++) {
        box_make(&in[i], dtype, s->rank[i], s->shape[i], layout[i % 2]);
        box_random(&in[i], s->low[i], s->high[i]);
        if (s->switches >> i & 1)
            round_down(&in[i].array);
        refs[i] = &in[i].array;
    }
    struct kernel_call call = {.op = op,
                               .in = refs,
                               .n_in = op->n_in,
                               .n_out = 1,
                               .attr = s->attr,
                               .n_attr = s->n_attr,
                               .error = error};
    ck_assert_msg(kernel_infer(&call, &shape) == 0, "%s", error);
    if (shape.same_as >= 0)
        memcpy(shape.extent, refs[shape.same_as]->shape,
               sizeof(int64_t) * refs[shape.same_as]->rank);
    const int rank = shape.same_as >= 0 ? refs[shape.same_as]->rank : shape.rank;
    box_make(&out, dtype, rank, shape.extent, layout[2]);
    box_random(&out, 3, 3);
    ck_assert_msg(box_run(op, refs, &out.array, NULL, s->n_attr, s->attr, accumulate, error) == 0,
                  "%s", error);
    int64_t index[KERNEL_MAX_RANK] = {0};
    if (out.array.size > 0)
        do {
            const double x = get_at(refs[0], offset_of(refs[0], rank, index));
            const double b = op->n_in > 1 ? get_at(refs[1], offset_of(refs[1], rank, index)) : 0;
            const double ours = get_at(&out.array, offset_of(&out.array, rank, index));
            const double c = op->n_in > 2 ? get_at(refs[2], offset_of(refs[2], rank, index)) : 0;
            const double p[] = {kernel_attr_real(s->attr[0]), kernel_attr_real(s->attr[1])};
            if (accumulate)
                check_sum(row, dtype, ours, (const double[]){x, b, c}, p);
            else
                check_value(row, dtype, ours, (const double[]){x, b, c}, p);
        } while (index_next(rank, out.shape, index));
    for (int i = 0; i < op->n_in; i++)
        box_free(&in[i]);
    box_free(&out);
}

static void all_rows(void)
{
    const struct kernel_op *const *ops;
    const int n = rows(&ops);
    for (int i = 0; i < n; i++) {
        struct kernel_sample s;
        for (int k = 0; ops[i]->sample(k, &s); k++)
            for (int way = 0; way < LAYOUTS * LAYOUTS * LAYOUTS * 4; way++) {
                const enum layout layout[] = {(enum layout)(way / 4 % LAYOUTS),
                                              (enum layout)(way / 4 / LAYOUTS % LAYOUTS),
                                              (enum layout)(way / 4 / LAYOUTS / LAYOUTS)};
                check_row(ops[i], &s, way % 2 ? KERNEL_F32 : KERNEL_F64, layout, way / 2 % 2);
            }
    }
}

TEST(rows_agree_with_the_c_library_for_all_strides_and_shapes)
{
    each_isa(all_rows);
}

static void edge_values(void)
{
    static const double edges[] = {0.0,          -0.0, INFINITY, -INFINITY, NAN,    DBL_MIN / 8,
                                   -DBL_MIN / 8, 1,    -1,       1e300,     -1e300, 709.5,
                                   710,          -744, -746,     1e-20,     88.5,   -100,
                                   0x1p-140,     3.5,  -30,      40};
    enum { N = sizeof edges / sizeof *edges };
    const struct kernel_op *const *ops;
    const int n = rows(&ops);
    const int64_t shape[] = {N * N};
    for (int i = 0; i < n; i++) {
        const struct row_check *row = row_check(ops[i]);
        const double p[] = {ops[i] == &kernel_op_polygamma ? 1 : -1.75, 0.5};
        const int64_t attr[] = {kernel_attr_word(p[0]), kernel_attr_word(p[1])};
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64 && !row->samples_only; dtype++) {
            struct box a, b, y;
            box_make(&a, dtype, 1, shape, DENSE);
            box_make(&b, dtype, 1, shape, DENSE);
            box_make(&y, dtype, 1, shape, DENSE);
            for (int64_t k = 0; k < N * N; k++) {
                set_at(&a.array, k, edges[k % N]);
                set_at(&b.array, k, edges[k / N]);
            }
            const kernel_ref in[] = {&a.array, &b.array, &a.array};
            (void)box_run(ops[i], in, &y.array, NULL, ops[i]->n_attrs, attr, false, NULL);
            for (int64_t k = 0; k < N * N; k++) {
                const double x = get_at(&a.array, k), right = get_at(&b.array, k);
                const double exact = row->value(x, right, x, p), at[] = {x, right, x};
                check_value(row, dtype, get_at(&y.array, k), at, p);
                if (exact == 0 && !row->any_zero)
                    ck_assert_msg(!signbit(exact) == !signbit(get_at(&y.array, k)),
                                  "%s: sign of zero at %g", ops[i]->name, x);
            }
            box_free(&a);
            box_free(&b);
            box_free(&y);
        }
    }
}

TEST(edges_are_as_ieee_754_and_the_rows_say)
{
    each_isa(edge_values);
}

static void positions(void)
{
    const struct kernel_op *const *ops;
    const int n = rows(&ops);
    const int64_t attr[] = {kernel_attr_word(0.3), kernel_attr_word(0.5)};
    for (int i = 0; i < n; i++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
            double first = 0;
            for (int64_t size = 1; size < 40; size++) {
                struct box a, y;
                box_make(&a, dtype, 1, &size, DENSE);
                box_make(&y, dtype, 1, &size, DENSE);
                box_random(&a, 0.7, 0.7);
                const kernel_ref in[] = {&a.array, &a.array, &a.array};
                (void)box_run(ops[i], in, &y.array, NULL, ops[i]->n_attrs, attr, false, NULL);
                if (size == 1)
                    first = get_at(&y.array, 0);
                for (int64_t k = 0; k < size; k++)
                    ck_assert_msg(get_at(&y.array, k) == first ||
                                      (isnan(first) && isnan(get_at(&y.array, k))),
                                  "%s depends on position %lld", ops[i]->name, (long long)k);
                box_free(&a);
                box_free(&y);
            }
        }
}

TEST(results_do_not_depend_on_the_position)
{
    each_isa(positions);
}

TEST(instruction_sets_agree_bit_for_bit_but_in_transcendentals)
{
    const struct kernel_op *const *ops;
    const int n = rows(&ops);
    const int64_t shape[] = {1003}, attr[] = {kernel_attr_word(0.3), kernel_attr_word(0.5)};
    for (int i = 0; i <= n; i++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
            const struct kernel_op *op = i < n ? ops[i] : &kernel_op_sum;
            const bool bits = i == n || !is_rounded_often(row_check(op));
            struct box a, b, y[3];
            box_make(&a, dtype, 1, shape, DENSE);
            box_make(&b, dtype, 1, shape, DENSE);
            box_random(&a, -3, 3);
            box_random(&b, -3, 3);
            const kernel_ref in[] = {&a.array, &b.array, &a.array};
            for (int k = 0; k < 3; k++) {
                box_make(&y[k], dtype, i < n ? 1 : 0, shape, DENSE);
                if (kernel_isa_use(isa_names[k]))
                    (void)box_run(op, in, &y[k].array, NULL, i < n ? op->n_attrs : 1,
                                  i < n ? attr : (int64_t[]){0}, false, NULL);
                else
                    memcpy(y[k].array.data, y[0].array.data, 8 * (size_t)y[0].array.size);
                for (int64_t e = 0; e < y[k].array.size && bits; e++) {
                    const double x = get_at(&y[k].array, e), first = get_at(&y[0].array, e);
                    ck_assert_msg(x == first || (isnan(x) && isnan(first)), "%s: %.17g and %.17g",
                                  op->name, x, first);
                }
            }
            for (int k = 0; k < 3; k++)
                box_free(&y[k]);
            box_free(&a);
            box_free(&b);
        }
    (void)kernel_isa_use(NULL);
}

TEST(isa_can_be_lowered_by_name_only_to_what_exists)
{
    ck_assert(kernel_isa_use("portable"));
    ck_assert_str_eq(kernel_isa_name(), "portable");
    ck_assert(!kernel_isa_use("mmx"));
    ck_assert_int_eq(setenv("TAPESCOPE_ISA", "portable", 1), 0);
    ck_assert(kernel_isa_use(NULL));
    ck_assert_str_eq(kernel_isa_name(), "portable");
    ck_assert_int_eq(unsetenv("TAPESCOPE_ISA"), 0);
    ck_assert(kernel_isa_use(NULL));
}

TEST(every_op_documents_itself_and_has_a_sample)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    struct kernel_sample sample;
    for (int i = 0; i < n; i++) {
        const struct kernel_op *op = ops[i];
        ck_assert_msg(op->sample(0, &sample) && !op->sample(-1, &sample), "%s", op->name);
        ck_assert(op->brief && op->shapes && op->formula && op->derivative && op->in_names);
        ck_assert(op->shape && op->forward && op->pullback);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(op->name, ops[j]->name);
    }
}

RUN_TESTS(NULL, NULL)
