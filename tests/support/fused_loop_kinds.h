/* fused_loop_kinds.h: every kind of fused loop as a call, and as the same loop in statements. */
#ifndef FUSED_LOOP_KINDS_H
#define FUSED_LOOP_KINDS_H

#include <tapescope/ad_real.h>

enum { FUSED_LOOP_IN = 4, FUSED_LOOP_COUNT = 27 };

struct fused_loop_shape {
    int m, n_in, n[FUSED_LOOP_IN];
};

struct fused_loop_case {
    const char *name;
    /* Extents for a size n. */
    struct fused_loop_shape (*shape)(int n);
    void (*fused_loop)(int n, const ad_array *x, ad_real *y);
    void (*loop)(int n, ad_real *const *x, ad_real *y);
};

extern const struct fused_loop_case fused_loop_cases[FUSED_LOOP_COUNT];

#endif
