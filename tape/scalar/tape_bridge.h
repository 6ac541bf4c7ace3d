/* tape_bridge.h: where tensors and scalar statements meet: the elements of a tensor as scalars, and
 * a tensor made of scalars.
 *
 * The first kind is the record of leaves (struct tape_leaves) over any value, the second a record
 * without operands, whose output is the tensor; behind it lie the indices of the elements. Only
 * records that are no kernel's lack operands or outputs.
 *
 * Invariant: a sweep has adjoints of scalars (tape_statements.adjoint) whenever it can come to a
 * record of the second kind.
 */
#ifndef TAPE_BRIDGE_H
#define TAPE_BRIDGE_H

#include "tape_statement.h"

/* The layout of the public ad_real. */
struct __attribute__((may_alias)) tape_real {
    double value;
    uint32_t index, tag;
};

extern const struct record_kind tape_elements_kind, tape_gather_kind;

/* y[size of x] = the elements of x, row-major; constants if x
 * needs no gradient, under no_grad, and if it fails. The tape is named (tape_statement_name) if x
 * needs one. */
enum tape_status tape_bridge_reals(struct tape *t, uint32_t x, struct tape_real *y,
                                   struct tape_site site);

/* *out: a tensor of f64 whose elements are x, row-major; constant if they all are, and under
 * no_grad. */
enum tape_status tape_bridge_tensor(struct tape *t, int rank, const int64_t *shape,
                                    const struct tape_real *x, struct tape_site site,
                                    uint32_t *out);

/* Whether derivatives of scalars by scalars may lead through tensors. */
static inline bool tape_bridge_crosses(const struct tape *t)
{
    return t->statements->n_elements > 0 && t->statements->n_gathers > 0;
}

/* Until it is ended no sweep changes the gradient of a leaf or of a retained value. */
void tape_bridge_detach_retained(struct tape *t);
void tape_bridge_attach_retained(struct tape *t);

/* For tape_reach: memory for the scalars of a walk, which begins at the roots of the sweep (false:
 * there is none); and its end. */
bool tape_bridge_reach_begin(struct tape *t);
void tape_bridge_reach_end(struct tape *t);

#endif
