/* real.c: a problem recorded, swept and dropped, step by step.
 *
 * Invariant: between two steps the tape is empty.
 */
#include "real.h"

#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct real_case real_cases[] = {
    {"gmm_d10_k25", "gmm_d10_k25", &real_gmm, 0},
    {"gmm_d10_k25_loop", "gmm_d10_k25", &real_gmm_loop, 62.0e6},
    {"gmm_d10_k25_fused_loops", "gmm_d10_k25", &real_gmm_fused_loops, 0},
    {"gmm_d20_k50", "gmm_d20_k50", &real_gmm, 0},
    {"gmm_d20_k50_loop", "gmm_d20_k50", &real_gmm_loop, 0},
    {"gmm_d20_k50_fused_loops", "gmm_d20_k50", &real_gmm_fused_loops, 0},
    {"lstm_l2_c1024", "lstm_l2_c1024", &real_lstm, 8.5e6},
    {"ba1", "ba1", NULL, 0},
    {"hand1", "hand1", &real_hand, 0.29e6},
    {"lorenz", "lorenz", &real_lorenz, 0},
    {"burgers", "burgers", &real_burgers, 0},
    {"mulchain", "mulchain", &real_mulchain, 0},
    {"heston", "heston", &real_heston, 100e6},
    {"heat", "heat", &real_heat, 0},
    {"heat_fused_loops", "heat", &real_heat_fused_loops, 0},
    {"bodies", "bodies", &real_bodies, 46e6},
    {0},
};

static bool complain(const struct real *real)
{
    fprintf(stderr, "%s: %s\n", real->problem->spec->name, ad_tape_message(real->tape));
    return false;
}

bool real_open(struct real *real, const struct problem *problem,
               const struct real_objective *objective, const ad_tape_options *options)
{
    const size_t n = objective ? problem->n_variables : BUNDLE_ROW;
    const size_t room = objective ? objective->room(problem) : 0;
    *real = (struct real){.problem = problem, .objective = objective};
    real->x = malloc((n + room + 1) * sizeof *real->x);
    real->gradient = malloc(problem->n_gradient * sizeof *real->gradient);
    real->work = real->x ? real->x + n : NULL;
    if (real->x && real->gradient && ad_tape_create(&real->tape, options) == AD_OK)
        return true;
    complain(real);
    real_close(real);
    return false;
}

void real_close(struct real *real)
{
    if (real->tape.slot != 0)
        ad_tape_destroy(real->tape);
    free(real->x);
    free(real->gradient);
    *real = (struct real){0};
}

/* What is on the tape now; y was computed last. */
static void count(struct real *real, const ad_real *last_leaf, const ad_real *y)
{
    ad_stats stats;
    if (ad_tape_stats(real->tape, &stats) != AD_OK)
        return;
    real->bytes = (double)stats.live_bytes;
    real->statements = (double)(y->index - last_leaf->index);
}

static bool whole(struct real *real, double (*now)(void))
{
    const struct problem *p = real->problem;
    const int64_t n = (int64_t)p->n_variables;
    const double start = now ? now() : 0.0;
    ad_real y = {0};
    ad_real_leaves(real->tape, n, p->x, real->x);
    real->objective->value(p, real->x, real->work, &y);
    real->record = now ? now() - start : 0.0;
    real->value = y.value;
    count(real, &real->x[n - 1], &y);
    return ad_real_backward(real->tape, y) == AD_OK &&
           ad_real_gradients(real->tape, n, real->x, real->gradient) == AD_OK &&
           ad_tape_reset(real->tape) == AD_OK;
}

/* The three residuals of an observation, swept together. */
static bool observation(struct real *real, int i, double (*now)(void))
{
    const struct bundle *b = real->problem->input;
    const double *cameras = real->problem->x, *points = cameras + (size_t)b->n * BUNDLE_CAMERA;
    const double *weights = points + (size_t)b->m * BUNDLE_POINT;
    const double start = now ? now() : 0.0;
    double x[BUNDLE_ROW], rows[3 * BUNDLE_ROW];
    ad_real y[3] = {0};
    memcpy(x, cameras + (size_t)b->observation[2 * i] * BUNDLE_CAMERA, BUNDLE_CAMERA * sizeof *x);
    memcpy(x + BUNDLE_CAMERA, points + (size_t)b->observation[2 * i + 1] * BUNDLE_POINT,
           BUNDLE_POINT * sizeof *x);
    x[BUNDLE_ROW - 1] = weights[i];
    ad_real_leaves(real->tape, BUNDLE_ROW, x, real->x);
    real_bundle_residuals(real->x, b->feature + (size_t)i * 2, y);
    if (now)
        real->record += now() - start;
    if (i == 0)
        count(real, &real->x[BUNDLE_ROW - 1], &y[2]);
    const ad_status status = ad_real_jacobian(real->tape, 3, y, BUNDLE_ROW, real->x, rows);
    memcpy(real->gradient + (size_t)i * 2 * BUNDLE_ROW, rows, 2 * BUNDLE_ROW * sizeof *rows);
    real->gradient[(size_t)b->p * 2 * BUNDLE_ROW + (size_t)i] = rows[3 * BUNDLE_ROW - 1];
    return status == AD_OK && ad_tape_reset(real->tape) == AD_OK;
}

static bool each_observation(struct real *real, double (*now)(void))
{
    const struct bundle *b = real->problem->input;
    real->record = 0.0;
    for (int i = 0; i < b->p; ++i)
        if (!observation(real, i, now))
            return false;
    return true;
}

bool real_step(struct real *real, double (*now)(void))
{
    return (real->objective ? whole(real, now) : each_observation(real, now)) || complain(real);
}
