/* test_samples.c: what the ops are checked with is enough, and what they are said to cost is right.
 */
#include "kernel.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct operands {
    struct kernel_array array[KERNEL_MAX_IN + KERNEL_MAX_OUT];
    int64_t strides[KERNEL_MAX_IN + KERNEL_MAX_OUT][KERNEL_MAX_RANK];
    kernel_ref in[KERNEL_MAX_IN];
    struct kernel_array *out[KERNEL_MAX_OUT];
    struct kernel_shape shape[KERNEL_MAX_OUT];
};

static void array_make(struct operands *o, int i, int dtype, int rank, const int64_t *shape)
{
    o->array[i] = (struct kernel_array){.shape = shape,
                                        .strides = o->strides[i],
                                        .size = kernel_strides(rank, shape, 1, o->strides[i]),
                                        .dtype = (uint8_t)dtype,
                                        .rank = (uint8_t)rank,
                                        .contiguous = true};
}

/* What a sample is said to cost. */
static struct kernel_cost cost_of(const struct kernel_op *op, const struct kernel_sample *s,
                                  bool accumulate)
{
    struct operands o;
    char error[KERNEL_ERROR_BYTES] = "";
    struct kernel_call call = {.op = op,
                               .in = o.in,
                               .out = o.out,
                               .n_in = s->n_in,
                               .n_out = op->n_out,
                               .attr = s->attr,
                               .n_attr = s->n_attr,
                               .error = error,
                               .accumulate = accumulate};
    for (int i = 0; i < s->n_in; i++) {
        array_make(&o, i, s->dtype[i], s->rank[i], s->shape[i]);
        o.in[i] = &o.array[i];
    }
    ck_assert_msg(kernel_infer(&call, o.shape) == 0, "%s", error);
    for (int k = 0; k < op->n_out; k++) {
        const struct kernel_shape *shape = &o.shape[k];
        kernel_ref like = shape->same_as >= 0 ? o.in[shape->same_as] : NULL;
        array_make(&o, KERNEL_MAX_IN + k, shape->dtype, like ? like->rank : shape->rank,
                   like ? like->shape : shape->extent);
        o.out[k] = &o.array[KERNEL_MAX_IN + k];
    }
    return kernel_cost_of(&call);
}

/* Counted by hand for one of the op's samples, whose operands are as the comment says, 8 bytes an
 * element. An exponential or a logarithm counts as 20 operations, a division or a root as 4. */
static const struct {
    const char *op;
    uint64_t flops, bytes;
    uint64_t adding; /* bytes moved where the result is added to what is there; 0: it cannot be */
    int sample;
} costs[] = {
    {"matmul", 2 * 3 * 4 * 5, 8 * (12 + 20 + 15), 8 * (12 + 20 + 2 * 15), 0}, /* [3,4] x [4,5] */
    {"linear", (2 * 4 + 1) * 15, 8 * (12 + 20 + 5 + 15), 8 * (12 + 20 + 5 + 2 * 15), 0},
    {"dot", 2 * 5, 8 * (5 + 5 + 1), 8 * (5 + 5 + 2), 0},      /* [5] and [5] */
    {"outer", 15, 8 * (3 + 5 + 15), 8 * (3 + 5 + 2 * 15), 0}, /* [3] and [5] */
    {"sum", 15, 8 * (15 + 1), 8 * (15 + 2), 0},               /* [3,5], as all below */
    {"mean", 15 + 4, 8 * (15 + 1), 0, 0},
    {"max", 15, 8 * (15 + 1), 0, 0},
    {"prod", 15, 8 * (15 + 1), 0, 0},
    {"var", 6 * 15 + 10, 8 * (15 + 1), 0, 0},
    {"std", 6 * 15 + 10 + 4, 8 * (15 + 1), 0, 0},
    {"cumsum", 8 * 15, 8 * (15 + 15), 0, 0}, /* f64: an exact addition, a sum of what it lost */
    {"cumprod", 15, 8 * (15 + 15), 0, 0},
    {"linear_scan", 2 * 15, 8 * (15 + 15 + 15), 0, 0},
    {"argmax", 15, 8 * (15 + 3), 0, 0},
    {"argmin", 15, 8 * (15 + 3), 0, 0},
    {"softmax", 26 * 15, 8 * (15 + 15), 0, 0},
    {"softmax_gradient", 4 * 15, 8 * (15 + 15 + 15), 0, 0},
    {"log_softmax", 26 * 15, 8 * (15 + 15), 0, 0},
    {"softmax_cross_entropy", 24 * 15, 8 * (15 + 3 + 1 + 15), 0, 0}, /* 3 labels */
    /* [2,12] and [2,3]: 3 logistic functions of 24, 2 hyperbolic tangents of 25, 4 operations */
    {"lstm_cell", 126 * 6, 8 * (24 + 6 + 6 + 6), 0, 0},
    {"lstm_cell_gradient", 147 * 6, 8 * (6 + 6 + 24 + 6 + 24 + 6), 0, 0},
    /* [3,4], [5,4], [5,2]: 15 weights, each of two products and an exponential with its sum */
    {"attention", (2 * 4 + 2 * 2 + 26) * 15, 8 * (12 + 20 + 10 + 6 + 3), 0, 0},
    {"attention", (2 * 4 + 2 * 2 + 26) * 15, 8 * (12 + 20 + 10 + 6 + 15), 0, 1},
    {"attention", (2 * 2 + 2 * 3 + 26) * 9, 8 * (8 + 6 + 9 + 12 + 4), 0,
     2}, /* 1 + 2 + 3 + 3 seen */
    {"attention_weights", (2 * 4 + 21) * 15, 8 * (12 + 20 + 3 + 15), 0, 0},
    {"attention_gradient", (6 * 4 + 4 * 2 + 25) * 15, 8 * (6 + 42 + 3 + 42), 0, 0},
    {"attention_gradient", (4 * 4 + 4 * 2 + 4) * 15, 8 * (6 + 42 + 15 + 42), 0, 1},
    /* [3,4,2] x [4,5,2]: a complex multiplication and addition are 8 operations */
    {"complex_matmul", 8 * 3 * 4 * 5, 8 * 2 * (12 + 20 + 15), 0, 0},
    {"complex_mul", 6 * 3, 8 * 3 * 6, 0, 0}, /* 3 numbers, as all below */
    {"complex_mul_conj", 6 * 3, 8 * 3 * 6, 0, 0},
    {"complex_div", (10 + 2 * 4 + 4 + 2 + 2 * 4) * 3, 8 * 3 * 6, 0, 0},
    {"complex_conj", 1 * 3, 8 * 2 * 6, 0, 0},
    {"complex_abs", 10 * 3, 8 * (6 + 3), 0, 0},
    {"complex_angle", 35 * 3, 8 * (6 + 3), 0, 0},
    {"complex_exp", (20 + 20 + 20 + 2) * 3, 8 * 2 * 6, 0, 0},
    {"complex_log", (10 + 35 + 20) * 3, 8 * 2 * 6, 0, 0},
    /* [3,5] and [3,5]; in the last one 3 rows, an element and a label of each. */
    {"mse_loss", 3 * 15 + 4, 8 * (15 + 15 + 1), 0, 0},
    {"huber_loss", 7 * 15 + 4, 8 * (15 + 15 + 1), 0, 0},
    {"binary_cross_entropy", 55 * 15 + 4, 8 * (15 + 15 + 1), 0, 0},
    {"binary_cross_entropy_with_logits", 51 * 15 + 4, 8 * (15 + 15 + 1), 0, 0},
    {"nll_loss", 3 + 4, 8 * (3 + 3 + 1), 0, 0},
    /* into [3,5], cleared before */
    {"nll_loss_gradient", 3 + 4, 8 * (3 + 1 + 2 * 3 + 15), 8 * (3 + 1 + 2 * 3), 0},
    /* x [3,5] with 3 rows, the last one [5,3] with 3 channels: two sums, a division by the root. */
    {"layer_norm", 8 * 15 + 11 * 3, 8 * (15 + 5 + 5 + 15 + 3 + 3), 0, 0},
    {"layer_norm_gradient", 13 * 15 + 2 * 3, 8 * (15 + 15 + 5 + 3 + 3 + 15 + 5 + 5), 0, 0},
    {"rms_norm", 4 * 15 + 10 * 3, 8 * (15 + 5 + 15 + 3), 0, 0},
    {"rms_norm_gradient", 9 * 15 + 3, 8 * (15 + 15 + 5 + 3 + 15 + 5), 0, 0},
    {"batch_norm", 8 * 15 + 11 * 3, 8 * (15 + 3 + 3 + 15 + 3 + 3), 0, 0},
    {"batch_norm_gradient", 13 * 15 + 2 * 3, 8 * (15 + 15 + 3 + 3 + 3 + 15 + 3 + 3), 0, 0},
    {"dropout", 17 * 15, 8 * (15 + 15), 8 * (15 + 2 * 15), 0},
    {"embedding", 0, 8 * (18 + 6 + 18), 0, 0},
    /* [2,2,4,3] and [3,2,2,2]: 36 results of 8 products each; [2,2,5] and [3,2,2]: 24 of 4. */
    {"conv2d", 2 * 36 * 8, 8 * (48 + 24 + 36), 8 * (48 + 24 + 2 * 36), 0},
    {"conv2d_weights", 2 * 36 * 8, 8 * (48 + 36 + 24), 8 * (48 + 36 + 2 * 24), 0},
    {"conv_transpose2d", 2 * 36 * 8, 8 * (36 + 24 + 48), 8 * (36 + 24 + 2 * 48), 0},
    {"conv1d", 2 * 24 * 4, 8 * (20 + 12 + 24), 8 * (20 + 12 + 2 * 24), 0},
    /* [2,4,5] in windows of 4, two by two; [3,7] in windows of 2, three by three. */
    {"max_pool2d", 8 * 4, 8 * (40 + 8 + 8), 0, 0},
    {"max_pool1d", 9 * 2, 8 * (21 + 9 + 9), 0, 0},
    {"avg_pool2d", 8 * 4 + 4 * 8, 8 * (40 + 8), 0, 0},
    {"avg_pool1d", 9 * 2 + 4 * 9, 8 * (21 + 9), 0, 0},
    {"avg_pool2d_gradient", 8 * 4 + 4 * 8, 8 * (8 + 40), 8 * (8 + 2 * 40), 0},
    {"pool_scatter", 12, 8 * (3 * 12 + 12 + 24), 8 * (3 * 12 + 12), 0},
    {"pool_gather", 0, 8 * (12 + 12 + 12), 0, 0},
    /* 3 rows of 2 and 3 elements, 4 forms: 18 products, each in 4 sums. */
    {"bilinear", 18 + 2 * 18 * 4, 8 * (6 + 9 + 24 + 12), 8 * (6 + 9 + 24 + 2 * 12), 0},
    {"bilinear_weights", 18 + 2 * 18 * 4, 8 * (12 + 6 + 9 + 24), 8 * (12 + 6 + 9 + 2 * 24), 0},
    {"norm", 7 * 15, 8 * (15 + 1), 0, 0},  /* p = 2: scaled by the greatest magnitude */
    {"norm", 2 * 15, 8 * (15 + 1), 0, 1},  /* p = 1 */
    {"norm", 2 * 15, 8 * (15 + 1), 0, 2},  /* p = inf */
    {"norm", 46 * 15, 8 * (15 + 1), 0, 3}, /* p = 3: a logarithm and an exponential */
    /* Of matrices [3,3], and right-hand sides [3,2]. */
    {"cholesky", 9, 8 * (9 + 9), 0, 0},
    {"cholesky_adjoint", 18, 8 * (9 + 9 + 9), 0, 0},
    {"solve_triangular", 3 * 6, 8 * (9 + 6 + 6), 0, 0},
    {"solve", 18 + 2 * 3 * 6, 8 * (9 + 6 + 6 + 9 + 3), 0, 0}, /* LU and its exchanges kept */
    {"inverse", 2 * 27, 8 * (9 + 9), 0, 0},
    {"det", 18 + 3, 8 * (9 + 1 + 9 + 3), 0, 0},
    {"logdet", 18 + 20 * 3, 8 * (9 + 1 + 9 + 3), 0, 0},
    {"slogdet", 18 + 20 * 3, 8 * (9 + 2 + 9 + 3), 0, 0},
    {"eigh", 9 * 27, 8 * (9 + 3 + 9), 0, 0},
    {"svd", 22 * 27, 8 * (9 + 9 + 3 + 9), 0, 0},
    {"qr", 4 * 27, 8 * (9 + 9 + 9), 0, 0},
    {"lstsq", 4 * 2 * 8 + (2 * 4 + 2) * 4, 8 * (8 + 8 + 4 + 8 + 4), 0, 0}, /* [4,2] and [4,2] */
    {"expm", 44 * 9, 8 * (9 + 9), 0, 0},
    {"expm_derivative", 3 * 44 * 9, 8 * (9 + 9 + 9), 0, 0},
    {"gap_quotient", 7 * 9, 8 * (9 + 3 + 9), 0, 0},
    {"weigh_triangles", 9, 8 * (9 + 9), 8 * (9 + 2 * 9), 0},
    {"symmetric_part", 2 * 9, 8 * (9 + 9), 0, 0},
    {"exchange_rows", 0, 8 * (12 + 3 + 12), 0, 0}, /* of 3 rows of 4 */
    {"diagonal_matrix", 0, 8 * (4 + 16), 0, 0},    /* of 4 */
    {"matrix_diagonal", 0, 8 * (4 + 4), 0, 0},
    {"flip", 0, 8 * (12 + 12), 0, 0},                      /* [3,4] */
    {"roll", 0, 8 * (15 + 15), 0, 0},                      /* [3,5] */
    {"pad", 0, 8 * (12 + 6 * 7), 0, 0},                    /* [3,4] into [6,7] */
    {"tril", 0, 8 * (16 + 16), 0, 0},                      /* [4,4] */
    {"triu", 0, 8 * (16 + 16), 0, 0},                      /* [4,4] */
    {"diagonal", 0, 0, 0, 0},                              /* a view */
    {"diagonal_add", 0, 8 * (4 + 4 + 16), 8 * 3 * 4, 0},   /* [4] into [4,4], cleared before */
    {"diag", 0, 8 * (4 + 4 + 16), 0, 0},                   /* [4] into [4,4], cleared before */
    {"trace", 4, 8 * (4 + 1), 0, 0},                       /* [4,4] */
    {"kron", 36, 8 * (6 + 6 + 36), 0, 0},                  /* [2,3] and [3,2] */
    {"repeat", 0, 8 * (6 + 36), 0, 0},                     /* [2,3] to [4,9] */
    {"repeat_sum", 12, 8 * (12 + 2), 8 * (12 + 2 * 2), 0}, /* [4,3] to [2,1] */
    {"repeat_interleave", 0, 8 * (6 + 12), 0, 0},          /* [2,3] to [2,6] */
    {"slice_add", 0, 8 * (10 + 10 + 20), 8 * 3 * 10, 0},   /* [2,5] into [4,5], cleared before */
    {"sort", 3 * 15, 8 * (15 + 15 + 15), 0, 0},            /* 5 numbers in 3 steps of halving */
    {"topk", 15 + 6, 8 * (15 + 6 + 6), 0, 0},              /* 2 of 5: compared, and one step */
    {"gather", 0, 8 * (15 + 15 + 15), 0, 0},               /* [3,5] of [3,4] */
    {"scatter_add", 12, 8 * (3 * 12 + 12 + 9), 8 * (3 * 12 + 12), 0}, /* [3,4] into [3,3] */
    {"index_select", 0, 8 * (15 + 5 + 15), 0, 0},                     /* 5 columns of [3,4] */
    {"index_add", 12, 8 * (3 * 12 + 4 + 9), 8 * (3 * 12 + 4), 0},     /* [3,4] into [3,3] */
    {"masked_fill", 15, 8 * (15 + 15 + 15), 0, 0},                    /* [3,5] */
    {"masked_select", 15, 8 * (15 + 2 * 15 + 15), 0, 0}, /* all of [3,5], and their places */
    {"gather_rows", 0, 8 * (18 + 6 + 18), 0, 0}, /* 6 rows of 3: read, their indices, written */
};

TEST(costs_are_those_counted_by_hand)
{
    int n, found = 0;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        for (int k = 0; k < n; k++) {
            struct kernel_sample s;
            if (strcmp(ops[k]->name, costs[i].op) != 0)
                continue;
            found++;
            ck_assert(ops[k]->sample(costs[i].sample, &s));
            const struct kernel_cost cost = cost_of(ops[k], &s, false);
            ck_assert_msg(cost.flops == costs[i].flops, "%s: %llu flops", costs[i].op,
                          (unsigned long long)cost.flops);
            ck_assert_msg(cost.bytes == costs[i].bytes, "%s: %llu bytes", costs[i].op,
                          (unsigned long long)cost.bytes);
            ck_assert_int_eq(ops[k]->accumulates, costs[i].adding != 0);
            if (costs[i].adding)
                ck_assert_uint_eq(cost_of(ops[k], &s, true).bytes, costs[i].adding);
        }
    ck_assert_int_eq(found, (int)(sizeof costs / sizeof *costs));
}

TEST(every_op_has_a_sample_without_elements_and_one_of_several)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        struct kernel_sample s;
        bool empty = false, several = false;
        for (int i = 0; ops[k]->sample(i, &s); i++)
            for (int o = 0; o < s.n_in; o++) {
                int64_t size = 1;
                for (int axis = 0; axis < s.rank[o]; axis++)
                    size *= s.shape[o][axis];
                empty = empty || size == 0;
                several = several || size > 2;
            }
        ck_assert_msg(empty, "%s has no sample that is empty", ops[k]->name);
        ck_assert_msg(several, "%s has no sample of several elements", ops[k]->name);
    }
}

RUN_TESTS(NULL, NULL)
