/* tape_memory.h: where a tape's memory comes from: address space, huge pages, the default budget.
 *
 * May include: nothing of the project. The vtable exists so that tests can let any allocation fail.
 */
#ifndef TAPE_MEMORY_H
#define TAPE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape_memory {
    /* Reserves address space of n bytes (a multiple of 2 MiB), zero-filled when touched, or NULL. */
    void *(*reserve)(size_t n, bool huge_pages, void *payload);
    void (*unreserve)(void *p, size_t n, void *payload);
    /* As realloc(p, n) and free(p), for the small tables. */
    void *(*resize)(void *p, size_t n, void *payload);
    void (*release)(void *p, void *payload);
    void *payload;
};

/* mmap and malloc. */
extern const struct tape_memory tape_memory_system;

/* 0.9 of the smaller of MemAvailable and what the control group still allows; never 0. */
uint64_t tape_memory_default_budget(void);

#endif
