/* collect_take.c: one sample, from what a signal handler sees.
 *
 * Everything here may run in a signal handler of any thread: no lock, no allocation, no call of
 * the C library.
 */
#include "collect_sampler.h"

#define LOAD(place) __atomic_load_n((place), __ATOMIC_RELAXED)
#define STORE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)

void collect_take_begin(struct collect_thread *thread, uint64_t period_ns, uint64_t seed,
                        const struct collect_moment *now)
{
    thread->period_ns = period_ns;
    thread->random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    thread->wall_ns = now->wall_ns;
    thread->cpu_ns = now->cpu_ns;
}

uint64_t collect_take_interval(struct collect_thread *thread)
{
    const uint64_t least = thread->period_ns / 1024;
    return least + collect_random(&thread->random, 2 * (thread->period_ns - least));
}

/* The callers' addresses by frame pointers, as far as they lie in the thread's stack and rise. Code
 * without frame pointers keeps something else in that register: the walk then ends, or finds
 * addresses that are no code's and are told from it later. */
__attribute__((no_sanitize("address", "undefined"))) static uint32_t
walk(uintptr_t *pc, uint32_t room, const struct collect_thread *thread,
     const struct collect_moment *moment)
{
    const uintptr_t high = LOAD(&thread->high), low = LOAD(&thread->low);
    uintptr_t frame = moment->frame;
    uint32_t n = 0;
    if (high == 0 || moment->stack < low || moment->stack >= high || frame < moment->stack)
        return 0;
    while (n < room && frame % sizeof frame == 0 && frame < high - 2 * sizeof frame) {
        const uintptr_t *const at = (const uintptr_t *)frame;
        if (at[1] == 0)
            break;
        pc[n++] = at[1];
        if (at[0] <= frame)
            break;
        frame = at[0];
    }
    return n;
}

/* Copies the words at the top of the thread's stack. */
__attribute__((no_sanitize("address", "undefined"))) static void
copy_top(struct collect_sample *sample, const struct collect_thread *thread,
         const struct collect_moment *moment)
{
    const uintptr_t high = LOAD(&thread->high), low = LOAD(&thread->low);
    sample->frame = moment->frame;
    sample->stack = moment->stack;
    if (high == 0 || moment->stack < low || moment->stack >= high ||
        moment->stack % sizeof *sample->word != 0)
        return;
    const uintptr_t room = (high - moment->stack) / sizeof *sample->word;
    const uint32_t n = room < COLLECT_WORDS ? (uint32_t)room : COLLECT_WORDS;
    for (uint32_t i = 0; i < n; i++)
        sample->word[i] = ((const volatile uintptr_t *)moment->stack)[i];
    sample->n_words = n;
}

/* What the only thread that is in an op does; false: there is none, or more than one. */
static bool only_op(struct tape_doing *doing, const struct collect_publishers *publishers)
{
    const uint32_t n = __atomic_load_n(&publishers->n, __ATOMIC_ACQUIRE);
    bool found = false;
    for (uint32_t i = 0; i < n; i++) {
        struct tape_doing one;
        if (!tape_doing_read(&one, LOAD(&publishers->now[i])) || one.phase == TAPE_PHASE_NONE)
            continue;
        if (found)
            return false;
        *doing = one;
        found = true;
    }
    return found;
}

/* Where the thread publishes, NULL: nowhere, or no more: it ends, and another may publish there. */
static const struct tape_now *take_published(const struct collect_thread *thread)
{
    const struct tape_now *const now = LOAD(&thread->now);
    return now != NULL && LOAD(&now->owner) == LOAD(&thread->owner) ? now : NULL;
}

static void take_fill(struct collect_sample *sample, const struct collect_thread *thread,
                      const struct collect_moment *moment,
                      const struct collect_publishers *publishers)
{
    const struct tape_now *const now = take_published(thread);
    sample->doing.phase = TAPE_PHASE_NONE;
    sample->is_statement = sample->shared = false;
    sample->pc[0] = moment->pc;
    sample->n_pcs = 1;
    sample->publishes = now != NULL;
    sample->call = moment->call;
    sample->interrupted = moment->interrupted;
    sample->caller = moment->caller;
    if (now != NULL) {
        /* What is being written at this moment is within an op all the same, one call of it
         * long. */
        (void)tape_doing_read(&sample->doing, now);
        const uint32_t *const statement = LOAD(&now->statement);
        sample->is_statement = statement != NULL && sample->doing.phase != TAPE_PHASE_NONE;
        if (sample->is_statement)
            sample->statement = statement[0] >> TAPE_SHAPE_BITS;
    } else {
        sample->shared = only_op(&sample->doing, publishers);
        if (!sample->shared)
            sample->doing.phase = TAPE_PHASE_NONE;
    }
    sample->n_words = 0;
    if (sample->doing.phase == TAPE_PHASE_NONE || sample->shared) {
        sample->n_pcs += walk(sample->pc + 1, COLLECT_STACK - 1, thread, moment);
        copy_top(sample, thread, moment);
    }
}

/* From the later of two moments until now. */
static uint64_t take_since(uint64_t last, uint64_t from, uint64_t now)
{
    const uint64_t begin = last > from ? last : from;
    return now > begin ? now - begin : 0;
}

void collect_take(struct collect_thread *thread, const struct collect_moment *moment,
                  const struct collect_publishers *publishers)
{
    STORE(&thread->fired, thread->fired + 1);
    if (LOAD(&thread->stack_begin) == 0)
        STORE(&thread->stack_begin, moment->stack);
    const uint32_t head = thread->head;
    if (head - __atomic_load_n(&thread->tail, __ATOMIC_ACQUIRE) >= COLLECT_RING) {
        STORE(&thread->lost, thread->lost + 1);
        return;
    }
    struct collect_sample *const sample = &thread->ring[head % COLLECT_RING];
    take_fill(sample, thread, moment, publishers);
    sample->fired = thread->fired;
    sample->outside = __atomic_load_n(&thread->outside, __ATOMIC_ACQUIRE) != 0;
    /* What passed while samples were lost belongs to the next one that is not. */
    sample->wall_ns = take_since(thread->wall_ns, LOAD(&thread->from_wall_ns), moment->wall_ns);
    sample->cpu_ns = take_since(thread->cpu_ns, LOAD(&thread->from_cpu_ns), moment->cpu_ns);
    sample->late_ns = thread->due_ns > 0 && moment->wall_ns > thread->due_ns
                          ? moment->wall_ns - thread->due_ns
                          : 0;
    thread->wall_ns = moment->wall_ns;
    thread->cpu_ns = moment->cpu_ns;
    __atomic_store_n(&thread->head, head + 1, __ATOMIC_RELEASE);
}
