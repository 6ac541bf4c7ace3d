/* report_live.c: see report_live.h.
 *
 * Each row is put together from left to right; what no longer fits is cut, or left out if the row
 * reads well without it.
 */
#include "report_live.h"

#include "base_memory.h"
#include "report_rank.h"
#include "report_text.h"
#include "report_units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_ROOM = 1024,
    NARROW = 60,
    LEAST_BAR = 8,
    MOST_SPARKS = 400,
    FIXED_ROWS = 4, /* above the table */
};
#define STALE_NS UINT64_C(1500000000)

static const char *const colors[ANALYZE_LIVE_PHASES] = {REPORT_COLOR_FORWARD, REPORT_COLOR_BACKWARD,
                                                        REPORT_COLOR_RECOMPUTE, "90"};
#define NAME(X, NAME, name, ...) #name,
#define BRIEF(X, NAME, name, number, brief) brief,
static const char *const names[ANALYZE_LIVE_PHASES] = {PHASE_LIST(NAME, ) "outside"};
static const char *const short_names[ANALYZE_LIVE_PHASES] = {PHASE_LIST(BRIEF, ) "out"};
#undef NAME
#undef BRIEF
#define X(NAME, word, title) title,
static const char *const orders[] = {REPORT_METRICS(X)};
#undef X

/* A row under way. */
struct live_row {
    FILE *out;
    unsigned left; /* columns */
    const struct report_style *style;
};

static struct live_row live_begin(const struct report_style *style)
{
    return (struct live_row){style->out, style->width, style};
}

static void live_put(struct live_row *row, const char *color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* color: NULL: none. */
static void live_put(struct live_row *row, const char *color, const char *format, ...)
{
    char text[TEXT_ROOM];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (row->left == 0 || !*text)
        return;
    const bool colored = color && row->style->color;
    if (colored)
        fprintf(row->out, "\033[%sm", color);
    row->left -= report_table_put_text(row->out, text, row->left, row->style->utf8);
    if (colored)
        fputs("\033[0m", row->out);
}

/* Only if all of it fits. */
static void put_whole(struct live_row *row, const char *text)
{
    if (report_text_columns(text) <= row->left)
        live_put(row, NULL, "%s", text);
}

static void put_seconds(char *buf, size_t n, uint64_t ns)
{
    snprintf(buf, n, "%.*fs", ns < UINT64_C(100000000000) ? 1 : 0, (double)ns / 1e9);
}

static void put_title(const struct report_live *live, const struct report_style *style)
{
    const struct analyze_live_view *view = live->view;
    const char *rule = style->utf8 ? "\u2500" : "-";
    struct live_row row = live_begin(style);
    char text[TEXT_ROOM], time[REPORT_UNITS_ROOM], cpu[REPORT_UNITS_ROOM], count[REPORT_UNITS_ROOM];
    put_seconds(time, sizeof time, live->running_ns);
    put_seconds(cpu, sizeof cpu, live->cpu_ns);
    live_put(&row, NULL, "%s ", rule);
    live_put(&row, "1", "%s%s", live->program, live->is_paused ? " paused" : "");
    snprintf(text, sizeof text, " %s", time);
    put_whole(&row, text);
    if (view && view->span_ns > 0) {
        const uint64_t n = view->has_steps ? view->steps : view->analysis->total.sweeps;
        const uint64_t some = view->has_steps ? view->span_steps : view->span_sweeps;
        const double rate = (double)some * 1e9 / (double)view->span_ns;
        snprintf(text, sizeof text, ", %s %s", report_units_count(count, n),
                 view->has_steps ? "steps" : "sweeps");
        put_whole(&row, text);
        snprintf(text, sizeof text, rate < 100 ? ", %.3g/s" : ", %.0f/s", rate);
        put_whole(&row, text);
    }
    if (live->sort >= 0) {
        snprintf(text, sizeof text, ", by %s", orders[live->sort]);
        put_whole(&row, text);
    }
    if (live->has_keys)
        put_whole(&row, ", ? keys");
    snprintf(text, sizeof text, ", processor %s (%.2f cores)", cpu, live->cores);
    put_whole(&row, text);
    if (view)
        put_whole(&row, view->is_sampled ? ", ~ sampled" : ", exact");
    put_whole(&row, " ");
    while (row.left > 0)
        live_put(&row, NULL, "%s", rule);
    putc('\n', style->out);
}

/* The keys, on as many rows as they need, at most `most`; returns how many. */
static unsigned put_keys(const struct report_live *live, const struct report_style *style,
                         unsigned most)
{
    static const struct {
        const char *text;
        int sort; /* what it chooses; -1: no order */
    } key[] = {
        {"t time", REPORT_SORT_TOTAL},
        {"f forward", REPORT_SORT_FORWARD},
        {"b backward", REPORT_SORT_BACKWARD},
        {"p at peak", REPORT_SORT_PEAK},
        {"space pause", -1},
        {"? keys", -1},
        {"Ctrl-C end", -1},
    };
    unsigned n = 0;
    struct live_row row = {.left = 0};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        if (n == 0 || report_text_columns(key[i].text) + 2 > row.left) {
            if (n == most)
                break;
            if (n++ > 0)
                putc('\n', style->out);
            row = live_begin(style);
            live_put(&row, NULL, n == 1 ? "keys" : "    ");
        }
        live_put(&row, NULL, "  ");
        live_put(&row, key[i].sort >= 0 && key[i].sort == live->sort ? "1" : NULL, "%s",
                 key[i].text);
    }
    if (n > 0)
        putc('\n', style->out);
    return n;
}

/* The phase and the place of the line that took the most. */
static void live_put_line(struct live_row *row, const struct analyze_live_view *view)
{
    char where[TEXT_ROOM];
    report_text_where(where, sizeof where, view->analysis, view->line, ANALYZE_BY_LINE);
    live_put(row, colors[view->line_phase], "%s", names[view->line_phase]);
    live_put(row, NULL, " %s", where);
}

static void put_now(const struct report_live *live, const struct report_style *style)
{
    const struct analyze_live_view *view = live->view;
    struct live_row row = live_begin(style);
    char text[TEXT_ROOM], share[REPORT_UNITS_ROOM];
    live_put(&row, NULL, "now   ");
    if (!view) {
        live_put(&row, NULL, "no profile yet");
    } else if (live->now_ns > view->taken_ns && live->now_ns - view->taken_ns > STALE_NS) {
        live_put(&row, NULL, "nothing new for %.1fs%s",
                 (double)(live->now_ns - view->taken_ns) / 1e9, view->line ? ", last: " : "");
        if (view->line)
            live_put_line(&row, view);
    } else if (!view->line) {
        live_put(&row, NULL,
                 view->is_sampled ? "waiting: no processor time" : "outside of ops and sweeps");
    } else if (!view->is_sampled && view->all_ns < view->recent_ns / 2) {
        live_put(&row, NULL, "outside of ops and sweeps, last: ");
        live_put_line(&row, view);
    } else {
        live_put_line(&row, view);
        snprintf(text, sizeof text, ", %s%s of the last %.2fs", view->is_sampled ? "~" : "",
                 report_units_share(share, view->line_ns, view->all_ns),
                 (double)view->recent_ns / 1e9);
        put_whole(&row, text);
    }
    putc('\n', style->out);
}

/* A bar of parts, each with a sign of its own. */
static void put_bar(struct live_row *row, const uint64_t *part, uint64_t whole)
{
    static const char *const block[ANALYZE_LIVE_PHASES] = {"\u2588", "\u2593", "\u2592", "\u2591"};
    static const char *const letter[ANALYZE_LIVE_PHASES] = {"F", "B", "R", "."};
    const unsigned width = row->left;
    unsigned column = 0;
    uint64_t sum = 0;
    for (unsigned i = 0; i < ANALYZE_LIVE_PHASES; i++) {
        sum += part[i];
        const double end = (double)sum / (double)whole * width;
        for (; column < width && column + 0.5 <= end; column++)
            live_put(row, colors[i], "%s", row->style->utf8 ? block[i] : letter[i]);
    }
}

static void put_phases(const struct report_live *live, const struct report_style *style)
{
    const struct analyze_live_view *view = live->view;
    const bool narrow = style->width < NARROW;
    struct live_row row = live_begin(style);
    uint64_t whole = 0;
    char share[REPORT_UNITS_ROOM];
    live_put(&row, NULL, "phase ");
    for (unsigned i = 0; view && i < ANALYZE_LIVE_PHASES; i++)
        whole += view->phase_ns[i];
    for (unsigned i = 0; whole > 0 && i < ANALYZE_LIVE_PHASES; i++) {
        if (i == ANALYZE_LIVE_RECOMPUTE && !analyze_cost_recomputes(&view->analysis->sum))
            continue;
        const char *mark = view->is_sampled ? "~" : "";
        if (narrow)
            snprintf(share, sizeof share, "%.0f%%",
                     100 * (double)view->phase_ns[i] / (double)whole);
        else
            report_units_share(share, view->phase_ns[i], whole);
        live_put(&row, colors[i], "%s%s", mark, narrow ? short_names[i] : names[i]);
        live_put(&row, NULL, " %s ", share);
    }
    if (whole == 0)
        live_put(&row, NULL, "no time was measured in the last second");
    else if (row.left >= LEAST_BAR)
        put_bar(&row, view->phase_ns, whole);
    putc('\n', style->out);
}

/* The history in as many columns as there are, the greatest value of each. */
static void put_sparks(struct live_row *row, const struct analyze_live_view *view)
{
    static const char *const block[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = "_.:-=+*#";
    const unsigned room = row->left < MOST_SPARKS ? row->left : MOST_SPARKS;
    const unsigned n = view->n_history < room ? view->n_history : room;
    uint64_t height[MOST_SPARKS] = {0}, most = 0;
    for (unsigned i = 0; n > 0 && i < view->n_history; i++) {
        uint64_t *to = &height[(size_t)i * n / view->n_history];
        *to = view->history[i] > *to ? view->history[i] : *to;
        most = *to > most ? *to : most;
    }
    for (unsigned i = 0; i < n; i++) {
        const unsigned level =
            most > 0 ? (unsigned)((double)height[i] / (double)most * 7 + 0.5) : 0;
        if (row->style->utf8)
            live_put(row, NULL, "%s", block[level]);
        else
            live_put(row, NULL, "%c", ascii[level]);
    }
}

static void live_put_tape(const struct report_live *live, const struct report_style *style)
{
    const struct analyze_live_view *view = live->view;
    struct live_row row = live_begin(style);
    char now[REPORT_UNITS_ROOM], peak[REPORT_UNITS_ROOM];
    live_put(&row, NULL, "tape  ");
    if (!view)
        live_put(&row, NULL, "-");
    else if (!view->has_bytes)
        live_put(&row, NULL, "not counted");
    else {
        const struct analyze_totals *total = &view->analysis->total;
        live_put(&row, NULL, "%s now, peak%s %s ", report_units_bytes(now, total->live_bytes),
                 total->tapes > 1 && style->width >= NARROW ? " of one tape" : "",
                 report_units_bytes(peak, total->peak_bytes));
        if (row.left >= LEAST_BAR)
            put_sparks(&row, view);
    }
    putc('\n', style->out);
}

static void live_add_columns(struct report_table *table, const struct analyze_live_view *view,
                             bool narrow)
{
    const bool sampled = view->is_sampled;
    report_table_column(table, REPORT_TABLE_RIGHT, sampled ? "~share" : "share");
    report_table_optional(table, 3);
    report_table_column(table, REPORT_TABLE_RIGHT,
                        narrow    ? sampled ? "~fwd" : "fwd"
                        : sampled ? "~forward"
                                  : "forward");
    report_table_column(table, REPORT_TABLE_RIGHT,
                        narrow    ? sampled ? "~bwd" : "bwd"
                        : sampled ? "~backward"
                                  : "backward");
    if (analyze_cost_recomputes(&view->analysis->sum)) {
        report_table_column(table, REPORT_TABLE_RIGHT, sampled ? "~recompute" : "recompute");
        report_table_optional(table, 4);
    }
    if (sampled) {
        report_table_column(table, REPORT_TABLE_RIGHT, "~other");
        report_table_optional(table, 4);
    }
    if (view->has_bytes) {
        report_table_column(table, REPORT_TABLE_RIGHT, "live");
        report_table_optional(table, 5);
        report_table_column(table, REPORT_TABLE_RIGHT, "at peak");
    }
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(ANALYZE_BY_LINE));
}

static void add_rows(struct report_table *table, const struct analyze_live_view *view,
                     const struct report_ranking *ranking, enum report_sort sort,
                     const struct report_style *style)
{
    char share[REPORT_UNITS_ROOM];
    for (size_t i = 0; i < ranking->shown; i++) {
        const struct analyze_line *line = ranking->row[i].line;
        report_table_row(table);
        report_table_cell(
            table, report_units_share(share, ranking->row[i].key,
                                      report_ranking_key(&view->analysis->sum, sort, style)));
        report_cell_phase(table, &line->cost, REPORT_FORWARD, style);
        report_cell_phase(table, &line->cost, REPORT_BACKWARD, style);
        if (analyze_cost_recomputes(&view->analysis->sum))
            report_cell_time(table, line->cost.recompute_ns, style);
        if (view->is_sampled)
            report_cell_time(table, line->cost.other_ns, style);
        if (view->has_bytes) {
            report_cell_bytes(table, line->cost.live_bytes, style);
            report_cell_bytes(table, line->cost.peak_bytes, style);
        }
        report_cell_where(table, view->analysis, line, ANALYZE_BY_LINE);
    }
}

/* Copies whole lines of the text, cut to the width; returns how many, at most `most`. */
static unsigned copy_lines(char *text, unsigned most, const struct report_style *style)
{
    unsigned n = 0;
    for (char *end; n < most && (end = strchr(text, '\n')) != NULL; text = end + 1, n++) {
        *end = '\0';
        if (*text)
            report_table_put_text(style->out, text, style->width, style->utf8);
        putc('\n', style->out);
    }
    return n;
}

/* The heading and the costliest lines; returns how many rows were written. */
static unsigned live_put_table(const struct analyze_live_view *view, unsigned rows, int chosen,
                               const struct report_style *style)
{
    struct report_ranking ranking;
    char *text;
    size_t n;
    const bool timed = analyze_cost_time(&view->analysis->sum) > 0;
    const enum report_sort sort = chosen >= 0 ? (enum report_sort)chosen
                                  : timed     ? REPORT_SORT_TOTAL
                                              : REPORT_SORT_PEAK;
    struct report_table *table = report_table_new();
    FILE *out = base_memstream_open(&text, &n);
    report_ranking_make(&ranking, view->analysis, ANALYZE_BY_LINE, sort, rows, style);
    live_add_columns(table, view, style->width < NARROW);
    add_rows(table, view, &ranking, sort, style);
    report_table_print(table, out, style->width, style->utf8);
    base_memstream_close(out, &text);
    const unsigned written = copy_lines(text, rows, style);
    report_ranking_free(&ranking);
    report_table_free(table);
    free(text);
    return written;
}

void report_live(const struct report_live *live, const struct report_style *style)
{
    static void (*const fixed[FIXED_ROWS])(
        const struct report_live *, const struct report_style *) = {put_title, put_now, put_phases,
                                                                    live_put_tape};
    unsigned n = 0;
    for (unsigned i = 0; i < FIXED_ROWS && n < live->rows; i++, n++) {
        fixed[i](live, style);
        if (i == 0 && live->shows_keys)
            n += put_keys(live, style, live->rows - 1);
    }
    if (live->view && n < live->rows)
        n += live_put_table(live->view, live->rows - n, live->sort, style);
    for (; n < live->rows; n++)
        putc('\n', style->out);
}
