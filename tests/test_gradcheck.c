/* test_gradcheck.c: every op's pullback against differences, through the tape.
 *
 * May include: check_gradient.h, kernel_ops.h, elementwise.h (for its choice of an instruction set), Check. Driven by the op table and each op's samples, so
 * an op that is added is checked without a change here. Numbers come from fixed seeds.
 */
#include "check_gradient.h"

#include "elementwise.h"
#include "kernel_ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef bool check_fn(const struct check_case *c);

static void demand(bool passed)
{
    ck_assert_msg(passed, "%s", check_message);
}

/* Runs a check on every sample of every op that has a gradient. */
static void for_each_sample(int dtype, enum check_form form, const char *aim, check_fn *check)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        for (int s = 0; !ops[k]->constant && ops[k]->sample(s, &sample); s++) {
            struct check_case c = check_case_of(ops[k], &sample, dtype, s);
            c.aim = aim;
            for (int i = 0; i < c.n_in; i++)
                if (c.leaf[i].active)
                    c.in[i].form = form;
            demand(check(&c));
        }
    }
}

START_TEST(every_op_has_a_sample)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    ck_assert_int_ge(n_ops, 12);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        ck_assert_msg(ops[k]->sample(0, &sample), "%s has no sample", ops[k]->name);
        ck_assert_int_eq(sample.n_in, ops[k]->n_in);
    }
}
END_TEST

START_TEST(jacobians_equal_differences)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "leaves", check_jacobian);
}
END_TEST

START_TEST(jacobians_of_intermediates_equal_differences)
{
    for_each_sample(KERNEL_F64, CHECK_MIDDLE, "intermediates", check_jacobian);
}
END_TEST

START_TEST(random_directions_agree)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "direction", check_direction);
}
END_TEST

START_TEST(f32_gradients_equal_f64_gradients)
{
    for_each_sample(KERNEL_F32, CHECK_PLAIN, "leaves", check_narrow);
    for_each_sample(KERNEL_F32, CHECK_MIDDLE, "intermediates", check_narrow);
}
END_TEST

START_TEST(gradients_are_added_to_what_is_there)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "used twice", check_held);
    for_each_sample(KERNEL_F64, CHECK_MIDDLE, "used twice", check_held);
    for_each_sample(KERNEL_F32, CHECK_PLAIN, "used twice", check_held);
    for_each_sample(KERNEL_F32, CHECK_MIDDLE, "used twice", check_held);
}
END_TEST

START_TEST(observed_gradients_are_bit_identical)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "observed", check_observed);
    for_each_sample(KERNEL_F32, CHECK_MIDDLE, "observed", check_observed);
}
END_TEST

/* Every non-empty proper subset of the float operands is active, the others are constants. */
static bool check_subsets(const struct check_case *c)
{
    bool good = true;
    for (unsigned subset = 1; subset + 1 < 1U << c->n_in && good; subset++) {
        struct check_case part = *c;
        bool any = false;
        for (int i = 0; i < c->n_in; i++) {
            part.leaf[i].active = c->leaf[i].active && (subset >> i & 1) != 0;
            any = any || part.leaf[i].active;
        }
        good = !any || (check_jacobian(&part) && check_held(&part));
    }
    return good;
}

START_TEST(every_subset_of_operands_may_be_active)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "subset", check_subsets);
    for_each_sample(KERNEL_F64, CHECK_MIDDLE, "subset", check_subsets);
}
END_TEST

/* One operand at a time comes as a transposed view. */
static bool check_transposed(const struct check_case *c)
{
    bool good = true;
    for (int i = 0; i < c->n_in && good; i++) {
        struct check_case view = *c;
        struct check_leaf *leaf = &view.leaf[i];
        if (!leaf->active || leaf->rank < 2)
            continue;
        view.in[i].form = CHECK_TRANSPOSED;
        int64_t last = leaf->shape[leaf->rank - 1];
        leaf->shape[leaf->rank - 1] = leaf->shape[leaf->rank - 2];
        leaf->shape[leaf->rank - 2] = last;
        good = check_jacobian(&view) && check_held(&view);
    }
    return good;
}

START_TEST(operands_may_be_transposed_views)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "transposed view", check_transposed);
    for_each_sample(KERNEL_F64, CHECK_MIDDLE, "transposed view", check_transposed);
}
END_TEST

static bool check_each_stretched(const struct check_case *c)
{
    bool good = true;
    for (int i = 0; i < c->n_in && good; i++)
        if (c->leaf[i].active && c->leaf[i].rank > 0 && c->leaf[i].shape[0] > 1)
            good = check_stretched(c, i);
    return good;
}

START_TEST(operands_may_be_stretched_views)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "stretched view", check_each_stretched);
}
END_TEST

/* Operands of one shape become one and the same value. */
static bool check_aliased(const struct check_case *c)
{
    bool good = true;
    for (int i = 1; i < c->n_in && good; i++) {
        struct check_case same = *c;
        if (c->leaf[i].rank != c->leaf[0].rank || !c->leaf[i].active ||
            memcmp(c->leaf[i].shape, c->leaf[0].shape, sizeof c->leaf[i].shape) != 0)
            continue;
        same.in[i].leaf = 0;
        same.leaf[i].active = false;
        same.leaf[0].low = fmax(c->leaf[0].low, c->leaf[i].low);
        same.leaf[0].high = fmin(c->leaf[0].high, c->leaf[i].high);
        good = check_jacobian(&same) && check_held(&same);
    }
    return good;
}

START_TEST(operands_may_be_one_value)
{
    for_each_sample(KERNEL_F64, CHECK_PLAIN, "one value", check_aliased);
}
END_TEST

START_TEST(a_matrix_may_be_multiplied_by_itself_and_by_its_transpose)
{
    struct kernel_sample sample;
    ck_assert(kernel_op_matmul.sample(0, &sample));
    struct check_case c = check_case_of(&kernel_op_matmul, &sample, KERNEL_F64, -1);
    c.leaf[0].shape[0] = c.leaf[0].shape[1] = 4;
    c.n_leaves = 1;
    c.in[1].leaf = 0;
    c.aim = "a a";
    demand(check_jacobian(&c));
    demand(check_held(&c));
    c.leaf[0].shape[0] = 3;
    c.leaf[0].shape[1] = 5;
    c.in[1].form = CHECK_TRANSPOSED;
    c.aim = "a a^T";
    demand(check_jacobian(&c));
    c.in[0].form = CHECK_TRANSPOSED;
    c.in[1].form = CHECK_PLAIN;
    c.aim = "a^T a";
    demand(check_jacobian(&c));
    demand(check_held(&c));
}
END_TEST

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
                demand(check(&c));
        }
}

START_TEST(broadcast_jacobians_equal_differences)
{
    broadcast_pairs(KERNEL_F64, check_jacobian);
}
END_TEST

START_TEST(broadcast_gradients_are_added_and_equal_in_f32)
{
    broadcast_pairs(KERNEL_F64, check_held);
    broadcast_pairs(KERNEL_F32, check_held);
    broadcast_pairs(KERNEL_F32, check_narrow);
}
END_TEST

START_TEST(sizes_at_the_edges_of_vectors_and_large_ones_agree)
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
                demand(check_direction(&c));
                demand(check_narrow(&narrow));
                demand(check_held(&c));
            }
        }
}
END_TEST

START_TEST(large_broadcasts_agree)
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
            demand(check_direction(&c));
        }
}
END_TEST

/* Structural ops beyond one vector and one block, in f64 against differences and in f32. */
START_TEST(large_structural_ops_agree)
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
        demand(check_direction(&c));
        demand(check_held(&c));
        c = check_case_of(cases[k].op, &sample, KERNEL_F32, -1);
        c.aim = "large";
        demand(check_narrow(&c));
    }
}
END_TEST

START_TEST(every_instruction_set_gives_right_gradients)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    for (int k = 0; k < 3; k++) {
        if (!kernel_isa_use(names[k])) {
            printf("%s: skipped, this machine has not got it\n", names[k]);
            continue;
        }
        for_each_sample(KERNEL_F64, CHECK_PLAIN, names[k], check_jacobian);
        for_each_sample(KERNEL_F32, CHECK_PLAIN, names[k], check_narrow);
        for_each_sample(KERNEL_F32, CHECK_MIDDLE, names[k], check_held);
    }
    kernel_isa_use(NULL);
}
END_TEST

START_TEST(constant_ops_carry_no_gradient)
{
    int n_ops, constant = 0;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        constant += ops[k]->constant;
        for (int s = 0; ops[k]->constant && ops[k]->sample(s, &sample); s++) {
            struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, s);
            demand(check_constant(&c));
        }
    }
    ck_assert_int_ge(constant, 1);
}
END_TEST

START_TEST(ties_of_max_share_the_gradient_equally)
{
    const double x[12] = {3, 1, 3, 3, -1, -1, -1, -1, 2, 5, 5, 0};
    const double u_rows[3] = {1.5, -1, 4},
                 rows[12] = {0.5, 0, 0.5, 0.5, -0.25, -0.25, -0.25, -0.25, 0, 2, 2, 0};
    const double u_all[1] = {3}, all[12] = {[9] = 1.5, [10] = 1.5};
    const double u_columns[4] = {1, 2, 4, 8}, columns[12] = {[0] = 1, [9] = 2, [10] = 4, [3] = 8};
    struct check_case c = {.op = &kernel_op_max, .n_leaves = 1, .n_in = 1, .sample = -1};
    double g[12];
    c.aim = "ties";
    c.leaf[0] = (struct check_leaf){KERNEL_F64, 2, {3, 4}, -1, 1, true};
    for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
        c.leaf[0].dtype = dtype;
        c.n_attr = 2;
        c.attr[1] = 1;
        check_pullback(&c, x, u_rows, g);
        demand(check_close(&c, "ties share to", -1, g, rows, 0));
        c.attr[1] = -2;
        check_pullback(&c, x, u_columns, g);
        demand(check_close(&c, "ties share to", -1, g, columns, 0));
        c.n_attr = 1;
        check_pullback(&c, x, u_all, g);
        demand(check_close(&c, "ties share to", -1, g, all, 0));
    }
}
END_TEST

START_TEST(kinks_have_the_derivative_that_is_documented)
{
    const double x[4] = {0, -0.0, 1, -1}, u[4] = {1, 1, 1, 1}, relu[4] = {0, 0, 1, 0};
    struct check_case c = {.op = &kernel_op_relu, .n_leaves = 1, .n_in = 1, .sample = -1};
    double g[4];
    c.aim = "kink";
    c.leaf[0] = (struct check_leaf){KERNEL_F64, 1, {4}, -1, 1, true};
    check_pullback(&c, x, u, g);
    demand(check_close(&c, "it is documented as", -1, g, relu, 0));
}
END_TEST

/* ---- the checks themselves can fail ---- */

static void pullback_of_copy(struct kernel_rule *rule)
{
    kernel_accumulate(rule, 0, &kernel_op_copy, 1, &rule->adjoint[0], 0, NULL);
}

static void pullback_of_nothing(struct kernel_rule *rule)
{
    (void)rule;
}

static void pullback_of_nan(struct kernel_rule *rule)
{
    const int64_t nan = kernel_attr_word((double)NAN);
    kernel_accumulate(rule, 0, &kernel_op_scale, 1, &rule->adjoint[0], 1, &nan);
}

/* Right but for the share of operand b where it is broadcast: the sign. */
static void pullback_of_add(struct kernel_rule *rule)
{
    kernel_accumulate(rule, 1, &kernel_op_copy, 1, &rule->adjoint[0], 0, NULL);
    pullback_of_copy(rule);
}

START_TEST(a_wrong_pullback_is_caught_and_named)
{
    void (*const wrong[])(struct kernel_rule *) = {pullback_of_copy, pullback_of_nothing,
                                                   pullback_of_nan};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct kernel_op op = kernel_op_tanh;
        struct kernel_sample sample;
        op.pullback = wrong[k];
        ck_assert(kernel_op_tanh.sample(9, &sample));
        struct check_case c = check_case_of(&op, &sample, KERNEL_F64, 9);
        check_message[0] = 0;
        ck_assert(!check_jacobian(&c));
        ck_assert_ptr_nonnull(strstr(check_message, "tanh f64 sample 9"));
        ck_assert_ptr_nonnull(strstr(check_message, "operand x, element"));
        ck_assert(!check_direction(&c));
    }
    struct kernel_op op = kernel_op_sub;
    op.pullback = pullback_of_add;
    struct check_case c =
        elementwise_case(&op, KERNEL_F64, 2, (const int64_t[]){3, 5}, 1, (const int64_t[]){5});
    ck_assert(!check_jacobian(&c));
    ck_assert_ptr_nonnull(strstr(check_message, "operand b, element 0: 1, but"));
    ck_assert(!check_direction(&c));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gradcheck");
    TCase *tests = tcase_create("pullbacks");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, every_op_has_a_sample);
    tcase_add_test(tests, jacobians_equal_differences);
    tcase_add_test(tests, jacobians_of_intermediates_equal_differences);
    tcase_add_test(tests, random_directions_agree);
    tcase_add_test(tests, f32_gradients_equal_f64_gradients);
    tcase_add_test(tests, gradients_are_added_to_what_is_there);
    tcase_add_test(tests, observed_gradients_are_bit_identical);
    tcase_add_test(tests, every_subset_of_operands_may_be_active);
    tcase_add_test(tests, operands_may_be_transposed_views);
    tcase_add_test(tests, operands_may_be_stretched_views);
    tcase_add_test(tests, operands_may_be_one_value);
    tcase_add_test(tests, a_matrix_may_be_multiplied_by_itself_and_by_its_transpose);
    tcase_add_test(tests, broadcast_jacobians_equal_differences);
    tcase_add_test(tests, broadcast_gradients_are_added_and_equal_in_f32);
    tcase_add_test(tests, sizes_at_the_edges_of_vectors_and_large_ones_agree);
    tcase_add_test(tests, large_broadcasts_agree);
    tcase_add_test(tests, large_structural_ops_agree);
    tcase_add_test(tests, every_instruction_set_gives_right_gradients);
    tcase_add_test(tests, constant_ops_carry_no_gradient);
    tcase_add_test(tests, ties_of_max_share_the_gradient_equally);
    tcase_add_test(tests, kinks_have_the_derivative_that_is_documented);
    tcase_add_test(tests, a_wrong_pullback_is_caught_and_named);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
