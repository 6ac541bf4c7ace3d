/* tape_poison.c: the last failures that poisoned numbers stem from, by number.
 *
 * Invariant: failure[n % FAILURES] is that of number n, if it still has that number.
 */
#include "tape_poison.h"

#include "tape.h"

#include <pthread.h>
#include <string.h>

enum { FAILURES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tape_error failure[FAILURES]; /* `number` is atomic */
static uint32_t newest;

uint32_t tape_poison(struct tape_error *error)
{
    if (error->number && __atomic_load_n(&failure[error->number % FAILURES].number,
                                         __ATOMIC_RELAXED) == error->number)
        return error->number;
    pthread_mutex_lock(&lock);
    newest = newest < UINT16_MAX ? newest + 1 : 1;
    struct tape_error *to = &failure[newest % FAILURES];
    error->number = newest;
    to->code = error->code;
    memcpy(to->message, error->message, sizeof to->message);
    __atomic_store_n(&to->number, newest, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return error->number;
}

bool tape_poison_read(uint32_t index, uint32_t tag, struct tape_error *error)
{
    if (index || !tag)
        return false;
    pthread_mutex_lock(&lock);
    const bool known = failure[tag % FAILURES].number == tag;
    if (known)
        *error = failure[tag % FAILURES];
    pthread_mutex_unlock(&lock);
    return known;
}

bool tape_poison_fail(struct tape *t, uint32_t index, uint32_t tag)
{
    struct tape_error error;
    if (t->error.code == TAPE_OK && tape_poison_read(index, tag, &error))
        tape_fail_as(t, &error);
    return t->error.code != TAPE_OK;
}

void tape_poison_forget(void)
{
    pthread_mutex_init(&lock, NULL);
}
