/* report_info.c: what was measured and when, and the totals. */
#include "report_json.h"

#include "base_memory.h"
#include "report_findings.h"
#include "report_text.h"
#include "report_units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void info_entry(struct report_table *table, const char *name)
{
    report_table_row(table);
    report_table_cell(table, name);
}

static void entry_text(struct report_table *table, const char *name, const char *text)
{
    info_entry(table, name);
    report_table_cell(table, text);
}

static void entry_count(struct report_table *table, const char *name, uint64_t n)
{
    info_entry(table, name);
    report_table_cellf(table, "%" PRIu64, n);
}

static void entry_time(struct report_table *table, const char *name, uint64_t ns,
                       const struct report_style *style)
{
    info_entry(table, name);
    report_cell_time(table, ns, style);
}

static void entry_phase(struct report_table *table, const char *name,
                        const struct analyze_cost *cost, enum report_phase phase,
                        const struct report_style *style)
{
    info_entry(table, name);
    report_cell_phase(table, cost, phase, style);
}

static void entry_bytes(struct report_table *table, const char *name, uint64_t bytes,
                        const struct report_style *style)
{
    info_entry(table, name);
    report_cell_bytes(table, bytes, style);
}

static void entry_arguments(struct report_table *table, const struct read_profile *profile)
{
    size_t n = 1;
    for (size_t i = 0; i < profile->n_arguments; i++)
        n += strlen(profile->argument[i]) + 1;
    char *line = base_malloc(n), *at = line;
    info_entry(table, "arguments");
    for (size_t i = 0; i < profile->n_arguments; i++) {
        size_t length = strlen(profile->argument[i]);
        if (i > 0)
            *at++ = ' ';
        memcpy(at, profile->argument[i], length);
        at += length;
    }
    *at = '\0';
    report_table_cell(table, line);
    free(line);
}

static void entry_when(struct report_table *table, uint64_t unix_ns)
{
    char buf[64] = "?";
    struct tm parts;
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    if (localtime_r(&seconds, &parts))
        strftime(buf, sizeof buf, "%Y-%m-%d %H:%M:%S %z", &parts);
    entry_text(table, "started", buf);
}

static void entry_clock(struct report_table *table, const struct read_profile *profile)
{
    info_entry(table, "clock");
    if (profile->clock_is_uncalibrated)
        report_table_cellf(table, "%s, not calibrated: times are in ticks", profile->clock);
    else if (profile->ticks_per_ns == 1)
        report_table_cell(table, profile->clock);
    else
        report_table_cellf(table, "%s, %.6g ticks per ns", profile->clock, profile->ticks_per_ns);
}

static void entry_steps(struct report_table *table, const struct read_profile *profile)
{
    const unsigned long long first = profile->first_step, seen = profile->seen_steps;
    const char *by = profile->steps_by_call ? "ad_profile_step" : "sweeps";
    info_entry(table, "steps");
    if (profile->seen_steps < profile->first_step || profile->seen_steps == 0)
        report_table_cellf(table, "none measured: %llu ended (%s), the first wanted is %llu", seen,
                           by, first);
    else if (profile->last_step < profile->seen_steps)
        report_table_cellf(table, "%llu to %llu measured of %llu (%s), from 0", first,
                           (unsigned long long)profile->last_step, seen, by);
    else
        report_table_cellf(table, "from %llu on measured, %llu ended (%s)", first, seen, by);
}

static void add_program(struct report_table *table, const struct analyze_result *analysis,
                        const struct report_style *style)
{
    const struct read_profile *profile = analysis->profile;
    entry_text(table, "profile", profile->path);
    if (profile->ranked && profile->ranks > 0) {
        info_entry(table, "rank");
        report_table_cellf(table, "%u of %u, from 0", profile->rank, profile->ranks);
    } else if (profile->ranked) {
        entry_count(table, "rank", profile->rank);
    } else if (profile->ranks > 0) {
        entry_count(table, "ranks", profile->ranks);
    }
    entry_text(table, "program", profile->program);
    entry_arguments(table, profile);
    entry_text(table, "directory", profile->working_directory);
    entry_count(table, "process", profile->pid);
    entry_when(table, profile->start_unix_ns);
    entry_time(table, "duration", profile->duration_ns, style);
    entry_clock(table, profile);
    if (*profile->options)
        entry_text(table, "options", profile->options);
    if (profile->n_events > 0 || profile->events_left_out > 0) {
        info_entry(table, "timeline");
        report_table_cellf(table, "%llu events, %llu more were beyond its limit",
                           (unsigned long long)profile->n_events,
                           (unsigned long long)profile->events_left_out);
    }
    if (profile->has_steps)
        entry_steps(table, profile);
    info_entry(table, "written by");
    report_table_cellf(table, "%s, library %s", profile->collector, profile->library_version);
    info_entry(table, "state");
    if (profile->complete)
        report_table_cellf(table, "complete (%s)", profile->end_reason);
    else
        report_table_cell(table, "truncated");
}

/* What the tape lost to the sizes of its blocks: a row of its own. */
static struct analyze_cost padding_cost(const struct analyze_result *analysis)
{
    struct analyze_cost padding = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->own && line->ops.n > 0 && strcmp(line->ops.name[0], "padding") == 0)
            analyze_cost_add(&padding, &line->cost);
    }
    return padding;
}

/* Of a thread's signals, where not all of the program was measured. */
static const char *text_outside(char buf[REPORT_UNITS_ROOM], uint64_t n)
{
    buf[0] = '\0';
    if (n > 0)
        snprintf(buf, REPORT_UNITS_ROOM, " + %" PRIu64, n);
    return buf;
}

/* Signals by thread: each adds up. */
static void add_samples(struct report_table *table, const struct analyze_result *analysis,
                        const struct report_style *style)
{
    const struct read_profile *profile = analysis->profile;
    const struct analyze_totals *total = &analysis->total;
    entry_time(table, "other code", analysis->sum.other_ns, style);
    const struct analyze_cost *sum = &analysis->sum;
    entry_time(table, "waiting", sum->waiting_ns, style);
    entry_time(table, "  for input and output", sum->waiting_io_ns, style);
    entry_time(table, "  for locks", sum->waiting_lock_ns, style);
    entry_time(table, "  asleep, or for a processor",
               sum->waiting_ns - sum->waiting_io_ns - sum->waiting_lock_ns, style);
    entry_time(table, "the process", total->process_cpu_ns, style);
    info_entry(table, "times are");
    report_table_cellf(table, "sampled every %.3g ms, of processors",
                       (double)profile->sample_period_ns / 1e6);
    entry_count(table, "signals", total->fired);
    entry_count(table, "  recorded", total->recorded);
    entry_count(table, "  partial", total->partial);
    entry_count(table, "  lost", total->lost);
    if (total->outside > 0)
        entry_count(table, "  outside of the steps", total->outside);
    entry_count(table, "  at work for another's op", total->samples_shared);
    for (size_t i = 0; i < profile->n_threads; i++) {
        const struct read_thread *thread = &profile->thread[i];
        if (thread->fired == 0 && thread->tid == 0)
            continue;
        char name[64], buf[REPORT_UNITS_ROOM];
        snprintf(name, sizeof name, "  thread %" PRIu64, thread->tid);
        info_entry(table, name);
        report_table_cellf(table, "%s: %" PRIu64 " = %" PRIu64 " + %" PRIu64 " + %" PRIu64 "%s",
                           thread->name, thread->fired, thread->recorded, thread->partial,
                           thread->lost, text_outside(buf, thread->outside));
    }
}

static void info_add_bytes(struct report_table *table, const struct analyze_result *analysis,
                           const struct report_style *style)
{
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_cost *sum = &analysis->sum;
    struct analyze_cost padding = padding_cost(analysis);
    entry_bytes(table, "bytes handed out", total->handed_out_bytes, style);
    entry_bytes(table, "  records", sum->record_bytes - padding.record_bytes, style);
    entry_bytes(table, "  values", sum->value_bytes - padding.value_bytes, style);
    entry_bytes(table, "  adjoints", sum->adjoint_bytes - padding.adjoint_bytes, style);
    entry_bytes(table, "  padding", analyze_cost_tape_bytes(&padding), style);
    entry_bytes(table, "live at the end", total->live_bytes, style);
    entry_bytes(table, "peak of one tape", total->peak_bytes, style);
    if (total->memory_peak_bytes > 0) {
        entry_bytes(table, "  of it memory", total->memory_peak_bytes, style);
        entry_bytes(table, "written to its file", total->spilled_bytes, style);
    }
    entry_bytes(table, "touched by one tape", total->touched_bytes, style);
    entry_bytes(table, "reserved by one tape", total->reserved_bytes, style);
}

static void add_costs(struct report_table *table, const struct analyze_result *analysis,
                      const struct report_style *style)
{
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_cost *sum = &analysis->sum;
    if (analysis->profile->runs > 1)
        entry_count(table, "runs, added up", analysis->profile->runs);
    const bool timed = !analysis->profile->without_times;
    const bool counted = read_profile_has_bytes(analysis->profile);
    if (counted) {
        entry_count(table, "tapes", total->tapes);
        entry_count(table, "sweeps", total->sweeps);
        entry_count(table, "records", total->records);
        entry_count(table, "calls", sum->calls);
    }
    char part[REPORT_TEXT_PART_ROOM];
    if (report_text_part(part, analysis, style->utf8)) {
        part[strcspn(part, ":")] = '\0'; /* the phases have rows of their own */
        entry_text(table, "AD", part);
    }
    if (timed) {
        const struct analyze_cost whole = analyze_total(analysis);
        entry_phase(table, "forward", &whole, REPORT_FORWARD, style);
        entry_phase(table, "backward", &whole, REPORT_BACKWARD, style);
        if (analyze_cost_recomputes(sum))
            entry_phase(table, "recompute", &whole, REPORT_RECOMPUTE, style);
    }
    if (analysis->profile->is_sampled)
        add_samples(table, analysis, style);
    else if (timed)
        entry_time(table, "profiler's own, taken off", total->overhead_ns, style);
    if (counted)
        info_add_bytes(table, analysis, style);
}

/* Scopes that had not ended with the profile: an end is missing, or the program left within. */
static void add_open_scopes(struct report_table *table, const struct analyze_scope_costs *costs)
{
    enum { MOST = 10 };
    size_t found = 0;
    for (size_t i = 0; i < costs->n; i++) {
        const struct analyze_scope_cost *scope = &costs->scope[i];
        char path[REPORT_TEXT_SCOPE_ROOM];
        if (scope->open_calls == 0 || found++ >= MOST)
            continue;
        report_text_scope_path(path, costs, scope);
        info_entry(table, found == 1 ? "scopes not ended" : "");
        report_table_cellf(table, "%s: %" PRIu64 " of %" PRIu64, path, scope->open_calls,
                           scope->calls);
    }
    if (found > MOST) {
        info_entry(table, "");
        report_table_cellf(table, "%zu more", found - MOST);
    }
}

static void json_open_scopes(struct base_json *json, const struct analyze_scope_costs *costs)
{
    base_json_array(json, "open_scopes");
    for (size_t i = 0; i < costs->n; i++) {
        char path[REPORT_TEXT_SCOPE_ROOM];
        if (costs->scope[i].open_calls == 0)
            continue;
        report_text_scope_path(path, costs, &costs->scope[i]);
        base_json_object(json, NULL);
        base_json_text(json, "scope", path);
        base_json_u64(json, "open_calls", costs->scope[i].open_calls);
        base_json_u64(json, "calls", costs->scope[i].calls);
        base_json_end(json);
    }
    base_json_end(json);
}

static void info_print_json(const struct analyze_result *analysis,
                            const struct analyze_scope_costs *costs, FILE *out)
{
    const struct read_profile *profile = analysis->profile;
    struct base_json json;
    report_json_begin(&json, out, "info");
    report_json_profile(&json, "profile", profile);
    report_json_totals(&json, "total", analysis);
    base_json_object(&json, "sum");
    report_json_cost(&json, &analysis->sum, analysis->profile);
    base_json_end(&json);
    base_json_array(&json, "modules");
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct read_mapping *mapping = &profile->mapping[i];
        base_json_object(&json, NULL);
        base_json_text(&json, "path", mapping->path);
        base_json_u64(&json, "start", mapping->start);
        base_json_u64(&json, "end", mapping->end);
        base_json_u64(&json, "bias", mapping->bias);
        base_json_end(&json);
    }
    base_json_end(&json);
    json_open_scopes(&json, costs);
    struct report_findings findings;
    const struct report_style words = {.utf8 = true};
    report_findings_make(&findings, analysis, &(struct report_known){.growth = NULL}, &words);
    report_findings_json(&json, &findings);
    report_findings_free(&findings);
    base_json_u64(&json, "packets", profile->n_packets);
    base_json_u64(&json, "lines", analysis->n_lines);
    base_json_u64(&json, "sites_without_line", analysis->n_unlined);
    base_json_finish(&json);
}

static void print_text(const struct analyze_result *analysis,
                       const struct analyze_scope_costs *costs, const struct report_style *style)
{
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_LEFT, NULL);
    report_table_column(table, REPORT_TABLE_LEFT, NULL);
    add_program(table, analysis, style);
    add_open_scopes(table, costs);
    add_costs(table, analysis, style);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, 0, style->utf8);
    report_table_free(table);
    report_text_unlined_note(analysis, style->out);
    struct report_findings findings;
    report_findings_make(&findings, analysis, &(struct report_known){.growth = NULL}, style);
    report_findings_print(&findings, style);
    report_findings_free(&findings);
}

void report_info(const struct analyze_result *analysis, const struct report_style *style)
{
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, analysis->profile, false);
    if (style->json)
        info_print_json(analysis, &costs, style->out);
    else
        print_text(analysis, &costs, style);
    analyze_scope_costs_free(&costs);
}

/* An end that is missing shows nowhere else, where no scope is around it. */
static void put_open_scopes(const struct read_profile *profile, const struct report_style *style)
{
    FILE *out = style->out;
    const struct read_scope *open = NULL;
    size_t others = 0;
    for (size_t i = 0; i < profile->n_scopes; i++) {
        others += open && profile->scope[i].open_calls > 0;
        if (!open && profile->scope[i].open_calls > 0)
            open = &profile->scope[i];
    }
    if (!open)
        return;
    fputs(", scope \"", out);
    report_table_put_text(out, open->name, 40, style->utf8);
    fputc('"', out);
    if (others > 0)
        fprintf(out, " and %zu more", others);
    fputs(" not ended", out);
}

void report_summary(const struct analyze_result *analysis, const struct report_style *style)
{
    char forward[REPORT_TEXT_TIME_ROOM], backward[REPORT_TEXT_TIME_ROOM], bytes[REPORT_UNITS_ROOM];
    size_t lines = 0;
    const struct analyze_line *last = NULL;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->own)
            continue;
        lines += !last || last->file != line->file || last->line != line->line || !line->file;
        last = line;
    }
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_cost whole = analyze_total(analysis);
    const struct report_style words = {.utf8 = style->utf8}; /* times have units in a sentence */
    if (analysis->profile->is_sampled)
        fprintf(style->out, "%llu sample%s, ", (unsigned long long)analysis->sum.samples,
                analysis->sum.samples == 1 ? "" : "s");
    fprintf(style->out, "%zu line%s, ", lines, lines == 1 ? "" : "s");
    const bool counted = read_profile_has_bytes(analysis->profile);
    if (counted)
        fprintf(style->out, "%llu tape%s, ", (unsigned long long)total->tapes,
                total->tapes == 1 ? "" : "s");
    if (analysis->profile->without_times)
        fputs("no times", style->out);
    else
        fprintf(style->out, "forward %s, backward %s",
                report_text_phase(forward, &whole, REPORT_FORWARD, &words),
                report_text_phase(backward, &whole, REPORT_BACKWARD, &words));
    if (analyze_cost_recomputes(&analysis->sum))
        fprintf(style->out, ", recompute %s",
                report_text_phase(forward, &whole, REPORT_RECOMPUTE, &words));
    if (counted)
        fprintf(style->out, ", %s on tape", report_units_bytes(bytes, total->handed_out_bytes));
    put_open_scopes(analysis->profile, style);
}
