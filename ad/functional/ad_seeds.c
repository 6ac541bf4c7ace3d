/* ad_seeds.c: see ad_seeds.h. */
#include "ad_seeds.h"

#include "tape_account.h"
#include "tape_sweep.h"
#include "tape_value.h"

static uint64_t most_of(uint64_t most, const struct tape_value *v)
{
    const uint64_t n = tape_value_bytes(v);
    return n > most ? n : most;
}

/* Bytes of the largest adjoint on the way. */
static uint64_t largest(const struct ad_seeds *w)
{
    const struct tape *t = w->s->t;
    uint64_t most = most_of(0, &t->entries[w->y]);
    for (int i = 0; i < w->n; i++)
        most = most_of(most, &t->entries[w->leaf[i]]);
    for (uint32_t k = t->fixed.n_values; k < t->n_values; k++)
        if (t->entries[k].flags & TAPE_NEEDS_GRADIENT)
            most = most_of(most, &t->entries[k]);
    return most;
}

static uint32_t width_of(const struct ad_seeds *w, int64_t most)
{
    const uint64_t bytes = largest(w);
    uint32_t width = AD_SEEDS_MOST;
    while (width > 1 && width * bytes > AD_SEEDS_BYTES)
        width /= 2;
    if (most < width)
        width = most > 1 ? (uint32_t)most : 1;
    return width;
}

/* The leaves have their own buffers again, and seeds are swept one by one from now on. */
static void wide_drop(struct ad_seeds *w)
{
    struct tape *t = w->s->t;
    for (int i = 0; i < w->n; i++) {
        struct tape_value *v = &t->entries[w->leaf[i]];
        v->adjoint = w->own[i];
        if (!w->wide[i])
            continue;
        tape_arena_free(&t->arena, w->wide[i], w->width * tape_value_bytes(v));
        tape_account_free(t, v->row, w->width * tape_value_bytes(v));
        w->wide[i] = NULL;
    }
    w->together = 1;
}

/* Buffers of all seeds; where there is no memory for them, one by one does without. */
static void wide_make(struct ad_seeds *w)
{
    struct tape *t = w->s->t;
    w->together = w->width;
    for (int i = 0; i < w->n && w->together > 1; i++) {
        const struct tape_value *v = &t->entries[w->leaf[i]];
        const uint64_t n = w->width * tape_value_bytes(v);
        w->wide[i] = tape_arena_buffer(&t->arena, n);
        if (w->wide[i])
            tape_account_buffer(t, v->row, n);
        else
            wide_drop(w);
    }
}

ad_status ad_seeds_begin(struct ad_seeds *w, struct ad_isolation *s, uint32_t y, int n,
                         const uint32_t *leaf, int64_t most)
{
    struct tape *t = s->t;
    const struct kernel_array *a = &t->entries[y].array;
    *w = (struct ad_seeds){.s = s, .y = y, .n = n, .leaf = leaf, .width = 1, .together = 1};
    if (tape_sweep_takes_seeds(t))
        w->width = width_of(w, most);
    w->own = ad_scratch_get(&s->scratch, n, sizeof *w->own);
    w->wide = ad_scratch_get(&s->scratch, n, sizeof *w->wide);
    w->seed = ad_scratch_get(&s->scratch, w->width * a->size, kernel_dtype_bytes(a->dtype));
    if (!w->own || !w->wide || !w->seed)
        return (ad_status)tape_fail_memory(t, s->site, s->what);
    ad_isolation_clear(s);
    for (int i = 0; i < n; i++)
        w->own[i] = t->entries[leaf[i]].adjoint;
    if (w->width > 1)
        wide_make(w);
    return AD_OK;
}

void ad_seeds_end(struct ad_seeds *w)
{
    wide_drop(w);
}

void ad_seeds_set(const struct ad_seeds *w, uint32_t seed, int64_t element, float number)
{
    const struct kernel_array *a = &w->s->t->entries[w->y].array;
    const int64_t at = seed * a->size + element;
    if (a->dtype == KERNEL_F32)
        ((float *)(void *)w->seed)[at] = number;
    else
        ((double *)(void *)w->seed)[at] = (double)number;
}

/* Sweeps from n seeds at once, of which the first is `from`. */
static enum tape_status sweep(struct ad_seeds *w, uint32_t from, uint32_t n)
{
    struct tape *t = w->s->t;
    ad_isolation_clear(w->s);
    for (int i = 0; i < w->n; i++) {
        struct tape_value *v = &t->entries[w->leaf[i]];
        v->adjoint = w->together > 1 ? w->wide[i] : w->own[i];
        v->gradient_epoch = t->gradient_epoch - 1;
    }
    const char *seed = w->seed + from * tape_value_bytes(&t->entries[w->y]);
    return tape_sweep_seeds(t, w->y, n, seed, w->again, w->s->site);
}

ad_status ad_seeds_run(struct ad_seeds *w, uint32_t n, int64_t first, ad_seeds_take *take, void *of)
{
    for (uint32_t from = 0, now; from < n; from += now) {
        now = n - from < w->together ? n - from : w->together;
        enum tape_status status = sweep(w, from, now);
        if (status == TAPE_ERROR_MEMORY && w->s->t->error.code == TAPE_OK) {
            wide_drop(w);
            now = 1;
            status = sweep(w, from, now);
        }
        if (status != TAPE_OK)
            return (ad_status)status;
        w->again = true;
        for (w->lane = 0; w->lane < now; w->lane++)
            take(w, first + from + w->lane, of);
    }
    return AD_OK;
}

ad_status ad_seeds_units(struct ad_seeds *w, ad_seeds_take *take, void *of)
{
    const int64_t m = w->s->t->entries[w->y].array.size;
    ad_status status = AD_OK;
    for (int64_t k = 0; k < m && status == AD_OK; k += w->width) {
        const uint32_t n = m - k < w->width ? (uint32_t)(m - k) : w->width;
        for (uint32_t i = 0; i < n; i++)
            ad_seeds_set(w, i, k + i, 1);
        status = ad_seeds_run(w, n, k, take, of);
        for (uint32_t i = 0; i < n; i++)
            ad_seeds_set(w, i, k + i, 0);
    }
    return status;
}

const void *ad_seeds_gradient(const struct ad_seeds *w, int i)
{
    const struct tape_value *v = &w->s->t->entries[w->leaf[i]];
    return tape_has_adjoint(w->s->t, v)
               ? kernel_behind(v->adjoint, (int64_t)(w->lane * tape_value_bytes(v)))
               : NULL;
}
