/* tape_schedule.h: in which order a loop is swept with fewer states than it has steps.
 *
 * The steps are recorded and swept in units, the last one first. A unit begins with the state at
 * its first step, which is stored, or computed from the last state that is stored before it. The
 * schedule is the binomial one (A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Trans. Math.
 * Softw. 26, 2000, doi 10.1145/347837.347846): no other one with so many states computes fewer
 * units again.
 *
 * Where the number of steps is not known, which states are stored follows Q. Wang, P. Moin,
 * G. Iaccarino, Minimal repetition dynamic checkpointing algorithm for unsteady adjoint
 * calculation, SIAM J. Sci. Comput. 31, 2009, doi 10.1137/080727890; a sweep goes by the binomial
 * schedule between them. Then no unit is computed more often than with a known number; the sum is
 * the same as long as none is computed more than twice again, and up to 1.42 times as much beyond.
 *
 * Invariant: stored states lie in the order of their units, and in slots of their own; the state
 * at unit 0 is none of them, since it is always there.
 */
#ifndef TAPE_SCHEDULE_H
#define TAPE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* What a loop has for a number of steps that it learns from its steps. */
#define TAPE_UNTIL_LAST INT64_MIN

/* Products of both with a number of states stay below 2^63. */
#define TAPE_MOST_STEPS ((int64_t)1 << 40)
enum { TAPE_MOST_STATES = 1 << 22 };

/* Of `n` > 1 units, the first of which begins with a stored state, while `free` further states
 * have room: how many to go on to the state that is stored next, or from which the last unit is
 * recorded (n - 1). */
int64_t tape_schedule_next(int64_t n, uint32_t free);

/* How many of n units are computed without being recorded, in all: t(n, free + 1) of the source,
 * r n - beta(free + 2, r - 1) where beta(c, r) = C(c + r, c) and r is the least with
 * n <= beta(free + 1, r). */
double tape_schedule_computed(int64_t n, uint32_t free);

/* What a loop is given, and what was chosen by it. */
struct tape_plan {
    const char *directory; /* not NULL: states lie in a file there too, */
    uint64_t disk_bytes;   /* in so many bytes at most; 0: any number */
    uint64_t bytes;        /* of stored states and of what is recorded at once; 0: chosen */
    int64_t states;    /* > 0: so many instead, that at the first step included, and units of one */
    int64_t unit;      /* chosen: steps that are recorded at once */
    int64_t most_unit; /* chosen: in the end, where their number is not known; else 0 */
    uint32_t n_slots;  /* chosen: for stored states, at most `most` */
    uint32_t most;
    uint32_t n_disk; /* chosen: of the slots so many are in the file */
};

/* Chooses for a loop of n > 1 steps, the last of which is a unit of its own, or of TAPE_UNTIL_LAST.
 * A state takes state_bytes, the recording of a step step_bytes. False: plan->bytes are less than
 * step_bytes. A state in the file takes sizeof(struct tape_stored) of memory, which are part of
 * state_bytes. */
bool tape_plan_choose(struct tape_plan *plan, int64_t n, uint64_t state_bytes, uint64_t step_bytes);

/* A stored state. */
struct tape_stored {
    int64_t unit;
    uint32_t slot;
    uint32_t level; /* where the number of steps is not known: it outlives lower ones before it */
};

struct tape_schedule {
    int64_t steps, unit;        /* so many steps are swept, so many of them at once */
    int64_t most_unit;          /* > 0: the number of steps is not known; `unit` doubles up to it */
    struct tape_stored *stored; /* [n_slots]: those stored, behind them slots that are free */
    uint32_t n_slots, n_stored;
    uint32_t n_disk; /* the first slots are in a file: the states that are stored first are read and
                      * written least (P. Stumm, A. Walther, MultiStage approaches for optimal
                      * offline checkpointing, SIAM J. Sci. Comput. 31, 2009, doi
                      * 10.1137/080718036) */
};

/* What a loop does with its one state at hand. False: it has failed. */
struct tape_schedule_verbs {
    bool (*load)(void *job, const struct tape_stored *from); /* NULL: the first state */
    bool (*store)(void *job, const struct tape_stored *to);
    /* From the state at step `from` to that at step `to`, recording nothing. */
    bool (*advance)(void *job, int64_t from, int64_t to);
    /* Records these steps from the state at `from`, and sweeps them. */
    bool (*sweep)(void *job, int64_t from, int64_t to);
};

/* Of a loop of n steps, where what is `stored` is not known yet. */
struct tape_schedule tape_schedule_of(const struct tape_plan *plan, int64_t n);
/* `stored` has room for s->n_slots. */
void tape_schedule_begin(struct tape_schedule *s);
/* From the first state, which is at hand, to that behind all steps; stores on the way what a sweep
 * wants that comes to them after one further unit. Where the number of steps is not known,
 * verbs->advance ends with the last one and sets s->steps to what there were. */
bool tape_schedule_forward(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                           void *job);
/* Sweeps all steps, the last ones first. No state is stored afterwards: a further call computes
 * them again. */
bool tape_schedule_backward(struct tape_schedule *s, const struct tape_schedule_verbs *verbs,
                            void *job);

#endif
