/* plain_loops.c: loops of plain C whose gradients are known twice: by records of whole loops, and
 * by statements, which a tape that looks for NaN makes. Each loop says whether it is a record.
 * Prints a line for each that is not so.
 *
 *     plain_loops              all of them
 *     plain_loops lines        statements and bytes of one sweep, for a profile */
#include <tapescope/ad_plain.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

enum { N = 800, ALL = 3 * N + 1 };

/* What a loop works on: arrays of n numbers and one number. */
struct work {
    int n;
    double *a, *b, *c, s;
};

#define LOOP(name) __attribute__((noinline)) static double name(struct work *w)
/* OPEN: the function has no second body for the time before there is a variable, so that its loops
 * are asked one by one. */
#ifdef OPEN
static volatile int is_open;
#define OPENED (void)is_open
#else
#define OPENED (void)0
#endif
#define ARRAYS                                                                                     \
    OPENED;                                                                                        \
    const int n = w->n;                                                                            \
    double *const a = w->a, *const b = w->b, *const c = w->c, s = w->s;                            \
    (void)n, (void)a, (void)b, (void)c, (void)s

#ifdef RANDOM
static inline double choose(double x, double y)
{
    return x > y ? x : 0.5 * y;
}

static inline double part(double x, double y)
{
    return x / (1.5 + y * y);
}

#include "random.h"
#else
LOOP(sum)
{
    ARRAYS;
    double y = s;
    for (int i = 0; i < n; i++)
        y += a[i];
    return y * y;
}

LOOP(dot)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++)
        y += a[i] * b[i];
    return y;
}

LOOP(two_sums)
{
    ARRAYS;
    double y = 0, z = 1;
    for (int i = 0; i < n; i++) {
        y += a[i] * s;
        z -= exp(b[i]) * a[i];
    }
    return y * z;
}

static void axpy(int n, double s, const double *x, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] += s * x[i];
}

LOOP(axpy_apart)
{
    axpy(w->n, w->s, w->a, w->b);
    return w->b[3] * w->b[w->n - 1];
}

LOOP(axpy_same)
{
    axpy(w->n, w->s, w->a, w->a);
    return w->a[3] * w->a[w->n - 1];
}

LOOP(axpy_ahead)
{
    axpy(w->n - 3, w->s, w->a + 3, w->a);
    return w->a[3] * w->a[w->n - 5];
}

LOOP(axpy_behind)
{
    axpy(w->n - 3, w->s, w->a, w->a + 3);
    return w->a[w->n - 1];
}

LOOP(scaled)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        a[i] = a[i] * s * a[i];
    return a[0] + a[n / 2] * a[n - 1];
}

LOOP(mapped)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        c[i] = sin(a[i]) * exp(b[i] * s) / (1 + a[i] * a[i]) - pow(a[i] + 2, b[i]);
    return c[1] * c[n - 1] + c[n / 3];
}

LOOP(stencil)
{
    ARRAYS;
    for (int i = 1; i < n - 1; i++)
        b[i] = a[i] - s * a[i] * (a[i + 1] - a[i - 1]) + 0.2 * (a[i + 1] - 2 * a[i] + a[i - 1]);
    return b[1] * b[n - 2] + b[n / 2] + b[0];
}

LOOP(stencil_in_place)
{
    ARRAYS;
    for (int i = 1; i < n - 1; i++)
        a[i] = a[i] + s * (a[i + 1] - 2 * a[i] + a[i - 1]);
    return a[1] * a[n - 2] + a[n / 2];
}

LOOP(chained)
{
    ARRAYS;
    for (int i = 1; i < n; i++)
        a[i] = a[i - 1] * b[i];
    return a[n - 1];
}

LOOP(prefix)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++) {
        y += a[i] * a[i];
        b[i] = y;
    }
    return b[n - 1] * b[2];
}

LOOP(product)
{
    ARRAYS;
    double y = 1;
    for (int i = 0; i < n; i++)
        y *= a[i];
    return y;
}

LOOP(greatest)
{
    ARRAYS;
    double y = a[0];
    for (int i = 1; i < n; i++)
        y = a[i] > y ? a[i] : y;
    return y;
}

LOOP(greatest_by_call)
{
    ARRAYS;
    double y = a[0];
    for (int i = 1; i < n; i++)
        y = fmax(y, a[i]);
    return y;
}

/* A maximum of what is computed. */
LOOP(greatest_squared)
{
    ARRAYS;
    double y = s;
    for (int i = 0; i < n; i++)
        y = fmax(y, a[i] * b[i]);
    return y * y;
}

/* Two numbers that are carried over to each other, and a sum of both. */
LOOP(turning)
{
    ARRAYS;
    double x = s, y = 0.5, z = 0;
    for (int i = 0; i < n; i++) {
        const double t = 0.8 * x - 0.6 * y + 0.01 * a[i];
        y = 0.6 * x + 0.8 * y * cos(b[i]);
        x = t;
        z += x * y;
        c[i] = x - y * a[i];
    }
    return x * y + z + c[3] * c[n - 1];
}

/* Derivatives are by numbers from before, and by one that the loop begins with. */
LOOP(multiplied)
{
    ARRAYS;
    double y = c[0];
    for (int i = 0; i < n; i++)
        y = y * (0.9 + 0.01 * s) + c[1];
    return y * a[0] * b[0];
}

/* What a round takes is of the round before, but no sum. */
LOOP(one_behind)
{
    ARRAYS;
    double x = s, y = 0;
    for (int i = 0; i < n; i++) {
        y += x * a[i];
        x = b[i] * c[i];
    }
    return y * x;
}

/* The derivative of what is carried is infinite, and not asked for. */
LOOP(carried_root_of_zero)
{
    ARRAYS;
    double x = 0, y = 0;
    for (int i = 0; i < n; i++) {
        x = sqrt(x * b[i]);
        y += a[i] * b[i];
        c[i] = x;
    }
    return y;
}

LOOP(decaying)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++)
        y = 0.5 * y + a[i];
    return y;
}

LOOP(limited)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++)
        y += y < 20 ? a[i] * a[i] : a[i];
    return y;
}

LOOP(chosen)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++) {
        const double p = a[i] * b[i] * s, q = fmax(b[i], c[i]);
        y += p > q || a[i] < 0.8 ? p : q * q;
    }
    return y;
}

LOOP(backwards)
{
    ARRAYS;
    for (int i = n - 1; i >= 0; i--)
        b[i] = a[i] * a[i] * s;
    return b[0] * b[n - 1];
}

LOOP(turned)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        b[n - 1 - i] = a[i] * a[i] * c[i];
    return b[0] * b[n - 1] + b[7];
}

LOOP(turned_in_place)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        a[n - 1 - i] = a[i] * s;
    return a[0] * a[n - 1] + a[7];
}

LOOP(pairs)
{
    ARRAYS;
    for (int i = 0; i < n / 2; i++) {
        const double re = a[2 * i], im = a[2 * i + 1];
        a[2 * i] = re * re - im * im;
        a[2 * i + 1] = 2 * re * im * s;
    }
    return a[0] * a[n - 1] + a[8] * a[9];
}

LOOP(row_by_row)
{
    const int columns = w->n / 10;
    ARRAYS;
    for (int i = 0; i < 10; i++) {
        double y = 0;
        for (int j = 0; j < columns; j++)
            y += a[i * columns + j] * b[j];
        c[i] = y;
    }
    return c[0] * c[9] + c[3];
}

LOOP(column_by_column)
{
    const int step = w->n / 100, rows = w->n / step;
    ARRAYS;
    double y = 0;
    for (int j = 0; j < step; j++) {
        double z = 0;
        for (int i = 0; i < rows; i++)
            z += a[i * step + j] * b[i];
        y += z * z;
    }
    return y;
}

LOOP(one_number)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        b[i] = a[i] * c[0] + c[1];
    return b[5] * b[6];
}

LOOP(one_number_within)
{
    ARRAYS;
    for (int i = 0; i < n; i++)
        b[i] = a[i] * b[9];
    return b[5] * b[16];
}

LOOP(written_to_one)
{
    const int step = w->n / 10000;
    ARRAYS;
    for (int i = 0; i < n; i++)
        b[i * step] = a[i] * s;
    return b[0] * b[1];
}

LOOP(written_twice)
{
    ARRAYS;
    for (int i = 0; i < n - 1; i++) {
        b[i] = a[i] * s;
        b[i + 1] = a[i] * a[i];
    }
    return b[5] * b[n - 1] + b[n - 2];
}

LOOP(constants_written)
{
    ARRAYS;
    for (int i = 0; i < n; i++) {
        b[i] = 0.5;
        c[i] = a[i] * 3;
    }
    return b[5] * a[2] + c[7] * b[n - 1];
}

LOOP(numbered)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++)
        y += a[i] * i;
    return y;
}

LOOP(gathered)
{
    static int place[N];
    ARRAYS;
    for (int i = 0; i < n; i++)
        place[i] = i * 7 % n;
    double y = 0;
    for (int i = 0; i < n; i++)
        y += a[place[i]] * b[i];
    return y;
}

LOOP(wrapped)
{
    ARRAYS;
    double y = 0;
    for (unsigned i = 0; i < (unsigned)n; i++)
        y += a[(i + 0xfffffff0u) % 128] * b[i];
    return y;
}

LOOP(wrapped_bytes)
{
    ARRAYS;
    double y = 0;
    unsigned char place = 250;
    for (int i = 0; i < 100; i++, place++)
        y += a[place % 200] * b[i];
    return y;
}

LOOP(ended_early)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n; i++) {
        y += a[i] * b[i];
        if (a[i] > 1e9)
            break;
    }
    return y;
}

LOOP(few)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n / 20; i++)
        y += a[i] * b[i];
    return y;
}

LOOP(none)
{
    ARRAYS;
    double y = s;
    for (int i = n; i < n - 1; i++)
        y += a[i] * b[i];
    return y * a[0];
}

LOOP(of_floats)
{
    static float f[N];
    ARRAYS;
    for (int i = 0; i < n; i++)
        f[i] = (float)a[i];
    double y = 0;
    for (int i = 0; i < n; i++)
        y += (double)f[i] * b[i];
    return y;
}

LOOP(volatile_number)
{
    ARRAYS;
    volatile double *const v = a;
    double y = 0;
    for (int i = 0; i < n; i++)
        y += v[i] * b[i];
    return y;
}

LOOP(last_used)
{
    ARRAYS;
    double y = 0, last = 0;
    for (int i = 0; i < n; i++) {
        last = a[i] * b[i];
        y += last * s;
    }
    return y * last;
}

LOOP(root_of_zero)
{
    ARRAYS;
    a[5] = 0 * s; /* the derivative is infinite, and not asked for */
    for (int i = 0; i < n; i++)
        c[i] = sqrt(a[i] * b[i]);
    return c[3] + a[1];
}

LOOP(many_numbers)
{
    ARRAYS;
    double y = 0;
    for (int i = 0; i < n - 20; i++)
        y += a[i] * a[i + 1] * a[i + 2] * a[i + 3] * a[i + 4] * a[i + 5] * a[i + 6] * a[i + 7] *
             a[i + 8] * a[i + 9] * a[i + 10] * a[i + 11] * a[i + 12];
    return y;
}

LOOP(copied_parts)
{
    ARRAYS;
    for (int i = 0; i < n; i += 3) /* indices that do not follow one another */
        a[i] = b[i];
    memcpy(a + 60, c + 10, 20 * sizeof *a);
    memset(a + 100, 0, 10 * sizeof *a);
    double y = 0;
    for (int i = 0; i < n; i++)
        y += a[i] * a[i] * s;
    return y;
}

LOOP(after_another)
{
    ARRAYS;
    for (int k = 0; k < 4; k++) {
        for (int i = 1; i < n - 1; i++)
            b[i] = 0.3 * a[i - 1] + a[i] * a[i + 1];
        for (int i = 1; i < n - 1; i++)
            a[i] = b[i] * s;
    }
    return a[5] * a[n - 2] + b[n / 2];
}

/* The first statement is the dear one, so that the record stands on its line. */
LOOP(dear_first)
{
    ARRAYS;
    for (int i = 0; i < n; i++) {
        c[i] = exp(-a[i]) / a[i];
        b[i] = s * a[i];
    }
    return c[3] * b[n - 1] + c[n / 2];
}

/* ---- nests ---- */

/* y += L x, below the diagonal: columns of L stand one behind the other. */
LOOP(nest_triangle)
{
    ARRAYS;
    const double *l = c;
    const int m = n / 60;
    for (int k = 0; k < m; k++)
        for (int r = k + 1; r < m; r++)
            b[r] += *l++ * a[k];
    return b[3] * b[m - 1] + b[0] * b[1] + b[m] * s;
}

/* The same with all columns from the diagonal on. */
LOOP(nest_triangle_with_diagonal)
{
    ARRAYS;
    const double *l = c;
    const int m = n / 60;
    for (int k = 0; k < m; k++)
        for (int r = k; r < m; r++)
            b[r] += *l++ * a[k] * s;
    return b[3] * b[m - 1] + b[0] * b[1];
}

LOOP(nest_lower)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++)
            c[i * m + j] = a[i * m + j] * b[j] + s;
    return c[0] * c[m * m - 1] + c[m] * c[m + 1] + c[1] * c[2 * m];
}

LOOP(nest_rows)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    for (int i = 0; i < rows; i++) {
        double y = 0;
        for (int j = 0; j < columns; j++)
            y += a[i * columns + j] * b[j];
        c[i] = y;
    }
    return c[0] * c[rows - 1] + c[3] * s;
}

/* The derivatives depend on the sums. */
LOOP(nest_rows_bent)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    for (int i = 0; i < rows; i++) {
        double y = b[i];
        for (int j = 0; j < columns; j++)
            y += a[i * columns + j] * exp(-b[j]);
        c[i] = tanh(0.05 * y) * y * s;
    }
    return c[0] * c[rows - 1] + c[3];
}

LOOP(nest_log_sum)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    double all = 0;
    for (int i = 0; i < rows; i++) {
        double y = 0;
        for (int j = 0; j < columns; j++)
            y += exp(a[i * columns + j] - b[i]);
        all += b[i] + log(y);
    }
    return all * s;
}

LOOP(nest_columns)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            b[j] += a[i * columns + j] * c[i];
    return b[0] * b[columns - 1] + b[3] * b[columns] * s;
}

static double nest_all_sum(const struct work *w)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    double y = s;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            y += a[i * columns + j] * sin(b[j] * c[i]);
    return y;
}

LOOP(nest_all)
{
    const double y = nest_all_sum(w);
    return y * y;
}

LOOP(nest_two_sums)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    double y = s, z = 0;
    for (int i = 0; i < rows; i++) {
        double x = 0;
        for (int j = 0; j < columns; j++) {
            x += a[i * columns + j] * b[j];
            z -= b[j] * c[i];
        }
        y += x * c[i];
    }
    return y * z;
}

LOOP(nest_outer_product)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 27;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            c[i * columns + j] = a[i] * b[j] * s;
    return c[0] * c[rows * columns - 1] + c[77] + c[rows * columns];
}

LOOP(nest_turned)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = m - 1; i >= 0; i--)
        for (int j = m - 1; j >= 0; j--)
            c[j * m + i] = a[i * m + j] * a[i * m + j] + b[j];
    return c[0] * c[m * m - 1] + c[3] * c[3 * m] + c[m * m] * s;
}

/* Steps on a grid whose edges are copied: what each reads has three parts, one behind the other. */
LOOP(nest_edges)
{
    ARRAYS;
    const int m = n / 40;
    for (int step = 0; step < 3; step++) {
        const double *from = step % 2 ? b : a;
        double *to = step % 2 ? a : b;
        memcpy(to, from, (size_t)m * sizeof *to);
        memcpy(to + m * (m - 1), from + m * (m - 1), (size_t)m * sizeof *to);
        for (int i = 1; i < m - 1; i++) {
            to[i * m] = from[i * m];
            to[i * m + m - 1] = from[i * m + m - 1];
            for (int j = 1; j < m - 1; j++)
                to[i * m + j] = from[i * m + j] * (1 + 0.1 * from[i * m + j - 1]) +
                                s * (from[i * m + j + 1] + 2 * from[i * m - m + j]) -
                                0.2 * from[i * m + m + j] * c[j];
        }
    }
    double y = 0;
    const double *at = b;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++, at++)
            y += *at * *at * c[j];
    return y;
}

LOOP(nest_stencil)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 1; i < m - 1; i++) {
        const double *u = a + i * m;
        double *to = b + i * m;
        to[0] = u[0];
        to[m - 1] = u[m - 1];
        for (int j = 1; j < m - 1; j++)
            to[j] = u[j] + s * (u[j - 1] + u[j + 1] + u[j - m] + u[j + m] - 4.0 * u[j]);
    }
    return b[m] * b[m + 1] + b[5 * m + 7] * b[10 * m + 11] + b[3 * m - 1] + b[4];
}

/* Real and imaginary parts by turns. */
LOOP(nest_complex)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 55;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            const int at = 2 * (i * columns + j);
            const double re = a[at], im = a[at + 1];
            b[at] = re * re - im * im + c[i];
            b[at + 1] = 2 * re * im * c[j];
        }
    return b[0] * b[2 * rows * columns - 1] + b[8] * b[9] * s;
}

LOOP(nest_product)
{
    ARRAYS;
    const int m = n / 80;
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            for (int k = 0; k < m; k++)
                c[i * m + j] += a[i * m + k] * b[k * m + j];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += c[i * m + j] * c[j];
    return y * s;
}

/* Parts of the matrix are from elsewhere, or constants. */
LOOP(nest_of_parts)
{
    ARRAYS;
    const int m = n / 30;
    for (int k = 0; k < 3; k++) { /* the first time it is whole */
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++)
                b[j] += a[i * m + j] * a[i * m + j] * c[i];
        memcpy(a + (2 * k + 1) * m, c + 10, (size_t)m * sizeof *a);
        memset(a + 7 * m - 3, 0, (size_t)m * sizeof *a);
    }
    memcpy(b + m - 4, c, 3 * sizeof *b);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            b[j] += a[i * m + j] * s;
    return b[0] * b[m - 1] + b[3] * b[m - 3] + b[m - 4] * b[m];
}

/* So many parts that each number has its index. */
LOOP(nest_of_many_parts)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m * m; i += 3)
        a[i] = b[i];
    for (int i = 0; i < m * m; i += m)
        memcpy(c + i, b + 10, 7 * sizeof *c);
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += a[i * m + j] * c[i * m + j] * s;
    return y;
}

/* The dear statement is the sum of the inner loop, not what is written of it. */
LOOP(nest_dear_within)
{
    ARRAYS;
    const int m = n / 80;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            double y = 0;
            for (int k = 0; k < m; k++)
                y += a[i * m + k] * b[k * m + j];
            c[i * m + j] = s * exp(-y) * y;
        }
    return c[3] * c[m * m - 1];
}

/* Forces of pairs, which add to both. */
LOOP(nest_pairs)
{
    ARRAYS;
    const int m = n / 50;
    for (int i = 0; i < m; i++)
        for (int j = i + 1; j < m; j++) {
            const double x = a[2 * j] - a[2 * i], y = a[2 * j + 1] - a[2 * i + 1];
            const double f = 1 / ((x * x + y * y + s) * sqrt(x * x + y * y + s));
            c[2 * i] += b[j] * f * x;
            c[2 * i + 1] += b[j] * f * y;
            c[2 * j] -= b[i] * f * x;
            c[2 * j + 1] -= b[i] * f * y;
        }
    return c[0] * c[2 * m - 1] + c[7] * c[11] + c[4];
}

/* Rows of other lengths than the arrays', and numbers that lie between them. */
LOOP(nest_among)
{
    ARRAYS;
    const int rows = n / 40, columns = n / 36;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns - 5; j++)
            b[i * columns + j] += s * a[i * columns + j] * c[j];
    return b[0] * b[rows * columns - 1] + b[columns - 6] * b[columns - 5] + b[2 * columns];
}

LOOP(nest_again)
{
    ARRAYS;
    const int m = n / 30;
    for (int k = 0; k < 3; k++) {
        for (int i = 1; i < m - 1; i++)
            for (int j = 1; j < m - 1; j++)
                b[i * m + j] = 0.25 * (a[i * m + j - 1] + a[i * m + j + 1] * a[i * m + j + m]);
        for (int i = 1; i < m - 1; i++)
            for (int j = 1; j < m - 1; j++)
                a[i * m + j] += s * b[i * m + j];
    }
    return a[m + 1] * a[5 * m + 5] + a[m * m - 1] + b[m + 2];
}

/* Like nest_triangle, but the vector is its own result; or the matrix is. */
LOOP(nest_triangle_same)
{
    ARRAYS;
    const double *l = c;
    const int m = n / 60;
    for (int k = 0; k < m; k++)
        for (int r = k + 1; r < m; r++)
            a[r] += *l++ * a[k] * s;
    return a[3] * a[m - 1];
}

static void columns_add(int m, const double *x, const double *l, double *y)
{
    for (int k = 0; k < m; k++)
        for (int r = 0; r < m; r++)
            y[r] += l[k * m + r] * x[k];
}

LOOP(nest_matrix_same)
{
    columns_add(w->n / 60, w->b, w->a, w->a + 5);
    return w->a[6] * w->a[w->n / 60 + 4];
}

LOOP(nest_in_place)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            a[i * m + j] = a[i * m + j] * b[j] * s;
    return a[0] * a[m * m - 1];
}

LOOP(nest_by_row)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 1; i < m; i++)
        for (int j = 0; j < m; j++)
            a[i * m + j] = 0.5 * a[i * m - m + j] * b[j] + s;
    return a[m * m - 1] * a[m * m - m];
}

/* Rows that are written overlap by one. */
LOOP(nest_overlapping)
{
    ARRAYS;
    const int m = n / 40;
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= m; j++)
            c[i * m + j] = a[i * m + j] * b[i];
    return c[m] * c[2 * m] * s;
}

/* Two writes of a row, and one of them to what the other has written in another row. */
LOOP(nest_written_twice)
{
    ARRAYS;
    const int m = n / 40;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            c[i * m + j] = a[j] * b[i];
            c[i * m + j + m] = a[j] * s;
        }
    return c[m] * c[2 * m] + c[m * m] * c[3];
}

LOOP(nest_few)
{
    ARRAYS;
    const int m = n / 160;
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += a[i * m + j] * b[j];
    return y * s;
}

/* The inner loop is not gone through where something else says so. */
LOOP(nest_sometimes)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        if (i % 3 != 1)
            for (int j = 0; j < m; j++)
                c[i * m + j] = a[i * m + j] * b[j];
    return c[0] * c[m] * c[2 * m] * s;
}

/* As often as the number of another round says. */
/* From the diagonal on, and at least once where that lies behind the end. */
LOOP(nest_at_least_once)
{
    ARRAYS;
    const int m = n / 50;
    for (int i = 0; i < m; i++) {
        int j = i;
        do {
            b[j] += a[i * m + j] * c[j];
        } while (++j < 10);
    }
    return b[0] * b[9] + b[12] * s;
}

LOOP(nest_wrong_way)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = i - 5; j < 10; j++)
            b[i] += a[i * m + j + 5] * c[j + 5];
    return b[0] * b[14] + b[15] * b[16] * s;
}

LOOP(nest_up_to)
{
    ARRAYS;
    const int m = n / 30, last = m - 2;
    for (int i = 0; i < m; i++)
        for (int j = i; j <= last; j++)
            c[j] += a[i * m + j] * b[i] * s;
    return c[0] * c[last] + c[last + 1];
}

/* Where the inner loop is not gone through, the sum is another number. */
LOOP(nest_other_start)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++) {
        double y = b[i];
        if (i + 1 < m) {
            y = s;
            for (int j = i + 1; j < m; j++)
                y += a[i * m + j] * a[j];
        }
        c[i] = y;
    }
    return c[0] * c[m - 1] + c[1];
}

/* Another condition than the inner loop's own. */
LOOP(nest_guarded)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        if (i < m / 2)
            for (int j = 0; j < m; j++)
                c[i * m + j] = a[i * m + j] * b[j];
    return c[0] * c[m] * c[20 * m] * s;
}

/* What is added to is used as well. */
LOOP(nest_added_and_used)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            c[j] += a[i * m + j] * s;
            b[i * m + j] = 2 * c[j];
        }
    return c[1] * b[m] + b[5 * m];
}

LOOP(nest_fading)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            c[j] = 0.5 * c[j] + a[i * m + j] * b[i];
    return c[1] * c[m - 1] * s;
}

LOOP(nest_subtracted_from)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            c[j] = a[i * m + j] * b[i] - c[j];
    return c[1] * c[m - 1] * s;
}

LOOP(nest_limited)
{
    ARRAYS;
    const int m = n / 30;
    double y = s;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += y < 20 ? a[i * m + j] * b[j] : a[i * m + j];
    return y;
}

LOOP(nest_last_used)
{
    ARRAYS;
    const int m = n / 30;
    double y = s, last = 0;
    for (int i = 0; i < m; i++) {
        last = a[i] * b[i];
        for (int j = 0; j < m; j++)
            y += a[i * m + j] * last;
    }
    return y * last;
}

/* Each column is followed by a number that is none of it. */
LOOP(nest_skipping)
{
    ARRAYS;
    const double *l = c;
    const int m = n / 60;
    for (int k = 0; k < m; k++, l++)
        for (int r = k + 1; r < m; r++)
            b[r] += *l++ * a[k];
    return b[3] * b[m - 1] * s;
}

/* What goes from round to round is the number that was read, but begins with another. */
LOOP(nest_carried)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++) {
        double before = b[i * m];
        for (int j = 0; j < m; j++) {
            c[i * m + j] = a[i * m + j] * before;
            before = a[i * m + j];
        }
    }
    return c[1] * c[m * m - 1] + c[m] * s;
}

/* Doubles that are not 8 bytes apart. */
LOOP(nest_packed)
{
    static struct __attribute__((packed)) {
        double x;
        int of;
    } p[N];
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < n; i++)
        p[i].x = a[i] * a[i];
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += p[i * m + j].x * b[j];
    return y * s;
}

/* Many matrices, in nests of one sort. */
LOOP(nest_blocks)
{
    ARRAYS;
    const int m = n / 114, blocks = n / m / m;
    double y = 0;
    for (int t = 0; t < 2; t++) {
        const double *of = a;
        for (int k = 0; k < blocks; k++, of += m * m)
            for (int i = 0; i < m; i++)
                for (int j = 0; j < m; j++)
                    y += of[i * m + j] * b[j] * of[i * m + j];
    }
    return y * s;
}

/* A nest that takes what a loop before it has summed, and two that compare with it alone. */
LOOP(nest_after_loop)
{
    ARRAYS;
    const int m = n / 30;
    double y = s, z = 0;
    for (int i = 0; i < n; i++)
        y += 0.01 * a[i] * b[i];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            c[i * m + j] = a[j] * y;
    const double limit = y + 1; /* far from all of them */
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            z += a[i * m + j] < limit ? b[j] : c[i];
    for (int i = 0; i < n; i++)
        z += a[i] < limit ? b[i] : c[i];
    return c[3] * c[m * m - 1] + z;
}

LOOP(nest_sparse)
{
    ARRAYS;
    const int m = n / 100;
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y += a[i * 90 + j * 11] * b[j];
    return y * s;
}

LOOP(nest_prefix)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++) {
        double y = s;
        for (int j = 0; j < m; j++) {
            y += a[i * m + j];
            c[i * m + j] = y;
        }
    }
    return c[3] * c[m * m - 1];
}

LOOP(nest_decaying)
{
    ARRAYS;
    const int m = n / 30;
    double y = s;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            y = 0.9 * y + a[i * m + j] * b[j];
    return y;
}

LOOP(nest_last)
{
    ARRAYS;
    const int m = n / 30;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            c[i] = a[i * m + j] * b[j]; /* the last one counts */
    return c[0] * c[m - 1] * s;
}

/* Adds to numbers that another addition of the same round may have changed. */
LOOP(nest_shifted)
{
    ARRAYS;
    const int m = n / 30;
    double *const d = c + w->n / 800;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            const double x = c[j], y = d[j];
            c[j] = x + a[i * m + j] * s;
            d[j] = y + b[i * m + j];
        }
    return c[1] * c[m - 1];
}

/* ---- several loops, one behind the other or one in the other ---- */

static double log_sum_exp(const double *x, int n)
{
    double most = x[0], sum = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > most)
            most = x[i];
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* y = q a for a = p - mu, in buffers; the square of its norm. */
static double transform(int d, const double *restrict p, const double *restrict mu,
                        const double *restrict q, const double *restrict l, double *restrict u,
                        double *restrict y)
{
    double norm = 0;
    for (int j = 0; j < d; j++) {
        u[j] = p[j] - mu[j];
        y[j] = exp(0.1 * q[j]) * u[j];
    }
    for (int c = 0; c < d; c++)
        for (int r = c + 1; r < d; r++)
            y[r] += *l++ * u[c];
    for (int j = 0; j < d; j++)
        norm += y[j] * y[j];
    return norm;
}

/* A mixture: buffers that are written in every round, a triangle behind a pointer that goes on. */
LOOP(region_mixture)
{
    enum { D = 5, K = 7, POINTS = 9 };
    ARRAYS;
    const int d = n > D ? D : n, n_k = n > K ? K : n, points = n > POINTS ? POINTS : n;
    double *term = c + 100, *u = c + 200, *y = c + 300, sum = 0;
    for (int i = 0; i < points; i++) {
        for (int k = 0; k < n_k; k++)
            term[k] = b[k] * s - 0.05 * transform(d, a + i * d, b + 100 + k * d, b + 200 + k * d,
                                                  b + 300 + k * (d * (d - 1) / 2), u, y);
        sum += log_sum_exp(term, n_k);
    }
    return sum + c[302] * c[203];
}

/* Two loops one behind the other: the second reads what the first has written. */
LOOP(region_two)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = s;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = a[i * of + j] * b[j] + s;
        for (int j = 0; j < of; j++)
            y += c[j] * c[j] * b[of + j];
    }
    return y * c[3];
}

/* Buffers that are written as a whole before they are read. */
LOOP(region_two_buffers)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 1;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++) {
            c[j] = a[i * of + j] * s;
            c[of + j] = b[j] * a[i * of + j];
        }
        for (int j = 0; j < of; j++)
            y = y * 0.99 + c[j] * c[of + j];
    }
    return y;
}

/* What a loop carries goes on into the next one, and from round to round. */
LOOP(region_carried)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = s, z = 1;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            y = 0.5 * y * b[j] / (1 + b[j] * b[j]) + a[i * of + j];
        for (int j = 0; j < of; j++)
            z = z * 0.9 + sin(y * a[i * of + j]) * s;
        c[i] = y * z;
    }
    return y * z + c[2] * c[m - 1];
}

/* In place: what a round reads the round before has written. */
LOOP(region_smoothed)
{
    ARRAYS;
    const int m = n / 100;
    for (int t = 0; t < m; t++) {
        for (int i = 1; i < 60; i++)
            a[i] += 0.3 * a[i - 1] * b[i];
        for (int i = 58; i >= 0; i--)
            a[i] = (a[i] + s * a[i + 1]) * 0.7;
    }
    return a[0] * a[59] + a[30];
}

/* Branches in rounds, and loops that are not gone round always. */
LOOP(region_branches)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        double t = 0;
        for (int j = 0; j <= i; j++)
            t += a[j] * b[i];
        if (t > s) {
            for (int j = 0; j < of; j++)
                t -= a[i * of + j] * s;
            if (t > 0.5)
                t = sqrt(t + 2) * b[i];
            else
                t = t * t;
        }
        for (int j = i; j < of; j++)
            y += t * a[i * of + j];
    }
    return y;
}

/* The greatest, by a branch and by a choice, and the sum of what it is taken of. */
LOOP(region_greatest)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        double most = a[i * of] * s;
        for (int j = 0; j < of; j++)
            c[j] = sin(a[i * of + j]) * b[j];
        for (int j = 0; j < of; j++)
            most = fmax(most, c[j]);
        y += most * most + log_sum_exp(c, of);
    }
    return y;
}

static void two_passes(int m, int of, const double *x, double *y, double *z)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            y[j] = x[i * of + j] * 0.5 + y[j];
        for (int j = 0; j < of; j++)
            z[j] += y[j] * y[j];
    }
}

LOOP(region_apart)
{
    two_passes(w->n / 40, w->n / 27, w->a, w->b, w->c);
    return w->c[3] * w->c[w->n / 27 - 1] + w->b[0];
}

/* Arrays that meet, so that what is read is not what it was: smaller records, and statements. */
LOOP(region_meets)
{
    two_passes(w->n / 40, w->n / 27, w->a, w->a + 4, w->c);
    return w->c[3] * w->c[w->n / 27 - 1] + w->a[7];
}

/* The same, and nothing is known of how far they are apart. */
LOOP(region_meets_anywhere)
{
    two_passes(w->n / 40, w->n / 27, w->a, w->a + w->n / 200, w->c);
    return w->c[3] * w->c[w->n / 27 - 1] + w->a[7];
}

/* Of three loops. */
LOOP(region_product)
{
    ARRAYS;
    const int m = n / 100;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            c[i * m + j] = 0;
            for (int k = 0; k < m; k++)
                c[i * m + j] += a[i * m + k] * b[k * m + j];
        }
    return c[3] * c[m * m - 1] + c[m + 1];
}

/* Elimination: places, and how often, are of both loops around, and rows have gaps. */
LOOP(region_eliminated)
{
    ARRAYS;
    const int m = n / 100;
    for (int i = 0; i < m * m; i++)
        a[i] = a[i] * 0.1 + (i % (m + 1) == 0 ? 3 : 0);
    for (int k = 0; k < m; k++)
        for (int i = k + 1; i < m; i++) {
            const double f = a[i * m + k] / a[k * m + k];
            for (int j = k + 1; j < m; j++)
                a[i * m + j] -= f * a[k * m + j];
            b[i] -= f * b[k];
        }
    return b[m - 1] / a[m * m - 1] + s;
}

/* A row that is followed by numbers that are not the region's. */
LOOP(region_gaps)
{
    ARRAYS;
    const int m = n / 40, of = n / 40 - 3;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[i * m + j] = a[i * m + j] * s;
        for (int j = 0; j < of; j++)
            y += c[i * m + j] * b[j];
    }
    return y + c[m];
}

/* The inner part of a grid, from one array to the other and back: edges are never written. */
LOOP(region_grid)
{
    ARRAYS;
    const int m = n / 40;
    for (int t = 0; t < 3; t++) {
        for (int i = 1; i < m - 1; i++)
            for (int j = 1; j < m - 1; j++) {
                const double *u = a + i * m + j;
                c[i * m + j] = u[0] + s * 0.1 * (u[-1] + u[1] + u[-m] + u[m] - 4 * u[0]);
            }
        for (int i = m - 2; i > 0; i--)
            for (int j = m - 2; j > 0; j--)
                a[i * m + j] = c[i * m + j] * c[i * m + j] * 0.5;
    }
    return a[m + 1] * a[2 * m - 2] + a[2 * m] * a[2 * m - 1] + c[m] * c[2 * m + 3];
}

/* Rows with gaps that are written in some rounds of the loop around, not in the last. */
LOOP(region_gaps_sometimes)
{
    ARRAYS;
    const int m = n / 40, of = m - 2;
    double y = 0;
    for (int t = 0; t < m / 4; t++) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < of; j++)
                if (t == 1)
                    c[i * m + j] = sin(c[i * m + j]) * s;
        for (int j = 0; j < m; j++)
            y += c[40 + j] * c[j] * b[j];
    }
    return y + c[m] * c[m - 1] * c[m - 2] * c[m - 3];
}

/* Rows with gaps, each shorter than the one before. */
LOOP(region_gaps_triangle)
{
    ARRAYS;
    const int m = n / 40;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = i; j < m; j++)
            c[i * m + j] = a[i * m + j] * s;
        for (int j = i; j < m; j++)
            y += c[i * m + j] * b[j];
    }
    return y * c[m - 1] + c[1] * c[2 * m - 1] + c[m];
}

/* A matrix of which a few columns are written. */
LOOP(region_columns)
{
    ARRAYS;
    const int m = n / 20, rows = n / m - 1, few = n / 400;
    double y = 0;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < few; j++)
            c[i * m + 3 + j] = a[i * m + j] * s;
        for (int j = 0; j < m; j++)
            y += a[i * m + j] * b[j];
    }
    return y + c[3] * c[4] * c[m + 5];
}

/* The same array twice. */
LOOP(region_twice)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    memcpy(c, a, (size_t)(m * of) * sizeof *c);
    double y = 0;
    for (int i = 0; i < m; i++) {
        double t = 0, z = 1;
        for (int j = 0; j < of; j++)
            t += a[i * of + j] * b[j];
        for (int j = 0; j < of; j++)
            z += c[i * of + j] * a[i * of + j + 1] * b[j];
        y += t * z;
    }
    return y * s;
}

/* Two arrays of the same variables, one of which is read at one place. */
LOOP(region_shared)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    memcpy(c, a, (size_t)(m * of) * sizeof *c);
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            b[j] = a[i * of + j] * c[2] * s;
        for (int j = 0; j < of; j++)
            y += b[j] * c[1];
    }
    return y;
}

/* What a float has rounded is not followed as a double, however far floats are apart. */
LOOP(region_of_floats)
{
    static float f[2 * N];
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            f[2 * j] = (float)(a[i * of + j] * s);
        for (int j = 0; j < of; j++)
            y += (double)f[2 * j] * b[j];
    }
    return y;
}

/* Roots of 0, and angles of nothing, to which nothing goes. */
LOOP(region_root_of_zero)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] =
                sqrt(a[i * of + j] - a[i * of + j] + 0 * b[j]) + atan2(0 * a[i * of + j], 0 * b[j]);
        for (int j = 0; j < of; j++)
            y += 0 * c[j] + b[j] * s;
    }
    return y;
}

/* Angles of nothing, to which something goes. */
LOOP(region_undefined)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = 0 * (a[i * of + j] * b[j]);
        for (int j = 0; j < of; j++)
            y += atan2(c[j], 0 * s);
    }
    return y;
}

/* Few rounds. */
LOOP(region_few)
{
    ARRAYS;
    const int m = n / 200;
    double y = s;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++)
            c[j] = a[i * m + j] * b[j];
        for (int j = 0; j < m; j++)
            y += c[j] * c[j];
    }
    return y;
}

/* Three loops and more, each of which has something written down. */
LOOP(region_deep)
{
    ARRAYS;
    const int m = n / 200, of = n / 160;
    double y = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            double z = sin(a[i * 100 + j]);
            for (int k = 0; k < j + 2; k++) {
                double t = b[i + j] * z;
                for (int l = 0; l < of; l++)
                    for (int r = l; r < of; r++)
                        t = t * 0.9 + a[i * 100 + j * 20 + k * 3 + l] * c[r];
                c[k] = tanh(0.1 * t);
                y += t * t * s;
            }
            for (int k = 0; k < i; k++)
                z = z * c[k] + b[k];
            y += sin(z);
        }
    return y + c[1] * c[3];
}

/* Loops that begin in some rounds only, and how often they run, of all loops around. */
LOOP(region_some_rounds)
{
    ARRAYS;
    const int m = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 5; j < i; j++)
            c[j] = a[i + j] * s;
        for (int j = 12; j < i; j++)
            y += c[j] * b[j];
        for (int j = i; j < 11; j++)
            y = sin(y) * b[j];
    }
    return y + c[6];
}

static double passes(int m, int of, const double *x, double *z, double s)
{
    double y = s;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            z[j] = x[i + j] * s;
        for (int j = 0; j < of; j++)
            y += z[j] * x[j];
    }
    return y;
}

/* Loops that do not run at all. */
LOOP(region_no_rounds)
{
    ARRAYS;
    const int m = n / 40;
    return passes(0, m, a, c, s) * passes(m, 0, a, c, s) * passes(-m, m, a, c, s) *
               passes(m, -m, a, c, s) +
           passes(m, m, a, c, s);
}

static double guarded(int m, int of, const double *x, const double *none, double *z, double s)
{
    double y = s;
    for (int i = 0; i < m; i++) {
        double t = s - 100;
        for (int j = 0; j < of; j++)
            t += 0.01 * x[i * of + j];
        for (int j = 0; j < of; j++)
            z[j] = x[i * of + j] * s;
        if (t > 0.5)
            for (int j = 0; j < of; j++)
                y += none[i * of + j] * z[j];
        y += t * z[1];
    }
    return y;
}

/* An array that is read if a number says so, which it never does: the array is not there. */
LOOP(region_guarded)
{
    ARRAYS;
    static double *volatile nowhere = NULL;
    return guarded(n / 40, n / 27, a, nowhere, c, s);
}

static double unbounded(int m, int of, int none, const double *x, double *z, double s)
{
    double y = s;
    for (int i = 0; i < m; i++) {
        double t = s - 100;
        for (int j = 0; j < of; j++)
            t += 0.01 * x[i * of + j];
        for (int j = 0; j < of; j++)
            z[j] = x[i * of + j] * s;
        if ((t > 0.5) & (none > 0)) {
            for (int k = 0; k < none; k++)
                for (int j = k; j < none; j++)
                    y += t * s;
            for (int k = 0; k < none; k++)
                y *= t;
        }
        y += t * z[1];
    }
    return y;
}

/* Rounds of loops that are not begun are any number: nobody may go through them. */
LOOP(region_unbounded)
{
    ARRAYS;
    static volatile int fewer = -5;
    return unbounded(n / 40, n / 27, fewer, a, c, s);
}

static double outside(int m, int of, const double *x, double *z, double s)
{
    double y = s;
    int wrong = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            z[j] = log(x[i * of + j] - (i == 9 && j == 3 ? 1000 : 0)) * s;
        for (int j = 0; j < of; j++)
            y += (j == 3 ? 0 : z[j]) * x[j];
        if (errno == EDOM)
            wrong++;
    }
    return wrong == m - 9 ? y : NAN;
}

/* What a function of <math.h> says in errno is read where the program reads it. */
LOOP(region_errno)
{
    ARRAYS;
    errno = 0;
    return outside(n / 40, n / 27, a, c, s);
}

/* What is written by some rounds, or twice before it is read, or not read at all. */
LOOP(region_overwritten)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++) {
            c[j] = a[j] * s;
            c[j + 1] = b[j] * a[i];
        }
        for (int j = 0; j < of; j++)
            c[j] = exp(-c[j]) * c[j + 1];
        for (int j = 0; j < of; j++)
            if (a[i * of + j] > 0.95)
                c[j] = sin(a[i * of + j]) * c[j];
        for (int j = 0; j < of; j++)
            y += c[j] > 0.3 ? c[j] * b[j] : s;
        for (int j = 0; j < of; j++)
            b[j] = 0.25;
    }
    return y + c[0] + c[3] * c[10] + c[29] * b[2];
}

/* Some of a buffer is written: the rest is what it was before. */
LOOP(region_partly)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            if (j > i + 2)
                c[j] = a[i * of + j] * sin(b[j]);
        for (int j = 0; j < of; j++)
            y += c[j] * b[j] * s;
    }
    return y + c[1] * c[20];
}

/* A buffer of variables that becomes one of constants. */
LOOP(region_forgotten)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = a[i * of + j] * s;
        for (int j = 0; j < of; j++)
            y += c[j] * b[j];
    }
    return y * c[3];
}

/* Beside a buffer that is written as a whole there are numbers that stay. */
LOOP(region_beside)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = a[i * of + j] * sin(b[j]);
        for (int j = 0; j < of; j++)
            y += c[j] * b[j] * s;
        c[42] = y;
    }
    return y + c[35] * c[2] * c[42];
}

/* One operand twice or more, numbers that change places, and writes beside the inner loops. */
LOOP(region_same)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = s, z = 0.3, t = 1, u = b[0];
    for (int i = 1; i < m; i++) {
        const double v = sin(a[i]) * b[i - 1];
        c[i] = v * s;
        for (int j = 0; j < of; j++) {
            const double had = y;
            y = z * a[j] + a[j] * a[j] / (a[j] + z);
            z = t + 0.1 * had * c[i];
            t = had;
        }
        b[i] = sin(y) + exp(-v * v);
        for (int j = 0; j < of; j++) {
            const double had = y;
            y = u - (y - y);
            u = 0.5 * fma(c[j], c[j], had) + b[i] * c[i - 1];
        }
        c[i] = 0.1;
    }
    return y + z * 2 + t * 3 + u * 4 + c[3] + b[4];
}

/* Functions of one operand and of two. */
LOOP(region_functions)
{
    ARRAYS;
    const int m = n / 80, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = atan2(a[i * of + j], b[j]) + hypot(s, b[j]) + cbrt(a[j]) +
                   fabs(a[j] - 1) * copysign(b[j], a[j] - 1);
        for (int j = 0; j < of; j++)
            y += pow(c[j] + 1, s) + pow(b[j], 2) + log1p(c[j]) + erf(c[j]) + expm1(s * c[j]);
        y = fma(y, 0.5, c[3] * s) + sqrt(1 + y * y) + fmin(y, a[i]);
    }
    return y;
}

/* Constants that change behind the region do not change what it was. */
LOOP(region_changed)
{
    ARRAYS;
    const int m = n / 40, of = n / 27;
    double y = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < of; j++)
            c[j] = a[i * of + j] * b[j];
        for (int j = 0; j < of; j++)
            y += c[j] * c[j] * s;
    }
    for (int i = 0; i < n; i++)
        a[i] = b[i] = c[i] = 7;
    return y;
}

#endif

enum { STATEMENTS, RECORD, EITHER };

static const struct {
    const char *name;
    double (*loop)(struct work *w);
    int is; /* at least one record, or none */
} loops[] = {
#define IS(how, name)                                                                              \
    {                                                                                              \
#name, name, how                                                                           \
    }
#ifdef RANDOM
    RANDOM_LOOPS
#else
    IS(RECORD, sum),
    IS(RECORD, dot),
    IS(RECORD, two_sums),
    IS(RECORD, axpy_apart),
    IS(RECORD, axpy_same),
    IS(RECORD, axpy_ahead),
    IS(STATEMENTS, axpy_behind),
    IS(RECORD, scaled),
    IS(RECORD, mapped),
    IS(RECORD, stencil),
    IS(STATEMENTS, stencil_in_place),
    IS(STATEMENTS, chained),
    IS(RECORD, prefix),
    IS(RECORD, product),
    IS(STATEMENTS, greatest),
    IS(STATEMENTS, greatest_by_call),
    IS(RECORD, greatest_squared),
    IS(RECORD, turning),
    IS(RECORD, multiplied),
    IS(RECORD, one_behind),
    IS(RECORD, carried_root_of_zero),
    IS(RECORD, decaying),
    IS(EITHER, limited),
    IS(RECORD, chosen),
    IS(RECORD, backwards),
    IS(RECORD, turned),
    IS(STATEMENTS, turned_in_place),
    IS(RECORD, pairs),
    IS(RECORD, row_by_row),
    IS(RECORD, column_by_column),
    IS(RECORD, one_number),
    IS(STATEMENTS, one_number_within),
    IS(STATEMENTS, written_to_one),
    IS(STATEMENTS, written_twice),
    IS(RECORD, constants_written),
    IS(STATEMENTS, numbered),
    IS(STATEMENTS, gathered),
    IS(STATEMENTS, wrapped),
    IS(STATEMENTS, wrapped_bytes),
    IS(STATEMENTS, ended_early),
    IS(STATEMENTS, few),
    IS(STATEMENTS, none),
    IS(STATEMENTS, of_floats),
    IS(STATEMENTS, volatile_number),
    IS(STATEMENTS, last_used),
    IS(RECORD, root_of_zero),
    IS(STATEMENTS, many_numbers),
    IS(RECORD, copied_parts),
    IS(RECORD, after_another),
    IS(RECORD, dear_first),
    IS(RECORD, nest_triangle),
    IS(RECORD, nest_triangle_with_diagonal),
    IS(RECORD, nest_lower),
    IS(RECORD, nest_rows),
    IS(RECORD, nest_rows_bent),
    IS(RECORD, nest_log_sum),
    IS(RECORD, nest_columns),
    IS(RECORD, nest_all),
    IS(RECORD, nest_two_sums),
    IS(RECORD, nest_outer_product),
    IS(RECORD, nest_turned),
    IS(RECORD, nest_edges),
    IS(RECORD, nest_stencil),
    IS(RECORD, nest_complex),
    IS(RECORD, nest_product),
    IS(RECORD, nest_of_parts),
    IS(RECORD, nest_of_many_parts),
    IS(RECORD, nest_dear_within),
    IS(RECORD, nest_pairs),
    IS(RECORD, nest_among),
    IS(RECORD, nest_again),
    IS(STATEMENTS, nest_triangle_same),
    IS(STATEMENTS, nest_matrix_same),
    IS(STATEMENTS, nest_in_place),
    IS(STATEMENTS, nest_by_row),
    IS(STATEMENTS, nest_overlapping),
    IS(STATEMENTS, nest_written_twice),
    IS(STATEMENTS, nest_few),
    IS(STATEMENTS, nest_sometimes),
    IS(STATEMENTS, nest_wrong_way),
    IS(STATEMENTS, nest_at_least_once),
    IS(STATEMENTS, nest_sparse),
    IS(STATEMENTS, nest_guarded),
    IS(STATEMENTS, nest_other_start),
    IS(RECORD, nest_up_to),
    IS(STATEMENTS, nest_added_and_used),
    IS(STATEMENTS, nest_fading),
    IS(STATEMENTS, nest_subtracted_from),
    IS(STATEMENTS, nest_limited),
    IS(STATEMENTS, nest_last_used),
    IS(STATEMENTS, nest_skipping),
    IS(STATEMENTS, nest_carried),
    IS(EITHER, nest_packed),
    IS(RECORD, nest_blocks),
    IS(RECORD, nest_after_loop),
    IS(STATEMENTS, nest_prefix),
    IS(STATEMENTS, nest_decaying),
    IS(STATEMENTS, nest_last),
    IS(STATEMENTS, nest_shifted),
    IS(RECORD, region_mixture),
    IS(RECORD, region_two),
    IS(RECORD, region_two_buffers),
    IS(RECORD, region_carried),
    IS(RECORD, region_smoothed),
    IS(RECORD, region_branches),
    IS(RECORD, region_greatest),
    IS(RECORD, region_apart),
    IS(RECORD, region_meets),
    IS(EITHER, region_meets_anywhere),
    IS(RECORD, region_product),
    IS(STATEMENTS, region_eliminated),
    IS(RECORD, region_gaps),
    IS(RECORD, region_grid),
    IS(RECORD, region_gaps_sometimes),
    IS(STATEMENTS, region_gaps_triangle),
    IS(STATEMENTS, region_columns),
    IS(RECORD, region_twice),
    IS(RECORD, region_shared),
    IS(STATEMENTS, region_of_floats),
    IS(RECORD, region_root_of_zero),
    IS(STATEMENTS, region_few),
    IS(RECORD, region_deep),
    IS(RECORD, region_some_rounds),
    IS(RECORD, region_no_rounds),
    IS(EITHER, region_guarded),
    IS(EITHER, region_unbounded),
    IS(EITHER, region_errno),
    IS(RECORD, region_overwritten),
    IS(RECORD, region_partly),
    IS(RECORD, region_forgotten),
    IS(RECORD, region_beside),
    IS(RECORD, region_same),
    IS(RECORD, region_functions),
    IS(RECORD, region_changed),
#endif
#undef IS
};
enum { LOOPS = sizeof loops / sizeof *loops };

static double x_at(int i)
{
    return 0.9 + 0.2 * sin(1.7 * i);
}

/* The loop's value at x[3 N + 1]. */
static double value_of(int loop, const double *x)
{
    double *const room = malloc(3 * N * sizeof *room);
    memcpy(room, x, 3 * N * sizeof *room);
    struct work w = {N, room, room + N, room + 2 * N, x[3 * N]};
    const double y = loops[loop].loop(&w);
    free(room);
    return y;
}

/* Values of all loops before there is any variable, when nothing is looked at. */
static double idle_value[LOOPS];

static int idle(void)
{
    double x[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = x_at(i);
    for (int loop = 0; loop < LOOPS; loop++)
        idle_value[loop] = value_of(loop, x);
    return ad_plain_dropped() != 0 && printf("idle: gradients are lost\n") > 0;
}

static void no_result(void *payload, uint32_t index, double value, uintptr_t pc)
{
    (void)payload, (void)index, (void)value, (void)pc;
}

static void no_operand(void *payload, uint32_t index, uint32_t of, double partial)
{
    (void)payload, (void)index, (void)of, (void)partial;
}

struct outcome {
    double y, g[ALL];
    uint64_t bytes;
};

/* Leaves of array p: of random loops in pieces, each second one first, so that their indices do not
 * follow each other. Pieces of a are whole rows of 20. */
static bool make_leaves(ad_tape tape, int p, int64_t n, double *x, ad_real *k)
{
#ifdef RANDOM
    const int64_t piece = 100 + 55 * p;
    for (int64_t turn = 1; turn >= 0; turn--)
        for (int64_t i = turn * piece; i < n; i += 2 * piece)
            if (ad_plain_leaves(tape, n - i < piece ? n - i : piece, x + i, k + i) != AD_OK)
                return false;
    return true;
#else
    (void)p;
    return ad_plain_leaves(tape, n, x, k) == AD_OK;
#endif
}

/* active: a bit for each array, then the number. */
static bool sweep(ad_tape tape, int loop, unsigned active, bool by_statements, struct outcome *o)
{
    double x[ALL], *part[] = {x, x + N, x + 2 * N, x + 3 * N};
    ad_real k[ALL];
    ad_stats stats;
    for (int i = 0; i < ALL; i++)
        x[i] = x_at(i);
    memset(o, 0, sizeof *o);
    memset(k, 0, sizeof k);
    if (ad_tape_reset(tape) != AD_OK)
        return false;
    for (int p = 0; p < 4; p++) {
        const int64_t n = p < 3 ? N : 1;
        if ((active >> p & 1) && !make_leaves(tape, p, n, part[p], k + p * N))
            return false;
    }
    static const struct ad_plain_watch_ watch = {no_result, no_operand, NULL};
    if (by_statements && active && !ad_plain_watched_(&watch))
        return false;
    double y = value_of(loop, x);
    if (by_statements && active && !ad_plain_watched_(NULL))
        return false;
    o->y = y;
    if (ad_plain_read(&y).index == 0)
        return true;
    if (ad_tape_stats(tape, &stats) != AD_OK || ad_plain_backward(tape, &y) != AD_OK)
        return false;
    o->bytes = stats.statement_bytes;
    for (int p = 0; p < 4; p++)
        if ((active >> p & 1) &&
            ad_plain_gradients(tape, p < 3 ? N : 1, k + p * N, o->g + p * N) != AD_OK)
            return false;
    return true;
}

static bool is_close(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * (1 + fabs(a) + fabs(b));
}

/* A difference along a direction. */
static double difference(int loop, unsigned active, const double *u, double h)
{
    double x[2][ALL];
    for (int i = 0; i < ALL; i++) {
        const double at = x_at(i), by = active >> (i / N) & 1 ? h * u[i] : 0;
        x[0][i] = at + by;
        x[1][i] = at - by;
    }
    return (value_of(loop, x[0]) - value_of(loop, x[1])) / (2 * h);
}

static int n_recorded;

static int check(ad_tape tape, int loop)
{
    static struct outcome record, statements;
    int wrong = 0;
    for (unsigned active = 0; active < 16; active++) {
        const uint64_t dropped = ad_plain_dropped();
        double u[ALL], along = 0;
        if (!sweep(tape, loop, active, false, &record) ||
            !sweep(tape, loop, active, true, &statements)) {
            printf("%s, active %u: %s\n", loops[loop].name, active, ad_tape_message(tape));
            return 1;
        }
        double worst = 0;
        for (int i = 0; i < ALL; i++) {
            u[i] = cos(3.1 * i);
            along += record.g[i] * u[i];
            if (!is_close(record.g[i], statements.g[i], 1e-11))
                worst = fabs(record.g[i] - statements.g[i]);
            if (isnan(record.g[i]) != isnan(statements.g[i]))
                worst = INFINITY;
        }
#ifdef CHAOTIC /* differences say nothing; what statements give does */
        const bool differs = false;
#else
        const bool differs = active && !strstr(loops[loop].name, "of_floats");
#endif
        double d = differs ? difference(loop, active, u, 1e-6) : along;
        if (!is_close(along, d, 2e-6)) /* a random one has a kink within the step once in a while */
            d = difference(loop, active, u, 1e-7);
        if (memcmp(&record.y, &statements.y, sizeof record.y) != 0 ||
            memcmp(&record.y, &idle_value[loop], sizeof record.y) != 0 || worst > 0) {
            printf("%s, active %u: y %.17g %.17g %.17g, gradients apart by %g\n", loops[loop].name,
                   active, record.y, statements.y, idle_value[loop], worst);
            wrong = 1;
        }
        if (!is_close(along, d, 2e-6)) {
            printf("%s, active %u: %.10g by the sweep, %.10g by a difference\n", loops[loop].name,
                   active, along, d);
            wrong = 1;
        }
        if (ad_plain_dropped() != dropped) {
            printf("%s, active %u: a gradient is lost\n", loops[loop].name, active);
            wrong = 1;
        }
    }
    const bool recorded = record.bytes != statements.bytes;
    n_recorded += recorded;
    if (loops[loop].is != EITHER && recorded != (loops[loop].is == RECORD)) {
        printf("%s: %llu bytes, by statements %llu\n", loops[loop].name,
               (unsigned long long)record.bytes, (unsigned long long)statements.bytes);
        wrong = 1;
    }
    return wrong;
}

#ifndef RANDOM
/* ---- what is no usual recording ---- */

/* dot of x and y, of which x is older than a rewind. */
static int older(ad_tape tape)
{
    double x[N], y[N], g[N];
    ad_real k[N], m[N];
    ad_mark mark;
    for (int i = 0; i < N; i++) {
        x[i] = 1 + i;
        y[i] = 2 * i;
    }
    struct work w = {N, x, y, NULL, 0};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    mark = ad_tape_mark(tape);
    double z = dot(&w);
    ok = ok && ad_tape_rewind(tape, mark) == AD_OK && ad_plain_leaves(tape, N, y, m) == AD_OK;
    z = dot(&w);
    ok = ok && ad_plain_backward(tape, &z) == AD_OK && ad_plain_gradients(tape, N, k, g) == AD_OK;
    for (int i = 0; ok && i < N; i++)
        ok = g[i] == y[i];
    return ok ? 0 : printf("older: %s\n", ad_tape_message(tape)) > 0;
}

AD_PLAIN_SKIP __attribute__((noinline)) static void overwrite(double *x)
{
    *x = 3;
}

/* Code that is not recorded writes among what a loop reads: that is said. */
static int foreign(ad_tape tape)
{
    double x[N], y[N], g[N];
    ad_real k[N];
    for (int i = 0; i < N; i++) {
        x[i] = 1 + i;
        y[i] = 2 * i;
    }
    struct work w = {N, x, y, NULL, 0};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    overwrite(&x[7]);
    const uint64_t dropped = ad_plain_dropped();
    const double z = dot(&w);
    ok = ok && ad_plain_dropped() == dropped + 1 && ad_plain_backward(tape, &z) == AD_OK &&
         ad_plain_gradients(tape, N, k, g) == AD_OK;
    for (int i = 0; ok && i < N; i++)
        ok = g[i] == (i == 7 ? 0 : y[i]);
    return ok ? 0 : printf("foreign: %s\n", ad_tape_message(tape)) > 0;
}

/* Several seeds at once, through a record. */
static int jacobian(ad_tape tape)
{
    enum { ROWS = 20 };
    double x[ALL], j[ROWS * ALL];
    ad_real k[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + i % 7;
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, ALL, x, k) == AD_OK;
    double room[3 * N];
    memcpy(room, x, sizeof room);
    struct work w = {N, room, room + N, room + 2 * N, x[3 * N]};
    axpy_apart(&w);
    ok = ok && ad_plain_jacobian(tape, ROWS, room + N, ALL, k, j) == AD_OK;
    for (int r = 0; ok && r < ROWS; r++)
        for (int i = 0; ok && i < ALL; i++)
            ok = j[r * ALL + i] == (i == r ? x[3 * N] : i == N + r ? 1 : i == 3 * N ? x[r] : 0);
    return ok ? 0 : printf("jacobian: %s\n", ad_tape_message(tape)) > 0;
}

/* The same of a nest: of one whose operands are older, of one with a number among them that other
 * code has written, and with several seeds. */
static int nest_older(ad_tape tape)
{
    double x[ALL], g[ALL];
    ad_real k[ALL], m[N];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + i % 7;
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    const ad_mark mark = ad_tape_mark(tape);
    struct work w = {N, x, x + N, x + 2 * N, 0};
    double z = nest_all(&w);
    ok = ok && ad_tape_rewind(tape, mark) == AD_OK && ad_plain_leaves(tape, N, x + N, m) == AD_OK;
    z = nest_all(&w);
    ok = ok && ad_plain_backward(tape, &z) == AD_OK && ad_plain_gradients(tape, N, k, g) == AD_OK;
    const double y = nest_all_sum(&w);
    for (int i = 0; ok && i < N / 40 * (N / 27); i++)
        ok = is_close(g[i], 2 * y * sin(x[N + i % (N / 27)] * x[2 * N + i / (N / 27)]), 1e-12);
    return ok ? 0 : printf("nest_older: %s\n", ad_tape_message(tape)) > 0;
}

static int nest_foreign(ad_tape tape)
{
    double x[ALL], g[N];
    ad_real k[N];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + i % 7;
    struct work w = {N, x, x + N, x + 2 * N, 0};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    overwrite(&x[7]);
    const uint64_t dropped = ad_plain_dropped();
    const double z = nest_rows(&w);
    ok = ok && ad_plain_dropped() == dropped + 1 && ad_plain_backward(tape, &z) == AD_OK &&
         ad_plain_gradients(tape, N, k, g) == AD_OK;
    for (int i = 0; ok && i < N / 27; i++)
        ok = is_close(g[i], i == 7 ? 0 : x[N + i] * x[2 * N + N / 40 - 1], 1e-12);
    return ok ? 0 : printf("nest_foreign: %s\n", ad_tape_message(tape)) > 0;
}

/* The same of an array that is short. */
static int nest_foreign_few(ad_tape tape)
{
    enum { ROWS = N / 40, COLUMNS = N / 27 };
    double x[ALL], g[ROWS];
    ad_real k[ROWS];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + i % 7;
    struct work w = {N, x, x + N, x + 2 * N, 0};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, ROWS, w.c, k) == AD_OK;
    overwrite(&w.c[7]);
    const uint64_t dropped = ad_plain_dropped();
    const double z = nest_columns(&w);
    ok = ok && ad_plain_dropped() > dropped && ad_plain_backward(tape, &z) == AD_OK &&
         ad_plain_gradients(tape, ROWS, k, g) == AD_OK;
    for (int i = 0; ok && i < ROWS; i++) {
        const double *row = w.a + i * COLUMNS;
        ok = is_close(g[i], i == 7 ? 0 : row[0] * w.b[COLUMNS - 1] + w.b[0] * row[COLUMNS - 1],
                      1e-12);
    }
    return ok ? 0 : printf("nest_foreign_few: %s\n", ad_tape_message(tape)) > 0;
}

/* A nest before and behind a reset, in one call of its function. */
static int nest_reset(ad_tape tape)
{
    enum { SIDE = 10 };
    double x[SIDE * SIDE], y[SIDE], g[SIDE * SIDE];
    ad_real k[SIDE * SIDE];
    volatile int number = SIDE;
    const int side = number; /* else loops are unrolled */
    int ok = 1;
    for (int way = 0; ok && way < 3; way++) {
        for (int i = 0; i < SIDE * SIDE; i++) {
            x[i] = way + i % 7;
            y[i % SIDE] = 0;
        }
        ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, SIDE * SIDE, x, k) == AD_OK;
        for (int i = 0; i < side; i++)
            for (int j = 0; j < side; j++)
                y[j] += x[i * side + j] * x[i * side + j];
        ok = ok && ad_plain_backward(tape, &y[3]) == AD_OK &&
             ad_plain_gradients(tape, SIDE * SIDE, k, g) == AD_OK;
        for (int i = 0; ok && i < SIDE * SIDE; i++)
            ok = g[i] == (i % SIDE == 3 ? 2 * (way + i % 7) : 0);
    }
    return ok ? 0 : printf("nest_reset: %s\n", ad_tape_message(tape)) > 0;
}

/* Several loops in one: buffers that hold variables of another recording, which nobody reads; two
 * sweeps, which add up; inputs that are older than a rewind; no_grad. */
static int region_again(ad_tape tape)
{
    static double x[ALL], g[4][ALL];
    ad_real k[ALL];
    ad_stats stats;
    uint64_t bytes[4] = {0};
    double y = 0;
    int ok = 1;
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    for (int way = 0; ok && way < 4; way++) {
        if (way < 3)
            ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, 2 * N, x, k) == AD_OK;
        const ad_mark mark = ad_tape_mark(tape);
        if (way == 2)
            y = region_two_buffers(&w);
        ok = ok && (way < 2 || ad_tape_rewind(tape, mark) == AD_OK);
        y = region_two_buffers(&w);
        ok = ok && ad_tape_stats(tape, &stats) == AD_OK;
        bytes[way] = stats.statement_bytes;
        for (int sweep = 0; ok && sweep < 1 + (way == 1); sweep++)
            ok = ad_plain_backward(tape, &y) == AD_OK &&
                 ad_plain_gradients(tape, 2 * N, k, g[way]) == AD_OK;
        for (int i = 0; ok && i < 2 * N; i++)
            ok = is_close(g[way][i], (1 + (way == 1)) * g[0][i], 1e-12) &&
                 (g[0][i] != 0) == (i < 580 || (i >= N && i < N + 29));
    }
    ok = ok && bytes[0] == bytes[1] && bytes[0] < bytes[2];
    ad_tape_no_grad_begin(tape);
    y = region_two_buffers(&w);
    ad_tape_no_grad_end(tape);
    ok = ok && ad_plain_read(&y).index == 0 && ad_plain_read(&x[2 * N]).index == 0;
    return ok ? 0
              : printf("region_again: %s, %llu %llu %llu bytes\n", ad_tape_message(tape),
                       (unsigned long long)bytes[0], (unsigned long long)bytes[1],
                       (unsigned long long)bytes[2]) > 0;
}

/* A number within it that other code has written is a constant, and that is said. */
static int region_foreign(ad_tape tape)
{
    double x[ALL], g[N];
    ad_real k[N];
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    overwrite(&x[7]);
    const uint64_t dropped = ad_plain_dropped();
    const double y = region_two_buffers(&w);
    ok = ok && ad_plain_dropped() > dropped && ad_plain_backward(tape, &y) == AD_OK &&
         ad_plain_gradients(tape, N, k, g) == AD_OK && g[7] == 0 && g[6] != 0 && g[8] != 0;
    return ok ? 0 : printf("region_foreign: %s\n", ad_tape_message(tape)) > 0;
}

/* What lies between rows is no result of the region's: another thread may be about to write it. */
static int region_gaps_stay(ad_tape tape)
{
    enum { M = N / 40 };
    static double x[ALL];
    ad_real k[ALL];
    int ok = 1;
    for (int gap = 2; ok && gap <= 3; gap++) {
        for (int i = 0; i < ALL; i++)
            x[i] = 0.5 + 0.1 * (i % 7);
        struct work w = {N, x, x + N, x + 2 * N, 0.5};
        ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, ALL, x, k) == AD_OK;
        (gap == 2 ? region_gaps_sometimes : region_gaps)(&w);
        for (int i = 0; ok && i < M * M; i++)
            ok = (ad_plain_read(&w.c[i]).index == k[2 * N + i].index) == (i % M >= M - gap);
    }
    return ok ? 0 : printf("region_gaps_stay: %s\n", ad_tape_message(tape)) > 0;
}

/* A thread that has no tape: what it reads is said to be lost, and what it writes are constants. */
static struct work *of_thread;

static int region_of_thread(void *payload)
{
    (void)payload;
    of_thread->s = region_two_buffers(of_thread);
    return 0;
}

static int region_without_tape(ad_tape tape)
{
    static double x[ALL];
    ad_real k[N];
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
    const uint64_t dropped = ad_plain_dropped();
    thrd_t thread;
    of_thread = &w;
    ok = ok && thrd_create(&thread, region_of_thread, NULL) == thrd_success &&
         thrd_join(thread, NULL) == thrd_success && ad_plain_dropped() > dropped &&
         ad_plain_read(&w.s).index == 0 && ad_plain_read(&w.c[3]).index == 0 &&
         ad_plain_read(&x[3]).index == k[3].index;
    return ok ? 0 : printf("region_without_tape: %s\n", ad_tape_message(tape)) > 0;
}

/* Several results: each has its row. */
static int region_jacobian(ad_tape tape)
{
    enum { ROWS = 5, OF = N / 27, M = N / 40 };
    static double x[ALL], j[ROWS * ALL];
    ad_real k[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, 2 * N, x, k) == AD_OK;
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    double b[N];
    memcpy(b, w.b, sizeof b);
    region_apart(&w);
    ok = ok && ad_plain_jacobian(tape, ROWS, w.b, 2 * N, k, j) == AD_OK;
    for (int r = 0; ok && r < ROWS; r++)
        for (int i = 0; ok && i < 2 * N; i++)
            ok = j[r * 2 * N + i] == (i == N + r ? 1 : i < M * OF && i % OF == r ? 0.5 : 0);
    return ok ? 0 : printf("region_jacobian: %s\n", ad_tape_message(tape)) > 0;
}

/* Adjoints that are no numbers stay so in both factors of a product. */
static int region_without_number(ad_tape tape)
{
    static double x[ALL], g[ALL];
    ad_real k[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, 2 * N, x, k) == AD_OK;
    const double y = region_undefined(&w);
    ok = ok && ad_plain_backward(tape, &y) == AD_OK &&
         ad_plain_gradients(tape, 2 * N, k, g) == AD_OK && isnan(g[3]) && isnan(g[N + 3]) &&
         g[2 * N - 1] == 0;
    return ok ? 0 : printf("region_without_number: %g %g\n", g[3], g[N + 3]) > 0;
}

/* However little memory a tape may have: what it gives is right, or it says that it has no more. */
static int region_without_room(void)
{
    static double x[ALL], g[ALL], full[ALL];
    ad_real k[ALL];
    int n_full = 0, n_right = 0;
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    for (uint64_t budget = UINT64_C(64) << 20; budget > 0; budget /= 2) {
        ad_tape tape;
        struct work w = {N, x, x + N, x + 2 * N, 0.5};
        if (ad_tape_create(&tape, &(ad_tape_options){.budget_bytes = budget}) != AD_OK) {
            n_full++;
            continue;
        }
        bool ok = ad_plain_leaves(tape, 2 * N, x, k) == AD_OK;
        const double y = ok ? region_two_buffers(&w) : 0;
        ok = ok && ad_plain_backward(tape, &y) == AD_OK &&
             ad_plain_gradients(tape, 2 * N, k, g) == AD_OK;
        n_full += !ok && ad_tape_status(tape) == AD_ERROR_MEMORY;
        if (ok && n_right++ == 0)
            memcpy(full, g, sizeof g);
        if (ok ? memcmp(full, g, sizeof g) != 0 : ad_tape_status(tape) != AD_ERROR_MEMORY)
            return printf("region_without_room: %d, %s\n", ok, ad_tape_message(tape)) > 0;
        ad_tape_destroy(tape);
    }
    return (n_full == 0 || n_right == 0) && printf("region_without_room: no limit\n") > 0;
}

/* Variables of another tape: that is said, and those of this one have their gradient. */
static int region_other_tape(void)
{
    static double x[ALL], g[N];
    ad_real k[N], other[N];
    ad_tape tape[2];
    const double *const b = x + N;
    for (int i = 0; i < ALL; i++)
        x[i] = 0.5 + 0.1 * (i % 7);
    struct work w = {N, x, x + N, x + 2 * N, 0.5};
    int ok = ad_tape_create(&tape[0], NULL) == AD_OK && ad_tape_create(&tape[1], NULL) == AD_OK &&
             ad_plain_leaves(tape[0], N, x, other) == AD_OK;
    ad_tape_record_begin(tape[1]);
    ok = ok && ad_plain_leaves(tape[1], N, x + N, k) == AD_OK;
    const uint64_t dropped = ad_plain_dropped();
    const double y = region_two_buffers(&w);
    const bool said = ad_plain_dropped() > dropped || ad_tape_status(tape[1]) != AD_OK;
    if (ok && said && ad_tape_status(tape[1]) == AD_OK)
        ok = ad_plain_backward(tape[1], &y) == AD_OK &&
             ad_plain_gradients(tape[1], N, k, g) == AD_OK && g[3] != 0 && b[3] != 0;
    ok = ok && said;
    ad_tape_record_end(tape[1]);
    if (!ok)
        printf("region_other_tape: %s, %d\n", ad_tape_message(tape[1]), said);
    ad_tape_destroy(tape[1]);
    ad_tape_destroy(tape[0]);
    return !ok;
}

/* parts: of a matrix in parts, and what is added to numbers of which the last were others. */
static int nest_jacobian(ad_tape tape, bool parts)
{
    enum { ROWS = 20, COLUMNS = N / 27 };
    const int other = parts ? 5 : 0;
    static double x[ALL], j[ROWS * ALL];
    ad_real k[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 1 + i % 7;
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, ALL, x, k) == AD_OK;
    double room[3 * N];
    memcpy(room, x, sizeof room);
    memcpy(room + N + ROWS - other, room, (size_t)other * sizeof *room);
    if (parts) {
        room[3] = 5; /* a constant within the matrix */
        memset(room + 3 * COLUMNS, 0, COLUMNS * sizeof *room);
    }
    struct work w = {N, room, room + N, room + 2 * N, x[3 * N]};
    nest_columns(&w);
    ok = ok && ad_plain_jacobian(tape, ROWS, room + N, ALL, k, j) == AD_OK;
    for (int r = 0; ok && r < ROWS; r++)
        for (int i = 0; ok && i < ALL; i++) {
            const int row = i < N ? i / COLUMNS : i - 2 * N;
            const bool of_row = row >= 0 && row < N / 40 && (i >= N || i % COLUMNS == r);
            const bool gone = parts && i < N && (i == 3 || row == 3);
            double g = r < ROWS - other ? i == N + r : i == r - (ROWS - other);
            if (of_row && !gone)
                g += i < N ? x[2 * N + row] : room[row * COLUMNS + r];
            ok = j[r * ALL + i] == g;
        }
    return ok ? 0 : printf("nest_jacobian, %d: %s\n", parts, ad_tape_message(tape)) > 0;
}

/* Within a section, whose outputs are then few, and within a checkpoint. */
static void part(int64_t n, const double *x, int64_t m, double *y, void *payload)
{
    double room[N], more[N];
    (void)m;
    (void)payload;
    memcpy(room, x, (size_t)n * sizeof *room);
    memcpy(more, x, (size_t)n * sizeof *more);
    struct work w = {(int)n, room, more, NULL, 0.5};
    scaled(&w);
    y[0] = dot(&w);
}

static int parts(ad_tape tape)
{
    double x[N], y, g[3][N];
    ad_real k[N];
    int ok = 1;
    for (int way = 0; ok && way < 3; way++) {
        const ad_plain_part of = {part, NULL};
        ad_preaccumulated saved;
        for (int i = 0; i < N; i++)
            x[i] = 1 + 0.01 * i;
        ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, N, x, k) == AD_OK;
        if (way == 1)
            ok = ok && ad_plain_checkpoint(tape, &of, N, x, 1, &y) == AD_OK;
        if (way == 2)
            ok = ok && ad_plain_preaccumulate_begin(tape) == AD_OK;
        if (way != 1)
            part(N, x, 1, &y, NULL);
        if (way == 2)
            ok = ok && ad_plain_preaccumulate_end(tape, 1, &y, &saved) == AD_OK && saved.replaced;
        ok = ok && ad_plain_backward(tape, &y) == AD_OK &&
             ad_plain_gradients(tape, N, k, g[way]) == AD_OK;
        for (int i = 0; ok && i < N; i++)
            ok = is_close(g[way][i], g[0][i], 1e-13) && g[way][i] != 0;
    }
    return ok ? 0 : printf("parts: %s\n", ad_tape_message(tape)) > 0;
}

/* Nothing is recorded under no_grad, and what was written there are constants. */
static int passive(ad_tape tape)
{
    double x[ALL];
    ad_real k[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 1;
    int ok = ad_tape_reset(tape) == AD_OK && ad_plain_leaves(tape, ALL, x, k) == AD_OK;
    struct work w = {N, x, x + N, x + 2 * N, 2};
    ad_tape_no_grad_begin(tape);
    axpy_apart(&w);
    const double y = dot(&w);
    ad_tape_no_grad_end(tape);
    ok = ok && y == 3 * N && ad_plain_read(&y).index == 0 && ad_plain_read(&x[N]).index == 0 &&
         ad_plain_read(&x[0]).index != 0;
    return ok ? 0 : printf("passive: %s\n", ad_tape_message(tape)) > 0;
}

#endif

int main(int argc, char **argv)
{
    ad_tape tape;
    int wrong = idle();
#ifndef RANDOM
    if (argc == 1)
        wrong += region_without_room() + region_other_tape();
#endif
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 1;
#ifndef RANDOM
    if (argc > 1 && strcmp(argv[1], "lines") == 0) {
        double x[ALL];
        ad_real k[ALL];
        ad_stats stats;
        for (int i = 0; i < ALL; i++)
            x[i] = 1 + 0.01 * i;
        if (ad_plain_leaves(tape, ALL, x, k) != AD_OK)
            return 1;
        struct work w = {N, x, x + N, x + 2 * N, 0.5};
        double y = after_another(&w) + nest_again(&w) + dear_first(&w) + nest_dear_within(&w);
        y += region_mixture(&w) + region_carried(&w) + region_smoothed(&w) + region_branches(&w);
        if (ad_plain_backward(tape, &y) != AD_OK || ad_tape_stats(tape, &stats) != AD_OK)
            return 1;
        printf("%llu\n", (unsigned long long)stats.statement_bytes);
        ad_tape_destroy(tape);
        return 0;
    }
    wrong += older(tape) + foreign(tape) + jacobian(tape) + parts(tape) + passive(tape);
    wrong += nest_older(tape) + nest_foreign(tape) + nest_jacobian(tape, false) + nest_reset(tape);
    wrong += nest_jacobian(tape, true) + nest_foreign_few(tape);
    wrong += region_again(tape) + region_foreign(tape) + region_jacobian(tape);
    wrong += region_without_tape(tape) + region_gaps_stay(tape);
    wrong += region_without_number(tape);
#endif
    (void)argc, (void)argv;
    for (int loop = 0; loop < LOOPS; loop++)
        wrong += check(tape, loop);
    ad_tape_destroy(tape);
    printf("%d loops, %d wrong, %d with a record\n", (int)LOOPS, wrong, n_recorded);
    return wrong != 0;
}
