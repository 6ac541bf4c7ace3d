/* ad_plain_loop.c: loops of plain C as records; see ad_plain.h. */
#include <tapescope/ad_plain.h>

#include "ad_internal.h"

#include "tape_fused_loop.h"
#include "tape_preaccumulate.h"

#include <string.h>

_Static_assert((uint32_t)AD_PLAIN_INDICES_ == TAPE_INDICES_FOLLOW, "one meaning");
_Static_assert((uint32_t)AD_PLAIN_CONSTANTS_ == TAPE_NO_INDICES, "one meaning");
_Static_assert((int)AD_PLAIN_LOOP_OPERANDS_ == (int)KERNEL_FUSED_LOOP_IN, "one number");

/* The record that is begun. Without the operands: libraries that are opened by dlopen() have little
 * room for what is a thread's own. */
static _Thread_local struct {
    struct tape *t;
    struct tape_fused_loop_plan plan;
    uint64_t start;
    bool timed;
} opened;

bool ad_plain_loops_(void)
{
    const struct tape *t = ad_real_recording();
    return t && !t->nonfinite && t->sections->n == 0;
}

uint64_t ad_plain_loop_open_(uintptr_t pc, ad_plain_pullback_ *pullback, int n_in,
                             const struct ad_plain_operand_ *in, int64_t m, int64_t n_saved,
                             double **saved)
{
    enum { OWN = sizeof pullback / sizeof(double) };
    struct tape_operand operands[KERNEL_FUSED_LOOP_IN];
    struct tape *t = ad_real_recording();
    if (!t)
        return 0;
    opened.t = t;
    opened.timed = tape_observed(t);
    opened.start = opened.timed ? tape_account_start(t) : 0;
    opened.plan =
        (struct tape_fused_loop_plan){.kind = KERNEL_FUSED_LOOP_compiled,
                                      .name = kernel_fused_loop_name[KERNEL_FUSED_LOOP_compiled],
                                      .in = operands,
                                      .n_in = n_in,
                                      .m = m,
                                      .n_saved = OWN + n_saved,
                                      .site = {pc, 0}};
    for (int k = 0; k < n_in; k++)
        operands[k] = (struct tape_operand){.n = in[k].n,
                                            .index = in[k].index,
                                            .index_step = in[k].step,
                                            .active = in[k].first != TAPE_NO_INDICES,
                                            .joined = in[k].first != AD_PLAIN_INDICES_ &&
                                                      in[k].step == AD_PLAIN_JOINED_,
                                            .first = in[k].first};
    if (!tape_fused_loop_open(t, &opened.plan))
        return 0;
    opened.plan.in = NULL; /* no operand's values are kept for another record */
    opened.plan.n_in = 0;
    memcpy(opened.plan.saved, &pullback, sizeof pullback);
    *saved = opened.plan.saved + OWN;
    return opened.plan.first;
}

void ad_plain_loop_commit_(void)
{
    if (opened.t->statements->cursor->result != opened.plan.first) {
        /* A function of the program's has the name of one of <math.h>, and records. */
        tape_fail(opened.t, TAPE_ERROR_STATE, opened.plan.site,
                  "loop: a function that it calls has recorded statements");
        return;
    }
    tape_fused_loop_commit(opened.t, &opened.plan);
    if (opened.timed)
        tape_fused_loop_ran(opened.t, &opened.plan, opened.start);
}
