/* tape_now.c: where each thread publishes, and where others look at it; see tape_now.h.
 *
 * The memory is never given back, since samplers may look at it at any time: a thread that ends
 * leaves its own to the next that begins.
 */
#include "tape_now.h"

#include "tape_account.h"
#include "tape_scope.h"
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TAPE_LOOK_MISSES = 64 };

struct place {
    struct tape_now now; /* first: they have one address */
    struct place *next;  /* in the list of all */
    bool taken;
    const struct tape_cursor *cursor; /* that the thread records with; under the lock */
    /* Where it was at the first look of a pair; atomic. Whoever sets it to NULL has the look: the
     * second one, or the thread itself, which must not charge a run without it. */
    const uint32_t *before;
    uint64_t before_ticks, before_ns; /* that it stands for; processor time of the thread then */
    clockid_t clock;                  /* of that time */
    /* Those that were taken, by whoever looks; the thread takes them out. */
    uint32_t head, tail; /* atomic; head - tail are there */
    uint32_t misses;
    bool asked;       /* atomic; where it is in a sweep */
    uint64_t carried; /* ticks of looks for which there was no room */
    struct tape_look look[TAPE_LOOKS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct place *places;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static _Thread_local struct tape_now *mine;
static _Thread_local uint32_t told; /* the session in which the hook heard of it */
static _Thread_local uint32_t seen; /* the session in which the thread is looked at */
static uint32_t looked_session;     /* the session in which somebody looks; under the lock */
static uint64_t looked;             /* ticks of the newest first look; under the lock */

static void place_give_back(void *place)
{
    static const struct tape_doing nothing;
    struct place *p = place;
    mine = NULL;
    /* A handler that comes later finds that it is not ours, whatever the next owner does. */
    __atomic_store_n(&p->now.owner, p->now.owner + 1, __ATOMIC_RELAXED);
    tape_doing_write(&p->now, &nothing);
    __atomic_store_n(&p->now.statement, NULL, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    p->cursor = NULL;
    p->taken = false;
    pthread_mutex_unlock(&lock);
}

static void now_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void now_after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The other threads are gone, and so is what they did. */
static void now_after_fork_in_child(void)
{
    static const struct tape_doing nothing;
    told = seen = 0;
    for (struct place *p = places; p; p = p->next) {
        p->cursor = NULL;
        if (&p->now == mine)
            continue;
        p->now.version = 0; /* its thread may have been writing */
        tape_doing_write(&p->now, &nothing);
        p->taken = false;
    }
    pthread_mutex_init(&lock, NULL);
}

static void places_prepare(void)
{
    has_key = pthread_key_create(&key, place_give_back) == 0;
    (void)pthread_atfork(now_before_fork, now_after_fork_in_parent, now_after_fork_in_child);
}

static struct place *place_take(void)
{
    pthread_mutex_lock(&lock);
    struct place *p = places;
    while (p && p->taken)
        p = p->next;
    if (!p && (p = calloc(1, sizeof *p)) != NULL) {
        p->next = places;
        places = p;
    }
    if (p)
        p->taken = true;
    pthread_mutex_unlock(&lock);
    return p;
}

/* The calling thread's, or NULL: there is no memory. */
static struct tape_now *place_of_thread(void)
{
    if (mine)
        return mine;
    pthread_once(&once, places_prepare);
    struct place *p = has_key ? place_take() : NULL;
    if (p && pthread_setspecific(key, p) != 0) {
        place_give_back(p);
        p = NULL;
    }
    return mine = p ? &p->now : NULL;
}

struct tape_now *tape_now_here(struct tape_hook *hook)
{
    uint32_t session;
    if (!tape_session_of(hook, &session))
        return NULL;
    if (__builtin_expect(told == session, 1))
        return mine;
    told = session;
    if (place_of_thread())
        hook->thread(hook, mine);
    return mine;
}

uint32_t tape_now_own(struct tape *t, struct tape_site site, const char *op)
{
    const uint32_t row = tape_account_row(t, site, op);
    tape_now_path(t, row);
    return row;
}

/* ---- looks ---- */

static struct place *place_at(struct tape_now *now)
{
    return (struct place *)(void *)now;
}

/* The thread writes its cursor meanwhile, by plain stores of one word each; any of its values
 * will do. */
__attribute__((no_sanitize("thread"))) static const uint32_t *cursor_word(const struct place *p)
{
    return p->cursor ? *(const uint32_t *const volatile *)&p->cursor->word : NULL;
}

__attribute__((no_sanitize("thread"))) static const double *cursor_partial(const struct place *p)
{
    return *(double *const volatile *)&p->cursor->partial;
}

static void look_put(struct place *p, const uint32_t *at, uint64_t ticks)
{
    const uint32_t head = p->head;
    if (head - __atomic_load_n(&p->tail, __ATOMIC_ACQUIRE) >= TAPE_LOOKS) {
        p->carried += ticks;
        return;
    }
    if (ticks > 0) {
        ticks += p->carried;
        p->carried = 0;
    }
    p->look[head % TAPE_LOOKS] = (struct tape_look){at, ticks};
    __atomic_store_n(&p->head, head + 1, __ATOMIC_RELEASE);
}

static uint64_t thread_ns(const struct place *p)
{
    struct timespec t;
    return clock_gettime(p->clock, &t) == 0
               ? (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec
               : 0;
}

/* Stands for any statement of a sweep that does not say where it is. */
static const uint32_t hidden;

bool tape_look_asks(const struct tape_now *now)
{
    return __atomic_load_n(&((const struct place *)(const void *)now)->asked, __ATOMIC_RELAXED);
}

void tape_look_hides(struct tape_now *now)
{
    __atomic_store_n(&now->statement, &hidden, __ATOMIC_RELAXED);
}

/* A thread is asked whether it sweeps or not, and what it sweeps a while later counts: whatever it
 * does meanwhile, that moment was drawn at random. A sweep that has not heard of it yet is in one
 * of its parts for long, as where its adjoints are in no cache: then the look waits. */
static enum tape_looked look_swept(struct place *p)
{
    const uint32_t *swept = __atomic_load_n(&p->now.statement, __ATOMIC_RELAXED);
    if (!p->asked)
        return TAPE_LOOKED_NOTHING;
    if (swept == &hidden)
        return TAPE_LOOKED_PENDING;
    __atomic_store_n(&p->asked, false, __ATOMIC_RELAXED);
    if (!swept)
        return TAPE_LOOKED_NOTHING;
    look_put(p, swept, 0);
    return TAPE_LOOKED_FOUND;
}

/* Looks at a sweep are counted, and must be as frequent at any time: sweeps: this one counts. */
static enum tape_looked look_first(struct place *p, uint64_t ticks, bool sweeps)
{
    const uint32_t *swept = __atomic_load_n(&p->now.statement, __ATOMIC_RELAXED);
    const uint32_t *word = swept ? NULL : cursor_word(p);
    const bool asks = sweeps && p->taken;
    if (asks)
        __atomic_store_n(&p->asked, true, __ATOMIC_RELAXED);
    if (word) {
        p->before_ticks = ticks;
        p->before_ns = thread_ns(p);
    }
    __atomic_store_n(&p->before, word, __ATOMIC_RELEASE);
    return asks || word ? TAPE_LOOKED_PENDING : swept ? TAPE_LOOKED_FOUND : TAPE_LOOKED_NOTHING;
}

/* The kernel clears a page when it is touched first. That may take longer than TAPE_LOOK_OWN_NS,
 * and is part of the statement which is written there. */
static bool page_is_there(const void *at)
{
    static long size;
    unsigned char there = 1;
    if (size == 0)
        size = sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)at - (uintptr_t)at % (uintptr_t)size);
    return mincore(page, 1, &there) != 0 || there & 1;
}

static bool next_is_there(const struct place *p, const uint32_t *word)
{
    return page_is_there(word - 1) && (!p->cursor || page_is_there(cursor_partial(p)));
}

/* A thread that has run for a while and recorded nothing is not at statements, whatever else it
 * computes. One that has not run may be: how long it has run is read first. */
static enum tape_looked look_recorded(struct place *p)
{
    const uint32_t *before = __atomic_load_n(&p->before, __ATOMIC_RELAXED);
    if (!before)
        return TAPE_LOOKED_NOTHING;
    const uint64_t ran = thread_ns(p) - p->before_ns;
    const bool moved = cursor_word(p) != before || !next_is_there(p, before);
    if (!moved && ran < TAPE_LOOK_OWN_NS)
        return TAPE_LOOKED_PENDING;
    if (__atomic_compare_exchange_n(&p->before, &before, NULL, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED) &&
        moved)
        look_put(p, before, p->before_ticks);
    return moved ? TAPE_LOOKED_FOUND : TAPE_LOOKED_NOTHING;
}

static enum tape_looked look_again(struct place *p)
{
    const enum tape_looked recorded = look_recorded(p), swept = look_swept(p);
    return recorded > swept ? recorded : swept;
}

/* See tape_hook.watch. */
static enum tape_looked now_look(enum tape_look_kind kind, uint64_t now)
{
    enum tape_looked all = TAPE_LOOKED_NOTHING;
    const bool again = kind == TAPE_LOOK_AGAIN;
    pthread_mutex_lock(&lock);
    const uint64_t ticks = now > looked ? now - looked : 1;
    for (struct place *p = places; p; p = p->next) {
        const enum tape_looked one =
            again ? look_again(p) : look_first(p, ticks, kind == TAPE_LOOK_FIRST);
        all = one > all ? one : all;
    }
    if (!again)
        looked = now;
    pthread_mutex_unlock(&lock);
    return all;
}

struct tape_now *tape_look_here(struct tape_hook *hook, const struct tape_cursor *cursor)
{
    uint32_t session;
    if (!hook->watch || !tape_session_of(hook, &session))
        return NULL;
    if (__builtin_expect(mine && seen == session && (!cursor || place_at(mine)->cursor), 1))
        return mine;
    if (!place_of_thread())
        return NULL;
    pthread_mutex_lock(&lock);
    const bool first = looked_session != session;
    looked_session = seen = session;
    place_at(mine)->cursor = cursor;
    place_at(mine)->tail = place_at(mine)->head;
    place_at(mine)->carried = 0;
    if (pthread_getcpuclockid(pthread_self(), &place_at(mine)->clock) != 0)
        place_at(mine)->clock = CLOCK_MONOTONIC;
    if (first)
        looked = hook->clock();
    pthread_mutex_unlock(&lock);
    if (first) {
        hook->watch(hook, now_look);
        if (hook->apart) /* a thread is begun, which takes a while and is no scope's time */
            tape_scope_own += hook->clock() - looked;
    }
    return mine;
}

void tape_look_moved(struct tape_now *now, const uint32_t *from, const uint32_t *to)
{
    if (from)
        (void)__atomic_compare_exchange_n(&place_at(now)->before, &from, to, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

uint32_t tape_look_waiting(const struct tape_now *now)
{
    const struct place *p = (const struct place *)(const void *)now;
    return __atomic_load_n(&p->head, __ATOMIC_RELAXED) - p->tail;
}

uint32_t tape_look_take(struct tape_now *now, const uint32_t *low, const uint32_t *high, bool swept,
                        struct tape_look found[TAPE_LOOKS])
{
    struct place *p = place_at(now);
    const uint32_t *before = __atomic_load_n(&p->before, __ATOMIC_ACQUIRE);
    uint32_t n = 0;
    if (!swept && before > low && before <= high) {
        const uint64_t ticks = p->before_ticks;
        if (__atomic_compare_exchange_n(&p->before, &before, NULL, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            found[n++] = (struct tape_look){before, ticks};
    }
    const uint32_t head = __atomic_load_n(&p->head, __ATOMIC_ACQUIRE);
    uint32_t kept = head;
    if (__builtin_expect(head == p->tail, 1))
        return n;
    for (uint32_t i = head; i != p->tail; i--) {
        const struct tape_look one = p->look[(i - 1) % TAPE_LOOKS];
        if (swept == (one.ticks == 0) && n < TAPE_LOOKS &&
            (swept ? one.at >= low && one.at < high : one.at > low && one.at <= high))
            found[n++] = one;
        else
            p->look[--kept % TAPE_LOOKS] = one;
    }
    /* Looks at statements that are gone would stay for good: a full ring that run after run finds
     * nothing in is emptied. */
    p->misses = n == 0 && head - p->tail == TAPE_LOOKS ? p->misses + 1 : 0;
    if (p->misses == TAPE_LOOK_MISSES)
        kept = head;
    __atomic_store_n(&p->tail, kept, __ATOMIC_RELEASE);
    return n;
}

/* ---- the pool of large loops ---- */

static void *pool_caller(void)
{
    return mine && mine->doing.phase != TAPE_PHASE_NONE ? mine : NULL;
}

static void pool_enter(void *of)
{
    struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    struct tape_now *now = hook && hook->thread ? tape_now_here(hook) : NULL;
    struct tape_doing doing;
    if (now && tape_doing_read(&doing, of))
        tape_doing_write(now, &doing);
}

static void pool_leave(void)
{
    static const struct tape_doing nothing;
    if (mine)
        tape_doing_write(mine, &nothing);
}

void tape_now_watch(bool begin)
{
    static const struct threads_watch watch = {pool_caller, pool_enter, pool_leave};
    threads_watch(begin ? &watch : NULL);
}
