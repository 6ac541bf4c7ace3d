/* kernel_depends.h: which elements of an op's results can depend on which of its operands, whatever
 * the derivatives are: what patterns of sparse matrices are made of.
 *
 * An op says so in groups: each element of an operand is in one, and each element of a result
 * depends on some. A rule may say too much, never too little: a missing element would be a wrong
 * derivative. An op without a rule, that is not elementwise, has all on all.
 */
#ifndef KERNEL_DEPENDS_H
#define KERNEL_DEPENDS_H

#include "kernel.h"

struct kernel_depends {
    int64_t width; /* groups of an element of the result; 0: it depends on nothing */
    /* Groups are numbered from 0 and below the larger of both sizes; negative: none. */
    int64_t *in;    /* [size of the operand]: the group of each element */
    int64_t *out;   /* [size of the result, width]: those of each element */
    int64_t *space; /* kernel_depends_space() bytes */
};

/* How result o depends on operand i. Called twice: with in NULL it says the width alone, then it
 * fills. Arrays have their shapes; those of depends_reads their elements, too. */
typedef void kernel_depends_rule(const struct kernel_call *call, int o, int i,
                                 struct kernel_depends *d);

/* As the op says, or what holds for those that say nothing. */
void kernel_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d);
size_t kernel_depends_space(const struct kernel_call *call);

/* ---- for rules ---- */

/* Axis a of the operand goes along axis map[a] of the result; negative: all of it has a part.
 * Extents of 1 broadcast; where the result has 1, and the operand more, all of it has a part. */
void kernel_depends_along(kernel_ref in, kernel_ref out, const int *map, struct kernel_depends *d);
/* The axes but the last `in_inner` of the operand, and but the last `out_inner` of the result, are
 * broadcast; within, all depends on all. */
void kernel_depends_within(kernel_ref in, int in_inner, kernel_ref out, int out_inner,
                           struct kernel_depends *d);
/* Sums of input 0, whose adjoint is `take` with these attributes, an op that moves elements. */
void kernel_depends_sums(const struct kernel_call *call, int i, const struct kernel_op *take,
                         int n_attr, const int64_t *attr, struct kernel_depends *d);
/* A product of matrices, or of vectors, whose numbers have `pair` axes of their own behind; leading
 * axes broadcast. */
void kernel_depends_product(const struct kernel_call *call, int o, int i, int pair,
                            struct kernel_depends *d);
void kernel_depends_all(const struct kernel_call *call, int o, int i, struct kernel_depends *d);

/* Rules. Element by element, broadcast or summed to a shape. */
kernel_depends_rule kernel_depends_elements;
/* Ops that put each element of an operand somewhere, or a constant: found by moving numbers. */
kernel_depends_rule kernel_depends_moves;
/* All along the axes that attributes name, which results keep or lack. */
kernel_depends_rule kernel_depends_axes;
/* Within the last axis; behind the leading axes of operand 0, which is of matrices; a x = b. */
kernel_depends_rule kernel_depends_rows, kernel_depends_matrices, kernel_depends_systems;
/* Channels: axis 1, or 0 of what has one axis. */
kernel_depends_rule kernel_depends_channels;

#endif
