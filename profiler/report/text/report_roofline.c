/* report_roofline.c: flops and bytes a second, by row and direction, under the profile's roof.
 *
 * Invariant: rates are the ops' own counts over the time measured; the roof is made of the highest
 * rates in the same profile, since what the machine could do is not known.
 */
#include "report_json.h"
#include "report_rank.h"
#include "report_text.h"
#include "report_units.h"

/* One phase of a row. */
enum { FLOWS = READ_PHASES - 1 };
struct flow {
    const char *direction;
    uint64_t ns, flops, moved;
};

struct roofline {
    const struct analyze_result *analysis;
    const struct report_style *style;
    const struct report_ranking *ranking;
    enum analyze_by by;
    struct analyze_roof roof;
};

static void roofline_split(const struct analyze_cost *cost, struct flow flow[FLOWS])
{
#define ROW(X, NAME, name, number, ...)                                                            \
    flow[(number)-1] =                                                                             \
        (struct flow){#name, cost->name##_ns, cost->name##_flops, cost->name##_moved};
    PHASE_LIST(ROW, )
#undef ROW
}

static double roofline_rate(uint64_t amount, uint64_t ns)
{
    return ns > 0 ? (double)amount / (double)ns : 0;
}

/* Flops a nanosecond that the roof allows at this intensity. */
static double limit_of(const struct flow *flow, const struct analyze_roof *roof)
{
    if (flow->moved == 0)
        return roof->flops_per_ns;
    double by_bytes = roof->bytes_per_ns * (double)flow->flops / (double)flow->moved;
    return by_bytes < roof->flops_per_ns ? by_bytes : roof->flops_per_ns;
}

/* How much of the roof it reached, at most 1: of flops, or of bytes where it has no flops. */
static double roofline_attained(const struct flow *flow, const struct analyze_roof *roof)
{
    double limit = flow->flops > 0 ? limit_of(flow, roof) : roof->bytes_per_ns;
    double part = limit > 0
                      ? roofline_rate(flow->flops > 0 ? flow->flops : flow->moved, flow->ns) / limit
                      : 0;
    return part < 1 ? part : 1;
}

static bool is_bound_by_bytes(const struct flow *flow, const struct analyze_roof *roof)
{
    return flow->moved > 0 && limit_of(flow, roof) < roof->flops_per_ns;
}

static void cell_rate(struct report_table *table, uint64_t amount, uint64_t ns)
{
    char buf[REPORT_UNITS_ROOM] = "-";
    double value = roofline_rate(amount, ns);
    if (value > 0)
        snprintf(buf, sizeof buf, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
    report_table_cell(table, buf);
}

static void add_flow(struct report_table *table, const struct roofline *roofline,
                     const struct analyze_line *line, const struct flow *flow)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_row(table);
    report_cell_time(table, flow->ns, roofline->style);
    cell_rate(table, flow->flops, flow->ns);
    cell_rate(table, flow->moved, flow->ns);
    cell_rate(table, flow->flops, flow->moved);
    report_table_cell(
        table,
        report_units_share(buf, read_whole(1e4 * roofline_attained(flow, &roofline->roof)), 10000));
    report_table_cell(table, is_bound_by_bytes(flow, &roofline->roof) ? "bytes" : "flops");
    report_table_cell(table, flow->direction);
    report_cell_where(table, roofline->analysis, line, roofline->by);
}

static bool roofline_is_shown(const struct roofline *roofline, const struct flow *flow,
                              int direction)
{
    return report_ranking_has_phase(roofline->style, (enum report_phase)(1 << direction)) &&
           flow->ns > 0 && (flow->flops > 0 || flow->moved > 0);
}

static bool any_shown(const struct roofline *roofline)
{
    for (size_t i = 0; i < roofline->ranking->shown; i++) {
        struct flow flow[FLOWS];
        roofline_split(&roofline->ranking->row[i].line->cost, flow);
        for (int j = 0; j < FLOWS; j++)
            if (roofline_is_shown(roofline, &flow[j], j))
                return true;
    }
    return false;
}

/* Why there is no row. */
static void roofline_put_nothing(const struct roofline *roofline)
{
    const struct read_profile *profile = roofline->analysis->profile;
    const char *why = !read_profile_has_bytes(profile)
                          ? "without --tape on, samples have no flops or bytes moved"
                      : profile->without_times ? report_text_no_times(profile)
                                               : "no row has a time with flops or bytes moved";
    report_text_paragraph(roofline->style->out, roofline->style->width, "No rates are known: %s.",
                          why);
}

static void roofline_add_columns(struct report_table *table, const struct roofline *roofline)
{
    static const struct {
        const char *title, *sampled;
        unsigned rank;
    } columns[] = {{"time", "~time", 4},    {"Gflop/s", "~Gflop/s", 0}, {"GB/s", "~GB/s", 1},
                   {"flop/B", "flop/B", 3}, {"roof", "~roof", 2},       {"limit", "limit", 5}};
    const bool sampled = roofline->analysis->profile->is_sampled;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT,
                            sampled ? columns[i].sampled : columns[i].title);
        report_table_optional(table, columns[i].rank);
    }
    report_table_column(table, REPORT_TABLE_LEFT, "phase");
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(roofline->by));
}

static void roofline_print(const struct roofline *roofline)
{
    const struct report_style *style = roofline->style;
    if (!any_shown(roofline)) {
        roofline_put_nothing(roofline);
        return;
    }
    struct report_table *table = report_table_new();
    roofline_add_columns(table, roofline);
    for (size_t i = 0; i < roofline->ranking->shown; i++) {
        struct flow flow[FLOWS];
        roofline_split(&roofline->ranking->row[i].line->cost, flow);
        for (int j = 0; j < FLOWS; j++)
            if (roofline_is_shown(roofline, &flow[j], j))
                add_flow(table, roofline, roofline->ranking->row[i].line, &flow[j]);
    }
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    report_text_paragraph(
        style->out, style->width,
        "roof: part of what %.4g Gflop/s and %.4g GB/s allow, the highest rates in this "
        "profile.",
        roofline->roof.flops_per_ns, roofline->roof.bytes_per_ns);
    if (roofline->analysis->profile->is_sampled)
        report_text_sampled_note(roofline->analysis, style);
}

static void roofline_print_json(const struct roofline *roofline)
{
    struct base_json json;
    report_json_begin(&json, roofline->style->out, "roofline");
    report_json_profile(&json, "profile", roofline->analysis->profile);
    base_json_text(&json, "by", report_ranking_noun(roofline->by));
    base_json_object(&json, "roof");
    base_json_double(&json, "flops_per_ns", roofline->roof.flops_per_ns);
    base_json_double(&json, "bytes_per_ns", roofline->roof.bytes_per_ns);
    base_json_end(&json);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < roofline->ranking->shown; i++) {
        const struct analyze_line *line = roofline->ranking->row[i].line;
        struct flow flow[FLOWS];
        roofline_split(&line->cost, flow);
        for (int j = 0; j < FLOWS; j++) {
            if (!roofline_is_shown(roofline, &flow[j], j))
                continue;
            base_json_object(&json, NULL);
            report_json_place(&json, line);
            if (roofline->by == ANALYZE_BY_SHAPE)
                base_json_text(&json, "shape", line->shape);
            base_json_text(&json, "phase", flow[j].direction);
            base_json_u64(&json, "ns", flow[j].ns);
            base_json_u64(&json, "flops", flow[j].flops);
            base_json_u64(&json, "moved_bytes", flow[j].moved);
            base_json_double(&json, "attained", roofline_attained(&flow[j], &roofline->roof));
            base_json_text(&json, "limit",
                           is_bound_by_bytes(&flow[j], &roofline->roof) ? "bytes" : "flops");
            base_json_end(&json);
        }
    }
    base_json_end(&json);
    base_json_finish(&json);
}

void report_roofline(const struct analyze_result *analysis, enum analyze_by by,
                     enum report_sort sort, size_t limit, const struct report_style *style)
{
    struct report_ranking ranking;
    struct roofline roofline = {
        .analysis = analysis,
        .style = style,
        .ranking = &ranking,
        .by = by,
        .roof = analyze_roof(analysis),
    };
    report_ranking_make(&ranking, analysis, by, sort, limit, style);
    if (style->json)
        roofline_print_json(&roofline);
    else
        roofline_print(&roofline);
    report_ranking_free(&ranking);
}
