/* fault_workloads_fused_loops.c: a workload of fused loops of every kind of operand, over several
 * blocks, with marks and sweeps of every width. */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

#include <stdio.h>

enum { N = 12, ROWS = 7, ROUNDS = 8 };

static void pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    const double *factor = data;
    for (int64_t i = 0; i < n; i++)
        dx[i] += *factor * dy[i % m];
}

static void square(void *payload, int64_t n, const double *const *x, double *y,
                   double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[0][i] * x[0][i];
        if (partial[0])
            partial[0][i] = 2 * x[0][i];
    }
}

static ad_status results(ad_tape tape, int n, const ad_real *y)
{
    const ad_status status = ad_tape_status(tape);
    for (int i = 0; i < n; i++)
        if (status != AD_OK && y[i].index != 0)
            snprintf(fault_wrong, sizeof fault_wrong, "fused loops: a failed one has an index");
    return status;
}

static ad_status one(ad_tape tape, ad_real y)
{
    return results(tape, 1, &y);
}

/* A value of all kinds, and rows for a Jacobian. */
static ad_real fill(ad_tape tape, const ad_real *x, ad_real *row)
{
    static const double factor = 3, values[2] = {1, 2};
    static const int index[ROWS] = {3, 1, 3, 0, 6, 2, 5};
    ad_real any[N], y[ROWS + 5], sum = x[0];
    for (int i = 0; i < N; i++)
        any[i] = x[N - 1 - i];
    DO((sum = ad_real_dot(N, any, fault_data), one(tape, sum)));
    DO((any[0] = ad_real_sum(N, x), one(tape, any[0])));
    DO((any[1] = ad_real_sum_of_squares(N, any), one(tape, any[1])));
    DO((any[2] = ad_real_log_sum_exp(4, any), one(tape, any[2])));
    DO((any[3] = ad_real_polynomial(5, x, sum), one(tape, any[3])));
    DO((ad_real_gemv(ROWS, 1, x, any, row), results(tape, ROWS, row)));
    DO((ad_real_axpy(ROWS, sum, any, row), results(tape, ROWS, row)));
    DO((ad_real_trmm(1, 3, x, any, x + 3, x + 6, y), results(tape, 3, y)));
    DO((ad_real_stencil(ROWS, any, 2, x, y), results(tape, ROWS, y)));
    DO((ad_real_stencil_2d(3, 2, any, 2, 2, x, AD_EDGE_ZERO, y), results(tape, 6, y)));
    DO((ad_real_gather(ROWS, N, any, index, y), results(tape, ROWS, y)));
    DO((ad_real_scatter_add(ROWS, any, index, ROWS, y), results(tape, ROWS, y)));
    DO((ad_real_map(ROWS, 1, &(ad_array){any, NULL}, y, square, NULL), results(tape, ROWS, y)));
    DO((ad_real_collect(4, any, y), results(tape, 4, y)));
    DO((ad_real_custom(N, any, 2, values, y, "own", pullback, &factor, sizeof factor),
        results(tape, 2, y)));
    ad_set(&sum, ad_real_add(ad_real_mul(sum, y[0]), row[3]));
    return sum;
}

void fault_fused_loops(ad_tape tape, struct fault_results *out)
{
    ad_real x[N], y = {0}, row[ROWS];
    double jacobian[ROWS * N] = {0}, g[N] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, N, fault_data, x));
    for (int i = 0; i < ROUNDS; i++)
        y = fill(tape, x, row);
    fault_look();
    const ad_mark mark = ad_tape_mark(tape);
    fault_status_done(ad_tape_status(tape));
    fill(tape, x, row);
    DO(ad_real_jacobian(tape, ROWS, row, N, x, jacobian));
    for (int i = 0; i < ROWS * N && ad_tape_status(tape) == AD_OK; i++)
        out->number[out->n++] = jacobian[i];
    if (ad_tape_status(tape) == AD_OK)
        ad_tape_rewind(tape, mark);
    DO(ad_real_backward(tape, y));
    if (ad_real_gradients(tape, N, x, g) == AD_OK)
        for (int i = 0; i < N; i++)
            out->number[out->n++] = g[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}
