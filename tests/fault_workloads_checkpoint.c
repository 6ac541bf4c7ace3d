/* fault_workloads_checkpoint.c: a workload of checkpoints: with several results, within each other,
 * with what their functions read by themselves.
 *
 * May include: fault_workloads.h.
 */
#include "fault_workloads.h"

#include <stdio.h>

#define SHAPE FAULT_SHAPE
#define OP FAULT_OP
#define DO FAULT_DO

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
    for (int i = 0; i < 2 && ad_status_of(tape) != AD_OK; i++)
        if (y[i].value != 0)
            snprintf(fault_wrong, sizeof fault_wrong, "checkpoints: a result of a failed one");
    DO(ad_checkpoint(tape, nested, older, 1, &y[1], 2, y));
    ad_tensor loss = OP(ad_sum(OP(ad_mul(y[0], y[1]))));
    DO(ad_backward(loss));
    fault_read_gradient(x, 16, out);
    fault_read_value(loss, 1, out);
}
