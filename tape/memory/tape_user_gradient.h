/* tape_user_gradient.h: buffers of the user's that receive leaves' gradients.
 *
 * A sweep adds up in the leaf's own buffer; only when it has ended well is the sum added to the
 * user's, so that a failed sweep leaves nothing there.
 */
#ifndef TAPE_USER_GRADIENT_H
#define TAPE_USER_GRADIENT_H

#include "tape_part.h"
#include "tape_value.h"

/* The user's buffer of a leaf that has TAPE_USER_GRADIENT. */
void *tape_user_gradient_buffer(const struct tape *t, uint32_t x);

/* Whether the gradient of a leaf that has TAPE_TAKEN_BACK went with its buffer: no sweep and no
 * clearing of gradients since. */
bool tape_user_gradient_lost(const struct tape *t, uint32_t x);

/* Before a sweep: the leaves' own buffers hold nothing. */
void tape_user_gradient_begin(struct tape *t);
/* After it has ended well. */
void tape_user_gradient_add(struct tape *t);

/* A new leaf's data may not overlap a buffer, to which sweeps add: AD_ERROR_ARGUMENT. A rewind
 * forgets the buffers of what it drops. */
extern const struct tape_part tape_user_gradients_part;

#endif
