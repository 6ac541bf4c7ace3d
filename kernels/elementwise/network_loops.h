/* network_loops.h: rows of an LSTM's cell and of softmax's pullback, for one instruction set and
 * one dtype.
 *
 * A template: included by elementwise_isa.c after row_loops.h, for each dtype.
 *
 * Invariant: the last elements of a row run through the same vector code as the others, so a result
 * does not depend on its place in the row.
 */

/* The four gates, from pre-activations, and the new cell. */
struct ON(gates) {
    ON(vec) i, f, g, o, c;
};

LANES_INLINE struct ON(gates)
    ON(gates_of)(ON(vec) zi, ON(vec) zf, ON(vec) zg, ON(vec) zo, ON(vec) c)
{
    struct ON(gates) a = {.i = ON(lane_sigmoid)(zi),
                          .f = ON(lane_sigmoid)(zf),
                          .g = ON(lane_tanh)(zg),
                          .o = ON(lane_sigmoid)(zo)};
    a.c = a.f * c + a.i * a.g;
    return a;
}

/* One row: z [4 n] and c [n] give h [n] and m [n], the new cell. */
static void ON(row_lstm)(int64_t n, const void *z_data, const void *c_data, void *h_data,
                         void *m_data)
{
    const REAL *z = z_data, *c = c_data;
    REAL *h = h_data, *m = m_data;
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        const struct ON(gates) a =
            ON(gates_of)(ON(load)(z + k), ON(load)(z + n + k), ON(load)(z + 2 * n + k),
                         ON(load)(z + 3 * n + k), ON(load)(c + k));
        ON(store)(m + k, a.c);
        ON(store)(h + k, a.o * ON(lane_tanh)(a.c));
    }
#if LANES > 1
    const int64_t rest = n - k;
    if (rest == 0)
        return;
    const struct ON(gates) a =
        ON(gates_of)(ON(load_part)(z + k, rest), ON(load_part)(z + n + k, rest),
                     ON(load_part)(z + 2 * n + k, rest), ON(load_part)(z + 3 * n + k, rest),
                     ON(load_part)(c + k, rest));
    ON(store_part)(m + k, a.c, rest);
    ON(store_part)(h + k, a.o * ON(lane_tanh)(a.c), rest);
#endif
}

/* What flows back through one element's gates: x.i, ..., x.o for the pre-activations, x.c for the
 * old cell. gh and gm are the adjoints of h and of the new cell. */
LANES_INLINE struct ON(gates) ON(gates_back)(struct ON(gates) a, ON(vec) c, ON(vec) gh, ON(vec) gm)
{
    const ON(vec) one = ON(splat)(1), t = ON(lane_tanh)(a.c);
    const ON(vec) q = gm + gh * a.o * (one - t * t);
    return (struct ON(gates)){.i = q * a.g * (a.i * (one - a.i)),
                              .f = q * c * (a.f * (one - a.f)),
                              .g = q * a.i * (one - a.g * a.g),
                              .o = gh * t * (a.o * (one - a.o)),
                              .c = q * a.f};
}

/* One row of the pullback: gh, gm [n], z [4 n], c [n] give dz [4 n] and dc [n]. */
static void ON(row_lstm_back)(int64_t n, const void *const *in, void *dz_data, void *dc_data)
{
    const REAL *gh = in[0], *gm = in[1], *z = in[2], *c = in[3];
    REAL *dz = dz_data, *dc = dc_data;
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        const ON(vec) old = ON(load)(c + k);
        const struct ON(gates) a =
            ON(gates_of)(ON(load)(z + k), ON(load)(z + n + k), ON(load)(z + 2 * n + k),
                         ON(load)(z + 3 * n + k), old);
        const struct ON(gates) x = ON(gates_back)(a, old, ON(load)(gh + k), ON(load)(gm + k));
        ON(store)(dz + k, x.i);
        ON(store)(dz + n + k, x.f);
        ON(store)(dz + 2 * n + k, x.g);
        ON(store)(dz + 3 * n + k, x.o);
        ON(store)(dc + k, x.c);
    }
#if LANES > 1
    const int64_t rest = n - k;
    if (rest == 0)
        return;
    const ON(vec) old = ON(load_part)(c + k, rest);
    const struct ON(gates) a =
        ON(gates_of)(ON(load_part)(z + k, rest), ON(load_part)(z + n + k, rest),
                     ON(load_part)(z + 2 * n + k, rest), ON(load_part)(z + 3 * n + k, rest), old);
    const struct ON(gates) x =
        ON(gates_back)(a, old, ON(load_part)(gh + k, rest), ON(load_part)(gm + k, rest));
    ON(store_part)(dz + k, x.i, rest);
    ON(store_part)(dz + n + k, x.f, rest);
    ON(store_part)(dz + 2 * n + k, x.g, rest);
    ON(store_part)(dz + 3 * n + k, x.o, rest);
    ON(store_part)(dc + k, x.c, rest);
#endif
}

/* The pullback of softmax for one row: dp = p (g - sum of p g). dp may be g. */
static void ON(row_softmax_gradient)(int64_t n, const void *p_data, const void *g_data,
                                     void *dp_data)
{
    const REAL *p = p_data, *g = g_data;
    REAL *dp = dp_data;
    double sum = 0;
    for (int64_t from = 0; from < n; from += ROW_BLOCK) {
        const int64_t end = n - from < ROW_BLOCK ? n : from + ROW_BLOCK;
        ON(vec) part[ROW_VECTORS];
        for (int k = 0; k < ROW_VECTORS; k++)
            part[k] = ON(splat)(0);
        int64_t i = from;
        for (; i + ROW_GROUP <= end; i += ROW_GROUP)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++)
                part[k] += ON(load)(p + i + k * LANES) * ON(load)(g + i + k * LANES);
        if (i < end)
#pragma GCC unroll 8
            for (int k = 0; k < ROW_VECTORS; k++, i += LANES)
                if (i < end) {
                    const ON(vec) product =
                        ON(load_rest)(p + i, end - i) * ON(load_rest)(g + i, end - i);
                    part[k] += ON(keep_rest)(product, end - i);
                }
        sum += ON(lane_total)(part, ROW_VECTORS);
    }
    const ON(vec) mean = ON(splat)((REAL)sum);
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        ON(store)(dp + k, ON(load)(p + k) * (ON(load)(g + k) - mean));
    if (k < n) {
        const ON(vec) apart = ON(load_part)(g + k, n - k) - mean;
        ON(store_part)(dp + k, ON(load_part)(p + k, n - k) * apart, n - k);
    }
}

static void ON(row_softmax_back)(int64_t n, const void *p, void *dp)
{
    ON(row_softmax_gradient)(n, p, dp, dp);
}
