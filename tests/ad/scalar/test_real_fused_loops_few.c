/* test_real_fused_loops_few.c: fused loops of few operands are recorded as statements, with the
 * same values, gradients and errors. */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 40, RESULTS = 8 };

static ad_real x[N], w[N], y[N];
static double c[N], values[2 * N];

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    for (int i = 0; i < 2 * N; i++)
        values[i] = 1 + sin(i) / 2;
    for (int i = 0; i < N; i++)
        c[i] = 2 - i / 32.0;
}

static void leaves(void)
{
    ck_assert_int_eq(ad_real_leaves(tape, N, values, x), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, values + N, w), AD_OK);
}

static uint64_t bytes(void)
{
    ad_stats s;
    ck_assert_int_eq(ad_tape_stats(tape, &s), AD_OK);
    return s.statement_bytes;
}

static void product(void *payload, int64_t n, const double *const *in, double *out,
                    double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        out[i] = in[0][i] * in[1][i];
        if (partial[0])
            partial[0][i] = in[1][i];
        if (partial[1])
            partial[1][i] = in[0][i];
    }
}

/* Each returns its number of results, in y, and of their derivatives. */
typedef int loop(int *width);

static int dot(int *width)
{
    y[0] = ad_real_dot(4, x, w);
    *width = 8;
    return 1;
}

static int dot_with_itself(int *width)
{
    y[0] = ad_real_dot(3, x, x);
    *width = 6;
    return 1;
}

static int dot_with_constants(int *width)
{
    y[0] = ad_real_dot(16, c, w);
    *width = 16;
    return 1;
}

static int sum(int *width)
{
    y[0] = ad_real_sum(13, x);
    *width = 13;
    return 1;
}

static int sums_of_squares(int *width)
{
    ck_assert_int_eq(ad_real_sums_of_squares(3, 4, x + 2, y), AD_OK);
    *width = 4;
    return 3;
}

static int log_sum_exp(int *width)
{
    y[0] = ad_real_log_sum_exp(5, x);
    *width = 5;
    return 1;
}

static int axpy(int *width)
{
    memcpy(y, w, 4 * sizeof *y);
    ck_assert_int_eq(ad_real_axpy(4, x[7], x, y), AD_OK);
    *width = 3;
    return 4;
}

static int axpy_by_a_constant(int *width)
{
    memcpy(y, w, 4 * sizeof *y);
    ck_assert_int_eq(ad_real_axpy(4, 2.5, x, y), AD_OK);
    *width = 2;
    return 4;
}

static int axpy_of_itself(int *width)
{
    memcpy(y, w, 4 * sizeof *y);
    ck_assert_int_eq(ad_real_axpy(4, x[1], y, y), AD_OK);
    *width = 3;
    return 4;
}

static int gemv(int *width)
{
    ck_assert_int_eq(ad_real_gemv(2, 4, x, w, y), AD_OK);
    *width = 8;
    return 2;
}

static int gemv_of_constants(int *width)
{
    ck_assert_int_eq(ad_real_gemv(4, 3, c, w, y), AD_OK);
    *width = 3;
    return 4;
}

static int gemv_by_constants(int *width)
{
    ck_assert_int_eq(ad_real_gemv(4, 4, w, c, y), AD_OK);
    *width = 4;
    return 4;
}

static int polynomial(int *width)
{
    y[0] = ad_real_polynomial(6, x, w[3]);
    *width = 7;
    return 1;
}

static int polynomial_of_constants(int *width)
{
    y[0] = ad_real_polynomial(12, c, w[3]);
    *width = 1;
    return 1;
}

static int stencil(int *width)
{
    ck_assert_int_eq(ad_real_stencil(2, x, 3, w, y), AD_OK);
    *width = 6;
    return 2;
}

static int stencil_of_constants(int *width)
{
    ck_assert_int_eq(ad_real_stencil(5, x, 3, c, y), AD_OK);
    *width = 3;
    return 5;
}

static int map(int *width)
{
    const ad_array in[] = {ad_array_of(x), ad_array_of(w)};
    ck_assert_int_eq(ad_real_map(8, 2, in, y, product, NULL), AD_OK);
    *width = 2;
    return 8;
}

static int map_with_a_number(int *width)
{
    const ad_array in[] = {ad_array_of(y)};
    memcpy(y, x, 5 * sizeof *y);
    ck_assert_int_eq(ad_real_map_with(5, 1, in, 1, &w[2], y, product, NULL), AD_OK);
    *width = 2;
    return 5;
}

static int map_of_constants(int *width)
{
    const ad_array in[] = {ad_array_of(c), ad_array_of(w)};
    ck_assert_int_eq(ad_real_map(7, 2, in, y, product, NULL), AD_OK);
    *width = 1;
    return 7;
}

static loop *const loops[] = {dot,
                              dot_with_itself,
                              dot_with_constants,
                              sum,
                              sums_of_squares,
                              log_sum_exp,
                              axpy,
                              axpy_by_a_constant,
                              axpy_of_itself,
                              gemv,
                              gemv_of_constants,
                              gemv_by_constants,
                              polynomial,
                              polynomial_of_constants,
                              stencil,
                              stencil_of_constants,
                              map,
                              map_with_a_number,
                              map_of_constants};
enum { LOOPS = sizeof loops / sizeof *loops };

struct outcome {
    double value[RESULTS], jacobian[RESULTS * 2 * N], gradient[2 * N];
    uint64_t bytes;
    int results, width;
};

/* What a loop gives. A trap records it as one record, whatever its size. */
static void run(loop *of, bool fused, struct outcome *out)
{
    ad_real all[2 * N];
    double seeds[RESULTS];
    ck_assert_int_eq(ad_tape_trap(tape, fused ? AD_TRAP_NAN : 0), AD_OK);
    leaves();
    const uint64_t before = bytes();
    out->results = of(&out->width);
    out->bytes = bytes() - before;
    memcpy(all, x, sizeof x);
    memcpy(all + N, w, sizeof w);
    for (int i = 0; i < out->results; i++) {
        out->value[i] = y[i].value;
        seeds[i] = 1 + i;
        ck_assert_uint_eq(y[i].index, y[0].index + (uint32_t)i);
    }
    ck_assert_int_eq(ad_real_jacobian(tape, out->results, y, 2 * N, all, out->jacobian), AD_OK);
    ck_assert_int_eq(ad_real_backward_seeds(tape, out->results, y, seeds), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2 * N, all, out->gradient), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
}

TEST_EACH(statements_have_the_values_and_gradients_of_the_record, LOOPS)
{
    struct outcome few, fused;
    run(loops[_i], false, &few);
    run(loops[_i], true, &fused);
    ck_assert_int_eq(few.results, fused.results);
    for (int i = 0; i < few.results; i++)
        ck_assert_double_eq(few.value[i], fused.value[i]);
    for (int i = 0; i < few.results * 2 * N; i++)
        ck_assert_double_eq_tol(few.jacobian[i], fused.jacobian[i], 1e-14);
    for (int i = 0; i < 2 * N; i++)
        ck_assert_double_eq_tol(few.gradient[i], fused.gradient[i], 1e-13);
}

TEST_EACH(each_result_is_a_statement_of_its_operands, LOOPS)
{
    struct outcome few;
    run(loops[_i], false, &few);
    const int head = few.width > 12 ? 8 : 4;
    ck_assert_uint_eq(few.bytes, (uint64_t)(few.results * (head + 12 * few.width)));
}

TEST(more_operands_are_one_record)
{
    leaves();
    uint64_t before = bytes();
    ad_real_sum(16, x);
    ck_assert_uint_eq(bytes() - before, 16 * 12 + 8);
    before = bytes();
    ad_real_sum(17, x);
    ck_assert_uint_eq(bytes() - before, 32 + 12);
}

/* Sums into 4 elements: of m numbers, of which `constant` is one or -1. What was recorded, in
 * bytes. */
static uint64_t sums(int m, int constant)
{
    static const int index[] = {3, 1, 3, 0, 1, 1, 2, 3};
    static const double seeds[] = {1, 2, 4, 8};
    ad_real all[2 * N];
    double g[2 * N];
    leaves();
    memcpy(all, x, sizeof x);
    memcpy(all + N, w, sizeof w);
    memcpy(y, w, 4 * sizeof *y);
    if (constant >= 0)
        x[constant] = ad_real_of(x[constant].value);
    const uint64_t before = bytes();
    ck_assert_int_eq(ad_real_scatter_add(m, x, index, 4, y), AD_OK);
    const uint64_t recorded = bytes() - before;
    ck_assert_int_eq(ad_real_backward_seeds(tape, 4, y, seeds), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2 * N, all, g), AD_OK);
    for (int k = 0; k < 4; k++) {
        double sum = w[k].value;
        for (int i = 0; i < m; i++)
            sum += index[i] == k ? x[i].value : 0;
        ck_assert_double_eq(y[k].value, sum);
        ck_assert_double_eq(g[N + k], seeds[k]);
    }
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(g[i], i < m && i != constant ? seeds[index[i]] : 0);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    return recorded;
}

TEST(sums_by_index_are_statements_where_they_add_to_few_elements_twice)
{
    for (int m = 1; m < 8; m++)
        ck_assert_uint_eq(sums(m, -1), (uint64_t)m * 12);
    /* A record: 32, 12 for each operand, 4 for each number and for each element that changes; and
     * for each operand of an array with a constant. */
    ck_assert_uint_eq(sums(8, -1), 32 + 2 * 12 + 8 * 4 + 4 * 4);
    ck_assert_uint_eq(sums(4, 2), 32 + 2 * 12 + 4 * 4 + 3 * 4 + 4 * 4);
}

/* So that results keep consecutive indices: the derivative by a constant is none. */
TEST(arrays_with_a_constant_among_values_are_one_record)
{
    leaves();
    x[1] = ad_real_of(3);
    const uint64_t before = bytes();
    y[0] = ad_real_sum(3, x);
    ck_assert_uint_eq(bytes() - before, 32 + 12 + 3 * 4);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
}

TEST(constants_and_no_grad_record_nothing)
{
    leaves();
    const uint64_t before = bytes();
    y[0] = ad_real_dot(3, c, c);
    ck_assert_uint_eq(y[0].index | y[0].tag, 0);
    ad_tape_no_grad_begin(tape);
    y[0] = ad_real_dot(3, x, c);
    ad_tape_no_grad_end(tape);
    ck_assert_uint_eq(y[0].index | y[0].tag, 0);
    ck_assert_uint_eq(bytes(), before);
}

TEST(an_operand_that_was_dropped_is_an_error_of_the_loop)
{
    leaves();
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&x[1], ad_real_sin(x[1]));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    y[0] = ad_real_dot(3, x, w);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    ck_assert_msg(strncmp(ad_tape_message(tape), "dot: an operand was dropped", 27) == 0, "%s",
                  ad_tape_message(tape));
    ck_assert(isnan(y[0].value));
    ad_tape_clear_error(tape);
    ad_set(&y[1], ad_real_mul(y[0], 2)); /* poisoned */
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
}

static void records(void *payload, int64_t n, const double *const *in, double *out,
                    double *const *partial)
{
    (void)payload, (void)partial;
    for (int64_t i = 0; i < n; i++)
        out[i] = in[0][i];
    ad_set(&w[0], ad_real_sin(w[1]));
}

TEST(a_callback_that_records_is_an_error)
{
    leaves();
    const ad_array in[] = {ad_array_of(x)};
    ck_assert_int_eq(ad_real_map(3, 1, in, y, records, NULL), AD_ERROR_STATE);
    ck_assert(isnan(y[0].value) && isnan(y[2].value));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_real_backward(tape, y[1]), AD_ERROR_STATE); /* poisoned */
}

/* Values from before a mark have another tag. */
TEST(operands_of_several_tags_are_taken)
{
    double g[2];
    leaves();
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&y[0], ad_real_sin(x[0]));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_real pair[2] = {x[0], w[0]};
    ad_set(&pair[1], ad_real_square(w[0]));
    const uint64_t before = bytes();
    y[0] = ad_real_dot(2, pair, c);
    ck_assert_uint_eq(bytes() - before, 4 + 2 * 12);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, (ad_real[]){x[0], w[0]}, g), AD_OK);
    ck_assert_double_eq(g[0], c[0]);
    ck_assert_double_eq(g[1], 2 * w[0].value * c[1]);
}

/* A section is replaced, where a record would have it left as it is. */
TEST(sections_take_them)
{
    static const double half[2] = {0.5, 0.25};
    ad_preaccumulated saved;
    leaves();
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    y[0] = x[0];
    for (int i = 0; i < 20; i++) {
        const ad_real pair[2] = {y[0], x[1]};
        y[0] = ad_real_dot(2, pair, half);
    }
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, y, &saved), AD_OK);
    ck_assert_uint_eq(saved.statements_after, 1);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, x[0]), ldexp(1, -20), 1e-18);
}

RUN_TESTS(setup, teardown)
