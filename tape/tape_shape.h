/* tape_shape.h: shapes of ops, by which a profile may tell rows apart.
 *
 * May include: tape_account.h. Nothing here is called unless hook->shapes is set.
 */
#ifndef TAPE_SHAPE_H
#define TAPE_SHAPE_H

#include "tape_account.h"

/* Shapes that are told apart in a process; all others are one. */
enum { TAPE_SHAPES = 4096 };

/* tape_account_row of an op with such a result and such operands. */
uint32_t tape_shape_row(struct tape *t, struct tape_site site, const char *op,
                        const struct kernel_shape *out, int n_in, const kernel_ref *in);
/* The same of a value without operands. extent: [rank]. */
uint32_t tape_shape_row_of(struct tape *t, struct tape_site site, const char *op, int dtype,
                           int rank, const int64_t *extent);

#endif
