/* analyze_join.h: the same line in several profiles.
 *
 * Invariant: every row of every profile is in exactly one joined row, so sums stay.
 */
#ifndef PROFILER_ANALYZE_JOIN_H
#define PROFILER_ANALYZE_JOIN_H

#include "analyze_edit.h"

/* Profiles that a growth is made of, at most. */
enum { ANALYZE_JOIN_MOST = 64 };

/* A row with its counterparts: line[i] is of profile i, or NULL where that has none; owned. */
struct analyze_joined {
    const struct analyze_line **line;
    const struct analyze_line *any; /* the last that is there: what the row is called */
    bool moved;                     /* its line has another number */
};

/* Profiles side by side. */
struct analyze_join {
    struct analyze_joined *row;
    size_t n_rows, n_profiles;
    struct analyze_line **group; /* the rows of each profile; owned */
};

/* Joins n profiles in a view; ANALYZE_BY_LINE keeps the ops of a line apart. Rows agree if file,
 * function, line and op do. With `moved`, of two profiles, the first's lines have the numbers that
 * they have in the second (analyze_edit.h), and what is left over is joined by file, function and
 * op, in the order of the source; then both ways once more with the name of the file alone: the
 * sources may lie elsewhere; at last by function and op alone, for what went to another file. The
 * caller frees the join in either case. */
void analyze_join_make(struct analyze_join *join, const struct analyze_result *const *analysis,
                       size_t n, enum analyze_by by, bool moved);
void analyze_join_free(struct analyze_join *join);

/* The same of two lists of lines in the order of the source, which the caller keeps, with what is
 * known of the edit between them; a line is one whatever its ops are. */
void analyze_join_lists(struct analyze_join *join, const struct analyze_line *const *const list[2],
                        const size_t n[2], const struct analyze_edit *edit);

#endif
