/* test_real_fused_loops_record.c: what records of fused loops take, what they share, and their
 * edges. */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "run_cases.h"
#include "tape_statement.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 100 };

static ad_real x[N], w[N];
static double c[N];

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 512 << 20};
    double v[N];
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    for (int i = 0; i < N; i++) {
        v[i] = 1 + i / 64.0;
        c[i] = 2 - i / 32.0;
    }
    ck_assert_int_eq(ad_real_leaves(tape, N, v, x), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, c, w), AD_OK);
}

static uint64_t bytes(void)
{
    ad_stats s;
    ck_assert_int_eq(ad_tape_stats(tape, &s), AD_OK);
    return s.statement_bytes;
}

/* Bytes that a call takes. */
#define TAKES(n, ...)                                                                              \
    do {                                                                                           \
        const uint64_t before_ = bytes();                                                          \
        __VA_ARGS__;                                                                               \
        ck_assert_uint_eq(bytes() - before_, (uint64_t)(n));                                       \
        ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));                 \
    } while (0)

/* A record's head, each operand, and what is kept of one with n values. */
#define HEAD 32
#define OPERAND 12
#define KEPT(n) (8 + 8 * (n))
enum { SHARED = 8 };

static ad_real y[N];

static void twice(void *payload, int64_t n, const double *const *in, double *out,
                  double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        out[i] = 2 * in[0][i];
        if (partial[0])
            partial[0][i] = 2;
    }
}

static void first_only(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    double factor;
    memcpy(&factor, data, sizeof factor);
    (void)m;
    if (n > 0)
        dx[0] += factor * dy[0];
}

TEST(a_record_has_the_bytes_that_the_documentation_says)
{
    const double value = 0, factor = 5;
    TAKES(HEAD + 2 * OPERAND + 2 * KEPT(17), ad_real_dot(17, x, w));
    TAKES(HEAD + 2 * OPERAND + KEPT(18), ad_real_dot(18, x, c));
    TAKES(HEAD + OPERAND, ad_real_sum(19, x));
    TAKES(HEAD + OPERAND + KEPT(19), ad_real_sum_of_squares(19, x));
    TAKES(HEAD + OPERAND + KEPT(21), ad_real_sums_of_squares(3, 7, x, y));
    TAKES(HEAD + OPERAND + 8 * 21, ad_real_log_sum_exp(21, x));
    TAKES(HEAD + 3 * OPERAND + KEPT(1) + KEPT(9), memcpy(y, w, sizeof y);
          ad_real_axpy(9, x[20], x, y));
    TAKES(HEAD + 3 * OPERAND + KEPT(1), memcpy(y, w, sizeof y); ad_real_axpy(9, 2.5, x, y));
    TAKES(HEAD + 2 * OPERAND + KEPT(3 * 10) + KEPT(10), ad_real_gemv(3, 10, x, w, y));
    TAKES(HEAD + 2 * OPERAND + KEPT(10), ad_real_gemv(3, 10, x + 1, c, y));
    TAKES(HEAD + 4 * OPERAND + KEPT(4) + KEPT(6) + KEPT(4), ad_real_trmv(4, x, x + 50, w, y));
    TAKES(HEAD + 4 * OPERAND + KEPT(3) + KEPT(3) + KEPT(3) + KEPT(15),
          ad_real_trmm(5, 3, x, x + 10, w, w + 20, y));
    TAKES(HEAD + 2 * OPERAND + 16, ad_real_polynomial(17, x, w[0]));
    TAKES(HEAD + 2 * OPERAND + KEPT(22) + KEPT(3), ad_real_stencil(20, x, 3, w + 1, y));
    TAKES(HEAD + OPERAND + 8 * 40, ad_real_map(40, 1, &(ad_array){x, NULL}, y, twice, NULL));
    TAKES(HEAD + OPERAND, ad_real_collect(40, x, y));
    TAKES(HEAD + OPERAND + 16 + 8,
          ad_real_custom(40, x, 1, &value, y, "own", first_only, &factor, sizeof factor));
    TAKES(HEAD + OPERAND + 16 + 16,
          ad_real_custom(40, x, 1, &value, y, "own", first_only, "nine byte", 9));
}

TEST(indices_that_are_not_consecutive_cost_four_bytes_each)
{
    ad_real any[20];
    for (int i = 0; i < 20; i++)
        any[i] = x[19 - i];
    TAKES(HEAD + OPERAND + 4 * 20, ad_real_sum(20, any));
    TAKES(HEAD + OPERAND + 4 * 20, ad_real_collect(20, any, any));
    TAKES(HEAD + OPERAND, ad_real_sum(20, any));
}

TEST(values_are_kept_once_for_all_records)
{
    ad_real other[17];
    TAKES(HEAD + 2 * OPERAND + 2 * KEPT(17), ad_real_dot(17, x, w));
    TAKES(HEAD + 2 * OPERAND + 2 * SHARED, ad_real_dot(17, x, w));
    TAKES(HEAD + OPERAND + SHARED, ad_real_sum_of_squares(17, w));
    memcpy(other, x, sizeof other); /* the same indices elsewhere */
    TAKES(HEAD + OPERAND + SHARED, ad_real_sum_of_squares(17, other));
    TAKES(HEAD + 2 * OPERAND + KEPT(17), ad_real_dot(17, c, x));
    TAKES(HEAD + 2 * OPERAND + SHARED, ad_real_dot(17, c, x));
    TAKES(HEAD + 2 * OPERAND + KEPT(19) + SHARED, ad_real_dot(19, x + 9, x + 9));
}

TEST(constants_that_have_changed_are_kept_anew)
{
    ad_real first, second;
    TAKES(HEAD + 2 * OPERAND + KEPT(17), first = ad_real_dot(17, c, x));
    c[6] = 50;
    TAKES(HEAD + 2 * OPERAND + KEPT(17), second = ad_real_dot(17, c, x));
    ck_assert_int_eq(ad_real_backward(tape, first), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[6]), 2 - 6 / 32.0);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, second), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[6]), 50);
}

/* Statements take the value that an ad_real has; so do fused loops, though its index is known. */
TEST(a_value_that_was_changed_by_hand_counts)
{
    ad_real first = ad_real_dot(17, x, x), second;
    x[3].value = 100;
    TAKES(HEAD + OPERAND + KEPT(17), second = ad_real_sum_of_squares(17, x));
    ck_assert_double_gt(second.value, first.value + 9000);
    ck_assert_int_eq(ad_real_backward(tape, second), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[3]), 200);
}

TEST(what_a_rewind_drops_is_kept_anew)
{
    double g[2];
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 3; round++) {
        ad_real z[17];
        for (int i = 0; i < 17; i++)
            ad_set(&z[i], ad_real_mul(x[i], round + 1 + i));
        ad_real s;
        TAKES(HEAD + OPERAND + KEPT(17), s = ad_real_sum_of_squares(17, z));
        TAKES(HEAD + 2 * OPERAND + KEPT(50), ad_real_dot(50, x, c));
        ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
        ck_assert_double_eq(g[0], 2 * x[0].value * (round + 1) * (round + 1));
        ck_assert_double_eq(g[1], 2 * x[1].value * (round + 2) * (round + 2));
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
}

TEST(values_from_before_a_mark_are_operands_after_a_rewind)
{
    ad_real early[3], both[6], s;
    for (int i = 0; i < 3; i++)
        ad_set(&early[i], ad_real_square(x[i]));
    const ad_mark mark = ad_tape_mark(tape);
    s = ad_real_sum(3, early);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    for (int i = 0; i < 3; i++) {
        both[i] = early[i];
        ad_set(&both[3 + i], ad_real_sin(x[i])); /* indices go on, tags do not */
    }
    ck_assert_uint_eq(both[3].index, both[2].index + 1);
    ck_assert_uint_ne(both[3].tag, both[2].tag);
    s = ad_real_sum(6, both);
    ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[2]), 2 * x[2].value + cos(x[2].value));
}

TEST(bytes_grow_with_the_number_of_records_alone)
{
    ad_stats s;
    ad_real sum = x[0];
    for (int i = 0; i < 200000; i++) { /* never neighbours */
        ad_real row[3] = {sum, x[i % (N - 1)], ad_real_of(0)};
        sum = ad_real_sum(3, row);
    }
    ck_assert_int_eq(ad_tape_stats(tape, &s), AD_OK);
    ck_assert_uint_eq(s.statement_bytes, 200000 * (HEAD + OPERAND + 12));
    ck_assert_uint_eq(s.statements, 200000);
    ck_assert_uint_le(s.records, 40); /* runs */
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[5]), 2021); /* 200 000 / 99, rounded up */
}

/* Statements between fused loops, over several blocks, and one that has a block of its own. */
TEST(a_fused_loop_larger_than_a_block_has_one_of_its_own)
{
    enum { LARGE = 700000 };
    ad_real *large = malloc(LARGE * sizeof *large), s, t;
    double *v = malloc(LARGE * sizeof *v);
    ck_assert(large && v);
    for (int i = 0; i < LARGE; i++)
        v[i] = i % 7;
    ck_assert_int_eq(ad_real_leaves(tape, LARGE, v, large), AD_OK);
    ad_set(&t, ad_real_square(x[0]));
    TAKES(HEAD + OPERAND + KEPT((uint64_t)LARGE), s = ad_real_sum_of_squares(LARGE, large));
    ad_set(&t, ad_real_mul(t, s));
    s = ad_real_sum(LARGE, large);
    ad_set(&t, ad_real_add(t, s));
    ck_assert_int_eq(ad_real_backward(tape, t), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, large[6]), 12 * x[0].value * x[0].value + 1);
    ck_assert_double_eq(ad_real_gradient(tape, large[LARGE - 1]),
                        2 * v[LARGE - 1] * x[0].value * x[0].value + 1);
    free(v);
    free(large);
}

TEST(results_of_a_fused_loop_beyond_the_budget_are_constants)
{
    enum { LARGE = 12000000 };
    double *v = calloc(LARGE, sizeof *v);
    ad_real z, *many = calloc(LARGE, sizeof *many);
    ck_assert(v && many);
    many[LARGE - 1] = x[0];
    z = ad_real_dot(LARGE, many, v); /* 96 MB of values, 48 of indices */
    ck_assert_uint_eq(z.index, 0);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_MEMORY);
    ck_assert_msg(strstr(ad_tape_message(tape), "dot") != NULL, "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    TAKES(HEAD + OPERAND, z = ad_real_sum(17, x));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    free(many);
    free(v);
}

/* The tape begins near its last index. */
TEST(the_last_index_is_the_last_for_fused_loops_too)
{
    ad_real all[N], s;
    const uint32_t last = TAPE_INDEX_LIMIT;
    ad_set(&s, ad_real_square(x[0]));
    ad_tape_mark(tape); /* settles */
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "test", (struct tape_site){0});
    const uint64_t tag = t->statements->rest.result >> 32;
    t->statements->rest.result = tag << 32 | (last - 150);
    ck_assert_int_eq(ad_real_collect(N, x, all), AD_OK);
    ck_assert_uint_eq(all[0].index, last - 150);
    ck_assert_int_eq(ad_real_collect(N, x, all), AD_ERROR_LIMIT);
    ck_assert_msg(strstr(ad_tape_message(tape), "collect: 100 results") != NULL, "%s",
                  ad_tape_message(tape));
    ck_assert_uint_eq(all[0].index, 0);
    ad_tape_clear_error(tape);
    /* Statements go on to the limit and a little further, never around. */
    for (int i = 0; i < 2000 && ad_tape_status(tape) == AD_OK; i++) {
        ad_set(&s, ad_real_mul(x[0], x[1]));
        ck_assert(s.index == 0 || s.index >= last - 50);
    }
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_LIMIT);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
}

/* A large block that was begun far from the last index, of which a fused loop takes most: what is
 * left of the block has room for more statements than there are indices. */
TEST(statements_behind_a_fused_loop_do_not_pass_the_last_index)
{
    enum { MANY = 209900, BLOCKS = 600000 };
    const uint32_t last = TAPE_INDEX_LIMIT, from = last - 210000;
    double *v = calloc(MANY, sizeof *v);
    ad_real s, *many = calloc(MANY, sizeof *many);
    ck_assert(v && many);
    ck_assert_int_eq(ad_real_leaves(tape, MANY, v, many), AD_OK);
    for (int i = 0; i < BLOCKS; i++)
        ad_set(&s, ad_real_square(x[0]));
    ad_tape_mark(tape); /* settles */
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "test", (struct tape_site){0});
    const uint64_t tag = t->statements->rest.result >> 32;
    t->statements->rest.result = tag << 32 | from;
    ad_set(&s, ad_real_square(x[0]));
    ck_assert_uint_eq(s.index, from);
    ck_assert_int_eq(ad_real_collect(MANY, many, many), AD_OK);
    for (int i = 0; i < MANY && ad_tape_status(tape) == AD_OK; i++) {
        ad_set(&s, ad_real_square(x[0]));
        ck_assert(s.index == 0 || s.index >= last - 100);
    }
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_LIMIT);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    free(many);
    free(v);
}

RUN_TESTS(setup, teardown)
