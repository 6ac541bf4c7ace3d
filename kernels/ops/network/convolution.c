/* convolution.c: windows side by side, and products of them with the weights. */
#include "convolution.h"
#include "convolution_direct.h"
#include "dense.h"
#include "gemm.h"
#include "op_rules.h"

#include <limits.h>
#include <string.h>

enum { STRIP_BYTES = 1 << 20 };

static int64_t window_size(const struct convolution *all)
{
    return all->c / all->groups * all->kernel[0] * all->kernel[1];
}

static int64_t plane(const int64_t extent[2])
{
    return extent[0] * extent[1];
}

int convolution_make(const struct kernel_call *call, int dtype, const int64_t x[4],
                     const int64_t weights[4], const int64_t *attr, struct convolution *all)
{
    static const char *const names[] = {"stride",   "stride",   "padding", "padding",
                                        "dilation", "dilation", "groups"};
    static const int64_t least[] = {1, 1, 0, 0, 1, 1, 1};
    for (int i = 0; i < CONVOLUTION_ATTRIBUTES; i++)
        if (attr[i] < least[i] || attr[i] > INT_MAX)
            return kernel_refuse_operands(call, ", ", "%s %lld is out of range", names[i],
                                          (long long)attr[i]);
    *all = (struct convolution){.dtype = dtype,
                                .n = x[0],
                                .c = x[1],
                                .o = weights[0],
                                .groups = attr[6],
                                .image = {x[2], x[3]},
                                .kernel = {weights[2], weights[3]},
                                .stride = {attr[0], attr[1]},
                                .padding = {attr[2], attr[3]},
                                .dilation = {attr[4], attr[5]}};
    if (all->c % all->groups != 0 || all->o % all->groups != 0 ||
        weights[1] != all->c / all->groups)
        return kernel_refuse_operands(call, ", ", "channels do not fit %lld groups",
                                      (long long)all->groups);
    for (int k = 0; k < 2; k++) {
        if (all->image[k] > INT_MAX || all->kernel[k] > INT_MAX)
            return kernel_refuse_operands(call, ", ", "an extent is beyond the range of BLAS");
        const int64_t room =
            all->image[k] + 2 * all->padding[k] - all->dilation[k] * (all->kernel[k] - 1) - 1;
        if (all->kernel[k] < 1 || room < 0)
            return kernel_refuse_operands(call, ", ", "a window of %lld does not fit into %lld",
                                          (long long)all->kernel[k], (long long)all->image[k]);
        all->result[k] = room / all->stride[k] + 1;
    }
    int64_t size;
    if (__builtin_mul_overflow(all->c / all->groups, plane(all->kernel), &size) ||
        !gemm_fits(all->o, size, plane(all->result)))
        return kernel_refuse_operands(call, ", ", "an extent is beyond the range of BLAS");
    all->in_place = plane(all->kernel) == 1 && plane(all->stride) == 1 && all->padding[0] == 0 &&
                    all->padding[1] == 0;
    all->strip = all->result[0];
    const double row = (double)size * (double)all->result[1] * (double)kernel_dtype_bytes(dtype);
    if (!all->in_place && row * (double)all->strip > STRIP_BYTES)
        all->strip = row < STRIP_BYTES ? (int64_t)(STRIP_BYTES / row) : 1;
    return 0;
}

int64_t convolution_image(int64_t result, int64_t kernel, int64_t stride, int64_t padding,
                          int64_t dilation, int64_t beyond)
{
    return (result - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + beyond;
}

/* The outputs q of a row whose window element at offset `at` lies in 0..extent: first and end. */
static void inside(int64_t at, int64_t stride, int64_t extent, int64_t count, int64_t *first,
                   int64_t *end)
{
    const int64_t last = extent - 1 - at;
    *first = at < 0 ? (-at + stride - 1) / stride : 0;
    *end = last < 0 ? 0 : last / stride + 1;
    if (*end > count)
        *end = count;
    if (*first > *end)
        *first = *end;
}

/* Rows from..from+rows of the output: their windows from the image of one group into columns
 * [window, rows * width], or added to the image from there. Where rows of the output are as
 * wide as the image's, those from y on are one copy (shifted); what came from beyond an edge is
 * then 0. */
#define WALK(REAL, name)                                                                           \
    static void name##_shifted(const struct convolution *all, const REAL *x, int64_t y,            \
                               int64_t at, int64_t rows, REAL *columns)                            \
    {                                                                                              \
        const int64_t width = all->image[1], room = all->image[0] - y;                             \
        const int64_t past = room < 0 ? 0 : room < rows ? room : rows;                             \
        const int64_t r = y < 0 ? (-y < past ? -y : past) : 0;                                     \
        int64_t first, end;                                                                        \
        inside(at, 1, width, width, &first, &end);                                                 \
        memset(columns, 0, (size_t)(r * width) * sizeof *columns);                                 \
        memset(columns + past * width, 0, (size_t)((rows - past) * width) * sizeof *columns);      \
        if (r < past && first < end)                                                               \
            memcpy(columns + r * width + first, x + (y + r) * width + at + first,                  \
                   (size_t)((past - 1 - r) * width + end - first) * sizeof *columns);              \
        for (int64_t k = r; k < past; k++) {                                                       \
            for (int64_t q = 0; q < first; q++)                                                    \
                columns[k * width + q] = 0;                                                        \
            for (int64_t q = end; q < width; q++)                                                  \
                columns[k * width + q] = 0;                                                        \
        }                                                                                          \
    }                                                                                              \
    static void name##_gather(const struct convolution *all, const REAL *x, int64_t from,          \
                              int64_t rows, REAL *columns)                                         \
    {                                                                                              \
        const int64_t count = all->result[1], step = all->stride[1], width = all->image[1];        \
        for (int64_t ch = 0; ch < all->c / all->groups; ch++, x += plane(all->image))              \
            for (int64_t i = 0; i < all->kernel[0]; i++)                                           \
                for (int64_t j = 0; j < all->kernel[1]; j++) {                                     \
                    const int64_t at = j * all->dilation[1] - all->padding[1];                     \
                    int64_t first, end;                                                            \
                    if (step == 1 && all->stride[0] == 1 && count == width) {                      \
                        name##_shifted(all, x, from + i * all->dilation[0] - all->padding[0], at,  \
                                       rows, columns);                                             \
                        columns += rows * count;                                                   \
                        continue;                                                                  \
                    }                                                                              \
                    inside(at, step, width, count, &first, &end);                                  \
                    for (int64_t r = from; r < from + rows; r++, columns += count) {               \
                        const int64_t y =                                                          \
                            r * all->stride[0] + i * all->dilation[0] - all->padding[0];           \
                        if (y < 0 || y >= all->image[0]) {                                         \
                            memset(columns, 0, (size_t)count * sizeof *columns);                   \
                            continue;                                                              \
                        }                                                                          \
                        const REAL *row = x + y * width + at + first * step;                       \
                        const int64_t n = end - first;                                             \
                        memset(columns, 0, (size_t)first * sizeof *columns);                       \
                        memset(columns + end, 0, (size_t)(count - end) * sizeof *columns);         \
                        if (step == 1)                                                             \
                            memcpy(columns + first, row, (size_t)n * sizeof *columns);             \
                        else                                                                       \
                            for (int64_t q = 0; q < n; q++)                                        \
                                columns[first + q] = row[q * step];                                \
                    }                                                                              \
                }                                                                                  \
    }                                                                                              \
    static void name##_scatter(const struct convolution *all, REAL *x, int64_t from, int64_t rows, \
                               const REAL *columns)                                                \
    {                                                                                              \
        const int64_t count = all->result[1], step = all->stride[1], width = all->image[1];        \
        for (int64_t ch = 0; ch < all->c / all->groups; ch++, x += plane(all->image))              \
            for (int64_t i = 0; i < all->kernel[0]; i++)                                           \
                for (int64_t j = 0; j < all->kernel[1]; j++) {                                     \
                    const int64_t at = j * all->dilation[1] - all->padding[1];                     \
                    int64_t first, end;                                                            \
                    inside(at, step, width, count, &first, &end);                                  \
                    for (int64_t r = from; r < from + rows; r++, columns += count) {               \
                        const int64_t y =                                                          \
                            r * all->stride[0] + i * all->dilation[0] - all->padding[0];           \
                        if (y < 0 || y >= all->image[0])                                           \
                            continue;                                                              \
                        REAL *row = x + y * width + at + first * step;                             \
                        const REAL *column = columns + first;                                      \
                        if (step == 1)                                                             \
                            for (int64_t q = 0; q < end - first; q++)                              \
                                row[q] += column[q];                                               \
                        else                                                                       \
                            for (int64_t q = 0; q < end - first; q++)                              \
                                row[q * step] += column[q];                                        \
                    }                                                                              \
                }                                                                                  \
    }
WALK(float, narrow)
WALK(double, wide)

/* One product: image and group, and rows of the output. */
struct piece {
    int64_t image, group, from, rows;
};

static void *element(int dtype, const void *data, int64_t offset)
{
    return kernel_behind(data, offset * (int64_t)kernel_dtype_bytes(dtype));
}

static void *image_of(const struct convolution *all, const void *x, const struct piece *p)
{
    const int64_t channel = p->image * all->c + p->group * (all->c / all->groups);
    return element(all->dtype, x, channel * plane(all->image));
}

/* The three matrices of a piece: weights [o/groups, window], windows [window, rows * width], and
 * the part of y [o/groups, rows * width]. */
static struct gemm_matrix weights_of(const struct convolution *all, const void *w,
                                     const struct piece *p)
{
    const int64_t outputs = all->o / all->groups, size = window_size(all);
    return (struct gemm_matrix){element(all->dtype, w, p->group * outputs * size), outputs, size,
                                size, 1};
}

static struct gemm_matrix windows_of(const struct convolution *all, void *data,
                                     const struct piece *p)
{
    const int64_t columns = p->rows * all->result[1];
    return (struct gemm_matrix){data, window_size(all), columns, columns, 1};
}

static struct gemm_matrix result_of(const struct convolution *all, const void *y,
                                    const struct piece *p)
{
    const int64_t outputs = all->o / all->groups, whole = plane(all->result);
    const int64_t at = (p->image * all->o + p->group * outputs) * whole + p->from * all->result[1];
    return (struct gemm_matrix){element(all->dtype, y, at), outputs, p->rows * all->result[1],
                                whole, 1};
}

static struct gemm_matrix flipped(struct gemm_matrix a)
{
    return (struct gemm_matrix){a.data, a.columns, a.rows, a.column_stride, a.row_stride};
}

/* Moves on to the next piece; begins where rows is 0. */
static bool next(const struct convolution *all, struct piece *p)
{
    p->from += p->rows;
    if (p->rows > 0 && p->from >= all->result[0]) {
        p->from = 0;
        if (++p->group == all->groups) {
            p->group = 0;
            p->image++;
        }
    }
    const int64_t left = all->result[0] - p->from;
    p->rows = left < all->strip ? left : all->strip;
    return p->image < all->n && all->o > 0;
}

static size_t columns_bytes(const struct convolution *all)
{
    if (all->in_place)
        return 0;
    return dense_rounded((size_t)(window_size(all) * all->strip * all->result[1]) *
                         kernel_dtype_bytes(all->dtype));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What gemm_run wants for pieces of so many rows. */
static size_t product_space(const struct convolution *all, int64_t rows)
{
    const struct piece p = {.rows = rows};
    const struct gemm_matrix w = weights_of(all, NULL, &p), y = result_of(all, NULL, &p);
    const struct gemm_matrix columns = windows_of(all, NULL, &p);
    const struct gemm_matrix turned = flipped(w), across = flipped(columns);
    return larger(gemm_workspace(all->dtype, &w, &columns, &y),
                  larger(gemm_workspace(all->dtype, &turned, &y, &columns),
                         gemm_workspace(all->dtype, &y, &across, &w)));
}

static size_t space_of(const struct convolution *all)
{
    const int64_t rest = all->result[0] % all->strip;
    return columns_bytes(all) + larger(product_space(all, all->strip), product_space(all, rest));
}

/* The windows of a piece: gathered into space, or where they are. */
static struct gemm_matrix gathered(const struct convolution *all, const void *x,
                                   const struct piece *p, void *space)
{
    void *image = image_of(all, x, p);
    if (all->in_place) {
        struct gemm_matrix windows = windows_of(all, image, p);
        windows.data = element(all->dtype, image, p->from * all->result[1]);
        windows.row_stride = plane(all->image);
        return windows;
    }
    if (all->dtype == KERNEL_F32)
        narrow_gather(all, image, p->from, p->rows, space);
    else
        wide_gather(all, image, p->from, p->rows, space);
    return windows_of(all, space, p);
}

static void clear(const struct convolution *all, void *data, int64_t n)
{
    if (n > 0)
        memset(data, 0, (size_t)n * kernel_dtype_bytes(all->dtype));
}

static void to_result(const struct convolution *all, const void *x, const void *w, void *y,
                      bool accumulate, void *space)
{
    char *const rest = (char *)space + columns_bytes(all);
    for (struct piece p = {0}; next(all, &p);) {
        const struct gemm_matrix windows = gathered(all, x, &p, space);
        const struct gemm_matrix weights = weights_of(all, w, &p), result = result_of(all, y, &p);
        gemm_run(all->dtype, &weights, &windows, &result, accumulate, rest);
    }
}

static void to_image(const struct convolution *all, const void *y, const void *w, void *x,
                     bool accumulate, void *space)
{
    char *const rest = (char *)space + columns_bytes(all);
    if (!accumulate)
        clear(all, x, all->n * all->c * plane(all->image));
    for (struct piece p = {0}; next(all, &p);) {
        const struct gemm_matrix turned = flipped(weights_of(all, w, &p));
        const struct gemm_matrix result = result_of(all, y, &p);
        if (all->in_place) {
            const struct gemm_matrix windows = gathered(all, x, &p, NULL);
            gemm_run(all->dtype, &turned, &result, &windows, true, rest);
            continue;
        }
        const struct gemm_matrix windows = windows_of(all, space, &p);
        gemm_run(all->dtype, &turned, &result, &windows, false, rest);
        if (all->dtype == KERNEL_F32)
            narrow_scatter(all, image_of(all, x, &p), p.from, p.rows, space);
        else
            wide_scatter(all, image_of(all, x, &p), p.from, p.rows, space);
    }
}

static void to_weights(const struct convolution *all, const void *x, const void *y, void *w,
                       bool accumulate, void *space)
{
    char *const rest = (char *)space + columns_bytes(all);
    if (!accumulate)
        clear(all, w, all->o * window_size(all));
    for (struct piece p = {0}; next(all, &p);) {
        const struct gemm_matrix across = flipped(gathered(all, x, &p, space));
        const struct gemm_matrix weights = weights_of(all, w, &p), result = result_of(all, y, &p);
        gemm_run(all->dtype, &result, &across, &weights, true, rest);
    }
}

int convolution_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const struct convolution_family *const family = call->op->family;
    struct convolution all;
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (call->in[0]->rank != family->rank || call->in[1]->rank != family->rank)
        return kernel_refuse_operands(call, ", ", "%s are wanted", family->wanted);
    if (family->make(call, &all) != 0)
        return -1;
    const int64_t shapes[][4] = {
        [CONVOLUTION_X] = {all.n, all.c, all.image[0], all.image[1]},
        [CONVOLUTION_W] = {all.o, all.c / all.groups, all.kernel[0], all.kernel[1]},
        [CONVOLUTION_Y] = {all.n, all.o, all.result[0], all.result[1]}};
    kernel_shape_begin(out, all.dtype, family->rank);
    memcpy(out->extent, shapes[family->result], sizeof shapes[0]);
    if (family->rank == 3) /* without the height */
        out->extent[2] = out->extent[3];
    return 0;
}

size_t convolution_workspace(const struct kernel_call *call)
{
    const struct convolution_family *const family = call->op->family;
    struct convolution all;
    if (family->make(call, &all) != 0)
        return 0;
    /* Which way is taken depends on the processor, so there is room for either. */
    return dense_workspace(call) +
           larger(space_of(&all), convolution_direct_space(&all, family->result));
}

int convolution_forward(const struct kernel_call *call)
{
    const struct convolution_family *const family = call->op->family;
    struct convolution all;
    char *space = call->workspace;
    if (family->make(call, &all) != 0)
        return -1;
    const void *first = dense_data(call->in[0], &space), *second = dense_data(call->in[1], &space);
    void *result = call->out[0]->data;
    if (convolution_direct(&all, family->result, first, second, result, call->accumulate, space))
        return 0;
    if (family->result == CONVOLUTION_X)
        to_image(&all, first, second, result, call->accumulate, space);
    else if (family->result == CONVOLUTION_W)
        to_weights(&all, first, second, result, call->accumulate, space);
    else
        to_result(&all, first, second, result, call->accumulate, space);
    return 0;
}

struct kernel_cost convolution_cost(const struct kernel_call *call)
{
    const struct convolution_family *const family = call->op->family;
    struct convolution all;
    if (family->make(call, &all) != 0)
        return (struct kernel_cost){0};
    const int64_t products = all.n * all.o * plane(all.result) * window_size(&all);
    return (struct kernel_cost){.flops = 2 * (uint64_t)products, .bytes = kernel_moved_bytes(call)};
}

void convolution_extend(const int64_t *attr, const int64_t more[2],
                        int64_t extended[CONVOLUTION_ATTRIBUTES + 2])
{
    memcpy(extended, attr, CONVOLUTION_ATTRIBUTES * sizeof *attr);
    memcpy(extended + CONVOLUTION_ATTRIBUTES, more, 2 * sizeof *more);
}

void convolution_extend_to(const int64_t *attr, kernel_ref x, kernel_ref y, kernel_ref weights,
                           int64_t extended[CONVOLUTION_ATTRIBUTES + 2])
{
    int64_t beyond[2];
    for (int k = 0; k < 2; k++)
        beyond[k] = x->shape[2 + k] - convolution_image(y->shape[2 + k], weights->shape[2 + k],
                                                        attr[k], attr[2 + k], attr[4 + k], 0);
    convolution_extend(attr, beyond, extended);
}

/* ---- what depends on what ---- */

/* Each element of a plane [image, channel]: its group is that of the element in its group of
 * channels. */
static void groups_of_planes(const struct convolution *all, int64_t channels, int64_t size,
                             int64_t *group)
{
    const int64_t each = channels / all->groups;
    for (int64_t image = 0; image < all->n; image++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = 0; k < size; k++)
                *group++ = ((image * all->groups + c / each) * size) + k;
}

/* Where element `at` of an axis of the result's meets element k of the window, in the operand;
 * -1: nowhere. */
static int64_t met(const struct convolution *all, enum convolution_array result, int axis,
                   int64_t at, int64_t k)
{
    const int64_t along = k * all->dilation[axis] - all->padding[axis];
    if (result == CONVOLUTION_Y) {
        const int64_t x = at * all->stride[axis] + along;
        return x >= 0 && x < all->image[axis] ? x : -1;
    }
    const int64_t y = at - along;
    return y >= 0 && y % all->stride[axis] == 0 && y / all->stride[axis] < all->result[axis]
               ? y / all->stride[axis]
               : -1;
}

/* The groups that one element of the result, at `at` of its plane, depends on: one for each element
 * of the window. */
static int64_t *windows_met(const struct convolution *all, enum convolution_array result,
                            int64_t plane_group, const int64_t at[2], int64_t *to)
{
    const int64_t *const other = result == CONVOLUTION_Y ? all->image : all->result;
    for (int64_t i = 0; i < all->kernel[0]; i++)
        for (int64_t j = 0; j < all->kernel[1]; j++) {
            const int64_t row = met(all, result, 0, at[0], i),
                          column = met(all, result, 1, at[1], j);
            *to++ = row < 0 || column < 0 ? -1 : (plane_group * other[0] + row) * other[1] + column;
        }
    return to;
}

void convolution_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    static const int channels_out[4] = {1, -1, -1, -1};
    const struct convolution_family *const family = call->op->family;
    struct convolution all;
    if (family->result == CONVOLUTION_Y && i == 1) {
        kernel_depends_along(call->in[i], call->out[o], channels_out, d);
        return;
    }
    if (family->result == CONVOLUTION_W || i == 1 || family->make(call, &all) != 0) {
        kernel_depends_all(call, o, i, d);
        return;
    }
    d->width = plane(all.kernel);
    if (!d->in)
        return;
    const bool forwards = family->result == CONVOLUTION_Y;
    const int64_t *const extent = forwards ? all.result : all.image,
                         channels = forwards ? all.o : all.c;
    groups_of_planes(&all, forwards ? all.c : all.o, plane(forwards ? all.image : all.result),
                     d->in);
    int64_t *to = d->out;
    for (int64_t image = 0; image < all.n; image++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t at = 0; at < plane(extent); at++)
                to = windows_met(&all, family->result,
                                 image * all.groups + c / (channels / all.groups),
                                 (const int64_t[2]){at / extent[1], at % extent[1]}, to);
}
