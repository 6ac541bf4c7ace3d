/* analyze_roof.c: what the counted flops and bytes say of the time that they should take. */
#include "analyze.h"

#include <math.h>
#include <string.h>

enum { LEAST_PART = 1000, SLOW_FACTOR = 2, SLOW_ERRORS = 2, SLOW_PART = 100 };

static void roof_raise(double *to, uint64_t amount, uint64_t ns)
{
    double rate = ns > 0 ? (double)amount / (double)ns : 0;
    if (rate > *to)
        *to = rate;
}

struct analyze_roof analyze_roof(const struct analyze_result *analysis)
{
    struct analyze_roof roof = analysis->roof_of_all;
    uint64_t all = 0;
#define ROW(X, NAME, name, ...) all += analysis->total.name##_ns;
    PHASE_LIST(ROW, )
#undef ROW
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_cost *cost = &analysis->line[i].cost;
        /* A short time is mostly its own rounding. */
#define ROW(X, NAME, name, ...)                                                                    \
    if (cost->name##_ns >= all / LEAST_PART) {                                                     \
        roof_raise(&roof.flops_per_ns, cost->name##_flops, cost->name##_ns);                       \
        roof_raise(&roof.bytes_per_ns, cost->name##_moved, cost->name##_ns);                       \
    }
        PHASE_LIST(ROW, )
#undef ROW
    }
    return roof;
}

/* The time that the roof lets one expect. */
static double expected_ns(uint64_t flops, uint64_t moved, const struct analyze_roof *roof)
{
    double compute = roof->flops_per_ns > 0 ? (double)flops / roof->flops_per_ns : 0;
    double move = roof->bytes_per_ns > 0 ? (double)moved / roof->bytes_per_ns : 0;
    return compute > move ? compute : move;
}

double analyze_cost_expected_ratio(const struct analyze_cost *cost, const struct analyze_roof *roof)
{
    double forward = expected_ns(cost->forward_flops, cost->forward_moved, roof);
    double backward = expected_ns(cost->backward_flops, cost->backward_moved, roof);
    return forward > 0 ? backward / forward : 0;
}

static bool has_sweep(const struct analyze_line *line)
{
    for (unsigned i = 0; i < line->ops.n; i++)
        if (strcmp(line->ops.name[i], "backward") == 0)
            return true;
    return line->ops.more;
}

/* A part of the time that was met by few samples, or by none, is not better known than to one. */
static double error_of(const struct analyze_cost *cost, uint64_t ns)
{
    const double error = analyze_cost_error(cost, ns);
    const double each =
        cost->cpu_samples > 0 ? (double)analyze_cost_time(cost) / (double)cost->cpu_samples : 0;
    return error > each ? error : each;
}

/* An op's only call may have been interrupted, or have met memory that was touched for the first
 * time. */
static bool is_single_calls(const struct analyze_line *line)
{
    return line->cost.backward_calls > 0 && line->cost.backward_calls <= line->ops.n;
}

uint64_t analyze_cost_steady_ns(const struct analyze_cost *cost)
{
    return cost->cpu_samples > 0 || cost->backward_ns < cost->steady_backward_ns
               ? cost->backward_ns
               : cost->steady_backward_ns;
}

/* An op whose counts come to so little, 10 Mflop/s and 10 MB/s, calls a function of the user's that
 * nothing counts. */
static bool is_uncounted(const struct analyze_cost *cost)
{
    return 100 * ((double)cost->forward_flops + (double)cost->forward_moved) <
           (double)cost->forward_ns;
}

bool analyze_line_is_slow_backward(const struct analyze_line *line,
                                   const struct analyze_result *analysis,
                                   const struct analyze_roof *roof)
{
    const struct analyze_cost *cost = &line->cost;
    double expected = analyze_cost_expected_ratio(cost, roof);
    double all = (double)analysis->total.forward_ns + (double)analysis->total.backward_ns;
    double beyond =
        (double)analyze_cost_steady_ns(cost) - SLOW_FACTOR * expected * (double)cost->forward_ns;
    double error = hypot(error_of(cost, cost->backward_ns),
                         SLOW_FACTOR * expected * error_of(cost, cost->forward_ns));
    return !analyze_cost_is_untimed(cost) && expected > 0 && beyond > SLOW_ERRORS * error &&
           beyond >= all / SLOW_PART && !is_single_calls(line) && !is_uncounted(cost) &&
           !has_sweep(line);
}
