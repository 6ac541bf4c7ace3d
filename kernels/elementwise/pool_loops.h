/* pool_loops.h: maxima of windows along one row of results, for one instruction set and one dtype.
 *
 * A template: included by elementwise_isa.c after lanes.h, for each dtype.
 *
 * Invariant: a window is searched row by row from its first element on; what is not at most the
 * maximum so far takes its place, so that a NaN does, and then stays.
 */

/* One window, whose columns first..end of rows 0..run->rows lie inside. */
LANES_INLINE void ON(pool_window)(const struct kernel_pool_row *run, int64_t q)
{
    const REAL *x = run->x;
    REAL *y = run->y;
    const int64_t from = q * run->step - run->padding;
    const int64_t first = from < 0 ? 0 : from;
    const int64_t end = from + run->window < run->width ? from + run->window : run->width;
    int64_t place = first;
    REAL most = x[first];
    for (int64_t r = 0; r < run->rows; r++)
        for (int64_t j = first; j < end; j++) {
            const REAL value = x[r * run->width + j];
            const bool stays = value <= most || isnan(most);
            place = stays ? place : r * run->width + j;
            most = stays ? most : value;
        }
    y[q] = most;
    run->at[q] = run->before + place;
}

#if LANES > 1

#undef POOL_EVEN
#if LANES == 4
#define POOL_EVEN 0, 2, 5, 7
#elif LANES == 8
#define POOL_EVEN 0, 2, 4, 6, 9, 11, 13, 15
#else
#define POOL_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#endif

/* Every first or every second element, and no element behind the last of them. */
LANES_INLINE ON(vec) ON(pool_load)(const REAL *x, int step)
{
    if (step == 1)
        return ON(load)(x);
    return __builtin_shufflevector(ON(load)(x), ON(load)(x + LANES - 1), POOL_EVEN);
}

/* LANES windows from q on, all their columns inside. */
LANES_INLINE void ON(pool_windows)(const struct kernel_pool_row *run, int64_t q, int step)
{
    const int64_t from = q * step - run->padding;
    const REAL *x = (const REAL *)run->x + from;
    ON(vec) most = ON(pool_load)(x, step);
    ON(bits) place = {0};
    REAL *y = run->y;
    for (int64_t r = 0; r < run->rows; r++)
        for (int64_t j = 0; j < run->window; j++) {
            const int64_t offset = r * run->width + j;
            const ON(vec) value = ON(pool_load)(x + offset, step);
            const ON(bits) stays = (ON(bits))(value <= most) | (ON(bits))(most != most);
            const ON(bits) here = (ON(bits)){0} + (__typeof__(place[0]))offset;
            most = ON(select)(stays, most, value);
            place = (place & stays) | (here & ~stays);
        }
    ON(store)(y + q, most);
    for (int k = 0; k < LANES; k++)
        run->at[q + k] = run->before + from + k * step + (int64_t)place[k];
}

/* Windows first..end; the last vector overlaps the one before. Returns the first that is left. */
LANES_INLINE int64_t ON(pool_inside)(const struct kernel_pool_row *run, int64_t first, int64_t end,
                                     int step)
{
    if (end - first < LANES)
        return first;
    for (int64_t q = first; q + LANES <= end; q += LANES)
        ON(pool_windows)(run, q, step);
    ON(pool_windows)(run, end - LANES, step);
    return end;
}
#endif

static void ON(pool_max)(const struct kernel_pool_row *run)
{
    const int64_t step = run->step, room = run->width + run->padding - run->window;
    const int64_t first = (run->padding + step - 1) / step;
    const int64_t fitting = room < 0 ? 0 : room / step + 1;
    const int64_t end = fitting < run->count ? fitting : run->count;
    int64_t q = 0;
    for (; q < run->count && q < first; q++)
        ON(pool_window)(run, q);
#if LANES > 1
    /* Places are counted in as many bits as an element has. */
    if (run->rows * run->width <= INT32_MAX && end > q) {
        if (step == 1)
            q = ON(pool_inside)(run, q, end, 1);
        else if (step == 2)
            q = ON(pool_inside)(run, q, end, 2);
    }
#else
    (void)end;
#endif
    for (; q < run->count; q++)
        ON(pool_window)(run, q);
}
