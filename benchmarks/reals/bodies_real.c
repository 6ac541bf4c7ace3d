/* bodies_real.c: bodies that attract each other over ad_real.
 *
 * Invariant: as in real.h.
 */
#include "bodies.h"
#include "real.h"

#include <string.h>

static size_t room(const struct problem *problem)
{
    const struct bodies *b = problem->input;
    return 9 * (size_t)b->n;
}

static void accelerations(int n, const ad_real *x, const ad_real *mass, ad_real *a)
{
    for (int i = 0; i < 3 * n; ++i)
        a[i] = (ad_real){0};
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j) {
            ad_real d[3];
            for (int k = 0; k < 3; ++k)
                ad_set(&d[k], ad_real_sub(x[3 * j + k], x[3 * i + k]));
            const ad_real square = ad_real_of(ad_real_add(
                ad_real_add(ad_real_add(ad_real_mul(d[0], d[0]), ad_real_mul(d[1], d[1])),
                            ad_real_mul(d[2], d[2])),
                bodies_softening));
            const ad_real w =
                ad_real_of(ad_real_div(1.0, ad_real_mul(square, ad_real_sqrt(square))));
            for (int k = 0; k < 3; ++k) {
                ad_real *to = &a[3 * i + k], *from = &a[3 * j + k];
                ad_set(to, ad_real_add(*to, ad_real_mul(ad_real_mul(mass[j], w), d[k])));
                ad_set(from, ad_real_sub(*from, ad_real_mul(ad_real_mul(mass[i], w), d[k])));
            }
        }
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct bodies *b = problem->input;
    const int n = 3 * b->n;
    ad_real *position = work, *v = position + n, *a = v + n, sum = {0};
    memcpy(position, x, 2 * (size_t)n * sizeof *x);
    for (int s = 0; s < b->s; ++s) {
        accelerations(b->n, position, x + (size_t)2 * (size_t)n, a);
        for (int i = 0; i < n; ++i) {
            ad_set(&v[i], ad_real_add(v[i], ad_real_mul(bodies_step, a[i])));
            ad_set(&position[i], ad_real_add(position[i], ad_real_mul(bodies_step, v[i])));
        }
    }
    for (int i = 0; i < n; ++i)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(position[i], position[i])));
    *out = sum;
}

const struct real_objective real_bodies = {room, value};
