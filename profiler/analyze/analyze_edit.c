/* analyze_edit.c: see analyze_edit.h.
 *
 * An alignment is scored: each pair of rows with one function and op counts for it, each place
 * where lines move by another number than before counts against it. So a line that was put in
 * moves all below it, and a single row that fits elsewhere by chance moves nothing.
 */
#include "analyze_edit.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_strings.h"

#include <stdlib.h>
#include <string.h>

enum {
    MATCH = 4, /* one pair makes up for one change, two changes need two */
    CHANGE = 3,
    MOST_CELLS = 1 << 20, /* of rows times rows of a file; larger ones are not aligned */
    MOST_LINE = 1 << 20,
    NONE = -1
};

/* A line of a file, with a function and an op. */
struct edit_row {
    const char *file, *function, *op;
    uint32_t line;
    int sort; /* rows with one function and op have one number */
};

struct edit_pair {
    const char *file;
    uint32_t base, now;
};

struct analyze_edit {
    struct edit_pair *pair; /* by file, then by the line of the base */
    size_t n, room;
};

/* The program, as a profile has it: it was built again if this is another. */
static const struct read_mapping *edit_mapping(const struct read_profile *profile, const char *path)
{
    for (size_t i = 0; path && i < profile->n_mappings; i++)
        if (profile->mapping[i].path && strcmp(profile->mapping[i].path, path) == 0)
            return &profile->mapping[i];
    return NULL;
}

/* The build of a line's module. */
static const struct read_mapping *edit_build(const struct analyze_result *analysis,
                                             const char *module)
{
    const char *name = base_file_name(module);
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const char *path = analysis->line[i].module;
        if (path && strcmp(base_file_name(path), name) == 0)
            return edit_mapping(analysis->profile, path);
    }
    return NULL;
}

/* Whether each module that both have lines of is known to be of one build. */
static bool edit_is_none(const struct analyze_result *base, const struct analyze_result *now)
{
    const char *last = NULL;
    bool known = false;
    for (size_t i = 0; i < base->n_lines; i++) {
        const char *module = base->line[i].module;
        if (!base->line[i].file || !module || (last && strcmp(last, module) == 0))
            continue;
        last = module;
        const struct read_mapping *a = edit_mapping(base->profile, module),
                                  *b = edit_build(now, module);
        if (!b)
            continue;
        if (!a || a->build_id_bytes == 0 || a->build_id_bytes != b->build_id_bytes ||
            memcmp(a->build_id, b->build_id, a->build_id_bytes) != 0)
            return false;
        known = true;
    }
    return known;
}

static int edit_compare_files(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The files of the lines, sorted; *n of them. */
static const char **edit_files(const struct analyze_result *analysis, size_t *n)
{
    const char **file = base_calloc(analysis->n_lines + 1, sizeof *file);
    *n = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (analysis->line[i].file)
            file[(*n)++] = analysis->line[i].file;
    qsort(file, *n, sizeof *file, edit_compare_files);
    return file;
}

static int edit_compare_sorts(const void *x, const void *y)
{
    const struct edit_row *a = *(struct edit_row *const *)x, *b = *(struct edit_row *const *)y;
    const int order = strcmp(a->function, b->function);
    return order != 0 ? order : strcmp(a->op, b->op);
}

static int edit_compare_rows(const void *x, const void *y)
{
    const struct edit_row *a = x, *b = y;
    const int order = strcmp(a->file, b->file);
    if (order != 0)
        return order;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->sort > b->sort) - (a->sort < b->sort);
}

/* The rows of a profile. A file that the other has not by its path is one by its name: sources may
 * lie elsewhere. */
static size_t edit_take(struct edit_row *row, const struct analyze_result *analysis,
                        const char *const *other, size_t n_other)
{
    size_t n = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->own || !line->file || line->line == 0 || line->line > MOST_LINE)
            continue;
        const bool both = bsearch(&line->file, other, n_other, sizeof *other, edit_compare_files);
        row[n++] = (struct edit_row){.file = both ? line->file : base_file_name(line->file),
                                     .function = line->function ? line->function : "",
                                     .op = line->ops.n > 0 ? line->ops.name[0] : "",
                                     .line = line->line};
    }
    return n;
}

/* In the order of the source, each once. */
static size_t edit_sort(struct edit_row *row, size_t n)
{
    size_t kept = 0;
    qsort(row, n, sizeof *row, edit_compare_rows);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || edit_compare_rows(&row[kept - 1], &row[i]) != 0)
            row[kept++] = row[i];
    return kept;
}

/* Two rows that belong together, and the pair before it in the best alignment that ends with it. */
struct edit_match {
    uint32_t a, b;
    int before, score;
};

struct edit_align {
    struct edit_match *match;
    size_t n, room;
    int *along; /* by how far lines move: the best alignment that ends so; NONE: there is none */
    int *upto;  /* by how many rows of b: the best alignment within them */
    int *row;   /* of the row of a at hand, by the row of b */
};

static int edit_score(const struct edit_align *align, int match)
{
    return match == NONE || !align->match ? 0 : align->match[match].score;
}

static int edit_better(const struct edit_align *align, int match, int other)
{
    return edit_score(align, other) > edit_score(align, match) ? other : match;
}

static void edit_add_match(struct edit_align *align, uint32_t a, uint32_t b, int moves_by,
                           int along)
{
    const int before = align->upto[b];
    const int change = before == NONE && moves_by == 0 ? 0 : CHANGE;
    struct edit_match match = {a, b, before, edit_score(align, before) - change};
    if (along != NONE && edit_score(align, along) >= match.score) {
        match.before = along;
        match.score = edit_score(align, along);
    }
    match.score += MATCH;
    BASE_ARRAY_GROW(align->match, align->n, &align->room);
    align->row[b] = (int)align->n;
    align->match[align->n++] = match;
}

/* Aligns the rows of one file. */
static void edit_align_file(struct analyze_edit *edit, const struct edit_row *a, size_t n,
                            const struct edit_row *b, size_t m)
{
    if (n == 0 || m == 0 || m > MOST_CELLS / n)
        return;
    const size_t most = a[n - 1].line, moves = most + b[m - 1].line + 1;
    struct edit_align align = {.along = base_calloc(moves, sizeof(int)),
                               .upto = base_calloc(m + 1, sizeof(int)),
                               .row = base_calloc(m, sizeof(int))};
    for (size_t i = 0; i < moves; i++)
        align.along[i] = NONE;
    for (size_t j = 0; j <= m; j++)
        align.upto[j] = NONE;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            align.row[j] = NONE;
            if (a[i].sort == b[j].sort)
                edit_add_match(&align, (uint32_t)i, (uint32_t)j, (int)b[j].line - (int)a[i].line,
                               align.along[most + b[j].line - a[i].line]);
        }
        for (size_t j = 0; j < m; j++) { /* what this row's matches are for the next */
            int *along = &align.along[most + b[j].line - a[i].line];
            *along = edit_better(&align, *along, align.row[j]);
            align.upto[j + 1] = edit_better(&align, align.upto[j + 1], align.upto[j]);
            align.upto[j + 1] = edit_better(&align, align.upto[j + 1], align.row[j]);
        }
    }
    for (int at = align.upto[m]; at != NONE; at = align.match[at].before) {
        const struct edit_match *match = &align.match[at];
        BASE_ARRAY_GROW(edit->pair, edit->n, &edit->room);
        edit->pair[edit->n++] =
            (struct edit_pair){a[match->a].file, a[match->a].line, b[match->b].line};
    }
    free(align.match);
    free(align.along);
    free(align.upto);
    free(align.row);
}

static int edit_compare_pairs(const void *x, const void *y)
{
    const struct edit_pair *a = x, *b = y;
    const int order = strcmp(a->file, b->file);
    if (order != 0)
        return order;
    return a->base != b->base ? (a->base < b->base ? -1 : 1)
                              : (a->now > b->now) - (a->now < b->now);
}

/* Numbers rows by function and op. */
static void edit_number(struct edit_row *row, size_t n)
{
    struct edit_row **by = base_calloc(n + 1, sizeof *by);
    for (size_t i = 0; i < n; i++)
        by[i] = &row[i];
    qsort(by, n, sizeof *by, edit_compare_sorts);
    for (size_t i = 1; i < n; i++)
        by[i]->sort = by[i - 1]->sort + (edit_compare_sorts(&by[i - 1], &by[i]) != 0);
    free(by);
}

struct analyze_edit *analyze_edit_make(const struct analyze_result *base,
                                       const struct analyze_result *now)
{
    if (!base || !now || edit_is_none(base, now))
        return NULL;
    struct analyze_edit *edit = base_calloc(1, sizeof *edit);
    size_t n_base, n_now;
    const char **of_base = edit_files(base, &n_base), **of_now = edit_files(now, &n_now);
    struct edit_row *row = base_calloc(base->n_lines + now->n_lines + 1, sizeof *row);
    size_t n = edit_take(row, base, of_now, n_now);
    size_t m = edit_take(row + n, now, of_base, n_base);
    edit_number(row, n + m);
    struct edit_row *a = row, *b = row + n;
    n = edit_sort(a, n);
    m = edit_sort(b, m);
    for (size_t i = 0, j = 0, i_end, j_end; i < n; i = i_end) {
        for (i_end = i + 1; i_end < n && strcmp(a[i_end].file, a[i].file) == 0;)
            i_end++;
        while (j < m && strcmp(b[j].file, a[i].file) < 0)
            j++;
        for (j_end = j; j_end < m && strcmp(b[j_end].file, a[i].file) == 0;)
            j_end++;
        edit_align_file(edit, a + i, i_end - i, b + j, j_end - j);
    }
    if (edit->n > 0)
        qsort(edit->pair, edit->n, sizeof *edit->pair, edit_compare_pairs);
    free(of_base);
    free(of_now);
    free(row);
    return edit;
}

void analyze_edit_free(struct analyze_edit *edit)
{
    if (edit)
        free(edit->pair);
    free(edit);
}

/* Where in the pairs a file's line is, or would be. */
static size_t edit_find(const struct analyze_edit *edit, const char *file, uint32_t line)
{
    const struct edit_pair wanted = {file, line, 0};
    size_t low = 0, high = edit->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (edit_compare_pairs(&edit->pair[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool edit_is_of(const struct analyze_edit *edit, size_t at, const char *file)
{
    return at < edit->n && strcmp(edit->pair[at].file, file) == 0;
}

uint32_t analyze_edit_line(const struct analyze_edit *edit, const char *file, uint32_t line)
{
    if (!edit || !file || line == 0)
        return line;
    size_t at = edit_find(edit, file, line);
    if (!edit_is_of(edit, at, file) && (at == 0 || !edit_is_of(edit, at - 1, file))) {
        file = base_file_name(file);
        at = edit_find(edit, file, line);
    }
    const bool above = edit_is_of(edit, at, file), below = at > 0 && edit_is_of(edit, at - 1, file);
    if (!above && !below)
        return line;
    const struct edit_pair *next = &edit->pair[above ? at : at - 1],
                           *last = &edit->pair[below ? at - 1 : at];
    if (next->base == line)
        return next->now;
    if ((int64_t)next->now - next->base != (int64_t)last->now - last->base)
        return 0;
    const int64_t moved = line + ((int64_t)next->now - next->base);
    return moved > 0 ? (uint32_t)moved : 0;
}
