/* test_gradcheck.c: every op's pullback against differences, through the tape.
 *
 * Driven by the op table and each op's samples, so an op that is added is checked without a change
 * here. Numbers come from fixed seeds.
 */
#include "check_gradient.h"

#include "elementwise.h"
#include "kernel_ops.h"
#include "row_checks.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef bool check_fn(const struct check_case *c);

TEST(every_op_has_a_sample)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    ck_assert_int_ge(n_ops, 12);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        ck_assert_msg(ops[k]->sample(0, &sample), "%s has no sample", ops[k]->name);
        ck_assert(sample.n_in == ops[k]->n_in || (ops[k]->variadic && sample.n_in > ops[k]->n_in));
    }
}

TEST(jacobians_equal_differences)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "leaves", check_rows);
}

TEST(jacobians_of_intermediates_equal_differences)
{
    check_samples(KERNEL_F64, CHECK_MIDDLE, "intermediates", check_rows);
}

TEST(random_directions_agree)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "direction", check_direction);
}

TEST(f32_gradients_equal_f64_gradients)
{
    check_samples(KERNEL_F32, CHECK_PLAIN, "leaves", check_narrow);
    check_samples(KERNEL_F32, CHECK_MIDDLE, "intermediates", check_narrow);
}

TEST(gradients_are_added_to_what_is_there)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "used twice", check_held);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "used twice", check_held);
    check_samples(KERNEL_F32, CHECK_PLAIN, "used twice", check_held);
    check_samples(KERNEL_F32, CHECK_MIDDLE, "used twice", check_held);
}

TEST(observed_gradients_are_bit_identical)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "observed", check_observed);
    check_samples(KERNEL_F32, CHECK_MIDDLE, "observed", check_observed);
}

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
        good = !any || (check_rows(&part) && check_held(&part));
    }
    return good;
}

TEST(every_subset_of_operands_may_be_active)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "subset", check_subsets);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "subset", check_subsets);
}

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
        good = check_rows(&view) && check_held(&view);
    }
    return good;
}

TEST(operands_may_be_transposed_views)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "transposed view", check_transposed);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "transposed view", check_transposed);
}

/* A matrix that must not be singular cannot have equal rows, nor values that must differ be equal:
 * of such, a batch is stretched. */
static bool check_each_stretched(const struct check_case *c)
{
    bool good = true;
    for (int i = 0; i < c->n_in && good; i++) {
        const int least = c->diagonal[c->in[i].leaf] != 0 ? 3 : 1;
        if (c->leaf[i].active && c->leaf[i].rank >= least && c->leaf[i].shape[0] > 1)
            good = check_stretched(c, i);
    }
    return good;
}

TEST(operands_may_be_stretched_views)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "stretched view", check_each_stretched);
}

/* Operands of one shape become one and the same value. */
static bool check_aliased(const struct check_case *c)
{
    struct check_case same;
    return !check_alias(c, &same) || (check_rows(&same) && check_held(&same));
}

TEST(operands_may_be_one_value)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "one value", check_aliased);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "one value", check_aliased);
}

TEST(a_matrix_may_be_multiplied_by_itself_and_by_its_transpose)
{
    struct kernel_sample sample;
    ck_assert(kernel_op_matmul.sample(0, &sample));
    struct check_case c = check_case_of(&kernel_op_matmul, &sample, KERNEL_F64, -1);
    c.leaf[0].shape[0] = c.leaf[0].shape[1] = 4;
    c.n_leaves = 1;
    c.in[1].leaf = 0;
    c.aim = "a a";
    check_demand(check_rows(&c));
    check_demand(check_held(&c));
    c.leaf[0].shape[0] = 3;
    c.leaf[0].shape[1] = 5;
    c.in[1].form = CHECK_TRANSPOSED;
    c.aim = "a a^T";
    check_demand(check_rows(&c));
    c.in[0].form = CHECK_TRANSPOSED;
    c.in[1].form = CHECK_PLAIN;
    c.aim = "a^T a";
    check_demand(check_rows(&c));
    check_demand(check_held(&c));
}

TEST(every_instruction_set_gives_right_gradients)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    for (int k = 0; k < 3; k++) {
        if (!kernel_isa_use(names[k])) {
            printf("%s: skipped, this machine has not got it\n", names[k]);
            continue;
        }
        check_samples(KERNEL_F64, CHECK_PLAIN, names[k], check_rows);
        check_samples(KERNEL_F32, CHECK_PLAIN, names[k], check_narrow);
        check_samples(KERNEL_F32, CHECK_MIDDLE, names[k], check_held);
    }
    kernel_isa_use(NULL);
}

TEST(constant_ops_carry_no_gradient)
{
    int n_ops, constant = 0;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        constant += ops[k]->constant;
        for (int s = 0; ops[k]->constant && ops[k]->sample(s, &sample); s++) {
            struct check_case c = check_case_of(ops[k], &sample, KERNEL_F64, s);
            check_demand(check_constant(&c));
        }
    }
    ck_assert_int_ge(constant, 1);
}

TEST(ties_of_max_share_the_gradient_equally)
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
        check_demand(check_close(&c, "ties share to", -1, g, rows, 0));
        c.attr[1] = -2;
        check_pullback(&c, x, u_columns, g);
        check_demand(check_close(&c, "ties share to", -1, g, columns, 0));
        c.n_attr = 1;
        check_pullback(&c, x, u_all, g);
        check_demand(check_close(&c, "ties share to", -1, g, all, 0));
    }
}

TEST(samples_reach_every_branch)
{
    int n_rows, branching = 0;
    const struct row_check *rows = row_checks(&n_rows);
    for (int k = 0; k < n_rows; k++) {
        struct kernel_sample sample;
        unsigned seen = 0;
        for (int s = 0; rows[k].branch != NULL && rows[k].op->sample(s, &sample); s++) {
            const struct check_case c = check_case_of(rows[k].op, &sample, KERNEL_F64, s);
            const double p[2] = {kernel_attr_real(c.attr[0]), kernel_attr_real(c.attr[1])};
            double *x = check_memory((size_t)(check_x_size(&c) + 1) * sizeof *x), first[3] = {0};
            const int64_t n = check_leaf_size(&c.leaf[0]);
            check_draw(&c, x);
            for (int64_t i = 0, at = 0; i < n; i++, at = 0) {
                for (int leaf = 0; leaf < c.n_leaves; leaf++) {
                    const int64_t size = check_leaf_size(&c.leaf[leaf]);
                    first[leaf] = size > 0 ? x[at + i % size] : (double)NAN;
                    at += size;
                }
                seen |= 1U << rows[k].branch(first, p);
            }
        }
        branching += rows[k].branch != NULL;
        ck_assert_msg(seen == (1U << rows[k].n_branches) - 1, "%s: branches seen: %x",
                      rows[k].op->name, seen);
    }
    ck_assert_int_ge(branching, 33);
}

TEST(kinks_have_the_derivative_that_is_documented)
{
    const double x[4] = {0, -0.0, 1, -1}, u[4] = {1, 1, 1, 1}, relu[4] = {0, 0, 1, 0};
    struct check_case c = {.op = &kernel_op_relu, .n_leaves = 1, .n_in = 1, .sample = -1};
    double g[4];
    c.aim = "kink";
    c.leaf[0] = (struct check_leaf){KERNEL_F64, 1, {4}, -1, 1, true};
    check_pullback(&c, x, u, g);
    check_demand(check_close(&c, "it is documented as", -1, g, relu, 0));
}

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

TEST(a_wrong_pullback_is_caught_and_named)
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
    struct kernel_sample sample;
    ck_assert(kernel_op_sub.sample(8, &sample)); /* a [4,3], b [3] */
    struct check_case c = check_case_of(&op, &sample, KERNEL_F64, 8);
    ck_assert(!check_jacobian(&c));
    ck_assert_ptr_nonnull(strstr(check_message, "operand b, element 0: 1, but"));
    ck_assert(!check_direction(&c));
}

/* The pullback reads what the op does not say that it saves: an output, an operand, and in a
 * second use an operand that is then seen through a view. */
TEST(an_undeclared_read_is_caught)
{
    struct kernel_sample sample;
    struct kernel_op op = kernel_op_tanh;
    op.saves_out = 0;
    ck_assert(op.sample(9, &sample));
    struct check_case c = check_case_of(&op, &sample, KERNEL_F64, 9);
    check_message[0] = 0;
    ck_assert(!check_jacobian(&c));
    ck_assert_ptr_nonnull(strstr(check_message, "nan, but differences give"));
    ck_assert(!check_held(&c));
    op = kernel_op_matmul;
    op.saves_in = 1;
    ck_assert(op.sample(0, &sample));
    for (int form = CHECK_PLAIN; form <= CHECK_TRANSPOSED; form++) {
        c = check_case_of(&op, &sample, KERNEL_F64, 0);
        c.leaf[0].shape[0] = c.leaf[0].shape[1] = c.leaf[1].shape[0] = c.leaf[1].shape[1] = 3;
        c.in[1].form = (enum check_form)form;
        ck_assert(!check_jacobian(&c));
        ck_assert_ptr_nonnull(strstr(check_message, "nan, but differences give"));
        /* The same buffer is saved as the other operand. */
        c.in[1].leaf = 0;
        c.n_leaves = 1;
        if (form != CHECK_MIDDLE)
            ck_assert_msg(check_rows(&c), "%s", check_message);
    }
}

RUN_TESTS(NULL, NULL)
