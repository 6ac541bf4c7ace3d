/* collect_unwind.c: stacks by unwind tables, through rules that libunwind is asked for once.
 *
 * How to come from a return address to its caller depends on the address alone, and nearly always
 * in one of four ways. What libunwind's cursor does (microseconds a frame) is noted as such a rule,
 * and from then on the rule is followed (nanoseconds). What no rule describes is left to the cursor
 * each time. unw_backtrace() has rules as well, but never forgets them, and follows them anywhere:
 * where a library was unloaded and another one came in its place, it may read what is not there.
 * Here nothing is read beyond the thread's own stack, and what is known is forgotten when something
 * is unloaded.
 *
 * Two stacks in succession mostly differ in their innermost frames alone. So each thread keeps the
 * trail of its last: where the present stack meets it, the words are compared that led outwards
 * from there.
 *
 * The way from here to the user's code is along frame pointers, which the library is compiled with.
 */
#include "collect_unwind.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { OWN = 32 }; /* frames of the library's above a call in the user's code, at most */

/* Where the calling thread's stack lies; to 0: not known. */
static _Thread_local struct stack {
    uintptr_t from, to;
    bool asked;
} stack __attribute__((tls_model("initial-exec")));

static void ask_for_stack(void)
{
    pthread_attr_t attributes;
    void *from;
    size_t bytes;
    stack.asked = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &from, &bytes) == 0) {
        stack.from = (uintptr_t)from;
        stack.to = (uintptr_t)from + bytes;
    }
    pthread_attr_destroy(&attributes);
}

/* A word at this address may be read. */
static bool is_on_stack(uintptr_t at)
{
    return at > stack.from && at < stack.to && stack.to - at >= sizeof at && at % sizeof at == 0;
}

static uintptr_t word_at(uintptr_t at)
{
    return *(const uintptr_t *)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* Follows the library's own frame pointers to the frame that returns to `site`. */
__attribute__((always_inline)) static inline bool find_site(uintptr_t site,
                                                            struct collect_place *place)
{
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    for (int i = 0; i < OWN; i++) {
        if (!is_on_stack(at) || !is_on_stack(at + sizeof at))
            return false;
        const uintptr_t next = word_at(at);
        if (word_at(at + sizeof at) == site) {
            *place = (struct collect_place){site, at + 2 * sizeof at, next, 0, true, true};
            return true;
        }
        if (next <= at)
            return false;
        at = next;
    }
    return false;
}

size_t collect_unwind_fp(uintptr_t site, uintptr_t *frame, size_t n)
{
    struct collect_place place;
    size_t got = 0;
    if (!stack.asked) {
        const int saved = errno;
        ask_for_stack();
        errno = saved;
    }
    if (!find_site(site, &place))
        return 0;
    while (got < n && place.pc != 0) {
        frame[got++] = place.pc;
        const uintptr_t at = place.fp;
        if (at < place.sp || !is_on_stack(at) || !is_on_stack(at + sizeof at))
            break;
        place = (struct collect_place){
            word_at(at + sizeof at), at + 2 * sizeof at, word_at(at), 0, true, true};
    }
    return got;
}

/* ---- rules ---- */

enum kind {
    UNKNOWN,
    OUTERMOST,
    BY_STACK_POINTER, /* the caller's stack begins `bytes` above ours */
    BY_FRAME_POINTER, /* two words above the frame pointer */
    BY_SAVED_POINTER, /* at the address that is kept below the frame pointer: an aligned stack */
    COMPLEX
};

/* In one word, so that it is read and written whole. */
struct rule {
    uint64_t kind : 3;
    uint64_t saved : 16; /* the frame pointer was saved so many words below the caller's stack; 0:
                          * it was not */
    uint64_t words : 21; /* BY_STACK_POINTER */
    uint64_t life : 24;  /* of what is known: others are forgotten */
};
_Static_assert(sizeof(struct rule) == sizeof(uint64_t), "a rule is one word");

enum { RULES = 1 << 15, MOST_RULES = RULES / 2 };

/* A slot keeps its address for good, its rule may be learnt anew. */
static struct slot {
    uintptr_t pc;
    uint64_t rule;
} slots[RULES];
static uint32_t n_rules;
static uint32_t life;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t word_of(struct rule rule)
{
    union {
        struct rule rule;
        uint64_t word;
    } both = {.rule = rule};
    return both.word;
}

static struct rule rule_of(uint64_t word)
{
    union {
        uint64_t word;
        struct rule rule;
    } both = {.word = word};
    return both.rule;
}

/* The slot of an address, or the free one where it belongs. */
static struct slot *find_slot(uintptr_t pc)
{
    uint64_t h = (uint64_t)pc * UINT64_C(0x9E3779B97F4A7C15) >> 40;
    for (;; h++) {
        struct slot *slot = &slots[h % RULES];
        const uintptr_t here = __atomic_load_n(&slot->pc, __ATOMIC_ACQUIRE);
        if (here == pc || here == 0)
            return slot;
    }
}

static void learn(uintptr_t pc, struct rule rule)
{
    pthread_mutex_lock(&lock);
    struct slot *slot = find_slot(pc);
    if (slot->pc == pc || n_rules < MOST_RULES) {
        __atomic_store_n(&slot->rule, word_of(rule), __ATOMIC_RELAXED);
        if (slot->pc == 0) {
            n_rules++;
            __atomic_store_n(&slot->pc, pc, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
}

void collect_unwind_forget(void)
{
    __atomic_add_fetch(&life, 1, __ATOMIC_RELAXED);
    unw_flush_cache(unw_local_addr_space, 0, 0);
}

/* Goes to the caller; false: it cannot be, or there is none. */
static bool step(struct collect_place *place, struct rule rule)
{
    uintptr_t caller = place->sp + rule.words * sizeof caller;
    place->fp_at = 0;
    if (rule.kind == BY_FRAME_POINTER) {
        caller = place->fp + 2 * sizeof caller;
    } else if (rule.kind == BY_SAVED_POINTER) {
        if (!is_on_stack(place->fp - sizeof caller) || !is_on_stack(place->fp))
            return false;
        caller = word_at(place->fp - sizeof caller);
        place->fp = word_at(place->fp);
        place->fp_at = PROF_PLACE_FOLLOWED;
    }
    if (caller <= place->sp || !is_on_stack(caller - sizeof caller))
        return false;
    if (rule.saved > 0) {
        const uintptr_t at = caller - rule.saved * sizeof at;
        if (!is_on_stack(at))
            return false;
        place->fp = word_at(at);
        place->fp_at = at;
    }
    place->sp = caller;
    place->pc = word_at(caller - sizeof caller);
    return true;
}

enum going { GOES_ON, ENDS, FAILS };

/* The caller of a place by the rule of its address; FAILS: no rule is known of it. */
static enum going go_on(struct collect_place *place, struct collect_place *caller, uint32_t now)
{
    const struct slot *slot = find_slot(place->pc);
    /* Once a slot has its address, its rule is there. */
    const bool known = __atomic_load_n(&slot->pc, __ATOMIC_ACQUIRE) == place->pc;
    const struct rule rule = rule_of(__atomic_load_n(&slot->rule, __ATOMIC_RELAXED));
    place->uses_fp = rule.kind == BY_FRAME_POINTER || rule.kind == BY_SAVED_POINTER;
    if (!known || rule.life != now || rule.kind == UNKNOWN || rule.kind == COMPLEX)
        return FAILS;
    if (rule.kind == OUTERMOST)
        return ENDS;
    *caller = *place;
    if (!step(caller, rule))
        return FAILS;
    return caller->pc == 0 ? ENDS : GOES_ON;
}

/* The trail up to the frame that is the first to be another than it was, if that at `at` is the
 * same: a frame's place decides where the words lie that its caller is found by. Functions that
 * need no frame pointer have another number in that register each time. */
static uint32_t unchanged(struct collect_trail *trail, uint32_t at)
{
    uintptr_t fp = trail->place[at].fp;
    while (++at < trail->end) {
        struct collect_place *place = &trail->place[at];
        if (place->fp_at == PROF_PLACE_FOLLOWED ||
            word_at(place->sp - sizeof place->pc) != place->pc)
            break;
        if (place->fp_at != 0)
            fp = word_at(place->fp_at);
        if (place->needs_fp && fp != place->fp)
            break;
        place->fp = fp;
    }
    return at;
}

/* Says of the frames before `to` who needs its frame pointer. */
static void tell_needs(struct collect_trail *trail, uint32_t to)
{
    for (uint32_t i = to; i-- > trail->first;) {
        const bool last = i + 1 == trail->end;
        const struct collect_place *caller = &trail->place[i + 1];
        trail->place[i].needs_fp = trail->place[i].uses_fp ||
                                   (last ? !trail->whole : caller->fp_at == 0 && caller->needs_fp);
    }
}

static bool same_place(const struct collect_place *known, const struct collect_place *place)
{
    return known->sp == place->sp && known->pc == place->pc &&
           (!known->needs_fp || known->fp == place->fp);
}

/* For as many frames outwards as may be asked for. */
static void make_room(struct collect_trail *trail)
{
    const uint32_t n = trail->end - trail->first;
    if (trail->first <= PROF_TRAIL_SPARE)
        return;
    memmove(&trail->place[PROF_TRAIL_SPARE], &trail->place[trail->first], n * sizeof *trail->place);
    trail->first = PROF_TRAIL_SPARE;
    trail->end = PROF_TRAIL_SPARE + n;
}

/* Makes the trail lead from `place` outwards, as far as it is known. */
static enum going meet(struct collect_trail *trail, struct collect_place place, uint32_t now)
{
    struct collect_place further[PROF_TRAIL_SPARE];
    uint32_t n = 0, at = trail->first;
    enum going going = GOES_ON;
    if (trail->life != now)
        trail->end = at = 0;
    while (going == GOES_ON && n < PROF_TRAIL_SPARE) {
        while (at < trail->end && trail->place[at].sp < place.sp)
            at++;
        if (at >= n && at < trail->end && same_place(&trail->place[at], &place)) {
            trail->first = at - n;
            trail->place[at].fp = place.fp;
            trail->place[at].fp_at = place.fp_at;
            memcpy(&trail->place[at - n], further, n * sizeof *further);
            const uint32_t end = unchanged(trail, at);
            if (end == trail->end && trail->whole) {
                trail->named = trail->named > at ? trail->named : at;
                tell_needs(trail, at);
                return ENDS;
            }
            trail->end = end;
            make_room(trail);
            trail->named = UINT32_MAX;
            return GOES_ON;
        }
        further[n] = place;
        going = go_on(&further[n++], &place, now);
    }
    trail->life = now;
    trail->whole = false;
    trail->named = UINT32_MAX;
    trail->first = PROF_TRAIL_SPARE;
    trail->end = PROF_TRAIL_SPARE + n;
    memcpy(&trail->place[trail->first], further, n * sizeof *further);
    if (going == GOES_ON)
        trail->place[trail->end++] = place;
    return going;
}

size_t collect_unwind_along(uintptr_t site, size_t n, struct collect_trail *trail)
{
    const uint32_t now = __atomic_load_n(&life, __ATOMIC_RELAXED) & 0xffffff;
    struct collect_place place;
    if (!stack.asked || !find_site(site, &place))
        return 0;
    enum going going = meet(trail, place, now);
    if (going == ENDS && trail->whole)
        return trail->end - trail->first;
    while (going == GOES_ON && trail->end - trail->first < n) {
        struct collect_place *last = &trail->place[trail->end - 1];
        going = go_on(last, last + 1, now);
        trail->end += going == GOES_ON;
    }
    trail->whole = going == ENDS;
    if (going == FAILS)
        trail->end = trail->first;
    tell_needs(trail, trail->end);
    return trail->end - trail->first;
}

/* ---- the cursor ---- */

struct seen {
    struct collect_place place;
    uintptr_t fp_at; /* where the frame pointer is saved; 0: not in memory */
};

static struct seen look(unw_cursor_t *cursor)
{
    struct seen seen = {.fp_at = 0};
    unw_word_t word;
    if (unw_get_reg(cursor, UNW_REG_IP, &word) == 0)
        seen.place.pc = (uintptr_t)word;
    if (unw_get_reg(cursor, UNW_REG_SP, &word) == 0)
        seen.place.sp = (uintptr_t)word;
#ifdef __x86_64__
    unw_save_loc_t saved;
    if (unw_get_reg(cursor, UNW_X86_64_RBP, &word) == 0)
        seen.place.fp = (uintptr_t)word;
    if (unw_get_save_loc(cursor, UNW_X86_64_RBP, &saved) == 0 && saved.type == UNW_SLT_MEMORY)
        seen.fp_at = (uintptr_t)saved.u.addr;
#endif
    return seen;
}

/* The rule by which the cursor came from one frame to the next. Where the frame pointer was saved
 * at the address that it holds, it is one; else it is a register like others. */
static struct rule rule_between(const struct seen *from, const struct seen *to)
{
    struct rule rule = {.kind = COMPLEX};
#ifdef __x86_64__
    const uintptr_t caller = to->place.sp, words = (caller - from->place.sp) / sizeof caller;
    const bool saves = to->fp_at != from->fp_at && to->fp_at >= from->place.sp;
    const uintptr_t below = (caller - to->fp_at) / sizeof caller;
    if (caller <= from->place.sp || caller % sizeof caller != 0 || words >= 1u << 21 ||
        !is_on_stack(caller - sizeof caller) || word_at(caller - sizeof caller) != to->place.pc)
        return rule;
    if (saves && (to->fp_at >= caller || below >= 1u << 16))
        return rule;
    rule.saved = saves ? below & 0xffff : 0;
    if (!saves || to->fp_at != from->place.fp) {
        rule.kind = BY_STACK_POINTER;
        rule.words = words & 0x1fffff;
    } else if (caller == from->place.fp + 2 * sizeof caller) {
        rule.kind = BY_FRAME_POINTER;
    } else if (is_on_stack(from->place.fp - sizeof caller) &&
               word_at(from->place.fp - sizeof caller) == caller) {
        rule.kind = BY_SAVED_POINTER;
        rule.saved = 0; /* where the frame pointer points to, at no fixed distance */
    }
#else
    (void)from;
    (void)to;
#endif
    return rule;
}

/* Follows the cursor, and learns. */
static size_t explore(uintptr_t site, uintptr_t *frame, size_t n)
{
    unw_context_t context;
    unw_cursor_t cursor;
    size_t got = 0;
    const uint32_t now = __atomic_load_n(&life, __ATOMIC_RELAXED) & 0xffffff;
    if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0)
        return 0;
    struct seen at = look(&cursor);
    for (int own = 0; at.place.pc != site; own++) {
        if (own == OWN || unw_step(&cursor) <= 0)
            return 0;
        at = look(&cursor);
    }
    for (;;) {
        frame[got++] = at.place.pc;
        if (got == n)
            return got;
        const bool goes_on = unw_step(&cursor) > 0;
        const struct seen next = goes_on ? look(&cursor) : (struct seen){.fp_at = 0};
        const bool outermost = !goes_on || next.place.pc == 0;
        struct rule rule = outermost ? (struct rule){.kind = OUTERMOST} : rule_between(&at, &next);
        rule.life = now & 0xffffff;
        learn(at.place.pc, rule);
        if (outermost)
            return got;
        at = next;
    }
}

size_t collect_unwind(uintptr_t site, uintptr_t *frame, size_t n)
{
    const int saved = errno;
    if (!stack.asked)
        ask_for_stack();
    const size_t got = explore(site, frame, n);
    errno = saved;
    return got;
}

/* libunwind opens a pipe for good, to try addresses by; standard input, output and error are the
 * program's, also where it has closed them. */
void collect_unwind_prime(void)
{
    uintptr_t frame[OWN];
    int standard[STDERR_FILENO + 1], n = 0, fd;
    const int saved = errno;
    while (n <= STDERR_FILENO && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        if (fd > STDERR_FILENO) {
            close(fd);
            break;
        }
        standard[n++] = fd;
    }
    (void)collect_unwind((uintptr_t)__builtin_return_address(0), frame, OWN);
    while (n > 0)
        close(standard[--n]);
    errno = saved;
}

void collect_unwind_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void collect_unwind_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}
