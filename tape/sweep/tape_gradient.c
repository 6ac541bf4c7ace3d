/* tape_gradient.c: the gradients that sweeps leave: of leaves, and of retained values. */
#include "tape_no_grad.h"
#include "tape_user_gradient.h"

bool tape_was_swept(const struct tape *t, const struct tape_value *v)
{
    if (v->flags & TAPE_RETAIN)
        return tape_retained_of(t, v)->sweeps != t->sweeps;
    if ((v->flags & TAPE_TAKEN_BACK) && tape_user_gradient_lost(t, tape_value_index(t, v)))
        return false;
    return (v->flags & TAPE_USER_GRADIENT) || t->swept_epoch == t->gradient_epoch;
}

void tape_zero_gradients(struct tape *t)
{
    t->gradient_epoch++;
    t->swept_epoch = t->gradient_epoch;
}

const void *tape_gradient(const struct tape *t, uint32_t x)
{
    const struct tape_value *v = &t->entries[x];
    if (v->flags & TAPE_LEAF)
        return v->flags & TAPE_USER_GRADIENT ? tape_user_gradient_buffer(t, x)
               : tape_has_adjoint(t, v)      ? v->adjoint
                                             : NULL;
    const struct tape_retained *kept = tape_retained_of(t, v);
    return kept->epoch == t->gradient_epoch ? kept->buffer : NULL;
}

enum tape_status tape_retain(struct tape *t, uint32_t x, struct tape_site site)
{
    struct tape_value *v = &t->entries[x];
    char open[TAPE_NO_GRAD_TEXT];
    tape_observed(t);
    tape_account_moment(t);
    if (v->flags & (TAPE_LEAF | TAPE_RETAIN))
        return TAPE_OK;
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return tape_fail(t, TAPE_ERROR_STATE, site, "retain_gradient: a constant has no gradient%s",
                         tape_no_grad_open(t, open));
    /* The buffer lies behind the mark and would be dropped before its value. */
    if (t->n_marks && x < t->marks[t->n_marks - 1].n_values)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "retain_gradient: the value is older than the last mark");
    struct tape_point point = tape_point_take(t);
    size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    struct tape_retained *kept = tape_arena_record(&t->arena, sizeof *kept);
    void *buffer = kept ? tape_arena_buffer(&t->arena, tape_value_bytes(v)) : NULL;
    if (!buffer || offset >= UINT32_MAX) {
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, "retain_gradient");
    }
    *kept = (struct tape_retained){
        .buffer = buffer, .epoch = t->gradient_epoch - 1, .sweeps = t->sweeps};
    v->retained = (uint32_t)offset;
    v->flags |= TAPE_RETAIN;
    tape_account_bytes(t, v->row, sizeof *kept);
    tape_account_buffer(t, v->row, tape_value_bytes(v));
    return TAPE_OK;
}
