/* convolution_direct.c: strips of images, and which loops of convolution_tiles.h run over them.
 *
 * With several threads a round takes as many strips as have room. First threads share their copies,
 * then the rows of all results, or the tiles of the weights. An element is summed by one thread, in
 * the order of the strips.
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
    int64_t strips, round;       /* of an image; as many copies have room */
    size_t copy_bytes, turned_bytes;
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
    p->strips = (p->other[0] + most - 1) / most;
    p->strip = (p->other[0] + p->strips - 1) / p->strips;
    p->strips = (p->other[0] + p->strip - 1) / p->strip;
    p->plane = plane_of(p, p->strip);
    p->copy_bytes = dense_rounded((size_t)(p->inputs * p->plane * elem) + BEHIND_BYTES);
    p->turned_bytes = dense_rounded((size_t)(turned * p->strip * elem));
    size_t larger = BEHIND_BYTES;
    if (p->copy_bytes > larger)
        larger = p->copy_bytes;
    if (p->turned_bytes > larger)
        larger = p->turned_bytes;
    const int64_t all_strips = all->n * all->groups * p->strips;
    p->round = COPY_BYTES / larger > 1 ? (int64_t)(COPY_BYTES / larger) : 1;
    if (p->round > all_strips)
        p->round = all_strips;
    return true;
}

size_t convolution_direct_space(const struct convolution *all, enum convolution_array result)
{
    struct convolution_plan p;
    return convolution_plan_make(all, result, &p)
               ? (size_t)p.round * (p.copy_bytes + p.turned_bytes)
               : 0;
}

struct convolution_job {
    const struct convolution_plan *plan;
    const struct convolution_tiles *tiles;
    struct convolution_walk walk; /* without the rows of a strip */
    const char *x, *weights;      /* what is copied; NULL: they are the result */
    char *y, *out;                /* the other image; weights that are the result */
    int64_t groups, group_size;   /* weights of a group */
    char *space;
    int64_t first, n; /* strips of this round */
};

static void *element(int dtype, const void *data, int64_t offset)
{
    return kernel_behind(data, offset * (int64_t)kernel_dtype_bytes(dtype));
}

/* One strip of one group of one image. */
struct convolution_strip {
    int64_t image, group, from; /* image: and group, counted together */
    struct convolution_walk walk;
    void *copy, *turned;
};

static void strip_at(const struct convolution_job *j, int64_t i, struct convolution_strip *s)
{
    const struct convolution_plan *const p = j->plan;
    s->image = (j->first + i) / p->strips;
    s->group = s->image % j->groups;
    s->from = (j->first + i) % p->strips * p->strip;
    s->walk = j->walk;
    s->walk.rows = p->other[0] - s->from < p->strip ? p->other[0] - s->from : p->strip;
    s->copy = j->space + (size_t)i * p->copy_bytes;
    s->turned = j->space + (size_t)p->round * p->copy_bytes + (size_t)i * p->turned_bytes;
}

static void *strip_of_y(const struct convolution_job *j, const struct convolution_strip *s)
{
    const struct convolution_plan *const p = j->plan;
    const int64_t at = s->image * p->outputs * area(p->other) + s->from * p->other[1];
    return element(p->dtype, j->y, at);
}

/* Channels of y that are turned together: whole blocks on every processor. */
static int64_t block_of(const struct convolution_plan *p)
{
    return 128 / (int64_t)kernel_dtype_bytes(p->dtype);
}

static int64_t blocks_of(const struct convolution_plan *p)
{
    return p->result == CONVOLUTION_W ? (p->outputs + block_of(p) - 1) / block_of(p) : 0;
}

static void convolution_turn_block(const struct convolution_job *j,
                                   const struct convolution_strip *s, int64_t block)
{
    const struct convolution_plan *const p = j->plan;
    const int64_t o = block * block_of(p), n = s->walk.rows * s->walk.width;
    const int64_t left = p->outputs - o;
    j->tiles->turn[p->dtype](left < block_of(p) ? left : block_of(p), n, area(p->other),
                             element(p->dtype, strip_of_y(j, s), o * area(p->other)),
                             element(p->dtype, s->turned, o * n));
}

/* Planes from..to of a strip's copy. */
static void convolution_copy_planes(const struct convolution_job *j,
                                    const struct convolution_strip *s, int64_t from, int64_t to)
{
    const struct convolution_plan *const p = j->plan;
    const struct convolution_frame f = {
        .planes = to - from,
        .image = {p->image[0], p->image[1]},
        .from = {s->from * p->stride[0] - p->padding[0], -p->padding[1]},
        .rows = rows_copied(p, s->walk.rows),
        .width = p->width,
        .plane_step = p->plane};
    const int64_t at = (s->image * p->inputs + from) * area(p->image);
    j->tiles->frame[p->dtype](&f, element(p->dtype, j->x, at),
                              element(p->dtype, s->copy, from * p->plane));
}

static void convolution_copy_part(void *of, int part, int parts)
{
    const struct convolution_job *const j = of;
    const int64_t planes = j->plan->inputs, blocks = blocks_of(j->plan), each = planes + blocks;
    int64_t at = j->n * each * part / parts;
    for (const int64_t end = j->n * each * (part + 1) / parts; at < end;) {
        struct convolution_strip s;
        strip_at(j, at / each, &s);
        const int64_t from = at % each, to = end - at < each - from ? from + end - at : each;
        if (from < planes)
            convolution_copy_planes(j, &s, from, to < planes ? to : planes);
        for (int64_t b = from < planes ? 0 : from - planes; b < to - planes; b++)
            convolution_turn_block(j, &s, b);
        at += to - from;
    }
}

static void convolution_spread_part(void *of, int part, int parts)
{
    const struct convolution_job *const j = of;
    const struct convolution_plan *const p = j->plan;
    int64_t at = j->n * p->strip * part / parts;
    for (const int64_t end = j->n * p->strip * (part + 1) / parts; at < end;) {
        struct convolution_strip s;
        strip_at(j, at / p->strip, &s);
        const int64_t from = at % p->strip, left = end - at;
        const int64_t to = left < p->strip - from ? from + left : p->strip;
        const int64_t last = to < s.walk.rows ? to : s.walk.rows;
        if (from < last)
            j->tiles->spread[p->dtype](&s.walk,
                                       element(p->dtype, j->weights, s.group * j->group_size),
                                       s.copy, strip_of_y(j, &s), from, last);
        at += to - from;
    }
}

static void convolution_weigh_part(void *of, int part, int parts)
{
    const struct convolution_job *const j = of;
    const struct convolution_plan *const p = j->plan;
    const int64_t tiles = j->tiles->weigh_tiles[p->dtype](&j->walk);
    const int64_t from = tiles * part / parts, to = tiles * (part + 1) / parts;
    for (int64_t i = 0; i < j->n; i++) {
        struct convolution_strip s;
        strip_at(j, i, &s);
        j->tiles->weigh[p->dtype](&s.walk, s.turned, s.copy,
                                  element(p->dtype, j->out, s.group * j->group_size), from, to);
    }
}

/* The strips of a round. */
static void convolution_round(struct convolution_job *j)
{
    const struct convolution_plan *const p = j->plan;
    const size_t copied = (size_t)j->n * (p->copy_bytes + p->turned_bytes);
    const int64_t results = p->outputs * j->n * p->strip * p->other[1];
    const uint64_t bytes =
        (uint64_t)(results * p->inputs * area(j->walk.kernel)) * kernel_dtype_bytes(p->dtype);
    threads_run(threads_parts(threads_ns(copied, 2, 0)), convolution_copy_part, j);
    threads_run(threads_parts(bytes / PRODUCTS_A_NS),
                j->out ? convolution_weigh_part : convolution_spread_part, j);
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
    const int64_t turn = back ? window - 1 : 0;         /* where a window's first element is */
    struct convolution_job j = {.plan = &p,
                                .tiles = tiles,
                                .x = first,
                                .weights = weighs ? NULL : element(all->dtype, second, turn),
                                .y = weighs ? (void *)(uintptr_t)second : out,
                                .out = weighs ? out : NULL,
                                .groups = all->groups,
                                .group_size = all->o / all->groups * size,
                                .space = space,
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
    /* A thread alone has the copy of one strip in its cache. */
    const int64_t round = threads_parts(UINT64_MAX) > 1 ? p.round : 1;
    for (const int64_t end = all->n * all->groups * p.strips; j.first < end; j.first += round) {
        j.n = end - j.first < round ? end - j.first : round;
        convolution_round(&j);
    }
    return true;
}
