/* collect_unwind.h: the return addresses on the calling thread's stack, from a call in the user's
 * code outwards.
 *
 * May include: nothing of the project. Never in a signal handler: libunwind takes locks where it
 * sees code for the first time.
 */
#ifndef COLLECT_UNWIND_H
#define COLLECT_UNWIND_H

#include <stddef.h>
#include <stdint.h>

/* Fills `frame` with up to n return addresses, the first of them `site`, each followed by that of
 * its caller. Returns how many: fewer than n where the stack ends; 0 where the site is not found.
 * Keeps errno. Any code, by its unwind tables. */
size_t prof_unwind(uintptr_t site, uintptr_t *frame, size_t n);
/* The same along frame pointers, within the limits of the thread's stack: the caller of a function
 * that was compiled without them is left out. */
size_t prof_unwind_fp(uintptr_t site, uintptr_t *frame, size_t n);

/* Makes what the first call makes. */
void prof_unwind_prime(void);
/* Around fork(). */
void prof_unwind_before_fork(void);
void prof_unwind_after_fork(void);
/* Code was unloaded: what is known of it may be wrong of what comes in its place. */
void prof_unwind_forget(void);

#endif
