/* test_matrix_refusals.c: the shapes that the building blocks of linear algebra's pullbacks refuse.
 */
#include "kernel.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

TEST(shapes_that_do_not_fit_are_refused_with_their_reason)
{
    static const struct {
        const struct kernel_op *op;
        int rank[2];
        int64_t shape[2][8];
        const char *text;
    } cases[] = {
        {&kernel_op_weigh_triangles, {1, 0}, {{3}}, "weigh_triangles: f64 [3]: x has two axes"},
        {&kernel_op_symmetric_part, {2, 0}, {{2, 3}}, "symmetric_part: f64 [2,3]: x is square"},
        {&kernel_op_matrix_diagonal, {2, 0}, {{2, 3}}, "matrix_diagonal: f64 [2,3]: x is square"},
        {&kernel_op_diagonal_matrix, {0, 0}, {{0}}, "diagonal_matrix: f64 []: 1 to 7 axes"},
        {&kernel_op_diagonal_matrix,
         {8, 0},
         {{1, 1, 1, 1, 1, 1, 1, 1}},
         "diagonal_matrix: f64 [1,1,1,1,1,1,1,1]: 1 to 7 axes"},
        {&kernel_op_exchange_rows,
         {2, 1},
         {{3, 2}, {2}},
         "exchange_rows: f64 [3,2], f64 [2]: x [...,n,k] and exchanges [...,n] are wanted"},
        {&kernel_op_exchange_rows,
         {3, 2},
         {{2, 3, 2}, {3, 3}},
         "exchange_rows: f64 [2,3,2], f64 [3,3]: x [...,n,k] and exchanges"},
        {&kernel_op_exchange_rows, {2, 2}, {{3, 2}, {3, 3}}, "exchange_rows: f64 [3,2], f64 [3,3]"},
        {&kernel_op_cholesky_adjoint,
         {2, 2},
         {{3, 3}, {3, 2}},
         "cholesky_adjoint: f64 [3,3], f64 [3,2]: both must have one shape"},
        {&kernel_op_expm_derivative,
         {2, 3},
         {{3, 3}, {1, 3, 3}},
         "expm_derivative: f64 [3,3], f64 [1,3,3]: both must have one shape"},
        {&kernel_op_gap_quotient,
         {2, 1},
         {{3, 3}, {2}},
         "gap_quotient: f64 [3,3], f64 [2]: m [...,n,n] and w [...,n] are wanted"},
        {&kernel_op_gap_quotient,
         {2, 2},
         {{3, 3}, {3, 3}},
         "gap_quotient: f64 [3,3], f64 [3,3]: m [...,n,n] and w [...,n] are wanted"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char error[KERNEL_ERROR_BYTES] = "";
        struct kernel_array array[2];
        int64_t strides[2][KERNEL_MAX_RANK];
        const kernel_ref in[] = {&array[0], &array[1]};
        struct kernel_shape shape[KERNEL_MAX_OUT];
        const int64_t attr[3] = {0};
        const struct kernel_call call = {.op = cases[k].op,
                                         .in = in,
                                         .n_in = cases[k].op->n_in,
                                         .n_out = cases[k].op->n_out,
                                         .attr = attr,
                                         .n_attr = cases[k].op->n_attrs,
                                         .error = error};
        for (int i = 0; i < 2; i++)
            array[i] = (struct kernel_array){
                .shape = cases[k].shape[i],
                .strides = strides[i],
                .size = kernel_strides(cases[k].rank[i], cases[k].shape[i], 8, strides[i]),
                .dtype = KERNEL_F64,
                .rank = (uint8_t)cases[k].rank[i],
                .contiguous = true};
        ck_assert_int_eq(kernel_infer(&call, shape), KERNEL_REFUSED);
        ck_assert_msg(strncmp(error, cases[k].text, strlen(cases[k].text)) == 0,
                      "case %zu: \"%s\", not \"%s\"", k, error, cases[k].text);
    }
}

RUN_TESTS(NULL, NULL)
