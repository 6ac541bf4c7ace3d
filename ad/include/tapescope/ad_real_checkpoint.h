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
AD_INLINE ad_status ad_real_checkpoint(ad_tape tape, ad_real_checkpoint_function *function,
                                       void *payload, int64_t n_in, const ad_real *in,
                                       int64_t n_out, ad_real *out AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_real_checkpoint,
         (ad_tape tape, ad_real_checkpoint_function *function, void *payload, int64_t n_in,
          const ad_real *in, int64_t n_out, ad_real *out),
         (tape, function, payload, n_in, in, n_out, out))

/* One step of a loop: sets out[n_out], the state behind step i, from in[n_in], whose first n_out
 * are the state before it; the others are the same in each step. True: a further step may follow.
 * Otherwise as ad_real_checkpoint_function. */
typedef bool ad_real_checkpoint_step(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in,
                                     int64_t n_out, ad_real *out, void *payload);

/* Calls step(tape, i, n_in, in, n_out, out, payload) for i = 0, ..., n - 1, and stores some of the
 * states on the way; sweeps compute the others again, and record few steps at a time:
 *
 *     static bool lorenz(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
 *                        ad_real *out, void *payload);
 *
 *     ad_real u[6] = {x, y, z, sigma, rho, beta};
 *     ad_real_checkpoint_loop(tape, 10000, lorenz, NULL, 6, u, 3, u, NULL);
 *
 * budget->bytes: what the stored states, 8 bytes a number and 16 each, and the steps that are
 * recorded at once, with their adjoints, may take of the tape. From it follow how many steps are
 * recorded at once, and how many states are stored, such that the fewest steps are computed again.
 * 0: the least bytes with which no step is computed more than once again, about 2 sqrt(n b s),
 * where b are the bytes of a step and s those of a state. For b the first step is called once more,
 * recording. budget->states: so many states c instead, and steps one by one. At most 1 GiB of
 * states are stored; the others are computed again.
 *
 * The schedule is the binomial one (A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Trans.
 * Math. Softw. 26, 2000, doi 10.1145/347837.347846): of n steps with c states a sweep computes
 * r n - C(c + r, c + 1) again, where r is the least number with n <= C(c + r, c), which are the
 * fewest possible. The last step is recorded at once. A second sweep of the same recording has
 * n - 1 steps more to compute.
 *
 * budget->directory, budget->disk_bytes: a file for states, as ad_checkpoint_loop says; 8 bytes a
 * number.
 *
 * n = AD_UNTIL_LAST: the loop ends with the first step that returns false, such as by a number that
 * it reads (ad_real_value). In a sweep as many steps are computed, that one too. Which states are
 * stored: Q. Wang, P. Moin, G. Iaccarino, SIAM J. Sci. Comput. 31, 2009, doi 10.1137/080727890.
 * With c states no step is computed more often than r times again, by the least r with
 * n + 1 <= C(c + r, c), which is the least possible; their sum is the least as well up to r = 2 (P.
 * Stumm, A. Walther, SIAM J. Sci. Comput. 32, 2010, doi 10.1137/080742439), and up to 1.42 times as
 * much beyond. budget->bytes: half of them are for states, which the loop takes at once; the steps
 * that are recorded at once double in number up to the other half, before one is computed twice
 * again. No budget: 128 states, and as many bytes of steps.
 *
 * in[n_in] and out[n_out] may be one array; n_out <= n_in. `payload` and the function are as for
 * ad_real_checkpoint, as is what the step may do. Gradients are those without checkpoints, bit for
 * bit, where no step returns one number twice. Where all of in[] are constants, or under no_grad,
 * each step is called once, and nothing is stored. n = 0: out[] is in[].
 *
 * Errors, which leave the tape as it was and out[] NaN: those of ad_real_checkpoint;
 * AD_ERROR_ARGUMENT (n is another negative number, n_out > n_in, bytes are less than one step
 * takes); AD_ERROR_LIMIT (2^40 steps); AD_ERROR_STATE (a step before the last of n returned false,
 * one left a no_grad open); AD_ERROR_FILE as for ad_checkpoint_loop. A sweep in which a step has
 * other results than before fails with AD_ERROR_STATE.
 *
 * A profile has what sweeps compute again as recomputation: of the steps that they record on the
 * steps' own lines, of the others, which record nothing, on the line of this call. */
AD_INLINE ad_status ad_real_checkpoint_loop(ad_tape tape, int64_t n, ad_real_checkpoint_step *step,
                                            void *payload, int64_t n_in, const ad_real *in,
                                            int64_t n_out, ad_real *out,
                                            const ad_checkpoint_budget *budget AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_real_checkpoint_loop,
         (ad_tape tape, int64_t n, ad_real_checkpoint_step *step, void *payload, int64_t n_in,
          const ad_real *in, int64_t n_out, ad_real *out, const ad_checkpoint_budget *budget),
         (tape, n, step, payload, n_in, in, n_out, out, budget))

#if AD_LINE_MACROS
#define ad_real_checkpoint(...) ad_real_checkpoint_at(__VA_ARGS__, __LINE__)
#define ad_real_checkpoint_loop(...) ad_real_checkpoint_loop_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
