/* test_gather_rows.c: rows by their indices, and sums of rows, against plain loops. */
#include "check_gradient.h"
#include "kernel_ops.h"
#include "naive.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

static struct scene scene;
static const ad_dtype dtypes[] = {AD_F32, AD_F64, AD_I64};
static const int64_t indices[] = {3, 0, 3, 2, 3, 0, 1, 2};

/* Rows of a by m indices that lie `stride` apart. */
static struct naive gathered(const struct naive *a, const int64_t *index, int m, int stride)
{
    struct naive y = *a;
    y.shape[0] = m;
    const int64_t row = naive_size(&y) / m;
    for (int i = 0; i < m; i++)
        memcpy(y.at + i * row, a->at + index[i * stride] * row, (size_t)row * sizeof *y.at);
    return y;
}

TEST_EACH(gathered_rows_agree_with_plain_loops, 3)
{
    scene_begin(&scene, dtypes[_i], 3, SHAPE(4, 3, 4));
    const ad_tensor index = ad_constant(scene.tape, AD_I64, 1, SHAPE(8), indices);
    struct naive want = gathered(&scene.plain, indices, 8, 1);
    naive_expect(&scene, ad_gather_rows(scene.x, index), &want);
    want = gathered(&scene.plain, indices + 1, 3, 2);
    naive_expect(&scene, ad_gather_rows(scene.x, ad_slice(index, 0, 1, 6, 2)), &want);
    /* Of views: x with its first and last axes exchanged, and every second row of that. */
    struct naive turned = scene.plain;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                turned.at[(i * 3 + j) * 4 + k] = scene.plain.at[(k * 3 + j) * 4 + i];
    const ad_tensor view = ad_permute(scene.x, SHAPE(2, 1, 0), 3);
    want = gathered(&turned, indices, 8, 1);
    naive_expect(&scene, ad_gather_rows(view, index), &want);
    static const int64_t doubled[] = {2, 0, 2}, halves[] = {1, 0, 1};
    want = gathered(&turned, doubled, 3, 1);
    const ad_tensor half = ad_constant(scene.tape, AD_I64, 1, SHAPE(3), halves);
    naive_expect(&scene, ad_gather_rows(ad_slice(view, 0, 0, 4, 2), half), &want);
    scene_end(&scene);
}

TEST_EACH(elements_of_a_vector_are_rows_as_well, 3)
{
    scene_begin(&scene, dtypes[_i], 1, SHAPE(4));
    const ad_tensor index = ad_constant(scene.tape, AD_I64, 1, SHAPE(8), indices);
    const struct naive want = gathered(&scene.plain, indices, 8, 1);
    naive_expect(&scene, ad_gather_rows(scene.x, index), &want);
    const ad_tensor none = ad_constant(scene.tape, AD_I64, 1, SHAPE(0), NULL);
    naive_expect(&scene, ad_gather_rows(scene.x, none), &(struct naive){.rank = 1, .shape = {0}});
    scene_end(&scene);
}

TEST(an_index_out_of_range_is_named_with_its_position)
{
    static const int64_t high[] = {0, 2, 3, 9}, low[] = {-1, 0};
    scene_begin(&scene, AD_F64, 2, SHAPE(3, 4));
    const ad_tape tape = scene.tape;
    naive_refused(&scene, ad_gather_rows(scene.x, ad_constant(tape, AD_I64, 1, SHAPE(4), high)),
                  AD_ERROR_VALUE,
                  "gather_rows: f64 [3,4], i64 [4]: index 3 at position 2 is not in 0..2");
    naive_refused(&scene, ad_gather_rows(scene.x, ad_constant(tape, AD_I64, 1, SHAPE(2), low)),
                  AD_ERROR_VALUE,
                  "gather_rows: f64 [3,4], i64 [2]: index -1 at position 0 is not in 0..2");
    naive_refused(&scene, ad_gather_rows(scene.x, ad_constant(tape, AD_I64, 2, SHAPE(2, 2), high)),
                  AD_ERROR_SHAPE,
                  "gather_rows: f64 [3,4], i64 [2,2]: x [n,...] and indices [m] are wanted");
    naive_refused(&scene,
                  ad_gather_rows(ad_sum(scene.x), ad_constant(tape, AD_I64, 1, SHAPE(1), high)),
                  AD_ERROR_SHAPE, "x [n,...] and indices [m] are wanted");
    naive_refused(&scene, ad_gather_rows(scene.x, scene.x), AD_ERROR_DTYPE,
                  "gather_rows: indices must be i64, not f64");
    scene_end(&scene);
}

TEST(many_rows_agree_with_differences)
{
    static const struct kernel_op *const ops[] = {&kernel_op_gather_rows,
                                                  &kernel_op_scatter_add_rows};
    for (int k = 0; k < 2; k++) {
        struct kernel_sample sample = {.n_in = 2,
                                       .dtype = {KERNEL_F64, KERNEL_I64},
                                       .rank = {2, 1},
                                       .shape = {{k == 0 ? 33 : 200, 17}, {200}},
                                       .low = {-1, 0},
                                       .high = {1, 33},
                                       .n_attr = k,
                                       .attr = {33}};
        struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, -1);
        c.aim = "many rows";
        check_demand(check_direction(&c));
        check_demand(check_held(&c));
        c = check_case_of(ops[k], &sample, KERNEL_F32, -1);
        c.aim = "many rows";
        check_demand(check_narrow(&c));
    }
}

RUN_TESTS(NULL, NULL)
