/* row_loops.h: sums, maxima and shifted exponentials of contiguous rows for one instruction set.
 *
 * A template: included by elementwise_isa.c after lanes.h.
 *
 * Invariant: a sum is taken over the same 64-byte pattern of partial sums whatever the instruction
 * set, so all of them give the same bits; partial sums stay short (a block), so that the error does
 * not grow with the length of the row.
 */
#undef ROW_GROUP
#undef ROW_VECTORS
#undef ROW_BLOCK
#undef ROW_AHEAD
#define ROW_GROUP (256 / (int)sizeof(REAL)) /* partial sums */
#define ROW_VECTORS (ROW_GROUP / LANES)
#define ROW_BLOCK (32 * ROW_GROUP)
#define ROW_AHEAD (1024 / (int)sizeof(REAL))

/* Of a vector the n elements that are left, or all if there are more: as load_part and so on. */
LANES_INLINE ON(vec) ON(load_rest)(const REAL *x, int64_t n)
{
    return n >= LANES ? ON(load)(x) : ON(load_part)(x, n);
}

LANES_INLINE void ON(store_rest)(REAL *x, ON(vec) v, int64_t n)
{
    if (n >= LANES)
        ON(store)(x, v);
    else
        ON(store_part)(x, v, n);
}

LANES_INLINE ON(vec) ON(keep_rest)(ON(vec) v, int64_t n)
{
    return n >= LANES ? v : ON(keep_part)(v, n);
}

LANES_INLINE double ON(row_block_sum)(int64_t n, const REAL *x)
{
    ON(vec) part[ROW_VECTORS];
    for (int k = 0; k < ROW_VECTORS; k++)
        part[k] = ON(splat)(0);
    int64_t i = 0;
    for (; i + ROW_GROUP <= n; i += ROW_GROUP) {
        /* Asked for across the page's end, where the machine itself stops. */
        for (int k = 0; k < ROW_GROUP; k += 64 / (int)sizeof(REAL))
            __builtin_prefetch(x + i + ROW_AHEAD + k);
#pragma GCC unroll 8
        for (int k = 0; k < ROW_VECTORS; k++)
            part[k] += ON(load)(x + i + k * LANES);
    }
    if (i < n)
#pragma GCC unroll 8
        for (int k = 0; k < ROW_VECTORS; k++, i += LANES)
            if (i < n)
                part[k] += ON(keep_rest)(ON(load_rest)(x + i, n - i), n - i);
    return ON(lane_total)(part, ROW_VECTORS);
}

/* Blocks are added with compensation (Neumaier, ZAMM 54 (1974), 39-51). */
static double ON(row_sum)(int64_t n, const void *data)
{
    const REAL *x = data;
    if (n < ROW_GROUP) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)x[i];
        return sum;
    }
    double sum = 0, lost = 0;
    for (int64_t i = 0; i < n; i += ROW_BLOCK) {
        const double block = ON(row_block_sum)(n - i < ROW_BLOCK ? n - i : ROW_BLOCK, x + i);
        const double next = sum + block;
        lost += fabs(sum) >= fabs(block) ? (sum - next) + block : (block - next) + sum;
        sum = next;
    }
    return isfinite(sum) ? sum + lost : sum;
}

static double ON(row_max)(int64_t n, const void *data)
{
    const REAL *x = data;
    ON(vec) most = ON(splat)(-(REAL)INFINITY), more = most, third = most, fourth = most;
    REAL lane[LANES];
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        most = ON(lane_max)(ON(load)(x + i), most);
        more = ON(lane_max)(ON(load)(x + i + LANES), more);
        third = ON(lane_max)(ON(load)(x + i + 2 * LANES), third);
        fourth = ON(lane_max)(ON(load)(x + i + 3 * LANES), fourth);
    }
    for (; i + LANES <= n; i += LANES)
        most = ON(lane_max)(ON(load)(x + i), most);
    most = ON(lane_max)(ON(lane_max)(most, more), ON(lane_max)(third, fourth));
    ON(store)(lane, most);
    REAL result = lane[0];
    for (int k = 1; k < LANES; k++)
        result = result >= lane[k] || isnan(result) ? result : lane[k];
    for (; i < n; i++)
        result = result >= x[i] || isnan(result) ? result : x[i];
    return (double)result;
}

/* x[i] = *value. */
static void ON(row_fill)(int64_t n, void *out, const void *value)
{
    const REAL one = *(const REAL *)value;
    const ON(vec) all = ON(splat)(one);
    REAL *x = out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        ON(store)(x + i, all);
    for (; i < n; i++)
        x[i] = one;
}

static void ON(row_max_into)(int64_t n, void *out, const void *const *in, const double *parameters)
{
    REAL *o = out;
    const REAL *x = in[0];
    int64_t i = 0;
    (void)parameters;
    for (; i + LANES <= n; i += LANES)
        ON(store)(o + i, ON(lane_max)(ON(load)(x + i), ON(load)(o + i)));
    if (i < n)
        ON(store_part)
    (o + i, ON(lane_max)(ON(load_part)(x + i, n - i), ON(load_part)(o + i, n - i)), n - i);
}

/* out[c] += sum over r of x[r][c], the rows lying `stride` elements apart; added one after the
 * other from 0 on. Sums of up to four vectors of columns stay in registers. */
static void ON(row_fold)(int64_t rows, int64_t columns, const void *data, int64_t stride, void *out)
{
    const REAL *x = data;
    REAL *o = out;
    int64_t c = 0;
    for (; c + 4 * LANES <= columns; c += 4 * LANES) {
        ON(vec) sum[4] = {ON(splat)(0), ON(splat)(0), ON(splat)(0), ON(splat)(0)};
        for (int64_t r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                sum[k] += ON(load)(x + r * stride + c + k * LANES);
        for (int k = 0; k < 4; k++)
            ON(store)(o + c + k * LANES, ON(load)(o + c + k * LANES) + sum[k]);
    }
    for (; c + LANES <= columns; c += LANES) {
        ON(vec) sum = ON(splat)(0);
        for (int64_t r = 0; r < rows; r++)
            sum += ON(load)(x + r * stride + c);
        ON(store)(o + c, ON(load)(o + c) + sum);
    }
    if (c < columns) {
        const int64_t n = columns - c;
        ON(vec) sum = ON(splat)(0);
        for (int64_t r = 0; r < rows; r++)
            sum += ON(load_part)(x + r * stride + c, n);
        ON(store_part)(o + c, ON(load_part)(o + c, n) + sum, n);
    }
}

/* out[i] = exp(x[i] - shift). */
LANES_INLINE void ON(row_exp_of)(int64_t n, const REAL *x, REAL shift, REAL *out)
{
    const ON(vec) by = ON(splat)(shift);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        ON(store)(out + i, ON(lane_exp)(ON(load)(x + i) - by));
    if (i < n)
        ON(store_part)(out + i, ON(lane_exp)(ON(load_part)(x + i, n - i) - by), n - i);
}

/* x[r][c] = exp(x[r][c] - shift[r]); short rows over all of them at once, so that they fill the
 * vectors. */
static void ON(row_exp_shift)(int64_t rows, int64_t columns, void *data, const double *shift)
{
    REAL *x = data;
    if (columns >= 4 * LANES) {
        for (int64_t r = 0; r < rows; r++)
            ON(row_exp_of)(columns, x + r * columns, (REAL)shift[r], x + r * columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const REAL s = (REAL)shift[r];
        for (int64_t c = 0; c < columns; c++)
            x[r * columns + c] -= s;
    }
    ON(row_exp_of)(rows * columns, x, 0, x);
}

/* y = exp(x - most) / total, of one row. */
static void ON(row_softmax)(int64_t n, const void *x_data, void *y_data, double *most,
                            double *total)
{
    REAL *y = y_data;
    *most = ON(row_max)(n, x_data);
    ON(row_exp_of)(n, x_data, (REAL)*most, y);
    *total = ON(row_sum)(n, y);
    const ON(vec) by = ON(splat)((REAL)*total);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        ON(store)(y + i, ON(load)(y + i) / by);
    if (i < n)
        ON(store_part)(y + i, ON(load_part)(y + i, n - i) / by, n - i);
}
