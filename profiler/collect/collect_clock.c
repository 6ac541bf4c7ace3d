/* collect_clock.c: the profiler's clock.
 *
 * The clock is the processor's time-stamp counter where the processor says that it runs at one rate
 * in all its states (tsc), else CLOCK_MONOTONIC in ns (monotonic). The environment variable
 * TAPESCOPE_CLOCK chooses one by name, or `step:N`: a clock that moves by N ns at each of the
 * tape's readings and never otherwise, from 0 in each thread, so that a program's profile has the
 * same times in every run. Clock functions have no argument, hence one step in a process: that of
 * the last collector opened.
 */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

enum { STEP_MAX = 1000000000, CALIBRATE_NS = 200000, REFINE_NS = 1000000, STAMP_TRIES = 8 };

static uint64_t step_ns;
static uint32_t step_epoch; /* counts openings: threads start again from 0 */
static _Thread_local uint64_t step_now;
static _Thread_local uint32_t step_seen;

static uint64_t read_time(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t collect_time_monotonic(void)
{
    return read_time(CLOCK_MONOTONIC);
}

uint64_t collect_time_unix(void)
{
    return read_time(CLOCK_REALTIME);
}

static uint64_t step_peek(void)
{
    uint32_t epoch = __atomic_load_n(&step_epoch, __ATOMIC_ACQUIRE);
    if (step_seen != epoch) {
        step_seen = epoch;
        step_now = 0;
    }
    return step_now;
}

static uint64_t step_read(void)
{
    step_now = step_peek() + __atomic_load_n(&step_ns, __ATOMIC_RELAXED);
    return step_now;
}

#if defined(__x86_64__)
static uint64_t tsc_read(void)
{
    return __rdtsc();
}

static bool tsc_is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}
#else
static uint64_t (*const tsc_read)(void) = collect_time_monotonic;

static bool tsc_is_invariant(void)
{
    return false;
}
#endif

/* N of "step:N", or 0. */
static uint64_t parse_step(const char *text)
{
    if (strncmp(text, "step:", 5) != 0 || text[5] < '0' || text[5] > '9')
        return 0;
    char *end;
    errno = 0;
    unsigned long n = strtoul(text + 5, &end, 10);
    return errno == 0 && *end == '\0' && n <= STEP_MAX ? n : 0;
}

static void clock_choose(struct collect_clock *clock, const char *name, uint64_t (*read)(void))
{
    snprintf(clock->name, sizeof clock->name, "%s", name);
    clock->read = read;
    clock->peek = read;
}

/* The counter is read on both sides of the system's clock; the try that was interrupted least
 * counts. */
struct collect_stamp collect_clock_stamp(const struct collect_clock *clock)
{
    struct collect_stamp stamp = {.ticks = clock->peek()};
    if (clock->read == step_read || clock->read == collect_time_monotonic) {
        stamp.monotonic_ns = stamp.ticks;
        return stamp;
    }
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < STAMP_TRIES; i++) {
        uint64_t before = clock->peek();
        uint64_t ns = collect_time_monotonic();
        uint64_t gap = clock->peek() - before;
        if (gap < least) {
            least = gap;
            stamp = (struct collect_stamp){.ticks = before + gap / 2, .monotonic_ns = ns};
        }
    }
    return stamp;
}

void collect_clock_refine(struct collect_clock *clock, const struct collect_stamp *now)
{
    uint64_t ns = now->monotonic_ns - clock->start.monotonic_ns;
    double rate = clock->ticks_per_ns;
    if (clock->read == tsc_read && ns >= REFINE_NS && now->ticks > clock->start.ticks)
        rate = (double)(now->ticks - clock->start.ticks) / (double)ns;
    __atomic_store(&clock->ticks_per_ns, &rate,
                   __ATOMIC_RELAXED); /* others read it as they please */
}

uint64_t collect_clock_ticks(const struct collect_clock *clock, uint64_t ns)
{
    return (uint64_t)((double)ns * clock->ticks_per_ns);
}

double collect_clock_ns(const struct collect_clock *clock, uint64_t ticks)
{
    double rate;
    __atomic_load(&clock->ticks_per_ns, &rate, __ATOMIC_RELAXED);
    return (double)ticks / rate;
}

static void clock_calibrate(struct collect_clock *clock)
{
    struct collect_stamp now;
    do
        now = collect_clock_stamp(clock);
    while (now.monotonic_ns - clock->start.monotonic_ns < CALIBRATE_NS);
    if (now.ticks > clock->start.ticks)
        clock->ticks_per_ns = (double)(now.ticks - clock->start.ticks) /
                              (double)(now.monotonic_ns - clock->start.monotonic_ns);
}

const char *collect_clock_open(struct collect_clock *clock)
{
    const char *wish = secure_getenv("TAPESCOPE_CLOCK");
    if (wish == NULL || wish[0] == '\0')
        wish = tsc_is_invariant() ? "tsc" : "monotonic";
    uint64_t step = parse_step(wish);
    *clock = (struct collect_clock){.ticks_per_ns = 1};
    if (step != 0) {
        char name[32];
        snprintf(name, sizeof name, "step:%llu", (unsigned long long)step);
        clock_choose(clock, name, step_read);
        clock->peek = step_peek;
        __atomic_store_n(&step_ns, step, __ATOMIC_RELAXED);
        __atomic_fetch_add(&step_epoch, 1, __ATOMIC_RELEASE);
    } else if (strcmp(wish, "monotonic") == 0) {
        clock_choose(clock, wish, collect_time_monotonic);
    } else if (strcmp(wish, "tsc") == 0) {
        if (!tsc_is_invariant())
            return "TAPESCOPE_CLOCK=tsc: this processor has no invariant time-stamp counter";
        clock_choose(clock, wish, tsc_read);
    } else {
        return "TAPESCOPE_CLOCK must be tsc, monotonic or step:N with N from 1 to 1000000000 ns";
    }
    clock->start = collect_clock_stamp(clock);
    if (clock->read == tsc_read)
        clock_calibrate(clock);
    return NULL;
}
