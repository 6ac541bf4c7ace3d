/* elementwise.h: how elementwise ops are run: loops for each instruction set, and the driver that
 * feeds them operands of any strides.
 *
 * Internal to kernels/.
 *
 * Invariant: a loop sees unit strides only, and its result for one element depends on that element
 * alone, never on its position in the array.
 */
#ifndef ELEMENTWISE_H
#define ELEMENTWISE_H

#include "convolution_tiles.h"
#include "gemm_panels.h"
#include "hash.h"
#include "kernel.h"

#include <stdatomic.h>

/* `parameters`: those of the row, NULL where it has none.
 * out[i] = f(in[0][i], in[1][i], ...) or out[i] += f(...) for i < n. `out` may be one of `in`. */
typedef void kernel_loop(int64_t n, void *out, const void *const *in, const double *parameters);

/* Loops by name: a row's forward value and its derivatives. */
enum kernel_loop_id {
#define ROW1(id, ...) LOOP_##id, LOOP_##id##_dx,
#define ROW2(id, ...) LOOP_##id, LOOP_##id##_da, LOOP_##id##_db,
#define ROW3(id, ...) LOOP_##id, LOOP_##id##_da, LOOP_##id##_db, LOOP_##id##_dc,
#include "elementwise.def"
    LOOPS
};

/* Operations of an element of each loop, in additions. */
extern const uint16_t kernel_loop_flops[LOOPS];

/* A contiguous run of a normalization, see norm_loops.h: w NULL means one weight and bias for all
 * of it. */
struct kernel_norm_run {
    const void *g, *x, *w, *b;
    void *y, *gw, *gb;
    double mean, rstd, weight, bias, of_q, of_qz;
};

/* One row of maxima of windows, see pool_loops.h: `count` of them, each over `window` columns from
 * q step - padding on of `rows` rows, each of which has an element inside. at: their places, of
 * which x's first element is number `before`. */
struct kernel_pool_row {
    const void *x;
    void *y;
    int64_t *at;
    int64_t before, rows, width, window, step, padding, count;
};

/* What one instruction set offers. The second index is the dtype, KERNEL_F32 or KERNEL_F64. */
struct kernel_isa {
    const char *name;
    int vector_bytes;
    kernel_loop *loop[LOOPS][2][2]; /* last index: assign, accumulate */
    double (*sum[2])(int64_t n, const void *x);
    double (*max[2])(int64_t n, const void *x); /* -inf for n = 0; NaN if any element is NaN */
    kernel_loop *max_into[2];                   /* out[i] = max(out[i], in[0][i]), NaN wins */
    void (*fill[2])(int64_t n, void *x, const void *value); /* x[i] = *value */
    /* out[c] += sum over r of x[r * stride + c] */
    void (*fold[2])(int64_t rows, int64_t columns, const void *x, int64_t stride, void *out);
    void (*exp_shift[2])(int64_t rows, int64_t columns, void *x, const double *shift);
    /* One row of an LSTM's cell and of its pullback, see network_loops.h. */
    void (*lstm[2])(int64_t n, const void *z, const void *c, void *h, void *m);
    void (*lstm_back[2])(int64_t n, const void *const *in, void *dz, void *dc);
    /* One row of softmax, its maximum and the sum of its shifted exponentials; y may be x. */
    void (*softmax[2])(int64_t n, const void *x, void *y, double *most, double *total);
    /* dp = p (g - sum of p g); the same with dp for g. */
    void (*softmax_gradient[2])(int64_t n, const void *p, const void *g, void *dp);
    void (*softmax_back[2])(int64_t n, const void *p, void *dp);
    /* Passes over a run of a normalization. */
    double (*norm_spread[2])(int64_t n, const void *x, double mean);
    void (*norm_apply[2])(int64_t n, const struct kernel_norm_run *run);
    void (*norm_sums[2])(int64_t n, const struct kernel_norm_run *run, double *sums);
    void (*norm_back[2])(int64_t n, const struct kernel_norm_run *run);
    void (*pool_max[2])(const struct kernel_pool_row *run);
    const struct kernel_fused_loop_loops *fused_loops; /* see fused loop.h */
    kernel_hash_function *hash;
    gemm_panels_function *const *gemm_panels;    /* by dtype; NULL: BLAS is faster */
    const struct convolution_tiles *convolution; /* see convolution_tiles.h */
};

extern const struct kernel_fused_loop_loops kernel_fused_loops_portable;
#if defined(__x86_64__) && defined(__linux__)
extern const struct kernel_fused_loop_loops kernel_fused_loops_avx2, kernel_fused_loops_avx512;
#endif

extern const struct kernel_isa kernel_isa_portable;
#if defined(__x86_64__) && defined(__linux__)
extern const struct kernel_isa kernel_isa_avx2, kernel_isa_avx512;
#endif

/* The best instruction set of this machine, or the lesser one that TAPESCOPE_ISA names. */
extern const struct kernel_isa *_Atomic kernel_isa_chosen; /* NULL: not yet */
const struct kernel_isa *kernel_isa_choose(void);
static inline const struct kernel_isa *kernel_isa_get(void)
{
    const struct kernel_isa *isa = atomic_load_explicit(&kernel_isa_chosen, memory_order_acquire);
    return isa != NULL ? isa : kernel_isa_choose();
}

/* For tests: uses the named instruction set from now on; false if this machine lacks it. NULL goes
 * back to the choice of kernel_isa_get. Not while other threads run kernels. */
bool kernel_isa_use(const char *name);

/* What becomes of elements that fall on the same output element. */
enum kernel_reduce { KERNEL_REDUCE_SUM, KERNEL_REDUCE_MAX };

/* out (+)= loop(in...), with operands broadcast against each other. With accumulate, `out` may
 * have shorter or fewer axes: the results are then summed (or, for LOOP_copy and
 * KERNEL_REDUCE_MAX, their maximum is taken) over the others, on top of what out holds. All
 * arrays have out's dtype. */
void kernel_elementwise(enum kernel_loop_id loop, struct kernel_array *out, int n_in,
                        const kernel_ref *in, const double *parameters, bool accumulate);
void kernel_reduce(enum kernel_reduce how, struct kernel_array *out, kernel_ref in);

/* The same on equal contiguous arrays of n elements. */
static inline void kernel_loop_run(enum kernel_loop_id loop, int dtype, int64_t n, void *out,
                                   const void *in0, const void *in1, const double *parameters,
                                   bool accumulate)
{
    const void *in[2] = {in0, in1};
    kernel_isa_get()->loop[loop][dtype][accumulate](n, out, in, parameters);
}

/* Sets every element of a float array, of any strides, to one value. */
void kernel_fill(struct kernel_array *array, double value);

#endif
