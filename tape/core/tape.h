/* tape.h: the tape's interface to ad/: create, apply, sweep, mark, errors.
 *
 * Every function is for the tape's own thread, but for tape_observe_*. Functions that can fail
 * return a tape_status and leave the same in the tape's sticky error, unless they say otherwise; a
 * failed call leaves the tape as it was before.
 */
#ifndef TAPE_H
#define TAPE_H

#include "tape_types.h"

struct tape_options {
    const struct tape_memory *memory; /* copied; NULL: tape_memory_system */
    uint64_t budget_bytes, reserve_bytes;
    bool no_huge_pages;
    bool unlisted;        /* no observation of the process' tapes sees it, and it has no number */
    uint64_t whole_bytes; /* see struct tape */
    void (*describe)(struct tape_site site, char *buf, size_t n);
    uintptr_t (*locate)(uint32_t low, uintptr_t near);
};

/* NULL if memory is refused. */
struct tape *tape_create(const struct tape_options *options);
void tape_destroy(struct tape *t);

void tape_reset(struct tape *t);
/* Level of the new mark, or UINT32_MAX (out of memory; not sticky). */
uint32_t tape_mark(struct tape *t);
void tape_rewind(struct tape *t, uint32_t level);
/* What sees to it that older values stay (tape.fixed), for messages. */
const char *tape_fixed_by(const struct tape *t);
/* The present end without a level; dropping what lies behind it, which no handle may name yet. */
struct tape_mark tape_mark_here(struct tape *t);
void tape_drop_behind(struct tape *t, const struct tape_mark *mark);

/* Keeps the first failure: "text at mlp.c:41 in dense". Returns code. */
enum tape_status tape_fail(struct tape *t, enum tape_status code, struct tape_site site,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same with a failure that was made elsewhere. Returns its code. */
enum tape_status tape_fail_as(struct tape *t, const struct tape_error *error);

/* A leaf or constant over the user's array (borrowed), or over a copy of it, which the tape owns: a
 * leaf, or of a file's array a leaf of floats and a constant of integers. shape is checked. *out:
 * its index. */
enum tape_given { TAPE_GIVEN_CONSTANT, TAPE_GIVEN_LEAF, TAPE_GIVEN_COPY, TAPE_GIVEN_LOADED };
extern const char *const tape_given_name[];
enum tape_status tape_borrow(struct tape *t, int dtype, int rank, const int64_t *shape,
                             const void *data, enum tape_given given, struct tape_site site,
                             uint32_t *out);
/* A constant of rank 0 holding a number of this dtype; of a float value's shape holding zeros or
 * ones; an alias. */
enum tape_status tape_scalar(struct tape *t, int dtype, const void *number, struct tape_site site,
                             uint32_t *out);
enum tape_status tape_zeros(struct tape *t, uint32_t like, struct tape_site site, uint32_t *out);
enum tape_status tape_ones(struct tape *t, uint32_t like, struct tape_site site, uint32_t *out);
enum tape_status tape_detach(struct tape *t, uint32_t x, struct tape_site site, uint32_t *out);

/* Runs an op on values of the tape and records it if an operand needs a gradient.
 * out[op->n_out]. */
enum tape_status tape_apply(struct tape *t, const struct kernel_op *op, int n_in,
                            const uint32_t *in, int n_attr, const int64_t *attr,
                            struct tape_site site, uint32_t *out);

/* Runs the op of a record again, into the values that it made. Times are chained (tape.stamp). */
enum tape_status tape_apply_again(struct tape *t, struct tape_record *r);

/* Copies a value, or a row-major buffer of its shape, into `buffer`, row-major. */
void tape_read(const struct tape *t, uint32_t x, void *buffer);

/* The reverse sweep from y; seed: a value of y's shape, or 0 for ones. The second gives up the
 * values of the records that it has passed, and with them these records. */
enum tape_status tape_sweep(struct tape *t, uint32_t y, uint32_t seed, struct tape_site site);
enum tape_status tape_sweep_release(struct tape *t, uint32_t y, uint32_t seed,
                                    struct tape_site site);
/* The first from each of n seeds at once: row-major arrays of y's shape and dtype that lie behind
 * each other. The buffers of the leaves on the way have room for as many gradients, likewise, and
 * hold none. n > 1: only where tape_sweep_takes_seeds. Without memory for them it returns
 * TAPE_ERROR_MEMORY and is no error of the tape's yet, since fewer seeds may do. again: not the
 * first such sweep in a call of the user's; the arrays that it reads were compared with what the
 * records found there, and are not again. */
enum tape_status tape_sweep_seeds(struct tape *t, uint32_t y, uint32_t n, const void *seeds,
                                  bool again, struct tape_site site);
/* Every record that such a sweep can come to takes several seeds: it is of one of the kernels' ops,
 * and nobody looks at single adjoints. */
bool tape_sweep_takes_seeds(const struct tape *t);
/* The reverse sweep from n results of scalar statements (0 counts as a constant), each with a seed;
 * and the derivatives of y[m] by x[n], row-major, which changes no gradient. */
enum tape_status tape_sweep_statements(struct tape *t, int64_t n, const uint32_t *y,
                                       const double *seed, struct tape_site site);
enum tape_status tape_jacobian_statements(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                          const uint32_t *x, double *jacobian,
                                          struct tape_site site);
/* Records the pullbacks of y with respect to x[n]; gradient[i] receives a value. */
enum tape_status tape_graph(struct tape *t, uint32_t y, uint32_t seed, int n, const uint32_t *x,
                            struct tape_site site, uint32_t *gradient);
extern const char tape_graph_op[]; /* what sweep_refuse is told then */

/* Of all values only those that records behind `end` made of x need a gradient from now on, and x.
 * False: out of memory. */
bool tape_graph_only(struct tape *t, uint32_t x, uint32_t end);
/* The same while derivatives are being recorded (record_kind.graph): x are newer than what they are
 * of. */
enum tape_status tape_graph_within(struct tape *t, uint32_t y, uint32_t seed, int n,
                                   const uint32_t *x, struct tape_site site, uint32_t *gradient);

/* x's gradient means something: a sweep has been since it was cleared by a reset or a rewind (or by
 * tape_zero_gradients, which makes zeros of it), for a retained value since tape_retain. */
bool tape_was_swept(const struct tape *t, const struct tape_value *v);
void tape_zero_gradients(struct tape *t);
/* The gradient's buffer, or NULL if none has arrived. x: a leaf or retained value. */
const void *tape_gradient(const struct tape *t, uint32_t x);
enum tape_status tape_retain(struct tape *t, uint32_t x, struct tape_site site);
/* Sweeps that end well add x's gradient into the user's buffer from now on; NULL: into the
 * tape's. */
enum tape_status tape_gradient_buffer(struct tape *t, uint32_t x, void *buffer,
                                      struct tape_site site);

/* The tape is the calling thread's from now on, or nobody's. */
void tape_observe_adopt(struct tape *t, bool mine);
/* Begins and ends the observation of all tapes of the process; any thread. end calls hook->flush
 * for every live tape. Returns false if another observation is under way. */
bool tape_observe_begin(struct tape_hook *hook);
void tape_observe_end(void);
/* Flushes the tapes without ending the observation. */
void tape_observe_flush(void);
/* Is called at the end of each sweep that ends well, in its thread; NULL: nobody asks. */
extern void (*tape_sweep_watch)(void);
/* The child of a fork observes nothing. */
void tape_observe_forget(void);
/* Bytes that the calling thread's tapes hold, without the room in their newest blocks of statements
 * that is still free. */
uint64_t tape_observe_held(void);
/* That room, of one tape. */
uint64_t tape_observe_unused(const struct tape *t);

#endif
