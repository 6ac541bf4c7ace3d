/* tape_observe.h: tapes enter and leave the list that an observer's end walks.
 *
 * May include: tape_account.h.
 */
#ifndef TAPE_OBSERVE_H
#define TAPE_OBSERVE_H

#include "tape_account.h"

/* Numbers the tape and its thread, and lists it. */
void tape_observe_add(struct tape *t);
/* Takes it off the list; its rows are flushed a last time. */
void tape_observe_remove(struct tape *t);

#endif
