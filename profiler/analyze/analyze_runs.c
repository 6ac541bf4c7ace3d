/* analyze_runs.c: see analyze_runs.h.
 *
 * A change is compared with its standard error as benchstat does: sqrt(s0^2 / n0 + s1^2 / n1). Of
 * few runs the deviations are themselves uncertain, so Student's t for 95 % takes the place of two
 * where it is greater.
 */
#include "analyze_runs.h"

#include "analyze_fit.h"
#include "analyze_merge.h"
#include "base_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ERRORS = 2 };
static const double confidence = 0.95;

/* All members of a struct of numbers of 64 bits. */
static void runs_add(void *to, const void *from, size_t bytes)
{
    uint64_t *sum = to;
    const uint64_t *add = from;
    for (size_t i = 0; i < bytes / sizeof *sum; i++)
        sum[i] += add[i];
}

static uint64_t runs_share(uint64_t sum, size_t n)
{
    return (sum + n / 2) / n;
}

static void runs_divide(void *of, size_t bytes, size_t n)
{
    uint64_t *value = of;
    for (size_t i = 0; i < bytes / sizeof *value; i++)
        value[i] = runs_share(value[i], n);
}

static void divide_cost(struct analyze_cost *cost, size_t n)
{
#define X(name) cost->name = runs_share(cost->name, n);
    ANALYZE_COST_MEMBERS(X)
#undef X
    cost->byte_ns /= (double)n;
}

static uint64_t runs_time(const struct analyze_result *run)
{
    return run->total.forward_ns + run->total.backward_ns + run->total.recompute_ns;
}

/* The run that as many are faster than as are slower. */
static size_t middle_of(const struct analyze_result *const *run, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        for (size_t j = 0; j < n; j++)
            before += runs_time(run[j]) < runs_time(run[i]) ||
                      (runs_time(run[j]) == runs_time(run[i]) && j < i);
        if (before == (n - 1) / 2)
            return i;
    }
    return 0;
}

/* Lines of all runs, each once; equal files are one pointer. */
static void runs_merge_lines(struct analyze_runs *runs, size_t n_runs)
{
    size_t n = 0;
    for (size_t i = 0; i < n_runs; i++)
        n += runs->run[i]->n_lines;
    runs->line = base_calloc(n + 1, sizeof *runs->line);
    n = 0;
    for (size_t i = 0; i < n_runs; i++) {
        if (runs->run[i]->n_lines > 0)
            memcpy(&runs->line[n], runs->run[i]->line, runs->run[i]->n_lines * sizeof *runs->line);
        n += runs->run[i]->n_lines;
    }
    n = analyze_merge(runs->line, n, ANALYZE_BY_LINE_OP_AND_SHAPE);
    for (size_t i = 0; n_runs > 0 && i < n; i++) {
        divide_cost(&runs->line[i].cost, n_runs);
        const char *before = i > 0 ? runs->line[i - 1].file : NULL;
        if (before && runs->line[i].file && strcmp(before, runs->line[i].file) == 0)
            runs->line[i].file = before;
    }
    runs->mean.line = runs->line;
    runs->mean.n_lines = n;
}

void analyze_runs_make(struct analyze_runs *runs, const struct analyze_result *const *run, size_t n)
{
    *runs = (struct analyze_runs){.run = run, .n = n, .middle = middle_of(run, n)};
    runs->mean = *run[runs->middle];
    if (n == 1)
        return;
    struct analyze_result *mean = &runs->mean;
    mean->total = (struct analyze_totals){0};
    mean->sum = mean->left_out = (struct analyze_cost){0};
    for (size_t i = 0; i < n; i++) {
        runs_add(&mean->total, &run[i]->total, sizeof mean->total);
        analyze_cost_add(&mean->sum, &run[i]->sum);
        analyze_cost_add(&mean->left_out, &run[i]->left_out);
    }
    runs_divide(&mean->total, sizeof mean->total, n);
    divide_cost(&mean->sum, n);
    divide_cost(&mean->left_out, n);
    runs_merge_lines(runs, n);
}

void analyze_runs_free(struct analyze_runs *runs)
{
    free(runs->line);
    *runs = (struct analyze_runs){.n = 0};
}

void analyze_noise_make(struct analyze_noise *noise, const struct analyze_runs *base,
                        const struct analyze_runs *now, enum analyze_by by)
{
    *noise = (struct analyze_noise){.side = {base, now},
                                    .by = by == ANALYZE_BY_LINE ? ANALYZE_BY_LINE_AND_OP : by};
    const size_t runs = base->n + now->n;
    noise->errors = runs > 2 ? analyze_student_t((unsigned)runs - 2, confidence) : 0;
    if (noise->errors < LEAST_ERRORS)
        noise->errors = LEAST_ERRORS;
    for (int side = 0; side < 2 && runs > 2; side++) {
        const struct analyze_runs *of = noise->side[side];
        noise->line[side] = base_calloc(of->n, sizeof *noise->line[side]);
        noise->n_lines[side] = base_calloc(of->n, sizeof *noise->n_lines[side]);
        for (size_t i = 0; i < of->n; i++)
            noise->line[side][i] = analyze_group(of->run[i], noise->by, &noise->n_lines[side][i]);
    }
}

void analyze_noise_free(struct analyze_noise *noise)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; noise->line[side] && i < noise->side[side]->n; i++)
            free(noise->line[side][i]);
        free(noise->line[side]);
        free(noise->n_lines[side]);
    }
    *noise = (struct analyze_noise){.errors = 0};
}

/* The line of a run, which are sorted in the view. */
static const struct analyze_line *noise_find(const struct analyze_noise *noise, int side,
                                             size_t run, const struct analyze_line *line)
{
    const struct analyze_line *in = noise->line[side][run];
    size_t low = 0, high = noise->n_lines[side][run];
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = analyze_compare(&in[middle], line, noise->by);
        if (order == 0)
            return &in[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The variance of a side's runs; 0 for one run. */
static double noise_variance(const struct analyze_noise *noise, int side,
                             const struct analyze_line *line, bool all, analyze_value_fn *value,
                             void *payload)
{
    const struct analyze_runs *of = noise->side[side];
    double mean = 0, squares = 0;
    for (size_t i = 0; i < of->n; i++) {
        const struct analyze_cost total = analyze_total(of->run[i]);
        const struct analyze_line *found = line && !all ? noise_find(noise, side, i, line) : NULL;
        const double x = all     ? (double)value(payload, &total)
                         : found ? (double)value(payload, &found->cost)
                                 : 0,
                     off = x - mean;
        mean += off / (double)(i + 1);
        squares += off * (x - mean);
    }
    return of->n > 1 ? squares / (double)(of->n - 1) : 0;
}

/* Of two runs of samples: what the numbers of their samples say. */
static double sampled_error(const struct analyze_noise *noise,
                            const struct analyze_line *const line[2], bool all,
                            analyze_value_fn *value, void *payload)
{
    double error[2] = {0, 0};
    bool sampled = false;
    for (int side = 0; side < 2; side++) {
        const struct analyze_cost total = analyze_total(noise->side[side]->run[0]);
        const struct analyze_cost *cost = all ? &total : line[side] ? &line[side]->cost : NULL;
        sampled |= noise->side[side]->run[0]->profile->is_sampled;
        if (cost)
            error[side] = analyze_cost_error(cost, value(payload, cost));
    }
    return sampled ? hypot(error[0], error[1]) : -1;
}

double analyze_noise_error(const struct analyze_noise *noise,
                           const struct analyze_line *const line[2], analyze_value_fn *value,
                           void *payload)
{
    const bool all = !line[0] && !line[1];
    const size_t n[2] = {noise->side[0]->n, noise->side[1]->n};
    if (n[0] + n[1] <= 2)
        return sampled_error(noise, line, all, value, payload);
    double variance[2];
    for (int side = 0; side < 2; side++)
        variance[side] = noise_variance(noise, side, line[side], all, value, payload);
    for (int side = 0; side < 2; side++) /* one run: as the others vary */
        if (n[side] == 1)
            variance[side] = variance[!side];
    return sqrt(variance[0] / (double)n[0] + variance[1] / (double)n[1]);
}
