/* tape_observe.c: which hook observes the tapes of this process, and the list of tapes.
 *
 * The lock guards the list and the begin and end of an observation; the hot path reads
 * tape_hook_now alone.
 */
#include "tape_observer.h"
#include "tape_part.h"
#include "tape_scope.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

struct tape_hook *tape_hook_now;
uint32_t tape_session_now;
void (*tape_sweep_watch)(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tape *tapes;
static uint64_t last_tape, last_thread;

static uint64_t thread_number(void)
{
    static _Thread_local uint64_t mine;
    if (!mine)
        mine = __atomic_add_fetch(&last_thread, 1, __ATOMIC_RELAXED);
    return mine;
}

/* Not remembered: the child of a fork has another. */
static uint64_t system_thread(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

void tape_observer_add(struct tape *t)
{
    t->ledger.thread = thread_number();
    t->ledger.tid = system_thread();
    t->ledger.tape = __atomic_add_fetch(&last_tape, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    t->next_tape = tapes;
    t->link = &tapes;
    if (tapes)
        tapes->link = &t->next_tape;
    tapes = t;
    pthread_mutex_unlock(&lock);
}

void tape_observe_adopt(struct tape *t, bool mine)
{
    pthread_mutex_lock(&lock);
    t->ledger.thread = mine ? thread_number() : 0;
    t->ledger.tid = mine ? system_thread() : 0;
    pthread_mutex_unlock(&lock);
}

static void tape_flush(struct tape *t, struct tape_hook *hook, bool final)
{
    if (__atomic_load_n(&t->session, __ATOMIC_ACQUIRE) !=
        __atomic_load_n(&tape_session_now, __ATOMIC_RELAXED))
        return;
    hook->flush(hook, &t->ledger, final);
}

void tape_observer_remove(struct tape *t)
{
    if (t->ledger.tape == 0) /* it is not listed */
        return;
    pthread_mutex_lock(&lock);
    *t->link = t->next_tape;
    if (t->next_tape)
        t->next_tape->link = t->link;
    struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    if (hook)
        tape_flush(t, hook, true);
    pthread_mutex_unlock(&lock);
}

/* Statements are charged when their run is closed, which its own thread alone can do. */
static void tapes_settle(void)
{
    for (struct tape *t = tapes; t; t = t->next_tape)
        if (t->ledger.thread == thread_number())
            tape_settle(t);
}

bool tape_observe_begin(struct tape_hook *hook)
{
    pthread_mutex_lock(&lock);
    bool free = tape_hook_now == NULL;
    if (free) {
        tapes_settle();
        tape_scope_observe(hook);
        __atomic_add_fetch(&tape_session_now, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&tape_hook_now, hook, __ATOMIC_RELEASE);
        tape_now_watch(hook->thread != NULL);
    }
    pthread_mutex_unlock(&lock);
    return free;
}

void tape_observe_flush(void)
{
    pthread_mutex_lock(&lock);
    struct tape_hook *hook = tape_hook_now;
    tapes_settle();
    tape_scope_settle();
    for (struct tape *t = tapes; t && hook; t = t->next_tape)
        tape_flush(t, hook, false);
    pthread_mutex_unlock(&lock);
}

void tape_observe_end(void)
{
    pthread_mutex_lock(&lock);
    struct tape_hook *hook = tape_hook_now;
    tapes_settle();
    tape_now_watch(false);
    tape_scope_settle();
    __atomic_store_n(&tape_hook_now, NULL, __ATOMIC_RELEASE);
    for (struct tape *t = tapes; t && hook; t = t->next_tape)
        tape_flush(t, hook, false);
    if (hook && hook->end)
        hook->end(hook);
    pthread_mutex_unlock(&lock);
}

uint64_t tape_observe_unused(const struct tape *t)
{
    uint64_t unused = 0;
    for (const struct tape_part *const *part = tape_parts; *part; part++)
        if ((*part)->unused)
            unused += (*part)->unused(t);
    return unused;
}

uint64_t tape_observe_held(void)
{
    uint64_t held = 0;
    pthread_mutex_lock(&lock);
    for (const struct tape *t = tapes; t; t = t->next_tape)
        if (t->ledger.thread == thread_number())
            held += t->arena.live - tape_observe_unused(t);
    pthread_mutex_unlock(&lock);
    return held;
}

void tape_observe_forget(void)
{
    /* In the child of a fork: the lock may be held by a thread that does not exist here. */
    tape_now_watch(false);
    __atomic_store_n(&tape_hook_now, NULL, __ATOMIC_RELEASE);
    pthread_mutex_init(&lock, NULL);
    tape_scope_forget();
}
