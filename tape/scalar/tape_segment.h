/* tape_segment.h: loops over real numbers as one record in a run of statements.
 *
 * A record lies in the stream of its run: words downwards (struct tape_segment, three for each
 * operand, then indices that are not consecutive), doubles upwards (numbers of the kind's own,
 * pointers to the values of operands that are kept, values).
 *
 * Invariant: values that a record keeps lie in the tape, in its own doubles or in those of an
 * earlier record; what an index stands for never changes, so that they are kept once.
 */
#ifndef TAPE_SEGMENT_H
#define TAPE_SEGMENT_H

#include "tape_statement.h"

#include "segment.h"

enum {
    TAPE_SEGMENT_KIND_SHIFT = 26, /* five bits, below the highest, which is set */
    TAPE_SEGMENT_IN_SHIFT = 22,   /* four */
    TAPE_SEGMENT_LINE_MASK = (1 << TAPE_SEGMENT_IN_SHIFT) - 1
};
#define TAPE_SEGMENT_MARK ((uint32_t)1 << 31)

/* The first words of a record. A statement has its number of operands where `mark` is. */
struct __attribute__((may_alias)) tape_segment {
    uint32_t mark; /* TAPE_SEGMENT_MARK, kind, number of operands, line of the source or 0 */
    uint32_t site;
    uint32_t words, doubles; /* of the record */
    uint32_t m, first;       /* results, index of the first */
    uint32_t at;             /* doubles of the run before its own */
    uint32_t previous;       /* words of the run up to the segment before; 0: there is none */
};

/* And three more for each operand. */
struct __attribute__((may_alias)) tape_segment_in {
    uint32_t n;
    uint32_t first; /* of consecutive indices, or TAPE_INDICES_FOLLOW, or TAPE_NO_INDICES */
    uint32_t kept;  /* one more than the place of the pointer in the doubles; 0: not kept */
};

#define TAPE_INDICES_FOLLOW 0u
#define TAPE_NO_INDICES UINT32_MAX /* constants */

static inline uint32_t tape_segment_kind(const struct tape_segment *s)
{
    return s->mark >> TAPE_SEGMENT_KIND_SHIFT & 31;
}

static inline uint32_t tape_segment_n_in(const struct tape_segment *s)
{
    return s->mark >> TAPE_SEGMENT_IN_SHIFT & 15;
}

static inline const struct tape_segment_in *tape_segment_in(const struct tape_segment *s)
{
    return (const struct tape_segment_in *)(const void *)(s + 1);
}

static inline uint64_t tape_segment_bytes(const struct tape_segment *s)
{
    return s->words * (uint64_t)sizeof(uint32_t) + s->doubles * (uint64_t)sizeof(double);
}

static inline uint32_t tape_segment_line(const struct tape_segment *s)
{
    return s->mark & TAPE_SEGMENT_LINE_MASK;
}

/* What a profile calls it; doubles: the record's. */
const char *tape_segment_name(const struct tape_segment *s, const double *doubles);

/* The parts of a run, from its end to its beginning: before each segment, and before the run's
 * begin, comes a part that has statements alone, maybe none.
 *
 *     struct tape_run_part part = tape_run_last(run);
 *     do use(&part.statements, part.segment);
 *     while (tape_run_previous(run, &part)); */
struct tape_run_part {
    struct tape_run statements;         /* behind the segment */
    const struct tape_segment *segment; /* NULL: the run begins with these statements */
};
struct tape_run_part tape_run_last(const struct tape_run *run);
bool tape_run_previous(const struct tape_run *run, struct tape_run_part *part);

/* An operand that is to be recorded: an array of the user's. */
struct tape_operand {
    int64_t n;
    const struct kernel_real *real; /* or else */
    const double *number;
    bool keep; /* its values are for the pullback */
    /* Found by tape_segment_survey: */
    bool active;
    uint32_t first;       /* as in struct tape_segment_in */
    const double *seen;   /* the tape's own copy of the values, or NULL */
    const double *values; /* where to read them now, `stride` apart */
    int64_t stride;
};

/* Looks at the operand. False: an element, whose number is set, is no value of this tape, or there
 * is no tape (NULL) and it is no constant. */
bool tape_segment_survey(struct tape *t, struct tape_operand *o, int64_t *refused);

/* Custom segments have these at the beginning of their own numbers, then the user's bytes. */
typedef void tape_custom_pullback(const void *data, int64_t m, const double *dy, int64_t n,
                                  double *dx);
struct tape_custom {
    const char *name; /* for the profile; outlives the tape */
    tape_custom_pullback *pullback;
};

/* A record to be made. */
struct tape_segment_plan {
    enum kernel_segment_kind kind;
    const char *name;
    struct tape_operand *in;
    int n_in;
    int64_t m, n_saved; /* results, numbers of the kind's own */
    struct tape_site site;
    /* Set by tape_segment_open: */
    double *saved;
    uint64_t first; /* index and tag of the first result */
    uint64_t words, doubles;
};

/* Writes a record behind the last without adding it to the tape, so that values can be computed
 * into it. False: nothing is to be recorded; the tape's error says why, unless it is under
 * no_grad. The operands' values are set in either case. */
bool tape_segment_open(struct tape *t, struct tape_segment_plan *plan);
void tape_segment_commit(struct tape *t, const struct tape_segment_plan *plan);

/* The reverse sweep over a run of statements and segments. beside: what segments[] room says.
 * False: a callback has failed, and the tape says how. */
bool tape_run_sweep(struct tape *t, const struct tape_run *run, double *adjoint, uint32_t width,
                    double *beside);

#endif
