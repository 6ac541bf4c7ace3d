/* gemm_panels_loops.h: the loops of gemm_panels.h for one instruction set and one dtype.
 *
 * A template, as lanes.h, which it stands on. Four rows and three vectors of columns are twelve
 * sums, as many as sixteen registers hold beside what is read, and more than two multiplications a
 * cycle have to wait for.
 */

#undef LANES_SQUARE
#define LANES_SQUARE (LANES_DTYPE == 32 ? 8 : 4) /* elements of 256 bits */

/* Columns of b [n,k], as many as a square is wide, become rows; those beyond `columns` are 0. */
static void ON(panels_square)(int k, int columns, const REAL *b, int64_t leading, REAL *panel,
                              int64_t width)
{
    int at = 0;
#if LANES_ISA > 1 && LANES_DTYPE == 64
    for (; columns == LANES_SQUARE && at + 4 <= k; at += 4, panel += 4 * width) {
        const __m256d r0 = _mm256_loadu_pd(b + at), r1 = _mm256_loadu_pd(b + leading + at),
                      r2 = _mm256_loadu_pd(b + 2 * leading + at),
                      r3 = _mm256_loadu_pd(b + 3 * leading + at);
        const __m256d t0 = _mm256_unpacklo_pd(r0, r1), t1 = _mm256_unpackhi_pd(r0, r1),
                      t2 = _mm256_unpacklo_pd(r2, r3), t3 = _mm256_unpackhi_pd(r2, r3);
        _mm256_storeu_pd(panel, _mm256_permute2f128_pd(t0, t2, 0x20));
        _mm256_storeu_pd(panel + width, _mm256_permute2f128_pd(t1, t3, 0x20));
        _mm256_storeu_pd(panel + 2 * width, _mm256_permute2f128_pd(t0, t2, 0x31));
        _mm256_storeu_pd(panel + 3 * width, _mm256_permute2f128_pd(t1, t3, 0x31));
    }
#elif LANES_ISA > 1
    for (; columns == LANES_SQUARE && at + 8 <= k; at += 8, panel += 8 * width) {
        __m256 r[8], t[8];
        for (int i = 0; i < 8; i++)
            r[i] = _mm256_loadu_ps(b + i * leading + at);
        for (int i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        for (int i = 0; i < 8; i += 4)
            for (int j = 0; j < 2; j++) {
                r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
                r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
            }
        for (int i = 0; i < 4; i++) {
            _mm256_storeu_ps(panel + i * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
            _mm256_storeu_ps(panel + (i + 4) * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
        }
    }
#endif
    for (; at < k; at++, panel += width)
        for (int j = 0; j < LANES_SQUARE; j++)
            panel[j] = j < columns ? b[j * leading + at] : 0;
}

/* Rows of b [k,n]; of the last vector `rest` columns, 0: all. */
LANES_INLINE void ON(panels_rows)(int k, const REAL *b, int64_t leading, int rest, REAL *panel,
                                  const int vectors)
{
    for (int at = 0; at < k; at++, b += leading, panel += vectors * LANES) {
        const bool last = rest > 0 && at == k - 1;
        for (int v = 0; v < vectors - last; v++)
            ON(store)(panel + v * LANES, ON(load)(b + v * LANES));
        if (last) {
            REAL *to = panel + (vectors - 1) * LANES;
            ON(store)(to, ON(splat)(0));
            ON(store_part)(to, ON(load_part)(b + (vectors - 1) * LANES, rest), rest);
        }
    }
}

static void ON(panels_pack)(const struct gemm_panels *all, int depth, int k, int column,
                            int vectors, int rest, REAL *panel)
{
    const REAL *b = all->b;
    const int columns = rest > 0 ? (vectors - 1) * LANES + rest : vectors * LANES;
    if (all->b_transposed) {
        b += column * all->b_leading + depth;
        for (int j = 0; j < vectors * LANES; j += LANES_SQUARE) {
            const int left = columns - j;
            const int wide = left < 0 ? 0 : left < LANES_SQUARE ? left : LANES_SQUARE;
            ON(panels_square)(k, wide, b, all->b_leading, panel + j, vectors * LANES);
            if (left > LANES_SQUARE)
                b += LANES_SQUARE * all->b_leading;
        }
        return;
    }
    b += depth * all->b_leading + column;
    if (vectors == 3)
        ON(panels_rows)(k, b, all->b_leading, rest, panel, 3);
    else if (vectors == 2)
        ON(panels_rows)(k, b, all->b_leading, rest, panel, 2);
    else
        ON(panels_rows)(k, b, all->b_leading, rest, panel, 1);
}

/* `rows` rows of the result, `vectors` wide. Unless it is NULL, b is the second operand where it
 * lies, and its rows are copied to the panel as they are multiplied: they come from a far cache
 * meanwhile. */
LANES_INLINE void ON(panels_tile)(const struct gemm_panels *all, const REAL *a, const REAL *b,
                                  REAL *panel, REAL *c, int rest, const int rows, const int vectors)
{
    const bool copies = b != NULL, add = all->accumulate;
    ON(vec) sum[GEMM_PANELS_ROWS][GEMM_PANELS_VECTORS];
    const int64_t deep = all->a_deep, step = copies ? all->b_leading : vectors * LANES;
    const REAL *from[GEMM_PANELS_ROWS];
    for (int i = 0; i < rows; i++) {
        from[i] = a + i * all->a_row;
        __builtin_prefetch(c + i * all->c_leading, 1);
        for (int v = 0; v < vectors; v++)
            sum[i][v] = ON(splat)(0);
    }
    const REAL *row = copies ? b : panel;
    for (int at = 0; at < all->k; at++, row += step) {
        ON(vec) x[GEMM_PANELS_VECTORS];
        for (int v = 0; v < vectors; v++)
            x[v] = ON(load)(row + v * LANES);
        for (int v = 0; v < vectors && copies; v++)
            ON(store)(panel + v * LANES, x[v]);
        panel += vectors * LANES;
        for (int i = 0; i < rows; i++) {
            const ON(vec) w = ON(splat)(*from[i]);
            from[i] += deep;
            for (int v = 0; v < vectors; v++)
                sum[i][v] = ON(lane_fma)(w, x[v], sum[i][v]);
        }
    }
    for (int i = 0; i < rows; i++, c += all->c_leading)
        for (int v = 0; v < vectors; v++) {
            REAL *to = c + v * LANES;
            if (v < vectors - 1 || rest == 0)
                ON(store)(to, add ? ON(load)(to) + sum[i][v] : sum[i][v]);
            else
                ON(store_part)(to, add ? ON(load_part)(to, rest) + sum[i][v] : sum[i][v], rest);
        }
}

/* All rows by one panel; b is the second operand where it lies, or NULL if it was copied. */
LANES_INLINE void ON(panels_panel)(const struct gemm_panels *all, const REAL *a, const REAL *b,
                                   REAL *panel, REAL *c, int rest, const int vectors)
{
    enum { ROWS = GEMM_PANELS_ROWS };
    int left = all->m;
    if (b != NULL) {
        ON(panels_tile)(all, a, b, panel, c, 0, ROWS, vectors);
        left -= ROWS, a += ROWS * all->a_row, c += ROWS * all->c_leading;
    }
    for (; left >= ROWS; left -= ROWS, a += ROWS * all->a_row, c += ROWS * all->c_leading)
        ON(panels_tile)(all, a, NULL, panel, c, rest, ROWS, vectors);
    if (left == 3)
        ON(panels_tile)(all, a, NULL, panel, c, rest, 3, vectors);
    else if (left == 2)
        ON(panels_tile)(all, a, NULL, panel, c, rest, 2, vectors);
    else if (left == 1)
        ON(panels_tile)(all, a, NULL, panel, c, rest, 1, vectors);
}

static void ON(gemm_panels)(const struct gemm_panels *all)
{
    REAL panel[GEMM_PANELS_DEPTH * GEMM_PANELS_VECTORS * LANES] __attribute__((aligned(64)));
    const int pieces = (all->k + GEMM_PANELS_DEPTH - 1) / GEMM_PANELS_DEPTH;
    const int deep = (all->k + pieces - 1) / pieces;
    for (int depth = 0; depth < all->k; depth += deep) {
        const int k = all->k - depth < deep ? all->k - depth : deep;
        const REAL *a = (const REAL *)all->a + depth * all->a_deep;
        struct gemm_panels piece = *all;
        piece.k = k;
        piece.accumulate = all->accumulate || depth > 0;
        for (int column = 0; column < all->n;) {
            const int left = all->n - column, whole = (left + LANES - 1) / LANES;
            /* One vector alone would wait for its four sums. */
            const int vectors = whole == 4 ? 2 : whole < 3 ? whole : 3;
            const int rest = left < vectors * LANES ? left % LANES : 0;
            REAL *c = (REAL *)all->c + column;
            const REAL *b = NULL;
            if (rest == 0 && !all->b_transposed && all->m >= GEMM_PANELS_ROWS)
                b = (const REAL *)all->b + depth * all->b_leading + column;
            else
                ON(panels_pack)(all, depth, k, column, vectors, rest, panel);
            if (vectors == 3)
                ON(panels_panel)(&piece, a, b, panel, c, rest, 3);
            else if (vectors == 2)
                ON(panels_panel)(&piece, a, b, panel, c, rest, 2);
            else
                ON(panels_panel)(&piece, a, b, panel, c, rest, 1);
            column += vectors * LANES;
        }
    }
}
