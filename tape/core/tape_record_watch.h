/* tape_record_watch.h: who is told of each record that is made, and of each that a sweep passes.
 *
 * A tape tells only while tape.nonfinite has TAPE_TRAP_RECORDS: so it costs nothing where nobody
 * asks, and every statement is told of, since it is a run of its own then
 * (tape_nonfinite_scalars.h).
 */
#ifndef TAPE_RECORD_WATCH_H
#define TAPE_RECORD_WATCH_H

#include "tape_nonfinite.h"

enum { TAPE_BREAKS = 8, TAPE_BREAK_TEXT = 48, TAPE_BREAKS_SEEN = 64 };

/* One record, as it is told. in[], out[]: tensors. */
struct tape_watched {
    const char *op;
    struct tape_site site;
    bool backward; /* a sweep is about to run its pullback */
    int n_in, n_out;
    const uint32_t *in, *out;
    uint32_t index; /* numbers: of the first of n_numbers */
    uint32_t n_numbers;
    double value;   /* of the first; NaN where it is not at hand */
    double adjoint; /* backward, of a statement: of its result in the first lane */
};

/* Where to stop: at an op's records, or at a line's. */
struct tape_break {
    char of[TAPE_BREAK_TEXT]; /* the op, or the file without its folders */
    uint32_t line;            /* 0: it is an op */
    int when;
};

/* The tape's own; set by the owner of the tape. Nothing is allocated, so that it is easily copied
 * to a fork. */
struct tape_record_watch {
    void (*tell)(struct tape *t, const struct tape_watched *w);
    void (*nonfinite)(struct tape *t); /* the tape's error is one that the trap has found */
    void (*callback)(void);
    void *payload;
    uint32_t slot, generation; /* of the tape's handle */
    int when_nonfinite;
    uint32_t n_breaks;
    struct tape_break breaks[TAPE_BREAKS];
    struct { /* sites whose lines have been looked up */
        struct tape_site site;
        uint32_t hits; /* bit i: break i is at this line */
    } seen[TAPE_BREAKS_SEEN];
};

static inline bool tape_watches(const struct tape *t)
{
    return __builtin_expect((t->nonfinite & TAPE_TRAP_RECORDS) != 0, 0);
}

/* All below do nothing unless tape_watches(t). */

/* A record has been made, complete with its results, of which the first n_out are the user's. */
void tape_watch_record(struct tape *t, struct tape_record *r, int n_out, struct tape_site site);
/* The same of one whose results are numbers. */
void tape_watch_numbers(struct tape *t, const char *op, struct tape_site site, uint32_t first,
                        uint32_t n, double value);
/* A sweep is about to run the pullback of a record that is no run of statements; of a statement. */
void tape_watch_pullback(struct tape *t, struct tape_record *r);
void tape_watch_statement_pullback(struct tape *t, struct tape_site site, uint32_t index,
                                   double adjoint);
void tape_watch_loop_pullback(struct tape *t, const char *op, struct tape_site site);

extern const struct tape_part tape_record_watch_part;

#endif
