/* collect_fork.c: which collectors are open, and what a fork does to them.
 *
 * The lock guards the lists; it is held over a fork, so that the child finds them whole.
 */
#include "collect.h"
#include "collect_paths.h"

#include <pthread.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collect_open *open_list;
static struct collect_open *closed_list; /* reachable for ever: see collect_open_remove */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local sigset_t mask_before;

/* A fork that a signal interrupts begins again: with a large process and many samples it would
 * never come to its end. */
static void collector_before_fork(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &ours, &mask_before);
    pthread_mutex_lock(&lock);
    collect_paths_before_fork();
    collect_modules_before_fork();
}

static void collector_after_fork_in_parent(void)
{
    collect_modules_after_fork();
    collect_paths_after_fork();
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

static void collector_after_fork_in_child(void)
{
    for (struct collect_open *open = open_list; open != NULL; open = open->next)
        open->forget(open);
    collect_modules_after_fork();
    collect_paths_after_fork();
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(collector_before_fork, collector_after_fork_in_parent,
                         collector_after_fork_in_child);
}

void collect_open_add(struct collect_open *open)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    open->next = open_list;
    open_list = open;
    pthread_mutex_unlock(&lock);
}

void collect_open_remove(struct collect_open *open)
{
    pthread_mutex_lock(&lock);
    struct collect_open **at = &open_list;
    while (*at != NULL && *at != open)
        at = &(*at)->next;
    if (*at != NULL)
        *at = open->next;
    open->next = closed_list;
    closed_list = open;
    pthread_mutex_unlock(&lock);
}
