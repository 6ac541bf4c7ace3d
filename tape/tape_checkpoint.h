/* tape_checkpoint.h: a function of the user's as one record, which sweeps run again.
 *
 * May include: tape_call.h. Recorded are the values that the function was given or has read, and
 * its results; what it computed in between is dropped, and made again, recorded, at the end of the
 * tape when a sweep comes to the record, swept there and dropped.
 *
 * Invariant: of all that lies on the tape, a function reads operands of its record alone; it either
 * does the same when it is called again, or the sweep fails.
 */
#ifndef TAPE_CHECKPOINT_H
#define TAPE_CHECKPOINT_H

#include "tape_call.h"

/* What a record's function does between these two is recomputation, in the scope and on the call
 * path of the first run. stamp: of the sweep. */
struct tape_again {
    struct tape_path_root root;
    const struct tape_path_root *outer;
    enum tape_phase before;
    uint32_t scope;
};
void tape_again_begin(struct tape *t, const struct tape_record *r, struct tape_again *a,
                      uint64_t *stamp);
void tape_again_end(struct tape *t, const struct tape_record *r, const struct tape_again *a);

/* A function of the user's, and how ad/ calls it. */
struct tape_function {
    /* out[n_out]: indices of its results, of any values of the tape. False: the tape's error says
     * why there are none. */
    bool (*run)(struct tape *t, const struct tape_function *f, int n_in, const uint32_t *in,
                int n_out, uint32_t *out, struct tape_site site);
    void (*function)(void);
    void *payload;
    uint32_t slot, generation; /* of the tape's handle */
};

extern const struct kernel_op tape_checkpoint_op;

/* Runs f on in[n_in]; out[n_out] are values of the tape that were not there before; n_in and n_out
 * are at most TAPE_MAX_IN. */
enum tape_status tape_checkpoint(struct tape *t, const struct tape_function *f, int n_in,
                                 const uint32_t *in, int n_out, uint32_t *out,
                                 struct tape_site site);

/* The pullback of such a record. stamp: the sweep's. False: the tape's error says why, or there was
 * no memory. */
bool tape_checkpoint_pullback(struct tape *t, struct tape_record *r, uint64_t *stamp);

/* Runs the function of such a record again, recording, and leaves what it has recorded on the tape;
 * result[n_out]: what it returned. False: the tape's error says why, and nothing is left. */
bool tape_checkpoint_again(struct tape *t, struct tape_record *r, uint32_t *result);

/* In tape_sweep.c: runs the pullbacks of the records from the last one up to `end`. False: one has
 * failed; no adjoint of their outputs is left in either case. */
bool tape_sweep_behind(struct tape *t, uint32_t end, uint64_t *stamp);

#endif
