/* collect_signal.c: a signal asks for a snapshot, which the next op of some tape writes.
 *
 * The handler takes no lock and allocates nothing: it stores to two words, by operations that are
 * lock-free. It stays for the life of the process, since the signal may still come when nobody
 * waits for it any more.
 */
#include "collect.h"

#include <errno.h>
#include <signal.h>

static uint64_t *watched; /* of the collector that waits, or NULL; collectors live for good */
static int wanted;

static void signal_take(int number)
{
    (void)number;
    uint64_t *due = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
    if (due == NULL)
        return;
    __atomic_store_n(&wanted, 1, __ATOMIC_RELAXED);
    __atomic_store_n(due, 0, __ATOMIC_RELAXED);
}

const char *collect_signal_watch(int number, uint64_t *due)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0)
        return collect_reason(errno);
    const bool is_ours = !(now.sa_flags & SA_SIGINFO) && now.sa_handler == signal_take;
    if (!is_ours && ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL))
        return "the program has a use of its own for the signal";
    __atomic_store_n(&wanted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&watched, due, __ATOMIC_RELEASE);
    struct sigaction action = {.sa_handler = signal_take, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    return is_ours || sigaction(number, &action, NULL) == 0 ? NULL : collect_reason(errno);
}

bool collect_signal_taken(const uint64_t *due)
{
    return __atomic_load_n(&watched, __ATOMIC_RELAXED) == due &&
           __atomic_exchange_n(&wanted, 0, __ATOMIC_RELAXED) != 0;
}

void collect_signal_forget(const uint64_t *due)
{
    uint64_t *expected = (uint64_t *)due;
    (void)__atomic_compare_exchange_n(&watched, &expected, NULL, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED);
}
