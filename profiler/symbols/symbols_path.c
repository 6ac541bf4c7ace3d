/* symbols_path.c: see symbols_path.h. */
#include "symbols_path.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (size_t)h;
}

static bool make_room(struct symbols_pool *pool)
{
    if (2 * (pool->n + 1) <= pool->room)
        return true;
    size_t room = pool->room ? 2 * pool->room : 64;
    char **slot = calloc(room, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < pool->room; i++) {
        if (!pool->slot[i])
            continue;
        size_t at = hash(pool->slot[i]) & (room - 1);
        while (slot[at])
            at = (at + 1) & (room - 1);
        slot[at] = pool->slot[i];
    }
    free(pool->slot);
    pool->slot = slot;
    pool->room = room;
    return true;
}

const char *symbols_pool_add(struct symbols_pool *pool, const char *text)
{
    if (!make_room(pool))
        return NULL;
    size_t at = hash(text) & (pool->room - 1);
    while (pool->slot[at]) {
        if (strcmp(pool->slot[at], text) == 0)
            return pool->slot[at];
        at = (at + 1) & (pool->room - 1);
    }
    pool->slot[at] = strdup(text);
    if (pool->slot[at])
        pool->n++;
    return pool->slot[at];
}

/* Drops the last component of out[0..n), a path without a trailing slash; returns its new
 * length. */
static size_t drop_last(const char *out, size_t n)
{
    while (n > 0 && out[n - 1] != '/')
        n--;
    return n > 0 ? n - 1 : 0;
}

const char *symbols_pool_add_path(struct symbols_pool *pool, const char *directory,
                                  const char *path)
{
    size_t before = directory ? strlen(directory) + 1 : 0, length = before + strlen(path), n = 0;
    /* The joined path, then its canonical spelling. */
    char *joined = malloc(2 * (length + 2));
    if (!joined)
        return NULL;
    char *out = joined + length + 2;
    snprintf(joined, length + 2, "%s%s%s", directory ? directory : "", directory ? "/" : "", path);
    bool absolute = joined[0] == '/';
    for (const char *at = joined; *at;) {
        size_t m = strcspn(at, "/");
        bool up = m == 2 && at[0] == '.' && at[1] == '.';
        bool can_go_up = n > 0 && !(n >= 2 && out[n - 1] == '.' && out[n - 2] == '.' &&
                                    (n == 2 || out[n - 3] == '/'));
        if (up && can_go_up) {
            n = drop_last(out, n);
        } else if (m > 0 && !(m == 1 && at[0] == '.') && !(up && absolute)) {
            if (n > 0 || absolute)
                out[n++] = '/';
            memcpy(out + n, at, m);
            n += m;
        }
        at += m;
        at += strspn(at, "/");
    }
    if (n == 0)
        out[n++] = absolute ? '/' : '.';
    out[n] = '\0';
    const char *kept = symbols_pool_add(pool, out);
    free(joined);
    return kept;
}

void symbols_pool_free(struct symbols_pool *pool)
{
    for (size_t i = 0; i < pool->room; i++)
        free(pool->slot[i]);
    free(pool->slot);
    *pool = (struct symbols_pool){0};
}
