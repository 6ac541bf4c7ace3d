/* test_tape.c: what the public functions promise of values, gradients, marks and views.
 *
 * Each test has a tape of its own, which must be without an error at the end.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

/* What calls return is dropped: the error that stays in the tape is looked at. */
#pragma GCC diagnostic ignored "-Wunused-result"

#define LENGTH(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))
#define LIST(...) ((double[]){__VA_ARGS__})
#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define GRADIENT(x, ...)                                                                           \
    expect(ad_gradient, x, LIST(__VA_ARGS__), LENGTH(LIST(__VA_ARGS__)), __LINE__)
#define VALUE(x, ...) expect(ad_value, x, LIST(__VA_ARGS__), LENGTH(LIST(__VA_ARGS__)), __LINE__)
#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(tape))
#define REFUSED(code, call)                                                                        \
    do {                                                                                           \
        (void)(call);                                                                              \
        ck_assert_msg(ad_tape_status(tape) == (code), "%s", ad_tape_message(tape));                \
        ad_tape_clear_error(tape);                                                                 \
    } while (0)

static double a[] = {1, 2, 3}, b[] = {1, 2, 3, 4, 5, 6};
static float f[] = {1, 2, 3};

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

static ad_tensor leaf(const double *data, int64_t n)
{
    return ad_leaf(tape, AD_F64, 1, &n, data);
}

static void expect(ad_status (*read)(ad_tensor, void *, int64_t), ad_tensor x, const double *want,
                   int64_t n, int line)
{
    double got[16];
    float single[16];
    bool narrow = ad_dtype_of(x) == AD_F32;
    ad_status status = read(x, narrow ? (void *)single : (void *)got, n);
    ck_assert_msg(status == AD_OK, "line %d: %s", line, ad_tape_message(tape));
    for (int64_t i = 0; i < n; i++) {
        if (narrow)
            got[i] = (double)single[i];
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i])),
                      "line %d: element %d is %.17g, not %.17g", line, (int)i, got[i], want[i]);
    }
}

/* ---- values ---- */

TEST(values_shapes_and_types_are_read_back)
{
    int64_t shape[2] = {0, 0};
    ad_tensor x = ad_leaf(tape, AD_F32, 2, SHAPE(3, 1), f);
    ck_assert_int_eq(ad_rank(x), 2);
    ck_assert_int_eq(ad_size(x), 3);
    ck_assert_int_eq(ad_dtype_of(x), AD_F32);
    OK(ad_shape(x, shape));
    ck_assert(shape[0] == 3 && shape[1] == 1);
    VALUE(x, 1, 2, 3);
    ad_tensor i = ad_constant(tape, AD_I64, 1, SHAPE(2), SHAPE(7, -8));
    OK(ad_value(i, shape, 2));
    ck_assert(shape[0] == 7 && shape[1] == -8);
    ck_assert_double_eq(ad_item(ad_scalar_f32(tape, 0.5)), 0.5);
    ad_tape of = ad_tape_of(x);
    ck_assert(of.slot == tape.slot && of.generation == tape.generation);
}

TEST(leaves_borrow_the_users_array)
{
    double data[] = {1, 2};
    ad_tensor x = leaf(data, 2);
    data[1] = 5;
    VALUE(x, 1, 5);
    VALUE(ad_square(x), 1, 25);
}

TEST(tensors_of_rank_0_and_of_single_precision_have_gradients)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, &a[1]), y = ad_mul(x, ad_square(x));
    ck_assert_int_eq(ad_rank(y), 0);
    ck_assert_int_eq(ad_size(y), 1);
    ck_assert_double_eq(ad_item(y), 8);
    OK(ad_backward(y));
    GRADIENT(x, 12);
    ad_tensor z = ad_leaf(tape, AD_F32, 1, SHAPE(3), f);
    OK(ad_backward(ad_sum(ad_mul(z, ad_square(z)))));
    GRADIENT(z, 3, 12, 27);
}

TEST(tensors_without_elements_go_through_everything)
{
    double none[1] = {9};
    ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(0, 3), NULL);
    ck_assert_int_eq(ad_size(x), 0);
    ad_tensor t = ad_reshape(ad_transpose(ad_exp(ad_add(x, x))), SHAPE(0), 1);
    OK(ad_retain_gradient(t));
    ad_tensor y = ad_sum(t);
    ck_assert_double_eq(ad_item(y), 0);
    OK(ad_backward(y));
    OK(ad_backward_seed(t, ad_constant(tape, AD_F64, 1, SHAPE(0), NULL)));
    OK(ad_value(t, NULL, 0));
    OK(ad_gradient(x, none, 0));
    OK(ad_gradient(t, none, 0));
    OK(ad_gradient_buffer(x, none, 0));
    OK(ad_backward(y));
    ck_assert_double_eq(none[0], 9);
    ad_tensor w = ad_leaf(tape, AD_F64, 2, SHAPE(3, 2), b);
    ad_tensor product = ad_matmul(x, w), outer = ad_matmul(ad_transpose(x), x);
    OK(ad_backward(ad_add(ad_sum(product), ad_sum(outer))));
    VALUE(outer, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    GRADIENT(w, 0, 0, 0, 0, 0, 0);
}

TEST(views_are_read_row_major)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(2, 3), b), t = ad_transpose(x);
    VALUE(t, 1, 4, 2, 5, 3, 6);
    VALUE(ad_transpose(t), 1, 2, 3, 4, 5, 6);
    ad_tensor r = ad_reshape(t, SHAPE(2, -1), 2);
    VALUE(r, 1, 4, 2, 5, 3, 6);
    VALUE(ad_reshape(x, SHAPE(6), 1), 1, 2, 3, 4, 5, 6);
    VALUE(ad_detach(t), 1, 4, 2, 5, 3, 6);
    ad_tensor weights = ad_constant(tape, AD_F64, 2, SHAPE(2, 3), LIST(1, 10, 100, 1000, 1e4, 1e5));
    OK(ad_backward(ad_sum(ad_mul(r, weights))));
    GRADIENT(x, 1, 100, 1e4, 10, 1000, 1e5);
    OK(ad_backward(ad_sum(ad_square(t))));
    GRADIENT(x, 3, 104, 10006, 18, 1010, 100012);
}

TEST(a_view_keeps_its_value_when_the_viewed_handle_is_not_used_again)
{
    ad_tensor x = leaf(b, 6), t = ad_transpose(ad_reshape(ad_square(x), SHAPE(2, 3), 2));
    for (int i = 0; i < 10; i++)
        ad_exp(x);
    VALUE(t, 1, 16, 4, 25, 9, 36);
    OK(ad_backward(ad_sum(t)));
    GRADIENT(x, 2, 4, 6, 8, 10, 12);
}

/* ---- one operand twice ---- */

TEST(an_operand_used_twice_gets_both_gradients)
{
    ad_tensor x = leaf(a, 3), i = ad_scale(x, 1);
    OK(ad_backward(ad_sum(ad_add(x, x))));
    GRADIENT(x, 2, 2, 2);
    OK(ad_backward(ad_sum(ad_sub(x, x))));
    GRADIENT(x, 2, 2, 2);
    OK(ad_backward(ad_sum(ad_mul(x, x))));
    GRADIENT(x, 4, 6, 8);
    OK(ad_backward(ad_sum(ad_div(x, x))));
    GRADIENT(x, 4, 6, 8);
    OK(ad_tape_zero_gradients(tape));
    /* The same with an intermediate, whose adjoint an identity hands over. */
    OK(ad_backward(ad_sum(ad_add(i, i))));
    GRADIENT(x, 2, 2, 2);
    OK(ad_backward(ad_sum(ad_sub(i, i))));
    GRADIENT(x, 2, 2, 2);
    OK(ad_backward(ad_sum(ad_mul(ad_add(i, i), ad_sub(i, x)))));
    GRADIENT(x, 2, 2, 2);
    ad_tensor m = ad_reshape(leaf(b, 4), SHAPE(2, 2), 2), square = ad_matmul(m, ad_transpose(m));
    OK(ad_retain_gradient(m));
    OK(ad_backward(ad_sum(square)));
    GRADIENT(m, 8, 12, 8, 12);
}

TEST(a_value_added_along_two_paths_is_not_counted_through_the_other)
{
    ad_tensor x = leaf(a, 3), i = ad_scale(x, 2), s = ad_add(i, x), t = ad_add(s, i);
    OK(ad_retain_gradient(i));
    OK(ad_retain_gradient(s));
    OK(ad_retain_gradient(t));
    OK(ad_backward(ad_sum(ad_mul(t, s))));
    GRADIENT(t, 3, 6, 9);
    GRADIENT(s, 8, 16, 24);
    GRADIENT(i, 11, 22, 33);
    GRADIENT(x, 30, 60, 90);
}

/* ---- several sweeps ---- */

TEST(sweeps_add_and_intermediates_do_not_leak_from_one_into_the_next)
{
    ad_tensor x = leaf(a, 3), h = ad_square(x), y = ad_sum(h), z = ad_sum(ad_mul(h, x));
    uint64_t live = stats().live_bytes;
    OK(ad_backward(y));
    GRADIENT(x, 2, 4, 6);
    OK(ad_backward(y));
    GRADIENT(x, 4, 8, 12);
    OK(ad_backward(z));
    GRADIENT(x, 7, 20, 39);
    ck_assert_uint_eq(stats().live_bytes, live);
    OK(ad_tape_zero_gradients(tape));
    GRADIENT(x, 0, 0, 0);
    OK(ad_backward(z));
    GRADIENT(x, 3, 12, 27);
    OK(ad_backward(ad_scale(y, 2))); /* recorded after a sweep */
    GRADIENT(x, 7, 20, 39);
}

TEST(a_seed_weighs_the_outputs)
{
    ad_tensor x = leaf(a, 3), y = ad_square(x);
    ad_tensor seed = ad_constant(tape, AD_F64, 1, SHAPE(3), LIST(1, 0, -1));
    OK(ad_backward_seed(y, seed));
    GRADIENT(x, 2, 0, -6);
    OK(ad_backward_seed(y, y)); /* any tensor of the shape, the output itself too */
    GRADIENT(x, 4, 16, 48);
    OK(ad_backward_seed(x, seed)); /* a leaf is its own output */
    GRADIENT(x, 5, 16, 47);
    ad_tensor m = ad_leaf(tape, AD_F64, 2, SHAPE(2, 3), b), t = ad_transpose(m);
    ad_tensor view = ad_transpose(ad_constant(tape, AD_F64, 2, SHAPE(2, 3), b));
    OK(ad_backward_seed(t, view));
    GRADIENT(m, 1, 2, 3, 4, 5, 6);
}

TEST(the_gradient_of_a_leaf_by_itself_is_one)
{
    ad_tensor x = leaf(a, 1);
    OK(ad_backward(x));
    GRADIENT(x, 1);
    OK(ad_backward(x));
    GRADIENT(x, 2);
}

/* ---- where gradients go ---- */

TEST(gradient_needs_a_sweep_and_overwrites_the_buffer_with_zeros_if_none_has_arrived)
{
    double buffer[] = {7, 8, 9};
    ad_tensor x = leaf(a, 3), other = leaf(b, 3);
    REFUSED(AD_ERROR_STATE, ad_gradient(x, buffer, 3));
    ck_assert(isnan(buffer[0]) && isnan(buffer[1]) && isnan(buffer[2]));
    OK(ad_backward(ad_sum(other)));
    OK(ad_gradient(x, buffer, 3));
    ck_assert(buffer[0] == 0 && buffer[1] == 0 && buffer[2] == 0);
    OK(ad_backward(ad_sum(x)));
    OK(ad_gradient(x, buffer, 3));
    OK(ad_gradient(x, buffer, 3));
    ck_assert(buffer[0] == 1 && buffer[1] == 1 && buffer[2] == 1);
}

TEST(a_gradient_buffer_accumulates_across_sweeps_and_rewinds)
{
    double buffer[] = {10, 20, 30};
    ad_tensor x = leaf(a, 3);
    OK(ad_gradient_buffer(x, buffer, 3));
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 1; i <= 3; i++) {
        OK(ad_backward(ad_sum(ad_square(x))));
        OK(ad_tape_rewind(tape, mark));
        ck_assert(buffer[0] == 10 + 2 * i && buffer[1] == 20 + 4 * i && buffer[2] == 30 + 6 * i);
    }
    OK(ad_tape_zero_gradients(tape)); /* the user's stay his */
    GRADIENT(x, 16, 32, 48);
    memset(buffer, 0, sizeof buffer);
    OK(ad_backward(ad_sum(x)));
    GRADIENT(x, 1, 1, 1);
    OK(ad_gradient_buffer(x, NULL, 0));
    double other[3];
    REFUSED(AD_ERROR_STATE, ad_gradient(x, other, 3)); /* it went with the buffer */
    OK(ad_backward(ad_sum(ad_scale(x, 5))));
    GRADIENT(x, 5, 5, 5);
    ck_assert(buffer[0] == 1 && buffer[1] == 1 && buffer[2] == 1);
}

TEST(a_retained_gradient_is_that_of_its_own_path)
{
    ad_tensor x = leaf(b, 6), y = ad_reshape(x, SHAPE(2, 3), 2);
    OK(ad_retain_gradient(y));
    OK(ad_retain_gradient(y));
    ad_tensor z = ad_add(ad_sum(y), ad_sum(x));
    double buffer[6];
    REFUSED(AD_ERROR_STATE, ad_gradient(y, buffer, 6));
    OK(ad_backward(z));
    GRADIENT(y, 1, 1, 1, 1, 1, 1);
    GRADIENT(x, 2, 2, 2, 2, 2, 2);
    OK(ad_backward(z));
    GRADIENT(y, 2, 2, 2, 2, 2, 2);
    GRADIENT(x, 4, 4, 4, 4, 4, 4);
    ad_tensor i = ad_scale(x, 2), j = ad_transpose(ad_reshape(i, SHAPE(2, 3), 2));
    OK(ad_retain_gradient(i));
    OK(ad_retain_gradient(j));
    OK(ad_tape_zero_gradients(tape));
    GRADIENT(y, 0, 0, 0, 0, 0, 0);
    OK(ad_backward(ad_add(ad_sum(ad_square(j)), ad_sum(i))));
    GRADIENT(j, 4, 16, 8, 20, 12, 24);
    GRADIENT(i, 5, 9, 13, 17, 21, 25);
    GRADIENT(x, 10, 18, 26, 34, 42, 50);
}

TEST(nothing_is_recorded_under_no_grad)
{
    ad_tensor x = leaf(a, 3);
    uint64_t records = stats().records;
    OK(ad_tape_no_grad_begin(tape));
    OK(ad_tape_no_grad_begin(tape));
    ad_tensor y = ad_square(x);
    OK(ad_tape_no_grad_end(tape));
    ad_tensor z = ad_square(x);
    OK(ad_tape_no_grad_end(tape));
    ck_assert_uint_eq(stats().records, records);
    VALUE(y, 1, 4, 9);
    OK(ad_backward(ad_sum(ad_mul(ad_mul(y, z), x))));
    GRADIENT(x, 1, 16, 81);
    REFUSED(AD_ERROR_STATE, ad_backward(ad_sum(y)));
    REFUSED(AD_ERROR_STATE, ad_tape_no_grad_end(tape));
    ad_mark mark = ad_tape_mark(tape);
    OK(ad_tape_no_grad_begin(tape));
    OK(ad_tape_rewind(tape, mark)); /* the depth is again that of the mark */
    REFUSED(AD_ERROR_STATE, ad_tape_no_grad_end(tape));
    OK(ad_tape_no_grad_begin(tape));
    OK(ad_tape_reset(tape));
    x = leaf(a, 3);
    OK(ad_backward(ad_sum(x)));
    ck_assert_uint_eq(stats().records, 1);
}

TEST(no_gradient_flows_through_detach)
{
    ad_tensor x = leaf(a, 3), d = ad_detach(ad_square(x));
    OK(ad_backward(ad_sum(ad_mul(d, x))));
    GRADIENT(x, 1, 4, 9);
    REFUSED(AD_ERROR_STATE, ad_backward(ad_sum(d)));
}

TEST(a_recorded_gradient_can_be_differentiated_again)
{
    ad_tensor x = leaf(a, 3), h = ad_square(x), y = ad_sum(ad_mul(h, x)), other = leaf(a, 2);
    ad_tensor in[] = {x, h, other, y}, g[4], second;
    OK(ad_create_graph(y, (ad_tensor){0}, 4, in, g));
    VALUE(g[0], 3, 12, 27);
    VALUE(g[1], 1, 2, 3);
    VALUE(g[2], 0, 0);
    VALUE(g[3], 1);
    double none[3];
    REFUSED(AD_ERROR_STATE, ad_gradient(x, none, 3)); /* nothing was swept in place */
    OK(ad_backward(ad_sum(g[0])));
    GRADIENT(x, 6, 12, 18);
    OK(ad_create_graph(g[0], ad_constant(tape, AD_F64, 1, SHAPE(3), LIST(1, 0, 2)), 1, &x,
                       &second));
    VALUE(second, 6, 0, 36);
    OK(ad_tape_zero_gradients(tape));
    OK(ad_backward(ad_sum(second)));
    GRADIENT(x, 6, 0, 12);
    OK(ad_create_graph(y, (ad_tensor){0}, 0, NULL, NULL));
}

/* ---- reset, mark, rewind ---- */

TEST(reset_drops_everything_and_keeps_the_memory)
{
    uint64_t empty = stats().live_bytes;
    ad_tensor x = leaf(a, 3);
    OK(ad_backward(ad_sum(x)));
    ad_square(ad_transpose(x)); /* an error, which reset takes along */
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
    OK(ad_tape_reset(tape));
    ad_stats now = stats();
    ck_assert(now.values == 0 && now.records == 0 && now.live_bytes == empty);
    REFUSED(AD_ERROR_HANDLE, ad_square(x));
    ad_tensor y = leaf(a, 3); /* takes the index that x had */
    REFUSED(AD_ERROR_HANDLE, ad_square(x));
    double buffer[3];
    REFUSED(AD_ERROR_STATE, ad_gradient(y, buffer, 3));
}

TEST(handles_from_before_a_mark_stay_valid_and_later_ones_are_refused)
{
    ad_tensor x = leaf(a, 3), y = ad_square(x);
    ad_mark outer = ad_tape_mark(tape);
    ad_tensor u = ad_exp(x);
    ad_mark inner = ad_tape_mark(tape);
    ad_tensor v = ad_exp(u);
    OK(ad_backward(ad_sum(v)));
    OK(ad_tape_rewind(tape, inner));
    OK(ad_tape_rewind(tape, inner));
    REFUSED(AD_ERROR_HANDLE, ad_sum(v));
    ck_assert_double_eq(ad_item(ad_sum(y)), 14);
    double buffer[3];
    REFUSED(AD_ERROR_STATE, ad_gradient(x, buffer, 3)); /* the rewind cleared it */
    OK(ad_backward(ad_sum(ad_mul(u, y))));
    OK(ad_tape_rewind(tape, outer));
    REFUSED(AD_ERROR_STATE, ad_tape_rewind(tape, inner));
    REFUSED(AD_ERROR_HANDLE, ad_sum(u));
    ad_tensor w = ad_scale(x, 3); /* takes the index that u had */
    REFUSED(AD_ERROR_HANDLE, ad_sum(u));
    VALUE(w, 3, 6, 9);
    ad_mark again = ad_tape_mark(tape);
    REFUSED(AD_ERROR_STATE, ad_tape_rewind(tape, inner));
    OK(ad_tape_rewind(tape, again));
    OK(ad_tape_rewind(tape, outer));
    OK(ad_backward(ad_sum(y)));
    GRADIENT(x, 2, 4, 6);
    OK(ad_tape_reset(tape));
    REFUSED(AD_ERROR_STATE, ad_tape_rewind(tape, outer));
}

TEST(two_tapes_of_one_thread_do_not_touch_each_other)
{
    ad_tape other;
    OK(ad_tape_create(&other, &(ad_tape_options){.reserve_bytes = 1 << 22}));
    ad_tensor x = leaf(a, 3), y = ad_leaf(other, AD_F64, 1, SHAPE(3), a);
    OK(ad_backward(ad_sum(ad_square(y))));
    double buffer[3];
    REFUSED(AD_ERROR_STATE, ad_gradient(x, buffer, 3));
    OK(ad_tape_reset(other));
    OK(ad_backward(ad_sum(x)));
    GRADIENT(x, 1, 1, 1);
    OK(ad_tape_destroy(other));
}

RUN_TESTS(setup, teardown_fine)
