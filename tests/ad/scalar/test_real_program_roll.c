/* test_real_program_roll.c: programs whose steps repeat are evaluated as loops, and give what their
 * steps give one by one: values and tangents bit for bit, adjoints to rounding.
 *
 * The reference walks over the steps that the tape has kept.
 */
#define AD_REAL_PROGRAM 1
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "ad_program_functions.h"
#include "run_cases.h"
#include "tape_roll.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static void setup(void)
{
    tape_begin(NULL);
}

static const struct tape_program *program(void)
{
    return ad_slots[tape.slot].tape->program;
}

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % n;
}

/* ---- one step after the other ---- */

/* By index. */
struct reference {
    double *value, *tangent, *adjoint, *second;
};

static const struct tape_step *reference_step(uint32_t i)
{
    const struct tape_step *s = tape_program_find(program(), i);
    return s && s->op ? s : NULL;
}

struct reference_slopes {
    double d[3], by[2][2]; /* second derivatives by the first two operands */
};

static struct reference_slopes reference_slopes(const struct reference *r,
                                                const struct tape_step *s, double *value)
{
    const struct program_function *f = &ad_program_loops()->function[s->op];
    struct reference_slopes to = {{0, 0, 0}, {{0, 0}, {0, 0}}};
    double dd[3] = {0, 0, 0};
    const double *of[OF_ALL];
    uint32_t constants = 0;
    for (uint32_t k = 0; k < f->arity; k++)
        of[k] = s->operand[k] ? &r->value[s->operand[k]] : &s->constant[constants++];
    of[OF_PARAMETER] = &s->constant[1];
    f->values(1, of, value);
    f->slopes(1, of, value, (double *[]){&to.d[0], &to.d[1], &to.d[2]});
    if (f->curves)
        f->curves(1, of, value, (double *[]){&to.d[0], &to.d[1], &to.d[2]},
                  (double *[]){&dd[0], &dd[1], &dd[2]});
    to.by[0][0] = dd[0];
    to.by[0][1] = to.by[1][0] = dd[1];
    to.by[1][1] = dd[2];
    return to;
}

static double times(double x, double d)
{
    return x == 0 ? 0 : x * d;
}

/* From values and tangents of leaves, and adjoints of results. */
static void reference_run(struct reference *r)
{
    const struct tape_program *p = program();
    for (uint32_t i = p->first; i < p->next; i++) {
        const struct tape_step *s = reference_step(i);
        if (!s)
            continue;
        const struct reference_slopes of = reference_slopes(r, s, &r->value[i]);
        r->tangent[i] = 0;
        for (int k = 0; k < 3; k++)
            if (s->operand[k])
                r->tangent[i] += times(r->tangent[s->operand[k]], of.d[k]);
    }
    for (uint32_t i = p->next; i-- > p->first;) {
        const struct tape_step *s = reference_step(i);
        if (!s)
            continue;
        double again;
        const struct reference_slopes of = reference_slopes(r, s, &again);
        for (int k = 0; k < 3; k++) {
            if (!s->operand[k])
                continue;
            double *const to = &r->second[s->operand[k]];
            r->adjoint[s->operand[k]] += times(r->adjoint[i], of.d[k]);
            *to += times(r->second[i], of.d[k]);
            for (int q = 0; q < 2 && k < 2; q++)
                if (s->operand[q] && r->adjoint[i] != 0 && of.by[k][q] != 0)
                    *to += times(r->tangent[s->operand[q]], r->adjoint[i] * of.by[k][q]);
        }
    }
}

static void check_near(double is, double want, double scale, const char *what)
{
    ck_assert_msg(fabs(is - want) <= 1e-12 * scale || (isnan(is) && isnan(want)),
                  "%s: %.17g, not %.17g", what, is, want);
}

static double largest(int n, const double *x)
{
    double most = 1e-300;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* y[m] of the program and x[n] at `at`, compared with the reference. The last y is differentiated
 * twice. */
static void check_program(int m, ad_real *y, int n, ad_real *x, const double *at)
{
    double *direction = calloc((size_t)n, sizeof *direction), *gradient, *product, *hessian;
    gradient = calloc((size_t)n, sizeof *gradient);
    product = calloc((size_t)n, sizeof *product);
    hessian = calloc((size_t)n * (size_t)n, sizeof *hessian);
    double *tangent = calloc((size_t)m, sizeof *tangent);
    check_ok(ad_tape_replay(tape, n, x, at, 0));
    for (int i = 0; i < n; i++)
        direction[i] = 0.25 + 0.125 * (i % 5);
    const size_t size = program()->next;
    struct reference r = {calloc(size, 8), calloc(size, 8), calloc(size, 8), calloc(size, 8)};
    for (uint32_t i = 0; i < size; i++) { /* leaves that are not named, too */
        const struct tape_step *s = tape_program_find(program(), i);
        r.value[i] = s ? s->value : 0;
    }
    for (int i = 0; i < n; i++) {
        r.value[x[i].index] = at[i];
        r.tangent[x[i].index] = direction[i];
    }
    r.adjoint[y[m - 1].index] = 1;
    reference_run(&r);

    check_ok(ad_real_update(tape, m, y));
    check_ok(ad_real_jvp(tape, m, y, n, x, direction, tangent));
    for (int i = 0; i < m; i++) {
        ck_assert_msg(y[i].value == r.value[y[i].index], "value %d of %d: %.17g, not %.17g", i, m,
                      y[i].value, r.value[y[i].index]);
        ck_assert_msg(tangent[i] == r.tangent[y[i].index], "tangent %d: %.17g, not %.17g", i,
                      tangent[i], r.tangent[y[i].index]);
    }
    for (int twice = 0; twice < 2; twice++) {
        if (twice)
            check_ok(ad_real_hvp(tape, y[m - 1], n, x, direction, product, gradient));
        else
            check_ok(ad_real_vjp(tape, 1, &y[m - 1], n, x, NULL, gradient));
        const double scale = largest(n, gradient);
        for (int i = 0; i < n; i++)
            check_near(gradient[i], r.adjoint[x[i].index], scale, "gradient");
    }
    check_ok(ad_real_hessian(tape, y[m - 1], n, x, hessian));
    const double scale = largest(n * n, hessian);
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++)
            sum += hessian[i * n + j] * direction[j];
        check_near(product[i], r.second[x[i].index], n * scale, "product");
        check_near(sum, product[i], n * scale, "hessian");
    }
    /* Sweeps over statements see the replay as well. */
    ad_tape_zero_gradients(tape);
    check_ok(ad_real_backward(tape, y[m - 1]));
    check_ok(ad_real_gradients(tape, n, x, gradient));
    for (int i = 0; i < n; i++)
        check_near(gradient[i], r.adjoint[x[i].index], largest(n, gradient), "sweep");
    void *const taken[] = {direction, gradient,  product,   hessian, tangent,
                           r.value,   r.tangent, r.adjoint, r.second};
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
        free(taken[k]);
}

/* ---- shapes of programs ---- */

enum { POINTS = 60, TIMES = 9 };
static ad_real x[POINTS], u[POINTS], v[POINTS], y;
static double at[POINTS], other[POINTS];

static void begin(int n)
{
    for (int i = 0; i < n; i++) {
        at[i] = 0.3 + 0.01 * (i % 37);
        other[i] = 0.5 - 0.02 * (i % 11);
    }
    check_ok(ad_real_leaves(tape, n, at, x));
    check_ok(ad_tape_program_begin(tape));
    y = ad_real_of(0);
}

static void end(void)
{
    check_ok(ad_tape_program_end(tape));
}

/* Steps of bodies of loops with at least so many rounds, and of all. */
static uint32_t body_steps(uint32_t rounds)
{
    const struct tape_roll *r = program()->roll;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n_loops; k++)
        n += r->loop[k].rounds >= rounds ? r->loop[k].length : 0;
    return n;
}

static ad_real burgers_point(ad_real left, ad_real at_, ad_real right)
{
    return ad_real_of(ad_real_sub(
        at_,
        ad_real_sub(ad_real_mul(ad_real_mul(0.1, at_), ad_real_sub(right, left)),
                    ad_real_mul(0.2, ad_real_add(ad_real_sub(right, ad_real_mul(2, at_)), left)))));
}

/* `odd`: at one point of one step: 1: it reads the wrong neighbour, 2: it has another function, 3:
 * one function more, 4: it is left out. */
static void burgers(int odd)
{
    memcpy(u, x, sizeof u);
    for (int s = 0; s < TIMES; s++) {
        memcpy(v, u, sizeof v);
        for (int i = 1; i + 1 < POINTS; i++) {
            const bool here = odd && s == 4 && i == 31;
            if (here && odd == 4)
                continue;
            v[i] = burgers_point(u[here && odd == 1 ? i - 7 : i - 1], u[i], u[i + 1]);
            if (here && odd == 2)
                ad_set(&v[i], ad_real_sub(v[i], ad_real_sin(u[i + 1])));
            if (here && odd == 3)
                ad_set(&v[i], ad_real_tanh(v[i]));
        }
        memcpy(u, v, sizeof u);
    }
    for (int i = 0; i < POINTS; i++)
        ad_set(&y, ad_real_add(y, ad_real_square(u[i])));
}

TEST(burgers_is_two_loops_and_their_begin)
{
    begin(POINTS);
    burgers(0);
    end();
    const struct tape_roll *r = program()->roll;
    ck_assert_uint_eq(r->n_loops, 3); /* and the first sum, to a constant */
    ck_assert_uint_eq(r->loop[0].length, 9);
    ck_assert_uint_eq(r->loop[0].rounds, TIMES * (POINTS - 2));
    ck_assert_uint_eq(r->loop[0].n_kept, 1);
    ck_assert_uint_eq(r->loop[0].n_chains, 0);
    ck_assert_uint_ge(r->loop[0].block, 16);
    ck_assert_uint_le(r->n_steps, 13);
    /* A row is a progression, and the two rounds where the next one begins are listed. */
    ck_assert_uint_le(r->loop[0].n_stretches, 2 * TIMES);
    ck_assert_uint_le(r->n_lists, 3 * 3 * TIMES);
    check_program(1, &y, POINTS, x, other);
}

TEST(what_nearly_repeats_is_what_it_is)
{
    for (int odd = 1; odd <= 4; odd++) {
        ad_tape_reset(tape);
        begin(POINTS);
        burgers(odd);
        end();
        ck_assert_uint_le(program()->roll->n_steps, 80);
        ad_real several[] = {v[31], v[32], u[5], y};
        check_program(4, several, POINTS, x, other);
    }
}

/* Values of the middle of a round, which nobody kept, can be asked for. */
TEST(passing_values_are_kept_when_asked)
{
    begin(POINTS);
    ad_real of[3] = {{0}};
    for (int i = 0; i < POINTS; i++) {
        const ad_real square = ad_real_of(ad_real_square(x[i])),
                      sine = ad_real_of(ad_real_sin(square));
        ad_set(&y, ad_real_add(y, ad_real_exp(sine)));
        if (i % 20 == 7)
            of[i / 20] = i < 20 ? square : sine;
    }
    end();
    const uint32_t before = program()->roll->n_positions;
    ad_real several[] = {of[0], of[1], of[2], y};
    double tangent[4], direction[POINTS] = {0};
    direction[7] = 1;
    check_ok(ad_real_jvp(tape, 4, several, POINTS, x, direction, tangent));
    ck_assert(tangent[0] == 2 * at[7] && tangent[1] == 0);
    ck_assert_uint_eq(program()->roll->n_positions, before + 2 * POINTS - 2);
    check_program(4, several, POINTS, x, other);
    check_ok(ad_real_update(tape, 4, several));
    ck_assert(several[0].value == other[7] * other[7]);
}

/* One value goes from round to round: nothing goes together but what is beside it. */
TEST(recurrences)
{
    for (int distance = 1; distance <= 40; distance += distance < 4 ? 1 : 12) {
        ad_tape_reset(tape);
        begin(POINTS);
        memcpy(u, x, sizeof u);
        for (int i = 0; i < 400; i++) {
            ad_real *const to = &u[i % distance];
            const ad_real beside = ad_real_of(ad_real_sin(ad_real_mul(x[i % POINTS], 0.01 * i)));
            ad_set(to, ad_real_add(ad_real_mul(ad_real_cos(*to), 0.75), beside));
            ad_set(&y, ad_real_add(y, ad_real_mul(*to, x[(i * 7) % POINTS])));
        }
        end();
        ck_assert_uint_ge(body_steps(50), 4);
        ck_assert_uint_le(program()->roll->n_steps, 40);
        check_program(2, (ad_real[]){u[0], y}, POINTS, x, other);
    }
}

/* A long chain whose body has many lengths that are tried in vain: each only once, or this takes
 * minutes. */
TEST(long_recurrences_are_found_soon)
{
    begin(3);
    memcpy(u, x, 3 * sizeof *u);
    for (int i = 0; i < 3000; i++)
        for (int stage = 0; stage < 4; stage++) {
            ad_real k[3];
            ad_set(&k[0], ad_real_mul(10, ad_real_sub(u[1], u[0])));
            ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(28, u[2])), u[1]));
            ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(2.5, u[2])));
            for (int d = 0; d < 3; d++)
                ad_set(&u[d], ad_real_add(u[d], ad_real_mul(stage < 2 ? 0.0001 : 0.0002, k[d])));
            if (stage == 3)
                ad_set(&u[0], ad_real_mul(u[0], 0.999));
        }
    ad_set(&y, ad_real_add(ad_real_mul(u[0], u[1]), u[2]));
    end();
    ck_assert_uint_le(program()->roll->n_steps, 200); /* of 168 000 */
}

/* Sums within rounds within rounds. */
TEST(nested_loops)
{
    begin(POINTS);
    for (int i = 0; i < 40; i++) {
        ad_real outer = ad_real_of(0);
        for (int k = 0; k < 5; k++) {
            ad_real inner = ad_real_of(ad_real_mul(x[k], 0.5));
            for (int j = 0; j < 6; j++)
                ad_set(&inner, ad_real_add(inner, ad_real_square(ad_real_sub(x[10 * k + j],
                                                                             0.1 * i + 0.3 * j))));
            ad_set(&outer, ad_real_add(ad_real_mul(outer, 0.5), ad_real_exp(ad_real_neg(inner))));
        }
        ad_set(&y, ad_real_add(y, ad_real_log(ad_real_add(outer, 1))));
    }
    end();
    ck_assert_uint_lt(program()->roll->n_steps, 300); /* of 4000 */
    check_program(1, &y, POINTS, x, other);
}

/* ---- questions ---- */

/* A comparison in a round that goes the other way is found, with its line; nothing is changed. */
TEST(questions_in_loops)
{
    begin(POINTS);
    int line = 0;
    for (int i = 0; i < POINTS; i++) {
        const ad_real square = ad_real_of(ad_real_square(x[i]));
        line = __LINE__ + 1;
        const bool less = ad_real_less(square, 1);
        ad_set(&y, ad_real_add(y, ad_real_mul(square, less ? 2 : 3)));
    }
    end();
    check_program(1, &y, POINTS, x, other);
    double before[POINTS], after[POINTS], too_large[POINTS];
    check_ok(ad_real_vjp(tape, 1, &y, POINTS, x, NULL, before));
    for (int i = 0; i < POINTS; i++)
        too_large[i] = i == 41 ? 1.5 : 0.25;
    ck_assert_int_eq(ad_tape_replay(tape, POINTS, x, too_large, 0), AD_ERROR_STATE);
    char where[64];
    snprintf(where, sizeof where, "test_real_program_roll.c:%d", line);
    ck_assert_msg(strstr(ad_tape_message(tape), where) != NULL, "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    check_ok(ad_real_vjp(tape, 1, &y, POINTS, x, NULL, after));
    ck_assert_mem_eq(before, after, sizeof before);
}

/* ---- rounds that depend on the one before ---- */

enum { USUAL = 14 };

static ad_real usual_function(int which, ad_real a, ad_real b, double constant)
{
    switch (which) {
    case 0:
        return ad_real_of(ad_real_neg(a));
    case 1:
        return ad_real_of(ad_real_square(a));
    case 2:
        return ad_real_of(ad_real_reciprocal(a));
    case 3:
        return ad_real_of(ad_real_sqrt(a));
    case 4:
        return ad_real_of(ad_real_add(a, b));
    case 5:
        return ad_real_of(ad_real_sub(a, b));
    case 6:
        return ad_real_of(ad_real_sub(b, a));
    case 7:
        return ad_real_of(ad_real_sub(constant, a));
    case 8:
        return ad_real_of(ad_real_mul(a, b));
    case 9:
        return ad_real_of(ad_real_mul(a, a));
    case 10:
        return ad_real_of(ad_real_mul(a, constant));
    case 11:
        return ad_real_of(ad_real_div(a, b));
    case 12:
        return ad_real_of(ad_real_div(b, a));
    default:
        return ad_real_of(ad_real_div(a, constant));
    }
}

/* Each usual function among others, of the round before, of a number and of constants: which are
 * side by side or every other one, the same or not. Values that nobody wants have adjoint 0. */
TEST(rounds_that_depend_on_the_one_before)
{
    for (int stride = 1; stride <= 2; stride++) {
        ad_tape_reset(tape);
        begin(POINTS);
        ad_real several[USUAL];
        y = x[1];
        for (int which = 0; which < USUAL; which++) {
            ad_real before = y;
            for (int r = 0; r < 29; r++) {
                const double constant = stride == 1 ? 0.75 : 0.75 + 0.01 * r;
                const ad_real next = usual_function(which, before, x[r * stride], constant);
                before = ad_real_of(ad_real_add(1, ad_real_mul(0.25, ad_real_sin(next))));
                ad_set(&y, ad_real_add(y, ad_real_mul(next, before)));
            }
            several[which] = before;
            y = ad_real_of(ad_real_add(1, ad_real_div(y, 100)));
        }
        end();
        const struct tape_roll *r = program()->roll;
        uint32_t in_code = 0;
        for (uint32_t k = 0; k < r->n_chains; k++)
            in_code += r->chain[k].width == 1 ? r->chain[k].end - r->chain[k].begin : 0;
        ck_assert_uint_ge(in_code, USUAL * 3);
        several[USUAL - 1] = y;
        check_program(USUAL, several, POINTS, x, other);
    }
}

/* ---- random ones ---- */

static ad_real random_function(ad_real a, ad_real b, uint32_t which, double constant)
{
    switch (which) {
    case 0:
        return ad_real_of(ad_real_add(a, b));
    case 1:
        return ad_real_of(ad_real_sub(a, b));
    case 2:
        return ad_real_of(ad_real_mul(a, b));
    case 3:
        return ad_real_of(ad_real_mul(constant, a));
    case 4:
        return ad_real_of(ad_real_sin(a));
    case 5:
        return ad_real_of(ad_real_tanh(b));
    case 6:
        return ad_real_of(ad_real_div(constant, ad_real_add(2, ad_real_square(a))));
    case 7:
        return ad_real_of(ad_real_fma(a, constant, b));
    default:
        return ad_real_of(ad_real_jn((int)which - 8, a));
    }
}

/* Loops whose rounds read shared numbers, each other's, those of the loop before, and their own
 * of before; now and then a round is odd. */
static void random_loop(int rounds, int length)
{
    uint32_t function[12], first[12], second[12];
    ad_real before = y;
    for (int j = 0; j < length; j++) {
        function[j] = below(11);
        first[j] = below(6);
        second[j] = below(6);
    }
    for (int r = 0; r < rounds; r++) {
        ad_real local = u[r % POINTS];
        const bool odd = below(40) == 0;
        for (int j = 0; j < length; j++) {
            const ad_real from[] = {local, x[r % POINTS], u[(r + 1) % POINTS],
                                    x[3],  before,        u[r % 9]};
            const ad_real a = from[odd ? below(6) : first[j]], b = from[second[j]];
            local = random_function(a, b, function[j], j % 2 ? 0.5 : 0.01 * (r % 50));
        }
        ad_set(&local, ad_real_tanh(local)); /* bounded */
        u[(r * 3) % POINTS] = local;
        if (below(2) || rounds % 2)
            before = local;
    }
    ad_set(&y, ad_real_add(y, before));
}

TEST(random_programs)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        state = seed;
        ad_tape_reset(tape);
        begin(POINTS);
        memcpy(u, x, sizeof u);
        y = x[0];
        for (int k = 0; k < 3; k++)
            random_loop(5 + (int)below(90), 1 + (int)below(9));
        ad_set(&y, ad_real_mul(y, x[1]));
        end();
        ad_real several[] = {u[1], u[20], u[40], y};
        for (int i = 0; i < 3; i++) /* some are leaves still, that nobody read */
            if (u[20 * i + (i == 0)].index == x[20 * i + (i == 0)].index)
                several[i] = y;
        check_program(4, several, POINTS, x, other);
    }
}

/* ---- calls ---- */

TEST(gradients_of_several_results)
{
    double gradient[POINTS];
    begin(POINTS);
    burgers(0);
    end();
    check_ok(ad_real_vjp(tape, 3, (ad_real[]){y, x[2], ad_real_of(7)}, POINTS, x,
                         (double[]){0, 2.5, 9}, gradient));
    for (int i = 0; i < POINTS; i++)
        ck_assert(gradient[i] == (i == 2 ? 2.5 : 0));
    ad_real later = ad_real_leaf(tape, 3);
    check_ok(
        ad_real_vjp(tape, 2, (ad_real[]){later, later}, 1, &later, (double[]){1, 2}, gradient));
    ck_assert(gradient[0] == 3);
    ck_assert_int_eq(ad_real_vjp(tape, 1, NULL, POINTS, x, NULL, gradient), AD_ERROR_ARGUMENT);
    ck_assert(isnan(gradient[0]) && isnan(gradient[POINTS - 1]));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_real_vjp(tape, -1, &y, POINTS, x, NULL, gradient), AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
    const ad_real after = ad_real_of(ad_real_mul(y, 2));
    ck_assert_int_eq(ad_real_vjp(tape, 1, &after, POINTS, x, NULL, gradient), AD_ERROR_HANDLE);
    ad_tape_clear_error(tape);
}

/* What reads derivatives of statements sees those of the replay, whichever call comes first. */
TEST(sparse_rows_after_a_replay)
{
    double values[POINTS], product[POINTS];
    begin(POINTS);
    for (int i = 0; i < POINTS; i++)
        u[i] = ad_real_of(ad_real_sin(x[i]));
    end();
    ad_sparse_pattern p;
    check_ok(ad_real_jacobian_pattern(tape, POINTS, u, POINTS, x, &p));
    check_ok(ad_tape_replay(tape, POINTS, x, other, 0));
    check_ok(ad_real_jacobian_sparse(tape, POINTS, u, POINTS, x, &p, values));
    for (int i = 0; i < POINTS; i++)
        check_near(values[i], cos(other[i]), 1, "sparse");
    ad_sparse_free(&p);
    check_ok(ad_tape_replay(tape, POINTS, x, at, 0));
    check_ok(ad_real_backward(tape, u[3]));
    check_ok(ad_real_gradients(tape, POINTS, x, product));
    check_near(product[3], cos(at[3]), 1, "sweep");
}

/* A mark between a program's end and its replays: the roll is made again after a rewind that took
 * it, with what the newest replay has found. */
TEST(a_rewind_keeps_what_was_replayed)
{
    double gradient[POINTS], again[POINTS];
    begin(POINTS);
    memcpy(u, x, sizeof u);
    for (int i = 0; i < POINTS; i++)
        ad_set(&y, ad_real_add(y, ad_real_square(burgers_point(x[0], x[i], x[1]))));
    const ad_real half = y;
    const ad_mark within = ad_tape_mark(tape);
    for (int i = 0; i < POINTS; i++)
        ad_set(&y, ad_real_add(y, ad_real_sin(x[i])));
    end();
    check_ok(ad_tape_replay(tape, POINTS, x, other, 0));
    check_ok(ad_real_vjp(tape, 1, &half, POINTS, x, NULL, gradient));
    check_ok(ad_tape_rewind(tape, within));
    check_ok(ad_real_vjp(tape, 1, &half, POINTS, x, NULL, again));
    ck_assert_mem_eq(gradient, again, sizeof again);
    ad_tape_zero_gradients(tape);
    check_ok(ad_real_backward(tape, half));
    check_ok(ad_real_gradients(tape, POINTS, x, again));
    for (int i = 0; i < POINTS; i++)
        check_near(again[i], gradient[i], largest(POINTS, gradient), "sweep");
}

/* What was a program is statements again when another begins: with the values of the replay. */
TEST(another_program_leaves_derivatives_of_the_replay)
{
    double gradient[2];
    begin(2);
    for (int i = 0; i < 30; i++)
        ad_set(&y, ad_real_add(y, ad_real_mul(x[0], ad_real_sin(x[1]))));
    end();
    check_ok(ad_tape_replay(tape, 2, x, (double[]){2, 0.25}, 0));
    check_ok(ad_tape_program_begin(tape));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_backward(tape, y));
    check_ok(ad_real_gradients(tape, 2, x, gradient));
    check_near(gradient[0], 30 * sin(0.25), 10, "by x[0]");
    check_near(gradient[1], 60 * cos(0.25), 10, "by x[1]");
}

RUN_TESTS(setup, teardown_fine)
