/* bundle.h: the residuals of bundle adjustment, and their Jacobian (ADBench: M. Srajer,
 * Z. Kukelova, A. Fitzgibbon, 2018, doi:10.1080/10556788.2018.1435651).
 *
 * A camera is 11 numbers: rotation r (3), centre C (3), focal length, principal point (2), radial
 * k1, k2. An observation sees a point X by a camera, with a weight w:
 *     (a, b, c) = R(r) (X - C), p = (a, b) / c,
 *     p (1 + k1 |p|^2 + k2 |p|^4) focal + principal point;
 * the residual is w times that less the feature, and 1 - w^2 for the weight. R is Rodrigues'
 * rotation about r by |r|.
 *
 * x: cameras [n, 11], points [m, 3], weights [p]. Outputs: residuals [p, 2], those of weights [p].
 * Gradient: per observation [2, 15], by the camera, the point and the weight; then [p] for the
 * residuals of the weights, by their weight.
 *
 * Invariant: input is a struct bundle.
 */
#ifndef BUNDLE_H
#define BUNDLE_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BUNDLE_CAMERA = 11, BUNDLE_POINT = 3, BUNDLE_ROW = BUNDLE_CAMERA + BUNDLE_POINT + 1 };

struct bundle {
    int n, m, p;      /* cameras, points, observations */
    int *observation; /* [p, 2]: camera, point */
    double *feature;  /* [p, 2] */
};

extern const struct problem_kind bundle_kind;

#ifdef __cplusplus
}
#endif

#endif
