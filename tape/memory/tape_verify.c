/* tape_verify.c: see tape_verify.h. */
#include "tape_verify.h"

#include "tape_guard.h"
#include "tape_reach.h"

/* Compares every guard with what its array holds now. */
static bool guards_find_changed(struct tape *t)
{
    bool any = false;
    for (uint32_t at = t->last_guard; at != TAPE_NO_GUARD;) {
        struct tape_guard *g = tape_guard_at(t, at);
        const struct tape_value *v = &t->entries[g->value];
        if (v->retained == at) {
            const bool gone = tape_guard_gone(v);
            const uint64_t hash = gone ? 0 : tape_guard_hash(t, v);
            for (uint32_t k = at; k != TAPE_NO_GUARD; k = tape_guard_at(t, k)->older) {
                tape_guard_at(t, k)->changed =
                    gone ? TAPE_GUARD_FREED
                         : (tape_guard_at(t, k)->hash != hash) * TAPE_GUARD_CHANGED;
                any = any || tape_guard_at(t, k)->changed;
            }
        }
        at = g->previous;
    }
    return any;
}

/* The guard that stands for value x in the record at `record`, or NULL. */
static const struct tape_guard *guard_of_value(const struct tape *t, uint32_t x, uint32_t record)
{
    const struct tape_value *root = &t->entries[t->entries[x].root];
    if (!tape_is_borrowed(root))
        return NULL;
    uint32_t at = root->retained;
    while (at != TAPE_NO_GUARD && at > record)
        at = tape_guard_at(t, at)->older;
    return at == TAPE_NO_GUARD ? NULL : tape_guard_at(t, at);
}

/* The first changed guard that the walk comes to. */
static const struct tape_guard *guards_first_read(struct tape *t, enum tape_flag wants)
{
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        uint32_t reads;
        if (!tape_reach(t, r, wants, &reads))
            continue;
        for (int i = 0; (i = tape_record_next(r, reads, i)) < r->n_in; i++) {
            const struct tape_guard *g = guard_of_value(t, tape_record_in(r)[i], at);
            if (g && g->changed)
                return g;
        }
    }
    return NULL;
}

enum tape_status tape_guard_verify(struct tape *t, uint32_t y, enum tape_flag wants,
                                   const char *what, struct tape_site site)
{
    if (__builtin_expect(!guards_find_changed(t), 1))
        return TAPE_OK;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, what);
    const struct tape_guard *g = guards_first_read(t, wants);
    tape_reach_end(t);
    if (!g)
        return TAPE_OK;
    const struct tape_value *v = &t->entries[g->value];
    char shape[96], made[160], saved[160];
    t->describe(tape_row_site(t, v->row), made, sizeof made);
    t->describe(tape_row_site(t, g->row), saved, sizeof saved);
    return tape_fail(
        t, TAPE_ERROR_STATE, site, "%s: the %s %s of %s %s after %s at %s saved it; the call is",
        what, v->flags & TAPE_LEAF ? "leaf" : "constant",
        kernel_describe(&v->array, shape, sizeof shape), made,
        g->changed == TAPE_GUARD_FREED ? "was freed" : "changed", tape_row(t, g->row)->op, saved);
}
