/* A model that knows nothing of Tapescope. */
#include <math.h>

void model(int n, const double *x, double *y);
void model(int n, const double *x, double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += sin(x[i]) * x[(i + 1) % n]; /* the line that costs */
    *y = sum;
}
