/* common_forked.h: a measurement in a process of its own.
 *
 * Invariant: what was measured before leaves nothing behind, so that memory is as it is in a
 * process that begins.
 */
#ifndef COMMON_FORKED_H
#define COMMON_FORKED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FORKED_MAX_FIGURES = 16 };

/* Calls work in a child of this process and waits; n figures come back. False if work returned it,
 * or the child ended otherwise, which is then told on standard error. */
bool forked(bool (*work)(void *context, double *figures), void *context, int n, double *figures);

#ifdef __cplusplus
}
#endif

#endif
