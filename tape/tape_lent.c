/* tape_lent.c: the table of buffers that the user lent for leaves' gradients.
 *
 * May include: tape_lent.h, tape_account.h. Ordered by value, so that a rewind drops from its end.
 *
 * Invariant: no buffer overlaps a leaf's data or a part of another buffer; several leaves may share
 * a buffer whole. The spans make the look for that short where the arrays lie in order.
 */
#include "tape_lent.h"

#include "tape_account.h"

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

static struct tape_span span_of(const void *array, const struct tape_value *v)
{
    return (struct tape_span){(uintptr_t)array, (uintptr_t)array + tape_value_bytes(v)};
}

static bool overlap(struct tape_span a, struct tape_span b)
{
    return a.from < a.to && b.from < b.to && a.from < b.to && b.from < a.to;
}

static void widen(struct tape_span *all, struct tape_span one)
{
    if (one.from == one.to)
        return;
    if (all->to == 0 || one.from < all->from)
        all->from = one.from;
    if (one.to > all->to)
        all->to = one.to;
}

static enum tape_status fail_overlap(struct tape *t, const char *what, const char *of,
                                     const struct tape_value *leaf, struct tape_site site)
{
    char shape[96], made[160];
    t->describe(tape_row_site(t, leaf->row), made, sizeof made);
    return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s the %s of the leaf %s of %s; the call is",
                     what, of, kernel_describe(&leaf->array, shape, sizeof shape), made);
}

enum tape_status tape_lent_leaf(struct tape *t, const struct tape_value *leaf,
                                struct tape_site site)
{
    const struct tape_span data = span_of(leaf->array.data, leaf);
    for (uint32_t i = 0; i < t->n_lent && overlap(data, t->lent_span); i++) {
        const struct tape_value *v = &t->entries[t->lent[i].value];
        if (t->lent[i].buffer && overlap(data, span_of(t->lent[i].buffer, v)))
            return fail_overlap(t, "leaf: its data overlap", "gradient buffer", v, site);
    }
    widen(&t->leaf_span, data);
    return TAPE_OK;
}

/* The buffer overlaps nothing that a sweep may not change, or change twice. */
static enum tape_status check_buffer(struct tape *t, uint32_t x, struct tape_span buffer,
                                     struct tape_site site)
{
    static const char what[] = "gradient_buffer: the buffer overlaps";
    const struct tape_value *own = &t->entries[x];
    for (uint32_t i = 1; i < t->n_values && overlap(buffer, t->leaf_span); i++) {
        const struct tape_value *v = &t->entries[i];
        if ((v->flags & TAPE_LEAF) && overlap(buffer, span_of(v->array.data, v)))
            return fail_overlap(t, what, i == x ? "own data" : "data", v, site);
    }
    for (uint32_t i = 0; i < t->n_lent && overlap(buffer, t->lent_span); i++) {
        const struct tape_value *v = &t->entries[t->lent[i].value];
        const struct tape_span other = span_of(t->lent[i].buffer, v);
        const bool same = other.from == buffer.from && other.to == buffer.to &&
                          v->array.dtype == own->array.dtype;
        if (t->lent[i].value != x && other.from && !same && overlap(buffer, other))
            return fail_overlap(t, what, "gradient buffer", v, site);
    }
    return TAPE_OK;
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
    const struct tape_span span = span_of(buffer, v);
    enum tape_status status = buffer ? check_buffer(t, x, span, site) : TAPE_OK;
    if (status != TAPE_OK)
        return status;
    if (!known) {
        if (t->n_lent == t->lent_size && !grow(t))
            return tape_fail(t, TAPE_ERROR_MEMORY, site, "gradient_buffer: out of memory");
        memmove(&t->lent[at + 1], &t->lent[at], (t->n_lent - at) * sizeof *t->lent);
        t->n_lent++;
    }
    t->lent[at] = (struct tape_lent){buffer, x, t->sweeps, t->gradient_epoch};
    if (buffer)
        widen(&t->lent_span, span);
    v->flags &= ~(uint32_t)(TAPE_USER_GRADIENT | TAPE_TAKEN_BACK);
    v->flags |= buffer ? TAPE_USER_GRADIENT : TAPE_TAKEN_BACK;
    v->gradient_epoch = t->gradient_epoch - 1;
    return TAPE_OK;
}
