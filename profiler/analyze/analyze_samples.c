/* analyze_samples.c: see analyze_samples.h.
 *
 * May include: analyze_samples.h, profiler/symbols.
 */
#include "analyze_samples.h"

#include "symbols.h"

#include <stdlib.h>
#include <string.h>

static int compare_text(const char *a, const char *b)
{
    if (a == b)
        return 0;
    if (!a || !b)
        return a ? -1 : 1;
    return strcmp(a, b);
}

static int compare_lines(const void *x, const void *y)
{
    const struct prof_sampled_line *a = x, *b = y;
    int order = compare_text(a->file, b->file);
    if (order == 0 && a->line != b->line)
        order = a->line < b->line ? -1 : 1;
    if (order == 0)
        order = compare_text(a->function, b->function);
    return order != 0 || a->file ? order : compare_text(a->module, b->module);
}

static int compare_functions(const void *x, const void *y)
{
    const struct prof_sampled_line *a = x, *b = y;
    int order = compare_text(a->file, b->file);
    if (order == 0)
        order = compare_text(a->function, b->function);
    return order != 0 || a->file ? order : compare_text(a->module, b->module);
}

static const char *first_op(const struct prof_sampled_line *line)
{
    return line->ops.n > 0 ? line->ops.name[0] : NULL;
}

static int compare_ops(const void *x, const void *y)
{
    return compare_text(first_op(x), first_op(y));
}

void prof_sampled_add(struct prof_sampled *a, const struct prof_sampled *b)
{
    for (int i = 0; i < PROF_SHARES; i++) {
        a->count[i] += b->count[i];
        a->cpu_ns[i] += b->cpu_ns[i];
        a->wall_ns[i] += b->wall_ns[i];
    }
}

uint64_t prof_sampled_count(const struct prof_sampled *cost)
{
    uint64_t sum = 0;
    for (int i = 0; i < PROF_SHARES; i++)
        sum += cost->count[i];
    return sum;
}

uint64_t prof_sampled_cpu(const struct prof_sampled *cost)
{
    uint64_t sum = 0;
    for (int i = 0; i < PROF_SHARES; i++)
        sum += cost->cpu_ns[i];
    return sum;
}

uint64_t prof_sampled_waiting(const struct prof_sampled *cost)
{
    uint64_t sum = 0;
    for (int i = 0; i < PROF_SHARES; i++)
        sum += cost->wall_ns[i] > cost->cpu_ns[i] ? cost->wall_ns[i] - cost->cpu_ns[i] : 0;
    return sum;
}

/* The greatest number whose square is at most n. */
static uint64_t root(uint64_t n)
{
    uint64_t low = 0, high = UINT32_MAX;
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        if (middle * middle <= n)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t prof_sampled_error(uint64_t ns, uint64_t n)
{
    enum { SCALE = 1 << 10 }; /* so that small roots keep three digits */
    if (n == 0)
        return 0;
    if (n >= UINT64_MAX / SCALE / SCALE)
        return ns / root(n);
    const uint64_t scaled = root(n * SCALE * SCALE);
    return ns / scaled * SCALE + ns % scaled * SCALE / scaled;
}

/* Equal neighbours into one. */
static size_t merge(struct prof_sampled_line *line, size_t n,
                    int (*compare)(const void *, const void *))
{
    size_t kept = 0;
    if (n > 0)
        qsort(line, n, sizeof *line, compare);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && compare(&line[kept - 1], &line[i]) == 0) {
            prof_sampled_add(&line[kept - 1].cost, &line[i].cost);
            prof_names_add(&line[kept - 1].ops, &line[i].ops);
        } else {
            if (kept != i)
                line[kept] = line[i];
            kept++;
        }
    }
    return kept;
}

static void fill(struct prof_sampled_line *line, const struct prof_sample *sample,
                 struct prof_symbols *symbols)
{
    struct prof_place place = {0};
    enum prof_share share = (enum prof_share)sample->phase;
    if (sample->phase != PROF_PHASE_NONE)
        prof_symbols_resolve(symbols, sample->pc, sample->line, &place);
    else if (sample->n_stack > 0) /* the interrupted address is not a return address */
        prof_symbols_resolve(symbols, sample->stack[0] + 1, 0, &place);
    if (sample->phase == PROF_PHASE_NONE && place.wrapped)
        share = PROF_FORWARD;
    *line = (struct prof_sampled_line){
        .file = place.file, .function = place.function, .module = place.module, .line = place.line};
    if (*sample->op)
        line->ops.name[line->ops.n++] = sample->op;
    else if (share == PROF_FORWARD)
        line->ops.name[line->ops.n++] = "statement";
    line->cost.count[share] = sample->count;
    line->cost.cpu_ns[share] = sample->cpu_ns;
    line->cost.wall_ns[share] = sample->wall_ns;
}

struct prof_sampling *prof_analyze_samples(const struct prof_analysis *analysis)
{
    const struct prof_profile *profile = analysis->profile;
    struct prof_sampling *sampling = calloc(1, sizeof *sampling);
    if (!sampling)
        return NULL;
    sampling->analysis = analysis;
    sampling->line = calloc(profile->n_samples + 1, sizeof *sampling->line);
    if (!sampling->line) {
        free(sampling);
        return NULL;
    }
    for (size_t i = 0; i < profile->n_samples; i++) {
        struct prof_sampled_line *line = &sampling->line[sampling->n_lines++];
        fill(line, &profile->sample[i], analysis->symbols);
        prof_sampled_add(&sampling->sum, &line->cost);
        if (profile->sample[i].shared)
            sampling->shared += profile->sample[i].count;
    }
    if (prof_symbols_no_memory(analysis->symbols)) {
        prof_sampling_free(sampling);
        return NULL;
    }
    sampling->n_lines = merge(sampling->line, sampling->n_lines, compare_lines);
    for (size_t i = 0; i < profile->n_threads; i++) {
        const struct prof_thread *thread = &profile->thread[i];
        sampling->fired += thread->fired;
        sampling->recorded += thread->recorded;
        sampling->partial += thread->partial;
        sampling->lost += thread->lost;
    }
    return sampling;
}

void prof_sampling_free(struct prof_sampling *sampling)
{
    if (sampling)
        free(sampling->line);
    free(sampling);
}

struct prof_sampled_line *prof_sampling_group(const struct prof_sampling *sampling, enum prof_by by,
                                              size_t *n)
{
    struct prof_sampled_line *line = calloc(sampling->n_lines + 1, sizeof *line);
    if (!line)
        return NULL;
    memcpy(line, sampling->line, sampling->n_lines * sizeof *line);
    *n = merge(line, sampling->n_lines,
               by == PROF_BY_OP         ? compare_ops
               : by == PROF_BY_FUNCTION ? compare_functions
                                        : compare_lines);
    return line;
}
