/* symbols_table.h: the functions of an ELF file's symbol table, sorted by address.
 *
 * Private to profiler/symbols. libdwfl's own search runs through the whole table for every
 * address.
 */
#ifndef PROFILER_SYMBOLS_TABLE_H
#define PROFILER_SYMBOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdwfl.h>

struct symbols_table {
    struct symbols_entry {
        uint64_t start, size; /* size 0: not known */
        const char *name;     /* the module's */
    } * entry;
    size_t n;
    bool read;
};

/* Reads the table. Without symbols it is empty; without memory it stays unread. */
void symbols_table_read(struct symbols_table *table, Dwfl_Module *module);

/* The function that holds the address, with the distance from its start; NULL: none. */
const char *symbols_table_find(const struct symbols_table *table, uint64_t address,
                               uint64_t *distance);

void symbols_table_free(struct symbols_table *table);

#endif
