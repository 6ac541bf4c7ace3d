/* kernel_depends.c: see kernel_depends.h. */
#include "kernel_depends.h"
#include "op_rules.h"

#include <string.h>

/* to[k] = the sum of index times stride, for element k of the shape. */
static void indices_fill(int64_t *to, int rank, const int64_t *shape, const int64_t *stride,
                         int64_t offset)
{
    int64_t at[KERNEL_MAX_RANK] = {0}, n = 1, value = offset;
    for (int axis = 0; axis < rank; axis++)
        n *= shape[axis];
    for (int64_t k = 0; k < n; k++) {
        to[k] = value;
        for (int axis = rank - 1; axis >= 0; axis--) {
            value += stride[axis];
            if (++at[axis] < shape[axis])
                break;
            value -= stride[axis] * shape[axis];
            at[axis] = 0;
        }
    }
}

void kernel_depends_along(kernel_ref in, kernel_ref out, const int *map, struct kernel_depends *d)
{
    int64_t in_stride[KERNEL_MAX_RANK] = {0}, out_stride[KERNEL_MAX_RANK] = {0}, groups = 1;
    d->width = 1;
    if (!d->in)
        return;
    for (int a = in->rank - 1; a >= 0; a--) {
        if (map[a] < 0 || in->shape[a] != out->shape[map[a]])
            continue;
        in_stride[a] = out_stride[map[a]] = groups;
        groups *= in->shape[a];
    }
    indices_fill(d->in, in->rank, in->shape, in_stride, 0);
    indices_fill(d->out, out->rank, out->shape, out_stride, 0);
}

void kernel_depends_within(kernel_ref in, int in_inner, kernel_ref out, int out_inner,
                           struct kernel_depends *d)
{
    const int apart = (out->rank - out_inner) - (in->rank - in_inner);
    int map[KERNEL_MAX_RANK];
    for (int a = 0; a < in->rank; a++)
        map[a] = a < in->rank - in_inner ? a + apart : -1;
    kernel_depends_along(in, out, map, d);
}

void kernel_depends_all(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_within(call->in[i], call->in[i]->rank, call->out[o], call->out[o]->rank, d);
}

void kernel_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    if (call->op->depends)
        call->op->depends(call, o, i, d);
    else if (call->op->elementwise)
        kernel_depends_elements(call, o, i, d);
    else
        kernel_depends_all(call, o, i, d);
}

/* ---- rules of many ops ---- */

void kernel_depends_elements(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_within(call->in[i], 0, call->out[o], 0, d);
}

void kernel_depends_rows(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_within(call->in[i], 1, call->out[o], 1, d);
}

/* The axes before the last two of operand 0 are those of all. */
void kernel_depends_matrices(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const kernel_ref in = call->in[i], out = call->out[o];
    const int outer = call->in[0]->rank - 2;
    if (outer < 0 || in->rank < outer || out->rank < outer)
        kernel_depends_all(call, o, i, d);
    else
        kernel_depends_within(in, in->rank - outer, out, out->rank - outer, d);
}

/* a [...,n,n], b [n] or [...,n,k], whose leading axes broadcast, and the result like b; others,
 * such as factors of a, have all on all. */
void kernel_depends_systems(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const int inner = call->in[1]->rank == 1 ? 1 : 2;
    if (o > 0)
        kernel_depends_all(call, o, i, d);
    else
        kernel_depends_within(call->in[i], i == 0 ? 2 : inner, call->out[o], inner, d);
}

void kernel_depends_product(const struct kernel_call *call, int o, int i, int pair,
                            struct kernel_depends *d)
{
    const kernel_ref in = call->in[i], out = call->out[o];
    const int rank = in->rank - pair, rows = call->in[0]->rank - pair > 1,
              columns = call->in[1]->rank - pair > 1, batches = out->rank - pair - rows - columns;
    int map[KERNEL_MAX_RANK];
    for (int a = 0; a < in->rank; a++)
        map[a] = a < rank - 2 ? batches - (rank - 2) + a : -1;
    if (i == 0 && rows)
        map[rank - 2] = batches;
    if (i == 1 && columns)
        map[rank - 1] = batches + rows;
    kernel_depends_along(in, out, map, d);
}

void kernel_depends_channels(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const kernel_ref in = call->in[i], out = call->out[o];
    int map[KERNEL_MAX_RANK];
    for (int a = 0; a < in->rank; a++)
        map[a] = a == (in->rank > 1) ? out->rank > 1 : -1;
    kernel_depends_along(in, out, map, d);
}

/* The axes that the attributes name. */
static bool axes_named(const struct kernel_call *call, unsigned *axes)
{
    for (int k = 0; k < call->op->n_attrs; k++) {
        if (call->op->attrs[k].kind == KERNEL_ATTR_AXES)
            return kernel_axes(call, k, axes) == 0;
        if (strcmp(call->op->attrs[k].name, "axis") == 0) {
            *axes = 1U << kernel_axis(call->attr[k], call->in[0]->rank);
            return true;
        }
    }
    return false;
}

void kernel_depends_axes(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const kernel_ref in = call->in[i], out = call->out[o];
    const bool keeps = in->rank == out->rank;
    int map[KERNEL_MAX_RANK], at = 0;
    unsigned axes = 0;
    if (!axes_named(call, &axes)) {
        kernel_depends_all(call, o, i, d);
        return;
    }
    for (int a = 0; a < in->rank; a++) {
        const bool mixed = (axes >> a & 1) != 0;
        map[a] = mixed ? -1 : at;
        at += keeps || !mixed;
    }
    kernel_depends_along(in, out, map, d);
}

/* ---- ops that move elements ---- */

static bool is_read(const struct kernel_op *op, int i)
{
    return i < 8 && (op->depends_reads >> i & 1) != 0;
}

/* Numbers of floats are whole up to here. */
static bool numbers_fit(int dtype, int64_t n)
{
    return dtype == KERNEL_F64 || (dtype == KERNEL_F32 && n < 1 << 24);
}

/* data[k] = sign times (k + 1), in words of 8 bytes, of which floats of 4 take the first. */
static void numbers_fill(int dtype, void *data, int64_t n, double sign)
{
    for (int64_t k = 0; k < n; k++)
        kernel_store(dtype, data, k, sign * (double)(k + 1));
}

size_t kernel_depends_space(const struct kernel_call *call)
{
    /* A rule of sums runs an op whose result is input 0. */
    size_t n = (size_t)call->in[0]->size;
    for (int o = 0; o < call->n_out; o++)
        n += (size_t)call->out[o]->size;
    return n * sizeof(int64_t);
}

/* A row-major array over data. */
static void plain(struct kernel_view *view, kernel_ref like, int dtype, void *data)
{
    kernel_view_dense(view, data, dtype, like->rank, like->shape);
}

/* A view's elements are those that its strides lead to. */
static bool moved_view(const struct kernel_call *call, int o, int64_t *to)
{
    struct kernel_shape shape[KERNEL_MAX_OUT];
    if (kernel_infer(call, shape) != 0 || shape[o].view_of < 0)
        return false;
    indices_fill(to, call->out[o]->rank, call->out[o]->shape, shape[o].stride, shape[o].offset);
    return true;
}

/* The call moves the numbers 1, 2, ... of its operand x, and then the same below 0: where those
 * come out, an element was moved to; elsewhere is a constant. to[k]: which, or -1. False: it does
 * something else. */
static bool moved_numbers(const struct kernel_call *call, const struct kernel_array *x, int o,
                          int64_t *to, void *other)
{
    const int64_t n = call->out[o]->size;
    const int dtype = x->dtype;
    void *const result[2] = {to, other};
    for (int k = 0; k < 2; k++) {
        numbers_fill(dtype, x->data, x->size, k ? -1 : 1);
        call->out[o]->data = result[k];
        if (kernel_run(call) != 0)
            return false;
    }
    /* From the end: words of 8 bytes take the place of floats of 4. */
    for (int64_t k = n - 1; k >= 0; k--) {
        const double plus = kernel_load(dtype, to, k), minus = kernel_load(dtype, other, k);
        const double at = plus < 0 ? -plus : plus;
        int64_t element = -1;
        if (plus == -minus && plus != 0) {
            if (!(at <= (double)x->size) || (double)(int64_t)at != at)
                return false;
            element = (int64_t)at - 1;
        } else if (plus != minus && !(plus != plus && minus != minus)) {
            return false;
        }
        to[k] = element;
    }
    return true;
}

/* Finds where the elements of operand i go in result o: to[size of it]. */
static bool moved(const struct kernel_call *call, int o, int i, int64_t *to, int64_t *numbers,
                  int64_t *space)
{
    static const double zero[1] = {0};
    static const int64_t flat[KERNEL_MAX_RANK];
    struct kernel_view in_view, out_view[KERNEL_MAX_OUT];
    struct kernel_array zeros[64];
    kernel_ref in[64];
    struct kernel_array *out[KERNEL_MAX_OUT];
    char error[KERNEL_ERROR_BYTES];
    const int dtype = call->in[i]->dtype;
    struct kernel_call once = *call;
    if (call->n_in > 64 || !numbers_fit(dtype, call->in[i]->size))
        return false;
    for (int k = 0; k < call->n_in; k++) {
        in[k] = call->in[k];
        if (is_read(call->op, k)) {
            if (!in[k]->data && in[k]->size > 0)
                return false;
            continue;
        }
        zeros[k] = *call->in[k];
        zeros[k].data = (void *)(uintptr_t)zero;
        zeros[k].strides = flat;
        zeros[k].contiguous = zeros[k].size <= 1;
        in[k] = &zeros[k];
    }
    plain(&in_view, call->in[i], dtype, numbers);
    in[i] = &in_view.array;
    void *other = space;
    for (int k = 0; k < call->n_out; k++) {
        plain(&out_view[k], call->out[k], call->out[k]->dtype, space);
        out[k] = &out_view[k].array;
        other = k == o ? space : other;
        space += call->out[k]->size;
    }
    once.in = in;
    once.out = out;
    once.error = error;
    once.accumulate = false;
    if (moved_view(&once, o, to))
        return true;
    if (kernel_workspace(&once) > 0)
        return false;
    once.workspace = KERNEL_NO_WORKSPACE;
    return moved_numbers(&once, &in_view.array, o, to, other);
}

static void numbered(int64_t *to, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        to[k] = k;
}

void kernel_depends_moves(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    d->width = !is_read(call->op, i);
    if (!d->in || d->width == 0)
        return;
    if (moved(call, o, i, d->out, d->in, d->space))
        numbered(d->in, call->in[i]->size);
    else
        kernel_depends_all(call, o, i, d);
}

void kernel_depends_sums(const struct kernel_call *call, int i, const struct kernel_op *take,
                         int n_attr, const int64_t *attr, struct kernel_depends *d)
{
    d->width = i == 0;
    if (!d->in || i > 0)
        return;
    kernel_ref in[KERNEL_MAX_IN] = {call->out[0]};
    struct kernel_array x = *call->in[0], *out[] = {&x};
    for (int k = 1; k < call->n_in; k++)
        in[k] = call->in[k];
    const struct kernel_call back = {.op = take,
                                     .in = in,
                                     .out = out,
                                     .attr = attr,
                                     .n_in = call->n_in,
                                     .n_out = 1,
                                     .n_attr = n_attr};
    if (moved(&back, 0, 0, d->in, d->out, d->space))
        numbered(d->out, call->out[0]->size);
    else
        kernel_depends_all(call, 0, i, d);
}
