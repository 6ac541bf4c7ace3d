/* test_real.c: statements over ad_real: what is recorded, in how many bytes, what a sweep gives. */
#include <tapescope/ad_real.h>

#include "run_cases.h"
#include "statement_bytes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
}

static void check_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

/* ---- what is recorded ---- */

TEST(a_formula_is_one_record_of_12_bytes_an_operand_and_4_more)
{
    ad_real x[3], y;
    ad_real_leaves(tape, 3, (double[]){0.5, 2, 3}, x);
    ad_set(&y, ad_real_add(ad_real_mul(x[0], ad_real_sin(x[1])), ad_real_div(x[2], 4)));
    ck_assert_uint_eq(stats().statements, 1);
    ck_assert_uint_eq(stats().statement_bytes, 3 * 12 + 4);
    ck_assert_double_eq(y.value, 0.5 * sin(2) + 0.75);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), sin(2));
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 0.5 * cos(2));
    ck_assert_double_eq(ad_real_gradient(tape, x[2]), 0.25);
    check_fine();
}

/* The statement of y has just been recorded, where there were *before bytes. */
static void check_bytes(ad_real y, uint64_t *before, uint64_t expected)
{
    (void)y;
    const uint64_t now = stats().statement_bytes;
    ck_assert_uint_eq(now - *before, expected);
    *before = now;
}

TEST(derivatives_of_1_and_minus_1_are_not_stored)
{
    ad_real x[4], y;
    ad_real_leaves(tape, 4, (double[]){1.5, 2.5, 3.5, 4.5}, x);
    uint64_t before = stats().statement_bytes;
#define BYTES(formula, expected) check_bytes(ad_real_of(formula), &before, expected)
    BYTES(ad_real_add(x[0], x[1]), STATEMENT(0, 2));
    BYTES(ad_real_sub(x[0], x[1]), STATEMENT(0, 2));
    BYTES(ad_real_sub(1, x[0]), STATEMENT(0, 1));
    BYTES(ad_real_neg(x[0]), STATEMENT(0, 1));
    BYTES(ad_real_sub(ad_real_mul(x[0], x[1]), x[2]), STATEMENT(2, 1));
    BYTES(ad_real_add(ad_real_mul(x[0], x[1]), ad_real_sub(x[2], x[3])), STATEMENT(2, 2));
    BYTES(ad_real_sum_of(x[0], x[1], x[2], x[3]), STATEMENT(2, 2));
    BYTES(ad_real_sub(ad_real_neg(x[0]), x[1]), STATEMENT(1, 1));
    BYTES(ad_real_add(x[0], x[0]), STATEMENT(1, 0));
    /* They are worth the same to sweeps of every width. */
    ad_real all[8];
    for (int k = 0; k < 8; k++) {
        ad_set(&y, ad_real_sub(ad_real_sum_of(x[0], x[1], x[2]), x[3]));
        ad_set(&all[k], ad_real_mul(ad_real_sub(ad_real_add(ad_real_mul(x[k % 4], y), x[0]), y),
                                    ad_real_sub(2, x[1])));
    }
    double rows[32], row[4];
    for (int64_t width = 1; width <= 8; width *= 2) {
        ck_assert_int_eq(ad_real_jacobian(tape, width, all, 4, x, rows), AD_OK);
        for (int k = 0; k < width; k++)
            for (int i = 0; i < 4; i++) {
                const double v = x[k % 4].value, sum = x[0].value + x[1].value + x[2].value;
                const double product = (v - 1) * (sum - x[3].value) + x[0].value;
                row[i] =
                    ((i == k % 4) * (sum - x[3].value) + (v - 1) * (i == 3 ? -1 : 1) + (i == 0)) *
                        (2 - x[1].value) -
                    (i == 1) * product;
                ck_assert_double_eq(rows[4 * k + i], row[i]);
            }
    }
    ck_assert_int_eq(ad_real_backward(tape, all[7]), AD_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(ad_real_gradient(tape, x[i]), rows[28 + i]);
}

TEST(the_operands_of_a_burgers_step_are_three)
{
    ad_real u[3], w;
    const double c = 0.1, nu = 0.2;
    ad_real_leaves(tape, 3, (double[]){0.5, 0.7, -0.3}, u);
    ad_set(&w, ad_real_add(
                   ad_real_sub(u[1], ad_real_mul(ad_real_mul(c, u[1]), ad_real_sub(u[2], u[0]))),
                   ad_real_mul(nu, ad_real_add(ad_real_sub(u[2], ad_real_mul(2, u[1])), u[0]))));
    ck_assert_uint_eq(stats().statements, 1);
    ck_assert_uint_eq(stats().statement_bytes, STATEMENT(3, 0));
    double g[3];
    ck_assert_int_eq(ad_real_backward(tape, w), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 3, u, g), AD_OK);
    ck_assert_double_eq_tol(g[0], c * 0.7 + nu, 1e-16);
    ck_assert_double_eq_tol(g[1], 1 - c * (-0.3 - 0.5) - 2 * nu, 1e-16);
    ck_assert_double_eq_tol(g[2], -c * 0.7 + nu, 1e-16);
}

TEST(a_statement_of_constants_records_nothing)
{
    ad_real a = ad_real_of(3), y;
    ad_real_leaf(tape, 1);
    ad_set(&y, ad_real_mul(a, ad_real_exp(a)));
    ck_assert_double_eq(y.value, 3 * exp(3));
    ck_assert_uint_eq(y.index, 0);
    ad_set(&y, 7);
    ck_assert_double_eq(y.value, 7);
    ck_assert_uint_eq(stats().statements, 0);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "does not depend on a leaf"));
}

TEST(a_copy_records_nothing_and_is_the_same_value)
{
    ad_real x = ad_real_leaf(tape, 3), y, z;
    ad_set(&y, x);
    memcpy(&z, &y, sizeof z);
    ck_assert_uint_eq(stats().statements, 0);
    ad_set(&z, ad_real_mul(z, y));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 6);
}

/* 13 + 13 operands: more than there are slots, from both sides. */
TEST(operands_beyond_the_slots_are_recorded_in_further_statements)
{
    ad_real x[40], y;
    double value[40], g[40];
    for (int i = 0; i < 40; i++)
        value[i] = 1 + i / 8.0;
    ad_real_leaves(tape, 40, value, x);
#define S4(i) ad_real_add(ad_real_add(x[i], x[i + 1]), ad_real_add(x[i + 2], x[i + 3]))
#define S8(i) ad_real_add(S4(i), S4((i) + 4))
    ad_set(&y, ad_real_mul(ad_real_add(S8(0), S8(8)),
                           ad_real_add(S8(16), ad_real_add(S8(24), S8(32)))));
    double low = 0, high = 0;
    for (int i = 0; i < 40; i++)
        *(i < 16 ? &low : &high) += value[i];
    ck_assert_double_eq_tol(y.value, low * high, 1e-12);
    ck_assert_uint_gt(stats().statements, 3);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 40, x, g), AD_OK);
    for (int i = 0; i < 40; i++)
        ck_assert_double_eq_tol(g[i], i < 16 ? high : low, 1e-12);
}

TEST(a_formula_twelve_deep_has_the_right_gradient)
{
    ad_real x = ad_real_leaf(tape, 0.9), y;
    ad_set(&y, ad_real_sin(ad_real_exp(ad_real_sin(ad_real_exp(ad_real_sin(ad_real_exp(ad_real_sin(
                   ad_real_exp(ad_real_sin(ad_real_exp(ad_real_sin(ad_real_exp(x)))))))))))));
    double v = 0.9, d = 1;
    for (int i = 0; i < 6; i++) {
        v = exp(v);
        d *= v;
        d *= cos(v);
        v = sin(v);
    }
    ck_assert_uint_eq(stats().statement_bytes, STATEMENT(1, 0));
    ck_assert_double_eq(y.value, v);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, x), d, 1e-13 * fabs(d));
    /* Horner's scheme of degree 12: operands are named 25 times, more than the slots. */
#define STEP(p) ad_real_add(ad_real_mul(p, x), 0.5)
    ad_set(&y, STEP(STEP(STEP(STEP(STEP(STEP(STEP(STEP(STEP(STEP(STEP(STEP(1)))))))))))));
    double p = 1, dp = 0;
    for (int i = 0; i < 12; i++) {
        dp = dp * 0.9 + p;
        p = p * 0.9 + 0.5;
    }
    ck_assert_double_eq(y.value, p);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, x), dp, 1e-14 * dp);
}

TEST(every_type_of_number_mixes)
{
    ad_real x = ad_real_leaf(tape, 3), y;
    const ad_real k = x;
    const float f = 0.5f;
    const long l = -2;
    const unsigned char c = 4;
    const bool b = true;
    ad_set(&y,
           ad_real_mul(ad_real_add(ad_real_mul(k, f), l), ad_real_add(c, ad_real_mul(b, 2ull))));
    ck_assert_double_eq(y.value, (3 * 0.5 - 2) * 6);
    ad_expr e = ad_real_mul(x, (short)2);
    ad_set(&y, ad_real_add(y, e));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 3 + 2);
    const bool compared[] = {ad_real_less(x, 4),     ad_real_less_equal(3, x),
                             !ad_real_greater(x, k), !ad_real_greater_equal(x, e),
                             ad_real_equal(x, 3),    ad_real_not_equal(x, e)};
    for (int i = 0; i < 6; i++)
        ck_assert_msg(compared[i], "%d", i);
    ck_assert_double_eq(ad_real_value(e), 6);
}

static int by_value(const void *a, const void *b)
{
    const double x = ((const ad_real *)a)->value, y = ((const ad_real *)b)->value;
    return (x > y) - (x < y);
}

TEST(arrays_are_sorted_and_moved_like_doubles)
{
    ad_real x[5], y[5], s;
    double g[5];
    ad_real_leaves(tape, 5, (double[]){3, 1, 5, 2, 4}, x);
    memcpy(y, x, sizeof y);
    qsort(y, 5, sizeof *y, by_value);
    ad_set(&s, 0);
    for (int i = 0; i < 5; i++) {
        ck_assert_double_eq(y[i].value, i + 1);
        ad_set(&s, ad_real_add(s, ad_real_mul(i, y[i])));
    }
    ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 5, x, g), AD_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq(g[i], x[i].value - 1);
}

/* ---- sweeps ---- */

TEST(sweeps_add_up_until_gradients_are_cleared)
{
    ad_real x = ad_real_leaf(tape, 3), y, z;
    ad_set(&y, ad_real_square(x));
    ad_set(&z, ad_real_mul(y, x));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 6 + 27);
    ad_tape_zero_gradients(tape);
    ck_assert_double_eq(ad_real_gradient(tape, x), 0);
    const ad_real both[3] = {y, ad_real_of(5), z};
    ck_assert_int_eq(ad_real_backward_seeds(tape, 3, both, (double[]){2, 9, -1}), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 2 * 6 - 27);
    ck_assert_int_eq(ad_real_backward(tape, x), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 2 * 6 - 27 + 1);
    check_fine();
}

/* Rows: x_0^i x_1 and constants; as many as make groups of 8, 4, 2 and 1. */
TEST(a_jacobian_has_a_row_an_output_and_leaves_gradients_alone)
{
    enum { MOST = 19 };
    ad_real x[2], m, y[MOST];
    double jacobian[MOST * 3];
    ad_real_leaves(tape, 2, (double[]){1.25, -2}, x);
    ad_set(&m, ad_real_mul(x[0], x[1]));
    for (int i = 0; i < MOST; i++)
        ad_set(&y[i], ad_real_mul(ad_real_pow(x[0], i), m));
    y[3] = ad_real_of(1);
    const ad_real by[3] = {x[0], m, x[1]};
    for (int rows = 0; rows <= MOST; rows++) {
        memset(jacobian, 0x55, sizeof jacobian);
        ck_assert_int_eq(ad_real_jacobian(tape, rows, y, 3, by, jacobian), AD_OK);
        for (int i = 0; i < rows; i++) {
            const double *row = jacobian + 3L * i;
            const bool none = i == 3;
            ck_assert_double_eq_tol(row[0], none ? 0 : (i + 1) * pow(1.25, i) * -2, 1e-12);
            ck_assert_double_eq_tol(row[1], none ? 0 : pow(1.25, i), 1e-13);
            ck_assert_double_eq_tol(row[2], none ? 0 : pow(1.25, i + 1), 1e-13);
        }
        if (rows < MOST) /* what lies behind is as it was */
            ck_assert_int_eq(((unsigned char *)(jacobian + 3L * rows))[0], 0x55);
    }
    ck_assert_int_eq(ad_real_backward(tape, m), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), -2);
    check_fine();
}

/* Chains of statements of one shape, of shapes in turn, and of an infinite derivative that belongs
 * to one output alone. */
TEST(rows_that_are_swept_together_are_those_swept_alone)
{
    enum { ROWS = 8, N = 6 };
    double start[N], together[ROWS][N], alone[N];
    ad_real x[N], y[ROWS], s;
    for (int i = 0; i < N; i++)
        start[i] = 0.5 + 0.125 * i;
    ad_real_leaves(tape, N, start, x);
    for (int i = 0; i < ROWS; i++)
        y[i] = ad_real_of(ad_real_mul(x[i % N], x[(i + 1) % N]));
    for (int k = 0; k < 40; k++)
        for (int i = 0; i < ROWS; i++) {
            const ad_real a = y[i], b = x[k % N], c = x[(i + k + 1) % N], d = y[(i + 3) % ROWS];
            if (k < 8)
                ad_set(&y[i], ad_real_add(a, ad_real_mul(0.25, d)));
            else
                switch ((k + i) % 8) {
                case 0:
                    ad_set(&y[i], ad_real_add(a, b));
                    break;
                case 1:
                    ad_set(&y[i], ad_real_sub(a, b));
                    break;
                case 2:
                    ad_set(&y[i], ad_real_sub(1, a));
                    break;
                case 3:
                    ad_set(&y[i], ad_real_sub(ad_real_mul(b, c), a));
                    break;
                case 4:
                    ad_set(&y[i], ad_real_add(ad_real_sub(ad_real_mul(b, c), a), d));
                    break;
                case 5:
                    ad_set(&y[i], ad_real_mul(ad_real_mul(b, c), ad_real_sin(a)));
                    break;
                case 6:
                    ad_set(&y[i], ad_real_add(ad_real_add(ad_real_mul(0.5, a), b), c));
                    break;
                default:
                    ad_set(&y[i], ad_real_mul(0.75, a));
                }
        }
    ad_set(&s, ad_real_sub(x[0], x[0].value));
    ad_set(&y[5], ad_real_sqrt(s)); /* its derivative is infinite */
    ck_assert_int_eq(ad_real_jacobian(tape, ROWS, y, N, x, *together), AD_OK);
    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_eq(ad_real_jacobian(tape, 1, &y[i], N, x, alone), AD_OK);
        for (int k = 0; k < N; k++)
            if (i == 5)
                ck_assert(together[i][k] == (k ? 0 : (double)INFINITY));
            else
                ck_assert_double_eq_tol(together[i][k], alone[k], 1e-13 * (1 + fabs(alone[k])));
    }
    for (int rows = 2; rows < ROWS; rows++) { /* the same by fewer lanes, bit for bit */
        double fewer[ROWS][N];
        ck_assert_int_eq(ad_real_jacobian(tape, rows, y, N, x, *fewer), AD_OK);
        ck_assert_int_eq(memcmp(fewer, together, (size_t)rows * sizeof *fewer), 0);
    }
    check_fine();
}

/* So many that their adjoints are cleared past the caches. */
TEST(each_sweep_of_a_long_tape_begins_with_adjoints_of_zero)
{
    enum { LONG = (1 << 20) + 5 };
    ad_real x = ad_real_leaf(tape, 0.5), y = x;
    for (int i = 1; i < LONG; i++)
        ad_set(&y, ad_real_add(y, x));
    for (int sweep = 1; sweep <= 3; sweep++) {
        double dy_dx;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert(ad_real_gradient(tape, x) == (double)LONG * sweep);
        ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &x, &dy_dx), AD_OK);
        ck_assert(dy_dx == LONG);
    }
    check_fine();
}

TEST(a_result_that_nothing_depends_on_is_passed_over)
{
    ad_real x = ad_real_leaf(tape, 0), y, dead;
    ad_set(&y, ad_real_mul(x, 2));
    ad_set(&dead, ad_real_log(x)); /* its partial is infinite */
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 2);
    double jacobian[2];
    ck_assert_int_eq(ad_real_jacobian(tape, 2, (ad_real[]){y, y}, 1, &x, jacobian), AD_OK);
    ck_assert_double_eq(jacobian[1], 2);
    ck_assert_int_eq(ad_real_backward(tape, dead), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), (double)INFINITY);
}

/* ---- the tape's life ---- */

TEST(bytes_grow_with_the_statements_and_with_nothing_else)
{
    ad_real x = ad_real_leaf(tape, 1), a = ad_real_leaf(tape, 0.999), y = ad_real_leaf(tape, 1);
    for (uint64_t n = 1; n <= 300000; n++) {
        ad_set(&y, ad_real_add(ad_real_mul(a, y), x));
        if ((n & (n - 1)) == 0 || n == 300000) {
            ck_assert_uint_eq(stats().statements, n);
            ck_assert_uint_eq(stats().statement_bytes, n * STATEMENT(2, 1));
            /* A fifth of the blocks may not be filled yet, and the first of them. */
            ck_assert_uint_le(stats().live_bytes, n * STATEMENT(2, 1) * 13 / 10 + 6 * 1024);
        }
    }
    const ad_stats s = stats();
    ck_assert_uint_lt(s.records, 48);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    /* y = x (1 + a + ... + a^(n-1)) + a^n */
    ck_assert_double_eq_tol(ad_real_gradient(tape, x), 1000, 1e-6);
}

TEST(a_tiny_tape_is_small_and_a_reset_gives_all_back)
{
    for (int round = 0; round < 3; round++) {
        ad_real x = ad_real_leaf(tape, 2), y;
        ad_set(&y, ad_real_square(x));
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_double_eq(ad_real_gradient(tape, x), 4);
        ck_assert_uint_lt(stats().live_bytes, 8 << 10);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_uint_eq(stats().live_bytes, 0);
        ck_assert_uint_eq(stats().statements, 0);
    }
}

TEST(a_rewind_drops_what_came_after_the_mark)
{
    ad_real x = ad_real_leaf(tape, 2), y, z, late;
    ad_set(&y, ad_real_square(x));
    const ad_mark mark = ad_tape_mark(tape);
    const ad_stats before = stats();
    for (int round = 0; round < 5; round++) {
        z = y;
        for (int i = 0; i < 20000 * round + 1; i++)
            ad_set(&z, ad_real_add(z, y));
        late = ad_real_leaf(tape, 5);
        ad_set(&z, ad_real_add(z, late));
        ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
        ck_assert_double_eq(ad_real_gradient(tape, x), 4.0 * (20000 * round + 2));
        ck_assert_double_eq(ad_real_gradient(tape, late), 1);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
        ck_assert_uint_eq(stats().statement_bytes, before.statement_bytes);
    }
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 4);
    /* Under the index of what is gone there is another value. */
    ad_real other;
    ad_set(&other, ad_real_mul(x, 3));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_ERROR_HANDLE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_real_backward(tape, other), AD_OK);
}

TEST(tensors_and_scalars_share_a_tape)
{
    double data[2] = {2, 3}, g[2];
    ad_tensor t = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, data), s[3];
    ad_real x = ad_real_leaf(tape, 2), y = x;
    for (int i = 0; i < 3; i++) {
        s[i] = ad_sum(ad_square(t));
        ad_set(&y, ad_real_mul(y, x));
    }
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_backward(s[2]), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 4 * 8);
    ck_assert_int_eq(ad_gradient(t, g, 2), AD_OK);
    ck_assert_double_eq(g[1], 6);
    ck_assert_int_eq(ad_release(s[0]), AD_OK);
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffers, 0);
    ad_tensor d;
    ck_assert_int_eq(ad_create_graph(s[1], (ad_tensor){0, 0, 0, 0}, 1, &t, &d), AD_OK);
    ck_assert_int_eq(ad_backward_release(s[1]), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 8 * 8);
    check_fine();
}

TEST(under_no_grad_results_are_constants)
{
    ad_real x = ad_real_leaf(tape, 2), y, z;
    ad_set(&y, ad_real_square(x));
    ad_tape_no_grad_begin(tape);
    ad_set(&z, ad_real_mul(y, x));
    ck_assert_double_eq(z.value, 8);
    ck_assert_uint_eq(z.index, 0);
    ad_tape_no_grad_end(tape);
    ad_set(&z, ad_real_mul(y, z));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 8 * 4);
    check_fine();
}

RUN_TESTS(setup, teardown)
