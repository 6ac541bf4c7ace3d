/* report_place.c: how a row of a table says where it is. */
#include "report_text.h"

enum { NAMES_ROOM = 256, WHERE_ROOM = 1024 };

void report_text_place(char *buf, size_t n, const struct analyze_result *analysis,
                       const struct analyze_line *line)
{
    const char *module = line->module ? report_text_base_name(line->module) : "?";
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
           : line->module ? report_text_base_name(line->module)
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
    static const char *const title[] = {
        [ANALYZE_BY_LINE] = "line, op, function",
        [ANALYZE_BY_FUNCTION] = "function, file, op",
        [ANALYZE_BY_OP] = "op",
        [ANALYZE_BY_FILE] = "file, op",
        [ANALYZE_BY_MODULE] = "module, op",
        [ANALYZE_BY_SHAPE] = "op, shape",
    };
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
        snprintf(buf, n, "%s %s", line->own ? "(tape)" : ANALYZE_IDLE_NAME, names);
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
        snprintf(where, sizeof where, "%s",
                 line->module ? report_text_base_name(line->module) : "?");
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
    char where[2 * WHERE_ROOM];
    report_text_where(where, sizeof where, analysis, line, by);
    report_table_cell(table, where);
}
