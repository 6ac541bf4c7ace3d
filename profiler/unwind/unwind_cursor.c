/* unwind_cursor.c: stacks by libunwind's cursor, from which rules are learnt, and along frame
 * pointers.
 *
 * The way from here to the user's code is along frame pointers, which the library is compiled with.
 */
#include "unwind_rules.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

_Thread_local struct unwind_bounds unwind_bounds;

/* Asks the system where the thread's stack lies. Not in a signal handler. */
static void ask_for_stack(void)
{
    pthread_attr_t attributes;
    void *from;
    size_t bytes;
    unwind_bounds.asked = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &from, &bytes) == 0) {
        unwind_bounds.from = (uintptr_t)from;
        unwind_bounds.to = (uintptr_t)from + bytes;
    }
    pthread_attr_destroy(&attributes);
}

size_t unwind_by_frame_pointers(uintptr_t site, uintptr_t *frame, size_t n)
{
    struct unwind_frame caller;
    size_t got = 0;
    if (!unwind_bounds.asked) {
        const int saved = errno;
        ask_for_stack();
        errno = saved;
    }
    if (!unwind_find_site(site, &caller))
        return 0;
    while (got < n && caller.pc != 0) {
        frame[got++] = caller.pc;
        const uintptr_t at = caller.fp;
        if (at < caller.sp || !unwind_on_stack(at) || !unwind_on_stack(at + sizeof at))
            break;
        caller = (struct unwind_frame){
            unwind_word(at + sizeof at), at + 2 * sizeof at, unwind_word(at), 0, true, true};
    }
    return got;
}

struct seen {
    struct unwind_frame frame;
    uintptr_t fp_at; /* where the frame pointer is saved; 0: not in memory */
};

static struct seen cursor_look(unw_cursor_t *cursor)
{
    struct seen seen = {.fp_at = 0};
    unw_word_t word;
    if (unw_get_reg(cursor, UNW_REG_IP, &word) == 0)
        seen.frame.pc = (uintptr_t)word;
    if (unw_get_reg(cursor, UNW_REG_SP, &word) == 0)
        seen.frame.sp = (uintptr_t)word;
#ifdef __x86_64__
    unw_save_loc_t saved;
    if (unw_get_reg(cursor, UNW_X86_64_RBP, &word) == 0)
        seen.frame.fp = (uintptr_t)word;
    if (unw_get_save_loc(cursor, UNW_X86_64_RBP, &saved) == 0 && saved.type == UNW_SLT_MEMORY)
        seen.fp_at = (uintptr_t)saved.u.addr;
#endif
    return seen;
}

/* The rule by which the cursor came from one frame to the next. Where the frame pointer was saved
 * at the address that it holds, it is one; else it is a register like others. */
static struct unwind_rule rule_between(const struct seen *from, const struct seen *to)
{
    struct unwind_rule rule = {.kind = UNWIND_COMPLEX};
#ifdef __x86_64__
    const uintptr_t caller = to->frame.sp, words = (caller - from->frame.sp) / sizeof caller;
    const bool saves = to->fp_at != from->fp_at && to->fp_at >= from->frame.sp;
    const uintptr_t below = (caller - to->fp_at) / sizeof caller;
    if (caller <= from->frame.sp || caller % sizeof caller != 0 || words >= 1u << 21 ||
        !unwind_on_stack(caller - sizeof caller) ||
        unwind_word(caller - sizeof caller) != to->frame.pc)
        return rule;
    if (saves && (to->fp_at >= caller || below >= 1u << 16))
        return rule;
    rule.saved = saves ? below & 0xffff : 0;
    if (!saves || to->fp_at != from->frame.fp) {
        rule.kind = UNWIND_BY_STACK_POINTER;
        rule.words = words & 0x1fffff;
    } else if (caller == from->frame.fp + 2 * sizeof caller) {
        rule.kind = UNWIND_BY_FRAME_POINTER;
    } else if (unwind_on_stack(from->frame.fp - sizeof caller) &&
               unwind_word(from->frame.fp - sizeof caller) == caller) {
        rule.kind = UNWIND_BY_SAVED_POINTER;
        rule.saved = 0; /* where the frame pointer points to, at no fixed distance */
    }
#else
    (void)from;
    (void)to;
#endif
    return rule;
}

/* Follows the cursor, and learns. */
static size_t cursor_explore(uintptr_t site, uintptr_t *frame, size_t n)
{
    unw_context_t context;
    unw_cursor_t cursor;
    size_t got = 0;
    const uint32_t now = unwind_life();
    if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0)
        return 0;
    struct seen at = cursor_look(&cursor);
    for (int own = 0; at.frame.pc != site; own++) {
        if (own == UNWIND_OWN || unw_step(&cursor) <= 0)
            return 0;
        at = cursor_look(&cursor);
    }
    for (;;) {
        frame[got++] = at.frame.pc;
        if (got == n)
            return got;
        const bool goes_on = unw_step(&cursor) > 0;
        const struct seen next = goes_on ? cursor_look(&cursor) : (struct seen){.fp_at = 0};
        const bool outermost = !goes_on || next.frame.pc == 0;
        struct unwind_rule rule =
            outermost ? (struct unwind_rule){.kind = UNWIND_OUTERMOST} : rule_between(&at, &next);
        rule.life = now & 0xffffff;
        if (UNWIND_HAS_RULES)
            unwind_learn(at.frame.pc, rule);
        if (outermost)
            return got;
        at = next;
    }
}

size_t unwind_by_cursor(uintptr_t site, uintptr_t *frame, size_t n)
{
    const int saved = errno;
    if (!unwind_bounds.asked)
        ask_for_stack();
    const size_t got = cursor_explore(site, frame, n);
    errno = saved;
    return got;
}

/* libunwind opens a pipe for good, to try addresses by; standard input, output and error are the
 * program's, also where it has closed them. */
void unwind_prime(void)
{
    uintptr_t frame[UNWIND_OWN];
    int standard[STDERR_FILENO + 1], n = 0, fd;
    const int saved = errno;
    while (n <= STDERR_FILENO && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        if (fd > STDERR_FILENO) {
            close(fd);
            break;
        }
        standard[n++] = fd;
    }
    (void)unwind_by_cursor((uintptr_t)__builtin_return_address(0), frame, UNWIND_OWN);
    while (n > 0)
        close(standard[--n]);
    errno = saved;
}
