/* hand_real.c: the posed hand over ad_real.
 *
 * Invariant: as in real.h. What does not depend on theta is constant and records nothing.
 */
#include "hand.h"
#include "real.h"

#include <math.h>

struct matrix {
    ad_real m[3][4];
};

/* Three of a kind: a[0] b[0] + a[1] b[1] + a[2] b[2]. */
#define SUM3(a0, b0, a1, b1, a2, b2)                                                               \
    ad_real_add(ad_real_add(ad_real_mul(a0, b0), ad_real_mul(a1, b1)), ad_real_mul(a2, b2))

enum { MATRIX = 12 };

static size_t room(const struct problem *problem)
{
    const struct hand *h = problem->input;
    return (size_t)3 * HAND_BONES * MATRIX + 3 * (size_t)h->n_vertices;
}

/* c = a b of affine maps. */
static void multiply(const struct matrix *a, const struct matrix *b, struct matrix *c)
{
    for (int i = 0; i < 3; ++i) {
        const ad_real *r = a->m[i];
        for (int j = 0; j < 3; ++j)
            ad_set(&c->m[i][j], SUM3(r[0], b->m[0][j], r[1], b->m[1][j], r[2], b->m[2][j]));
        ad_set(&c->m[i][3],
               ad_real_add(SUM3(r[0], b->m[0][3], r[1], b->m[1][3], r[2], b->m[2][3]), r[3]));
    }
}

/* The same where b is constant. */
static void multiply_constant(const struct matrix *a, const struct hand_matrix *b, struct matrix *c)
{
    for (int i = 0; i < 3; ++i) {
        const ad_real *r = a->m[i];
        for (int j = 0; j < 3; ++j)
            ad_set(&c->m[i][j], SUM3(r[0], b->m[0][j], r[1], b->m[1][j], r[2], b->m[2][j]));
        ad_set(&c->m[i][3],
               ad_real_add(SUM3(r[0], b->m[0][3], r[1], b->m[1][3], r[2], b->m[2][3]), r[3]));
    }
}

/* The columns of m turned by Rz(b) Rx(a). */
static void bend(const struct hand_matrix *m, ad_real a, ad_real b, struct matrix *bent)
{
    ad_real sa = ad_real_of(ad_real_sin(a)), ca = ad_real_of(ad_real_cos(a));
    ad_real sb = ad_real_of(ad_real_sin(b)), cb = ad_real_of(ad_real_cos(b));
    for (int i = 0; i < 3; ++i) {
        const double *r = m->m[i];
        ad_real across = ad_real_of(ad_real_sub(ad_real_mul(r[1], cb), ad_real_mul(r[0], sb)));
        ad_set(&bent->m[i][0], ad_real_add(ad_real_mul(r[0], cb), ad_real_mul(r[1], sb)));
        ad_set(&bent->m[i][1], ad_real_add(ad_real_mul(across, ca), ad_real_mul(r[2], sa)));
        ad_set(&bent->m[i][2], ad_real_sub(ad_real_mul(r[2], ca), ad_real_mul(across, sa)));
    }
}

/* The rotation about w by its length. */
static void rotation(const ad_real *w, ad_real r[3][3])
{
    ad_real t = ad_real_of(ad_real_sqrt(SUM3(w[0], w[0], w[1], w[1], w[2], w[2])));
    if (ad_real_less(t, 1e-4)) {
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                r[i][j] = (ad_real){i == j, 0, 0};
        return;
    }
    ad_real x = ad_real_of(ad_real_div(w[0], t)), y = ad_real_of(ad_real_div(w[1], t));
    ad_real z = ad_real_of(ad_real_div(w[2], t));
    ad_real s = ad_real_of(ad_real_sin(t)), c = ad_real_of(ad_real_cos(t));
    ad_real d = ad_real_of(ad_real_sub(1.0, c));
    ad_set(&r[0][0], ad_real_add(ad_real_mul(ad_real_mul(x, x), d), c));
    ad_set(&r[0][1], ad_real_sub(ad_real_mul(ad_real_mul(x, y), d), ad_real_mul(z, s)));
    ad_set(&r[0][2], ad_real_add(ad_real_mul(ad_real_mul(x, z), d), ad_real_mul(y, s)));
    ad_set(&r[1][0], ad_real_add(ad_real_mul(ad_real_mul(x, y), d), ad_real_mul(z, s)));
    ad_set(&r[1][1], ad_real_add(ad_real_mul(ad_real_mul(y, y), d), c));
    ad_set(&r[1][2], ad_real_sub(ad_real_mul(ad_real_mul(y, z), d), ad_real_mul(x, s)));
    ad_set(&r[2][0], ad_real_sub(ad_real_mul(ad_real_mul(x, z), d), ad_real_mul(y, s)));
    ad_set(&r[2][1], ad_real_add(ad_real_mul(ad_real_mul(y, z), d), ad_real_mul(x, s)));
    ad_set(&r[2][2], ad_real_add(ad_real_mul(ad_real_mul(z, z), d), c));
}

/* Poses the bones; `work` has room for three matrices each, and the transforms come first. */
static void pose_bones(const struct hand *h, const ad_real *theta, struct matrix *work)
{
    struct matrix *transform = work, *relative = work + HAND_BONES;
    struct matrix *absolute = relative + HAND_BONES;
    const ad_real *angle = theta + 6, zero = {0};
    for (int i = 0; i < HAND_BONES; ++i)
        for (int j = 0; j < MATRIX; ++j)
            relative[i].m[j / 4][j % 4] = (ad_real){h->relative[i].m[j / 4][j % 4], 0, 0};
    for (int finger = 0; finger < HAND_FINGERS; ++finger)
        for (int k = 0; k < 3; ++k) {
            const int bone = hand_first_bone(finger) + k;
            bend(&h->relative[bone], angle[0], k == 0 ? angle[1] : zero, &relative[bone]);
            angle += k == 0 ? 2 : 1;
        }
    for (int i = 0; i < HAND_BONES; ++i) {
        if (h->parent[i] < 0)
            absolute[i] = relative[i];
        else
            multiply(&absolute[h->parent[i]], &relative[i], &absolute[i]);
        multiply_constant(&absolute[i], &h->inverse_rest[i], &transform[i]);
    }
}

static void pose_vertex(const struct hand_vertex *v, const struct matrix *transform,
                        ad_real *placed)
{
    placed[0] = placed[1] = placed[2] = (ad_real){0};
    for (int k = 0; k < v->n; ++k) {
        const struct matrix *t = &transform[v->bone[k]];
        const double w = v->weight[k], *rest = v->rest;
        for (int i = 0; i < 3; ++i) {
            const ad_real *r = t->m[i];
            ad_set(&placed[i],
                   ad_real_add(placed[i], ad_real_mul(w, ad_real_add(SUM3(r[0], rest[0], r[1],
                                                                          rest[1], r[2], rest[2]),
                                                                     r[3]))));
        }
    }
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct hand *h = problem->input;
    struct matrix *bones = (struct matrix *)work;
    ad_real *moved = work + 3 * HAND_BONES * MATRIX, global[3][3], placed[3], sum = {0};
    pose_bones(h, x, bones);
    rotation(x, global);
    for (int v = 0; v < h->n_vertices; ++v) {
        pose_vertex(&h->vertex[v], bones, placed);
        for (int i = 0; i < 3; ++i)
            ad_set(&moved[3 * v + i], ad_real_add(SUM3(global[i][0], placed[0], global[i][1],
                                                       placed[1], global[i][2], placed[2]),
                                                  x[3 + i]));
    }
    for (int i = 0; i < h->n_points; ++i)
        for (int j = 0; j < 3; ++j) {
            const ad_real at = moved[3 * h->vertex_of[i] + j];
            ad_set(&sum, ad_real_add(sum, ad_real_square(ad_real_sub(h->points[3 * i + j], at))));
        }
    ad_set(out, ad_real_mul(0.5, sum));
}

const struct real_objective real_hand = {room, value};
