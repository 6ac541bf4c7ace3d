/* tape_due.h: records that a sweep runs not in their turn, but as soon as the adjoints of their
 * operands, which are leaves, are complete: behind the oldest record that reads one of them.
 *
 * Invariant: they run in the order of the recording, reversed, whoever reads their operands: each
 * waits for the newer ones too.
 */
#ifndef TAPE_DUE_H
#define TAPE_DUE_H

#include "tape_part.h"

struct tape_due {
    uint32_t record, behind; /* it runs when the sweep has passed that one */
    uint64_t held;           /* bytes outside the tape that it uses until the sweep ends */
};

struct tape_dues {
    struct tape_due *of; /* [n], of the sweep under way, in the order in which they run */
    uint32_t n, size, done;
    uint32_t behind; /* of the next; UINT32_MAX: there is none */
    uint32_t
        *reader; /* [n_values] the oldest record that reads a value; while a sweep is planned */
    uint32_t readers;
    bool any; /* such a record was made since the tape began */
};

extern const struct tape_part tape_dues_part;

/* A record that is due behind the one at `at`, which the sweep has passed: it is to run now. NULL:
 * there is none. */
struct tape_record *tape_due_take(struct tape *t);
/* The record that was taken last, of this row, holds so many bytes outside the tape until the sweep
 * ends: they are charged as adjoints. False: they are beyond the budget, as the error says. */
bool tape_due_hold(struct tape *t, uint32_t row, uint64_t bytes);
static inline struct tape_record *tape_due_next(struct tape *t, uint32_t at)
{
    return __builtin_expect(t->dues->behind == at, 0) ? tape_due_take(t) : NULL;
}

#endif
