/* test_gradcheck_shapes.c: pullbacks under broadcasting, at edges of vectors, and at large sizes.
 *
 * Shapes that the ops' samples do not have; elementwise ops come from the op table.
 */
#include "check_gradient.h"

#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

/* A case of an elementwise op with operands of the given extents. */
static struct check_case elementwise_case(const struct kernel_op *op, int dtype, int rank_a,
                                          const int64_t *shape_a, int rank_b,
                                          const int64_t *shape_b)
{
    struct kernel_sample sample;
    ck_assert(op->sample(0, &sample));
    struct check_case c = check_case_of(op, &sample, dtype, -1);
    c.leaf[0].rank = rank_a;
    memcpy(c.leaf[0].shape, shape_a, (size_t)rank_a * sizeof *shape_a);
    c.leaf[1].rank = rank_b;
    memcpy(c.leaf[1].shape, shape_b, (size_t)rank_b * sizeof *shape_b);
    return c;
}

/* Every pair of shapes that the rules of broadcasting tell apart. */
static void broadcast_pairs(int dtype, check_fn *check)
{
    static const struct {
        int rank;
        int64_t shape[3];
    } shapes[] = {{0, {0}},       {1, {1}},       {1, {5}},       {2, {3, 1}},    {2, {1, 5}},
                  {2, {3, 5}},    {2, {1, 1}},    {3, {2, 3, 5}}, {3, {2, 1, 5}}, {3, {2, 3, 1}},
                  {3, {2, 1, 1}}, {3, {1, 3, 1}}, {3, {1, 1, 5}}};
    const int n = (int)(sizeof shapes / sizeof *shapes);
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++)
        for (int p = 0; p < n * n && ops[k]->elementwise && ops[k]->n_in == 2; p++) {
            const int a = p / n, b = p % n;
            struct check_case c = elementwise_case(ops[k], dtype, shapes[a].rank, shapes[a].shape,
                                                   shapes[b].rank, shapes[b].shape);
            c.aim = "broadcast";
            if (!ops[k]->constant)
                check_demand(check(&c));
        }
}

TEST(broadcast_jacobians_equal_differences)
{
    broadcast_pairs(KERNEL_F64, check_rows);
}

TEST(broadcast_gradients_are_added_and_equal_in_f32)
{
    broadcast_pairs(KERNEL_F64, check_held);
    broadcast_pairs(KERNEL_F32, check_held);
    broadcast_pairs(KERNEL_F32, check_narrow);
}

TEST(sizes_at_the_edges_of_vectors_and_large_ones_agree)
{
    static const int64_t lengths[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,   16,   17,
                                      31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1025, 10007};
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths && ops[k]->elementwise; l++) {
            struct kernel_sample sample;
            ck_assert(ops[k]->sample(0, &sample));
            struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, -1);
            struct check_case narrow = check_case_of(ops[k], &sample, KERNEL_F32, -1);
            c.aim = narrow.aim = "length";
            for (int i = 0; i < c.n_in; i++) {
                c.leaf[i].rank = narrow.leaf[i].rank = 1;
                c.leaf[i].shape[0] = narrow.leaf[i].shape[0] = lengths[l];
            }
            if (!ops[k]->constant) {
                check_demand(check_direction(&c));
                check_demand(check_narrow(&narrow));
                check_demand(check_held(&c));
            }
        }
}

TEST(large_broadcasts_agree)
{
    static const struct {
        int rank_a, rank_b;
        int64_t a[3], b[3];
    } pairs[] = {{2, 1, {257, 33}, {33}},    {2, 2, {257, 33}, {257, 1}}, {2, 0, {257, 33}, {0}},
                 {2, 2, {300, 1}, {1, 101}}, {3, 1, {4, 65, 31}, {31}},   {1, 2, {1000}, {1, 1}}};
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++)
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
            if (!ops[k]->elementwise || ops[k]->n_in != 2 || ops[k]->constant)
                continue;
            struct check_case c = elementwise_case(ops[k], KERNEL_F64, pairs[p].rank_a, pairs[p].a,
                                                   pairs[p].rank_b, pairs[p].b);
            c.aim = "large broadcast";
            check_demand(check_direction(&c));
        }
}

/* Structural ops beyond one vector and one block, in f64 against differences and in f32. */
TEST(large_structural_ops_agree)
{
    static const struct {
        const struct kernel_op *op;
        int rank[3], n_attr;
        int64_t shape[3][3], attr[3];
    } cases[] = {
        {&kernel_op_matmul, {2, 2}, 0, {{65, 130}, {130, 33}}, {0}},
        {&kernel_op_matmul, {2, 2}, 0, {{1, 500}, {500, 1}}, {0}},
        {&kernel_op_linear, {2, 2, 1}, 0, {{64, 129}, {129, 65}, {65}}, {0}},
        {&kernel_op_linear, {3, 2, 1}, 0, {{7, 9, 33}, {33, 17}, {17}}, {0}},
        {&kernel_op_sum, {2}, 1, {{257, 129}}, {0}},
        {&kernel_op_sum, {2}, 2, {{257, 129}}, {0, 0}},
        {&kernel_op_sum, {3}, 3, {{9, 33, 17}}, {1, 0, 2}},
        {&kernel_op_mean, {2}, 2, {{257, 129}}, {0, 1}},
        {&kernel_op_max, {2}, 2, {{9, 65}}, {0, -1}},
        {&kernel_op_softmax_cross_entropy, {2, 1}, 0, {{100, 129}, {100}}, {0}},
        {&kernel_op_transpose, {2}, 0, {{257, 65}}, {0}},
        {&kernel_op_reshape, {2}, 2, {{257, 65}}, {65, 257}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct kernel_sample sample;
        ck_assert(cases[k].op->sample(0, &sample));
        sample.n_attr = cases[k].n_attr;
        memcpy(sample.attr, cases[k].attr, sizeof cases[k].attr);
        for (int i = 0; i < sample.n_in; i++) {
            sample.rank[i] = (uint8_t)cases[k].rank[i];
            memcpy(sample.shape[i], cases[k].shape[i], sizeof cases[k].shape[i]);
        }
        struct check_case c = check_case_of(cases[k].op, &sample, KERNEL_F64, -1);
        c.aim = "large";
        check_demand(check_direction(&c));
        check_demand(check_held(&c));
        c = check_case_of(cases[k].op, &sample, KERNEL_F32, -1);
        c.aim = "large";
        check_demand(check_narrow(&c));
    }
}

RUN_TESTS(NULL, NULL)
