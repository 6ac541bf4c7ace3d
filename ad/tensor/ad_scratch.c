/* ad_scratch.c: see ad_scratch.h. */
#include "ad_scratch.h"

#include <string.h>

struct ad_scratch_block {
    struct ad_scratch_block *next;
    uint64_t unused; /* what follows lies as malloc's memory does */
};

void *ad_scratch_get(struct ad_scratch *s, int64_t count, size_t bytes)
{
    size_t n, whole;
    if (__builtin_mul_overflow((size_t)count, bytes, &n) ||
        __builtin_add_overflow(n, sizeof(struct ad_scratch_block) + 1, &whole))
        return NULL;
    struct ad_scratch_block *block = s->memory.resize(NULL, whole, s->memory.payload);
    if (!block)
        return NULL;
    memset(block, 0, whole);
    block->next = s->blocks;
    s->blocks = block;
    return block + 1;
}

void ad_scratch_free(struct ad_scratch *s)
{
    while (s->blocks) {
        struct ad_scratch_block *block = s->blocks;
        s->blocks = block->next;
        s->memory.release(block, s->memory.payload);
    }
}
