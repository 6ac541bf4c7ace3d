/* report_ranks.c: the ranks of one run side by side, and the lines that divide work unevenly. */
#include "report_json.h"

#include "base_memory.h"
#include "base_number.h"
#include "report_many.h"
#include "report_rank.h"
#include "report_spread.h"
#include "report_text.h"

#include <stdlib.h>
#include <string.h>

/* Up to so many ranks have a row each; of more, so many at either end. */
enum { RANKS_APART = 32, RANKS_EXTREME = 8 };

/* A line over the ranks: what its slowest rank takes more than the mean of all is lost where they
 * wait for each other. */
struct uneven {
    const struct analyze_joined *row;
    uint64_t mean_ns, most_ns;
    size_t slowest; /* of the profiles */
};

/* Time of a rank in messages, waiting as well as transferring, and in the rest. */
struct rank_time {
    uint64_t messages_ns, rest_ns;
};

static uint64_t line_time(const struct analyze_cost *cost)
{
    return read_add(read_add(cost->forward_ns, cost->backward_ns), cost->recompute_ns);
}

static bool is_message(const struct analyze_line *line)
{
    return line->ops.n == 1 && strncmp(line->ops.name[0], "mpi_", 4) == 0;
}

static struct rank_time rank_time_of(const struct analyze_result *analysis)
{
    struct rank_time time = {0, 0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        uint64_t *to = is_message(line) ? &time.messages_ns : &time.rest_ns;
        *to = read_add(*to, line_time(&line->cost));
    }
    return time;
}

static struct uneven uneven_of(const struct analyze_joined *row, size_t n)
{
    struct uneven made = {.row = row};
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t ns = row->line[i] ? line_time(&row->line[i]->cost) : 0;
        sum = read_add(sum, ns);
        if (ns > made.most_ns) {
            made.most_ns = ns;
            made.slowest = i;
        }
    }
    made.mean_ns = n > 0 ? sum / n : 0;
    return made;
}

static int compare_uneven(const void *x, const void *y)
{
    const struct uneven *a = x, *b = y;
    const uint64_t of_a = a->most_ns - a->mean_ns, of_b = b->most_ns - b->mean_ns;
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void cell_measured(struct report_table *table, int64_t ns, bool measured,
                          const struct report_style *style)
{
    if (measured)
        report_cell_time(table, ns > 0 ? (uint64_t)ns : 0, style);
    else
        report_table_cell(table, "-");
}

/* The columns of a rank. */
enum rank_field {
    OF_TOTAL,
    OF_FORWARD,
    OF_BACKWARD,
    OF_MESSAGES,
    OF_WAITING,
    OF_REST,
    OF_PEAK,
    FIELDS
};

struct rank_figures {
    uint64_t of[FIELDS];
    bool measured; /* waiting */
    uint32_t rank;
};

static struct rank_figures figures_of(const struct analyze_ranks *ranks,
                                      const struct rank_time *time, size_t i)
{
    const struct analyze_totals *total = &ranks->analysis[i]->total;
    const struct analyze_rank *messages = &ranks->rank[i];
    return (struct rank_figures){
        .of = {[OF_TOTAL] = read_add(time[i].messages_ns, time[i].rest_ns),
               [OF_FORWARD] = total->forward_ns,
               [OF_BACKWARD] = total->backward_ns,
               [OF_MESSAGES] = time[i].messages_ns,
               [OF_WAITING] = messages->waiting_ns > 0 ? (uint64_t)messages->waiting_ns : 0,
               [OF_REST] = time[i].rest_ns,
               [OF_PEAK] = total->peak_bytes},
        .measured = messages->measured_calls > 0,
        .rank = ranks->analysis[i]->profile->rank};
}

/* What is most to do comes first. */
static int compare_figures(const void *x, const void *y)
{
    const struct rank_figures *a = x, *b = y;
    if (a->of[OF_REST] != b->of[OF_REST])
        return a->of[OF_REST] > b->of[OF_REST] ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void row_of_rank(struct report_table *table, const char *name,
                        const struct rank_figures *figures, double mean_rest,
                        const struct report_style *style)
{
    report_table_row(table);
    report_table_cell(table, name);
    for (int k = 0; k < OF_PEAK; k++) {
        cell_measured(table, (int64_t)figures->of[k], k != OF_WAITING || figures->measured, style);
        if (k == OF_REST && mean_rest > 0)
            report_table_cellf(table, "%.2f", (double)figures->of[OF_REST] / mean_rest);
        else if (k == OF_REST)
            report_table_cell(table, "-");
    }
    report_cell_bytes(table, figures->of[OF_PEAK], style);
}

/* A row whose every figure is the one with a part of all ranks' below it. */
static void row_of_part(struct report_table *table, const char *name,
                        const struct rank_figures *figures, size_t n, double part, double mean_rest,
                        const struct report_style *style)
{
    struct rank_figures made = {.measured = false};
    uint64_t *value = base_calloc(n + 1, sizeof *value);
    for (int k = 0; k < FIELDS; k++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if (k != OF_WAITING || figures[i].measured)
                value[m++] = figures[i].of[k];
        report_spread_sort(value, m);
        made.measured |= k == OF_WAITING && m > 0;
        made.of[k] = report_quantile(value, m, part);
    }
    free(value);
    row_of_rank(table, name, &made, mean_rest, style);
}

/* Of many ranks, those with the most to do and those with the least. */
static void rows_of_extremes(struct report_table *table, struct rank_figures *figures, size_t n,
                             double mean_rest, const struct report_style *style)
{
    char name[16];
    qsort(figures, n, sizeof *figures, compare_figures);
    for (size_t i = 0; i < n; i++) {
        if (i == RANKS_EXTREME) {
            report_table_row(table);
            report_table_cell(table, "...");
            i = n - RANKS_EXTREME;
        }
        snprintf(name, sizeof name, "%u", figures[i].rank);
        row_of_rank(table, name, &figures[i], mean_rest, style);
    }
    for (size_t i = 0; i < REPORT_PARTS; i++)
        row_of_part(table, report_part[i].name, figures, n, report_part[i].part, mean_rest, style);
}

static void print_ranks(const struct analyze_ranks *ranks, const struct rank_time *time, bool all,
                        const struct report_style *style)
{
    static const char *const titles[] = {"rank",    "total", "forward",   "backward", "messages",
                                         "waiting", "rest",  "rest/mean", "at peak"};
    struct report_table *table = report_table_new();
    struct rank_figures *figures = base_calloc(ranks->n + 1, sizeof *figures);
    const bool apart = all || ranks->n <= RANKS_APART;
    char name[16];
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        report_table_column(table, REPORT_TABLE_RIGHT, titles[i]);
    uint64_t sum = 0;
    size_t most = 0;
    for (size_t i = 0; i < ranks->n; i++) {
        figures[i] = figures_of(ranks, time, i);
        sum = read_add(sum, time[i].rest_ns);
        most = time[i].rest_ns > time[most].rest_ns ? i : most;
    }
    const double mean_rest = ranks->n > 0 ? (double)sum / (double)ranks->n : 0;
    for (size_t i = 0; apart && i < ranks->n; i++) {
        snprintf(name, sizeof name, "%u", figures[i].rank);
        row_of_rank(table, name, &figures[i], mean_rest, style);
    }
    if (!apart)
        rows_of_extremes(table, figures, ranks->n, mean_rest, style);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    free(figures);
    if (sum > 0)
        fprintf(style->out, "Rank %u has the most to do in ops that are no messages.\n",
                ranks->analysis[most]->profile->rank);
    if (!apart)
        report_text_paragraph(style->out, style->width,
                              "Of %zu ranks these are the %d with the most and the %d with the "
                              "least rest. Below stand the least, the quartiles and the most of "
                              "each column over all ranks; -n 0 shows every rank.",
                              ranks->n, RANKS_EXTREME, RANKS_EXTREME);
    putc('\n', style->out);
}

/* What the ranks did in the messages of one line, by phase. */
struct waited {
    const struct analyze_rank_line *any;
    uint64_t calls, measured_calls;
    int64_t waiting_ns[2], transfer_ns[2]; /* forward, backward */
};

static int64_t waited_ns(const struct waited *w)
{
    return w->waiting_ns[0] + w->waiting_ns[1];
}

static int compare_waited(const void *x, const void *y)
{
    const int64_t a = waited_ns(x), b = waited_ns(y);
    return a > b ? -1 : a < b;
}

static bool is_waited(const struct analyze_rank_line *a, const struct analyze_rank_line *b)
{
    return a->line == b->line && strcmp(a->op, b->op) == 0 &&
           (a->file == b->file || (a->file && b->file && strcmp(a->file, b->file) == 0));
}

/* Returns how many there are at `waited`, which has room for each line of each rank. */
static size_t add_waited(const struct analyze_ranks *messages, struct waited *waited)
{
    size_t n = 0;
    for (size_t i = 0; i < messages->n_lines; i++) {
        const struct analyze_rank_line *line = &messages->line[i];
        size_t at = 0;
        while (at < n && !is_waited(waited[at].any, line))
            at++;
        if (at == n)
            waited[n++] = (struct waited){.any = line};
        waited[at].calls += line->calls;
        waited[at].measured_calls += line->measured_calls;
        waited[at].waiting_ns[line->backward] += line->waiting_ns;
        waited[at].transfer_ns[line->backward] += line->transfer_ns;
    }
    qsort(waited, n, sizeof *waited, compare_waited);
    return n;
}

static void put_clocks(const struct analyze_ranks *messages, const struct report_style *style)
{
    int64_t error = 0;
    uint64_t left_out = 0, calls = 0, measured = 0;
    bool met = true;
    for (size_t i = 0; i < messages->n; i++) {
        const struct analyze_rank *rank = &messages->rank[i];
        met = met && rank->offset.known;
        error = rank->offset.error_ns > error ? rank->offset.error_ns : error;
        left_out = read_add(left_out, rank->left_out);
        calls += rank->calls;
        measured += rank->measured_calls;
    }
    if (met)
        report_text_paragraph(style->out, style->width,
                              "The ranks' clocks are laid together to %.1f us.",
                              (double)error / 1e3);
    else
        report_text_paragraph(style->out, style->width,
                              "The ranks' clocks have not met: those of the system are used.");
    if (measured < calls || left_out > 0)
        report_text_paragraph(style->out, style->width,
                              "Of %llu calls %llu have no partner in these profiles, and %llu more "
                              "had no room: what they waited is not known.",
                              (unsigned long long)read_add(calls, left_out),
                              (unsigned long long)(calls - measured), (unsigned long long)left_out);
    putc('\n', style->out);
}

/* Waiting is what a call takes before its partners have come to theirs. */
static void print_waited(const struct analyze_ranks *messages, const struct waited *waited,
                         size_t n, const struct report_style *style)
{
    static const char *const titles[] = {"waiting",  "forward", "backward",
                                         "transfer", "forward", "backward"};
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT, titles[i]);
        report_table_optional(table, i == 3 ? 1 : i > 3 ? 2 : 0);
    }
    report_table_column(table, REPORT_TABLE_RIGHT, "calls");
    report_table_column(table, REPORT_TABLE_LEFT, "line, op");
    for (size_t i = 0; i < n; i++) {
        const struct waited *w = &waited[i];
        const bool known = w->measured_calls > 0;
        const char *name = w->any->file ? strrchr(w->any->file, '/') : NULL;
        report_table_row(table);
        cell_measured(table, waited_ns(w), known, style);
        cell_measured(table, w->waiting_ns[0], known, style);
        cell_measured(table, w->waiting_ns[1], known, style);
        cell_measured(table, w->transfer_ns[0] + w->transfer_ns[1], known, style);
        cell_measured(table, w->transfer_ns[0], known, style);
        cell_measured(table, w->transfer_ns[1], known, style);
        report_cell_count(table, w->calls, style);
        report_table_cellf(table, "%s:%u %s", name ? name + 1 : "?", w->any->line, w->any->op);
    }
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    put_clocks(messages, style);
}

static void json_messages(struct base_json *json, const struct analyze_ranks *messages)
{
    base_json_array(json, "messages");
    for (size_t i = 0; i < messages->n_lines; i++) {
        const struct analyze_rank_line *line = &messages->line[i];
        const bool known = line->measured_calls > 0;
        base_json_object(json, NULL);
        base_json_i64(json, "rank", line->rank);
        base_json_text(json, "file", line->file);
        base_json_u64(json, "line", line->line);
        base_json_text(json, "op", line->op);
        base_json_text(json, "phase", line->backward ? "backward" : "forward");
        base_json_u64(json, "ranks", line->ranks);
        base_json_u64(json, "calls", line->calls);
        base_json_u64(json, "measured_calls", line->measured_calls);
        base_json_u64(json, "bytes", line->bytes);
        base_json_i64(json, "total_ns", line->ns);
        report_json_known(json, "waiting_ns", (uint64_t)line->waiting_ns, known);
        report_json_known(json, "transfer_ns", (uint64_t)line->transfer_ns, known);
        base_json_end(json);
    }
    base_json_end(json);
}

static void json_clock(struct base_json *json, const struct analyze_rank *rank)
{
    base_json_object(json, "clock");
    base_json_bool(json, "met", rank->offset.known);
    if (rank->offset.known) {
        base_json_i64(json, "offset_ns", rank->offset.offset_ns);
        base_json_i64(json, "error_ns", rank->offset.error_ns);
    }
    if (rank->offset.drift_known)
        base_json_double(json, "drift_ppm", rank->offset.drift * 1e6);
    base_json_end(json);
    base_json_u64(json, "messages_left_out", rank->left_out);
}

static void print_uneven(const struct analyze_ranks *ranks, const struct uneven *uneven, size_t n,
                         enum analyze_by by, const struct report_style *style)
{
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_RIGHT, "lost");
    report_table_column(table, REPORT_TABLE_RIGHT, "max/mean");
    report_table_column(table, REPORT_TABLE_RIGHT, "rank");
    report_table_column(table, REPORT_TABLE_RIGHT, "max");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "mean");
    report_table_optional(table, 2);
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(by));
    for (size_t i = 0; i < n; i++) {
        const struct uneven *row = &uneven[i];
        report_table_row(table);
        report_cell_time(table, row->most_ns - row->mean_ns, style);
        if (row->mean_ns > 0)
            report_table_cellf(table, "%.2f", (double)row->most_ns / (double)row->mean_ns);
        else
            report_table_cell(table, "-");
        report_table_cellf(table, "%u", ranks->analysis[row->slowest]->profile->rank);
        report_cell_time(table, row->most_ns, style);
        report_cell_time(table, row->mean_ns, style);
        report_cell_where(table, ranks->analysis[row->slowest], row->row->any, by);
    }
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
}

void report_json_ranks(struct base_json *json, const struct analyze_ranks *ranks)
{
    if (!ranks) {
        base_json_null(json, "ranks");
        base_json_null(json, "messages");
        return;
    }
    base_json_array(json, "ranks");
    for (size_t i = 0; i < ranks->n; i++) {
        const struct analyze_result *analysis = ranks->analysis[i];
        const struct rank_time time = rank_time_of(analysis);
        const bool timed = report_ranking_knows(analysis->profile, REPORT_SORT_TOTAL);
        const bool counted = read_profile_has_bytes(analysis->profile);
        base_json_object(json, NULL);
        base_json_u64(json, "rank", analysis->profile->rank);
        base_json_text(json, "path", analysis->profile->path);
        report_json_known(json, "forward_ns", analysis->total.forward_ns, timed);
        report_json_known(json, "backward_ns", analysis->total.backward_ns, timed);
        report_json_known(json, "messages_ns", time.messages_ns, timed);
        report_json_known(json, "rest_ns", time.rest_ns, timed);
        report_json_known(json, "tape_bytes", analysis->total.handed_out_bytes, counted);
        report_json_known(json, "peak_bytes", analysis->total.peak_bytes, counted);
        json_clock(json, &ranks->rank[i]);
        base_json_end(json);
    }
    base_json_end(json);
    json_messages(json, ranks);
}

static void print_json(const struct analyze_ranks *ranks, const struct uneven *uneven, size_t shown,
                       size_t n, enum analyze_by by, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "ranks");
    base_json_text(&json, "by", report_ranking_noun(by));
    report_json_ranks(&json, ranks);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < shown; i++) {
        base_json_object(&json, NULL);
        report_json_place(&json, uneven[i].row->any);
        base_json_u64(&json, "mean_ns", uneven[i].mean_ns);
        base_json_u64(&json, "max_ns", uneven[i].most_ns);
        base_json_u64(&json, "slowest", ranks->analysis[uneven[i].slowest]->profile->rank);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", n - shown);
    base_json_finish(&json);
}

void report_ranks(const struct analyze_ranks *ranks, enum analyze_by by, size_t limit,
                  const struct report_style *style)
{
    struct analyze_join join;
    analyze_join_make(&join, ranks->analysis, ranks->n, by, false);
    struct uneven *uneven = base_calloc(join.n_rows + 1, sizeof *uneven);
    struct rank_time *time = base_calloc(ranks->n + 1, sizeof *time);
    size_t n = 0;
    for (size_t i = 0; i < join.n_rows; i++) {
        uneven[n] = uneven_of(&join.row[i], ranks->n);
        n += uneven[n].most_ns > 0;
    }
    for (size_t i = 0; i < ranks->n; i++)
        time[i] = rank_time_of(ranks->analysis[i]);
    qsort(uneven, n, sizeof *uneven, compare_uneven);
    const size_t shown = limit > 0 && limit < n ? limit : n;
    if (style->json) {
        print_json(ranks, uneven, shown, n, by, style->out);
    } else {
        print_ranks(ranks, time, limit == 0, style);
        struct waited *waited = base_calloc(ranks->n_lines + 1, sizeof *waited);
        const size_t n_waited = add_waited(ranks, waited);
        if (n_waited > 0)
            print_waited(ranks, waited, n_waited, style);
        free(waited);
        print_uneven(ranks, uneven, shown, by, style);
        if (shown < n)
            report_text_paragraph(style->out, style->width, "%zu more %s%s; -n 0 shows everything.",
                                  n - shown, report_ranking_noun(by), n - shown == 1 ? "" : "s");
        if (ranks->analysis[0]->profile->is_sampled)
            fputs("~ sampled: times are estimates.\n", style->out);
    }
    free(uneven);
    free(time);
    analyze_join_free(&join);
}
