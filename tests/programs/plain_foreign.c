/* plain_foreign.c: functions that were not compiled by `tapescope cc`; for plain_traps.c. */
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
