/* symbols_object.h: one ELF file on disk with its debug information.
 *
 * Private to profiler/symbols. Invariant: a file that cannot be opened, or whose build id is not
 * the expected one, answers nothing; the reason is kept in `problem`.
 */
#ifndef PROFILER_SYMBOLS_OBJECT_H
#define PROFILER_SYMBOLS_OBJECT_H

#include "symbols_table.h"
#include "symbols_unit.h"

#include <elfutils/libdwfl.h>

struct symbols_object {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_Addr dwarf_bias; /* address in the module minus address in its debug information */
    struct symbols_unit *unit;
    struct symbols_segment *range; /* addresses of the units, sorted; scope is the unit's index */
    size_t n_units, n_ranges;
    struct symbols_table table; /* read when it is first needed */
    const char *problem;        /* NULL: usable */
    bool no_memory;             /* in any call: an answer may have been left out */
};

/* Opens path. build_id may be NULL; otherwise it must be the file's. Sets object->problem on
 * failure. */
void symbols_object_open(struct symbols_object *object, const char *path, const uint8_t *build_id,
                         size_t build_id_bytes);

/* Finds the line and function of an address as it stands in the file, and as symbols_unit_find the
 * functions that it was inlined into. */
size_t symbols_object_find(struct symbols_object *object, uint64_t address,
                           struct symbols_found *found, size_t room);

/* Finds the symbol that covers the address; *offset is the distance from its start. NULL: none. */
const char *symbols_object_symbol(struct symbols_object *object, uint64_t address,
                                  uint64_t *offset);

/* How many units were walked. */
uint64_t symbols_object_walked(const struct symbols_object *object);

void symbols_object_close(struct symbols_object *object);

#endif
