/* unwind_rules.h: the calling thread's stack, and the rules that lead from a frame to its caller.
 * docs/explanation/unwind.md has what each rule means.
 */
#ifndef UNWIND_RULES_H
#define UNWIND_RULES_H

#include "unwind.h"

/* Rules are learnt for this processor; on others libunwind's cursor is asked for each frame. */
#ifdef __x86_64__
enum { UNWIND_HAS_RULES = 1 };
#else
enum { UNWIND_HAS_RULES = 0 };
#endif

enum { UNWIND_OWN = 32 }; /* frames of the library's above a call in the user's code, at most */

/* Where the calling thread's stack lies; to 0: not known. */
extern _Thread_local struct unwind_bounds {
    uintptr_t from, to;
    bool asked;
} unwind_bounds __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A word at this address may be read. */
static inline bool unwind_on_stack(uintptr_t at)
{
    return at > unwind_bounds.from && at < unwind_bounds.to && unwind_bounds.to - at >= sizeof at &&
           at % sizeof at == 0;
}

static inline uintptr_t unwind_word(uintptr_t at)
{
    return *(const uintptr_t *)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* And so may it and the next one. */
static inline bool unwind_both_on_stack(uintptr_t at)
{
    return at > unwind_bounds.from && at < unwind_bounds.to &&
           unwind_bounds.to - at >= 2 * sizeof at && at % sizeof at == 0;
}

/* Follows the library's own frame pointers to the frame that returns to `site`. */
__attribute__((always_inline)) static inline bool unwind_find_site(uintptr_t site,
                                                                   struct unwind_frame *frame)
{
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    for (int i = 0; i < UNWIND_OWN; i++) {
        if (!unwind_both_on_stack(at))
            return false;
        const uintptr_t next = unwind_word(at);
        if (unwind_word(at + sizeof at) == site) {
            *frame = (struct unwind_frame){site, at + 2 * sizeof at, next, 0, true, true};
            return true;
        }
        if (next <= at)
            return false;
        at = next;
    }
    return false;
}

enum unwind_kind {
    UNWIND_UNKNOWN,
    UNWIND_OUTERMOST,
    UNWIND_BY_STACK_POINTER, /* the caller's stack begins so many words above this frame's */
    UNWIND_BY_FRAME_POINTER, /* two words above the frame pointer */
    UNWIND_BY_SAVED_POINTER, /* at the address kept below the frame pointer: an aligned stack */
    UNWIND_COMPLEX
};

/* In one word, so that it is read and written whole. */
struct unwind_rule {
    uint64_t kind : 3;
    uint64_t saved : 16; /* the frame pointer was saved so many words below the caller's stack; 0:
                          * it was not */
    uint64_t words : 21; /* UNWIND_BY_STACK_POINTER */
    uint64_t life : 24;  /* of what is known: others are forgotten */
};
_Static_assert(sizeof(struct unwind_rule) == sizeof(uint64_t), "a rule is one word");

/* The rule of a return address, from now on. */
void unwind_learn(uintptr_t pc, struct unwind_rule rule);
/* The time since code was last unloaded, as rules have it. */
uint32_t unwind_life(void);

enum unwind_going { UNWIND_GOES_ON, UNWIND_ENDS, UNWIND_FAILS };

/* The caller of a frame by the rule of its address; UNWIND_FAILS: no rule is known of it. */
enum unwind_going unwind_go_on(struct unwind_frame *frame, struct unwind_frame *caller,
                               uint32_t now);

#endif
