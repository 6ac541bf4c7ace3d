/* pooling.c: maxima and means of sliding windows, a row of results at a time. */
#include "pooling.h"
#include "dense.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "threads.h"

#include <limits.h>
#include <string.h>

enum { MAXIMA_FLOPS = 4, MEANS_FLOPS = 4 }; /* of an element of the image */

int pooling_make(const struct kernel_call *call, struct pooling *all)
{
    const struct pooling_family *const family = call->op->family;
    const kernel_ref x = call->in[0];
    const int axes = family->axes;
    *all = (struct pooling){.dtype = x->dtype,
                            .count_padding = family->mean && call->attr[3 * axes] == 0,
                            .planes = 1,
                            .image = {1, 1},
                            .kernel = {1, 1},
                            .result = {1, 1},
                            .stride = {1, 1}};
    for (int axis = 0; axis < x->rank - axes; axis++)
        all->planes *= x->shape[axis];
    for (int k = 0; k < axes; k++) {
        const int64_t window = call->attr[k], stride = call->attr[axes + k];
        const int64_t padding = call->attr[2 * axes + k], extent = x->shape[x->rank - axes + k];
        const int to = 2 - axes + k;
        if (window < 1 || window > INT_MAX || stride < 1)
            return kernel_refuse_operands(call, "", "there is no window of %lld with stride %lld",
                                          (long long)window, (long long)stride);
        if (padding < 0 || padding > window / 2)
            return kernel_refuse_operands(call, "", "padding %lld is not in 0..%lld",
                                          (long long)padding, (long long)window / 2);
        if (extent < 1 || extent > INT64_MAX / 2 || extent + 2 * padding < window)
            return kernel_refuse_operands(call, "", "a window of %lld does not fit into %lld",
                                          (long long)window, (long long)extent);
        all->image[to] = extent;
        all->kernel[to] = window;
        all->stride[to] = stride;
        all->padding[to] = padding;
        all->result[to] = (extent + 2 * padding - window) / stride + 1;
    }
    return 0;
}

int pooling_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const struct pooling_family *const family = call->op->family;
    const kernel_ref x = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < family->axes || x->rank > family->most_axes)
        return kernel_refuse_operands(call, "", "%s is wanted", family->wanted);
    if (family->make(call, &all) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int axis = 0; axis < x->rank; axis++)
        out->extent[axis] = x->shape[axis];
    for (int k = 0; k < family->axes; k++)
        out->extent[x->rank - family->axes + k] = all.result[2 - family->axes + k];
    if (!family->mean) {
        out[1] = out[0];
        out[1].dtype = KERNEL_I64;
    }
    return 0;
}

/* The part first..end of a window of result q that lies inside. */
static void inside(const struct pooling *all, int k, int64_t q, int64_t *first, int64_t *end)
{
    const int64_t at = q * all->stride[k] - all->padding[k];
    *first = at < 0 ? 0 : at;
    *end = at + all->kernel[k] < all->image[k] ? at + all->kernel[k] : all->image[k];
}

/* The results first..end of a row whose window element j lies inside. */
static void reached(const struct pooling *all, int64_t j, int64_t *first, int64_t *end)
{
    const int64_t at = j - all->padding[1], step = all->stride[1];
    const int64_t last = all->image[1] - 1 - at;
    *first = at < 0 ? (-at + step - 1) / step : 0;
    *end = last < 0 ? 0 : last / step + 1;
    if (*end > all->result[1])
        *end = all->result[1];
    if (*first > *end)
        *first = *end;
}

/* What the sum of result (p, q) is divided by; rows of its window are inside. */
static int64_t count(const struct pooling *all, int64_t rows, int64_t q)
{
    int64_t first, end;
    if (all->count_padding)
        return all->kernel[0] * all->kernel[1];
    inside(all, 1, q, &first, &end);
    return rows * (end - first);
}

/* Rows of means take all elements j of their windows at once. */
#define POOL(REAL, name)                                                                           \
    static void name##_mean(const struct pooling *all, const REAL *x, REAL *y)                     \
    {                                                                                              \
        const int64_t n = all->result[1], step = all->stride[1], width = all->image[1];            \
        for (int64_t p = 0; p < all->result[0]; p++, y += n) {                                     \
            int64_t top, bottom, first, end;                                                       \
            inside(all, 0, p, &top, &bottom);                                                      \
            memset(y, 0, (size_t)n * sizeof *y);                                                   \
            for (int64_t r = top; r < bottom; r++)                                                 \
                for (int64_t j = 0; j < all->kernel[1]; j++) {                                     \
                    const int64_t from = r * width + j - all->padding[1];                          \
                    reached(all, j, &first, &end);                                                 \
                    for (int64_t q = first; q < end; q++)                                          \
                        y[q] += x[from + q * step];                                                \
                }                                                                                  \
            for (int64_t q = 0; q < n; q++)                                                        \
                y[q] /= (REAL)count(all, bottom - top, q);                                         \
        }                                                                                          \
    }                                                                                              \
    static void name##_spread(const struct pooling *all, const REAL *y, REAL *x, REAL *share)      \
    {                                                                                              \
        const int64_t n = all->result[1], step = all->stride[1], width = all->image[1];            \
        for (int64_t p = 0; p < all->result[0]; p++, y += n) {                                     \
            int64_t top, bottom, first, end;                                                       \
            inside(all, 0, p, &top, &bottom);                                                      \
            for (int64_t q = 0; q < n; q++)                                                        \
                share[q] = y[q] / (REAL)count(all, bottom - top, q);                               \
            for (int64_t r = top; r < bottom; r++)                                                 \
                for (int64_t j = 0; j < all->kernel[1]; j++) {                                     \
                    const int64_t from = r * width + j - all->padding[1];                          \
                    reached(all, j, &first, &end);                                                 \
                    for (int64_t q = first; q < end; q++)                                          \
                        x[from + q * step] += share[q];                                            \
                }                                                                                  \
        }                                                                                          \
    }
POOL(float, narrow)
POOL(double, wide)

static int64_t plane(const int64_t extent[2])
{
    return extent[0] * extent[1];
}

struct maxima {
    const struct pooling *all;
    const struct kernel_isa *isa;
    const char *x;
    char *y;
    int64_t *at;
};

/* A share of all rows of results. */
static void maxima_part(void *job, int part, int parts)
{
    const struct maxima *m = job;
    const struct pooling *all = m->all;
    const size_t elem = kernel_dtype_bytes(all->dtype);
    const int64_t rows = all->planes * all->result[0], end = rows * (part + 1) / parts;
    struct kernel_pool_row run = {.width = all->image[1],
                                  .window = all->kernel[1],
                                  .step = all->stride[1],
                                  .padding = all->padding[1],
                                  .count = all->result[1]};
    for (int64_t row = rows * part / parts; row < end; row++) {
        int64_t top, bottom;
        inside(all, 0, row % all->result[0], &top, &bottom);
        run.before = top * all->image[1];
        run.rows = bottom - top;
        run.x = m->x + (size_t)(row / all->result[0] * plane(all->image) + run.before) * elem;
        run.y = m->y + (size_t)(row * run.count) * elem;
        run.at = m->at + row * run.count;
        m->isa->pool_max[all->dtype](&run);
    }
}

static void maxima(const struct pooling *all, const void *x, void *y, int64_t *at)
{
    const int64_t size = all->planes * plane(all->image);
    struct maxima m = {all, kernel_isa_get(), x, y, at};
    const uint64_t bytes = (uint64_t)size * kernel_dtype_bytes(all->dtype);
    threads_run(threads_parts(threads_ns(bytes, 2, MAXIMA_FLOPS)), maxima_part, &m);
}

/* Means of planes, or their adjoint: `shares` is a row of results for each part. */
struct plane_job {
    const struct pooling *all;
    const void *from;
    void *to;
    char *shares;
    bool accumulate;
};

static size_t share_row(const struct pooling *all)
{
    return dense_rounded((size_t)all->result[1] * kernel_dtype_bytes(all->dtype));
}

static void means_part(void *of, int part, int parts)
{
    const struct plane_job *job = of;
    const struct pooling *all = job->all;
    const int64_t end = all->planes * (part + 1) / parts;
    for (int64_t i = all->planes * part / parts; i < end; i++) {
        const int64_t from = i * plane(all->image), to = i * plane(all->result);
        if (all->dtype == KERNEL_F32)
            narrow_mean(all, (const float *)job->from + from, (float *)job->to + to);
        else
            wide_mean(all, (const double *)job->from + from, (double *)job->to + to);
    }
}

static void spread_part(void *of, int part, int parts)
{
    const struct plane_job *job = of;
    const struct pooling *all = job->all;
    const size_t elem = kernel_dtype_bytes(all->dtype), bytes = (size_t)plane(all->image) * elem;
    const int64_t end = all->planes * (part + 1) / parts;
    void *const share = job->shares + (size_t)part * share_row(all);
    for (int64_t i = all->planes * part / parts; i < end; i++) {
        void *const x = (char *)job->to + (size_t)i * bytes;
        const int64_t from = i * plane(all->result);
        if (!job->accumulate)
            memset(x, 0, bytes);
        if (all->dtype == KERNEL_F32)
            narrow_spread(all, (const float *)job->from + from, x, share);
        else
            wide_spread(all, (const double *)job->from + from, x, share);
    }
}

/* Parts of all planes. */
static int plane_parts(const struct pooling *all)
{
    const uint64_t bytes =
        (uint64_t)(all->planes * plane(all->image)) * kernel_dtype_bytes(all->dtype);
    const int parts = threads_parts(threads_ns(bytes, 2, MEANS_FLOPS));
    return parts < all->planes ? parts : (int)all->planes;
}

int pooling_forward(const struct kernel_call *call)
{
    const struct pooling_family *const family = call->op->family;
    struct pooling all;
    char *space = call->workspace;
    if (family->make(call, &all) != 0)
        return -1;
    const char *x = dense_data(call->in[0], &space);
    if (family->mean)
        threads_run(plane_parts(&all), means_part,
                    &(struct plane_job){.all = &all, .from = x, .to = call->out[0]->data});
    else
        maxima(&all, x, call->out[0]->data, call->out[1]->data);
    return 0;
}

size_t pooling_spread_space(const struct pooling *all)
{
    const int64_t rows = all->planes < THREADS_MOST_PARTS ? all->planes : THREADS_MOST_PARTS;
    return (size_t)rows * share_row(all);
}

void pooling_spread(const struct pooling *all, const void *y, void *x, bool accumulate, void *space)
{
    struct plane_job job = {all, y, x, space, accumulate};
    threads_run(plane_parts(all), spread_part, &job);
}

void pooling_max_pullback(struct kernel_rule *rule)
{
    const struct pooling_family *const family = rule->op->family;
    const kernel_ref x = rule->in[0], in[] = {rule->adjoint[0], rule->out[1]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_scatter, 2, in, family->axes,
                          x->shape + x->rank - family->axes);
}

struct kernel_cost pooling_cost(const struct kernel_call *call)
{
    const struct pooling_family *const family = call->op->family;
    struct pooling all;
    if (family->make(call, &all) != 0)
        return (struct kernel_cost){0};
    const int64_t windows = all.planes * plane(all.result);
    const int64_t each = plane(all.kernel) + (family->mean ? 4 : 0); /* a division */
    return (struct kernel_cost){.flops = (uint64_t)(windows * each),
                                .bytes = kernel_moved_bytes(call)};
}

/* An element of a window in its plane, or -1. */
static int64_t window_element(const struct pooling *all, int64_t at, int64_t k)
{
    const int64_t row = at / all->result[1] * all->stride[0] + k / all->kernel[1] - all->padding[0],
                  column =
                      at % all->result[1] * all->stride[1] + k % all->kernel[1] - all->padding[1];
    const bool inside = row >= 0 && row < all->image[0] && column >= 0 && column < all->image[1];
    return inside ? row * all->image[1] + column : -1;
}

void pooling_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const struct pooling_family *const family = call->op->family;
    struct pooling all;
    if (family->make(call, &all) != 0) {
        kernel_depends_all(call, o, i, d);
        return;
    }
    const int64_t image = all.image[0] * all.image[1], result = all.result[0] * all.result[1];
    int64_t *to = d->out;
    d->width = all.kernel[0] * all.kernel[1];
    for (int64_t k = 0; k < call->in[i]->size && d->in; k++)
        d->in[k] = k;
    for (int64_t at = 0; at < all.planes * result && d->in; at++)
        for (int64_t k = 0; k < d->width; k++) {
            const int64_t element = window_element(&all, at % result, k);
            *to++ = element < 0 ? -1 : at / result * image + element;
        }
}
