/* complex_pairs.c: shapes of pairs, and blocks of their real and imaginary parts.
 *
 * Real and imaginary parts of a block are copied to separate rows for the vector loops, and
 * interleaved again afterwards.
 */
#include "complex_pairs.h"
#include "dense.h"
#include "elementwise.h"
#include "kernel_ops.h"

#include <string.h>

int complex_require(const struct kernel_call *call, int i)
{
    const kernel_ref x = call->in[i];
    if (kernel_require_float(call, i) != 0)
        return -1;
    if (x->rank < 1 || x->shape[x->rank - 1] != 2)
        return kernel_refuse_operands(call, ", ", "operand %d has no last axis of extent 2", i + 1);
    return 0;
}

int complex_shape_same(const struct kernel_call *call, struct kernel_shape *out)
{
    if (complex_require(call, 0) != 0)
        return -1;
    return kernel_shape_same(call, out);
}

int complex_shape_real(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (complex_require(call, 0) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, x->rank - 1);
    memcpy(out->extent, x->shape, (size_t)(x->rank - 1) * sizeof *x->shape);
    return 0;
}

int complex_shape_both(const struct kernel_call *call, struct kernel_shape *out)
{
    int64_t differ[2];
    if (complex_require(call, 0) != 0 || complex_require(call, 1) != 0)
        return -1;
    if (!kernel_broadcast(2, call->in, out, differ))
        return kernel_refuse_operands(call, " and ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    return 0;
}

int complex_shape_scaled(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], g = call->in[1];
    if (complex_shape_same(call, out) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (g->rank != x->rank - 1 || memcmp(g->shape, x->shape, g->rank * sizeof *g->shape) != 0)
        return kernel_refuse_operands(call, " and ", "x [...,2] and g [...] are wanted");
    return 0;
}

/* The shape that operand i is read in: the result's if both broadcast to that. */
static kernel_ref shape_of(const struct kernel_call *call, int i)
{
    return call->op->shape == complex_shape_both ? call->out[0] : call->in[i];
}

static bool is_dense(const struct kernel_call *call, int i)
{
    return call->in[i]->contiguous && call->in[i]->size == shape_of(call, i)->size;
}

size_t complex_workspace(const struct kernel_call *call)
{
    size_t bytes = 0;
    for (int i = 0; i < call->n_in; i++)
        bytes += is_dense(call, i) ? 0 : dense_copy_bytes(shape_of(call, i));
    return bytes;
}

/* Operand i, dense in its shape: as it is, or expanded into the workspace. */
static const void *expanded(const struct kernel_call *call, int i, char **space)
{
    const kernel_ref x = call->in[i], like = shape_of(call, i);
    struct kernel_view view;
    if (is_dense(call, i))
        return x->data;
    kernel_view_dense(&view, *space, x->dtype, like->rank, like->shape);
    kernel_elementwise(LOOP_copy, &view.array, 1, &x, NULL, false);
    *space = kernel_behind(*space, (int64_t)dense_copy_bytes(like));
    return view.array.data;
}

#define PAIRS(type, suffix)                                                                        \
    static void split_##suffix(int64_t n, const type *z, type *re, type *im)                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            re[i] = z[2 * i];                                                                      \
            im[i] = z[2 * i + 1];                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void join_##suffix(int64_t n, const type *re, const type *im, type *z)                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            z[2 * i] = re[i];                                                                      \
            z[2 * i + 1] = im[i];                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void multiply_##suffix(int64_t n, const type *a, const type *b, type *z, type sign)     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type re = b[2 * i], im = sign * b[2 * i + 1];                                    \
            z[2 * i] = a[2 * i] * re - a[2 * i + 1] * im;                                          \
            z[2 * i + 1] = a[2 * i] * im + a[2 * i + 1] * re;                                      \
        }                                                                                          \
    }
PAIRS(float, 32)
PAIRS(double, 64)

void complex_multiply(const struct kernel_call *call, bool conjugated)
{
    char *space = call->workspace;
    const void *a = expanded(call, 0, &space), *b = expanded(call, 1, &space);
    const int64_t n = call->out[0]->size / 2;
    if (call->out[0]->dtype == KERNEL_F32)
        multiply_32(n, a, b, call->out[0]->data, conjugated ? -1 : 1);
    else
        multiply_64(n, a, b, call->out[0]->data, conjugated ? -1 : 1);
}

void complex_loop(const struct complex_block *block, int loop, void *out, const void *a,
                  const void *b)
{
    kernel_loop_run((enum kernel_loop_id)loop, block->dtype, block->n, out, a, b, NULL, false);
}

/* The block of an operand that begins with pair `first` of it. */
static void take(const struct complex_block *block, int i, const void *from, int64_t first)
{
    const bool narrow = block->dtype == KERNEL_F32;
    if (block->im[i] == NULL)
        memcpy(block->re[i], (const char *)from + (size_t)first * (narrow ? 4 : 8),
               (size_t)block->n * (narrow ? 4 : 8));
    else if (narrow)
        split_32(block->n, (const float *)from + 2 * first, block->re[i], block->im[i]);
    else
        split_64(block->n, (const double *)from + 2 * first, block->re[i], block->im[i]);
}

void complex_map(const struct kernel_call *call, complex_function *f)
{
    _Alignas(64) double room[6][COMPLEX_BLOCK];
    const struct kernel_array *out = call->out[0];
    const bool scaled = call->op->shape == complex_shape_scaled;
    const bool real = call->op->shape == complex_shape_real;
    const size_t elem = kernel_dtype_bytes(out->dtype);
    char *space = call->workspace;
    const void *from[2] = {NULL, NULL};
    struct complex_block block = {
        out->dtype, 0, {room[0], room[1]}, {room[2], scaled ? NULL : room[3]}, {room[4], room[5]}};
    for (int i = 0; i < call->n_in; i++)
        from[i] = expanded(call, i, &space);
    const int64_t n = real ? out->size : out->size / 2;
    for (int64_t first = 0; first < n; first += COMPLEX_BLOCK) {
        block.n = n - first < COMPLEX_BLOCK ? n - first : COMPLEX_BLOCK;
        for (int i = 0; i < call->n_in; i++)
            take(&block, i, from[i], first);
        f(&block);
        char *to = (char *)out->data + (size_t)first * elem * (real ? 1 : 2);
        if (real)
            memcpy(to, block.re[0], (size_t)block.n * elem);
        else if (out->dtype == KERNEL_F32)
            join_32(block.n, block.re[0], block.im[0], (void *)to);
        else
            join_64(block.n, block.re[0], block.im[0], (void *)to);
    }
}

kernel_ref complex_emit_column(struct kernel_rule *rule, kernel_ref x)
{
    int64_t shape[KERNEL_MAX_RANK + 1];
    if (x == NULL)
        return NULL;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank] = 1;
    return kernel_emit_shape(rule, &kernel_op_reshape, x, x->rank + 1, shape);
}
