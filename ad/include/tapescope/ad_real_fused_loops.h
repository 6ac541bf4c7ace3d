/* ad_real_fused_loops.h: loops over ad_real that are recorded as one. Included by ad_real.h.
 *
 *     ad_real y = ad_real_dot(n, x, w);       // one record, whatever n is
 *     ad_real_gemv(m, n, a, x, z);            // z[m] = a[m,n] x[n]
 *
 * An operand is an array of ad_real or of double, const or not; nothing else compiles. Where
 * nothing is active, nothing is recorded and the results are constants. Operands are always checked
 * to be values of the tape that is recorded on, whatever AD_REAL_CHECKED is. Values that a pullback
 * needs are copied to the tape once for each array of consecutive results (or address of
 * constants), however many records use it; indices that are not consecutive cost 4 bytes each.
 * docs/reference/scalars.md has the bytes of each record.
 *
 * Results must not overlap operands unless it says so. After an error they are poisoned. Errors:
 * those of statements; AD_ERROR_ARGUMENT (an extent is negative, a null pointer where there are
 * elements, an overlap); AD_ERROR_LIMIT (2^32 numbers, or no indices are left).
 */
#ifndef TAPESCOPE_AD_REAL_FUSED_LOOPS_H
#define TAPESCOPE_AD_REAL_FUSED_LOOPS_H

#include <tapescope/ad_real_expression.h>

/* An operand: one of the two, or none where it has no elements. ad_array_of(x) makes it. */
typedef struct ad_array {
    const ad_real *real;
    const double *number;
#ifdef __cplusplus
    ad_array() = default;
    ad_array(const ad_real *x) : real(x), number(0)
    {
    }
    ad_array(const double *x) : real(0), number(x)
    {
    }
#endif
} ad_array;

AD_INLINE ad_array ad_array_real_(const ad_real *x)
{
    ad_array a;
    a.real = x;
    a.number = 0;
    return a;
}

AD_INLINE ad_array ad_array_number_(const double *x)
{
    ad_array a;
    a.real = 0;
    a.number = x;
    return a;
}

#ifdef __cplusplus
AD_INLINE ad_array ad_array_of(ad_array x)
{
    return x;
}
#else
#define ad_array_of(x)                                                                             \
    _Generic((x), ad_real *                                                                        \
             : ad_array_real_, const ad_real *                                                     \
             : ad_array_real_, double *                                                            \
             : ad_array_number_, const double *                                                    \
             : ad_array_number_)(x)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Computes n values at once: y[i] = f(x[0][i], x[1][i], ...), and where partial[k] is not NULL
 * partial[k][i], the derivative by x[k][i]. It is called for parts of the arrays, and may not use
 * the tape: AD_ERROR_STATE. */
typedef void ad_map_callback(void *payload, int64_t n, const double *const *x, double *y,
                             double *const *partial);

/* What a stencil does where it reaches beyond the edge. */
typedef enum ad_edge {
    AD_EDGE_SHRINK, /* no results there: n - k + 1 of n points */
    AD_EDGE_KEEP,   /* they stay as they are */
    AD_EDGE_ZERO,   /* points beyond the edge are 0 */
    AD_EDGE_WRAP    /* points beyond the edge are those from the opposite one */
} ad_edge;

/* Adds to x_adjoint[n] what y_adjoint[m] gives by the operands; data: the copy on the tape, 8-byte
 * aligned. Sweeps of several seeds call it for each. It may not use the tape: AD_ERROR_STATE. */
typedef void ad_custom_callback(const void *data, int64_t m, const double *y_adjoint, int64_t n,
                                double *x_adjoint);

/* ---- what the macros below call ---- */

struct ad_custom_ {
    const char *name;
    ad_custom_callback *pullback;
    const void *data;
    size_t bytes;
};

AD_INLINE struct ad_custom_ ad_custom_of_(const char *name, ad_custom_callback *pullback,
                                          const void *data, size_t bytes)
{
    struct ad_custom_ c;
    c.name = name;
    c.pullback = pullback;
    c.data = data;
    c.bytes = bytes;
    return c;
}

AD_SITED(ad_real, ad_real_dot_, (int64_t n, ad_array x, ad_array y), (n, x, y))
AD_SITED(ad_real, ad_real_sum_, (int64_t n, ad_array x), (n, x))
AD_SITED(ad_status, ad_real_sums_of_squares_, (int64_t m, int64_t n, ad_array x, ad_real *y),
         (m, n, x, y))
AD_SITED(ad_real, ad_real_sum_of_squares_, (int64_t n, ad_array x), (n, x))
AD_SITED(ad_real, ad_real_log_sum_exp_, (int64_t n, ad_array x), (n, x))
AD_SITED(ad_status, ad_real_axpy_, (int64_t n, ad_real a, ad_array x, ad_real *y), (n, a, x, y))
AD_SITED(ad_status, ad_real_gemv_, (int64_t m, int64_t n, ad_array a, ad_array x, ad_real *y),
         (m, n, a, x, y))
AD_SITED(ad_status, ad_real_trmv_,
         (int64_t n, ad_array diagonal, ad_array below, ad_array x, ad_real *y),
         (n, diagonal, below, x, y))
AD_SITED(ad_status, ad_real_trmm_,
         (int64_t k, int64_t n, ad_array diagonal, ad_array below, ad_array shift, ad_array x,
          ad_real *y),
         (k, n, diagonal, below, shift, x, y))
AD_SITED(ad_real, ad_real_polynomial_, (int64_t n, ad_array c, ad_real x), (n, c, x))
AD_SITED(ad_status, ad_real_stencil_, (int64_t n, ad_array x, int64_t k, ad_array w, ad_real *y),
         (n, x, k, w, y))
AD_SITED(ad_status, ad_real_stencil_2d_,
         (int64_t n0, int64_t n1, ad_array x, int64_t k0, int64_t k1, ad_array w, ad_edge edge,
          ad_real *y),
         (n0, n1, x, k0, k1, w, edge, y))
AD_SITED(ad_status, ad_real_stencil_3d_,
         (int64_t n0, int64_t n1, int64_t n2, ad_array x, int64_t k0, int64_t k1, int64_t k2,
          ad_array w, ad_edge edge, ad_real *y),
         (n0, n1, n2, x, k0, k1, k2, w, edge, y))
AD_SITED(ad_status, ad_real_gather_,
         (int64_t m, int64_t n, ad_array x, const int *index, ad_real *y), (m, n, x, index, y))
AD_SITED(ad_status, ad_real_scatter_add_,
         (int64_t m, ad_array x, const int *index, int64_t n, ad_real *y), (m, x, index, n, y))
AD_SITED(ad_status, ad_real_map_with_,
         (int64_t n, int n_in, const ad_array *x, int n_scalars, const ad_real *scalar, ad_real *y,
          ad_map_callback *callback, void *payload),
         (n, n_in, x, n_scalars, scalar, y, callback, payload))
AD_SITED(ad_status, ad_real_map_,
         (int64_t n, int n_in, const ad_array *x, ad_real *y, ad_map_callback *callback,
          void *payload),
         (n, n_in, x, y, callback, payload))
AD_SITED(ad_status, ad_real_collect_, (int64_t n, ad_array x, ad_real *y), (n, x, y))
AD_SITED(ad_status, ad_real_custom_,
         (int64_t n, ad_array x, int64_t m, const double *values, ad_real *y,
          struct ad_custom_ custom),
         (n, x, m, values, y, custom))

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus

/* The functions that C has as macros below, which say what they do. */
#define AD_LOOP_(type, name, parameters, ...)                                                      \
    AD_INLINE type name(AD_UNPAREN parameters AD_LINE_PARAMETER_)                                  \
    {                                                                                              \
        return name##__at(__VA_ARGS__, ad_line_);                                                  \
    }
AD_LOOP_(ad_real, ad_real_dot, (int64_t n, ad_array x, ad_array y), n, x, y)
AD_LOOP_(ad_real, ad_real_sum, (int64_t n, ad_array x), n, x)
AD_LOOP_(ad_real, ad_real_sum_of_squares, (int64_t n, ad_array x), n, x)
AD_LOOP_(ad_status, ad_real_sums_of_squares, (int64_t m, int64_t n, ad_array x, ad_real *y), m, n,
         x, y)
AD_LOOP_(ad_real, ad_real_log_sum_exp, (int64_t n, ad_array x), n, x)
AD_LOOP_(ad_status, ad_real_axpy, (int64_t n, ad_real a, ad_array x, ad_real *y), n, a, x, y)
AD_LOOP_(ad_status, ad_real_gemv, (int64_t m, int64_t n, ad_array a, ad_array x, ad_real *y), m, n,
         a, x, y)
AD_LOOP_(ad_status, ad_real_trmv,
         (int64_t n, ad_array diagonal, ad_array below, ad_array x, ad_real *y), n, diagonal, below,
         x, y)
AD_LOOP_(ad_status, ad_real_trmm,
         (int64_t k, int64_t n, ad_array diagonal, ad_array below, ad_array shift, ad_array x,
          ad_real *y),
         k, n, diagonal, below, shift, x, y)
AD_LOOP_(ad_real, ad_real_polynomial, (int64_t n, ad_array c, ad_real x), n, c, x)
AD_LOOP_(ad_status, ad_real_stencil, (int64_t n, ad_array x, int64_t k, ad_array w, ad_real *y), n,
         x, k, w, y)
AD_LOOP_(ad_status, ad_real_stencil_2d,
         (int64_t n0, int64_t n1, ad_array x, int64_t k0, int64_t k1, ad_array w, ad_edge edge,
          ad_real *y),
         n0, n1, x, k0, k1, w, edge, y)
AD_LOOP_(ad_status, ad_real_stencil_3d,
         (int64_t n0, int64_t n1, int64_t n2, ad_array x, int64_t k0, int64_t k1, int64_t k2,
          ad_array w, ad_edge edge, ad_real *y),
         n0, n1, n2, x, k0, k1, k2, w, edge, y)
AD_LOOP_(ad_status, ad_real_gather,
         (int64_t m, int64_t n, ad_array x, const int *index, ad_real *y), m, n, x, index, y)
AD_LOOP_(ad_status, ad_real_scatter_add,
         (int64_t m, ad_array x, const int *index, int64_t n, ad_real *y), m, x, index, n, y)
AD_LOOP_(ad_status, ad_real_map_with,
         (int64_t n, int n_in, const ad_array *x, int n_scalars, const ad_real *scalar, ad_real *y,
          ad_map_callback *callback, void *payload),
         n, n_in, x, n_scalars, scalar, y, callback, payload)
AD_LOOP_(ad_status, ad_real_map,
         (int64_t n, int n_in, const ad_array *x, ad_real *y, ad_map_callback *callback,
          void *payload),
         n, n_in, x, y, callback, payload)
AD_LOOP_(ad_status, ad_real_collect, (int64_t n, ad_array x, ad_real *y), n, x, y)
AD_LOOP_(ad_status, ad_real_custom,
         (int64_t n, ad_array x, int64_t m, const double *values, ad_real *y, const char *name,
          ad_custom_callback *pullback, const void *data, size_t bytes),
         n, x, m, values, y, ad_custom_of_(name, pullback, data, bytes))
#undef AD_LOOP_

#else

/* ---- sums ---- */

/* The sum of x[i] y[i]; x and y may be one array. */
#define ad_real_dot(n, x, y) ad_real_dot__at(n, ad_array_of(x), ad_array_of(y), AD_LINE_HERE_)
/* The sum of x[n]. */
#define ad_real_sum(n, x) ad_real_sum__at(n, ad_array_of(x), AD_LINE_HERE_)
/* The sum of the squares of x[n], or y[m]: of each row of x[m,n]. */
#define ad_real_sum_of_squares(n, x) ad_real_sum_of_squares__at(n, ad_array_of(x), AD_LINE_HERE_)
#define ad_real_sums_of_squares(m, n, x, y)                                                        \
    ad_real_sums_of_squares__at(m, n, ad_array_of(x), AD_TARGET_(y), AD_LINE_HERE_)
/* ln(sum of e^x[i]), without overflow. Of nothing it is -inf; NaN if an element is; inf if one is,
 * -inf if all are, and the derivative by infinite elements is NaN then where they are the
 * greatest. */
#define ad_real_log_sum_exp(n, x) ad_real_log_sum_exp__at(n, ad_array_of(x), AD_LINE_HERE_)

/* ---- linear algebra ---- */

/* y[n] += a x[n]; a is an ad_real, a formula or a number; x may be y. */
#define ad_real_axpy(n, a, x, y)                                                                   \
    ad_real_axpy__at(n, AD_RESULT_(a), ad_array_of(x), AD_TARGET_(y), AD_LINE_HERE_)
/* y[m] = a x; a[m,n] row-major. */
#define ad_real_gemv(m, n, a, x, y)                                                                \
    ad_real_gemv__at(m, n, ad_array_of(a), ad_array_of(x), AD_TARGET_(y), AD_LINE_HERE_)
/* y[n] = Q x for a lower triangle Q: diagonal[n], below[n (n - 1) / 2] column by column. */
#define ad_real_trmv(n, diagonal, below, x, y)                                                     \
    ad_real_trmv__at(n, ad_array_of(diagonal), ad_array_of(below), ad_array_of(x), AD_TARGET_(y),  \
                     AD_LINE_HERE_)
/* The same of several vectors less one: y[i] = Q (x[i] - shift) for the rows of x[k,n] and y[k,n].
 * shift[n] may be (double *)NULL: none. */
#define ad_real_trmm(k, n, diagonal, below, shift, x, y)                                           \
    ad_real_trmm__at(k, n, ad_array_of(diagonal), ad_array_of(below), ad_array_of(shift),          \
                     ad_array_of(x), AD_TARGET_(y), AD_LINE_HERE_)

/* ---- others ---- */

/* The sum of c[i] x^i, by Horner's rule; x is an ad_real, a formula or a number. */
#define ad_real_polynomial(n, c, x)                                                                \
    ad_real_polynomial__at(n, ad_array_of(c), AD_RESULT_(x), AD_LINE_HERE_)
/* y[i] = the sum of w[j] x[i+j] over w[k], for i < n; x has n + k - 1 elements, none if k is 0. */
#define ad_real_stencil(n, x, k, w, y)                                                             \
    ad_real_stencil__at(n, ad_array_of(x), k, ad_array_of(w), AD_TARGET_(y), AD_LINE_HERE_)
/* The same on a grid x[n0,n1] or x[n0,n1,n2], row-major, by weights w[k0,k1] or w[k0,k1,k2];
 * weights that are 0 are passed over. y has the extents of x, and tap k / 2 of a dimension is at
 * the point itself; with AD_EDGE_SHRINK y[i,j] = the sum of w[a,b] x[i+a,j+b], of n - k + 1 points.
 * Of a dimension that wraps there are at least k points, or none: AD_ERROR_ARGUMENT. */
#define ad_real_stencil_2d(n0, n1, x, k0, k1, w, edge, y)                                          \
    ad_real_stencil_2d__at(n0, n1, ad_array_of(x), k0, k1, ad_array_of(w), edge, AD_TARGET_(y),    \
                           AD_LINE_HERE_)
#define ad_real_stencil_3d(n0, n1, n2, x, k0, k1, k2, w, edge, y)                                  \
    ad_real_stencil_3d__at(n0, n1, n2, ad_array_of(x), k0, k1, k2, ad_array_of(w), edge,           \
                           AD_TARGET_(y), AD_LINE_HERE_)
/* y[m]: x[index[i]] of x[n], with consecutive indices on the tape. An index beyond x is
 * AD_ERROR_ARGUMENT. */
#define ad_real_gather(m, n, x, index, y)                                                          \
    ad_real_gather__at(m, n, ad_array_of(x), index, AD_TARGET_(y), AD_LINE_HERE_)
/* y[index[i]] += x[i] for i < m, in this order; y has n elements. */
#define ad_real_scatter_add(m, x, index, n, y)                                                     \
    ad_real_scatter_add__at(m, ad_array_of(x), index, n, AD_TARGET_(y), AD_LINE_HERE_)
/* ad_real_map(n, n_in, x, y, callback, payload):
 * y[n] by a callback from up to 16 arrays: x is (ad_array[]){ad_array_of(a), ...}. y may be one of
 * them. The derivatives are kept: 8 bytes for each element of what is active.
 * ad_real_map_with(n, n_in, x, n_scalars, scalar, y, callback, payload):
 * besides arrays it takes numbers scalar[n_scalars], which are the same for all elements and no
 * part of y; the callback finds them behind the arrays, one for each element. */
#define ad_real_map(...) ad_real_map__at(__VA_ARGS__, AD_LINE_HERE_)
#define ad_real_map_with(...) ad_real_map_with__at(__VA_ARGS__, AD_LINE_HERE_)
/* y[n] = x[n], with consecutive indices; y may be x. */
#define ad_real_collect(n, x, y)                                                                   \
    ad_real_collect__at(n, ad_array_of(x), AD_TARGET_(y), AD_LINE_HERE_)
/* ad_real_custom(n, x, m, values, y, name, pullback, data, bytes):
 * a record of your own: y[m] with these values, of operands x[n]. The pullback is called with a
 * copy of data[bytes]. `name` is what a profile calls it; it must outlive the tape. */
#define ad_real_custom(n, x, m, values, y, ...)                                                    \
    ad_real_custom__at(n, ad_array_of(x), m, values, AD_TARGET_(y), ad_custom_of_(__VA_ARGS__),    \
                       AD_LINE_HERE_)

#endif

#endif
