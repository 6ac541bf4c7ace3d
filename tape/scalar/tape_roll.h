/* tape_roll.h: the steps of a program as loops: what repeats stands once.
 *
 * A loop is a body of steps and how many rounds it goes; round r has the indices first + r * length
 * and the next ones. What does not repeat is a loop of one round. A value that something else than
 * its own round needs is *kept*: it has a position, from which it is read and written. The others
 * are *passing*: they are computed again where a round is differentiated.
 *
 * An operand is a constant, a result of the same round, or a *column*: for each round a position.
 * In a *stretch* of rounds each column is a progression, or listed.
 *
 * Invariant: a block of so many rounds as the loop says, within a stretch, may be computed step by
 * step, each for all rounds: none reads what is written later. Only the steps of a *chain* read
 * what an earlier round has computed in the same or a later step; they are computed for `width`
 * rounds at once.
 */
#ifndef TAPE_ROLL_H
#define TAPE_ROLL_H

#include "tape_program.h"

enum roll_operand { ROLL_NONE, ROLL_ROUND, ROLL_COLUMN };

struct roll_step {
    uint32_t of[TAPE_STEP_OPERANDS];    /* the step of the body, or the column */
    uint32_t each[TAPE_STEP_CONSTANTS]; /* of a constant: see `varies` */
    uint32_t place;                     /* among the loop's kept steps, or its passing ones */
    uint16_t op;
    uint8_t operand[TAPE_STEP_OPERANDS]; /* enum roll_operand */
    uint8_t first;                       /* bits of operands whose column no step before reads */
    uint8_t varies; /* bits of constants that have a number for each round: where they begin in
                       `constants`. Others have a place, or are UINT32_MAX: 0. */
    bool kept;
};

struct roll_chain {
    uint32_t begin, end, width;
};
enum { ROLL_CODE_NUMBERS = 4 };

/* The rounds [first, first + rounds); access: of its first column. */
struct roll_stretch {
    uint32_t first, rounds, access;
};

/* Position base + i * stride in round `first` + i; or list[base + i]. */
enum { ROLL_LISTED = INT32_MIN };
struct roll_access {
    uint32_t base;
    int32_t stride;
};

struct roll_loop {
    uint32_t first, length, rounds;
    uint32_t block;    /* most rounds at once */
    uint32_t step;     /* of its body: among those of all */
    uint32_t position; /* of its kept values: each step's, round after round */
    uint32_t n_kept, n_passing, n_columns, n_constants;
    uint32_t chain, n_chains, stretch, n_stretches;
};

struct roll_leaves {
    uint32_t first, n, position;
};

struct tape_roll {
    uint64_t bytes; /* of all, in one buffer of the arena */
    struct roll_loop *loop;
    struct roll_step *step;
    struct roll_chain *chain;
    struct roll_stretch *stretch;
    struct roll_access *access;
    struct roll_leaves *leaves;
    uint32_t *list;
    double *constants;
    double *value;   /* [n_positions], and directly behind, at `behind`: */
    double *working; /* for who evaluates it: n_working numbers */
    uint32_t n_loops, n_steps, n_chains, n_stretches, n_accesses, n_leaves, n_lists, n_varying;
    uint32_t n_positions;
    uint64_t behind; /* n_positions, up to a multiple of 8 */
    /* The most that a block of a loop has, in numbers; `code`: of the steps of a chain that goes
     * round by round, ROLL_CODE_NUMBERS each. */
    uint32_t passing, columns, constant_places, block, code, n_working;
};

/* Finds the loops of a program that is complete. NULL: there is no memory, and nothing was
 * taken. */
struct tape_roll *tape_roll_make(struct tape *t);
void tape_roll_drop(struct tape *t, struct tape_roll *r, const char *end);

/* What repeats among the steps [first, first + n): loops in their order, with first, length and
 * rounds alone, of the longest bodies; what does not repeat is a loop of one round. The caller
 * releases them. NULL: there is no memory. */
struct roll_loop *tape_roll_find(struct tape *t, uint32_t first, uint32_t n, uint32_t *n_loops);
/* The loop of an index, or UINT32_MAX. */
uint32_t tape_roll_loop(const struct roll_loop *loops, uint32_t n_loops, uint32_t index);

/* Where the value of an index is; UINT32_MAX: it passes, or no step reads this leaf. */
uint32_t tape_roll_position(const struct tape_roll *r, uint32_t index);

#endif
