/* fault_workloads_checkpoint.c: a workload of checkpoints: with several results, within each other,
 * with what their functions read by themselves; and of checkpoints of scalars.
 */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

#include <stdio.h>

enum { OLDER = 20 }; /* more than the list of what was read begins with */

static void rows(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    const ad_tensor *older = payload;
    (void)n_in;
    (void)n_out;
    ad_tensor h = in[0];
    ad_frame frame = ad_frame_begin(tape);
    for (int i = 0; i < OLDER; i++)
        h = ad_add(ad_tanh(h), older[i]);
    ad_frame_end(frame, &h, 1);
    out[0] = ad_matmul(h, h);
    out[1] = ad_transpose(h);
}

static void nested(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    ad_tensor middle[2];
    ad_checkpoint(tape, rows, payload, n_in, in, n_out, middle);
    ad_checkpoint(tape, rows, payload, n_in, &middle[1], n_out, out);
    out[0] = ad_mul(out[0], middle[0]);
}

void fault_checkpoints(ad_tape tape, struct fault_results *out)
{
    ad_tensor older[OLDER], y[2];
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(4, 4), fault_data));
    for (int i = 0; i < OLDER; i++)
        older[i] = OP(ad_scale(x, 0.25 + i / 64.0));
    DO(ad_checkpoint(tape, rows, older, 1, &x, 2, y));
    for (int i = 0; i < 2 && ad_tape_status(tape) != AD_OK; i++)
        if (y[i].value != 0)
            snprintf(fault_wrong, sizeof fault_wrong, "checkpoints: a result of a failed one");
    DO(ad_checkpoint(tape, nested, older, 1, &y[1], 2, y));
    ad_tensor loss = OP(ad_sum(OP(ad_mul(y[0], y[1]))));
    DO(ad_backward(loss));
    ad_tensor gradient, ones = {0, 0, 0, 0};
    DO(ad_create_graph(loss, ones, 1, &x, &gradient));
    ad_tensor second = OP(ad_square(gradient));
    second = OP(ad_sum(second));
    DO(ad_backward(second));
    fault_read_gradient(x, 16, out);
    fault_read_value(loss, 1, out);
}

static bool step(ad_tape tape, int64_t i, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    const ad_tensor *older = payload;
    if (i == 1 && older)
        ad_checkpoint_loop(tape, 3, step, NULL, n_in, in, n_out, out, NULL);
    else
        out[0] = ad_tanh(ad_matmul(in[0], older ? older[i % 2] : in[0]));
    return i != 4; /* the last of five */
}

void fault_loops(ad_tape tape, struct fault_results *out)
{
    static const ad_checkpoint_budget budget = {.states = 2};
    ad_tensor older[2], y;
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(2, 2), fault_data));
    for (int i = 0; i < 2; i++)
        older[i] = OP(ad_scale(x, 0.25 + i / 64.0));
    DO(ad_checkpoint_loop(tape, 5, step, older, 1, &x, 1, &y, &budget));
    DO(ad_checkpoint_loop(tape, 4, step, NULL, 1, &y, 1, &y, NULL));
    DO(ad_checkpoint_loop(tape, AD_UNTIL_LAST, step, older, 1, &y, 1, &y, &budget));
    ad_tensor loss = OP(ad_sum(y));
    DO(ad_backward(loss));
    ad_tensor gradient, ones = {0, 0, 0, 0};
    DO(ad_create_graph(loss, ones, 1, &x, &gradient));
    fault_read_value(gradient, 4, out);
    fault_read_gradient(x, 4, out);
}

/* More than one block of statements. */
static void powers(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                   void *payload)
{
    (void)tape;
    (void)n_in;
    (void)payload;
    out[0] = in[0];
    for (int i = 0; i < 300; i++)
        ad_set(&out[0], ad_real_sin(ad_real_add(out[0], in[i % 2])));
    for (int64_t i = 1; i < n_out; i++)
        out[i] = ad_real_dot(n_in, in, in);
}

static void twice(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    ad_real_checkpoint(tape, powers, payload, n_in, in, n_out, out);
    ad_real_checkpoint(tape, powers, payload, n_in, out, n_out, out);
}

void fault_real_checkpoints(ad_tape tape, struct fault_results *out)
{
    ad_real x[2], y[2];
    double g[2] = {0}, jacobian[4] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x));
    DO(ad_real_checkpoint(tape, powers, NULL, 2, x, 2, y));
    DO(ad_real_checkpoint(tape, twice, NULL, 2, y, 2, y));
    DO(ad_real_backward(tape, y[0]));
    DO(ad_real_jacobian(tape, 2, y, 2, x, jacobian));
    if (ad_real_gradients(tape, 2, x, g) == AD_OK)
        for (int i = 0; i < 2; i++)
            out->number[out->n++] = g[i];
    for (int i = 0; i < 4 && ad_tape_status(tape) == AD_OK; i++)
        out->number[out->n++] = jacobian[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

static bool power(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                  ad_real *out, void *payload)
{
    if (payload && i == 1) {
        ad_real_checkpoint_loop(tape, 3, power, NULL, n_in, in, n_out, out, NULL);
        return true;
    }
    for (int64_t k = 0; k < n_out; k++)
        ad_set(&out[k], ad_real_sin(ad_real_add(in[k], ad_real_mul(in[0], in[1]))));
    return i != 5; /* the last of six */
}

void fault_real_loops(ad_tape tape, struct fault_results *out)
{
    static const ad_checkpoint_budget budget = {.states = 3};
    ad_real x[2], y[2];
    double g[2] = {0};
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x));
    DO(ad_real_checkpoint_loop(tape, 6, power, x, 2, x, 1, y, &budget));
    y[1] = x[1];
    DO(ad_real_checkpoint_loop(tape, 5, power, NULL, 2, y, 2, y, NULL));
    DO(ad_real_checkpoint_loop(tape, AD_UNTIL_LAST, power, x, 2, y, 2, y, &budget));
    for (int k = 0; k < 2; k++)
        DO(ad_real_backward(tape, y[0]));
    if (ad_real_gradients(tape, 2, x, g) == AD_OK)
        for (int i = 0; i < 2; i++)
            out->number[out->n++] = g[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}

/* The same in files, and numbers as well. */
void fault_disk_loops(ad_tape tape, struct fault_results *out)
{
    static const ad_checkpoint_budget budget = {.states = 3, .directory = "/dev/shm"};
    ad_real y[2];
    double g[2] = {0};
    ad_tensor z, x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(2, 2), fault_data));
    DO(ad_checkpoint_loop(tape, 5, step, NULL, 1, &x, 1, &z, &budget));
    DO(ad_checkpoint_loop(tape, AD_UNTIL_LAST, step, NULL, 1, &z, 1, &z, &budget));
    z = OP(ad_sum(z));
    DO(ad_backward(z));
    const ad_status begun = DO(ad_tape_record_begin(tape));
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, y));
    ad_real u[2] = {y[0], y[1]};
    DO(ad_real_checkpoint_loop(tape, 6, power, NULL, 2, u, 2, u, &budget));
    DO(ad_real_backward(tape, u[0]));
    if (ad_real_gradients(tape, 2, y, g) == AD_OK)
        for (int i = 0; i < 2; i++)
            out->number[out->n++] = g[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
    fault_read_gradient(x, 4, out);
}
