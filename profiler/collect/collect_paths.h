/* collect_paths.h: call paths as numbers: a prefix tree of return addresses, one for the process.
 *
 * Any thread; a number means the same stack for the life of the process, through any number of
 * profiles.
 */
#ifndef COLLECT_PATHS_H
#define COLLECT_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COLLECT_PATH_DEPTH = 1024,   /* the most frames of a path */
    COLLECT_PATH_NODES = 1 << 20 /* of the tree */
};

/* A path is its parent and one frame more; parent 0: the frame is the outermost. pc 0 stands for
 * frames that are left out: outermost, or where a tape has no row for all of the path. */
struct collect_path {
    uintptr_t pc; /* return address */
    uint32_t parent;
};

enum collect_unwinder { COLLECT_UNWIND_LIBUNWIND, COLLECT_UNWIND_FRAME_POINTERS };

/* Makes the first capture as fast as the others. Any number of times. */
void collect_paths_open(enum collect_unwinder unwinder);

/* The innermost frame that returns to `pc`, with all outwards of it, counts as `path`; frames from
 * `from` to before `to` right within it do not count. */
struct collect_path_root {
    uintptr_t pc, from, to;
    uint32_t path;
};

/* The path that led the calling thread to a call in the user's code that returns to `site`: at most
 * `depth` frames (1 to COLLECT_PATH_DEPTH) from there outwards. Keeps errno. Never fails: where the
 * stack cannot be followed, the path is the site alone behind a frame that says so; where the tree
 * is full, the nearest path outwards that is in it, perhaps 0. root: NULL: the stack as it is,
 * which is taken also where no frame returns to root->pc. */
uint32_t collect_path_here(enum collect_unwinder unwinder, unsigned depth, uintptr_t site,
                           const struct collect_path_root *root);

/* The path of n frames, the innermost first; cut: there were more outwards. */
uint32_t collect_path_of(const uintptr_t *frame, size_t n, bool cut);

/* How many there are: 1 to n, each with a smaller parent; and path i of them. */
uint32_t collect_paths_count(void);
struct collect_path collect_path_at(uint32_t i);
/* The outermost `keep` frames of a path that ends with the call that returns to `site`, one frame
 * that stands for those between, and the call; the path itself, if it has no more. 0: the tree is
 * full. */
uint32_t collect_path_cut(uint32_t path, uintptr_t site, unsigned keep);
/* A call has no row for its path. */
void collect_path_refuse(void);
/* How often a path is not the whole one, because a tape's rows or the tree were full. */
uint64_t collect_paths_refused(void);

/* Around fork(), in the order of pthread_atfork(). */
void collect_paths_before_fork(void);
void collect_paths_after_fork(void);

#endif
