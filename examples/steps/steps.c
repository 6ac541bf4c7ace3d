/* steps.c: the gradient of many steps in time, with fewer states kept than there are steps.
 *
 *     steps
 *
 * The Lorenz system over 4096 steps of a Runge-Kutta method, differentiated by its start and its
 * parameters: with everything kept; in 64 segments of 64 steps, each a checkpoint; and as a loop of
 * checkpoints that plans itself, by the bytes and with 8 states. The gradients must be the same bit
 * for bit.
 */
#include <tapescope/ad_real.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 4096,
    SEGMENT = 64,
    STATES = 8, /* of the last way */
    STATE = 3,
    PARAMETERS = 3,
    ALL = STATE + PARAMETERS /* what a step is given: the state, and behind it the parameters */
};

static const double start[ALL] = {1, 1, 1, 10, 28, 8.0 / 3}, step_size = 0.0005;
static long computed; /* steps */

static void slope(const ad_real *u, ad_real *k)
{
    const ad_real *p = u + STATE;
    ad_set(&k[0], ad_real_mul(p[0], ad_real_sub(u[1], u[0])));
    ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(p[1], u[2])), u[1]));
    ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(p[2], u[2])));
}

/* The classic method of the fourth order. */
static void step(ad_real *u)
{
    static const double part[4] = {0.5, 0.5, 1, 0}, weight[4] = {1, 2, 2, 1};
    ad_real k[STATE], at[ALL], sum[STATE];
    memcpy(at, u, sizeof at);
    memcpy(sum, u, sizeof sum);
    for (int stage = 0; stage < 4; stage++) {
        slope(at, k);
        for (int i = 0; i < STATE; i++) {
            ad_set(&sum[i], ad_real_add(sum[i], ad_real_mul(weight[stage] * step_size / 6, k[i])));
            ad_set(&at[i], ad_real_add(u[i], ad_real_mul(part[stage] * step_size, k[i])));
        }
    }
    memcpy(u, sum, sizeof sum);
    computed++;
}

/* ---- ways to do without the tape of all steps ---- */

static void segment(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                    void *payload)
{
    ad_real u[ALL];
    (void)tape, (void)payload;
    memcpy(u, in, (size_t)n_in * sizeof *u);
    for (int i = 0; i < SEGMENT; i++)
        step(u);
    memcpy(out, u, (size_t)n_out * sizeof *u);
}

static bool one_step(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                     ad_real *out, void *payload)
{
    ad_real u[ALL];
    (void)tape, (void)i, (void)payload;
    memcpy(u, in, (size_t)n_in * sizeof *u);
    step(u);
    memcpy(out, u, (size_t)n_out * sizeof *u);
    return true;
}

static void kept(ad_tape tape, ad_real *u)
{
    (void)tape;
    for (int i = 0; i < STEPS; i++)
        step(u);
}

static void in_segments(ad_tape tape, ad_real *u)
{
    for (int i = 0; i < STEPS / SEGMENT; i++)
        ad_real_checkpoint(tape, segment, NULL, ALL, u, STATE, u);
}

static void as_a_loop(ad_tape tape, ad_real *u)
{
    ad_real_checkpoint_loop(tape, STEPS, one_step, NULL, ALL, u, STATE, u, NULL);
}

static void with_few_states(ad_tape tape, ad_real *u)
{
    const ad_checkpoint_budget budget = {.states = STATES};
    ad_real_checkpoint_loop(tape, STEPS, one_step, NULL, ALL, u, STATE, u, &budget);
}

/* ---- the gradient ---- */

struct result {
    double value, gradient[ALL];
    uint64_t peak_bytes;
    long computed;
};

/* False: the tape has an error, which is printed. */
static bool differentiate(ad_tape tape, void (*way)(ad_tape, ad_real *), struct result *result)
{
    ad_real x[ALL], u[ALL], y;
    ad_stats stats = {0};
    ad_tape_reset(tape);
    ad_tape_reset_peak(tape);
    computed = 0;
    ad_real_leaves(tape, ALL, start, x);
    memcpy(u, x, sizeof u);
    way(tape, u);
    ad_set(&y, ad_real_add(ad_real_square(u[0]), ad_real_mul(u[1], u[2])));
    ad_status status = ad_real_backward(tape, y);
    if (status == AD_OK)
        status = ad_real_gradients(tape, ALL, x, result->gradient);
    ad_tape_stats(tape, &stats);
    result->value = ad_real_value(y);
    result->peak_bytes = stats.peak_bytes;
    result->computed = computed;
    if (status == AD_OK)
        return true;
    fprintf(stderr, "steps: %s\n", ad_tape_message(tape));
    return false;
}

static uint64_t bits(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(ad_tape, ad_real *);
    } way[] = {{"everything kept", kept},
               {"64 segments of 64 steps", in_segments},
               {"loop", as_a_loop},
               {"loop, 8 states", with_few_states}};
    enum { WAYS = sizeof way / sizeof *way };
    struct result result[WAYS];
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "steps: %s\n", ad_tape_message(tape));
        return 1;
    }
    printf("the Lorenz system over %d steps\n", STEPS);
    printf("%-24s %10s %7s %14s\n", "", "peak KiB", "of all", "steps computed");
    bool same = true;
    for (int w = 0; w < WAYS; w++) {
        if (!differentiate(tape, way[w].run, &result[w]))
            return 1;
        printf("%-24s %10llu %6.1f%% %14ld\n", way[w].name,
               (unsigned long long)(result[w].peak_bytes >> 10),
               100 * (double)result[w].peak_bytes / (double)result[0].peak_bytes,
               result[w].computed);
        for (int k = 0; k < ALL; k++)
            same = same && bits(result[w].gradient[k]) == bits(result[0].gradient[k]);
    }
    printf("value %.6f; the gradients are %s\n", result[0].value,
           same ? "the same bit for bit" : "not the same: FAILED");
    ad_tape_destroy(tape);
    return same ? 0 : 1;
}
