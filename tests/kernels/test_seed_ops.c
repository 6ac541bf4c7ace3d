/* test_seed_ops.c: the Jacobian of every op by sweeps of several seeds is the one by sweeps of one,
 * by rows of its pullback and by columns of its recorded pullback.
 *
 * Where the function retains a gradient, one seed is swept at a time. And the sparse one is it,
 * too: what is not in the pattern is 0. So is the Hessian of the sum of the op's squares.
 */
#include "check_tape.h"

#include "ad_internal.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_tensor_sparse.h>

enum { MOST_X = 160, MOST_Y = 160, MOST = 12 * 1024 };

static double x[MOST_X];
static char matrix[3][MOST * sizeof(double)];
static int64_t compared, several, sparser;

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
    bool middle, single, squares;
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
    if (f->squares) {
        const int64_t keepdim = 0;
        succeed(f->c,
                tape_apply(t, &kernel_op_square, 1, &out[f->o], 0, NULL, check_site, &out[f->o]));
        succeed(f->c,
                tape_apply(t, &kernel_op_sum, 1, &out[f->o], 1, &keepdim, check_site, &out[f->o]));
    }
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

/* The active leaves of an operand of the case that is made anew, and their elements. */
static int leaves(struct face *f, ad_tensor *of, int64_t *size)
{
    int n = 0;
    check_run_operands(f->c, x, &f->run);
    const ad_tape tape = face_tape();
    for (int i = 0; i < f->c->n_leaves; i++)
        if (f->c->leaf[i].active) {
            size[n] = check_leaf_size(&f->c->leaf[i]);
            of[n++] = ad_handle_of(check_tape(), tape.slot, tape.generation, f->run.leaf[i]);
        }
    return n;
}

/* The Jacobian of output o: n_y rows by each active leaf, one leaf behind the other. */
static void jacobian(struct face *f, ad_jacobian_order order, char *to, int64_t n_y, int dtype)
{
    ad_tensor of[KERNEL_MAX_IN];
    void *part[KERNEL_MAX_IN];
    int64_t counts[KERNEL_MAX_IN];
    const int n = leaves(f, of, counts);
    const ad_tape tape = face_tape();
    for (int i = 0; i < n; i++) {
        counts[i] *= n_y;
        part[i] = to;
        to += (size_t)counts[i] * kernel_dtype_bytes(dtype);
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

/* Puts a row of the sparse matrix where the dense one has it: by leaves, each [rows, size]. */
static void scatter(const ad_sparse_pattern *p, int64_t row, const int64_t *size, const char *from,
                    char *to, size_t each)
{
    int64_t first = 0;
    int i = 0;
    for (int64_t k = p->row_start[row]; k < p->row_start[row + 1]; k++) {
        while (p->column[k] >= first + size[i])
            first += size[i++];
        memcpy(to + (size_t)(p->m * first + row * size[i] + p->column[k] - first) * each,
               from + (size_t)k * each, each);
    }
}

/* matrix[0] is dense, of n elements; the sparse one has all of it that is not 0. */
static void check_sparse(struct face *f, int64_t n, int dtype)
{
    const size_t each = kernel_dtype_bytes(dtype);
    const ad_tape tape = face_tape();
    ad_tensor of[KERNEL_MAX_IN];
    int64_t size[KERNEL_MAX_IN];
    ad_sparse_pattern p;
    int n_x = leaves(f, of, size);
    ad_status status = (f->squares ? ad_hessian_pattern : ad_jacobian_pattern)(tape, face_function,
                                                                               n_x, of, f, &p);
    ck_assert_msg(status == AD_OK, "%s sample %d: %s", f->c->op->name, f->c->sample,
                  ad_tape_message(tape));
    ck_assert_int_eq(p.m * p.n, n);
    n_x = leaves(f, of, size);
    status = (f->squares ? ad_hessian_sparse : ad_jacobian_sparse)(tape, face_function, n_x, of, f,
                                                                   &p, matrix[2], p.n_values);
    ck_assert_msg(status == AD_OK, "%s sample %d output %d: %s", f->c->op->name, f->c->sample, f->o,
                  ad_tape_message(tape));
    memset(matrix[1], 0, (size_t)n * each);
    for (int64_t row = 0; row < p.m; row++)
        scatter(&p, row, size, matrix[2], matrix[1], each);
    check_equal(f, "sparse", matrix[1], n, dtype);
    sparser += p.n_values < n;
    ad_sparse_free(&p);
}

/* The Hessian, which has all leaves in a row. */
static void check_squares(const struct check_case *c, int o)
{
    struct face f = {.c = c, .o = o, .squares = true};
    ad_tensor of[KERNEL_MAX_IN];
    int64_t size[KERNEL_MAX_IN], n = 0;
    const int n_x = leaves(&f, of, size);
    for (int i = 0; i < n_x; i++)
        n += size[i];
    if (n * n > MOST || n_x > 1)
        return;
    const ad_status status = ad_hessian(face_tape(), face_function, n_x, of, &f, matrix[0], n * n);
    ck_assert_msg(status == AD_OK, "%s sample %d output %d: %s", c->op->name, c->sample, o,
                  ad_tape_message(face_tape()));
    check_sparse(&f, n * n, KERNEL_F64);
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
    check_sparse(&f, n, dtype);
    if (dtype != KERNEL_F64 || middle)
        return;
    jacobian(&f, AD_JACOBIAN_COLUMNS, matrix[2], n_y, dtype);
    check_equal(&f, "by columns", matrix[2], n, dtype);
    if (n <= 400)
        check_squares(c, o);
}

static void check_ops(int dtype, bool middle)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    compared = several = sparser = 0;
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
    ck_assert_int_gt(sparser, n);
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
