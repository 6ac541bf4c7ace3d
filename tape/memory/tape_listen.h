/* tape_listen.h: functions of the user's that see an adjoint when a sweep has completed it.
 *
 * The adjoint of an op's result is complete when the sweep comes to the op, that of a leaf at the
 * end. A leaf's function sees what this sweep has brought: what was there before is put aside.
 *
 * Invariant: a value has at most one function, and TAPE_LISTENED if it has one. Functions of values
 * that are no more are found by their generation, and are dropped some time.
 */
#ifndef TAPE_LISTEN_H
#define TAPE_LISTEN_H

#include "tape_account.h"
#include "tape_part.h"

struct tape_listener {
    /* Calls the user's function. False: the tape's error says why. */
    bool (*call)(struct tape *t, const struct tape_listener *l, struct tape_value *v,
                 struct tape_site site);
    void (*callback)(void);
    void *payload;
    uint32_t slot; /* of the tape's handle */
    uint32_t value, generation, row;
    void *before; /* a leaf's gradient so far, while a sweep is under way; or NULL */
};

extern const char tape_listen_op[];

/* From now on l->call is called for x; l->callback NULL: nothing is any more. */
enum tape_status tape_listen(struct tape *t, uint32_t x, const struct tape_listener *l,
                             struct tape_site site);

/* A sweep that changes gradients begins. False: no memory. */
bool tape_listen_begin(struct tape *t);
/* The adjoint of v, which has TAPE_LISTENED, is complete. stamp: of the sweep. */
bool tape_listen_tell(struct tape *t, struct tape_value *v, uint64_t *stamp);
/* The sweep has passed all records: leaves. And it has ended, well or not. */
bool tape_listen_leaves(struct tape *t, uint64_t *stamp);
void tape_listen_end(struct tape *t);

extern const struct tape_part tape_listen_part;

#endif
