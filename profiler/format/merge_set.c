/* merge_set.c: the hash table of merge_state.h.
 *
 * May include: merge_state.h.
 */
#include "merge_state.h"

#include <stdlib.h>

bool merge_set_open(struct merge_set *set, size_t most)
{
    size_t n = 64;
    while (n < 2 * most)
        n *= 2;
    *set = (struct merge_set){.slot = calloc(n, sizeof *set->slot), .n_slots = n};
    return set->slot && most < UINT32_MAX;
}

uint32_t *merge_set_find(const struct merge_set *set, uint64_t hash, merge_same_fn *same,
                         const void *payload, const void *key)
{
    for (uint64_t h = hash;; h++) {
        uint32_t *slot = &set->slot[h & (set->n_slots - 1)];
        if (*slot == 0 || same(payload, *slot - 1, key))
            return slot;
    }
}

uint64_t merge_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

uint64_t merge_mix_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return merge_mix(h, 0);
}
