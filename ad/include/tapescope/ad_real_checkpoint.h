/* ad_real_checkpoint.h: parts of a computation with numbers that sweeps compute again instead of
 * keeping. Included by ad_real.h.
 *
 *     static void steps(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
 *                       void *payload)
 *     {
 *         ad_real u[3] = {in[0], in[1], in[2]};
 *         for (int i = 0; i < 100; i++)
 *             lorenz(u, *(const double *)payload);           // any statements, any functions
 *         for (int k = 0; k < 3; k++)
 *             out[k] = u[k];
 *     }
 *
 *     for (int s = 0; s < 100; s++)
 *         ad_real_checkpoint(tape, steps, &h, 3, u, 3, u);   // keeps u before and u after
 *
 * N equal steps keep N times a step's statements; in segments of sqrt(N) steps, each a checkpoint,
 * they keep sqrt(N) states and, in a sweep, the statements of one segment. The price is each step's
 * forward computation once more (ad_checkpoint.h, which does the same for tensors, has the source).
 */
#ifndef TAPESCOPE_AD_REAL_CHECKPOINT_H
#define TAPESCOPE_AD_REAL_CHECKPOINT_H

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of numbers: sets out[n_out] from in[n_in]. It is called immediately, with constants,
 * and again in each sweep that comes to it, with variables. Each call must compute the same, bit by
 * bit. All variables that it depends on are among in[]; whatever else it reads must be doubles. */
typedef void ad_real_checkpoint_function(ad_tape tape, int64_t n_in, const ad_real *in,
                                         int64_t n_out, ad_real *out, void *payload);

/* Calls function(tape, n_in, in, n_out, out, payload) without recording its statements: they cost
 * what they cost in plain C. Kept are in[] (16 bytes each) and 112 bytes. A sweep that comes to
 * out[] calls the function again, recording behind everything else, sweeps that, and drops it.
 * Every out[] is a variable if any in[] is one. Gradients are those without a checkpoint, bit for
 * bit. Where all of in[] are constants, or under no_grad, the function is called only this once,
 * and nothing is kept.
 *
 * in[n_in] and out[n_out] may be one array. `payload` and what it points to must stay as they are
 * until the tape is rewound, reset or destroyed, or no sweep is to come any more. Begins to record
 * if the thread records on no tape. In the function the thread records on `tape`.
 *
 * The function may use everything that records statements or fused loops, marks of its own,
 * no_grad, and further checkpoints. Not possible in it, with AD_ERROR_STATE in the tape: a
 * statement of a variable that is not among in[]; leaves, bridges to tensors, sections, forks;
 * sweeps, gradients; what would change or drop what is older. Tensors are given by their elements
 * (ad_reals_of_tensor), before, and made of out[] (ad_tensor_of_reals), afterwards.
 *
 * Errors, which leave the tape as it was and out[] NaN: those of the function, by its own line;
 * AD_ERROR_ARGUMENT (a null pointer, a negative number, an out[i] that is not set), AD_ERROR_HANDLE
 * (an in[i] or out[i] that was dropped), AD_ERROR_MEMORY, AD_ERROR_LIMIT (2^27 numbers; indices),
 * AD_ERROR_STATE (a fork, a section, the thread records on another tape). A sweep whose call of the
 * function has other results than the first fails with AD_ERROR_STATE before it has swept that
 * part. ad_create_graph does not go through numbers.
 *
 * A profile has the second computation as recomputation. */
AD_SITED(ad_status, ad_real_checkpoint,
         (ad_tape tape, ad_real_checkpoint_function *function, void *payload, int64_t n_in,
          const ad_real *in, int64_t n_out, ad_real *out),
         (tape, function, payload, n_in, in, n_out, out))

#if AD_LINE_MACROS
#define ad_real_checkpoint(...) ad_real_checkpoint_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
