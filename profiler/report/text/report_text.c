/* report_text.c: see report_text.h. */
#include "report_text.h"

#include "analyze_findings.h"
#include "base_memory.h"
#include "base_strings.h"
#include "report_rank.h"
#include "report_units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const report_text_kind_name[READ_RESIDUAL_KINDS] = {"saved", "value", "record",
                                                                "adjoint", "disk"};

char *report_left_out(const struct read_profile *profile)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++) {
            const struct read_row *row = &profile->tape[i].row[j];
            if (row->pc == 0 && strcmp(row->op, "other") == 0)
                calls = read_add(calls, row->calls);
        }
    char *lines = NULL, *paths = NULL;
    if (calls > 0)
        lines =
            base_asprintf("too many lines: %llu call%s stand%s in the row 'other' of a tape",
                          (unsigned long long)calls, calls == 1 ? "" : "s", calls == 1 ? "s" : "");
    if (profile->paths_refused > 0)
        paths = base_asprintf("too many call paths: %llu call%s without some of %s callers",
                              (unsigned long long)profile->paths_refused,
                              profile->paths_refused == 1 ? " is shown" : "s are shown",
                              profile->paths_refused == 1 ? "its" : "their");
    if (!lines || !paths)
        return lines ? lines : paths;
    char *both = base_asprintf("%s; %s", lines, paths);
    free(lines);
    free(paths);
    return both;
}

void report_cell_time(struct report_table *table, uint64_t ns, const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_cell(table, style->exact ? report_units_exact(buf, ns)
                                          : report_units_time(buf, ns, style->utf8));
}

static const char *text_estimate(char buf[REPORT_TEXT_TIME_ROOM], uint64_t ns, bool estimated,
                                 const struct report_style *style)
{
    char time[REPORT_UNITS_ROOM];
    snprintf(buf, REPORT_TEXT_TIME_ROOM, "%s%s", estimated ? "~" : "",
             style->exact ? report_units_exact(time, ns)
                          : report_units_time(time, ns, style->utf8));
    return buf;
}

const char *report_text_phase(char buf[REPORT_TEXT_TIME_ROOM], const struct analyze_cost *cost,
                              enum report_phase phase, const struct report_style *style)
{
    if (phase == REPORT_RECOMPUTE)
        return text_estimate(buf, cost->recompute_ns, false, style);
    if (phase == REPORT_BACKWARD)
        return text_estimate(buf, cost->backward_ns, cost->estimated_backward_ns > 0, style);
    if (analyze_cost_is_untimed(cost))
        return "-";
    return text_estimate(buf, cost->forward_ns, cost->estimated_forward_ns > 0, style);
}

void report_cell_phase(struct report_table *table, const struct analyze_cost *cost,
                       enum report_phase phase, const struct report_style *style)
{
    char buf[REPORT_TEXT_TIME_ROOM];
    report_table_cell(table, report_text_phase(buf, cost, phase, style));
}

void report_cell_total(struct report_table *table, const struct analyze_cost *cost,
                       const struct report_style *style)
{
    char buf[REPORT_TEXT_TIME_ROOM];
    const bool estimated = report_ranking_is_estimate(cost, REPORT_SORT_TOTAL, style);
    report_table_cell(table,
                      text_estimate(buf, report_ranking_time(cost, style), estimated, style));
}

void report_cell_all_time(struct report_table *table, const struct analyze_cost *cost,
                          const struct report_style *style)
{
    char buf[REPORT_TEXT_TIME_ROOM];
    report_table_cell(
        table, text_estimate(buf, analyze_cost_time(cost), analyze_cost_is_estimate(cost), style));
}

void report_text_runs_note(const struct report_style *style)
{
    report_text_paragraph(style->out, style->width,
                          "Statements have their run's callers: tapescope help profile#call-paths");
}

void report_cell_ratio(struct report_table *table, const struct analyze_cost *cost,
                       const char *mark)
{
    char buf[REPORT_UNITS_ROOM];
    const bool estimated =
        cost->forward_ns > 0 && (cost->estimated_forward_ns > 0 || cost->estimated_backward_ns > 0);
    report_table_cellf(table, "%s%s%s", estimated ? "~" : "",
                       report_units_ratio(buf, cost->backward_ns, cost->forward_ns), mark);
}

void report_cell_bytes(struct report_table *table, uint64_t bytes, const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_cell(table, style->exact ? report_units_exact(buf, bytes)
                                          : report_units_bytes(buf, bytes));
}

void report_cell_count(struct report_table *table, uint64_t n, const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_cell(table,
                      style->exact ? report_units_exact(buf, n) : report_units_count(buf, n));
}

void report_cell_byte_time(struct report_table *table, double byte_ns,
                           const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    if (style->exact)
        report_table_cellf(table, "%.0f", byte_ns);
    else
        report_table_cell(table, report_units_bytes(buf, read_whole(byte_ns / 1e6)));
}

const char *report_text_byte_time_title(const struct report_style *style)
{
    return style->exact ? "B*ns" : "B*ms";
}

void report_text_names(char *buf, size_t n, const struct analyze_names *names,
                       const char *separator)
{
    size_t used = 0;
    buf[0] = '\0';
    for (unsigned i = 0; i < names->n && used < n; i++) {
        int wrote = snprintf(buf + used, n - used, "%s%s", i > 0 ? separator : "", names->name[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (names->more && used + 1 < n)
        snprintf(buf + used, n - used, "+");
}

unsigned report_text_columns(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void report_text_paragraph(FILE *out, unsigned width, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    unsigned column = 0;
    char *left = text;
    for (char *word; (word = strtok_r(left, " ", &left)) != NULL;) {
        const unsigned n = report_text_columns(word);
        if (column > 0 && width > 0 && column + 1 + n > width) {
            putc('\n', out);
            column = 0;
        }
        fprintf(out, "%s%s", column > 0 ? " " : "", word);
        column += n + (column > 0);
    }
    putc('\n', out);
}

void report_text_scope_path(char buf[REPORT_TEXT_SCOPE_ROOM],
                            const struct analyze_scope_costs *costs,
                            const struct analyze_scope_cost *scope)
{
    enum { MOST_LEVELS = 64 };
    char *at = buf + REPORT_TEXT_SCOPE_ROOM - 1;
    *at = '\0';
    for (int level = 0; level < MOST_LEVELS; level++) {
        const size_t n = strlen(scope->name);
        if ((size_t)(at - buf) < n + 4)
            break;
        memcpy(at -= n, scope->name, n);
        if (scope->parent == 0) {
            memmove(buf, at, strlen(at) + 1);
            return;
        }
        *--at = '/';
        scope = &costs->scope[scope->parent - 1];
    }
    memcpy(at -= 3, "...", 3);
    memmove(buf, at, strlen(at) + 1);
}

void report_text_scope_name(char buf[REPORT_TEXT_SCOPE_ROOM],
                            const struct analyze_scope_costs *costs,
                            const struct analyze_scope_cost *scope)
{
    size_t same = 0;
    for (size_t i = 0; i < costs->n; i++)
        same += strcmp(costs->scope[i].name, scope->name) == 0;
    if (same > 1)
        report_text_scope_path(buf, costs, scope);
    else
        snprintf(buf, REPORT_TEXT_SCOPE_ROOM, "%s", scope->name);
}

const char *report_short_path(const struct analyze_result *analysis, const char *file)
{
    const char *start = base_file_name(file), *found[2];
    while (start > file && analyze_files(analysis, start, found, 2) > 1) {
        start--; /* the slash; then back to the one before */
        while (start > file && start[-1] != '/')
            start--;
    }
    return start;
}

/* ", NAME SHARE of the run", if there is any of it. */
static size_t text_add_part(char *buf, size_t used, const char *separator, const char *name,
                            uint64_t ns, const struct analyze_part *part)
{
    char share[REPORT_UNITS_ROOM];
    if (ns == 0 || used >= REPORT_TEXT_PART_ROOM)
        return used;
    return used + (size_t)snprintf(buf + used, REPORT_TEXT_PART_ROOM - used, "%s%s %s", separator,
                                   name, report_units_share(share, ns, part->run_ns));
}

bool report_text_part(char buf[REPORT_TEXT_PART_ROOM], const struct analyze_result *analysis,
                      bool utf8)
{
    struct analyze_part part;
    const bool sampled = analysis->profile->is_sampled;
    char share[REPORT_UNITS_ROOM], of[2][REPORT_UNITS_ROOM];
    if (!analyze_part_make(&part, analysis))
        return false;
    const char *mark = part.kind == ANALYZE_PART_LEAST                  ? "at least "
                       : part.kind == ANALYZE_PART_ESTIMATE && !sampled ? "~"
                                                                        : "";
    size_t used = (size_t)snprintf(
        buf, REPORT_TEXT_PART_ROOM, "%s%s of the %s (%s of %s)", mark,
        report_units_share(share, part.ad_ns, part.run_ns), sampled ? "process" : "run",
        report_units_time(of[0], part.ad_ns, utf8), report_units_time(of[1], part.run_ns, utf8));
    const size_t first = used;
    static const char *const name[] = {"forward", "backward", "recomputed", "the profiler"};
    const uint64_t ns[] = {part.forward_ns, part.backward_ns, part.recompute_ns, part.profiler_ns};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        used = text_add_part(buf, used, used == first ? ": " : ", ", name[i], ns[i], &part);
    if (part.is_much_observed && used < REPORT_TEXT_PART_ROOM)
        snprintf(buf + used, REPORT_TEXT_PART_ROOM - used,
                 "; the profiler's looks at %s calls are part of the rest",
                 report_units_count(of[0], analysis->sum.calls));
    return true;
}

void report_text_part_note(const struct analyze_result *analysis, const struct report_style *style)
{
    char buf[REPORT_TEXT_PART_ROOM];
    if (report_text_part(buf, analysis, style->utf8))
        report_text_paragraph(style->out, style->width, "AD is %s.", buf);
}

void report_text_sampled_note(const struct analyze_result *analysis,
                              const struct report_style *style)
{
    const struct analyze_totals *total = &analysis->total;
    char buf[REPORT_UNITS_ROOM];
    if (total->fired == 0) {
        fputs("No samples were taken.\n", style->out);
        return;
    }
    const uint64_t period = analysis->profile->sample_period_ns;
    char outside[64] = "";
    if (total->outside > 0)
        snprintf(outside, sizeof outside, " + %llu outside of the steps",
                 (unsigned long long)total->outside);
    report_text_paragraph(
        style->out, style->width,
        "~ sampled, %llu a second and thread: %llu signals = %llu recorded + %llu partial + %llu "
        "lost%s. Times are the processor's, of all threads. An error is one standard deviation, "
        "1/sqrt(samples at work) of the value. The lines hold %s of the process' time.",
        (unsigned long long)(period > 0 ? (1000000000 + period / 2) / period : 0),
        (unsigned long long)total->fired, (unsigned long long)total->recorded,
        (unsigned long long)total->partial, (unsigned long long)total->lost, outside,
        report_units_share(buf, analyze_cost_time(&analysis->sum), total->process_cpu_ns));
}

const char *report_text_no_times(const struct read_profile *profile)
{
    return profile->options && strstr(profile->options, "time=off")
               ? "no times were taken (--time off)"
               : "no times were taken: nothing was swept, and no op timed";
}

void report_text_untimed_note(const struct analyze_result *analysis, FILE *out)
{
    if (analysis->profile->without_times) {
        const char *text = report_text_no_times(analysis->profile);
        fprintf(out, "N%s.\n", text + 1);
    }
}

void report_text_unlined_note(const struct analyze_result *analysis, FILE *out)
{
    if (analysis->n_unlined > 0)
        fprintf(out, "%zu site%s without line information%s.\n", analysis->n_unlined,
                analysis->n_unlined == 1 ? " is" : "s are",
                analysis->n_unusable > 0 ? "" : ": compile with -g to see source lines");
}

enum { NAMES_ROOM = 256, WHERE_ROOM = 1024 };

void report_text_place(char *buf, size_t n, const struct analyze_result *analysis,
                       const struct analyze_line *line)
{
    const char *module = line->module ? base_file_name(line->module) : "?";
    if (line->file)
        snprintf(buf, n, "%s:%u", report_short_path(analysis, line->file), (unsigned)line->line);
    else if (line->line)
        snprintf(buf, n, "%s line %u", module, (unsigned)line->line);
    else if (line->offset == 0)
        snprintf(buf, n, "%s", module);
    else if (line->function)
        snprintf(buf, n, "%s +0x%llx", module, (unsigned long long)line->offset);
    else
        snprintf(buf, n, "%s+0x%llx", module, (unsigned long long)line->offset);
}

static const char *file_or_module(const struct analyze_result *analysis,
                                  const struct analyze_line *line)
{
    return line->file     ? report_short_path(analysis, line->file)
           : line->module ? base_file_name(line->module)
                          : "?";
}

static void put_function(char *buf, size_t n, const struct analyze_result *analysis,
                         const struct analyze_line *line)
{
    const char *where = file_or_module(analysis, line);
    if (line->function)
        snprintf(buf, n, "%s %s", line->function, where);
    else if (line->offset == 0)
        snprintf(buf, n, "%s", where);
    else
        snprintf(buf, n, "%s+0x%llx", where, (unsigned long long)line->offset);
}

const char *report_text_where_title(enum analyze_by by)
{
#define X(NAME, word, where) where,
    static const char *const title[] = {ANALYZE_VIEWS(X)};
#undef X
    return title[by];
}

void report_text_where(char *buf, size_t n, const struct analyze_result *analysis,
                       const struct analyze_line *line, enum analyze_by by)
{
    char names[NAMES_ROOM], where[WHERE_ROOM];
    report_text_names(names, sizeof names, &line->ops, ",");
    if (by == ANALYZE_BY_OP) {
        snprintf(buf, n, "%s", names);
        return;
    }
    if (by == ANALYZE_BY_SHAPE) {
        snprintf(buf, n, "%s%s%s", line->idle ? ANALYZE_IDLE_NAME : names, line->shape ? " " : "",
                 line->shape ? line->shape : "");
        return;
    }
    if (line->own || line->idle) {
        snprintf(buf, n, "%s%s%s", line->own ? "(tape)" : ANALYZE_IDLE_NAME, *names ? " " : "",
                 names);
        return;
    }
    switch (by) {
    case ANALYZE_BY_FUNCTION:
        put_function(where, sizeof where, analysis, line);
        break;
    case ANALYZE_BY_FILE:
        snprintf(where, sizeof where, "%s", file_or_module(analysis, line));
        break;
    case ANALYZE_BY_MODULE:
        snprintf(where, sizeof where, "%s", line->module ? base_file_name(line->module) : "?");
        break;
    default: /* what is cut at the end of a narrow terminal is what the line tells anyway */
        report_text_place(where, sizeof where, analysis, line);
        snprintf(buf, n, "%s%s%s%s%s", where, *names ? " " : "", names, line->function ? " " : "",
                 line->function ? line->function : "");
        return;
    }
    snprintf(buf, n, "%s%s%s", where, *names ? " " : "", names);
}

void report_cell_where(struct report_table *table, const struct analyze_result *analysis,
                       const struct analyze_line *line, enum analyze_by by)
{
    char where[2 * WHERE_ROOM], names[NAMES_ROOM];
    report_text_where(where, sizeof where, analysis, line, by);
    report_table_cell(table, where);
    report_text_names(names, sizeof names, &line->ops, ",");
    const char *list = by == ANALYZE_BY_LINE && line->ops.n > 1 ? strstr(where, names) : NULL;
    if (list)
        report_table_list(table, (size_t)(list - where), strlen(names));
}

void report_cell_member(struct report_table *table, enum report_unit unit, const void *of,
                        size_t at, const struct report_style *style)
{
    uint64_t value;
    memcpy(&value, (const char *)of + at, sizeof value);
    if (unit == REPORT_UNIT_TIME)
        report_cell_time(table, value, style);
    else if (unit == REPORT_UNIT_BYTES)
        report_cell_bytes(table, value, style);
    else
        report_cell_count(table, value, style);
}
