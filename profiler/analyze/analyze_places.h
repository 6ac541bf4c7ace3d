/* analyze_places.h: where the addresses of a profile are: by what the profile itself knows, else by
 * debug information.
 *
 * Private to profiler/analyze.
 */
#ifndef PROFILER_ANALYZE_PLACES_H
#define PROFILER_ANALYZE_PLACES_H

#include "analyze.h"
#include "symbols.h"

/* As symbols_chain(): the place of a return address, and the functions that it is inlined
 * into; line: of the call, where it is known. Address 0 has no place.
 * Files have the names that the analysis gives them. */
size_t analyze_places(const struct analyze_result *analysis, uint64_t pc, uint32_t line,
                      struct symbols_place *place, size_t room);

/* The first of them. */
struct symbols_place analyze_place(const struct analyze_result *analysis, uint64_t pc,
                                   uint32_t line);

#endif
