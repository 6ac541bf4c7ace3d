/* plain_blas.h: calls of BLAS and LAPACK over plain memory as records.
 *
 * A wrapper reads its operands, calls the program's own function, and makes one record of the
 * results, which has the function's values. Matrices are seen by their steps, so a layout, a
 * transposition, a leading dimension and an increment are all the same thing here.
 */
#ifndef PLAIN_BLAS_H
#define PLAIN_BLAS_H

#include <tapescope/ad_plain.h>

#include "plain_calls.h"

enum plain_part { PLAIN_WHOLE, PLAIN_LOWER, PLAIN_UPPER };

/* A matrix in memory: element (i, j) lies i row + j column elements behind `at`. Or, packed, one
 * half of a square without gaps: the steps say then by their order alone whether it goes by
 * columns. */
struct plain_view {
    void *at;
    int64_t m, n;
    int64_t row, column;
    bool packed;
    enum plain_part part; /* the rest is not touched, */
    bool symmetric;       /* but read from the other side of the diagonal; else it is 0 */
    bool unit;            /* the diagonal is not touched: it is 1 */
};

/* Numbers that were read: column by column. */
struct plain_numbers {
    int64_t m, n;
    ad_real *x;
    bool active;
};

/* A call that a wrapper makes for the program. */
struct plain_call {
    const char *name;
    uintptr_t self, real, pc;
    bool is_float;
    bool recorded; /* the function called was compiled by `tapescope cc`, and did it all itself */
    bool failed;   /* no memory: said */
    uint32_t index[2];       /* of floating arguments */
    uint32_t result;         /* of a floating result */
    struct plain_held *held; /* memory until its end */
};

void plain_call_begin(struct plain_call *call);
/* Around the call of the program's function. */
void plain_call_enter(struct plain_call *call);
void plain_call_leave(struct plain_call *call);
void plain_call_end(struct plain_call *call);

/* A wrapper begins with this: `call` is made. */
#define PLAIN_CALL(function, of_floats)                                                            \
    struct plain_call call = {.name = #function,                                                   \
                              .self = (uintptr_t)ad_plain_call_##function,                         \
                              .pc = PLAIN_HERE,                                                    \
                              .is_float = (of_floats)};                                            \
    plain_call_begin(&call)
/* Calls the program's function; `y = ` may stand before it. */
#define PLAIN_REAL(function) ((__typeof__(&ad_plain_call_##function))call.real)

/* Memory until the end of the call, or NULL: that is said. */
void *plain_call_memory(struct plain_call *call, size_t n, size_t size);

/* An argument by value, the k-th of the floating ones; and a number in memory. */
ad_real plain_argument(const struct plain_call *call, unsigned k, double value);
ad_real plain_number(const struct plain_call *call, const void *at);

/* Whether an element of the view has an index. */
bool plain_any(const struct plain_call *call, const struct plain_view *v);
struct plain_numbers plain_read_view(struct plain_call *call, const struct plain_view *v);
/* The values that lie there now, column by column. */
double *plain_values_of(struct plain_call *call, const struct plain_view *v);
/* What lies there now has these indices; y NULL: it is constants. */
void plain_name_view(const struct plain_call *call, const struct plain_view *v, const ad_real *y);
/* A gradient is lost in this call. */
void plain_call_lost(const struct plain_call *call, const char *why);

/* The records: values[m,n] are the results; NULL where memory failed or nothing is active.
 *
 *   product   alpha a b + beta c; c NULL: beta is 0
 *   solve     a^-1 b, a triangular, times alpha
 *   lu        the factors of a in one matrix; pivot[n]: the row by which each was exchanged, from 1
 *   cholesky  the lower factor of a, of which the lower half was read
 *   norm      of the vector a, its length; or the sum of what its elements are without sign
 *   eigenvalues  of a symmetric tridiagonal matrix, in rising order */
ad_real *plain_product(struct plain_call *call, ad_real alpha, const struct plain_numbers *a,
                       const struct plain_numbers *b, ad_real beta, const struct plain_numbers *c,
                       const double *values);
ad_real *plain_solve(struct plain_call *call, ad_real alpha, const struct plain_numbers *a,
                     bool lower, const struct plain_numbers *b, const double *values);
/* The values of such a solution, of this library's own. */
double *plain_solved(struct plain_call *call, const struct plain_numbers *a, bool lower,
                     const struct plain_numbers *b);
ad_real *plain_lu(struct plain_call *call, const struct plain_numbers *a, const int *pivot,
                  const double *values);
ad_real *plain_cholesky(struct plain_call *call, const struct plain_numbers *a,
                        const double *values);
ad_real *plain_norm(struct plain_call *call, const struct plain_numbers *a, bool of_squares,
                    const double *values);
ad_real *plain_eigenvalues(struct plain_call *call, const struct plain_numbers *diagonal,
                           const struct plain_numbers *beside, const double *values);

/* ---- arguments as they are passed ---- */

/* As cblas.h and lapacke.h have them. */
enum {
    PLAIN_ROW_MAJOR = 101,
    PLAIN_COLUMN_MAJOR = 102,
    PLAIN_NO_TRANS = 111,
    PLAIN_TRANS = 112,
    PLAIN_CONJUGATE = 113,
    PLAIN_UPPER_HALF = 121,
    PLAIN_LOWER_HALF = 122,
    PLAIN_NON_UNIT = 131,
    PLAIN_UNIT = 132,
    PLAIN_LEFT = 141,
    PLAIN_RIGHT = 142
};

/* Fortran's letters as these. */
static inline bool plain_is(char c, char letter)
{
    return (c | ' ') == letter;
}
#define PLAIN_TRANS_OF(c) (plain_is(c, 'n') ? PLAIN_NO_TRANS : PLAIN_TRANS)
#define PLAIN_HALF_OF(c) (plain_is(c, 'l') ? PLAIN_LOWER_HALF : PLAIN_UPPER_HALF)
#define PLAIN_DIAGONAL_OF(c) (plain_is(c, 'u') ? PLAIN_UNIT : PLAIN_NON_UNIT)
#define PLAIN_SIDE_OF(c) (plain_is(c, 'l') ? PLAIN_LEFT : PLAIN_RIGHT)

/* A function that takes the place of the program's. Those of Fortran get the lengths of strings
 * behind their arguments, or, from C, often do not: they go on as they are. */
#define PLAIN_WRAPPER(type, function, ...)                                                         \
    type ad_plain_call_##function(__VA_ARGS__);                                                    \
    type ad_plain_call_##function(__VA_ARGS__)

/* The m rows and n columns of a matrix, or of its transpose. */
static inline struct plain_view plain_matrix(int layout, const void *at, bool transposed, int64_t m,
                                             int64_t n, int64_t ld)
{
    const bool by_columns = (layout == PLAIN_COLUMN_MAJOR) != transposed;
    return (struct plain_view){.at = (void *)(uintptr_t)at,
                               .m = m,
                               .n = n,
                               .row = by_columns ? 1 : ld,
                               .column = by_columns ? ld : 1};
}

/* No leading dimension: the half of a matrix is packed. */
enum { PLAIN_PACKED = -1 };

/* One half of a matrix of n rows, or of its transpose: there it is the other. */
static inline struct plain_view plain_half(int layout, const void *at, bool transposed, bool lower,
                                           int64_t n, int64_t ld)
{
    const bool packed = ld == PLAIN_PACKED;
    struct plain_view v = plain_matrix(layout, at, transposed, n, n, packed ? 2 : ld);
    v.packed = packed;
    v.part = lower != transposed ? PLAIN_LOWER : PLAIN_UPPER;
    return v;
}

static inline struct plain_view plain_flipped(struct plain_view v)
{
    const struct plain_view was = v;
    v.m = was.n;
    v.n = was.m;
    v.row = was.column;
    v.column = was.row;
    if (v.part != PLAIN_WHOLE)
        v.part = v.part == PLAIN_LOWER ? PLAIN_UPPER : PLAIN_LOWER;
    return v;
}

#endif
