/* report_gates.c: the judgements. See report_gates.h. */
#include "report_gates.h"

#include "base_array.h"
#include "base_memory.h"
#include "report_json.h"
#include "report_text.h"
#include "report_units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WHERE_ROOM = 2048 };

/* Adds a gate. subject: a profile, or a line of one. */
__attribute__((format(printf, 5, 6))) static void gates_add(struct report_gates *gates, bool failed,
                                                            const char *name, const char *subject,
                                                            const char *format, ...)
{
    BASE_ARRAY_GROW(gates->gate, gates->n, &gates->room);
    struct report_gate *gate = &gates->gate[gates->n++];
    *gate = (struct report_gate){
        .name = base_strdup(name), .subject = base_strdup(subject), .failed = failed};
    va_list arguments;
    va_start(arguments, format);
    gate->text = base_vasprintf(format, arguments);
    va_end(arguments);
}

/* The gates from the first-th on are about that line, if it is known. */
static void gates_place(struct report_gates *gates, size_t first, const char *file, uint32_t line)
{
    for (size_t i = first; file && line > 0 && i < gates->n; i++) {
        gates->gate[i].file = base_strdup(file);
        gates->gate[i].line = line;
    }
}

void report_gates_free(struct report_gates *gates)
{
    for (size_t i = 0; i < gates->n; i++) {
        free(gates->gate[i].name);
        free(gates->gate[i].subject);
        free(gates->gate[i].text);
        free(gates->gate[i].file);
    }
    free(gates->gate);
    *gates = (struct report_gates){0};
}

size_t report_gates_failed(const struct report_gates *gates)
{
    size_t failed = 0;
    for (size_t i = 0; i < gates->n; i++)
        failed += gates->gate[i].failed;
    return failed;
}

/* What was measured beside its limit; both exactly where the short forms are the same. */
static void gates_add_bytes(struct report_gates *gates, const char *name, const char *subject,
                            uint64_t is, uint64_t most)
{
    char a[REPORT_UNITS_ROOM], b[REPORT_UNITS_ROOM];
    report_units_bytes(a, is);
    report_units_bytes(b, most);
    if (is != most && strcmp(a, b) == 0)
        gates_add(gates, is > most, name, subject, "%llu bytes, at most %llu",
                  (unsigned long long)is, (unsigned long long)most);
    else
        gates_add(gates, is > most, name, subject, "%s, at most %s", a, b);
}

/* A gate on bytes that a profile did not count has failed. */
static bool has_bytes(struct report_gates *gates, const struct analyze_result *analysis,
                      const char *name, const char *subject)
{
    const bool has = read_profile_has_bytes(analysis->profile);
    if (!has)
        gates_add(gates, true, name, subject, "%s has no bytes: it was sampled without tape=on",
                  analysis->profile->path);
    return has;
}

void report_gate_peak(struct report_gates *gates, const struct analyze_result *analysis,
                      uint64_t most)
{
    if (has_bytes(gates, analysis, "max-peak", "all"))
        gates_add_bytes(gates, "max-peak", analysis->profile->path, analysis->total.peak_bytes,
                        most);
}

void report_gate_total_tape(struct report_gates *gates, const struct analyze_result *analysis,
                            uint64_t most)
{
    if (has_bytes(gates, analysis, "max-total-tape", "all"))
        gates_add_bytes(gates, "max-total-tape", analysis->profile->path,
                        analysis->total.handed_out_bytes, most);
}

static void gates_judge_line_tape(struct report_gates *gates, const struct analyze_result *analysis,
                                  const char *file, uint32_t line, uint64_t most,
                                  const char **found, size_t n)
{
    static const char name[] = "max-tape";
    char subject[WHERE_ROOM];
    snprintf(subject, sizeof subject, "%s:%u", file, (unsigned)line);
    if (n != 1) {
        gates_add(gates, true, name, subject,
                  n == 0 ? "%s has no such file" : "%s has several files of that name",
                  analysis->profile->path);
        return;
    }
    if (!has_bytes(gates, analysis, name, subject))
        return;
    uint64_t is = 0;
    bool any = false;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        if (analysis->line[i].file != found[0] || analysis->line[i].line != line)
            continue;
        is += analyze_cost_tape_bytes(&analysis->line[i].cost);
        any = true;
    }
    if (any)
        gates_add_bytes(gates, name, subject, is, most);
    else
        gates_add(gates, true, name, subject, "%s has no cost on that line",
                  analysis->profile->path);
}

void report_gate_line_tape(struct report_gates *gates, const struct analyze_result *analysis,
                           const char *file, uint32_t line, uint64_t most)
{
    const char *found[1];
    const size_t first = gates->n, n = analyze_files(analysis, file, found, 1);
    gates_judge_line_tape(gates, analysis, file, line, most, found, n);
    gates_place(gates, first, n == 1 ? found[0] : file, line);
}

void report_gate_ratio(struct report_gates *gates, const struct analyze_result *analysis,
                       double most)
{
    const struct analyze_totals *total = &analysis->total;
    const char *path = analysis->profile->path;
    if (total->forward_ns == 0) {
        gates_add(gates, true, "max-ratio", path, "no forward time to compare with");
        return;
    }
    double is = (double)total->backward_ns / (double)total->forward_ns;
    gates_add(gates, is > most, "max-ratio", path, "backward is %.2f times forward, at most %g", is,
              most);
}

static void gates_judge_growth(struct report_gates *gates, const struct analyze_fit *fit,
                               const char *where, double most)
{
    if (analyze_fit_is_above(fit, most))
        gates_add(gates, true, "max-growth", where,
                  "bytes grow as n^%.2f (%.2f to %.2f), at most %g", fit->exponent, fit->low,
                  fit->high, most);
}

void report_gate_growth(struct report_gates *gates, const struct report_growth *growth,
                        const struct report_sizes *sizes, double most)
{
    const struct analyze_fit *whole = &growth->total.bytes;
    for (size_t i = 0; i < sizes->n; i++)
        if (!has_bytes(gates, sizes->analysis[i], "max-growth", "all"))
            return;
    if (!whole->has_interval) {
        gates_add(gates, true, "max-growth", "all", "three sizes with tape bytes are needed");
        return;
    }
    if (analyze_fit_is_above(whole, most))
        gates_judge_growth(gates, whole, "all", most);
    else
        gates_add(gates, false, "max-growth", "all",
                  "bytes grow as n^%.2f (%.2f to %.2f), at most %g", whole->exponent, whole->low,
                  whole->high, most);
    for (size_t i = 0; i < growth->n; i++) {
        char where[WHERE_ROOM];
        const struct analyze_line *any = growth->row[i].row->any;
        const size_t first = gates->n;
        if (any->own)
            continue;
        report_text_where(where, sizeof where, sizes->analysis[sizes->n - 1], any, ANALYZE_BY_LINE);
        gates_judge_growth(gates, &growth->row[i].bytes, where, most);
        gates_place(gates, first, any->file, any->line);
    }
}

/* "mlp.c:41 dense", or as much as is known. */
static void put_statement(char *buf, size_t n, const struct analyze_result *analysis,
                          const struct analyze_expected_costs *costs,
                          const struct analyze_expected_cost *expected)
{
    char scope[REPORT_TEXT_SCOPE_ROOM];
    if (expected->scope)
        report_text_scope_name(scope, &costs->scopes, &costs->scopes.scope[expected->scope - 1]);
    const char *of = expected->scope ? scope : expected->function ? expected->function : "";
    if (expected->file)
        snprintf(buf, n, "%s:%u%s%s", report_short_path(analysis, expected->file),
                 (unsigned)expected->line, *of ? " " : "", of);
    else
        snprintf(buf, n, "0x%llx%s%s", (unsigned long long)expected->stated->pc, *of ? " " : "",
                 of);
}

/* Of the average of several times, which need not be whole. */
static const char *put_bytes(char buf[REPORT_UNITS_ROOM], double bytes)
{
    snprintf(buf, REPORT_UNITS_ROOM, "%.12g", bytes);
    return buf;
}

void report_gate_expectations(struct report_gates *gates, const struct analyze_result *analysis)
{
    struct analyze_expected_costs costs;
    analyze_expected_costs_make(&costs, analysis);
    for (size_t i = 0; i < costs.n; i++) {
        const struct analyze_expected_cost *expected = &costs.expected[i];
        bool is_ratio = expected->stated->kind == READ_EXPECT_RATIO;
        const char *name = is_ratio ? "expect-ratio" : "expect-tape-bytes";
        char where[WHERE_ROOM], is[REPORT_UNITS_ROOM];
        const size_t first = gates->n;
        put_statement(where, sizeof where, analysis, &costs, expected);
        if (!expected->known)
            gates_add(gates, expected->stated->times > 0, name, where,
                      "at most %.12g; nothing was measured", expected->stated->bound);
        else
            gates_add(gates, !expected->holds, name, where, "%s, at most %.12g",
                      is_ratio
                          ? report_units_against(is, expected->measured, expected->stated->bound)
                          : put_bytes(is, expected->measured),
                      expected->stated->bound);
        gates_place(gates, first, expected->file, expected->line);
    }
    if (costs.n == 0)
        gates_add(gates, true, "expectations", analysis->profile->path,
                  "the program states none (AD_EXPECT_RATIO, AD_EXPECT_TAPE_BYTES)");
    analyze_expected_costs_free(&costs);
}

/* Adds a gate if `now` is more than the fraction above `base`, and by more than `chance`; returns
 * whether it was. */
static bool judge_more(struct report_gates *gates, const char *name, const char *where,
                       uint64_t base, uint64_t now, double fraction, double chance, bool is_time)
{
    char a[REPORT_UNITS_ROOM], b[REPORT_UNITS_ROOM];
    if ((double)now <= (double)base * (1 + fraction) || (double)now < (double)base + chance)
        return false;
    if (is_time)
        gates_add(gates, true, name, where, "%s, was %s, at most +%g%%",
                  report_units_time(a, now, false), report_units_time(b, base, false),
                  100 * fraction);
    else
        gates_add(gates, true, name, where, "%llu bytes, was %llu, at most +%g%%",
                  (unsigned long long)now, (unsigned long long)base, 100 * fraction);
    return true;
}

static const struct analyze_cost *gates_cost_of(const struct analyze_line *line)
{
    static const struct analyze_cost nothing;
    return line ? &line->cost : &nothing;
}

static uint64_t gates_time_of(const struct analyze_cost *cost)
{
    return cost->forward_ns + cost->backward_ns + cost->recompute_ns;
}

static uint64_t gates_time_of_all(const struct analyze_totals *total)
{
    return total->forward_ns + total->backward_ns + total->recompute_ns;
}

static uint64_t gates_value(void *payload, const struct analyze_cost *cost)
{
    (void)payload;
    return gates_time_of(cost);
}

/* What chance makes of the time of a row's lines, both NULL: of all; 0 where that is not known. */
static double gates_chance(const struct analyze_noise *noise,
                           const struct analyze_line *const line[2])
{
    const double error = analyze_noise_error(noise, line, gates_value, NULL);
    return error > 0 ? error * noise->errors : 0;
}

void report_gate_baseline(struct report_gates *gates, const struct analyze_runs *runs,
                          const struct analyze_result *now, double bytes, double time)
{
    static const struct analyze_line *const all[2];
    const struct analyze_result *base = &runs->mean, *both[] = {base, now};
    struct analyze_join join;
    struct analyze_runs one;
    struct analyze_noise noise;
    bool more = false;
    if (!has_bytes(gates, base, "base", "all") || !has_bytes(gates, now, "base", "all"))
        return;
    if (time >= 0 && base->profile->is_sampled != now->profile->is_sampled) {
        gates_add(gates, true, "base-time", "all", "exact and sampled times cannot be compared");
        return;
    }
    analyze_runs_make(&one, &now, 1);
    analyze_noise_make(&noise, runs, &one, ANALYZE_BY_LINE);
    analyze_join_make(&join, both, 2, ANALYZE_BY_LINE, true);
    for (size_t i = 0; i < join.n_rows; i++) {
        const struct analyze_joined *row = &join.row[i];
        const struct analyze_cost *a = gates_cost_of(row->line[0]),
                                  *b = gates_cost_of(row->line[1]);
        char where[WHERE_ROOM];
        const size_t first = gates->n;
        if (!row->line[1])
            continue; /* gone: no more than before */
        if (row->line[1]->own)
            continue;
        report_text_where(where, sizeof where, now, row->line[1], ANALYZE_BY_LINE);
        more |= judge_more(gates, "base-tape", where, analyze_cost_tape_bytes(a),
                           analyze_cost_tape_bytes(b), bytes, 0, false);
        if (time >= 0)
            more |= judge_more(gates, "base-time", where, gates_time_of(a), gates_time_of(b), time,
                               gates_chance(&noise, row->line), true);
        gates_place(gates, first, row->line[1]->file, row->line[1]->line);
    }
    analyze_join_free(&join);
    const struct analyze_totals *a = &base->total, *b = &now->total;
    more |= judge_more(gates, "base-tape", "all", a->handed_out_bytes, b->handed_out_bytes, bytes,
                       0, false);
    more |= judge_more(gates, "base-peak", "all", a->peak_bytes, b->peak_bytes, bytes, 0, false);
    if (time >= 0)
        more |= judge_more(gates, "base-time", "all", gates_time_of_all(a), gates_time_of_all(b),
                           time, gates_chance(&noise, all), true);
    analyze_noise_free(&noise);
    analyze_runs_free(&one);
    if (!more)
        gates_add(gates, false, "base", now->profile->path, "no more than %s by any line",
                  base->profile->path);
}

static void gates_print_add_row(struct report_table *table, const struct report_gate *gate,
                                const struct report_style *style)
{
    report_table_row(table);
    report_table_cell(table, gate->failed ? "FAILED" : "ok");
    report_table_cell(table, gate->name);
    report_table_cellf(table, "%s: %s", gate->subject, gate->text);
    if (style->color)
        report_table_color(table, gate->failed ? "1;31" : "32");
}

static void gates_print_print_json(const struct report_gates *gates, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "check");
    base_json_u64(&json, "failed", report_gates_failed(gates));
    base_json_array(&json, "gates");
    for (size_t i = 0; i < gates->n; i++) {
        base_json_object(&json, NULL);
        base_json_text(&json, "name", gates->gate[i].name);
        base_json_text(&json, "subject", gates->gate[i].subject);
        base_json_bool(&json, "ok", !gates->gate[i].failed);
        base_json_text(&json, "text", gates->gate[i].text);
        base_json_text(&json, "file", gates->gate[i].file);
        base_json_u64(&json, "line", gates->gate[i].line);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_finish(&json);
}

void report_gates_print(const struct report_gates *gates, const struct report_style *style)
{
    if (style->json) {
        gates_print_print_json(gates, style->out);
        return;
    }
    struct report_table *table = report_table_new();
    for (int i = 0; i < 3; i++)
        report_table_column(table, REPORT_TABLE_LEFT, NULL);
    for (int failed = 1; failed >= 0; failed--)
        for (size_t i = 0; i < gates->n; i++)
            if (gates->gate[i].failed == failed)
                gates_print_add_row(table, &gates->gate[i], style);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, 0, style->utf8);
    report_table_free(table);
}
