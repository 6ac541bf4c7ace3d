/* ad_checkpoint.h: parts of a computation that sweeps compute again instead of keeping. Included by
 * ad.h.
 *
 *     static void block(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
 *                       void *payload)
 *     {
 *         const struct weights *w = payload;
 *         out[0] = ad_tanh(ad_linear(in[0], w->w, w->b));      // any ops, any functions
 *     }
 *
 *     ad_checkpoint(tape, block, &weights, 1, &h, 1, &h);      // keeps h before and h after
 *
 * A chain of n equal blocks keeps n times a block's values; in segments of sqrt(n) blocks, each a
 * checkpoint, it keeps sqrt(n) results and, in a sweep, the values of one segment. The price is
 * each block's forward computation once more. Checkpoints within checkpoints keep less yet, down
 * to about log(n) results at log(n) computations of each block (A. Griewank, Achieving logarithmic
 * growth of temporal and spatial complexity in reverse automatic differentiation, Optimization
 * Methods and Software 1, 1992, doi 10.1080/10556789208805505).
 */
#ifndef TAPESCOPE_AD_CHECKPOINT_H
#define TAPESCOPE_AD_CHECKPOINT_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of tensors: sets out[n_out] from in[n_in], which are on `tape`. It may read any other
 * tensor of the tape as well, by handles in its payload: their gradients are as complete as those
 * of in[]. It is called immediately, and again in each sweep that comes to it. Each call must do
 * the same on the same numbers: the same ops in the same order, the same attributes and constants.
 */
typedef void ad_checkpoint_function(ad_tape tape, int n_in, const ad_tensor *in, int n_out,
                                    ad_tensor *out, void *payload);

/* Calls function(tape, n_in, in, n_out, out, payload) and keeps only its results. Whatever else it
 * made, and every handle of that, is gone afterwards. The older tensors that it was given or has
 * read stay until the sweep, like the operands of an op that reads them all. A sweep that comes to
 * out[] calls it again, recording behind everything else, sweeps what it recorded, and drops it;
 * values, gradients and their bits are those without a checkpoint. Under no_grad there is nothing
 * to sweep, and the function is called only this once.
 *
 * in[n_in] and out[n_out], each at most 64, may be the same array; n_in may be 0. out[i] is always
 * a tensor of its own: where the function returns an operand, a view, or one tensor twice, it is a
 * copy. `payload` and what it points to must stay as they are until the tape is rewound, reset or
 * destroyed, or no sweep is to come any more.
 *
 * The function may use frames, marks of its own, no_grad, and further checkpoints. Not possible in
 * it, with AD_ERROR_STATE in the tape: leaves; scalar statements that depend on variables
 * (ad_real.h); sweeps and gradients; what would change or drop what is older, such as a reset.
 *
 * Errors, which leave the tape as it was and out[] as results of an op that failed: those of the
 * function itself, by its own line; AD_ERROR_ARGUMENT, AD_ERROR_HANDLE, AD_ERROR_TAPE (of in[], or
 * of out[] after the call), AD_ERROR_MEMORY, AD_ERROR_STATE (a fork), AD_ERROR_LIMIT (65 535 older
 * tensors read). A sweep whose call of the function does not do what the first one did fails with
 * AD_ERROR_STATE before it has swept that part; arrays of the user's that were read are compared
 * as ad_leaf_changed says.
 *
 * ad_create_graph calls the functions that lie between y and x as a sweep does, and what they
 * record stays on the tape, as if they had been called without a checkpoint.
 *
 * A profile has the second computation as recomputation of the function's own lines. */
AD_INLINE ad_status ad_checkpoint(ad_tape tape, ad_checkpoint_function *function, void *payload,
                                  int n_in, const ad_tensor *in, int n_out,
                                  ad_tensor *out AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_checkpoint,
         (ad_tape tape, ad_checkpoint_function *function, void *payload, int n_in,
          const ad_tensor *in, int n_out, ad_tensor *out),
         (tape, function, payload, n_in, in, n_out, out))

/* What a loop of checkpoints may take; NULL or zeros: what its function says. */
typedef struct ad_checkpoint_budget {
    uint64_t bytes; /* of stored states, and of the steps that are recorded at once */
    int64_t states; /* > 0: so many instead, that at the first step included; steps one by one */
    /* Not NULL: states are in a file without a name there too, which takes at most disk_bytes, or 0
     * for any number; `bytes` are of memory then. */
    const char *directory;
    uint64_t disk_bytes;
} ad_checkpoint_budget;

/* The n of a loop whose length its steps decide: it ends with the first one that returns false. */
#define AD_UNTIL_LAST INT64_MIN

/* One step of a loop: sets out[n_out], the state behind step i, from in[n_in], whose first n_out
 * are the state before it; the others are the same in each step. True: a further step may follow.
 * Otherwise as ad_checkpoint_function. */
typedef bool ad_checkpoint_step(ad_tape tape, int64_t i, int n_in, const ad_tensor *in, int n_out,
                                ad_tensor *out, void *payload);

/* Calls step(tape, i, n_in, in, n_out, out, payload) for i = 0, ..., n - 1, and stores some of the
 * states on the way; sweeps compute the others again, and record few steps at a time:
 *
 *     static bool cell(ad_tape tape, int64_t i, int n_in, const ad_tensor *in, int n_out,
 *                      ad_tensor *out, void *payload);
 *
 *     ad_checkpoint_loop(tape, 256, cell, &weights, 2, hc, 2, hc, NULL);
 *
 * budget->bytes: what the stored states, the bytes of their tensors and 24 each, and the steps that
 * are recorded at once may take of the tape; a step is taken to record what the first one computed.
 * 0: the least bytes with which no step is computed more than once again, about 2 sqrt(n b s),
 * where b are the bytes of a step and s those of a state. budget->states: so many states c instead,
 * and steps one by one. One more state is held meanwhile, and its adjoints. The schedule and its
 * source, how often steps are computed again, and the last step: as ad_real_checkpoint_loop says.
 *
 * Each out[k] has the shape and type of in[k]. in[] and out[] may be one array;
 * n_out <= n_in <= 64. `payload` and the function are as for ad_checkpoint, as is what the step may
 * do and read. Values, gradients and their bits are those without checkpoints where no step returns
 * one tensor twice. n = 0: out[] is in[].
 *
 * budget->directory: a folder in which the loop has a file for states, which no name shows and
 * which is closed when the recording is dropped: one descriptor a loop. budget->disk_bytes: what it
 * may take, of as many bytes as the tensors have and 8 a state; 0: what all states take. With
 * budget->bytes states are in memory as far as these go; else as many are in the file as it may
 * take. Of those in the file 24 bytes are in memory. Nothing is written through to the disk itself.
 *
 * n = AD_UNTIL_LAST: the loop ends with the first step that returns false, such as by a number that
 * it reads (ad_item). In a sweep as many steps are computed. What is stored then, and how often
 * steps are computed again: as ad_real_checkpoint_loop says.
 *
 * Errors, which leave the tape as it was and out[] as results of an op that failed: those of
 * ad_checkpoint; AD_ERROR_ARGUMENT (n is another negative number, n_out > n_in, bytes are less than
 * one step takes); AD_ERROR_SHAPE (an out[k] unlike in[k]); AD_ERROR_LIMIT (2^40 steps);
 * AD_ERROR_STATE (a step before the last of n returned false, one left a no_grad open). A sweep in
 * which a step does not do what it did before fails with AD_ERROR_STATE. AD_ERROR_FILE: the system
 * does not make, write or read the file of states, with the folder and the reason. A sweep may fail
 * so as well, and may be made again.
 *
 * ad_create_graph calls the steps that lie between y and x once more, and what they record stays.
 *
 * A profile has what sweeps compute again as recomputation of the steps' own lines. */
AD_INLINE ad_status ad_checkpoint_loop(ad_tape tape, int64_t n, ad_checkpoint_step *step,
                                       void *payload, int n_in, const ad_tensor *in, int n_out,
                                       ad_tensor *out,
                                       const ad_checkpoint_budget *budget AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_checkpoint_loop,
         (ad_tape tape, int64_t n, ad_checkpoint_step *step, void *payload, int n_in,
          const ad_tensor *in, int n_out, ad_tensor *out, const ad_checkpoint_budget *budget),
         (tape, n, step, payload, n_in, in, n_out, out, budget))

#if AD_LINE_MACROS
#define ad_checkpoint(...) ad_checkpoint_at(__VA_ARGS__, __LINE__)
#define ad_checkpoint_loop(...) ad_checkpoint_loop_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
