/* test_linear_references.c: values and gradients of linear algebra against numbers of high
 * precision that tests/references/linear_algebra.py has printed.
 */
#include "check_tape.h"
#include "linear_references.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { MOST = 128, REFERENCES = sizeof linear_references / sizeof *linear_references };

static const struct kernel_op *op_named(const char *name)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    ck_abort_msg("there is no op %s", name);
    return NULL;
}

static struct check_case case_of(const struct linear_reference *r, int dtype)
{
    struct check_case c = {.op = op_named(r->op),
                           .n_leaves = r->n_in,
                           .n_in = r->n_in,
                           .n_attr = r->n_attr,
                           .sample = -1,
                           .aim = "reference"};
    memcpy(c.attr, r->attr, sizeof r->attr);
    for (int i = 0; i < r->n_in; i++) {
        c.leaf[i] = (struct check_leaf){.dtype = dtype, .rank = 2, .active = true};
        memcpy(c.leaf[i].shape, r->shape[i], sizeof r->shape[i]);
        c.in[i].leaf = i;
    }
    return c;
}

/* The greatest error, as a part of the greatest number. */
static double error_of(int64_t n, const double *got, const double *want)
{
    double error = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double apart = fabs(got[i] - want[i]);
        error = apart <= error ? error : apart; /* NaN wins */
        most = fmax(most, fabs(want[i]));
    }
    return error / most;
}

static void compare(const struct linear_reference *r, int number, int dtype, double most)
{
    static double y[MOST], u[MOST], g[MOST];
    const struct check_case c = case_of(r, dtype);
    struct check_run run;
    check_run(&c, r->x, &run);
    const int64_t n_y = check_y_size(&c, &run), n_x = check_x_size(&c);
    ck_assert_int_le(n_y, MOST);
    ck_assert_int_le(r->n_y, n_y); /* the others are hidden */
    check_values(&c, &run, y);
    for (int64_t k = 0; k < n_y; k++)
        u[k] = k < r->n_y ? (double)((7 * k + 3) % 11 - 5) / 4 : 0;
    check_pullback(&c, r->x, u, g);
    const double of_y = error_of(r->n_y, y, r->y), of_g = error_of(n_x, g, r->g);
    ck_assert_msg(of_y <= most, "%s, reference %d: the value's error is %g", r->op, number, of_y);
    ck_assert_msg(of_g <= most, "%s, reference %d: the gradient's error is %g", r->op, number,
                  of_g);
}

TEST_EACH(values_and_gradients_have_the_digits_of_the_references, REFERENCES)
{
    const struct linear_reference *r = &linear_references[_i];
    compare(r, _i, KERNEL_F64, r->most);
}

/* Operands that f32 can hold; 1e-4 is 800 times its roundoff. */
TEST_EACH(values_and_gradients_in_f32_are_near, REFERENCES)
{
    const struct linear_reference *r = &linear_references[_i];
    if (r->most <= 1e-12)
        compare(r, _i, KERNEL_F32, 1e-4);
}

RUN_TESTS(NULL, NULL)
