/* profile_seed_samples.c: packets of samples and of the two threads that they are of. */
#include "profile_seed_packets.h"

#include "profile.pb-c.h"

struct threads {
    Tapescope__Threads all;
    Tapescope__Thread thread[2], *list[2];
};

static Tapescope__Threads *make_threads(struct threads *to, uint64_t unit)
{
    tapescope__threads__init(&to->all);
    for (uint32_t i = 0; i < 2; i++) {
        Tapescope__Thread *thread = to->list[i] = &to->thread[i];
        *thread = (Tapescope__Thread)TAPESCOPE__THREAD__INIT;
        thread->index = i;
        thread->tid = i == 0 ? 0 : 4711;
        thread->name = (char *)(i == 0 ? "others" : "fit \033[31m");
        thread->recorded = 6 * unit;
        thread->partial = i == 0 ? unit : 0;
        thread->lost = thread->outside = 2;
        thread->fired = thread->recorded + thread->partial + 4;
        thread->wall_ns = 40000000 * unit;
        thread->cpu_ns = 30000000 * unit;
    }
    to->all.thread = to->list;
    to->all.n_thread = 2;
    to->all.process_cpu_ns = 61000000 * unit;
    return &to->all;
}

/* Samples from index `first` on, of two threads: one in every phase, and one more outside. */
void seed_put_samples(struct profile_seed *seed, uint32_t first, uint64_t unit, uint64_t all)
{
    struct threads threads;
    static const char *const op[] = {"", "matmul", "statement", "tanh", ""};
    static uint64_t stack[] = {0x2104, 0x2201, 0x7f0000012345};
    Tapescope__Sample sample[5], *list[5];
    Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    for (uint32_t i = 0; i < 5; i++) {
        tapescope__sample__init(&sample[i]);
        sample[i].index = first + i;
        sample[i].thread = i % 2;
        sample[i].phase = i % 4;
        sample[i].pc = i % 4 == 0 ? 0 : 0x2001 + 0x100 * (uint64_t)i;
        sample[i].line = i == 1 ? 41 : 0;
        sample[i].path = i % 4 == 0 ? 0 : first + i;
        sample[i].op = (char *)(uintptr_t)op[i];
        sample[i].shared = i == 3;
        sample[i].waiting = i == 4 ? 9 : i;
        sample[i].stack = stack;
        sample[i].n_stack = i == 0 ? 3 : i == 4;
        sample[i].count = (i + 1) * unit;
        sample[i].partial = i == 4 ? unit : 0;
        sample[i].wall_ns = 4000000 * (i + 1) * unit;
        sample[i].cpu_ns = 3000000 * (i + 1) * unit;
        list[i] = &sample[i];
    }
    samples.period_ns = 4000000;
    samples.sample = list;
    samples.n_sample = 5;
    samples.threads = all > 0 ? make_threads(&threads, all) : NULL;
    packet.kind_case = TAPESCOPE__PACKET__KIND_SAMPLES;
    packet.samples = &samples;
    seed_put_packet(seed, &packet);
}

void seed_put_threads(struct profile_seed *seed, uint64_t unit)
{
    struct threads threads;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.threads = make_threads(&threads, unit);
    packet.kind_case = TAPESCOPE__PACKET__KIND_THREADS;
    seed_put_packet(seed, &packet);
}
