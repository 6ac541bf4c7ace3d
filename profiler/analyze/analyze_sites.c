/* analyze_sites.c: see analyze_sites.h. */
#include "analyze_sites.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"

#include <stdlib.h>

/* Texts of a profile are one pointer each; where several profiles were merged some are two. */
static uint64_t sites_hash(const struct read_row *row)
{
    const uint64_t h = base_hash(base_hash(row->line, row->pc), (uint64_t)(uintptr_t)row->op);
    return base_hash(base_hash(h, (uint64_t)(uintptr_t)row->shape),
                     (uint64_t)(uintptr_t)row->kept_by + row->kept_others);
}

static bool sites_same(const struct read_row *a, const struct read_row *b)
{
    return a->pc == b->pc && a->line == b->line && a->op == b->op && a->shape == b->shape &&
           a->kept_by == b->kept_by && a->kept_others == b->kept_others;
}

void analyze_sites_make(struct analyze_sites *sites, const struct read_profile *profile)
{
    struct base_table known = {0};
    size_t n_rows = 0, room = 0, walk;
    for (size_t i = 0; i < profile->n_tapes; i++)
        n_rows += profile->tape[i].n_rows;
    *sites = (struct analyze_sites){.of = base_calloc(n_rows + 1, sizeof *sites->of)};
    uint32_t *of = sites->of;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++) {
            const struct read_row *row = &profile->tape[i].row[j];
            const uint64_t key = sites_hash(row);
            int64_t at = base_table_first(&known, key, &walk);
            while (at >= 0 && !sites_same(sites->row[at], row))
                at = base_table_next(&known, key, &walk);
            if (at < 0) {
                at = (int64_t)sites->n;
                base_table_add(&known, key, sites->n);
                BASE_ARRAY_GROW(sites->row, sites->n, &room);
                sites->row[sites->n++] = row;
            }
            *of++ = (uint32_t)at;
        }
    base_table_free(&known);
}

void analyze_sites_free(struct analyze_sites *sites)
{
    free(sites->of);
    free(sites->row);
    *sites = (struct analyze_sites){0};
}
