/* tape_inplace.h: the rule context that runs a pullback's kernels in place. */
#ifndef TAPE_INPLACE_H
#define TAPE_INPLACE_H

#include "tape_account.h"

/* Runs the pullback of one record, whose outputs' adjoints are set: its operands' adjoints grow.
 * The outputs' adjoints are used up or left as they were. Returns false when memory ran out. */
bool tape_inplace_pullback(struct tape *t, struct tape_record *r);

/* The adjoint buffer of a value, allocated if it has none yet; *fresh: it holds nothing. NULL:
 * no memory. */
void *tape_adjoint_buffer(struct tape *t, struct tape_value *v, bool *fresh);

/* Frees a transient adjoint. */
void tape_adjoint_free(struct tape *t, struct tape_value *v);

/* Marks a leaf's gradient as holding something. */
static inline void tape_adjoint_set(const struct tape *t, struct tape_value *v)
{
    if (v->flags & TAPE_LEAF)
        v->gradient_epoch = t->gradient_epoch;
}

#endif
