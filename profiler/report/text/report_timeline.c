/* report_timeline.c: live bytes over time, as a plot of text. */
#include "report_text.h"
#include "report_units.h"

enum { ROWS = 6, LABEL = 8, MOST_COLUMNS = 160, EIGHTHS = 8 };

struct timeline_column {
    uint64_t bytes;
    bool known, backward;
};

struct plot {
    struct timeline_column column[MOST_COLUMNS];
    unsigned n;
    unsigned peak; /* column */
    uint64_t most, from, to;
};

static unsigned column_of(const struct plot *plot, uint64_t ticks)
{
    const double whole = (double)(plot->to - plot->from) + 1;
    const double part = ticks > plot->from ? (double)(ticks - plot->from) / whole : 0;
    const unsigned at = (unsigned)(part * plot->n);
    return at < plot->n ? at : plot->n - 1;
}

/* The most of each column; where nothing changed, what was live after the change before. */
static void timeline_fill(struct plot *plot, const struct read_tape *tape)
{
    for (size_t i = 0; i < tape->n_moments; i++) {
        const struct read_moment *m = &tape->moment[i];
        struct timeline_column *column = &plot->column[column_of(plot, m->ticks)];
        if (!column->known || m->most_bytes > column->bytes) {
            column->bytes = m->most_bytes;
            column->backward = m->backward;
        }
        column->known = true;
        if (m->most_bytes > plot->most) {
            plot->most = m->most_bytes;
            plot->peak = (unsigned)(column - plot->column);
        }
    }
    uint64_t last = 0;
    bool backward = false;
    size_t at = 0;
    for (unsigned c = 0; c < plot->n; c++) {
        for (; at < tape->n_moments && column_of(plot, tape->moment[at].ticks) <= c; at++) {
            const struct read_moment *m = &tape->moment[at];
            last = m->backward ? m->least_bytes : m->most_bytes;
            backward = m->backward;
        }
        if (!plot->column[c].known)
            plot->column[c] = (struct timeline_column){.bytes = last, .backward = backward};
    }
}

/* How much of a row the column fills, in eighths. row 0 is the lowest. */
static unsigned timeline_eighths(const struct plot *plot, unsigned c, unsigned row)
{
    if (plot->most == 0)
        return 0;
    const double height =
        (double)plot->column[c].bytes / (double)plot->most * ROWS * EIGHTHS - row * EIGHTHS;
    if (height <= 0)
        return 0;
    return height >= EIGHTHS ? EIGHTHS : height < 1 ? 1 : (unsigned)height;
}

static void timeline_put_row(const struct plot *plot, unsigned row,
                             const struct report_style *style)
{
    static const char *const block[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588"};
    unsigned last = 0;
    for (unsigned c = 0; c < plot->n; c++)
        if (timeline_eighths(plot, c, row) > 0)
            last = c + 1;
    for (unsigned c = 0; c < last; c++) {
        const unsigned n = timeline_eighths(plot, c, row);
        fputs(style->utf8       ? block[n]
              : n == 0          ? " "
              : n > EIGHTHS / 2 ? "#"
              : row             ? "."
                                : "_",
              style->out);
    }
    putc('\n', style->out);
}

static void put_axis(const struct plot *plot, const struct read_profile *profile,
                     const struct report_style *style)
{
    char from[REPORT_UNITS_ROOM], to[REPORT_UNITS_ROOM];
    const uint64_t start = profile->start_ticks;
    report_units_time(from, read_profile_ns(profile, plot->from > start ? plot->from - start : 0),
                      style->utf8);
    report_units_time(to, read_profile_ns(profile, plot->to > start ? plot->to - start : 0),
                      style->utf8);
    fprintf(style->out, "%*s +", LABEL, "");
    for (unsigned c = 0; c < plot->n; c++) {
        const bool sweep = c != plot->peak && plot->column[c].backward;
        fputs(sweep && style->color ? "\033[" REPORT_COLOR_BACKWARD "m=\033[0m"
              : sweep               ? "="
              : c == plot->peak     ? "^"
                                    : "-",
              style->out);
    }
    fprintf(style->out, "\n%*s  %s", LABEL, "", from);
    const unsigned used = report_text_columns(from) + report_text_columns(to);
    for (unsigned c = used; c < plot->n; c++)
        putc(' ', style->out);
    fprintf(style->out, "%s\n", to);
}

void report_timeline(const struct analyze_result *analysis, const struct read_tape *tape,
                     const struct report_style *style)
{
    struct plot plot = {.n = 0};
    char label[REPORT_UNITS_ROOM];
    if (tape->n_moments < 2 ||
        tape->moment[0].ticks == tape->moment[tape->n_moments - 1].ticks) /* nobody read a clock */
        return;
    const unsigned width = style->width > 0 ? style->width : 80;
    plot.n = width - LABEL - 2 < MOST_COLUMNS ? width - LABEL - 2 : MOST_COLUMNS;
    plot.from = tape->moment[0].ticks;
    plot.to = tape->moment[tape->n_moments - 1].ticks;
    timeline_fill(&plot, tape);
    for (unsigned row = ROWS; row-- > 0;) {
        const bool top = row + 1 == ROWS;
        fprintf(style->out, "%*s |", LABEL,
                top   ? report_units_bytes(label, plot.most)
                : row ? ""
                      : "0");
        timeline_put_row(&plot, row, style);
    }
    put_axis(&plot, analysis->profile, style);
}
