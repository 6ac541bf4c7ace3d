/* tape_sweep.h: the one driver of reverse sweeps, for those who know where they begin.
 *
 * A sweep begins at a value (tape_sweep.c) or at scalars (tape_sweep_scalars.c). It is refused,
 * verified, timed and concluded in the same way.
 */
#ifndef TAPE_SWEEP_H
#define TAPE_SWEEP_H

#include "tape.h"

struct tape_sweep {
    /* Seeds and sweeps. False: it has failed, and the tape's error says why, or there was no
     * memory. */
    bool (*run)(struct tape *t, struct tape_sweep *s);
    const char *what; /* the call: static storage, a name in the account */
    struct tape_site site;
    uint32_t y, seed;    /* value that it begins at, and its seed (0: ones); or 0 */
    const void *planted; /* or its n_seeds seeds, one behind the other */
    uint32_t n_seeds;
    const uint32_t *root; /* [n_roots] scalars that it begins at */
    int64_t n_roots;
    const double *seeds;  /* [n_roots], or NULL: ones */
    bool again;           /* what it reads was looked at, and nobody can have changed it since */
    bool reads_values;    /* from scalars it may come to tensors */
    bool releases;        /* it gives up the values that it has passed */
    bool grows_gradients; /* else its adjoints are read, and no gradient changes */
    void *of;             /* the caller's own */
    /* The driver's: */
    uint32_t own; /* row of what is no pullback's */
    uint64_t begun;
    uint64_t own_ticks; /* of the tape, then */
    uint64_t stamp;     /* the end of what the account knows of; chained through all pullbacks */
    uint64_t sweeps;    /* of the records, that a Jacobian was made of */
};

enum tape_status tape_sweep_drive(struct tape *t, struct tape_sweep *s);

/* Runs the pullbacks of the records from the last one up to `end` (UINT32_MAX: all). False: one has
 * failed; no adjoint of their outputs is left in either case. */
bool tape_sweep_behind(struct tape *t, uint32_t end, uint64_t *stamp);

/* Where sweeps from tensors end: while a function is differentiated by itself, what is older is
 * constant. */
static inline uint32_t tape_sweep_oldest(const struct tape *t)
{
    return t->fixed.n_values ? t->fixed.last_record : UINT32_MAX;
}

#endif
