/* test_real_preaccumulate_random.c: derivatives are the same whether sections are preaccumulated or
 * not: of random graphs, of time steps, of an iteration.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"
#include "statement_bytes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { INPUTS = 12, NODES = 200, ROUNDS = 300 };

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
}

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % n;
}

/* Derivatives to 1e-14 of the largest, which bounds what terms of both signs lose. */
static void check_same(int n, const double *a, const double *b)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    ck_assert(most > 0);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= 1e-14 * most, "%d: %.17g and %.17g of %.17g", i, a[i],
                      b[i], most);
}

/* ---- random graphs ---- */

static ad_real statement(const ad_real *v, uint32_t n)
{
    const ad_real a = v[below(n)], b = v[below(n)], c = v[below(n)], d = v[below(n)];
    switch (below(7)) {
    case 0:
        return ad_real_of(ad_real_sin(ad_real_add(a, b)));
    case 1:
        return ad_real_of(ad_real_mul(ad_real_cos(a), b));
    case 2:
        return ad_real_of(ad_real_add(ad_real_mul(a, 0.5), ad_real_mul(b, ad_real_tanh(c))));
    case 3:
        return ad_real_of(ad_real_tanh(ad_real_mul(a, 0.75)));
    case 4:
        return ad_real_of(ad_real_div(ad_real_add(a, b), ad_real_add(ad_real_square(c), 2)));
    case 5:
        return ad_real_of(ad_real_mul(ad_real_mul(ad_real_add(a, b), ad_real_sub(c, d)), 0.25));
    default:
        return ad_real_of(ad_real_atan(ad_real_sub(ad_real_mul(a, b), ad_real_mul(c, d))));
    }
}

static int replaced, nested, sections;

/* The values v[from, to), of which those not named are not used afterwards: they become copies of
 * one that is. Sections may hold sections. */
static void graph(ad_real *v, uint32_t from, uint32_t to, bool preaccumulated, int depth)
{
    while (from < to) {
        const bool section = below(3) == 0 && depth < 3;
        uint32_t n = 1 + below(section ? 60 : 5);
        n = n < to - from ? n : to - from;
        if (!section) {
            for (uint32_t i = from; i < from + n; i++)
                v[i] = statement(v, i);
            from += n;
            continue;
        }
        const uint32_t m = 1 + below(12);
        if (preaccumulated)
            ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        graph(v, from, from + n, preaccumulated, depth + 1);
        ad_real y[12];
        for (uint32_t k = 0; k < m; k++) /* of the section's mostly */
            y[k] = v[below(4) ? from + below(n) : below(from + n)];
        if (preaccumulated) {
            ad_preaccumulated saved;
            ck_assert_msg(ad_preaccumulate_end(tape, m, y, &saved) == AD_OK, "%s",
                          ad_tape_message(tape));
            sections++;
            replaced += saved.replaced;
            nested += saved.replaced && depth > 0;
        }
        for (uint32_t i = 0, k = 0; i < n; i++, k = k + 1 < m ? k + 1 : 0)
            v[from + i] = y[k];
        from += n;
    }
}

/* One gradient and a Jacobian of several rows. */
static void run(uint64_t seed, bool preaccumulated, double *derivatives)
{
    ad_real v[INPUTS + NODES];
    double x[INPUTS];
    state = seed;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    for (int i = 0; i < INPUTS; i++)
        x[i] = 0.25 + below(1000) * 1e-3;
    ad_real_leaves(tape, INPUTS, x, v);
    graph(v, INPUTS, INPUTS + NODES, preaccumulated, 0);
    ad_real *y = &v[INPUTS + NODES - 9], sum = y[0];
    for (int i = 1; i < 9; i++)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(y[i], i)));
    ad_set(&sum, ad_real_add(sum, ad_real_mul(v[0], v[INPUTS])));
    ck_assert_msg(ad_real_backward(tape, sum) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_real_gradients(tape, INPUTS, v, derivatives), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 9, y, INPUTS, v, derivatives + INPUTS), AD_OK);
}

TEST(random_graphs_have_the_same_derivatives)
{
    replaced = nested = sections = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        double plain[INPUTS * 10], with[INPUTS * 10];
        run(seed, false, plain);
        run(seed, true, with);
        check_same(INPUTS * 10, plain, with);
    }
    ck_assert_int_gt(replaced, ROUNDS);
    ck_assert_int_gt(nested, ROUNDS / 4);
    ck_assert_int_gt(sections - replaced, ROUNDS / 4);
}

/* ---- time steps ---- */

static void lorenz(const ad_real *s, const ad_real *p, ad_real *d)
{
    ad_set(&d[0], ad_real_mul(p[0], ad_real_sub(s[1], s[0])));
    ad_set(&d[1], ad_real_sub(ad_real_mul(s[0], ad_real_sub(p[1], s[2])), s[1]));
    ad_set(&d[2], ad_real_sub(ad_real_mul(s[0], s[1]), ad_real_mul(p[2], s[2])));
}

/* A step of the classical Runge-Kutta method: 24 statements. */
static void step(ad_real *s, const ad_real *p, double h)
{
    ad_real k[4][3], at[3];
    static const double ahead[4] = {0.5, 0.5, 1, 0};
    memcpy(at, s, sizeof at);
    for (int stage = 0; stage < 4; stage++) {
        lorenz(at, p, k[stage]);
        for (int i = 0; i < 3 && stage < 3; i++)
            ad_set(&at[i], ad_real_add(s[i], ad_real_mul(h * ahead[stage], k[stage][i])));
    }
    for (int i = 0; i < 3; i++)
        ad_set(&s[i],
               ad_real_add(
                   s[i],
                   ad_real_mul(h / 6, ad_real_add(ad_real_add(k[0][i], ad_real_mul(2, k[1][i])),
                                                  ad_real_add(k[3][i], ad_real_mul(2, k[2][i]))))));
}

static void integrate(int steps, int each, double *g, ad_stats *stats)
{
    ad_real x[6];
    const double start[6] = {1, 1.5, 20, 10, 28, 8.0 / 3};
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_real_leaves(tape, 6, start, x);
    ad_real s[3] = {x[0], x[1], x[2]};
    for (int i = 0; i < steps; i++) {
        if (each && i % each == 0)
            ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        step(s, x + 3, 0.005);
        if (each && i % each == each - 1)
            ck_assert_int_eq(ad_preaccumulate_end(tape, 3, s, NULL), AD_OK);
    }
    ck_assert_int_eq(ad_tape_stats(tape, stats), AD_OK);
    ad_real y;
    ad_set(&y, ad_real_add(ad_real_mul(s[0], s[1]), s[2]));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 6, x, g), AD_OK);
}

TEST(time_steps_have_the_same_gradient_in_exactly_the_bytes_of_their_jacobians)
{
    double plain[6], g[6];
    ad_stats before, after;
    integrate(200, 0, plain, &before);
    ck_assert_uint_eq(before.statements, 200 * 24);
    for (int each = 1; each <= 20; each *= 4) {
        integrate(200 / each * each, each, g, &after);
        /* Three rows of three states and three parameters. */
        ck_assert_uint_eq(after.statements, (uint64_t)(200 / each) * 3);
        ck_assert_uint_eq(after.statement_bytes, (uint64_t)(200 / each) * 3 * STATEMENT(6, 0));
        if (200 % each == 0)
            check_same(6, plain, g);
    }
}

/* ---- an iteration ---- */

TEST(an_iteration_has_the_derivative_of_its_last_step)
{
    ad_preaccumulated saved;
    const ad_real a = ad_real_leaf(tape, 5);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ad_real y = ad_real_of(1);
    for (int i = 0; i < 30; i++) /* y - (y^3 - a) / (3 y^2) */
        ad_set(&y, ad_real_sub(y, ad_real_div(ad_real_sub(ad_real_pow(y, 3), a),
                                              ad_real_mul(3, ad_real_square(y)))));
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, &saved), AD_OK);
#ifdef NDEBUG /* y, which a statement names four times, is one operand where the compiler sees it */
    ck_assert_uint_ge(saved.bytes_before, 30 * STATEMENT(2, 0));
#else
    ck_assert_uint_eq(saved.bytes_before, 30 * STATEMENT(2, 0));
#endif
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(1, 0));
    ck_assert_uint_eq(saved.inputs, 1);
    ck_assert_double_eq_tol(y.value, cbrt(5), 1e-15);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, a), 1 / (3 * cbrt(25)), 1e-15);
}

RUN_TESTS(setup, teardown)
