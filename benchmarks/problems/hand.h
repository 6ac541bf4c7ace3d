/* hand.h: how far a posed hand is from measured points (ADBench: M. Srajer, Z. Kukelova,
 * A. Fitzgibbon, 2018, doi:10.1080/10556788.2018.1435651; the model of J. Taylor and others, 2014,
 * doi:10.1109/CVPR.2014.88).
 *
 * Bones form a tree. A bone's pose relative to its parent is a matrix of the model, turned in the
 * joint by Rz(b) Rx(a); its absolute pose is its parent's times that, and its transform that times
 * the inverse of the absolute pose at rest. A vertex goes where the mean of its bones' transforms,
 * by their weights, takes it; then all are rotated about theta 0-2 by its length and shifted by
 * theta 3-5. Of each finger the last three of four bones bend: by four angles, a, b of the first of
 * them and a of the others. All vertices are posed; each point is compared with one of them.
 *
 * x and the gradient: theta [26]. One output: half the sum of squares of point - vertex.
 *
 * Invariant: input is a struct hand. A parent stands before its children.
 */
#ifndef HAND_H
#define HAND_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HAND_BONES = 22,
    HAND_FINGERS = 5,
    HAND_THETA = 26,
    HAND_WEIGHTS = 8 /* at most, of a vertex */
};

/* The upper three rows of an affine map. */
struct hand_matrix {
    double m[3][4];
};

struct hand_vertex {
    double rest[3];
    int n;
    int bone[HAND_WEIGHTS];
    double weight[HAND_WEIGHTS];
};

struct hand {
    int n_vertices, n_points;
    int parent[HAND_BONES];                      /* -1: none */
    struct hand_matrix relative[HAND_BONES];     /* to the parent, at rest */
    struct hand_matrix inverse_rest[HAND_BONES]; /* of the absolute pose at rest */
    struct hand_vertex *vertex;
    int *vertex_of; /* [n_points] */
    double *points; /* [n_points, 3] */
};

extern const struct problem_kind hand_kind;

/* Which bone an angle bends first of a finger. The next two bones follow. */
static inline int hand_first_bone(int finger)
{
    return 2 + 4 * finger;
}

/* The functions that make inputs (hand_input.c). */
bool hand_make(struct problem *problem, const int *sizes);
bool hand_read(struct problem *problem, const char *folder);
void hand_drop(void *input);

/* Bytes that the gradient needs besides the input. */
size_t hand_work_bytes(const struct hand *hand);

#ifdef __cplusplus
}
#endif

#endif
