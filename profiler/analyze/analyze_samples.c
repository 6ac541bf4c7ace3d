/* analyze_samples.c: see analyze_samples.h.
 *
 * Invariant: the lines' times and counts add up to those of all samples.
 */
#include "analyze_samples.h"

#include "analyze_frames.h"
#include "analyze_places.h"

#include <math.h>
#include <string.h>

static bool module_begins(const char *module, const char *begin)
{
    const char *slash = module ? strrchr(module, '/') : NULL;
    const char *name = slash ? slash + 1 : module;
    return name && strncmp(name, begin, strlen(begin)) == 0;
}

/* The runtime of plain C, which computes and records what the program's lines say. */
static bool is_plain_runtime(const char *module)
{
    return module_begins(module, "libtapescope_plain.so");
}

/* The shared library, that runtime, or the profiler's part of them. */
static bool is_library(const char *module)
{
    return module_begins(module, "libtapescope.so") || is_plain_runtime(module) ||
           module_begins(module, "tapescope-collect.so");
}

/* The module of a sample's address; the interrupted one is no return address. */
static const char *samples_module(const struct read_sample *sample, size_t at,
                                  const struct analyze_result *analysis)
{
    return symbols_module(analysis->symbols, sample->stack[at] + (at == 0));
}

size_t analyze_sample_owner(const struct read_sample *sample, const struct analyze_result *analysis)
{
    size_t at = 0;
    for (; at < sample->n_stack; at++) {
        const char *module = samples_module(sample, at, analysis);
        if (!is_library(module) && (analysis->libraries || !analyze_is_system(module)))
            break;
    }
    if (at == 0)
        return 0;
    const char *owner = at < sample->n_stack ? samples_module(sample, at, analysis) : NULL;
    if (owner && !analyze_is_system(owner))
        return at;
    /* Nobody knows which code of the program called it. */
    return is_library(samples_module(sample, 0, analysis)) ? sample->n_stack : 0;
}

/* Whether such a module worked for the frame that has the sample. */
static bool samples_by(bool is_such(const char *module), const struct read_sample *sample,
                       size_t owner, const struct analyze_result *analysis)
{
    for (size_t i = 0; i < owner && i < sample->n_stack; i++)
        if (is_such(samples_module(sample, i, analysis)))
            return true;
    return false;
}

void analyze_sample_line(struct analyze_line *line, const struct read_sample *sample,
                         const struct analyze_result *analysis)
{
    struct symbols_place place = {0};
    const bool code = sample->phase == READ_PHASE_NONE;
    const bool idle = code && sample->waiting == READ_WAITING_BLAS;
    const size_t owner = code && !idle ? analyze_sample_owner(sample, analysis) : 0;
    if (!code && sample->pc != 0)
        place = analyze_place(analysis, sample->pc, sample->line);
    else if (code && !idle &&
             owner < sample->n_stack) /* the interrupted address is no return address */
        place = analyze_place(analysis, sample->stack[owner] + (owner == 0), 0);
    else if (code && !idle && sample->n_stack > 0)
        place.module = symbols_module(analysis->symbols, sample->stack[0] + 1);
    /* A formula is inlined in the user's code, and calls the system's libraries alone. */
    place.wrapped &= !samples_by(is_library, sample, owner, analysis);
    place.wrapped |= samples_by(is_plain_runtime, sample, owner, analysis);
    *line = (struct analyze_line){
        .own = !code && sample->pc == 0,
        .idle = idle,
        .file = place.file,
        .function = idle ? ANALYZE_IDLE_NAME : place.function,
        .module = place.module,
        .line = place.line,
        .function_line = place.function_line,
        /* Code without lines is told apart by function alone. */
        .offset = place.file || (code && place.function) ? 0 : place.offset,
    };
    struct analyze_cost *cost = &line->cost;
    cost->samples = sample->count;
    cost->cpu_samples = sample->working > 0  ? sample->working
                        : sample->cpu_ns > 0 ? sample->count
                                             : 0;
    cost->waiting_ns = sample->wall_ns > sample->cpu_ns ? sample->wall_ns - sample->cpu_ns : 0;
    if (sample->waiting == READ_WAITING_INPUT_OUTPUT)
        cost->waiting_io_ns = cost->waiting_ns;
    else if (sample->waiting == READ_WAITING_LOCK)
        cost->waiting_lock_ns = cost->waiting_ns;
    if (*sample->op)
        line->ops.name[line->ops.n++] = sample->op;
    /* The formula of a scalar statement is inlined in the user's code. */
    else if (code && place.wrapped)
        line->ops.name[line->ops.n++] = "statement";
    if (sample->phase == READ_PHASE_RECOMPUTE)
        cost->recompute_ns = sample->cpu_ns;
    else if (sample->phase == READ_PHASE_BACKWARD)
        cost->backward_ns = sample->cpu_ns;
    else if (!code || place.wrapped)
        cost->forward_ns = sample->cpu_ns;
    else
        cost->other_ns = sample->cpu_ns;
}

void analyze_samples(struct analyze_result *analysis)
{
    const struct read_profile *profile = analysis->profile;
    for (size_t i = 0; i < profile->n_samples; i++)
        analyze_sample_line(&analysis->line[analysis->n_lines++], &profile->sample[i], analysis);
}

void analyze_sum_samples(struct analyze_result *analysis)
{
    const struct read_profile *profile = analysis->profile;
    struct analyze_totals *total = &analysis->total;
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].shared)
            total->samples_shared += profile->sample[i].count;
    for (size_t i = 0; i < profile->n_threads; i++) {
        const struct read_thread *thread = &profile->thread[i];
        total->fired += thread->fired;
        total->recorded += thread->recorded;
        total->partial += thread->partial;
        total->lost += thread->lost;
        total->outside += thread->outside;
    }
    total->process_cpu_ns = profile->process_cpu_ns;
    if (profile->n_samples == 0)
        return;
    total->forward_ns = analysis->sum.forward_ns;
    total->backward_ns = analysis->sum.backward_ns;
    total->recompute_ns = analysis->sum.recompute_ns;
}

uint64_t analyze_cost_time(const struct analyze_cost *cost)
{
    return cost->forward_ns + cost->backward_ns + cost->recompute_ns + cost->other_ns;
}

double analyze_cost_error(const struct analyze_cost *cost, uint64_t ns)
{
    if (cost->cpu_samples == 0)
        return 0;
    const double each = (double)analyze_cost_time(cost) / (double)cost->cpu_samples;
    return sqrt((double)ns * each);
}

bool analyze_cost_recomputes(const struct analyze_cost *cost)
{
    return cost->recompute_calls > 0 || cost->recompute_ns > 0;
}
