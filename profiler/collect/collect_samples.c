/* collect_samples.c: samples that say the same, added together.
 *
 * Within an op samples differ by thread, phase and row; outside of ops by their addresses. The
 * memory is bounded: what finds no room is refused, and counted as lost.
 */
#include "collect_sampler.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AGGREGATES = 1 << 16, MOST_PCS = 1 << 20, LEAST_SLOTS = 256 };

static uint64_t samples_mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t samples_hash_of(const struct collect_aggregate *key, const uint64_t *pc)
{
    uint64_t h = samples_mix(key->phase | key->waiting << 8, key->thread);
    h = samples_mix(h, key->pc ^ (uint64_t)key->line << 40);
    h = samples_mix(h, (uintptr_t)key->op ^ (uint64_t)key->path << 48);
    for (uint32_t i = 0; i < key->n_pcs; i++)
        h = samples_mix(h, pc[i]);
    return h;
}

static bool samples_same(const struct collect_samples *samples, const struct collect_aggregate *a,
                         const struct collect_aggregate *key, const uint64_t *pc)
{
    return a->thread == key->thread && a->phase == key->phase && a->pc == key->pc &&
           a->line == key->line && a->op == key->op && a->path == key->path &&
           a->shared == key->shared && a->waiting == key->waiting && a->n_pcs == key->n_pcs &&
           (key->n_pcs == 0 || memcmp(samples->pc + a->first_pc, pc, key->n_pcs * sizeof *pc) == 0);
}

static bool samples_reserve_slots(struct collect_samples *samples)
{
    if (2 * (samples->n + 1) <= samples->n_slots)
        return true;
    const uint32_t n = samples->n_slots == 0 ? LEAST_SLOTS : 2 * samples->n_slots;
    uint32_t *slot = calloc(n, sizeof *slot);
    if (slot == NULL)
        return false;
    for (uint32_t i = 0; i < samples->n; i++) {
        const struct collect_aggregate *a = &samples->aggregate[i];
        uint64_t h = samples_hash_of(a, a->n_pcs > 0 ? samples->pc + a->first_pc : NULL);
        while (slot[h & (n - 1)] != 0)
            h++;
        slot[h & (n - 1)] = i + 1;
    }
    free(samples->slot);
    samples->slot = slot;
    samples->n_slots = n;
    return true;
}

/* Doubles an array of *capacity elements until it has room for n. */
static bool samples_reserve(void **array, uint32_t *capacity, uint32_t n, size_t size)
{
    if (n <= *capacity)
        return true;
    uint32_t more = *capacity < 64 ? 64 : 2 * *capacity;
    while (more < n)
        more *= 2;
    void *bigger = realloc(*array, more * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *capacity = more;
    return true;
}

static struct collect_aggregate *samples_append(struct collect_samples *samples,
                                                const struct collect_aggregate *key,
                                                const uint64_t *pc)
{
    if (samples->n == MOST_AGGREGATES || samples->n_pcs > MOST_PCS - key->n_pcs)
        return NULL;
    void *aggregate = samples->aggregate, *pcs = samples->pc;
    const bool room =
        samples_reserve(&aggregate, &samples->capacity, samples->n + 1, sizeof *samples->aggregate);
    samples->aggregate = aggregate;
    const bool more = samples_reserve(&pcs, &samples->pc_capacity, samples->n_pcs + key->n_pcs,
                                      sizeof *samples->pc);
    samples->pc = pcs;
    if (!room || !more)
        return NULL;
    struct collect_aggregate *a = &samples->aggregate[samples->n++];
    *a = *key;
    a->first_pc = samples->n_pcs;
    for (uint32_t i = 0; i < key->n_pcs; i++)
        samples->pc[samples->n_pcs++] = pc[i];
    return a;
}

bool collect_samples_add(struct collect_samples *samples, const struct collect_sample *sample,
                         uint32_t thread, enum collect_waiting waiting, bool working, bool partial)
{
    struct collect_aggregate key = {
        .thread = thread, .phase = sample->doing.phase, .waiting = waiting};
    uint64_t pc[COLLECT_STACK];
    if (key.phase == TAPE_PHASE_NONE) {
        for (; key.n_pcs < sample->n_pcs; key.n_pcs++)
            pc[key.n_pcs] = sample->pc[key.n_pcs];
    } else {
        key.pc = sample->doing.pc;
        key.line = sample->doing.line;
        key.op = sample->doing.op;
        key.path = sample->doing.path;
        key.shared = sample->shared;
    }
    if (!samples_reserve_slots(samples))
        return false;
    uint64_t h = samples_hash_of(&key, pc);
    uint32_t *slot;
    while (*(slot = &samples->slot[h & (samples->n_slots - 1)]) != 0 &&
           !samples_same(samples, &samples->aggregate[*slot - 1], &key, pc))
        h++;
    struct collect_aggregate *a = *slot != 0 ? &samples->aggregate[*slot - 1] : NULL;
    if (a == NULL) {
        a = samples_append(samples, &key, pc);
        if (a == NULL)
            return false;
        *slot = samples->n;
    }
    a->count++;
    a->partial += partial;
    a->working += working;
    a->changed = true;
    return true;
}

void collect_samples_written(struct collect_samples *samples)
{
    for (uint32_t i = 0; i < samples->n; i++)
        samples->aggregate[i].changed = false;
    for (uint32_t i = 0; i < samples->n_threads; i++)
        samples->thread[i].changed = false;
}

void collect_samples_void(struct collect_samples *samples)
{
    for (uint32_t i = 0; i < samples->n_threads; i++) {
        struct collect_thread_total *total = &samples->thread[i];
        total->outside += total->recorded + total->partial;
        total->recorded = total->partial = total->wall_ns = total->cpu_ns = 0;
        total->changed = true;
    }
    for (uint32_t i = 0; i < samples->n; i++) {
        struct collect_aggregate *a = &samples->aggregate[i];
        a->count = a->partial = a->working = 0;
        a->changed = true;
    }
}

void collect_samples_free(struct collect_samples *samples)
{
    free(samples->aggregate);
    free(samples->slot);
    free(samples->pc);
    *samples = (struct collect_samples){0};
}
