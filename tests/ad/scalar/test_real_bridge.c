/* test_real_bridge.c: tensors and real numbers on one tape: values, and the gradients of both kinds
 * of leaves, against the same computation in tensors alone, by hand, and by differences.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
}

static void check_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

static ad_tensor leaf(int rows, int columns, const double *data)
{
    return ad_leaf(tape, AD_F64, 2, SHAPE(rows, columns), data);
}

static const double six[6] = {0.5, -1.25, 2, 0.75, 3, -0.5};

static void check_gradient(ad_tensor x, int n, const double *want, double tolerance)
{
    double got[64];
    ck_assert_int_eq(ad_gradient(x, got, n), AD_OK);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i])),
                      "element %d: %.17g, want %.17g", i, got[i], want[i]);
}

/* ---- values ---- */

TEST(elements_come_row_major_with_consecutive_indices)
{
    ad_real y[6], before = ad_real_leaf(tape, 7);
    ck_assert_int_eq(ad_reals_of_tensor(leaf(2, 3, six), 6, y), AD_OK);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_double_eq(y[i].value, six[i]);
        ck_assert_uint_eq(y[i].index, before.index + 1 + i);
        ck_assert_uint_eq(y[i].tag, before.tag);
    }
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.statements, 0);
    check_fine();
}

/* Each view by its elements, and their weights' way back. */
static void check_view(ad_tensor x, ad_tensor view, int n)
{
    static double weight[64]; /* the same each time: earlier recordings have it still */
    double value[64], want[64];
    ad_real y[64], sum = ad_real_of(0);
    ck_assert_int_eq(ad_value(view, value, n), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(view, n, y), AD_OK);
    for (int i = 0; i < n; i++) {
        ck_assert_double_eq(y[i].value, value[i]);
        weight[i] = 1 + i * 0.25;
        ad_set(&sum, ad_real_add(sum, ad_real_mul(weight[i], y[i])));
    }
    int64_t shape[AD_MAX_RANK];
    ck_assert_int_eq(ad_shape(view, shape), AD_OK);
    ad_tape_zero_gradients(tape);
    ad_tensor w = ad_constant(tape, AD_F64, ad_rank(view), shape, weight);
    ck_assert_int_eq(ad_backward(ad_sum(ad_mul(view, w))), AD_OK);
    ck_assert_int_eq(ad_gradient(x, want, 6), AD_OK);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    check_gradient(x, 6, want, 0);
    check_fine();
}

TEST(views_give_their_elements_and_take_their_adjoints)
{
    ad_tensor x = leaf(2, 3, six);
    check_view(x, x, 6);
    check_view(x, ad_permute(x, SHAPE(1, 0), 2), 6);
    check_view(x, ad_slice(x, 1, 1, 3, 1), 4);
    check_view(x, ad_permute(ad_slice(x, 1, 0, 3, 2), SHAPE(1, 0), 2), 4);
    check_view(x, ad_reshape(x, SHAPE(3, 1, 2), 3), 6);
    check_view(x, ad_broadcast_to(ad_reshape(x, SHAPE(2, 1, 3), 3), SHAPE(2, 4, 3), 3), 24);
    check_view(x, ad_permute(ad_reshape(x, SHAPE(2, 1, 3), 3), SHAPE(2, 0, 1), 3), 6);
    check_view(x, ad_sum(x), 1);
}

TEST(a_tensor_of_reals_has_their_values_in_any_order)
{
    ad_real x[4], scrambled[6];
    double value[6];
    ad_real_leaves(tape, 4, (double[]){1, 2, 3, 4}, x);
    const ad_real order[6] = {x[3], x[0], ad_real_of(-1), x[3], x[1], x[2]};
    memcpy(scrambled, order, sizeof order);
    ad_tensor y = ad_tensor_of_reals(tape, 2, SHAPE(3, 2), scrambled);
    memset(scrambled, 0, sizeof scrambled); /* they were copied */
    ck_assert_int_eq(ad_rank(y), 2);
    ck_assert_int_eq(ad_dtype_of(y), AD_F64);
    ck_assert_int_eq(ad_value(y, value, 6), AD_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(value[i], order[i].value);
    const double weight[6] = {1, 10, 100, 1000, 10000, 100000};
    ck_assert_int_eq(
        ad_backward(ad_sum(ad_mul(y, ad_constant(tape, AD_F64, 2, SHAPE(3, 2), weight)))), AD_OK);
    double g[4];
    ck_assert_int_eq(ad_real_gradients(tape, 4, x, g), AD_OK);
    ck_assert_double_eq(g[0], 10);
    ck_assert_double_eq(g[1], 10000);
    ck_assert_double_eq(g[2], 100000);
    ck_assert_double_eq(g[3], 1001);
    check_fine();
}

TEST(narrow_tensors_give_their_values_and_round_their_adjoints)
{
    const float data[3] = {0.1f, -2.5f, 3};
    ad_tensor x = ad_leaf(tape, AD_F32, 1, SHAPE(3), data);
    ad_real y[3], s;
    float g[3];
    ck_assert_int_eq(ad_reals_of_tensor(ad_neg(x), 3, y), AD_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(y[i].value, -(double)data[i]);
    ad_set(&s, ad_real_add(ad_real_mul(y[0], 1.0 / 3), ad_real_mul(y[1], y[2])));
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &s);
    ad_tensor wide = ad_cast(ad_sum(ad_square(x)), AD_F64);
    ck_assert_int_eq(ad_backward(ad_add(t, wide)), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, 3), AD_OK);
    ck_assert_float_eq(g[0], -(float)(1.0 / 3) + 2 * data[0]);
    ck_assert_float_eq(g[1], data[2] + 2 * data[1]);
    ck_assert_float_eq(g[2], data[1] + 2 * data[2]);
    /* Twice into one adjoint of f32. */
    ad_real z[3], u;
    ad_tensor h = ad_exp(x);
    ck_assert_int_eq(ad_reals_of_tensor(h, 3, y), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(h, 3, z), AD_OK);
    ad_set(&u, ad_real_add(ad_real_mul(0.1, y[1]), ad_real_mul(0.7, z[1])));
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, u), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, 3), AD_OK);
    ck_assert_float_eq(g[1], (0.1f + 0.7f) * (float)y[1].value);
    ck_assert_float_eq(g[0], 0);
    check_fine();
}

TEST(what_needs_no_gradient_gives_constants)
{
    const int64_t whole[2] = {3, -4};
    ad_real y[6], x = ad_real_leaf(tape, 2);
    ad_tensor w = leaf(2, 3, six);
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    ck_assert_int_eq(ad_reals_of_tensor(ad_constant(tape, AD_F64, 1, SHAPE(6), six), 6, y), AD_OK);
    for (int i = 0; i < 6; i++)
        ck_assert(y[i].value == six[i] && y[i].index == 0 && y[i].tag == 0);
    ck_assert_int_eq(ad_reals_of_tensor(ad_detach(w), 6, y), AD_OK);
    ck_assert(y[5].value == six[5] && y[5].index == 0);
    ck_assert_int_eq(ad_reals_of_tensor(ad_constant(tape, AD_I64, 1, SHAPE(2), whole), 2, y),
                     AD_OK);
    ck_assert(y[0].value == 3 && y[1].value == -4 && y[1].index == 0);
    ad_tape_no_grad_begin(tape);
    ck_assert_int_eq(ad_reals_of_tensor(w, 6, y), AD_OK);
    ck_assert(y[3].value == six[3] && y[3].index == 0);
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &x);
    ad_tape_no_grad_end(tape);
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_double_eq(ad_item(t), 2);
    ck_assert_int_eq(ad_backward(t), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "does not depend on a leaf"));
    ad_tape_clear_error(tape);
    t = ad_tensor_of_reals(tape, 1, SHAPE(2), y);
    ck_assert_int_eq(ad_backward(ad_sum(t)), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    /* Beside a variable they have no gradient, and do no harm. */
    y[1] = x;
    ck_assert_int_eq(ad_backward(ad_prod(ad_tensor_of_reals(tape, 1, SHAPE(2), y))), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), y[0].value);
}

TEST(without_elements_nothing_is_recorded)
{
    ad_tensor none = ad_leaf(tape, AD_F64, 2, SHAPE(0, 3), NULL);
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    ck_assert_int_eq(ad_reals_of_tensor(none, 0, NULL), AD_OK);
    ad_tensor t = ad_tensor_of_reals(tape, 2, SHAPE(3, 0), NULL);
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_int_eq(ad_size(t), 0);
    ck_assert_double_eq(ad_item(ad_sum(t)), 0);
    ad_real x = ad_real_leaf(tape, 2);
    ad_tensor all = ad_add(ad_tensor_of_reals(tape, 0, NULL, &x), ad_sum(none));
    ck_assert_int_eq(ad_backward(ad_add(all, ad_sum(t))), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 1);
    check_fine();
}

TEST(records_have_the_bytes_that_are_promised)
{
    ad_real y[6], x = ad_real_leaf(tape, 1);
    ad_tensor w = ad_neg(leaf(2, 3, six));
    ad_stats a, b, c;
    ad_tape_stats(tape, &a);
    ad_reals_of_tensor(w, 6, y);
    ad_tape_stats(tape, &b);
    ck_assert_uint_eq(b.records - a.records, 1);
    ck_assert_uint_eq(b.values, a.values);
    ck_assert_uint_eq(b.live_bytes - a.live_bytes, 40);
    y[0] = x;
    ad_tensor_of_reals(tape, 1, SHAPE(6), y);
    ad_tape_stats(tape, &c);
    ck_assert_uint_eq(c.records - b.records, 1);
    /* Its value (64 of 48), entry, shape and strides; a head of 24, the output, 6 indices: 56. */
    ck_assert_uint_eq(c.live_bytes - b.live_bytes, 64 + 72 + 16 + 56);
}

/* ---- sweeps ---- */

/* A layer by scalar code: each row divided by its root of the sum of squares. */
static void normalize(ad_real *u, int rows, int columns)
{
    for (int r = 0; r < rows; r++) {
        ad_real s = ad_real_of(0);
        for (int c = 0; c < columns; c++)
            ad_set(&s, ad_real_add(s, ad_real_square(u[r * columns + c])));
        for (int c = 0; c < columns; c++)
            ad_set(&u[r * columns + c], ad_real_div(u[r * columns + c], ad_real_sqrt(s)));
    }
}

/* The same in ops: three layers, the middle one normalized by `scalar` code or by ops. */
static ad_tensor network(ad_tensor x, ad_tensor w, ad_tensor v, bool scalar)
{
    ad_tensor h = ad_tanh(ad_matmul(x, w));
    for (int k = 0; k < 2; k++) {
        if (scalar) {
            ad_real u[16];
            ck_assert_int_eq(ad_reals_of_tensor(h, 8, u), AD_OK);
            normalize(u, 2, 4);
            h = ad_tensor_of_reals(tape, 2, SHAPE(2, 4), u);
        } else {
            ad_tensor s = ad_sum_axes(ad_square(h), SHAPE(1), 1, AD_KEEPDIM);
            h = ad_div(h, ad_sqrt(s));
        }
        h = ad_sin(ad_matmul(h, v));
    }
    return ad_sum(ad_exp(h));
}

static const double sixteen[16] = {0.3, -0.2, 0.9,  0.1, -0.7, 0.6, 0.25, -0.4,
                                   0.8, 0.05, -0.1, 0.5, 0.35, 0.7, -0.9, 0.2};

TEST(there_and_back_twice_the_gradients_are_those_of_tensors_alone)
{
    ad_tensor x = leaf(2, 3, six), w = leaf(3, 4, sixteen), v = leaf(4, 4, sixteen);
    double gx[6], gw[12], gv[16];
    ad_tensor y = network(x, w, v, false), z = network(x, w, v, true);
    ck_assert_double_eq_tol(ad_item(z), ad_item(y), 1e-14);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, gx, 6), AD_OK);
    ck_assert_int_eq(ad_gradient(w, gw, 12), AD_OK);
    ck_assert_int_eq(ad_gradient(v, gv, 16), AD_OK);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_backward(z), AD_OK);
    check_gradient(x, 6, gx, 1e-13);
    check_gradient(w, 12, gw, 1e-13);
    check_gradient(v, 16, gv, 1e-13);
    /* From a scalar in the end, and over what is there: twice as much. */
    ad_real out;
    ck_assert_int_eq(ad_reals_of_tensor(z, 1, &out), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, out), AD_OK);
    for (int i = 0; i < 16; i++)
        gv[i] *= 2;
    check_gradient(v, 16, gv, 1e-13);
    check_fine();
}

/* Leaves of both kinds: f(a, t) = sum of tanh(t[i] a[i] + t[i + 1]) by turns in both worlds. */
static double mixed(const double *a, const double *t, ad_real *reals, ad_tensor *tensor,
                    ad_real *real_out, ad_tensor *tensor_out)
{
    ad_real u[3], s = ad_real_of(0);
    ad_real_leaves(tape, 3, a, reals);
    *tensor = ad_leaf(tape, AD_F64, 1, SHAPE(3), t);
    ck_assert_int_eq(ad_reals_of_tensor(*tensor, 3, u), AD_OK);
    for (int i = 0; i < 3; i++)
        ad_set(&u[i], ad_real_add(ad_real_mul(u[i], reals[i]), u[(i + 1) % 3]));
    ad_tensor h = ad_mul(ad_tanh(ad_tensor_of_reals(tape, 1, SHAPE(3), u)), *tensor);
    ad_real k[3];
    ck_assert_int_eq(ad_reals_of_tensor(h, 3, k), AD_OK);
    for (int i = 0; i < 3; i++)
        ad_set(&s, ad_real_add(s, ad_real_mul(k[i], ad_real_exp(reals[2 - i]))));
    *real_out = s;
    *tensor_out = ad_square(ad_tensor_of_reals(tape, 0, NULL, &s));
    return s.value;
}

TEST(leaves_of_both_kinds_agree_with_differences)
{
    double point[6] = {0.3, -0.4, 0.8, 1.1, 0.6, -0.7}, got[12];
    ad_real a[3], s;
    ad_tensor t, y;
    const double value = mixed(point, point + 3, a, &t, &s, &y);
    ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 3, a, got), AD_OK);
    ck_assert_int_eq(ad_gradient(t, got + 3, 3), AD_OK);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 3, a, got + 6), AD_OK);
    ck_assert_int_eq(ad_gradient(t, got + 9, 3), AD_OK);
    for (int i = 0; i < 6; i++) {
        double side[2], kept = point[i];
        for (int k = 0; k < 2; k++) {
            ad_tape_reset(tape);
            point[i] = kept + (k ? 1e-5 : -1e-5);
            side[k] = mixed(point, point + 3, a, &t, &s, &y);
        }
        point[i] = kept;
        const double want = (side[1] - side[0]) / 2e-5;
        ck_assert_double_eq_tol(got[i], want, 1e-8);
        ck_assert_double_eq_tol(got[i + 6], 2 * value * got[i], 1e-13);
    }
    check_fine();
}

TEST(sweeps_add_up_and_are_cleared_in_both_kinds_of_leaves)
{
    ad_real a[3], s;
    ad_tensor t, y;
    double g[2][6];
    mixed(six, six + 3, a, &t, &s, &y);
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k <= 2 * round; k++)
            ck_assert_int_eq(k == 1 ? ad_real_backward(tape, s) : ad_backward(y), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 3, a, g[round]), AD_OK);
        ck_assert_int_eq(ad_gradient(t, g[round] + 3, 3), AD_OK);
        ad_tape_zero_gradients(tape);
        ck_assert_double_eq(ad_real_gradient(tape, a[0]), 0);
        check_gradient(t, 3, (double[3]){0}, 0);
    }
    /* y = s^2: two of its sweeps and one of s. */
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(g[1][i], 2 * g[0][i] + g[0][i] / (2 * s.value), 1e-12);
    check_fine();
}

TEST(seeds_of_several_scalars_reach_tensors_together)
{
    ad_tensor x = leaf(2, 3, six), h = ad_square(x);
    ad_real u[6];
    const double seed[6] = {1, 2, 3, 4, 5, 6};
    double want[6];
    ck_assert_int_eq(ad_reals_of_tensor(h, 6, u), AD_OK);
    ck_assert_int_eq(ad_real_backward_seeds(tape, 6, u, seed), AD_OK);
    for (int i = 0; i < 6; i++)
        want[i] = 2 * six[i] * seed[i];
    check_gradient(x, 6, want, 1e-15);
}

TEST(what_no_adjoint_comes_to_is_left_alone)
{
    /* Infinite derivatives on a branch whose elements are not used. */
    const double zero[2] = {0, 4};
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(2), zero), root = ad_sqrt(x);
    ad_real u[2], v[2], y;
    ck_assert_int_eq(ad_retain_gradient(root), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(root, 2, u), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(x, 2, v), AD_OK);
    ad_set(&y, ad_real_mul(v[0], v[1]));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    check_gradient(x, 2, (double[]){4, 0}, 0);
    check_gradient(root, 2, (double[]){0, 0}, 0);
    check_fine();
}

TEST(many_elements_cross_in_both_directions)
{
    enum { N = 5000 };
    static double data[N], g[N];
    static ad_real u[N];
    for (int i = 0; i < N; i++)
        data[i] = sin(i);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(50, 100), data);
    ck_assert_int_eq(ad_reals_of_tensor(ad_permute(x, SHAPE(1, 0), 2), N, u), AD_OK);
    for (int i = 0; i < N; i++)
        ad_set(&u[i], ad_real_mul(u[i], ad_real_mul(u[i], 0.5 * i)));
    ck_assert_int_eq(ad_backward(ad_sum(ad_tensor_of_reals(tape, 1, SHAPE(N), u))), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, N), AD_OK);
    for (int row = 0; row < 50; row++)
        for (int column = 0; column < 100; column++) {
            const int i = row * 100 + column, place = column * 50 + row;
            ck_assert_double_eq_tol(g[i], data[i] * place, 1e-9);
        }
}

RUN_TESTS(setup, teardown)
