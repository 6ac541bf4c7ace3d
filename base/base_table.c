/* base_table.c: see base_table.h. */
#include "base_table.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* The first slot from `at` on that is free or has the key. */
static size_t find_slot(const struct base_table *table, uint64_t key, size_t at)
{
    for (at &= table->room - 1; table->slot[at].place != 0 && table->slot[at].key != key;)
        at = (at + 1) & (table->room - 1);
    return at;
}

static size_t find_free(const struct base_table *table, uint64_t key)
{
    size_t at = (size_t)base_hash(0, key) & (table->room - 1);
    while (table->slot[at].place != 0)
        at = (at + 1) & (table->room - 1);
    return at;
}

int64_t base_table_next(const struct base_table *table, uint64_t key, size_t *walk)
{
    if (table->room == 0)
        return -1;
    const size_t at = find_slot(table, key, *walk);
    *walk = at + 1;
    return (int64_t)table->slot[at].place - 1;
}

int64_t base_table_first(const struct base_table *table, uint64_t key, size_t *walk)
{
    *walk = (size_t)base_hash(0, key);
    return base_table_next(table, key, walk);
}

int64_t base_table_find(const struct base_table *table, uint64_t key)
{
    size_t walk;
    return base_table_first(table, key, &walk);
}

static bool grow(struct base_table *table)
{
    struct base_table bigger = {.n = table->n, .room = table->room ? 2 * table->room : 16};
    bigger.slot = base_calloc(bigger.room, sizeof *bigger.slot);
    if (!bigger.slot)
        return false;
    /* From a free slot on, so that things of one key stay in the order in which they came. */
    size_t first = 0;
    while (first < table->room && table->slot[first].place != 0)
        first++;
    for (size_t i = 0; i < table->room; i++) {
        const struct base_slot *slot = &table->slot[(first + i) & (table->room - 1)];
        if (slot->place != 0)
            bigger.slot[find_free(&bigger, slot->key)] = *slot;
    }
    free(table->slot);
    *table = bigger;
    return true;
}

bool base_table_add(struct base_table *table, uint64_t key, size_t place)
{
    if (place >= UINT32_MAX || (2 * (table->n + 1) > table->room && !grow(table)))
        return false;
    table->slot[find_free(table, key)] = (struct base_slot){key, (uint32_t)(place + 1)};
    table->n++;
    return true;
}

void base_table_clear(struct base_table *table)
{
    if (table->room > 0)
        memset(table->slot, 0, table->room * sizeof *table->slot);
    table->n = 0;
}

void base_table_free(struct base_table *table)
{
    free(table->slot);
    *table = (struct base_table){0};
}

uint64_t base_hash_text(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}
