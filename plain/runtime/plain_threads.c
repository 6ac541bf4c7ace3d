/* plain_threads.c: threads that a program starts by OpenMP or POSIX record on forks of the tape of
 * the thread that started them (ad_plain_team.c).
 *
 * The pass calls these in place of libomp's and pthread's functions, and ad_plain_publish_ around
 * those that hand memory over: locks, semaphores, POSIX barriers.
 *
 * Races: a shadow's word belongs to the eight bytes of a value. Who may touch the value may touch
 * the word, and what orders accesses to the value (the end of a region, a barrier, a lock) orders
 * those to the word. What has no such order is a race of the program's; its shadow's check does
 * not fit then, and that is reported.
 */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of libomp, in programs that have it. */
#define OF_OPENMP __attribute__((weak)) extern
OF_OPENMP void __kmpc_fork_call(void *place, int n, void (*f)(void), ...);
OF_OPENMP void __kmpc_barrier(void *place, int thread);
OF_OPENMP int omp_get_thread_num(void);
OF_OPENMP int omp_get_num_threads(void);

static void __attribute__((noreturn)) no_memory(void)
{
    fprintf(stderr, "tapescope: no memory for what threads record\n");
    abort();
}

/* ---- OpenMP ---- */

/* What clang makes of a region takes its thread's numbers, and addresses or words of what it uses.
 * All that are there are given to it: the first in registers, the others on the stack. */
enum { IN_REGISTERS = 4, ON_STACK = 252 };
struct on_stack {
    void *a[ON_STACK];
};
typedef void outlined(int *thread, int *bound, void *, void *, void *, void *, struct on_stack);
typedef void outlined_short(int *thread, int *bound, void *, void *, void *, void *);

struct region {
    void (*f)(void);
    int n;
    bool has_indices;
    struct ad_plain_team_ *team;
    void *a[IN_REGISTERS];
    struct on_stack *more;
    uint32_t arguments[PLAIN_ARGUMENTS]; /* of the words that are passed */
};

static void region_run(int *thread, int *bound, struct region *r)
{
    struct ad_plain_member_ *m = NULL;
    if (r->team) {
        m = ad_plain_member_make_(r->team, (unsigned)omp_get_thread_num(),
                                  (unsigned)omp_get_num_threads());
        if (!m)
            no_memory();
        ad_plain_member_begin_(m);
    }
    ad_plain_callee_ = 0;
    if (r->has_indices) {
        memcpy(ad_plain_arguments_, r->arguments, sizeof r->arguments);
        ad_plain_callee_ = (uintptr_t)r->f;
    }
    if (r->more)
        ((outlined *)r->f)(thread, bound, r->a[0], r->a[1], r->a[2], r->a[3], *r->more);
    else
        ((outlined_short *)r->f)(thread, bound, r->a[0], r->a[1], r->a[2], r->a[3]);
    if (m)
        ad_plain_member_end_(m);
}

void ad_plain_call___kmpc_fork_call(void *place, int n, void (*f)(void), ...);
void ad_plain_call___kmpc_fork_call(void *place, int n, void (*f)(void), ...)
{
    struct region r = {.f = f, .n = n};
    struct on_stack more;
    va_list list;
    if (ad_plain_callee_ == (uintptr_t)ad_plain_call___kmpc_fork_call) {
        memcpy(r.arguments, ad_plain_arguments_, sizeof r.arguments);
        r.has_indices = true;
        ad_plain_callee_ = 0;
    }
    if (n > IN_REGISTERS + ON_STACK) {
        fprintf(stderr, "tapescope: a parallel region uses %d variables; %d are possible\n", n,
                IN_REGISTERS + ON_STACK);
        abort();
    }
    va_start(list, f);
    for (int k = 0; k < n; k++)
        *(k < IN_REGISTERS ? &r.a[k] : &more.a[k - IN_REGISTERS]) = va_arg(list, void *);
    va_end(list);
    r.more = n > IN_REGISTERS ? &more : NULL;
    r.team = ad_plain_team_begin_(true, PLAIN_HERE);
    __kmpc_fork_call(place, 1, (void (*)(void))region_run, &r);
    if (r.team)
        ad_plain_team_end_(r.team);
}

void ad_plain_call___kmpc_barrier(void *place, int thread);
void ad_plain_call___kmpc_barrier(void *place, int thread)
{
    const bool meets = ad_plain_meet_begin_((unsigned)omp_get_num_threads());
    if (!meets)
        ad_plain_publish_();
    __kmpc_barrier(place, thread);
    if (meets)
        ad_plain_meet_end_();
    else
        ad_plain_publish_();
}

/* Threads add what they have to the whole one after the other, in the order of their numbers: so
 * the sum is the same each time. Without a tape the order is free. */
static pthread_mutex_t reducing = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool reduces;

static int reduce(void *place, int thread)
{
    const unsigned n = (unsigned)omp_get_num_threads();
    if (n > 1 && ad_plain_meet_begin_(n)) {
        __kmpc_barrier(place, thread);
        ad_plain_meet_end_();
        if (ad_plain_turn_begin_(n))
            return 1;
    }
    if (n > 1) {
        pthread_mutex_lock(&reducing);
        reduces = true;
        ad_plain_publish_();
    }
    return 1;
}

static void reduce_end(void)
{
    if (ad_plain_turn_end_() || !reduces)
        return;
    ad_plain_publish_();
    reduces = false;
    pthread_mutex_unlock(&reducing);
}

/* They give 1 alone: the pass relies on it. */
typedef void reduction(void *, void *);
int ad_plain_call___kmpc_reduce(void *place, int thread, int n, size_t size, void *data,
                                reduction *f, void *lock);
int ad_plain_call___kmpc_reduce(void *place, int thread, int n, size_t size, void *data,
                                reduction *f, void *lock)
{
    (void)n, (void)size, (void)data, (void)f, (void)lock;
    return reduce(place, thread);
}

int ad_plain_call___kmpc_reduce_nowait(void *place, int thread, int n, size_t size, void *data,
                                       reduction *f, void *lock);
int ad_plain_call___kmpc_reduce_nowait(void *place, int thread, int n, size_t size, void *data,
                                       reduction *f, void *lock)
{
    (void)n, (void)size, (void)data, (void)f, (void)lock;
    return reduce(place, thread);
}

void ad_plain_call___kmpc_end_reduce(void *place, int thread, void *lock);
void ad_plain_call___kmpc_end_reduce(void *place, int thread, void *lock)
{
    (void)lock;
    reduce_end();
    ad_plain_call___kmpc_barrier(place, thread);
}

void ad_plain_call___kmpc_end_reduce_nowait(void *place, int thread, void *lock);
void ad_plain_call___kmpc_end_reduce_nowait(void *place, int thread, void *lock)
{
    (void)place, (void)thread, (void)lock;
    reduce_end();
}

/* ---- POSIX threads ---- */

/* A thread that was started and is not joined yet. */
struct started {
    void *(*f)(void *);
    void *argument;
    struct ad_plain_member_ *member;
    pthread_t id;
    struct started *next;
};

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static struct started *all_started;

static void thread_end(void *member)
{
    ad_plain_member_end_(member);
}

static void *thread_run(void *argument)
{
    const struct started *s = argument;
    void *result;
    ad_plain_member_begin_(s->member);
    pthread_cleanup_push(thread_end, s->member);
    result = s->f(s->argument);
    pthread_cleanup_pop(1);
    return result;
}

/* Whether a thread of the team is not joined yet. */
static bool any_started(const struct ad_plain_team_ *team)
{
    pthread_mutex_lock(&starting);
    const struct started *s = all_started;
    while (s && ad_plain_member_team_(s->member) != team)
        s = s->next;
    pthread_mutex_unlock(&starting);
    return s != NULL;
}

/* The thread that began the team records on the tape itself when all others are joined. */
static void team_maybe_end(struct ad_plain_member_ *me)
{
    struct ad_plain_team_ *team = ad_plain_member_team_(me);
    if (!ad_plain_member_leads_(me) || any_started(team))
        return;
    ad_plain_member_end_(me);
    ad_plain_team_end_(team);
}

static struct ad_plain_member_ *member_more(struct ad_plain_team_ *team)
{
    struct ad_plain_member_ *m = ad_plain_member_make_(team, 0, 0);
    if (!m)
        no_memory();
    return m;
}

int ad_plain_call_pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                 void *(*f)(void *), void *argument);
int ad_plain_call_pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                 void *(*f)(void *), void *argument)
{
    struct ad_plain_member_ *me = ad_plain_member_();
    struct ad_plain_team_ *team = me ? ad_plain_member_team_(me) : NULL;
    if (team) {
        ad_plain_publish_();
    } else {
        team = ad_plain_team_begin_(false, PLAIN_HERE);
        if (!team)
            return pthread_create(id, attributes, f, argument);
        ad_plain_member_begin_(me = member_more(team));
    }
    struct started *s = malloc(sizeof *s);
    if (!s)
        no_memory();
    *s = (struct started){.f = f, .argument = argument, .member = member_more(team)};
    pthread_mutex_lock(&starting);
    const int error = pthread_create(id, attributes, thread_run, s);
    if (error == 0) {
        s->id = *id;
        s->next = all_started;
        all_started = s;
    }
    pthread_mutex_unlock(&starting);
    if (error != 0) {
        ad_plain_member_join_(s->member);
        free(s);
        team_maybe_end(me);
    }
    return error;
}

int ad_plain_call_pthread_join(pthread_t id, void **result);
int ad_plain_call_pthread_join(pthread_t id, void **result)
{
    struct started *s = NULL;
    /* Taken out before: behind the join another thread may get the same id. */
    pthread_mutex_lock(&starting);
    for (struct started **at = &all_started; *at && !s; at = s ? at : &(*at)->next)
        if (pthread_equal((*at)->id, id)) {
            s = *at;
            *at = s->next;
        }
    pthread_mutex_unlock(&starting);
    const int error = pthread_join(id, result);
    if (error != 0 && s) {
        pthread_mutex_lock(&starting);
        s->next = all_started;
        all_started = s;
        pthread_mutex_unlock(&starting);
    }
    if (error != 0 || !s)
        return error;
    struct ad_plain_member_ *me = ad_plain_member_();
    /* Joined by a thread of another team, its values are not known there: that is reported. */
    if (me && ad_plain_member_team_(me) == ad_plain_member_team_(s->member)) {
        ad_plain_member_join_(s->member);
        ad_plain_publish_();
        team_maybe_end(me);
    }
    free(s);
    return 0;
}

/* ---- atomic additions ---- */

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* *at += x, recorded where it was called; what was there. One thread adds at a time, so that value
 * and shadow fit. */
double ad_plain_call_atomic_add(double *at, double x);
double ad_plain_call_atomic_add(double *at, double x)
{
    const uintptr_t self = (uintptr_t)ad_plain_call_atomic_add;
    uint32_t index = ad_plain_callee_ == self ? ad_plain_arguments_[0] : 0;
    uint32_t tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    ad_plain_callee_ = 0;
    pthread_mutex_lock(&adding);
    ad_plain_publish_();
    if (index && ad_plain_place_(&index, &tag) != AD_PLAIN_STANDS_)
        index = 0;
    const ad_real before = ad_plain_read(at);
    const ad_real of[] = {before, {x, index, index ? tag : 0}};
    ad_plain_write(at, ad_plain_statement_(PLAIN_HERE, 2, of, (double[]){1, 1}, before.value + x));
    index = before.index;
    tag = before.tag;
    ad_plain_publish_();
    pthread_mutex_unlock(&adding);
    if (index && ad_plain_place_(&index, &tag) != AD_PLAIN_STANDS_)
        index = 0;
    ad_plain_results_[0] = index;
    ad_plain_returned_ = self;
    return before.value;
}
