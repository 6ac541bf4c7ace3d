/* tape_reach.c: see tape_reach.h.
 *
 * May include: tape_reach.h, tape_bridge.h, tape_checkpoint.h.
 */
#include "tape_reach.h"

#include "tape_bridge.h"
#include "tape_checkpoint.h"

bool tape_reach_begin(struct tape *t, uint32_t y)
{
    if (!tape_bridge_reach_begin(t))
        return false;
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_REACHED;
    t->entries[y].flags |= TAPE_REACHED;
    return true;
}

void tape_reach_end(struct tape *t)
{
    tape_bridge_reach_end(t);
}

bool tape_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    const uint32_t *in = tape_record_in(r), *out = tape_record_out(r);
    uint64_t needs = 0;
    bool reached = false;
    for (int o = 0; o < r->n_out; o++)
        reached = reached || (t->entries[out[o]].flags & TAPE_REACHED);
    if (__builtin_expect(r->n_in == 0 || r->n_out == 0, 0)) {
        *reads = 0;
        return tape_bridge_reach(t, r, reached, wants);
    }
    if (!reached)
        return false;
    for (int i = 0; i < r->n_in; i++) {
        if (!(t->entries[in[i]].flags & (uint32_t)wants))
            continue;
        t->entries[in[i]].flags |= TAPE_REACHED;
        needs |= (uint64_t)1 << (i & 63);
    }
    if (r->op == &tape_checkpoint_op)
        *reads = needs ? UINT32_MAX : 0;
    else
        *reads = kernel_reads(r->op, needs);
    return true;
}

uint32_t tape_reach_touches(const struct tape *t, struct tape_record *r)
{
    const uint32_t *in = tape_record_in(r);
    uint64_t needs = 0;
    if (r->op == &tape_checkpoint_op)
        return UINT32_MAX;
    if (r->op->saves_in == 0)
        return 0;
    for (int i = 0; i < r->n_in; i++)
        needs |= (uint64_t)((t->entries[in[i]].flags & TAPE_NEEDS_GRADIENT) != 0) << i;
    return kernel_touches(r->op, needs);
}
