/* test_second_edges.c: second derivatives of the elementwise ops where they are special.
 *
 * The closed forms are evaluated in long double, where they neither over- nor underflow at these
 * points; what holds at infinities, and where a form does not hold, stands beside them.
 */
#include "check_tape.h"

#include "elementwise.h"
#include "kernel_ops.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>

enum { POINTS = 12 };

static const double points[POINTS] = {0,   -0.0, 1e-30, -1e-30, 1e30,     -1e30,
                                      0.5, -0.5, 3,     -3,     INFINITY, -INFINITY};

static void succeed(enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s", check_tape()->error.message);
}

/* The gradient of the sum of the recorded gradient in leaf `of`: [all leaves], 0 if constant. */
static void differentiate_twice(const struct check_case *c, const double *x, int of, double *to)
{
    struct check_run run;
    uint32_t ones, first;
    check_run(c, x, &run);
    succeed(tape_ones(check_tape(), run.out[0], check_site, &ones));
    succeed(tape_graph(check_tape(), run.out[0], ones, 1, &run.leaf[of], check_site, &first));
    if (check_tape()->entries[first].flags & TAPE_NEEDS_GRADIENT)
        succeed(tape_sweep(check_tape(), first, 0, check_site));
    check_gradients(c, &run, to);
}

/* Equal to a few digits, each dtype's own infinity and subnormals taken into account; near zeros of
 * the second derivative at moderate x the error is absolute. */
static bool near(double got, double want, double x, int dtype)
{
    const double tolerance = dtype == KERNEL_F32 ? 4e-6 : 1e-13;
    const double most = dtype == KERNEL_F32 ? (double)FLT_MAX : DBL_MAX;
    const double least = dtype == KERNEL_F32 ? (double)FLT_MIN : DBL_MIN;
    if (isnan(want))
        return isnan(got);
    if (fabs(want) > most)
        return got == copysign((double)INFINITY, want);
    return fabs(got - want) <= tolerance * fabs(want) + (fabs(x) < 10 ? tolerance : least);
}

static struct check_case case_of(const struct kernel_op *op, int dtype, int64_t n)
{
    struct check_case c = {.op = op, .n_leaves = op->n_in, .n_in = op->n_in, .sample = -1};
    const double first = op == &kernel_op_clamp ? -1 : 1.5;
    c.n_attr = op->n_attrs;
    c.attr[0] = kernel_attr_word(first);
    c.attr[1] = kernel_attr_word(2);
    for (int i = 0; i < op->n_in; i++) {
        c.leaf[i] = (struct check_leaf){dtype, 1, {n}, -1, 1, true};
        c.in[i].leaf = i;
    }
    return c;
}

static void each_set(void (*check)(int dtype))
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    for (int k = 0; k < 3; k++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64 && kernel_isa_use(names[k]); dtype++)
            check(dtype);
    kernel_isa_use(NULL);
}

static void check_seconds(int dtype)
{
    int n;
    const struct row_check *rows = row_checks(&n);
    for (int r = 0; r < n; r++) {
        const struct row_check *s = &rows[r];
        double got[POINTS];
        if (s->second == NULL)
            continue;
        const struct check_case c = case_of(s->op, dtype, POINTS);
        differentiate_twice(&c, points, 0, got);
        for (int i = 0; i < POINTS; i++) {
            const double x = dtype == KERNEL_F32 ? (double)(float)points[i] : points[i];
            const double want = isinf(x) ? s->second_limits[x < 0] : (double)s->second(x);
            ck_assert_msg(near(got[i], want, x, dtype),
                          "%s %s on %s at %g: second derivative %.17g, not %.17g", s->op->name,
                          kernel_dtype_name(dtype), kernel_isa_name(), x, got[i], want);
        }
    }
}

TEST(second_derivatives_are_the_limits_where_these_are_finite)
{
    each_set(check_seconds);
}

/* At the ends of the domains the second derivatives are infinite: reached, or said not to be. */
static void check_ends(int dtype)
{
    int n, ends = 0;
    const struct row_check *rows = row_checks(&n);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < rows[r].n_ends; i++, ends++) {
            const struct row_end *e = &rows[r].ends[i];
            const struct check_case c = case_of(rows[r].op, dtype, 1);
            double got;
            differentiate_twice(&c, &e->x, 0, &got);
            ck_assert_msg(near(got, e->second, e->x, dtype),
                          "%s %s at %g: second derivative %g, not %g", rows[r].op->name,
                          kernel_dtype_name(dtype), e->x, got, e->second);
        }
    ck_assert_int_ge(ends, 12);
}

TEST(second_derivatives_at_the_ends_of_domains_are_as_documented)
{
    each_set(check_ends);
}

/* d^2 a^b / (da db) is 1 / a where b is 0, whichever is taken first. */
static void check_mixed(int dtype)
{
    const double x[6] = {0.5, 2, 4, 0, -0.0, 0}; /* a, then b */
    const struct check_case c = case_of(&kernel_op_pow, dtype, 3);
    for (int of = 0; of < 2; of++) {
        double got[6];
        differentiate_twice(&c, x, of, got);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(near(got[of ? k : 3 + k], 1 / x[k], x[k], dtype),
                          "%s: at a = %g: mixed derivative %g, a gradient of operand %d",
                          kernel_dtype_name(dtype), x[k], got[of ? k : 3 + k], of);
    }
}

TEST(the_mixed_derivative_of_pow_holds_where_the_exponent_is_zero)
{
    each_set(check_mixed);
}

/* y = x > 0 ? sqrt(x > 0 ? x : 1) : 0, whose branch not taken has no derivative at 0. */
TEST(a_masked_branch_leaks_no_nan_into_second_derivatives)
{
    static const double x[4] = {4, 0, -1, (double)NAN}, nothing[4] = {0}, one[4] = {1, 1, 1, 1};
    const int64_t n = 4;
    struct tape *t = check_tape();
    double got[4];
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        struct check_case c = case_of(&kernel_op_neg, dtype, n);
        struct check_run run;
        uint32_t first;
        check_run(&c, x, &run);
        const uint32_t zeros = check_like(run.leaf[0], nothing, false);
        const uint32_t ones = check_like(run.leaf[0], one, false);
        const uint32_t mask = check_apply(&kernel_op_greater, 2, (uint32_t[]){run.leaf[0], zeros});
        const uint32_t safe =
            check_apply(&kernel_op_where, 3, (uint32_t[]){mask, run.leaf[0], ones});
        const uint32_t root = check_apply(&kernel_op_sqrt, 1, &safe);
        const uint32_t y = check_apply(&kernel_op_where, 3, (uint32_t[]){mask, root, zeros});
        succeed(tape_graph(t, y, ones, 1, run.leaf, check_site, &first));
        check_read(first, got);
        ck_assert(got[0] == 0.25 && got[1] == 0 && got[2] == 0 && got[3] == 0);
        succeed(tape_sweep(t, first, ones, check_site));
        check_gradients(&c, &run, got);
        ck_assert(got[0] == -0.03125 && got[1] == 0 && got[2] == 0 && got[3] == 0);
    }
}

/* Rows of two and three operands are in test_gradgradcheck, inside their domains. */
TEST(no_public_row_of_one_operand_is_left_out)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        if (!ops[k]->hidden && ops[k]->elementwise && ops[k]->n_in == 1 && !ops[k]->constant)
            ck_assert_msg(row_check(ops[k])->second != NULL, "%s states no second derivative",
                          ops[k]->name);
    }
}

RUN_TESTS(NULL, NULL)
