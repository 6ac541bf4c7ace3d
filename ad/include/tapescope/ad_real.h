/* ad_real.h: real numbers that are recorded statement by statement; included by ad.h's users who
 * differentiate code over double.
 *
 *     ad_real x[2], y;
 *     ad_real_leaves(tape, 2, (double[]){0.5, 2}, x);                  // variables
 *     ad_set(&y, ad_real_mul(x[0], ad_real_sin(x[1])));                // one statement, one record
 *     ad_set(&y, ad_real_add(ad_real_square(y), 3));                   // numbers mix
 *     ad_status status = ad_real_backward(tape, y);                    // sweeps
 *     double g = ad_real_gradient(tape, x[0]);                         // reads dy/dx[0]
 *
 * A statement goes to the tape on which the calling thread records: that of its first leaf, or of
 * ad_tape_record_begin. A statement of constants alone records nothing. It costs 12 bytes an
 * operand and 4 more, 8 less for one whose derivative is always 1 or -1 (up to two in a formula);
 * the same operand twice counts once.
 *
 * An ad_real is a plain struct, ad_real_of(3) a constant. It belongs to its tape and thread until a
 * reset or a rewind drops it. One that was dropped, that is of another tape, or that was not set is
 * refused, in every build. Code that defines AD_REAL_CHECKED as 0 before this header does not check
 * operands of statements.
 *
 * Errors of statements are kept in the tape, like those of ops, and sweeps return them. The result
 * is a poisoned number then: its value is NaN, and whatever it is given to (a statement, a fused
 * loop, a sweep, a gradient) fails by the first failure and its line, on any tape, also after
 * ad_tape_clear_error. A statement on a thread that records on no tape fails too: its failure is
 * the thread's error, and becomes that of the operand's tape at the next call with its handle.
 */
#ifndef TAPESCOPE_AD_REAL_H
#define TAPESCOPE_AD_REAL_H

#include <tapescope/ad_real_checkpoint.h>
#include <tapescope/ad_real_expression.h>
#include <tapescope/ad_real_fork.h>
#include <tapescope/ad_real_functions.h>
#include <tapescope/ad_real_fused_loops.h>
#include <tapescope/ad_real_preaccumulate.h>
#include <tapescope/ad_real_program.h>
#include <tapescope/ad_sparse.h>

/* Records a formula (or number) as one statement and gives its result.
 *
 * ad_set(y, e): *y = the formula e; y: pointer to ad_real, and nothing else compiles. An ad_real is
 * copied without a record.
 *
 * ad_real_value(x): the value of an ad_real, of a formula or of a number as double. */
#ifdef __cplusplus
template <class E> AD_INLINE ad_real ad_real_of(const E &e, unsigned ad_line_ = __builtin_LINE())
{
    return ad_statement_(ad_kept_(e), AD_CALL_SITE_);
}

template <class E>
AD_INLINE void ad_set(ad_real *y, const E &e, unsigned ad_line_ = __builtin_LINE())
{
    *y = ad_statement_(ad_kept_(e), AD_CALL_SITE_);
}

template <class E> AD_INLINE double ad_real_value(const E &e)
{
#if AD_REAL_PROGRAM
    return ad_program_ask_(AD_PROGRAM_read_, ad_lift_(e), AD_STATEMENT_SITE_);
#else
    return ad_lift_(e).value;
#endif
}
#else
#define ad_real_of(e) AD_OF_RESULT_(AD_RECORD_, , e, __COUNTER__)
#define ad_set(y, e) ((void)(*AD_TARGET_(y) = AD_OF_RESULT_(AD_RECORD_, , e, __COUNTER__)))
#define ad_real_value(x) AD_OF_ONE_(AD_VALUE_OF_, , x, __COUNTER__)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, until ad_tape_record_end, the calling thread's statements are recorded on `tape`.
 * After that they go to the tape that was recorded on before. Needed only where a thread uses
 * several tapes. Errors: AD_ERROR_STATE where the tape is being recorded on already, under
 * another. */
AD_INLINE ad_status ad_tape_record_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_record_begin, (ad_tape tape), (tape))
/* Ends what the innermost ad_tape_record_begin of the thread has begun. */
AD_INLINE ad_status ad_tape_record_end(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_record_end, (ad_tape tape), (tape))

/* n variables with these values, whose gradients are wanted; the values are copied. Begins to
 * record if the thread records on no tape. If it fails x[n] are poisoned,
 * unless n is negative or beyond 2^32. Errors: AD_ERROR_MEMORY,
 * AD_ERROR_STATE (the thread records on another tape), AD_ERROR_LIMIT (2^32 - 2 indices),
 * AD_ERROR_ARGUMENT. */
AD_INLINE ad_status ad_real_leaves(ad_tape tape, int64_t n, const double *values,
                                   ad_real *x AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_real_leaves, (ad_tape tape, int64_t n, const double *values, ad_real *x),
         (tape, n, values, x))
/* One of them. */
AD_INLINE ad_real ad_real_leaf(ad_tape tape, double value AD_LINE_PARAMETER_);
AD_SITED(ad_real, ad_real_leaf, (ad_tape tape, double value), (tape, value))

/* From and to tensors: ad_reals_of_tensor, ad_tensor_of_reals. */
#include <tapescope/ad_real_tensor.h>

/* Sweeps backwards from y and adds dy/dx to the gradient of every leaf x. Returns the tape's sticky
 * error if there is one. Errors: AD_ERROR_STATE where y does not depend on a leaf, while a gradient
 * check runs, or where what a tensor behind y reads was changed or released (see ad_leaf_changed);
 * AD_ERROR_HANDLE where y is no value of this tape; AD_ERROR_MEMORY: the sweep needs 8 bytes a
 * statement. */
AD_INLINE ad_status ad_real_backward(ad_tape tape, ad_real y AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_backward, (ad_tape tape, ad_real y), (tape, y))
/* The same from y[n] with a seed for each: adds seed^T dy/dx. y[i] that are constants add
 * nothing. */
AD_INLINE ad_status ad_real_backward_seeds(ad_tape tape, int64_t n, const ad_real *y,
                                           const double *seed AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_backward_seeds,
                  (ad_tape tape, int64_t n, const ad_real *y, const double *seed),
                  (tape, n, y, seed))

/* The gradient of leaf x that sweeps have added up; NaN on error. AD_ERROR_STATE where there was no
 * sweep since the tape was made, reset or rewound, or x is no leaf. ad_tape_zero_gradients
 * clears. */
AD_INLINE double ad_real_gradient(ad_tape tape, ad_real x AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(double, ad_real_gradient, (ad_tape tape, ad_real x), (tape, x))
/* The same of n leaves into gradient[n]; after an error all are NaN. */
AD_INLINE ad_status ad_real_gradients(ad_tape tape, int64_t n, const ad_real *x,
                                      double *gradient AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_gradients,
                  (ad_tape tape, int64_t n, const ad_real *x, double *gradient),
                  (tape, n, x, gradient))

/* Overwrites jacobian [m,n], row-major, with dy[i]/dx[j]; x are leaves or what was computed from
 * them. A y[i] that is a constant has zeros; after an error all is NaN. Where every y was recorded
 * before every x all is 0. A block of a larger matrix may be so, which is no error; but y and x may
 * have been swapped, and a warning says so (ad_on_log), once for each line that calls. Rows are
 * swept together, up to 8 at a time, or one by one where tensors may lie between x and y; gradients
 * stay as they are. A sweep needs 8 bytes a statement and row. Errors: those of ad_real_backward,
 * but while a gradient check runs AD_ERROR_STATE only where tensors may lie between;
 * AD_ERROR_HANDLE also where an x[j] is a constant. */
AD_INLINE ad_status ad_real_jacobian(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                     const ad_real *x, double *jacobian AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_real_jacobian,
                  (ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                   double *jacobian),
                  (tape, m, y, n, x, jacobian))

#if AD_LINE_MACROS
#define ad_tape_record_begin(...) ad_tape_record_begin_at(__VA_ARGS__, __LINE__)
#define ad_tape_record_end(...) ad_tape_record_end_at(__VA_ARGS__, __LINE__)
#define ad_real_leaves(...) ad_real_leaves_at(__VA_ARGS__, __LINE__)
#define ad_real_leaf(...) ad_real_leaf_at(__VA_ARGS__, __LINE__)
#define AD_EXTRA_1_(a, b, ...) b
#define AD_ON_TAPE_(name, ...)                                                                     \
    AD_IF_NO_MORE_(AD_NO_TAPE_, AD_WITH_LINE_, AD_EXTRA_1_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define AD_NO_TAPE_(name, ...)                                                                     \
    __extension__({                                                                                \
        _Static_assert(0, #name " takes the tape, too: " #name "(tape, " #__VA_ARGS__ ")");        \
        0;                                                                                         \
    })
#define ad_real_backward(...) AD_ON_TAPE_(ad_real_backward, __VA_ARGS__)
#define ad_real_backward_seeds(...) ad_real_backward_seeds_at(__VA_ARGS__, __LINE__)
#define ad_real_gradient(...) AD_ON_TAPE_(ad_real_gradient, __VA_ARGS__)
#define ad_real_gradients(...) ad_real_gradients_at(__VA_ARGS__, __LINE__)
#define ad_real_jacobian(...) ad_real_jacobian_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
