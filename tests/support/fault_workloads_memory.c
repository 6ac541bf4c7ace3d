/* fault_workloads_memory.c: workloads that release values: frames, and sweeps that release. */
#include "fault_workloads.h"

#include <stdio.h>

/* More frames within each other than the table begins with. */
enum { DEPTH = 12 };

void fault_frames(ad_tape tape, struct fault_results *out)
{
    ad_frame frame[DEPTH];
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(3, 4), fault_data)), h = x;
    for (int i = 0; i < DEPTH; i++) {
        fault_look();
        frame[i] = ad_frame_begin(tape);
        fault_status_done(ad_tape_status(tape));
        h = OP(ad_tanh(h));
        h = OP(ad_scale(h, 1.5));
    }
    for (int i = DEPTH; i-- > 0;) {
        ad_tensor part = OP(ad_mul(h, x));
        h = OP(ad_add(part, h));
        ad_status status = ad_frame_end(frame[i], &h, 1);
        if (status != AD_OK && status != ad_tape_status(tape))
            snprintf(fault_wrong, sizeof fault_wrong, "frames: the end of %d gives %d", i, status);
    }
    ad_tensor y = OP(ad_sum(h));
    if (h.value && ad_tape_status(tape) == AD_OK)
        DO(ad_release(h));
    DO(ad_backward(y));
    fault_read_gradient(x, 12, out);
    fault_read_value(y, 1, out);
}

/* A failed sweep has released as well: afterwards the tape may hold less, but nothing more. */
void fault_releasing_sweep(ad_tape tape, struct fault_results *out)
{
    ad_stats before, after;
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(4, 4), fault_data)), h = x;
    for (int i = 0; i < 3; i++) {
        h = OP(ad_matmul(h, x));
        h = OP(ad_tanh(h));
        h = OP(ad_softmax(h, 1));
    }
    ad_tensor y = OP(ad_sum(h));
    ad_tape_stats(tape, &before);
    ad_status found = ad_tape_status(tape), status = ad_backward_release(y);
    ad_tape_stats(tape, &after);
    if (status != ad_tape_status(tape) || after.values != before.values ||
        after.records != before.records || after.live_bytes > before.live_bytes ||
        (found != AD_OK && after.live_bytes != before.live_bytes))
        snprintf(fault_wrong, sizeof fault_wrong, "releasing_sweep: %d", (int)status);
    fault_read_gradient(x, 16, out);
    fault_read_value(y, 1, out);
}
