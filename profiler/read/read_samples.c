/* read_samples.c: samples and the threads that they were taken of.
 *
 * See read_state.h for the invariant. Counts are running totals, so that the last packet of an
 * index replaces what came before.
 */
#include "read_state.h"

#include <stdlib.h>
#include <string.h>

/* The place of an index among `n` elements; *added: it was not there. */
static size_t samples_place_of(struct base_table *map, uint32_t index, size_t n, bool *added)
{
    const int64_t at = base_table_find(map, index);
    *added = at < 0;
    if (at >= 0)
        return (size_t)at;
    base_table_add(map, index, n);
    return n;
}

static enum read_status apply_sample(struct read_state *state, const Tapescope__Sample *from)
{
    struct read_profile *profile = state->profile;
    bool added;
    if (from->phase >= READ_PHASES)
        return READ_BAD;
    const char *op = read_intern_op(state, from->op);
    uint64_t *stack = base_calloc(from->n_stack + 1, sizeof *stack);
    struct read_sample *list =
        BASE_ARRAY_GROW(profile->sample, profile->n_samples, &state->room_samples);
    const size_t at = samples_place_of(&state->samples, from->index, profile->n_samples, &added);
    if (added)
        profile->n_samples++;
    else
        free(list[at].stack);
    if (from->n_stack > 0)
        memcpy(stack, from->stack, from->n_stack * sizeof *stack);
    list[at] = (struct read_sample){.thread = from->thread,
                                    .phase = (enum read_phase)from->phase,
                                    .pc = from->pc,
                                    .line = from->line,
                                    .path = from->path,
                                    .op = op,
                                    .shared = from->shared,
                                    .waiting = from->waiting > READ_WAITING_BLAS
                                                   ? READ_WAITING_OTHER
                                                   : (enum read_waiting)from->waiting,
                                    .stack = stack,
                                    .n_stack = from->n_stack,
                                    .count = from->count,
                                    .partial = from->partial,
                                    .wall_ns = from->wall_ns,
                                    .cpu_ns = from->cpu_ns};
    return READ_OK;
}

enum read_status read_apply_samples(struct read_state *state, const Tapescope__Samples *samples)
{
    state->profile->sample_period_ns = samples->period_ns;
    for (size_t i = 0; i < samples->n_sample; i++) {
        const enum read_status status = apply_sample(state, samples->sample[i]);
        if (status != READ_OK)
            return status;
    }
    if (samples->threads)
        read_apply_threads(state, samples->threads);
    return READ_OK;
}

static void apply_thread(struct read_state *state, const Tapescope__Thread *from)
{
    struct read_profile *profile = state->profile;
    bool added;
    struct read_thread *list =
        BASE_ARRAY_GROW(profile->thread, profile->n_threads, &state->room_threads);
    const size_t at = samples_place_of(&state->threads, from->index, profile->n_threads, &added);
    if (added)
        profile->n_threads++;
    else
        free(list[at].name);
    list[at] = (struct read_thread){.index = from->index,
                                    .tid = from->tid,
                                    .name = base_strdup(from->name),
                                    .fired = from->fired,
                                    .recorded = from->recorded,
                                    .partial = from->partial,
                                    .lost = from->lost,
                                    .outside = from->outside,
                                    .wall_ns = from->wall_ns,
                                    .cpu_ns = from->cpu_ns};
}

void read_apply_threads(struct read_state *state, const Tapescope__Threads *threads)
{
    state->profile->process_cpu_ns = threads->process_cpu_ns;
    state->profile->is_sampled = true;
    for (size_t i = 0; i < threads->n_thread; i++)
        apply_thread(state, threads->thread[i]);
}

void read_samples_free(struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_samples; i++)
        free(profile->sample[i].stack);
    for (size_t i = 0; i < profile->n_threads; i++)
        free(profile->thread[i].name);
    free(profile->sample);
    free(profile->thread);
}
