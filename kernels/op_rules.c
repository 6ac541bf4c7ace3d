/* op_rules.c: what shape rules, pullbacks and costs have in common.
 *
 * No function here depends on which op calls it. Pullbacks emit copy and reshape.
 */
#include "op_rules.h"
#include "kernel_ops.h"
#include "plain_format.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int kernel_refuse(const struct kernel_call *call, const char *format, ...)
{
    va_list args;
    int n = snprintf(call->error, KERNEL_ERROR_BYTES, "%s: ", call->op->name);
    if (n < 0 || n >= KERNEL_ERROR_BYTES)
        return -1;
    va_start(args, format);
    (void)plain_vformat(call->error + n, (size_t)(KERNEL_ERROR_BYTES - n), format, args);
    va_end(args);
    return -1;
}

int kernel_refuse_operands(const struct kernel_call *call, const char *between, const char *format,
                           ...)
{
    char operands[KERNEL_ERROR_BYTES] = "", reason[KERNEL_ERROR_BYTES], one[KERNEL_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    (void)plain_vformat(reason, sizeof reason, format, args);
    va_end(args);
    size_t used = 0;
    for (int i = 0; i < call->n_in && used < sizeof operands; i++) {
        const int n = snprintf(operands + used, sizeof operands - used, "%s%s",
                               i > 0 ? between : "", kernel_describe(call->in[i], one, sizeof one));
        used += n > 0 ? (size_t)n : 0;
    }
    return kernel_refuse(call, "%s: %s", operands, reason);
}

const char *kernel_describe_wanted(const struct kernel_call *call, char *buf, size_t n)
{
    size_t used = 0;
    for (int i = 0; i < call->n_attr && used < n; i++) {
        const int wrote =
            snprintf(buf + used, n - used, "%c%lld", i > 0 ? ',' : '[', (long long)call->attr[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (used < n)
        (void)snprintf(buf + used, n - used, call->n_attr > 0 ? "]" : "[]");
    return buf;
}

int kernel_refuse_real(const struct kernel_call *call, const char *name, double value,
                       const char *wanted)
{
    /* printf shows the sign of NaN, which depends on the machine. */
    (void)kernel_refuse(call, "%s is %g: %s is wanted", name, isnan(value) ? fabs(value) : value,
                        wanted);
    return KERNEL_REFUSED_ATTRIBUTE;
}

int kernel_refuse_dtype(const struct kernel_call *call, int i)
{
    (void)snprintf(call->error, KERNEL_ERROR_BYTES, "%s takes f32 or f64, not %s", call->op->name,
                   kernel_dtype_name(call->in[i]->dtype));
    return -1;
}

int kernel_require_i64(const struct kernel_call *call, int i, const char *what)
{
    if (call->in[i]->dtype == KERNEL_I64)
        return 0;
    (void)kernel_refuse(call, "%s must be i64, not %s", what,
                        kernel_dtype_name(call->in[i]->dtype));
    return KERNEL_REFUSED_DTYPE;
}

int kernel_require_labels(const struct kernel_call *call, kernel_ref labels, int64_t classes)
{
    for (int64_t r = 0; r < labels->size; r++) {
        const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
        if (label < 0 || label >= classes)
            return kernel_refuse_operands(call, ", ", "label %lld of row %lld is not in 0..%lld",
                                          (long long)label, (long long)r, (long long)classes - 1);
    }
    return 0;
}

int kernel_shape_same(const struct kernel_call *call, struct kernel_shape *out)
{
    kernel_shape_begin(out, call->in[0]->dtype, call->in[0]->rank);
    out->same_as = 0;
    return 0;
}

int kernel_shape_floats(const struct kernel_call *call, struct kernel_shape *out)
{
    return kernel_require_float(call, 0) != 0 ? -1 : kernel_shape_same(call, out);
}

int kernel_shape_axes(const struct kernel_call *call, struct kernel_shape *out)
{
    unsigned axes;
    if (kernel_require_float(call, 0) != 0 || kernel_axes(call, 0, &axes) != 0)
        return -1;
    return kernel_shape_same(call, out);
}

static bool same_extents(kernel_ref a, int rank, const int64_t *shape)
{
    if (a->rank != rank)
        return false;
    for (int axis = 0; axis < rank; axis++)
        if (a->shape[axis] != shape[axis])
            return false;
    return true;
}

bool kernel_broadcast_unequal(int n_in, const kernel_ref *in, struct kernel_shape *out,
                              int64_t differ[2])
{
    int rank = in[0]->rank;
    for (int i = 1; i < n_in; i++)
        rank = in[i]->rank > rank ? in[i]->rank : rank;
    kernel_shape_begin(out, in[0]->dtype, rank);
    for (int from_last = 0; from_last < rank; from_last++) {
        int64_t extent = 1;
        for (int i = 0; i < n_in; i++) {
            if (from_last >= in[i]->rank)
                continue;
            const int64_t e = in[i]->shape[in[i]->rank - 1 - from_last];
            if (e == 1 || e == extent)
                continue;
            if (extent != 1) {
                differ[0] = extent;
                differ[1] = e;
                return false;
            }
            extent = e;
        }
        out->extent[rank - 1 - from_last] = extent;
    }
    for (int i = 0; i < n_in && out->same_as < 0; i++)
        if (same_extents(in[i], rank, out->extent))
            out->same_as = (int8_t)i;
    return true;
}

int kernel_axes(const struct kernel_call *call, int first, unsigned *mask)
{
    const int rank = call->in[0]->rank;
    *mask = 0;
    if (call->n_attr <= first)
        *mask = (1U << rank) - 1;
    for (int i = first; i < call->n_attr; i++) {
        const int64_t axis = kernel_axis(call->attr[i], rank);
        if (axis < 0 || axis >= rank)
            return kernel_refuse_operands(call, "", "there is no axis %lld",
                                          (long long)call->attr[i]);
        if (*mask >> axis & 1)
            return kernel_refuse_operands(call, "", "axis %lld is named twice",
                                          (long long)call->attr[i]);
        *mask |= 1U << axis;
    }
    return 0;
}

int kernel_reduction_shape_at(const struct kernel_call *call, int first, struct kernel_shape *out)
{
    unsigned axes;
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0 || kernel_axes(call, first, &axes) != 0)
        return -1;
    int rank = 0;
    for (int axis = 0; axis < x->rank; axis++) {
        if (!(axes >> axis & 1))
            out->extent[rank++] = x->shape[axis];
        else if (call->attr[0])
            out->extent[rank++] = 1;
    }
    kernel_shape_begin(out, x->dtype, rank);
    return 0;
}

int kernel_reduction_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    return kernel_reduction_shape_at(call, 1, out);
}

int kernel_require_filled(const struct kernel_call *call, int first, const char *what)
{
    unsigned axes;
    if (kernel_axes(call, first, &axes) != 0)
        return -1;
    for (int axis = 0; axis < call->in[0]->rank; axis++)
        if ((axes >> axis & 1) && call->in[0]->shape[axis] == 0)
            return kernel_refuse_operands(call, "", "axis %d is empty and has no %s", axis, what);
    return 0;
}

int64_t kernel_axes_count(kernel_ref x, unsigned axes)
{
    int64_t count = 1;
    for (int axis = 0; axis < x->rank; axis++)
        if (axes >> axis & 1)
            count *= x->shape[axis];
    return count;
}

void kernel_keep_axes(struct kernel_view *view, const struct kernel_array *out, kernel_ref in,
                      unsigned axes)
{
    const bool kept = out->rank == in->rank;
    view->array = *out;
    view->array.rank = in->rank;
    kernel_view_bind(view);
    for (int axis = 0, o = 0; axis < in->rank; axis++) {
        const bool reduced = (axes >> axis & 1) != 0;
        view->shape[axis] = reduced ? 1 : in->shape[axis];
        view->strides[axis] = reduced ? 0 : out->strides[o];
        o += !reduced || kept ? 1 : 0;
    }
}

void kernel_view_bind(struct kernel_view *view)
{
    view->array.shape = view->shape;
    view->array.strides = view->strides;
}

void kernel_view_dense(struct kernel_view *view, void *data, int dtype, int rank,
                       const int64_t *shape)
{
    view->array = (struct kernel_array){
        .data = data,
        .size = kernel_strides(rank, shape, 1, view->strides),
        .dtype = (uint8_t)dtype,
        .rank = (uint8_t)rank,
        .contiguous = true,
    };
    memcpy(view->shape, shape, sizeof *shape * (size_t)rank);
    kernel_view_bind(view);
}

kernel_ref kernel_emit_kept(struct kernel_rule *rule, kernel_ref reduced)
{
    return kernel_emit_kept_at(rule, reduced, 1);
}

kernel_ref kernel_emit_kept_at(struct kernel_rule *rule, kernel_ref reduced, int first)
{
    if (reduced == NULL || reduced->rank == rule->in[0]->rank)
        return reduced;
    const int rank = rule->in[0]->rank;
    int64_t shape[KERNEL_MAX_RANK];
    for (int axis = 0; axis < rank; axis++)
        shape[axis] = rule->n_attr <= first ? 1 : rule->in[0]->shape[axis];
    for (int i = first; i < rule->n_attr; i++)
        shape[kernel_axis(rule->attr[i], rank)] = 1;
    return kernel_emit_shape(rule, &kernel_op_reshape, reduced, rank, shape);
}

kernel_ref kernel_emit_reduction(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x,
                                 int first)
{
    int64_t attr[KERNEL_MAX_ATTR] = {1};
    for (int i = first; i < rule->n_attr; i++)
        attr[1 + i - first] = rule->attr[i];
    return kernel_emit(rule, op, 1, &x, 1 + rule->n_attr - first, attr);
}

kernel_ref kernel_emit_tied(struct kernel_rule *rule, kernel_ref x, kernel_ref most,
                            kernel_ref share, int first)
{
    const kernel_ref ties = kernel_emit2(rule, &kernel_op_tie, x, most);
    const kernel_ref count = kernel_emit_reduction(rule, &kernel_op_sum, ties, first);
    return kernel_emit2(rule, &kernel_op_mul, ties,
                        kernel_emit2(rule, &kernel_op_div, share, count));
}

kernel_ref kernel_emit1(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x)
{
    return kernel_emit(rule, op, 1, &x, 0, NULL);
}

kernel_ref kernel_emit2(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref a,
                        kernel_ref b)
{
    const kernel_ref in[] = {a, b};
    return kernel_emit(rule, op, 2, in, 0, NULL);
}

kernel_ref kernel_emit_sum(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return a == NULL ? b : b == NULL ? a : kernel_emit2(rule, &kernel_op_add, a, b);
}

kernel_ref kernel_emit_real(struct kernel_rule *rule, const struct kernel_op *op, double c,
                            kernel_ref x)
{
    const int64_t word = kernel_attr_word(c);
    return kernel_emit(rule, op, 1, &x, 1, &word);
}

kernel_ref kernel_emit_shape(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x,
                             int rank, const int64_t *shape)
{
    return kernel_emit(rule, op, 1, &x, rank, shape);
}

void kernel_accumulate_value(struct kernel_rule *rule, int input, kernel_ref value)
{
    kernel_accumulate(rule, input, &kernel_op_copy, 1, &value, 0, NULL);
}

void kernel_accumulate_all(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                           const kernel_ref *in, int n_attr, const int64_t *attr)
{
    kernel_ref all[KERNEL_MAX_OUT];
    if (rule->class_->accumulate_all != NULL) {
        rule->class_->accumulate_all(rule, op, n_in, in, n_attr, attr);
        return;
    }
    kernel_emit_all(rule, op, n_in, in, n_attr, attr, all);
    for (int o = 0; o < op->n_out; o++)
        kernel_accumulate_value(rule, o, all[o]);
}

/* Elements, each as often as it lies in memory. */
static inline uint64_t touched_elements(kernel_ref array)
{
    if (array->contiguous || array->size == 0)
        return (uint64_t)array->size;
    uint64_t n = 1;
    for (int axis = 0; axis < array->rank; axis++)
        if (array->strides[axis] != 0)
            n *= (uint64_t)array->shape[axis];
    return n;
}

uint64_t kernel_touched_bytes(kernel_ref array)
{
    return touched_elements(array) * kernel_dtype_bytes(array->dtype);
}

uint64_t kernel_moved_bytes(const struct kernel_call *call)
{
    uint64_t bytes = 0;
    const int dtype = call->out[0]->dtype; /* of most */
    uint64_t each = kernel_dtype_bytes(dtype);
    for (int i = 0; i < call->n_in; i++)
        bytes += touched_elements(call->in[i]) *
                 (call->in[i]->dtype == dtype ? each : kernel_dtype_bytes(call->in[i]->dtype));
    for (int o = 0; o < call->n_out; o++)
        bytes += touched_elements(call->out[o]) * (call->accumulate && o == 0 ? 2 : 1) *
                 (call->out[o]->dtype == dtype ? each : kernel_dtype_bytes(call->out[o]->dtype));
    return bytes;
}

struct kernel_cost kernel_cost_take(const struct kernel_call *call)
{
    return (struct kernel_cost){.bytes = 2 * kernel_touched_bytes(call->out[0]) +
                                         kernel_touched_bytes(call->in[1])};
}

struct kernel_cost kernel_cost_add(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->size;
    uint64_t bytes = 3 * n * kernel_dtype_bytes(call->in[0]->dtype);
    bytes += kernel_touched_bytes(call->in[1]);
    bytes += call->accumulate ? 0 : kernel_touched_bytes(call->out[0]);
    return (struct kernel_cost){.flops = n, .bytes = bytes};
}

struct kernel_cost kernel_cost_put(const struct kernel_call *call)
{
    const uint64_t part = (uint64_t)call->in[0]->size;
    const uint64_t bytes = part * kernel_dtype_bytes(call->in[0]->dtype);
    if (call->accumulate)
        return (struct kernel_cost){.flops = part, .bytes = 3 * bytes};
    return (struct kernel_cost){.bytes = 2 * bytes + kernel_touched_bytes(call->out[0])};
}

struct kernel_cost kernel_cost_view(const struct kernel_call *call)
{
    (void)call;
    return (struct kernel_cost){0};
}

int kernel_forward_view(const struct kernel_call *call)
{
    (void)call;
    return 0;
}

void kernel_pullback_none(struct kernel_rule *rule)
{
    (void)rule;
}

void kernel_pullback_self(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, rule->op, 1, &rule->adjoint[0], rule->n_attr, rule->attr);
}

bool kernel_sample_from(const struct kernel_sample *samples, int n, int k,
                        struct kernel_sample *sample)
{
    if (k < 0 || k >= n)
        return false;
    *sample = samples[k];
    return true;
}
