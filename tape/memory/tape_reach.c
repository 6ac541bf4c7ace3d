/* tape_reach.c: see tape_reach.h. */
#include "tape_reach.h"

#include "tape_part.h"

bool tape_reach_begin(struct tape *t, uint32_t y)
{
    bool ready = true;
    TAPE_PARTS_ALL(ready, reach_begin, t);
    if (!ready)
        return false;
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_REACHED;
    t->entries[y].flags |= TAPE_REACHED;
    return true;
}

void tape_reach_end(struct tape *t)
{
    TAPE_PARTS_CALL(reach_end, t);
}

bool tape_reach_output(const struct tape *t, struct tape_record *r)
{
    const uint32_t *out = tape_record_out(r);
    for (int o = 0; o < r->n_out; o++)
        if (t->entries[out[o]].flags & TAPE_REACHED)
            return true;
    return false;
}

bool tape_reach_operands(struct tape *t, struct tape_record *r, enum tape_flag wants,
                         uint64_t *needs)
{
    const uint32_t *in = tape_record_in(r);
    *needs = 0;
    if (!tape_reach_output(t, r))
        return false;
    for (int i = 0; i < r->n_in; i++) {
        if (!(t->entries[in[i]].flags & (uint32_t)wants))
            continue;
        t->entries[in[i]].flags |= TAPE_REACHED;
        *needs |= (uint64_t)1 << (i & 63);
    }
    return true;
}

bool tape_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    *reads = 0;
    return tape_record_kind(r)->reach(t, r, wants, reads);
}
