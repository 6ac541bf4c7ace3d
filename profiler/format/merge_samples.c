/* merge_samples.c: samples of all profiles, and the threads that they are of.
 *
 * May include: merge_state.h.
 *
 * The threads of two processes are one if they have the same name and are the same of that name, in
 * the order of their profile: the second worker of each. Samples are one if they say the same of
 * one thread. Invariant: every counter of the sum is that of the parts, so that fired = recorded +
 * partial + lost stays as exact as it was.
 */
#include "merge_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IN_PACKET = 4096, STACKS_IN_PACKET = 1 << 17 };

/* A thread of profile i: the which-th of its name. */
struct merge_thread {
    const struct prof_thread *thread;
    size_t profile;
    uint32_t which, merged;
};

static int compare_names(const void *x, const void *y)
{
    const struct merge_thread *a = x, *b = y;
    const int order = strcmp(a->thread->name, b->thread->name);
    if (order != 0)
        return order;
    if (a->profile != b->profile)
        return a->profile < b->profile ? -1 : 1;
    return a->thread->index < b->thread->index ? -1 : a->thread->index > b->thread->index;
}

static int compare_indices(const void *x, const void *y)
{
    const struct merge_thread *a = x, *b = y;
    if (a->profile != b->profile)
        return a->profile < b->profile ? -1 : 1;
    return a->thread->index < b->thread->index ? -1 : a->thread->index > b->thread->index;
}

/* A thread of the sum while it is looked for. */
struct thread_key {
    const char *name;
    uint32_t which;
};

struct threads {
    struct merge *merge;
    uint32_t *which; /* of the sum's threads */
    struct merge_set set;
};

static bool same_thread(const void *payload, uint32_t place, const void *key)
{
    const struct threads *threads = payload;
    const struct thread_key *wanted = key;
    return threads->which[place] == wanted->which &&
           strcmp(threads->merge->thread[place].name, wanted->name) == 0;
}

static uint32_t add_thread(struct threads *threads, const struct merge_thread *from)
{
    struct merge *merge = threads->merge;
    const struct thread_key key = {from->thread->name, from->which};
    uint32_t *slot =
        merge_set_find(&threads->set, merge_mix(merge_mix_text(0, key.name), key.which),
                       same_thread, threads, &key);
    if (*slot == 0) {
        threads->which[merge->n_threads] = from->which;
        merge->thread[merge->n_threads] = *from->thread;
        merge->thread[merge->n_threads].index = (uint32_t)merge->n_threads;
        *slot = (uint32_t)++merge->n_threads;
        return *slot - 1;
    }
    struct prof_thread *to = &merge->thread[*slot - 1];
    if (to->tid != from->thread->tid)
        to->tid = 0;
#define X(name) to->name = prof_add(to->name, from->thread->name);
    PROF_THREAD_COUNTERS(X)
#undef X
    return *slot - 1;
}

static void count_names(struct merge_thread *list, size_t n)
{
    qsort(list, n, sizeof *list, compare_names);
    for (size_t i = 1; i < n; i++)
        if (list[i].profile == list[i - 1].profile &&
            strcmp(list[i].thread->name, list[i - 1].thread->name) == 0)
            list[i].which = list[i - 1].which + 1;
    qsort(list, n, sizeof *list, compare_indices);
}

static bool sum_threads(struct merge *merge)
{
    size_t all = 0;
    for (size_t i = 0; i < merge->n; i++)
        all += merge->profile[i]->n_threads;
    struct threads threads = {.merge = merge, .which = calloc(all + 1, sizeof *threads.which)};
    merge->thread = calloc(all + 1, sizeof *merge->thread);
    merge->thread_of = calloc(all + 1, sizeof *merge->thread_of);
    bool ok =
        merge_set_open(&threads.set, all) && threads.which && merge->thread && merge->thread_of;
    for (size_t i = 0; ok && i < merge->n; i++)
        for (size_t j = 0; j < merge->profile[i]->n_threads; j++)
            merge->thread_of[merge->n_thread_of++] =
                (struct merge_thread){.thread = &merge->profile[i]->thread[j], .profile = i};
    if (ok)
        count_names(merge->thread_of, merge->n_thread_of);
    for (size_t i = 0; ok && i < merge->n_thread_of; i++)
        merge->thread_of[i].merged = add_thread(&threads, &merge->thread_of[i]);
    free(threads.which);
    free(threads.set.slot);
    return ok;
}

/* The sum's thread for index `index` of profile i; UINT32_MAX: the file lacks it. */
static uint32_t thread_of(const struct merge *merge, size_t i, uint32_t index)
{
    const struct prof_thread thread = {.index = index};
    const struct merge_thread key = {.thread = &thread, .profile = i};
    const struct merge_thread *found = bsearch(&key, merge->thread_of, merge->n_thread_of,
                                               sizeof *merge->thread_of, compare_indices);
    return found ? found->merged : UINT32_MAX;
}

static bool same_sample(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_sample *a = &merge->sample[place], *b = key;
    return a->thread == b->thread && a->phase == b->phase && a->pc == b->pc && a->line == b->line &&
           a->path == b->path && a->shared == b->shared && a->waiting == b->waiting &&
           a->n_stack == b->n_stack && strcmp(a->op, b->op) == 0 &&
           (a->n_stack == 0 || memcmp(a->stack, b->stack, a->n_stack * sizeof *a->stack) == 0);
}

static uint64_t hash_sample(const struct prof_sample *sample)
{
    uint64_t h = merge_mix(sample->thread, sample->phase | sample->waiting << 8);
    h = merge_mix(h, sample->pc);
    h = merge_mix_text(merge_mix(merge_mix(h, sample->line), sample->path), sample->op);
    for (size_t i = 0; i < sample->n_stack; i++)
        h = merge_mix(h, sample->stack[i]);
    return h;
}

/* The interrupted address is no return address: what is looked up is one byte further. */
static void move_stack(const struct merge *merge, size_t i, const struct prof_sample *from,
                       uint64_t *to)
{
    for (size_t j = 0; j < from->n_stack; j++)
        to[j] = j == 0 ? merge_move(merge, i, from->stack[0] + 1) - 1
                       : merge_move(merge, i, from->stack[j]);
}

/* Adds a sample of profile i; its stack goes to *stack, which advances if that is kept. */
static void add_sample(struct merge *merge, const struct merge_set *set, size_t i,
                       const struct prof_sample *from, uint64_t **stack)
{
    struct prof_sample made = *from;
    made.thread = thread_of(merge, i, from->thread);
    made.pc = merge_move(merge, i, from->pc);
    made.path = merge_path(merge, i, from->path);
    made.stack = *stack;
    move_stack(merge, i, from, *stack);
    uint32_t *slot = merge_set_find(set, hash_sample(&made), same_sample, merge, &made);
    if (*slot == 0) {
        merge->sample[merge->n_samples] = made;
        *slot = (uint32_t)++merge->n_samples;
        *stack += from->n_stack;
        return;
    }
    struct prof_sample *to = &merge->sample[*slot - 1];
#define X(name) to->name = prof_add(to->name, from->name);
    PROF_SAMPLE_COUNTERS(X)
#undef X
}

bool merge_open_samples(struct merge *merge)
{
    size_t all = 0, stacks = 0;
    struct merge_set set = {0};
    for (size_t i = 0; i < merge->n; i++) {
        all += merge->profile[i]->n_samples;
        for (size_t j = 0; j < merge->profile[i]->n_samples; j++)
            stacks += merge->profile[i]->sample[j].n_stack;
    }
    merge->sample = calloc(all + 1, sizeof *merge->sample);
    merge->stack = calloc(stacks + 1, sizeof *merge->stack);
    const bool ok =
        merge_set_open(&set, all) && merge->sample && merge->stack && sum_threads(merge);
    uint64_t *stack = merge->stack;
    for (size_t i = 0; ok && i < merge->n; i++)
        for (size_t j = 0; j < merge->profile[i]->n_samples; j++)
            add_sample(merge, &set, i, &merge->profile[i]->sample[j], &stack);
    free(set.slot);
    return ok;
}

/* Between samples, on average: one time where all profiles have the same. */
static uint64_t period_ns(const struct merge *merge)
{
    uint64_t least = UINT64_MAX, most = 0;
    double ns = 0, fired = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        const uint64_t period = profile->sample_period_ns;
        if (period == 0)
            continue;
        least = period < least ? period : least;
        most = period > most ? period : most;
        for (size_t j = 0; j < profile->n_threads; j++) {
            ns += (double)period * (double)profile->thread[j].fired;
            fired += (double)profile->thread[j].fired;
        }
    }
    if (least >= most || !(fired > 0))
        return most;
    ns /= fired;
    return ns < (double)least ? least : ns < (double)most ? (uint64_t)(ns + 0.5) : most;
}

static void put_threads(const struct merge *merge, struct writer *writer)
{
    Tapescope__Thread *made = calloc(IN_PACKET, sizeof *made);
    Tapescope__Thread **list = calloc(IN_PACKET, sizeof(Tapescope__Thread *));
    size_t i = 0;
    if ((!made || !list) && writer->error == 0)
        writer->error = ENOMEM;
    while (writer->error == 0) {
        Tapescope__Threads threads = TAPESCOPE__THREADS__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        for (; i < merge->n_threads && threads.n_thread < IN_PACKET; i++) {
            const struct prof_thread *from = &merge->thread[i];
            Tapescope__Thread *to = list[threads.n_thread] = &made[threads.n_thread];
            tapescope__thread__init(to);
            to->index = from->index;
            to->tid = from->tid;
            to->name = from->name;
            to->fired = from->fired;
            to->recorded = from->recorded;
            to->partial = from->partial;
            to->lost = from->lost;
            to->outside = from->outside;
            to->wall_ns = from->wall_ns;
            to->cpu_ns = from->cpu_ns;
            threads.n_thread++;
        }
        threads.thread = list;
        for (size_t j = 0; j < merge->n; j++)
            threads.process_cpu_ns =
                prof_add(threads.process_cpu_ns, merge->profile[j]->process_cpu_ns);
        packet.kind_case = TAPESCOPE__PACKET__KIND_THREADS;
        packet.threads = &threads;
        writer_put_packet(writer, &packet);
        if (i == merge->n_threads)
            break;
    }
    free(list);
    free(made);
}

static void fill_sample(Tapescope__Sample *to, const struct prof_sample *from, size_t index)
{
    tapescope__sample__init(to);
    to->index = (uint32_t)index;
    to->thread = from->thread;
    to->phase = from->phase;
    to->pc = from->pc;
    to->line = from->line;
    to->op = (char *)from->op;
    to->path = from->path;
    to->shared = from->shared;
    to->waiting = from->waiting;
    to->stack = from->stack;
    to->n_stack = from->n_stack;
    to->count = from->count;
    to->wall_ns = from->wall_ns;
    to->cpu_ns = from->cpu_ns;
    to->partial = from->partial;
}

void merge_put_samples(const struct merge *merge, struct writer *writer)
{
    bool sampled = false;
    for (size_t i = 0; i < merge->n; i++)
        sampled |= merge->profile[i]->is_sampled || merge->profile[i]->n_samples > 0;
    if (!sampled)
        return;
    put_threads(merge, writer);
    Tapescope__Sample *made = calloc(IN_PACKET, sizeof *made);
    Tapescope__Sample **list = calloc(IN_PACKET, sizeof(Tapescope__Sample *));
    if ((!made || !list) && writer->error == 0)
        writer->error = ENOMEM;
    for (size_t i = 0; writer->error == 0;) {
        Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        size_t stacks = 0;
        for (; i < merge->n_samples && samples.n_sample < IN_PACKET && stacks < STACKS_IN_PACKET;
             i++) {
            list[samples.n_sample] = &made[samples.n_sample];
            fill_sample(&made[samples.n_sample++], &merge->sample[i], i);
            stacks += merge->sample[i].n_stack;
        }
        samples.period_ns = period_ns(merge);
        samples.sample = list;
        packet.kind_case = TAPESCOPE__PACKET__KIND_SAMPLES;
        packet.samples = &samples;
        writer_put_packet(writer, &packet);
        if (i == merge->n_samples)
            break;
    }
    free(list);
    free(made);
}
