/* convolution_loops.h: tiles of a convolution's result and of its weights, in registers.
 *
 * A template like elementwise_loops.h, included by convolution_tiles_isa.c behind lanes.h for each
 * dtype. A tile is 6 x 2 vectors, which with what it reads fills 15 of 16 registers.
 */

/* Whole vectors, the last one over the one before it: stores of parts are slow. */
LANES_INLINE void ON(frame_row)(int64_t first, int64_t end, int64_t width, const REAL *x, REAL *to)
{
    int64_t q = first;
    for (int64_t k = 0; k < first; k++)
        to[k] = 0;
    for (; q + LANES <= end; q += LANES)
        ON(store)(to + q, ON(load)(x + q));
    if (q < end && end - first >= LANES) {
        ON(store)(to + end - LANES, ON(load)(x + end - LANES));
        q = end;
    }
    for (; q < end; q++)
        to[q] = x[q];
    for (; q < width; q++)
        to[q] = 0;
}

static void ON(convolution_frame)(const struct convolution_frame *f, const void *x, void *to)
{
    const REAL *image = x;
    REAL *copy = to;
    const int64_t left = -f->from[1], right = f->image[1] - f->from[1], width = f->width;
    const int64_t first = left < 0 ? 0 : left < width ? left : width;
    const int64_t end = right < first ? first : right < width ? right : width;
    for (int64_t p = 0; p < f->planes; p++) {
        for (int64_t r = 0; r < f->rows; r++) {
            const int64_t y = f->from[0] + r;
            const bool inside = y >= 0 && y < f->image[0] && first < end;
            const int64_t at = inside ? y * f->image[1] + f->from[1] : 0;
            ON(frame_row)
            (inside ? first : width, inside ? end : width, width, image + at, copy + r * width);
        }
        image += f->image[0] * f->image[1];
        copy += f->plane_step;
    }
}

/* R output channels x V vectors of one row, of which n elements are stored. taps: where in the copy
 * the elements of a window are. */
LANES_INLINE void ON(spread_tile)(int R, int V, const struct convolution_walk *t, int64_t inputs,
                                  const int64_t *taps, const REAL *a, const REAL *b, REAL *y,
                                  int64_t n, bool accumulate)
{
    ON(vec) sum[CONVOLUTION_TILE][CONVOLUTION_VECTORS];
    const int64_t area = t->kernel[0] * t->kernel[1], s = t->weight_output, step = t->weight_step;
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++)
            sum[r][v] = ON(splat)(0);
    for (int64_t c = 0; c < inputs; c++, a += t->weight_input, b += t->plane) {
        const REAL *w = a, *w3 = a + 3 * s;
        for (int64_t k = 0; k < area; k++, w += step, w3 += step) {
            const REAL *const x = b + taps[k];
            ON(vec) in[CONVOLUTION_VECTORS];
#pragma GCC unroll 2
            for (int v = 0; v < V; v++)
                in[v] = ON(load)(x + v * LANES);
#pragma GCC unroll 6
            for (int r = 0; r < R; r++) {
                const ON(vec) weight = ON(splat)(r < 3 ? w[r * s] : w3[(r - 3) * s]);
#pragma GCC unroll 2
                for (int v = 0; v < V; v++)
                    sum[r][v] = ON(lane_fma)(weight, in[v], sum[r][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) {
            REAL *at = y + r * t->result_plane + v * LANES;
            const int64_t left = n - v * LANES;
            ON(vec) all = sum[r][v];
            if (left >= LANES) {
                if (accumulate)
                    all += ON(load)(at);
                ON(store)(at, all);
            } else {
                if (accumulate)
                    all += ON(load_part)(at, left);
                ON(store_part)(at, all, left);
            }
        }
}

#define SPREAD(R)                                                                                  \
    static __attribute__((noinline)) void ON(spread_##R)(                                          \
        const struct convolution_walk *t, int64_t inputs, const int64_t *taps, const REAL *a,      \
        const REAL *b, REAL *y, bool accumulate)                                                   \
    {                                                                                              \
        int64_t left = t->width;                                                                   \
        for (; left > LANES; left -= 2 * LANES, b += 2 * LANES, y += 2 * LANES) {                  \
            const int64_t n = left < 2 * LANES ? left : 2 * LANES;                                 \
            ON(spread_tile)(R, 2, t, inputs, taps, a, b, y, n, accumulate);                        \
        }                                                                                          \
        if (left > 0)                                                                              \
            ON(spread_tile)(R, 1, t, inputs, taps, a, b, y, left, accumulate);                     \
    }
SPREAD(1)
SPREAD(2)
SPREAD(3)
SPREAD(4)
SPREAD(5)
SPREAD(6)
#undef SPREAD

static void ON(convolution_spread)(const struct convolution_walk *t, const void *weights,
                                   const void *copy, void *y, int64_t from, int64_t to)
{
    typedef void tile(const struct convolution_walk *, int64_t, const int64_t *, const REAL *,
                      const REAL *, REAL *, bool);
    static tile *const tiles[] = {NULL,         ON(spread_1), ON(spread_2), ON(spread_3),
                                  ON(spread_4), ON(spread_5), ON(spread_6)};
    int64_t taps[CONVOLUTION_WINDOW];
    const int64_t area = t->kernel[0] * t->kernel[1], each = CONVOLUTION_DEPTH / area;
    for (int64_t k = 0; k < area; k++)
        taps[k] = k / t->kernel[1] * t->tap[0] + k % t->kernel[1] * t->tap[1];
    for (int64_t c = 0; c < t->inputs; c += each) {
        const int64_t inputs = t->inputs - c < each ? t->inputs - c : each;
        const REAL *const w = (const REAL *)weights + c * t->weight_input;
        for (int64_t o = 0, n; o < t->outputs; o += n) {
            const int64_t left = t->outputs - o; /* tiles as equal as can be */
            const int64_t rest = (left + CONVOLUTION_TILE - 1) / CONVOLUTION_TILE;
            n = (left + rest - 1) / rest;
            for (int64_t r = from; r < to; r++)
                tiles[n](t, inputs, taps, w + o * t->weight_output,
                         (const REAL *)copy + c * t->plane + r * t->row,
                         (REAL *)y + r * t->width + o * t->result_plane, t->accumulate || c > 0);
        }
    }
}

/* Elements of the window at the places `at` of the copy x V vectors of output channels. */
LANES_INLINE void ON(weigh_tile)(int V, const struct convolution_walk *t, const REAL *turned,
                                 const REAL *copy, const int64_t at[CONVOLUTION_TILE], REAL *sums)
{
    ON(vec) sum[CONVOLUTION_TILE][CONVOLUTION_VECTORS];
    const int64_t column = t->column;
#pragma GCC unroll 6
    for (int k = 0; k < CONVOLUTION_TILE; k++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++)
            sum[k][v] = ON(splat)(0);
    for (int64_t r = 0; r < t->rows; r++) {
        const REAL *x0 = copy + at[0] + r * t->row, *x1 = copy + at[1] + r * t->row;
        const REAL *x2 = copy + at[2] + r * t->row, *x3 = copy + at[3] + r * t->row;
        const REAL *x4 = copy + at[4] + r * t->row, *x5 = copy + at[5] + r * t->row;
        const REAL *const end = turned + t->width * V * LANES;
        for (int64_t q = 0; turned < end; turned += V * LANES, q += column) {
            const REAL in[CONVOLUTION_TILE] = {x0[q], x1[q], x2[q], x3[q], x4[q], x5[q]};
            ON(vec) y[CONVOLUTION_VECTORS];
#pragma GCC unroll 2
            for (int v = 0; v < V; v++)
                y[v] = ON(load)(turned + v * LANES);
#pragma GCC unroll 6
            for (int k = 0; k < CONVOLUTION_TILE; k++)
#pragma GCC unroll 2
                for (int v = 0; v < V; v++)
                    sum[k][v] = ON(lane_fma)(ON(splat)(in[k]), y[v], sum[k][v]);
        }
    }
#pragma GCC unroll 6
    for (int k = 0; k < CONVOLUTION_TILE; k++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++)
            ON(store)(sums + (k * V + v) * LANES, sum[k][v]);
}

static int64_t ON(convolution_lanes)(int64_t outputs, int64_t o)
{
    return outputs - o > LANES ? 2 * LANES : LANES;
}

static int64_t ON(convolution_weigh_tiles)(const struct convolution_walk *t)
{
    const int64_t size = t->inputs * t->kernel[0] * t->kernel[1];
    return (t->outputs + 2 * LANES - 1) / (2 * LANES) *
           ((size + CONVOLUTION_TILE - 1) / CONVOLUTION_TILE);
}

static void ON(convolution_weigh)(const struct convolution_walk *t, const void *turned,
                                  const void *copy, void *weights, int64_t from, int64_t to)
{
    REAL sums[CONVOLUTION_TILE * CONVOLUTION_VECTORS * LANES];
    const int64_t area = t->kernel[0] * t->kernel[1], size = t->inputs * area;
    const int64_t tiles = (size + CONVOLUTION_TILE - 1) / CONVOLUTION_TILE;
    for (int64_t tile = from; tile < to; tile++) {
        const int64_t o = tile / tiles * 2 * LANES, first = tile % tiles * CONVOLUTION_TILE;
        const int64_t lanes = ON(convolution_lanes)(t->outputs, o);
        const int64_t outputs = t->outputs - o < lanes ? t->outputs - o : lanes;
        const int64_t n = size - first < CONVOLUTION_TILE ? size - first : CONVOLUTION_TILE;
        int64_t at[CONVOLUTION_TILE];
        for (int64_t k = 0; k < CONVOLUTION_TILE; k++) {
            const int64_t e = k < n ? first + k : first, in = e % area;
            at[k] =
                e / area * t->plane + in / t->kernel[1] * t->tap[0] + in % t->kernel[1] * t->tap[1];
        }
        const REAL *const block = (const REAL *)turned + o * t->rows * t->width;
        if (lanes > LANES)
            ON(weigh_tile)(2, t, block, copy, at, sums);
        else
            ON(weigh_tile)(1, t, block, copy, at, sums);
        REAL *const w = (REAL *)weights + o * t->weight_output + first;
        for (int64_t r = 0; r < outputs; r++)
            for (int64_t k = 0; k < n; k++)
                w[r * t->weight_output + k] += sums[k * lanes + r];
    }
}

static void ON(convolution_turn)(int64_t outputs, int64_t n, int64_t plane, const void *y,
                                 void *turned)
{
    const int64_t side = LANES_SQUARE;
    REAL *to = turned;
    for (int64_t o = 0, lanes; o < outputs; o += lanes, to += n * lanes) {
        lanes = ON(convolution_lanes)(outputs, o);
        const REAL *const from = (const REAL *)y + o * plane;
        const int64_t there = outputs - o < lanes ? outputs - o : lanes;
        for (int64_t q = 0; q < n; q += side) {
            const int64_t end = n - q < side ? n : q + side;
            const int64_t squares = end - q < side ? 0 : there / side * side;
            for (int64_t k = 0; k < squares; k += side)
                ON(square_turn)(from + k * plane + q, plane, to + q * lanes + k, lanes);
            for (int64_t i = q; i < end; i++)
                for (int64_t k = squares; k < lanes; k++)
                    to[i * lanes + k] = k < there ? from[k * plane + i] : 0;
        }
    }
}
