/* ad_program_walk.h: a program's roll evaluated and differentiated, a block of rounds at a time. */
#ifndef AD_PROGRAM_WALK_H
#define AD_PROGRAM_WALK_H

#include "tape_roll.h"

/* Numbers of one kind: those of kept values by position, and those of the block under way. They lie
 * in this order, at the same distances in all planes of one lane. */
struct walk_plane {
    double *kept, *passing, *columns;
};

/* A walk differentiates in `width` directions, 1 or 8, whose numbers lie side by side. */
struct program_walk {
    const struct tape_program *p;
    const struct tape_roll *roll;
    uint32_t width;
    struct walk_plane value;           /* the roll's own */
    struct walk_plane tangent, second; /* [][width] second: tangents of adjoints, or no memory */
    struct walk_plane adjoint;
    double *constants, *slope[3], *curve[3], *sum, *sum_second; /* of a block */
    double *code; /* room for a chain's steps (struct chain_step) */
};

/* All values, from those of leaves. */
void program_walk_values(const struct tape_program *p, struct tape_roll *r);

/* How many numbers a walk with these planes needs, and which they are then: zeros. */
enum { WALK_TANGENTS = 1, WALK_ADJOINTS = 2 };
uint64_t program_walk_numbers(const struct tape_roll *r, int planes, uint32_t width);
void program_walk_begin(struct program_walk *w, const struct tape_program *p, int planes,
                        uint32_t width, double *numbers);

/* Tangents of all steps up to the loop that has index `last`, from those of leaves. */
void program_walk_forward(const struct program_walk *w, uint32_t last);
/* Adjoints, and where there are tangents also the tangents of adjoints, of all from that loop
 * on back to leaves. */
void program_walk_back(const struct program_walk *w, uint32_t last);

#endif
