/* check_tape.h: for tests of gradients: one op on the tape, its operands made of leaves.
 *
 * All leaves together are one vector x, all float outputs together one vector y, both of doubles
 * and row-major; so every op is a function from x to y, whatever its operands. One tape serves
 * all: each check_run() resets it, and what was handed out before is then gone.
 */
#ifndef CHECK_TAPE_H
#define CHECK_TAPE_H

#include "tape.h"

/* How an operand is made of its leaf. */
enum check_form {
    CHECK_PLAIN,      /* it is the leaf */
    CHECK_MIDDLE,     /* an intermediate value with the leaf's elements: its adjoint is transient */
    CHECK_TRANSPOSED, /* a view with the last two axes exchanged */
    CHECK_STRETCHED,  /* a view that repeats an axis 0 of extent 1 `stretch` times */
    CHECK_FORMS
};

struct check_leaf {
    int dtype, rank;
    int64_t shape[KERNEL_MAX_RANK];
    double low, high;
    bool active; /* else it is a constant */
};

struct check_operand {
    int leaf;
    enum check_form form;
    int64_t stretch;
};

struct check_case {
    const struct kernel_op *op;
    int n_leaves, n_in, n_attr;
    struct check_leaf leaf[KERNEL_MAX_IN];
    struct check_operand in[KERNEL_MAX_IN];
    int64_t attr[KERNEL_MAX_ATTR];
    double diagonal[KERNEL_MAX_IN]; /* as in a sample: what raises the diagonals of leaf i */
    unsigned whole;                 /* bit i: leaf i takes whole numbers, drawn like integers */
    int sample;                     /* its number, for messages; -1: not one of the op's own */
    const char *aim;                /* what the case is about, for messages */
};

/* The values of one recording. */
struct check_run {
    uint32_t leaf[KERNEL_MAX_IN], in[KERNEL_MAX_IN], out[KERNEL_MAX_OUT];
};

extern const struct tape_site check_site;

/* The tape. */
struct tape *check_tape(void);

/* A case of an op's sample, all float operands in `dtype` and active. */
struct check_case check_case_of(const struct kernel_op *op, const struct kernel_sample *sample,
                                int dtype, int number);

/* Lengths of a leaf and of x. */
int64_t check_leaf_size(const struct check_leaf *leaf);
int64_t check_x_size(const struct check_case *c);

/* Fills x within the leaves' domains; a case has always the same x. Every leaf has a lattice of its
 * own, so that kinks at ties are out of reach of differences: elements of two leaves differ by at
 * least four times CHECK_REACH, those of one leaf (up to 500 in a domain of 4) by that or not at
 * all. No element is nearer than 2 CHECK_REACH to zero, or in a case of one leaf to a multiple of 4
 * CHECK_REACH. Whole numbers are excepted. Numbers are those that f32 can hold. */
#define CHECK_REACH 5e-4
void check_draw(const struct check_case *c, double *x);
/* n numbers in [-1, 1] that f32 can hold. */
void check_random(uint64_t seed, int64_t n, double *out);

/* Records the op at x on the emptied tape: first leaves and operands, then the op. Operands of one
 * leaf and form are one value. Fails the test if the tape refuses. */
void check_run(const struct check_case *c, const double *x, struct check_run *run);
void check_run_operands(const struct check_case *c, const double *x, struct check_run *run);
void check_run_op(const struct check_case *c, struct check_run *run);

/* Length of y, and y. */
int64_t check_y_size(const struct check_case *c, const struct check_run *run);
void check_values(const struct check_case *c, const struct check_run *run, double *y);

/* A value's elements as doubles. */
void check_read(uint32_t value, double *out);
/* A constant or leaf of a value's shape and dtype over these elements (copied). */
uint32_t check_like(uint32_t value, const double *elements, bool leaf);
/* Memory that lasts until the next check_run(). */
void *check_memory(size_t bytes);

/* One value from an op without attributes. Fails the test if the tape refuses. */
uint32_t check_apply(const struct kernel_op *op, int n_in, const uint32_t *in);

/* The value in another float dtype. */
uint32_t check_cast(uint32_t value, int dtype);

/* Sweeps from each output with its part of u as seed; then the leaves' gradients, zero where none
 * arrived, in g. */
void check_sweep(const struct check_case *c, const struct check_run *run, const double *u,
                 double *g);
void check_gradients(const struct check_case *c, const struct check_run *run, double *g);
/* Overwrites every buffer on the tape that no record says it saves: floats by NaN, integers by
 * INT64_MIN. What a pullback reads without saying so then shows in the gradient. */
void check_poison(void);
/* check_run(), check_poison() and check_sweep(). */
void check_pullback(const struct check_case *c, const double *x, const double *u, double *g);

/* The same op at x with no gradients recorded. */
void check_forward(const struct check_case *c, const double *x, double *y);

/* Begins and ends an observation by a hook that only counts. */
void check_observe(bool on);

#endif
