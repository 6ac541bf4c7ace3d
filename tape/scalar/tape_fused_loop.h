/* tape_fused_loop.h: loops over real numbers as one record in a run of statements.
 *
 * A record lies in the stream of its run: words downwards (struct tape_fused_loop, three for each
 * operand, then indices that are not consecutive), doubles upwards (numbers of the kind's own,
 * pointers to the values of operands that are kept, values).
 *
 * Invariant: values that a record keeps lie in the tape, in its own doubles or in those of an
 * earlier record; what an index stands for never changes, so that they are kept once.
 */
#ifndef TAPE_FUSED_LOOP_H
#define TAPE_FUSED_LOOP_H

#include "tape_statement.h"

#include "fused_loop.h"

enum {
    TAPE_FUSED_LOOP_KIND_SHIFT = 26, /* five bits, below the highest, which is set */
    TAPE_FUSED_LOOP_IN_SHIFT = 21,   /* five */
    TAPE_FUSED_LOOP_LINE_MASK = (1 << TAPE_FUSED_LOOP_IN_SHIFT) - 1
};
#define TAPE_FUSED_LOOP_MARK ((uint32_t)1 << 31)
_Static_assert(KERNEL_FUSED_LOOP_IN < 32 && KERNEL_FUSED_LOOP_KINDS <= 32, "they fit");

/* The first words of a record. */
struct __attribute__((may_alias)) tape_fused_loop {
    uint32_t mark; /* TAPE_FUSED_LOOP_MARK, kind, number of operands, line of the source or 0 */
    uint32_t site;
    uint32_t words, doubles; /* of the record */
    uint32_t m, first;       /* results, index of the first */
    uint32_t at;             /* doubles of the run before its own */
    uint32_t previous;       /* words of the run up to the fused loop before; 0: there is none */
};

/* And three more for each operand. */
struct __attribute__((may_alias)) tape_fused_loop_in {
    uint32_t n;
    uint32_t first; /* of consecutive indices, or TAPE_INDICES_FOLLOW, or TAPE_NO_INDICES */
    uint32_t kept;  /* one more than the place of the pointer in the doubles; 0: not kept; or
                       TAPE_JOINED */
};

/* Values are not kept, and the pullback has the adjoints of this operand and the next as one array,
 * one behind the other. */
#define TAPE_JOINED UINT32_MAX
#define TAPE_INDICES_FOLLOW 0u
#define TAPE_NO_INDICES UINT32_MAX /* constants */

static inline uint32_t tape_fused_loop_kind(const struct tape_fused_loop *s)
{
    return s->mark >> TAPE_FUSED_LOOP_KIND_SHIFT & 31;
}

static inline uint32_t tape_fused_loop_n_in(const struct tape_fused_loop *s)
{
    return s->mark >> TAPE_FUSED_LOOP_IN_SHIFT & 31;
}

static inline const struct tape_fused_loop_in *tape_fused_loop_in(const struct tape_fused_loop *s)
{
    return (const struct tape_fused_loop_in *)(const void *)(s + 1);
}

static inline uint64_t tape_fused_loop_bytes(const struct tape_fused_loop *s)
{
    return s->words * (uint64_t)sizeof(uint32_t) + s->doubles * (uint64_t)sizeof(double);
}

static inline uint32_t tape_fused_loop_line(const struct tape_fused_loop *s)
{
    return s->mark & TAPE_FUSED_LOOP_LINE_MASK;
}

/* What a profile calls it; doubles: the record's. */
const char *tape_fused_loop_name(const struct tape_fused_loop *s, const double *doubles);

/* The parts of a run, from its end to its beginning: before each fused loop, and before the run's
 * begin, comes a part that has statements alone, maybe none.
 *
 *     struct tape_run_part part = tape_run_last(run);
 *     do use(&part.statements, part.fused loop);
 *     while (tape_run_previous(run, &part)); */
struct tape_run_part {
    struct tape_run statements;               /* behind the fused loop */
    const struct tape_fused_loop *fused_loop; /* NULL: the run begins with these statements */
};
struct tape_run_part tape_run_last(const struct tape_run *run);
bool tape_run_previous(const struct tape_run *run, struct tape_run_part *part);

/* An operand that is to be recorded: an array of the user's. */
struct tape_operand {
    int64_t n;
    const struct kernel_real *real; /* or else */
    const double *number;
    const uint32_t *index; /* or neither: the caller has looked, and its indices are here, */
    int64_t index_step;    /* so far apart */
    bool keep;             /* its values are for the pullback */
    bool joined;           /* as TAPE_JOINED has it; then its values are not kept */
    /* Found by tape_fused_loop_survey: */
    bool active;
    uint32_t first;       /* as in struct tape_fused_loop_in */
    const double *seen;   /* the tape's own copy of the values, or NULL */
    const double *values; /* where to read them now, `stride` apart */
    int64_t stride;
};

/* Looks at the operand. False: an element, whose number is set, is no value of this tape, or there
 * is no tape (NULL) and it is no constant. */
bool tape_fused_loop_survey(struct tape *t, struct tape_operand *o, int64_t *refused);

/* Custom fused loops have these at the beginning of their own numbers, then the user's bytes. */
typedef void tape_custom_pullback(const void *data, int64_t m, const double *dy, int64_t n,
                                  double *dx);
struct tape_custom {
    const char *name; /* for the profile; outlives the tape */
    tape_custom_pullback *pullback;
};

/* Compiled loops have this, then numbers of the code's own. x of what is added to: dx[k] of n[k],
 * NULL: constants. */
typedef void tape_compiled_pullback(const double *saved, const double *dy, int n_in,
                                    const int64_t *n, double *const *dx);

/* A record to be made. */
struct tape_fused_loop_plan {
    enum kernel_fused_loop_kind kind;
    const char *name;
    struct tape_operand *in;
    int n_in;
    int64_t m, n_saved; /* results, numbers of the kind's own */
    struct tape_site site;
    /* Set by tape_fused_loop_open: */
    double *saved;
    uint64_t first; /* index and tag of the first result */
    uint64_t words, doubles;
    uint64_t room[2]; /* as of tape_fused_loops */
};

/* Writes a record behind the last without adding it to the tape, so that values can be computed
 * into it. False: nothing is to be recorded; the tape's error says why, unless it is under
 * no_grad. The operands' values are set in either case. */
bool tape_fused_loop_open(struct tape *t, struct tape_fused_loop_plan *plan);
void tape_fused_loop_commit(struct tape *t, const struct tape_fused_loop_plan *plan);
/* A fused loop with at most so many partial derivatives, of all results together, is recorded as
 * statements: its head and pullback would cost more. */
enum { TAPE_FEW = 16 };
/* y[index[i]] += x[i], each by a statement. False: nothing was done: some are no values of the
 * tape, or it does not record now, or has no room. */
bool tape_fused_loop_sums(struct tape *t, const struct tape_fused_loop_plan *plan, int64_t n,
                          const struct kernel_real *x, const int *index, struct kernel_real *y);
/* What results have of an operand; see tape_fused_loop_few.c. */
struct tape_few_term {
    const struct kernel_real *real;
    const double *from;
    int64_t n, step, stride, from_step;
    double factor;
};
struct tape_few {
    int n_terms;
    int64_t width; /* operands of each statement */
    struct tape_few_term term[KERNEL_FUSED_LOOP_IN];
    double saved[TAPE_FEW]; /* the kind's own numbers */
    double power[TAPE_FEW]; /* of a polynomial's variable */
};
/* Looks at the operands, and makes room for statements in place of the record. False: it is not to
 * be recorded so, and has to be surveyed. */
bool tape_fused_loop_few(struct tape *t, struct tape_fused_loop_plan *plan, struct tape_few *few);
/* Adds the statements to the tape; few->saved is as value functions leave it. */
void tape_fused_loop_statements(struct tape *t, struct tape_fused_loop_plan *plan,
                                struct tape_few *few);
/* It took the time since `start`, which tape_account_start() has given. */
void tape_fused_loop_ran(struct tape *t, const struct tape_fused_loop_plan *plan, uint64_t start);

/* The reverse sweep over a run of statements and fused loops, each of which is charged its own
 * time; stamp: as of record_kind.sweep. beside: what fused_loops[] room says. False: a callback has
 * failed, and the tape says how. */
bool tape_run_sweep(struct tape *t, const struct tape_run *run, double *adjoint, uint32_t width,
                    double *beside, uint64_t *stamp);

#endif
