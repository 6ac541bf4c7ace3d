/* fault_workloads_real.c: a workload of scalar statements beside tensors: several blocks and runs,
 * leaves, marks, sweeps of every width.
 *
 * May include: fault_workloads.h, ad_real.h.
 */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

#include <stdio.h>

#define DO FAULT_DO

enum { STATEMENTS = 300, ROWS = 7 };

/* A statement is a call as well: it leaves no trace if it fails. */
static ad_status set(ad_tape tape, ad_real *y, ad_expr formula)
{
    ad_set(y, formula);
    const ad_status status = ad_status_of(tape);
    if (status != AD_OK && y->index != 0)
        snprintf(fault_wrong, sizeof fault_wrong, "reals: a failed statement has an index");
    return status;
}

static void fill(ad_tape tape, int n, ad_real *y, const ad_real *x)
{
    for (int i = 0; i < n; i++)
        DO(set(tape, y, ad_real_add(ad_real_mul(*y, x[1]), ad_real_sin(x[i % 3]))));
}

void fault_reals(ad_tape tape, struct fault_results *out)
{
    ad_real x[3], y, row[ROWS];
    double jacobian[ROWS * 3] = {0}, g[3] = {0};
    const ad_status begun = DO(ad_record_begin(tape)); /* another may have been recorded on */
    DO(ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 0.25}, x));
    y = x[0];
    fill(tape, STATEMENTS, &y, x);
    ad_tensor t = FAULT_OP(ad_leaf(tape, AD_F64, 1, FAULT_SHAPE(3), fault_data));
    t = FAULT_OP(ad_tanh(t));
    fault_look();
    const ad_mark mark = ad_tape_mark(tape);
    fault_status_done(ad_status_of(tape));
    for (int i = 0; i < ROWS; i++) {
        row[i] = y;
        DO(set(tape, &row[i], ad_real_mul(y, ad_real_pow(x[1], i))));
    }
    DO(ad_real_jacobian(tape, ROWS, row, 3, x, jacobian));
    for (int i = 0; i < ROWS * 3 && ad_status_of(tape) == AD_OK; i++)
        out->number[out->n++] = jacobian[i];
    fill(tape, STATEMENTS, &y, x);
    if (ad_status_of(tape) == AD_OK)
        ad_tape_rewind(tape, mark);
    y = x[2];
    fill(tape, 3, &y, x);
    DO(ad_real_backward(tape, y));
    if (ad_real_gradients(tape, 3, x, g) == AD_OK)
        for (int i = 0; i < 3; i++)
            out->number[out->n++] = g[i];
    if (begun == AD_OK)
        ad_record_end(tape);
}

/* The same while each statement asks for room and each op is looked at. */
void fault_trapped(ad_tape tape, struct fault_results *out)
{
    ad_tape_trap(tape, AD_TRAP_ALL);
    fault_reals(tape, out);
    ad_tape_trap(tape, AD_TRAP_OFF);
}
