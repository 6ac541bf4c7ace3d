/* report_whatif.c: what computing saved values again would save and cost. */
#include "report_checkpoint.h"
#include "report_json.h"

#include "base_memory.h"
#include "report_text.h"
#include "report_units.h"

#include <stdlib.h>
#include <string.h>

/* In the order of the new peak, then of the cost; ties keep the order of the source. */
static int compare_options(const void *x, const void *y)
{
    const struct analyze_option *a = *(const struct analyze_option *const *)x;
    const struct analyze_option *b = *(const struct analyze_option *const *)y;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The options in that order, all of them or those that were chosen; the caller frees the list. */
static const struct analyze_option **whatif_ordered(const struct analyze_whatif *whatif,
                                                    bool chosen, size_t *n)
{
    const struct analyze_option **list = base_calloc(whatif->n + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0; i < whatif->n; i++)
        if (!chosen || whatif->option[i].chosen)
            list[(*n)++] = &whatif->option[i];
    qsort(list, *n, sizeof *list, compare_options);
    return list;
}

static const char *bytes_text(char buf[REPORT_UNITS_ROOM], uint64_t bytes,
                              const struct report_style *style)
{
    return style->exact ? report_units_exact(buf, bytes) : report_units_bytes(buf, bytes);
}

static const char *time_text(char buf[REPORT_UNITS_ROOM], uint64_t ns,
                             const struct report_style *style)
{
    return style->exact ? report_units_exact(buf, ns) : report_units_time(buf, ns, style->utf8);
}

/* What it costs to compute values again is known from exact times. */
static bool is_costed(const struct analyze_result *analysis)
{
    return !analysis->profile->without_times && !analysis->profile->is_sampled;
}

/* The saving in percent: "-33.3%". */
static void cell_less(struct report_table *table, uint64_t now, uint64_t before)
{
    char buf[REPORT_UNITS_ROOM];
    const bool less = now < before;
    report_table_cellf(table, "%s%s", less ? "-" : "",
                       report_units_share(buf, less ? before - now : 0, before));
}

/* Less than what the table shows as 0.1 %. The options come by their peaks: those that gain too
 * little are the last. */
static size_t count_gaining(const struct analyze_whatif *whatif,
                            const struct analyze_option *const *option, size_t n)
{
    while (n > 0 && (double)option[n - 1]->peak_bytes > 0.9995 * (double)whatif->peak_bytes)
        n--;
    return n;
}

/* All rows. */
static struct report_table *whatif_make_table(const struct analyze_result *analysis,
                                              const struct analyze_whatif *whatif,
                                              const struct analyze_option *const *option, size_t n,
                                              const struct report_style *style)
{
    static const char *const title[] = {"new peak", "less", "cost", "of run", "values", ""};
    static const unsigned rank[] = {0, 2, 0,
                                    1, 3, 0}; /* where there is no room, the highest goes */
    char buf[REPORT_UNITS_ROOM];
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < sizeof title / sizeof *title; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT, title[i]);
        report_table_optional(table, rank[i]);
    }
    report_table_column(table, REPORT_TABLE_LEFT, "line, op, function");
    for (size_t i = 0; i < n; i++) {
        report_table_row(table);
        report_cell_bytes(table, option[i]->peak_bytes, style);
        cell_less(table, option[i]->peak_bytes, whatif->peak_bytes);
        if (is_costed(analysis))
            report_cell_time(table, option[i]->cost_ns, style);
        else
            report_table_cell(table, "-");
        report_table_cell(table, report_units_share(buf, option[i]->cost_ns, whatif->run_ns));
        report_cell_count(table, option[i]->count, style);
        report_table_cell(table, option[i]->is_best ? "*" : "");
        report_cell_where(table, analysis, &option[i]->line, ANALYZE_BY_LINE);
    }
    return table;
}

/* What the numbers stand on. */
static void put_terms(const struct analyze_result *analysis, const struct analyze_whatif *whatif,
                      const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    FILE *out = style->out;
    if (!is_costed(analysis))
        report_text_paragraph(out, style->width,
                              "The cost is not known: it is from exact times (--time exact).");
    if (whatif->n_left_out > 0)
        report_text_paragraph(
            out, style->width,
            "Rows of the profile that save values and were left out, and so stay as "
            "they are: %zu.",
            whatif->n_left_out);
    report_text_paragraph(
        out, style->width,
        "Assumed: each value is made again just before the pullback that reads it, one at "
        "a time, from operands that are there then.");
    size_t chosen = 0;
    for (size_t i = 0; i < whatif->n; i++)
        chosen += whatif->option[i].chosen;
    if (chosen > 1)
        report_text_paragraph(
            out, style->width,
            "Where one of these lines feeds another, peak and cost are lower bounds.");
    if (whatif->merged > 1)
        report_text_paragraph(
            out, style->width,
            "Replayed in moments of up to %u changes each: the new peak may be higher "
            "between two of them.",
            (unsigned)whatif->merged);
    else
        report_text_paragraph(out, style->width, "Replayed change by change (exact).");
    if (whatif->is_truncated)
        report_text_paragraph(out, style->width,
                              "The replay ends before the tape was emptied: there was no room.");
    if (whatif->peak_bytes != whatif->tape->peak_bytes)
        report_text_paragraph(out, style->width,
                              "The replay's peak is not the tape's, which was %s.",
                              bytes_text(buf, whatif->tape->peak_bytes, style));
}

/* The tape in a file, beside values that are computed again. */
static void put_spill(const struct analyze_result *analysis, const struct analyze_whatif *whatif,
                      const struct report_style *style)
{
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_spill spill = analyze_spill_of(whatif->tape);
    const uint64_t bytes = spill.tensor_bytes + spill.statement_bytes;
    char all[REPORT_UNITS_ROOM], share[REPORT_UNITS_ROOM], written[REPORT_UNITS_ROOM],
        memory[REPORT_UNITS_ROOM], write[REPORT_UNITS_ROOM], read[REPORT_UNITS_ROOM];
    if (bytes == 0)
        return;
    bytes_text(all, bytes, style);
    report_units_share(share, bytes, whatif->tape->peak_bytes);
    if (total->spilled_bytes == 0) {
        report_text_paragraph(
            style->out, style->width,
            "Or in a file: %s of the peak (%s) may lie there, by .spill = \"DIR\" and "
            ".budget_bytes of ad_tape_options. What that costs is known once a run has done it.",
            all, share);
        return;
    }
    report_text_paragraph(
        style->out, style->width,
        "In a file (.spill): %s of the peak (%s) may lie there. In this run %s went, and at most "
        "%s were memory; writing took %s and reading %s, which is in the times of the lines that "
        "found no room, and that read.",
        all, share, bytes_text(written, total->spilled_bytes, style),
        bytes_text(memory, total->memory_peak_bytes, style),
        is_costed(analysis) ? time_text(write, total->disk_write_ns, style) : "-",
        is_costed(analysis) ? time_text(read, total->disk_read_ns, style) : "-");
}

static void put_json_spill(struct base_json *json, const struct analyze_result *analysis,
                           const struct analyze_whatif *whatif)
{
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_spill spill = analyze_spill_of(whatif->tape);
    const bool spilled = total->spilled_bytes > 0, timed = spilled && is_costed(analysis);
    base_json_object(json, "spill");
    base_json_u64(json, "tensor_bytes", spill.tensor_bytes);
    base_json_u64(json, "statement_bytes", spill.statement_bytes);
    report_json_known(json, "spilled_bytes", total->spilled_bytes, spilled);
    report_json_known(json, "memory_peak_bytes", total->memory_peak_bytes, spilled);
    report_json_known(json, "write_ns", total->disk_write_ns, timed);
    report_json_known(json, "read_ns", total->disk_read_ns, timed);
    base_json_end(json);
}

static void put_json_option(struct base_json *json, const struct analyze_option *option,
                            bool costed)
{
    base_json_object(json, NULL);
    report_json_place(json, &option->line);
    base_json_u64(json, "peak_bytes", option->peak_bytes);
    base_json_u64(json, "saved_peak_bytes", option->saved_peak);
    report_json_known(json, "recompute_ns", option->cost_ns, costed);
    base_json_u64(json, "values", option->count);
    base_json_bool(json, "pareto", option->is_best);
    base_json_end(json);
}

static void begin_json(struct base_json *json, const struct analyze_result *analysis,
                       const struct analyze_whatif *whatif, const struct report_style *style)
{
    report_json_begin(json, style->out, "whatif");
    report_json_profile(json, "profile", analysis->profile);
    base_json_u64(json, "peak_bytes", whatif->peak_bytes);
    base_json_u64(json, "tape_peak_bytes", whatif->tape->peak_bytes);
    report_json_known(json, "run_ns", whatif->run_ns, is_costed(analysis));
    base_json_u64(json, "changes_per_moment", whatif->merged);
    base_json_bool(json, "truncated", whatif->is_truncated);
    base_json_u64(json, "rows_left_out", whatif->n_left_out);
    put_json_spill(json, analysis, whatif);
}

/* Calls and loop bodies, with a budget also the one that fits it. */
static void put_json_proposals(struct base_json *json, const struct analyze_result *analysis,
                               uint64_t budget, size_t limit)
{
    struct analyze_proposals proposals;
    analyze_proposals_make(&proposals, analysis, NULL);
    report_proposals_json(json, &proposals, budget, limit);
    analyze_proposals_free(&proposals);
}

static void put_json_options(struct base_json *json, const struct analyze_option *const *option,
                             size_t n, bool costed)
{
    base_json_array(json, "lines");
    for (size_t i = 0; i < n; i++)
        put_json_option(json, option[i], costed);
    base_json_end(json);
}

static void whatif_put_table(struct report_table *table, const struct report_style *style)
{
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
}

/* How many lines are not shown, and how they are. */
static void whatif_put_hidden(size_t beyond, size_t idle, const struct report_style *style)
{
    const char *dots = style->utf8 ? "\u2026" : "...";
    if (beyond > 0 && idle > 0)
        report_text_paragraph(
            style->out, style->width,
            "%s %zu more, and %zu that would lower the peak by less than 0.05 %%; "
            "-n 0 shows everything.",
            dots, beyond, idle);
    else if (idle > 0)
        report_text_paragraph(style->out, style->width,
                              "%s %zu line%s would lower the peak by less than 0.05 %%; -n 0 shows "
                              "everything.",
                              dots, idle, idle == 1 ? "" : "s");
    else if (beyond > 0)
        fprintf(style->out, "%s %zu more; -n 0 shows everything.\n", dots, beyond);
}

/* Where no line is shown: why. */
static void put_none(const struct analyze_whatif *whatif, const struct report_style *style)
{
    if (whatif->n == 0)
        fputs(whatif->n_left_out > 0 ? "Every line that saves values was left out.\n"
                                     : "No line saves values.\n",
              style->out);
    else
        report_text_paragraph(style->out, style->width,
                              "No line would lower it by 0.05 %% if its saved values were computed "
                              "again; -n 0 shows all %zu.",
                              whatif->n);
}

static void whatif_put_all(const struct analyze_result *analysis,
                           const struct analyze_whatif *whatif,
                           const struct analyze_option *const *option, size_t limit,
                           const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    const size_t n = limit > 0 ? count_gaining(whatif, option, whatif->n) : whatif->n;
    const size_t shown = limit > 0 && limit < n ? limit : n;
    struct report_table *table = whatif_make_table(analysis, whatif, option, shown, style);
    report_text_paragraph(
        style->out, style->width,
        shown > 0 ? "Peak now: %s. Each line by itself, its saved values computed again:"
                  : "Peak now: %s.",
        bytes_text(buf, whatif->peak_bytes, style));
    if (shown > 0) {
        whatif_put_table(table, style);
        whatif_put_hidden(n - shown, whatif->n - n, style);
        report_text_paragraph(style->out, style->width,
                              "* no other line has a lower peak at no more cost.");
    } else {
        report_table_free(table);
        put_none(whatif, style);
    }
    put_terms(analysis, whatif, style);
    put_spill(analysis, whatif, style);
    report_text_unlined_note(analysis, style->out);
}

void report_whatif(const struct analyze_result *analysis, const struct analyze_whatif *whatif,
                   size_t limit, const struct report_style *style)
{
    size_t n;
    const struct analyze_option **option = whatif_ordered(whatif, false, &n);
    if (style->json) {
        struct base_json json;
        begin_json(&json, analysis, whatif, style);
        put_json_options(&json, option, limit > 0 && limit < n ? limit : n, is_costed(analysis));
        put_json_proposals(&json, analysis, 0, limit);
        base_json_finish(&json);
    } else {
        struct analyze_proposals proposals;
        analyze_proposals_make(&proposals, analysis, NULL);
        report_proposals(analysis, &proposals, whatif->run_ns, 0, limit, style);
        analyze_proposals_free(&proposals);
        fputc('\n', style->out);
        whatif_put_all(analysis, whatif, option, limit, style);
    }
    free(option);
}

static void put_choice_json(const struct analyze_result *analysis,
                            const struct analyze_whatif *whatif,
                            const struct analyze_option *const *option, size_t n, uint64_t peak,
                            uint64_t budget, bool is_optimal, const struct report_style *style)
{
    struct base_json json;
    begin_json(&json, analysis, whatif, style);
    base_json_u64(&json, "new_peak_bytes", peak);
    report_json_known(&json, "recompute_ns", analyze_whatif_cost(whatif), is_costed(analysis));
    if (budget > 0) {
        base_json_u64(&json, "budget_bytes", budget);
        base_json_bool(&json, "reached", peak <= budget);
        base_json_bool(&json, "optimal", is_optimal);
    }
    put_json_options(&json, option, n, is_costed(analysis));
    put_json_proposals(&json, analysis, budget, 0);
    base_json_finish(&json);
}

/* What no choice of lines lowers, of the tape's peak. */
static void put_rest(const struct analyze_whatif *whatif, const struct report_style *style)
{
    const struct read_tape *tape = whatif->tape;
    uint64_t held[READ_RESIDUAL_KINDS] = {0}, sum = 0;
    char parts[READ_RESIDUAL_KINDS * (REPORT_UNITS_ROOM + 16)] = "", buf[REPORT_UNITS_ROOM];
    for (size_t i = 0; i < tape->n_residuals; i++)
        if (whatif->of[i] == 0)
            held[tape->residual[i].kind] += tape->residual[i].peak_bytes;
    for (int k = 0; k < READ_RESIDUAL_KINDS; k++) {
        const size_t at = strlen(parts);
        if (held[k] > 0)
            snprintf(parts + at, sizeof parts - at, "%s%s %s", at > 0 ? ", " : "",
                     report_text_kind_name[k], bytes_text(buf, held[k], style));
        sum += held[k];
    }
    if (sum > 0)
        report_text_paragraph(
            style->out, style->width,
            "Of the tape's peak %s are not a line's saved values, and stay: %s. "
            "'tapescope tape' names who holds them, 'tapescope tape --dead' what no "
            "pullback reads.",
            bytes_text(buf, sum, style), parts);
}

/* Whether the budget is kept, and by how good a choice. */
static void whatif_put_fit(uint64_t peak, uint64_t budget, bool is_optimal,
                           const struct report_style *style)
{
    char most[REPORT_UNITS_ROOM], over[REPORT_UNITS_ROOM];
    if (peak <= budget)
        report_text_paragraph(style->out, style->width,
                              "%s The peak is a lower bound: what feeds these lines may have to be "
                              "computed again as well, or kept. So it is not known that they fit.",
                              is_optimal ? "Every choice of lines was tried: none that reaches the "
                                           "budget costs less."
                                         : "Chosen one by one: a cheaper choice may exist.");
    else
        report_text_paragraph(
            style->out, style->width, "%s of %s: %s is %s above it.",
            is_optimal ? "No choice of lines fits the budget"
                       : "Chosen one by one, no lines were found that fit the budget",
            bytes_text(most, budget, style), is_optimal ? "the least peak" : "the least peak found",
            bytes_text(over, peak - budget, style));
}

static void whatif_put_choice(const struct analyze_result *analysis,
                              const struct analyze_whatif *whatif,
                              const struct analyze_option *const *option, size_t n, uint64_t peak,
                              uint64_t budget, bool is_optimal, const struct report_style *style)
{
    char before[REPORT_UNITS_ROOM], after[REPORT_UNITS_ROOM], time[REPORT_UNITS_ROOM],
        share[REPORT_UNITS_ROOM];
    const uint64_t cost = analyze_whatif_cost(whatif);
    struct report_table *table = whatif_make_table(analysis, whatif, option, n, style);
    report_text_paragraph(style->out, style->width,
                          "Peak now: %s; with these lines computed again: %s%s.",
                          bytes_text(before, whatif->peak_bytes, style), n > 0 ? "at least " : "",
                          bytes_text(after, peak, style));
    if (is_costed(analysis))
        report_text_paragraph(
            style->out, style->width, "Cost: %s, %s of the run's forward and backward time.",
            time_text(time, cost, style), report_units_share(share, cost, whatif->run_ns));
    if (budget > 0)
        whatif_put_fit(peak, budget, is_optimal, style);
    whatif_put_table(table, style);
    if (n == 0)
        fputs(budget > 0 && peak > budget ? "No line would lower it.\n"
                                          : "No line need be computed again.\n",
              style->out);
    if (budget > 0 && peak > budget)
        put_rest(whatif, style);
    put_terms(analysis, whatif, style);
}

void report_whatif_choice(const struct analyze_result *analysis,
                          const struct analyze_whatif *whatif, uint64_t budget, bool is_optimal,
                          const struct report_style *style)
{
    size_t n;
    const uint64_t peak = analyze_whatif_peak(whatif);
    const struct analyze_option **option = whatif_ordered(whatif, true, &n);
    if (style->json)
        put_choice_json(analysis, whatif, option, n, peak, budget, is_optimal, style);
    else {
        struct analyze_proposals proposals;
        analyze_proposals_make(&proposals, analysis, NULL);
        if (budget > 0 && whatif->peak_bytes > budget) {
            report_proposals(analysis, &proposals, whatif->run_ns, budget, 0, style);
            fputc('\n', style->out);
        }
        analyze_proposals_free(&proposals);
        whatif_put_choice(analysis, whatif, option, n, peak, budget, is_optimal, style);
    }
    free(option);
}
