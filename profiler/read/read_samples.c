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
                                    .working = from->working,
                                    .wall_ns = from->wall_ns,
                                    .cpu_ns = from->cpu_ns};
    state->samples_have_times |= from->wall_ns > 0 || from->cpu_ns > 0;
    return READ_OK;
}

/* ---- what samples stand for ---- */

/* Samples of one thread so far, and all of them; the same of those at work. */
struct weighed {
    uint64_t n, all, working, all_working;
};

/* Of `whole` the part of the samples from number `from` to number `to` of `all`: parts that
 * follow each other add up to the whole. */
static uint64_t samples_part(uint64_t whole, uint64_t from, uint64_t to, uint64_t all)
{
    const long double each = all > 0 ? (long double)whole / (long double)all : 0;
    const uint64_t begin = (uint64_t)((long double)from * each);
    const uint64_t end = to == all ? whole : (uint64_t)((long double)to * each);
    return from == to || end < begin ? 0 : end - begin;
}

/* The processor time that passed since the sample before says nothing of the line that a sample
 * found: a program that waits between two lines has little of it before the one and much before
 * the other, and the same lines get it at each turn. Timers are drawn without regard to what the
 * program does, so that samples at work find each line as often as its part of the time at work
 * is. */
void read_weigh_samples(struct read_profile *profile, const struct base_table *threads)
{
    struct weighed *weighed = base_calloc(profile->n_threads + 1, sizeof *weighed);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < profile->n_samples; i++) {
            struct read_sample *sample = &profile->sample[i];
            const int64_t at = base_table_find(threads, sample->thread);
            struct weighed *of = &weighed[at >= 0 ? (size_t)at : profile->n_threads];
            const uint64_t working =
                sample->working < sample->count ? sample->working : sample->count;
            if (pass == 0) {
                of->all += sample->count;
                of->all_working += working;
            } else if (at >= 0) {
                const struct read_thread *thread = &profile->thread[at];
                sample->wall_ns =
                    samples_part(thread->wall_ns, of->n, of->n + sample->count, of->all);
                sample->cpu_ns = samples_part(thread->cpu_ns, of->working, of->working + working,
                                              of->all_working);
                of->n += sample->count;
                of->working += working;
            }
        }
    free(weighed);
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
