/* tape_arena.h: one reservation of address space in three parts: value entries, records, buffers.
 *
 * Entries and records are bump-allocated and only ever dropped from the end; buffers are
 * bump-allocated in size classes, 64-byte aligned, and can be freed one by one.
 *
 * Invariant: live = bytes handed out of all three parts and not yet freed, never above budget.
 * Free blocks lie below buffer_top, each in the list of its class.
 */
#ifndef TAPE_ARENA_H
#define TAPE_ARENA_H

#include "tape_memory.h"

enum {
    TAPE_ARENA_CLASSES = 8 * 56, /* eight per doubling */
    TAPE_ENTRY_SHARE = 8,        /* a part in eight of the reservation for entries, */
    TAPE_RECORD_SHARE = 8        /* one for records, six for buffers */
};

struct tape_arena_block {
    struct tape_arena_block *next;
};

struct tape_arena {
    const struct tape_memory *memory;
    char *base;
    size_t reserved;
    char *entry_base, *entry_top, *entry_end;
    char *record_base, *record_top, *record_end;
    char *buffer_base, *buffer_top, *buffer_end;
    uint64_t live, peak, budget, touched;
    uint64_t beyond;  /* budget - beyond is that of memory, mod 2^64: some of it may be set aside */
    uint64_t refused; /* bytes last asked for in vain, until an error has said so */
    /* Makes room in the budget for n bytes more, if it can; NULL: it cannot. */
    bool (*room)(struct tape_arena *a, uint64_t n);
    bool huge_pages;
    uint32_t n_classes; /* lists below this index may be in use */
    struct tape_arena_block *free[TAPE_ARENA_CLASSES];
};

/* The ends as they were. */
struct tape_arena_mark {
    char *entry_top, *record_top, *buffer_top;
    uint64_t live;
};

/* Reserves about `reserve` bytes (0: 64 GiB), halved until it succeeds. 0, or -1: refused, or the
 * memory is not aligned to a cache line, as every buffer must be. */
int tape_arena_open(struct tape_arena *a, const struct tape_memory *memory, uint64_t reserve,
                    uint64_t budget, bool huge_pages);
void tape_arena_close(struct tape_arena *a);

/* Counts n bytes that lie elsewhere as handed out. False: they are beyond the budget. */
static inline bool tape_arena_charge(struct tape_arena *a, uint64_t n)
{
    if (__builtin_expect(a->live > a->budget || n > a->budget - a->live, 0) &&
        !(a->room && a->room(a, n)))
        return false;
    a->live += n;
    if (a->live > a->peak)
        a->peak = a->live;
    return true;
}

/* n bytes from *top on. */
static inline void *tape_arena_bump(struct tape_arena *a, char **top, const char *end, size_t n)
{
    if (__builtin_expect((size_t)(end - *top) < n || !tape_arena_charge(a, n), 0)) {
        a->refused = n;
        return NULL;
    }
    void *p = *top;
    *top += n;
    return p;
}

/* n bytes of entries or records, 8-byte aligned (n a multiple of 8), or NULL: out of room or
 * budget. */
static inline void *tape_arena_entry(struct tape_arena *a, size_t n)
{
    return tape_arena_bump(a, &a->entry_top, a->entry_end, n);
}

static inline void *tape_arena_record(struct tape_arena *a, size_t n)
{
    return tape_arena_bump(a, &a->record_top, a->record_end, n);
}

/* The bytes that a buffer of n bytes takes: its size class. */
uint64_t tape_arena_class_bytes(uint64_t n);
/* A buffer of n bytes, contents undefined, or NULL. n = 0 takes the least class. */
void *tape_arena_buffer(struct tape_arena *a, uint64_t n);
void tape_arena_free(struct tape_arena *a, void *buffer, uint64_t n);

static inline struct tape_arena_mark tape_arena_take_mark(const struct tape_arena *a)
{
    return (struct tape_arena_mark){a->entry_top, a->record_top, a->buffer_top, a->live};
}
/* Drops all that lies behind the mark. The caller has freed the buffers that were allocated
 * since the mark and lie before its end (in a block that was free then), but need not have freed
 * others. */
void tape_arena_rewind(struct tape_arena *a, const struct tape_arena_mark *mark);
/* Drops the entries and records behind the mark alone; buffers stay. */
void tape_arena_cut(struct tape_arena *a, const struct tape_arena_mark *mark);
void tape_arena_reset(struct tape_arena *a);

#endif
