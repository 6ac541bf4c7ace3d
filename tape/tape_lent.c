/* tape_lent.c: the table of buffers that the user lent for leaves' gradients.
 *
 * May include: tape_lent.h. Ordered by value, so that a rewind drops from its end.
 */
#include "tape_lent.h"

#include <string.h>

/* The place of the first entry whose value is not below x. */
static uint32_t place_of(const struct tape *t, uint32_t x)
{
    uint32_t low = 0, high = t->n_lent;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->lent[middle].value < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *tape_lent_buffer(const struct tape *t, uint32_t x)
{
    return t->lent[place_of(t, x)].buffer;
}

bool tape_lent_lost(const struct tape *t, uint32_t x)
{
    const struct tape_lent *lent = &t->lent[place_of(t, x)];
    return lent->sweeps == t->sweeps && lent->epoch == t->gradient_epoch;
}

void tape_lent_begin(struct tape *t)
{
    for (uint32_t i = 0; i < t->n_lent; i++) {
        struct tape_value *v = &t->entries[t->lent[i].value];
        if (v->flags & TAPE_USER_GRADIENT)
            v->gradient_epoch = t->gradient_epoch - 1;
    }
}

void tape_lent_add(struct tape *t)
{
    for (uint32_t i = 0; i < t->n_lent; i++) {
        const struct tape_value *v = &t->entries[t->lent[i].value];
        if ((v->flags & TAPE_USER_GRADIENT) && tape_has_adjoint(t, v))
            tape_add_into(v, t->lent[i].buffer, v->adjoint, false);
    }
}

void tape_lent_drop(struct tape *t, uint32_t n_values)
{
    while (t->n_lent > 0 && t->lent[t->n_lent - 1].value >= n_values)
        t->n_lent--;
}

static bool grow(struct tape *t)
{
    uint32_t size = t->lent_size ? t->lent_size * 2 : 8;
    void *p = t->memory->resize(t->lent, size * sizeof *t->lent, t->memory->payload);
    if (!p)
        return false;
    t->lent = p;
    t->lent_size = size;
    return true;
}

enum tape_status tape_gradient_buffer(struct tape *t, uint32_t x, void *buffer,
                                      struct tape_site site)
{
    struct tape_value *v = &t->entries[x];
    uint32_t at = place_of(t, x);
    bool known = at < t->n_lent && t->lent[at].value == x;
    if (!buffer && !(v->flags & TAPE_USER_GRADIENT))
        return TAPE_OK;
    if (!known) {
        if (t->n_lent == t->lent_size && !grow(t))
            return tape_fail(t, TAPE_ERROR_MEMORY, site, "gradient_buffer: out of memory");
        memmove(&t->lent[at + 1], &t->lent[at], (t->n_lent - at) * sizeof *t->lent);
        t->n_lent++;
    }
    t->lent[at] = (struct tape_lent){buffer, x, t->sweeps, t->gradient_epoch};
    v->flags &= ~(uint32_t)(TAPE_USER_GRADIENT | TAPE_TAKEN_BACK);
    v->flags |= buffer ? TAPE_USER_GRADIENT : TAPE_TAKEN_BACK;
    v->gradient_epoch = t->gradient_epoch - 1;
    return TAPE_OK;
}
