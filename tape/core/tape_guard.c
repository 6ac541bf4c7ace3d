/* tape_guard.c: hashes of borrowed arrays, taken when a record saves them, compared by sweeps.
 *
 * A guard is made or renewed once for each array between two sweeps or rewinds, not for each op. An
 * array that was changed legally, after a sweep and before the next recording, has a second guard:
 * the first still stands for the older records, which a sweep from an older value would reach.
 */
#include "tape_guard.h"

#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Elements looked at where a tape does not look at the whole array. */
enum { SAMPLES = 64, LANES = 4 };

/* From this size on malloc gives an array memory of its own, which free gives back to the system:
 * to look at it then ends the program. A smaller one stays readable. */
enum { UNMAPPED_BYTES = 128 << 10 };

static inline uint64_t word_at(const char *at, size_t bytes)
{
    uint64_t w = 0;
    memcpy(&w, at, bytes);
    return w;
}

/* Lanes do not wait for each other. */
static inline uint64_t lanes_merged(const uint64_t *lane)
{
    return tape_hash_mix(tape_hash_mix(lane[0], lane[1]), tape_hash_mix(lane[2], lane[3]));
}

static uint64_t hash_all(const char *at, uint64_t n)
{
    uint64_t lane[LANES] = {1, 2, 3, 4};
    if (n >= KERNEL_HASH_STRIPE) {
        uint64_t sum[KERNEL_HASH_LANES];
        for (uint64_t k = 0; k < KERNEL_HASH_LANES; k++)
            sum[k] = k;
        kernel_hash_get()(at, n / KERNEL_HASH_STRIPE, sum);
        for (int k = 0; k < KERNEL_HASH_LANES; k++)
            lane[k % LANES] = tape_hash_mix(lane[k % LANES], sum[k]);
        at += n / KERNEL_HASH_STRIPE * KERNEL_HASH_STRIPE;
        n %= KERNEL_HASH_STRIPE;
    }
    for (; n >= 8; n -= 8, at += 8)
        lane[0] = tape_hash_mix(lane[0], word_at(at, 8));
    if (n > 0) /* floats: half a word is left */
        lane[0] = tape_hash_mix(lane[0], word_at(at, 4));
    return lanes_merged(lane);
}

/* Evenly spread elements, the first and the last included. */
static inline uint64_t hash_samples(const char *data, uint64_t size, size_t bytes)
{
    uint64_t lane[LANES] = {1, 2, 3, 4};
    for (uint64_t i = 0; i < SAMPLES; i += LANES)
        for (uint64_t k = 0; k < LANES; k++)
            lane[k] = tape_hash_mix(
                lane[k], word_at(data + (i + k) * (size - 1) / (SAMPLES - 1) * bytes, bytes));
    return lanes_merged(lane);
}

uint64_t tape_guard_hash_bytes(const void *data, uint64_t n)
{
    return hash_all(data, n);
}

uint64_t tape_guard_hash(const struct tape *t, const struct tape_value *v)
{
    const struct kernel_array *a = &v->array;
    if (tape_value_bytes(v) <= t->whole_bytes || a->size <= SAMPLES)
        return hash_all(a->data, tape_value_bytes(v));
    return a->dtype == KERNEL_F32 ? hash_samples(a->data, (uint64_t)a->size, 4)
                                  : hash_samples(a->data, (uint64_t)a->size, 8);
}

bool tape_guard_gone(const struct tape_value *v)
{
    const uint64_t bytes = tape_value_bytes(v);
    if (bytes < UNMAPPED_BYTES)
        return false;
    const uint64_t within = (uintptr_t)v->array.data % (uintptr_t)sysconf(_SC_PAGESIZE);
    return msync((char *)v->array.data - within, bytes + within, MS_ASYNC) != 0 && errno == ENOMEM;
}

static bool guard_make(struct tape *t, struct tape_value *root, uint64_t hash, uint32_t row)
{
    size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    if (offset >= TAPE_NO_GUARD)
        return false;
    struct tape_guard *g = tape_arena_record(&t->arena, sizeof *g);
    if (!g)
        return false;
    *g = (struct tape_guard){.hash = hash,
                             .value = tape_value_index(t, root),
                             .row = row,
                             .previous = t->last_guard,
                             .older = root->retained,
                             .phase = t->phase};
    root->retained = t->last_guard = (uint32_t)offset;
    return true;
}

/* The newest guard of a borrowed array holds what the array does. */
static bool guard_renew(struct tape *t, struct tape_value *root, uint32_t row)
{
    uint64_t hash = tape_guard_hash(t, root);
    struct tape_guard *newest =
        root->retained == TAPE_NO_GUARD ? NULL : tape_guard_at(t, root->retained);
    if (!newest || newest->hash != hash)
        return guard_make(t, root, hash, row);
    newest->phase = t->phase;
    return true;
}

/* The op saves the borrowed array `root` as operand i. */
static __attribute__((noinline)) bool guard_operand(struct tape *t, const struct kernel_op *op,
                                                    int n_in, const uint32_t *in, int i,
                                                    uint32_t row)
{
    struct tape_value *root = &t->entries[t->entries[in[i]].root];
    uint64_t needs = 0;
    for (int k = 0; k < n_in; k++)
        needs |= (uint64_t)((t->entries[in[k]].flags & TAPE_NEEDS_GRADIENT) != 0) << k;
    if (!tape_is_borrowed(root) || !(kernel_reads(op, needs) >> i & 1))
        return true;
    return guard_renew(t, root, row);
}

bool tape_guard_whole(struct tape *t, uint32_t x, uint32_t row)
{
    struct tape_value *root = &t->entries[t->entries[x].root];
    if (!tape_is_borrowed(root) ||
        (root->retained != TAPE_NO_GUARD && tape_guard_at(t, root->retained)->phase == t->phase))
        return true;
    return guard_renew(t, root, row);
}

bool tape_guard_saved(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in,
                      uint32_t row)
{
    for (unsigned saved = op->saves_in; saved; saved &= saved - 1) {
        int i = __builtin_ctz(saved);
        const struct tape_value *v = &t->entries[in[i]];
        if (v->flags & TAPE_OWNS_DATA)
            continue;
        const struct tape_value *root = &t->entries[v->root];
        if (root->flags & (TAPE_OWNS_DATA | TAPE_FREED))
            continue;
        if (root->retained != TAPE_NO_GUARD && tape_guard_at(t, root->retained)->phase == t->phase)
            continue;
        if (!guard_operand(t, op, n_in, in, i, row))
            return false;
    }
    return true;
}

void tape_guard_drop(struct tape *t, uint32_t last)
{
    while (t->last_guard != last) {
        const struct tape_guard *g = tape_guard_at(t, t->last_guard);
        t->entries[g->value].retained = g->older;
        t->last_guard = g->previous;
    }
}

void tape_guard_accept(struct tape *t)
{
    for (uint32_t at = t->last_guard; at != TAPE_NO_GUARD; at = tape_guard_at(t, at)->previous) {
        struct tape_guard *g = tape_guard_at(t, at);
        g->hash = tape_guard_hash(t, &t->entries[g->value]);
        g->phase = t->phase;
    }
}

bool tape_guard_changed(const struct tape *t, uint32_t x)
{
    const struct tape_value *root = &t->entries[t->entries[x].root];
    return tape_is_borrowed(root) && root->retained != TAPE_NO_GUARD &&
           (tape_guard_gone(root) ||
            tape_guard_hash(t, root) != tape_guard_at(t, root->retained)->hash);
}
