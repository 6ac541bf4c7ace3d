/* tape_told.h: the kernels' calls of a program of tensors and of a sweep behind it, told one by one
 * and not run.
 *
 * The sweep is that of tape_inplace.c, with its buffers: so what is told adds up to what a sweep
 * computes, bit for bit. Arrays that no op of the program computes, seeds and leaves' gradients lie
 * at addresses of their own meanwhile, which lead nowhere: arrays that the user has given twice are
 * two, and nothing is written.
 *
 * Invariant: afterwards values, gradients, buffers in use and the account are what they were.
 */
#ifndef TAPE_TOLD_H
#define TAPE_TOLD_H

#include "tape_replay.h"
#include "tape_teller.h"

/* Whether the program can be told: each record is an op's, and no function of the user's sees an
 * adjoint. `what` is the call that asks, and names the line that cannot. */
enum tape_status tape_told_verify(struct tape *t, const char *what, struct tape_site site);

/* Tells the whole program, then a sweep from y[m], different values. False: there was no memory; or
 * the tape's error says what has failed. */
bool tape_tell(struct tape *t, struct tape_teller *to, uint32_t m, const uint32_t *y);

#endif
