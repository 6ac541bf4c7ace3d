/* norm_loops.h: passes of normalization over one contiguous run, for one instruction set and one
 * dtype.
 *
 * A template: included by elementwise_isa.c after row_loops.h, for each dtype.
 *
 * Invariant: as in row_loops.h, sums are taken over the same pattern of partial sums whatever the
 * instruction set, and blocks of them in double. Where two sums are taken at once, each has half as
 * many partial sums, so that all of them stay in registers.
 */
#undef NORM_GROUP
#undef NORM_VECTORS
#undef NORM_BLOCK
#define NORM_GROUP (ROW_GROUP / 2)
#define NORM_VECTORS (NORM_GROUP / LANES)
#define NORM_BLOCK (32 * NORM_GROUP)

/* The sum of (x - mean)^2. */
static double ON(norm_spread)(int64_t n, const void *data, double mean)
{
    const REAL *x = data;
    const ON(vec) means = ON(splat)((REAL)mean);
    double sum = 0;
    for (int64_t from = 0; from < n; from += ROW_BLOCK, x += ROW_BLOCK) {
        const int64_t count = n - from < ROW_BLOCK ? n - from : ROW_BLOCK;
        ON(vec) part[ROW_VECTORS];
        int64_t i = 0;
        for (int k = 0; k < ROW_VECTORS; k++)
            part[k] = ON(splat)(0);
        for (; i + ROW_GROUP <= count; i += ROW_GROUP)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++) {
                const ON(vec) apart = ON(load)(x + i + k * LANES) - means;
                part[k] += apart * apart;
            }
        if (i < count)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++, i += LANES)
                if (i < count) {
                    const ON(vec) apart = ON(load_rest)(x + i, count - i) - means;
                    part[k] += ON(keep_rest)(apart * apart, count - i);
                }
        sum += ON(lane_total)(part, ROW_VECTORS);
    }
    return sum;
}

/* y = (x - mean) rstd w + b, with weights along the run or one for all of it. */
LANES_INLINE void ON(norm_apply_by)(int64_t n, const struct kernel_norm_run *run, bool along)
{
    const REAL *x = run->x, *w = run->w, *b = run->b;
    REAL *y = run->y;
    const ON(vec) m = ON(splat)((REAL)run->mean), r = ON(splat)((REAL)run->rstd);
    const ON(vec) weight = ON(splat)((REAL)run->weight), bias = ON(splat)((REAL)run->bias);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const ON(vec) z = (ON(load)(x + i) - m) * r * (along ? ON(load)(w + i) : weight);
        ON(store)(y + i, along && b == NULL ? z : z + (along ? ON(load)(b + i) : bias));
    }
#if LANES > 1
    const int64_t rest = n - i;
    if (rest == 0)
        return;
    const ON(vec) z =
        (ON(load_part)(x + i, rest) - m) * r * (along ? ON(load_part)(w + i, rest) : weight);
    ON(store_part)
    (y + i, along && b == NULL ? z : z + (along ? ON(load_part)(b + i, rest) : bias), rest);
#endif
}

static void ON(norm_apply)(int64_t n, const struct kernel_norm_run *run)
{
    if (run->w != NULL)
        ON(norm_apply_by)(n, run, true);
    else
        ON(norm_apply_by)(n, run, false);
}

/* With z = (x - mean) rstd: sums[0] += sum of q, sums[1] += sum of q z, where q is g, or g w with
 * weights along the run; then gw += g z and gb += g (NULL: not wanted) as well. */
LANES_INLINE void ON(norm_sums_by)(int64_t n, const struct kernel_norm_run *run, bool along,
                                   bool shifted, double *sums)
{
    const REAL *g = run->g, *x = run->x, *w = run->w;
    REAL *gw = run->gw, *gb = run->gb;
    const ON(vec) m = ON(splat)((REAL)run->mean), r = ON(splat)((REAL)run->rstd);
    for (int64_t from = 0; from < n; from += NORM_BLOCK) {
        const int64_t end = n - from < NORM_BLOCK ? n : from + NORM_BLOCK;
        ON(vec) q_part[NORM_VECTORS], qz_part[NORM_VECTORS];
        int64_t i = from;
        for (int k = 0; k < NORM_VECTORS; k++)
            q_part[k] = qz_part[k] = ON(splat)(0);
        for (; i + NORM_GROUP <= end; i += NORM_GROUP)
#pragma GCC unroll 8
            for (int k = 0; k < NORM_VECTORS; k++) {
                const int64_t at = i + k * LANES;
                const ON(vec) h = ON(load)(g + at), z = (ON(load)(x + at) - m) * r;
                const ON(vec) q = along ? h * ON(load)(w + at) : h;
                q_part[k] += q;
                qz_part[k] += q * z;
                if (along)
                    ON(store)(gw + at, ON(load)(gw + at) + h * z);
                if (shifted)
                    ON(store)(gb + at, ON(load)(gb + at) + h);
            }
        if (i < end)
#pragma GCC unroll 8
            for (int k = 0; k < NORM_VECTORS; k++, i += LANES) {
                const int64_t rest = end - i;
                if (rest <= 0)
                    continue;
                const ON(vec) h = ON(load_rest)(g + i, rest);
                const ON(vec) z = (ON(load_rest)(x + i, rest) - m) * r;
                const ON(vec) q = along ? h * ON(load_rest)(w + i, rest) : h;
                q_part[k] += ON(keep_rest)(q, rest);
                qz_part[k] += ON(keep_rest)(q * z, rest);
                if (along)
                    ON(store_rest)(gw + i, ON(load_rest)(gw + i, rest) + h * z, rest);
                if (shifted)
                    ON(store_rest)(gb + i, ON(load_rest)(gb + i, rest) + h, rest);
            }
        sums[0] += ON(lane_total)(q_part, NORM_VECTORS);
        sums[1] += ON(lane_total)(qz_part, NORM_VECTORS);
    }
}

static void ON(norm_sums)(int64_t n, const struct kernel_norm_run *run, double *sums)
{
    if (run->w == NULL)
        ON(norm_sums_by)(n, run, false, false, sums);
    else if (run->gb == NULL)
        ON(norm_sums_by)(n, run, true, false, sums);
    else
        ON(norm_sums_by)(n, run, true, true, sums);
}

/* y = rstd (q - of_q - z of_qz), with q = g w. */
LANES_INLINE void ON(norm_back_by)(int64_t n, const struct kernel_norm_run *run, bool along)
{
    const REAL *g = run->g, *x = run->x, *w = run->w;
    REAL *y = run->y;
    const ON(vec) m = ON(splat)((REAL)run->mean), r = ON(splat)((REAL)run->rstd);
    const ON(vec) of_q = ON(splat)((REAL)run->of_q), of_qz = ON(splat)((REAL)run->of_qz);
    const ON(vec) weight = ON(splat)((REAL)run->weight);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const ON(vec) z = (ON(load)(x + i) - m) * r;
        const ON(vec) q = ON(load)(g + i) * (along ? ON(load)(w + i) : weight);
        ON(store)(y + i, (q - of_q - z * of_qz) * r);
    }
#if LANES > 1
    const int64_t rest = n - i;
    if (rest == 0)
        return;
    const ON(vec) z = (ON(load_part)(x + i, rest) - m) * r;
    const ON(vec) q = ON(load_part)(g + i, rest) * (along ? ON(load_part)(w + i, rest) : weight);
    ON(store_part)(y + i, (q - of_q - z * of_qz) * r, rest);
#endif
}

static void ON(norm_back)(int64_t n, const struct kernel_norm_run *run)
{
    if (run->w != NULL)
        ON(norm_back_by)(n, run, true);
    else
        ON(norm_back_by)(n, run, false);
}
