/* ad_scope.c: scopes and expectations for the profile, and what one expression took.
 *
 * What is wrong with a scope is an error of the thread's, never of a tape: it changes no result.
 */
#include "ad_internal.h"

#include "tape_scope.h"
#include "tape_statement.h"

#include <time.h>

#undef ad_scope_end
#undef ad_tape_assert_bytes

int ad_profiling_;

/* Scopes begun by calls, and not ended, in the calling thread; counted without a profile too, so
 * that an end without a begin is found always. */
static _Thread_local uint32_t open_calls __attribute__((tls_model("initial-exec")));

/* Closes the run of statements, so that it is charged to the scope that the thread was in until
 * now. */
static void close_run(void)
{
    struct tape *t = ad_real_recording();
    if (t)
        tape_settle(t);
}

static void report(struct tape_scope_fault fault, struct tape_site site)
{
    if (fault.what == TAPE_SCOPE_LEFT_OPEN)
        ad_fail(AD_ERROR_STATE, site, "scope_end: the scope \"%s\" was begun within and not ended",
                fault.name);
    else if (fault.what == TAPE_SCOPE_IN_BLOCK)
        ad_fail(AD_ERROR_STATE, site, "scope_end: ends a scope around the scope \"%s\"",
                fault.name);
}

static ad_status begin(const char *name, uint32_t n, const char *const *key, const int64_t *value)
{
    open_calls++;
    if (__builtin_expect(__atomic_load_n(&ad_profiling_, __ATOMIC_RELAXED), 0)) {
        close_run();
        tape_scope_begin(name, (struct tape_scope_keys){n, key, value}, open_calls);
    }
    return AD_OK;
}

ad_status ad_scope_begin(const char *name)
{
    if (!name)
        return ad_fail(AD_ERROR_ARGUMENT, (struct tape_site){0, 0},
                       "scope_begin: name is a null pointer");
    return begin(name, 0, NULL, NULL);
}

ad_status ad_scope_begin_keys(const char *name, int n, const char *const *key, const int64_t *value)
{
    const struct tape_site none = {0, 0};
    if (!name)
        return ad_fail(AD_ERROR_ARGUMENT, none, "scope_begin_keys: name is a null pointer");
    if (n < 0 || n > TAPE_SCOPE_KEYS)
        return ad_fail(AD_ERROR_ARGUMENT, none, "scope_begin_keys: %d keys, up to %d are possible",
                       n, (int)TAPE_SCOPE_KEYS);
    if (n > 0 && (!key || !value))
        return ad_fail(AD_ERROR_ARGUMENT, none, "scope_begin_keys: %s is a null pointer",
                       key ? "value" : "key");
    for (int i = 0; i < n; i++)
        if (!key[i])
            return ad_fail(AD_ERROR_ARGUMENT, none, "scope_begin_keys: key[%d] is a null pointer",
                           i);
    return begin(name, (uint32_t)n, key, value);
}

ad_status ad_scope_end_site(unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    if (open_calls == 0)
        return ad_fail(AD_ERROR_STATE, site, "scope_end: no scope was begun");
    const uint32_t number = open_calls--;
    if (tape_scope_depth() == 0)
        return AD_OK;
    close_run();
    struct tape_scope_fault fault = tape_scope_end_number(number);
    report(fault, site);
    return fault.what == TAPE_SCOPE_FINE ? AD_OK : AD_ERROR_STATE;
}

unsigned ad_scope_begin_block_(const char *name, unsigned n, const char *const *key,
                               const int64_t *value)
{
    for (unsigned i = 0; i < n; i++)
        if (!key[i])
            n = 0;
    close_run();
    return tape_scope_begin(name ? name : "", (struct tape_scope_keys){n, key, value}, 0);
}

void ad_scope_end_block_(unsigned depth)
{
    unsigned ad_line_ = 0;
    struct tape_site site = AD_HERE;
    close_run();
    report(tape_scope_end(depth), site);
}

void ad_expect_site(int kind, double bound, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    tape_scope_expect(site.pc, site.line, kind ? TAPE_EXPECT_BYTES : TAPE_EXPECT_RATIO, bound);
}

/* ---- one expression ---- */

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct ad_timed_ ad_timed_begin_(double *seconds)
{
    const struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    return (struct ad_timed_){seconds, hook, hook ? hook->clock() : monotonic()};
}

/* A hook outlives its observation, so that its clock may be read here still. */
void ad_timed_end_(const struct ad_timed_ *timed)
{
    const struct tape_hook *hook = timed->clock;
    const uint64_t took = (hook ? hook->clock() : monotonic()) - timed->start;
    const double ns = hook && hook->ns ? hook->ns(hook, took) : (double)took;
    if (timed->seconds)
        *timed->seconds = ns * 1e-9;
}

struct ad_grown_ ad_grown_begin_(int64_t *bytes)
{
    return (struct ad_grown_){bytes, tape_observe_held()};
}

void ad_grown_end_(const struct ad_grown_ *grown)
{
    if (grown->bytes)
        *grown->bytes = (int64_t)(tape_observe_held() - grown->before);
}

ad_status ad_tape_assert_bytes_site(ad_tape tape, uint64_t bytes, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tape_assert_bytes", site);
    if (!t)
        return ad_failed();
    if (t->arena.live <= bytes)
        return AD_OK;
    return (ad_status)tape_fail(t, TAPE_ERROR_LIMIT, site,
                                "tape_assert_bytes: the tape holds %llu bytes, more than %llu",
                                (unsigned long long)t->arena.live, (unsigned long long)bytes);
}
