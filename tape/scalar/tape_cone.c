/* tape_cone.c: see tape_cone.h. */
#include "tape_cone.h"

#include "tape_account.h"
#include "tape_bridge.h"
#include "tape_fused_loop.h"
#include "tape_kind.h"

#include <string.h>

enum { ROOM_RUNS, ROOM_NODES, ROOM_COLUMNS, ROOM_MASKS, ROOM_ADJOINTS, ROOM_HITS, ROOM_LEVELS };
/* A node that ends walks: a leaf, or an element of a tensor. */
#define WORD_ENDS UINT32_MAX
#define ALWAYS static inline __attribute__((always_inline))

/* ---- memory ---- */

/* Room for `bytes`, with what was in it if it was smaller; new bytes are 0 where it is asked for.
 */
static void *cone_room(struct tape_cone *c, int use, uint64_t bytes, bool zero)
{
    struct tape_cone_room *r = &c->room[use];
    if (r->p && r->bytes >= bytes)
        return r->p;
    void *p = tape_arena_buffer(&c->t->arena, bytes);
    if (!p)
        return NULL;
    tape_account_buffer(c->t, c->row, bytes);
    if (zero)
        memset(p, 0, bytes);
    if (r->p) {
        memcpy(p, r->p, r->bytes);
        tape_arena_free(&c->t->arena, r->p, r->bytes);
        tape_account_free(c->t, c->row, r->bytes);
    }
    *r = (struct tape_cone_room){p, bytes};
    return p;
}

void tape_cone_end(struct tape_cone *c)
{
    for (size_t k = sizeof c->room / sizeof *c->room; k-- > 0;) {
        struct tape_cone_room *r = &c->room[k];
        if (!r->p)
            continue;
        tape_arena_free(&c->t->arena, r->p, r->bytes);
        tape_account_free(c->t, c->row, r->bytes);
        r->p = NULL;
    }
}

static bool slots_reach(struct tape_cone *c, uint64_t n, uint32_t width)
{
    if (n <= c->slots_size)
        return true;
    uint64_t size = c->slots_size ? c->slots_size : 256;
    while (size < n)
        size *= 2;
    if (size > UINT32_MAX)
        return false;
    const uint64_t lanes = width ? TAPE_CONE_MAX_WIDTH : 0;
    c->mask = cone_room(c, ROOM_MASKS, size * sizeof *c->mask, false);
    c->hit = c->mask ? cone_room(c, ROOM_HITS, size * sizeof *c->hit, false) : NULL;
    c->adjoint = c->hit && lanes
                     ? cone_room(c, ROOM_ADJOINTS, size * lanes * sizeof *c->adjoint, false)
                     : NULL;
    if (!c->hit || (lanes && !c->adjoint))
        return false;
    c->slots_size = (uint32_t)size;
    return true;
}

/* ---- what lies where ---- */

/* The statements of a part of a run. */
static void cone_note_part(struct tape_cone *c, const struct tape_run *run,
                           const struct tape_run *part)
{
    uint32_t result = part->first + part->n;
    const double *p = part->partial_end;
    for (const uint32_t *w = part->word_end; w < part->word_begin;) {
        const struct tape_operands o = tape_statement_operands(w);
        p -= o.general;
        if (--result < c->base)
            return;
        if (result < c->end)
            c->node[result - c->base] =
                (struct tape_cone_node){.word = (uint32_t)(run->word_begin - w),
                                        .partial = (uint32_t)(p - run->partial_begin)};
        w = o.index + o.n;
    }
}

/* What fused loops have computed is left out: see `strange`. */
static void cone_note_run(struct tape_cone *c, const struct tape_run *run)
{
    struct tape_run_part part = tape_run_last(run);
    do
        cone_note_part(c, run, &part.statements);
    while (tape_run_previous(run, &part));
}

static void cone_note_ends(struct tape_cone *c, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (first + i >= c->base && first + i < c->end)
            c->node[first + i - c->base].word = WORD_ENDS;
}

static bool cone_note(struct tape_cone *c)
{
    const struct tape *t = c->t;
    uint32_t n = 0;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        n += tape_record_kind(tape_record_at(t, at))->is_run;
    c->runs = cone_room(c, ROOM_RUNS, (n + 1) * sizeof(void *), false);
    if (!c->runs)
        return false;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        const struct record_kind *kind = tape_record_kind(r);
        if (kind->is_run) {
            c->runs[c->n_runs++] = tape_run_of(r);
            cone_note_run(c, tape_run_of(r));
        } else if (kind == &tape_leaves_kind || kind == &tape_elements_kind)
            cone_note_ends(c, tape_leaves_of(r)->first, tape_leaves_of(r)->n);
    }
    return true;
}

bool tape_cone_begin(struct tape_cone *c, struct tape *t, uint32_t row, uint32_t end, int64_t n,
                     const uint32_t *x)
{
    *c = (struct tape_cone){.t = t, .row = row, .base = end, .end = end};
    for (int64_t i = 0; i < n; i++)
        if (x[i] && x[i] < c->base)
            c->base = x[i];
    const uint64_t indices = c->end - c->base;
    c->node = cone_room(c, ROOM_NODES, (indices + 1) * sizeof *c->node, true);
    c->column =
        c->node ? cone_room(c, ROOM_COLUMNS, (indices + 1) * sizeof *c->column, true) : NULL;
    bool ok = c->column != NULL;
    for (uint64_t left = indices; ok && (left > 1 || c->n_levels == 0); c->n_levels++) {
        left = left / 64 + 1;
        c->level[c->n_levels] =
            cone_room(c, ROOM_LEVELS + c->n_levels, left * sizeof(uint64_t), true);
        ok = c->level[c->n_levels] != NULL;
    }
    ok = ok && cone_note(c);
    for (int64_t i = 0; i < n && ok; i++)
        if (x[i] && x[i] < c->end)
            c->column[x[i] - c->base] = (uint32_t)i + 1;
    return ok;
}

/* ---- a walk ---- */

static inline void pending_add(struct tape_cone *c, uint32_t i)
{
    for (int l = 0; l < c->n_levels; l++) {
        uint64_t *word = &c->level[l][i / 64];
        const uint64_t was = *word;
        *word = was | (uint64_t)1 << i % 64;
        if (was)
            return;
        i /= 64;
    }
}

static inline bool pending_any(const struct tape_cone *c)
{
    return c->level[c->n_levels - 1][0] != 0;
}

/* The word of the lowest level that has the greatest. There is one. */
static inline uint32_t pending_word(const struct tape_cone *c)
{
    uint32_t k = 0;
    for (int l = c->n_levels; l-- > 1;)
        k = k * 64 + 63 - (uint32_t)__builtin_clzll(c->level[l][k]);
    return k;
}

/* The greatest, which is none any more. There is one; *word: where the last one was, above which
 * there is none, and where this one was. */
static inline uint32_t pending_take(struct tape_cone *c, uint32_t *word)
{
    if (c->level[0][*word] == 0)
        *word = pending_word(c);
    uint32_t k = *word;
    const uint64_t bits = c->level[0][k];
    const uint32_t bit = 63 - (uint32_t)__builtin_clzll(bits);
    const uint64_t left = bits ^ (uint64_t)1 << bit;
    c->level[0][k] = left;
    for (int l = 1; left == 0 && l < c->n_levels; l++, k /= 64)
        if (c->level[l][k / 64] &= ~((uint64_t)1 << k % 64))
            break;
    return *word * 64 + bit;
}

static inline void hit_note(struct tape_cone *c, uint32_t i, uint32_t slot)
{
    if (c->column[i])
        c->hit[c->n_hits++] = (struct tape_cone_hit){c->column[i] - 1, slot};
}

/* The walk comes to index base + i: where its numbers are. */
ALWAYS uint32_t slot_of(struct tape_cone *c, uint32_t i, uint32_t width)
{
    struct tape_cone_node *node = &c->node[i];
    if (node->epoch == c->epoch)
        return node->slot;
    node->epoch = c->epoch;
    node->slot = c->n_slots++;
    c->mask[node->slot] = 0;
    for (uint32_t l = 0; l < width; l++)
        c->adjoint[(size_t)node->slot * width + l] = 0;
    if (node->word == 0)
        c->strange = c->base + i;
    else if (node->word != WORD_ENDS)
        pending_add(c, i);
    hit_note(c, i, node->slot);
    return node->slot;
}

/* The run of a statement; runs of a walk follow each other. */
static inline const struct tape_run *run_of(struct tape_cone *c, uint32_t index)
{
    const struct tape_run *run = c->runs[c->at];
    if (index - run->first < run->n)
        return run;
    uint32_t low = 0, high = c->n_runs; /* the first that begins at or before the index */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->runs[middle]->first > index)
            low = middle + 1;
        else
            high = middle;
    }
    c->at = low;
    return c->runs[low];
}

/* What is 0 gives 0, whatever the derivative. A vector where the machine has one that long. */
#define LANES(n)                                                                                   \
    ALWAYS void lanes_add##n(double *to, const double *from, double d)                             \
    {                                                                                              \
        typedef double lanes                                                                       \
            __attribute__((vector_size((n)*8), aligned(sizeof(double)), may_alias));               \
        typedef int64_t bits __attribute__((vector_size((n)*8)));                                  \
        const lanes y = *(const lanes *)from;                                                      \
        *(lanes *)to += (lanes)((bits)(d * y) & (bits)(y != 0));                                   \
    }
LANES(2)
LANES(4)

ALWAYS void lanes_add(double *to, const double *from, double d, uint32_t width)
{
    if (width == 1)
        *to += *from != 0 ? d * *from : 0;
    else if (width == 2)
        lanes_add2(to, from, d);
    else
        for (uint32_t l = 0; l < width; l += 4)
            lanes_add4(to + l, from + l, d);
}

ALWAYS bool walk(struct tape_cone *c, uint32_t width, tape_cone_visit *visit, void *payload)
{
    uint32_t word = pending_any(c) ? pending_word(c) : 0;
    while (pending_any(c)) {
        const uint32_t i = pending_take(c, &word);
        const struct tape_cone_node node = c->node[i];
        const struct tape_run *run = run_of(c, c->base + i);
        const struct tape_operands o = tape_statement_operands(run->word_begin - node.word);
        const double *const p = run->partial_begin + node.partial;
        if (!slots_reach(c, (uint64_t)c->n_slots + o.n, width))
            return false;
        const uint64_t mask = c->mask[node.slot];
        if (visit)
            visit(c->base + i, mask, payload);
        for (uint32_t k = 0; k < o.n; k++) {
            if (o.index[k] < c->base)
                continue;
            const uint32_t to = slot_of(c, o.index[k] - c->base, width);
            c->mask[to] |= mask;
            if (width)
                lanes_add(&c->adjoint[(size_t)to * width], &c->adjoint[(size_t)node.slot * width],
                          tape_operand_partial(&o, p, k), width);
        }
    }
    return c->strange == 0;
}

/* A walk by one instruction set. */
#define WALKS(name, target)                                                                        \
    target static bool walk_##name(struct tape_cone *c, uint32_t width)                            \
    {                                                                                              \
        switch (width) {                                                                           \
        case 1:                                                                                    \
            return walk(c, 1, NULL, NULL);                                                         \
        case 2:                                                                                    \
            return walk(c, 2, NULL, NULL);                                                         \
        case 4:                                                                                    \
            return walk(c, 4, NULL, NULL);                                                         \
        default:                                                                                   \
            return walk(c, 8, NULL, NULL);                                                         \
        }                                                                                          \
    }
WALKS(portable, )
#ifdef __x86_64__
WALKS(avx2, __attribute__((target("avx2,fma"))))
WALKS(avx512, __attribute__((target("avx512f,avx512vl,avx2,fma"))))
#endif

static bool walk_width(struct tape_cone *c, uint32_t width)
{
#ifdef __x86_64__
    const int level = kernel_isa_level();
    if (KERNEL_HAS_AVX512 && level == 2)
        return walk_avx512(c, width);
    if (KERNEL_HAS_AVX2 && level == 1)
        return walk_avx2(c, width);
#endif
    return walk_portable(c, width);
}

static void walk_forget(struct tape_cone *c)
{
    while (pending_any(c)) {
        uint32_t word = pending_word(c);
        pending_take(c, &word);
    }
}

bool tape_cone_walk(struct tape_cone *c, uint32_t n, const uint32_t *root, uint32_t width,
                    tape_cone_visit *visit, void *payload)
{
    c->epoch++;
    c->n_slots = c->n_hits = c->strange = 0;
    if (!slots_reach(c, n, width))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        if (root[k] < c->base || root[k] >= c->end)
            continue;
        const uint32_t slot = slot_of(c, root[k] - c->base, width);
        c->mask[slot] |= (uint64_t)1 << k;
        if (width)
            c->adjoint[(size_t)slot * width + k] += 1;
    }
    const bool ok = width == 0 ? walk(c, 0, visit, payload) : walk_width(c, width);
    if (!ok)
        walk_forget(c);
    return ok;
}
