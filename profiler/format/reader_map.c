/* reader_map.c: the reader's arrays that grow and its map of numbers; see reader_state.h. */
#include "reader_state.h"

#include <stdlib.h>

void *reader_grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    size_t want = *room ? 2 * *room : 8;
    void *bigger = want <= SIZE_MAX / size ? realloc(array, want * size) : NULL;
    if (bigger)
        *room = want;
    return bigger;
}

static size_t hash(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(key ^ (key >> 32));
}

/* The key's slot, or the free one where it belongs. */
static struct reader_map_slot *find_slot(const struct reader_map *map, uint64_t key)
{
    size_t at = hash(key) & (map->room - 1);
    while (map->slot[at].place != 0 && map->slot[at].key != key)
        at = (at + 1) & (map->room - 1);
    return &map->slot[at];
}

int64_t reader_map_find(const struct reader_map *map, uint64_t key)
{
    return map->room ? (int64_t)find_slot(map, key)->place - 1 : -1;
}

enum reader_status reader_map_add(struct reader_map *map, uint64_t key, uint32_t place)
{
    if (place == UINT32_MAX)
        return READER_BAD;
    if (2 * (map->n + 1) > map->room) {
        struct reader_map bigger = {.n = map->n, .room = map->room ? 2 * map->room : 16};
        bigger.slot = calloc(bigger.room, sizeof *bigger.slot);
        if (!bigger.slot)
            return READER_NO_MEMORY;
        for (size_t i = 0; i < map->room; i++)
            if (map->slot[i].place != 0)
                *find_slot(&bigger, map->slot[i].key) = map->slot[i];
        free(map->slot);
        *map = bigger;
    }
    *find_slot(map, key) = (struct reader_map_slot){key, place + 1};
    map->n++;
    return READER_OK;
}

void reader_map_free(struct reader_map *map)
{
    free(map->slot);
    *map = (struct reader_map){0};
}
