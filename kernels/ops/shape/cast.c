/* ops/shape/cast.c: the same numbers in another float dtype.
 *
 * A view where the dtype stays.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

/* To f64 alone: in f32, rounding would hide the slope from differences. */
static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 1, KERNEL_F64), AXES_SAMPLE(0, (0), -1, 1, 1, KERNEL_F64),
    AXES_SAMPLE(1, (0), -1, 1, 1, KERNEL_F64),    AXES_SAMPLE(1, (17), -1, 1, 1, KERNEL_F64),
    AXES_SAMPLE(2, (1, 1), -1, 1, 1, KERNEL_F64),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (call->attr[0] != KERNEL_F32 && call->attr[0] != KERNEL_F64) {
        if (call->attr[0] == KERNEL_I64)
            (void)kernel_refuse(call, "the result must be f32 or f64, not i64");
        else
            (void)kernel_refuse(call, "%lld is no dtype", (long long)call->attr[0]);
        return KERNEL_REFUSED_DTYPE;
    }
    kernel_shape_begin(out, (int)call->attr[0], x->rank);
    out->same_as = 0;
    if (x->dtype != call->attr[0])
        return 0;
    out->view_of = 0;
    for (int axis = 0; axis < x->rank; axis++)
        out->stride[axis] = x->strides[axis];
    return 0;
}

/* n elements of one stride; the output is dense. */
#define CAST_RUN(TO, FROM)                                                                         \
    static void run_##FROM##_##TO(int64_t n, void *to, const void *from, int64_t stride,           \
                                  bool accumulate)                                                 \
    {                                                                                              \
        TO *const y = to;                                                                          \
        const FROM *const x = from;                                                                \
        if (accumulate)                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += (TO)x[i * stride];                                                         \
        else if (stride == 1)                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (TO)x[i];                                                                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (TO)x[i * stride];                                                          \
    }
CAST_RUN(float, double)
CAST_RUN(double, float)
CAST_RUN(float, int64_t)
CAST_RUN(double, int64_t)

typedef void cast_run(int64_t n, void *to, const void *from, int64_t stride, bool accumulate);

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int to = call->out[0]->dtype;
    const size_t bytes = kernel_dtype_bytes(x->dtype), to_bytes = kernel_dtype_bytes(to);
    cast_run *const run = x->dtype == KERNEL_I64
                              ? (to == KERNEL_F32 ? run_int64_t_float : run_int64_t_double)
                              : (to == KERNEL_F32 ? run_double_float : run_float_double);
    if (x->contiguous || x->rank == 0) {
        run(x->size, call->out[0]->data, x->data, 1, call->accumulate);
        return 0;
    }
    const int last = x->rank - 1;
    int64_t index[KERNEL_MAX_RANK] = {0}, offset = 0;
    for (int64_t done = 0; done < x->size; done += x->shape[last]) {
        run(x->shape[last], (char *)call->out[0]->data + (size_t)done * to_bytes,
            (const char *)x->data + (size_t)offset * bytes, x->strides[last], call->accumulate);
        for (int axis = last - 1; axis >= 0; axis--) {
            offset += x->strides[axis];
            if (++index[axis] < x->shape[axis])
                break;
            offset -= index[axis] * x->strides[axis];
            index[axis] = 0;
        }
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const int64_t dtype = rule->in[0]->dtype;
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    if (rule->adjoint[0]->dtype == dtype)
        kernel_accumulate_value(rule, 0, rule->adjoint[0]);
    else
        kernel_accumulate(rule, 0, &kernel_op_cast, 1, &rule->adjoint[0], 1, &dtype);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    if (call->in[0]->dtype == call->out[0]->dtype)
        return (struct kernel_cost){0};
    return (struct kernel_cost){.flops = call->accumulate ? (uint64_t)call->in[0]->size : 0,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(cast) = {
    .name = "cast",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"dtype", KERNEL_ATTR_DTYPE}),
    .n_out = 1,
    .accumulates = true,
    .depends = kernel_depends_elements,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "The same numbers as AD_F32 or AD_F64; a view where that is x's dtype already.",
    .shapes = "x [...], of floats or i64 -> [...]",
    .formula = "y = x, rounded to nearest",
    .derivative = "x' += y' in the dtype of x; none for i64",
    .edges = "from f64, what f32 cannot hold becomes inf, and small numbers 0; from i64, numbers "
             "beyond 2^53 (f32: 2^24) are rounded",
};
