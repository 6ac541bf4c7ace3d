/* test_seed_ops.c: the Jacobian of every op by sweeps of several seeds is the one by sweeps of one,
 * by rows of its pullback and by columns of its recorded pullback.
 *
 * Where the function retains a gradient, one seed is swept at a time.
 */
#include "check_tape.h"

#include "ad_internal.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_functional.h>

enum { MOST_X = 160, MOST_Y = 160, MOST = 12 * 1024 };

static double x[MOST_X];
static char matrix[3][MOST * sizeof(double)];
static int64_t compared, several;

static void succeed(const struct check_case *c, enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s sample %d: %s", c->op->name, c->sample,
                  check_tape()->error.message);
}

/* Output o of a case's op; middle: of operands that are computed from the leaves. */
struct face {
    const struct check_case *c;
    struct check_run run;
    int o;
    bool middle, single;
};

static ad_tensor face_function(ad_tape tape, const ad_tensor *of, int n, void *payload)
{
    const struct face *f = payload;
    const int64_t once = kernel_attr_word(1);
    struct tape *t = check_tape();
    uint32_t in[KERNEL_MAX_IN], out[KERNEL_MAX_OUT];
    (void)of;
    (void)n;
    for (int i = 0; i < f->c->n_in; i++) {
        in[i] = f->run.in[i];
        if (f->middle && t->entries[in[i]].array.dtype != KERNEL_I64)
            succeed(f->c, tape_apply(t, &kernel_op_scale, 1, &in[i], 1, &once, check_site, &in[i]));
    }
    succeed(f->c,
            tape_apply(t, f->c->op, f->c->n_in, in, f->c->n_attr, f->c->attr, check_site, out));
    if (f->single)
        succeed(f->c, tape_retain(t, out[f->o], check_site));
    ck_assert_int_eq(tape_sweep_takes_seeds(t), !f->single);
    return ad_handle_of(t, tape.slot, tape.generation, out[f->o]);
}

/* The check's tape as a user's. */
static ad_tape face_tape(void)
{
    static uint32_t slot;
    if (!slot)
        slot = ad_slot_take(check_tape(), ad_thread_number());
    return (ad_tape){slot, ad_slots[slot].generation};
}

/* The Jacobian of output o: n_y rows by each active leaf, one leaf behind the other. */
static void jacobian(struct face *f, ad_jacobian_order order, char *to, int64_t n_y, int dtype)
{
    ad_tensor of[KERNEL_MAX_IN];
    void *part[KERNEL_MAX_IN];
    int64_t counts[KERNEL_MAX_IN];
    int n = 0;
    check_run_operands(f->c, x, &f->run);
    const ad_tape tape = face_tape();
    for (int i = 0; i < f->c->n_leaves; i++)
        if (f->c->leaf[i].active) {
            of[n] = ad_handle_of(check_tape(), tape.slot, tape.generation, f->run.leaf[i]);
            counts[n] = n_y * check_leaf_size(&f->c->leaf[i]);
            part[n] = to;
            to += (size_t)counts[n++] * kernel_dtype_bytes(dtype);
        }
    const ad_status status = ad_jacobian(tape, face_function, n, of, f, order, part, counts);
    ck_assert_msg(status == AD_OK, "%s sample %d output %d: %s", f->c->op->name, f->c->sample, f->o,
                  ad_tape_message(tape));
}

static double element(const char *of, int64_t k, int dtype)
{
    return dtype == KERNEL_F32 ? (double)((const float *)(const void *)of)[k]
                               : ((const double *)(const void *)of)[k];
}

static void check_equal(const struct face *f, const char *what, const char *got, int64_t n,
                        int dtype)
{
    const double tolerance = dtype == KERNEL_F32 ? 2e-5 : 2e-13;
    double most = 1;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, fabs(element(matrix[0], k, dtype)));
    for (int64_t k = 0; k < n; k++) {
        const double a = element(got, k, dtype), b = element(matrix[0], k, dtype);
        if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * most)
            continue;
        ck_abort_msg("%s %s sample %d output %d%s: element %lld is %.17g %s, not %.17g",
                     f->c->op->name, kernel_dtype_name(dtype), f->c->sample, f->o,
                     f->middle ? " of intermediates" : "", (long long)k, a, what, b);
    }
    compared += n;
}

static void check_output(const struct check_case *c, int o, bool middle, int dtype)
{
    struct face f = {.c = c, .o = o, .middle = middle, .single = true};
    int64_t n = 0;
    check_run(c, x, &f.run);
    const struct tape_value *y = &check_tape()->entries[f.run.out[o]];
    const int64_t n_y = y->array.size;
    for (int i = 0; i < c->n_leaves; i++)
        n += c->leaf[i].active ? n_y * check_leaf_size(&c->leaf[i]) : 0;
    if (!(y->flags & TAPE_NEEDS_GRADIENT) || y->array.dtype != dtype || n_y > MOST_Y || n > MOST)
        return;
    several += n_y > 1;
    jacobian(&f, AD_JACOBIAN_ROWS, matrix[0], n_y, dtype);
    f.single = false;
    jacobian(&f, AD_JACOBIAN_ROWS, matrix[1], n_y, dtype);
    check_equal(&f, "by rows", matrix[1], n, dtype);
    if (dtype != KERNEL_F64 || middle)
        return;
    jacobian(&f, AD_JACOBIAN_COLUMNS, matrix[2], n_y, dtype);
    check_equal(&f, "by columns", matrix[2], n, dtype);
}

static void check_ops(int dtype, bool middle)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    compared = several = 0;
    for (int i = 0; i < n; i++) {
        struct kernel_sample sample;
        for (int k = 0; !ops[i]->constant && ops[i]->sample(k, &sample); k++) {
            const struct check_case c = check_case_of(ops[i], &sample, dtype, k);
            bool active = false;
            for (int l = 0; l < c.n_leaves; l++)
                active = active || c.leaf[l].active;
            if (!active || check_x_size(&c) > MOST_X)
                continue;
            check_draw(&c, x);
            for (int o = 0; o < ops[i]->n_out; o++)
                check_output(&c, o, middle, dtype);
        }
    }
    ck_assert_int_gt(several, n);
    ck_assert_int_gt(compared, 100 * n);
}

TEST(jacobians_of_leaves_are_those_of_single_seeds)
{
    check_ops(KERNEL_F64, false);
}

TEST(jacobians_of_intermediates_are_those_of_single_seeds)
{
    check_ops(KERNEL_F64, true);
    check_ops(KERNEL_F32, true);
}

/* A NaN is told with the op and the element where it arose, of one seed. */
TEST(a_trap_takes_one_seed_at_a_time)
{
    ck_assert(tape_sweep_takes_seeds(check_tape()));
    check_tape()->nonfinite = 1;
    ck_assert(!tape_sweep_takes_seeds(check_tape()));
    check_tape()->nonfinite = 0;
}

RUN_TESTS(NULL, NULL)
