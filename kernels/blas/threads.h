/* threads.h: how many threads OpenBLAS and large loops use, and the pool that those loops share.
 *
 * For kernels/, and for sweeps over several tapes. The pool is the one mutable state of kernels/:
 * its threads are made when a loop first wants them, sleep between loops, and end with the
 * process. In the child of a fork there are none; it makes its own.
 */
#ifndef THREADS_H
#define THREADS_H

#include "kernel.h"

/* Part `part` of `parts` of a loop; parts touch nothing in common that is written. */
typedef void threads_part(void *job, int part, int parts);

/* Most parts of a loop that is shared. */
enum { THREADS_MOST_PARTS = 4 * KERNEL_MAX_THREADS };

/* What a loop takes on one thread, in ns, about: over so many arrays of `bytes`, with so many
 * operations an element as the ops' tables count them. Measured in the second-level cache. */
static inline uint64_t threads_ns(uint64_t bytes, int arrays, int flops)
{
    return bytes / 16 * (uint64_t)(5 * arrays + flops) / 10;
}

/* Into how many parts a loop that takes so long on one thread is best divided: 1 where waking
 * another would cost more than it saves, where the pool is taken, and where there is one thread. */
int threads_parts(uint64_t ns);

/* Runs all parts, by kernel_threads() threads at most, on the pool where it is free, else on the
 * caller; returns when all are done. Any thread. */
void threads_run(int parts, threads_part *run, void *job);

/* Waits for a loop, or for its end, in which a thread of the pool or a caller looked for some us
 * before it slept: none where more threads are asked for than there are processors. Any thread. */
uint64_t threads_spins(void);

/* For a profiler that asks what each thread does. caller() describes what the thread that shares
 * its loop is doing (NULL: nothing). A thread of the pool calls enter() with that before its parts
 * of the loop, and leave() after them. */
struct threads_watch {
    void *(*caller)(void);
    void (*enter)(void *of);
    void (*leave)(void);
};

/* From the next loop on; NULL: nobody asks. Any thread. */
void threads_watch(const struct threads_watch *watch);

/* The number that kernel_set_threads was last asked for; 0: never. */
int threads_asked(void);
void threads_ask(int n);

/* The number that OpenBLAS had before it was held to fewer; 0: it is not held. */
void threads_keep(int n);

#endif
