/* tape_scope.h: named parts of the program, nested in each thread, and what they are charged.
 *
 * Scopes are of threads, not of tapes: every row made while a thread is in one belongs to it. The
 * tree is the process's and stays for good; counters belong to an observation. A failure to
 * allocate loses the scope, never the computation.
 *
 * Invariant: a node is written by one thread at a time; time is charged at every begin and end to
 * the scope that the thread was in until then, so that nothing is counted twice or left out.
 */
#ifndef TAPE_SCOPE_H
#define TAPE_SCOPE_H

#include "tape_hook.h"

/* The calling thread's scope, 0: none; what it has recorded, and the ticks of its sweeps, while
 * observed, ever. */
extern _Thread_local uint32_t tape_scope_now __attribute__((tls_model("initial-exec")));
extern _Thread_local uint64_t tape_scope_records __attribute__((tls_model("initial-exec")));
extern _Thread_local uint64_t tape_scope_sweeps __attribute__((tls_model("initial-exec")));

/* While what runs is part of a sweep though the user's code runs: its time is the sweep's; and how
 * much of a sweep's time has been charged so. */
extern _Thread_local bool tape_scope_again __attribute__((tls_model("initial-exec")));
extern _Thread_local uint64_t tape_scope_charged __attribute__((tls_model("initial-exec")));

/* Ticks that counting took by itself, ever, in the calling thread: they are no scope's, and no
 * sweep's. */
extern _Thread_local uint64_t tape_scope_own __attribute__((tls_model("initial-exec")));

/* A sweep of so many ticks ends. */
static inline void tape_scope_swept(uint64_t ticks)
{
    tape_scope_sweeps += ticks - tape_scope_charged;
    tape_scope_charged = 0;
}

struct tape_scope_keys {
    uint32_t n; /* at most TAPE_SCOPE_KEYS */
    const char *const *key;
    const int64_t *value;
};

/* Begins a scope within the thread's present one; strings are copied. number: what the end of this
 * one will give, if it is a call; 0: it is a block's. Returns the depth, from 1, or 0: nothing
 * observes, or there is no memory. */
uint32_t tape_scope_begin(const char *name, struct tape_scope_keys keys, uint32_t number);

/* Until the end with the number that this returns, the thread, within a sweep, does again what it
 * did in a scope, and is in that scope. */
uint32_t tape_scope_again_begin(uint32_t scope);
void tape_scope_again_end(uint32_t depth);

/* How many the thread is in. */
uint32_t tape_scope_depth(void);

/* Why an end is no end of the scope begun last. name: of the one that stands in the way. */
struct tape_scope_fault {
    enum { TAPE_SCOPE_FINE, TAPE_SCOPE_LEFT_OPEN, TAPE_SCOPE_IN_BLOCK } what;
    const char *name;
};

/* Ends the scope of this depth, and those within it, which is a fault. */
struct tape_scope_fault tape_scope_end(uint32_t depth);
/* The same for the scope that was begun with this number, if there is one. */
struct tape_scope_fault tape_scope_end_number(uint32_t number);

/* An expectation of the place `pc`, passed once more. */
void tape_scope_expect(uintptr_t pc, uint32_t line, enum tape_expected kind, double bound);

/* Charges the calling thread's scope what has passed until now. */
void tape_scope_settle(void);
/* An observation begins: counters are zero, and the observer is told where they are. */
void tape_scope_observe(struct tape_hook *hook);
/* What is known of steps; written by ad_profile.c alone, under its lock, relaxed. */
struct tape_steps *tape_scope_steps(void);
/* In the child of a fork: no other thread exists here. */
void tape_scope_forget(void);

#endif
