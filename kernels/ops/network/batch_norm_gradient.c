/* ops/network/batch_norm_gradient.c: the adjoints of batch_norm's operands, in one pass.
 *
 * May include: norm_gradients.h, kernel_ops.h. A function of the channels' statistics as well, by
 * which it is differentiated again.
 */
#include "kernel_ops.h"
#include "norm_gradients.h"

static const char *const names[] = {"g", "x", "w", "mean", "rstd"};

/* clang-format off */
#define GRADIENT_SAMPLE(rank_x, c, ...)                                                            \
    {.n_in = 5, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},             \
     .rank = {rank_x, rank_x, 1, 1, 1}, .shape = {{__VA_ARGS__}, {__VA_ARGS__}, {c}, {c}, {c}},    \
     .low = {-1, -2, 0.5, -1, 0.5}, .high = {1, 2, 2, 1, 2}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, 3, 5, 3), GRADIENT_SAMPLE(3, 2, 2, 2, 3), GRADIENT_SAMPLE(3, 3, 1, 3, 4),
    GRADIENT_SAMPLE(2, 3, 0, 3), GRADIENT_SAMPLE(3, 0, 2, 0, 3),
};
KERNEL_SAMPLES(samples)

static const struct norm_gradient_family family = {.centered = true, .by_channel = true};

KERNEL_OP(batch_norm_gradient) = {
    .name = "batch_norm_gradient",
    .in_names = names,
    .n_in = 5,
    .n_out = 3,
    .hidden = true,
    .saves_in = 31,
    .reads_for = {30, 31, 27, 31, 31},
    .touches_all = true,
    .saves_out = 1,
    .family = &family,
    .shape = norm_gradient_shape,
    .forward = norm_gradient_forward,
    .pullback = norm_gradient_pullback,
    .cost = norm_gradient_cost,
    .workspace = norm_gradient_workspace,
    .sample = sample,
    .brief = "Adjoints of batch_norm's operands.",
    .shapes = "g [n,c,...], x [n,c,...], w [c], mean [c], rstd [c] -> [n,c,...], [c], [c]",
    .formula =
        "z = (x - mean) rstd, q = g w, gx = rstd (q - mean of q - z mean of (q z)), gw = sum "
        "of g z, gb = sum of g",
    .derivative = "the formula's, by g, x, w, mean and rstd",
};
