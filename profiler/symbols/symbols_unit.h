/* symbols_unit.h: one compilation unit as an index of disjoint address intervals.
 *
 * Private to profiler/symbols. Invariant: after the walk, segments are sorted by address and do
 * not overlap; each names the innermost function, inlined or not, that covers it. The debug
 * information is not trusted: it may be any bytes.
 */
#ifndef PROFILER_SYMBOLS_UNIT_H
#define PROFILER_SYMBOLS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#define SYMBOLS_NO_SCOPE UINT32_MAX

/* A function or an inlined instance of one. */
struct symbols_scope {
    const char *name;   /* of the debug information; may be NULL */
    uint32_t parent;    /* enclosing scope or SYMBOLS_NO_SCOPE */
    uint32_t call_file; /* of an inlined instance: index in the unit's file table */
    uint32_t call_line;
    uint32_t decl_line;
    uint64_t die; /* its offset */
    bool inlined;
    bool wrapper; /* one of tapescope's own, in its headers */
};

struct symbols_segment {
    uint64_t start, end;
    uint32_t scope;
};

struct symbols_unit {
    Dwarf_Die die;  /* has the line table */
    Dwarf_Die tree; /* has the functions: the split unit, or the same as die */
    bool walked;
    struct symbols_scope *scope;
    struct symbols_segment *segment;
    size_t n_scopes, n_segments;
};

/* What a unit knows of an address; file is not normalised, and relative to directory unless it
 * begins with a slash. */
struct symbols_found {
    const char *function;
    const char *file;
    const char *directory; /* where the compiler ran, or NULL */
    uint32_t line;
    uint32_t function_line;
    bool wrapped; /* the address lies in one of tapescope's own wrappers, inlined there */
};

/* Looks an address of the call up; the unit is walked first if it was not. The first of at most
 * `room` is the innermost function; where it was inlined, its caller with the line of the call
 * follows, and so on. Returns how many; 0 where the unit has neither a line nor a function. */
size_t symbols_unit_find(struct symbols_unit *unit, uint64_t address, struct symbols_found *found,
                         size_t room);

void symbols_unit_free(struct symbols_unit *unit);

#endif
