/* tape_loop.h: a loop over tensors as one record, whose steps sweeps compute again.
 *
 * The record's operands are the states that are stored, as one value; what the first step was
 * given; and what else steps have read. Its results are the state before the last step, which is
 * not part of it but recorded at once, since a sweep comes to it first. Where it is known to be the
 * last only once it was computed, it is part of the record, whose results are its own.
 *
 * Invariant: as in tape_checkpoint.h. Steps are called one by one, each in a call of its own, so
 * that what they do has the same signature wherever they are called.
 */
#ifndef TAPE_LOOP_H
#define TAPE_LOOP_H

#include "tape_call.h"
#include "tape_record.h"
#include "tape_schedule.h"

/* A step of the user's, and how ad/ calls it. */
struct tape_loop_step {
    /* As the `run` of struct tape_function. *last: of TAPE_UNTIL_LAST, this one has said so. */
    bool (*run)(struct tape *t, const struct tape_loop_step *f, int64_t i, int n_in,
                const uint32_t *in, int n_out, uint32_t *out, bool *last, struct tape_site site);
    void (*function)(void);
    void *payload;
    int64_t n;                 /* how many the loop has, or TAPE_UNTIL_LAST */
    uint32_t slot, generation; /* of the tape's handle */
};

extern const struct record_kind tape_loop_kind;

/* Runs f->n steps, the first from in[n_in], each further one from the results of the one before
 * and in[n_out...n_in-1]; out[n_out]: the results of the last. n_in is at most TAPE_MAX_IN. */
enum tape_status tape_loop(struct tape *t, const struct tape_loop_step *f, struct tape_plan *plan,
                           int n_in, const uint32_t *in, int n_out, uint32_t *out,
                           struct tape_site site);

#endif
