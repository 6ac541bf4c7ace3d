/* collect_drain.c: what waits in the rings is completed, added to what is known, and counted.
 *
 * In normal context, under the collector's mutex.
 */
#include "collect_sampler.h"
#include "system_folders.def"
#include "unwind.h"

#include <string.h>

static bool is_code(const struct collect_modules *modules, uintptr_t pc)
{
    for (size_t i = modules->n; i-- > 0;)
        if (pc >= modules->module[i].start && pc <= modules->module[i].end)
            return true;
    return false;
}

/* Whether an address lies in the library for products, whose threads work for others. */
static bool is_blas(const struct collect_modules *modules, uintptr_t pc)
{
    for (size_t i = modules->n; i-- > 0;)
        if (pc >= modules->module[i].start && pc < modules->module[i].end)
            return strstr(modules->module[i].path, "blas") != NULL;
    return false;
}

/* Whether an address lies in a library of the system. */
static bool is_system(const struct collect_modules *modules, uintptr_t pc)
{
#define X(path) path,
    static const char *const folder[] = {SYSTEM_FOLDERS(X)};
#undef X
    for (size_t i = modules->n; i-- > 0;) {
        const struct collect_module *module = &modules->module[i];
        if (pc < module->start || pc >= module->end)
            continue;
        for (size_t k = 0; k < sizeof folder / sizeof *folder; k++)
            if (strncmp(module->path, folder[k], strlen(folder[k])) == 0)
                return true;
        return false;
    }
    return false;
}

/* Who called a library of the system: they are compiled without frame pointers, so that what
 * these lead to lacks the caller, or is nothing. Its callers are found by unwind tables up to
 * the first that is no such library, from where frame pointers go on, if the library has left
 * the register alone. */
static void find_callers(struct collect_sample *sample, const struct collect_modules *modules)
{
    enum { MOST = 8 };
    uintptr_t caller[MOST], kept[COLLECT_STACK];
    uint32_t n = 0, n_kept = 0;
    struct unwind_copy copy = {.pc = sample->pc[0],
                               .at = sample->stack,
                               .fp = sample->frame,
                               .fp_known = true,
                               .sp = sample->stack,
                               .word = sample->word,
                               .n_words = sample->n_words};
    while (n < MOST && is_system(modules, copy.pc - copy.is_return) && unwind_caller(&copy))
        caller[n++] = copy.pc;
    if (n == 0 || is_system(modules, copy.pc - 1) || !is_code(modules, copy.pc - 1))
        return;
    /* What frame pointers have found beyond it. */
    uint32_t from = copy.fp_known && copy.fp == sample->frame ? 1 : sample->n_pcs;
    for (uint32_t i = 1; i < sample->n_pcs; i++)
        if (sample->pc[i] == copy.pc)
            from = i + 1;
    while (from < sample->n_pcs)
        kept[n_kept++] = sample->pc[from++];
    sample->n_pcs = 1;
    for (uint32_t i = 0; i < n && sample->n_pcs < COLLECT_STACK; i++)
        sample->pc[sample->n_pcs++] = caller[i];
    for (uint32_t i = 0; i < n_kept && sample->n_pcs < COLLECT_STACK; i++)
        sample->pc[sample->n_pcs++] = kept[i];
}

/* Completes what the handler could not find out. Returns whether it is only partial. */
static bool drain_complete(const struct collect_sampler *sampler, struct collect_sample *sample,
                           const struct collect_modules *modules)
{
    if (sample->shared && !is_blas(modules, sample->pc[0])) {
        sample->shared = false;
        sample->doing = (struct tape_doing){.phase = TAPE_PHASE_NONE};
    }
    if (sample->is_statement)
        sample->doing.pc = sampler->locate != NULL
                               ? sampler->locate(sample->statement, sample->doing.near)
                               : sample->doing.near;
    if (sample->doing.phase != TAPE_PHASE_NONE)
        return false;
    /* What a register that is no frame pointer has led to. */
    for (uint32_t i = 1; i < sample->n_pcs; i++)
        if (!is_code(modules, sample->pc[i]))
            sample->n_pcs = i;
    if (is_system(modules, sample->pc[0]))
        find_callers(sample, modules);
    return sample->n_pcs == 1;
}

static enum collect_waiting waiting_of(const struct collect_sample *sample,
                                       const struct collect_modules *modules)
{
    const bool idle = collect_waiting_yields(sample->call) && !sample->publishes &&
                      sample->doing.phase == TAPE_PHASE_NONE && is_blas(modules, sample->caller);
    return idle ? COLLECT_WAITING_BLAS : collect_waiting_of(sample->call);
}

/* Whether a thread was ready to run and had no processor when its timer fired: the signal came
 * as late as it got one. Where the time passed on a processor, a call of the system did not let
 * the signal in. */
static bool is_late(const struct collect_sample *sample)
{
    return sample->late_ns > COLLECT_LATE_NS &&
           sample->wall_ns >= sample->cpu_ns + sample->late_ns - COLLECT_LATE_NS / 2;
}

/* Whether a sample found its thread at work, which is: on a processor. One whose call was ended
 * by the signal waited. Another call has ended by itself: it was at work if it has used most of
 * the time since the sample before, such as reading what lies in memory; else the thread has
 * waited for it, and been woken. */
static bool is_working(const struct collect_sample *sample, enum collect_waiting waiting)
{
    if (is_late(sample))
        return false;
    return waiting == COLLECT_WAITING_NONE || waiting == COLLECT_WAITING_BLAS ||
           collect_waiting_yields(sample->call) ||
           !(sample->interrupted || collect_waiting_sleeps(sample->call) ||
             sample->cpu_ns < sample->wall_ns / 2);
}

void collect_drain(struct collect_sampler *sampler, struct collect_thread *thread,
                   const struct collect_modules *modules)
{
    struct collect_thread_total *total = &sampler->samples.thread[thread->number];
    const uint32_t head = __atomic_load_n(&thread->head, __ATOMIC_ACQUIRE);
    for (uint32_t at = thread->tail; at != head; at++) {
        struct collect_sample sample = thread->ring[at % COLLECT_RING];
        const bool partial = drain_complete(sampler, &sample, modules);
        const enum collect_waiting waiting = waiting_of(&sample, modules);
        /* Between this signal and the last one that was read are those that found the ring full. */
        const uint64_t lost = sample.fired - thread->read - 1;
        thread->read = sample.fired;
        total->lost += lost;
        total->fired += lost + 1;
        total->wall_ns += sample.outside ? 0 : sample.wall_ns;
        total->cpu_ns += sample.outside ? 0 : sample.cpu_ns;
        total->changed = true;
        if (sample.outside) {
            total->outside++;
        } else if (!collect_samples_add(&sampler->samples, &sample, thread->number, waiting,
                                        is_working(&sample, waiting), partial)) {
            sampler->samples.full = true;
            total->lost++;
        } else if (partial) {
            total->partial++;
        } else {
            total->recorded++;
        }
        __atomic_store_n(&thread->tail, at + 1, __ATOMIC_RELEASE);
    }
}

void collect_drain_last(struct collect_sampler *sampler, struct collect_thread *thread,
                        const struct collect_modules *modules)
{
    collect_drain(sampler, thread, modules);
    struct collect_thread_total *total = &sampler->samples.thread[thread->number];
    const uint64_t left = __atomic_load_n(&thread->fired, __ATOMIC_ACQUIRE) - thread->read;
    thread->read += left;
    total->fired += left;
    total->lost += left;
    total->changed |= left > 0;
}

void collect_sampler_tell(struct collect_sampler *sampler,
                          bool (*log)(int level, const char *message), const char *path)
{
    if (sampler->ended != NULL && !sampler->told_end) {
        sampler->told_end = true;
        collect_say(log, path, "%s: %s", sampler->ended);
    }
    if (sampler->samples.full && !sampler->told_full) {
        sampler->told_full = true;
        collect_say(log, path, "%s: %s",
                    "too many different samples: those of a new kind are counted as lost");
    }
    if (sampler->unarmed > 0 && !sampler->told_unarmed) {
        sampler->told_unarmed = true;
        collect_say(log, path, "%s: %s",
                    "some threads are not sampled: the system has no timer for them");
    }
}
