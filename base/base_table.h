/* base_table.h: from a number to a place, by open addressing.
 *
 * Keys are numbers of 64 bits; a place is less than 2^32 - 1. Things that are no number have their
 * hash as the key, and are in an array of the user's, where the place is. Two things may then have
 * one key: the user walks over all places of a key, and compares.
 */
#ifndef BASE_BASE_TABLE_H
#define BASE_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_table {
    struct base_slot {
        uint64_t key;
        uint32_t place; /* plus 1; 0: free */
    } * slot;
    size_t n, room; /* room: a power of two, or 0 */
};

/* The place of the first thing with this key, or -1. *walk is where the next one is looked for. */
int64_t base_table_first(const struct base_table *table, uint64_t key, size_t *walk);
int64_t base_table_next(const struct base_table *table, uint64_t key, size_t *walk);
/* Where a key has one thing. */
int64_t base_table_find(const struct base_table *table, uint64_t key);

/* Adds a place to those of the key. False: memory ended, or the place is too great; nothing has
 * changed then. */
bool base_table_add(struct base_table *table, uint64_t key, size_t place);

/* Forgets all, and keeps the room. */
void base_table_clear(struct base_table *table);
void base_table_free(struct base_table *table);

/* A hash of what h is of and of the number; h is 0 at first. */
static inline uint64_t base_hash(uint64_t h, uint64_t number)
{
    h = (h ^ number) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 32);
}

/* A hash of a text. */
uint64_t base_hash_text(const char *text);

#endif
