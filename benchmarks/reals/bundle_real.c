/* bundle_real.c: the residuals of bundle adjustment over ad_real.
 *
 * Invariant: as in real.h.
 */
#include "bundle.h"
#include "real.h"

/* a[i] b[j] - a[j] b[i] */
#define CROSS(a, b, i, j) ad_real_sub(ad_real_mul(a[i], b[j]), ad_real_mul(a[j], b[i]))
#define DOT(a, b)                                                                                  \
    ad_real_add(ad_real_add(ad_real_mul(a[0], b[0]), ad_real_mul(a[1], b[1])),                     \
                ad_real_mul(a[2], b[2]))

static void rotate(const ad_real *r, const ad_real *v, ad_real *rotated)
{
    if (ad_real_equal(DOT(r, r), 0.0)) {
        ad_set(&rotated[0], ad_real_add(v[0], CROSS(r, v, 1, 2)));
        ad_set(&rotated[1], ad_real_add(v[1], CROSS(r, v, 2, 0)));
        ad_set(&rotated[2], ad_real_add(v[2], CROSS(r, v, 0, 1)));
        return;
    }
    ad_real t = ad_real_of(ad_real_sqrt(DOT(r, r))), w[3];
    ad_real cosine = ad_real_of(ad_real_cos(t)), sine = ad_real_of(ad_real_sin(t));
    for (int j = 0; j < 3; ++j)
        ad_set(&w[j], ad_real_div(r[j], t));
    ad_real along = ad_real_of(ad_real_mul(DOT(w, v), ad_real_sub(1.0, cosine)));
#define ROTATED(i, j, k)                                                                           \
    ad_set(&rotated[i], ad_real_add(ad_real_add(ad_real_mul(v[i], cosine),                         \
                                                ad_real_mul(CROSS(w, v, j, k), sine)),             \
                                    ad_real_mul(w[i], along)))
    ROTATED(0, 1, 2);
    ROTATED(1, 2, 0);
    ROTATED(2, 0, 1);
#undef ROTATED
}

void real_bundle_residuals(const ad_real *x, const double *feature, ad_real *y)
{
    const ad_real *point = x + BUNDLE_CAMERA, weight = x[BUNDLE_ROW - 1];
    ad_real v[3], q[3];
    for (int j = 0; j < 3; ++j)
        ad_set(&v[j], ad_real_sub(point[j], x[3 + j]));
    rotate(x, v, q);
    ad_real a = ad_real_of(ad_real_div(q[0], q[2])), b = ad_real_of(ad_real_div(q[1], q[2]));
#define RADIUS ad_real_add(ad_real_square(a), ad_real_square(b))
    ad_real radial = ad_real_of(
        ad_real_add(1.0, ad_real_mul(RADIUS, ad_real_add(x[9], ad_real_mul(x[10], RADIUS)))));
#undef RADIUS
    ad_set(&y[0],
           ad_real_mul(weight,
                       ad_real_sub(ad_real_add(ad_real_mul(ad_real_mul(a, radial), x[6]), x[7]),
                                   feature[0])));
    ad_set(&y[1],
           ad_real_mul(weight,
                       ad_real_sub(ad_real_add(ad_real_mul(ad_real_mul(b, radial), x[6]), x[8]),
                                   feature[1])));
    ad_set(&y[2], ad_real_sub(1.0, ad_real_square(weight)));
}
