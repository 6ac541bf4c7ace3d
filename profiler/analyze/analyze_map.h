/* analyze_map.h: source files under other names.
 *
 * Private to profiler/analyze. Invariant: equal names of files get names that are one pointer,
 * valid until the map is freed.
 */
#ifndef PROFILER_ANALYZE_ANALYZE_MAP_H
#define PROFILER_ANALYZE_ANALYZE_MAP_H

#include <stdbool.h>

struct analyze_map;

/* Adds a rule at the end of *map (NULL before the first): files below the folder `from`, or that
 * file itself, as the rules before have named them, lie below `to`. Returns it, which is a map of
 * this rule alone. */
struct analyze_map *analyze_map_add(struct analyze_map **map, const char *from, const char *to);
/* The file's name: its own where no rule is about it, or there is no map. */
const char *analyze_map_file(struct analyze_map *map, const char *file);
void analyze_map_free(struct analyze_map *map);

#endif
