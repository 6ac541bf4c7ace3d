/* tape_checkpoint.h: a function of the user's as one record, which sweeps run again.
 *
 * Recorded are the values that the function was given or has read, and its results; what it
 * computed in between is dropped, and made again, recorded, at the end of the tape when a sweep
 * comes to the record, swept there and dropped.
 *
 * Invariant: of all that lies on the tape, a function reads operands of its record alone; it either
 * does the same when it is called again, or the sweep fails.
 */
#ifndef TAPE_CHECKPOINT_H
#define TAPE_CHECKPOINT_H

#include "tape_call.h"
#include "tape_record.h"

/* What a record's function does between these two is recomputation, in the scope and on the call
 * path of the first run. stamp: of the sweep. */
struct tape_again {
    struct tape_path_root root;
    const struct tape_path_root *outer;
    enum tape_phase before;
    uint64_t *stamp; /* before */
    uint32_t scope;
};
void tape_again_begin(struct tape *t, const struct tape_record *r, struct tape_again *a,
                      uint64_t *stamp);
void tape_again_end(struct tape *t, const struct tape_record *r, const struct tape_again *a);

/* Appends a record of a kind whose functions read what they find: its operands are in[n_in], and
 * what else the call has read, behind guards of the user's arrays among them; its results are the
 * n_out values from first_out on; size: of its attributes. NULL: the tape's error says why, or
 * there is no memory. */
struct tape_record *tape_checkpoint_append(struct tape *t, const struct record_kind *kind,
                                           size_t size, const struct tape_call *call, uint32_t n_in,
                                           const uint32_t *in, int n_out, uint32_t first_out,
                                           uint32_t row);
/* It is complete. last_guard: as it was before. */
void tape_checkpoint_appended(struct tape *t, struct tape_record *r, uint32_t last_guard);

/* Verbs of record_kind where functions read whatever they were given. */
bool tape_checkpoint_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                           uint32_t *reads);
uint32_t tape_checkpoint_touches(const struct tape *t, struct tape_record *r);

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

extern const struct record_kind tape_checkpoint_kind;

/* Runs f on in[n_in]; out[n_out] are values of the tape that were not there before; n_in and n_out
 * are at most TAPE_MAX_IN. */
enum tape_status tape_checkpoint(struct tape *t, const struct tape_function *f, int n_in,
                                 const uint32_t *in, int n_out, uint32_t *out,
                                 struct tape_site site);

#endif
