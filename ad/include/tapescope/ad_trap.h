/* ad_trap.h: tracing of numbers that are not finite to the line where they arose. Included by ad.h.
 */
#include <tapescope/ad.h> /* which includes this one where its types are there */

#ifndef TAPESCOPE_AD_TRAP_H
#define TAPESCOPE_AD_TRAP_H

#ifdef __cplusplus
extern "C" {
#endif

/* What ad_tape_trap looks for; may be combined by |. */
typedef enum ad_trap { AD_TRAP_OFF = 0, AD_TRAP_NAN = 1, AD_TRAP_INF = 2, AD_TRAP_ALL = 3 } ad_trap;

/* From now on the tape looks for numbers that are not finite: NaN, infinities, or both (`what`).
 * The first becomes the sticky error AD_ERROR_NONFINITE, by a message that names the line where it
 * arose: where operands were finite and the result is not.
 *
 *     log: value -inf of element [3] at f.c:12 in g
 *     leaf: value nan of element [0] (seen in operand 1 of log at f.c:12 in g) at f.c:9 in g
 *     matmul: adjoint inf of element [0,2] of operand 2 (b), backward, at f.c:20 in g
 *     statement: partial derivative inf by operand 1 at f.c:31 in h
 *
 * The tape checks the results of each op, recorded or not, and those of its operands that are the
 * user's arrays; values and partial derivatives of scalar statements; seeds; and in sweeps the
 * adjoints of each op's operands. A number that arose while nothing was checked is traced back to
 * its origin, as far as the buffers are still there. An op that fails so leaves nothing. A sweep
 * that fails so returns the error, and clears gradients like any that fails. Not checked are
 * constants that meet no leaf in statements, hidden ops within a pullback, and what is added up in
 * retained gradients and in the user's buffers.
 *
 * It may be switched at any time, and stays over resets, rewinds and frames. Infinities that are
 * meant, such as a mask of -inf before a softmax or the maximum of nothing, are passed over with
 * AD_TRAP_NAN. While it is on each op reads its results once more, and each statement costs some 40
 * ns and 72 bytes more; off, nothing. Errors: AD_ERROR_ARGUMENT (`what` is no ad_trap). */
AD_INLINE ad_status ad_tape_trap(ad_tape tape, int what AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_trap, (ad_tape tape, int what), (tape, what))

#ifdef __cplusplus
}
#endif

#endif
