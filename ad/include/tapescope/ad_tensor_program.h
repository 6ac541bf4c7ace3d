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

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is recorded from now on is the program. The tape has no records yet; leaves and constants it
 * may have, and leaves and constants may be made later. What was computed before is constant: a
 * replay does not compute it. Errors: AD_ERROR_STATE (the tape has records: the message names the
 * line of the newest; the function of a checkpoint or of a gradient check runs). */
AD_SITED(ad_status, ad_tensor_program_begin, (ad_tape tape), (tape))

/* The program is complete. AD_ERROR_STATE, and there is no program, if none is being recorded, or
 * something in it cannot be computed again, whose line the message names: numbers of ad_real,
 * checkpoints, ad_root and ad_fixed_point, ad_dropout (which would draw the same again),
 * and a value that was read (ad_value, ad_item, ad_reals_of_tensor), since nobody knows what was
 * done with it. Sweeps come before or after, but for ad_create_graph, whose derivatives are part of
 * the program. AD_ERROR_MEMORY. What was recorded stays in each case. */
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
AD_SITED_MUST_USE(ad_status, ad_tensor_replay,
                  (ad_tape tape, int n, const ad_tensor *x, const void *const *arrays),
                  (tape, n, x, arrays))

#if AD_LINE_MACROS
#define ad_tensor_program_begin(...) ad_tensor_program_begin_at(__VA_ARGS__, __LINE__)
#define ad_tensor_program_end(...) ad_tensor_program_end_at(__VA_ARGS__, __LINE__)
#define ad_tensor_replay(...) ad_tensor_replay_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
