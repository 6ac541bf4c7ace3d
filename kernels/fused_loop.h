/* fused loop.h: loops over real numbers that the tape records as one: values and pullbacks.
 *
 * Used by tape/ and ad/, which know nothing of the mathematics. A pullback is a pure function that
 * adds to the adjoints of its operands.
 *
 * Invariant: values do not depend on strides, and on the instruction set only by exp (log_sum_exp).
 */
#ifndef KERNEL_FUSED_LOOP_H
#define KERNEL_FUSED_LOOP_H

#include "kernel.h"

enum { KERNEL_FUSED_LOOP_IN = 8 };

/* Operands and results of one. Extents follow from these numbers: see each kind. */
struct kernel_fused_loop {
    int64_t m; /* results */
    int n_in;
    int64_t n[KERNEL_FUSED_LOOP_IN];
    const double *x[KERNEL_FUSED_LOOP_IN]; /* pullback: contiguous, NULL: not kept */
    int64_t stride[KERNEL_FUSED_LOOP_IN];  /* of values: 1, or 2 between elements of ad_real */
    double *y;                             /* results, y_stride apart */
    int64_t y_stride;
    double *saved; /* numbers of the kind's own; when values are computed NULL: not wanted */
    const double *dy;
    double *dx[KERNEL_FUSED_LOOP_IN]; /* NULL: constant */
};

/* Kind, operands and results:
 *   dot            x [n], y [n]; 1
 *   sum            x [n]; 1
 *   sum_of_squares x [m,n]; [m]: of each row
 *   log_sum_exp    x [n]; 1; saves the n shares
 *   axpy           a, x [n], y [n]; [n]: y + a x
 *   gemv           a [m,n], x [n]; [m]
 *   trmv           diagonal [n], below [n(n-1)/2] column by column, shift [n] or [0], x [k,n];
 *                  [k,n]: Q (x - shift) of each row
 *   polynomial     c [n], x; 1; saves x and the derivative by it (no x if n is 0)
 *   stencil        x [m+n-1], w [n]; [m]: sum_j w_j x_(i+j)
 *   map            k times x [n]; [n]; saves the partials by what is active
 *   collect        x [n]; [n]: x
 *   custom         x [n]; [m]: by the user's callback */
#define KERNEL_FUSED_LOOPS(X)                                                                      \
    X(dot)                                                                                         \
    X(sum)                                                                                         \
    X(sum_of_squares)                                                                              \
    X(log_sum_exp)                                                                                 \
    X(axpy)                                                                                        \
    X(gemv)                                                                                        \
    X(trmv)                                                                                        \
    X(polynomial)                                                                                  \
    X(stencil)                                                                                     \
    X(map)                                                                                         \
    X(collect)

#define KERNEL_FUSED_LOOP_ID(name) KERNEL_FUSED_LOOP_##name,
enum kernel_fused_loop_kind {
    KERNEL_FUSED_LOOPS(KERNEL_FUSED_LOOP_ID) KERNEL_FUSED_LOOP_custom,
    KERNEL_FUSED_LOOP_KINDS
};
#undef KERNEL_FUSED_LOOP_ID

/* A number of the user's as it lies in memory. */
struct __attribute__((may_alias)) kernel_real {
    double value;
    uint64_t key; /* index, and the tag in the upper half; 0: constant */
};

/* What was found in an array of them. */
struct kernel_real_scan {
    bool active;      /* some are no constants */
    bool consecutive; /* keys grow by one */
    bool seen;        /* values are those of `values`, to the bit */
};

/* All of them for one instruction set. */
struct kernel_fused_loop_loops {
    void (*value[KERNEL_FUSED_LOOP_KINDS])(const struct kernel_fused_loop *s);
    void (*pullback[KERNEL_FUSED_LOOP_KINDS])(const struct kernel_fused_loop *s);
    /* values: what they may be equal to, or NULL. n > 0. */
    struct kernel_real_scan (*scan)(int64_t n, const struct kernel_real *x, const double *values);
};

const struct kernel_fused_loop_loops *kernel_fused_loop_loops_get(void);
extern const char *const kernel_fused_loop_name[KERNEL_FUSED_LOOP_KINDS];

#endif
