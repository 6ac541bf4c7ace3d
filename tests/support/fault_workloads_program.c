/* fault_workloads_program.c: a program of numbers: its steps, questions and replays, and second
 * derivatives; a program of tensors. */
#include "fault_workloads.h"

#include <tapescope/ad_tensor_program.h>

#define AD_REAL_PROGRAM 1
#include <tapescope/ad_real.h>

#include <stdio.h>

enum { STEPS = 700 };

/* A statement is a call as well: it leaves no trace if it fails. */
static ad_real made(ad_tape tape, ad_real y)
{
    if (fault_status_done(ad_tape_status(tape)) != AD_OK && y.index != 0)
        snprintf(fault_wrong, sizeof fault_wrong, "program: a failed statement has an index");
    return y;
}
#define SET(y, e) (fault_look(), (y) = made(tape, ad_real_of(e)))

static void results(int n, const double *number, ad_tape tape, struct fault_results *out)
{
    for (int i = 0; i < n && ad_tape_status(tape) == AD_OK; i++)
        out->number[out->n++] = number[i];
}

void fault_program(ad_tape tape, struct fault_results *out)
{
    ad_real x[2], y;
    double h[4] = {0}, product[2] = {0}, gradient[2] = {0}, tangent = 0;
    const ad_status begun = DO(ad_tape_record_begin(tape)); /* another may have been recorded on */
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x));
    DO(ad_tape_program_begin(tape));
    y = x[0];
    for (int i = 0; i < STEPS; i++) {
        SET(y, ad_real_mul(y, x[1]));
        SET(y, ad_real_sin(y));
    }
    fault_look();
    if (ad_real_less(y, 2))
        SET(y, ad_real_add(ad_real_square(y), ad_real_mul(x[0], x[1])));
    fault_look();
    fault_status_done(ad_tape_status(tape));
    DO(ad_tape_program_end(tape));
    DO(ad_real_hessian(tape, y, 2, x, h));
    results(4, h, tape, out);
    DO(ad_tape_replay(tape, 2, x, (double[]){0.25, 0.5}, 0));
    DO(ad_real_update(tape, 1, &y));
    DO(ad_real_hvp(tape, y, 2, x, (double[]){1, 2}, product, gradient));
    DO(ad_real_vjp(tape, 1, &y, 2, x, NULL, h));
    results(2, h, tape, out);
    DO(ad_real_jvp(tape, 1, &y, 2, x, (double[]){1, 2}, &tangent));
    DO(ad_real_hessian_diagonal(tape, y, 2, x, h));
    results(2, h, tape, out);
    results(2, product, tape, out);
    results(2, gradient, tape, out);
    results(1, &tangent, tape, out);
    FILE *none = fopen("/dev/null", "w");
    if (none) {
        DO(ad_tape_write_c(none, tape, "f", 1, &y, 2, x, 0));
        fclose(none);
    }
    DO(ad_real_backward(tape, y));
    if (ad_real_gradients(tape, 2, x, gradient) == AD_OK)
        results(2, gradient, tape, out);
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

void fault_sparse_hessian(ad_tape tape, struct fault_results *out)
{
    enum { N = 20 };
    ad_real x[N], y;
    double start[N], values[3 * N] = {0};
    ad_sparse_pattern p;
    for (int i = 0; i < N; i++)
        start[i] = 1 + i * 0.125;
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, N, start, x));
    DO(ad_tape_program_begin(tape));
    y = x[0];
    for (int i = 1; i < N; i++) {
        SET(y, ad_real_mul(x[N - 1], x[i - 1]));
        SET(x[0], ad_real_add(x[0], y));
    }
    DO(ad_tape_program_end(tape));
    if (DO(ad_real_hessian_pattern(tape, x[0], N - 1, x + 1, &p)) == AD_OK) {
        DO(ad_real_hessian_sparse(tape, x[0], N - 1, x + 1, &p, values));
        results((int)p.n_values, values, tape, out);
        ad_sparse_free(&p);
    }
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

/* The workspace of a replay is taken again; softmax takes one, and needs no gradient here. */
void fault_tensor_program(ad_tape tape, struct fault_results *out)
{
    DO(ad_tape_reset(tape)); /* it begins on a tape without records */
    ad_tensor x = fault_leaf(tape, 4, 5);
    ad_tensor c = OP(ad_constant(tape, AD_F64, 2, SHAPE(4, 5), fault_data));
    ad_tensor zeros = {0, 0, 0, 0}, g = zeros;
    DO(ad_tensor_program_begin(tape));
    ad_tensor weights = OP(ad_softmax(c, 0));
    ad_tensor y = OP(ad_mul(x, weights));
    y = OP(ad_square(y));
    y = OP(ad_sum(y));
    DO(ad_create_graph(y, zeros, 1, &x, &g));
    ad_tensor penalty = OP(ad_square(g));
    penalty = OP(ad_sum(penalty));
    DO(ad_tensor_program_end(tape));
    FILE *none = fopen("/dev/null", "w");
    if (none) {
        DO(ad_tensor_write_c(none, tape, "f", 1, &penalty, 1, &x));
        fclose(none);
    }
    DO(ad_tensor_replay(tape, 2, (ad_tensor[]){x, c},
                        (const void *const[]){fault_data + 3, fault_data + 7}));
    DO(ad_backward(penalty));
    fault_read_value(penalty, 1, out);
    fault_read_gradient(x, 20, out);
}
