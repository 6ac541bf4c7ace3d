/* analyze_spill.c: what of a tape's peak could lie in its file. */
#include "analyze_space.h"

#include "disk.h"

#include <string.h>

static bool has_op(const struct read_tape *tape, const struct read_residual *r, const char *op)
{
    return r->producer > 0 && strcmp(tape->row[r->producer - 1].op, op) == 0;
}

/* Leaves that the tape has copied stay. */
static bool is_leaf(const struct read_tape *tape, const struct read_residual *r)
{
    return has_op(tape, r, "leaf_copy") || has_op(tape, r, "load");
}

/* A class mostly has values of one size. */
static bool is_large(const struct read_residual *r)
{
    return r->kind == READ_DISK ||
           (r->count > 0 && r->bytes / r->count >= (uint64_t)DISK_TENSOR_LEAST);
}

struct analyze_spill analyze_spill_of(const struct read_tape *tape)
{
    struct analyze_spill spill = {0, 0};
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        const bool statement = has_op(tape, r, "statement");
        if (statement && (r->kind == READ_RECORD || r->kind == READ_DISK))
            spill.statement_bytes += r->peak_bytes;
        else if (!statement && r->kind != READ_RECORD && r->kind != READ_ADJOINT && is_large(r) &&
                 !is_leaf(tape, r))
            spill.tensor_bytes += r->peak_bytes;
    }
    return spill;
}
