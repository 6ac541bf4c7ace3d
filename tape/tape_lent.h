/* tape_lent.h: buffers of the user's that receive leaves' gradients.
 *
 * May include: tape_value.h. A sweep adds up in the leaf's own buffer; only when it has ended well
 * is the sum added to the user's, so that a failed sweep leaves nothing there.
 */
#ifndef TAPE_LENT_H
#define TAPE_LENT_H

#include "tape_value.h"

/* The user's buffer of a leaf that has TAPE_USER_GRADIENT. */
void *tape_lent_buffer(const struct tape *t, uint32_t x);

/* Whether the gradient of a leaf that has TAPE_TAKEN_BACK went with its buffer: no sweep and no
 * clearing of gradients since. */
bool tape_lent_lost(const struct tape *t, uint32_t x);

/* Before a sweep: the leaves' own buffers hold nothing. */
void tape_lent_begin(struct tape *t);
/* After it has ended well. */
void tape_lent_add(struct tape *t);

/* A leaf has come. AD_ERROR_ARGUMENT if its data overlap a buffer, to which sweeps add. */
enum tape_status tape_lent_leaf(struct tape *t, const struct tape_value *leaf,
                                struct tape_site site);

/* Forgets the buffers of values from n_values on. */
void tape_lent_drop(struct tape *t, uint32_t n_values);

#endif
