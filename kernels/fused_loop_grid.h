/* fused_loop_grid.h: stencils on two or three dimensions, for one instruction set.
 *
 * Included by fused_loop_isa.c. A row of results is a sum of rows of points, each moved by a tap
 * and times its weight, and is computed a part at a time. Two dimensions are three, the first of
 * extent one.
 *
 * Invariant: each result adds its taps in their order.
 */
#ifndef FUSED_LOOP_GRID_H
#define FUSED_LOOP_GRID_H

/* Columns from..end of a row of results, and where those of a tap lie: column j + shift. */
struct span {
    int64_t from, end, shift;
};

enum { GRID_SPANS = 3 };

/* Extent of the results in dimension d, and what the first tap is before a point. */
INLINE int64_t grid_extent(const struct kernel_grid *g, int d)
{
    const int64_t m = g->edge == KERNEL_EDGE_SHRINK ? g->n[d] - g->k[d] + 1 : g->n[d];
    return m > 0 ? m : 0;
}

INLINE int64_t grid_before(const struct kernel_grid *g, int d)
{
    return g->edge == KERNEL_EDGE_SHRINK ? 0 : g->k[d] / 2;
}

/* Which row a tap of a row reads, in dimension d; -1: none. */
INLINE int64_t grid_row(const struct kernel_grid *g, int d, int64_t i, int64_t tap)
{
    const int64_t at = i + tap - grid_before(g, d), n = g->n[d];
    if (at >= 0 && at < n)
        return at;
    return g->edge == KERNEL_EDGE_WRAP ? (at < 0 ? at + n : at - n) : -1;
}

/* Where the stencil fits in dimension d: from..end. */
INLINE struct span grid_inside(const struct kernel_grid *g, int d)
{
    const int64_t before = grid_before(g, d), n = g->n[d], behind = g->k[d] - 1 - before;
    if (g->edge != KERNEL_EDGE_KEEP)
        return (struct span){0, grid_extent(g, d), 0};
    return n >= g->k[d] ? (struct span){before, n - behind, 0} : (struct span){0, 0, 0};
}

INLINE struct span span_within(int64_t from, int64_t end, int64_t shift, struct span in)
{
    return (struct span){from > in.from ? from : in.from, end < in.end ? end : in.end, shift};
}

/* The columns within `in` that a tap of column `tap` reaches; how many spans they are. */
INLINE int grid_spans(const struct kernel_grid *g, int64_t tap, struct span in, struct span *spans)
{
    const int64_t shift = tap - grid_before(g, 2), n = g->n[2];
    const int64_t from = shift < 0 ? -shift : 0, end = shift > 0 ? n - shift : n;
    spans[0] = span_within(from, end, shift, in);
    if (g->edge != KERNEL_EDGE_WRAP)
        return 1;
    spans[1] = span_within(0, from, shift + n, in);
    spans[2] = span_within(end, n, shift - n, in);
    return GRID_SPANS;
}

/* sum[j - in.from] += w x[j + shift] */
INLINE void span_add(struct span s, int64_t from, double w, const double *x, int64_t sx,
                     double *sum)
{
    for (int64_t j = s.from; j < s.end; j++)
        sum[j - from] += w * x[(j + s.shift) * sx];
}

/* A part of row (i0, i1) of the results, where the stencil fits. */
static void grid_part(const struct kernel_fused_loop *s, const struct kernel_grid *g, int64_t i0,
                      int64_t i1, struct span in, double *sum)
{
    const double *w = s->x[1];
    memset(sum, 0, (size_t)(in.end - in.from) * sizeof *sum);
    for (int64_t a = 0; a < g->k[0]; a++)
        for (int64_t b = 0; b < g->k[1]; b++) {
            const int64_t r0 = grid_row(g, 0, i0, a), r1 = grid_row(g, 1, i1, b);
            if (r0 < 0 || r1 < 0) {
                w += g->k[2] * s->stride[1];
                continue;
            }
            const double *x = s->x[0] + (r0 * g->n[1] + r1) * g->n[2] * s->stride[0];
            for (int64_t c = 0; c < g->k[2]; c++, w += s->stride[1]) {
                struct span spans[GRID_SPANS];
                const int n = *w == 0 ? 0 : grid_spans(g, c, in, spans);
                for (int q = 0; q < n; q++)
                    if (s->stride[0] == 1)
                        span_add(spans[q], in.from, *w, x, 1, sum);
                    else
                        span_add(spans[q], in.from, *w, x, 2, sum);
            }
        }
}

INLINE bool grid_fits(const struct kernel_grid *g, int d, int64_t i)
{
    const struct span in = grid_inside(g, d);
    return i >= in.from && i < in.end;
}

/* What is added to a row: rows that begin at x[0], by weights. */
enum { MOST_TAPS = 64 };

/* The taps of a stencil whose weights are not 0, in their order. */
struct tap {
    int64_t at[3];
    double w;
};

struct stencil {
    int n;
    struct tap tap[MOST_TAPS];
};

struct taps {
    int n;
    double w[MOST_TAPS];
    const double *x[MOST_TAPS];
};

INLINE vec taps_vector(const struct taps *t, int64_t j, int64_t sx)
{
    vec sum = vec_splat(0);
    for (int k = 0; k < t->n; k++)
        sum = vec_add_product(sum, vec_splat(t->w[k]), vec_load_strided(t->x[k] + j * sx, sx));
    return sum;
}

/* y[j] = the sum of all, or y[j] += where it is added. Two vectors at once, as each addition waits
 * for the one before; the last columns are those of a vector that ends with them. */
INLINE void taps_sum(const struct taps *t, int64_t n, int64_t sx, bool add, double *y)
{
    int64_t j = 0;
    for (; j + 2 * WIDTH <= n; j += 2 * WIDTH) {
        vec a = vec_splat(0), b = a;
        for (int k = 0; k < t->n; k++) {
            const vec w = vec_splat(t->w[k]);
            const double *x = t->x[k] + j * sx;
            a = vec_add_product(a, w, vec_load_strided(x, sx));
            b = vec_add_product(b, w, vec_load_strided(x + WIDTH * sx, sx));
        }
        vec_store(y + j, add ? vec_add(vec_load(y + j), a) : a);
        vec_store(y + j + WIDTH, add ? vec_add(vec_load(y + j + WIDTH), b) : b);
    }
    if (j + WIDTH <= n) {
        const vec sum = taps_vector(t, j, sx);
        vec_store(y + j, add ? vec_add(vec_load(y + j), sum) : sum);
        j += WIDTH;
    }
    if (j < n && n >= WIDTH) {
        double last[WIDTH];
        vec_store(last, taps_vector(t, n - WIDTH, sx));
        for (; j < n; j++)
            y[j] = add ? y[j] + last[j - (n - WIDTH)] : last[j - (n - WIDTH)];
    }
    for (; j < n; j++) {
        double sum = 0;
        for (int k = 0; k < t->n; k++) {
            __asm__("" : "+r"(k)); /* keeps compilers from making vectors of it: they are few */
            sum += t->w[k] * t->x[k][j * sx];
        }
        y[j] = add ? y[j] + sum : sum;
    }
}

INLINE bool grid_has_few_taps(const struct kernel_grid *g)
{
    return g->k[0] <= MOST_TAPS && g->k[1] <= MOST_TAPS && g->k[2] <= MOST_TAPS &&
           g->k[0] * g->k[1] * g->k[2] <= MOST_TAPS;
}

/* Of a stencil that has few taps; of others: none. */
static void stencil_read(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                         struct stencil *stencil)
{
    const double *w = s->x[1];
    stencil->n = 0;
    for (int64_t a = 0; grid_has_few_taps(g) && a < g->k[0]; a++)
        for (int64_t b = 0; b < g->k[1]; b++)
            for (int64_t c = 0; c < g->k[2]; c++, w += s->stride[1])
                if (*w != 0)
                    stencil->tap[stencil->n++] = (struct tap){{a, b, c}, *w};
}

/* The taps of row (i0, i1) of the results, beginning at its column `from`. */
static void grid_taps(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                      const struct stencil *stencil, int64_t i0, int64_t i1, int64_t from,
                      struct taps *taps)
{
    taps->n = 0;
    for (const struct tap *tap = stencil->tap; tap < stencil->tap + stencil->n; tap++) {
        const int64_t r0 = grid_row(g, 0, i0, tap->at[0]), r1 = grid_row(g, 1, i1, tap->at[1]);
        const int64_t column = from + tap->at[2] - grid_before(g, 2);
        if (r0 < 0 || r1 < 0)
            continue;
        taps->w[taps->n] = tap->w;
        taps->x[taps->n++] = s->x[0] + ((r0 * g->n[1] + r1) * g->n[2] + column) * s->stride[0];
    }
}

/* Columns where all taps are points of the row, within `in`. */
INLINE struct span grid_middle(const struct kernel_grid *g, struct span in)
{
    const int64_t before = grid_before(g, 2), behind = g->k[2] - 1 - before;
    struct span middle = span_within(before, g->n[2] - behind, 0, in);
    if (!grid_has_few_taps(g) || middle.from >= middle.end)
        middle = (struct span){in.end, in.end, 0};
    return middle;
}

/* A part of row (i0, i1) of the results, where the stencil fits. */
static void grid_part_value(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                            const struct stencil *stencil, int64_t i0, int64_t i1, struct span part,
                            struct span middle, double *y)
{
    double sum[CHUNK];
    struct taps taps;
    const struct span within = span_within(part.from, part.end, 0, middle);
    if (within.from == part.from && within.end == part.end) {
        grid_taps(s, g, stencil, i0, i1, part.from, &taps);
        if (s->stride[0] == 1)
            taps_sum(&taps, part.end - part.from, 1, false, sum);
        else
            taps_sum(&taps, part.end - part.from, 2, false, sum);
    } else {
        grid_part(s, g, i0, i1, part, sum);
    }
    if (s->y_stride == 2)
        for (int64_t j = part.from; j < part.end; j++)
            y[j * 2] = sum[j - part.from];
    else
        for (int64_t j = part.from; j < part.end; j++)
            y[j * s->y_stride] = sum[j - part.from];
}

static void grid_row_value(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                           const struct stencil *stencil, int64_t i0, int64_t i1)
{
    const int64_t m = grid_extent(g, 2), sx = s->stride[0], sy = s->y_stride;
    double *y = s->y + (i0 * grid_extent(g, 1) + i1) * m * sy;
    const struct span none = {m, m, 0};
    const struct span in = grid_fits(g, 0, i0) && grid_fits(g, 1, i1) ? grid_inside(g, 2) : none;
    const struct span middle = grid_middle(g, in);
    for (int64_t from = in.from, end; from < in.end; from = end) {
        end = from + CHUNK < in.end ? from + CHUNK : in.end;
        if (from < middle.from && end > middle.from)
            end = middle.from;
        else if (from < middle.end && end > middle.end)
            end = middle.end;
        grid_part_value(s, g, stencil, i0, i1, (struct span){from, end, 0}, middle, y);
    }
    if (g->edge != KERNEL_EDGE_KEEP)
        return;
    const double *x = s->x[0] + (i0 * g->n[1] + i1) * m * sx;
    for (int64_t j = 0; j < in.from; j++)
        y[j * sy] = x[j * sx];
    for (int64_t j = in.end; j < m; j++)
        y[j * sy] = x[j * sx];
}

static void grid_stencil_value(const struct kernel_fused_loop *s)
{
    const struct kernel_grid *g = s->own;
    struct stencil stencil;
    stencil_read(s, g, &stencil);
    for (int64_t i0 = 0; i0 < grid_extent(g, 0); i0++)
        for (int64_t i1 = 0; i1 < grid_extent(g, 1); i1++)
            grid_row_value(s, g, &stencil, i0, i1);
    if (s->saved)
        memcpy(s->saved, g, sizeof *g);
}

/* What a span gives to the points that it reads, and to its weight. */
INLINE double span_back(struct span s, double w, const double *x, const double *dy, double *dx)
{
    double sum = 0;
    for (int64_t j = s.from; dx && w != 0 && j < s.end; j++)
        dx[j + s.shift] += dy[j] == 0 ? 0 : w * dy[j];
    for (int64_t j = s.from; x && j < s.end; j++)
        sum += dy[j] == 0 ? 0 : x[j + s.shift] * dy[j];
    return sum;
}

/* dy: of row (i0, i1), where the stencil fits in `in`. */
static void grid_row_back(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                          int64_t i0, int64_t i1, struct span in, const double *dy)
{
    int64_t tap = 0;
    for (int64_t a = 0; a < g->k[0]; a++)
        for (int64_t b = 0; b < g->k[1]; b++) {
            const int64_t r0 = grid_row(g, 0, i0, a), r1 = grid_row(g, 1, i1, b);
            const int64_t row = (r0 * g->n[1] + r1) * g->n[2];
            if (r0 < 0 || r1 < 0) {
                tap += g->k[2];
                continue;
            }
            for (int64_t c = 0; c < g->k[2]; c++, tap++) {
                struct span spans[GRID_SPANS];
                const int n = grid_spans(g, c, in, spans);
                for (int q = 0; q < n; q++) {
                    const double sum = span_back(spans[q], s->dx[0] ? s->x[1][tap] : 0,
                                                 s->dx[1] ? s->x[0] + row : NULL, dy,
                                                 s->dx[0] ? s->dx[0] + row : NULL);
                    if (s->dx[1])
                        s->dx[1][tap] += sum;
                }
            }
        }
}

/* The results that a tap of a point goes to, in dimension d; -1: none. */
INLINE int64_t grid_result(const struct kernel_grid *g, int d, int64_t point, int64_t tap)
{
    const struct span in = grid_inside(g, d);
    int64_t at = point - tap + grid_before(g, d);
    if (g->edge == KERNEL_EDGE_WRAP)
        at = at < 0 ? at + g->n[d] : at < g->n[d] ? at : at - g->n[d];
    return at >= in.from && at < in.end ? at : -1;
}

/* Weights by which 0 is 0. */
static bool grid_is_finite(const struct kernel_fused_loop *s, const struct kernel_grid *g)
{
    for (int64_t i = 0; i < g->k[0] * g->k[1] * g->k[2]; i++)
        if (!isfinite(s->x[1][i]))
            return false;
    return true;
}

/* d x of columns from..end by one tap, one by one. */
INLINE void points_gather(const struct kernel_grid *g, int64_t tap, double w, const double *dy,
                          int64_t from, int64_t end, double *dx)
{
    const struct span in = grid_inside(g, 2);
    const int64_t shift = tap - grid_before(g, 2);
    const bool wraps = g->edge == KERNEL_EDGE_WRAP;
    if (!wraps && from < in.from + shift)
        from = in.from + shift;
    if (!wraps && end > in.end + shift)
        end = in.end + shift;
    for (int64_t p = from; p < end; p++) {
        __asm__("" : "+r"(p)); /* keeps compilers from making vectors of it: they are few */
        dx[p] += w * dy[wraps ? grid_result(g, 2, p, tap) : p - shift];
    }
}

/* Asks for a row of d x that is to come: it may have been cleared past the cache, and what fetches
 * by itself stops at the end of each page. Long rows would drive out what is between. */
enum { ROWS_AHEAD = 2, FETCHED_MOST = 1024 };

INLINE void row_fetch(const double *dx, int64_t n)
{
    for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof *dx)
        __builtin_prefetch(dx + j, 1);
}

/* d x of row (r0, r1) of the points: each takes from its results. */
static void grid_row_gather(const struct kernel_fused_loop *s, const struct kernel_grid *g,
                            const struct stencil *stencil, int64_t r0, int64_t r1)
{
    const int64_t m1 = grid_extent(g, 1), m = grid_extent(g, 2), n = g->n[2];
    const int64_t before = grid_before(g, 2), behind = g->k[2] - 1 - before;
    const struct span in = grid_inside(g, 2);
    int64_t from = in.from + behind, end = in.end - before;
    struct taps taps;
    taps.n = 0;
    if (from >= end)
        from = end = n;
    const int64_t row = r0 * g->n[1] + r1;
    double *dx = s->dx[0] + row * n;
    if (n <= FETCHED_MOST && row + ROWS_AHEAD < g->n[0] * g->n[1])
        row_fetch(dx + ROWS_AHEAD * n, n);
    for (const struct tap *tap = stencil->tap; tap < stencil->tap + stencil->n; tap++) {
        const int64_t i0 = grid_result(g, 0, r0, tap->at[0]);
        const int64_t i1 = grid_result(g, 1, r1, tap->at[1]);
        if (i0 < 0 || i1 < 0)
            continue;
        const double *dy = s->dy + (i0 * m1 + i1) * m;
        taps.w[taps.n] = tap->w;
        taps.x[taps.n++] = dy + from + before - tap->at[2];
        points_gather(g, tap->at[2], tap->w, dy, 0, from, dx);
        points_gather(g, tap->at[2], tap->w, dy, end, n, dx);
    }
    taps_sum(&taps, end - from, 1, true, dx + from);
}

static void grid_stencil_pullback(const struct kernel_fused_loop *s)
{
    struct kernel_grid g;
    memcpy(&g, s->saved, sizeof g);
    struct kernel_fused_loop by_result = *s;
    if (s->dx[0] && grid_has_few_taps(&g) && grid_is_finite(s, &g)) {
        struct stencil stencil;
        stencil_read(s, &g, &stencil);
        for (int64_t i0 = 0; i0 < g.n[0]; i0++)
            for (int64_t i1 = 0; i1 < g.n[1]; i1++)
                grid_row_gather(s, &g, &stencil, i0, i1);
        by_result.dx[0] = NULL;
    }
    const int64_t m0 = grid_extent(&g, 0), m1 = grid_extent(&g, 1), m = grid_extent(&g, 2);
    for (int64_t i0 = 0; i0 < m0; i0++)
        for (int64_t i1 = 0; i1 < m1; i1++) {
            const struct span none = {m, m, 0};
            const struct span in =
                grid_fits(&g, 0, i0) && grid_fits(&g, 1, i1) ? grid_inside(&g, 2) : none;
            const double *dy = s->dy + (i0 * m1 + i1) * m;
            double *dx = s->dx[0] ? s->dx[0] + (i0 * g.n[1] + i1) * m : NULL;
            if (by_result.dx[0] || by_result.dx[1])
                grid_row_back(&by_result, &g, i0, i1, in, dy);
            for (int64_t j = 0; dx && g.edge == KERNEL_EDGE_KEEP && j < in.from; j++)
                dx[j] += dy[j];
            for (int64_t j = in.end; dx && g.edge == KERNEL_EDGE_KEEP && j < m; j++)
                dx[j] += dy[j];
        }
}

#endif
