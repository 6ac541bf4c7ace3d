/* program_compares.c: the functions of plain_random.c as programs of numbers (PROGRAM) and as
 * statements (REALS): gradients, those of replays, and Hessians by differences of gradients.
 *
 * A replay that is not refused must be what a new recording is. A step aside it is made whatever
 * values were read: where a branch goes the other way there, it is another function.
 */
#include <tapescope/ad_real.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 };

struct reals_some {
    ad_real p;
    int n;
    ad_real q[2];
};

typedef ad_real function(const ad_real *, struct reals_some, struct reals_some *);
extern function *const reals_functions[], *const program_functions[];
extern const int reals_count;

static ad_tape tape;
static int wrong, compared, elsewhere, replayed, refused;

static ad_real call(function *f, const ad_real *x, int k)
{
    struct reals_some s = {x[1], k % 2, {x[2], ad_real_of(0.5)}}, t = {x[3], 1, {x[0], x[1]}};
    return f(x, s, &t);
}

static bool recorded(int k, const double *at, double *value, double *gradient)
{
    ad_real x[N];
    if (ad_real_leaves(tape, N, at, x) != AD_OK)
        return false;
    const ad_real y = call(reals_functions[k], x, k);
    *value = y.value;
    return ad_real_jacobian(tape, 1, &y, N, x, gradient) == AD_OK;
}

static double distance(int n, const double *a, const double *b)
{
    double worst = 0, size = 1;
    for (int i = 0; i < n; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        size = fmax(size, fabs(b[i]));
    }
    return worst / size;
}

static void check(bool ok, int k, const char *what, double by)
{
    if (ok)
        return;
    printf("random_%d: %s: %g %s\n", k, what, by, ad_tape_message(tape));
    wrong++;
}

/* Whether the replay at a point is what is recorded there; *gradient: of the replay. */
static bool replay_is(int k, ad_real *x, ad_real *y, const double *at, int flags, double *gradient)
{
    double value, fresh[N];
    if (ad_tape_replay(tape, N, x, at, flags) != AD_OK)
        return false;
    check(ad_real_update(tape, 1, y) == AD_OK &&
              ad_real_jacobian(tape, 1, y, N, x, gradient) == AD_OK,
          k, "no gradient", 0);
    const ad_mark mark = ad_tape_mark(tape);
    check(recorded(k, at, &value, fresh), k, "not recorded", 0);
    check(ad_tape_rewind(tape, mark) == AD_OK, k, "no rewind", 0);
    const double found[] = {y->value, gradient[0], gradient[1], gradient[2], gradient[3]};
    const double want[] = {value, fresh[0], fresh[1], fresh[2], fresh[3]};
    return distance(1 + N, found, want) < 1e-11;
}

/* How far the Hessian's rows are from differences over such steps; -1: another function there. */
static double differences_are(int k, ad_real *x, ad_real *y, const double *at, const double *h,
                              double step)
{
    double g[2][N], other[N], row[N], worst = 0;
    for (int i = 0; i < N; i++) {
        for (int side = 0; side < 2; side++) {
            memcpy(other, at, sizeof other);
            other[i] += side ? step : -step;
            if (!replay_is(k, x, y, other, AD_REPLAY_READS, g[side]))
                return -1;
        }
        for (int j = 0; j < N; j++)
            row[j] = (g[1][j] - g[0][j]) / (2 * step);
        worst = fmax(worst, distance(N, h + N * i, row));
    }
    return worst;
}

/* Of a function that bends much the differences are better over shorter steps. */
static void hessian_compare(int k, ad_real *x, ad_real *y, const double *at)
{
    double h[N * N];
    check(ad_real_hessian(tape, *y, N, x, h) == AD_OK, k, "no hessian", 0);
    double by = differences_are(k, x, y, at, h, 1e-7);
    if (by > 1e-5)
        by = differences_are(k, x, y, at, h, 1e-8);
    ad_tape_clear_error(tape);
    check(by < 1e-5, k, "hessian", by);
    compared += by >= 0;
    elsewhere += by < 0;
}

static void function_compare(int k, const double *at)
{
    static const double far[][N] = {
        {0.71, -0.41, 1.29, 0.26}, {0.9, -0.2, 1.6, 0.7}, {-0.3, 0.8, 0.4, -1}};
    double value, gradient[N], own[N];
    ad_real x[N];
    check(ad_tape_reset(tape) == AD_OK, k, "no reset", 0);
    if (!recorded(k, at, &value, gradient)) { /* a constant */
        ad_tape_clear_error(tape);
        return;
    }
    check(ad_tape_reset(tape) == AD_OK && ad_real_leaves(tape, N, at, x) == AD_OK &&
              ad_tape_program_begin(tape) == AD_OK,
          k, "no program", 0);
    ad_real y = call(program_functions[k], x, k);
    if (ad_tape_program_end(tape) != AD_OK || ad_real_jacobian(tape, 1, &y, N, x, own) != AD_OK) {
        check(false, k, "no program", 0);
        return;
    }
    check(distance(N, own, gradient) < 1e-12 && y.value == value, k, "gradient",
          distance(N, own, gradient));
    hessian_compare(k, x, &y, at);
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++) {
        const bool same = replay_is(k, x, &y, far[i], 0, own);
        if (ad_tape_status(tape) == AD_OK) {
            check(same, k, "a replay is not what is recorded", i);
            replayed++;
        } else {
            refused++;
        }
        ad_tape_clear_error(tape);
    }
}

int main(void)
{
    static const double at[N] = {0.7, -0.4, 1.3, 0.25};
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (int k = 0; k < reals_count; k++)
        function_compare(k, at);
    ad_tape_destroy(tape);
    printf("%d compared, %d not the same a step aside, %d replayed, %d refused\n", compared,
           elsewhere, replayed, refused);
    return wrong > 0;
}
