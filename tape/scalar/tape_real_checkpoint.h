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
#include "tape_call.h"

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

/* ---- for kinds that call functions of scalars again ---- */

/* What such a call is given may be given, and *active if a record is to be made of it. */
enum tape_status tape_real_given_check(struct tape *t, const char *what, int64_t n_in,
                                       const struct tape_real *in, int64_t n_out,
                                       struct tape_site site, bool *active);

/* The results are numbers of the tape or constants, which alone may be of a `first` call, that is
 * given constants; *signature: of their bits. */
bool tape_real_results_check(struct tape *t, const char *what, int64_t n,
                             const struct tape_real *out, bool first, uint64_t *signature,
                             struct tape_site site);

/* A call that records behind everything else, in a sweep. What it makes has a tag that no value has
 * afterwards. A rewind within it may take the place of the newest of the tags, but of no other. */
struct tape_real_again {
    struct tape_call call;
    uint32_t n_tags, tag;
    uint32_t next; /* the first index of what it makes */
    struct tape_tag newest;
};
/* False: there is no memory. Between the two the caller ends the call (tape_call_end). */
bool tape_real_again_begin(struct tape *t, struct tape_real_again *a);
void tape_real_again_drop(struct tape *t, struct tape_real_again *a);

#endif
