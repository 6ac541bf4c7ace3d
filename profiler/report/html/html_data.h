/* html_data.h: what the page shows, as one JSON document of columns.
 *
 * Private to profiler/report/html. Invariant: a table is an object of arrays of one length; a
 * column of zeros alone is left out; texts are numbers of "strings", which comes last. The page's
 * module data.js reads it.
 */
#ifndef PROFILER_REPORT_HTML_HTML_DATA_H
#define PROFILER_REPORT_HTML_HTML_DATA_H

#include "html.h"
#include "html_strings.h"

#include "analyze_checkpoint.h"
#include "analyze_tree.h"
#include "report_json.h"

struct html_data {
    struct base_json json;
    struct base_strings strings;
    const struct analyze_result *analysis;
    const struct html_options *options;
    struct analyze_tree *tree; /* html_put_tree() folds it */
    struct analyze_proposals proposals;
    const char **file; /* of which something is shown, each once; owned */
    size_t n_files, room_files;
};

/* Lines within an array of larger things: the first one, bytes from one to the next, how many. */
struct html_lines {
    const struct analyze_line *first;
    size_t stride, n;
};

/* Columns into the object that is open: where the lines are ("file", "line", "function" and so on,
 * after `prefix`), and what they cost. */
void html_put_places(struct html_data *data, const char *prefix, struct html_lines lines);
void html_put_costs(struct html_data *data, const char *prefix, struct html_lines lines);
/* What the columns of costs are, and the phases: "costs" and "phases". */
void html_put_facts(struct html_data *data);

/* A column of whole numbers that lie `stride` bytes apart. */
void html_put_numbers(struct html_data *data, const char *prefix, const char *name,
                      const uint64_t *first, size_t stride, size_t n);

/* Sections of the document, each an object or null. */
void html_put_tree(struct html_data *data);
void html_put_space(struct html_data *data);
void html_put_whatif(struct html_data *data);
void html_put_scopes(struct html_data *data);
void html_put_patterns(struct html_data *data);
/* Single events: when each node of the tree had what of its times, and when scopes were open. tree:
 * as html_put_tree() wrote it. */
void html_put_timeline(struct html_data *data, const struct analyze_tree *tree);
/* Of a set of ranks what each has, by the rows of "lines", "tree" and the holders of "space"; null
 * where there are none, or they are too many. */
void html_put_ranks(struct html_data *data, const struct analyze_tree *tree);
void html_put_diff(struct html_data *data);
void html_put_growth(struct html_data *data);

/* The whole document. */
void html_put_data(FILE *out, const struct analyze_result *analysis,
                   const struct html_options *options);

#endif
