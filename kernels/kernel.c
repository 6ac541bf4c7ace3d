/* kernel.c: the table of ops, and the calls that check, run and price one.
 *
 * Rows of elementwise.def come first, then the files of ops/, folder by folder.
 */
#include "kernel.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <stdio.h>
#include <string.h>

const struct kernel_op *const *kernel_ops(int *n)
{
    static const struct kernel_op *const ops[] = {
#define ROW1(id, ...) &kernel_op_##id,
#define ROW2(id, ...) &kernel_op_##id,
#define ROW3(id, ...) &kernel_op_##id,
#include "elementwise.def"
#define X(id) &kernel_op_##id,
#include "kernel_ops_list.h"
#undef X
    };
    *n = (int)(sizeof ops / sizeof *ops);
    return ops;
}

/* The op of a place in the two lists, or NULL behind the last. */
static const struct kernel_op *op_at(int place)
{
    int n, more;
    const struct kernel_op *const *ops = kernel_ops(&n), *const *terms = kernel_row_terms(&more);
    return place < 0 || place >= n + more ? NULL : place < n ? ops[place] : terms[place - n];
}

const struct kernel_op *kernel_op_find(const char *name, int at)
{
    const struct kernel_op *op = op_at(at);
    if (op != NULL && strcmp(op->name, name) == 0)
        return op;
    for (int k = 0; (op = op_at(k)) != NULL && strcmp(op->name, name) != 0;)
        k++;
    return op;
}

int kernel_op_place(const struct kernel_op *op)
{
    int k = 0;
    while (op_at(k) != NULL && op_at(k) != op)
        k++;
    return k;
}

/* Floats among the operands have one dtype. */
static int check_dtypes(const struct kernel_call *call)
{
    const unsigned floats = 1U << KERNEL_F32 | 1U << KERNEL_F64;
    unsigned seen = 0;
    for (int i = 0; i < call->n_in; i++)
        seen |= 1U << call->in[i]->dtype;
    if (__builtin_expect((seen & floats) == floats, 0))
        return kernel_refuse_operands(call, " and ", "operands of one call must have one dtype");
    return 0;
}

/* Every operand is of the kind, float or integer, that the op's sample shows, or any will do. */
static bool kinds_fit(const struct kernel_call *call)
{
    struct kernel_sample sample;
    if (call->op->any_dtype || !call->op->sample || !call->op->sample(0, &sample))
        return true;
    for (int i = 0; i < call->n_in && i < sample.n_in; i++)
        if ((call->in[i]->dtype == KERNEL_I64) != (sample.dtype[i] == KERNEL_I64))
            return false;
    return true;
}

int kernel_infer(const struct kernel_call *call, struct kernel_shape *out)
{
    if (check_dtypes(call) != 0)
        return KERNEL_REFUSED_DTYPE;
    const int refused = call->op->shape(call, out);
    if (refused == KERNEL_REFUSED_ATTRIBUTE)
        return refused;
    if (refused != 0)
        return refused == KERNEL_REFUSED && kinds_fit(call) ? KERNEL_REFUSED : KERNEL_REFUSED_DTYPE;
    for (int o = 0; o < call->op->n_out; o++) {
        int64_t strides[KERNEL_MAX_RANK];
        if (out[o].same_as >= 0 || out[o].view_of >= 0)
            continue;
        if (kernel_strides(out[o].rank, out[o].extent, kernel_dtype_bytes(out[o].dtype), strides) <
            0)
            return kernel_refuse_operands(call, ", ", "the result's size overflows");
    }
    return 0;
}

const _Alignas(64) char kernel_no_workspace[1];

size_t kernel_workspace(const struct kernel_call *call)
{
    return call->op->workspace != NULL ? call->op->workspace(call) : 0;
}

struct kernel_cost kernel_cost_of(const struct kernel_call *call)
{
    if (call->op->cost != NULL)
        return call->op->cost(call);
    const struct kernel_array *out = call->out[0];
    int64_t n = out->size, least = n;
    /* Of most calls all arrays are as large as the result, of its dtype and without gaps. */
    bool even = out->contiguous && call->n_out == 1 && !call->accumulate;
    for (int i = 0; i < call->n_in; i++) {
        const struct kernel_array *in = call->in[i];
        even = even && in->size == out->size && in->dtype == out->dtype && in->contiguous;
        least = in->size < least ? in->size : least;
        n = in->size > n ? in->size : n;
    }
    if (__builtin_expect(even, 1))
        return (struct kernel_cost){
            .flops = (uint64_t)(int64_t)((double)n * call->op->flops_per_element),
            .bytes = (uint64_t)(call->n_in + 1) * (uint64_t)n * kernel_dtype_bytes(out->dtype)};
    const bool adds = call->op->elementwise && call->accumulate;
    const double flops =
        (double)(least == 0 ? 0 : n) * (call->op->flops_per_element + (adds ? 1 : 0));
    return (struct kernel_cost){.flops = (uint64_t)flops, .bytes = kernel_moved_bytes(call)};
}

const struct kernel_flag kernel_flags[] = {
#define X(name, attribute, text) {#name, attribute, text},
    KERNEL_FLAG_MAP(X)
#undef X
        {NULL, NULL, NULL}};

unsigned kernel_flag_bit(const char *attribute)
{
    for (unsigned i = 0; kernel_flags[i].name; i++)
        if (strcmp(kernel_flags[i].attribute, attribute) == 0)
            return 2U << i;
    return 0;
}

const char *kernel_dtype_name(int dtype)
{
    static const char *const names[KERNEL_DTYPES] = {"f32", "f64", "i64"};
    return dtype >= 0 && dtype < KERNEL_DTYPES ? names[dtype] : "no dtype";
}

const char *kernel_describe(kernel_ref array, char *buf, size_t n)
{
    if (n == 0)
        return "";
    size_t used = 0;
    for (int axis = -1; axis <= array->rank && used < n; axis++) {
        int wrote;
        if (axis < 0)
            wrote = snprintf(buf, n, "%s [", kernel_dtype_name(array->dtype));
        else if (axis < array->rank)
            wrote = snprintf(buf + used, n - used, axis > 0 ? ",%lld" : "%lld",
                             (long long)array->shape[axis]);
        else
            wrote = snprintf(buf + used, n - used, "]");
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return buf;
}

int64_t kernel_strides(int rank, const int64_t *shape, size_t elem_bytes, int64_t *strides)
{
    /* Extents of 0 do not hide an overflow of the others: strides must fit as well. */
    int64_t stride = 1, size = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        if (shape[axis] < 0)
            return -1;
        size *= shape[axis] > 0 ? 1 : 0;
        if (__builtin_mul_overflow(stride, shape[axis] > 0 ? shape[axis] : 1, &stride))
            return -1;
    }
    int64_t bytes;
    if (__builtin_mul_overflow(stride, (int64_t)elem_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return -1;
    return size * stride;
}
