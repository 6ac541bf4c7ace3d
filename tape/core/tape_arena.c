/* tape_arena.c: bump allocation in three parts of one reservation, and free lists by size class. */
#include "tape_arena.h"

#include <string.h>

enum {
    LEAST = 64,
    SMALL = 256 << 10 /* of each part lies in small pages: a tiny tape need not clear 6 MiB */
};

/* Lays a part of the reservation from *at on: its first SMALL bytes before a huge page begins, the
 * rest in huge pages; a part too short for that lies as it comes. */
static void arena_lay(struct tape_arena *a, uintptr_t *at, uint64_t bytes, bool huge, char **base,
                      char **end)
{
    uintptr_t aligned = (*at + SMALL + TAPE_HUGE_PAGE - 1) / TAPE_HUGE_PAGE * TAPE_HUGE_PAGE;
    uintptr_t last = (*at + bytes) / TAPE_HUGE_PAGE * TAPE_HUGE_PAGE;
    bool parted = huge && a->memory->advise_huge && last > aligned;
    *base = (char *)(parted ? aligned - SMALL : *at);
    *end = (char *)(*at + bytes);
    *at += bytes;
    if (parted)
        a->memory->advise_huge((void *)aligned, last - aligned, a->memory->payload);
}

int tape_arena_open(struct tape_arena *a, const struct tape_memory *memory, uint64_t reserve,
                    uint64_t budget, bool huge_pages)
{
    memset(a, 0, sizeof *a);
    a->memory = memory;
    a->budget = budget;
    a->huge_pages = huge_pages;
    uint64_t n = reserve ? reserve : (uint64_t)64 << 30;
    if (n <= UINT64_MAX - TAPE_HUGE_PAGE)
        n += TAPE_HUGE_PAGE - 1;
    n = n / TAPE_HUGE_PAGE * TAPE_HUGE_PAGE;
    /* Under RLIMIT_AS or strict overcommit a large reservation is refused: ask for less. */
    while (!(a->base = memory->reserve((size_t)n, memory->payload))) {
        n = n / 2 / TAPE_HUGE_PAGE * TAPE_HUGE_PAGE;
        if (n == 0)
            return -1;
    }
    a->reserved = (size_t)n;
    if ((uintptr_t)a->base % LEAST != 0) {
        tape_arena_close(a);
        return -1;
    }
    uintptr_t at = (uintptr_t)a->base;
    arena_lay(a, &at, n / TAPE_ENTRY_SHARE, huge_pages, &a->entry_base, &a->entry_end);
    arena_lay(a, &at, n / TAPE_RECORD_SHARE, huge_pages, &a->record_base, &a->record_end);
    arena_lay(a, &at, (uintptr_t)a->base + n - at, huge_pages, &a->buffer_base, &a->buffer_end);
    a->entry_top = a->entry_base;
    a->record_top = a->record_base;
    a->buffer_top = a->buffer_base;
    return 0;
}

void tape_arena_close(struct tape_arena *a)
{
    if (a->base)
        a->memory->unreserve(a->base, a->reserved, a->memory->payload);
    a->base = NULL;
}

static void *arena_refuse(struct tape_arena *a, uint64_t n)
{
    a->refused = n;
    return NULL;
}

/* Class k of n bytes: eight steps per doubling, so that at most an eighth is lost. */
static uint32_t class_of(uint64_t n, uint64_t *bytes)
{
    int shift = 6; /* up to 1 KiB the steps are the alignment */
    n += n == 0;
    if (n > 16 * LEAST)
        shift = 63 - __builtin_clzll(n - 1) - 3; /* n - 1 in [8, 16) << shift */
    uint64_t steps = (n + ((uint64_t)1 << shift) - 1) >> shift;
    *bytes = steps << shift;
    return (uint32_t)((shift - 6) * 8) + (uint32_t)steps;
}

uint64_t tape_arena_class_bytes(uint64_t n)
{
    uint64_t bytes;
    class_of(n, &bytes);
    return bytes;
}

void *tape_arena_buffer(struct tape_arena *a, uint64_t n)
{
    uint64_t bytes;
    if (__builtin_expect(n > (uint64_t)1 << 62, 0))
        return arena_refuse(a, n);
    uint32_t k = class_of(n, &bytes);
    struct tape_arena_block *b = a->free[k];
    if (b) {
        if (!tape_arena_charge(a, bytes))
            return arena_refuse(a, bytes);
        a->free[k] = b->next;
        return b;
    }
    if (__builtin_expect(
            (uint64_t)(a->buffer_end - a->buffer_top) < bytes || !tape_arena_charge(a, bytes), 0))
        return arena_refuse(a, bytes);
    void *p = a->buffer_top;
    a->buffer_top += bytes;
    if ((uint64_t)(a->buffer_top - a->buffer_base) > a->touched)
        a->touched = (uint64_t)(a->buffer_top - a->buffer_base);
    if (k >= a->n_classes)
        a->n_classes = k + 1;
    return p;
}

void tape_arena_free(struct tape_arena *a, void *buffer, uint64_t n)
{
    uint64_t bytes;
    uint32_t k = class_of(n, &bytes);
    struct tape_arena_block *b = buffer;
    b->next = a->free[k];
    a->free[k] = b;
    a->live -= bytes;
}

void tape_arena_rewind(struct tape_arena *a, const struct tape_arena_mark *mark)
{
    a->entry_top = mark->entry_top;
    a->record_top = mark->record_top;
    a->live = mark->live;
    if (a->buffer_top == mark->buffer_top)
        return;
    a->buffer_top = mark->buffer_top;
    for (uint32_t k = 0; k < a->n_classes; k++) {
        struct tape_arena_block **link = &a->free[k];
        while (*link) {
            if ((char *)*link >= a->buffer_top)
                *link = (*link)->next;
            else
                link = &(*link)->next;
        }
    }
}

void tape_arena_cut(struct tape_arena *a, const struct tape_arena_mark *mark)
{
    a->live -= (uint64_t)(a->entry_top - mark->entry_top);
    a->live -= (uint64_t)(a->record_top - mark->record_top);
    a->entry_top = mark->entry_top;
    a->record_top = mark->record_top;
}

void tape_arena_reset(struct tape_arena *a)
{
    a->entry_top = a->entry_base;
    a->record_top = a->record_base;
    a->buffer_top = a->buffer_base;
    a->live = 0;
    memset(a->free, 0, a->n_classes * sizeof a->free[0]);
    a->n_classes = 0;
}
