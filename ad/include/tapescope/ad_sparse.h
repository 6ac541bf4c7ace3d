/* ad_sparse.h: Jacobians and Hessians that are mostly zeros, in compressed rows; included by
 * ad_real.h.
 *
 *     ad_sparse_pattern p;
 *     ad_real_jacobian_pattern(tape, m, y, n, x, &p);             // which are no zeros: once
 *     double *values = malloc(p.n_values * sizeof *values);
 *     ad_real_jacobian_sparse(tape, m, y, n, x, &p, values);      // after each recording or replay
 *     for (int64_t i = 0; i < p.m; i++)
 *         for (int64_t k = p.row_start[i]; k < p.row_start[i + 1]; k++)
 *             use(i, p.column[k], values[k]);
 *     ad_sparse_free(&p);
 *
 * What is in a pattern may be no zero by the structure of the recording; at some points it is. What
 * is not in it is always zero.
 */
#ifndef TAPESCOPE_AD_SPARSE_H
#define TAPESCOPE_AD_SPARSE_H

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix [m,n] in compressed rows: the columns of row i are column[row_start[i]] up to
 * column[row_start[i + 1] - 1], rising. It is filled by a call that finds a pattern, which does not
 * look at what is there before: it may be unset, and a pattern that is found once more is freed
 * first, or its memory is lost. It belongs to the user, who gives back its memory by
 * ad_sparse_free, and outlives the tape (not an allocator that the tape was given, ad_tape_options,
 * from which it is). It is not written after that, so several threads may use it at once. */
typedef struct ad_sparse_pattern {
    int64_t m, n, n_values;
    const int64_t *row_start, *column; /* [m + 1], [n_values] */
    void *own_;
} ad_sparse_pattern;

/* Gives back what the pattern has, which is zeros afterwards; zeros and NULL do nothing. */
AD_API void ad_sparse_free(ad_sparse_pattern *pattern);

/* The pattern of dy[i]/dx[j]: x[j], leaves or what was computed from them, each named once; a y[i]
 * that is a constant has nothing. It is read from the operands of statements, whatever their
 * derivatives are, so that it holds for each recording that does the same. On the tape the call
 * takes 21 bytes for each index from the lowest of x to the highest of y, and gives them back; the
 * pattern's memory is no tape's.
 * After an error it is zeros. Errors: those of ad_real_jacobian; AD_ERROR_STATE where y depends on
 * a fused loop, a checkpoint, a fork, or tensors lie between: the message has the line;
 * AD_ERROR_ARGUMENT: x names a number twice. */
AD_INLINE ad_status ad_real_jacobian_pattern(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                             const ad_real *x,
                                             ad_sparse_pattern *pattern AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_jacobian_pattern,
                  (ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                   ad_sparse_pattern *pattern),
                  (tape, m, y, n, x, pattern))

/* Overwrites values[pattern->n_values] with dy[i]/dx[j], of this recording or its replay. Each row
 * is swept over the statements that it depends on, with up to seven others that share them (see
 * docs/how-to/sparse.md); gradients stay as they are. Memory as above, and 80 bytes for each
 * statement of the largest such group. After an error values are NaN. Errors: the same;
 * AD_ERROR_ARGUMENT: the pattern is none, or of another shape; AD_ERROR_STATE: a derivative that is
 * not in the pattern, which was found for another recording. */
AD_INLINE ad_status ad_real_jacobian_sparse(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                            const ad_real *x, const ad_sparse_pattern *pattern,
                                            double *values AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_jacobian_sparse,
                  (ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                   const ad_sparse_pattern *pattern, double *values),
                  (tape, m, y, n, x, pattern, values))

/* The pattern of d2y/dx2, both triangles: y a number that the tape's program has computed (see
 * ad_real_program.h), x[n] leaves, each named once. It is read from which functions of the program
 * are curved, whatever their derivatives are, so that it holds for each recording that does the
 * same, and for replays. After an error it is zeros. Errors: those of ad_real_hessian;
 * AD_ERROR_ARGUMENT: x names a number twice. */
AD_INLINE ad_status ad_real_hessian_pattern(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                            ad_sparse_pattern *pattern AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_hessian_pattern,
                  (ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                   ad_sparse_pattern *pattern),
                  (tape, y, n, x, pattern))

/* Overwrites values[pattern->n_values] with d2y/dx[i]dx[j] at the program's newest values, both
 * triangles. One walk back over the program takes 18 bytes on the tape for each index up to y, and
 * 16 to 64 bytes beside it for each pair of numbers that a curved function joins at a time. After
 * an error values are NaN. Errors: the same; AD_ERROR_ARGUMENT: the pattern is none, or of another
 * shape or kind; AD_ERROR_STATE: a derivative that is not in the pattern. */
AD_INLINE ad_status ad_real_hessian_sparse(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                           const ad_sparse_pattern *pattern,
                                           double *values AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_hessian_sparse,
                  (ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                   const ad_sparse_pattern *pattern, double *values),
                  (tape, y, n, x, pattern, values))

#if AD_LINE_MACROS
#define ad_real_hessian_pattern(...) ad_real_hessian_pattern_at(__VA_ARGS__, __LINE__)
#define ad_real_hessian_sparse(...) ad_real_hessian_sparse_at(__VA_ARGS__, __LINE__)
#define ad_real_jacobian_pattern(...) ad_real_jacobian_pattern_at(__VA_ARGS__, __LINE__)
#define ad_real_jacobian_sparse(...) ad_real_jacobian_sparse_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
