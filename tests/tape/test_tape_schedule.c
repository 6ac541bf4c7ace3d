/* test_tape_schedule.c: schedules of loops whose length is not known: in which order units are
 * swept, and how often each is computed, against the published bounds.
 */
#include "tape_schedule.h"

#include "loop_checks.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { MOST = 700, SLOTS = 40 };

/* Check's own assertions write something each time, and here are millions. */
#define HOLDS(what)                                                                                \
    do {                                                                                           \
        if (!(what))                                                                               \
            ck_abort_msg("not so: %s", #what);                                                     \
    } while (0)

/* A loop that only counts. */
static struct tape_schedule s;
static struct tape_stored stored[SLOTS];
static int64_t at, end, next, computed[MOST + 1], held[SLOTS];

static bool load(void *job, const struct tape_stored *from)
{
    (void)job;
    at = from ? from->unit * s.unit : 0;
    if (from)
        HOLDS(held[from->slot] == at);
    return true;
}

static bool store(void *job, const struct tape_stored *to)
{
    (void)job;
    HOLDS(to->slot < s.n_slots);
    HOLDS(to->unit * s.unit == at);
    for (uint32_t k = 0; k < s.n_stored; k++)
        HOLDS(s.stored[k].slot != to->slot);
    held[to->slot] = at;
    return true;
}

static bool advance(void *job, int64_t from, int64_t to)
{
    (void)job;
    HOLDS(from == at);
    while (at < to && at < s.steps) {
        computed[at++]++;
        if (at == end)
            s.steps = end;
    }
    return true;
}

static bool sweep(void *job, int64_t from, int64_t to)
{
    (void)job;
    HOLDS(from == at && to == next && to - from <= s.unit);
    next = from;
    return true;
}

static const struct tape_schedule_verbs verbs = {
    .load = load, .store = store, .advance = advance, .sweep = sweep};

/* How many steps are computed of n, which are not known to be so many; all of them are swept. */
static int64_t run(int64_t n, uint32_t states, int64_t most_unit)
{
    const struct tape_plan plan = {.unit = 1, .most_unit = most_unit, .n_slots = states - 1};
    int64_t sum = 0;
    s = tape_schedule_of(&plan, TAPE_UNTIL_LAST);
    s.stored = stored;
    tape_schedule_begin(&s);
    memset(computed, 0, sizeof computed);
    at = 0;
    end = n;
    next = n;
    HOLDS(tape_schedule_forward(&s, &verbs, NULL));
    HOLDS(s.steps == n);
    for (int64_t i = 0; i < n; i++)
        HOLDS(computed[i] == 1);
    HOLDS(tape_schedule_backward(&s, &verbs, NULL));
    HOLDS(next == 0);
    for (int64_t i = 0; i < n; i++)
        sum += computed[i];
    return sum;
}

/* That a step is the last is known behind it: so it is as with one further step, which costs
 * nothing. Wang, Moin, Iaccarino 2009: no step is computed more than r times; Stumm, Walther 2010:
 * up to r = 2 as few as with a known number are possible. */
TEST(steps_are_computed_as_seldom_as_is_published)
{
    static const uint32_t states[] = {1, 2, 3, 5, 8, 16, 32};
    for (int k = 0; k < 7; k++) {
        const uint32_t c = states[k];
        for (int64_t n = 1; n <= (c < 3 ? 100 : MOST); n++) {
            const int64_t sum = run(n, c, 1), least = optimum(n + 1, c), r = repetitions(n + 1, c);
            for (int64_t i = 0; i < n; i++)
                HOLDS(computed[i] <= r);
            HOLDS(sum >= least);
            if (r <= 2)
                HOLDS(sum == least);
            else
                HOLDS(sum * 100 <= least * 142);
        }
    }
}

TEST(units_of_several_steps_begin_with_what_is_stored_of_them)
{
    for (int64_t most = 2; most <= 64; most *= 2)
        for (uint32_t c = 1; c <= SLOTS; c += c < 6 ? 1 : 11)
            for (int64_t n = 1; n <= 300; n++) {
                const int64_t again = run(n, c, most) - n;
                HOLDS(s.unit <= most);
                /* As long as units grow, no step is computed a second time without being recorded,
                 * but for those of the last unit's begin on the way to it. */
                if (c > 1 && s.unit < most)
                    HOLDS(again <= n);
            }
}

RUN_TESTS(NULL, NULL)
