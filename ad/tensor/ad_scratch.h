/* ad_scratch.h: memory of one call, beside the tape. */
#ifndef AD_SCRATCH_H
#define AD_SCRATCH_H

#include "tape_memory.h"

/* Memory that lasts until ad_scratch_free; zero-filled. get returns NULL when there is none. */
struct ad_scratch {
    struct tape_memory memory; /* a copy: the user's function may destroy the tape */
    struct ad_scratch_block *blocks;
};
void *ad_scratch_get(struct ad_scratch *s, int64_t count, size_t bytes);
void ad_scratch_free(struct ad_scratch *s);

#endif
