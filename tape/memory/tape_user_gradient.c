/* tape_user_gradient.c: the table of the user's buffers for leaves' gradients.
 *
 * Ordered by value, so that a rewind drops from its end.
 *
 * Invariant: no buffer overlaps a leaf's data or a part of another buffer; several leaves may share
 * a buffer whole. The spans make the look for that short where the arrays lie in order.
 */
#include "tape_user_gradient.h"

#include "tape_account.h"

#include <string.h>

/* The user's buffer that sweeps add a leaf's gradient into. */
struct tape_user_gradient {
    void *buffer; /* NULL: it was taken back, when the tape had the counts below */
    uint32_t value;
    uint32_t sweeps, epoch;
};

/* Addresses within which all arrays of a kind lie; to == 0: there are none. */
struct tape_span {
    uintptr_t from, to;
};

struct tape_user_gradients {
    struct tape_user_gradient *of; /* [n], ordered by value */
    uint32_t n, size;
    struct tape_span buffers, leaves; /* that the buffers and the leaves' data lie in */
};

/* The place of the first entry whose value is not below x. */
static uint32_t user_gradient_place(const struct tape *t, uint32_t x)
{
    uint32_t low = 0, high = t->user_gradients->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->user_gradients->of[middle].value < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *tape_user_gradient_buffer(const struct tape *t, uint32_t x)
{
    return t->user_gradients->of[user_gradient_place(t, x)].buffer;
}

bool tape_user_gradient_lost(const struct tape *t, uint32_t x)
{
    const struct tape_user_gradient *of = &t->user_gradients->of[user_gradient_place(t, x)];
    return of->sweeps == t->sweeps && of->epoch == t->gradient_epoch;
}

void tape_user_gradient_begin(struct tape *t)
{
    for (uint32_t i = 0; i < t->user_gradients->n; i++) {
        struct tape_value *v = &t->entries[t->user_gradients->of[i].value];
        if (v->flags & TAPE_USER_GRADIENT)
            v->gradient_epoch = t->gradient_epoch - 1;
    }
}

void tape_user_gradient_add(struct tape *t)
{
    for (uint32_t i = 0; i < t->user_gradients->n; i++) {
        const struct tape_value *v = &t->entries[t->user_gradients->of[i].value];
        if ((v->flags & TAPE_USER_GRADIENT) && tape_has_adjoint(t, v))
            tape_add_into(v, t->user_gradients->of[i].buffer, v->adjoint, false);
    }
}

static void user_gradients_attach(struct tape *t, void *state)
{
    t->user_gradients = state;
}

static void user_gradients_begin(struct tape *t)
{
    t->user_gradients->n = 0;
    t->user_gradients->buffers = t->user_gradients->leaves = (struct tape_span){0, 0};
}

static void user_gradients_end(struct tape *t)
{
    if (t->user_gradients->of)
        t->memory->release(t->user_gradients->of, t->memory->payload);
}

static void user_gradients_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    (void)end;
    while (t->user_gradients->n > 0 &&
           t->user_gradients->of[t->user_gradients->n - 1].value >= mark->n_values)
        t->user_gradients->n--;
}

static struct tape_span span_of(const void *array, const struct tape_value *v)
{
    return (struct tape_span){(uintptr_t)array, (uintptr_t)array + tape_value_bytes(v)};
}

static bool spans_overlap(struct tape_span a, struct tape_span b)
{
    return a.from < a.to && b.from < b.to && a.from < b.to && b.from < a.to;
}

static void span_widen(struct tape_span *all, struct tape_span one)
{
    if (one.from == one.to)
        return;
    if (all->to == 0 || one.from < all->from)
        all->from = one.from;
    if (one.to > all->to)
        all->to = one.to;
}

static enum tape_status user_gradient_fail_overlap(struct tape *t, const char *what, const char *of,
                                                   const struct tape_value *leaf,
                                                   struct tape_site site)
{
    char shape[96], made[160];
    t->describe(tape_row_site(t, leaf->row), made, sizeof made);
    return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s the %s of the leaf %s of %s; the call is",
                     what, of, kernel_describe(&leaf->array, shape, sizeof shape), made);
}

static enum tape_status user_gradients_leaf(struct tape *t, const struct tape_value *leaf,
                                            struct tape_site site)
{
    const struct tape_span data = span_of(leaf->array.data, leaf);
    for (uint32_t i = 0;
         i < t->user_gradients->n && spans_overlap(data, t->user_gradients->buffers); i++) {
        const struct tape_value *v = &t->entries[t->user_gradients->of[i].value];
        if (t->user_gradients->of[i].buffer &&
            spans_overlap(data, span_of(t->user_gradients->of[i].buffer, v)))
            return user_gradient_fail_overlap(t, "leaf: its data overlap", "gradient buffer", v,
                                              site);
    }
    span_widen(&t->user_gradients->leaves, data);
    return TAPE_OK;
}

/* The buffer overlaps nothing that a sweep may not change, or change twice. */
static enum tape_status user_gradient_check(struct tape *t, uint32_t x, struct tape_span buffer,
                                            struct tape_site site)
{
    static const char what[] = "gradient_buffer: the buffer overlaps";
    const struct tape_value *own = &t->entries[x];
    for (uint32_t i = 1; i < t->n_values && spans_overlap(buffer, t->user_gradients->leaves); i++) {
        const struct tape_value *v = &t->entries[i];
        if ((v->flags & TAPE_LEAF) && spans_overlap(buffer, span_of(v->array.data, v)))
            return user_gradient_fail_overlap(t, what, i == x ? "own data" : "data", v, site);
    }
    for (uint32_t i = 0;
         i < t->user_gradients->n && spans_overlap(buffer, t->user_gradients->buffers); i++) {
        const struct tape_value *v = &t->entries[t->user_gradients->of[i].value];
        const struct tape_span other = span_of(t->user_gradients->of[i].buffer, v);
        const bool same = other.from == buffer.from && other.to == buffer.to &&
                          v->array.dtype == own->array.dtype;
        if (t->user_gradients->of[i].value != x && other.from && !same &&
            spans_overlap(buffer, other))
            return user_gradient_fail_overlap(t, what, "gradient buffer", v, site);
    }
    return TAPE_OK;
}

static bool user_gradients_grow(struct tape *t)
{
    struct tape_user_gradients *g = t->user_gradients;
    struct tape_user_gradient *of =
        tape_array_reserve(t->memory, g->of, g->n + 1, &g->size, sizeof *of);
    if (of)
        g->of = of;
    return of != NULL;
}

enum tape_status tape_gradient_buffer(struct tape *t, uint32_t x, void *buffer,
                                      struct tape_site site)
{
    struct tape_value *v = &t->entries[x];
    uint32_t at = user_gradient_place(t, x);
    bool known = at < t->user_gradients->n && t->user_gradients->of[at].value == x;
    if (!buffer && !(v->flags & TAPE_USER_GRADIENT))
        return TAPE_OK;
    const struct tape_span span = span_of(buffer, v);
    enum tape_status status = buffer ? user_gradient_check(t, x, span, site) : TAPE_OK;
    if (status != TAPE_OK)
        return status;
    if (!known) {
        if (!user_gradients_grow(t))
            return tape_fail(t, TAPE_ERROR_MEMORY, site, "gradient_buffer: out of memory");
        memmove(&t->user_gradients->of[at + 1], &t->user_gradients->of[at],
                (t->user_gradients->n - at) * sizeof *t->user_gradients->of);
        t->user_gradients->n++;
    }
    t->user_gradients->of[at] =
        (struct tape_user_gradient){buffer, x, t->sweeps, t->gradient_epoch};
    if (buffer)
        span_widen(&t->user_gradients->buffers, span);
    v->flags &= ~(uint32_t)(TAPE_USER_GRADIENT | TAPE_TAKEN_BACK);
    v->flags |= buffer ? TAPE_USER_GRADIENT : TAPE_TAKEN_BACK;
    v->gradient_epoch = t->gradient_epoch - 1;
    return TAPE_OK;
}

const struct tape_part tape_user_gradients_part = {.bytes = sizeof(struct tape_user_gradients),
                                                   .attach = user_gradients_attach,
                                                   .begin = user_gradients_begin,
                                                   .end = user_gradients_end,
                                                   .rewind = user_gradients_rewind,
                                                   .leaf = user_gradients_leaf};
