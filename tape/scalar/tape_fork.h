/* tape_fork.h: forks of a tape: statements that other threads record, swept with their parent's.
 *
 * A fork is a tape whose indices begin behind those that its parent had, so that its statements
 * name the parent's values by the parent's indices, and its own by greater ones, which mean nothing
 * beyond it. It shares nothing with its parent that is written. A join makes some of its results
 * results of the parent: one record (tape_join_kind), which owns the fork from then on.
 *
 * Invariant: no result has the index fork.base. Once a sweep has looked, what the fork's statements
 * name is an index of the parent's within [low, high], or one of its own, or base, which takes the
 * place of 0 where an operand is a constant, unless low is 0.
 */
#ifndef TAPE_FORK_H
#define TAPE_FORK_H

#include "tape_statement.h"

/* What a tape has to do with forks: its own ones, and its parent if it is one. */
struct tape_fork {
    uint32_t base;             /* no result has this index, all of its own have greater ones; 0: the
                                * tape is no fork */
    uint32_t slot, generation; /* of the parent's handle */
    uint32_t tag;              /* of the parent's value before base */
    uint32_t low, high;   /* of the parent's indices that its statements name; low > high: none */
    uint32_t parent_tags; /* copies of the parent's tags, and one more */
    bool no_grad;         /* the parent was under it */
    struct tape_site no_grad_site; /* where that was begun */
    bool looked;                   /* low and high are known */
    bool whole;                    /* joined with all of its results: the k-th is base + 1 + k */
    uint32_t first;                /* joined: index of its first result on the parent */
    uint32_t record;               /* joined: the parent's record of that */
    uint32_t swept;    /* joins of results from here on are done with; while a sweep runs */
    uint32_t n_joined; /* forks on this tape */
    struct tape *joined, *spare; /* forks on this tape, newest first; to be used again */
    struct tape *next;           /* in the parent's list */
};

/* What the record of a join has for attributes; the fork's indices of the n results follow, unless
 * it is joined whole. */
struct __attribute__((may_alias)) tape_join {
    struct tape *child;
    uint32_t first, n; /* on the parent */
};

extern const struct record_kind tape_join_kind;

static inline struct tape_join *tape_join_of(struct tape_record *r)
{
    return (struct tape_join *)(void *)tape_record_attr(r);
}

/* One of so many forks of a tape with this handle, which share the bytes that its budget has left;
 * parts: into how many its addresses are divided. NULL: out of memory. */
struct tape *tape_fork_make(struct tape *parent, uint32_t slot, uint32_t generation, int of,
                            int parts);

/* The child is of this handle's, and what its parent had at the fork is still there. */
bool tape_fork_is_of(const struct tape *child, uint32_t slot, uint32_t generation);
bool tape_fork_stands(const struct tape *parent, const struct tape *child);

/* The results of a child with the indices of[n], n > 0, are the parent's from *first on; the child
 * is owned by the parent. On failure it is not. of: NULL: all n that it has. */
enum tape_status tape_fork_join(struct tape *parent, struct tape *child, uint32_t n,
                                const uint32_t *of, struct tape_site site, uint32_t *first);

/* Copies what a child has recorded behind what the parent has, which a thread records on: its first
 * result is *first there, and the child may be given back. False: that is not worth it, or not
 * possible; nothing has happened, unless the parent has an error now. */
bool tape_fork_copy(struct tape *parent, struct tape *child, struct tape_site site,
                    uint32_t *first);

/* A child that is not joined is used no more: its memory is for the parent's next fork. */
void tape_fork_give(struct tape *parent, struct tape *child);

/* For the life of the parent: children joined from this index on are dropped; all are freed. */
void tape_fork_drop(struct tape *t, uint32_t index);
void tape_fork_end(struct tape *t);

/* Finds the lowest and the highest of the parent's indices that a joined child names, once:
 * fork.low and fork.high. */
void tape_fork_look(struct tape *child);

#endif
