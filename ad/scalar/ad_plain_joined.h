/* ad_plain_joined.h: values of forks that were joined whole. */
#ifndef AD_PLAIN_JOINED_H
#define AD_PLAIN_JOINED_H

#include <stdbool.h>
#include <stdint.h>

/* What a value of a fork with this tag, which was joined whole, is on the fork's parent; indices
 * above *base are the fork's own. False: it is none. Any thread may ask. */
bool ad_plain_joined(uint32_t *index, uint32_t *tag, uint32_t *base);

#endif
