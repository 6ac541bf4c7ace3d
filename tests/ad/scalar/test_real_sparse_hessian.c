/* test_real_sparse_hessian.c: sparse Hessians of programs of numbers: patterns against hand-written
 * ones, patterns and values against dense Hessians of random programs and of every function, and
 * what is refused.
 */
#define AD_REAL_PROGRAM 1
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "pattern_text.h"
#include "run_cases.h"
#include "tape_sparse.h"

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

TEST(a_pattern_is_of_what_curved_functions_join)
{
    ad_real x[6];
    check_ok(ad_real_leaves(tape, 6, (double[]){2, 3, 5, 7, 11, 13}, x));
    check_ok(ad_tape_program_begin(tape));
    const ad_real a = ad_real_of(ad_real_mul(x[0], x[1])), /* linear in each */
        b = ad_real_of(ad_real_add(a, ad_real_mul(2, x[2]))),
                  c = ad_real_of(ad_real_mul(b, x[3])), /* joins 3 with 0, 1 and 2 */
        unused = ad_real_of(ad_real_exp(x[4])),
                  d = ad_real_of(
                      ad_real_mul(0, ad_real_sin(x[5]))), /* 0 everywhere, which nobody knows */
        y = ad_real_of(ad_real_add(c, ad_real_add(d, x[4])));
    check_ok(ad_tape_program_end(tape));
    ad_sparse_pattern p;
    check_ok(ad_real_hessian_pattern(tape, y, 6, x, &p));
    ck_assert_str_eq(text_of(&p), "1 3 | 0 3 | 3 | 0 1 2 | | 5 | ");
    double values[9];
    ck_assert_int_eq(p.n_values, 9);
    check_ok(ad_real_hessian_sparse(tape, y, 6, x, &p, values));
    const double want[] = {7, 3, 7, 2, 2, 3, 2, 2, 0};
    ck_assert_mem_eq(values, want, sizeof want);
    ck_assert_int_ne((int)unused.index, 0);

    /* A replay has other values of the same pattern; others of x are constants. */
    check_ok(ad_tape_replay(tape, 6, x, (double[]){1, 4, 5, 10, 0, 0}, 0));
    check_ok(ad_real_hessian_sparse(tape, y, 6, x, &p, values));
    ck_assert_mem_eq(values, ((double[]){10, 4, 10, 1, 2, 4, 1, 2, 0}), sizeof want);
    ad_sparse_free(&p);
    check_ok(ad_real_hessian_pattern(tape, y, 2, (ad_real[]){x[3], x[1]}, &p));
    ck_assert_str_eq(text_of(&p), "1 | 0 | ");
    check_ok(ad_real_hessian_sparse(tape, y, 2, (ad_real[]){x[3], x[1]}, &p, values));
    ck_assert_mem_eq(values, ((double[]){1, 1}), 16);
    ad_sparse_free(&p);

    const ad_real flat[] = {x[2], ad_real_of(3)};
    for (int k = 0; k < 2; k++) {
        check_ok(ad_real_hessian_pattern(tape, flat[k], 6, x, &p));
        ck_assert_str_eq(text_of(&p), "| | | | | | ");
        check_ok(ad_real_hessian_sparse(tape, flat[k], 6, x, &p, NULL));
        ad_sparse_free(&p);
    }
    check_ok(ad_real_hessian_pattern(tape, y, 0, NULL, &p));
    ck_assert_int_eq(p.m + p.n_values, 0);
    check_ok(ad_real_hessian_sparse(tape, y, 0, NULL, &p, NULL));
    ad_sparse_free(&p);
}

/* The sparse Hessian is the dense one: symmetric, and nothing is missing. */
static void compare_dense(const ad_sparse_pattern *p, ad_real y, int64_t n, const ad_real *x,
                          const char *what)
{
    double *dense = malloc((size_t)(n * n) * sizeof *dense),
           *values = malloc((size_t)(p->n_values + 1) * sizeof *values), most = 1;
    check_ok(ad_real_hessian(tape, y, n, x, dense));
    check_ok(ad_real_hessian_sparse(tape, y, n, x, p, values));
    for (int64_t k = 0; k < n * n; k++)
        most = fmax(most, fabs(dense[k]));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = p->row_start[i]; e < p->row_start[i + 1]; e++) {
            const int64_t j = p->column[e];
            double *d = &dense[i * n + j];
            ck_assert_msg(e == p->row_start[i] || p->column[e - 1] < j,
                          "%s: columns of row %d do not rise", what, (int)i);
            ck_assert_msg(fabs(values[e] - *d) <= 1e-12 * most, "%s: [%d,%d] is %.17g, dense %.17g",
                          what, (int)i, (int)j, values[e], *d);
            *d = 0;
            int64_t mirror = p->row_start[j];
            while (mirror < p->row_start[j + 1] && p->column[mirror] != i)
                mirror++;
            ck_assert_msg(mirror < p->row_start[j + 1] &&
                              memcmp(&values[mirror], &values[e], sizeof *values) == 0,
                          "%s: [%d,%d] is not symmetric", what, (int)i, (int)j);
        }
        for (int64_t j = 0; j < n; j++)
            ck_assert_msg(dense[i * n + j] == 0, "%s: [%d,%d] is missing", what, (int)i, (int)j);
    }
    free(dense);
    free(values);
}

/* ---- every function ---- */

TEST(every_function_has_the_pairs_that_it_bends)
{
    static const double at[] = {0.62, 1.37, 1.9};
    ad_real x[3];
    ad_sparse_pattern p;
#define WITH(name, formula)                                                                        \
    check_ok(ad_real_leaves(tape, 3, at, x));                                                      \
    check_ok(ad_tape_program_begin(tape));                                                         \
    {                                                                                              \
        const ad_real y = ad_real_of(formula);                                                     \
        check_ok(ad_tape_program_end(tape));                                                       \
        check_ok(ad_real_hessian_pattern(tape, y, 3, x, &p));                                      \
        compare_dense(&p, y, 3, x, #name);                                                         \
    }                                                                                              \
    ad_sparse_free(&p);                                                                            \
    check_ok(ad_tape_reset(tape));
#define ONE(name, ...)                                                                             \
    WITH(name, ad_real_##name(x[strcmp(#name, "acosh") == 0 ? 2 : 0]))                             \
    WITH(name, ad_real_mul(x[1], ad_real_##name(                                                   \
                                     ad_real_mul(x[strcmp(#name, "acosh") == 0 ? 2 : 0], x[1]))))
#define TWO(name, ...)                                                                             \
    WITH(name, ad_real_##name(x[0], x[1]))                                                         \
    WITH(name, ad_real_##name(x[1], x[1]))                                                         \
    WITH(name, ad_real_##name(x[2], 0.75))                                                         \
    WITH(name, ad_real_##name(ad_real_mul(x[1], x[2]), ad_real_square(x[0])))
    AD_REAL_FUNCTIONS_(ONE)
    AD_REAL_FUNCTIONS2_(TWO)
    int exponent;
    double whole;
    WITH(ldexp, ad_real_mul(x[1], ad_real_ldexp(ad_real_square(x[0]), 3)))
    WITH(modf, ad_real_mul(x[1], ad_real_modf(ad_real_square(x[0]), &whole)))
    WITH(frexp, ad_real_mul(x[1], ad_real_frexp(ad_real_square(x[0]), &exponent)))
    WITH(remquo, ad_real_remquo(ad_real_mul(x[0], x[1]), ad_real_square(x[2]), &exponent))
    WITH(jn, ad_real_jn(3, ad_real_mul(x[0], x[1])))
    WITH(yn, ad_real_yn(2, ad_real_mul(x[0], x[1])))
    WITH(fma, ad_real_fma(x[0], x[1], x[2]))
    WITH(fma_same, ad_real_mul(x[1], ad_real_fma(x[0], x[0], x[0])))
    WITH(fma_number, ad_real_square(ad_real_fma(2, x[1], x[0])))
}

/* ---- random programs ---- */

enum { X = 24, STEPS = 150, NUMBERS = X + STEPS };

static uint32_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

/* Leaves are joined in any order, so that pairs have the greater index on either side; and some by
 * all others, so that their pairs are many. */
static ad_real record_random(const ad_real *x, uint32_t hub)
{
    ad_real number[NUMBERS], y = ad_real_of(0);
    memcpy(number, x, X * sizeof *x);
    for (uint32_t i = X; i < NUMBERS; i++) {
        const uint32_t from = random_below(3) ? i - 6 : 0;
        const ad_real a = number[from + random_below(i - from)], b = number[random_below(X)],
                      c = number[from + random_below(i - from)];
        switch (random_below(7)) {
        case 0:
            number[i] = ad_real_of(ad_real_mul(ad_real_sin(a), b));
            break;
        case 1:
            number[i] = ad_real_of(ad_real_add(a, ad_real_mul(0.5, c)));
            break;
        case 2:
            number[i] = ad_real_of(ad_real_tanh(ad_real_fma(a, b, c)));
            break;
        case 3:
            number[i] = ad_real_of(ad_real_mul(0, ad_real_mul(a, c)));
            break;
        case 4:
            number[i] = random_below(2) ? ad_real_of(0.5) : x[random_below(X)];
            break;
        case 5:
            number[i] = ad_real_of(ad_real_div(b, ad_real_add(2, ad_real_square(a))));
            break;
        default:
            number[i] = ad_real_of(ad_real_square(ad_real_sub(b, c)));
        }
        if (random_below(4) == 0)
            y = ad_real_of(ad_real_add(y, number[i]));
    }
    for (uint32_t i = 0; hub && i < X; i++)
        y = ad_real_of(ad_real_add(y, ad_real_mul(number[hub - 1], ad_real_square(x[i]))));
    return y;
}

TEST(values_are_those_of_dense_hessians)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        ad_real x[X];
        double start[X];
        char what[32];
        state = seed;
        for (int i = 0; i < X; i++)
            start[i] = 0.25 + random_below(1000) / 1000.0;
        check_ok(ad_real_leaves(tape, X, start, x));
        check_ok(ad_tape_program_begin(tape));
        const ad_real y = record_random(x, seed % 3 == 0   ? 0
                                           : seed % 3 == 1 ? 1 + random_below(X)
                                                           : X + random_below(STEPS));
        check_ok(ad_tape_program_end(tape));
        ad_sparse_pattern p;
        snprintf(what, sizeof what, "seed %u", seed);
        check_ok(ad_real_hessian_pattern(tape, y, X, x, &p));
        compare_dense(&p, y, X, x, what);
        for (int i = 0; i < X; i++)
            start[i] = -0.5 + random_below(1000) / 1000.0;
        check_ok(ad_tape_replay(tape, X, x, start, 0));
        compare_dense(&p, y, X, x, what);
        ad_sparse_free(&p);
        check_ok(ad_tape_reset(tape));
    }
}

TEST(a_full_row_of_many_numbers_is_found)
{
    enum { MANY = 3000 };
    ad_real *x = malloc(MANY * sizeof *x);
    double *at = malloc(MANY * sizeof *at), *values = malloc(3 * MANY * sizeof *values);
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < MANY; i++)
            at[i] = 1 + i * 1e-3;
        check_ok(ad_real_leaves(tape, MANY, at, x));
        check_ok(ad_tape_program_begin(tape));
        const int hub = last ? MANY - 1 : 0;
        ad_real y = ad_real_of(0);
        for (int i = 0; i < MANY; i++)
            if (i != hub)
                ad_set(&y, ad_real_add(y, ad_real_mul(x[hub], ad_real_square(x[i]))));
        check_ok(ad_tape_program_end(tape));
        ad_sparse_pattern p;
        check_ok(ad_real_hessian_pattern(tape, y, MANY, x, &p));
        ck_assert_int_eq(p.n_values, 3 * (MANY - 1));
        check_ok(ad_real_hessian_sparse(tape, y, MANY, x, &p, values));
        for (int64_t i = 0; i < MANY; i++)
            for (int64_t e = p.row_start[i]; e < p.row_start[i + 1]; e++) {
                const int64_t j = p.column[e];
                ck_assert(i == j || i == hub || j == hub);
                ck_assert_double_eq(values[e], i == j ? 2 * at[hub] : 2 * at[i == hub ? j : i]);
            }
        ad_sparse_free(&p);
        check_ok(ad_tape_reset(tape));
    }
    free(x);
    free(at);
    free(values);
}

/* ---- what is refused ---- */

static ad_real product(ad_real a, ad_real b)
{
    return ad_real_of(ad_real_mul(a, b));
}

TEST(what_is_no_hessian_of_a_program_is_refused)
{
    ad_real x[3];
    ad_sparse_pattern p = {0}, jacobian;
    double values[4];
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    ad_real y = product(x[0], x[1]);
    check_call_refused(ad_real_hessian_pattern(tape, y, 3, x, &p), AD_ERROR_STATE,
                       "real_hessian_pattern: the tape has no program");
    check_ok(ad_tape_program_begin(tape));
    const ad_real z = product(x[0], x[1]);
    check_ok(ad_tape_program_end(tape));
    check_call_refused(ad_real_hessian_pattern(tape, y, 3, x, &p), AD_ERROR_HANDLE,
                       "y is neither a step of the program nor a leaf");
    check_call_refused(ad_real_hessian_pattern(tape, z, 1, &y, &p), AD_ERROR_HANDLE,
                       "x[0] is no leaf");
    y = ad_real_of(1);
    check_call_refused(ad_real_hessian_pattern(tape, z, 1, &y, &p), AD_ERROR_HANDLE,
                       "x[0] is a constant");
    check_call_refused(ad_real_hessian_pattern(tape, z, 2, (ad_real[]){x[0], x[0]}, &p),
                       AD_ERROR_ARGUMENT,
                       "real_hessian_pattern: x[1] is x[0] too at test_real_sparse_hessian.c:");
    check_call_refused(ad_real_hessian_pattern(tape, z, 3, x, NULL), AD_ERROR_ARGUMENT,
                       "pattern is a null pointer");
    check_call_refused(ad_real_hessian_pattern(tape, z, -3, x, &p), AD_ERROR_ARGUMENT,
                       "a number is negative");
    check_ok(ad_real_jacobian_pattern(tape, 1, &z, 3, x, &jacobian));
    check_ok(ad_real_hessian_pattern(tape, z, 3, x, &p));
    check_call_refused(ad_real_hessian_sparse(tape, z, 3, x, &jacobian, values), AD_ERROR_ARGUMENT,
                       "real_hessian_sparse: the pattern is of a Jacobian of numbers at ");
    ck_assert(isnan(values[0]) && isnan(values[1]));
    check_call_refused(ad_real_jacobian_sparse(tape, 3, x, 3, x, &p, values), AD_ERROR_ARGUMENT,
                       "the pattern is of a Hessian of numbers");
    check_call_refused(ad_real_hessian_sparse(tape, z, 2, x, &p, values), AD_ERROR_ARGUMENT,
                       "the pattern is of [3,3], y and x make [2,2]");
    check_call_refused(ad_real_hessian_sparse(tape, z, 3, x, &p, NULL), AD_ERROR_ARGUMENT,
                       "values is a null pointer");
    ad_sparse_free(&jacobian);

    check_ok(ad_tape_reset(tape));
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    check_ok(ad_tape_program_begin(tape));
    y = product(x[0], x[2]);
    check_ok(ad_tape_program_end(tape));
    check_call_refused(
        ad_real_hessian_sparse(tape, y, 3, x, &p, values), AD_ERROR_STATE,
        "y depends on x[2] times x[0], which the pattern does not have: it was found for "
        "another recording at test_real_sparse_hessian.c:");
    ck_assert(isnan(values[0]) && isnan(values[1]));
    ad_sparse_free(&p);
}

TEST(a_sparse_jacobian_is_of_the_newest_replay)
{
    ad_real x[3], y[2];
    ad_sparse_pattern p;
    double values[4], dense[6];
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    check_ok(ad_tape_program_begin(tape));
    y[0] = product(x[0], ad_real_of(ad_real_sin(x[1])));
    y[1] = product(x[1], x[2]);
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_jacobian_pattern(tape, 2, y, 3, x, &p));
    check_ok(ad_tape_replay(tape, 3, x, (double[]){0.5, 0.25, -1}, 0));
    check_ok(ad_real_jacobian_sparse(tape, 2, y, 3, x, &p, values));
    check_ok(ad_real_jacobian(tape, 2, y, 3, x, dense));
    ck_assert_mem_eq(values, ((double[]){sin(0.25), 0.5 * cos(0.25), -1, 0.25}), sizeof values);
    ck_assert_mem_eq(values, dense, 2 * sizeof *values);
    ck_assert_mem_eq(values + 2, dense + 4, 2 * sizeof *values);
    ad_sparse_free(&p);
}

/* ---- in a profile ---- */

TEST(costs_are_on_the_lines_of_the_calls)
{
    ad_real x[2];
    ad_sparse_pattern p;
    double values[4];
    teardown();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    check_ok(ad_real_leaves(tape, 2, (double[]){2, 3}, x));
    check_ok(ad_tape_program_begin(tape));
    const ad_real y = product(product(x[0], x[1]), x[0]);
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian_pattern(tape, y, 2, x, &p));
    check_ok(ad_real_hessian_sparse(tape, y, 2, x, &p, values));
    const struct tape_ledger *l = observe_ledger();
    const char *const calls[] = {"real_hessian_pattern", "real_hessian_sparse"};
    for (int k = 0; k < 2; k++) {
        const struct tape_row *row = observe_row(l, calls[k]);
        ck_assert_uint_gt(row->adjoint_bytes, 0);
        ck_assert_uint_eq(row->live_bytes, 0);
        ck_assert_uint_gt(row->backward_ticks, 0);
    }
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
    ad_sparse_free(&p);
}

RUN_TESTS(setup, teardown_fine)
