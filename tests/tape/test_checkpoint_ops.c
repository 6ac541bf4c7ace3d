/* test_checkpoint_ops.c: every op within a checkpoint: values and gradients are those without one,
 * bit for bit.
 *
 * All samples, operands that are leaves, intermediates and views, given to the function or read by
 * it.
 */
#include "check_gradient.h"
#include "run_cases.h"
#include "tape_checkpoint.h"

#include <check.h>
#include <string.h>

enum { MOST = 4096 };

static double x[MOST], u[MOST], want[MOST], got[MOST], y_want[MOST], y_got[MOST];
static int compared, recorded;

/* What the function needs besides its inputs; in: those that it reads by itself, or NULL. */
struct payload {
    const struct check_case *c;
    const uint32_t *in;
};

static bool apply(struct tape *t, const struct tape_function *f, int n_in, const uint32_t *in,
                  int n_out, uint32_t *out, struct tape_site site)
{
    const struct payload *p = f->payload;
    const struct check_case *c = p->c;
    (void)n_out;
    return tape_apply(t, c->op, p->in ? c->n_in : n_in, p->in ? p->in : in, c->n_attr, c->attr,
                      site, out) == TAPE_OK;
}

static bool same(const struct check_case *c, bool reads)
{
    struct tape *t = check_tape();
    struct check_run run;
    check_draw(c, x);
    check_random(5, MOST, u);
    check_run(c, x, &run);
    check_values(c, &run, y_want);
    check_sweep(c, &run, u, want);
    const uint32_t n_records = t->n_records;

    check_run_operands(c, x, &run);
    struct payload payload = {c, reads ? run.in : NULL};
    const struct tape_function f = {.run = apply, .payload = &payload};
    ck_assert_msg(tape_checkpoint(t, &f, reads ? 0 : c->n_in, run.in, c->op->n_out, run.out,
                                  check_site) == TAPE_OK,
                  "%s: %s", c->op->name, t->error.message);
    ck_assert_uint_eq(t->n_records, n_records);
    recorded += t->n_records > 0;
    check_values(c, &run, y_got);
    check_sweep(c, &run, u, got);
    compared++;
    ck_assert_msg(memcmp(y_got, y_want, (size_t)check_y_size(c, &run) * sizeof *u) == 0,
                  "%s, sample %d: other values", c->op->name, c->sample);
    ck_assert_msg(memcmp(got, want, (size_t)check_x_size(c) * sizeof *u) == 0,
                  "%s, sample %d: another gradient", c->op->name, c->sample);
    return true;
}

static bool given(const struct check_case *c)
{
    return same(c, false);
}

/* Every operand that has two axes to exchange is a view. */
static bool views(const struct check_case *c)
{
    struct check_case of_views = *c;
    for (int i = 0; i < c->n_in; i++)
        if (c->leaf[c->in[i].leaf].rank >= 2) {
            int64_t *shape = of_views.leaf[c->in[i].leaf].shape;
            const int last = c->leaf[c->in[i].leaf].rank - 1;
            const int64_t n = c->leaf[c->in[i].leaf].shape[last];
            shape[last] = c->leaf[c->in[i].leaf].shape[last - 1];
            shape[last - 1] = n;
            of_views.in[i].form = CHECK_TRANSPOSED;
        }
    return same(&of_views, false);
}

static bool read_by_itself(const struct check_case *c)
{
    return same(c, true);
}

TEST(every_op_has_the_same_gradient_within_a_checkpoint)
{
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        check_samples(dtype, CHECK_PLAIN, "leaves given to a checkpoint", given);
        check_samples(dtype, CHECK_MIDDLE, "intermediates given to a checkpoint", given);
    }
    check_samples(KERNEL_F64, CHECK_PLAIN, "views given to a checkpoint", views);
    ck_assert_int_gt(compared, 500);
    ck_assert_int_gt(recorded, 500);
}

TEST(operands_that_the_function_reads_by_itself_have_the_same_gradient)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "leaves read within a checkpoint", read_by_itself);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "intermediates read within one", read_by_itself);
    ck_assert_int_gt(recorded, 300);
}

RUN_TESTS(NULL, NULL)
