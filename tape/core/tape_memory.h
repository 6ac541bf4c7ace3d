/* tape_memory.h: where a tape's memory comes from: address space, huge pages, the default budget.
 *
 * The vtable exists so that tests can let any allocation fail.
 */
#ifndef TAPE_MEMORY_H
#define TAPE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape_memory {
    /* Reserves address space of n bytes (a multiple of TAPE_HUGE_PAGE), zero-filled when
     * touched and aligned to 64 bytes, or NULL. */
    void *(*reserve)(size_t n, void *payload);
    void (*unreserve)(void *p, size_t n, void *payload);
    /* As realloc(p, n) and free(p), for the small tables. */
    void *(*resize)(void *p, size_t n, void *payload);
    void (*release)(void *p, void *payload);
    void *payload;
    /* Advises huge pages for a part of a reservation; NULL: none. */
    void (*advise_huge)(void *p, size_t n, void *payload);
};

/* The array with room for n elements of `each` bytes. *size: how many it has room for, which
 * doubles where it is too few. NULL where memory ends: the array is then as it was. */
void *tape_array_reserve(const struct tape_memory *memory, void *array, uint32_t n, uint32_t *size,
                         size_t each);

enum { TAPE_HUGE_PAGE = 2 << 20 };

/* mmap and malloc. */
extern const struct tape_memory tape_memory_system;

/* 0.9 of the smaller of MemAvailable and what the control group still allows, 64 GiB where neither
 * is known; at least TAPE_HUGE_PAGE. */
uint64_t tape_memory_default_budget(void);

/* The same with /proc and /sys looked for under a folder, "" for the system's own; for tests. */
uint64_t tape_memory_budget_under(const char *root);

#endif
