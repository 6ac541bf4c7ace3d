/* test_tape_inner.c: what the tape does about rules that are wrong, adjoints that pass through
 * views, tables that grow, and messages.
 *
 * Rules that are wrong are made here: those of the op table are not.
 */
#include "ad_internal.h"

#include "kernel_ops.h"
#include "op_rules.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_checkpoint.h"
#include "tape_fork.h"
#include "tape_real_checkpoint.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { MIB = 1 << 20, WIDE = 4096 };

static double data[WIDE];
static const struct tape_site here = {0x1234, 7};

static void setup(void)
{
    const ad_tape_options options = {.reserve_bytes = 16 * MIB, .budget_bytes = 16 * MIB};
    tape_begin(&options);
    for (int i = 0; i < WIDE; i++)
        data[i] = 0.5;
}

/* ---- kinds of records ---- */

TEST(a_record_of_any_op_is_of_the_common_kind)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        const struct tape_record r = {.op = ops[k]};
        if (!ops[k]->constant) /* those leave no record */
            ck_assert_msg(tape_record_kind(&r) == &tape_op_kind, "%s", ops[k]->name);
    }
    const struct record_kind *const others[] = {
        &tape_statement_kind, &tape_leaves_kind,     &tape_elements_kind,       &tape_gather_kind,
        &tape_join_kind,      &tape_checkpoint_kind, &tape_real_checkpoint_kind};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const struct tape_record r = {.op = &others[k]->op};
        ck_assert_ptr_eq(tape_record_kind(&r), others[k]);
    }
}

/* ---- rules that are wrong ---- */

/* x' += y' of a shape that x does not have: axis 5 is no axis. */
static void emits_refused_shape(struct kernel_rule *rule)
{
    const int64_t attr[] = {0, 5};
    kernel_accumulate_value(rule, 0,
                            kernel_emit(rule, &kernel_op_sum, 1, &rule->adjoint[0], 2, attr));
}

static void accumulates_refused_shape(struct kernel_rule *rule)
{
    const int64_t attr[] = {0, 5};
    kernel_accumulate(rule, 0, &kernel_op_sum, 1, &rule->adjoint[0], 2, attr);
}

/* Rows that x does not have are refused by the kernel, not by the shape. */
static void emits_refused_values(struct kernel_rule *rule)
{
    static int64_t seven = 7;
    static const int64_t one = 1;
    const struct kernel_array row = {
        .data = &seven, .shape = &one, .strides = &one, .size = 1, .dtype = KERNEL_I64, .rank = 1};
    const kernel_ref in[] = {rule->adjoint[0], &row};
    kernel_accumulate_value(rule, 0, kernel_emit(rule, &kernel_op_gather_rows, 2, in, 0, NULL));
}

/* More intermediate results than a pullback may have. */
static void emits_too_many(struct kernel_rule *rule)
{
    kernel_ref g = rule->adjoint[0];
    for (int i = 0; i < 200; i++)
        g = kernel_emit(rule, &kernel_op_neg, 1, &g, 0, NULL);
    kernel_accumulate_value(rule, 0, g);
}

TEST(a_rule_that_emits_what_an_op_refuses_is_an_error_of_its_op_and_line)
{
    static const struct {
        void (*pullback)(struct kernel_rule *rule);
        ad_status status;
        const char *text;
    } rules[] = {
        {emits_refused_shape, AD_ERROR_STATE, "pullback of exp: sum: f64 [3]: there is no axis 5"},
        {accumulates_refused_shape, AD_ERROR_STATE,
         "pullback of exp: sum: f64 [3]: there is no axis 5"},
        {emits_refused_values, AD_ERROR_STATE,
         "pullback of exp: gather_rows: f64 [3], i64 [1]: index 7 at position 0"},
        {emits_too_many, AD_ERROR_MEMORY, "backward: out of memory"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        static struct kernel_op wrong;
        double gradient[3];
        ad_stats before, after;
        wrong = kernel_op_exp;
        wrong.pullback = rules[i].pullback;
        ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, data);
        ad_tensor h = ad_square(x);
        ad_tensor y = ad_sum(ad_apply(&wrong, 1, &h, 0, NULL, here));
        ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
        ck_assert_int_eq(ad_backward(y), rules[i].status);
        ck_assert_msg(strncmp(ad_tape_message(tape), rules[i].text, strlen(rules[i].text)) == 0,
                      "%s", ad_tape_message(tape));
        ad_tape_clear_error(tape);
        ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
        ck_assert_uint_eq(after.live_bytes, before.live_bytes);
        ck_assert_int_eq(ad_gradient(x, gradient, 3), AD_ERROR_STATE);
        ad_tape_clear_error(tape);
        ck_assert_int_eq(ad_backward(ad_sum(h)), AD_OK);
        ck_assert_int_eq(ad_gradient(x, gradient, 3), AD_OK);
        ck_assert_double_eq(gradient[2], 2 * data[2]);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    }
}

TEST(a_recorded_rule_that_is_refused_leaves_nothing_on_the_tape)
{
    static struct kernel_op wrong;
    ad_stats before, after;
    ad_tensor g, x = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, data);
    wrong = kernel_op_exp;
    wrong.pullback = emits_refused_shape;
    ad_tensor y = ad_sum(ad_apply(&wrong, 1, &x, 0, NULL, here));
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &x, &g), AD_ERROR_SHAPE);
    ck_assert_uint_eq(g.value, 0);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "sum: f64 [3]: there is no axis 5"));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

/* ---- adjoints ---- */

TEST(the_adjoint_of_a_reshaped_value_is_handed_over_and_not_copied)
{
    ad_stats before, after;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){WIDE}, data);
    ad_tensor h = ad_neg(x);
    for (int i = 0; i < 4; i++)
        h = ad_reshape(h, (int64_t[]){64, -1}, 2);
    h = ad_sum(h);
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_uint_eq(before.peak_bytes, before.live_bytes);
    ck_assert_int_eq(ad_backward(h), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    /* One adjoint of the values' size, and that of the sum; the leaf's was there. */
    ck_assert_uint_ge(after.peak_bytes - before.peak_bytes, sizeof data);
    ck_assert_uint_lt(after.peak_bytes - before.peak_bytes, sizeof data + 256);
}

TEST(a_value_added_to_itself_through_a_view_gets_both_gradients)
{
    double gradient[4];
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data);
    ad_tensor h = ad_neg(x);
    ad_tensor twice = ad_add(h, h);
    ck_assert_int_eq(ad_backward(ad_sum(ad_add(twice, ad_reshape(h, (int64_t[]){4}, 1)))), AD_OK);
    ck_assert_int_eq(ad_gradient(x, gradient, 4), AD_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(gradient[i], -3);
}

/* Values that a derivative by x adds where another operand comes of a long computation. */
static uint64_t values_added(bool leaf)
{
    ad_stats before, after;
    ad_tensor g, x = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data);
    ad_tensor z = leaf ? ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data)
                       : ad_constant(tape, AD_F64, 1, (int64_t[]){4}, data);
    for (int i = 0; i < 5; i++)
        z = ad_exp(ad_square(z));
    ad_tensor y = ad_sum(ad_mul(ad_tanh(x), z));
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &x, &g), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    return after.values - before.values;
}

TEST(a_recorded_derivative_computes_nothing_that_does_not_lead_to_its_variable)
{
    const uint64_t right = values_added(false);
    ck_assert_uint_gt(right, 0);
    ck_assert_uint_eq(values_added(true), right);
}

/* ---- rows of the account ---- */

TEST(a_line_keeps_its_row_while_the_table_grows)
{
    enum { LINES = 1000 };
    static uint32_t row[LINES];
    static const char *const ops[] = {"first", "second"};
    struct tape *t = ad_slots[tape.slot].tape;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < LINES; i++) {
            /* Neighbours differ in their address, their line or their op alone. */
            const struct tape_site site = {(uintptr_t)(64 * (i / 4)), (unsigned)(i / 2 % 2)};
            const uint32_t got = tape_account_row(t, site, ops[i % 2]);
            if (pass == 0)
                row[i] = got;
            ck_assert_uint_eq(got, row[i]);
            ck_assert_uint_gt(got, TAPE_ROW_OTHER);
            ck_assert(tape_row(t, got)->pc == site.pc && tape_row(t, got)->line == site.line &&
                      tape_row(t, got)->op == ops[i % 2]);
            ck_assert(i == 0 || row[i] != row[i - 1]);
        }
}

TEST(lines_beyond_the_last_row_are_counted_together)
{
    struct tape *t = ad_slots[tape.slot].tape;
    uint32_t row = 0;
    const uint32_t most = TAPE_ROW_CHUNKS * TAPE_ROW_CHUNK;
    for (uintptr_t i = 1; i <= most; i++)
        row = tape_account_row(t, (struct tape_site){i, 0}, "op");
    ck_assert_uint_eq(row, TAPE_ROW_OTHER);
    ck_assert_uint_eq(t->ledger.n_rows, most);
    ck_assert_uint_gt(tape_account_row(t, (struct tape_site){1, 0}, "op"), TAPE_ROW_OTHER);
}

/* ---- messages ---- */

static void check_cut(const char *message)
{
    ck_assert_uint_lt(strlen(message), TAPE_MESSAGE_BYTES);
    ck_assert_uint_gt(strlen(message), TAPE_MESSAGE_BYTES - 80);
    ck_assert_msg(strstr(message, "xxx at ") != NULL, "%s", message);
}

TEST(a_long_message_is_cut_before_its_place)
{
    char text[2 * TAPE_MESSAGE_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    tape_fail(ad_slots[tape.slot].tape, TAPE_ERROR_STATE, here, "%s", text);
    check_cut(ad_tape_message(tape));
    ad_fail(AD_ERROR_STATE, here, "%s", text);
    check_cut(ad_tape_message((ad_tape){0, 0}));
}

TEST(without_symbols_a_place_is_what_the_linker_knows)
{
    char text[200];
    setenv("TAPESCOPE_MODULE_DIR", "/nowhere", 1);
    const uintptr_t pc = (uintptr_t)&ad_status_name + 3;
    ad_describe((struct tape_site){pc, 41}, text, sizeof text);
    ck_assert_msg(strncmp(text, "line 41 in ", 11) == 0 && strstr(text, "+0x") != NULL, "%s", text);
    ad_describe((struct tape_site){pc, 0}, text, sizeof text);
    ck_assert_msg(strncmp(text, "line", 4) != 0 && strstr(text, "+0x") != NULL, "%s", text);
    ad_describe((struct tape_site){16, 0}, text, sizeof text);
    ck_assert_str_eq(text, "?+0x10");
}

TEST(a_tape_by_itself_names_lines_by_number_or_address)
{
    struct tape *t = tape_create(&(struct tape_options){.reserve_bytes = MIB});
    ck_assert_ptr_nonnull(t);
    tape_fail(t, TAPE_ERROR_STATE, (struct tape_site){0x10, 7}, "no");
    ck_assert_str_eq(t->error.message, "no at line 7");
    tape_reset(t);
    ck_assert_str_eq(t->error.message, "");
    tape_fail(t, TAPE_ERROR_STATE, (struct tape_site){0x10, 0}, "no");
    ck_assert_str_eq(t->error.message, "no at 0x10");
    tape_destroy(t);
}

TEST(a_place_follows_a_message_of_any_length)
{
    char text[TAPE_MESSAGE_BYTES + 101];
    struct tape *t = tape_create(&(struct tape_options){.reserve_bytes = MIB});
    ck_assert_ptr_nonnull(t);
    memset(text, 'x', sizeof text);
    for (int n = TAPE_MESSAGE_BYTES - 100; n <= TAPE_MESSAGE_BYTES + 100; n++) {
        const int kept = n < TAPE_MESSAGE_BYTES - 64 ? n : TAPE_MESSAGE_BYTES - 64;
        tape_fail(t, TAPE_ERROR_STATE, (struct tape_site){0x10, 7}, "%.*s", n, text);
        ck_assert_uint_eq(strspn(t->error.message, "x"), (size_t)kept);
        ck_assert_str_eq(t->error.message + kept, " at line 7");
        tape_reset(t);
    }
    tape_destroy(t);
}

RUN_TESTS(setup, teardown)
