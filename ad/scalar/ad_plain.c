/* ad_plain.c: what code that was compiled by `tapescope cc` calls; see ad_plain.h. */
#include <tapescope/ad_plain.h>

#include "ad_internal.h"

#include "tape_nonfinite_scalars.h"
#include "tape_statement.h"

#include <pthread.h>
#include <stdio.h>

#define NEAR ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

bool ad_plain_room_(uint32_t bytes, double value)
{
    struct tape *t = ad_real_recording();
    const struct tape_site site = {NEAR, 0};
    if (!t) {
        ad_fail(AD_ERROR_STATE, site, "statement: the thread records on no tape");
        return false;
    }
    if (t->nonfinite)
        tape_nonfinite_statement(t, value, site);
    return tape_statement_room(t, bytes, site, NEAR);
}

void ad_plain_constant_(ad_tape tape, uintptr_t pc)
{
    const struct tape_site site = {pc, 0};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "plain_backward", site);
    if (t)
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "plain_backward: y is a constant: it depends on no variable, or what computed "
                  "it, or took it by value, was not compiled by `tapescope cc`");
}

enum ad_plain_standing_ ad_plain_standing_(uint32_t index, uint32_t tag)
{
    const struct tape *t = ad_real_recording();
    const uint32_t slot = tag >> 16;
    if (t && tape_statement_kept(t, index, tag))
        return AD_PLAIN_STANDS_;
    if (slot == 0 || (t && slot == t->statements->slot))
        return slot == 0 ? AD_PLAIN_UNKNOWN_ : AD_PLAIN_DROPPED_;
    if (__atomic_load_n(&ad_slots[slot].tape, __ATOMIC_RELAXED))
        return AD_PLAIN_ELSEWHERE_;
    return __atomic_load_n(&ad_slots[slot].generation, __ATOMIC_RELAXED) ? AD_PLAIN_DROPPED_
                                                                         : AD_PLAIN_UNKNOWN_;
}

/* Places that were told of. */
static struct {
    pthread_mutex_t lock;
    uintptr_t pc[256];
    unsigned n;
    uint64_t times;
} lost = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_new(uintptr_t pc)
{
    enum { ROOM = sizeof lost.pc / sizeof *lost.pc };
    unsigned k = 0;
    pthread_mutex_lock(&lost.lock);
    lost.times++;
    while (k < lost.n && lost.pc[k] != pc)
        k++;
    const bool first = k == lost.n && k < ROOM;
    if (first)
        lost.pc[lost.n++] = pc;
    pthread_mutex_unlock(&lost.lock);
    return first;
}

void ad_plain_lost_(const char *why, bool strict, uintptr_t pc)
{
    const struct tape_site site = {pc, 0};
    struct tape *t = ad_real_recording();
    if (strict && t)
        tape_fail(t, TAPE_ERROR_STATE, site, "plain C: a gradient is lost: %s", why);
    if (!is_new(pc) || (strict && t))
        return;
    char place[512], text[1024];
    ad_describe(site, place, sizeof place);
    snprintf(text, sizeof text, "%s: a gradient is lost: %s", place, why);
    ad_log_say(AD_LOG_WARNING, text);
}

uint64_t ad_plain_dropped(void)
{
    pthread_mutex_lock(&lost.lock);
    const uint64_t times = lost.times;
    pthread_mutex_unlock(&lost.lock);
    return times;
}
