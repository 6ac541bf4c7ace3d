/* plain_written.c: functions that run as they were written until the first variable is made: what
 * they compute then, and what becomes of them behind it. Each case is a process of its own, since
 * what was once a variable is never forgotten. Prints a line where a case is wrong.
 *
 *     plain_written CASE
 *
 *     plain_written             the names of all cases
 *
 * With FOREIGN: what is not known to `tapescope cc`. */
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define APART __attribute__((noinline))

void foreign_of_three(void (*f)(double, double *), double *y);
int foreign_nothing(void);

#ifdef FOREIGN
void foreign_of_three(void (*f)(double, double *), double *y)
{
    f(3, y);
}

int foreign_nothing(void)
{
    return 1;
}
#else
#include <tapescope/ad_plain.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static ad_tape tape;
static double x[4] = {0.5, 1.5, 2.5, 3.5};
static ad_real k[4];

static int make(void)
{
    return ad_plain_leaves(tape, 4, x, k) == AD_OK;
}

/* Whether dy/dx is that. */
static int is_gradient(const double *y, double a, double b, double c, double d)
{
    const double is[4] = {a, b, c, d};
    double g[4] = {0};
    if (ad_plain_read(y).index != 0 &&
        (ad_plain_backward(tape, y) != AD_OK || ad_plain_gradients(tape, 4, k, g) != AD_OK))
        return 0;
    for (int i = 0; i < 4; i++)
        if (fabs(g[i] - is[i]) > 1e-12 * (1 + fabs(is[i])))
            return printf("g[%d] = %g, not %g\n", i, g[i], is[i]) < 0;
    return 1;
}

/* ---- the values are the same, and the gradient is there behind the first variable ---- */

struct three {
    double a, b, c;
};

APART struct three three_of(const double *u, int n)
{
    struct three y = {0, 1, -1};
    for (int i = 0; i < n; i++) {
        const double part = i % 3 ? u[i] : u[i] * sin(u[i]);
        y.a += part;
        y.b = part > y.b ? y.b * part : y.b - part;
        y.c = y.a * y.b - y.c;
    }
    return y;
}

APART void into(float *to, const double *u, long double more)
{
    to[0] = (float)(u[0] * u[1]);
    to[1] = (float)(u[1] / (double)more);
    memcpy(to + 2, to, 2 * sizeof *to);
}

APART double undeclared(int n, ...)
{
    va_list list;
    double y = 1;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        y *= va_arg(list, double);
    va_end(list);
    return y;
}

static double all_of(const double *u)
{
    float to[4];
    const struct three y = three_of(u, 4);
    into(to, u, (long double)u[2]);
    return y.a * y.b + y.c + (double)(to[2] * to[3]) + undeclared(3, u[3], u[0], y.b);
}

static int values(void)
{
    const double before = all_of(x);
    double g[4], worst = 0;
    if (!make())
        return 0;
    const double y = all_of(x);
    if (memcmp(&y, &before, sizeof y) != 0)
        return printf("%.17g, and %.17g before\n", y, before) < 0;
    if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, k, g) != AD_OK)
        return 0;
    for (int i = 0; i < 4; i++) {
        const double h = 1e-4; /* there are floats */
        double up[4], down[4];
        memcpy(up, x, sizeof up);
        memcpy(down, x, sizeof down);
        up[i] = x[i] + h;
        down[i] = x[i] - h;
        worst = fmax(worst, fabs((all_of(up) - all_of(down)) / (2 * h) - g[i]));
    }
    return worst < 2e-2 || printf("gradient: off by %g\n", worst) < 0;
}

/* ---- no shadow is written ---- */

enum { MANY = 1 << 23, STRIDE = 4096 / sizeof(double), PAGES = MANY / STRIDE };

APART void scattered(double *to, const int *place, int n)
{
    for (int i = 0; i < n; i++)
        to[place[i]] = to[place[i]] * 0.5 + i;
}

/* KiB that the process has in memory. */
static long resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static int untouched(void)
{
    static double to[MANY];
    static int place[PAGES];
    for (int i = 0; i < PAGES; i++)
        place[i] = i * STRIDE;
    const long before = resident();
    scattered(to, place, PAGES);
    const long grown = resident() - before, all = MANY * sizeof *to / 1024;
    return grown < all * 3 / 2 || printf("%ld KiB\n", grown) < 0;
}

/* ---- a function that makes variables itself, or by what it calls ---- */

APART double makes(int (*call)(void), const double *u)
{
    return call() ? u[0] * u[1] : 0;
}

static int made(void)
{
    const double y = makes(make, x);
    return is_gradient(&y, 1.5, 0.5, 0, 0);
}

/* ---- what a caller has said is used up ---- */

APART void cube(double u, double *to)
{
    *to = u * u * u;
}

APART static double twice(double u)
{
    return u + u;
}

static int stale(void)
{
    void (*volatile called)(double, double *) = cube;
    double y = 0, other;
    called(1, &other);
    if (!make())
        return 0;
    y += twice(x[0]);
    foreign_of_three(cube, &other); /* of a constant */
    return ad_plain_read(&other).index == 0 && other == 27 && is_gradient(&y, 2, 0, 0, 0);
}

/* What was given to a function that is known is not kept by anybody. */
APART double product(const double *u)
{
    return u[0] * u[1];
}

static int given(void)
{
    double (*volatile called)(const double *) = product;
    double y = called(x);
    if (!make())
        return 0;
    y = product(x) * foreign_nothing();
    return is_gradient(&y, 1.5, 0.5, 0, 0) && ad_plain_dropped() == 0;
}

/* ---- one that waits for another thread, which makes variables meanwhile ---- */

static volatile int is_made;
static atomic_int is_made_too;
struct made {
    long is[32];
};
static int any = 3;
static volatile struct made is_made_at_last;

APART double by_volatile(const double *u)
{
    while (!is_made)
        ;
    return u[0] * u[1];
}

APART double by_atomic(const double *u)
{
    while (!atomic_load(&is_made_too))
        ;
    return u[0] * u[1];
}

APART double by_copy(const double *u)
{
    struct made copy;
    do
        copy = is_made_at_last;
    while (!copy.is[any]);
    return u[0] * u[1];
}

static void *wait_for_it(void *function)
{
    static double y;
    double (*const *of)(const double *) = function;
    y = (*of)(x);
    return &y;
}

/* Whether somebody has said that the thread has no tape for what it reads. */
static int waits_by(double (*function)(const double *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_it, &function) != 0)
        return 0;
    usleep(50000); /* it is within the function by then, most likely */
    const int done = make();
    is_made_at_last.is[any] = 1;
    is_made = 1;
    atomic_store(&is_made_too, 1);
    return pthread_join(thread, NULL) == 0 && done && ad_plain_dropped() > 0;
}

static int waits_by_volatile(void)
{
    return waits_by(by_volatile);
}

static int waits_by_atomic(void)
{
    return waits_by(by_atomic);
}

static int waits_by_copy(void)
{
    return waits_by(by_copy);
}

/* ---- one that jumps to places from a table ---- */

APART double jump(const unsigned char *code, const double *u)
{
    static const void *const to[] = {&&end, &&add, &&multiply, &&next};
    double y = 1;
    if (!*code)
        return *u;
    goto *to[*code];
add:
    y += *u;
    goto *to[*++code];
multiply:
    y *= *u;
    goto *to[*++code];
next:
    u++;
    goto *to[*++code];
end:
    return y;
}

static int jumps(void)
{
    static const unsigned char code[] = {1, 3, 2, 3, 1, 2, 0};
    const double before = jump(code, x); /* ((1 + x0) x1 + x2) x2 */
    if (before != (1.5 * 1.5 + 2.5) * 2.5 || !make())
        return 0;
    const double y = jump(code, x);
    return y == before && is_gradient(&y, 1.5 * 2.5, 1.5 * 2.5, 2.25 + 5, 0);
}

static const struct {
    const char *name;
    int (*is_right)(void);
} cases[] = {
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
    CASE(values),          CASE(untouched),     CASE(made),
    CASE(stale),           CASE(given),         CASE(waits_by_volatile),
    CASE(waits_by_atomic), CASE(waits_by_copy), CASE(jumps),
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc < 2) {
            printf("%s\n", cases[i].name);
            continue;
        }
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        any = argc;
        if (ad_tape_create(&tape, NULL) != AD_OK)
            return 2;
        const int right = cases[i].is_right();
        ad_tape_destroy(tape);
        return !right;
    }
    return argc > 1;
}
#endif
