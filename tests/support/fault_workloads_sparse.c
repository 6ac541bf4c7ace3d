/* fault_workloads_sparse.c: sparse Jacobians of numbers: patterns found, and values of parts that
 * are swept and that are walked. */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

void fault_sparse_jacobian(ad_tape tape, struct fault_results *out)
{
    enum { N = 70 };
    ad_real x[N], y[N];
    double start[N], values[3 * N] = {0};
    ad_sparse_pattern p;
    for (int i = 0; i < N; i++)
        start[i] = 1 + i * 0.125;
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, N, start, x));
    for (int i = 0; i < N; i++)
        y[i] = x[i];
    for (int i = 0; i < N && ad_tape_status(tape) == AD_OK; i++) {
        fault_look();
        ad_set(&y[i], ad_real_mul(x[i], x[(i + 1) % N]));
        fault_status_done(ad_tape_status(tape));
    }
    for (int i = 0; i < N && ad_tape_status(tape) == AD_OK; i += 7) {
        fault_look();
        ad_set(&y[i], ad_real_mul(y[i], x[(i + 9) % N]));
        fault_status_done(ad_tape_status(tape));
    }
    if (DO(ad_real_jacobian_pattern(tape, N, y, N, x, &p)) == AD_OK) {
        DO(ad_real_jacobian_sparse(tape, N, y, N, x, &p, values));
        for (int64_t k = 0; k < p.n_values && ad_tape_status(tape) == AD_OK; k++)
            out->number[out->n++] = values[k];
        ad_sparse_free(&p);
    }
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}
