/* report_space.c: who holds a tape, for how long, in vain, or until its end.
 *
 * Invariant: the rows of a moment, with those that are not shown and what has no class, add up to
 * the tape's own count.
 */
#include "report_json.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "report_csv.h"
#include "report_rank.h"
#include "report_spread.h"
#include "report_text.h"
#include "report_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_ROOM = 1024, NAMES_ROOM = 256 };

static const char *const cause_name[] = {"call", "sweep", "frame", "rewind", "reset", "destroy"};
enum { CAUSES = sizeof cause_name / sizeof *cause_name };

/* A holder with what it is sorted by. */
struct ranked_holder {
    const struct analyze_holder *holder;
    double key; /* bytes, or bytes times ns */
};

static void causes_of(const struct analyze_holder *h, uint64_t by[CAUSES])
{
    const uint64_t all[CAUSES] = {h->by_call,   h->by_sweep, h->by_frame,
                                  h->by_rewind, h->by_reset, h->by_destroy};
    memcpy(by, all, sizeof all);
}

static double space_key_of(const struct analyze_holder *h, enum report_space what)
{
    switch (what) {
    case REPORT_LIFETIME:
        return h->byte_ns;
    case REPORT_DEAD:
        return h->kinds & 1u << READ_SAVED ? (double)h->dead_bytes + (double)h->unread_bytes : 0;
    case REPORT_LEAKS:
        return (double)h->by_destroy + (double)h->live_bytes;
    case REPORT_HOLDERS:
        break;
    }
    return (double)h->held;
}

static int space_compare_ranked(const void *x, const void *y)
{
    const struct ranked_holder *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->holder < b->holder ? -1 : a->holder > b->holder;
}

/* ---- cells ---- */

static const char *kinds_text(const struct analyze_holder *h)
{
    int found = -1;
    for (int k = 0; k < READ_RESIDUAL_KINDS; k++)
        if (h->kinds & 1u << k)
            found = found < 0 ? k : READ_RESIDUAL_KINDS;
    return found < 0 ? "" : found < READ_RESIDUAL_KINDS ? report_text_kind_name[found] : "several";
}

/* "mlp.c:41 tanh", or "(tape) padding". */
static void space_put_line(char *buf, size_t n, const struct analyze_result *analysis,
                           const struct analyze_line *line)
{
    char names[NAMES_ROOM], place[PLACE_ROOM] = "(tape)";
    report_text_names(names, sizeof names, &line->ops, ",");
    if (!line->own)
        report_text_place(place, sizeof place, analysis, line);
    snprintf(buf, n, "%s %s", place, names);
}

/* The line, and for which other: the cell at the end of a row. */
static void cell_holder(struct report_table *table, const struct analyze_result *analysis,
                        const struct analyze_holder *h, enum analyze_space_by by,
                        const struct report_style *style)
{
    char line[PLACE_ROOM + NAMES_ROOM], consumer[PLACE_ROOM + NAMES_ROOM] = "";
    if (by == ANALYZE_SPACE_BY_OP)
        report_text_names(line, sizeof line, &h->line.ops, ",");
    else
        space_put_line(line, sizeof line, analysis, &h->line);
    if (by == ANALYZE_SPACE_BY_OP)
        report_text_names(consumer, sizeof consumer, &h->consumer.ops, ",");
    else if (h->consumer.ops.n > 0)
        space_put_line(consumer, sizeof consumer, analysis, &h->consumer);
    report_table_cellf(table, "%s%s%s%s", line,
                       !*consumer    ? ""
                       : style->utf8 ? " \u2192 "
                                     : " -> ",
                       consumer, h->more_consumers || h->shared ? " +" : "");
}

static void cell_cause(struct report_table *table, const struct analyze_holder *h)
{
    uint64_t by[CAUSES];
    causes_of(h, by);
    size_t most = 0;
    for (size_t i = 1; i < CAUSES; i++)
        if (by[i] > by[most])
            most = i;
    bool others = false;
    for (size_t i = 0; i < CAUSES; i++)
        others |= i != most && by[i] > 0;
    if (by[most] == 0)
        report_table_cell(table, "-");
    else
        report_table_cellf(table, "%s%s", cause_name[most], others ? "+" : "");
}

/* Mean time that a byte lived. */
static uint64_t life_of(const struct analyze_holder *h)
{
    return h->bytes > 0 ? read_whole(h->byte_ns / (double)h->bytes) : 0;
}

/* ---- tables ---- */

struct space_view {
    const struct analyze_result *analysis;
    const struct analyze_space *space;
    const struct report_space_options *options;
    const struct report_style *style;
    struct ranked_holder *row;
    size_t n, shown;
    double total;
    struct report_spread spread; /* by the space's holders, then what is left out, then what has no
                                  * class; without ranks: they are not apart */
};

static void space_add_columns(struct report_table *table, const struct space_view *view)
{
    /* rank: where there is no room, the highest goes first. */
    static const struct {
        const char *title;
        unsigned rank;
    } columns[][5] = {
        [REPORT_HOLDERS] = {{"bytes", 0}, {"share", 2}, {"kind", 1}},
        [REPORT_LIFETIME] = {{"", 0}, {"share", 3}, {"life", 2}, {"bytes", 1}, {"freed by", 4}},
        [REPORT_DEAD] = {{"never read", 0}, {"of", 2}, {"at peak", 1}, {"freed by", 3}},
        [REPORT_LEAKS] = {{"left", 0}, {"live now", 2}, {"at peak", 3}, {"kind", 1}},
    };
    for (int i = 0; i < 5 && columns[view->options->what][i].title; i++) {
        const char *title = columns[view->options->what][i].title;
        report_table_column(table, REPORT_TABLE_RIGHT,
                            title[0] ? title : report_text_byte_time_title(view->style));
        report_table_optional(table, columns[view->options->what][i].rank);
    }
    if (view->spread.ranks)
        report_spread_columns(&view->spread, table);
    report_table_column(table, REPORT_TABLE_LEFT,
                        view->options->by == ANALYZE_SPACE_BY_OP ? "op"
                        : view->style->utf8                      ? "line op \u2192 read by"
                                                                 : "line op -> read by");
}

static void space_add_cells(struct report_table *table, const struct space_view *view,
                            const struct ranked_holder *row)
{
    char share[REPORT_UNITS_ROOM];
    const struct analyze_holder *h = row->holder;
    const struct report_style *style = view->style;
    report_table_row(table);
    switch (view->options->what) {
    case REPORT_HOLDERS:
        report_cell_bytes(table, h->held, style);
        report_table_cell(table, report_units_part(share, (double)h->held, view->total));
        report_table_cell(table, kinds_text(h));
        break;
    case REPORT_LIFETIME:
        report_cell_byte_time(table, h->byte_ns, style);
        report_table_cell(table, report_units_part(share, row->key, view->total));
        report_cell_time(table, life_of(h), style);
        report_cell_bytes(table, h->bytes, style);
        cell_cause(table, h);
        break;
    case REPORT_DEAD:
        report_cell_bytes(table, read_whole(row->key), style);
        report_cell_bytes(table, h->bytes, style);
        report_cell_bytes(table, h->peak_bytes, style);
        cell_cause(table, h);
        break;
    case REPORT_LEAKS:
        report_cell_bytes(table, read_whole(row->key), style);
        report_cell_bytes(table, h->live_bytes, style);
        report_cell_bytes(table, h->peak_bytes, style);
        report_table_cell(table, kinds_text(h));
        break;
    }
}

static void space_add_ranks(struct report_table *table, const struct space_view *view, size_t row)
{
    if (view->spread.ranks)
        report_spread_cells(&view->spread, table, report_spread_row(&view->spread, row));
}

static void add_holder(struct report_table *table, const struct space_view *view,
                       const struct ranked_holder *row)
{
    space_add_cells(table, view, row);
    space_add_ranks(table, view, (size_t)(row->holder - view->space->holder));
    cell_holder(table, view->analysis, row->holder, view->options->by, view->style);
}

static void add_left_out(struct report_table *table, const struct space_view *view)
{
    const struct analyze_holder *h = &view->space->left_out;
    if (view->space->n_left_out == 0)
        return;
    space_add_cells(table, view, &(struct ranked_holder){h, space_key_of(h, view->options->what)});
    space_add_ranks(table, view, view->space->n);
    report_table_cell(table, "(left out)");
}

/* What the tape counts and no class does: a table that could not grow, or an older recording. */
static void add_rest(struct report_table *table, const struct space_view *view)
{
    char share[REPORT_UNITS_ROOM];
    const struct analyze_space *space = view->space;
    if (view->options->what != REPORT_HOLDERS || space->total <= space->held)
        return;
    report_table_row(table);
    report_cell_bytes(table, space->total - space->held, view->style);
    report_table_cell(table, report_units_share(share, space->total - space->held, space->total));
    report_table_cell(table, "");
    space_add_ranks(table, view, view->space->n + 1);
    report_table_cell(table, "(no class)");
}

static void space_put_hidden(const struct space_view *view)
{
    char buf[REPORT_UNITS_ROOM];
    double sum = 0;
    for (size_t i = view->shown; i < view->n; i++)
        sum += space_key_of(view->row[i].holder, view->options->what);
    report_text_paragraph(view->style->out, view->style->width,
                          "%s %zu more with %s in all; -n 0 shows everything.",
                          view->style->utf8 ? "\u2026" : "...", view->n - view->shown,
                          report_units_part(buf, sum, view->total));
}

static struct report_table *space_make_table(const struct space_view *view)
{
    struct report_table *table = report_table_new();
    space_add_columns(table, view);
    for (size_t i = 0; i < view->shown; i++)
        add_holder(table, view, &view->row[i]);
    add_left_out(table, view);
    add_rest(table, view);
    return table;
}

static void put_kinds(const struct space_view *view)
{
    char bytes[REPORT_UNITS_ROOM], share[REPORT_UNITS_ROOM],
        text[READ_RESIDUAL_KINDS * (2 * REPORT_UNITS_ROOM + 16)] = "";
    uint64_t by_kind[READ_RESIDUAL_KINDS] = {0};
    for (size_t i = 0; i < view->space->n; i++)
        for (int k = 0; k < READ_RESIDUAL_KINDS; k++)
            if (view->space->holder[i].kinds == 1u << k)
                by_kind[k] += view->space->holder[i].held;
    for (int k = 0; k < READ_RESIDUAL_KINDS; k++) {
        const size_t at = strlen(text);
        if (k != READ_DISK || by_kind[k] > 0) /* most tapes have no file */
            snprintf(text + at, sizeof text - at, "%s%s %s (%s)", at > 0 ? ", " : "",
                     report_text_kind_name[k], report_units_bytes(bytes, by_kind[k]),
                     report_units_share(share, by_kind[k], view->space->total));
    }
    report_text_paragraph(view->style->out, view->style->width, "%s", text);
}

/* How much of the peak was memory, where a part of it lay in the tape's file. */
static void put_disk(const struct space_view *view)
{
    const struct read_tape *tape = view->space->tape;
    const struct read_profile *profile = view->analysis->profile;
    const struct report_style *style = view->style;
    char written[REPORT_UNITS_ROOM], memory[REPORT_UNITS_ROOM], write[REPORT_UNITS_ROOM],
        read[REPORT_UNITS_ROOM];
    if (tape->spilled_bytes == 0)
        return;
    report_text_paragraph(
        style->out, style->width,
        "At most %s of the tape were memory. %s went to its file in %s, and were read in %s.",
        report_units_bytes(memory, tape->memory_peak_bytes),
        report_units_bytes(written, tape->spilled_bytes),
        profile->without_times
            ? "-"
            : report_units_time(write, read_profile_ns(profile, tape->disk_write_ticks),
                                style->utf8),
        profile->without_times
            ? "-"
            : report_units_time(read, read_profile_ns(profile, tape->disk_read_ticks),
                                style->utf8));
}

/* What the rows are about, before them. */
static void space_put_head(const struct space_view *view)
{
    static const char *const head[] = {
        [REPORT_LIFETIME] = "Bytes times the time that they lived, all tapes (exact).",
        [REPORT_DEAD] = "Saved for a pullback that never read it, all tapes (exact).",
        [REPORT_LEAKS] = "Left when a tape was destroyed, or live at the end (exact).",
    };
    const struct analyze_space *space = view->space;
    const struct report_style *style = view->style;
    char bytes[REPORT_UNITS_ROOM], when[REPORT_UNITS_ROOM];
    if (view->options->what != REPORT_HOLDERS) {
        report_text_paragraph(style->out, style->width, "%s", head[view->options->what]);
        return;
    }
    report_units_time(when, space->at_ns, style->utf8);
    report_text_paragraph(style->out, style->width, "%s live%s%s%s%s%s (exact)",
                          style->exact ? report_units_exact(bytes, space->total)
                                       : report_units_bytes(bytes, space->total),
                          view->options->at == ANALYZE_AT_END    ? " at the end"
                          : view->options->at == ANALYZE_AT_PEAK ? " at the tape's peak"
                                                                 : " at that time",
                          space->at_is_known ? ", " : "", space->at_is_known ? when : "",
                          space->at_is_known ? " after the start" : "",
                          space->is_backward ? ", in a sweep" : "");
}

/* Values that no pullback reads, and yet lie on the tape at its peak. */
static void put_unneeded(const struct space_view *view)
{
    char buf[REPORT_UNITS_ROOM], share[REPORT_UNITS_ROOM];
    uint64_t sum = 0, peak = 0;
    for (size_t i = 0; i < view->space->n; i++) {
        peak += view->space->holder[i].peak_bytes;
        if (view->space->holder[i].kinds == 1u << READ_VALUE)
            sum += view->space->holder[i].peak_bytes;
    }
    if (sum > 0)
        report_text_paragraph(
            view->style->out, view->style->width,
            "At the peak, %s (%s) are values that no pullback reads: frames would give "
            "them back (kind 'value' in the default view).",
            report_units_bytes(buf, sum), report_units_share(share, sum, peak));
}

static void space_put_text(const struct space_view *view)
{
    const struct report_style *style = view->style;
    const bool holders = view->options->what == REPORT_HOLDERS;
    struct report_table *table = space_make_table(view);
    space_put_head(view);
    if (holders && view->options->by == ANALYZE_SPACE_BY_CLASS)
        put_kinds(view);
    if (holders && view->options->at == ANALYZE_AT_PEAK && view->space->tape)
        put_disk(view);
    if (holders && view->space->tape)
        report_timeline(view->analysis, view->space->tape, style);
    const bool known = view->options->what != REPORT_LIFETIME ||
                       report_ranking_knows(view->analysis->profile, REPORT_SORT_LIFETIME);
    if (!known)
        fputs("Not known: lifetimes are from exact times (--time exact).\n", style->out);
    else if (view->n == 0 && view->space->n_left_out == 0)
        fputs("Nothing.\n", style->out);
    else
        report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    if (known && view->shown < view->n)
        space_put_hidden(view);
    if (view->options->what == REPORT_DEAD)
        put_unneeded(view);
    report_text_unlined_note(view->analysis, style->out);
    report_table_free(table);
}

/* ---- JSON ---- */

static void json_line(struct base_json *json, const char *name, const struct analyze_line *line)
{
    if (line->ops.n == 0) {
        base_json_null(json, name);
        return;
    }
    base_json_object(json, name);
    report_json_place(json, line);
    base_json_end(json);
}

static void json_holder(struct base_json *json, const struct space_view *view,
                        const struct analyze_holder *h)
{
    uint64_t by[CAUSES];
    causes_of(h, by);
    base_json_object(json, NULL);
    json_line(json, "producer", &h->line);
    json_line(json, "consumer", &h->consumer);
    json_line(json, "released_by", &h->released_by);
    base_json_bool(json, "more_consumers", h->more_consumers || h->shared);
    base_json_bool(json, "more_releasers", h->more_releasers);
    base_json_array(json, "kinds");
    for (int k = 0; k < READ_RESIDUAL_KINDS; k++)
        if (h->kinds & 1u << k)
            base_json_text(json, NULL, report_text_kind_name[k]);
    base_json_end(json);
    base_json_u64(json, "held_bytes", h->held);
    base_json_u64(json, "peak_bytes", h->peak_bytes);
    base_json_u64(json, "live_bytes", h->live_bytes);
    base_json_u64(json, "bytes", h->bytes);
    base_json_u64(json, "count", h->count);
    base_json_u64(json, "largest_bytes", h->largest_bytes);
    base_json_u64(json, "read_bytes", h->read_bytes);
    base_json_u64(json, "dead_bytes", h->dead_bytes);
    base_json_u64(json, "unread_bytes", h->unread_bytes);
    report_json_byte_seconds(json, h->byte_ns, view->analysis->profile);
    base_json_object(json, "released_bytes");
    for (size_t i = 0; i < CAUSES; i++)
        base_json_u64(json, cause_name[i], by[i]);
    base_json_end(json);
    if (view->spread.ranks)
        report_spread_json_row(&view->spread, json,
                               report_spread_row(&view->spread, (size_t)(h - view->space->holder)));
    base_json_end(json);
}

static void json_moments(struct base_json *json, const struct analyze_result *analysis,
                         const struct read_tape *tape)
{
    const struct read_profile *profile = analysis->profile;
    base_json_array(json, "live");
    for (size_t i = 0; tape && i < tape->n_moments; i++) {
        const struct read_moment *m = &tape->moment[i];
        const uint64_t start = profile->start_ticks;
        base_json_object(json, NULL);
        base_json_u64(json, "ns",
                      read_profile_ns(profile, m->ticks > start ? m->ticks - start : 0));
        base_json_u64(json, "most_bytes", m->most_bytes);
        base_json_u64(json, "least_bytes", m->least_bytes);
        base_json_bool(json, "backward", m->backward);
        base_json_end(json);
    }
    base_json_end(json);
}

static void space_put_json(const struct space_view *view)
{
    static const char *const what[] = {"holders", "lifetime", "dead", "leaks"};
    static const char *const at[] = {"peak", "end", "time"};
    struct base_json json;
    report_json_begin(&json, view->style->out, "tape");
    report_json_profile(&json, "profile", view->analysis->profile);
    base_json_text(&json, "view", what[view->options->what]);
    base_json_text(&json, "at", at[view->options->at]);
    if (view->space->at_is_known)
        base_json_u64(&json, "at_ns", view->space->at_ns);
    else
        base_json_null(&json, "at_ns");
    base_json_bool(&json, "backward", view->space->is_backward);
    base_json_u64(&json, "total_bytes", view->space->total);
    base_json_u64(&json, "held_bytes", view->space->held);
    if (view->spread.ranks)
        report_spread_json(&view->spread, &json);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < view->shown; i++)
        json_holder(&json, view, view->row[i].holder);
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", view->n - view->shown);
    base_json_u64(&json, "rows_left_out", view->space->n_left_out);
    base_json_u64(&json, "left_out_bytes",
                  read_whole(space_key_of(&view->space->left_out, view->options->what)));
    json_moments(&json, view->analysis, view->space->tape);
    base_json_finish(&json);
}

static void space_put_csv(const struct space_view *view)
{
    static const char *const titles[] = {
        REPORT_CSV_WHERE, "kinds",         "held_bytes",       "peak_bytes",   "live_bytes",
        "bytes",          "count",         "largest_bytes",    "read_bytes",   "dead_bytes",
        "unread_bytes",   "byte_seconds",  "released_by_call", "by_sweep",     "by_frame",
        "by_rewind",      "by_reset",      "by_destroy",       "consumer_ops", "consumer_function",
        "consumer_file",  "consumer_line", "more_consumers",
    };
    struct report_csv csv = {.out = view->style->out};
    const bool timed = report_ranking_knows(view->analysis->profile, REPORT_SORT_LIFETIME);
    report_csv_titles(&csv, titles, sizeof titles / sizeof *titles);
    report_csv_end(&csv);
    for (size_t i = 0; i < view->shown; i++) {
        const struct analyze_holder *h = view->row[i].holder;
        const uint64_t counts[] = {h->held,       h->peak_bytes, h->live_bytes,
                                   h->bytes,      h->count,      h->largest_bytes,
                                   h->read_bytes, h->dead_bytes, h->unread_bytes};
        uint64_t by[CAUSES];
        char kinds[NAMES_ROOM] = "";
        causes_of(h, by);
        for (int k = 0; k < READ_RESIDUAL_KINDS; k++)
            if (h->kinds & 1u << k)
                snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s",
                         *kinds ? "," : "", report_text_kind_name[k]);
        report_csv_where(&csv, &h->line);
        report_csv_text(&csv, kinds);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            report_csv_u64(&csv, counts[k]);
        report_csv_double(&csv, timed ? h->byte_ns * 1e-9 : NAN);
        for (size_t k = 0; k < CAUSES; k++)
            report_csv_u64(&csv, by[k]);
        report_csv_where(&csv, &h->consumer);
        report_csv_u64(&csv, h->more_consumers || h->shared);
        report_csv_end(&csv);
    }
}

/* ---- ranks ---- */

static uint64_t space_spread_value(const struct analyze_holder *h, enum report_space what)
{
    const double key = space_key_of(h, what);
    return read_whole(what == REPORT_LIFETIME ? key / 1e3 : key);
}

/* Of one rank, whose holders are among those of the sum. */
static void space_spread_rank(const struct space_view *view, size_t rank)
{
    const struct report_space_options *options = view->options;
    const struct report_spread *spread = &view->spread;
    struct analyze_space own;
    (void)analyze_space_make(&own, spread->ranks->analysis[rank], options->by, options->at, 0);
    for (size_t i = 0, at = 0; i < own.n; i++) {
        const struct analyze_holder *h = &own.holder[i];
        while (at < view->space->n &&
               analyze_space_compare(&view->space->holder[at], h, options->by) < 0)
            at++;
        if (at < view->space->n &&
            analyze_space_compare(&view->space->holder[at], h, options->by) == 0)
            report_spread_row(spread, at)[rank] = space_spread_value(h, options->what);
    }
    report_spread_row(spread, view->space->n)[rank] =
        space_spread_value(&own.left_out, options->what);
    if (own.total > own.held)
        report_spread_row(spread, view->space->n + 1)[rank] = own.total - own.held;
    analyze_space_free(&own);
}

static void space_spread(struct space_view *view)
{
    static const char *const name[] = {
        [REPORT_HOLDERS] = "held", [REPORT_DEAD] = "dead", [REPORT_LEAKS] = "left"};
    view->spread = (struct report_spread){
        .ranks = view->analysis->ranks,
        .metric = view->options->what == REPORT_LIFETIME ? REPORT_SORT_LIFETIME : REPORT_SORT_PEAK,
        .name = view->options->what == REPORT_LIFETIME ? NULL : name[view->options->what],
        .style = view->style};
    report_spread_make(&view->spread, view->space->n + 2);
    for (size_t i = 0; i < view->spread.ranks->n; i++)
        space_spread_rank(view, i);
}

/* What a row is sorted by: a line may hold something on a rank that has not the greatest peak. */
static double space_most(const struct space_view *view, size_t row)
{
    double most = space_key_of(&view->space->holder[row], view->options->what);
    for (size_t i = 0;
         view->spread.ranks && view->options->what == REPORT_HOLDERS && i < view->spread.ranks->n;
         i++) {
        const uint64_t value = report_spread_row(&view->spread, row)[i];
        most = (double)value > most ? (double)value : most;
    }
    return most;
}

void report_space(const struct analyze_result *analysis, const struct analyze_space *space,
                  const struct report_space_options *options, const struct report_style *style)
{
    struct space_view view = {
        .analysis = analysis, .space = space, .options = options, .style = style};
    view.row = base_calloc(space->n + 1, sizeof *view.row);
    view.total = space_key_of(&space->left_out, options->what);
    if (analysis->ranks)
        space_spread(&view);
    for (size_t i = 0; i < space->n; i++) {
        const double key = space_most(&view, i);
        view.total += key;
        if (key > 0)
            view.row[view.n++] = (struct ranked_holder){&space->holder[i], key};
    }
    if (options->what == REPORT_HOLDERS)
        view.total = (double)space->total;
    qsort(view.row, view.n, sizeof *view.row, space_compare_ranked);
    view.shown = options->limit > 0 && options->limit < view.n ? options->limit : view.n;
    if (style->json)
        space_put_json(&view);
    else if (style->csv)
        space_put_csv(&view);
    else
        space_put_text(&view);
    free(view.row);
    report_spread_free(&view.spread);
}
