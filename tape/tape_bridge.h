/* tape_bridge.h: where tensors and scalar statements meet: the elements of a tensor as scalars, and
 * a tensor made of scalars.
 *
 * May include: tape_statement.h. The first kind is the record of leaves (struct tape_leaves) over
 * any value, the second a record without operands, whose output is the tensor; behind it lie the
 * indices of the elements. Only records that are no kernel's lack operands or outputs.
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

extern const struct kernel_op tape_elements_op, tape_gather_op;

/* y[size of x] = the elements of x, row-major; the second gives constants, as does the first if x
 * needs no gradient, under no_grad, and if it fails. The tape is named (tape_statement_name) if x
 * needs one. */
enum tape_status tape_bridge_reals(struct tape *t, uint32_t x, struct tape_real *y,
                                   struct tape_site site);
void tape_bridge_constants(const struct tape *t, uint32_t x, struct tape_real *y);

/* *out: a tensor of f64 whose elements are x, row-major; constant if they all are, and under
 * no_grad. */
enum tape_status tape_bridge_tensor(struct tape *t, int rank, const int64_t *shape,
                                    const struct tape_real *x, struct tape_site site,
                                    uint32_t *out);

/* Pullbacks. Of elements or leaves: to the value that is the record's operand, unless it needs no
 * gradient or nothing but zeros has come; false: no memory. Of a tensor of scalars: to them. */
bool tape_bridge_to_value(struct tape *t, struct tape_record *r);
void tape_bridge_to_scalars(struct tape *t, struct tape_record *r);

/* Whether derivatives of scalars by scalars may lead through tensors. */
static inline bool tape_bridge_crosses(const struct tape *t)
{
    return t->statements.n_elements > 0 && t->statements.n_gathers > 0;
}

/* Until it is ended no sweep changes the gradient of a leaf or of a retained value. */
void tape_bridge_hush(struct tape *t);
void tape_bridge_unhush(struct tape *t);

/* Where sweeps from tensors end: while a gradient check runs, what is older is constant. */
static inline uint32_t tape_bridge_oldest(const struct tape *t)
{
    return t->fixed.n_values ? t->fixed.last_record : UINT32_MAX;
}

/* For tape_reach: memory for the scalars of a walk, which begins at the roots of the sweep (false:
 * there is none); a record that is no kernel's, `reached` by its output if it has one, returns
 * whether the walk comes to it; the end. */
bool tape_bridge_reach_begin(struct tape *t);
bool tape_bridge_reach(struct tape *t, struct tape_record *r, bool reached, enum tape_flag wants);
void tape_bridge_reach_end(struct tape *t);

#endif
