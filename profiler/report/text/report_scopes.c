/* report_scopes.c: what scopes cost: a table, JSON, and the columns of Stan's profiles as CSV.
 *
 * Invariant: a scope's figures have those of the scopes within it, so that they do not add up; a
 * column is one row of the table below.
 */
#include "base_json.h"
#include "report_csv.h"
#include "report_json.h"

#include "base_memory.h"
#include "report_rank.h"
#include "report_text.h"
#include "report_units.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A scope in the order of a key. */
struct ranked_scope {
    const struct analyze_scope_cost *scope;
    double key; /* ns, bytes, calls, or bytes times ns */
    double order;
};

struct scopes {
    const struct analyze_result *analysis;
    const struct report_style *style;
    struct analyze_scope_costs costs;
    struct ranked_scope *row;
    size_t n, shown;
    double total; /* of the key, over the whole profile */
    enum report_sort sort;
    bool timed, counted; /* by this profile */
};

static double scopes_key_of(const struct analyze_scope_cost *scope, enum report_sort sort)
{
    switch (sort) {
    case REPORT_SORT_FORWARD:
        return (double)scope->forward_ns;
    case REPORT_SORT_BACKWARD:
        return (double)scope->cost.backward_ns;
    case REPORT_SORT_TAPE:
        return (double)analyze_cost_tape_bytes(&scope->cost);
    case REPORT_SORT_PEAK:
        return (double)scope->cost.peak_bytes;
    case REPORT_SORT_CALLS:
        return (double)scope->calls;
    case REPORT_SORT_LIFETIME:
        return scope->cost.byte_ns;
    case REPORT_SORT_TOTAL:
    case REPORT_SORT_RATIO:
        break;
    }
    return (double)scope->forward_ns + (double)scope->cost.backward_ns;
}

/* What lies outside of all scopes, as if it were one: of its time, that within ops. */
static struct analyze_scope_cost scopes_outside(const struct scopes *scopes)
{
    return (struct analyze_scope_cost){.name = "(no scope)",
                                       .forward_ns = scopes->costs.outside.forward_ns,
                                       .cost = scopes->costs.outside};
}

/* Of an earlier profile of the process, or begun before this one without a call since. */
static bool is_idle(const struct analyze_scope_cost *scope)
{
    return scope->calls == 0 && scope->wall_ns == 0 && scope->cost.calls == 0 &&
           scope->cost.backward_ns == 0 && analyze_cost_tape_bytes(&scope->cost) == 0;
}

static int scopes_compare(const void *x, const void *y)
{
    const struct ranked_scope *a = x, *b = y;
    if (a->order != b->order)
        return a->order > b->order ? -1 : 1;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static void scopes_rank(struct scopes *scopes, size_t limit)
{
    const size_t n = scopes->costs.n;
    const struct analyze_scope_cost none = scopes_outside(scopes);
    scopes->row = base_calloc(n + 1, sizeof *scopes->row);
    scopes->total = scopes_key_of(&none, scopes->sort);
    for (size_t i = 0; i < n; i++) {
        const struct analyze_scope_cost *scope = &scopes->costs.scope[i];
        if (is_idle(scope))
            continue;
        const double key = scopes_key_of(scope, scopes->sort);
        double order = 0;
        if (scopes->sort == REPORT_SORT_RATIO)
            order = scope->forward_ns > 0
                        ? (double)scope->cost.backward_ns / (double)scope->forward_ns
                        : -1;
        scopes->row[scopes->n++] = (struct ranked_scope){scope, key, order};
        if (scope->parent == 0 || scopes->sort == REPORT_SORT_CALLS)
            scopes->total += key;
    }
    qsort(scopes->row, scopes->n, sizeof *scopes->row, scopes_compare);
    scopes->shown = limit > 0 && limit < scopes->n ? limit : scopes->n;
}

/* ---- the table ---- */

static void scopes_put_share(struct report_table *table, const struct scopes *scopes,
                             const struct analyze_scope_cost *scope)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_cell(table,
                      report_units_part(buf, scopes_key_of(scope, scopes->sort), scopes->total));
}

static void scopes_put_ratio(struct report_table *table, const struct scopes *scopes,
                             const struct analyze_scope_cost *scope)
{
    char buf[REPORT_UNITS_ROOM];
    (void)scopes;
    report_table_cell(table, report_units_ratio(buf, scope->cost.backward_ns, scope->forward_ns));
}

static void scopes_put_tape(struct report_table *table, const struct scopes *scopes,
                            const struct analyze_scope_cost *scope)
{
    report_cell_bytes(table, analyze_cost_tape_bytes(&scope->cost), scopes->style);
}

static void scopes_put_lifetime(struct report_table *table, const struct scopes *scopes,
                                const struct analyze_scope_cost *scope)
{
    report_cell_byte_time(table, scope->cost.byte_ns, scopes->style);
}

#define MEMBER(unit, name) NULL, REPORT_UNIT_##unit, offsetof(struct analyze_scope_cost, name)
#define BY(put) put, REPORT_UNIT_TIME, 0

/* In the order of the table. `rank`: where there is no room, the highest goes first. */
static const struct scopes_column {
    const char *title; /* NULL: of bytes times the time that they lived */
    unsigned rank;
    enum { ANY, TIME, BYTES, LIFETIME } of; /* what must be known; lifetimes if asked for */
    void (*put)(struct report_table *table, const struct scopes *scopes,
                const struct analyze_scope_cost *scope);
    enum report_unit unit; /* where put is NULL: of the scope's member at this place */
    size_t member;
} columns[] = {
    {"share", 0, ANY, BY(scopes_put_share)},
    {"wall", 6, TIME, MEMBER(TIME, wall_ns)},
    {"self", 8, TIME, MEMBER(TIME, self_ns)},
    {"forward", 3, TIME, MEMBER(TIME, forward_ns)},
    {"backward", 1, TIME, MEMBER(TIME, cost.backward_ns)},
    {"b/f", 2, TIME, BY(scopes_put_ratio)},
    {"tape", 4, BYTES, BY(scopes_put_tape)},
    {"at peak", 5, BYTES, MEMBER(BYTES, cost.peak_bytes)},
    {NULL, 0, LIFETIME, BY(scopes_put_lifetime)},
    {"calls", 7, ANY, MEMBER(COUNT, calls)},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
#undef MEMBER
#undef BY

static void scopes_add_cells(struct report_table *table, const struct scopes *scopes,
                             const struct analyze_scope_cost *scope)
{
    report_table_row(table);
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns[i].put)
            columns[i].put(table, scopes, scope);
        else
            report_cell_member(table, columns[i].unit, scope, columns[i].member, scopes->style);
}

static void scopes_print_table(const struct scopes *scopes)
{
    const struct report_style *style = scopes->style;
    const struct analyze_scope_cost none = scopes_outside(scopes);
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < COLUMNS; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT,
                            columns[i].title ? columns[i].title
                                             : report_text_byte_time_title(style));
        report_table_optional(table, columns[i].rank);
        if ((columns[i].of == TIME && !scopes->timed) ||
            (columns[i].of == BYTES && !scopes->counted) ||
            (columns[i].of == LIFETIME && scopes->sort != REPORT_SORT_LIFETIME))
            report_table_hide(table);
    }
    report_table_column(table, REPORT_TABLE_LEFT, "scope");
    for (size_t i = 0; i < scopes->shown; i++) {
        char path[REPORT_TEXT_SCOPE_ROOM];
        report_text_scope_path(path, &scopes->costs, scopes->row[i].scope);
        scopes_add_cells(table, scopes, scopes->row[i].scope);
        report_table_cell(table, path);
    }
    scopes_add_cells(table, scopes, &none);
    report_table_cell(table, none.name);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    const struct read_profile *profile = scopes->analysis->profile;
    const size_t hidden = scopes->n - scopes->shown;
    if (!scopes->timed)
        fputs("Scopes have times with --time exact alone.\n", style->out);
    if (scopes->n == 0)
        fputs("The program has named no scopes (AD_SCOPE).\n", style->out);
    if (hidden > 0)
        report_text_paragraph(style->out, style->width,
                              "%s %zu more scope%s; -n 0 shows everything.",
                              style->utf8 ? "\u2026" : "...", hidden, hidden == 1 ? "" : "s");
    if (profile->lost_scopes > 0)
        report_text_paragraph(style->out, style->width,
                              "%llu begins of scopes and expectations had no room: such a scope "
                              "counts as what is around it.",
                              (unsigned long long)profile->lost_scopes);
    report_text_expectations_note(scopes->analysis, style);
}

/* ---- JSON ---- */

static void json_scope(struct base_json *json, const struct scopes *scopes,
                       const struct analyze_scope_cost *scope)
{
    const bool timed = scopes->timed, counted = scopes->counted;
    base_json_u64(json, "calls", scope->calls);
    base_json_u64(json, "recorded_calls", scope->recorded_calls);
    base_json_u64(json, "open_calls", scope->open_calls);
    base_json_u64(json, "records", scope->records);
    report_json_known(json, "wall_ns", scope->wall_ns, timed);
    report_json_known(json, "self_ns", scope->self_ns, timed);
    report_json_known(json, "forward_ns", scope->forward_ns, timed);
    report_json_known(json, "backward_ns", scope->cost.backward_ns, timed);
    report_json_known(json, "tape_bytes", analyze_cost_tape_bytes(&scope->cost), counted);
    report_json_known(json, "peak_bytes", scope->cost.peak_bytes, counted);
    report_json_byte_seconds(json, scope->cost.byte_ns, scopes->analysis->profile);
    report_json_ratio(json, "ratio", scope->cost.backward_ns, scope->forward_ns);
}

static void scopes_print_json(const struct scopes *scopes)
{
    struct base_json json;
    const struct analyze_scope_cost none = scopes_outside(scopes);
    report_json_begin(&json, scopes->style->out, "top");
    report_json_profile(&json, "profile", scopes->analysis->profile);
    base_json_text(&json, "by", "scope");
    base_json_array(&json, "rows");
    for (size_t i = 0; i < scopes->shown; i++) {
        const struct analyze_scope_cost *scope = scopes->row[i].scope;
        char path[REPORT_TEXT_SCOPE_ROOM];
        report_text_scope_path(path, &scopes->costs, scope);
        base_json_object(&json, NULL);
        base_json_text(&json, "scope", path);
        json_scope(&json, scopes, scope);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", scopes->n - scopes->shown);
    base_json_object(&json, "no_scope");
    json_scope(&json, scopes, &none);
    base_json_end(&json);
    base_json_u64(&json, "lost_scopes", scopes->analysis->profile->lost_scopes);
    report_json_totals(&json, "total", scopes->analysis);
    base_json_finish(&json);
}

void report_scopes(const struct analyze_result *analysis, enum report_sort sort, size_t limit,
                   const struct report_style *style)
{
    const struct read_profile *profile = analysis->profile;
    struct scopes scopes = {.analysis = analysis,
                            .style = style,
                            .timed = !profile->without_times && !profile->is_sampled,
                            .counted = read_profile_has_bytes(profile)};
    analyze_scope_costs_make(&scopes.costs, profile, false);
    for (size_t i = 0; i < scopes.costs.n; i++) /* of exact profiles that were added to samples */
        scopes.timed |= scopes.costs.scope[i].wall_ns > 0;
    const bool known = report_ranking_is_time(sort)   ? scopes.timed
                       : sort == REPORT_SORT_CALLS    ? true
                       : sort == REPORT_SORT_LIFETIME ? report_ranking_knows(profile, sort)
                                                      : scopes.counted;
    scopes.sort = known            ? sort
                  : scopes.timed   ? REPORT_SORT_TOTAL
                  : scopes.counted ? REPORT_SORT_TAPE
                                   : REPORT_SORT_CALLS;
    scopes_rank(&scopes, limit);
    if (style->json)
        scopes_print_json(&scopes);
    else
        scopes_print_table(&scopes);
    free(scopes.row);
    analyze_scope_costs_free(&scopes.costs);
}

/* ---- CSV ---- */

/* A field as Stan writes it, in quotes only where it has to be. */
static void put_field(FILE *out, const char *text)
{
    const char *quote = strpbrk(text, ",\"") ? "\"" : "";
    fputs(quote, out);
    report_csv_put(out, text);
    fputs(quote, out);
}

/* Calls of ops and statements in it that left no record. */
static uint64_t scopes_unrecorded(const struct analyze_scope_cost *scope)
{
    return scope->cost.calls > scope->records ? scope->cost.calls - scope->records : 0;
}

void report_scopes_csv(const struct analyze_result *analysis, const struct report_style *style)
{
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, analysis->profile, true);
    fputs("name,thread,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,"
          "autodiff_calls,no_autodiff_calls\n",
          style->out);
    for (size_t i = 0; i < costs.n; i++) {
        const struct analyze_scope_cost *scope = &costs.scope[i];
        char path[REPORT_TEXT_SCOPE_ROOM];
        if (is_idle(scope))
            continue;
        report_text_scope_path(path, &costs, scope);
        put_field(style->out, path);
        fprintf(style->out, ",%llu,%.9f,%.9f,%.9f,%llu,%llu,%llu,%llu\n",
                (unsigned long long)scope->thread,
                (double)(scope->forward_ns + scope->cost.backward_ns) * 1e-9,
                (double)scope->forward_ns * 1e-9, (double)scope->cost.backward_ns * 1e-9,
                (unsigned long long)scope->records, (unsigned long long)scopes_unrecorded(scope),
                (unsigned long long)scope->recorded_calls,
                (unsigned long long)(scope->calls - scope->recorded_calls));
    }
    analyze_scope_costs_free(&costs);
}
