/* symbols_path.h: paths in one canonical spelling, and a pool that owns them.
 *
 * May include: nothing. Private to profiler/symbols.
 * Invariant: two equal strings from one pool are the same pointer.
 */
#ifndef PROFILER_SYMBOLS_PATH_H
#define PROFILER_SYMBOLS_PATH_H

#include <stddef.h>

struct symbols_pool {
    char **slot; /* open addressing; NULL is free */
    size_t n, room;
};

/* The pool's copy of text, or NULL when memory is exhausted. */
const char *symbols_pool_add(struct symbols_pool *pool, const char *text);

/* As symbols_pool_add, of directory/path (directory: or NULL) without "//", "/./" and "x/../"
 * (by its text: links are not followed). */
const char *symbols_pool_add_path(struct symbols_pool *pool, const char *directory,
                                  const char *path);

void symbols_pool_free(struct symbols_pool *pool);

#endif
