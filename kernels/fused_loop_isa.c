/* fused_loop_isa.c: values and pullbacks of fused loops for one instruction set.
 *
 * Compiled once for each instruction set.
 *
 * Invariant: sums have WIDTH partial sums whatever the machine, and no multiplication is fused, so
 * that values are the same everywhere. Nothing but the table leaves this file.
 */
#include "fused_loop.h"

#include "elementwise.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline, unused))

enum { CHUNK = 256 };

#include "fused_loop_vectors.h"

#include "fused_loop_grid.h"
#include "fused_loop_trmv.h"

/* ---- sums ---- */

INLINE double dot_of(int64_t n, const double *x, int64_t sx, const double *y, int64_t sy)
{
    vec sum = vec_splat(0);
    double rest = 0;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        sum = vec_add_product(sum, vec_load_strided(x + i * sx, sx),
                              vec_load_strided(y + i * sy, sy));
    for (; i < n; i++)
        rest += x[i * sx] * y[i * sy];
    return vec_total(sum) + rest;
}

/* Strides are constants in the loops. */
static double dot(int64_t n, const double *x, int64_t sx, const double *y, int64_t sy)
{
    if (sx == 1)
        return sy == 1 ? dot_of(n, x, 1, y, 1) : dot_of(n, x, 1, y, 2);
    return sy == 1 ? dot_of(n, x, 2, y, 1) : dot_of(n, x, 2, y, 2);
}

INLINE double sum_of(int64_t n, const double *x, int64_t sx)
{
    vec sum = vec_splat(0);
    double rest = 0;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        sum = vec_add(sum, vec_load_strided(x + i * sx, sx));
    for (; i < n; i++)
        rest += x[i * sx];
    return vec_total(sum) + rest;
}

/* to += a x; nothing where a is 0. */
static void add_scaled(int64_t n, double a, const double *x, double *to)
{
    for (int64_t i = 0; i < n && a != 0; i++)
        to[i] += a * x[i];
}

static void dot_value(const struct kernel_fused_loop *s)
{
    *s->y = dot(s->n[0], s->x[0], s->stride[0], s->x[1], s->stride[1]);
}

static void dot_pullback(const struct kernel_fused_loop *s)
{
    if (s->dx[0])
        add_scaled(s->n[0], *s->dy, s->x[1], s->dx[0]);
    if (s->dx[1])
        add_scaled(s->n[0], *s->dy, s->x[0], s->dx[1]);
}

static void sum_value(const struct kernel_fused_loop *s)
{
    *s->y = s->stride[0] == 1 ? sum_of(s->n[0], s->x[0], 1) : sum_of(s->n[0], s->x[0], 2);
}

static void sum_pullback(const struct kernel_fused_loop *s)
{
    for (int64_t i = 0; i < s->n[0]; i++)
        s->dx[0][i] += *s->dy;
}

static void sum_of_squares_value(const struct kernel_fused_loop *s)
{
    const int64_t n = s->m ? s->n[0] / s->m : 0;
    for (int64_t i = 0; i < s->m; i++) {
        const double *x = s->x[0] + i * n * s->stride[0];
        s->y[i * s->y_stride] = dot(n, x, s->stride[0], x, s->stride[0]);
    }
}

static void sum_of_squares_pullback(const struct kernel_fused_loop *s)
{
    const int64_t n = s->m ? s->n[0] / s->m : 0;
    for (int64_t i = 0; i < s->m; i++)
        add_scaled(n, 2 * s->dy[i], s->x[0] + i * n, s->dx[0] + i * n);
}

/* ---- log sum exp ---- */

/* The greatest, NaN if one is. */
static double greatest(int64_t n, const double *x, int64_t sx)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = x[i * sx] > most || x[i * sx] != x[i * sx] ? x[i * sx] : most;
    return most;
}

static void log_sum_exp_value(const struct kernel_fused_loop *s)
{
    const int64_t n = s->n[0], sx = s->stride[0];
    const double *x = s->x[0];
    const double most = greatest(n, x, sx), by = isinf(most) ? 0 : most;
    double part[CHUNK], sum = 0;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t count = n - i < CHUNK ? n - i : CHUNK;
        for (int64_t k = 0; k < count; k++)
            part[k] = x[(i + k) * sx];
        JOIN(kernel_isa_, KERNEL_ISA).exp_shift[KERNEL_F64](1, count, part, &by);
        sum += sum_of(count, part, 1);
        if (s->saved)
            memcpy(s->saved + i, part, (size_t)count * sizeof *part);
    }
    *s->y = isinf(most) ? most : most + log(sum);
    for (int64_t i = 0; s->saved && i < n; i++)
        s->saved[i] = isinf(most) ? (x[i * sx] == most ? (double)NAN : 0) : s->saved[i] / sum;
}

static void log_sum_exp_pullback(const struct kernel_fused_loop *s)
{
    add_scaled(s->n[0], *s->dy, s->saved, s->dx[0]);
}

/* ---- linear ---- */

static void axpy_value(const struct kernel_fused_loop *s)
{
    const double a = s->x[0][0], *x = s->x[1], *y = s->x[2];
    for (int64_t i = 0; i < s->m; i++)
        s->y[i * s->y_stride] = y[i * s->stride[2]] + a * x[i * s->stride[1]];
}

static void axpy_pullback(const struct kernel_fused_loop *s)
{
    const double *dy = s->dy;
    for (int64_t i = 0; s->dx[2] && i < s->m; i++)
        s->dx[2][i] += dy[i];
    for (int64_t i = 0; s->dx[1] && i < s->m; i++)
        s->dx[1][i] += dy[i] == 0 ? 0 : s->x[0][0] * dy[i];
    double sum = 0;
    for (int64_t i = 0; s->dx[0] && i < s->m; i++)
        sum += dy[i] == 0 ? 0 : s->x[1][i] * dy[i];
    if (s->dx[0])
        s->dx[0][0] += sum;
}

static void gemv_value(const struct kernel_fused_loop *s)
{
    const int64_t n = s->n[1], sa = s->stride[0];
    for (int64_t i = 0; i < s->m; i++)
        s->y[i * s->y_stride] = dot(n, s->x[0] + i * n * sa, sa, s->x[1], s->stride[1]);
}

static void gemv_pullback(const struct kernel_fused_loop *s)
{
    const int64_t n = s->n[1];
    for (int64_t i = 0; s->dx[0] && i < s->m; i++)
        add_scaled(n, s->dy[i], s->x[1], s->dx[0] + i * n);
    for (int64_t i = 0; s->dx[1] && i < s->m; i++)
        add_scaled(n, s->dy[i], s->x[0] + i * n, s->dx[1]);
}

static void stencil_value(const struct kernel_fused_loop *s)
{
    const double *x = s->x[0], *w = s->x[1];
    for (int64_t i = 0; i < s->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < s->n[1]; j++)
            sum += w[j * s->stride[1]] * x[(i + j) * s->stride[0]];
        s->y[i * s->y_stride] = sum;
    }
}

static void stencil_pullback(const struct kernel_fused_loop *s)
{
    const double *dy = s->dy;
    for (int64_t j = 0; s->dx[0] && j < s->n[1]; j++) {
        const double w = s->x[1][j];
        for (int64_t i = 0; i < s->m; i++)
            s->dx[0][i + j] += dy[i] == 0 ? 0 : w * dy[i];
    }
    for (int64_t j = 0; s->dx[1] && j < s->n[1]; j++) {
        double sum = 0;
        for (int64_t i = 0; i < s->m; i++)
            sum += dy[i] == 0 ? 0 : s->x[0][i + j] * dy[i];
        s->dx[1][j] += sum;
    }
}

static void collect_value(const struct kernel_fused_loop *s)
{
    for (int64_t i = 0; i < s->m; i++)
        s->y[i * s->y_stride] = s->x[0][i * s->stride[0]];
}

static void collect_pullback(const struct kernel_fused_loop *s)
{
    for (int64_t i = 0; i < s->m; i++)
        s->dx[0][i] += s->dy[i];
}

static void gather_value(const struct kernel_fused_loop *s)
{
    collect_value(s);
}

static void gather_pullback(const struct kernel_fused_loop *s)
{
    collect_pullback(s);
}

static void scatter_add_value(const struct kernel_fused_loop *s)
{
    const int32_t *at = s->own;
    for (int64_t i = 0; i < s->m; i++)
        s->y[i * s->y_stride] = s->x[0][i * s->stride[0]];
    for (int64_t i = 0; i < s->n[1]; i++)
        s->y[at[i] * s->y_stride] += s->x[1][i * s->stride[1]];
    if (s->saved)
        memcpy(s->saved, at, (size_t)s->n[1] * sizeof *at);
}

static void scatter_add_pullback(const struct kernel_fused_loop *s)
{
    const char *at = (const char *)s->saved;
    for (int64_t i = 0; s->dx[0] && i < s->m; i++)
        s->dx[0][i] += s->dy[i];
    for (int64_t i = 0; s->dx[1] && i < s->n[1]; i++) {
        int32_t of;
        memcpy(&of, at + (size_t)i * sizeof of, sizeof of);
        s->dx[1][i] += s->dy[of];
    }
}

/* ---- others ---- */

/* Horner's rule, for the derivative as well. */
static void polynomial_value(const struct kernel_fused_loop *s)
{
    const double x = s->x[1][0];
    double value = 0, slope = 0;
    for (int64_t i = s->n[0] - 1; i >= 0; i--) {
        slope = slope * x + value;
        value = value * x + s->x[0][i * s->stride[0]];
    }
    *s->y = value;
    if (s->saved) {
        s->saved[0] = x;
        s->saved[1] = slope;
    }
}

static void polynomial_pullback(const struct kernel_fused_loop *s)
{
    double power = *s->dy;
    for (int64_t i = 0; s->dx[0] && i < s->n[0]; i++) {
        s->dx[0][i] += power;
        power *= s->saved[0];
    }
    if (s->dx[1])
        s->dx[1][0] += s->saved[1] * *s->dy;
}

static void map_pullback(const struct kernel_fused_loop *s)
{
    const double *partial = s->saved;
    for (int k = 0; k < s->n_in; k++) {
        if (!s->dx[k])
            continue;
        if (s->n[k] == s->m) {
            for (int64_t i = 0; i < s->m; i++)
                s->dx[k][i] += s->dy[i] == 0 ? 0 : partial[i] * s->dy[i];
        } else {
            double sum = 0;
            for (int64_t i = 0; i < s->m; i++)
                sum += s->dy[i] == 0 ? 0 : partial[i] * s->dy[i];
            s->dx[k][0] += sum;
        }
        partial += s->m;
    }
}

/* Its values are computed by the user. */
static void map_value(const struct kernel_fused_loop *s)
{
    (void)s;
}

typedef uint64_t bits64 __attribute__((may_alias));

/* One by one: what a vectorised loop does before and after would take longer. */
static struct kernel_real_scan scan_few(int64_t n, const struct kernel_real *x, const bits64 *of)
{
    const bits64 *bits = (const bits64 *)(const void *)x;
    const uint64_t key = x[0].key;
    uint64_t apart = 0, index = 0, changed = 0;
    for (int64_t i = 0; i < n; i++) {
        __asm__("" : "+r"(i)); /* keeps compilers from making vectors of it */
        apart |= x[i].key ^ (key + (uint64_t)i);
        index |= x[i].key;
        changed |= of ? bits[2 * i] ^ of[i] : 1;
    }
    return (struct kernel_real_scan){.active = index != 0,
                                     .consecutive = apart == 0 && (uint32_t)key != 0,
                                     .seen = changed == 0};
}

static struct kernel_real_scan scan(int64_t n, const struct kernel_real *x, const double *values)
{
    const bits64 *bits = (const bits64 *)(const void *)x;
    const bits64 *of = (const bits64 *)(const void *)values;
    const uint64_t key = x[0].key;
    uint64_t apart = 0, index = 0, changed = 0;
    if (n < 2 * WIDTH)
        return scan_few(n, x, of);
    for (int64_t i = 0; i < n; i++) {
        apart |= x[i].key ^ (key + (uint64_t)i);
        index |= x[i].key;
    }
    for (int64_t i = 0; of && i < n; i++)
        changed |= bits[2 * i] ^ of[i];
    return (struct kernel_real_scan){.active = index != 0,
                                     .consecutive = apart == 0 && (uint32_t)key != 0,
                                     .seen = of && changed == 0};
}

const struct kernel_fused_loop_loops JOIN(kernel_fused_loops_, KERNEL_ISA) = {
#define ENTRY(name) [KERNEL_FUSED_LOOP_##name] = name##_value,
    .value = {KERNEL_FUSED_LOOPS(ENTRY)},
#undef ENTRY
#define ENTRY(name) [KERNEL_FUSED_LOOP_##name] = name##_pullback,
    .pullback = {KERNEL_FUSED_LOOPS(ENTRY)},
    .scan = scan};
