/* test_edges.c: values and derivatives of the elementwise ops where they are special.
 *
 * What is expected stands in the rows, derived from IEEE 754, C's Annex F and the rows' own words,
 * and is compared exactly, zeros with their sign in values, irrational numbers within 16 ulp;
 * derivatives are taken with a seed of 1.
 */
#include "check_gradient.h"

#include "elementwise.h"
#include "kernel_ops.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INF ((double)INFINITY)
#define NaN ((double)NAN)

/* A number that f32 has is meant exactly, another one within 16 ulp of the dtype. */
static bool same(double got, double want, bool sign, int dtype)
{
    if (isnan(want))
        return isnan(got);
    if (isfinite(want) && (double)(float)want != want && fabs(want) > DBL_MIN)
        return fabs(got - want) <= (dtype == KERNEL_F32 ? 0x1p-20 : 0x1p-49) * fabs(want);
    return got == want && (!sign || !signbit(got) == !signbit(want));
}

static void check_edge(const struct kernel_op *op, const struct row_edge *e, int dtype)
{
    struct check_case c = {.op = op, .n_leaves = op->n_in, .n_in = op->n_in, .sample = -1};
    const double one = 1;
    double x[3], y, g[3];
    c.aim = "edge";
    c.n_attr = op->n_attrs;
    for (int i = 0; i < 2; i++)
        c.attr[i] = kernel_attr_word(e->parameter[i]);
    for (int i = 0; i < c.n_in; i++) {
        c.leaf[i] = (struct check_leaf){dtype, 0, {0}, -1, 1, true};
        c.in[i].leaf = i;
        x[i] = row_meant(e->in[i], dtype);
    }
    check_forward(&c, x, &y);
    ck_assert_msg(same(y, row_meant(e->value, dtype), true, dtype),
                  "%s %s on %s at (%g, %g, %g): value %g, not %g", op->name,
                  kernel_dtype_name(dtype), kernel_isa_name(), x[0], c.n_in > 1 ? x[1] : 0,
                  c.n_in > 2 ? x[2] : 0, y, row_meant(e->value, dtype));
    if (op->constant) {
        check_demand(check_constant(&c));
        return;
    }
    check_pullback(&c, x, &one, g);
    for (int i = 0; i < c.n_in; i++)
        ck_assert_msg(same(g[i], row_meant(e->derivative[i], dtype), false, dtype),
                      "%s %s on %s at (%g, %g, %g): derivative %d is %g, not %g", op->name,
                      kernel_dtype_name(dtype), kernel_isa_name(), x[0], c.n_in > 1 ? x[1] : 0,
                      c.n_in > 2 ? x[2] : 0, i, g[i], row_meant(e->derivative[i], dtype));
}

TEST(values_and_derivatives_are_as_ieee_754_and_the_rows_say)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    int n;
    const struct row_check *rows = row_checks(&n);
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < n && kernel_isa_use(names[k]); r++)
            for (int i = 0; i < rows[r].n_edges; i++)
                for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
                    check_edge(rows[r].op, &rows[r].edges[i], dtype);
    kernel_isa_use(NULL);
}

/* Even where the adjoint of the output is infinite or NaN. */
TEST(where_keeps_an_adjoint_that_is_not_finite_from_the_operand_not_taken)
{
    const double x[6] = {1, 0, 7, 8, NaN, INF};
    for (int k = 0; k < 2; k++) {
        struct check_case c = {.op = &kernel_op_where, .n_leaves = 3, .n_in = 3, .sample = -1};
        const double u[2] = {k ? NaN : INF, k ? NaN : -INF};
        double g[6];
        for (int i = 0; i < 3; i++) {
            c.leaf[i] = (struct check_leaf){KERNEL_F64, 1, {2}, -1, 1, true};
            c.in[i].leaf = i;
        }
        check_pullback(&c, x, u, g);
        ck_assert(g[0] == 0 && g[1] == 0);
        ck_assert(same(g[2], u[0], false, KERNEL_F64) && g[3] == 0);
        ck_assert(g[4] == 0 && same(g[5], u[1], false, KERNEL_F64));
    }
}

TEST(every_public_row_has_edges)
{
    int n, edges = 0;
    const struct row_check *rows = row_checks(&n);
    for (int r = 0; r < n; r++) {
        edges += rows[r].n_edges;
        ck_assert_msg(rows[r].op->hidden || rows[r].n_edges > 0, "%s has no edges",
                      rows[r].op->name);
    }
    ck_assert_int_ge(edges, 350);
}

RUN_TESTS(NULL, NULL)
