/* ops/network/dropout.c: random elements become 0, the others are scaled up.
 *
 * Which ones is a function of the seed and the element's row-major number, so nothing is saved:
 * the op is its own adjoint.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "philox.h"

/* clang-format off */
#define DROPOUT_SAMPLE(rank_, p, seed, ...)                                                        \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{__VA_ARGS__}}, .low = {-2},     \
     .high = {2}, .n_attr = 2, .attr = {p, seed}}
#define HALF ((int64_t)1022 << 52) /* 1/2 and 1, bit for bit */
#define ONE ((int64_t)1023 << 52)
/* clang-format on */
static const struct kernel_sample samples[] = {
    DROPOUT_SAMPLE(2, HALF, 1, 3, 5), DROPOUT_SAMPLE(0, HALF, 2, 0),
    DROPOUT_SAMPLE(1, HALF, -3, 17),  DROPOUT_SAMPLE(2, 0, 1, 2, 3),
    DROPOUT_SAMPLE(2, ONE, 1, 2, 3),  DROPOUT_SAMPLE(2, HALF, 1, 0, 3),
};
KERNEL_SAMPLES(samples)

enum { BLOCK = 4 * PHILOX_BLOCKS };

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const double p = kernel_attr_real(call->attr[0]);
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (!(p >= 0 && p <= 1))
        return kernel_refuse_real(call, "p", p, "a number in [0, 1]");
    return kernel_shape_same(call, out);
}

/* y (+)= x scale where the word is below `kept` of 2^32, else 0: chosen, not multiplied, so that
 * what is dropped is 0 whatever it was. */
#define DROP(REAL, name)                                                                           \
    static void name(int64_t n, const REAL *x, REAL *y, const uint32_t *words, uint64_t kept,      \
                     REAL scale, bool accumulate)                                                  \
    {                                                                                              \
        const uint32_t last = (uint32_t)(kept - 1);                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const REAL value = x[i] * scale;                                                       \
            const REAL chosen = words[i] <= last ? value : 0;                                      \
            y[i] = accumulate ? y[i] + chosen : chosen;                                            \
        }                                                                                          \
    }
DROP(float, drop_narrow)
DROP(double, drop_wide)

static int forward(const struct kernel_call *call)
{
    const double p = kernel_attr_real(call->attr[0]), keep = 1 - p;
    struct kernel_array *y = call->out[0];
    const uint64_t kept = (uint64_t)(keep * 0x1p32 + 0.5);
    const double scale = 1 / keep;
    char *space = call->workspace;
    uint32_t words[BLOCK];
    if (kept == 0) {
        if (!call->accumulate)
            kernel_fill(y, 0);
        return 0;
    }
    if (p == 0) {
        kernel_elementwise(LOOP_copy, y, 1, &call->in[0], NULL, call->accumulate);
        return 0;
    }
    const char *x = dense_data(call->in[0], &space);
    const size_t elem = kernel_dtype_bytes(y->dtype);
    for (int64_t from = 0; from < y->size; from += BLOCK) {
        const int64_t n = y->size - from < BLOCK ? y->size - from : BLOCK;
        const void *in = x + (size_t)from * elem;
        void *out = (char *)y->data + (size_t)from * elem;
        philox_words((uint64_t)call->attr[1], (uint64_t)from / 4, words);
        if (y->dtype == KERNEL_F32)
            drop_narrow(n, in, out, words, kept, (float)scale, call->accumulate);
        else
            drop_wide(n, in, out, words, kept, scale, call->accumulate);
    }
    return 0;
}

/* Ten rounds of two products and four further operations for four elements, and a choice. */
KERNEL_OP(dropout) = {
    .name = "dropout",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"p", KERNEL_ATTR_REAL}, {"seed", KERNEL_ATTR_INT}),
    .n_out = 1,
    .accumulates = true,
    .draws = true,
    .depends = kernel_depends_elements,
    .shape = shape,
    .forward = forward,
    .pullback = kernel_pullback_self,
    .flops_per_element = 17,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Each element dropped with probability p, the others divided by 1 - p; one seed gives "
             "one choice, by an element's row-major number.",
    .shapes = "x [...] -> [...]",
    .formula =
        "y_i = r_i < 1 - p ? x_i / (1 - p) : 0, r_i = word i of Philox 4x32-10 under the key "
        "seed, / 2^32",
    .derivative = "x'_i += r_i < 1 - p ? y'_i / (1 - p) : 0",
    .edges = "what is dropped is 0, also an infinity or NaN; p = 0 gives x, p = 1 zeros; 1 - p is "
             "rounded to a multiple of 2^-32 for the choice; p outside [0, 1] and NaN are refused",
    .source =
        "Srivastava et al., Journal of Machine Learning Research 15 (2014) 1929-1958; Salmon, "
        "Moraes, Dror & Shaw, SC 2011, doi 10.1145/2063384.2063405",
};
