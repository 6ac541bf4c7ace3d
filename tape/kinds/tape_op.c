/* tape_op.c: the kind of record that all of the kernels' ops leave. */
#include "tape_inplace.h"
#include "tape_kind.h"
#include "tape_reach.h"

static bool op_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    (void)stamp;
    return tape_inplace_pullback(t, r);
}

static bool op_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    uint64_t needs;
    if (!tape_reach_operands(t, r, wants, &needs))
        return false;
    *reads = kernel_reads(r->op, needs);
    return true;
}

static uint32_t op_touches(const struct tape *t, struct tape_record *r)
{
    const uint32_t *in = tape_record_in(r);
    uint64_t needs = 0;
    if (r->op->saves_in == 0)
        return 0;
    for (int i = 0; i < r->n_in; i++)
        needs |= (uint64_t)((t->entries[in[i]].flags & TAPE_NEEDS_GRADIENT) != 0) << i;
    return kernel_touches(r->op, needs);
}

static const char *op_fixed(struct tape_record *r)
{
    return r->op->draws ? "draws by a seed, and would draw the same again" : NULL;
}

const struct record_kind tape_op_kind = {.op = {.name = "op"},
                                         .sweep = op_sweep,
                                         .reach = op_reach,
                                         .touches = op_touches,
                                         .replay = tape_apply_again,
                                         .fixed = op_fixed};
