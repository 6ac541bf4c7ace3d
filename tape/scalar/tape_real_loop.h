/* tape_real_loop.h: a loop over scalars as one record, whose steps sweeps compute again.
 *
 * The record has what the first step was given, and states at later steps (tape_schedule.h). The
 * last step is not part of it: it is recorded at once, since a sweep comes to it first. Where it is
 * known to be the last only once it was computed, it is part of the record.
 *
 * Invariant: as in tape_real_checkpoint.h. In a sweep the results of each step are, bit by bit,
 * what the step behind it was given, or the sweep fails.
 */
#ifndef TAPE_REAL_LOOP_H
#define TAPE_REAL_LOOP_H

#include "tape_bridge.h"
#include "tape_schedule.h"

/* A stretch of steps. */
struct tape_real_steps {
    int64_t from, to, n_in, n_out;
    struct tape_real *given, *result; /* [n_in], [n_out]: of the next step */
    bool ended; /* of TAPE_UNTIL_LAST: one has said that it is the last; `to` is behind it then */
    /* A step has set `result`, the next one is to be given it. False: that cannot be. */
    bool (*passed)(struct tape_real_steps *steps, int64_t i);
};

/* A step of the user's, and how ad/ calls it. */
struct tape_real_step {
    /* Calls all steps of a stretch. False: one has failed, and the tape's error says why. While
     * they run the thread records on the tape. */
    bool (*run)(struct tape *t, const struct tape_real_step *f, struct tape_real_steps *steps,
                struct tape_site site);
    void (*function)(void);
    void *payload;
    int64_t n;                 /* how many the loop has, or TAPE_UNTIL_LAST */
    uint32_t slot, generation; /* of the tape's handle */
};

extern const struct record_kind tape_real_loop_kind;

/* Runs f->n steps, the first from in[n_in], each further one from the results of the one before and
 * in[n_out...n_in-1]; out[n_out]: the results of the last. */
enum tape_status tape_real_loop(struct tape *t, const struct tape_real_step *f,
                                struct tape_plan *plan, int64_t n_in, const struct tape_real *in,
                                int64_t n_out, struct tape_real *out, struct tape_site site);

#endif
