/* hand.c: objective and gradient of hand.h.
 *
 * Invariant: the gradient poses the hand as the objective does.
 */
#include "hand.h"

#include <math.h>
#include <string.h>

/* A pose: what the objective computes, and the gradient goes back through. */
struct pose {
    double sine[HAND_BONES][2], cosine[HAND_BONES][2]; /* of a and b of the bones that bend */
    struct hand_matrix relative[HAND_BONES], absolute[HAND_BONES], transform[HAND_BONES];
    double global[3][3];
    double vertex[][3]; /* in the place of the model, before the rotation of the whole */
};

/* What the gradient needs besides. */
struct adjoint {
    struct hand_matrix transform[HAND_BONES], absolute[HAND_BONES];
    double global[3][3], shift[3];
};

size_t hand_work_bytes(const struct hand *hand)
{
    return sizeof(struct pose) + 2 * (size_t)hand->n_vertices * sizeof(double[3]);
}

/* ---- the objective ---- */

/* c = a b of affine maps. */
static void multiply(const struct hand_matrix *restrict a, const struct hand_matrix *restrict b,
                     struct hand_matrix *restrict c)
{
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 4; ++j)
            c->m[i][j] =
                a->m[i][0] * b->m[0][j] + a->m[i][1] * b->m[1][j] + a->m[i][2] * b->m[2][j];
        c->m[i][3] += a->m[i][3];
    }
}

/* The columns of m turned by Rz(b) Rx(a). */
static void bend(const struct hand_matrix *m, const double *sine, const double *cosine,
                 struct hand_matrix *bent)
{
    const double sa = sine[0], ca = cosine[0], sb = sine[1], cb = cosine[1];
    for (int i = 0; i < 3; ++i) {
        const double *r = m->m[i];
        double across = r[1] * cb - r[0] * sb;
        bent->m[i][0] = r[0] * cb + r[1] * sb;
        bent->m[i][1] = across * ca + r[2] * sa;
        bent->m[i][2] = r[2] * ca - across * sa;
        bent->m[i][3] = r[3];
    }
}

/* The rotation about w by its length: entry i, j is w_i w_j (1 - c) / t^2, with c on the diagonal
 * and s w / t beside it. None where the length is under 1e-4. */
static void rotation(const double *w, double r[3][3])
{
    const double t = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    if (t < 1e-4) {
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                r[i][j] = i == j;
        return;
    }
    const double x = w[0] / t, y = w[1] / t, z = w[2] / t, s = sin(t), c = cos(t), d = 1.0 - c;
    r[0][0] = x * x * d + c;
    r[0][1] = x * y * d - z * s;
    r[0][2] = x * z * d + y * s;
    r[1][0] = x * y * d + z * s;
    r[1][1] = y * y * d + c;
    r[1][2] = y * z * d - x * s;
    r[2][0] = x * z * d - y * s;
    r[2][1] = y * z * d + x * s;
    r[2][2] = z * z * d + c;
}

/* Poses the bones. */
static void pose_bones(const struct hand *h, const double *theta, struct pose *pose)
{
    memcpy(pose->relative, h->relative, sizeof pose->relative);
    const double *angle = theta + 6;
    for (int finger = 0; finger < HAND_FINGERS; ++finger)
        for (int k = 0; k < 3; ++k) {
            const int bone = hand_first_bone(finger) + k;
            double *sine = pose->sine[bone], *cosine = pose->cosine[bone];
            sine[0] = sin(angle[0]);
            cosine[0] = cos(angle[0]);
            sine[1] = k == 0 ? sin(angle[1]) : 0.0;
            cosine[1] = k == 0 ? cos(angle[1]) : 1.0;
            angle += k == 0 ? 2 : 1;
            bend(&h->relative[bone], sine, cosine, &pose->relative[bone]);
        }
    for (int i = 0; i < HAND_BONES; ++i) {
        if (h->parent[i] < 0)
            pose->absolute[i] = pose->relative[i];
        else
            multiply(&pose->absolute[h->parent[i]], &pose->relative[i], &pose->absolute[i]);
        multiply(&pose->absolute[i], &h->inverse_rest[i], &pose->transform[i]);
    }
    rotation(theta, pose->global);
}

static void pose_vertex(const struct hand_vertex *v, const struct hand_matrix *transform,
                        double *placed)
{
    placed[0] = placed[1] = placed[2] = 0.0;
    for (int k = 0; k < v->n; ++k) {
        const struct hand_matrix *t = &transform[v->bone[k]];
        for (int i = 0; i < 3; ++i)
            placed[i] += v->weight[k] * (t->m[i][0] * v->rest[0] + t->m[i][1] * v->rest[1] +
                                         t->m[i][2] * v->rest[2] + t->m[i][3]);
    }
}

/* Poses the hand; `moved` gets the vertices where they come to lie. */
static void pose_hand(const struct hand *h, const double *theta, struct pose *pose,
                      double (*moved)[3])
{
    pose_bones(h, theta, pose);
    for (int v = 0; v < h->n_vertices; ++v) {
        double *p = pose->vertex[v];
        pose_vertex(&h->vertex[v], pose->transform, p);
        for (int i = 0; i < 3; ++i)
            moved[v][i] = pose->global[i][0] * p[0] + pose->global[i][1] * p[1] +
                          pose->global[i][2] * p[2] + theta[3 + i];
    }
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    const struct hand *h = problem->input;
    struct pose *pose = work;
    double(*moved)[3] = pose->vertex + h->n_vertices, sum = 0.0;
    pose_hand(h, x, pose, moved);
    for (int i = 0; i < h->n_points; ++i)
        for (int j = 0; j < 3; ++j) {
            double error = h->points[3 * i + j] - moved[h->vertex_of[i]][j];
            sum += error * error;
        }
    outputs[0] = 0.5 * sum;
}

/* ---- the gradient ---- */

/* For c = a b: d_a += d_c b^T; d_b = a^T d_c where it is wanted. */
static void multiply_back(const struct hand_matrix *restrict a,
                          const struct hand_matrix *restrict b,
                          const struct hand_matrix *restrict d_c, struct hand_matrix *restrict d_a,
                          struct hand_matrix *restrict d_b)
{
    for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < 3; ++k)
            d_a->m[i][k] += d_c->m[i][0] * b->m[k][0] + d_c->m[i][1] * b->m[k][1] +
                            d_c->m[i][2] * b->m[k][2] + d_c->m[i][3] * b->m[k][3];
        d_a->m[i][3] += d_c->m[i][3];
    }
    if (!d_b)
        return;
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 4; ++j)
            d_b->m[k][j] =
                a->m[0][k] * d_c->m[0][j] + a->m[1][k] * d_c->m[1][j] + a->m[2][k] * d_c->m[2][j];
}

/* The derivatives by a and b of the columns turned by them, for the adjoint d of what was bent. */
static void bend_back(const struct hand_matrix *m, const double *sine, const double *cosine,
                      const struct hand_matrix *d, double *by_a, double *by_b)
{
    *by_a = *by_b = 0.0;
    for (int i = 0; i < 3; ++i) {
        const double *r = m->m[i], *e = d->m[i];
        double across = r[1] * cosine[1] - r[0] * sine[1];
        double along = r[0] * cosine[1] + r[1] * sine[1];
        *by_a += e[1] * (r[2] * cosine[0] - across * sine[0]) -
                 e[2] * (r[2] * sine[0] + across * cosine[0]);
        *by_b += e[0] * across - along * (e[1] * cosine[0] - e[2] * sine[0]);
    }
}

/* For the adjoint d of the rotation about w: the derivative by w. */
static void rotation_back(const double *w, double d[3][3], double *by_w)
{
    const double t = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    by_w[0] = by_w[1] = by_w[2] = 0.0;
    if (t < 1e-4)
        return;
    const double u[3] = {w[0] / t, w[1] / t, w[2] / t}, s = sin(t), c = cos(t);
    const double skew[3] = {d[2][1] - d[1][2], d[0][2] - d[2][0], d[1][0] - d[0][1]};
    double by_u[3], by_t = 0.0, along = 0.0;
    for (int i = 0; i < 3; ++i) {
        double both = 0.0; /* of (D + D^T) u */
        for (int j = 0; j < 3; ++j)
            both += (d[i][j] + d[j][i]) * u[j];
        by_u[i] = (1.0 - c) * both + s * skew[i];
        by_t += s * (0.5 * u[i] * both - d[i][i]) + c * u[i] * skew[i];
        along += u[i] * by_u[i];
    }
    for (int i = 0; i < 3; ++i)
        by_w[i] = u[i] * by_t + (by_u[i] - u[i] * along) / t;
}

/* Adds what the error of a point gives: to the whole's rotation and shift, and to the transforms
 * of its vertex's bones. */
static void point_back(const struct hand_vertex *v, const double *error, const struct pose *pose,
                       const double *placed, struct adjoint *d)
{
    double by[3];
    for (int i = 0; i < 3; ++i) {
        d->shift[i] -= error[i];
        for (int j = 0; j < 3; ++j)
            d->global[i][j] -= error[i] * placed[j];
    }
    for (int j = 0; j < 3; ++j)
        by[j] = -(pose->global[0][j] * error[0] + pose->global[1][j] * error[1] +
                  pose->global[2][j] * error[2]);
    for (int k = 0; k < v->n; ++k) {
        struct hand_matrix *t = &d->transform[v->bone[k]];
        for (int i = 0; i < 3; ++i) {
            const double z = v->weight[k] * by[i];
            for (int j = 0; j < 3; ++j)
                t->m[i][j] += z * v->rest[j];
            t->m[i][3] += z;
        }
    }
}

/* From the adjoints of the transforms back through the tree to the angles. */
static void bones_back(const struct hand *h, const struct pose *pose, struct adjoint *d,
                       double *by_angle)
{
    struct hand_matrix relative[HAND_BONES];
    for (int i = HAND_BONES - 1; i >= 0; --i) {
        multiply_back(&pose->absolute[i], &h->inverse_rest[i], &d->transform[i], &d->absolute[i],
                      NULL);
        if (h->parent[i] >= 0)
            multiply_back(&pose->absolute[h->parent[i]], &pose->relative[i], &d->absolute[i],
                          &d->absolute[h->parent[i]], &relative[i]);
    }
    for (int finger = 0; finger < HAND_FINGERS; ++finger)
        for (int k = 0; k < 3; ++k) {
            const int bone = hand_first_bone(finger) + k;
            double by_b;
            bend_back(&h->relative[bone], pose->sine[bone], pose->cosine[bone], &relative[bone],
                      by_angle++, &by_b);
            if (k == 0)
                *by_angle++ = by_b;
        }
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *gradient)
{
    const struct hand *h = problem->input;
    struct pose *pose = work;
    struct adjoint d = {0};
    double(*moved)[3] = pose->vertex + h->n_vertices, sum = 0.0;
    pose_hand(h, x, pose, moved);
    for (int i = 0; i < h->n_points; ++i) {
        const int v = h->vertex_of[i];
        double error[3];
        for (int j = 0; j < 3; ++j) {
            error[j] = h->points[3 * i + j] - moved[v][j];
            sum += error[j] * error[j];
        }
        point_back(&h->vertex[v], error, pose, pose->vertex[v], &d);
    }
    outputs[0] = 0.5 * sum;
    rotation_back(x, d.global, gradient);
    memcpy(gradient + 3, d.shift, sizeof d.shift);
    bones_back(h, pose, &d, gradient + 6);
}

const struct problem_kind hand_kind = {hand_make, hand_read, hand_drop, value, gradient};
