/* analyze_patterns.c: the patterns of sparse derivatives, by the lines that found them. */
#include "analyze.h"

#include "analyze_places.h"
#include "base_memory.h"
#include "base_table.h"

#include <string.h>

static bool patterns_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool patterns_agree(const struct read_pattern *a, const struct read_pattern *b)
{
    return a->kind == b->kind && a->rows == b->rows && a->columns == b->columns &&
           a->values == b->values && a->coloured == b->coloured && a->colours == b->colours &&
           memcmp(a->cell, b->cell, (size_t)a->height * a->width * sizeof *a->cell) == 0;
}

/* Without a file the address tells lines apart. */
static bool patterns_are_one(const struct analyze_pattern *a, const struct analyze_pattern *b)
{
    const struct analyze_line *x = &a->line, *y = &b->line;
    return (x->file ? x->line == y->line : a->found->pc == b->found->pc) &&
           patterns_same_text(x->file, y->file) && patterns_same_text(x->function, y->function) &&
           patterns_agree(a->found, b->found);
}

static uint64_t pattern_key(const struct analyze_pattern *p)
{
    const char *file = p->line.file;
    return base_hash(
        base_hash(base_hash_text(file ? file : ""), file ? p->line.line : p->found->pc),
        p->found->values);
}

struct analyze_pattern *analyze_patterns(const struct analyze_result *analysis, size_t *n)
{
    const struct read_profile *profile = analysis->profile;
    struct analyze_pattern *list = base_calloc(profile->n_patterns + 1, sizeof *list);
    struct base_table known = {0};
    *n = 0;
    for (size_t i = 0; i < profile->n_patterns; i++) {
        const struct read_pattern *found = &profile->pattern[i];
        const struct symbols_place place = analyze_place(analysis, found->pc, found->line);
        const struct analyze_pattern made = {
            .found = found,
            .calls = found->calls,
            .line = {.file = place.file,
                     .function = place.function,
                     .module = place.module,
                     .line = place.line,
                     .function_line = place.function_line,
                     .offset = place.offset},
        };
        const uint64_t key = pattern_key(&made);
        size_t walk;
        int64_t at = base_table_first(&known, key, &walk);
        while (at >= 0 && !patterns_are_one(&list[at], &made))
            at = base_table_next(&known, key, &walk);
        if (at >= 0) {
            list[at].calls = read_add(list[at].calls, made.calls);
        } else {
            base_table_add(&known, key, *n);
            list[(*n)++] = made;
        }
    }
    base_table_free(&known);
    return list;
}

double analyze_pattern_share(const struct read_pattern *pattern)
{
    const double elements = (double)pattern->rows * (double)pattern->columns;
    return elements > 0 ? (double)pattern->values / elements : 0;
}
