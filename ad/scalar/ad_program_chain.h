/* ad_program_chain.h: the steps of a chain, which go round by round: the usual functions in place.
 *
 * A step's numbers lie side by side, round after round, and at the same distance in all planes
 * (struct walk_plane). So where they are is found once for a block of rounds, and a round has no
 * calls but those of functions that are none of the usual ones.
 */
#ifndef AD_PROGRAM_CHAIN_H
#define AD_PROGRAM_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A step: where its numbers are in the first round, from the beginning of a plane on. */
struct chain_step {
    size_t to, x, y;
    uint32_t step; /* of the body */
    uint16_t op;   /* AD_PROGRAM_..., or 0: `other` computes it */
    uint8_t by;    /* bits of operands that are no constants */
};

struct program_chain {
    const struct chain_step *step;
    uint32_t n;
    double *value, *tangent, *adjoint, *second; /* as far as a run needs them, of one lane */
    void (*other)(const void *payload, uint32_t step, uint32_t round);
    const void *payload;
};

/* Whether it is one of the usual functions. Of the others `other` is called. */
bool program_chain_knows(uint32_t op);

/* The steps of one round, forward, or from the last to the first. Results are those of the loops of
 * ad_program_functions.h, bit for bit. */
typedef void program_chain_run(const struct program_chain *c, uint32_t round);
program_chain_run program_chain_values, program_chain_tangents, program_chain_adjoints,
    program_chain_second_adjoints;

#endif
