/* test_reduce_refusals.c: what reductions, softmax and products refuse, and with which text. */
#include "kernel_box.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

static char error[KERNEL_ERROR_BYTES];

TEST(what_does_not_fit_is_refused_with_shapes)
{
    const struct {
        const struct kernel_op *op;
        int rank[2];
        int64_t shape[2][3];
        int n_attr;
        int64_t attr[3];
        const char *text;
    } cases[] = {
        {&kernel_op_dot,
         {1, 1},
         {{3}, {4}},
         0,
         {0},
         "dot: f64 [3] . f64 [4]: extents 3 and 4 differ"},
        {&kernel_op_dot,
         {1, 2},
         {{3}, {3, 1}},
         0,
         {0},
         "dot: f64 [3] . f64 [3,1]: both operands must have one axis"},
        {&kernel_op_outer,
         {0, 1},
         {{0}, {3}},
         0,
         {0},
         "outer: f64 [] x f64 [3]: both operands must have one axis"},
        {&kernel_op_matmul,
         {3, 3},
         {{2, 3, 4}, {3, 4, 5}},
         0,
         {0},
         "matmul: f64 [2,3,4] x f64 [3,4,5]: extents 2 and 3 do not broadcast"},
        {&kernel_op_matmul,
         {2, 1},
         {{2, 3}, {2}},
         0,
         {0},
         "matmul: f64 [2,3] x f64 [2]: inner extents 3 and 2 differ"},
        {&kernel_op_min,
         {2},
         {{2, 0}},
         2,
         {0, 1},
         "min: f64 [2,0]: axis 1 is empty and has no minimum"},
        {&kernel_op_softmax, {2}, {{2, 3}}, 1, {2}, "softmax: f64 [2,3]: there is no axis 2"},
        {&kernel_op_norm,
         {1},
         {{3}},
         2,
         {0, kernel_attr_word(0.5)},
         "norm: p is 0.5: a number of at least 1 is wanted"},
        {&kernel_op_var,
         {1},
         {{3}},
         2,
         {0, -1},
         "var: correction is -1: a number of at least 0 is wanted"},
        {&kernel_op_std,
         {1},
         {{3}},
         2,
         {0, -2},
         "std: correction is -2: a number of at least 0 is wanted"},
        {&kernel_op_var, {1}, {{3}}, 3, {0, 1, -2}, "var: f64 [3]: there is no axis -2"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct box x[2];
        for (int i = 0; i < 2; i++)
            box_make(&x[i], KERNEL_F64, cases[k].rank[i], cases[k].shape[i], DENSE);
        const kernel_ref in[] = {&x[0].array, &x[1].array};
        struct kernel_shape shape;
        const struct kernel_call call = {.op = cases[k].op,
                                         .in = in,
                                         .n_in = cases[k].op->n_in,
                                         .n_out = 1,
                                         .attr = cases[k].attr,
                                         .n_attr = cases[k].n_attr,
                                         .error = error};
        error[0] = 0;
        ck_assert_int_eq(kernel_infer(&call, &shape), strstr(cases[k].text, " is wanted") != NULL
                                                          ? KERNEL_REFUSED_ATTRIBUTE
                                                          : KERNEL_REFUSED);
        ck_assert_str_eq(error, cases[k].text);
        box_free(&x[0]);
        box_free(&x[1]);
    }
}

RUN_TESTS(NULL, NULL)
