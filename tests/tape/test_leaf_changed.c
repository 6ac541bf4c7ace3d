/* test_leaf_changed.c: arrays that the user changes between recording and sweep, and when he may.
 *
 * Each test has a tape of its own that looks at whole arrays, and must be without an error at the
 * end.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(tape))

enum { N = 6 };

static const ad_tensor zero;
static double data[N], other[N];
static float singles[N];
static int64_t labels[3];

static ad_tape checked_tape(void)
{
    ad_tape t;
    ad_tape_options options = {.reserve_bytes = 16 << 20, .check = AD_CHECK_ALL};
    ck_assert_int_eq(ad_tape_create(&t, &options), AD_OK);
    return t;
}

static void setup(void)
{
    modules_find();
    for (int i = 0; i < N; i++) {
        data[i] = 0.5 * (i + 1);
        singles[i] = 0.25F * (float)(i + 1);
        other[i] = 3 - i;
    }
    memcpy(labels, SHAPE(0, 1, 1), sizeof labels);
    tape = checked_tape();
}

static ad_tensor leaf(const double *from)
{
    return ad_leaf(tape, AD_F64, 2, SHAPE(2, 3), from);
}

static ad_tensor constant(const double *from)
{
    return ad_constant(tape, AD_F64, 2, SHAPE(2, 3), from);
}

/* The call gives AD_ERROR_STATE, changes nothing, and its message has all that is asked for. */
static void expect_refusal(ad_status status, ad_stats before, const char *what, const char *array,
                           const char *op)
{
    const char *message = ad_tape_message(tape);
    ad_stats after;
    ck_assert_msg(status == AD_ERROR_STATE, "%s", message);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_STATE);
    ck_assert_msg(strncmp(message, what, strlen(what)) == 0 && strstr(message, array) &&
                      strstr(message, op) && strstr(message, "test_leaf_changed.c:"),
                  "%s", message);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert(after.values == before.values && after.records == before.records &&
              after.live_bytes == before.live_bytes);
    ad_tape_clear_error(tape);
}

#define REFUSED(call, what, array, op)                                                             \
    do {                                                                                           \
        ad_stats before_ = stats();                                                                \
        ad_status status_ = (call);                                                                \
        expect_refusal(status_, before_, what, array, op);                                         \
    } while (0)

static void expect_gradient(ad_tensor x, const double *want, int line)
{
    double got[N];
    ck_assert_msg(ad_gradient(x, got, N) == AD_OK, "line %d: %s", line, ad_tape_message(tape));
    for (int i = 0; i < N; i++)
        ck_assert_msg(got[i] == want[i], "line %d: element %d is %.17g, not %.17g", line, i, got[i],
                      want[i]);
}

/* ---- what is refused ---- */

TEST(a_sweep_that_would_read_a_changed_leaf_is_refused_and_changes_nothing)
{
    double before[N], after[N], twice[N];
    const int line = __LINE__ + 1;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(N), data), y = ad_sum(ad_square(x));
    ad_tensor z = ad_sum(ad_scale(x, 3));
    char place[64];
    OK(ad_backward(z));
    OK(ad_gradient(x, before, N));
    ck_assert(!ad_leaf_changed(x));
    data[4] = -1;
    ck_assert(ad_leaf_changed(x));
    REFUSED(ad_backward(y), "backward: the leaf f64 [6] of ", "changed after square at ",
            "saved it; the call is at ");
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    snprintf(place, sizeof place, "test_leaf_changed.c:%d in ", line);
    const char *first = strstr(ad_tape_message(tape), place);
    ck_assert_msg(first && strstr(first + 1, place), "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    OK(ad_gradient(x, after, N));
    ck_assert_mem_eq(before, after, sizeof before);
    /* What does not read it sweeps on; and it is no change that has been undone. */
    OK(ad_backward(z));
    data[4] = 2.5;
    ck_assert(!ad_leaf_changed(x));
    OK(ad_backward(y));
    for (int i = 0; i < N; i++)
        twice[i] = 6 + 2 * data[i];
    expect_gradient(x, twice, __LINE__);
}

TEST(whatever_type_and_role_an_array_has_its_change_is_noticed)
{
    ad_tensor x = leaf(data), c = constant(other), l, rows, mask, narrow, y;
    y = ad_sum(ad_mul(x, c));
    other[5] = 7;
    ck_assert(ad_leaf_changed(c) && !ad_leaf_changed(x));
    REFUSED(ad_backward(y), "backward: the constant f64 [2,3] of ", "after mul at ", "saved it");
    other[5] = -2;
    OK(ad_backward(y));

    narrow = ad_leaf(tape, AD_F32, 1, SHAPE(N), singles);
    y = ad_sum(ad_square(narrow));
    singles[5] = 9;
    REFUSED(ad_backward(y), "backward: the leaf f32 [6] of ", "after square at ", "saved it");
    singles[5] = 1.5F;
    OK(ad_backward(y));

    l = ad_constant(tape, AD_I64, 1, SHAPE(2), labels);
    y = ad_sum(ad_softmax_cross_entropy(x, l));
    labels[1] = 2;
    ck_assert(ad_leaf_changed(l));
    REFUSED(ad_backward(y), "backward: the constant i64 [2] of ", "after softmax_cross_entropy at ",
            "saved it");
    labels[1] = 1;

    rows = ad_constant(tape, AD_I64, 1, SHAPE(3), labels);
    y = ad_sum(ad_gather_rows(x, rows));
    labels[2] = 0;
    REFUSED(ad_backward(y), "backward: the constant i64 [3] of ", "after gather_rows at ", "saved");
    labels[2] = 1;
    OK(ad_backward(y));

    mask = constant(other);
    y = ad_sum(ad_where(mask, x, ad_neg(x)));
    other[0] = 0;
    REFUSED(ad_backward(y), "backward: the constant f64 [2,3] of ", "after where at ", "saved it");
    other[0] = 3;
    OK(ad_backward(y));
}

TEST(a_view_stands_for_the_whole_array)
{
    ad_tensor x = leaf(data), y[5], view[5];
    view[0] = ad_transpose(x);
    view[1] = ad_reshape(x, SHAPE(6), 1);
    view[2] = ad_detach(x);
    view[3] = ad_slice(x, 1, 0, 2, 1);
    view[4] = ad_reshape(ad_transpose(x), SHAPE(6), 1); /* a copy, and no view of x any more */
    for (int i = 0; i < 5; i++)
        y[i] = ad_sum(ad_mul(view[i], view[i]));
    y[2] = ad_sum(ad_mul(view[2], x));
    data[5] = 8;
    for (int i = 0; i < 4; i++) {
        ck_assert(ad_leaf_changed(view[i]));
        REFUSED(ad_backward(y[i]), "backward: the leaf f64 [2,3] of ", "after mul at ", "saved it");
    }
    ck_assert(ad_leaf_changed(x) && !ad_leaf_changed(view[4]));
    OK(ad_backward(y[4]));
    data[5] = 3;

    double row[3] = {1, 2, 3};
    ad_tensor r = ad_leaf(tape, AD_F64, 1, SHAPE(3), row), wide;
    wide = ad_broadcast_to(r, SHAPE(4, 3), 2);
    y[0] = ad_sum(ad_square(wide));
    row[1] = 5;
    ck_assert(ad_leaf_changed(wide) && ad_leaf_changed(r));
    REFUSED(ad_backward(y[0]), "backward: the leaf f64 [3] of ", "after square at ", "saved it");
    row[1] = 2;
    OK(ad_backward(y[0]));
}

TEST(derivatives_are_not_recorded_from_changed_leaves)
{
    ad_tensor x = leaf(data), w = leaf(other), gradient = zero, wanted = w;
    ad_tensor y = ad_sum(ad_mul(ad_mul(x, x), w)), z = ad_sum(ad_mul(x, w));
    data[0] = 9;
    REFUSED(ad_create_graph(y, zero, 1, &x, &gradient), "create_graph: the leaf f64 [2,3] of ",
            "after mul at ", "saved it");
    ck_assert_uint_eq(gradient.value, 0);
    /* dz/dx reads w alone. */
    OK(ad_create_graph(z, zero, 1, &x, &gradient));
    REFUSED(ad_create_graph(z, zero, 1, &wanted, &gradient), "create_graph: the leaf f64 [2,3] of",
            "after mul at ", "saved it");
    data[0] = 0.5;
    OK(ad_create_graph(y, zero, 1, &x, &gradient));
    /* What was recorded, 2 x w, reads x for w, and for x the product of w with the seed. */
    ad_tensor sum = ad_sum(gradient);
    other[3] = 6;
    ck_assert(ad_leaf_changed(w));
    OK(ad_backward(sum));
    data[3] = 6;
    REFUSED(ad_backward(sum), "backward: the leaf f64 [2,3] of ", "after ", "saved it");
    data[3] = 2;
    OK(ad_backward(sum));
}

/* ---- what is not ---- */

TEST(a_leaf_that_no_pullback_reads_may_change)
{
    const double ones[N] = {2, 2, 2, 2, 2, 2};
    double want[N];
    ad_tensor x = leaf(data), c = constant(other);
    ad_tensor y = ad_sum(ad_add(x, x)), product = ad_sum(ad_mul(x, c));
    ad_tensor matrix = ad_sum(ad_matmul(x, ad_transpose(c)));
    data[0] = 100;
    ck_assert(!ad_leaf_changed(x) && !ad_leaf_changed(c) && !ad_leaf_changed(y));
    OK(ad_backward(y));
    expect_gradient(x, ones, __LINE__);
    OK(ad_tape_zero_gradients(tape));
    OK(ad_backward(product));
    expect_gradient(x, other, __LINE__);
    OK(ad_tape_zero_gradients(tape));
    OK(ad_backward(matrix));
    for (int i = 0; i < N; i++)
        want[i] = other[i % 3] + other[i % 3 + 3];
    expect_gradient(x, want, __LINE__);
    /* Nor what was computed from it without a record. */
    OK(ad_tape_no_grad_begin(tape));
    ad_tensor square = ad_square(c);
    OK(ad_tape_no_grad_end(tape));
    other[0] = 50;
    ck_assert(!ad_leaf_changed(square));
}

TEST(elements_are_compared_by_their_bits)
{
    data[1] = 0;
    data[2] = NAN;
    ad_tensor x = leaf(data), y = ad_sum(ad_square(x));
    ck_assert(!ad_leaf_changed(x));
    OK(ad_backward(y));
    data[1] = -0.0;
    ck_assert(ad_leaf_changed(x));
    data[1] = 0;
    data[2] = -NAN;
    ck_assert(ad_leaf_changed(x));
    data[2] = NAN;
    ck_assert(!ad_leaf_changed(x));
    OK(ad_backward(y));
}

/* x -= dy/dx / 4, y = sum of x squared: halves x. */
static void descend(ad_tensor x)
{
    double gradient[N];
    double was[N];
    memcpy(was, data, sizeof was);
    OK(ad_gradient(x, gradient, N));
    for (int i = 0; i < N; i++) {
        data[i] -= gradient[i] / 4;
        ck_assert_double_eq(data[i], was[i] / 2);
    }
}

TEST(an_array_may_be_updated_after_each_sweep)
{
    ad_tensor x = leaf(data), y = zero;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 5; i++) { /* rewound before the update, and after it */
        y = ad_sum(ad_square(x));
        OK(ad_backward(y));
        OK(ad_backward(y));
        OK(ad_tape_zero_gradients(tape));
        OK(ad_backward(y));
        if (i % 2) {
            descend(x);
            OK(ad_tape_rewind(tape, mark));
        } else {
            ck_assert(!ad_leaf_changed(x));
            OK(ad_tape_rewind(tape, mark));
            data[i] += 1;
        }
    }
    for (int i = 0; i < 5; i++) { /* never rewound */
        OK(ad_tape_zero_gradients(tape));
        ck_assert_int_eq(ad_leaf_changed(x), i > 0);
        y = ad_sum(ad_square(x));
        ck_assert(!ad_leaf_changed(x));
        OK(ad_backward(y));
        descend(x);
    }
    REFUSED(ad_backward(y), "backward: the leaf f64 [2,3] of ", "after square at ", "saved it");
    for (int i = 0; i < 5; i++) { /* reset */
        OK(ad_tape_reset(tape));
        x = leaf(data);
        OK(ad_backward(ad_sum(ad_square(x))));
        descend(x);
    }
}

static ad_tensor sum_of_squares(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    int *sweeps = payload;
    (void)t, (void)n;
    ad_tensor y = ad_sum(ad_square(x[0]));
    for (int i = 0; i < *sweeps; i++)
        ck_assert_int_eq(ad_backward(y), AD_OK);
    return ad_sum(ad_square(x[0]));
}

TEST(a_gradient_check_between_sweep_and_update_is_no_recording)
{
    ad_tensor x = leaf(data), y = ad_sum(ad_square(x));
    for (int sweeps = 0; sweeps < 70; sweeps++) {
        OK(ad_backward(y));
        ck_assert_msg(ad_check_gradient(tape, sum_of_squares, 1, &x, 1e-6, &sweeps, NULL) == AD_OK,
                      "%d: %s", sweeps, ad_tape_message((ad_tape){0, 0}));
        data[sweeps % N] += 1;
        y = ad_sum(ad_square(x));
        OK(ad_backward(y));
    }
}

TEST(each_recording_is_held_to_what_it_found)
{
    double want[N];
    ad_tensor x = leaf(data), old = ad_sum(ad_square(x));
    OK(ad_backward(old));
    data[2] = 4;
    ad_tensor now = ad_sum(ad_square(x)), both = ad_add(old, now);
    ck_assert(!ad_leaf_changed(x));
    REFUSED(ad_backward(old), "backward: the leaf ", "after square at ", "saved it");
    REFUSED(ad_backward(both), "backward: the leaf ", "after square at ", "saved it");
    OK(ad_tape_zero_gradients(tape));
    OK(ad_backward(now));
    for (int i = 0; i < N; i++)
        want[i] = 2 * data[i];
    expect_gradient(x, want, __LINE__);
    data[2] = 1.5;
    ck_assert(ad_leaf_changed(x));
    OK(ad_backward(old));
    REFUSED(ad_backward(now), "backward: the leaf ", "after square at ", "saved it");
}

TEST(a_recording_before_the_mark_still_counts_after_the_rewind)
{
    ad_tensor x = leaf(data), h = ad_square(x);
    ad_mark mark = ad_tape_mark(tape);
    OK(ad_backward(ad_sum(ad_mul(h, x))));
    OK(ad_tape_rewind(tape, mark));
    ck_assert(!ad_leaf_changed(x));
    data[0] = 2;
    ck_assert(ad_leaf_changed(x));
    ad_tensor y = ad_sum(ad_mul(h, x));
    REFUSED(ad_backward(y), "backward: the leaf ", "after square at ", "saved");
    OK(ad_tape_rewind(tape, mark));
    OK(ad_backward(ad_sum(ad_scale(x, 2))));
    data[0] = 0.5;
    OK(ad_backward(ad_sum(ad_mul(h, x))));
}

TEST(tapes_that_share_an_array_look_each_for_itself)
{
    ad_tape mine = tape, second = checked_tape();
    ad_tensor x = leaf(data), y = ad_sum(ad_square(x));
    tape = second;
    ad_tensor u = leaf(data), v = ad_sum(ad_scale(u, 2));
    tape = mine;
    data[0] = 3;
    ck_assert(ad_leaf_changed(x) && !ad_leaf_changed(u));
    tape = second;
    OK(ad_backward(v));
    v = ad_sum(ad_square(u));
    OK(ad_backward(v));
    OK(ad_tape_destroy(second));
    tape = mine;
    REFUSED(ad_backward(y), "backward: the leaf ", "after square at ", "saved it");
}

/* ---- handles and buffers ---- */

TEST(a_handle_that_is_none_is_not_changed_but_an_error)
{
    ck_assert(!ad_leaf_changed(zero));
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
    ad_mark mark = ad_tape_mark(tape);
    ad_tensor x = leaf(data);
    OK(ad_tape_rewind(tape, mark));
    ck_assert(!ad_leaf_changed(x));
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "leaf_changed: the tensor was dropped"));
    ad_tape_clear_error(tape);
    x = ad_leaf(tape, AD_F64, 1, SHAPE(0), NULL);
    OK(ad_backward(ad_sum(ad_square(x))));
    ck_assert(!ad_leaf_changed(x));
}

TEST(a_gradient_buffer_may_not_be_the_leafs_own_array)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    for (int at = 0; at < 3; at++) {
        ck_assert_int_eq(ad_gradient_buffer(x, data + at, 3), AD_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "overlaps the own data of the leaf"));
        ad_tape_clear_error(tape);
    }
    memset(data + 3, 0, 3 * sizeof *data);
    OK(ad_gradient_buffer(x, data + 3, 3));
    OK(ad_backward(ad_sum(ad_square(x))));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(data[3 + i], 2 * data[i]);
}

RUN_TESTS(setup, teardown_fine)
