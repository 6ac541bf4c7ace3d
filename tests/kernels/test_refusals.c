/* test_refusals.c: what shape rules refuse: wrong element types of every op, and the shapes that
 * the ops of pullbacks and the public ones do not take, with their texts.
 */
#include "kernel_box.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <limits.h>
#include <string.h>

#define WIDE ((int64_t)1 << 40)

static char error[KERNEL_ERROR_BYTES];

/* Arrays without data, as shape rules see them. */
struct operands {
    struct kernel_array array[KERNEL_MAX_IN];
    int64_t shape[KERNEL_MAX_IN][KERNEL_MAX_RANK], strides[KERNEL_MAX_IN][KERNEL_MAX_RANK];
    kernel_ref ref[KERNEL_MAX_IN];
};

static void operand_make(struct operands *o, int i, int dtype, int rank, const int64_t *shape)
{
    memcpy(o->shape[i], shape, sizeof *shape * (size_t)rank);
    o->array[i] = (struct kernel_array){.shape = o->shape[i],
                                        .strides = o->strides[i],
                                        .size = kernel_strides(rank, shape, 1, o->strides[i]),
                                        .dtype = (uint8_t)dtype,
                                        .rank = (uint8_t)rank,
                                        .contiguous = true};
    o->ref[i] = &o->array[i];
}

static int infer(const struct kernel_op *op, const struct operands *o, int n_in, int n_attr,
                 const int64_t *attr)
{
    struct kernel_shape shape[KERNEL_MAX_OUT];
    const struct kernel_call call = {.op = op,
                                     .in = o->ref,
                                     .n_in = n_in,
                                     .n_out = op->n_out,
                                     .attr = attr,
                                     .n_attr = n_attr,
                                     .error = error};
    error[0] = 0;
    return kernel_infer(&call, shape);
}

/* The op's first sample with operand `wrong` of the other kind; -1: none. */
static int infer_kinds(const struct kernel_op *op, const struct kernel_sample *s, int wrong)
{
    struct operands o;
    for (int i = 0; i < s->n_in; i++) {
        const int other = s->dtype[i] == KERNEL_I64 ? KERNEL_F64 : KERNEL_I64;
        operand_make(&o, i, i == wrong ? other : s->dtype[i], s->rank[i], s->shape[i]);
    }
    return infer(op, &o, s->n_in, s->n_attr, s->attr);
}

TEST(integers_where_floats_belong_and_floats_for_integers_are_refused_by_every_op)
{
    int n, refused = 0;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        struct kernel_sample s;
        ck_assert(ops[k]->sample(0, &s));
        ck_assert_msg(infer_kinds(ops[k], &s, -1) == 0, "%s", error);
        for (int i = 0; i < s.n_in; i++) {
            const bool moves = ops[k]->any_dtype && s.dtype[i] != KERNEL_I64;
            if ((moves && s.n_in == 1) || ops[k] == &kernel_op_cast)
                continue; /* takes any */
            const int status = infer_kinds(ops[k], &s, i);
            if (moves && !ops[k]->variadic)
                continue; /* the other operand is of integers anyway */
            ck_assert_msg(status == KERNEL_REFUSED_DTYPE, "%s, operand %d: %d %s", ops[k]->name,
                          i + 1, status, error);
            ck_assert_msg(strncmp(error, ops[k]->name, strlen(ops[k]->name)) == 0, "%s: %s",
                          ops[k]->name, error);
            refused++;
        }
    }
    ck_assert_int_gt(refused, n);
}

TEST(shapes_that_do_not_fit_are_refused_with_their_reason)
{
    const struct {
        const struct kernel_op *op;
        const char *text;
        int rank[3];
        int64_t shape[3][8];
        int n_attr;
        int64_t attr[9];
    } cases[] = {
        /* clang-format off */
        {&kernel_op_sum_to, "sum_to: f64 [3]: 1 axes do not become 2", {1}, {{3}}, 2, {1, 3}},
        {&kernel_op_sum_to, "sum_to: f64 [3]: extent 3 does not become 2", {1}, {{3}}, 1, {2}},
        {&kernel_op_slice_add, "slice_add: f64 [3]: there is no axis 1 of 1",
         {1}, {{3}}, 4, {1, 0, 1, 9}},
        {&kernel_op_slice_add, "slice_add: f64 [3]: extent 9 does not hold the range",
         {1}, {{3}}, 4, {0, -1, 1, 9}},
        {&kernel_op_slice_add, "slice_add: f64 [3]: extent 9 does not hold the range",
         {1}, {{3}}, 4, {0, 0, 0, 9}},
        {&kernel_op_slice_add, "slice_add: f64 [0]: extent 9 does not hold the range",
         {1}, {{0}}, 4, {0, 10, 1, 9}},
        {&kernel_op_slice_add, "slice_add: f64 [1]: extent 9 does not hold the range",
         {1}, {{1}}, 4, {0, 9, 1, 9}},
        {&kernel_op_slice_add, "slice_add: f64 [3]: extent 9 does not hold the range",
         {1}, {{3}}, 4, {0, 1, 4, 9}},
        {&kernel_op_off_diagonal, "off_diagonal: f64 [1,1,1,1,1,1,1,1]: at most 7 axes",
         {8}, {{1, 1, 1, 1, 1, 1, 1, 1}}, 1, {0}},
        {&kernel_op_off_diagonal, "off_diagonal: f64 [2]: there is no axis 1",
         {1}, {{2}}, 2, {0, 1}},
        {&kernel_op_off_diagonal_sum, "off_diagonal_sum: f64 []: an axis of columns is wanted",
         {0}, {{0}}, 0, {0}},
        {&kernel_op_off_diagonal_sum, "off_diagonal_sum: f64 [2,3]: 2 rows, and 3 columns",
         {2}, {{2, 3}}, 0, {0}},
        {&kernel_op_off_diagonal_sum, "off_diagonal_sum: f64 [2,2]: there is no axis 2",
         {2}, {{2, 2}}, 1, {2}},
        {&kernel_op_product_of_others, "product_of_others: f64 [2]: axis 0 is named twice",
         {1}, {{2}}, 2, {0, 0}},
        {&kernel_op_dot, "dot: f64 [2,2] . f64 [2]: both operands", {2, 1}, {{2, 2}, {2}}, 0, {0}},
        {&kernel_op_outer, "outer: f64 [2] x f64 [2,2]: both operands",
         {1, 2}, {{2}, {2, 2}}, 0, {0}},
        {&kernel_op_matmul, "matmul: f64 [] x f64 [2]: ", {0, 1}, {{0}, {2}}, 0, {0}},
        {&kernel_op_matmul, "matmul: f64 [2] x f64 []: ", {1, 0}, {{2}, {0}}, 0, {0}},
        {&kernel_op_linear, "linear: f64 [], f64 [2,2], f64 [2]: x [...,k], w",
         {0, 2, 1}, {{0}, {2, 2}, {2}}, 0, {0}},
        {&kernel_op_linear, "linear: f64 [2], f64 [2,2], f64 [2,1]: x [...,k], w",
         {1, 2, 2}, {{2}, {2, 2}, {2, 1}}, 0, {0}},
        {&kernel_op_linear,
         "linear: f64 [3,4], f64 [4,5], f64 [2,5]: the rows of x and of b differ",
         {2, 2, 2}, {{3, 4}, {4, 5}, {2, 5}}, 0, {0}},
        {&kernel_op_linear, "linear: f64 [2,3,4], f64 [4,5], f64 [3,5]: x [...,k], w",
         {3, 2, 2}, {{2, 3, 4}, {4, 5}, {3, 5}}, 0, {0}},
        {&kernel_op_linear,
         "linear: f64 [1099511627776,0], f64 [0,2], f64 [2]: an extent is beyond",
         {2, 2, 1}, {{WIDE, 0}, {0, 2}, {2}}, 0, {0}},
        {&kernel_op_reshape, "reshape: f64 [2]: at most 8 axes",
         {1}, {{2}}, 9, {1, 1, 1, 1, 1, 1, 1, 1, 2}},
        {&kernel_op_reshape, "reshape: f64 [0]: 0 elements do not fill the new shape",
         {1}, {{0}}, 2, {0, -1}},
        {&kernel_op_reshape, "reshape: f64 [4]: 4 elements do not fill the new shape",
         {1}, {{4}}, 3, {WIDE, WIDE, -1}},
        {&kernel_op_broadcast_to, "broadcast_to: f64 [2]: ",
         {1}, {{2}}, 9, {1, 1, 1, 1, 1, 1, 1, 1, 2}},
        {&kernel_op_slice, "slice: f64 [4]: 3..9 is no range of axis 0, which has 4",
         {1}, {{4}}, 4, {0, 3, 9, 1}},
        {&kernel_op_slice, "slice: f64 [4]: step 0 is not positive", {1}, {{4}}, 4, {0, 0, 4, 0}},
        /* clang-format on */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct operands o;
        for (int i = 0; i < cases[k].op->n_in; i++)
            operand_make(&o, i, KERNEL_F64, cases[k].rank[i], cases[k].shape[i]);
        const int status =
            infer(cases[k].op, &o, cases[k].op->n_in, cases[k].n_attr, cases[k].attr);
        /* No shape would make a step of 0 fit. */
        const bool attribute = strstr(cases[k].text, ": step 0 ") != NULL;
        ck_assert_msg(status == (attribute ? KERNEL_REFUSED_ATTRIBUTE : KERNEL_REFUSED),
                      "case %zu: %d", k, status);
        ck_assert_msg(strncmp(error, cases[k].text, strlen(cases[k].text)) == 0,
                      "case %zu: \"%s\", not \"%s\"", k, error, cases[k].text);
    }
}

TEST(rows_and_labels_that_do_not_fit_are_refused)
{
    struct operands o;
    const int64_t three[] = {3}, pair[] = {2, 2}, none[] = {0}, minus[] = {-1}, four[] = {4};
    const int64_t wide[] = {2, 3};
    const char *const wanted = "scatter_add_rows: f64 [2,2], i64 [3]: x [m,...] and";
    operand_make(&o, 0, KERNEL_F64, 2, pair);
    operand_make(&o, 1, KERNEL_I64, 1, three);
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, four), KERNEL_REFUSED);
    ck_assert_msg(strncmp(error, wanted, strlen(wanted)) == 0, "%s", error);
    operand_make(&o, 1, KERNEL_I64, 2, pair);
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, four), KERNEL_REFUSED);
    operand_make(&o, 1, KERNEL_I64, 1, pair);
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, four), 0);
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, minus), KERNEL_REFUSED);
    ck_assert_ptr_nonnull(strstr(error, "-1 rows are negative"));
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, none), 0);
    operand_make(&o, 0, KERNEL_F64, 0, none);
    ck_assert_int_eq(infer(&kernel_op_scatter_add_rows, &o, 2, 1, four), KERNEL_REFUSED);

    /* Each operand of {g [], p [2,2], labels [2]} in turn is of another shape. */
    for (int wrong = -1; wrong < 4; wrong++) {
        operand_make(&o, 0, KERNEL_F64, wrong == 0 ? 1 : 0, pair);
        operand_make(&o, 1, KERNEL_F64, wrong == 1 ? 1 : 2, pair);
        operand_make(&o, 2, KERNEL_I64, wrong == 2 ? 2 : 1, wrong == 3 ? three : pair);
        ck_assert_msg((infer(&kernel_op_softmax_cross_entropy_gradient, &o, 3, 0, NULL) == 0) ==
                          (wrong < 0),
                      "operand %d: %s", wrong, error);
    }
    /* Of {g [2,2], y [2,2]}: another rank, other extents, none. */
    for (int wrong = -1; wrong < 3; wrong++) {
        const int rank = wrong == 2 ? 0 : 2;
        operand_make(&o, 0, KERNEL_F64, rank, pair);
        operand_make(&o, 1, KERNEL_F64, wrong == 0 ? 1 : rank, wrong == 1 ? wide : pair);
        ck_assert_msg((infer(&kernel_op_softmax_gradient, &o, 2, 0, NULL) == 0) == (wrong < 0),
                      "case %d: %s", wrong, error);
    }
    /* And of {logits [2,2], labels [2]}. */
    for (int wrong = -1; wrong < 3; wrong++) {
        operand_make(&o, 0, KERNEL_F64, wrong == 0 ? 1 : 2, pair);
        operand_make(&o, 1, KERNEL_I64, wrong == 1 ? 2 : 1, wrong == 2 ? three : pair);
        ck_assert_msg((infer(&kernel_op_softmax_cross_entropy, &o, 2, 0, NULL) == 0) == (wrong < 0),
                      "operand %d: %s", wrong, error);
    }
}

TEST(parts_that_do_not_fit_each_other_are_refused)
{
    struct operands o;
    const int64_t half[] = {INT64_MAX / 2 + 1, 0}, zero = 0;
    operand_make(&o, 0, KERNEL_F64, 2, half);
    operand_make(&o, 1, KERNEL_F64, 2, half);
    ck_assert_int_eq(infer(&kernel_op_concat, &o, 2, 1, &zero), KERNEL_REFUSED);
    ck_assert_str_eq(error, "concat: the result's size overflows");
    operand_make(&o, 0, KERNEL_F64, 1, (int64_t[]){3});
    operand_make(&o, 1, KERNEL_F64, 1, (int64_t[]){4});
    ck_assert_int_eq(infer(&kernel_op_stack, &o, 2, 1, &zero), KERNEL_REFUSED);
    ck_assert_str_eq(error, "stack: operand 2 is f64 [4], operand 1 f64 [3]");
    operand_make(&o, 0, KERNEL_F64, 2, (int64_t[]){2, 3});
    operand_make(&o, 1, KERNEL_F64, 2, (int64_t[]){2, 4});
    ck_assert_int_eq(infer(&kernel_op_concat, &o, 2, 1, &zero), KERNEL_REFUSED);
    ck_assert_str_eq(error, "concat: operand 2, f64 [2,4], does not fit operand 1, f64 [2,3], "
                            "along axis 0");
}

/* ---- strides and names ---- */

TEST(extents_that_are_negative_or_overflow_have_no_strides)
{
    int64_t strides[KERNEL_MAX_RANK];
    ck_assert_int_eq(kernel_strides(0, NULL, 8, strides), 1);
    ck_assert_int_eq(kernel_strides(3, (int64_t[]){2, 3, 4}, 8, strides), 24);
    ck_assert(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
    ck_assert_int_eq(kernel_strides(2, (int64_t[]){0, 3}, 8, strides), 0);
    /* An extent of 0 counts as 1 in the strides of the others. */
    ck_assert_int_eq(kernel_strides(3, (int64_t[]){2, 0, 3}, 8, strides), 0);
    ck_assert(strides[0] == 3 && strides[1] == 3 && strides[2] == 1);
    ck_assert_int_eq(kernel_strides(2, (int64_t[]){3, -1}, 8, strides), -1);
    ck_assert_int_eq(kernel_strides(2, (int64_t[]){-1, 3}, 8, strides), -1);
    ck_assert_int_eq(kernel_strides(2, (int64_t[]){WIDE, WIDE}, 1, strides), -1);
    /* Bytes overflow where elements do not; an extent of 0 does not hide the others. */
    ck_assert_int_eq(kernel_strides(1, (int64_t[]){INT64_MAX / 8}, 8, strides), INT64_MAX / 8);
    ck_assert_int_eq(kernel_strides(1, (int64_t[]){INT64_MAX / 8 + 1}, 8, strides), -1);
    ck_assert_int_eq(kernel_strides(3, (int64_t[]){WIDE, WIDE, 0}, 1, strides), -1);
}

TEST(descriptions_are_cut_to_the_buffer)
{
    struct operands o;
    char text[12];
    operand_make(&o, 0, KERNEL_F32, 3, (int64_t[]){10, 20, 30});
    ck_assert_str_eq(kernel_describe(o.ref[0], text, 0), "");
    for (size_t n = 1; n <= sizeof text; n++) {
        memset(text, 'x', sizeof text);
        ck_assert_ptr_eq(kernel_describe(o.ref[0], text, n), text);
        ck_assert_uint_eq(strlen(text), n - 1);
        ck_assert_int_eq(strncmp(text, "f32 [10,20,30]", n - 1), 0);
    }
    ck_assert_str_eq(kernel_dtype_name(KERNEL_I64), "i64");
    ck_assert_str_eq(kernel_dtype_name(-1), "no dtype");
    ck_assert_str_eq(kernel_dtype_name(KERNEL_DTYPES), "no dtype");
}

RUN_TESTS(NULL, NULL)
