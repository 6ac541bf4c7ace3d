/* bundle.c: where cameras stood and points lie, from the places of the points in the pictures:
 * bundle adjustment by the method of Gauss and Newton, with the damping of K. Levenberg (1944, doi
 * 10.1090/qam/10666), and a sparse Jacobian.
 *
 *     bundle
 *
 * A camera has a rotation (its axis times its angle) and a translation. Each place in a picture
 * depends on one camera and one point, on 8 of all unknowns: so the Jacobian is mostly zeros, and
 * is had in compressed rows (docs/how-to/sparse.md). The pictures are without noise. The program
 * ends with an error unless the places come out as they are, from unknowns that were a tenth off.
 */
#include <tapescope/ad_real.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAMERAS = 6,
    POINTS = 40,
    OF_CAMERA = 6,
    OF_POINT = 3,
    UNKNOWNS = CAMERAS * OF_CAMERA + POINTS * OF_POINT,
    PLACES = 2 * CAMERAS * POINTS, /* every camera sees every point */
    STEPS = 30
};

struct bundle {
    ad_tape tape;
    double x[UNKNOWNS], place[PLACES];
    double error[PLACES], *values; /* of the Jacobian, by the pattern */
    ad_sparse_pattern pattern;
};

/* Uniform in [-1, 1), always the same. */
static double spread(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)*state * 0x1p-63;
}

/* axis = w / angle, where angle = |w| */
static void split(const ad_real *w, ad_real *angle, ad_real *axis)
{
    ad_set(angle, ad_real_add(ad_real_square(w[0]), ad_real_square(w[1])));
    ad_set(angle, ad_real_sqrt(ad_real_add(*angle, ad_real_square(w[2]))));
    for (int k = 0; k < 3; k++)
        ad_set(&axis[k], ad_real_div(w[k], *angle));
}

/* a b - c d */
static ad_real difference(ad_real a, ad_real b, ad_real c, ad_real d)
{
    ad_real result;
    ad_set(&result, ad_real_sub(ad_real_mul(a, b), ad_real_mul(c, d)));
    return result;
}

/* a b + c d + e f */
static ad_real three_products(ad_real a, ad_real b, ad_real c, ad_real d, ad_real e, ad_real f)
{
    ad_real result;
    ad_set(&result, ad_real_add(ad_real_mul(a, b), ad_real_mul(c, d)));
    ad_set(&result, ad_real_add(result, ad_real_mul(e, f)));
    return result;
}

/* (axis . p) (1 - cosine) */
static ad_real along_axis(const ad_real *axis, const ad_real *p, ad_real cosine)
{
    ad_real sum = ad_real_of(0);
    for (int k = 0; k < 3; k++)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(axis[k], p[k])));
    ad_set(&sum, ad_real_mul(sum, ad_real_sub(1, cosine)));
    return sum;
}

/* to = p turned by w (O. Rodrigues' formula), whose angle is not 0. */
static void turn(const ad_real *w, const ad_real *p, ad_real *to)
{
    ad_real angle, cosine, sine, axis[3];
    split(w, &angle, axis);
    ad_set(&cosine, ad_real_cos(angle));
    ad_set(&sine, ad_real_sin(angle));
    const ad_real along = along_axis(axis, p, cosine);
    for (int k = 0; k < 3; k++) {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        const ad_real across = difference(axis[i], p[j], axis[j], p[i]);
        to[k] = three_products(p[k], cosine, across, sine, axis[k], along);
    }
}

/* Places in the pictures: each point before each camera, through a pinhole. */
static void project(const ad_real *x, ad_real *place)
{
    for (int c = 0; c < CAMERAS; c++)
        for (int p = 0; p < POINTS; p++, place += 2) {
            const ad_real *camera = x + (ptrdiff_t)c * OF_CAMERA;
            ad_real at[3];
            turn(camera, x + CAMERAS * OF_CAMERA + (ptrdiff_t)p * OF_POINT, at);
            for (int k = 0; k < 3; k++)
                ad_set(&at[k], ad_real_add(at[k], camera[3 + k]));
            for (int k = 0; k < 2; k++)
                ad_set(&place[k], ad_real_div(at[k], at[2]));
        }
}

/* Errors of the places at b->x, and with `derivatives` their Jacobian. Half the sum of their
 * squares; NaN where the tape has an error. */
static double look(struct bundle *b, bool derivatives)
{
    static ad_real x[UNKNOWNS], y[PLACES];
    double sum = 0;
    ad_tape_reset(b->tape);
    ad_real_leaves(b->tape, UNKNOWNS, b->x, x);
    project(x, y);
    for (int i = 0; i < PLACES; i++) {
        b->error[i] = y[i].value - b->place[i];
        sum += b->error[i] * b->error[i] / 2;
    }
    ad_status status = ad_tape_status(b->tape);
    if (status == AD_OK && derivatives && !b->values) { /* the pattern is that of all recordings */
        status = ad_real_jacobian_pattern(b->tape, PLACES, y, UNKNOWNS, x, &b->pattern);
        b->values =
            status == AD_OK ? malloc((size_t)b->pattern.n_values * sizeof *b->values) : NULL;
        if (status == AD_OK && !b->values)
            return NAN;
    }
    if (status == AD_OK && derivatives)
        status = ad_real_jacobian_sparse(b->tape, PLACES, y, UNKNOWNS, x, &b->pattern, b->values);
    return status == AD_OK ? sum : NAN;
}

/* Solves (J^T J + damping) d = J^T error by L L^T, L in place: a sum over rows of few numbers. */
static void solve(const struct bundle *b, double damping, double *d)
{
    static double a[UNKNOWNS][UNKNOWNS];
    const ad_sparse_pattern *p = &b->pattern;
    memset(a, 0, sizeof a);
    memset(d, 0, UNKNOWNS * sizeof *d);
    for (int i = 0; i < UNKNOWNS; i++)
        a[i][i] = damping;
    for (int64_t row = 0; row < PLACES; row++)
        for (int64_t k = p->row_start[row]; k < p->row_start[row + 1]; k++) {
            d[p->column[k]] += b->values[k] * b->error[row];
            for (int64_t l = p->row_start[row]; l <= k; l++)
                a[p->column[k]][p->column[l]] += b->values[k] * b->values[l];
        }
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int j = 0; j <= i; j++) {
            for (int k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(a[i][j]) : a[i][j] / a[j][j];
        }
        for (int k = 0; k < i; k++)
            d[i] -= a[i][k] * d[k];
        d[i] /= a[i][i];
    }
    for (int i = UNKNOWNS; i-- > 0;) {
        for (int k = i + 1; k < UNKNOWNS; k++)
            d[i] -= a[k][i] * d[k];
        d[i] /= a[i][i];
    }
}

/* What is true, the places that follow, and then the unknowns a tenth off. */
static void invent(struct bundle *b)
{
    static ad_real x[UNKNOWNS], y[PLACES];
    uint64_t state = 7;
    for (int i = 0; i < UNKNOWNS; i++)
        b->x[i] = spread(&state);
    for (int c = 0; c < CAMERAS; c++) { /* the camera looks at the points from 6 away */
        for (int k = 0; k < 3; k++)
            b->x[c * OF_CAMERA + k] = 0.2 + 0.5 * b->x[c * OF_CAMERA + k];
        b->x[c * OF_CAMERA + 5] += 6;
    }
    for (int i = 0; i < UNKNOWNS; i++)
        x[i] = ad_real_of(b->x[i]);
    project(x, y);
    for (int i = 0; i < PLACES; i++)
        b->place[i] = y[i].value;
    for (int i = 0; i < UNKNOWNS; i++)
        b->x[i] += 0.1 * spread(&state);
}

static bool run(struct bundle *b)
{
    double damping = 1e-3, d[UNKNOWNS], before[UNKNOWNS], sum;
    int steps = 0;
    invent(b);
    sum = look(b, true);
    const double first = sum;
    for (; steps < STEPS && sum > 1e-24; steps++) {
        solve(b, damping, d);
        memcpy(before, b->x, sizeof before);
        for (int i = 0; i < UNKNOWNS; i++)
            b->x[i] -= d[i];
        const double next = look(b, false);
        const bool better = next < sum;
        if (!better)
            memcpy(b->x, before, sizeof before);
        damping *= better ? 0.1 : 10;
        sum = look(b, true);
    }
    if (ad_tape_status(b->tape) != AD_OK || !b->values) {
        fprintf(stderr, "bundle: %s\n",
                ad_tape_status(b->tape) == AD_OK ? "out of memory" : ad_tape_message(b->tape));
        return false;
    }
    const double error = sqrt(2 * sum / PLACES);
    printf("%d places by %d unknowns, %lld of %d derivatives are no zeros\n", PLACES, UNKNOWNS,
           (long long)b->pattern.n_values, PLACES * UNKNOWNS);
    printf("error of a place %.1e at first, %.1e after %d steps\n", sqrt(2 * first / PLACES), error,
           steps);
    /* Each place is of one camera and one point, less the translation in the other direction. */
    const bool right = error < 1e-11 && b->pattern.n_values == PLACES * (OF_CAMERA + OF_POINT - 1);
    if (!right)
        fprintf(stderr, "bundle: the places do not come out\n");
    return right;
}

int main(void)
{
    static struct bundle b;
    if (ad_tape_create(&b.tape, NULL) != AD_OK) {
        fprintf(stderr, "bundle: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    const bool right = run(&b);
    ad_sparse_free(&b.pattern);
    free(b.values);
    ad_tape_destroy(b.tape);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
