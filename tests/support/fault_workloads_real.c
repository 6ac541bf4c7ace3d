/* fault_workloads_real.c: workloads of scalar statements: beside tensors, in several blocks and
 * runs, with leaves, marks, sweeps of every width; on forks of forks; of tensors and statements in
 * turn.
 */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

#include <stdio.h>

enum { STATEMENTS = 300, ROWS = 7, WIDE = 1000 };

/* A statement is a call as well: it leaves no trace if it fails. */
static ad_status set(ad_tape tape, ad_real *y, ad_real result)
{
    *y = result;
    const ad_status status = ad_tape_status(tape);
    if (status != AD_OK && y->index != 0)
        snprintf(fault_wrong, sizeof fault_wrong, "reals: a failed statement has an index");
    return status;
}

static void fill(ad_tape tape, int n, ad_real *y, const ad_real *x)
{
    for (int i = 0; i < n; i++)
        DO(set(tape, y, ad_real_of(ad_real_add(ad_real_mul(*y, x[1]), ad_real_sin(x[i % 3])))));
}

void fault_reals(ad_tape tape, struct fault_results *out)
{
    ad_real x[3], y, row[ROWS];
    double jacobian[ROWS * 3] = {0}, g[3] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape)); /* another may have been recorded on */
    DO(ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 0.25}, x));
    y = x[0];
    fill(tape, STATEMENTS, &y, x);
    ad_tensor t = OP(ad_leaf(tape, AD_F64, 1, SHAPE(3), fault_data));
    t = OP(ad_tanh(t));
    fault_look();
    const ad_mark mark = ad_tape_mark(tape);
    fault_status_done(ad_tape_status(tape));
    for (int i = 0; i < ROWS; i++) {
        row[i] = y;
        DO(set(tape, &row[i], ad_real_of(ad_real_mul(y, ad_real_pow(x[1], i)))));
    }
    DO(ad_real_jacobian(tape, ROWS, row, 3, x, jacobian));
    for (int i = 0; i < ROWS * 3 && ad_tape_status(tape) == AD_OK; i++)
        out->number[out->n++] = jacobian[i];
    fill(tape, STATEMENTS, &y, x);
    if (ad_tape_status(tape) == AD_OK)
        ad_tape_rewind(tape, mark);
    y = x[2];
    fill(tape, 3, &y, x);
    DO(ad_real_backward(tape, y));
    if (ad_real_gradients(tape, 3, x, g) == AD_OK)
        for (int i = 0; i < 3; i++)
            out->number[out->n++] = g[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

/* Statements on a fork, or on forks of it; a constant where it cannot be recorded on. */
static ad_real on_fork(ad_tape fork, const ad_real *x, int depth)
{
    ad_tape part[2] = {{0, 0}, {0, 0}};
    ad_real y[2] = {{0, 0, 0}, {0, 0, 0}};
    if (fork.slot == 0 || ad_tape_record_begin(fork) != AD_OK)
        return y[0];
    for (int i = 0; i < 2; i++)
        ad_set(&y[i], ad_real_mul(x[i], ad_real_sin(x[2])));
    if (depth > 0) {
        ad_tape_fork(fork, 2, part);
        for (int i = 0; i < 2; i++)
            y[i] = on_fork(part[i], y[i].index ? (ad_real[]){y[i], x[1], x[2]} : x, depth - 1);
        for (int i = 0; i < 2; i++)
            if (part[i].slot)
                ad_tape_join(fork, part[i], 1, &y[i]);
    }
    ad_set(&y[0], ad_real_add(y[0], y[1]));
    ad_tape_record_end(fork);
    return y[0];
}

void fault_forks(ad_tape tape, struct fault_results *out)
{
    ad_real x[3], y[3], sum;
    ad_tape fork[3];
    double jacobian[3 * 3] = {0}, g[3] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 0.25}, x));
    DO(ad_tape_fork(tape, 3, fork));
    for (int k = 0; k < 3; k++)
        y[k] = on_fork(fork[k], x, 1);
    for (int k = 0; k < 3; k++)
        if (fork[k].slot)
            DO(ad_tape_join(tape, fork[k], 1, &y[k]));
    DO(set(tape, &sum, ad_real_of(ad_real_mul(ad_real_mul(y[0], y[1]), y[2]))));
    DO(ad_real_jacobian(tape, 3, y, 3, x, jacobian));
    for (int i = 0; i < 3 * 3 && ad_tape_status(tape) == AD_OK; i++)
        out->number[out->n++] = jacobian[i];
    DO(ad_real_backward(tape, sum));
    if (ad_real_gradients(tape, 3, x, g) == AD_OK)
        for (int i = 0; i < 3; i++)
            out->number[out->n++] = g[i];
    /* The most bytes are live here, not in a sweep, which makes do with fewer forks at once. */
    static const double values[WIDE];
    ad_real wide[WIDE];
    DO(ad_real_leaves(tape, WIDE, values, wide));
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

/* What a failed call gave is constant. */
static ad_status elements(ad_tensor x, int64_t n, ad_real *y)
{
    const ad_status status = ad_reals_of_tensor(x, n, y);
    if (status != AD_OK && y[0].index != 0)
        snprintf(fault_wrong, sizeof fault_wrong, "bridges: a failed element has an index");
    return status;
}

void fault_bridges(ad_tape tape, struct fault_results *out)
{
    ad_real a[2], u[6];
    double g[2] = {0}, jacobian[4] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, a));
    ad_tensor w = OP(ad_leaf(tape, AD_F64, 2, SHAPE(2, 3), fault_data));
    ad_tensor h = OP(ad_tanh(w));
    DO(ad_retain_gradient(h));
    ad_tensor turned = OP(ad_permute(h, SHAPE(1, 0), 2));
    DO(elements(turned, 6, u));
    for (int i = 0; i < 6; i++)
        DO(set(tape, &u[i], ad_real_of(ad_real_mul(u[i], ad_real_add(a[i % 2], u[(i + 1) % 6])))));
    ad_tensor t = OP(ad_tensor_of_reals(tape, 1, SHAPE(6), u));
    ad_tensor y = OP(ad_exp(t));
    y = OP(ad_sum(y));
    DO(ad_backward(y));
    fault_look();
    const ad_mark mark = ad_tape_mark(tape);
    fault_status_done(ad_tape_status(tape));
    DO(elements(y, 1, u));
    DO(set(tape, &u[0], ad_real_of(ad_real_mul(u[0], a[1]))));
    DO(ad_real_jacobian(tape, 2, (ad_real[]){u[0], u[5]}, 2, a, jacobian));
    DO(ad_real_backward(tape, u[0]));
    fault_read_gradient(w, 6, out);
    fault_read_gradient(h, 6, out);
    if (ad_real_gradients(tape, 2, a, g) == AD_OK)
        for (int i = 0; i < 2; i++) {
            out->number[out->n++] = g[i];
            out->number[out->n++] = jacobian[i];
            out->number[out->n++] = jacobian[2 + i];
        }
    if (ad_tape_status(tape) == AD_OK)
        ad_tape_rewind(tape, mark);
    DO(elements(y, 1, u));
    ad_tensor z = OP(ad_tensor_of_reals(tape, 0, NULL, u));
    /* One that fails on the way releases all the same. */
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    const ad_status swept = ad_backward_release(z);
    ad_tape_stats(tape, &after);
    if (swept != ad_tape_status(tape) || after.live_bytes > before.live_bytes ||
        after.values != before.values || after.records != before.records)
        snprintf(fault_wrong, sizeof fault_wrong, "bridges: a release, %d", (int)swept);
    DO(ad_real_backward(tape, a[0])); /* looks at what was released */
    fault_read_gradient(w, 6, out);
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

static void look_at(const ad_recorded *r, void *payload)
{
    *(double *)payload += r->value;
}

void fault_recorded(ad_tape tape, struct fault_results *out)
{
    double sum = 0;
    ad_real x[2], y;
    ad_on_record(tape, look_at, &sum);
    ad_break_on_line(tape, "fault_workloads_real.c", 1, AD_BREAK_BOTH);
    const ad_tensor w = fault_leaf(tape, 1, 2), h = OP(ad_tanh(w));
    const ad_status begun = ad_tape_record_begin(tape);
    DO(ad_reals_of_tensor(h, 2, x));
    ad_set(&y, ad_real_mul(x[0], x[1]));
    ad_set(&y, ad_real_add(y, ad_real_dot(2, x, x)));
    DO(ad_real_backward(tape, y));
    fault_read_gradient(w, 2, out);
    FILE *none = fopen("/dev/null", "w");
    if (none) {
        DO(ad_tape_print(none, tape, 0));
        DO(ad_tape_write_graph(none, tape, 0));
        fclose(none);
    }
    ad_break_on_line(tape, "fault_workloads_real.c", 1, AD_BREAK_OFF);
    ad_on_record(tape, NULL, NULL);
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

/* What fault_reals does while each statement asks for room and each op is looked at. */
void fault_trapped(ad_tape tape, struct fault_results *out)
{
    ad_tape_trap(tape, AD_TRAP_ALL);
    fault_reals(tape, out);
    ad_tape_trap(tape, AD_TRAP_OFF);
}
