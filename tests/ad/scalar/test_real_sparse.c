/* test_real_sparse.c: sparse Jacobians of numbers: patterns against hand-written ones, patterns and
 * values against dense Jacobians of random recordings, and what is refused.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "pattern_text.h"
#include "run_cases.h"
#include "tape_memory.h"
#include "tape_sparse.h"

#include <check.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static void setup(void)
{
    tape_begin(NULL);
}

TEST(a_pattern_is_what_the_formulas_name)
{
    ad_real x[5], y[6];
    double v[10];
    check_ok(ad_real_leaves(tape, 5, (double[]){2, 3, 5, 7, 11}, x));
    ad_set(&y[0], ad_real_mul(x[1], x[0]));
    y[1] = ad_real_of(4);
    y[2] = x[2];
    ad_set(&y[3], ad_real_add(ad_real_square(y[0]), x[3]));
    ad_set(&y[4], ad_real_mul(x[0], ad_real_fmax(x[1], x[3]))); /* x[1]'s derivative is 0 here */
    y[5] = y[0];
    ad_sparse_pattern p;
    check_ok(ad_real_jacobian_pattern(tape, 6, y, 5, x, &p));
    ck_assert_str_eq(text_of(&p), "0 1 | | 2 | 0 1 3 | 0 1 3 | 0 1 | ");
    double values[13];
    ck_assert_int_eq(p.n_values, 11);
    check_ok(ad_real_jacobian_sparse(tape, 6, y, 5, x, &p, values));
    const double want[] = {3, 2, 1, 36, 24, 1, 7, 0, 2, 3, 2};
    ck_assert_mem_eq(values, want, sizeof want);
    ad_sparse_free(&p);

    /* By what was computed. */
    ad_real by[] = {x[1], y[0], x[2], x[4], x[3]};
    check_ok(ad_real_jacobian_pattern(tape, 6, y, 5, by, &p));
    ck_assert_str_eq(text_of(&p), "0 1 | | 2 | 0 1 4 | 0 4 | 0 1 | ");
    check_ok(ad_real_jacobian_sparse(tape, 6, y, 5, by, &p, v));
    const double more[] = {2, 1, 1, 24, 12, 1, 0, 2, 2, 1};
    ck_assert_mem_eq(v, more, sizeof more);
    ad_sparse_free(&p);

    check_ok(ad_real_jacobian_pattern(tape, 0, NULL, 5, x, &p));
    ck_assert_int_eq(p.n_values + p.m, 0);
    ad_sparse_free(&p);
    check_ok(ad_real_jacobian_pattern(tape, 6, y, 0, NULL, &p));
    ck_assert_str_eq(text_of(&p), "| | | | | | ");
    check_ok(ad_real_jacobian_sparse(tape, 6, y, 0, NULL, &p, NULL));
    ad_sparse_free(&p);
    ad_sparse_free(&p);
    ad_sparse_free(NULL);
}

/* ---- random recordings ---- */

enum { X = 40, STEPS = 600, Y = 150, NUMBERS = X + STEPS };

static uint32_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

static double random_number(void)
{
    return 0.5 + random_below(1000) / 1000.0;
}

/* Statements of a few older numbers each: those just before, or any; in between constants, and
 * numbers whose derivative is 0. */
static void record_random(const ad_real *x, ad_real *number, uint32_t reach)
{
    memcpy(number, x, X * sizeof *x);
    for (uint32_t i = X; i < NUMBERS; i++) {
        const uint32_t from = i > reach ? i - reach : 0;
        const ad_real a = number[from + random_below(i - from)], b = number[random_below(X)],
                      c = number[from + random_below(i - from)];
        switch (random_below(7)) {
        case 0:
            ad_set(&number[i], ad_real_mul(ad_real_sin(a), b));
            break;
        case 1:
            ad_set(&number[i], ad_real_add(a, ad_real_mul(0.5, c)));
            break;
        case 2:
            ad_set(&number[i], ad_real_sub(ad_real_fma(a, b, c), b));
            break;
        case 3:
            ad_set(&number[i], ad_real_mul(0, a));
            break;
        case 4:
            number[i] = random_below(2) ? ad_real_of(random_number()) : x[random_below(X)];
            break;
        default:
            ad_set(&number[i], ad_real_tanh(a));
        }
    }
}

static int64_t swept, walked; /* groups, in all */

static void groups_see(const ad_sparse_pattern *p)
{
    const struct tape_sparse *s = p->own_;
    int64_t rows = 0;
    for (uint32_t k = 0; k < s->n_groups; k++) {
        ck_assert_int_eq(s->group[k].first, rows);
        rows += s->group[k].n;
        *(s->group[k].run == TAPE_SPARSE_WALK ? &walked : &swept) += 1;
    }
    ck_assert_int_eq(rows, p->m);
}

/* Values are those of the dense Jacobian, and nothing is missing. */
static void compare_dense(const ad_sparse_pattern *p, const ad_real *y, int64_t n, const ad_real *x,
                          uint32_t seed)
{
    double *dense = malloc((size_t)(p->m * n) * sizeof *dense),
           *values = malloc((size_t)(p->n_values + 1) * sizeof *values);
    check_ok(ad_real_jacobian(tape, p->m, y, n, x, dense));
    check_ok(ad_real_jacobian_sparse(tape, p->m, y, n, x, p, values));
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t e = p->row_start[i]; e < p->row_start[i + 1]; e++) {
            double *d = &dense[i * n + p->column[e]];
            ck_assert_msg(e == p->row_start[i] || p->column[e - 1] < p->column[e],
                          "seed %u: columns of row %d do not rise", seed, (int)i);
            ck_assert_msg(fabs(values[e] - *d) <= 1e-12 * (1 + fabs(*d)),
                          "seed %u: [%d,%d] is %.17g, dense %.17g", seed, (int)i, (int)p->column[e],
                          values[e], *d);
            *d = 0;
        }
        for (int64_t j = 0; j < n; j++)
            ck_assert_msg(dense[i * n + j] == 0, "seed %u: [%d,%d] is missing", seed, (int)i,
                          (int)j);
    }
    free(dense);
    free(values);
}

TEST(values_are_those_of_dense_jacobians)
{
    static ad_real number[NUMBERS], y[Y], x[X], by[X];
    for (uint32_t seed = 1; seed <= 24; seed++) {
        double start[X];
        state = seed;
        for (int i = 0; i < X; i++)
            start[i] = random_number();
        check_ok(ad_real_leaves(tape, X, start, x));
        record_random(x, number, seed % 3 ? 4 : NUMBERS);
        for (int i = 0; i < Y; i++)
            y[i] = number[random_below(NUMBERS)];
        memcpy(by, x, sizeof by);
        for (uint32_t i = 0; seed % 2 && i < X; i += 3)
            if (number[X + 11 * i].index >= x[0].index + X) /* neither a leaf nor a constant */
                by[i] = number[X + 11 * i];
        ad_sparse_pattern p;
        check_ok(ad_real_jacobian_pattern(tape, Y, y, X, by, &p));
        groups_see(&p);
        compare_dense(&p, y, X, by, seed);

        /* The same statements behind others: they are walked. */
        check_ok(ad_tape_reset(tape));
        state = seed;
        for (int i = 0; i < X; i++)
            start[i] = random_number();
        ad_real other = ad_real_leaf(tape, 3), ignored;
        ad_set(&ignored, ad_real_sin(other));
        check_ok(ad_real_leaves(tape, X, start, x));
        record_random(x, number, seed % 3 ? 4 : NUMBERS);
        for (int i = 0; i < Y; i++)
            y[i] = number[random_below(NUMBERS)];
        memcpy(by, x, sizeof by);
        for (uint32_t i = 0; seed % 2 && i < X; i += 3)
            if (number[X + 11 * i].index >= x[0].index + X)
                by[i] = number[X + 11 * i];
        compare_dense(&p, y, X, by, seed);
        ad_sparse_free(&p);
        check_ok(ad_tape_reset(tape));
    }
    ck_assert_int_gt(swept, 100);
    ck_assert_int_gt(walked, 100);
}

/* ---- a long chain of small parts, over several blocks of the tape ---- */

TEST(parts_of_a_large_recording_are_found_by_themselves)
{
    enum { PARTS = 30000, STEP = 3 };
    ad_real *x = malloc((PARTS + 1) * sizeof *x), *y = malloc(PARTS * sizeof *y);
    double *at = malloc((PARTS + 1) * sizeof *at), *values = malloc(2 * PARTS * sizeof *values);
    for (int i = 0; i <= PARTS; i++)
        at[i] = 1 + i * 1e-5;
    for (int again = 0; again < 2; again++) {
        static ad_sparse_pattern p;
        check_ok(ad_real_leaves(tape, PARTS + 1, at, x));
        for (int i = 0; i < PARTS; i++) {
            ad_real z;
            ad_set(&z, ad_real_mul(x[i], x[i + 1]));
            for (int k = 0; k < STEP; k++)
                ad_set(&z, ad_real_mul(z, ad_real_add(z, x[i])));
            y[PARTS - 1 - i] = z;
        }
        if (!again)
            check_ok(ad_real_jacobian_pattern(tape, PARTS, y, PARTS + 1, x, &p));
        ck_assert_int_eq(p.n_values, 2 * PARTS);
        check_ok(ad_real_jacobian_sparse(tape, PARTS, y, PARTS + 1, x, &p, values));
        for (int i = 0; i < PARTS; i++) {
            const int64_t e = 2 * (PARTS - 1 - i);
            double z = at[i] * at[i + 1], a = at[i + 1], b = at[i];
            for (int k = 0; k < STEP; k++) {
                const double slope = 2 * z + at[i], by_x = z;
                z = z * (z + at[i]);
                a = slope * a + by_x;
                b *= slope;
            }
            ck_assert_int_eq(p.column[e], i);
            ck_assert_int_eq(p.column[e + 1], i + 1);
            ck_assert_double_eq_tol(values[e], a, 1e-12 * fabs(a));
            ck_assert_double_eq_tol(values[e + 1], b, 1e-12 * fabs(b));
        }
        check_ok(ad_tape_reset(tape));
        if (again) {
            groups_see(&p);
            ad_sparse_free(&p);
        }
    }
    ck_assert_int_gt(swept, PARTS / 9);
    ck_assert_int_lt(walked, 60); /* at the blocks' edges */
    free(x);
    free(y);
    free(at);
    free(values);
}

/* ---- what is refused ---- */

static ad_real twice(ad_real x)
{
    return ad_real_of(ad_real_mul(x, x));
}

/* An allocator that leaves nothing in what it is given back. */
static void *own_reserve(size_t bytes, void *payload)
{
    return tape_memory_system.reserve(bytes, payload);
}

static void own_unreserve(void *p, size_t bytes, void *payload)
{
    tape_memory_system.unreserve(p, bytes, payload);
}

static void *own_resize(void *p, size_t bytes, void *payload)
{
    *(int *)payload += p == NULL;
    return realloc(p, bytes);
}

static void own_release(void *p, void *payload)
{
    if (!p)
        return;
    --*(int *)payload;
    memset(p, 0xa5, malloc_usable_size(p));
    free(p);
}

TEST(a_pattern_outlives_its_tape)
{
    int live = 0;
    ad_allocator allocator = {own_reserve, own_unreserve, own_resize, own_release, &live};
    ad_tape other;
    ad_real x[2], y;
    ad_sparse_pattern p;
    ck_assert_int_eq(ad_tape_create(&other, &(ad_tape_options){.allocator = &allocator}), AD_OK);
    ck_assert_int_eq(ad_real_leaves(other, 2, (double[]){2, 3}, x), AD_OK);
    ad_set(&y, ad_real_sin(x[1]));
    ck_assert_int_eq(ad_real_jacobian_pattern(other, 1, &y, 2, x, &p), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_str_eq(text_of(&p), "1 | ");
    ck_assert_int_gt(live, 0);
    ad_sparse_free(&p);
    ck_assert_int_eq(live, 0);
}

TEST(a_pattern_of_another_recording_is_refused)
{
    ad_real x[3], y[2];
    ad_sparse_pattern p;
    double values[3];
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    y[0] = twice(x[0]);
    ad_set(&y[1], ad_real_mul(x[1], x[2]));
    check_ok(ad_real_jacobian_pattern(tape, 2, y, 3, x, &p));
    check_ok(ad_real_jacobian_sparse(tape, 2, y, 3, x, &p, values));
    ck_assert_double_eq(values[2], 3);
    check_ok(ad_tape_reset(tape));
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    y[0] = twice(x[1]);
    ad_set(&y[1], ad_real_mul(x[1], x[2]));
    check_call_refused(ad_real_jacobian_sparse(tape, 2, y, 3, x, &p, values), AD_ERROR_STATE,
                       "real_jacobian_sparse: y[0] depends on x[1], and has no such column in the "
                       "pattern, which was found for another recording at test_real_sparse.c:");
    ck_assert(isnan(values[0]) && isnan(values[2]));

    /* Of fewer derivatives the others are 0. */
    ad_tape_reset(tape);
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    y[0] = ad_real_of(1);
    y[1] = twice(x[2]);
    check_ok(ad_real_jacobian_sparse(tape, 2, y, 3, x, &p, values));
    ck_assert_mem_eq(values, ((double[]){0, 0, 10}), sizeof values);
    ad_sparse_free(&p);
}

TEST(what_has_no_pattern_is_refused_with_its_line)
{
    enum { LONG = 20 };
    ad_real x[LONG], y, z;
    double ones[LONG];
    ad_sparse_pattern p = {0};
    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    check_ok(ad_real_leaves(tape, LONG, ones, x));
    y = ad_real_dot(LONG, x, x);
    const int line = __LINE__ - 1;
    z = twice(y);
    char text[128];
    snprintf(text, sizeof text, "y depends on dot at test_real_sparse.c:%d", line);
    check_call_refused(ad_real_jacobian_pattern(tape, 1, &z, LONG, x, &p), AD_ERROR_STATE, text);
    ck_assert_ptr_null(p.own_);
    const ad_real alone = twice(x[3]); /* does not depend on it */
    check_ok(ad_real_jacobian_pattern(tape, 1, &alone, LONG, x, &p));
    ck_assert_int_eq(p.n_values, 1);
    double value;
    check_call_refused(ad_real_jacobian_sparse(tape, 1, &z, LONG, x, &p, &value), AD_ERROR_STATE,
                       text);
    ck_assert(isnan(value));
    check_call_refused(ad_real_jacobian_sparse(tape, 1, &z, LONG - 1, x, &p, &value),
                       AD_ERROR_ARGUMENT, "the pattern is of [1,20], y and x make [1,19]");
    check_call_refused(ad_real_jacobian_sparse(tape, 1, &alone, LONG, x, &p, NULL),
                       AD_ERROR_ARGUMENT, "values is a null pointer");
    ad_sparse_free(&p);
    check_call_refused(ad_real_jacobian_sparse(tape, 1, &alone, LONG, x, &p, &value),
                       AD_ERROR_ARGUMENT, "the pattern was never found, or was freed");
    x[2] = ad_real_of(5);
    check_call_refused(
        ad_real_jacobian_pattern(tape, 1, &alone, LONG, x, &p), AD_ERROR_HANDLE,
        "real_jacobian_pattern: x[2] is a constant: ad_real_leaves comes first at test_real_s");
    x[2] = x[7];
    check_call_refused(ad_real_jacobian_pattern(tape, 1, &alone, LONG, x, &p), AD_ERROR_ARGUMENT,
                       "real_jacobian_pattern: x[2] is x[7] too at test_real_sparse.c:");
    check_call_refused(ad_real_jacobian_pattern(tape, -1, &alone, LONG, x, &p), AD_ERROR_ARGUMENT,
                       "a number is negative");
    check_call_refused(ad_real_jacobian_pattern(tape, 1, NULL, LONG, x, &p), AD_ERROR_ARGUMENT,
                       "a null pointer");
    check_call_refused(ad_real_jacobian_pattern(tape, 1, &alone, 2, x, NULL), AD_ERROR_ARGUMENT,
                       "pattern is a null pointer");
    const ad_real stale = alone;
    check_ok(ad_tape_reset(tape));
    check_call_refused(ad_real_jacobian_pattern(tape, 1, &stale, 0, NULL, &p), AD_ERROR_HANDLE,
                       "y[0]");
}

TEST(forks_and_tensors_between_are_refused)
{
    ad_real x[2], y;
    ad_tape part;
    ad_sparse_pattern p;
    check_ok(ad_real_leaves(tape, 2, (double[]){2, 3}, x));
    check_ok(ad_tape_fork(tape, 1, &part));
    check_ok(ad_tape_record_begin(part));
    y = twice(x[1]);
    check_ok(ad_tape_record_end(part));
    check_ok(ad_tape_join(tape, part, 1, &y));
    const ad_real z = twice(y);
    check_call_refused(ad_real_jacobian_pattern(tape, 1, &z, 2, x, &p), AD_ERROR_STATE,
                       "y depends on join at test_real_sparse.c:");
    check_ok(ad_tape_reset(tape));

    check_ok(ad_real_leaves(tape, 2, (double[]){2, 3}, x));
    ad_tensor v = ad_tensor_of_reals(tape, 1, (int64_t[]){2}, x);
    ad_real u[2];
    check_ok(ad_reals_of_tensor(ad_square(v), 2, u));
    check_call_refused(ad_real_jacobian_pattern(tape, 2, u, 2, x, &p), AD_ERROR_STATE,
                       "tensors may lie between x and y");
}

/* ---- in a profile ---- */

TEST(costs_are_on_the_lines_of_the_calls)
{
    ad_real x[2], y[2];
    ad_sparse_pattern p;
    double values[3];
    teardown();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    check_ok(ad_real_leaves(tape, 2, (double[]){2, 3}, x));
    y[0] = twice(x[0]);
    ad_set(&y[1], ad_real_mul(x[1], y[0]));
    check_ok(ad_real_jacobian_pattern(tape, 2, y, 2, x, &p));
    check_ok(ad_real_jacobian_sparse(tape, 2, y, 2, x, &p, values));
    const struct tape_ledger *l = observe_ledger();
    const char *const calls[] = {"real_jacobian_pattern", "real_jacobian_sparse"};
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
