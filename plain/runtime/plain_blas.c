/* plain_blas.c: BLAS as plain C calls it, by CBLAS and by Fortran's names, of doubles and floats.
 *
 * But for norms, copies and triangular systems all of it is alpha a b + beta c: of vectors, of
 * symmetric and triangular matrices, and with one half of the result.
 */
#include "plain_blas.h"

#include "plain_calls.h"

/* Its functions have many parameters. NOLINTBEGIN(readability-function-size) */

/* ---- what is done around the program's function ---- */

struct product {
    ad_real alpha, beta;
    struct plain_view a, b, c;
    struct plain_numbers of_a, of_b, of_c;
    bool active, reads_c;
};

static const ad_real one = {1, 0, 0}, none = {0, 0, 0};

/* A row of results that lie in one place would have one index for all. */
static bool is_spread(const struct plain_view *v)
{
    return (v->m < 2 || v->row != 0) && (v->n < 2 || v->column != 0);
}

static void product_before(struct plain_call *call, struct product *p)
{
    if (p->c.m <= 0 || p->c.n <= 0) {
        p->c.m = p->c.n = 0;
        p->a.n = p->b.m = 0;
    }
    /* What is multiplied by the constant 0 is not read. */
    if (p->a.n < 0 || (p->alpha.value == 0 && p->alpha.index == 0))
        p->a.n = p->b.m = 0;
    p->reads_c = p->beta.value != 0 || p->beta.index != 0;
    p->active = p->alpha.index != 0 || p->beta.index != 0 || plain_any(call, &p->a) ||
                plain_any(call, &p->b) || (p->reads_c && plain_any(call, &p->c));
    p->active &= p->c.m > 0;
    if (p->active) {
        p->of_a = plain_read_view(call, &p->a);
        p->of_b = plain_read_view(call, &p->b);
        if (p->reads_c)
            p->of_c = plain_read_view(call, &p->c);
    }
    plain_call_enter(call);
}

static void product_after(struct plain_call *call, struct product *p)
{
    plain_call_leave(call);
    if (!call->recorded) {
        const ad_real *y = NULL;
        if (p->active && !is_spread(&p->c))
            plain_call_lost(call, "an increment is 0");
        else if (p->active && !call->failed)
            y = plain_product(call, p->alpha, &p->of_a, &p->of_b, p->beta,
                              p->reads_c ? &p->of_c : NULL, plain_values_of(call, &p->c));
        plain_name_view(call, &p->c, y);
    }
    plain_call_end(call);
}

/* The product is a number that is returned. */
static void product_returned(struct plain_call *call, struct product *p, double value)
{
    plain_call_leave(call);
    if (!call->recorded && p->active && !call->failed) {
        const ad_real *y = plain_product(call, one, &p->of_a, &p->of_b, none, NULL, &value);
        call->result = y ? y->index : 0;
    }
    plain_call_end(call);
}

/* alpha op(t)^-1 b, where b has the results. */
struct system {
    ad_real alpha;
    struct plain_view t, b;
    struct plain_numbers of_t, of_b;
    bool active;
};

static void system_before(struct plain_call *call, struct system *s)
{
    if (s->b.m <= 0 || s->b.n <= 0)
        s->b.m = s->b.n = s->t.m = s->t.n = 0;
    s->active =
        s->b.m > 0 && (s->alpha.index != 0 || plain_any(call, &s->t) || plain_any(call, &s->b));
    if (s->active) {
        s->of_t = plain_read_view(call, &s->t);
        s->of_b = plain_read_view(call, &s->b);
    }
    plain_call_enter(call);
}

static void system_after(struct plain_call *call, struct system *s)
{
    plain_call_leave(call);
    if (!call->recorded) {
        const ad_real *y = NULL;
        if (s->active && !is_spread(&s->b))
            plain_call_lost(call, "an increment is 0");
        else if (s->active && !call->failed)
            y = plain_solve(call, s->alpha, &s->of_t, s->t.part == PLAIN_LOWER, &s->of_b,
                            plain_values_of(call, &s->b));
        plain_name_view(call, &s->b, y);
    }
    plain_call_end(call);
}

/* ---- operands ---- */

static struct plain_view vector(const struct plain_call *call, const void *at, int64_t n,
                                int64_t step)
{
    const int64_t size = call->is_float ? sizeof(float) : sizeof(double);
    n = n > 0 ? n : 0;
    /* With a negative step the first element is the last in memory. */
    const int64_t begin = step < 0 && n > 0 ? (1 - n) * step * size : 0;
    return (struct plain_view){
        .at = (char *)(uintptr_t)at + begin, .m = n, .n = 1, .row = step, .column = 1};
}

static struct plain_view vector_across(const struct plain_call *call, const void *at, int64_t n,
                                       int64_t step)
{
    return plain_flipped(vector(call, at, n, step));
}

static struct plain_view triangle(int layout, const void *at, int trans, int half, int diagonal,
                                  int64_t n, int64_t ld)
{
    struct plain_view v =
        plain_half(layout, at, trans != PLAIN_NO_TRANS, half == PLAIN_LOWER_HALF, n, ld);
    v.unit = diagonal == PLAIN_UNIT;
    return v;
}

static struct plain_view symmetric(int layout, const void *at, int half, int64_t n, int64_t ld)
{
    struct plain_view v = plain_half(layout, at, false, half == PLAIN_LOWER_HALF, n, ld);
    v.symmetric = true;
    return v;
}

/* ---- vectors ---- */

static struct product dot(struct plain_call *call, int64_t n, const void *x, int64_t incx,
                          const void *y, int64_t incy)
{
    /* The result is no memory: a view of one element that is not read says its size. */
    struct product p = {.alpha = one,
                        .a = vector_across(call, x, n, incx),
                        .b = vector(call, y, n, incy),
                        .c = {.m = n > 0, .n = 1}};
    product_before(call, &p);
    return p;
}

static struct product axpy(struct plain_call *call, int64_t n, ad_real alpha, const void *x,
                           int64_t incx, void *y, int64_t incy)
{
    static const double of_doubles = 1;
    static const float of_floats = 1;
    const void *number = call->is_float ? (const void *)&of_floats : &of_doubles;
    struct product p = {.alpha = alpha,
                        .beta = one,
                        .a = vector(call, x, n, incx),
                        .b = vector(call, number, 1, 1),
                        .c = vector(call, y, n, incy)};
    product_before(call, &p);
    return p;
}

static struct product scal(struct plain_call *call, int64_t n, ad_real alpha, void *x, int64_t incx)
{
    /* A step that is not positive: nothing is done. */
    struct product p = {.beta = alpha, .c = vector(call, x, incx > 0 ? n : 0, incx)};
    p.a = (struct plain_view){.m = p.c.m, .row = 1, .column = 1};
    p.b = (struct plain_view){.n = 1, .row = 1, .column = 1};
    product_before(call, &p);
    return p;
}

struct moved {
    struct plain_view x, y;
    struct plain_numbers of_x, of_y;
    bool active;
};

static struct moved moved(struct plain_call *call, int64_t n, const void *x, int64_t incx,
                          const void *y, int64_t incy, bool both)
{
    struct moved v = {.x = vector(call, x, n, incx), .y = vector(call, y, n, incy)};
    v.active = plain_any(call, &v.x) || (both && plain_any(call, &v.y));
    if (v.active) {
        v.of_x = plain_read_view(call, &v.x);
        if (both)
            v.of_y = plain_read_view(call, &v.y);
    }
    plain_call_enter(call);
    return v;
}

static void moved_after(struct plain_call *call, const struct moved *v, bool both)
{
    plain_call_leave(call);
    if (!call->recorded) {
        plain_name_view(call, &v->y, call->failed ? NULL : v->of_x.x);
        if (both)
            plain_name_view(call, &v->x, call->failed ? NULL : v->of_y.x);
    }
    plain_call_end(call);
}

static struct plain_numbers norm_before(struct plain_call *call, int64_t n, const void *x,
                                        int64_t incx)
{
    struct plain_numbers numbers = {.active = false};
    const struct plain_view v = vector(call, x, n, incx);
    if (plain_any(call, &v)) {
        /* Not all libraries do the same then. */
        if (incx <= 0)
            plain_call_lost(call, "an increment is not positive");
        else
            numbers = plain_read_view(call, &v);
    }
    plain_call_enter(call);
    return numbers;
}

static void norm_after(struct plain_call *call, const struct plain_numbers *numbers,
                       bool of_squares, double value)
{
    plain_call_leave(call);
    if (!call->recorded && numbers->active && !call->failed) {
        const ad_real *y = plain_norm(call, numbers, of_squares, &value);
        call->result = y ? y->index : 0;
    }
    plain_call_end(call);
}

#define VECTORS(s, T, is)                                                                          \
    PLAIN_WRAPPER(T, cblas_##s##dot, int n, const T *x, int incx, const T *y, int incy)            \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##dot, is);                                                            \
        struct product p = dot(&call, n, x, incx, y, incy);                                        \
        const T value = PLAIN_REAL(cblas_##s##dot)(n, x, incx, y, incy);                           \
        product_returned(&call, &p, (double)value);                                                \
        return value;                                                                              \
    }                                                                                              \
    PLAIN_WRAPPER(T, s##dot_, const int *n, const T *x, const int *incx, const T *y,               \
                  const int *incy)                                                                 \
    {                                                                                              \
        PLAIN_CALL(s##dot_, is);                                                                   \
        struct product p = dot(&call, *n, x, *incx, y, *incy);                                     \
        const T value = PLAIN_REAL(s##dot_)(n, x, incx, y, incy);                                  \
        product_returned(&call, &p, (double)value);                                                \
        return value;                                                                              \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##axpy, int n, T alpha, const T *x, int incx, T *y, int incy)     \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##axpy, is);                                                           \
        struct product p =                                                                         \
            axpy(&call, n, plain_argument(&call, 0, (double)alpha), x, incx, y, incy);             \
        PLAIN_REAL(cblas_##s##axpy)(n, alpha, x, incx, y, incy);                                   \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##axpy_, const int *n, const T *alpha, const T *x, const int *incx, T *y, \
                  const int *incy)                                                                 \
    {                                                                                              \
        PLAIN_CALL(s##axpy_, is);                                                                  \
        struct product p = axpy(&call, *n, plain_number(&call, alpha), x, *incx, y, *incy);        \
        PLAIN_REAL(s##axpy_)(n, alpha, x, incx, y, incy);                                          \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##scal, int n, T alpha, T *x, int incx)                           \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##scal, is);                                                           \
        struct product p = scal(&call, n, plain_argument(&call, 0, (double)alpha), x, incx);       \
        PLAIN_REAL(cblas_##s##scal)(n, alpha, x, incx);                                            \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##scal_, const int *n, const T *alpha, T *x, const int *incx)             \
    {                                                                                              \
        PLAIN_CALL(s##scal_, is);                                                                  \
        struct product p = scal(&call, *n, plain_number(&call, alpha), x, *incx);                  \
        PLAIN_REAL(s##scal_)(n, alpha, x, incx);                                                   \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##copy, int n, const T *x, int incx, T *y, int incy)              \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##copy, is);                                                           \
        const struct moved v = moved(&call, n, x, incx, y, incy, false);                           \
        PLAIN_REAL(cblas_##s##copy)(n, x, incx, y, incy);                                          \
        moved_after(&call, &v, false);                                                             \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##copy_, const int *n, const T *x, const int *incx, T *y,                 \
                  const int *incy)                                                                 \
    {                                                                                              \
        PLAIN_CALL(s##copy_, is);                                                                  \
        const struct moved v = moved(&call, *n, x, *incx, y, *incy, false);                        \
        PLAIN_REAL(s##copy_)(n, x, incx, y, incy);                                                 \
        moved_after(&call, &v, false);                                                             \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##swap, int n, T *x, int incx, T *y, int incy)                    \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##swap, is);                                                           \
        const struct moved v = moved(&call, n, x, incx, y, incy, true);                            \
        PLAIN_REAL(cblas_##s##swap)(n, x, incx, y, incy);                                          \
        moved_after(&call, &v, true);                                                              \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##swap_, const int *n, T *x, const int *incx, T *y, const int *incy)      \
    {                                                                                              \
        PLAIN_CALL(s##swap_, is);                                                                  \
        const struct moved v = moved(&call, *n, x, *incx, y, *incy, true);                         \
        PLAIN_REAL(s##swap_)(n, x, incx, y, incy);                                                 \
        moved_after(&call, &v, true);                                                              \
    }
VECTORS(d, double, false)
VECTORS(s, float, true)

#define NORM(s, T, is, name, of_squares)                                                           \
    PLAIN_WRAPPER(T, cblas_##s##name, int n, const T *x, int incx)                                 \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##name, is);                                                           \
        const struct plain_numbers numbers = norm_before(&call, n, x, incx);                       \
        const T value = PLAIN_REAL(cblas_##s##name)(n, x, incx);                                   \
        norm_after(&call, &numbers, of_squares, (double)value);                                    \
        return value;                                                                              \
    }                                                                                              \
    PLAIN_WRAPPER(T, s##name##_, const int *n, const T *x, const int *incx)                        \
    {                                                                                              \
        PLAIN_CALL(s##name##_, is);                                                                \
        const struct plain_numbers numbers = norm_before(&call, *n, x, *incx);                     \
        const T value = PLAIN_REAL(s##name##_)(n, x, incx);                                        \
        norm_after(&call, &numbers, of_squares, (double)value);                                    \
        return value;                                                                              \
    }
NORM(d, double, false, nrm2, true)
NORM(s, float, true, nrm2, true)
NORM(d, double, false, asum, false)
NORM(s, float, true, asum, false)

/* ---- a matrix and vectors ---- */

static struct product gemv(struct plain_call *call, int layout, int trans, int64_t m, int64_t n,
                           ad_real alpha, const void *a, int64_t lda, const void *x, int64_t incx,
                           ad_real beta, void *y, int64_t incy)
{
    const bool t = trans != PLAIN_NO_TRANS;
    struct product p = {.alpha = alpha,
                        .beta = beta,
                        .a = plain_matrix(layout, a, t, t ? n : m, t ? m : n, lda),
                        .b = vector(call, x, t ? m : n, incx),
                        .c = vector(call, y, t ? n : m, incy)};
    product_before(call, &p);
    return p;
}

static struct product ger(struct plain_call *call, int layout, int64_t m, int64_t n, ad_real alpha,
                          const void *x, int64_t incx, const void *y, int64_t incy, void *a,
                          int64_t lda)
{
    struct product p = {.alpha = alpha,
                        .beta = one,
                        .a = vector(call, x, m, incx),
                        .b = vector_across(call, y, n, incy),
                        .c = plain_matrix(layout, a, false, m, n, lda)};
    product_before(call, &p);
    return p;
}

static struct product symv(struct plain_call *call, int layout, int half, int64_t n, ad_real alpha,
                           const void *a, int64_t lda, const void *x, int64_t incx, ad_real beta,
                           void *y, int64_t incy)
{
    struct product p = {.alpha = alpha,
                        .beta = beta,
                        .a = symmetric(layout, a, half, n, lda),
                        .b = vector(call, x, n, incx),
                        .c = vector(call, y, n, incy)};
    product_before(call, &p);
    return p;
}

static struct product syr(struct plain_call *call, int layout, int half, int64_t n, ad_real alpha,
                          const void *x, int64_t incx, void *a, int64_t lda)
{
    struct product p = {.alpha = alpha,
                        .beta = one,
                        .a = vector(call, x, n, incx),
                        .b = vector_across(call, x, n, incx),
                        .c = plain_half(layout, a, false, half == PLAIN_LOWER_HALF, n, lda)};
    product_before(call, &p);
    return p;
}

static struct product trmv(struct plain_call *call, int layout, int half, int trans, int diagonal,
                           int64_t n, const void *a, int64_t lda, void *x, int64_t incx)
{
    struct product p = {.alpha = one,
                        .a = triangle(layout, a, trans, half, diagonal, n, lda),
                        .b = vector(call, x, n, incx),
                        .c = vector(call, x, n, incx)};
    product_before(call, &p);
    return p;
}

static struct system trsv(struct plain_call *call, int layout, int half, int trans, int diagonal,
                          int64_t n, const void *a, int64_t lda, void *x, int64_t incx)
{
    struct system s = {.alpha = one,
                       .t = triangle(layout, a, trans, half, diagonal, n, lda),
                       .b = vector(call, x, n, incx)};
    system_before(call, &s);
    return s;
}

#define MATRIX_AND_VECTORS(s, T, is)                                                               \
    PLAIN_WRAPPER(void, cblas_##s##gemv, int layout, int trans, int m, int n, T alpha, const T *a, \
                  int lda, const T *x, int incx, T beta, T *y, int incy)                           \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##gemv, is);                                                           \
        struct product p =                                                                         \
            gemv(&call, layout, trans, m, n, plain_argument(&call, 0, (double)alpha), a, lda, x,   \
                 incx, plain_argument(&call, 1, (double)beta), y, incy);                           \
        PLAIN_REAL(cblas_##s##gemv)                                                                \
        (layout, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);                              \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##gemv_, const char *trans, const int *m, const int *n, const T *alpha,   \
                  const T *a, const int *lda, const T *x, const int *incx, const T *beta, T *y,    \
                  const int *incy, size_t length)                                                  \
    {                                                                                              \
        PLAIN_CALL(s##gemv_, is);                                                                  \
        struct product p = gemv(&call, PLAIN_COLUMN_MAJOR, PLAIN_TRANS_OF(*trans), *m, *n,         \
                                plain_number(&call, alpha), a, *lda, x, *incx,                     \
                                plain_number(&call, beta), y, *incy);                              \
        PLAIN_REAL(s##gemv_)(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, length);          \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##ger, int layout, int m, int n, T alpha, const T *x, int incx,   \
                  const T *y, int incy, T *a, int lda)                                             \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##ger, is);                                                            \
        struct product p = ger(&call, layout, m, n, plain_argument(&call, 0, (double)alpha), x,    \
                               incx, y, incy, a, lda);                                             \
        PLAIN_REAL(cblas_##s##ger)(layout, m, n, alpha, x, incx, y, incy, a, lda);                 \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##ger_, const int *m, const int *n, const T *alpha, const T *x,           \
                  const int *incx, const T *y, const int *incy, T *a, const int *lda)              \
    {                                                                                              \
        PLAIN_CALL(s##ger_, is);                                                                   \
        struct product p = ger(&call, PLAIN_COLUMN_MAJOR, *m, *n, plain_number(&call, alpha), x,   \
                               *incx, y, *incy, a, *lda);                                          \
        PLAIN_REAL(s##ger_)(m, n, alpha, x, incx, y, incy, a, lda);                                \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##symv, int layout, int half, int n, T alpha, const T *a,         \
                  int lda, const T *x, int incx, T beta, T *y, int incy)                           \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##symv, is);                                                           \
        struct product p = symv(&call, layout, half, n, plain_argument(&call, 0, (double)alpha),   \
                                a, lda, x, incx, plain_argument(&call, 1, (double)beta), y, incy); \
        PLAIN_REAL(cblas_##s##symv)(layout, half, n, alpha, a, lda, x, incx, beta, y, incy);       \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##symv_, const char *half, const int *n, const T *alpha, const T *a,      \
                  const int *lda, const T *x, const int *incx, const T *beta, T *y,                \
                  const int *incy, size_t length)                                                  \
    {                                                                                              \
        PLAIN_CALL(s##symv_, is);                                                                  \
        struct product p =                                                                         \
            symv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), *n, plain_number(&call, alpha),  \
                 a, *lda, x, *incx, plain_number(&call, beta), y, *incy);                          \
        PLAIN_REAL(s##symv_)(half, n, alpha, a, lda, x, incx, beta, y, incy, length);              \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##syr, int layout, int half, int n, T alpha, const T *x,          \
                  int incx, T *a, int lda)                                                         \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##syr, is);                                                            \
        struct product p =                                                                         \
            syr(&call, layout, half, n, plain_argument(&call, 0, (double)alpha), x, incx, a, lda); \
        PLAIN_REAL(cblas_##s##syr)(layout, half, n, alpha, x, incx, a, lda);                       \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##syr_, const char *half, const int *n, const T *alpha, const T *x,       \
                  const int *incx, T *a, const int *lda, size_t length)                            \
    {                                                                                              \
        PLAIN_CALL(s##syr_, is);                                                                   \
        struct product p = syr(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), *n,                \
                               plain_number(&call, alpha), x, *incx, a, *lda);                     \
        PLAIN_REAL(s##syr_)(half, n, alpha, x, incx, a, lda, length);                              \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##trmv, int layout, int half, int trans, int diagonal, int n,     \
                  const T *a, int lda, T *x, int incx)                                             \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##trmv, is);                                                           \
        struct product p = trmv(&call, layout, half, trans, diagonal, n, a, lda, x, incx);         \
        PLAIN_REAL(cblas_##s##trmv)(layout, half, trans, diagonal, n, a, lda, x, incx);            \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##trmv_, const char *half, const char *trans, const char *diagonal,       \
                  const int *n, const T *a, const int *lda, T *x, const int *incx, size_t l0,      \
                  size_t l1, size_t l2)                                                            \
    {                                                                                              \
        PLAIN_CALL(s##trmv_, is);                                                                  \
        struct product p =                                                                         \
            trmv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), PLAIN_TRANS_OF(*trans),          \
                 PLAIN_DIAGONAL_OF(*diagonal), *n, a, *lda, x, *incx);                             \
        PLAIN_REAL(s##trmv_)(half, trans, diagonal, n, a, lda, x, incx, l0, l1, l2);               \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##trsv, int layout, int half, int trans, int diagonal, int n,     \
                  const T *a, int lda, T *x, int incx)                                             \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##trsv, is);                                                           \
        struct system p = trsv(&call, layout, half, trans, diagonal, n, a, lda, x, incx);          \
        PLAIN_REAL(cblas_##s##trsv)(layout, half, trans, diagonal, n, a, lda, x, incx);            \
        system_after(&call, &p);                                                                   \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##trsv_, const char *half, const char *trans, const char *diagonal,       \
                  const int *n, const T *a, const int *lda, T *x, const int *incx, size_t l0,      \
                  size_t l1, size_t l2)                                                            \
    {                                                                                              \
        PLAIN_CALL(s##trsv_, is);                                                                  \
        struct system p =                                                                          \
            trsv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), PLAIN_TRANS_OF(*trans),          \
                 PLAIN_DIAGONAL_OF(*diagonal), *n, a, *lda, x, *incx);                             \
        PLAIN_REAL(s##trsv_)(half, trans, diagonal, n, a, lda, x, incx, l0, l1, l2);               \
        system_after(&call, &p);                                                                   \
    }
MATRIX_AND_VECTORS(d, double, false)
MATRIX_AND_VECTORS(s, float, true)

/* Of matrices whose half is packed. */
#define PACKED_AND_VECTORS(s, T, is)                                                               \
    PLAIN_WRAPPER(void, cblas_##s##spmv, int layout, int half, int n, T alpha, const T *a,         \
                  const T *x, int incx, T beta, T *y, int incy)                                    \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##spmv, is);                                                           \
        struct product p =                                                                         \
            symv(&call, layout, half, n, plain_argument(&call, 0, (double)alpha), a, PLAIN_PACKED, \
                 x, incx, plain_argument(&call, 1, (double)beta), y, incy);                        \
        PLAIN_REAL(cblas_##s##spmv)(layout, half, n, alpha, a, x, incx, beta, y, incy);            \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##spmv_, const char *half, const int *n, const T *alpha, const T *a,      \
                  const T *x, const int *incx, const T *beta, T *y, const int *incy,               \
                  size_t length)                                                                   \
    {                                                                                              \
        PLAIN_CALL(s##spmv_, is);                                                                  \
        struct product p =                                                                         \
            symv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), *n, plain_number(&call, alpha),  \
                 a, PLAIN_PACKED, x, *incx, plain_number(&call, beta), y, *incy);                  \
        PLAIN_REAL(s##spmv_)(half, n, alpha, a, x, incx, beta, y, incy, length);                   \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##spr, int layout, int half, int n, T alpha, const T *x,          \
                  int incx, T *a)                                                                  \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##spr, is);                                                            \
        struct product p = syr(&call, layout, half, n, plain_argument(&call, 0, (double)alpha), x, \
                               incx, a, PLAIN_PACKED);                                             \
        PLAIN_REAL(cblas_##s##spr)(layout, half, n, alpha, x, incx, a);                            \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##spr_, const char *half, const int *n, const T *alpha, const T *x,       \
                  const int *incx, T *a, size_t length)                                            \
    {                                                                                              \
        PLAIN_CALL(s##spr_, is);                                                                   \
        struct product p = syr(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), *n,                \
                               plain_number(&call, alpha), x, *incx, a, PLAIN_PACKED);             \
        PLAIN_REAL(s##spr_)(half, n, alpha, x, incx, a, length);                                   \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##tpmv, int layout, int half, int trans, int diagonal, int n,     \
                  const T *a, T *x, int incx)                                                      \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##tpmv, is);                                                           \
        struct product p =                                                                         \
            trmv(&call, layout, half, trans, diagonal, n, a, PLAIN_PACKED, x, incx);               \
        PLAIN_REAL(cblas_##s##tpmv)(layout, half, trans, diagonal, n, a, x, incx);                 \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##tpmv_, const char *half, const char *trans, const char *diagonal,       \
                  const int *n, const T *a, T *x, const int *incx, size_t l0, size_t l1,           \
                  size_t l2)                                                                       \
    {                                                                                              \
        PLAIN_CALL(s##tpmv_, is);                                                                  \
        struct product p =                                                                         \
            trmv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), PLAIN_TRANS_OF(*trans),          \
                 PLAIN_DIAGONAL_OF(*diagonal), *n, a, PLAIN_PACKED, x, *incx);                     \
        PLAIN_REAL(s##tpmv_)(half, trans, diagonal, n, a, x, incx, l0, l1, l2);                    \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##tpsv, int layout, int half, int trans, int diagonal, int n,     \
                  const T *a, T *x, int incx)                                                      \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##tpsv, is);                                                           \
        struct system p = trsv(&call, layout, half, trans, diagonal, n, a, PLAIN_PACKED, x, incx); \
        PLAIN_REAL(cblas_##s##tpsv)(layout, half, trans, diagonal, n, a, x, incx);                 \
        system_after(&call, &p);                                                                   \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##tpsv_, const char *half, const char *trans, const char *diagonal,       \
                  const int *n, const T *a, T *x, const int *incx, size_t l0, size_t l1,           \
                  size_t l2)                                                                       \
    {                                                                                              \
        PLAIN_CALL(s##tpsv_, is);                                                                  \
        struct system p =                                                                          \
            trsv(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), PLAIN_TRANS_OF(*trans),          \
                 PLAIN_DIAGONAL_OF(*diagonal), *n, a, PLAIN_PACKED, x, *incx);                     \
        PLAIN_REAL(s##tpsv_)(half, trans, diagonal, n, a, x, incx, l0, l1, l2);                    \
        system_after(&call, &p);                                                                   \
    }
PACKED_AND_VECTORS(d, double, false)
PACKED_AND_VECTORS(s, float, true)

/* ---- matrices ---- */

static struct product gemm(struct plain_call *call, int layout, int trans_a, int trans_b, int64_t m,
                           int64_t n, int64_t k, ad_real alpha, const void *a, int64_t lda,
                           const void *b, int64_t ldb, ad_real beta, void *c, int64_t ldc)
{
    struct product p = {.alpha = alpha,
                        .beta = beta,
                        .a = plain_matrix(layout, a, trans_a != PLAIN_NO_TRANS, m, k, lda),
                        .b = plain_matrix(layout, b, trans_b != PLAIN_NO_TRANS, k, n, ldb),
                        .c = plain_matrix(layout, c, false, m, n, ldc)};
    product_before(call, &p);
    return p;
}

static struct product symm(struct plain_call *call, int layout, int side, int half, int64_t m,
                           int64_t n, ad_real alpha, const void *a, int64_t lda, const void *b,
                           int64_t ldb, ad_real beta, void *c, int64_t ldc)
{
    const bool left = side == PLAIN_LEFT;
    const struct plain_view square = symmetric(layout, a, half, left ? m : n, lda),
                            other = plain_matrix(layout, b, false, m, n, ldb);
    struct product p = {.alpha = alpha,
                        .beta = beta,
                        .a = left ? square : other,
                        .b = left ? other : square,
                        .c = plain_matrix(layout, c, false, m, n, ldc)};
    product_before(call, &p);
    return p;
}

static struct product syrk(struct plain_call *call, int layout, int half, int trans, int64_t n,
                           int64_t k, ad_real alpha, const void *a, int64_t lda, ad_real beta,
                           void *c, int64_t ldc)
{
    const struct plain_view of = plain_matrix(layout, a, trans != PLAIN_NO_TRANS, n, k, lda);
    struct product p = {.alpha = alpha,
                        .beta = beta,
                        .a = of,
                        .b = plain_flipped(of),
                        .c = plain_half(layout, c, false, half == PLAIN_LOWER_HALF, n, ldc)};
    product_before(call, &p);
    return p;
}

static struct product trmm(struct plain_call *call, int layout, int side, int half, int trans,
                           int diagonal, int64_t m, int64_t n, ad_real alpha, const void *a,
                           int64_t lda, void *b, int64_t ldb)
{
    const bool left = side == PLAIN_LEFT;
    const struct plain_view t = triangle(layout, a, trans, half, diagonal, left ? m : n, lda),
                            other = plain_matrix(layout, b, false, m, n, ldb);
    struct product p = {.alpha = alpha, .a = left ? t : other, .b = left ? other : t, .c = other};
    product_before(call, &p);
    return p;
}

/* From the right: the transposed system from the left. */
static struct system trsm(struct plain_call *call, int layout, int side, int half, int trans,
                          int diagonal, int64_t m, int64_t n, ad_real alpha, const void *a,
                          int64_t lda, void *b, int64_t ldb)
{
    const bool left = side == PLAIN_LEFT;
    const struct plain_view t = triangle(layout, a, trans, half, diagonal, left ? m : n, lda),
                            other = plain_matrix(layout, b, false, m, n, ldb);
    struct system s = {
        .alpha = alpha, .t = left ? t : plain_flipped(t), .b = left ? other : plain_flipped(other)};
    system_before(call, &s);
    return s;
}

#define MATRICES(s, T, is)                                                                         \
    PLAIN_WRAPPER(void, cblas_##s##gemm, int layout, int ta, int tb, int m, int n, int k, T alpha, \
                  const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc)                 \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##gemm, is);                                                           \
        struct product p =                                                                         \
            gemm(&call, layout, ta, tb, m, n, k, plain_argument(&call, 0, (double)alpha), a, lda,  \
                 b, ldb, plain_argument(&call, 1, (double)beta), c, ldc);                          \
        PLAIN_REAL(cblas_##s##gemm)                                                                \
        (layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                            \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##gemm_, const char *ta, const char *tb, const int *m, const int *n,      \
                  const int *k, const T *alpha, const T *a, const int *lda, const T *b,            \
                  const int *ldb, const T *beta, T *c, const int *ldc, size_t l0, size_t l1)       \
    {                                                                                              \
        PLAIN_CALL(s##gemm_, is);                                                                  \
        struct product p = gemm(&call, PLAIN_COLUMN_MAJOR, PLAIN_TRANS_OF(*ta),                    \
                                PLAIN_TRANS_OF(*tb), *m, *n, *k, plain_number(&call, alpha), a,    \
                                *lda, b, *ldb, plain_number(&call, beta), c, *ldc);                \
        PLAIN_REAL(s##gemm_)(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, l0, l1);        \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##symm, int layout, int side, int half, int m, int n, T alpha,    \
                  const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc)                 \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##symm, is);                                                           \
        struct product p =                                                                         \
            symm(&call, layout, side, half, m, n, plain_argument(&call, 0, (double)alpha), a, lda, \
                 b, ldb, plain_argument(&call, 1, (double)beta), c, ldc);                          \
        PLAIN_REAL(cblas_##s##symm)                                                                \
        (layout, side, half, m, n, alpha, a, lda, b, ldb, beta, c, ldc);                           \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##symm_, const char *side, const char *half, const int *m, const int *n,  \
                  const T *alpha, const T *a, const int *lda, const T *b, const int *ldb,          \
                  const T *beta, T *c, const int *ldc, size_t l0, size_t l1)                       \
    {                                                                                              \
        PLAIN_CALL(s##symm_, is);                                                                  \
        struct product p = symm(&call, PLAIN_COLUMN_MAJOR, PLAIN_SIDE_OF(*side),                   \
                                PLAIN_HALF_OF(*half), *m, *n, plain_number(&call, alpha), a, *lda, \
                                b, *ldb, plain_number(&call, beta), c, *ldc);                      \
        PLAIN_REAL(s##symm_)(side, half, m, n, alpha, a, lda, b, ldb, beta, c, ldc, l0, l1);       \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##syrk, int layout, int half, int trans, int n, int k, T alpha,   \
                  const T *a, int lda, T beta, T *c, int ldc)                                      \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##syrk, is);                                                           \
        struct product p =                                                                         \
            syrk(&call, layout, half, trans, n, k, plain_argument(&call, 0, (double)alpha), a,     \
                 lda, plain_argument(&call, 1, (double)beta), c, ldc);                             \
        PLAIN_REAL(cblas_##s##syrk)(layout, half, trans, n, k, alpha, a, lda, beta, c, ldc);       \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##syrk_, const char *half, const char *trans, const int *n, const int *k, \
                  const T *alpha, const T *a, const int *lda, const T *beta, T *c, const int *ldc, \
                  size_t l0, size_t l1)                                                            \
    {                                                                                              \
        PLAIN_CALL(s##syrk_, is);                                                                  \
        struct product p =                                                                         \
            syrk(&call, PLAIN_COLUMN_MAJOR, PLAIN_HALF_OF(*half), PLAIN_TRANS_OF(*trans), *n, *k,  \
                 plain_number(&call, alpha), a, *lda, plain_number(&call, beta), c, *ldc);         \
        PLAIN_REAL(s##syrk_)(half, trans, n, k, alpha, a, lda, beta, c, ldc, l0, l1);              \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##trmm, int layout, int side, int half, int trans, int diagonal,  \
                  int m, int n, T alpha, const T *a, int lda, T *b, int ldb)                       \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##trmm, is);                                                           \
        struct product p = trmm(&call, layout, side, half, trans, diagonal, m, n,                  \
                                plain_argument(&call, 0, (double)alpha), a, lda, b, ldb);          \
        PLAIN_REAL(cblas_##s##trmm)                                                                \
        (layout, side, half, trans, diagonal, m, n, alpha, a, lda, b, ldb);                        \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##trmm_, const char *side, const char *half, const char *trans,           \
                  const char *diagonal, const int *m, const int *n, const T *alpha, const T *a,    \
                  const int *lda, T *b, const int *ldb, size_t l0, size_t l1, size_t l2,           \
                  size_t l3)                                                                       \
    {                                                                                              \
        PLAIN_CALL(s##trmm_, is);                                                                  \
        struct product p =                                                                         \
            trmm(&call, PLAIN_COLUMN_MAJOR, PLAIN_SIDE_OF(*side), PLAIN_HALF_OF(*half),            \
                 PLAIN_TRANS_OF(*trans), PLAIN_DIAGONAL_OF(*diagonal), *m, *n,                     \
                 plain_number(&call, alpha), a, *lda, b, *ldb);                                    \
        PLAIN_REAL(s##trmm_)                                                                       \
        (side, half, trans, diagonal, m, n, alpha, a, lda, b, ldb, l0, l1, l2, l3);                \
        product_after(&call, &p);                                                                  \
    }                                                                                              \
    PLAIN_WRAPPER(void, cblas_##s##trsm, int layout, int side, int half, int trans, int diagonal,  \
                  int m, int n, T alpha, const T *a, int lda, T *b, int ldb)                       \
    {                                                                                              \
        PLAIN_CALL(cblas_##s##trsm, is);                                                           \
        struct system p = trsm(&call, layout, side, half, trans, diagonal, m, n,                   \
                               plain_argument(&call, 0, (double)alpha), a, lda, b, ldb);           \
        PLAIN_REAL(cblas_##s##trsm)                                                                \
        (layout, side, half, trans, diagonal, m, n, alpha, a, lda, b, ldb);                        \
        system_after(&call, &p);                                                                   \
    }                                                                                              \
    PLAIN_WRAPPER(void, s##trsm_, const char *side, const char *half, const char *trans,           \
                  const char *diagonal, const int *m, const int *n, const T *alpha, const T *a,    \
                  const int *lda, T *b, const int *ldb, size_t l0, size_t l1, size_t l2,           \
                  size_t l3)                                                                       \
    {                                                                                              \
        PLAIN_CALL(s##trsm_, is);                                                                  \
        struct system p =                                                                          \
            trsm(&call, PLAIN_COLUMN_MAJOR, PLAIN_SIDE_OF(*side), PLAIN_HALF_OF(*half),            \
                 PLAIN_TRANS_OF(*trans), PLAIN_DIAGONAL_OF(*diagonal), *m, *n,                     \
                 plain_number(&call, alpha), a, *lda, b, *ldb);                                    \
        PLAIN_REAL(s##trsm_)                                                                       \
        (side, half, trans, diagonal, m, n, alpha, a, lda, b, ldb, l0, l1, l2, l3);                \
        system_after(&call, &p);                                                                   \
    }
MATRICES(d, double, false)
MATRICES(s, float, true)

/* NOLINTEND(readability-function-size) */
