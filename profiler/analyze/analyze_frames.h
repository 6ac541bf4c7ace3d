/* analyze_frames.h: frames of call paths as places of the source, each place once.
 *
 * May include: analyze_places.h. Private to profiler/analyze.
 */
#ifndef PROFILER_ANALYZE_FRAMES_H
#define PROFILER_ANALYZE_FRAMES_H

#include "analyze.h"
#include "analyze_places.h"

struct analyze_frame {
    struct prof_place place; /* line 0 where lines are combined */
    bool cut;                /* stands for outer frames */
    bool hidden;             /* the system's */
    bool focus, ignore;      /* for the tree's use */
};

/* The frames of an address, the innermost first: `n` of them from `first` on in frames->list. */
struct analyze_chain {
    uint64_t pc;
    uint32_t line, first, n;
    bool own;
};

struct analyze_frames {
    const struct prof_analysis *analysis;
    bool combine, system;
    struct analyze_frame *frame;
    size_t n_frames, room_frames;
    uint32_t *list;
    size_t n_list, room_list;
    struct analyze_chain *chain;
    size_t n_chains, room_chains;
    uint32_t *frame_slot, *chain_slot; /* hash tables: place plus 1 */
    size_t n_frame_slots, n_chain_slots;
};

/* The frames of a return address; line: of the call, where it is known. own: of a row, and so never
 * hidden. NULL when memory is exhausted; valid until the next call. Address 0 is a frame that
 * stands for outer ones. */
const struct analyze_chain *analyze_frames_of(struct analyze_frames *frames, uint64_t pc,
                                              uint32_t line, bool own);
void analyze_frames_free(struct analyze_frames *frames);

/* A library of the system, by its folder. */
bool analyze_is_system(const char *module);

/* An array with room for one more element, or NULL. */
void *analyze_grow(void *array, size_t n, size_t *room, size_t size);
/* A hash table of places plus 1 with at least twice as many slots as it will hold, or NULL;
 * `hash` gives that of place i. The old table is freed. */
uint32_t *analyze_rehash(uint32_t *slot, size_t *n_slots, size_t n,
                         uint64_t (*hash)(const void *payload, size_t i), const void *payload);

#endif
