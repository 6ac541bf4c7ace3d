/* analyze_join.c: see analyze_join.h. */
#include "analyze_join.h"
#include "base_strings.h"

#include "analyze_merge.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* A row of one profile on its way to its joined row. */
struct join_entry {
    const struct analyze_line *line;
    char *key;
    size_t profile;
    size_t place; /* among the lines of its profile, in the order of the source */
    size_t turn;  /* among those of the same key and profile */
    size_t row;   /* SIZE_MAX: not joined yet */
};

/* How closely rows must agree, one after the other. */
enum level { EXACT, MOVED, ELSEWHERE, ELSEWHERE_MOVED, OTHER_FILE, LEVELS };

static bool level_is_moved(enum level level)
{
    return level == MOVED || level >= ELSEWHERE_MOVED;
}

/* Beside enum analyze_by: a line is one, whatever its ops are; what moved is told apart by them. */
enum { PLACES = ANALYZE_BY_LINE_OP_AND_SHAPE + 1 };

/* How rows are joined. */
struct joining {
    int by;
    const struct analyze_edit *edit; /* from profile 0 to profile 1; NULL: no line has moved */
};

/* What must agree, as a text. */
static char *join_make_key(const struct joining *how, const struct join_entry *entry,
                           enum level level)
{
    const struct analyze_line *line = entry->line;
    const int by = how->by;
    const bool any_op = by == PLACES && !line->own && !level_is_moved(level);
    const char *op = line->ops.n > 0 && !any_op ? line->ops.name[0] : "";
    const char *file = line->file ? line->file : line->module ? line->module : "?";
    const char *function = line->function ? line->function : "";
    bool numbered = !level_is_moved(level);
    unsigned long long offset = line->file ? 0 : line->offset;
    if (level >= ELSEWHERE)
        file = base_file_name(file);
    if (level == OTHER_FILE && line->function && by != ANALYZE_BY_FILE)
        file = "";
    if (line->own)
        return base_asprintf("own\x1f%s", op);
    if (by == ANALYZE_BY_OP)
        return base_asprintf("%s", op);
    if (by == ANALYZE_BY_FILE)
        return base_asprintf("%s", file);
    if (by == ANALYZE_BY_MODULE)
        return base_asprintf("%s", base_file_name(line->module ? line->module : ""));
    if (by == ANALYZE_BY_FUNCTION)
        return base_asprintf("%s\x1f%s\x1f%llx", file, function, line->function ? 0 : offset);
    if (numbered) {
        const uint32_t now =
            entry->profile == 0 ? analyze_edit_line(how->edit, line->file, line->line) : line->line;
        const bool gone = now == 0 && line->line > 0; /* like no line of the other profile */
        return base_asprintf("%s\x1f%s\x1f%s\x1f%s%u\x1f%llx", file, function, op, gone ? "-" : "",
                             (unsigned)(gone ? line->line : now), offset);
    }
    return base_asprintf("%s\x1f%s\x1f%s", file, function, op);
}

static int join_compare_entries(const void *x, const void *y)
{
    const struct join_entry *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    if (order != 0)
        return order;
    if (a->profile != b->profile)
        return a->profile < b->profile ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int compare_turns(const void *x, const void *y)
{
    const struct join_entry *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    if (order != 0)
        return order;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return a->profile < b->profile ? -1 : a->profile > b->profile;
}

static void drop_keys(struct join_entry *entry, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(entry[i].key);
        entry[i].key = NULL;
    }
}

static void make_keys(const struct joining *how, struct join_entry *entry, size_t n,
                      enum level level)
{
    for (size_t i = 0; i < n; i++)
        entry[i].key = join_make_key(how, &entry[i], level);
}

/* Numbers the entries of each profile and key in the order of the source, and sorts so that those
 * which belong together are neighbours. */
static void sort_entries(struct join_entry *entry, size_t n)
{
    qsort(entry, n, sizeof *entry, join_compare_entries);
    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && entry[i].profile == entry[i - 1].profile &&
                    strcmp(entry[i].key, entry[i - 1].key) == 0;
        entry[i].turn = same ? entry[i - 1].turn + 1 : 0;
    }
    qsort(entry, n, sizeof *entry, compare_turns);
}

static bool belong_together(const struct join_entry *a, const struct join_entry *b)
{
    return a->turn == b->turn && strcmp(a->key, b->key) == 0;
}

static void put_cell(struct analyze_join *join, struct join_entry *entry, size_t row, bool moved)
{
    struct analyze_joined *to = &join->row[row];
    entry->row = row;
    if (!to->line)
        to->line = base_calloc(join->n_profiles, sizeof(struct analyze_line *));
    to->line[entry->profile] = entry->line;
    to->any = entry->line;
    to->moved |= moved;
}

/* Makes a row of each run of entries that belong together: of all of them at the last level, of
 * those in several profiles before. Returns how many entries are left over, at the front. */
static size_t join_level(struct analyze_join *join, struct join_entry *entry, size_t n, bool last,
                         bool moved)
{
    size_t left = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && belong_together(&entry[i], &entry[end]);)
            end++;
        bool joined = end - i > 1 || last;
        for (size_t j = i; joined && j < end; j++)
            put_cell(join, &entry[j], join->n_rows, moved && end - i > 1);
        join->n_rows += joined;
    }
    for (size_t i = 0; i < n; i++) {
        if (entry[i].row == SIZE_MAX) {
            struct join_entry kept = entry[i];
            entry[i] = entry[left];
            entry[left++] = kept;
        }
    }
    return left;
}

static void join_all(struct analyze_join *join, const struct joining *how, struct join_entry *entry,
                     size_t n, bool moved)
{
    enum level end = moved ? LEVELS : EXACT + 1;
    for (enum level level = EXACT; level < end && n > 0; level++) {
        make_keys(how, entry, n, level);
        sort_entries(entry, n);
        size_t before = n;
        n = join_level(join, entry, n, level + 1 == end, level_is_moved(level));
        drop_keys(entry, before);
    }
    for (size_t i = 0; i < join->n_rows && how->edit; i++) {
        const struct analyze_line *const *line = join->row[i].line;
        join->row[i].moved |= line[0] && line[1] && line[0]->line != line[1]->line;
    }
}

/* The rows of one profile, which the join owns. */
static size_t join_take_rows(struct analyze_join *join, const struct analyze_result *analysis,
                             enum analyze_by by)
{
    size_t n = analysis->n_lines;
    struct analyze_line **group = &join->group[join->n_profiles++];
    if (by != ANALYZE_BY_LINE) {
        *group = analyze_group(analysis, by, &n);
        return n;
    }
    *group = base_calloc(n + 1, sizeof **group);
    if (n > 0)
        memcpy(*group, analysis->line, n * sizeof **group);
    return analyze_merge(*group, n, ANALYZE_BY_LINE_AND_OP); /* shapes are one */
}

void analyze_join_make(struct analyze_join *join, const struct analyze_result *const *analysis,
                       size_t n, enum analyze_by by, bool moved)
{
    *join = (struct analyze_join){.group = base_calloc(n + 1, sizeof(struct analyze_line *))};
    size_t *rows = base_calloc(n + 1, sizeof *rows), all = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i] = join_take_rows(join, analysis[i], by);
        all += rows[i];
    }
    struct join_entry *entry = base_calloc(all + 1, sizeof *entry);
    join->row = base_calloc(all + 1, sizeof *join->row);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < rows[i]; j++)
            entry[at++] = (struct join_entry){
                .line = &join->group[i][j], .profile = i, .place = j, .row = SIZE_MAX};
    struct analyze_edit *edit = moved && by == ANALYZE_BY_LINE && n == 2
                                    ? analyze_edit_make(analysis[0], analysis[1])
                                    : NULL;
    join_all(join, &(struct joining){(int)by, edit}, entry, all, moved);
    analyze_edit_free(edit);
    free(entry);
    free(rows);
}

void analyze_join_lists(struct analyze_join *join, const struct analyze_line *const *const list[2],
                        const size_t n[2], const struct analyze_edit *edit)
{
    const size_t all = n[0] + n[1];
    *join = (struct analyze_join){.n_profiles = 2};
    struct join_entry *entry = base_calloc(all + 1, sizeof *entry);
    join->row = base_calloc(all + 1, sizeof *join->row);
    size_t at = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < n[i]; j++)
            entry[at++] =
                (struct join_entry){.line = list[i][j], .profile = i, .place = j, .row = SIZE_MAX};
    join_all(join, &(struct joining){PLACES, edit}, entry, all, true);
    free(entry);
}

void analyze_join_free(struct analyze_join *join)
{
    for (size_t i = 0; i < join->n_profiles && join->group; i++)
        free(join->group[i]);
    for (size_t i = 0; i < join->n_rows; i++)
        free(join->row[i].line);
    free(join->group);
    free(join->row);
    *join = (struct analyze_join){0};
}
