/* unwind.h: the return addresses on the calling thread's stack, from a call in the user's code
 * outwards. docs/explanation/unwind.md explains how.
 *
 * Never in a signal handler: libunwind takes locks where it sees code for the first time.
 */
#ifndef UNWIND_H
#define UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNWIND_SPARE = 32, UNWIND_DEPTH = 1025, UNWIND_FOLLOWED = 1 };

/* A stack frame: the registers of a function while it waits for a call to return to pc. */
struct unwind_frame {
    uintptr_t pc, sp, fp;
    uintptr_t fp_at; /* where the frame pointer was saved by what it called; 0: it is the same; or
                      * UNWIND_FOLLOWED: found along pointers */
    bool uses_fp;    /* to find its caller */
    bool needs_fp;   /* so does it, or one of its callers that has the same */
};

/* A word on the stack, and what it holds. */
struct unwind_held {
    uintptr_t at, word;
};

/* The stack that a thread had last: frames from `first` to before `end`, the innermost first. The
 * room in front is for frames further in. The caller keeps one for each thread, zeroed at first. */
struct unwind_stack {
    uint32_t first, end;
    uint32_t life;
    uint32_t named; /* name[i] of frames from here outwards is what the caller called the stack from
                     * frame i outwards; the caller names the frames further in */
    bool whole;     /* the last frame is the outermost */
    uint32_t n_held;  /* while these hold what they do, so do all frames outwards of the first; 0:
                      * that is not known */
    uint32_t n_outer; /* the first of them, so of the second */
    struct unwind_frame frame[UNWIND_SPARE + UNWIND_DEPTH];
    struct unwind_held held[2 * (UNWIND_SPARE + UNWIND_DEPTH)];
    uint32_t name[UNWIND_SPARE + UNWIND_DEPTH];
};

/* Makes `stack` the present one: at most n return addresses (UNWIND_DEPTH), or one more. The first
 * is `site`, each other one the caller of the one before. Returns how many: fewer than n where the
 * stack ends; 0: some code on the way is not known, so unwind_by_cursor must be asked. Fast; keeps
 * errno. */
size_t unwind_along(uintptr_t site, size_t n, struct unwind_stack *stack);
/* Fills `frame` with up to n of them by libunwind's cursor, and makes the code known. Returns how
 * many, 0 where the site is not found. Any code, by its unwind tables. Keeps errno. */
size_t unwind_by_cursor(uintptr_t site, uintptr_t *frame, size_t n);
/* The same along frame pointers, within the limits of the thread's stack: the caller of a function
 * that was compiled without them is left out. */
size_t unwind_by_frame_pointers(uintptr_t site, uintptr_t *frame, size_t n);

/* A function that was interrupted, or waits for a call to return to pc, with a copy of the words
 * on its stack. */
struct unwind_copy {
    uintptr_t pc, at, fp; /* program counter, stack pointer, frame pointer */
    bool is_return;       /* pc is a return address */
    bool fp_known;
    uintptr_t sp; /* where the first of the words lay */
    const uintptr_t *word;
    size_t n_words;
};

/* Goes to the function's caller, by unwind tables; false: it is not known, or beyond the words.
 * Of any thread's stack, but not in a signal handler: it takes the loader's lock. x86-64 alone. */
bool unwind_caller(struct unwind_copy *copy);

/* Opens what libunwind opens with the first call; its numbers are beyond the program's own. */
void unwind_prime(void);
/* Around fork(). */
void unwind_before_fork(void);
void unwind_after_fork(void);
/* Code was unloaded: other code may come in its place, so all rules are forgotten. */
void unwind_forget(void);

#endif
