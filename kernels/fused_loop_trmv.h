/* fused_loop_trmv.h: products of a packed triangle with several vectors, for one instruction set.
 *
 * Included by fused_loop_isa.c, whose vectors it uses.
 *
 * Vectors are taken WIDTH at a time and transposed: each lane holds one vector, and the triangle's
 * entries are read one by one. Beyond MOST rows, the triangle's columns are long enough for vector
 * loops of their own.
 */
#ifndef FUSED_LOOP_TRMV_H
#define FUSED_LOOP_TRMV_H

enum { MOST = 48, TILES = 4, GROUP = TILES * WIDTH };

struct triangle {
    int64_t n, count;
    const double *diagonal, *below, *shift, *x;
    int64_t s_diagonal, s_below, s_shift, s_x;
};

static struct triangle triangle_of(const struct kernel_fused_loop *s)
{
    const int64_t n = s->n[0];
    return (struct triangle){.n = n,
                             .count = n ? s->m / n : 0,
                             .diagonal = s->x[0],
                             .below = s->x[1],
                             .shift = s->n[2] ? s->x[2] : NULL,
                             .x = s->x[3],
                             .s_diagonal = s->stride[0],
                             .s_below = s->stride[1],
                             .s_shift = s->stride[2],
                             .s_x = s->stride[3]};
}

/* turned[c][lane] = x[lane][c] - shift[c]; lanes beyond `count` are 0. */
INLINE void turn(const struct triangle *q, const double *x, int64_t sx, int64_t count,
                 const double *shift, int64_t s_shift, double (*turned)[GROUP])
{
    const int64_t row = q->n * sx, whole = (count + WIDTH - 1) / WIDTH * WIDTH;
    for (int64_t c = 0; c < q->n; c++) {
        const double by = shift ? shift[c * s_shift] : 0;
        double *to = turned[c];
        for (int64_t i = 0; i < count; i++)
            to[i] = x[i * row + c * sx] - by;
        for (int64_t i = count; i < whole; i++)
            to[i] = 0;
    }
}

/* Rows in the order of columns, as the loop over one vector has it. */
INLINE void rows_of_group(const struct triangle *q, int64_t s_diagonal, int64_t s_below,
                          int64_t count, double (*a)[GROUP], double *y, int64_t sy)
{
    for (int64_t tile = 0; tile < count; tile += WIDTH) {
        const int64_t in_tile = count - tile < WIDTH ? count - tile : WIDTH;
        for (int64_t r = 0; r < q->n; r++) {
            vec sum = vec_multiply(vec_splat(q->diagonal[r * s_diagonal]), vec_load(&a[r][tile]));
            const double *l = q->below + (r - 1) * s_below;
            for (int64_t c = 0; c < r; c++) {
                sum = vec_add_product(sum, vec_splat(*l), vec_load(&a[c][tile]));
                l += (q->n - 2 - c) * s_below;
            }
            double lane[WIDTH];
            vec_store(lane, sum);
            for (int64_t i = 0; i < in_tile; i++)
                y[((tile + i) * q->n + r) * sy] = lane[i];
        }
    }
}

static void trmv_wide(const struct triangle *q, const struct kernel_fused_loop *s)
{
    const int64_t n = q->n, sy = s->y_stride;
    for (int64_t i = 0; i < q->count; i++) {
        const double *x = q->x + i * n * q->s_x, *l = q->below;
        double *y = s->y + i * n * sy;
        for (int64_t r = 0; r < n; r++)
            y[r * sy] = q->diagonal[r * q->s_diagonal] *
                        (x[r * q->s_x] - (q->shift ? q->shift[r * q->s_shift] : 0));
        for (int64_t c = 0; c < n; c++) {
            const double a = x[c * q->s_x] - (q->shift ? q->shift[c * q->s_shift] : 0);
            for (int64_t r = c + 1; r < n; r++, l += q->s_below)
                y[r * sy] += *l * a;
        }
    }
}

static void trmv_value(const struct kernel_fused_loop *s)
{
    const struct triangle q = triangle_of(s);
    double a[MOST][GROUP];
    if (q.n > MOST) {
        trmv_wide(&q, s);
        return;
    }
    for (int64_t i = 0; i < q.count; i += GROUP) {
        const int64_t count = q.count - i < GROUP ? q.count - i : GROUP;
        double *y = s->y + i * q.n * s->y_stride;
        turn(&q, q.x + i * q.n * q.s_x, q.s_x, count, q.shift, q.s_shift, a);
        if (q.s_diagonal == 1 && q.s_below == 1)
            rows_of_group(&q, 1, 1, count, a, y, s->y_stride);
        else
            rows_of_group(&q, q.s_diagonal, q.s_below, count, a, y, s->y_stride);
    }
}

/* d diagonal and d below of a group: each entry is a product of two rows. */
static void entries_of_group(const struct triangle *q, int64_t count, double (*a)[GROUP],
                             double (*dy)[GROUP], double *d_diagonal, double *d_below)
{
    for (int64_t c = 0; c < q->n; c++)
        for (int64_t r = d_below ? q->n - 1 : c; r >= c; r--) {
            double *to = r > c ? d_below + c * (2 * q->n - c - 1) / 2 + r - c - 1
                               : (d_diagonal ? d_diagonal + c : NULL);
            if (!to)
                continue;
            vec sum = vec_multiply(vec_load(dy[r]), vec_load(a[c]));
            for (int64_t tile = WIDTH; tile < count; tile += WIDTH)
                sum = vec_add_product(sum, vec_load(&dy[r][tile]), vec_load(&a[c][tile]));
            *to += vec_total(sum);
        }
}

/* dx = Q^T dy of a group. */
static void vectors_of_group(const struct triangle *q, int64_t count, double (*dy)[GROUP],
                             double *dx)
{
    for (int64_t tile = 0; tile < count; tile += WIDTH) {
        const int64_t in_tile = count - tile < WIDTH ? count - tile : WIDTH;
        const double *l = q->below;
        for (int64_t c = 0; c < q->n; c++) {
            vec sum = vec_multiply(vec_splat(q->diagonal[c]), vec_load(&dy[c][tile]));
            for (int64_t r = c + 1; r < q->n; r++)
                sum = vec_add_product(sum, vec_splat(*l++), vec_load(&dy[r][tile]));
            double lane[WIDTH];
            vec_store(lane, sum);
            for (int64_t i = 0; i < in_tile; i++)
                dx[(tile + i) * q->n + c] += lane[i];
        }
    }
}

/* d shift = - Q^T dy, where dy may be the sum over several vectors. */
static void shift_back(const struct triangle *q, const double *dy, double *d_shift)
{
    const double *l = q->below;
    const int64_t n = q->n;
    for (int64_t c = 0; c < n; c++) {
        double sum = q->diagonal[c] * dy[c];
        for (int64_t r = c + 1; r < n; r++)
            sum += *l++ * dy[r];
        d_shift[c] -= sum;
    }
}

/* That of all vectors. */
static void shifts_back(const struct triangle *q, const double *dy, double *d_shift)
{
    double sum[MOST] = {0};
    for (int64_t i = 0; i < q->count; i++, dy += q->n) {
        for (int64_t c = 0; q->n <= MOST && c < q->n; c++)
            sum[c] += dy[c];
        if (q->n > MOST)
            shift_back(q, dy, d_shift);
    }
    if (q->n <= MOST)
        shift_back(q, sum, d_shift);
}

static void trmv_wide_back(const struct triangle *q, const struct kernel_fused_loop *s)
{
    const int64_t n = q->n;
    for (int64_t i = 0; i < q->count; i++) {
        const double *dy = s->dy + i * n;
        int64_t at = 0;
        for (int64_t c = 0; c < n; at += n - 1 - c, c++) {
            double a = 0, sum = 0;
            const bool entries = s->dx[0] || s->dx[1];
            if (entries)
                a = q->x[i * n + c] - (q->shift ? q->shift[c] : 0);
            if (s->dx[0])
                s->dx[0][c] += dy[c] * a;
            for (int64_t k = 0; s->dx[1] && k < n - 1 - c; k++)
                s->dx[1][at + k] += dy[c + 1 + k] * a;
            if (!s->dx[3])
                continue;
            for (int64_t k = 0; k < n - 1 - c; k++)
                sum += q->below[at + k] * dy[c + 1 + k];
            s->dx[3][i * n + c] += q->diagonal[c] * dy[c] + sum;
        }
    }
}

static void trmv_pullback(const struct kernel_fused_loop *s)
{
    const struct triangle q = triangle_of(s);
    double a[MOST][GROUP], dy[MOST][GROUP];
    for (int64_t i = 0; q.n <= MOST && i < q.count; i += GROUP) {
        const int64_t count = q.count - i < GROUP ? q.count - i : GROUP;
        turn(&q, s->dy + i * q.n, 1, count, NULL, 0, dy);
        if (s->dx[0] || s->dx[1]) {
            turn(&q, q.x + i * q.n, 1, count, q.shift, 1, a);
            entries_of_group(&q, count, a, dy, s->dx[0], s->dx[1]);
        }
        if (s->dx[3])
            vectors_of_group(&q, count, dy, s->dx[3] + i * q.n);
    }
    if (q.n > MOST)
        trmv_wide_back(&q, s);
    if (s->dx[2])
        shifts_back(&q, s->dy, s->dx[2]);
}

#endif
