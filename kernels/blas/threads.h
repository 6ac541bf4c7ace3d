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

/* Into how many parts a loop over `bytes` of an array is best divided: 1 unless it is large. */
int threads_parts(uint64_t bytes);

/* Runs all parts, on the pool where it is free, else on the caller; returns when all are done. Any
 * thread. */
void threads_run(int parts, threads_part *run, void *job);

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

#endif
