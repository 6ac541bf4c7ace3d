/* plain_silence_foreign.c: functions of another compiler, in a static library; for
 * plain_silence.c. What they compute depends on what they are given in every way that C has: by
 * value, behind pointers, in what they keep, in variables that others name, on other threads. */
#include "plain_silence.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPED = 1 << 20 };

double foreign_sum(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * (i + 1);
    return sum;
}

double foreign_half(double x)
{
    return 0.5 * x;
}

long double foreign_long(long double x)
{
    return x / 3;
}

void foreign_scale(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] *= 2;
}

void foreign_fill(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = 0.25;
}

void foreign_swap(double *a, double *b)
{
    const double t = *a;
    *a = *b;
    *b = t;
}

double foreign_of_many(struct many m)
{
    return m.v[0] + 2 * m.v[3] + 3 * m.v[5];
}

double foreign_of_pair(struct pair p)
{
    return p.a - 2 * p.b;
}

struct many foreign_many(double x)
{
    return (struct many){{x, 1, x, 2, x, 3}};
}

double foreign_of_object(const struct object *o)
{
    return foreign_sum(o->data, o->n);
}

double foreign_variadic(int n, ...)
{
    va_list list;
    double sum = 0;
    va_start(list, n);
    while (n-- > 0)
        sum += va_arg(list, double);
    va_end(list);
    return sum;
}

double foreign_of_bits(unsigned long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return 3 * x;
}

/* Kept from call to call. */
static double *kept;
static double buffer[8], was;

void foreign_keep(double *x)
{
    kept = x;
}

double foreign_of_kept(void)
{
    return kept[0] + 2 * kept[1];
}

/* Memory that is soon nobody's. */
double *foreign_map(void)
{
    void *const at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

void foreign_unmap(double *x)
{
    munmap(x, MAPPED);
}

double *foreign_buffer(void)
{
    memset(buffer, 0, sizeof buffer);
    return buffer;
}

double foreign_of_buffer(void)
{
    return foreign_sum(buffer, 8);
}

void foreign_put(double x)
{
    was = x;
}

double foreign_got(void)
{
    return was;
}

/* Memory of another allocation. */
double *foreign_alloc(int n)
{
    return calloc((size_t)n, sizeof(double));
}

void foreign_free(double *x)
{
    free(x);
}

/* Functions of the program, called back. */
double foreign_apply(double (*f)(double), double x)
{
    return f(x) + f(0.5);
}

double foreign_with(double (*f)(void *), void *payload)
{
    return f(payload) * 2;
}

struct started {
    double (*f)(void *);
    void *payload;
    double result;
};

static void *start(void *at)
{
    struct started *const s = at;
    s->result = s->f(s->payload);
    return NULL;
}

double foreign_thread(double (*f)(void *), void *payload)
{
    struct started s = {f, payload, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, start, &s) != 0)
        abort();
    pthread_join(thread, NULL);
    return s.result;
}

/* Variables that the program defines. */
double foreign_of_global(void)
{
    return 2 * known_global;
}

double foreign_of_array(void)
{
    return foreign_sum(known_array, 1000);
}

double foreign_of_own(void)
{
    return 3 * known_own;
}

/* Text. */
double foreign_parse(const char *text)
{
    return strtod(text, NULL);
}

void foreign_print(char *text, size_t n, double x)
{
    snprintf(text, n, "%.17g", x);
}
