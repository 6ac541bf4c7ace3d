/* test_tensor_write_ops.c: what ad_tensor_write_c makes of the samples of every op is what a replay
 * and a sweep give, bit for bit. All samples are one program: one file is compiled once.
 */
#include <tapescope/ad_kernel.h>

#include "ad_tensor_write.h"
#include "check_tape.h"
#include "kernel_ops.h"
#include "run_cases.h"
#include "tape_replay.h"
#include "written_support.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

/* ---- every op ---- */

enum { SAMPLES = 4096, LEAVES = 3 * SAMPLES };

/* A sample of an op, one of its results, and its leaves. */
struct op_sample {
    struct check_case of;
    struct check_run run;
    uint32_t result;
};

static struct op_sample op_samples[SAMPLES];
static uint32_t n_samples, n_leaves, leaf_value[LEAVES], result_value[SAMPLES];
static void *leaf_array[LEAVES], *leaf_bar[LEAVES], *leaf_want[LEAVES];
static void *result[SAMPLES], *result_want[SAMPLES], *result_bar[SAMPLES];
static double drawn[MOST], moved[MOST];

static void succeed(const struct kernel_op *op, int status)
{
    ck_assert_msg(status == 0, "%s: %s", op->name, check_tape()->error.message);
}

static size_t value_bytes(uint32_t value)
{
    return tape_value_bytes(&check_tape()->entries[value]);
}

static void leaf_fill(const struct check_leaf *leaf, void *array, const double *from)
{
    for (int64_t k = 0; k < check_leaf_size(leaf); k++)
        if (leaf->dtype == KERNEL_F32)
            ((float *)array)[k] = (float)from[k];
        else if (leaf->dtype == KERNEL_F64)
            ((double *)array)[k] = from[k];
        else
            ((int64_t *)array)[k] = (int64_t)from[k];
}

/* The sample's numbers, and others nearby. */
static void sample_draw(const struct check_case *c)
{
    check_draw(c, drawn);
    check_random(22, MOST, moved);
    double *to = moved;
    const double *from = drawn;
    for (int i = 0; i < c->n_leaves; i++)
        for (int64_t k = 0; k < check_leaf_size(&c->leaf[i]); k++, to++, from++)
            *to = c->leaf[i].active ? *from + *to * CHECK_REACH : *from;
}

/* Leaves at the other numbers, and the op; middle: its operands are computed from them. */
static void sample_record(struct op_sample *s, bool middle)
{
    struct tape *t = check_tape();
    const struct check_case *c = &s->of;
    const int64_t one = kernel_attr_word(1);
    const double *from = moved;
    for (int i = 0; i < c->n_leaves; i++, from += check_leaf_size(&c->leaf[i - 1])) {
        const struct check_leaf *leaf = &c->leaf[i];
        void *array = malloc((size_t)check_leaf_size(leaf) * sizeof(double) + 1);
        leaf_fill(leaf, array, from);
        succeed(c->op, (int)tape_borrow(t, leaf->dtype, leaf->rank, leaf->shape, array,
                                        leaf->active, check_site, &s->run.leaf[i]));
        ck_assert_uint_lt(n_leaves, LEAVES);
        leaf_array[n_leaves] = array;
        leaf_value[n_leaves++] = s->run.leaf[i];
    }
    for (int i = 0; i < c->n_in; i++) {
        s->run.in[i] = s->run.leaf[c->in[i].leaf];
        if (middle && c->leaf[c->in[i].leaf].active)
            succeed(c->op, (int)tape_apply(t, &kernel_op_scale, 1, &s->run.leaf[c->in[i].leaf], 1,
                                           &one, check_site, &s->run.in[i]));
    }
    check_run_op(c, &s->run);
    s->result = s->run.out[c->sample % c->op->n_out];
    result_value[n_samples++] = s->result;
}

static void samples_record(const struct kernel_op *op, int dtype)
{
    struct kernel_sample sample;
    for (int k = 0; op->sample(k, &sample) && (dtype == KERNEL_F64 || k == 0); k++) {
        /* Of rows the patterns of shapes are the same for all, and so is what drives them. */
        if (op->elementwise && k % 4 != 0)
            continue;
        struct op_sample *s = &op_samples[n_samples];
        ck_assert_uint_lt(n_samples, SAMPLES);
        s->of = check_case_of(op, &sample, dtype, k);
        ck_assert_int_le(check_x_size(&s->of), MOST);
        sample_draw(&s->of);
        sample_record(s, dtype == KERNEL_F64);
    }
}

/* The replay at the sample's own numbers, and its sweeps, one for each result. */
static void samples_expect(void)
{
    struct tape *t = check_tape();
    uint32_t at = 0;
    for (uint32_t k = 0; k < n_samples; k++) {
        const struct check_case *c = &op_samples[k].of;
        const double *from = drawn;
        sample_draw(c);
        for (int i = 0; i < c->n_leaves; from += check_leaf_size(&c->leaf[i++]))
            leaf_fill(&c->leaf[i], leaf_array[at++], from);
    }
    succeed(op_samples[0].of.op, (int)tape_replay(t, check_site));
    check_random(11, MOST, moved);
    for (uint32_t k = 0; k < n_samples; k++) {
        const uint32_t y = result_value[k];
        const size_t bytes = value_bytes(y);
        result[k] = malloc(bytes + 1);
        result_want[k] = malloc(bytes + 1);
        tape_read(t, y, result_want[k]);
        if (!(t->entries[y].flags & TAPE_NEEDS_GRADIENT))
            continue;
        const uint32_t seed = check_like(y, moved, false);
        result_bar[k] = malloc(bytes + 1);
        tape_read(t, seed, result_bar[k]);
        succeed(op_samples[k].of.op, (int)tape_sweep(t, y, seed, check_site));
    }
    for (uint32_t k = 0; k < n_leaves; k++) {
        const struct tape_value *v = &t->entries[leaf_value[k]];
        if (!(v->flags & TAPE_LEAF))
            continue;
        leaf_bar[k] = malloc(tape_value_bytes(v) + 1);
        leaf_want[k] = calloc(1, tape_value_bytes(v) + 1);
        if (tape_has_adjoint(t, v) && v->array.size > 0)
            memcpy(leaf_want[k], v->adjoint, tape_value_bytes(v));
    }
}

static void samples_compare(const char *what)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < n_samples; k++) {
        const struct check_case *c = &op_samples[k].of;
        bool same = memcmp(result[k], result_want[k], value_bytes(result_value[k])) == 0;
        for (int i = 0; i < c->n_leaves; i++, at++)
            same = same && (!leaf_bar[at] ||
                            memcmp(leaf_bar[at], leaf_want[at], value_bytes(leaf_value[at])) == 0);
        ck_assert_msg(same, "%s: %s %s sample %d", what, c->op->name,
                      kernel_dtype_name(c->leaf[0].dtype), c->sample);
    }
}

static void samples_free(void)
{
    for (uint32_t k = 0; k < n_samples; k++) {
        free(result[k]);
        free(result_want[k]);
        free(result_bar[k]);
    }
    for (uint32_t k = 0; k < n_leaves; k++) {
        free(leaf_array[k]);
        free(leaf_bar[k]);
        free(leaf_want[k]);
    }
}

TEST(every_op_as_c_is_a_replay_and_its_sweep)
{
    int n;
    struct tape *t = check_tape();
    const struct kernel_op *const *all = kernel_ops(&n);
    tape_reset(t);
    succeed(all[0], (int)tape_replay_begin(t, check_site));
    for (int i = 0; i < n; i++)
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64 && !all[i]->draws; dtype++)
            samples_record(all[i], dtype);
    succeed(all[0], (int)tape_replay_end(t, check_site));
    FILE *file = written_open("ops");
    succeed(all[0], (int)ad_tensor_write(file, t, "ops", n_samples, result_value, n_leaves,
                                         leaf_value, check_site));
    written_close(file, "ops");
    samples_expect();
    ck_assert_ptr_null(ad_kernels_ready(AD_KERNELS_VERSION));
    void *module = written_module("ops");
    const struct written f = written_of(module, "ops");
    ck_assert_ptr_null(f.adjoint((const void *const *)leaf_array, result,
                                 (const void *const *)result_bar, leaf_bar, f.work));
    samples_compare("adjoint");
    for (uint32_t k = 0; k < n_samples; k++)
        memset(result[k], 0x5a, value_bytes(result_value[k]));
    ck_assert_ptr_null(f.values((const void *const *)leaf_array, result, f.work));
    samples_compare("values");
    printf("%u samples of %d ops\n", n_samples, n);
    samples_free();
    free(f.work);
    dlclose(module);
}

RUN_TESTS(program_setup, program_teardown)
