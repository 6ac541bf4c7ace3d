/* The program, compiled by any compiler. */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>

void model(int n, const double *x, double *y);

int main(void)
{
    double x[3] = {1, 2, 3}, y, g[3];
    ad_real k[3];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    if (ad_plain_leaves(tape, 3, x, k) != AD_OK)
        return 1;
    model(3, x, &y);
    if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 3, k, g) != AD_OK) {
        fprintf(stderr, "%s\n", ad_tape_message(tape));
        return 1;
    }
    for (int i = 0; i < 3; i++)
        if (fabs(g[i] - (cos(x[i]) * x[(i + 1) % 3] + sin(x[(i + 2) % 3]))) > 1e-12)
            return 1;
    printf("tapescope %s\n", ad_version());
    ad_tape_destroy(tape);
    return 0;
}
