/* tape_value.h: making values: entry, shape, buffer; all or nothing. */
#ifndef TAPE_VALUE_H
#define TAPE_VALUE_H

#include "tape_account.h"
#include "tape_disk.h"

/* Where the arena and the table ended before a call, to go back to when it fails. */
struct tape_point {
    struct tape_arena_mark arena;
    uint32_t n_values, last_guard;
};

static inline struct tape_point tape_point_take(struct tape *t)
{
    t->disk->making = t->n_values;
    return (struct tape_point){tape_arena_take_mark(&t->arena), t->n_values, t->last_guard};
}
/* The extents of an array that the user gives: a rank, an extent or the pointer that is not fit is
 * the tape's error. */
enum tape_status tape_extents_check(struct tape *t, const char *what, int rank,
                                    const int64_t *shape, struct tape_site site);

/* Drops the values made since, which are not accounted for yet. */
void tape_point_undo(struct tape *t, struct tape_point point);

/* Appends a value as `shape` says; in: the op's operands (for same_as and view_of). Its buffer
 * is allocated unless it is a view. NULL: out of memory; the caller undoes to his point. Not
 * accounted. */
struct tape_value *tape_value_make(struct tape *t, const struct kernel_shape *shape,
                                   const kernel_ref *in, uint32_t row);

/* The same over a row-major buffer that there is already, which is not accounted for with the value
 * and is not its own (TAPE_OWNS_DATA) yet. */
struct tape_value *tape_value_over(struct tape *t, const struct kernel_shape *shape, void *data,
                                   uint32_t row);

/* buffer [shape of v] += the values of `from`, row-major; `fresh`: = instead. */
void tape_add_into(const struct tape_value *v, void *buffer, const void *from, bool fresh);

/* Fills a row-major float array. */
void tape_fill_ones(const struct kernel_array *a);

/* "over the tape's budget …" or "out of memory": the arena has just refused. */
enum tape_status tape_fail_memory(struct tape *t, struct tape_site site, const char *what);

#endif
