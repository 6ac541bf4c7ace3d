/* matrix_rules.h: what pullbacks of linear algebra emit.
 *
 * Internal to kernels/. As all emits, with a NULL operand they do nothing and give NULL.
 */
#ifndef MATRIX_RULES_H
#define MATRIX_RULES_H

#include "kernel.h"

/* x [...,n] as [...,n,1] where `vector`, else x itself. */
kernel_ref matrix_emit_columns(struct kernel_rule *rule, kernel_ref x, bool vector);

/* x [...,n] as [...,1,n]. */
kernel_ref matrix_emit_row(struct kernel_rule *rule, kernel_ref x);

/* Adds to input i's adjoint a value [...,n,k], or [...,n,1] where the input is a vector. */
void matrix_accumulate_columns(struct kernel_rule *rule, int i, kernel_ref value, bool vector);

kernel_ref matrix_emit_solve_triangular(struct kernel_rule *rule, kernel_ref a, kernel_ref b,
                                        bool upper, bool transposed, bool unit);

/* The parts of x below, on and above the diagonals, each times a constant. */
kernel_ref matrix_emit_weighed(struct kernel_rule *rule, kernel_ref x, double below,
                               double diagonal, double above);

/* Adds them to input i's adjoint, summed over axes along which the input was broadcast. */
void matrix_accumulate_weighed(struct kernel_rule *rule, int i, kernel_ref x, double below,
                               double diagonal, double above);

/* a^T b, a b^T and a b. */
kernel_ref matrix_emit_tn(struct kernel_rule *rule, kernel_ref a, kernel_ref b);
kernel_ref matrix_emit_nt(struct kernel_rule *rule, kernel_ref a, kernel_ref b);
kernel_ref matrix_emit_nn(struct kernel_rule *rule, kernel_ref a, kernel_ref b);

#endif
