/* ad_tensor_program.h: programs of tensors: what was recorded once, computed again on other
 * numbers. Included by the user beside ad.h.
 *
 *     ad_tensor w = ad_leaf(tape, AD_F64, 2, shape, weights), x = ad_constant(…, batch[0]);
 *     ad_tensor_program_begin(tape);
 *     ad_tensor loss = model(w, x);                    // any ops
 *     ad_tensor_program_end(tape);
 *     for (int k = 0; k < n; k++) {
 *         ad_tensor_replay(tape, 1, &x, (const void *const[]){batch[k]});
 *         ad_backward(loss);                           // of the replay
 *         … ad_gradient(w, …), a step of `weights`, ad_tape_zero_gradients(tape)
 *     }
 *
 * A replay records nothing and asks for no memory: each op runs once more, into the tensors that it
 * made. It is the twin of ad_tape_replay (ad_real_program.h), which is for numbers.
 *
 * Between begin and end each op leaves a record, also where no gradient is needed, and each tensor
 * keeps its buffer after ad_release and ad_frame_end. A tape has one program. It is dropped by a
 * reset, and by a rewind to a mark from before its end.
 *
 * Threads: as for the tape.
 */
#ifndef TAPESCOPE_AD_TENSOR_PROGRAM_H
#define TAPESCOPE_AD_TENSOR_PROGRAM_H

#include <stdio.h>

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is recorded from now on is the program. The tape has no records yet; leaves and constants it
 * may have, and leaves and constants may be made later. What was computed before is constant: a
 * replay does not compute it. Errors: AD_ERROR_STATE (the tape has records: the message names the
 * line of the newest; the function of a checkpoint or of a gradient check runs). */
AD_INLINE ad_status ad_tensor_program_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tensor_program_begin, (ad_tape tape), (tape))

/* The program is complete. AD_ERROR_STATE, and there is no program, if none is being recorded, or
 * something in it cannot be computed again, whose line the message names: numbers of ad_real,
 * checkpoints, ad_root and ad_fixed_point, ad_dropout (which would draw the same again),
 * and a value that was read (ad_value, ad_item, ad_reals_of_tensor), since nobody knows what was
 * done with it. Sweeps come before or after, but for ad_create_graph, whose derivatives are part of
 * the program. AD_ERROR_MEMORY. What was recorded stays in each case. */
AD_INLINE ad_status ad_tensor_program_end(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tensor_program_end, (ad_tape tape), (tape))

/* Computes the program again. x[i], a leaf or a constant of the tape, reads arrays[i] from now on:
 * row-major, of x[i]'s shape and dtype, borrowed like that of ad_leaf and ad_constant; of an
 * ad_leaf_copy it is copied. All other leaves and constants are read as their arrays are now, which
 * may have been written to. n = 0: arrays and x may be NULL. Attributes of ops, and ad_scalar_f64
 * and the like, are those of the recording. Of an ad_custom the forward is called again.
 *
 * Afterwards handles of the program's tensors lead to the new values, and a sweep is of them, bit
 * for bit as after a new recording. Gradients stay as they are: sweeps add to them.
 *
 * In a profile each op's calls, time, flops and bytes moved are on the op's own line, as those of a
 * forward call; what is left is on the line of ad_tensor_replay. Callbacks of ad_on_record and
 * breaks are of recording, and not of replays.
 *
 * Errors: AD_ERROR_STATE (no program; something was recorded behind it, with its line: a rewind to
 * a mark from after the end drops that; a function of the user's runs), AD_ERROR_ARGUMENT (n, a
 * null pointer), AD_ERROR_HANDLE (x[i] is neither a leaf nor a constant), AD_ERROR_TAPE: nothing
 * was changed. AD_ERROR_VALUE (an op refuses the numbers, with its line), AD_ERROR_NONFINITE,
 * AD_ERROR_MEMORY (a budget that leaves no room for an op's workspace): some values are new, and
 * sweeps are refused until a replay ends well. */
AD_INLINE ad_status ad_tensor_replay(ad_tape tape, int n, const ad_tensor *x,
                                     const void *const *arrays AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_tensor_replay,
                  (ad_tape tape, int n, const ad_tensor *x, const void *const *arrays),
                  (tape, n, x, arrays))

/* Writes the program and its adjoint as one file of C99, which is linked with this library and
 * calls its kernels (ad_kernel.h), without a tape:
 *
 *     const char *NAME(const void *const *x, void *const *y, double *work);
 *     const char *NAME_adjoint(const void *const *x, void *const *y, const void *const *y_bar,
 *                              void *const *x_bar, double *work);
 *
 * x[k]: the array of input x[k]; y[k], y_bar[k], x_bar[k] likewise, row-major, of the shapes and
 * dtypes that the file's first lines name, and apart from each other. x_bar = the sum of y_bar[k]^T
 * (dy[k]/dx). x_bar[k] of a constant is not written, y_bar[k] of what no gradient comes from is not
 * read: they may be NULL; y of NAME_adjoint too. work[NAME_work], an enumerator, is the caller's,
 * of any numbers; all arrays between lie there, and nothing is allocated. So threads may call them,
 * with a work and results of their own. Both return NULL; or the op that refuses these numbers and
 * its source line, and each byte of the results is 0xff, which is NaN. An x_bar[k] that is NULL but
 * is written is named, and nothing is computed.
 *
 * Values and gradients are those of a replay and a sweep, bit for bit. Attributes, shapes, and
 * leaves and constants that are not among x[n] are those of the recording, as their arrays are now;
 * x[k] are leaves or constants of the tape. Where calls repeat, of the same line with arrays that
 * go on evenly, there is a loop. Comments name lines and ops.
 *
 * name: an identifier of at most 63 letters, which all names begin with. The call takes from the
 * tape what a sweep takes, and gives it back, and some 200 bytes of memory for each call of a
 * kernel. The file is flushed. Values and gradients on the tape stay as they are.
 *
 * Errors, after which the file may have a part: AD_ERROR_STATE (no program, or something was
 * recorded behind it; an ad_custom or an ad_on_adjoint, with its line; a file that refuses is so in
 * the thread's error alone), AD_ERROR_ARGUMENT (a null pointer, a negative number, no identifier, a
 * tensor named twice), AD_ERROR_HANDLE, AD_ERROR_LIMIT (more than 65 536 calls after loops were
 * found; more than 2^20 numbers of leaves and constants that are not among x; a workspace of more
 * than 16 GiB), AD_ERROR_MEMORY. */
AD_INLINE ad_status ad_tensor_write_c(FILE *file, ad_tape tape, const char *name, int m,
                                      const ad_tensor *y, int n,
                                      const ad_tensor *x AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tensor_write_c,
         (FILE * file, ad_tape tape, const char *name, int m, const ad_tensor *y, int n,
          const ad_tensor *x),
         (file, tape, name, m, y, n, x))

#if AD_LINE_MACROS
#define ad_tensor_write_c(...) ad_tensor_write_c_at(__VA_ARGS__, __LINE__)
#define ad_tensor_program_begin(...) ad_tensor_program_begin_at(__VA_ARGS__, __LINE__)
#define ad_tensor_program_end(...) ad_tensor_program_end_at(__VA_ARGS__, __LINE__)
#define ad_tensor_replay(...) ad_tensor_replay_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
