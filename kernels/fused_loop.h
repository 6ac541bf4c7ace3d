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

enum { KERNEL_FUSED_LOOP_IN = 16 };

/* What a stencil does with the points that it does not fit on: there are no results for them, they
 * stay as they are, points beyond the edge are 0, or they are those from the opposite edge. */
enum kernel_edge {
    KERNEL_EDGE_SHRINK,
    KERNEL_EDGE_KEEP,
    KERNEL_EDGE_ZERO,
    KERNEL_EDGE_WRAP,
    KERNEL_EDGES
};

/* A stencil of k[0] by k[1] by k[2] taps on as many points, row-major. */
struct kernel_grid {
    int64_t n[3], k[3];
    int64_t edge;
};
enum { KERNEL_GRID_DOUBLES = sizeof(struct kernel_grid) / sizeof(double) };

/* Operands and results of one. Extents follow from these numbers: see each kind. */
struct kernel_fused_loop {
    int64_t m; /* results */
    int n_in;
    int64_t n[KERNEL_FUSED_LOOP_IN];
    const double *x[KERNEL_FUSED_LOOP_IN]; /* pullback: contiguous, NULL: not kept */
    int64_t stride[KERNEL_FUSED_LOOP_IN];  /* of values: 1, or 2 between elements of ad_real */
    double *y;                             /* results, y_stride apart */
    int64_t y_stride;
    double *saved;   /* numbers of the kind's own; when values are computed NULL: not wanted */
    const void *own; /* of values: what the kind is told besides operands */
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
 *   grid_stencil   x [n0,n1,n2], w [k0,k1,k2]; own: a struct kernel_grid, saved; taps of weight 0
 *                  are passed over
 *   map            k times x [n] or [1]; [n]; saves the partials by what is active, n each
 *   collect        x [n]; [n]: x
 *   gather         the same
 *   scatter_add    y [n], x [k]; [n]; own: int32_t [k], saved: y, and y_(own_i) += x_i
 *   custom         x [n]; [m]: by the user's callback
 *   compiled       any; any: a loop of plain C, by code that was compiled for it */
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
    X(grid_stencil)                                                                                \
    X(map)                                                                                         \
    X(collect)                                                                                     \
    X(gather)                                                                                      \
    X(scatter_add)

#define KERNEL_FUSED_LOOP_ID(name) KERNEL_FUSED_LOOP_##name,
enum kernel_fused_loop_kind {
    KERNEL_FUSED_LOOPS(KERNEL_FUSED_LOOP_ID) KERNEL_FUSED_LOOP_custom,
    KERNEL_FUSED_LOOP_compiled,
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
