/* tape_poison.h: numbers that could not be recorded, and the failure that each stems from.
 *
 * A poisoned number is NaN, its index is 0 and its tag the number of that failure: not 0, and below
 * every tag of a recording, whose upper half is a slot. Whatever it is given to fails with that
 * same failure, also on another tape, in another thread, and after the error was cleared.
 */
#ifndef TAPE_POISON_H
#define TAPE_POISON_H

#include "tape_types.h"

/* The tag of numbers that stem from this failure. Any thread may call it for an error of its own.
 */
uint32_t tape_poison(struct tape_error *error);

/* The failure that a poisoned number stems from. False: it is none, or 64 failures have come since,
 * so that its message is gone. */
bool tape_poison_read(uint32_t index, uint32_t tag, struct tape_error *error);

/* That failure becomes the tape's error, unless it has one. False: as above, and it has none. */
bool tape_poison_fail(struct tape *t, uint32_t index, uint32_t tag);

/* In the child of a fork: the lock may be held by a thread that does not exist there. */
void tape_poison_forget(void);

#endif
