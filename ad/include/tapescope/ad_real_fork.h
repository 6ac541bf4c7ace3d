/* ad_real_fork.h: parts of a recording that other threads make. Included by ad_real.h.
 *
 *     ad_tape part[4];
 *     ad_real y[4], sum;
 *     ad_tape_fork(tape, 4, part);
 *     // in four threads, k = 0...3:
 *         ad_tape_record_begin(part[k]);                     // the thread takes part[k]
 *         y[k] = model(x, k);                           // x: recorded on `tape` before the fork
 *         ad_tape_record_end(part[k]);                       // and gives it up
 *     // in the tape's own thread, when they are done:
 *     for (int k = 0; k < 4; k++)
 *         ad_tape_join(tape, part[k], 1, &y[k]);        // y[k] is a value of `tape` now
 *     ad_set(&sum, ad_real_add(ad_real_add(y[0], y[1]), ad_real_add(y[2], y[3])));
 *     ad_real_backward(tape, sum);                      // sweeps all of it
 */
#ifndef TAPESCOPE_AD_REAL_FORK_H
#define TAPESCOPE_AD_REAL_FORK_H

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes n forks of a tape into child[n]: tapes on which statements may use what is on the parent
 * now, and results of their own. A fork belongs to no thread until one begins to record on it
 * (ad_tape_record_begin), and again from ad_tape_record_end on. Forks share nothing that is
 * written, with each other or the parent, so the parent may be recorded on meanwhile. A fork
 * refuses values that were recorded on the parent after the fork, or on another fork. A fork has no
 * leaves and is not swept alone. Rewound or reset, it is as when it was made. It may be forked in
 * its turn. Under ad_tape_no_grad_begin of the parent its results are constants. A fork is joined
 * or destroyed; while it belongs to no thread, any thread may destroy it. Parent and forks may be
 * destroyed in any order. An allocator of the parent's is called by the threads of its forks. Each
 * fork may hand out an equal part of the bytes that the parent's budget has left. Errors, after
 * which child[n] are zero: AD_ERROR_MEMORY, AD_ERROR_LIMIT (65 535 tapes at once),
 * AD_ERROR_ARGUMENT. */
AD_INLINE ad_status ad_tape_fork(ad_tape parent, int n, ad_tape *child AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_fork, (ad_tape parent, int n, ad_tape *child), (parent, n, child))

/* y[m] are results recorded on the fork `child` (or constants, or values of the parent); they
 * become values of the parent, in place. Called by the parent's thread, while the fork belongs to
 * no thread. The child is used up: its statements belong to the parent, count against its budget,
 * and are dropped by its rewind, reset or destruction. A sweep of the parent goes through them with
 * adjoints of their own (8 bytes for every index from the lowest of the parent's that the child
 * names), several forks at once if they were joined one right after another and ad_set_threads
 * allows it. These are then added in the order of the joins, the last one first: the gradient does
 * not depend, bit by bit, on the number of threads, nor on their speed. Errors: what failed on the
 * fork is the parent's error now; AD_ERROR_STATE where the parent was reset or rewound behind the
 * fork; AD_ERROR_HANDLE where a y[i] is no value of the fork; AD_ERROR_MEMORY; AD_ERROR_LIMIT. y[m]
 * are constants then, and the child is used up all the same. The child and y stay as they were
 * after AD_ERROR_ARGUMENT, AD_ERROR_THREAD or AD_ERROR_STATE (it is recorded on), AD_ERROR_TAPE (it
 * is no fork of this tape), or if `child` is no tape. */
AD_INLINE ad_status ad_tape_join(ad_tape parent, ad_tape child, int64_t m,
                                 ad_real *y AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_join, (ad_tape parent, ad_tape child, int64_t m, ad_real *y),
         (parent, child, m, y))

#if AD_LINE_MACROS
#define ad_tape_fork(...) ad_tape_fork_at(__VA_ARGS__, __LINE__)
#define ad_tape_join(...) ad_tape_join_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
