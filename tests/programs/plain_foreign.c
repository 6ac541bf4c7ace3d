/* plain_foreign.c: functions that were not compiled by `tapescope cc`; for plain_traps.c. */
#include <stdlib.h>
#include <string.h>

double foreign_sum(const double *x, int n);
double foreign_sum(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

void foreign_scale(const double *x, double *y, int n);
void foreign_scale(const double *x, double *y, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = 2 * x[i];
}

void *foreign_copy(void *to, const void *from, size_t n);
void *foreign_copy(void *to, const void *from, size_t n)
{
    return memcpy(to, from, n);
}

/* The fifth of five pointers. */
double foreign_last(const int *a, const int *b, const int *c, const int *d, const double *x);
double foreign_last(const int *a, const int *b, const int *c, const int *d, const double *x)
{
    return *a + *b + *c + *d + *x * *x;
}

double foreign_through(double **x);
double foreign_through(double **x)
{
    return **x * **x;
}

double foreign_apply(double (*f)(double));
double foreign_apply(double (*f)(double))
{
    return f(0.5) + 2 * f(1.5);
}

double foreign_filled(void (*f)(double *));
double foreign_filled(void (*f)(double *))
{
    static double y[2];
    f(y);
    return y[0] + y[1];
}

void foreign_move(double *to, double *from);
void foreign_move(double *to, double *from)
{
    *to = *from;
    *from = 0;
}

#ifdef WITH_GLOBAL
extern double known_elsewhere;
double foreign_of_global(int n);
double foreign_of_global(int n)
{
    return n * known_elsewhere;
}
#endif

double foreign_of_bits(unsigned long long bits);
double foreign_of_bits(unsigned long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return 2 * x;
}

void foreign_fill(double *x, int n);
void foreign_fill(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = i % 7;
}

static double *newest;

double *foreign_new(int n);
double *foreign_new(int n)
{
    newest = malloc((size_t)n * sizeof *newest);
    if (newest)
        foreign_fill(newest, n);
    return newest;
}

void foreign_drop(void);
void foreign_drop(void)
{
    free(newest);
    newest = NULL;
}
