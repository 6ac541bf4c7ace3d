/* test_samples.c: what the ops are checked with, and what they are said to cost, is what
 * tests/samples.txt has.
 *
 * May include: kernel.h, Check. The samples drive the gradient checks, so that a sample that is
 * lost, or a domain that shrinks, weakens them without any test failing; here it is seen. The table
 * is written to the build folder as well: copy it from there where a change is meant.
 */
#include "kernel.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"flag", "int", "real", "axes", "shape"};

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

/* Flops and bytes of the sample, assigned and accumulated. */
static void write_cost(FILE *f, const struct kernel_op *op, const struct kernel_sample *s)
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
                               .error = error};
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
    for (int accumulate = 0; accumulate <= op->accumulates; accumulate++) {
        call.accumulate = accumulate;
        const struct kernel_cost cost = kernel_cost_of(&call);
        fprintf(f, "%s %llu flops %llu bytes", accumulate ? ", adding" : ";",
                (unsigned long long)cost.flops, (unsigned long long)cost.bytes);
    }
}

static void write_operands(FILE *f, const struct kernel_sample *s, bool domain)
{
    for (int i = 0; i < s->n_in; i++) {
        char text[96];
        struct operands o;
        array_make(&o, 0, s->dtype[i], s->rank[i], s->shape[i]);
        fprintf(f, "%s%s", i ? ", " : "    ", kernel_describe(&o.array[0], text, sizeof text));
        if (domain)
            fprintf(f, " in %g..%g", s->low[i], s->high[i]);
    }
}

/* Attribute i is of the kind of the last one where that is a list. */
static void write_attributes(FILE *f, const struct kernel_op *op, const struct kernel_sample *s)
{
    for (int i = 0; i < s->n_attr; i++) {
        const int at = i < op->n_attrs ? i : op->n_attrs - 1;
        if (op->attrs[at].kind == KERNEL_ATTR_REAL)
            fprintf(f, "%s%g", i ? " " : " with ", kernel_attr_real(s->attr[i]));
        else
            fprintf(f, "%s%lld", i ? " " : " with ", (long long)s->attr[i]);
    }
}

static void write_head(FILE *f, const struct kernel_op *op)
{
    fprintf(f, "%s(", op->name);
    for (int i = 0; i < (op->variadic ? 1 : op->n_in); i++)
        fprintf(f, "%s%s", i ? ", " : "", op->in_names[i]);
    for (int i = 0; i < op->n_attrs; i++)
        fprintf(f, "; %s %s", words[op->attrs[i].kind], op->attrs[i].name);
    fprintf(f, "): %d", op->n_in);
    fprintf(f, " to %d%s%s%s%s%s%s", op->n_out, op->hidden ? ", hidden" : "",
            op->elementwise ? ", elementwise" : "", op->accumulates ? ", accumulates" : "",
            op->variadic ? ", variadic" : "", op->any_dtype ? ", any dtype" : "",
            op->constant ? ", constant" : "");
    fprintf(f, "; saves %u of in, %u of out\n", op->saves_in, op->saves_out);
}

/* Rows with as many operands have the same shapes: those of the first stand for all. */
static void write_row(FILE *f, const struct kernel_op *op, bool first)
{
    struct kernel_sample s;
    for (int k = 0; op->sample(k, &s); k++) {
        if (first) {
            write_operands(f, &s, false);
            fprintf(f, "\n");
        }
    }
    ck_assert(op->sample(0, &s));
    for (int i = 0; i < s.n_in; i++)
        fprintf(f, "%s%s in %g..%g", i ? ", " : "    ", op->in_names[i], s.low[i], s.high[i]);
    write_attributes(f, op, &s);
    fprintf(f, "; %u flops an element\n",
            (unsigned)kernel_cost_of(
                &(struct kernel_call){
                    .op = op, .out = (struct kernel_array *[]){&(struct kernel_array){.size = 1}}})
                .flops);
}

static void write_table(FILE *f)
{
    int n;
    bool seen[KERNEL_MAX_IN + 1] = {false};
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        struct kernel_sample s;
        write_head(f, ops[k]);
        if (ops[k]->elementwise) {
            write_row(f, ops[k], !seen[ops[k]->n_in]);
            seen[ops[k]->n_in] = true;
            continue;
        }
        for (int i = 0; ops[k]->sample(i, &s); i++) {
            write_operands(f, &s, true);
            write_attributes(f, ops[k], &s);
            write_cost(f, ops[k], &s);
            fprintf(f, "\n");
        }
    }
}

START_TEST(the_ops_are_checked_with_the_samples_of_the_table)
{
    static const char written[] = TEST_BINARY_DIR "/samples.txt";
    char is[512], right[512];
    FILE *f = fopen(written, "w+"), *table = fopen(TEST_SOURCE_DIR "/samples.txt", "r");
    ck_assert_ptr_nonnull(f);
    write_table(f);
    rewind(f);
    ck_assert_ptr_nonnull(table);
    for (int line = 1;; line++) {
        const bool more = fgets(is, sizeof is, f) != NULL;
        ck_assert_msg((fgets(right, sizeof right, table) != NULL) == more,
                      "tests/samples.txt has %s lines than %s", more ? "fewer" : "more", written);
        if (!more)
            break;
        if (strcmp(is, right) != 0)
            ck_abort_msg("tests/samples.txt:%d: \"%s\", but it is \"%s\": see %s", line, right, is,
                         written);
    }
    fclose(f);
    fclose(table);
}
END_TEST

START_TEST(every_op_has_a_sample_without_elements_and_one_of_several)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("samples");
    TCase *tests = tcase_create("samples");
    tcase_add_test(tests, the_ops_are_checked_with_the_samples_of_the_table);
    tcase_add_test(tests, every_op_has_a_sample_without_elements_and_one_of_several);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
