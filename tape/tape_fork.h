/* tape_fork.h: forks of a tape: statements that other threads record, swept with their parent's.
 *
 * May include: tape_statement.h.
 *
 * A fork is a tape whose indices begin behind those that its parent had, so that its statements
 * name the parent's values by the parent's indices, and its own by greater ones, which mean nothing
 * beyond it. It shares nothing with its parent that is written. A join makes some of its results
 * results of the parent: one record (tape_join_op), which owns the fork from then on.
 *
 * Invariant: no result has the index fork.base; statements name it where their operand is a
 * constant, so that every word of a closed run is base, an index of the parent's within [low,
 * high], or one of the fork's own.
 */
#ifndef TAPE_FORK_H
#define TAPE_FORK_H

#include "tape_statement.h"

/* What the record of a join has for attributes; the fork's indices of the n results follow. */
struct __attribute__((may_alias)) tape_join {
    struct tape *child;
    uint32_t first, n; /* on the parent */
};

extern const struct kernel_op tape_join_op;

static inline struct tape_join *tape_join_of(struct tape_record *r)
{
    return (struct tape_join *)(void *)tape_record_attr(r);
}

/* One of so many forks of a tape with this handle, which share the bytes that its budget has left.
 * NULL: out of memory. */
struct tape *tape_fork_make(struct tape *parent, uint32_t slot, uint32_t generation, int of);

/* The child is of this handle's, and what its parent had at the fork is still there. */
bool tape_fork_is_of(const struct tape *child, uint32_t slot, uint32_t generation);
bool tape_fork_stands(const struct tape *parent, const struct tape *child);

/* The results of a child with the indices of[n], n > 0, are the parent's from *first on; the child
 * is owned by the parent. On failure it is not. */
enum tape_status tape_fork_join(struct tape *parent, struct tape *child, uint32_t n,
                                const uint32_t *of, struct tape_site site, uint32_t *first);

/* A child that is not joined is used no more: its memory is for the parent's next fork. */
void tape_fork_give(struct tape *parent, struct tape *child);

/* A run of a fork's statements has been closed. */
void tape_fork_note(struct tape *t, const struct tape_run *run);

/* For the life of the parent: children joined from this index on are dropped; all are freed. */
void tape_fork_drop(struct tape *t, uint32_t index);
void tape_fork_end(struct tape *t);

/* The part of a sweep that a join has, with those right before it that can be swept beside it.
 * False: out of memory. */
bool tape_join_pullback(struct tape *t, struct tape_record *r, uint64_t *stamp);
/* In tape_sweep.c: runs the pullbacks of a fork over its statements.adjoint. */
bool tape_sweep_fork(struct tape *child, uint64_t *stamp);

#endif
