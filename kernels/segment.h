/* segment.h: loops over real numbers that the tape records as one: values and pullbacks.
 *
 * Used by tape/ and ad/, which know nothing of the mathematics. A pullback is a pure function that
 * adds to the adjoints of its operands.
 *
 * Invariant: values do not depend on strides, and on the instruction set only by exp (log_sum_exp).
 */
#ifndef KERNEL_SEGMENT_H
#define KERNEL_SEGMENT_H

#include "kernel.h"

enum { KERNEL_SEGMENT_IN = 8 };

/* Operands and results of one. Extents follow from these numbers: see each kind. */
struct kernel_segment {
    int64_t m; /* results */
    int n_in;
    int64_t n[KERNEL_SEGMENT_IN];
    const double *x[KERNEL_SEGMENT_IN]; /* pullback: contiguous, NULL: not kept */
    int64_t stride[KERNEL_SEGMENT_IN];  /* of values: 1, or 2 between elements of ad_real */
    double *y;                          /* results, y_stride apart */
    int64_t y_stride;
    double *saved; /* numbers of the kind's own; when values are computed NULL: not wanted */
    const double *dy;
    double *dx[KERNEL_SEGMENT_IN]; /* NULL: constant */
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
#define KERNEL_SEGMENTS(X)                                                                         \
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

#define KERNEL_SEGMENT_ID(name) KERNEL_SEGMENT_##name,
enum kernel_segment_kind {
    KERNEL_SEGMENTS(KERNEL_SEGMENT_ID) KERNEL_SEGMENT_custom,
    KERNEL_SEGMENT_KINDS
};
#undef KERNEL_SEGMENT_ID

/* A number of the user's as it lies in memory. */
struct __attribute__((may_alias)) kernel_real {
    double value;
    uint64_t key; /* index, and the tag in the upper half; index 0: constant */
};

/* What was found in an array of them. */
struct kernel_real_scan {
    bool active;      /* some are no constants */
    bool consecutive; /* keys grow by one */
    bool seen;        /* values are those of `values`, to the bit */
};

/* All of them for one instruction set. */
struct kernel_segment_loops {
    void (*value[KERNEL_SEGMENT_KINDS])(const struct kernel_segment *s);
    void (*pullback[KERNEL_SEGMENT_KINDS])(const struct kernel_segment *s);
    /* values: what they may be equal to, or NULL. n > 0. */
    struct kernel_real_scan (*scan)(int64_t n, const struct kernel_real *x, const double *values);
};

const struct kernel_segment_loops *kernel_segment_loops_get(void);
extern const char *const kernel_segment_name[KERNEL_SEGMENT_KINDS];

#endif
