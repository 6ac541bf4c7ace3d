/* report_checkpoint.c: calls and loop bodies in frames, as checkpoints and sections: peaks, costs,
 * and what to write.
 */
#include "report_checkpoint.h"

#include "base_memory.h"
#include "report_text.h"
#include "report_units.h"

#include <stdlib.h>
#include <string.h>

static const char *const deed_call[] = {[ANALYZE_CHECKPOINT] = "ad_checkpoint",
                                        [ANALYZE_REAL_CHECKPOINT] = "ad_real_checkpoint",
                                        [ANALYZE_PREACCUMULATE] = "ad_preaccumulate",
                                        [ANALYZE_FRAME] = "ad_frame_begin"};

static const char *proposal_bytes(char buf[REPORT_UNITS_ROOM], uint64_t bytes,
                                  const struct report_style *style)
{
    return style->exact ? report_units_exact(buf, bytes) : report_units_bytes(buf, bytes);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return !path ? "?" : slash ? slash + 1 : path;
}

/* "8 of 60": so many of its runs at a time. Frames are written once, whatever repeats them. */
static char *each_text(const struct analyze_proposal *p)
{
    if (p->times <= 1 || p->deed == ANALYZE_FRAME)
        return base_strdup("");
    if (p->each <= 1)
        return base_asprintf(", each of %llu", (unsigned long long)p->times);
    return base_asprintf(", %llu of %llu", (unsigned long long)p->each,
                         (unsigned long long)p->times);
}

const char *report_proposal_call(const struct analyze_proposal *p)
{
    return deed_call[p->deed];
}

char *report_proposal_text(const struct analyze_proposal *p)
{
    char *each = each_text(p), *text;
    const char *file = base_name(p->line.file);
    if (p->callee)
        text = base_asprintf("%s (%s:%u)%s", p->callee, file, (unsigned)p->line.line, each);
    else if (p->last_function && p->line.function && p->last_function != p->line.function)
        text = base_asprintf("%s:%u in %s to %u in %s%s", file, (unsigned)p->line.line,
                             p->line.function, (unsigned)p->last_line, p->last_function, each);
    else
        text =
            base_asprintf("%s:%u-%u in %s%s", file, (unsigned)p->line.line, (unsigned)p->last_line,
                          p->line.function ? p->line.function : "?", each);
    free(each);
    return text;
}

/* "exp (chain.c:13), add (chain.c:20) and others": what a frame keeps, which the caller frees. */
static char *kept_text(const struct analyze_proposal *p)
{
    char *text = base_strdup("");
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const struct analyze_kept *kept = &p->kept[i];
        char *more = base_asprintf("%s%s%s (%s:%u)", text, i > 0 ? ", " : "", kept->op,
                                   base_name(kept->file), (unsigned)kept->line);
        free(text);
        text = more;
    }
    if (p->outputs <= p->n_kept)
        return text;
    char *all = base_asprintf("%s%s", text, p->n_kept > 0 ? " and others" : "results");
    free(text);
    return all;
}

char *report_frame_text(const struct analyze_proposal *p)
{
    if (p->outputs == 0)
        return base_strdup("ad_frame_end(frame, NULL, 0);");
    return base_asprintf("ad_frame_end(frame, out, %llu);", (unsigned long long)p->outputs);
}

static void put_frame(const struct analyze_proposal *p, const struct report_style *style)
{
    char *what = report_proposal_text(p), *end = report_frame_text(p), *kept = kept_text(p);
    report_text_paragraph(
        style->out, style->width,
        "In a frame, at no cost: %s. Write ad_frame frame = ad_frame_begin(tape); "
        "before it and %s behind it%s%s.",
        what, end, p->outputs > 0 ? ", out[] being what is used later: " : "", kept);
    free(what);
    free(end);
    free(kept);
}

/* What to write for it. */
static void put_call(const struct analyze_proposal *p, bool is_first,
                     const struct report_style *style)
{
    const unsigned long long in = p->inputs, out = p->outputs;
    const char *part = p->callee ? p->callee : "part",
               *which = is_first ? "them" : "those without a frame";
    char *what = report_proposal_text(p);
    if (p->deed == ANALYZE_FRAME)
        put_frame(p, style);
    else if (p->deed == ANALYZE_PREACCUMULATE)
        report_text_paragraph(
            style->out, style->width,
            "The first of %s: %s. Write ad_preaccumulate_begin(tape); before it and "
            "ad_preaccumulate_end(tape, %llu, out, NULL); behind it, out[] being its results.",
            which, what, out);
    else
        report_text_paragraph(
            style->out, style->width,
            "The first of %s: %s. Make it the function %s_again() and call it by %s(tape, "
            "%s_again, &payload, %llu, in, %llu, out); in[] may lack %s that it finds by its "
            "payload. It must do the same at each call.",
            which, what, part, report_proposal_call(p), part, in, out,
            p->deed == ANALYZE_REAL_CHECKPOINT ? "numbers" : "tensors");
    free(what);
}

/* The next number of two digits and zeros. */
static uint64_t round_up(uint64_t bytes)
{
    uint64_t unit = 1;
    while (bytes / unit >= 100)
        unit *= 10;
    return (bytes + unit - 1) / unit * unit;
}

/* Of equal steps, some of which are one checkpoint: what the states and what is recorded at once
 * take with it. Both are about the same there, so that 2 `each` of `times` steps' bytes stay.
 * 0: it is no such loop. */
static uint64_t loop_bytes(const struct analyze_proposals *all, const struct analyze_proposal *p,
                           uint64_t budget)
{
    if (p->deed == ANALYZE_PREACCUMULATE || p->each <= 1 || p->times <= 2 * p->each ||
        p->peak_bytes >= all->peak_bytes)
        return 0;
    const double gain = (double)(all->peak_bytes - p->peak_bytes),
                 step = gain / (double)(p->times - 2 * p->each);
    const uint64_t more = budget > p->peak_bytes ? budget - p->peak_bytes : 0;
    return round_up((uint64_t)(2 * (double)p->each * step) + more);
}

/* The same as one call for the whole loop, which the caller frees; NULL: it is no such loop. */
static char *loop_text(const struct analyze_proposals *all, const struct analyze_proposal *p,
                       uint64_t budget)
{
    const uint64_t bytes = loop_bytes(all, p, budget);
    if (bytes == 0)
        return NULL;
    char steps[32] = "steps"; /* how many there are is an estimate */
    if (!all->is_cut)
        snprintf(steps, sizeof steps, "%llu", (unsigned long long)p->times);
    return base_asprintf("%s_loop(tape, %s, %s_step, &payload, %llu, in, %llu, out, "
                         "&(ad_checkpoint_budget){.bytes = %llu})",
                         report_proposal_call(p), steps, p->callee ? p->callee : "part",
                         (unsigned long long)p->inputs, (unsigned long long)p->outputs,
                         (unsigned long long)bytes);
}

static void put_loop(const struct analyze_proposals *all, const struct analyze_proposal *p,
                     uint64_t budget, const struct report_style *style)
{
    char *call = loop_text(all, p, budget);
    if (call)
        report_text_paragraph(style->out, style->width,
                              "Or write the loop of %s%llu steps as %s; the state, which is out[], "
                              "comes first in in[].",
                              all->is_cut ? "~" : "", (unsigned long long)p->times, call);
    free(call);
}

static struct report_table *proposals_table(const struct analyze_result *analysis,
                                            const struct analyze_proposals *all,
                                            const struct analyze_proposal *first, size_t n,
                                            uint64_t run_ns, const struct report_style *style)
{
    static const char *const title[] = {"new peak", "less", "again", "of run", "in", "out", ""};
    static const unsigned rank[] = {0, 1, 0, 3, 2, 2, 0};
    char buf[REPORT_UNITS_ROOM];
    struct report_table *table = report_table_new();
    (void)analysis;
    for (size_t i = 0; i < sizeof title / sizeof *title; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT, title[i]);
        report_table_optional(table, rank[i]);
    }
    report_table_column(table, REPORT_TABLE_LEFT, "call, and what it is about");
    for (size_t i = 0; i < n; i++) {
        const struct analyze_proposal *p = &first[i];
        char *what = report_proposal_text(p);
        const bool less = p->peak_bytes < all->peak_bytes;
        report_table_row(table);
        report_table_cellf(table, "%s%s", all->is_bound ? ">=" : "",
                           proposal_bytes(buf, p->peak_bytes, style));
        report_table_cellf(
            table, "%s%s", less ? "-" : "",
            report_units_share(buf, less ? all->peak_bytes - p->peak_bytes : 0, all->peak_bytes));
        if (!p->cost_known)
            report_table_cell(table, "-");
        else
            report_table_cellf(table, "%s%s", p->cost_is_estimate ? "~" : "",
                               style->exact ? report_units_exact(buf, p->cost_ns)
                                            : report_units_time(buf, p->cost_ns, style->utf8));
        report_table_cell(table, p->cost_known ? report_units_share(buf, p->cost_ns, run_ns) : "-");
        if (p->deed == ANALYZE_FRAME)
            report_table_cell(table, "-");
        else
            report_cell_count(table, p->inputs, style);
        report_cell_count(table, p->outputs, style);
        report_table_cell(table, p->is_best ? "*" : "");
        report_table_cellf(table, "%s: %s", report_proposal_call(p), what);
        free(what);
    }
    return table;
}

static void put_stand(const struct analyze_proposals *all, const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM], model[REPORT_UNITS_ROOM];
    if (all->is_hidden)
        report_text_paragraph(
            style->out, style->width,
            "These peaks are lower bounds: what the functions of checkpoints, and "
            "sections, record is not known one by one.");
    else if (all->is_bound)
        report_text_paragraph(
            style->out, style->width,
            "These peaks are lower bounds: the model of the tape has a peak of %s now, not %s.",
            proposal_bytes(model, all->model_bytes, style),
            proposal_bytes(buf, all->peak_bytes, style));
    if (all->is_cut)
        report_text_paragraph(style->out, style->width,
                              "More was recorded than is known one by one: what is not is taken to "
                              "be like the rest.");
}

static void put_no_frames(const struct analyze_proposals *all, const struct report_style *style)
{
    if (all->has_ops && !all->knows_uses)
        report_text_paragraph(
            style->out, style->width,
            "Frames are not proposed: %s, so that what is used of values is not known.",
            all->is_cut      ? "not all of the recording is known"
            : all->is_hidden ? "of checkpoints and sections the insides are not known"
                             : "an older library has made the profile");
}

/* Why none is shown. */
static void checkpoint_put_nothing(const struct analyze_proposals *all, uint64_t budget,
                                   const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM], least[REPORT_UNITS_ROOM];
    if (!all->is_traced)
        report_text_paragraph(style->out, style->width,
                              "What calls and loop bodies would save as checkpoints is not known: "
                              "the profile does not have what was recorded one by one.");
    else if (all->n == 0 || !all->proposal)
        report_text_paragraph(style->out, style->width,
                              "No call and no loop body would lower the peak by 2 %% as a "
                              "checkpoint or a section%s.",
                              all->knows_uses ? ", or by 5 % in a frame" : "");
    else
        report_text_paragraph(
            style->out, style->width,
            "No call and no loop body is known to fit %s by itself: the least peak is %s%s.",
            proposal_bytes(buf, budget, style), all->is_bound ? "at least " : "",
            proposal_bytes(least, all->proposal[0].peak_bytes, style));
}

void report_proposals(const struct analyze_result *analysis, const struct analyze_proposals *all,
                      uint64_t run_ns, uint64_t budget, size_t limit,
                      const struct report_style *style)
{
    const struct analyze_proposal *first =
        budget > 0 ? analyze_proposals_fit(all, budget) : all->proposal;
    const size_t most = budget > 0 ? 1 : all->n, n = limit > 0 && limit < most ? limit : most;
    char buf[REPORT_UNITS_ROOM];
    if (n == 0 || !first) {
        checkpoint_put_nothing(all, budget, style);
        if (all->n > 0)
            put_stand(all, style);
        put_no_frames(all, style);
        return;
    }
    report_text_paragraph(
        style->out, style->width, "Peak now: %s. %s:", proposal_bytes(buf, all->peak_bytes, style),
        budget > 0 ? "This fits, by itself" : "Calls and loop bodies, each by itself");
    struct report_table *table = proposals_table(analysis, all, first, n, run_ns, style);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    if (n < most)
        fprintf(style->out, "%s %zu more; -n 0 shows everything.\n", style->utf8 ? "\u2026" : "...",
                most - n);
    put_call(first, true, style);
    for (size_t i = 0; i < n && first->deed == ANALYZE_FRAME && budget == 0; i++)
        if (all->proposal[i].deed != ANALYZE_FRAME) {
            first = &all->proposal[i];
            put_call(first, false, style);
        }
    put_loop(all, first, budget, style);
    put_stand(all, style);
    put_no_frames(all, style);
}

static void put_json_proposal(struct base_json *json, const struct analyze_proposals *all,
                              const struct analyze_proposal *p, uint64_t budget)
{
    char *loop = loop_text(all, p, budget);
    base_json_object(json, NULL);
    report_json_place(json, &p->line);
    base_json_u64(json, "last_line", p->last_line);
    base_json_text(json, "callee", p->callee);
    base_json_text(json, "call", report_proposal_call(p));
    base_json_u64(json, "times", p->times);
    base_json_u64(json, "each", p->each);
    base_json_u64(json, "inputs", p->inputs);
    base_json_u64(json, "outputs", p->outputs);
    base_json_u64(json, "peak_bytes", p->peak_bytes);
    report_json_known(json, "recompute_ns", p->cost_ns, p->cost_known);
    report_json_known(json, "recompute_error_ns", p->error_ns, p->error_ns > 0);
    base_json_text(json, "loop", loop);
    base_json_bool(json, "pareto", p->is_best);
    base_json_end(json);
    free(loop);
}

void report_proposals_json(struct base_json *json, const struct analyze_proposals *all,
                           uint64_t budget, size_t limit)
{
    const struct analyze_proposal *fits = budget > 0 ? analyze_proposals_fit(all, budget) : NULL;
    if (budget > 0)
        base_json_bool(json, "fits", all->peak_bytes <= budget || fits);
    base_json_bool(json, "lower_bound", all->is_bound);
    base_json_bool(json, "cut", all->is_cut);
    base_json_array(json, "calls");
    for (size_t i = 0; i < all->n && (limit == 0 || i < limit); i++)
        if (!fits || fits == &all->proposal[i])
            put_json_proposal(json, all, &all->proposal[i], budget);
    base_json_end(json);
}
