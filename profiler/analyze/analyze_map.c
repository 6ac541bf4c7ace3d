/* analyze_map.c: see analyze_map.h. */
#include "analyze_map.h"

#include "analyze_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that was asked for; name: NULL where no rule is about it. */
struct known {
    char *file, *name;
};

/* One rule; the next is about what it makes of the files. */
struct analyze_map {
    struct analyze_map *next;
    char *from, *to;
    struct known *known;
    size_t n_known, room;
    uint32_t *slot; /* places in `known`, plus 1 */
    size_t n_slots;
    bool no_memory;
};

/* What follows the folder `from` in file, or NULL: it does not lie there. */
static const char *below(const char *file, const char *from)
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
    struct analyze_map *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->from = strdup(from);
    made->to = strdup(to);
    if (!made->from || !made->to) {
        analyze_map_free(made);
        return NULL;
    }
    while (*map)
        map = &(*map)->next;
    return *map = made;
}

/* What the rule makes of the file; *name: NULL where it is not about it. */
static bool rename_file(const struct analyze_map *map, const char *file, char **name)
{
    const char *rest = below(file, map->from);
    *name = NULL;
    if (!rest)
        return true;
    size_t n = strlen(map->to);
    while (n > 0 && map->to[n - 1] == '/' && *rest == '/')
        n--;
    if (asprintf(name, "%.*s%s", (int)n, map->to, rest) >= 0)
        return true;
    *name = NULL;
    return false;
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h ^ h >> 29;
}

static uint64_t hash_known(const void *payload, size_t i)
{
    const struct analyze_map *map = payload;
    return hash_text(map->known[i].file);
}

/* Adds what the rules make of the file; NULL when memory is exhausted. */
static const struct known *add_known(struct analyze_map *map, const char *file)
{
    struct known *known = analyze_grow(map->known, map->n_known, &map->room, sizeof *known);
    if (!known)
        return NULL;
    map->known = known;
    known += map->n_known;
    known->file = strdup(file);
    if (!known->file || !rename_file(map, file, &known->name)) {
        free(known->file);
        return NULL;
    }
    map->n_known++;
    return known;
}

static const struct known *find(struct analyze_map *map, const char *file)
{
    uint32_t *slot = analyze_rehash(map->slot, &map->n_slots, map->n_known, hash_known, map);
    if (!slot)
        return NULL;
    map->slot = slot;
    uint64_t h = hash_text(file);
    for (; slot[h & (map->n_slots - 1)]; h++) {
        const struct known *known = &map->known[slot[h & (map->n_slots - 1)] - 1];
        if (strcmp(known->file, file) == 0)
            return known;
    }
    const struct known *made = add_known(map, file);
    if (made)
        slot[h & (map->n_slots - 1)] = (uint32_t)map->n_known;
    return made;
}

const char *analyze_map_file(struct analyze_map *map, const char *file)
{
    for (; map && file; map = map->next) {
        const struct known *known = find(map, file);
        map->no_memory |= known == NULL;
        file = known && known->name ? known->name : file;
    }
    return file;
}

bool analyze_map_no_memory(const struct analyze_map *map)
{
    bool no_memory = false;
    for (; map; map = map->next)
        no_memory |= map->no_memory;
    return no_memory;
}

void analyze_map_free(struct analyze_map *map)
{
    while (map) {
        struct analyze_map *next = map->next;
        for (size_t i = 0; i < map->n_known; i++) {
            free(map->known[i].file);
            free(map->known[i].name);
        }
        free(map->known);
        free(map->slot);
        free(map->from);
        free(map->to);
        free(map);
        map = next;
    }
}
