/* report_json.c: see report_json.h. */
#include "report_json.h"

#include "analyze_findings.h"
#include "base_memory.h"
#include "report_rank.h"
#include "report_text.h"

#include <stdlib.h>

void report_json_begin(struct base_json *json, FILE *out, const char *command)
{
    base_json_begin(json, out);
    base_json_text(json, "tapescope", command);
    base_json_u64(json, "version", 1);
}

void report_json_profile(struct base_json *json, const char *name,
                         const struct read_profile *profile)
{
    base_json_object(json, name);
    base_json_text(json, "path", profile->path);
    base_json_text(json, "program", profile->program);
    base_json_array(json, "arguments");
    for (size_t i = 0; i < profile->n_arguments; i++)
        base_json_text(json, NULL, profile->argument[i]);
    base_json_end(json);
    base_json_text(json, "directory", profile->working_directory);
    base_json_u64(json, "process", profile->pid);
    report_json_known(json, "rank", profile->rank, profile->ranked);
    report_json_known(json, "ranks", profile->ranks, profile->ranks > 0);
    base_json_u64(json, "runs", profile->runs);
    base_json_u64(json, "start_unix_ns", profile->start_unix_ns);
    base_json_u64(json, "duration_ns", profile->duration_ns);
    base_json_text(json, "clock", profile->clock);
    base_json_bool(json, "clock_calibrated", !profile->clock_is_uncalibrated);
    base_json_double(json, "ticks_per_ns", profile->ticks_per_ns);
    base_json_text(json, "library_version", profile->library_version);
    base_json_text(json, "collector", profile->collector);
    base_json_u64(json, "events", profile->n_events);
    base_json_u64(json, "events_left_out", profile->events_left_out);
    if (profile->has_steps) {
        base_json_object(json, "steps");
        base_json_u64(json, "first", profile->first_step);
        base_json_u64(json, "last", profile->last_step);
        base_json_u64(json, "ended", profile->seen_steps);
        base_json_bool(json, "by_call", profile->steps_by_call);
        base_json_end(json);
    } else {
        base_json_null(json, "steps");
    }
    base_json_bool(json, "sampled", profile->is_sampled);
    base_json_bool(json, "complete", profile->complete);
    base_json_text(json, "end_reason", profile->end_reason);
    char *left_out = report_left_out(profile);
    char *warning =
        profile->warning && left_out ? base_asprintf("%s; %s", profile->warning, left_out) : NULL;
    base_json_text(json, "warning",
                   warning            ? warning
                   : profile->warning ? profile->warning
                                      : left_out);
    free(warning);
    free(left_out);
    base_json_end(json);
}

void report_json_known(struct base_json *json, const char *name, uint64_t value, bool known)
{
    if (known)
        base_json_u64(json, name, value);
    else
        base_json_null(json, name);
}

void report_json_byte_seconds(struct base_json *json, double byte_ns,
                              const struct read_profile *profile)
{
    if (report_ranking_knows(profile, REPORT_SORT_LIFETIME))
        base_json_double(json, "byte_seconds", byte_ns / 1e9);
    else
        base_json_null(json, "byte_seconds");
}

/* Of times that are estimates. */
static void json_sample_costs(struct base_json *json, const struct analyze_cost *cost)
{
#define ROW(X, name, unit, shown, ...) ROW_##shown(name)
#define ROW_SHOWN(name) base_json_u64(json, #name, cost->name);
#define ROW_HIDDEN(name)
#define SUM(X, name, ...) base_json_u64(json, #name, analyze_cost_##name(cost));
    SAMPLE_COSTS(ROW, SUM, )
#undef ROW
#undef SUM
}

/* Of a time without an estimated part there is none. */
static void json_error(struct base_json *json, const char *name, double ns)
{
    if (ns > 0)
        base_json_double(json, name, ns);
    else
        base_json_null(json, name);
}

void report_json_cost(struct base_json *json, const struct analyze_cost *cost,
                      const struct read_profile *profile)
{
    const bool timed = !profile->without_times, counted = read_profile_has_bytes(profile);
    const bool forward = timed && !analyze_cost_is_untimed(cost);
#define ROW(X, name, field, unit, phase, out, ...)                                                 \
    report_json_known(json, #out, cost->ANALYZE_COST_SHOWN(unit, name, out), KNOWN_##unit(phase));
#define KNOWN_TICKS(phase) (READ_PHASE_##phase == READ_PHASE_FORWARD ? forward : timed)
#define KNOWN_COUNT(phase) counted
#define KNOWN_FLOPS(phase) counted
#define KNOWN_BYTES(phase) counted
#define SUM(X, name, unit, ...) SUM_##unit(name)
#define SUM_BYTES(name) report_json_known(json, #name, analyze_cost_##name(cost), counted);
#define SUM_BYTE_SECONDS(name) report_json_byte_seconds(json, cost->byte_ns, profile);
    COUNTERS(ROW, SUM, )
#undef ROW
#undef SUM
    json_error(json, "forward_error_ns", analyze_cost_forward_error(cost));
    json_error(json, "backward_error_ns", analyze_cost_backward_error(cost));
    if (cost->samples > 0)
        json_sample_costs(json, cost);
}

static void put_names(struct base_json *json, const char *name, const struct analyze_names *names)
{
    base_json_array(json, name);
    for (unsigned i = 0; i < names->n; i++)
        base_json_text(json, NULL, names->name[i]);
    base_json_end(json);
}

void report_json_place(struct base_json *json, const struct analyze_line *line)
{
    base_json_text(json, "file", line->file);
    base_json_u64(json, "line", line->line);
    base_json_text(json, "function", line->function);
    base_json_text(json, "module", line->module);
    base_json_u64(json, "offset", line->offset);
    base_json_bool(json, "own", line->own);
    put_names(json, "ops", &line->ops);
    base_json_bool(json, "more_ops", line->ops.more);
    put_names(json, "kept_by", &line->kept_by);
    base_json_bool(json, "kept_by_more", line->kept_by.more);
}

void report_json_ratio(struct base_json *json, const char *name, uint64_t a, uint64_t b)
{
    if (b > 0)
        base_json_double(json, name, (double)a / (double)b);
    else
        base_json_null(json, name);
}

void report_json_totals(struct base_json *json, const char *name,
                        const struct analyze_result *analysis)
{
    const struct analyze_totals *total = &analysis->total;
    const bool timed = !analysis->profile->without_times;
    const bool counted = read_profile_has_bytes(analysis->profile);
    base_json_object(json, name);
    report_json_known(json, "tapes", total->tapes, counted);
    report_json_known(json, "sweeps", total->sweeps, counted);
    report_json_known(json, "records", total->records, counted);
    report_json_known(json, "calls", analysis->sum.calls, counted);
    report_json_known(json, "forward_ns", total->forward_ns,
                      timed && !analyze_cost_is_untimed(&analysis->sum));
    report_json_known(json, "backward_ns", total->backward_ns, timed);
    report_json_known(json, "recompute_ns", total->recompute_ns, timed);
    static const char *const kinds[] = {[ANALYZE_PART_EXACT] = "exact",
                                        [ANALYZE_PART_ESTIMATE] = "estimate",
                                        [ANALYZE_PART_LEAST] = "at_least"};
    struct analyze_part part;
    const bool known = analyze_part_make(&part, analysis);
    report_json_known(json, "ad_ns", part.ad_ns, known);
    report_json_known(json, "profiler_ns", part.profiler_ns, known);
    report_json_known(json, "run_ns", part.run_ns, known);
    if (known)
        base_json_text(json, "ad_is", kinds[part.kind]);
    else
        base_json_null(json, "ad_is");
    report_json_known(json, "tape_bytes", total->handed_out_bytes, counted);
    report_json_known(json, "live_bytes", total->live_bytes, counted);
    report_json_known(json, "peak_bytes", total->peak_bytes, counted);
    report_json_known(json, "touched_bytes", total->touched_bytes, counted);
    report_json_known(json, "reserved_bytes", total->reserved_bytes, counted);
    report_json_known(json, "memory_peak_bytes",
                      total->memory_peak_bytes > 0 ? total->memory_peak_bytes : total->peak_bytes,
                      counted);
    report_json_known(json, "spilled_bytes", total->spilled_bytes, counted);
    report_json_known(json, "disk_write_ns", total->disk_write_ns, timed);
    report_json_known(json, "disk_read_ns", total->disk_read_ns, timed);
    if (analysis->profile->is_sampled) {
        json_sample_costs(json, &analysis->sum);
        base_json_u64(json, "process_cpu_ns", total->process_cpu_ns);
        base_json_u64(json, "signals", total->fired);
        base_json_u64(json, "recorded", total->recorded);
        base_json_u64(json, "partial", total->partial);
        base_json_u64(json, "lost", total->lost);
        base_json_u64(json, "outside", total->outside);
    }
    base_json_end(json);
}
