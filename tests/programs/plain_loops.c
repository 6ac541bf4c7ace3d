/* plain_loops.c: loops of plain C whose gradients are known twice: by records of whole loops, and
 * by statements, which a tape that looks for NaN makes. Each loop says whether it is a record.
 * Prints a line for each that is not so.
 *
 *     plain_loops              all of them
 *     plain_loops lines        statements and bytes of one sweep, for a profile */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 800, ALL = 3 * N + 1 };

/* What a loop works on: arrays of n numbers and one number. */
struct work {
    int n;
    double *a, *b, *c, s;
};

#define LOOP(name) __attribute__((noinline)) static double name(struct work *w)
#define ARRAYS                                                                                     \
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
    IS(STATEMENTS, prefix),
    IS(STATEMENTS, product),
    IS(STATEMENTS, greatest),
    IS(STATEMENTS, decaying),
    IS(STATEMENTS, limited),
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
#endif
#undef IS
};
enum { LOOPS = sizeof loops / sizeof *loops };

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

/* active: a bit for each array, then the number. */
static bool sweep(ad_tape tape, int loop, unsigned active, bool by_statements, struct outcome *o)
{
    double x[ALL], *part[] = {x, x + N, x + 2 * N, x + 3 * N};
    ad_real k[ALL];
    ad_stats stats;
    for (int i = 0; i < ALL; i++)
        x[i] = 0.9 + 0.2 * sin(1.7 * i);
    memset(o, 0, sizeof *o);
    memset(k, 0, sizeof k);
    if (ad_tape_reset(tape) != AD_OK)
        return false;
    for (int p = 0; p < 4; p++) {
        const int64_t n = p < 3 ? N : 1;
        if ((active >> p & 1) && ad_plain_leaves(tape, n, part[p], k + p * N) != AD_OK)
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
static double difference(int loop, unsigned active, const double *u)
{
    double x[2][ALL];
    const double h = 1e-6;
    for (int i = 0; i < ALL; i++) {
        const double at = 0.9 + 0.2 * sin(1.7 * i), by = active >> (i / N) & 1 ? h * u[i] : 0;
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
        }
        const bool differs = active && strcmp(loops[loop].name, "of_floats") != 0;
        const double d = differs ? difference(loop, active, u) : along;
        if (memcmp(&record.y, &statements.y, sizeof record.y) != 0 || worst > 0) {
            printf("%s, active %u: y %.17g %.17g, gradients apart by %g\n", loops[loop].name,
                   active, record.y, statements.y, worst);
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
    int wrong = 0;
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
        double y = after_another(&w);
        if (ad_plain_backward(tape, &y) != AD_OK || ad_tape_stats(tape, &stats) != AD_OK)
            return 1;
        printf("%llu\n", (unsigned long long)stats.statement_bytes);
        ad_tape_destroy(tape);
        return 0;
    }
    wrong += older(tape) + foreign(tape) + jacobian(tape) + parts(tape) + passive(tape);
#endif
    (void)argc, (void)argv;
    for (int loop = 0; loop < LOOPS; loop++)
        wrong += check(tape, loop);
    ad_tape_destroy(tape);
    printf("%d loops, %d wrong, %d with a record\n", (int)LOOPS, wrong, n_recorded);
    return wrong != 0;
}
