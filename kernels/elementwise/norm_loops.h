/* norm_loops.h: passes of normalization over one contiguous run, for one instruction set and one
 * dtype.
 *
 * A template: included by elementwise_isa.c after row_loops.h, for each dtype.
 *
 * Invariant: as in row_loops.h, sums are taken over the same pattern of partial sums whatever the
 * instruction set, and blocks of them in double.
 */

/* The sum of (x - mean)^2. */
static double ON(norm_spread)(int64_t n, const void *data, double mean)
{
    const REAL *x = data;
    const REAL m = (REAL)mean;
    const ON(vec) means = ON(splat)(m);
    double sum = 0;
    for (int64_t from = 0; from < n; from += ROW_BLOCK, x += ROW_BLOCK) {
        const int64_t count = n - from < ROW_BLOCK ? n - from : ROW_BLOCK;
        ON(vec) part[ROW_VECTORS];
        REAL lane[ROW_GROUP];
        int64_t i = 0;
        for (int k = 0; k < ROW_VECTORS; k++)
            part[k] = ON(splat)(0);
        for (; i + ROW_GROUP <= count; i += ROW_GROUP)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++) {
                const ON(vec) apart = ON(load)(x + i + k * LANES) - means;
                part[k] += apart * apart;
            }
        for (int k = 0; k < ROW_VECTORS; k++)
            ON(store)(lane + k * LANES, part[k]);
        for (int k = 0; i + k < count; k++)
            lane[k] += (x[i + k] - m) * (x[i + k] - m);
        sum += ON(row_total)(lane);
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
    const REAL mean = (REAL)run->mean, rstd = (REAL)run->rstd;
    const ON(vec) m = ON(splat)(mean), r = ON(splat)(rstd);
    for (int64_t from = 0; from < n; from += ROW_BLOCK) {
        const int64_t end = n - from < ROW_BLOCK ? n : from + ROW_BLOCK;
        ON(vec) q_part[ROW_VECTORS], qz_part[ROW_VECTORS];
        REAL q_lane[ROW_GROUP], qz_lane[ROW_GROUP];
        int64_t i = from;
        for (int k = 0; k < ROW_VECTORS; k++)
            q_part[k] = qz_part[k] = ON(splat)(0);
        for (; i + ROW_GROUP <= end; i += ROW_GROUP)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++) {
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
        for (int k = 0; k < ROW_VECTORS; k++) {
            ON(store)(q_lane + k * LANES, q_part[k]);
            ON(store)(qz_lane + k * LANES, qz_part[k]);
        }
        for (int k = 0; i < end; i++, k++) {
            const REAL z = (x[i] - mean) * rstd, q = along ? g[i] * w[i] : g[i];
            q_lane[k] += q;
            qz_lane[k] += q * z;
            if (along)
                gw[i] += g[i] * z;
            if (shifted)
                gb[i] += g[i];
        }
        sums[0] += ON(row_total)(q_lane);
        sums[1] += ON(row_total)(qz_lane);
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
