/* tape_release.h: giving up values before a rewind: their handles, and the buffers that no pullback
 * reads.
 *
 * A value that is released stays in the table, since records name it and need its shape; its entry
 * has no generation, so that no handle finds it.
 *
 * Invariant: a buffer is freed only if its value and all views of it are released, and no record
 * whose sweep is still possible reads any of them.
 */
#ifndef TAPE_RELEASE_H
#define TAPE_RELEASE_H

#include "tape_account.h"

/* What released a value: the account's name for rows of such calls. */
extern const char tape_release_op[], tape_release_frame_op[], tape_release_sweep_op[];

/* Releases one value that is neither borrowed nor retained. AD_ERROR_STATE: it is. */
enum tape_status tape_release(struct tape *t, uint32_t x, struct tape_site site);

/* Releases the values made since `frame`, but those that stay, leaves, borrowed constants and
 * retained values. tape_release_keep says before that a value stays. */
void tape_release_keep(struct tape *t, uint32_t x);
void tape_release_behind(struct tape *t, const struct tape_frame *frame, struct tape_site site);

/* The hidden ones of an op's outputs: no handle names them, and it has left no record. */
void tape_release_hidden(struct tape *t, const struct kernel_op *op, const uint32_t *out);

/* A sweep from y that releases what it passes: before it; after each record; and in the end for
 * those from `at` on that it did not come to because it failed (UINT32_MAX: none). row: the
 * sweep's. The first is false where there is no memory for it, and then nothing is released. */
bool tape_release_plan(struct tape *t, uint32_t y);
void tape_release_passed(struct tape *t, struct tape_record *r, uint32_t row);
void tape_release_end(struct tape *t, uint32_t at, uint32_t row);

/* What a frame or a sweep has released is there by handles again, for a function of the user's
 * within a sweep, or is no more. x[n] */
void tape_release_wake(struct tape *t, int n, const uint32_t *x, bool awake);

/* How many buffers of the tape's are read by pullbacks of sweeps to come; *bytes: of how many bytes
 * together. */
uint64_t tape_release_saved(struct tape *t, uint64_t *bytes);

/* Nothing that the sweep from y reads was freed; else AD_ERROR_STATE, which says by what. wants:
 * the flag of values whose adjoint is wanted. Changes nothing but scratch. */
enum tape_status tape_release_verify(struct tape *t, uint32_t y, enum tape_flag wants,
                                     const char *what, struct tape_site site);

/* "was released at the end of its frame at mlp.c:41 in dense" of a value that was. */
void tape_release_describe(const struct tape *t, const struct tape_value *v, char *buf, size_t n);

#endif
