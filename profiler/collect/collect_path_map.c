/* collect_path_map.c: which call paths a file has, and under which numbers. */
#include "collect_paths.h"

#include "collect.h"

#include <stdlib.h>
#include <string.h>

/* An array with room for n elements, its new ones 0. False: no memory. */
static bool path_map_reserve(uint32_t **array, uint32_t *room, uint32_t n)
{
    if (n <= *room)
        return true;
    uint32_t more = 2 * *room > n ? 2 * *room : n < 64 ? 64 : n;
    uint32_t *bigger = realloc(*array, more * sizeof *bigger);
    if (bigger == NULL)
        return false;
    memset(bigger + *room, 0, (more - *room) * sizeof *bigger);
    *array = bigger;
    *room = more;
    return true;
}

uint32_t collect_path_map_id(const struct collect_path_map *map, uint32_t path)
{
    return path < map->room ? map->id[path] : 0;
}

bool collect_path_map_add(struct collect_path_map *map, uint32_t path)
{
    uint32_t frames = 0;
    if (path == 0 || collect_path_map_id(map, path) != 0)
        return true;
    for (uint32_t at = path; at != 0 && collect_path_map_id(map, at) == 0;
         at = collect_path_at(at).parent)
        frames++;
    if (!path_map_reserve(&map->id, &map->room, path + 1) ||
        !path_map_reserve(&map->listed, &map->n_room, map->n + frames))
        return false;
    map->n += frames;
    uint32_t last = map->n; /* the outermost frame gets the first number */
    for (uint32_t at = path; frames > 0; frames--, at = collect_path_at(at).parent) {
        map->listed[last - 1] = at;
        map->id[at] = last--;
    }
    return true;
}

void collect_path_map_free(struct collect_path_map *map)
{
    free(map->id);
    free(map->listed);
    *map = (struct collect_path_map){.refused_before = map->refused_before};
}
