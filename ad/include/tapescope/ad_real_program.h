/* ad_real_program.h: programs of numbers: what was recorded, evaluated again with other numbers,
 * and its second derivatives. Included by ad_real.h.
 *
 *     #define AD_REAL_PROGRAM 1                       // in every file whose statements are of it
 *     #include <tapescope/ad_real.h>
 *
 *     ad_real_leaves(tape, n, start, x);
 *     ad_tape_program_begin(tape);
 *     ad_real y = model(x);                           // statements, loops, functions
 *     ad_tape_program_end(tape);
 *
 *     ad_real_hessian(tape, y, n, x, hessian);        // from this one recording
 *     ad_tape_replay(tape, n, x, other, 0);           // the values, and derivatives, for others
 *     ad_real_backward(tape, y);                      // of the replay
 *
 * Statements know their derivatives, and not what they compute. Where AD_REAL_PROGRAM is 1
 * before the first header, each function of a formula is a statement of its own, and between the
 * two calls also a step of a program: which function of which operands. A step takes 40 bytes on
 * the tape, on the line of ad_tape_program_begin; a statement takes what it takes otherwise.
 * Files that call each other with formulas (ad_expr) must agree about AD_REAL_PROGRAM.
 *
 * A program is of statements alone, and depends on leaves alone. What else was recorded
 * meanwhile (fused loops, custom records, checkpoints, tensors, forks, statements of files
 * without AD_REAL_PROGRAM) is found by ad_tape_program_end, which names its line. Sweeps and
 * ad_preaccumulate_begin come before or after. A tape has one program, which a rewind behind its
 * begin, a reset, or the next ad_tape_program_begin drops.
 */
#ifndef TAPESCOPE_AD_REAL_PROGRAM_H
#define TAPESCOPE_AD_REAL_PROGRAM_H

#include <stdio.h>

#include <tapescope/ad_real_functions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on the thread's statements on this tape are steps of its program, which begins empty; it
 * records on the tape, as after ad_tape_record_begin or the first leaf. Errors: AD_ERROR_STATE (a
 * program is being recorded, a fork, a section, the thread does not record on this tape). */
AD_INLINE ad_status ad_tape_program_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_program_begin, (ad_tape tape), (tape))
/* The program is complete. AD_ERROR_STATE: none is being recorded; or something was recorded that
 * no program can have, or was computed from what was recorded before it began: the message names
 * its line. After an error, also one from before, there is no program, and what was recorded
 * stays. */
AD_INLINE ad_status ad_tape_program_end(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_program_end, (ad_tape tape), (tape))

/* A flag of ad_tape_replay. */
enum { AD_REPLAY_READS = 1 };

/* Evaluates the program for other numbers: leaf x[i], and x[i].value, becomes values[i]; leaves
 * that are not named keep theirs. All values of the program and all derivatives on the tape are
 * those of a new recording, to rounding; nothing is recorded. Sweeps, Jacobians, Hessians are of
 * it from now on. Values that the user has in his numbers are those of the recording, until
 * ad_real_update.
 *
 * What the program's code has asked of values must have the same answers: comparisons, whole
 * numbers (floor, ilogb, the exponent of frexp, …), and ad_real_value, since nobody knows what
 * was done with that number. flags: AD_REPLAY_READS: it does not matter what ad_real_value was.
 * A number's field `value` is read unseen: code that goes one way or another by it is replayed
 * wrong.
 *
 * Errors, after which values and derivatives are what they were: AD_ERROR_STATE (no program; an
 * answer would have been another: the message has its line), AD_ERROR_ARGUMENT, AD_ERROR_HANDLE
 * (x[i] is no leaf of this tape), AD_ERROR_MEMORY. */
AD_INLINE ad_status ad_tape_replay(ad_tape tape, int64_t n, ad_real *x, const double *values,
                                   int flags AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_tape_replay,
                  (ad_tape tape, int64_t n, ad_real *x, const double *values, int flags),
                  (tape, n, x, values, flags))
/* y[i].value becomes what the newest replay has found; constants keep theirs. Errors:
 * AD_ERROR_STATE (no program), AD_ERROR_HANDLE (y[i] is neither a step of the program nor a leaf
 * that it reads). */
AD_INLINE ad_status ad_real_update(ad_tape tape, int64_t m, ad_real *y AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_real_update, (ad_tape tape, int64_t m, ad_real *y), (tape, m, y))

/* Derivatives of the program at its newest values. x[n] are leaves, y what the program has
 * computed, a leaf or a constant. Gradients on the tape stay as they are. After an error results
 * are NaN. Errors: AD_ERROR_STATE (no program), AD_ERROR_ARGUMENT, AD_ERROR_HANDLE,
 * AD_ERROR_MEMORY.
 *
 * Second derivatives are those of the table in ad_real_functions.h, by second-order adjoints:
 * one walk forward with tangents, one back with adjoints and their tangents (A. Griewank, A.
 * Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, section 5.3). At a kink they are those of
 * the side that was taken; of fmax and fmin at a tie, 0. A walk goes over the whole program up
 * to y. */

/* tangent[m] = (dy/dx) direction[n]. */
AD_INLINE ad_status ad_real_jvp(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                const ad_real *x, const double *direction,
                                double *tangent AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_jvp,
                  (ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                   const double *direction, double *tangent),
                  (tape, m, y, n, x, direction, tangent))
/* gradient[n] = seed[m]^T (dy/dx); seed NULL: ones. Unlike ad_real_backward it reads no
 * derivatives of statements, which a replay has to write for that one. */
AD_INLINE ad_status ad_real_vjp(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                const ad_real *x, const double *seed,
                                double *gradient AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_vjp,
                  (ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                   const double *seed, double *gradient),
                  (tape, m, y, n, x, seed, gradient))
/* product[n] = (d2y/dx2) direction[n]. gradient[n]: dy/dx, or NULL. */
AD_INLINE ad_status ad_real_hvp(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                const double *direction, double *product,
                                double *gradient AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_hvp,
                  (ad_tape tape, ad_real y, int64_t n, const ad_real *x, const double *direction,
                   double *product, double *gradient),
                  (tape, y, n, x, direction, product, gradient))
/* hessian[n,n] = d2y/dx2, row-major; in walks of 8 directions. */
AD_INLINE ad_status ad_real_hessian(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                    double *hessian AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_hessian,
                  (ad_tape tape, ad_real y, int64_t n, const ad_real *x, double *hessian),
                  (tape, y, n, x, hessian))
/* diagonal[n] of that. It takes as long, but no n^2 numbers. */
AD_INLINE ad_status ad_real_hessian_diagonal(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                             double *diagonal AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_hessian_diagonal,
                  (ad_tape tape, ad_real y, int64_t n, const ad_real *x, double *diagonal),
                  (tape, y, n, x, diagonal))

/* Writes the program and its adjoint as one file of C99 that needs <math.h> alone and is compiled
 * without this library:
 *
 *     const char *NAME(const double *x, double *y, double *work);
 *     const char *NAME_adjoint(const double *x, const double *y_bar, double *x_bar, double *work);
 *
 * y[NAME_results] of x[NAME_inputs], and x_bar = y_bar^T (dy/dx); work[NAME_work] is the caller's,
 * of any numbers. They use no other memory, so threads may call them with a work each. Both return
 * NULL; or, where something that the program's code asked of values has another answer for this x
 * (as for ad_tape_replay; flags too), its source line, and the results are NaN.
 *
 * What repeats is a loop again, also in rounds of other loops: a file is as long as the code that
 * was recorded, with a number for each round where constants differ, or operands go on unevenly.
 * Comments name source lines. Leaves that are not among x[n] have their newest values. y[m] are as
 * for ad_real_vjp. name: an identifier of at most 63 letters, which all names begin with.
 *
 * Adjoints agree with the tape's to rounding. The call takes some 30 bytes of memory and 0.3 us for
 * each step on the tape, and 500 bytes for each that is written. The file is flushed. Errors, after
 * which the file may have a part: AD_ERROR_STATE (no program: tensors, fused loops and other
 * records cannot be in one; a file that refuses is so in the thread's error alone),
 * AD_ERROR_ARGUMENT (a null pointer, a negative number, no identifier, x[i] named twice),
 * AD_ERROR_HANDLE (as ad_real_vjp), AD_ERROR_LIMIT (more than 500 million values that are stored),
 * AD_ERROR_MEMORY. */
AD_INLINE ad_status ad_tape_write_c(FILE *file, ad_tape tape, const char *name, int64_t m,
                                    const ad_real *y, int64_t n, const ad_real *x,
                                    int flags AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_write_c,
         (FILE * file, ad_tape tape, const char *name, int64_t m, const ad_real *y, int64_t n,
          const ad_real *x, int flags),
         (file, tape, name, m, y, n, x, flags))

#if AD_LINE_MACROS
#define ad_tape_write_c(...) ad_tape_write_c_at(__VA_ARGS__, __LINE__)
#define ad_tape_program_begin(...) ad_tape_program_begin_at(__VA_ARGS__, __LINE__)
#define ad_tape_program_end(...) ad_tape_program_end_at(__VA_ARGS__, __LINE__)
#define ad_tape_replay(...) ad_tape_replay_at(__VA_ARGS__, __LINE__)
#define ad_real_update(...) ad_real_update_at(__VA_ARGS__, __LINE__)
#define ad_real_jvp(...) ad_real_jvp_at(__VA_ARGS__, __LINE__)
#define ad_real_vjp(...) ad_real_vjp_at(__VA_ARGS__, __LINE__)
#define ad_real_hvp(...) ad_real_hvp_at(__VA_ARGS__, __LINE__)
#define ad_real_hessian(...) ad_real_hessian_at(__VA_ARGS__, __LINE__)
#define ad_real_hessian_diagonal(...) ad_real_hessian_diagonal_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
