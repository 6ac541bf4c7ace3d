/* unwind_rules.c: the table of rules.
 *
 * How to come from a return address to its caller depends on the address alone, and nearly always
 * in one of four ways. What libunwind's cursor does (microseconds a frame) is noted as such a rule,
 * and from then on the rule is followed (nanoseconds). What no rule describes is left to the cursor
 * each time. unw_backtrace() has rules as well, but it never forgets them and follows them
 * anywhere: where a library was unloaded and another one came in its frame, it may read memory that
 * is not there. Here nothing is read beyond the thread's own stack, and all rules are forgotten
 * when something is unloaded.
 */
#include "unwind_rules.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <pthread.h>

enum { RULES = 1 << 15, MOST_RULES = RULES / 2 };

/* A slot keeps its address for good, its rule may be learnt anew. */
static struct slot {
    uintptr_t pc;
    uint64_t rule;
} slots[RULES];
static uint32_t n_rules;
static uint32_t life;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t rule_word(struct unwind_rule rule)
{
    union {
        struct unwind_rule rule;
        uint64_t word;
    } both = {.rule = rule};
    return both.word;
}

static struct unwind_rule rule_from(uint64_t word)
{
    union {
        uint64_t word;
        struct unwind_rule rule;
    } both = {.word = word};
    return both.rule;
}

/* The slot of an address, or the free one where it belongs. */
static struct slot *slot_find(uintptr_t pc)
{
    uint64_t h = (uint64_t)pc * UINT64_C(0x9E3779B97F4A7C15) >> 40;
    for (;; h++) {
        struct slot *slot = &slots[h % RULES];
        const uintptr_t here = __atomic_load_n(&slot->pc, __ATOMIC_ACQUIRE);
        if (here == pc || here == 0)
            return slot;
    }
}

void unwind_learn(uintptr_t pc, struct unwind_rule rule)
{
    pthread_mutex_lock(&lock);
    struct slot *slot = slot_find(pc);
    if (slot->pc == pc || n_rules < MOST_RULES) {
        __atomic_store_n(&slot->rule, rule_word(rule), __ATOMIC_RELAXED);
        if (slot->pc == 0) {
            n_rules++;
            __atomic_store_n(&slot->pc, pc, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
}

void unwind_forget(void)
{
    __atomic_add_fetch(&life, 1, __ATOMIC_RELAXED);
    unw_flush_cache(unw_local_addr_space, 0, 0);
}

uint32_t unwind_life(void)
{
    return __atomic_load_n(&life, __ATOMIC_RELAXED) & 0xffffff;
}

/* Goes to the caller; false: it cannot be, or there is none. */
static bool frame_step(struct unwind_frame *frame, struct unwind_rule rule)
{
    uintptr_t caller = frame->sp + rule.words * sizeof caller;
    frame->fp_at = 0;
    if (rule.kind == UNWIND_BY_FRAME_POINTER) {
        caller = frame->fp + 2 * sizeof caller;
    } else if (rule.kind == UNWIND_BY_SAVED_POINTER) {
        if (!unwind_on_stack(frame->fp - sizeof caller) || !unwind_on_stack(frame->fp))
            return false;
        caller = unwind_word(frame->fp - sizeof caller);
        frame->fp = unwind_word(frame->fp);
        frame->fp_at = UNWIND_FOLLOWED;
    }
    if (caller <= frame->sp || !unwind_on_stack(caller - sizeof caller))
        return false;
    if (rule.saved > 0) {
        const uintptr_t at = caller - rule.saved * sizeof at;
        if (!unwind_on_stack(at))
            return false;
        frame->fp = unwind_word(at);
        frame->fp_at = at;
    }
    frame->sp = caller;
    frame->pc = unwind_word(caller - sizeof caller);
    return true;
}

enum unwind_going unwind_go_on(struct unwind_frame *frame, struct unwind_frame *caller,
                               uint32_t now)
{
    const struct slot *slot = slot_find(frame->pc);
    /* Once a slot has its address, its rule is there. */
    const bool known = __atomic_load_n(&slot->pc, __ATOMIC_ACQUIRE) == frame->pc;
    const struct unwind_rule rule = rule_from(__atomic_load_n(&slot->rule, __ATOMIC_RELAXED));
    frame->uses_fp = rule.kind == UNWIND_BY_FRAME_POINTER || rule.kind == UNWIND_BY_SAVED_POINTER;
    if (!known || rule.life != now || rule.kind == UNWIND_UNKNOWN || rule.kind == UNWIND_COMPLEX)
        return UNWIND_FAILS;
    if (rule.kind == UNWIND_OUTERMOST)
        return UNWIND_ENDS;
    *caller = *frame;
    if (!frame_step(caller, rule))
        return UNWIND_FAILS;
    return caller->pc == 0 ? UNWIND_ENDS : UNWIND_GOES_ON;
}

void unwind_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void unwind_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}
