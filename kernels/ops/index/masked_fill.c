/* ops/index/masked_fill.c: one number in place of the elements that a mask names. */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "mask"};

/* The value 1.5 as a word; the mask is drawn of 0 and 1. */
#define VALUE 0x3ff8000000000000
/* clang-format off */
#define FILL_SAMPLE(r0, n0, r1, n1)                                                                \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r0, r1},                               \
     .shape = {{KERNEL_EXTENTS n0}, {KERNEL_EXTENTS n1}},                                          \
     .low = {-1, 0}, .high = {1, 2}, .switches = 2, .n_attr = 1, .attr = {VALUE}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    FILL_SAMPLE(2, (3, 5), 2, (3, 5)), FILL_SAMPLE(1, (17), 1, (17)),
    FILL_SAMPLE(2, (3, 4), 1, (4)),    FILL_SAMPLE(1, (4), 2, (3, 4)),
    FILL_SAMPLE(2, (3, 1), 2, (1, 4)), FILL_SAMPLE(0, (0), 1, (5)),
    FILL_SAMPLE(2, (0, 3), 1, (3)),    FILL_SAMPLE(0, (0), 0, (0)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    int64_t differ[2];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (!kernel_broadcast(2, call->in, out, differ))
        return kernel_refuse_operands(call, " and ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const double value = kernel_attr_real(call->attr[0]);
    const float narrow = (float)value;
    struct kernel_array one = {.size = 1, .dtype = call->out[0]->dtype, .contiguous = true};
    if (one.dtype == KERNEL_F32)
        one.data = (void *)&narrow;
    else
        one.data = (void *)&value;
    const kernel_ref in[] = {call->in[1], &one, call->in[0]};
    kernel_elementwise(LOOP_where, call->out[0], 3, in, NULL, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->in[1], rule->adjoint[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_omit, 2, in, 0, NULL);
}

KERNEL_OP(masked_fill) = {
    .name = "masked_fill",
    .in_names = names,
    KERNEL_ATTRS({"value", KERNEL_ATTR_REAL}),
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .depends = kernel_depends_elements,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "A number where the mask is not 0, else x.",
    .shapes = "x [...], mask [...] -> broadcast [...]",
    .formula = "y = mask != 0 ? value : x",
    .derivative = "x' += mask != 0 ? 0 : y'; none to the mask",
    .edges = "a NaN in the mask counts as not 0; where x is not taken its gradient is exactly 0, "
             "whatever its value",
};
