/* convolution_direct.c: strips of images, and which loops of convolution_tiles.h run over them.
 *
 * The adjoint in the image is a convolution of y with the window turned by 180 degrees, where
 * strides are 1.
 */
#include "convolution_direct.h"
#include "convolution_tiles.h"
#include "dense.h"
#include "elementwise.h"
#include "threads.h"

#include <string.h>

enum {
    COPY_BYTES = 256 << 10, /* of a strip: it stays in the second-level cache */
    MOST_BYTES = 1 << 20,   /* of a strip of one row; beyond, windows are laid side by side */
    BEHIND_BYTES = 128,     /* the last tile of a row reads so far beyond it */
    LEAST_WIDTH = 7,        /* of a result: a tile is 8 to 32 wide */
    LEAST_OUTPUTS = 4,      /* channels in a group, likewise */
    PRODUCTS_A_NS = 160     /* times the bytes of an element, on one thread */
};

typedef uint32_t __attribute__((may_alias)) word_32;
typedef uint64_t __attribute__((may_alias)) word_64;

/* One product as the loops see it: an image that is copied, and the other one, which is the result
 * or, for the adjoint in the weights, y. */
struct convolution_plan {
    int dtype;
    enum convolution_array result;
    int64_t inputs, outputs; /* channels of a group, of the image and of the other one */
    int64_t image[2], other[2];
    int64_t stride[2], padding[2];
    int64_t reach[2];            /* from the first element of a window to the last */
    int64_t strip, width, plane; /* rows of `other`; extents of the copy */
    size_t copy_bytes, bytes;
};

static int64_t area(const int64_t extent[2])
{
    return extent[0] * extent[1];
}

static int64_t rows_copied(const struct convolution_plan *p, int64_t rows)
{
    return (rows - 1) * p->stride[0] + p->reach[0] + 1;
}

/* Planes are an odd number of cache lines apart: else one row of each would fall on the same few
 * places of the cache. */
static int64_t plane_of(const struct convolution_plan *p, int64_t rows)
{
    const int64_t line = 64 / (int64_t)kernel_dtype_bytes(p->dtype);
    return ((rows_copied(p, rows) * p->width + line - 1) / line | 1) * line;
}

/* Elements of y that are turned for a strip: all lanes of whole vectors, on every processor. */
static int64_t turned_row(const struct convolution_plan *p)
{
    const int64_t line = 64 / (int64_t)kernel_dtype_bytes(p->dtype);
    return p->result == CONVOLUTION_W ? (p->outputs + line - 1) / line * line * p->other[1] : 0;
}

/* False where the product is not computed so. */
static bool convolution_plan_make(const struct convolution *all, enum convolution_array result,
                                  struct convolution_plan *p)
{
    const bool back = result == CONVOLUTION_X;
    const int64_t elem = (int64_t)kernel_dtype_bytes(all->dtype);
    *p = (struct convolution_plan){.dtype = all->dtype,
                                   .result = result,
                                   .inputs = (back ? all->o : all->c) / all->groups,
                                   .outputs = (back ? all->c : all->o) / all->groups};
    for (int k = 0; k < 2; k++) {
        p->image[k] = back ? all->result[k] : all->image[k];
        p->other[k] = back ? all->image[k] : all->result[k];
        p->stride[k] = all->stride[k];
        p->reach[k] = all->dilation[k] * (all->kernel[k] - 1);
        p->padding[k] = back ? p->reach[k] - all->padding[k] : all->padding[k];
    }
    if (all->in_place || p->inputs == 0 || p->outputs == 0 || area(p->image) == 0 ||
        area(p->other) == 0)
        return false;
    if (result == CONVOLUTION_W ? p->outputs < LEAST_OUTPUTS
                                : area(p->stride) != 1 || p->other[1] < LEAST_WIDTH ||
                                      area(all->kernel) > CONVOLUTION_WINDOW)
        return false;
    p->width = (p->other[1] - 1) * p->stride[1] + p->reach[1] + 1;
    if (p->inputs >= MOST_BYTES || p->stride[0] >= MOST_BYTES || p->reach[0] >= MOST_BYTES ||
        p->width >= MOST_BYTES || /* so that nothing below overflows */
        plane_of(p, 1) * p->inputs > MOST_BYTES / elem || turned_row(p) > MOST_BYTES / elem)
        return false;
    /* Linear in the rows but for the rounding. */
    const int64_t halo = (p->reach[0] + 1 - p->stride[0]) * p->width * p->inputs;
    const int64_t row = p->stride[0] * p->width * p->inputs;
    const int64_t turned = turned_row(p);
    int64_t most = (COPY_BYTES / elem - halo) / row;
    if (turned > 0 && turned * most > COPY_BYTES / elem)
        most = COPY_BYTES / elem / turned;
    if (most < 1)
        most = 1;
    const int64_t strips = (p->other[0] + most - 1) / most;
    p->strip = (p->other[0] + strips - 1) / strips;
    p->plane = plane_of(p, p->strip);
    p->copy_bytes = dense_rounded((size_t)(p->inputs * p->plane * elem) + BEHIND_BYTES);
    p->bytes = p->copy_bytes + dense_rounded((size_t)(turned_row(p) * p->strip * elem));
    return true;
}

size_t convolution_direct_space(const struct convolution *all, enum convolution_array result)
{
    struct convolution_plan p;
    return convolution_plan_make(all, result, &p) ? p.bytes : 0;
}

struct convolution_job {
    const struct convolution_tiles *tiles;
    struct convolution_walk walk;
    const void *weights, *copy, *turned;
    void *out;
    int64_t n;
    int dtype;
    bool weighs;
};

static void convolution_part(void *of, int part, int parts)
{
    const struct convolution_job *const j = of;
    const int64_t from = j->n * part / parts, to = j->n * (part + 1) / parts;
    if (j->weighs)
        j->tiles->weigh[j->dtype](&j->walk, j->turned, j->copy, j->out, from, to);
    else
        j->tiles->spread[j->dtype](&j->walk, j->weights, j->copy, j->out, from, to);
}

static void *element(int dtype, const void *data, int64_t offset)
{
    return kernel_behind(data, offset * (int64_t)kernel_dtype_bytes(dtype));
}

/* One strip of one group of one image: x is what is copied, y the other one. */
static void convolution_strip(const struct convolution_plan *p, struct convolution_job *j,
                              const void *x, void *y, int64_t from, void *space)
{
    struct convolution_walk *const t = &j->walk;
    const struct convolution_frame f = {
        .planes = p->inputs,
        .image = {p->image[0], p->image[1]},
        .from = {from * p->stride[0] - p->padding[0], -p->padding[1]},
        .rows = rows_copied(p, t->rows),
        .width = p->width,
        .plane_step = p->plane};
    const int64_t window = area(t->kernel);
    j->tiles->frame[p->dtype](&f, x, space);
    j->copy = space;
    if (j->weighs) {
        void *const turned = (char *)space + p->copy_bytes;
        j->tiles->turn[p->dtype](p->outputs, t->rows * t->width, t->result_plane,
                                 element(p->dtype, y, from * t->width), turned);
        j->turned = turned;
        j->n = j->tiles->weigh_tiles[p->dtype](t);
    } else {
        j->out = element(p->dtype, y, from * t->width);
        j->n = t->rows;
    }
    const int64_t products = p->outputs * p->inputs * window * t->rows * t->width;
    const uint64_t bytes = (uint64_t)products * kernel_dtype_bytes(p->dtype);
    threads_run(threads_parts(bytes / PRODUCTS_A_NS), convolution_part, j);
}

/* Whether zeros times any of them are 0. By bits, since no compiler may reorder a sum. */
static bool weights_finite(int dtype, const void *data, int64_t n)
{
    const uint32_t top_32 = 0x7f800000;
    const uint64_t top_64 = (uint64_t)0x7ff << 52;
    uint32_t not_32 = 0;
    uint64_t not_64 = 0;
    if (dtype == KERNEL_F32)
        for (int64_t i = 0; i < n; i++)
            not_32 |= (((const word_32 *)data)[i] & top_32) == top_32;
    else
        for (int64_t i = 0; i < n; i++)
            not_64 |= (((const word_64 *)data)[i] & top_64) == top_64;
    return (not_32 | not_64) == 0;
}

bool convolution_direct(const struct convolution *all, enum convolution_array result,
                        const void *first, const void *second, void *out, bool accumulate,
                        void *space)
{
    const struct convolution_tiles *const tiles = kernel_isa_get()->convolution;
    const int64_t window = area(all->kernel), dtype = all->dtype;
    const bool back = result == CONVOLUTION_X, weighs = result == CONVOLUTION_W;
    struct convolution_plan p;
    if (tiles->frame[dtype] == NULL || !convolution_plan_make(all, result, &p) ||
        (back && !weights_finite(all->dtype, second, all->o * (all->c / all->groups) * window)))
        return false;
    const int64_t size = all->c / all->groups * window; /* of an output channel's weights */
    struct convolution_job j = {.tiles = tiles,
                                .dtype = all->dtype,
                                .weighs = weighs,
                                .out = out,
                                .walk = {.inputs = p.inputs,
                                         .outputs = p.outputs,
                                         .kernel = {all->kernel[0], all->kernel[1]},
                                         .weight_output = back ? window : size,
                                         .weight_input = back ? size : window,
                                         .weight_step = back ? -1 : 1,
                                         .plane = p.plane,
                                         .tap = {all->dilation[0] * p.width, all->dilation[1]},
                                         .row = p.stride[0] * p.width,
                                         .column = p.stride[1],
                                         .width = p.other[1],
                                         .result_plane = area(p.other),
                                         .accumulate = accumulate}};
    if (weighs && !accumulate)
        memset(out, 0, (size_t)(all->o * size) * kernel_dtype_bytes(all->dtype));
    for (int64_t image = 0; image < all->n; image++)
        for (int64_t group = 0; group < all->groups; group++) {
            const int64_t at = image * all->groups + group;
            const int64_t weights = group * (all->o / all->groups) * size;
            const void *const x = element(p.dtype, first, at * p.inputs * area(p.image));
            void *const y = element(p.dtype, weighs ? second : out, at * p.outputs * area(p.other));
            if (weighs)
                j.out = element(p.dtype, out, weights);
            else
                j.weights = element(p.dtype, second, weights + (back ? window - 1 : 0));
            for (int64_t from = 0; from < p.other[0]; from += p.strip) {
                const int64_t left = p.other[0] - from;
                j.walk.rows = left < p.strip ? left : p.strip;
                convolution_strip(&p, &j, x, y, from, space);
            }
        }
    return true;
}
