/* tape_program.h: the steps that statements of a tape are of: which function of which operands.
 *
 * Which function a number stands for is its owner's knowledge (ad/scalar/ad_program.c). A step
 * belongs to the index of a result, and lies in chunks of the arena. A leaf that steps read has one
 * too, for its value.
 *
 * Invariant: steps with an op are those of statements that are on the tape, with indices in [first,
 * next). Once the program is whole, their operands are such, or leaves.
 */
#ifndef TAPE_PROGRAM_H
#define TAPE_PROGRAM_H

#include "tape_part.h"

enum { TAPE_STEP_OPERANDS = 3, TAPE_STEP_CONSTANTS = 2, TAPE_CHUNK_STEPS = 1024 };

struct tape_step {
    double value;
    double constant[TAPE_STEP_CONSTANTS]; /* operands that are constants, in their order, and then a
                                             parameter */
    uint32_t operand[TAPE_STEP_OPERANDS]; /* indices; 0: a constant, or none */
    uint16_t op;                          /* 0: of a leaf, or none */
    bool asked;                           /* somebody wants its value or derivatives */
};

/* What the program's code asked of one value or of two, and the answer. */
struct tape_question {
    uint32_t operand[2];  /* 0: the constant */
    uint32_t position[2]; /* in the roll */
    uint32_t op;
    double constant[2], answer;
    struct tape_site site;
};

struct tape_roll; /* tape_roll.h */

struct tape_program {
    bool on;                  /* it is being recorded */
    bool whole;               /* it was, and is as it should be */
    uint32_t first, next;     /* indices of its steps */
    uint32_t last_record;     /* when it began */
    struct tape_step **chunk; /* of indices from 0 on; NULL: none is of use */
    uint32_t n_chunks, chunks_size;
    struct tape_question *question;
    uint32_t n_questions, questions_size;
    struct tape_site site;  /* of its begin, */
    uint32_t row;           /* and what the chunks are charged to */
    struct tape_roll *roll; /* of a whole program: what evaluates it; NULL: it is to be made */
    /* A replay has given leaves other values, which steps, and derivatives of statements, do not
     * know of yet; and who writes them, without asking for memory. */
    bool values_wait, slopes_wait;
    void (*slopes_write)(struct tape *t);
};

extern const struct tape_part tape_program_part;

/* Begins an empty program, after what was recorded until now. */
void tape_program_begin(struct tape *t, struct tape_site site);
/* Derivatives of statements are those of the newest replay. */
static inline void tape_program_slopes(struct tape *t)
{
    if (t->program->slopes_wait)
        t->program->slopes_write(t);
}
/* No more steps come. The tape's error: there was one, or something is no step that should be; a
 * program that was recorded is none then. */
enum tape_status tape_program_end(struct tape *t, struct tape_site site);

static inline struct tape_step *tape_program_step(const struct tape_program *p, uint32_t index)
{
    return &p->chunk[index / TAPE_CHUNK_STEPS][index % TAPE_CHUNK_STEPS];
}

/* The step of an index, or NULL. */
static inline struct tape_step *tape_program_find(const struct tape_program *p, uint32_t index)
{
    return index / TAPE_CHUNK_STEPS < p->n_chunks && p->chunk[index / TAPE_CHUNK_STEPS]
               ? tape_program_step(p, index)
               : NULL;
}

/* Memory for the steps of n indices, those that are 0 aside, and where it asks for one question, so
 * that what follows need not ask. False: there is none, and nothing was taken. */
struct tape_program_room {
    uint32_t chunk[TAPE_STEP_OPERANDS + 1], n; /* that were taken */
};
bool tape_program_take(struct tape *t, uint32_t n, const uint32_t *index, bool asks,
                       struct tape_program_room *taken);
static inline bool tape_program_reserve(struct tape *t, uint32_t n, const uint32_t *index,
                                        bool asks, struct tape_program_room *taken)
{
    bool ready = !asks;
    for (uint32_t i = 0; i < n; i++)
        ready = ready && (index[i] == 0 || tape_program_find(t->program, index[i]));
    taken->n = 0;
    return ready || tape_program_take(t, n, index, asks, taken);
}
/* It was not needed after all. */
void tape_program_give_back(struct tape *t, const struct tape_program_room *taken);
/* There is memory for it. */
void tape_program_ask(struct tape *t, const struct tape_question *q);

/* The roll of a whole program, made if there is none; NULL: there is no memory. */
struct tape_roll *tape_program_roll(struct tape *t);
void tape_program_unroll(struct tape *t);

/* Calls `each` for the statements of the program from the last to the first. */
struct program_statement {
    uint32_t index;
    double *partial; /* one for each operand that is an index, each once, in their order */
    uint32_t site;   /* of its program counter, */
    uintptr_t near;  /* by tape_hook.locate */
};
typedef void tape_program_visit(struct tape *t, const struct program_statement *s, void *payload);
void tape_program_statements(struct tape *t, tape_program_visit *each, void *payload);

/* The operands of a step that are indices, each once. */
static inline uint32_t tape_step_indices(const struct tape_step *s,
                                         uint32_t index[TAPE_STEP_OPERANDS])
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
        uint32_t q = 0;
        while (q < n && index[q] != s->operand[k])
            q++;
        if (s->operand[k] != 0 && q == n)
            index[n++] = s->operand[k];
    }
    return n;
}

#endif
