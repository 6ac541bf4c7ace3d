/* tape_real_checkpoint.h: a function of scalars as one record, which sweeps run again.
 *
 * The first call is given constants, so that it records nothing; the record has what it was given,
 * and gives indices to its results. In a sweep the function is called with the variables,
 * recording behind everything else; what it has recorded is swept there and dropped.
 *
 * Invariant: a function depends on no variables but those that it is given; its results are the
 * same bits each time, or the sweep fails.
 */
#ifndef TAPE_REAL_CHECKPOINT_H
#define TAPE_REAL_CHECKPOINT_H

#include "tape_bridge.h"

/* A function of the user's, and how ad/ calls it. */
struct tape_real_function {
    /* False: the tape's error says why there are no results. While it runs the thread records on
     * the tape. */
    bool (*run)(struct tape *t, const struct tape_real_function *f, int64_t n_in,
                const struct tape_real *in, int64_t n_out, struct tape_real *out,
                struct tape_site site);
    void (*function)(void);
    void *payload;
    uint32_t slot, generation; /* of the tape's handle */
};

/* Tag of a result that the function has not set; its index is 0. */
#define TAPE_NOT_SET UINT32_MAX

extern const struct record_kind tape_real_checkpoint_kind;

/* Runs f on in[n_in], values of the tape or constants; out[n_out] are values of the tape then, or
 * constants where all of in[] are. The tape is named (tape_statement_name). in[] and out[] may be
 * one array. */
enum tape_status tape_real_checkpoint(struct tape *t, const struct tape_real_function *f,
                                      int64_t n_in, const struct tape_real *in, int64_t n_out,
                                      struct tape_real *out, struct tape_site site);

#endif
