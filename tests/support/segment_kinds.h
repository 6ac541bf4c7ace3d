/* segment_kinds.h: every kind of segment as a call, and as the same loop in statements. */
#ifndef SEGMENT_KINDS_H
#define SEGMENT_KINDS_H

#include <tapescope/ad_real.h>

enum { SEGMENT_IN = 4, SEGMENT_COUNT = 15 };

struct segment_shape {
    int m, n_in, n[SEGMENT_IN];
};

struct segment_case {
    const char *name;
    /* Extents for a size n. */
    struct segment_shape (*shape)(int n);
    void (*segment)(int n, const ad_array *x, ad_real *y);
    void (*loop)(int n, ad_real *const *x, ad_real *y);
};

extern const struct segment_case segment_cases[SEGMENT_COUNT];

#endif
