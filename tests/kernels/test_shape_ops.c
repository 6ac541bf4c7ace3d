/* test_shape_ops.c: views of elements against plain loops: values, gradients, refusals. */
#include "check_gradient.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

static struct scene scene;
static const ad_dtype dtypes[] = {AD_F32, AD_F64, AD_I64};

/* ---- views ---- */

TEST_EACH(permutations_agree_with_plain_loops, 3)
{
    static const int64_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    scene_begin(&scene, dtypes[_i], 3, SHAPE(3, 4, 5));
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        const struct naive want = naive_permuted(&scene.plain, orders[k]);
        naive_expect(&scene, ad_permute(scene.x, orders[k], 3), &want);
        const int64_t *o = orders[k];
        naive_expect(&scene, ad_permute(scene.x, SHAPE(o[0] - 3, o[1], o[2] - 3), 3), &want);
    }
    scene_end(&scene);
}

TEST_EACH(slices_agree_with_plain_loops, 3)
{
    static const int64_t extent[] = {3, 4, 5};
    scene_begin(&scene, dtypes[_i], 3, extent);
    for (int axis = 0; axis < 3; axis++)
        for (int64_t start = 0; start <= extent[axis]; start++)
            for (int64_t stop = start; stop <= extent[axis]; stop++)
                for (int64_t step = 1; step < 4; step++) {
                    const int64_t n = extent[axis];
                    const struct naive want = naive_sliced(&scene.plain, axis, start, stop, step);
                    naive_expect(&scene, ad_slice(scene.x, axis, start, stop, step), &want);
                    if (start < n && stop < n)
                        naive_expect(&scene, ad_slice(scene.x, axis - 3, start - n, stop - n, step),
                                     &want);
                    if (stop == n)
                        naive_expect(&scene, ad_slice(scene.x, axis, start, INT64_MAX, step),
                                     &want);
                }
    const struct naive one = naive_sliced(&scene.plain, 0, 2, 3, 1);
    naive_expect(&scene, ad_slice(scene.x, 0, 2, 3, INT64_MAX), &one);
    scene_end(&scene);
}

TEST_EACH(selections_agree_with_plain_loops, 3)
{
    static const int64_t extent[] = {3, 4, 5};
    scene_begin(&scene, dtypes[_i], 3, extent);
    for (int axis = 0; axis < 3; axis++)
        for (int64_t k = 0; k < extent[axis]; k++) {
            const struct naive want = naive_selected(&scene.plain, axis, k);
            naive_expect(&scene, ad_select(scene.x, axis, k), &want);
            naive_expect(&scene, ad_select(scene.x, axis - 3, k - extent[axis]), &want);
        }
    scene_end(&scene);
}

TEST_EACH(views_of_views_reach_the_right_elements, 3)
{
    scene_begin(&scene, dtypes[_i], 3, SHAPE(4, 5, 6));
    struct naive n[6];
    ad_tensor t[6];
    t[0] = ad_slice(scene.x, 1, 1, 5, 2);
    n[0] = naive_sliced(&scene.plain, 1, 1, 5, 2);
    t[1] = ad_permute(t[0], SHAPE(2, 0, 1), 3);
    n[1] = naive_permuted(&n[0], SHAPE(2, 0, 1));
    t[2] = ad_slice(t[1], 0, 1, 6, 3);
    n[2] = naive_sliced(&n[1], 0, 1, 6, 3);
    t[3] = ad_select(t[2], 1, -1);
    n[3] = naive_selected(&n[2], 1, 3);
    t[4] = ad_transpose(t[3]);
    n[4] = naive_permuted(&n[3], SHAPE(1, 0));
    t[5] = ad_slice(t[4], -1, 1, 2, 1);
    n[5] = naive_sliced(&n[4], 1, 1, 2, 1);
    for (int k = 0; k < 6; k++)
        naive_expect(&scene, t[k], &n[k]);
    const ad_tensor line = ad_reshape(t[2], SHAPE(-1), 1);
    n[2].shape[0] = naive_size(&n[2]);
    n[2].rank = 1;
    naive_expect(&scene, line, &n[2]);
    scene_end(&scene);
}

TEST_EACH(views_of_nothing_are_empty, 3)
{
    scene_begin(&scene, dtypes[_i], 2, SHAPE(0, 4));
    struct naive want = {.rank = 2, .shape = {0, 2}};
    naive_expect(&scene, ad_slice(scene.x, 1, 1, 3, 1), &want);
    naive_expect(&scene, ad_slice(ad_slice(scene.x, 1, 4, 4, 1), 0, 0, 0, 5),
                 &(struct naive){.rank = 2, .shape = {0, 0}});
    naive_expect(&scene, ad_permute(scene.x, SHAPE(1, 0), 2),
                 &(struct naive){.rank = 2, .shape = {4, 0}});
    naive_expect(&scene, ad_select(scene.x, 1, 3), &(struct naive){.rank = 1, .shape = {0}});
    scene_end(&scene);
}

/* ---- refusals ---- */

TEST(what_is_out_of_range_is_named)
{
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x;
    naive_refused(&scene, ad_slice(x, 0, 0, 4, 1), AD_ERROR_SHAPE,
                  "slice: f64 [3,4]: 0..4 is no range of axis 0, which has 3");
    naive_refused(&scene, ad_slice(x, 1, 3, 2, 1), AD_ERROR_SHAPE,
                  "3..2 is no range of axis 1, which has 4");
    naive_refused(&scene, ad_slice(x, 1, -5, 2, 1), AD_ERROR_SHAPE, "-5..2 is no range of axis 1");
    naive_refused(&scene, ad_slice(x, 1, INT64_MIN, INT64_MIN, 1), AD_ERROR_SHAPE,
                  "is no range of axis 1");
    naive_refused(&scene, ad_slice(x, 1, 0, 2, 0), AD_ERROR_ARGUMENT, "step 0 is not positive");
    naive_refused(&scene, ad_slice(x, 2, 0, 2, 1), AD_ERROR_SHAPE,
                  "slice: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_select(x, 1, 4), AD_ERROR_SHAPE,
                  "select: f64 [3,4]: index 4 is not in -4..3 of axis 1");
    naive_refused(&scene, ad_select(x, 0, -4), AD_ERROR_SHAPE,
                  "index -4 is not in -3..2 of axis 0");
    naive_refused(&scene, ad_select(x, -3, 0), AD_ERROR_SHAPE,
                  "select: f64 [3,4]: there is no axis -3 of 2");
    naive_refused(&scene, ad_permute(x, SHAPE(0), 1), AD_ERROR_SHAPE,
                  "1 axes are named, there are 2");
    naive_refused(&scene, ad_permute(x, SHAPE(0, -2), 2), AD_ERROR_SHAPE, "axis -2 is named twice");
    naive_refused(&scene, ad_permute(x, SHAPE(0, 2), 2), AD_ERROR_SHAPE,
                  "permute: f64 [3,4]: there is no axis 2 of 2");
    naive_refused(&scene, ad_permute(x, NULL, 2), AD_ERROR_ARGUMENT,
                  "permute: axes is a null pointer");
    scene_end(&scene);
}

TEST(views_of_integers_are_refused_for_their_shape)
{
    scene_begin(&scene, AD_I64, 2, SHAPE(3, 4));
    const ad_tensor x = scene.x;
    naive_refused(&scene, ad_slice(x, 0, 0, 4, 1), AD_ERROR_SHAPE, "slice: i64 [3,4]: 0..4 is no");
    naive_refused(&scene, ad_select(x, 0, 3), AD_ERROR_SHAPE, "select: i64 [3,4]: index 3");
    naive_refused(&scene, ad_permute(x, SHAPE(1), 1), AD_ERROR_SHAPE, "permute: i64 [3,4]: 1 axes");
    naive_refused(&scene, ad_reshape(x, SHAPE(5), 1), AD_ERROR_SHAPE, "reshape: i64 [3,4]: 12");
    naive_refused(&scene, ad_broadcast_to(x, SHAPE(4), 1), AD_ERROR_SHAPE,
                  "broadcast_to: i64 [3,4]");
    naive_refused(&scene, ad_transpose(ad_select(x, 0, 0)), AD_ERROR_SHAPE, "transpose: i64 [4]");
    scene_end(&scene);
}

/* ---- large ones ---- */

TEST(large_ones_agree_with_differences)
{
    static const struct check_large cases[] = {
        {&kernel_op_permute, 1, 3, 3, {{17, 33, 9}}, {2, 0, 1}},
        {&kernel_op_slice, 1, 2, 4, {{65, 129}}, {1, 3, 127, 2}},
        {&kernel_op_slice, 1, 2, 4, {{65, 129}}, {0, 3, 64, 1}},
        {&kernel_op_slice_add, 1, 2, 4, {{31, 65}}, {0, 2, 3, 100}},
        {&kernel_op_select, 1, 3, 2, {{17, 33, 9}}, {1, 7}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_large(&cases[k]);
}

RUN_TESTS(NULL, NULL)
