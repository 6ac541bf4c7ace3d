/* fused_loops.c: stencils, gather, scatter and maps with numbers as a user writes them, in what is
 * C and C++ at once. It fails unless values and gradients are those of the same loops in
 * statements.
 */
#include <tapescope/ad_real.h>

#include <math.h>
#include <stdio.h>

enum { N = 12, TIMES = 600 };

static void scaled_sine(void *payload, int64_t n, const double *const *x, double *y,
                        double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[1][i] * sin(x[0][i]);
        if (partial[0])
            partial[0][i] = x[1][i] * cos(x[0][i]);
        if (partial[1])
            partial[1][i] = sin(x[0][i]);
    }
}

static int index_of(int i)
{
    return (5 * i + i / 7) % N;
}

/* A plane of 3 by 4 points, edges kept; a space of 2 by 2 by 3, edges joined in the last dimension.
 */
static ad_real by_loops(const ad_real *x, const ad_real *w)
{
    ad_real plane[N], space[N], many[TIMES], sums[N];
    int index[TIMES];
    for (int i = 0; i < TIMES; i++)
        index[i] = index_of(i);
    ad_array arrays[1];
    arrays[0] = ad_array_of(x);
    ad_real_stencil_2d(3, 4, x, 3, 2, w, AD_EDGE_KEEP, plane);
    ad_real_stencil_3d(2, 2, 3, plane, 1, 1, 3, w + 1, AD_EDGE_WRAP, space);
    ad_real_gather(TIMES, N, space, index, many);
    for (int i = 0; i < N; i++)
        sums[i] = ad_real_of(1);
    ad_real_scatter_add(TIMES, many, index, N, sums);
    ad_real_map_with(N, 1, arrays, 1, w, plane, scaled_sine, NULL);
    return ad_real_dot(N, sums, plane);
}

static ad_real by_statements(const ad_real *x, const ad_real *w)
{
    ad_real plane[N], space[N], sums[N], y = ad_real_of(0);
    for (int i = 0; i < N; i++) {
        plane[i] = x[i];
        sums[i] = ad_real_of(1);
    }
    for (int j = 1; j < 4; j++) {
        ad_set(&plane[4 + j], 0);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 2; b++)
                ad_set(&plane[4 + j],
                       ad_real_add(plane[4 + j], ad_real_mul(w[2 * a + b], x[4 * a + j + b - 1])));
    }
    for (int i = 0; i < N; i++) {
        ad_set(&space[i], 0);
        for (int c = 0; c < 3; c++)
            ad_set(
                &space[i],
                ad_real_add(space[i], ad_real_mul(w[1 + c], plane[i / 3 * 3 + (i + c + 2) % 3])));
    }
    for (int i = 0; i < TIMES; i++)
        ad_set(&sums[index_of(i)], ad_real_add(sums[index_of(i)], space[index_of(i)]));
    for (int i = 0; i < N; i++)
        ad_set(&y, ad_real_add(y, ad_real_mul(sums[i], ad_real_mul(w[0], ad_real_sin(x[i])))));
    return y;
}

int main(void)
{
    ad_tape tape;
    ad_real x[N + 6];
    double v[N + 6], g[2][N + 6], value[2];
    for (int i = 0; i < N + 6; i++)
        v[i] = 0.3 + 0.17 * i - 0.01 * i * i;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 1;
    for (int k = 0; k < 2; k++) {
        if (ad_tape_reset(tape) != AD_OK || ad_real_leaves(tape, N + 6, v, x) != AD_OK)
            return 1;
        const ad_real y = k ? by_statements(x, x + N) : by_loops(x, x + N);
        value[k] = y.value;
        if (ad_real_backward(tape, y) != AD_OK ||
            ad_real_gradients(tape, N + 6, x, g[k]) != AD_OK) {
            fprintf(stderr, "%s\n", ad_tape_message(tape));
            return 1;
        }
    }
    int wrong = !(fabs(value[0] - value[1]) <= 1e-12 * fabs(value[1]));
    for (int i = 0; i < N + 6; i++)
        if (!(fabs(g[0][i] - g[1][i]) <= 1e-12 * (1 + fabs(g[1][i])))) {
            fprintf(stderr, "by %d: %.17g, not %.17g\n", i, g[0][i], g[1][i]);
            wrong = 1;
        }
    return wrong || ad_tape_destroy(tape) != AD_OK;
}
