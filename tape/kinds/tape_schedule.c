/* tape_schedule.c: see tape_schedule.h. */
#include "tape_schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- the binomial schedule ---- */

/* With beta(c, r) = C(c + r, c): what c states allow if no unit is computed more than r times. */
struct binomial {
    int64_t r, below, most; /* the least r with n <= beta(c, r); beta(c, r - 1); beta(c, r) */
};

static struct binomial binomial_of(int64_t n, int64_t c)
{
    struct binomial b = {.r = 1, .below = 1, .most = c + 1};
    while (b.most < n) {
        b.r++;
        b.below = b.most;
        b.most = b.most * (c + b.r) / b.r;
    }
    return b;
}

int64_t tape_schedule_next(int64_t n, uint32_t free)
{
    const int64_t c = (int64_t)free + 1;
    if (c == 1)
        return n - 1;
    /* The last of the parts that are optimal: at most beta(c, r - 1) units, and at least
     * beta(c - 1, r - 1) behind them. */
    const struct binomial b = binomial_of(n, c);
    const int64_t behind = n - b.below * c / (c + b.r - 1);
    return b.below < behind ? b.below : behind;
}

double tape_schedule_computed(int64_t n, uint32_t free)
{
    const int64_t c = (int64_t)free + 1;
    if (c == 1)
        return (double)n * (double)(n - 1) / 2;
    const struct binomial b = binomial_of(n, c);
    return (double)b.r * (double)n - (double)b.below * (double)(c + b.r) / (double)(c + 1);
}

/* ---- what fits ---- */

/* How many states have room in the file. */
static uint64_t plan_disk(const struct tape_plan *plan, uint64_t state_bytes)
{
    const uint64_t bytes = state_bytes - sizeof(struct tape_stored);
    if (!plan->directory)
        return 0;
    return plan->disk_bytes == 0 || bytes == 0 ? UINT64_MAX : plan->disk_bytes / bytes;
}

/* So many slots, or as many as there may be and have room: `room` is of memory, of which they take
 * as much as there is before they take of the file; UINT64_MAX: as little. */
static void plan_slots(struct tape_plan *plan, uint64_t slots, uint64_t room, uint64_t state_bytes)
{
    const uint64_t beside = sizeof(struct tape_stored), disk = plan_disk(plan, state_bytes);
    slots = slots < plan->most ? slots : plan->most;
    slots = slots < TAPE_MOST_STATES ? slots : TAPE_MOST_STATES;
    uint64_t on_disk = slots;
    if (room < UINT64_MAX) {
        const uint64_t over = slots * state_bytes > room ? slots * state_bytes - room : 0,
                       spared = state_bytes > beside ? state_bytes - beside : 1;
        on_disk = over / spared + (over % spared > 0);
        on_disk = on_disk < room / beside ? on_disk : room / beside;
    }
    on_disk = on_disk < disk ? on_disk : disk;
    on_disk = on_disk < slots ? on_disk : slots;
    if (room < UINT64_MAX) {
        const uint64_t in_memory = (room - on_disk * beside) / state_bytes;
        slots = slots < on_disk + in_memory ? slots : on_disk + in_memory;
    }
    plan->n_slots = (uint32_t)slots;
    plan->n_disk = (uint32_t)on_disk;
}

/* The same of a loop of n steps, the last of which is no unit's. */
static void plan_slots_of(struct tape_plan *plan, int64_t n, uint64_t slots, uint64_t room,
                          uint64_t state_bytes)
{
    const uint64_t units = (uint64_t)((n - 1 + plan->unit - 1) / plan->unit);
    plan_slots(plan, slots < units - 1 ? slots : units - 1, room, state_bytes);
}

static double plan_cost(const struct tape_plan *plan, int64_t n)
{
    const int64_t units = (n - 1 + plan->unit - 1) / plan->unit;
    return tape_schedule_computed(units + 1, plan->n_slots) * (double)plan->unit;
}

/* So many states, of which 128 are stored, leave r at 2 up to C(131, 2) units. */
enum { UNTIL_STORED = 128 };

static bool plan_choose_until(struct tape_plan *plan, uint64_t state_bytes, uint64_t step_bytes)
{
    uint64_t slots = UNTIL_STORED, room = UINT64_MAX;
    plan->most_unit = 1;
    if (plan->states > 0) {
        slots = (uint64_t)plan->states - 1;
    } else if (plan->bytes > 0) {
        if (plan->bytes < step_bytes)
            return false;
        /* Half for each, as is best where the number is known. */
        if (plan->bytes / 2 / step_bytes > 1)
            plan->most_unit = (int64_t)(plan->bytes / 2 / step_bytes);
        slots = UINT64_MAX;
        room = plan->bytes - (uint64_t)plan->most_unit * step_bytes;
    } else if (slots * state_bytes / step_bytes > 1) {
        plan->most_unit = (int64_t)(slots * state_bytes / step_bytes);
    }
    plan_slots(plan, slots, room, state_bytes);
    return true;
}

bool tape_plan_choose(struct tape_plan *plan, int64_t n, uint64_t state_bytes, uint64_t step_bytes)
{
    plan->unit = 1;
    plan->most_unit = 0;
    if (n == TAPE_UNTIL_LAST)
        return plan_choose_until(plan, state_bytes, step_bytes);
    if (plan->states > 0) {
        plan_slots_of(plan, n, (uint64_t)plan->states - 1, UINT64_MAX, state_bytes);
        return true;
    }
    if (plan->bytes == 0) {
        /* No step is computed more than once again. Then the bytes are least with as many for
         * states as for what is recorded at once. */
        const double unit = sqrt((double)n * (double)state_bytes / (double)step_bytes);
        plan->unit = unit >= (double)n ? n - 1 : unit > 1 ? (int64_t)(unit + 0.5) : 1;
        plan_slots_of(plan, n, UINT64_MAX, UINT64_MAX, state_bytes);
        return true;
    }
    struct tape_plan best = *plan;
    double least = HUGE_VAL;
    for (; plan->unit < n && (uint64_t)plan->unit <= plan->bytes / step_bytes;
         plan->unit += 1 + plan->unit / 32) {
        plan_slots_of(plan, n, UINT64_MAX, plan->bytes - (uint64_t)plan->unit * step_bytes,
                      state_bytes);
        const double cost = plan_cost(plan, n);
        /* What recording many steps at once saves is more than a hundredth. */
        if (cost <= 1.01 * least) {
            least = cost < least ? cost : least;
            best = *plan;
        }
    }
    *plan = best;
    return least < HUGE_VAL;
}

/* ---- its steps ---- */

static int64_t schedule_units(const struct tape_schedule *s)
{
    return (s->steps + s->unit - 1) / s->unit;
}

/* The step that a unit begins with. */
static int64_t schedule_step(const struct tape_schedule *s, int64_t unit)
{
    return unit < schedule_units(s) ? unit * s->unit : s->steps;
}

struct tape_schedule tape_schedule_of(const struct tape_plan *plan, int64_t n)
{
    return (struct tape_schedule){.steps = n == TAPE_UNTIL_LAST ? TAPE_MOST_STEPS : n - 1,
                                  .unit = plan->unit,
                                  .most_unit = plan->most_unit,
                                  .n_slots = plan->n_slots,
                                  .n_disk = plan->n_disk};
}

void tape_schedule_begin(struct tape_schedule *s)
{
    /* Of states that are given up for later ones no one knows which stay: memory comes first. */
    s->n_stored = 0;
    for (uint32_t k = 0; k < s->n_slots; k++)
        s->stored[k] = (struct tape_stored){.slot = s->most_unit > 0 ? s->n_slots - 1 - k : k};
}

/* From the state at unit p, which is at hand, to that at unit end - 1, of which a state is stored
 * that is wanted again. */
static bool schedule_go(struct tape_schedule *s, const struct tape_schedule_verbs *verbs, void *job,
                        int64_t p, int64_t end)
{
    while (p < end - 1) {
        const int64_t to = p + tape_schedule_next(end - p, s->n_slots - s->n_stored);
        if (!verbs->advance(job, schedule_step(s, p), schedule_step(s, to)))
            return false;
        if (to < end - 1) {
            s->stored[s->n_stored].unit = to;
            if (!verbs->store(job, &s->stored[s->n_stored]))
                return false;
            s->n_stored++;
        }
        p = to;
    }
    return true;
}

/* Gives the slot of a stored state back. */
static void schedule_forget(struct tape_schedule *s, uint32_t k)
{
    const struct tape_stored gone = s->stored[k];
    s->n_stored--;
    memmove(&s->stored[k], &s->stored[k + 1], (s->n_stored - k) * sizeof gone);
    s->stored[s->n_stored] = gone;
}

/* Units become twice as long: every second state that is stored is at none's begin. */
static void schedule_double(struct tape_schedule *s)
{
    s->unit *= 2;
    for (uint32_t k = 0; k < s->n_stored;)
        if (s->stored[k].unit % 2)
            schedule_forget(s, k);
        else
            s->stored[k++].unit /= 2;
}

/* The last of those stored that a later one outlives, that at hand among them; n_stored: none. */
static uint32_t schedule_dispensable(const struct tape_schedule *s, uint32_t level)
{
    for (uint32_t k = s->n_stored; k-- > 0;) {
        if (s->stored[k].level < level)
            return k;
        level = s->stored[k].level;
    }
    return s->n_stored;
}

/* The state at hand, at the begin of a unit, is stored if there is room; *level is its level, and
 * becomes that of the one behind the unit. */
static bool schedule_store(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                           void *job, int64_t unit, uint32_t *level)
{
    if (s->n_stored == s->n_slots) {
        const uint32_t k = schedule_dispensable(s, *level);
        if (k == s->n_stored) {
            ++*level;
            return true;
        }
        schedule_forget(s, k);
    }
    struct tape_stored *to = &s->stored[s->n_stored];
    *to = (struct tape_stored){.unit = unit, .slot = to->slot, .level = *level};
    *level = 0;
    if (!verbs->store(job, to))
        return false;
    s->n_stored++;
    return true;
}

static bool schedule_forward_until(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                                   void *job)
{
    uint32_t level = 0;
    for (int64_t at = 0; at < s->steps;) {
        if (at > 0 && s->n_stored == s->n_slots && s->n_slots > 0 && 2 * s->unit <= s->most_unit)
            schedule_double(s);
        if (at > 0 && at % s->unit == 0 && !schedule_store(s, verbs, job, at / s->unit, &level))
            return false;
        const int64_t to = at + s->unit - at % s->unit;
        if (!verbs->advance(job, at, to))
            return false;
        at = to;
    }
    s->most_unit = 0; /* it is known */
    return true;
}

bool tape_schedule_forward(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                           void *job)
{
    if (s->most_unit > 0)
        return schedule_forward_until(s, verbs, job);
    return schedule_go(s, verbs, job, 0, schedule_units(s) + 1);
}

bool tape_schedule_backward(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                            void *job)
{
    bool done = true;
    for (int64_t end = schedule_units(s); end > 0 && done; end--) {
        const struct tape_stored *last = s->n_stored > 0 ? &s->stored[s->n_stored - 1] : NULL;
        const int64_t unit = last ? last->unit : 0;
        done = verbs->load(job, last) && schedule_go(s, verbs, job, unit, end) &&
               verbs->sweep(job, schedule_step(s, end - 1), schedule_step(s, end));
        if (s->n_stored > 0 && s->stored[s->n_stored - 1].unit == end - 1)
            s->n_stored--;
    }
    tape_schedule_begin(s);
    return done;
}
