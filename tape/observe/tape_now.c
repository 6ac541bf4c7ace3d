/* tape_now.c: where each thread publishes; see tape_now.h.
 *
 * The memory is never given back, since samplers may look at it at any time: a thread that ends
 * leaves its own to the next that begins.
 */
#include "tape_now.h"

#include "tape_account.h"
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>

struct place {
    struct tape_now now; /* first: they have one address */
    struct place *next;  /* in the list of all */
    bool taken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct place *places;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static _Thread_local struct tape_now *mine;
static _Thread_local uint32_t told; /* the session in which the hook heard of it */

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
    p->taken = false;
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The other threads are gone, and so is what they did. */
static void after_fork_in_child(void)
{
    static const struct tape_doing nothing;
    told = 0;
    for (struct place *p = places; p; p = p->next) {
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
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
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

struct tape_now *tape_now_here(struct tape_hook *hook)
{
    uint32_t session;
    if (!tape_session_of(hook, &session))
        return NULL;
    if (__builtin_expect(told == session, 1))
        return mine;
    told = session;
    if (!mine) {
        pthread_once(&once, places_prepare);
        struct place *p = has_key ? place_take() : NULL;
        if (p && pthread_setspecific(key, p) != 0) {
            place_give_back(p);
            p = NULL;
        }
        mine = p ? &p->now : NULL;
    }
    if (mine)
        hook->thread(hook, mine);
    return mine;
}

uint32_t tape_now_own(struct tape *t, struct tape_site site, const char *op)
{
    const uint32_t row = tape_account_row(t, site, op);
    tape_now_path(t, row);
    return row;
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
