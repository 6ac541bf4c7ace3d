/* gemm_panels_loops.h: the loops of gemm_panels.h for one instruction set and one dtype.
 *
 * A template, as lanes.h, which it stands on. Four rows and three vectors of columns are twelve
 * sums, as many as sixteen registers hold beside what is read, and more than two multiplications a
 * cycle have to wait for.
 */

/* Columns of b [n,k], as many as a square is wide, become rows; those beyond `columns` are 0. */
static void ON(panels_square)(int k, int columns, const REAL *b, int64_t leading, REAL *panel,
                              int64_t width)
{
    int at = 0;
    for (; columns == LANES_SQUARE && at + LANES_SQUARE <= k;
         at += LANES_SQUARE, panel += LANES_SQUARE * width)
        ON(square_turn)(b + at, leading, panel, width);
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

/* `rows` rows of the result from row and column on, `vectors` wide. Unless it is NULL, b is the
 * second operand where it lies, and its rows are copied to the panel as they are multiplied: they
 * come from a far cache meanwhile. What the next panel needs is asked for: it lies beside this one
 * in rows that may be pages apart, which no processor foresees. Likewise its rows of b, `next`. */
LANES_INLINE void ON(panels_tile)(const struct gemm_panels *all, int row, int column, const REAL *b,
                                  const REAL *next, REAL *panel, int rest, const int rows,
                                  const int vectors)
{
    const bool copies = b != NULL, add = all->start != NULL;
    const REAL *const a = (const REAL *)all->a + row * all->a_row;
    REAL *c = (REAL *)all->c + row * all->c_leading + column;
    const REAL *start = add ? (const REAL *)all->start + row * all->start_leading + column : c;
    const int64_t wide = (int64_t)vectors * LANES;
    ON(vec) sum[GEMM_PANELS_ROWS][GEMM_PANELS_VECTORS];
    const int64_t deep = all->a_deep, step = copies ? all->b_leading : wide;
    const REAL *from[GEMM_PANELS_ROWS];
    for (int i = 0; i < rows; i++) {
        from[i] = a + i * all->a_row;
        const REAL *const to = c + i * all->c_leading + wide;
        const REAL *const begin = start + i * all->start_leading + wide;
        __builtin_prefetch(to, 1);
        __builtin_prefetch(to + wide - 1, 1);
        if (start != c) {
            __builtin_prefetch(begin);
            __builtin_prefetch(begin + wide - 1);
        }
        for (int v = 0; v < vectors; v++)
            sum[i][v] = ON(splat)(0);
    }
    const REAL *from_b = copies ? b : panel;
    for (int at = 0; at < all->k; at++, from_b += step) {
        ON(vec) x[GEMM_PANELS_VECTORS];
        for (int v = 0; v < vectors; v++)
            x[v] = ON(load)(from_b + v * LANES);
        for (int v = 0; v < vectors && copies; v++)
            ON(store)(panel + v * LANES, x[v]);
        panel += wide;
        if (next != NULL) {
            __builtin_prefetch(next);
            __builtin_prefetch(next + wide - 1);
            next += all->b_leading;
        }
        for (int i = 0; i < rows; i++) {
            const ON(vec) w = ON(splat)(*from[i]);
            from[i] += deep;
            for (int v = 0; v < vectors; v++)
                sum[i][v] = ON(lane_fma)(w, x[v], sum[i][v]);
        }
    }
    for (int i = 0; i < rows; i++, c += all->c_leading, start += all->start_leading)
        for (int v = 0; v < vectors; v++) {
            const REAL *const from_c = start + v * LANES;
            REAL *const to = c + v * LANES;
            if (v < vectors - 1 || rest == 0)
                ON(store)(to, add ? ON(load)(from_c) + sum[i][v] : sum[i][v]);
            else
                ON(store_part)(to, add ? ON(load_part)(from_c, rest) + sum[i][v] : sum[i][v], rest);
        }
}

/* All rows by one panel; b is the second operand where it lies, or NULL if it was copied. */
LANES_INLINE void ON(panels_panel)(const struct gemm_panels *all, int column, const REAL *b,
                                   REAL *panel, int rest, const int vectors)
{
    enum { ROWS = GEMM_PANELS_ROWS };
    const int m = all->m;
    int row = 0;
    if (b != NULL) {
        ON(panels_tile)(all, 0, column, b, NULL, panel, 0, ROWS, vectors);
        row = ROWS;
    }
    if (b != NULL && m >= 2 * ROWS && all->n - column > vectors * LANES) {
        ON(panels_tile)(all, ROWS, column, NULL, b + vectors * LANES, panel, 0, ROWS, vectors);
        row = 2 * ROWS;
    }
    for (; row + ROWS <= m; row += ROWS)
        ON(panels_tile)(all, row, column, NULL, NULL, panel, rest, ROWS, vectors);
    if (m - row == 3)
        ON(panels_tile)(all, row, column, NULL, NULL, panel, rest, 3, vectors);
    else if (m - row == 2)
        ON(panels_tile)(all, row, column, NULL, NULL, panel, rest, 2, vectors);
    else if (m - row == 1)
        ON(panels_tile)(all, row, column, NULL, NULL, panel, rest, 1, vectors);
}

static void ON(gemm_panels)(const struct gemm_panels *all)
{
    enum { DEPTH = GEMM_PANELS_BYTES / (GEMM_PANELS_VECTORS * LANES_BYTES) };
    REAL panel[DEPTH * GEMM_PANELS_VECTORS * LANES] __attribute__((aligned(64)));
    const int pieces = (all->k + DEPTH - 1) / DEPTH;
    const int deep = (all->k + pieces - 1) / pieces;
    for (int depth = 0; depth < all->k; depth += deep) {
        const int k = all->k - depth < deep ? all->k - depth : deep;
        struct gemm_panels piece = *all;
        piece.a = (const REAL *)all->a + depth * all->a_deep;
        piece.k = k;
        if (depth > 0) {
            piece.start = all->c;
            piece.start_leading = all->c_leading;
        }
        for (int column = 0; column < all->n;) {
            const int left = all->n - column, whole = (left + LANES - 1) / LANES;
            /* One vector alone would wait for its four sums. */
            const int vectors = whole == 4 ? 2 : whole < 3 ? whole : 3;
            const int rest = left < vectors * LANES ? left % LANES : 0;
            const REAL *b = NULL;
            if (rest == 0 && !all->b_transposed && all->m >= GEMM_PANELS_ROWS)
                b = (const REAL *)all->b + depth * all->b_leading + column;
            else
                ON(panels_pack)(all, depth, k, column, vectors, rest, panel);
            if (vectors == 3)
                ON(panels_panel)(&piece, column, b, panel, rest, 3);
            else if (vectors == 2)
                ON(panels_panel)(&piece, column, b, panel, rest, 2);
            else
                ON(panels_panel)(&piece, column, b, panel, rest, 1);
            column += vectors * LANES;
        }
    }
}
