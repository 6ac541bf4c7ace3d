/* test_accuracy.c: how near every elementwise op comes to the exact value, over its whole domain.
 *
 * Arguments: random bit patterns, random numbers of a range where something happens, and special
 * ones with their neighbours; the seed is fixed. The bounds stand in the rows.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATTERNS = 60000, DENSE = 60000, COUNT = PATTERNS + DENSE };

/* Parameters: exact in f32; of polygamma the order. */
static const double parameters[2] = {-1.75, 0.5};
static const double first_order[2] = {1, 0};

static double a[COUNT], b[COUNT], got[COUNT];
static long double want[COUNT];
static float narrow[4][COUNT];

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static double pattern(int dtype)
{
    union {
        uint64_t wide;
        uint32_t narrow;
        double d;
        float f;
    } u = {.wide = next()};
    return dtype == KERNEL_F32 ? (double)u.f : u.d;
}

static double rounded(double x, int dtype)
{
    return dtype == KERNEL_F32 ? (double)(float)x : x;
}

/* Special numbers and their neighbours, then patterns, then the range. */
static void fill(double *x, const double *range, int dtype, int stride)
{
    const bool plain = range[0] == range[1];
    const double low = plain ? -2 : range[0], high = plain ? 2 : range[1];
    const double special[] = {0, 0.5, 1, 2, 3, 10, low, high, INFINITY, NAN};
    enum { SPECIALS = sizeof special / sizeof *special, NEAR = 20 };
    for (int i = 0; i < COUNT; i++) {
        const int k = i / stride;
        if (i < PATTERNS && k < SPECIALS * NEAR) {
            double at = rounded(special[k / NEAR], dtype);
            for (int step = k % NEAR; step > 1; step -= 2)
                at = dtype == KERNEL_F32
                         ? (double)nextafterf((float)at, step % 4 < 2 ? INFINITY : -INFINITY)
                         : nextafter(at, step % 4 < 2 ? INFINITY : -INFINITY);
            x[i] = k % 2 ? -at : at;
        } else if (i < PATTERNS) {
            x[i] = pattern(dtype);
        } else {
            x[i] = rounded(low + (high - low) * (double)(next() >> 11) * 0x1p-53, dtype);
        }
    }
}

/* The loop of the row on a, b and a, into got. */
static void run(const struct row_check *r, int dtype, const double *p)
{
    const void *in[3] = {a, b, a};
    kernel_loop *loop = kernel_isa_get()->loop[r->op->loop][dtype][0];
    if (dtype == KERNEL_F64) {
        loop(COUNT, got, in, p);
        return;
    }
    for (int i = 0; i < COUNT; i++) {
        narrow[0][i] = (float)a[i];
        narrow[1][i] = (float)b[i];
    }
    in[0] = in[2] = narrow[0];
    in[1] = narrow[1];
    loop(COUNT, narrow[2], in, p);
    for (int i = 0; i < COUNT; i++)
        got[i] = (double)narrow[2][i];
}

static void check_row(const struct row_check *r, int dtype)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    const double *p = r->op == &kernel_op_polygamma ? first_order : parameters;
    const double bound = r->op->ulps[dtype];
    state = 20240607;
    fill(a, r->range[0], dtype, 1);
    fill(b, r->range[1], dtype, 7);
    for (int i = 0; i < COUNT; i++)
        want[i] = r->exact(a[i], b[i], a[i], p);
    for (int k = 0; k < 3; k++) {
        double most = 0;
        int at = 0;
        if (!kernel_isa_use(names[k]))
            continue;
        run(r, dtype, p);
        for (int i = 0; i < COUNT; i++) {
            const double far =
                row_distance(got[i], want[i], dtype) / row_grows(r, a[i], (double)want[i], dtype);
            if (far > most) {
                most = far;
                at = i;
            }
        }
        ck_assert_msg(most <= bound,
                      "%s %s on %s at (%.17g, %.17g): %.17g, not %.20Lg: %g ulp, bound %g",
                      r->op->name, kernel_dtype_name(dtype), names[k], a[at], b[at], got[at],
                      want[at], most, bound);
    }
    kernel_isa_use(NULL);
}

static void check_rows(int dtype)
{
    int n;
    const struct row_check *rows = row_checks(&n);
    for (int i = 0; i < n; i++)
        if (!rows[i].cancels)
            check_row(&rows[i], dtype);
}

TEST(values_in_f64_are_within_their_bounds)
{
    check_rows(KERNEL_F64);
}

TEST(values_in_f32_are_within_their_bounds)
{
    check_rows(KERNEL_F32);
}

TEST(every_row_has_a_bound_unless_its_terms_cancel)
{
    int n, n_ops, exempt = 0;
    const struct row_check *rows = row_checks(&n);
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int i = 0; i < n; i++) {
        const struct kernel_op *op = rows[i].op;
        ck_assert_msg(op == ops[i], "the checks of %s stand at another row", op->name);
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
            ck_assert_msg((op->ulps[dtype] > 0) == !rows[i].cancels, "%s: bound %g", op->name,
                          op->ulps[dtype]);
        ck_assert_msg(op->hidden || !rows[i].cancels, "%s is public", op->name);
        exempt += rows[i].cancels;
    }
    ck_assert(n < n_ops && !ops[n]->elementwise && exempt <= 7);
}

/* One unit in the last place more than the bound, and a NaN, are seen. */
TEST(the_distance_counts_units_in_the_last_place)
{
    ck_assert_double_eq(row_distance(1 + 0x1p-52, 1, KERNEL_F64), 1);
    ck_assert_double_eq(row_distance(1 - 0x1p-53, 1, KERNEL_F64), 0.5);
    ck_assert_double_eq(row_distance(1 + 0x1p-22, 1, KERNEL_F32), 2);
    ck_assert_double_eq(row_distance(0x3p-1074, 0x1p-1074L, KERNEL_F64), 2);
    ck_assert_double_eq(row_distance(0, 0x1p-149L, KERNEL_F32), 1);
    ck_assert_double_eq(row_distance((double)INFINITY, (long double)DBL_MAX, KERNEL_F64), 1);
    ck_assert_double_eq(row_distance((double)INFINITY, 0x1p5000L, KERNEL_F64), 0);
    ck_assert(isinf(row_distance((double)NAN, 1, KERNEL_F64)) &&
              isinf(row_distance(1, NAN, KERNEL_F32)));
    ck_assert(row_distance(DBL_MAX, (long double)INFINITY, KERNEL_F64) == 1);
}

RUN_TESTS(NULL, NULL)
