/* ad_log.c: what the library has to say of its own accord: to the user's function, or on standard
 * error.
 *
 * A message may come in the middle of an op and under locks of the profiler, so the thread has no
 * tapes while the user's function runs, and no profile either.
 */
#include "ad_internal.h"

#include <pthread.h>
#include <stdio.h>

_Static_assert((int)AD_LOG_INFO == (int)TAPE_LOG_INFO, "one vocabulary");
_Static_assert((int)AD_LOG_WARNING == (int)TAPE_LOG_WARNING, "one vocabulary");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ad_log_callback *listener;
static void *listener_payload;
static _Thread_local bool telling;

void ad_on_log(ad_log_callback *callback, void *payload)
{
    pthread_mutex_lock(&lock);
    listener = callback;
    listener_payload = payload;
    pthread_mutex_unlock(&lock);
}

bool ad_log_tell(int level, const char *message)
{
    pthread_mutex_lock(&lock);
    ad_log_callback *callback = listener;
    void *payload = listener_payload;
    pthread_mutex_unlock(&lock);
    if (!callback)
        return false;
    /* Every tape is another thread's meanwhile. */
    uint64_t thread = ad_thread;
    ad_thread = 0;
    telling = true;
    callback((ad_log_level)level, message, payload);
    telling = false;
    ad_thread = thread;
    return true;
}

bool ad_log_telling(void)
{
    return telling;
}

void ad_log_say(int level, const char *message)
{
    if (!ad_log_tell(level, message))
        fprintf(stderr, "tapescope: %s\n", message);
}

void ad_log_forget(void)
{
    pthread_mutex_init(&lock, NULL);
}
