/* collect_unwind.h: the return addresses on the calling thread's stack, from a call in the user's
 * code outwards.
 *
 * Never in a signal handler: libunwind takes locks where it sees code for the first time.
 */
#ifndef COLLECT_UNWIND_H
#define COLLECT_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROF_TRAIL_SPARE = 32, PROF_TRAIL_DEPTH = 1025, PROF_PLACE_FOLLOWED = 1 };

/* What a function in the user's code has while it waits for a call to return to pc. */
struct collect_place {
    uintptr_t pc, sp, fp;
    uintptr_t fp_at; /* where the frame pointer was saved by what it called; 0: it is the same; or
                      * PROF_PLACE_FOLLOWED: found along pointers */
    bool uses_fp;    /* to find its caller */
    bool needs_fp;   /* so does it, or one of its callers that has the same */
};

/* The last stack of a thread, which keeps it, zeroed at first: places from `first` to before `end`,
 * the innermost first, behind some room for further ones. */
struct collect_trail {
    uint32_t first, end;
    uint32_t life;
    uint32_t named; /* from here outwards `name` is what the caller gave the stack from there; it
                     * names what lies further in */
    bool whole;     /* the last is the outermost of the stack */
    struct collect_place place[PROF_TRAIL_SPARE + PROF_TRAIL_DEPTH];
    uint32_t name[PROF_TRAIL_SPARE + PROF_TRAIL_DEPTH];
};

/* Makes the trail that of the present stack: at most n return addresses (PROF_TRAIL_DEPTH), or one
 * more, the first of them `site`, each followed by that of its caller. Returns how many: fewer than
 * n where the stack ends; 0: not by what is known of the code. Fast; keeps errno. */
size_t collect_unwind_along(uintptr_t site, size_t n, struct collect_trail *trail);
/* Fills `frame` with up to n of them, and makes the code known. Returns how many, 0 where the site
 * is not found. Any code, by its unwind tables. Keeps errno. */
size_t collect_unwind(uintptr_t site, uintptr_t *frame, size_t n);
/* The same along frame pointers, within the limits of the thread's stack: the caller of a function
 * that was compiled without them is left out. */
size_t collect_unwind_fp(uintptr_t site, uintptr_t *frame, size_t n);

/* Makes what the first call makes. */
void collect_unwind_prime(void);
/* Around fork(). */
void collect_unwind_before_fork(void);
void collect_unwind_after_fork(void);
/* Code was unloaded: what is known of it may be wrong of what comes in its place. */
void collect_unwind_forget(void);

#endif
