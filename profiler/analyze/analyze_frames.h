/* analyze_frames.h: frames of call paths as places of the source, each place once.
 *
 * Private to profiler/analyze.
 */
#ifndef PROFILER_ANALYZE_FRAMES_H
#define PROFILER_ANALYZE_FRAMES_H

#include "analyze.h"
#include "analyze_places.h"
#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"

struct analyze_frame {
    struct symbols_place place; /* line 0 where lines are combined */
    bool cut;                   /* stands for frames that are left out */
    bool hidden;                /* the system's */
    bool focus, ignore;         /* for the tree's use */
};

/* The frames of an address, the innermost first: `n` of them from `first` on in frames->list. */
struct analyze_chain {
    uint64_t pc;
    uint32_t line, first, n;
    bool own;
};

struct analyze_frames {
    const struct analyze_result *analysis;
    bool combine, system;
    struct analyze_frame *frame;
    size_t n_frames, room_frames;
    uint32_t *list;
    size_t n_list, room_list;
    struct analyze_chain *chain;
    size_t n_chains, room_chains;
    struct base_table frames, chains; /* by hash */
};

/* The frames of a return address; line: of the call, where it is known. own: of a row, and so never
 * hidden. Valid until the next call. Address 0 is a frame that stands for outer ones. */
const struct analyze_chain *analyze_frames_of(struct analyze_frames *frames, uint64_t pc,
                                              uint32_t line, bool own);
/* The number of a frame that is no code, but this name. */
uint32_t analyze_frames_named(struct analyze_frames *frames, const char *name);
void analyze_frames_free(struct analyze_frames *frames);

/* A library of the system, by its folder. */
bool analyze_is_system(const char *module);

#endif
