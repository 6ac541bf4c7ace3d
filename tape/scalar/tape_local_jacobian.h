/* tape_local_jacobian.h: the Jacobian of a part of the statements, by sweeps over that part alone.
 *
 * Time and memory depend on the part, not on the rest of the tape.
 */
#ifndef TAPE_LOCAL_JACOBIAN_H
#define TAPE_LOCAL_JACOBIAN_H

#include "tape_statement.h"

/* What the tape's scratch memory is for. */
enum tape_scratch_use {
    SCRATCH_OUTPUTS,
    SCRATCH_PLACES,
    SCRATCH_RUNS,
    SCRATCH_WORDS,
    SCRATCH_KEYS,
    SCRATCH_TABLE,
    SCRATCH_ADJOINTS,
    SCRATCH_ROWS
};

/* A buffer of so many bytes, with the content that it had if it was smaller, charged to row
 * sections.row; NULL: refused. All are given back together. */
void *tape_scratch(struct tape *t, enum tape_scratch_use use, uint64_t bytes);
void tape_scratch_free(struct tape *t);

/* Rows of the outputs, in the order of their first appearance: row r has n[r] entries. */
struct tape_local_jacobian {
    uint32_t n_rows, n_inputs;
    uint64_t n_entries, bytes; /* bytes: as statements */
    uint32_t *n, *index;       /* of all rows, one behind the other */
    double *partial;
};

/* Of the statements recorded after record `last`, which are runs alone and have indices from
 * `first` on; output[m], of indices on the tape: those from `first` on become `first` plus their
 * row. NULL, or why there is none: then output is as it was. `most`: it must take fewer bytes than
 * this. */
const char *tape_local_jacobian(struct tape *t, uint32_t last, uint32_t first, uint64_t most,
                                int64_t m, uint32_t *output, struct tape_local_jacobian *jacobian);

#endif
