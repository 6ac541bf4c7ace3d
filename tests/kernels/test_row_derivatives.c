/* test_row_derivatives.c: derivatives of the elementwise ops against an oracle of many digits.
 *
 * The oracle are central differences of the eighth order of the rows' values in long double: their
 * own error is about 1e-15 of the value, so a pullback is judged to nearly all digits of f64, by a
 * text that it shares nothing with.
 */
#include "check_tape.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* |got - want| <= TOLERANCE (size of the value's terms + |want|) */
#define TOLERANCE 1e-14

enum { MOST = 128 };

/* df in operand `of`; the steps, at most 2^-11, stay short of kinks, which are CHECK_REACH away. */
static long double slope(row_exact_value *f, const long double *at, int of, const double *p)
{
    static const long double weight[4] = {4.0L / 5, -1.0L / 5, 4.0L / 105, -1.0L / 280};
    const long double step = 0x1p-13L;
    long double sum = 0;
    for (int k = 3; k >= 0; k--) {
        long double above[3] = {at[0], at[1], at[2]}, below[3] = {at[0], at[1], at[2]};
        above[of] += (k + 1) * step;
        below[of] -= (k + 1) * step;
        sum +=
            weight[k] * (f(above[0], above[1], above[2], p) - f(below[0], below[1], below[2], p));
    }
    return sum / step;
}

/* All operands have one shape: an element of the output is of one element of each. */
static bool is_plain(const struct check_case *c)
{
    for (int i = 1; i < c->n_leaves; i++)
        if (c->leaf[i].rank != c->leaf[0].rank ||
            memcmp(c->leaf[i].shape, c->leaf[0].shape, sizeof c->leaf[0].shape) != 0)
            return false;
    return check_leaf_size(&c->leaf[0]) <= MOST;
}

static int check_sample(const struct check_case *c)
{
    const int n = (int)check_leaf_size(&c->leaf[0]);
    const double p[2] = {kernel_attr_real(c->attr[0]), kernel_attr_real(c->attr[1])};
    row_exact_value *f = row_check(c->op)->exact;
    double x[3 * MOST], u[MOST], g[3 * MOST];
    check_draw(c, x);
    for (int k = 0; k < n; k++)
        u[k] = 1;
    check_pullback(c, x, u, g);
    for (int i = 0; i < c->n_in; i++)
        for (int k = 0; k < n && c->leaf[i].active; k++) {
            const long double at[3] = {x[k], c->n_in > 1 ? x[n + k] : 0,
                                       c->n_in > 2 ? x[2 * n + k] : 0};
            const double want = (double)slope(f, at, i, p), got = g[i * n + k];
            const double size = 1 + fabs((double)f(at[0], at[1], at[2], p));
            ck_assert_msg(fabs(got - want) <= TOLERANCE * (size + fabs(want)),
                          "%s at (%.17g, %.17g): derivative %d is %.17g, not %.17g: %g",
                          c->op->name, (double)at[0], (double)at[1], i, got, want,
                          fabs(got - want) / (size + fabs(want)));
        }
    return n;
}

TEST(pullbacks_of_rows_have_nearly_all_digits)
{
    int n_ops, checked = 0;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops && ops[k]->elementwise; k++) {
        struct kernel_sample sample;
        int elements = 0;
        for (int s = 0; !ops[k]->constant && ops[k]->sample(s, &sample); s++) {
            const struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, s);
            if (is_plain(&c))
                elements += check_sample(&c);
        }
        ck_assert_msg(ops[k]->constant || elements > 40, "%s: %d elements", ops[k]->name, elements);
        checked += elements > 0;
    }
    ck_assert_int_ge(checked, 50);
}

/* The oracle itself, where the derivative is known. */
TEST(differences_are_as_good_as_said)
{
    const double none[2] = {0};
    for (int k = 0; k < 50; k++) {
        const long double at[3] = {0.3L + 0.05L * k, 0, 0};
        const double x =
            (double)fabsl(slope(row_check(&kernel_op_exp)->exact, at, 0, none) / expl(at[0]) - 1);
        const double y =
            (double)fabsl(slope(row_check(&kernel_op_log)->exact, at, 0, none) * at[0] - 1);
        ck_assert_msg(x < 2e-15 && y < 2e-15, "%g, %g", x, y);
    }
}

RUN_TESTS(NULL, NULL)
