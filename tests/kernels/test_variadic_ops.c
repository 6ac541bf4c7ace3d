/* test_variadic_ops.c: ops of any number of operands, against plain loops; refusals of lists. */
#include "check_gradient.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

static struct scene scene;
static const ad_dtype dtypes[] = {AD_F32, AD_F64, AD_I64};

/* ---- values and gradients ---- */

TEST_EACH(concatenations_of_views_agree_with_plain_loops, 3)
{
    scene_begin(&scene, dtypes[_i], 3, SHAPE(4, 3, 4));
    static struct naive n[5];
    ad_tensor t[5];
    for (int axis = 0; axis < 3; axis++) {
        t[0] = scene.x;
        n[0] = scene.plain;
        t[1] = ad_slice(scene.x, axis, 1, 3, 1);
        n[1] = naive_sliced(&scene.plain, axis, 1, 3, 1);
        t[2] = ad_slice(scene.x, axis, 2, 2, 1);
        n[2] = naive_sliced(&scene.plain, axis, 2, 2, 1);
        t[3] = ad_permute(scene.x, SHAPE(2, 1, 0), 3);
        n[3] = naive_permuted(&scene.plain, SHAPE(2, 1, 0));
        t[4] = t[0];
        n[4] = n[0];
        for (int count = 1; count <= 5; count++) {
            const struct naive want = naive_concatenated(n, count, axis);
            naive_expect(&scene, ad_concat(t, count, axis), &want);
            naive_expect(&scene, ad_concat(t, count, axis - 3), &want);
        }
    }
    scene_end(&scene);
}

TEST_EACH(stacks_of_views_agree_with_plain_loops, 3)
{
    scene_begin(&scene, dtypes[_i], 3, SHAPE(4, 3, 4));
    static struct naive n[4];
    const ad_tensor t[4] = {
        scene.x, ad_permute(scene.x, SHAPE(2, 1, 0), 3), scene.x,
        ad_slice(ad_concat((const ad_tensor[]){scene.x, scene.x}, 2, 1), 1, 1, INT64_MAX, 2)};
    n[0] = n[2] = scene.plain;
    n[1] = naive_permuted(&scene.plain, SHAPE(2, 1, 0));
    n[3] = naive_concatenated((const struct naive[]){scene.plain, scene.plain}, 2, 1);
    n[3] = naive_sliced(&n[3], 1, 1, 6, 2);
    for (int axis = 0; axis < 4; axis++)
        for (int count = 1; count <= 4; count++) {
            const struct naive want = naive_stacked(n, count, axis);
            naive_expect(&scene, ad_stack(t, count, axis), &want);
            naive_expect(&scene, ad_stack(t, count, axis - 4), &want);
        }
    scene_end(&scene);
}

TEST(sixty_four_operands_are_possible)
{
    static struct naive n[64];
    ad_tensor t[64], gradient;
    scene_begin(&scene, AD_F64, 2, SHAPE(64, 3));
    for (int k = 0; k < 64; k++) {
        const bool again = k > 0 && k % 7 == 0;
        const int row = k * 5 % 64;
        t[k] = again ? t[k / 2] : ad_select(scene.x, 0, row);
        n[k] = again ? n[k / 2] : naive_selected(&scene.plain, 0, row);
    }
    struct naive want = naive_concatenated(n, 64, 0);
    naive_expect(&scene, ad_concat(t, 64, 0), &want);
    want = naive_stacked(n, 64, 1);
    naive_expect(&scene, ad_stack(t, 64, 1), &want);
    /* d(sum of squares)/dx = 2 x times the uses, recorded as well. */
    const ad_tensor loss = ad_sum(ad_square(ad_stack(t, 64, 0)));
    double uses[192] = {0}, got[192];
    for (int k = 0; k < 64; k++)
        for (int i = 0; i < 3; i++)
            uses[(int)n[k].at[i]] += 1;
    ck_assert_int_eq(ad_create_graph(loss, (ad_tensor){0}, 1, &scene.x, &gradient), AD_OK);
    ck_assert_int_eq(ad_value(gradient, got, 192), AD_OK);
    for (int i = 0; i < 192; i++)
        ck_assert(got[i] == 2 * i * uses[i]);
    ck_assert_int_eq(ad_tape_zero_gradients(scene.tape), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(gradient)), AD_OK);
    ck_assert_int_eq(ad_gradient(scene.x, got, 192), AD_OK);
    for (int i = 0; i < 192; i++)
        ck_assert(got[i] == 2 * uses[i]);
    scene_end(&scene);
}

TEST_EACH(concatenations_and_stacks_of_nothing_are_empty, 3)
{
    scene_begin(&scene, dtypes[_i], 2, SHAPE(0, 4));
    const ad_tensor both[] = {scene.x, scene.x};
    naive_expect(&scene, ad_concat(both, 2, 0), &(struct naive){.rank = 2, .shape = {0, 4}});
    naive_expect(&scene, ad_stack(both, 2, 0), &(struct naive){.rank = 3, .shape = {2, 0, 4}});
    scene_end(&scene);
}

/* ---- refusals ---- */

TEST(operands_that_do_not_fit_are_named)
{
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x, part = ad_slice(x, 0, 0, 2, 1);
    static const float narrow[12];
    static const int64_t whole[12];
    const ad_tensor f = ad_leaf(scene.tape, AD_F32, 2, SHAPE(3, 4), narrow);
    const ad_tensor k = ad_constant(scene.tape, AD_I64, 2, SHAPE(3, 4), whole);
    naive_refused(&scene, ad_concat((const ad_tensor[]){x, x, part}, 3, 1), AD_ERROR_SHAPE,
                  "concat: operand 3, f64 [2,4], does not fit operand 1, f64 [3,4], along axis 1");
    naive_refused(&scene, ad_concat((const ad_tensor[]){x, ad_select(x, 0, 0)}, 2, 0),
                  AD_ERROR_SHAPE, "operand 2, f64 [4], does not fit");
    naive_refused(&scene, ad_concat((const ad_tensor[]){x, f}, 2, 0), AD_ERROR_DTYPE, "concat: ");
    naive_refused(&scene, ad_concat((const ad_tensor[]){x, k}, 2, 0), AD_ERROR_DTYPE,
                  "operand 2, i64 [3,4], does not fit operand 1, f64 [3,4]");
    naive_refused(&scene, ad_concat(&x, 1, 2), AD_ERROR_SHAPE,
                  "concat: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_stack((const ad_tensor[]){x, part}, 2, 0), AD_ERROR_SHAPE,
                  "stack: operand 2 is f64 [2,4], operand 1 f64 [3,4]");
    naive_refused(&scene, ad_stack((const ad_tensor[]){k, x}, 2, 0), AD_ERROR_DTYPE,
                  "stack: operand 2 is f64");
    naive_refused(&scene, ad_stack(&x, 1, 3), AD_ERROR_SHAPE,
                  "stack: f64 [3,4]: there is no axis 3 of 3");
    const ad_tensor deep = ad_reshape(x, SHAPE(3, 4, 1, 1, 1, 1, 1, 1), 8);
    naive_refused(&scene, ad_stack(&deep, 1, 0), AD_ERROR_SHAPE, "stack: at most 8 axes");
    scene_end(&scene);
}

TEST(a_list_without_operands_or_with_too_many_is_an_error)
{
    const ad_tape no_tape = {0, 0};
    ad_tensor t[65];
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    for (int k = 0; k < 65; k++)
        t[k] = scene.x;
    naive_refused(&scene, ad_concat(t, 65, 0), AD_ERROR_ARGUMENT,
                  "concat: 65 operands, from 1 to 64 are possible");
    t[3] = (ad_tensor){0, 0, 0, 0};
    naive_refused(&scene, ad_stack(t, 5, 0), AD_ERROR_HANDLE,
                  "stack: operand 4 (tensors) is a handle of zeros: no tensor");
    ad_tape_clear_error(no_tape);
    static const struct {
        bool null;
        int n;
        const char *text;
    } lists[] = {{true, 2, "concat: tensors is a null pointer"},
                 {true, 0, "concat: tensors is a null pointer"},
                 {false, 0, "concat: 0 operands, from 1 to 64 are possible"},
                 {false, -1, "concat: -1 operands, from 1 to 64 are possible"}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const ad_tensor y = ad_concat(lists[k].null ? NULL : t, lists[k].n, 0);
        ck_assert(y.tape == 0 && y.value == 0);
        ck_assert_int_eq(ad_tape_status(no_tape), AD_ERROR_ARGUMENT);
        ck_assert_msg(strstr(ad_tape_message(no_tape), lists[k].text), "%s",
                      ad_tape_message(no_tape));
        ad_tape_clear_error(no_tape);
    }
    scene_end(&scene);
}

/* ---- large ones ---- */

TEST(large_ones_agree_with_differences)
{
    static const struct check_large cases[] = {
        {&kernel_op_concat, 4, 2, 1, {{65, 33}, {1, 33}, {64, 33}, {127, 33}}, {0}},
        {&kernel_op_concat, 4, 2, 1, {{65, 33}, {65, 1}, {65, 64}, {65, 17}}, {1}},
        {&kernel_op_stack, 3, 2, 1, {{65, 33}, {65, 33}, {65, 33}}, {2}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_large(&cases[k]);
}

RUN_TESTS(NULL, NULL)
