/* analyze_map.c: see analyze_map.h. */
#include "analyze_map.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_strings.h"

#include <stdlib.h>
#include <string.h>

/* One rule; the next is about what it makes of the files. */
struct analyze_map {
    struct analyze_map *next;
    char *from, *to;
    struct base_strings known; /* files that were asked for */
    char **name;               /* what the rule makes of each; NULL where it is not about it */
    size_t room;
};

/* What follows the folder `from` in file, or NULL: it does not lie there. */
static const char *map_below(const char *file, const char *from)
{
    size_t n = strlen(from);
    while (n > 1 && from[n - 1] == '/')
        n--;
    if (strncmp(file, from, n) != 0)
        return NULL;
    return file[n] == '\0' || file[n] == '/' || from[n - 1] == '/' ? file + n : NULL;
}

struct analyze_map *analyze_map_add(struct analyze_map **map, const char *from, const char *to)
{
    struct analyze_map *made = base_calloc(1, sizeof *made);
    made->from = base_strdup(from);
    made->to = base_strdup(to);
    while (*map)
        map = &(*map)->next;
    return *map = made;
}

/* What the rule makes of the file; NULL where it is not about it. */
static char *rename_file(const struct analyze_map *map, const char *file)
{
    const char *rest = map_below(file, map->from);
    if (!rest)
        return NULL;
    size_t n = strlen(map->to);
    while (n > 0 && map->to[n - 1] == '/' && *rest == '/')
        n--;
    return base_asprintf("%.*s%s", (int)n, map->to, rest);
}

const char *analyze_map_file(struct analyze_map *map, const char *file)
{
    for (; map && file; map = map->next) {
        const size_t before = map->known.n;
        const int64_t at = base_strings_add(&map->known, file);
        if (map->known.n > before) {
            BASE_ARRAY_GROW(map->name, before, &map->room);
            map->name[at] = rename_file(map, file);
        }
        file = map->name[at] ? map->name[at] : file;
    }
    return file;
}

void analyze_map_free(struct analyze_map *map)
{
    while (map) {
        struct analyze_map *next = map->next;
        for (size_t i = 0; i < map->known.n; i++)
            free(map->name[i]);
        free(map->name);
        base_strings_free(&map->known);
        free(map->from);
        free(map->to);
        free(map);
        map = next;
    }
}
