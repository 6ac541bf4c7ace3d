/* test_gradient_buffers.c: gradients that arrive in buffers of the user's, all or nothing. */
#include <tapescope/ad.h>

#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(tape))

enum { MANY = 50, LONG = 4096 };

static double data[MANY];

static void setup(void)
{
    for (int i = 0; i < MANY; i++)
        data[i] = 0.25 * (i + 1);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

TEST(a_sweep_that_fails_leaves_the_users_buffers_as_they_were)
{
    static double many[LONG], mine[2][LONG], before[2][LONG];
    int failed_late = 0;
    for (int i = 0; i < LONG; i++) {
        many[i] = 1.0 / (i + 1);
        mine[0][i] = before[0][i] = i;
        mine[1][i] = before[1][i] = -i;
    }
    /* Buffers: of x, w, their product, its exp, and whatever the sweep needs in addition. */
    for (uint64_t budget = 2; budget < 16; budget++) {
        ad_tape t;
        ad_tape_options options = {.reserve_bytes = 8 << 20,
                                   .budget_bytes = budget * sizeof many + 2048};
        ck_assert_int_eq(ad_tape_create(&t, &options), AD_OK);
        ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(LONG), many);
        ad_tensor w = ad_leaf(t, AD_F64, 1, SHAPE(LONG), many);
        ad_gradient_buffer(x, mine[0], LONG);
        ad_gradient_buffer(w, mine[1], LONG);
        ad_tensor h = ad_exp(ad_exp(ad_mul(x, w)));
        h = ad_sum(h);
        ad_tensor last = ad_sum(ad_mul(x, x)); /* gives x its part before h needs more memory */
        ad_tensor y = ad_add(h, last);
        bool recorded = ad_tape_status(t) == AD_OK;
        if (ad_backward(y) != AD_OK) {
            ck_assert_int_eq(ad_tape_status(t), AD_ERROR_MEMORY);
            ck_assert_mem_eq(mine, before, sizeof mine);
            failed_late += recorded;
        } else {
            ck_assert_double_eq(mine[0][7],
                                before[0][7] + (mine[1][7] - before[1][7]) + 2 * many[7]);
            ck_assert(mine[1][7] > before[1][7]);
            memcpy(mine, before, sizeof mine);
        }
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
    ck_assert_int_gt(failed_late, 0);
}

TEST(each_leaf_has_its_buffer_in_whatever_order_they_were_given)
{
    double buffer[MANY] = {0}, gradient;
    ad_tensor x[MANY], y = ad_scalar_f64(tape, 0);
    for (int i = 0; i < MANY; i++) {
        x[i] = ad_leaf(tape, AD_F64, 0, NULL, &data[i]);
        y = ad_add(y, ad_scale(x[i], i + 1));
    }
    for (int i = 0; i < MANY; i++) /* 0 17 34 1 18 ... */
        OK(ad_gradient_buffer(x[i * 17 % MANY], &buffer[i * 17 % MANY], 1));
    OK(ad_backward(y));
    OK(ad_backward(y));
    for (int i = 0; i < MANY; i++) {
        ck_assert_double_eq(buffer[i], 2 * (i + 1));
        OK(ad_gradient(x[i], &gradient, 1));
        ck_assert_double_eq(gradient, buffer[i]);
    }
    for (int i = 0; i < MANY; i += 3) /* taken back, in part twice; another for some */
        OK(ad_gradient_buffer(x[i], NULL, 0));
    OK(ad_gradient_buffer(x[0], NULL, 0));
    OK(ad_gradient_buffer(x[1], &buffer[0], 1));
    OK(ad_backward(y));
    ck_assert_double_eq(buffer[0], 2 + 2);
    ck_assert_double_eq(buffer[1], 2 * 2);
    for (int i = 2; i < MANY; i++) {
        ck_assert_double_eq(buffer[i], (i % 3 ? 3 : 2) * (i + 1));
        OK(ad_gradient(x[i], &gradient, 1));
        ck_assert_double_eq(gradient, i % 3 ? buffer[i] : i + 1);
    }
}

TEST(a_buffer_goes_with_its_leaf_and_stays_with_an_older_one)
{
    double old[1] = {0}, dropped[1] = {0}, gradient;
    ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, data);
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3; i++) {
        ad_tensor w = ad_leaf(tape, AD_F64, 0, NULL, data + 1);
        if (i == 0) {
            OK(ad_gradient_buffer(w, dropped, 1));
            OK(ad_gradient_buffer(x, old, 1));
        }
        OK(ad_backward(ad_add(x, ad_scale(w, 3))));
        OK(ad_gradient(w, &gradient, 1));
        ck_assert_double_eq(gradient, 3);
        ck_assert(dropped[0] == 3 && old[0] == i + 1);
        OK(ad_tape_rewind(tape, mark));
    }
    OK(ad_tape_reset(tape));
    x = ad_leaf(tape, AD_F64, 0, NULL, data);
    OK(ad_backward(ad_scale(x, 2)));
    OK(ad_gradient(x, &gradient, 1));
    ck_assert_double_eq(gradient, 2);
    ck_assert(dropped[0] == 3 && old[0] == 3);
}

TEST(a_leaf_that_y_does_not_reach_leaves_its_buffer_alone)
{
    double buffer[1] = {-0.0}, gradient;
    const double minus_zero = -0.0;
    ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, data), w = ad_leaf(tape, AD_F64, 0, NULL, data);
    OK(ad_gradient_buffer(w, buffer, 1));
    OK(ad_backward(ad_scale(x, 2)));
    ck_assert_mem_eq(buffer, &minus_zero, sizeof minus_zero);
    OK(ad_backward(w)); /* the leaf itself is y */
    OK(ad_gradient(w, &gradient, 1));
    ck_assert(gradient == 1 && buffer[0] == 1);
}

TEST(a_gradient_that_went_with_its_buffer_is_not_zero_but_unknown)
{
    double buffer[1] = {0}, gradient = -7;
    ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, data), y = ad_scale(x, 3);
    OK(ad_backward(y));
    OK(ad_gradient_buffer(x, NULL, 0)); /* there is none: nothing is taken back, nothing lost */
    OK(ad_gradient(x, &gradient, 1));
    ck_assert_double_eq(gradient, 3);
    OK(ad_gradient_buffer(x, buffer, 1));
    OK(ad_backward(y));
    OK(ad_gradient_buffer(x, NULL, 0));
    gradient = -7;
    ck_assert_int_eq(ad_gradient(x, &gradient, 1), AD_ERROR_STATE);
    ck_assert_msg(
        strncmp(ad_tape_message(tape), "gradient: no sweep since its buffer was taken", 45) == 0,
        "%s", ad_tape_message(tape));
    ck_assert(isnan(gradient) && buffer[0] == 3);
    ad_tape_clear_error(tape);
    OK(ad_backward(y));
    OK(ad_gradient(x, &gradient, 1));
    ck_assert(gradient == 3 && buffer[0] == 3);
    OK(ad_gradient_buffer(x, buffer, 1));
    OK(ad_gradient_buffer(x, NULL, 0));
    OK(ad_tape_zero_gradients(tape));
    OK(ad_gradient(x, &gradient, 1));
    ck_assert_double_eq(gradient, 0);
}

/* ---- an allocator that refuses ---- */

static bool refuse;

static void *resize(void *p, size_t bytes, void *payload)
{
    (void)payload;
    return refuse ? NULL : realloc(p, bytes);
}

static void release(void *p, void *payload)
{
    (void)payload;
    free(p);
}

TEST(a_buffer_that_there_is_no_memory_to_note_is_refused)
{
    double buffer[MANY] = {0};
    ad_tensor x[MANY];
    ad_tape t;
    const ad_allocator allocator = {tape_memory_system.reserve, tape_memory_system.unreserve,
                                    resize, release, NULL};
    ad_tape_options options = {.reserve_bytes = 2 << 20, .allocator = &allocator};
    ck_assert_int_eq(ad_tape_create(&t, &options), AD_OK);
    int given = 0;
    for (int i = 0; i < MANY; i++)
        x[i] = ad_leaf(t, AD_F64, 0, NULL, &data[i]);
    for (int i = 0; i < MANY; i++) {
        refuse = i != 3; /* where it is granted there is room for more */
        if (ad_gradient_buffer(x[i], &buffer[i], 1) == AD_OK) {
            given++;
        } else {
            ck_assert_int_eq(ad_tape_status(t), AD_ERROR_MEMORY);
            ck_assert_ptr_nonnull(strstr(ad_tape_message(t), "gradient_buffer: out of memory at "));
            ad_tape_clear_error(t);
        }
    }
    refuse = false;
    ck_assert_int_gt(given, 0);
    ck_assert_int_lt(given, MANY - 3);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(ad_backward(x[i]), AD_OK);
        given -= buffer[i] == 1;
    }
    ck_assert_int_eq(given, 0);
    ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
}

/* The call is refused by a message that begins so and says where the other leaf was made. */
#define OVERLAPS(call, text)                                                                       \
    do {                                                                                           \
        ck_assert_int_eq((call), AD_ERROR_ARGUMENT);                                               \
        ck_assert_msg(strncmp(ad_tape_message(tape), text, strlen(text)) == 0 &&                   \
                          strstr(ad_tape_message(tape), " of test_gradient_buffers.c:") != NULL,   \
                      "%s", ad_tape_message(tape));                                                \
        ad_tape_clear_error(tape);                                                                 \
    } while (0)

TEST(a_buffer_over_the_data_of_a_leaf_is_refused)
{
    static double mine[8];
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(4), data);
    ad_tensor w = ad_leaf(tape, AD_F64, 1, SHAPE(4), data + 10);
    for (int from = 7; from < 14; from++)
        OVERLAPS(ad_gradient_buffer(x, data + from, 4),
                 "gradient_buffer: the buffer overlaps the data of the leaf f64 [4]");
    OVERLAPS(ad_gradient_buffer(x, data + 3, 4),
             "gradient_buffer: the buffer overlaps the own data of the leaf f64 [4]");
    /* Beside them, and between. */
    OK(ad_gradient_buffer(x, data + 6, 4));
    OK(ad_gradient_buffer(x, data + 14, 4));
    OK(ad_gradient_buffer(x, mine, 4));
    /* The refused ones left the last. */
    OK(ad_backward(ad_sum(ad_mul(x, w))));
    for (int i = 0; i < 4; i++)
        ck_assert(mine[i] == data[10 + i] && data[10 + i] == 0.25 * (11 + i));
}

TEST(a_leaf_over_a_gradient_buffer_is_refused)
{
    double mine[8] = {0};
    ad_stats before, after;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(4), data);
    OK(ad_gradient_buffer(x, mine + 2, 4));
    OK(ad_tape_stats(tape, &before));
    for (int from = 0; from < 6; from++) {
        ad_leaf(tape, AD_F64, 1, SHAPE(3), mine + from);
        OVERLAPS(ad_tape_status(tape),
                 "leaf: its data overlap the gradient buffer of the leaf f64");
    }
    OK(ad_tape_stats(tape, &after));
    ck_assert_uint_eq(before.values, after.values);
    ck_assert_uint_eq(before.live_bytes, after.live_bytes);
    ck_assert_int_eq(ad_rank(ad_leaf(tape, AD_F64, 1, SHAPE(0), mine + 3)), 1);
    ck_assert_int_eq(ad_rank(ad_leaf(tape, AD_F64, 1, SHAPE(2), mine)), 1);
    ck_assert_int_eq(ad_rank(ad_constant(tape, AD_F64, 1, SHAPE(4), mine + 2)), 1);
    /* A buffer that was taken back is an array like others; after a reset all are. */
    OK(ad_gradient_buffer(x, NULL, 0));
    ck_assert_int_eq(ad_rank(ad_leaf(tape, AD_F64, 1, SHAPE(4), mine + 2)), 1);
    OK(ad_tape_reset(tape));
    ck_assert_int_eq(ad_rank(ad_leaf(tape, AD_F64, 1, SHAPE(8), mine)), 1);
}

TEST(buffers_of_two_leaves_overlap_whole_or_not_at_all)
{
    double mine[8] = {0};
    static float narrow[4];
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(4), data);
    ad_tensor w = ad_leaf(tape, AD_F64, 2, SHAPE(2, 2), data + 4);
    ad_tensor s = ad_leaf(tape, AD_F32, 1, SHAPE(4), narrow);
    ad_tensor short_one = ad_leaf(tape, AD_F64, 1, SHAPE(2), data + 8);
    OK(ad_gradient_buffer(x, mine, 4));
    for (int from = 1; from < 4; from++)
        OVERLAPS(ad_gradient_buffer(w, mine + from, 4),
                 "gradient_buffer: the buffer overlaps the gradient buffer of the leaf f64 [4]");
    OVERLAPS(ad_gradient_buffer(s, (void *)mine, 4),
             "gradient_buffer: the buffer overlaps the gradient buffer of the leaf f64 [4]");
    OVERLAPS(ad_gradient_buffer(short_one, mine, 2),
             "gradient_buffer: the buffer overlaps the gradient buffer of the leaf f64 [4]");
    OK(ad_gradient_buffer(w, mine, 4)); /* the sum of both arrives */
    OK(ad_gradient_buffer(w, mine, 4));
    OK(ad_gradient_buffer(short_one, mine + 4, 2));
    OK(ad_backward(ad_add(ad_sum(ad_square(x)), ad_sum(ad_square(w)))));
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(mine[i], 2 * data[i] + 2 * data[4 + i]);
    /* A leaf that moves to another buffer gives up the first. */
    OK(ad_gradient_buffer(short_one, NULL, 0));
    OK(ad_gradient_buffer(w, mine + 4, 4));
    OK(ad_gradient_buffer(x, mine + 4, 4));
    OK(ad_gradient_buffer(short_one, mine + 1, 2));
}

RUN_TESTS(setup, teardown_fine)
