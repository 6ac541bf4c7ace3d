/* ad_plain_team.c: plain C in several threads: each member of a team records on a fork of the tape
 * that the thread which began the team recorded on.
 *
 * A member's fork is joined whole, so that every value of it has an index on the tape: the same
 * one, moved. Memory that the member has written keeps the fork's indices and tag; who reads it
 * later finds the tag among the joined (below) and moves the index. So nobody needs to know what
 * memory a thread has written.
 *
 * Who hands values on to others (a barrier, the end of a critical section, the end of a thread)
 * has its fork joined, and goes on with another one, which knows all that was joined before. What
 * is read without that is a value of a fork that is recorded on: it is reported, never taken.
 *
 * Locking: the tape of a team is touched under the team's lock, or by the member whose turn it is
 * (ad_plain_turn_begin_), while all others wait. A member's fork is its thread's between take and
 * park, and the lock's holder's otherwise. The joined are written once, before anybody can have
 * their tag from a thread that has synchronised with the join.
 */
#include <tapescope/ad_plain.h>
#include <tapescope/ad_real_fork.h>

#include "ad_internal.h"
#include "ad_plain_joined.h"

#include "tape_call.h"
#include "tape_fork.h"
#include "tape_preaccumulate.h"
#include "tape_value.h"

#include <pthread.h>
#include <stdlib.h>

/* A member makes new forks while those that are joined whole, which are large, keep their
 * addresses: its part of the tape's is an eighth, and less where many are joined. Each takes six of
 * the 65530 mappings that a process has. */
enum { FORKS_A_MEMBER = 8, FORKS_MANY = 512, FORKS_MOST = 10000 };

/* Tags that a fork is sure to have: one, and one for each section and each rewind on it. */
enum { TAGS = 256 };

enum state { MEMBER_NONE, MEMBER_READY, MEMBER_RECORDS, MEMBER_PARKED };

struct ad_plain_member_ {
    struct ad_plain_team_ *team;
    struct ad_plain_member_ *outer; /* what the thread was before */
    ad_tape tape;                   /* its fork */
    struct tape *fork;              /* or NULL: there was no memory for one */
    enum state state;
    bool leads;   /* it is its team's first */
    bool turning; /* it is its turn */
};

struct ad_plain_team_ {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    struct tape *tape;
    ad_tape handle;
    struct tape_site site;
    struct ad_plain_member_ **member;
    unsigned n, room, turn;
    bool meets;              /* its members are n from its begin, and meet at barriers */
    struct ad_real_turn own; /* of the member whose turn it is */
};

static _Thread_local struct ad_plain_member_ *here;

/* ---- forks that were joined, by their tags ---- */

/* Two words, so that a reader sees none or all of it. */
struct joined {
    uint64_t place; /* index of the first result on the parent, above it their number + 1 */
    uint64_t of;    /* base of the fork, above it the parent's tag at the join */
};

enum { EPOCHS = 65536 };
static struct joined *joined_by_slot[AD_SLOTS];

static struct joined *joined_entry(uint32_t tag, bool make)
{
    struct joined **at = &joined_by_slot[tag >> 16];
    struct joined *all = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (!all && make) {
        struct joined *none = NULL, *fresh = calloc(EPOCHS, sizeof *fresh);
        if (!fresh || __atomic_compare_exchange_n(at, &none, fresh, false, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_ACQUIRE))
            return fresh ? fresh + (tag & UINT16_MAX) : NULL;
        free(fresh);
        all = none;
    }
    return all ? all + (tag & UINT16_MAX) : NULL;
}

bool ad_plain_joined(uint32_t *index, uint32_t *tag, uint32_t *base)
{
    const struct joined *entry = joined_entry(*tag, false);
    const uint64_t place = entry ? __atomic_load_n(&entry->place, __ATOMIC_ACQUIRE) : 0;
    if (!place)
        return false;
    const uint64_t of = __atomic_load_n(&entry->of, __ATOMIC_RELAXED);
    const uint32_t n = (uint32_t)(place >> 32) - 1;
    *base = (uint32_t)of;
    if (*index >= *base) {
        if (*index - *base - 1 >= n)
            return false;
        *index = (uint32_t)place + (*index - *base - 1);
    }
    *tag = (uint32_t)(of >> 32);
    return true;
}

/* Whether what a fork has had this tag for is no value of t any more: a slot's tags come again
 * after 65535. */
static bool tag_is_free(const struct tape *t, uint32_t tag)
{
    const struct joined *had = joined_entry(tag, false);
    return !had || !had->place ||
           !tape_statement_kept(t, (uint32_t)had->place, (uint32_t)(had->of >> 32));
}

/* The values of a child, of these tags, are the parent's from `first` on. */
static bool joined_put(const struct tape *t, const struct tape *child, uint32_t first, uint32_t n)
{
    const struct tape_statements *s = child->statements;
    const uint32_t now = (uint32_t)(t->statements->rest.result >> 32);
    for (uint32_t k = child->fork->parent_tags; k < s->n_tags; k++) {
        struct joined *entry = joined_entry(s->tags[k].tag, true);
        if (!entry)
            return false;
        if (!tag_is_free(t, s->tags[k].tag))
            return false;
        __atomic_store_n(&entry->place, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->of, child->fork->base | (uint64_t)now << 32, __ATOMIC_RELEASE);
        __atomic_store_n(&entry->place, first | ((uint64_t)n + 1) << 32, __ATOMIC_RELEASE);
    }
    return true;
}

/* ---- a member's fork; under the team's lock ---- */

/* A slot for c, which is named by it, with as many free tags as members need between two joins; 0:
 * there is none. */
static uint32_t slot_take(const struct tape *t, struct tape *c)
{
    uint32_t slot, passed = 0;
    while ((slot = ad_slot_take(c, AD_THREAD_NONE)) != 0) {
        struct ad_slot *s = &ad_slots[slot];
        tape_statement_name(c, slot, &s->tags);
        const uint32_t tag = (uint32_t)(c->statements->rest.result >> 32), last = tag + TAGS;
        if (tag_is_free(t, tag) && tag_is_free(t, last >> 16 == slot ? last : slot << 16 | TAGS))
            break;
        s->next_free = passed; /* nobody else looks at it: it is taken */
        passed = slot;
    }
    while (passed) {
        const uint32_t next = ad_slots[passed].next_free;
        ad_slot_give(passed);
        passed = next;
    }
    return slot;
}

static void member_open(struct ad_plain_member_ *m)
{
    struct ad_plain_team_ *team = m->team;
    struct tape *t = team->tape, *c = NULL;
    uint32_t slot = 0;
    m->state = MEMBER_NONE;
    const uint32_t joined = t->fork->n_joined;
    if (joined >= FORKS_MOST)
        tape_fail(t, TAPE_ERROR_LIMIT, team->site, "threads: %d forks lie on the tape", FORKS_MOST);
    if (t->error.code == TAPE_OK)
        c = tape_fork_make(t, team->handle.slot, team->handle.generation, (int)team->n,
                           (int)(FORKS_A_MEMBER * team->n * (1 + joined / FORKS_MANY)));
    if (c)
        slot = slot_take(t, c);
    if (slot) {
        m->fork = c;
        m->tape = (ad_tape){slot, ad_slots[slot].generation};
        m->state = MEMBER_READY;
        return;
    }
    m->fork = NULL;
    if (t->error.code != TAPE_OK)
        return;
    if (c) {
        tape_fork_give(t, c);
        tape_fail(t, TAPE_ERROR_LIMIT, team->site, "threads: %d tapes exist already", AD_SLOTS - 1);
    } else {
        tape_fail_memory(t, team->site, "threads");
    }
}

/* Little is copied by the calling thread. */
static bool copied(struct tape *t, struct tape *c, struct tape_site site, uint32_t *first)
{
    struct ad_real_turn turn;
    ad_real_turn_begin(t, &turn);
    const bool done = tape_fork_copy(t, c, site, first);
    ad_real_turn_end(t, &turn, site);
    return done;
}

/* Its values are the tape's from now on; those of a join that fails are an error of the tape. */
static void member_join(struct ad_plain_member_ *m)
{
    struct tape *t = m->team->tape, *c = m->fork;
    struct tape_site site = m->team->site;
    if (!c || (m->state != MEMBER_PARKED && m->state != MEMBER_READY))
        return;
    const uint32_t n = tape_statement_next(c) - c->fork->base - 1;
    uint32_t first = 0;
    bool owned = false;
    char at[AD_DROPPED_TEXT];
    if (t->error.code == TAPE_OK && c->error.code != TAPE_OK)
        tape_fail(t, c->error.code, site, "threads: %s; the threads' join is", c->error.message);
    if (t->error.code == TAPE_OK && !tape_fork_stands(t, c))
        tape_fail(
            t, TAPE_ERROR_STATE, site,
            "threads: a reset or a rewind%s has dropped what was on the tape when they began; "
            "their join is",
            ad_dropped_at(t, at, sizeof at));
    if (t->error.code == TAPE_OK && n > 0 && !copied(t, c, site, &first) &&
        t->error.code == TAPE_OK)
        owned = tape_fork_join(t, c, n, NULL, site, &first) == TAPE_OK;
    if (t->error.code == TAPE_OK && !joined_put(t, c, first, n))
        tape_fail(
            t, TAPE_ERROR_LIMIT, site,
            "threads: no memory for their values, or %d sections of a thread between two joins",
            TAGS);
    ad_slot_give(m->tape.slot);
    if (!owned)
        tape_fork_give(t, c);
    m->state = MEMBER_NONE;
    m->fork = NULL;
}

/* ---- by the member's own thread ---- */

/* Without a tape, where there is none for it: what it reads is reported. */
static void member_take(struct ad_plain_member_ *m)
{
    if (m->state == MEMBER_READY && ad_tape_record_begin_site(m->tape, 0) == AD_OK)
        m->state = MEMBER_RECORDS;
}

static void member_park(struct ad_plain_member_ *m)
{
    if (m->state == MEMBER_RECORDS && ad_tape_record_end_site(m->tape, 0) == AD_OK)
        m->state = MEMBER_PARKED;
}

/* ---- teams ---- */

struct ad_plain_team_ *ad_plain_team_begin_(bool meets, uintptr_t pc)
{
    struct tape *t = ad_real_recording();
    const struct tape_site site = {pc, 0};
    if (!t)
        return NULL;
    if (t->calls.innermost) {
        tape_call_refuse(t, "threads", site);
        return NULL;
    }
    if (t->sections->n > 0) {
        tape_section_refuse(t, "threads", site);
        return NULL;
    }
    struct ad_plain_team_ *team = calloc(1, sizeof *team);
    if (!team) {
        tape_fail_memory(t, site, "threads");
        return NULL;
    }
    const uint32_t slot = t->statements->slot;
    team->tape = t;
    team->handle = (ad_tape){slot, ad_slots[slot].generation};
    team->site = site;
    team->meets = meets;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->turned, NULL);
    ad_real_suspend();
    tape_observe_adopt(t, false); /* other threads' too, until the end */
    return team;
}

struct ad_plain_member_ *ad_plain_member_make_(struct ad_plain_team_ *team, unsigned k, unsigned n)
{
    struct ad_plain_member_ *m = NULL;
    pthread_mutex_lock(&team->lock);
    if (!team->meets)
        n = (k = team->n) + 1;
    if (k >= team->room) {
        const unsigned room = k < 8 ? 8 : 2 * k;
        struct ad_plain_member_ **more = realloc(team->member, room * sizeof *more);
        if (more) {
            team->member = more;
            for (; team->room < room; team->room++)
                more[team->room] = NULL;
        }
    }
    if (k < team->room && !team->member[k])
        team->member[k] = calloc(1, sizeof *m);
    if (k < team->room && team->member[k]) {
        m = team->member[k];
        m->team = team;
        m->leads = k == 0;
        team->n = n > team->n ? n : team->n;
        if (m->state == MEMBER_NONE)
            member_open(m);
    } else {
        tape_fail_memory(team->tape, team->site, "threads");
    }
    pthread_mutex_unlock(&team->lock);
    return m;
}

void ad_plain_member_begin_(struct ad_plain_member_ *m)
{
    m->outer = here;
    here = m;
    member_take(m);
}

void ad_plain_member_end_(struct ad_plain_member_ *m)
{
    pthread_mutex_lock(&m->team->lock);
    member_park(m);
    pthread_mutex_unlock(&m->team->lock);
    here = m->outer;
}

struct ad_plain_member_ *ad_plain_member_(void)
{
    return here;
}

struct ad_plain_team_ *ad_plain_member_team_(const struct ad_plain_member_ *m)
{
    return m->team->meets ? NULL : m->team;
}

bool ad_plain_member_leads_(const struct ad_plain_member_ *m)
{
    return m->leads;
}

void ad_plain_member_join_(struct ad_plain_member_ *m)
{
    pthread_mutex_lock(&m->team->lock);
    member_join(m);
    pthread_mutex_unlock(&m->team->lock);
}

void ad_plain_team_end_(struct ad_plain_team_ *team)
{
    pthread_mutex_lock(&team->lock);
    for (unsigned k = 0; k < team->room; k++)
        if (team->member[k]) {
            member_join(team->member[k]);
            free(team->member[k]);
        }
    pthread_mutex_unlock(&team->lock);
    tape_observe_adopt(team->tape, true);
    ad_real_resume(team->tape);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->turned);
    free(team->member);
    free(team);
}

void ad_plain_publish_(void)
{
    struct ad_plain_member_ *m = here;
    if (!m)
        return;
    struct tape *const t = m->team->tape;
    pthread_mutex_lock(&m->team->lock);
    const bool idle = m->fork && tape_statement_next(t) == m->fork->fork->base &&
                      tape_statement_next(m->fork) == m->fork->fork->base + 1;
    if (!idle) {
        member_park(m);
        member_join(m);
        if (m->state == MEMBER_NONE)
            member_open(m);
    }
    pthread_mutex_unlock(&m->team->lock);
    member_take(m);
}

bool ad_plain_meet_begin_(unsigned n)
{
    struct ad_plain_member_ *m = here;
    if (!m || !m->team->meets)
        return false;
    pthread_mutex_lock(&m->team->lock);
    const bool all = m->team->n == n;
    if (all)
        member_park(m);
    pthread_mutex_unlock(&m->team->lock);
    return all;
}

void ad_plain_meet_end_(void)
{
    struct ad_plain_member_ *m = here;
    struct ad_plain_team_ *team = m->team;
    pthread_mutex_lock(&team->lock);
    if (m->state == MEMBER_PARKED) { /* all are: who comes first joins them, in their order */
        for (unsigned k = 0; k < team->n; k++)
            member_join(team->member[k]);
        for (unsigned k = 0; k < team->n; k++)
            if (team->member[k]->state == MEMBER_NONE)
                member_open(team->member[k]);
    }
    pthread_mutex_unlock(&team->lock);
    member_take(m);
}

bool ad_plain_turn_begin_(unsigned n)
{
    struct ad_plain_member_ *m = here;
    if (!m || !m->team->meets)
        return false;
    struct ad_plain_team_ *team = m->team;
    pthread_mutex_lock(&team->lock);
    const bool all = team->n == n;
    while (all && team->member[team->turn] != m)
        pthread_cond_wait(&team->turned, &team->lock);
    pthread_mutex_unlock(&team->lock);
    if (!all)
        return false;
    ad_real_turn_begin(team->tape, &team->own);
    return m->turning = true;
}

bool ad_plain_turn_end_(void)
{
    if (!here || !here->turning)
        return false;
    struct ad_plain_team_ *team = here->team;
    here->turning = false;
    ad_real_turn_end(team->tape, &team->own, team->site);
    pthread_mutex_lock(&team->lock);
    team->turn = team->turn + 1 < team->n ? team->turn + 1 : 0;
    pthread_cond_broadcast(&team->turned);
    pthread_mutex_unlock(&team->lock);
    return true;
}
