/* collect_put_samples.c: samples and threads as packets.
 *
 * May include: collect_sampler.h, the generated profile.pb-c.h.
 */
#include "collect_sampler.h"

#include "profile.pb-c.h"

#include <stdlib.h>

enum { SAMPLES_PER_PACKET = 1 << 14 };

static void fill_sample(Tapescope__Sample *to, const struct prof_samples *samples, uint32_t i,
                        const struct prof_path_map *paths)
{
    const struct prof_aggregate *from = &samples->aggregate[i];
    tapescope__sample__init(to);
    to->index = i;
    to->thread = from->thread;
    to->phase = from->phase;
    to->pc = from->pc;
    to->line = from->line;
    to->op = (char *)(from->op != NULL ? from->op : "");
    to->path = prof_path_map_id(paths, from->path);
    to->shared = from->shared;
    to->n_stack = from->n_pcs;
    to->stack = samples->pc + from->first_pc;
    to->count = from->count;
    to->partial = from->partial;
    to->waiting = from->waiting;
    to->wall_ns = from->wall_ns;
    to->cpu_ns = from->cpu_ns;
}

static bool put(struct prof_buffer *out, Tapescope__Sample **list, size_t n, uint64_t period_ns)
{
    Tapescope__Samples message = TAPESCOPE__SAMPLES__INIT;
    message.period_ns = period_ns;
    message.n_sample = n;
    message.sample = list;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_SAMPLES;
    packet.samples = &message;
    return prof_put_packet(out, &packet);
}

static bool put_aggregates(struct prof_buffer *out, const struct prof_samples *samples,
                           uint64_t period_ns, const struct prof_path_map *paths, bool all)
{
    const uint32_t most = samples->n < SAMPLES_PER_PACKET ? samples->n : SAMPLES_PER_PACKET;
    Tapescope__Sample *sample = calloc(most + (size_t)1, sizeof *sample);
    Tapescope__Sample **list = calloc(most + (size_t)1, sizeof *list);
    bool ok = sample != NULL && list != NULL;
    size_t n = 0;
    for (uint32_t i = 0; ok && i < samples->n; i++) {
        if (!all && !samples->aggregate[i].changed)
            continue;
        if (n == most) {
            ok = put(out, list, n, period_ns);
            n = 0;
        }
        fill_sample(&sample[n], samples, i, paths);
        list[n] = &sample[n];
        n++;
    }
    ok = ok && (n == 0 || put(out, list, n, period_ns));
    free(sample);
    free(list);
    return ok;
}

static bool put_threads(struct prof_buffer *out, const struct prof_samples *samples,
                        uint64_t process_ns, bool all)
{
    Tapescope__Thread thread[PROF_NAMED_THREADS + 1], *list[PROF_NAMED_THREADS + 1];
    Tapescope__Threads message = TAPESCOPE__THREADS__INIT;
    for (uint32_t i = 0; i < samples->n_threads; i++) {
        const struct prof_thread_total *from = &samples->thread[i];
        if (!all && !from->changed)
            continue;
        Tapescope__Thread *to = &thread[message.n_thread];
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
        list[message.n_thread++] = to;
    }
    message.thread = list;
    message.process_cpu_ns = process_ns;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_THREADS;
    packet.threads = &message;
    return prof_put_packet(out, &packet);
}

bool prof_put_samples(struct prof_buffer *out, const struct prof_samples *samples,
                      uint64_t period_ns, uint64_t process_ns, struct prof_path_map *paths,
                      bool all)
{
    const size_t before = out->n;
    for (uint32_t i = 0; i < samples->n; i++)
        if ((all || samples->aggregate[i].changed) &&
            !prof_path_map_add(paths, samples->aggregate[i].path))
            return false;
    if (!prof_put_new_paths(out, paths))
        return false;
    const bool ok = put_threads(out, samples, process_ns, all) &&
                    put_aggregates(out, samples, period_ns, paths, all);
    if (!ok)
        out->n = before;
    return ok;
}
