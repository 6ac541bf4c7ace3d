/* tape_replay.h: a recording of ops that is computed again, on what leaves and constants hold now.
 *
 * While it is recorded (tape.replays), ops leave records whether they need a gradient or not, and
 * until it is dropped what records read or write keeps its buffer.
 *
 * Invariant: the records of a whole program are the oldest of the tape, and their kinds can replay
 * them; what they read that was made since its begin is theirs, or was given with a call.
 */
#ifndef TAPE_REPLAY_H
#define TAPE_REPLAY_H

#include "tape_part.h"

extern const char tape_replay_op[];
extern const struct tape_part tape_replay_part;

/* Begins a program, on a tape without records. */
enum tape_status tape_replay_begin(struct tape *t, struct tape_site site);
/* It is complete, or the tape's error says what cannot be computed again; then there is none. */
enum tape_status tape_replay_end(struct tape *t, struct tape_site site);
/* Whether there is one, behind which nothing was recorded. what: the call that asks. */
enum tape_status tape_replay_ready(struct tape *t, const char *what, struct tape_site site);
/* x, a leaf or a constant that borrows, reads another array from now on, or copies it where it has
 * one of its own. A replay follows. */
void tape_replay_bind(struct tape *t, uint32_t x, const void *data);
/* Computes it again, where it is ready. */
enum tape_status tape_replay(struct tape *t, struct tape_site site);
/* The calls of its kernels, told to tape.teller. False: the tape's error says why not. */
bool tape_replay_tell(struct tape *t);
/* The user's code reads x: what it does with the number, no replay does. what: static storage. */
void tape_replay_reads(struct tape *t, uint32_t x, const char *what, struct tape_site site);

#endif
