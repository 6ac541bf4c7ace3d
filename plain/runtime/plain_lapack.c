/* plain_lapack.c: LAPACK as plain C calls it, by LAPACKE and by Fortran's names, of doubles and
 * floats: factors, linear systems with them, inverses, and the
 * eigenvalues of a tridiagonal matrix.
 *
 * Factors are values like others: what is solved with them later depends on them. So a system is
 * two records of triangles behind that of its factors.
 */
#include "plain_blas.h"

#include "plain_calls.h"

#include <string.h>

/* Its functions have many parameters. NOLINTBEGIN(readability-function-size) */

/* A square matrix, and right sides. */
struct linear {
    bool transposed;
    const int *pivot;
    struct plain_view a, b;
    struct plain_numbers of_a, of_b;
    bool active;
};

enum what { FACTORS, SYSTEM, BOTH, INVERSE };

/* ---- parts of what was read ---- */

static struct plain_numbers constants(struct plain_call *call, int64_t m, int64_t n,
                                      const double *values)
{
    ad_real *x = values ? plain_call_memory(call, (size_t)m * (size_t)n, sizeof *x) : NULL;
    for (int64_t i = 0; x && i < m * n; i++)
        x[i] = (ad_real){values[i], 0, 0};
    return (struct plain_numbers){m, n, x, false};
}

/* Results of a record: y, or constants. */
static struct plain_numbers results(struct plain_call *call, int64_t m, int64_t n, ad_real *y,
                                    const double *values)
{
    return y ? (struct plain_numbers){m, n, y, true} : constants(call, m, n, values);
}

/* One half of a square, transposed; unit: with ones on its diagonal. */
static struct plain_numbers half_of(struct plain_call *call, const struct plain_numbers *a,
                                    bool lower, bool unit, bool transposed)
{
    const int64_t n = a->n;
    struct plain_numbers half = {.m = n, .n = n};
    half.x = plain_call_memory(call, (size_t)n * (size_t)n, sizeof *half.x);
    for (int64_t j = 0; half.x && a->x && j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            ad_real x = {i == j, 0, 0};
            if (i == j ? !unit : (i > j) == lower)
                x = a->x[i + j * n];
            half.x[transposed ? j + i * n : i + j * n] = x;
            half.active |= x.index != 0;
        }
    return half;
}

/* Exchanges the rows as the factors' were, or back. */
static void exchange(int64_t n, int64_t columns, const int *pivot, bool back, void *x, size_t size)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = back ? n - 1 - k : k, other = (int64_t)pivot[i] - 1;
        for (int64_t j = 0; other != i && j < columns; j++) {
            char was[sizeof(ad_real)];
            char *one = (char *)x + (size_t)(i + j * n) * size;
            char *two = (char *)x + (size_t)(other + j * n) * size;
            memcpy(was, one, size);
            memcpy(one, two, size);
            memcpy(two, was, size);
        }
    }
}

/* ---- systems ---- */

static const ad_real one = {1, 0, 0};

/* first^-1 b, then second^-1 of that, whose values are given. */
static ad_real *solve_two(struct plain_call *call, const struct plain_numbers *first,
                          bool first_lower, const struct plain_numbers *second,
                          const struct plain_numbers *b, const double *values)
{
    if (call->failed || !values)
        return NULL;
    double *between = plain_solved(call, first, first_lower, b);
    if (!between)
        return NULL;
    ad_real *y = plain_solve(call, one, first, first_lower, b, between);
    const struct plain_numbers of = results(call, b->m, b->n, y, between);
    return call->failed ? NULL : plain_solve(call, one, second, !first_lower, &of, values);
}

/* The system of the factors lu; what lies in l->b are the results. */
static void solve_lu(struct plain_call *call, struct linear *l, const struct plain_numbers *lu)
{
    const int64_t n = l->b.m, columns = l->b.n;
    const bool t = l->transposed;
    const struct plain_numbers lower = half_of(call, lu, true, true, t),
                               upper = half_of(call, lu, false, false, t);
    double *values = plain_values_of(call, &l->b);
    ad_real *y = NULL;
    if (!call->failed && !t) {
        exchange(n, columns, l->pivot, false, l->of_b.x, sizeof *l->of_b.x);
        y = solve_two(call, &lower, true, &upper, &l->of_b, values);
    } else if (!call->failed) {
        exchange(n, columns, l->pivot, false, values, sizeof *values);
        y = solve_two(call, &upper, true, &lower, &l->of_b, values); /* both transposed */
        if (y)
            exchange(n, columns, l->pivot, true, y, sizeof *y);
    }
    plain_name_view(call, &l->b, y);
}

static void solve_cholesky(struct plain_call *call, struct linear *l,
                           const struct plain_numbers *factor)
{
    const struct plain_numbers lower = half_of(call, factor, true, false, false),
                               upper = half_of(call, factor, true, false, true);
    ad_real *y = NULL;
    if (!call->failed)
        y = solve_two(call, &lower, true, &upper, &l->of_b, plain_values_of(call, &l->b));
    plain_name_view(call, &l->b, y);
}

/* ---- around the program's function ---- */

static void linear_before(struct plain_call *call, struct linear *l)
{
    if (l->a.n <= 0 || l->a.m <= 0)
        l->a.m = l->a.n = 0;
    if (l->a.n == 0 || l->b.n <= 0)
        l->b.m = l->b.n = 0;
    l->active = plain_any(call, &l->a) || plain_any(call, &l->b);
    if (l->active && l->a.m == l->a.n) {
        l->of_a = plain_read_view(call, &l->a);
        l->of_b = plain_read_view(call, &l->b);
    }
    plain_call_enter(call);
}

/* Whether there are results. What a failure has left in a matrix keeps its shadow: whoever reads
 * what is not as before is told. */
static bool linear_is_done(struct plain_call *call, const struct linear *l, int info)
{
    plain_call_leave(call);
    if (call->recorded || info != 0)
        return false;
    if (!l->active || l->a.m == l->a.n)
        return true;
    plain_call_lost(call, "there is no rule for the factors of a matrix that is not square");
    plain_name_view(call, &l->a, NULL);
    return false;
}

/* The factors that lie in l->a now. */
static struct plain_numbers factors(struct plain_call *call, const struct linear *l, bool cholesky)
{
    double *values = plain_values_of(call, &l->a);
    ad_real *y = NULL;
    if (values && l->of_a.active)
        y = cholesky ? plain_cholesky(call, &l->of_a, values)
                     : plain_lu(call, &l->of_a, l->pivot, values);
    plain_name_view(call, &l->a, y);
    return results(call, l->a.n, l->a.n, y, values);
}

/* The system of the factors that were read, with the unit matrix: what lies in l->a is the
 * inverse. */
static void invert(struct plain_call *call, struct linear *l, bool cholesky)
{
    const int64_t n = l->a.n;
    double *values = plain_call_memory(call, (size_t)n * (size_t)n, sizeof *values);
    for (int64_t i = 0; values && i < n * n; i++)
        values[i] = i % (n + 1) == 0;
    l->b = l->a;
    l->of_b = constants(call, n, n, values);
    if (!call->failed && cholesky)
        solve_cholesky(call, l, &l->of_a);
    else if (!call->failed)
        solve_lu(call, l, &l->of_a);
}

static void linear_after(struct plain_call *call, struct linear *l, int info, enum what what,
                         bool cholesky)
{
    if (linear_is_done(call, l, info)) {
        if (!l->active) {
            if (what != SYSTEM)
                plain_name_view(call, &l->a, NULL);
            plain_name_view(call, &l->b, NULL);
        } else if (what == INVERSE) {
            invert(call, l, cholesky);
        } else if (!call->failed) {
            const struct plain_numbers of = what == SYSTEM ? l->of_a : factors(call, l, cholesky);
            if (what != FACTORS && !call->failed && cholesky)
                solve_cholesky(call, l, &of);
            else if (what != FACTORS && !call->failed)
                solve_lu(call, l, &of);
        }
        if (call->failed) {
            plain_name_view(call, &l->a, NULL);
            plain_name_view(call, &l->b, NULL);
        }
    }
    plain_call_end(call);
}

static struct linear general(struct plain_call *call, int layout, int64_t m, int64_t n,
                             const void *a, int64_t lda, const int *pivot)
{
    struct linear l = {.a = plain_matrix(layout, a, false, m, n, lda), .pivot = pivot};
    linear_before(call, &l);
    return l;
}

static struct linear general_system(struct plain_call *call, int layout, char trans, int64_t n,
                                    int64_t columns, const void *a, int64_t lda, const int *pivot,
                                    void *b, int64_t ldb)
{
    struct linear l = {.a = plain_matrix(layout, a, false, n, n, lda),
                       .b = plain_matrix(layout, b, false, n, columns, ldb),
                       .transposed = !plain_is(trans, 'n'),
                       .pivot = pivot};
    linear_before(call, &l);
    return l;
}

/* a is read from one half, as the lower one. */
static struct linear definite(struct plain_call *call, int layout, char half, int64_t n,
                              int64_t columns, const void *a, int64_t lda, void *b, int64_t ldb)
{
    const bool lower = plain_is(half, 'l');
    struct linear l = {.a = plain_half(layout, a, !lower, lower, n, lda),
                       .b = plain_matrix(layout, b, false, n, columns, ldb)};
    linear_before(call, &l);
    return l;
}

/* Triangles as those of plain_blas.c; if it failed, nothing was done. */
static struct linear triangular(struct plain_call *call, int layout, char half, char trans,
                                char diagonal, int64_t n, int64_t columns, const void *a,
                                int64_t lda, void *b, int64_t ldb)
{
    struct linear l = {
        .a = plain_half(layout, a, !plain_is(trans, 'n'), plain_is(half, 'l'), n, lda),
        .b = plain_matrix(layout, b, false, n, columns, ldb)};
    l.a.unit = plain_is(diagonal, 'u');
    linear_before(call, &l);
    return l;
}

static void triangular_after(struct plain_call *call, struct linear *l, int info)
{
    plain_call_leave(call);
    if (!call->recorded && info == 0) {
        const ad_real *y = NULL;
        if (l->active && !call->failed)
            y = plain_solve(call, one, &l->of_a, l->a.part == PLAIN_LOWER, &l->of_b,
                            plain_values_of(call, &l->b));
        plain_name_view(call, &l->b, y);
    }
    plain_call_end(call);
}

/* The working memory of a function holds no variables behind it. */
static void forget(const struct plain_call *call, void *work, int n)
{
    const struct plain_view v = {.at = work, .m = n > 1 ? n : 1, .n = 1, .row = 1};
    plain_name_view(call, &v, NULL);
}

#define LAPACK(s, T, is)                                                                           \
    PLAIN_WRAPPER(int, LAPACKE_##s##getrf, int layout, int m, int n, T *a, int lda, int *pivot)    \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##getrf, is);                                                        \
        struct linear l = general(&call, layout, m, n, a, lda, pivot);                             \
        const int info = PLAIN_REAL(LAPACKE_##s##getrf)(layout, m, n, a, lda, pivot);              \
        linear_after(&call, &l, info, FACTORS, false);                                             \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##getrf_, const int *m, const int *n, T *a, const int *lda, int *pivot,   \
                  int *info)                                                                       \
    {                                                                                              \
        PLAIN_CALL(s##getrf_, is);                                                                 \
        struct linear l = general(&call, PLAIN_COLUMN_MAJOR, *m, *n, a, *lda, pivot);              \
        PLAIN_REAL(s##getrf_)(m, n, a, lda, pivot, info);                                          \
        linear_after(&call, &l, *info, FACTORS, false);                                            \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##getrs, int layout, char trans, int n, int columns, const T *a, \
                  int lda, const int *pivot, T *b, int ldb)                                        \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##getrs, is);                                                        \
        struct linear l = general_system(&call, layout, trans, n, columns, a, lda, pivot, b, ldb); \
        const int info =                                                                           \
            PLAIN_REAL(LAPACKE_##s##getrs)(layout, trans, n, columns, a, lda, pivot, b, ldb);      \
        linear_after(&call, &l, info, SYSTEM, false);                                              \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##getrs_, const char *trans, const int *n, const int *columns,            \
                  const T *a, const int *lda, const int *pivot, T *b, const int *ldb, int *info,   \
                  size_t length)                                                                   \
    {                                                                                              \
        PLAIN_CALL(s##getrs_, is);                                                                 \
        struct linear l = general_system(&call, PLAIN_COLUMN_MAJOR, *trans, *n, *columns, a, *lda, \
                                         pivot, b, *ldb);                                          \
        PLAIN_REAL(s##getrs_)(trans, n, columns, a, lda, pivot, b, ldb, info, length);             \
        linear_after(&call, &l, *info, SYSTEM, false);                                             \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##gesv, int layout, int n, int columns, T *a, int lda,           \
                  int *pivot, T *b, int ldb)                                                       \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##gesv, is);                                                         \
        struct linear l = general_system(&call, layout, 'n', n, columns, a, lda, pivot, b, ldb);   \
        const int info = PLAIN_REAL(LAPACKE_##s##gesv)(layout, n, columns, a, lda, pivot, b, ldb); \
        linear_after(&call, &l, info, BOTH, false);                                                \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##gesv_, const int *n, const int *columns, T *a, const int *lda,          \
                  int *pivot, T *b, const int *ldb, int *info)                                     \
    {                                                                                              \
        PLAIN_CALL(s##gesv_, is);                                                                  \
        struct linear l =                                                                          \
            general_system(&call, PLAIN_COLUMN_MAJOR, 'n', *n, *columns, a, *lda, pivot, b, *ldb); \
        PLAIN_REAL(s##gesv_)(n, columns, a, lda, pivot, b, ldb, info);                             \
        linear_after(&call, &l, *info, BOTH, false);                                               \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##getri, int layout, int n, T *a, int lda, const int *pivot)     \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##getri, is);                                                        \
        struct linear l = general(&call, layout, n, n, a, lda, pivot);                             \
        const int info = PLAIN_REAL(LAPACKE_##s##getri)(layout, n, a, lda, pivot);                 \
        linear_after(&call, &l, info, INVERSE, false);                                             \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##getri_, const int *n, T *a, const int *lda, const int *pivot, T *work,  \
                  const int *work_n, int *info)                                                    \
    {                                                                                              \
        PLAIN_CALL(s##getri_, is);                                                                 \
        const bool asks = *work_n == -1;                                                           \
        struct linear l =                                                                          \
            general(&call, PLAIN_COLUMN_MAJOR, asks ? 0 : *n, asks ? 0 : *n, a, *lda, pivot);      \
        PLAIN_REAL(s##getri_)(n, a, lda, pivot, work, work_n, info);                               \
        forget(&call, work, *work_n);                                                              \
        linear_after(&call, &l, *info, INVERSE, false);                                            \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##potrf, int layout, char half, int n, T *a, int lda)            \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##potrf, is);                                                        \
        struct linear l = definite(&call, layout, half, n, 0, a, lda, NULL, 1);                    \
        const int info = PLAIN_REAL(LAPACKE_##s##potrf)(layout, half, n, a, lda);                  \
        linear_after(&call, &l, info, FACTORS, true);                                              \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##potrf_, const char *half, const int *n, T *a, const int *lda,           \
                  int *info, size_t length)                                                        \
    {                                                                                              \
        PLAIN_CALL(s##potrf_, is);                                                                 \
        struct linear l = definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, 0, a, *lda, NULL, 1);     \
        PLAIN_REAL(s##potrf_)(half, n, a, lda, info, length);                                      \
        linear_after(&call, &l, *info, FACTORS, true);                                             \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##potrs, int layout, char half, int n, int columns, const T *a,  \
                  int lda, T *b, int ldb)                                                          \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##potrs, is);                                                        \
        struct linear l = definite(&call, layout, half, n, columns, a, lda, b, ldb);               \
        const int info = PLAIN_REAL(LAPACKE_##s##potrs)(layout, half, n, columns, a, lda, b, ldb); \
        linear_after(&call, &l, info, SYSTEM, true);                                               \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##potrs_, const char *half, const int *n, const int *columns, const T *a, \
                  const int *lda, T *b, const int *ldb, int *info, size_t length)                  \
    {                                                                                              \
        PLAIN_CALL(s##potrs_, is);                                                                 \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, *columns, a, *lda, b, *ldb);            \
        PLAIN_REAL(s##potrs_)(half, n, columns, a, lda, b, ldb, info, length);                     \
        linear_after(&call, &l, *info, SYSTEM, true);                                              \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##posv, int layout, char half, int n, int columns, T *a,         \
                  int lda, T *b, int ldb)                                                          \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##posv, is);                                                         \
        struct linear l = definite(&call, layout, half, n, columns, a, lda, b, ldb);               \
        const int info = PLAIN_REAL(LAPACKE_##s##posv)(layout, half, n, columns, a, lda, b, ldb);  \
        linear_after(&call, &l, info, BOTH, true);                                                 \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##posv_, const char *half, const int *n, const int *columns, T *a,        \
                  const int *lda, T *b, const int *ldb, int *info, size_t length)                  \
    {                                                                                              \
        PLAIN_CALL(s##posv_, is);                                                                  \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, *columns, a, *lda, b, *ldb);            \
        PLAIN_REAL(s##posv_)(half, n, columns, a, lda, b, ldb, info, length);                      \
        linear_after(&call, &l, *info, BOTH, true);                                                \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##trtrs, int layout, char half, char trans, char diagonal,       \
                  int n, int columns, const T *a, int lda, T *b, int ldb)                          \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##trtrs, is);                                                        \
        struct linear l =                                                                          \
            triangular(&call, layout, half, trans, diagonal, n, columns, a, lda, b, ldb);          \
        const int info = PLAIN_REAL(LAPACKE_##s##trtrs)(layout, half, trans, diagonal, n, columns, \
                                                        a, lda, b, ldb);                           \
        triangular_after(&call, &l, info);                                                         \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##trtrs_, const char *half, const char *trans, const char *diagonal,      \
                  const int *n, const int *columns, const T *a, const int *lda, T *b,              \
                  const int *ldb, int *info, size_t l0, size_t l1, size_t l2)                      \
    {                                                                                              \
        PLAIN_CALL(s##trtrs_, is);                                                                 \
        struct linear l = triangular(&call, PLAIN_COLUMN_MAJOR, *half, *trans, *diagonal, *n,      \
                                     *columns, a, *lda, b, *ldb);                                  \
        PLAIN_REAL(s##trtrs_)                                                                      \
        (half, trans, diagonal, n, columns, a, lda, b, ldb, info, l0, l1, l2);                     \
        triangular_after(&call, &l, *info);                                                        \
    }
LAPACK(d, double, false)
LAPACK(s, float, true)

/* Of matrices of which one half is given, also packed. */
#define HALVES(s, T, is)                                                                           \
    PLAIN_WRAPPER(int, LAPACKE_##s##potri, int layout, char half, int n, T *a, int lda)            \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##potri, is);                                                        \
        struct linear l = definite(&call, layout, half, n, 0, a, lda, NULL, 1);                    \
        const int info = PLAIN_REAL(LAPACKE_##s##potri)(layout, half, n, a, lda);                  \
        linear_after(&call, &l, info, INVERSE, true);                                              \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##potri_, const char *half, const int *n, T *a, const int *lda,           \
                  int *info, size_t length)                                                        \
    {                                                                                              \
        PLAIN_CALL(s##potri_, is);                                                                 \
        struct linear l = definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, 0, a, *lda, NULL, 1);     \
        PLAIN_REAL(s##potri_)(half, n, a, lda, info, length);                                      \
        linear_after(&call, &l, *info, INVERSE, true);                                             \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##pptrf, int layout, char half, int n, T *a)                     \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##pptrf, is);                                                        \
        struct linear l = definite(&call, layout, half, n, 0, a, PLAIN_PACKED, NULL, 1);           \
        const int info = PLAIN_REAL(LAPACKE_##s##pptrf)(layout, half, n, a);                       \
        linear_after(&call, &l, info, FACTORS, true);                                              \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##pptrf_, const char *half, const int *n, T *a, int *info, size_t length) \
    {                                                                                              \
        PLAIN_CALL(s##pptrf_, is);                                                                 \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, 0, a, PLAIN_PACKED, NULL, 1);           \
        PLAIN_REAL(s##pptrf_)(half, n, a, info, length);                                           \
        linear_after(&call, &l, *info, FACTORS, true);                                             \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##pptri, int layout, char half, int n, T *a)                     \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##pptri, is);                                                        \
        struct linear l = definite(&call, layout, half, n, 0, a, PLAIN_PACKED, NULL, 1);           \
        const int info = PLAIN_REAL(LAPACKE_##s##pptri)(layout, half, n, a);                       \
        linear_after(&call, &l, info, INVERSE, true);                                              \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##pptri_, const char *half, const int *n, T *a, int *info, size_t length) \
    {                                                                                              \
        PLAIN_CALL(s##pptri_, is);                                                                 \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, 0, a, PLAIN_PACKED, NULL, 1);           \
        PLAIN_REAL(s##pptri_)(half, n, a, info, length);                                           \
        linear_after(&call, &l, *info, INVERSE, true);                                             \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##pptrs, int layout, char half, int n, int columns, const T *a,  \
                  T *b, int ldb)                                                                   \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##pptrs, is);                                                        \
        struct linear l = definite(&call, layout, half, n, columns, a, PLAIN_PACKED, b, ldb);      \
        const int info = PLAIN_REAL(LAPACKE_##s##pptrs)(layout, half, n, columns, a, b, ldb);      \
        linear_after(&call, &l, info, SYSTEM, true);                                               \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##pptrs_, const char *half, const int *n, const int *columns, const T *a, \
                  T *b, const int *ldb, int *info, size_t length)                                  \
    {                                                                                              \
        PLAIN_CALL(s##pptrs_, is);                                                                 \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, *columns, a, PLAIN_PACKED, b, *ldb);    \
        PLAIN_REAL(s##pptrs_)(half, n, columns, a, b, ldb, info, length);                          \
        linear_after(&call, &l, *info, SYSTEM, true);                                              \
    }                                                                                              \
    PLAIN_WRAPPER(int, LAPACKE_##s##ppsv, int layout, char half, int n, int columns, T *a, T *b,   \
                  int ldb)                                                                         \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##ppsv, is);                                                         \
        struct linear l = definite(&call, layout, half, n, columns, a, PLAIN_PACKED, b, ldb);      \
        const int info = PLAIN_REAL(LAPACKE_##s##ppsv)(layout, half, n, columns, a, b, ldb);       \
        linear_after(&call, &l, info, BOTH, true);                                                 \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##ppsv_, const char *half, const int *n, const int *columns, T *a, T *b,  \
                  const int *ldb, int *info, size_t length)                                        \
    {                                                                                              \
        PLAIN_CALL(s##ppsv_, is);                                                                  \
        struct linear l =                                                                          \
            definite(&call, PLAIN_COLUMN_MAJOR, *half, *n, *columns, a, PLAIN_PACKED, b, *ldb);    \
        PLAIN_REAL(s##ppsv_)(half, n, columns, a, b, ldb, info, length);                           \
        linear_after(&call, &l, *info, BOTH, true);                                                \
    }
HALVES(d, double, false)
HALVES(s, float, true)

/* ---- eigenvalues ---- */

/* A symmetric tridiagonal matrix: its diagonal becomes the eigenvalues; z: vectors, where
 * wanted. */
struct tridiagonal {
    struct plain_view d, e, z;
    struct plain_numbers of_d, of_e;
    bool active;
};

static struct tridiagonal tridiagonal(struct plain_call *call, int layout, char job, int64_t n,
                                      void *d, void *e, void *z, int64_t ldz)
{
    const int64_t m = n > 0 ? n : 0, columns = plain_is(job, 'v') ? m : 0;
    struct tridiagonal l = {
        .d = plain_matrix(PLAIN_COLUMN_MAJOR, d, false, m, m > 0, m),
        .e = plain_matrix(PLAIN_COLUMN_MAJOR, e, false, m > 1 ? m - 1 : 0, m > 1, m),
        .z = plain_matrix(layout, z, false, columns, columns, ldz)};
    l.active = plain_any(call, &l.d) || plain_any(call, &l.e);
    if (l.active) {
        l.of_d = plain_read_view(call, &l.d);
        l.of_e = plain_read_view(call, &l.e);
    }
    plain_call_enter(call);
    return l;
}

static void tridiagonal_after(struct plain_call *call, struct tridiagonal *l, int info)
{
    plain_call_leave(call);
    if (!call->recorded && info == 0) {
        const ad_real *y = NULL;
        if (l->active && !call->failed)
            y = plain_eigenvalues(call, &l->of_d, &l->of_e, plain_values_of(call, &l->d));
        if (l->active && l->z.n > 0)
            plain_call_lost(call, "there is no rule for eigenvectors");
        plain_name_view(call, &l->d, y);
        plain_name_view(call, &l->e, NULL);
        plain_name_view(call, &l->z, NULL);
    }
    plain_call_end(call);
}

#define TRIDIAGONAL(s, T, is)                                                                      \
    PLAIN_WRAPPER(int, LAPACKE_##s##stev, int layout, char job, int n, T *d, T *e, T *z, int ldz)  \
    {                                                                                              \
        PLAIN_CALL(LAPACKE_##s##stev, is);                                                         \
        struct tridiagonal l = tridiagonal(&call, layout, job, n, d, e, z, ldz);                   \
        const int info = PLAIN_REAL(LAPACKE_##s##stev)(layout, job, n, d, e, z, ldz);              \
        tridiagonal_after(&call, &l, info);                                                        \
        return info;                                                                               \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##stev_, const char *job, const int *n, T *d, T *e, T *z, const int *ldz, \
                  T *work, int *info, size_t length)                                               \
    {                                                                                              \
        PLAIN_CALL(s##stev_, is);                                                                  \
        struct tridiagonal l = tridiagonal(&call, PLAIN_COLUMN_MAJOR, *job, *n, d, e, z, *ldz);    \
        PLAIN_REAL(s##stev_)(job, n, d, e, z, ldz, work, info, length);                            \
        if (plain_is(*job, 'v'))                                                                   \
            forget(&call, work, 2 * *n - 2);                                                       \
        tridiagonal_after(&call, &l, *info);                                                       \
    }
TRIDIAGONAL(d, double, false)
TRIDIAGONAL(s, float, true)

/* NOLINTEND(readability-function-size) */
