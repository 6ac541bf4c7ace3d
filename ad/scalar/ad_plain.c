/* ad_plain.c: what code that was compiled by `tapescope cc` calls; see ad_plain.h. */
#include <tapescope/ad_plain.h>

#include "ad_internal.h"
#include "ad_plain_joined.h"

#include "tape_nonfinite_scalars.h"
#include "tape_statement.h"

#include <pthread.h>
#include <stdio.h>

#define NEAR ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

bool ad_plain_room_at_(uint32_t bytes, double value, uintptr_t pc)
{
    struct tape *t = ad_real_recording();
    const struct tape_site site = {pc, 0};
    if (!t) {
        ad_fail(AD_ERROR_STATE, site, "statement: the thread records on no tape");
        return false;
    }
    if (t->nonfinite)
        tape_nonfinite_statement(t, value, site);
    return tape_statement_room(t, bytes, site, pc);
}

void ad_plain_constant_(ad_tape tape, uintptr_t pc)
{
    const struct tape_site site = {pc, 0};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "plain_backward", site);
    if (t)
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "plain_backward: y is a constant: it depends on no variable, or by integers "
                  "alone; or what computed it, or took it by value, was not compiled by "
                  "`tapescope cc`");
}

ad_status ad_plain_memory_(ad_tape tape)
{
    const struct tape_site site = {NEAR, 0};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "plain", site);
    return t ? (ad_status)tape_fail(t, TAPE_ERROR_MEMORY, site, "plain: out of memory")
             : ad_failed();
}

ad_status ad_plain_fail_(ad_status code, uintptr_t pc, const char *message)
{
    const struct tape_site site = {pc, 0};
    struct tape *t = ad_real_recording();
    if (!t || code == AD_ERROR_GRADIENT)
        return ad_fail(code, site, "%s", message);
    return (ad_status)tape_fail(t, (enum tape_status)code, site, "%s", message);
}

static void watch_result(void *payload, uint32_t index, double value, struct tape_site site)
{
    const struct ad_plain_watch_ *w = payload;
    w->result(w->payload, index, value, site.pc);
}

static void watch_statement(void *payload, uint32_t index, const struct tape_operands *o,
                            const double *partial)
{
    const struct ad_plain_watch_ *w = payload;
    for (uint32_t k = 0; k < o->n; k++)
        w->operand(w->payload, index, o->index[k], tape_operand_partial(o, partial, k));
}

bool ad_plain_watched_(const struct ad_plain_watch_ *watch)
{
    static _Thread_local struct tape_scalar_watch own;
    struct tape *t = ad_real_recording();
    if (!t)
        return false;
    tape_settle(t); /* the last statement is told of */
    own = (struct tape_scalar_watch){watch_result, watch_statement, (void *)(uintptr_t)watch};
    t->scalar_watch = watch ? &own : NULL;
    tape_nonfinite_set(t, TAPE_TRAP_WATCH, watch ? TAPE_TRAP_WATCH : 0);
    return true;
}

void ad_plain_where_(uintptr_t pc, char *at, size_t n)
{
    ad_describe((struct tape_site){pc, 0}, at, n);
}

/* What a tag was found to be of, the last time: values with indices in [first, end) are on the
 * thread's tape, `by` further on, and have another tag there. It holds as long as the tape's newest
 * tag is the same. */
struct found {
    uint32_t newest, tag, there;
    int64_t first, end, by;
};

static struct found *found_at(uint32_t tag)
{
    static _Thread_local struct found found[8];
    return &found[(tag ^ tag >> 16) % (sizeof found / sizeof *found)];
}

/* An index was moved from `was`, as all from `least` on are. */
static void found_put(const struct tape *t, uint32_t tag, uint32_t was, int64_t least,
                      uint32_t index)
{
    const uint32_t newest = (uint32_t)(ad_statement_cursor_.result >> 32);
    const uint32_t there = tape_statement_tag_of(t, index);
    const int64_t by = (int64_t)index - was;
    uint32_t first, end;
    if (!newest || !tape_statement_tagged(t, there, &first, &end))
        return;
    const int64_t from = (int64_t)first - by;
    *found_at(tag) = (struct found){newest, tag, there, from > least ? from : least, end - by, by};
}

enum ad_plain_standing_ ad_plain_place_(uint32_t *index, uint32_t *tag)
{
    const struct tape *t = ad_real_recording();
    const uint32_t asked = *tag, was = *index;
    const struct found *f = found_at(asked);
    if (t && f->tag == asked && was >= f->first && was < f->end &&
        f->newest == (uint32_t)(ad_statement_cursor_.result >> 32)) {
        *index = (uint32_t)(was + f->by);
        *tag = f->there;
        return AD_PLAIN_STANDS_;
    }
    uint32_t i = was, g = asked, first, end;
    int64_t least = 0;
    bool moved = true;
    /* A tag of the tape's own comes first: one that was joined may have been the same, long ago. */
    while (!(t && tape_statement_tagged(t, g, &first, &end))) {
        const uint32_t before = i;
        uint32_t base;
        if (!ad_plain_joined(&i, &g, &base))
            break;
        const int64_t own = (int64_t)base + 1 - ((int64_t)before - was);
        moved &= before > base;
        least = own > least ? own : least;
    }
    if (t && tape_statement_kept(t, i, g)) {
        if (moved)
            found_put(t, asked, was, least, i);
        *index = i;
        *tag = tape_statement_tag_of(t, i);
        return AD_PLAIN_STANDS_;
    }
    const uint32_t slot = g >> 16;
    if (slot == 0 || (t && slot == t->statements->slot))
        return slot == 0 ? AD_PLAIN_UNKNOWN_ : AD_PLAIN_DROPPED_;
    if (__atomic_load_n(&ad_slots[slot].tape, __ATOMIC_RELAXED))
        return tape_statement_may_hold(&ad_slots[slot].tags, g) ? AD_PLAIN_ELSEWHERE_
                                                                : AD_PLAIN_DROPPED_;
    return __atomic_load_n(&ad_slots[slot].generation, __ATOMIC_RELAXED) ? AD_PLAIN_DROPPED_
                                                                         : AD_PLAIN_UNKNOWN_;
}

uint32_t ad_plain_tag_(uint32_t index)
{
    const struct tape *t = ad_real_recording();
    return t ? tape_statement_tag_of(t, index) : 0;
}

/* Places that were told of, the messages by their hash, and how often a gradient was lost. */
static struct {
    pthread_mutex_t lock;
    uintptr_t pc[256];
    uint64_t text[256]; /* of the same numbers; 0: not made yet */
    unsigned n;
    uint64_t times;
} lost = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_new(uintptr_t pc, uint64_t times)
{
    enum { ROOM = sizeof lost.pc / sizeof *lost.pc };
    unsigned k = 0;
    pthread_mutex_lock(&lost.lock);
    lost.times += times;
    while (k < lost.n && lost.pc[k] != pc)
        k++;
    const bool first = k == lost.n && k < ROOM;
    if (first)
        lost.pc[lost.n++] = pc;
    pthread_mutex_unlock(&lost.lock);
    return first;
}

/* A line with several places says each thing once. */
static bool text_is_new(uintptr_t pc, const char *text)
{
    uint64_t hash = 1;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3); /* FNV-1a */
    bool found = false;
    pthread_mutex_lock(&lost.lock);
    for (unsigned k = 0; k < lost.n; k++)
        found |= lost.text[k] == hash;
    for (unsigned k = 0; k < lost.n; k++)
        if (lost.pc[k] == pc)
            lost.text[k] = hash;
    pthread_mutex_unlock(&lost.lock);
    return !found;
}

static void say(struct tape_site site, const char *what, const char *why)
{
    char place[512], text[1024];
    ad_describe(site, place, sizeof place);
    snprintf(text, sizeof text, "%s: %s%s", place, what, why);
    if (text_is_new(site.pc, text))
        ad_log_say(AD_LOG_WARNING, text);
}

void ad_plain_lost_(const char *why, bool strict, uintptr_t pc)
{
    const struct tape_site site = {pc, 0};
    struct tape *t = ad_real_recording();
    if (strict && t)
        tape_fail(t, TAPE_ERROR_STATE, site, "plain C: a gradient is lost: %s", why);
    if (is_new(pc, 1) && !(strict && t))
        say(site, "a gradient is lost: ", why);
}

void ad_plain_hint(const char *what, struct tape_site site)
{
    if (is_new(site.pc, 0))
        say(site, "", what);
}

uint64_t ad_plain_dropped(void)
{
    pthread_mutex_lock(&lost.lock);
    const uint64_t times = lost.times;
    pthread_mutex_unlock(&lost.lock);
    return times;
}
