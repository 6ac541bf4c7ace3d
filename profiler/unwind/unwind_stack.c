/* unwind_stack.c: the present stack by what is known of the last one.
 *
 * Two stacks in succession mostly differ in their innermost frames alone. So each thread keeps its
 * last stack. Where the present one meets it, the words on the stack are compared that led outwards
 * from there; as long as they are the same, so are the frames. A stack that was found unchanged so
 * is compared by a list of these words from then on.
 */
#include "unwind_rules.h"

#include <string.h>

/* The frame at `at` is the same as before. Returns the first one outwards of it that is not. Where
 * a frame lies decides where the words lie by which its caller is found, so words are compared.
 * Functions that need no frame pointer have another number in that register each time, which does
 * not count. */
static uint32_t stack_unchanged(struct unwind_stack *stack, uint32_t at)
{
    uintptr_t fp = stack->frame[at].fp;
    while (++at < stack->end) {
        struct unwind_frame *frame = &stack->frame[at];
        if (frame->fp_at == UNWIND_FOLLOWED ||
            unwind_word(frame->sp - sizeof frame->pc) != frame->pc)
            break;
        if (frame->fp_at != 0)
            fp = unwind_word(frame->fp_at);
        if (frame->needs_fp && fp != frame->fp)
            break;
        frame->fp = fp;
    }
    return at;
}

/* Sets needs_fp of the frames further in than `to`. */
static void stack_tell_needs(struct unwind_stack *stack, uint32_t to)
{
    for (uint32_t i = to; i-- > stack->first;) {
        const bool outermost = i + 1 == stack->end;
        const struct unwind_frame *caller = &stack->frame[i + 1];
        stack->frame[i].needs_fp =
            stack->frame[i].uses_fp ||
            (outermost ? !stack->whole : caller->fp_at == 0 && caller->needs_fp);
    }
}

static bool same_frame(const struct unwind_frame *known, const struct unwind_frame *frame)
{
    return known->sp == frame->sp && known->pc == frame->pc &&
           (!known->needs_fp || known->fp == frame->fp);
}

/* The words by which a frame was found from the one that it called. Returns how many: 1 or 2. */
static uint32_t frame_words(const struct unwind_frame *frame, struct unwind_held *held)
{
    held[0] = (struct unwind_held){frame->sp - sizeof frame->pc, frame->pc};
    if (frame->fp_at == 0 || !frame->needs_fp)
        return 1;
    held[1] = (struct unwind_held){frame->fp_at, frame->fp};
    return 2;
}

/* Lists the words by which the frames outwards of the first were found to be the same, those of the
 * second frame last: another place in the first function may lead to it by other words. */
static void stack_list_words(struct unwind_stack *stack)
{
    uint32_t n = 0;
    for (uint32_t i = stack->end; i-- > stack->first + 2;)
        n += frame_words(&stack->frame[i], &stack->held[n]);
    stack->n_outer = n;
    if (stack->first + 1 < stack->end)
        n += frame_words(&stack->frame[stack->first + 1], &stack->held[n]);
    stack->n_held = n;
}

static bool stack_holds(const struct unwind_stack *stack, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (unwind_word(stack->held[i].at) != stack->held[i].word)
            return false;
    return true;
}

/* The stack from `frame` outwards is the last one whole, but perhaps for the place in its first
 * function. Frame pointers that no frame needs are left as they were: they are read again where
 * another stack meets this one. */
static bool stack_is_same(struct unwind_stack *stack, const struct unwind_frame *frame,
                          uint32_t now)
{
    const uint32_t at = stack->first;
    struct unwind_frame first = *frame, second;
    if (stack->n_held == 0 || stack->life != now)
        return false;
    if (same_frame(&stack->frame[at], frame))
        return stack_holds(stack, stack->n_held);
    /* The rule of the new place leads to the second frame, or it is another one. */
    if (unwind_go_on(&first, &second, now) != UNWIND_GOES_ON || second.fp_at == UNWIND_FOLLOWED ||
        !same_frame(&stack->frame[at + 1], &second) || !stack_holds(stack, stack->n_outer))
        return false;
    second.uses_fp = stack->frame[at + 1].uses_fp;
    second.needs_fp = stack->frame[at + 1].needs_fp;
    stack->frame[at] = first;
    stack->frame[at + 1] = second;
    stack_tell_needs(stack, at + 1);
    stack->named = stack->named > at + 1 ? stack->named : at + 1;
    stack->n_held = stack->n_outer + frame_words(&second, &stack->held[stack->n_outer]);
    return true;
}

/* For as many frames outwards as may be asked for. */
static void stack_make_room(struct unwind_stack *stack)
{
    const uint32_t n = stack->end - stack->first;
    if (stack->first <= UNWIND_SPARE)
        return;
    memmove(&stack->frame[UNWIND_SPARE], &stack->frame[stack->first], n * sizeof *stack->frame);
    stack->first = UNWIND_SPARE;
    stack->end = UNWIND_SPARE + n;
}

/* Makes the stack lead from `frame` outwards, as far as it is known. */
static enum unwind_going stack_meet(struct unwind_stack *stack, struct unwind_frame frame,
                                    uint32_t now)
{
    struct unwind_frame further[UNWIND_SPARE];
    uint32_t n = 0, at = stack->first;
    enum unwind_going going = UNWIND_GOES_ON;
    if (stack->life != now)
        stack->end = at = 0;
    while (going == UNWIND_GOES_ON && n < UNWIND_SPARE) {
        while (at < stack->end && stack->frame[at].sp < frame.sp)
            at++;
        if (at >= n && at < stack->end && same_frame(&stack->frame[at], &frame)) {
            stack->first = at - n;
            stack->frame[at].fp = frame.fp;
            stack->frame[at].fp_at = frame.fp_at;
            memcpy(&stack->frame[at - n], further, n * sizeof *further);
            const uint32_t end = stack_unchanged(stack, at);
            if (end == stack->end && stack->whole) {
                stack->named = stack->named > at ? stack->named : at;
                stack_tell_needs(stack, at);
                if (n <= 1 && frame.fp_at != UNWIND_FOLLOWED)
                    stack_list_words(stack);
                return UNWIND_ENDS;
            }
            stack->end = end;
            stack_make_room(stack);
            stack->named = UINT32_MAX;
            return UNWIND_GOES_ON;
        }
        further[n] = frame;
        going = unwind_go_on(&further[n++], &frame, now);
    }
    stack->life = now;
    stack->whole = false;
    stack->named = UINT32_MAX;
    stack->first = UNWIND_SPARE;
    stack->end = UNWIND_SPARE + n;
    memcpy(&stack->frame[stack->first], further, n * sizeof *further);
    if (going == UNWIND_GOES_ON)
        stack->frame[stack->end++] = frame;
    return going;
}

size_t unwind_along(uintptr_t site, size_t n, struct unwind_stack *stack)
{
    const uint32_t now = unwind_life();
    struct unwind_frame frame;
    if (!UNWIND_HAS_RULES || !unwind_bounds.asked || !unwind_find_site(site, &frame))
        return 0;
    if (stack_is_same(stack, &frame, now))
        return stack->end - stack->first;
    stack->n_held = 0;
    enum unwind_going going = stack_meet(stack, frame, now);
    if (going == UNWIND_ENDS && stack->whole)
        return stack->end - stack->first;
    while (going == UNWIND_GOES_ON && stack->end - stack->first < n) {
        struct unwind_frame *at = &stack->frame[stack->end - 1];
        going = unwind_go_on(at, at + 1, now);
        stack->end += going == UNWIND_GOES_ON;
    }
    stack->whole = going == UNWIND_ENDS;
    if (going == UNWIND_FAILS)
        stack->end = stack->first;
    stack_tell_needs(stack, stack->end);
    return stack->end - stack->first;
}
