/* collect_put_samples.c: samples and threads as packets.
 *
 * Both are in one packet: a process that is killed leaves a file in which they agree.
 */
#include "collect_sampler.h"

#include "profile.pb-c.h"

#include <stdlib.h>

static void fill_sample(Tapescope__Sample *to, const struct collect_samples *samples, uint32_t i,
                        const struct collect_path_map *paths)
{
    const struct collect_aggregate *from = &samples->aggregate[i];
    tapescope__sample__init(to);
    to->index = i;
    to->thread = from->thread;
    to->phase = from->phase;
    to->pc = from->pc;
    to->line = from->line;
    to->op = (char *)(from->op != NULL ? from->op : "");
    to->path = collect_path_map_id(paths, from->path);
    to->shared = from->shared;
    to->n_stack = from->n_pcs;
    to->stack = samples->pc + from->first_pc;
    to->count = from->count;
    to->partial = from->partial;
    to->waiting = from->waiting;
    to->wall_ns = from->wall_ns;
    to->cpu_ns = from->cpu_ns;
}

static bool samples_put(struct collect_buffer *out, Tapescope__Samples *samples)
{
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_SAMPLES;
    packet.samples = samples;
    return collect_put_packet(out, &packet);
}

/* As many as there may be are below PROFILE_MAX_PAYLOAD, with all their callers. */
static bool put_aggregates(struct collect_buffer *out, const struct collect_samples *samples,
                           Tapescope__Samples *message, const struct collect_path_map *paths,
                           bool all)
{
    Tapescope__Sample *sample = calloc(samples->n + (size_t)1, sizeof *sample);
    Tapescope__Sample **list = calloc(samples->n + (size_t)1, sizeof *list);
    bool ok = sample != NULL && list != NULL;
    size_t n = 0;
    for (uint32_t i = 0; ok && i < samples->n; i++) {
        if (!all && !samples->aggregate[i].changed)
            continue;
        fill_sample(&sample[n], samples, i, paths);
        list[n] = &sample[n];
        n++;
    }
    message->n_sample = n;
    message->sample = list;
    ok = ok && samples_put(out, message);
    free(sample);
    free(list);
    return ok;
}

static void fill_threads(Tapescope__Threads *message, Tapescope__Thread *thread,
                         Tapescope__Thread **list, const struct collect_samples *samples, bool all)
{
    for (uint32_t i = 0; i < samples->n_threads; i++) {
        const struct collect_thread_total *from = &samples->thread[i];
        if (!all && !from->changed)
            continue;
        Tapescope__Thread *to = &thread[message->n_thread];
        tapescope__thread__init(to);
        to->index = i;
        to->tid = (uint64_t)from->tid;
        to->name = (char *)from->name;
        to->fired = from->fired;
        to->recorded = from->recorded;
        to->partial = from->partial;
        to->lost = from->lost;
        to->outside = from->outside;
        to->wall_ns = from->wall_ns;
        to->cpu_ns = from->cpu_ns;
        list[message->n_thread++] = to;
    }
    message->thread = list;
}

bool collect_put_samples(struct collect_buffer *out, const struct collect_samples *samples,
                         uint64_t period_ns, uint64_t process_ns, struct collect_path_map *paths,
                         bool all)
{
    const size_t before = out->n;
    for (uint32_t i = 0; i < samples->n; i++)
        if ((all || samples->aggregate[i].changed) &&
            !collect_path_map_add(paths, samples->aggregate[i].path))
            return false;
    if (!collect_put_new_paths(out, paths))
        return false;
    Tapescope__Thread thread[COLLECT_NAMED_THREADS + 1], *list[COLLECT_NAMED_THREADS + 1];
    Tapescope__Threads threads = TAPESCOPE__THREADS__INIT;
    Tapescope__Samples message = TAPESCOPE__SAMPLES__INIT;
    fill_threads(&threads, thread, list, samples, all);
    threads.process_cpu_ns = process_ns;
    message.period_ns = period_ns;
    message.threads = &threads;
    const bool ok = put_aggregates(out, samples, &message, paths, all);
    if (!ok)
        out->n = before;
    return ok;
}
