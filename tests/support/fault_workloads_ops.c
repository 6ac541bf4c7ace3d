/* fault_workloads_ops.c: workloads of the other families of ops, and of the functions that look at
 * a tape and check it.
 */
#include "fault_workloads.h"

#include <stdio.h>

void fault_choices(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 4), row = fault_leaf(tape, 1, 4);
    ad_tensor greater = OP(ad_greater(x, row));
    ad_tensor h = OP(ad_where(greater, x, row));
    h = OP(ad_clamp(h, 0.5, 1.5));
    ad_tensor most = OP(ad_maximum(x, row)), least = OP(ad_minimum(row, x));
    h = OP(ad_mul(h, most));
    h = OP(ad_add(h, least));
    most = OP(ad_sign(x));
    h = OP(ad_mul(h, most));
    fault_sweep(h, x, 12, out);
    fault_read_gradient(row, 4, out);
}

void fault_functions(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 4), b = fault_leaf(tape, 3, 1);
    ad_tensor h = OP(ad_pow(x, b)), k = OP(ad_hypot(x, b));
    h = OP(ad_atan2(h, k));
    k = OP(ad_lgamma(x));
    h = OP(ad_fmod(h, b));
    h = OP(ad_mul(h, k));
    k = OP(ad_elu(x, 0.5));
    h = OP(ad_add(h, k));
    h = OP(ad_gelu(h));
    h = OP(ad_erf(h));
    h = OP(ad_sin(h));
    fault_sweep(h, x, 12, out);
    fault_read_gradient(b, 3, out);
}

void fault_moved_parts(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 6);
    ad_tensor part[3] = {OP(ad_slice(x, 1, 0, 6, 2)), OP(ad_slice(x, 1, 3, 6, 1)), {0}};
    part[2] = part[0];
    ad_tensor h = OP(ad_concat(part, 3, 0));
    ad_tensor pair[2] = {OP(ad_select(h, 0, 2)), OP(ad_select(h, 0, -1))};
    ad_tensor k = OP(ad_stack(pair, 2, 1));
    k = OP(ad_permute(k, SHAPE(1, 0), 2));
    h = OP(ad_slice(h, 0, 1, 3, 1));
    h = OP(ad_mul(h, k));
    fault_sweep(h, x, 24, out);
}

void fault_rows_by_index(ad_tape tape, struct fault_results *out)
{
    static const int64_t rows[5] = {3, 0, 3, 1, 3};
    ad_tensor g = {0}, x = fault_leaf(tape, 4, 3);
    ad_tensor indices = OP(ad_constant(tape, AD_I64, 1, SHAPE(5), rows));
    ad_tensor h = OP(ad_gather_rows(x, indices));
    h = OP(ad_square(h));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    fault_read_value(g, 12, out);
    fault_sweep(g, x, 12, out);
}

void fault_more_reductions(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 5);
    ad_tensor h = OP(ad_prod_axes(x, SHAPE(1), 1, AD_KEEPDIM));
    ad_tensor k = OP(ad_norm_axes(x, SHAPE(0), 1, 3, AD_KEEPDIM));
    h = OP(ad_mul(h, k));
    k = OP(ad_min_axes(x, SHAPE(0), 1, 0));
    h = OP(ad_mul(h, k));
    k = OP(ad_var_axes(x, SHAPE(1), 1, 1, AD_KEEPDIM));
    h = OP(ad_add(h, k));
    h = OP(ad_logsumexp(h));
    fault_sweep(h, x, 20, out);
}

void fault_shares(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 5);
    ad_tensor h = OP(ad_softmax(x, 0)), k = OP(ad_log_softmax(x, -1));
    h = OP(ad_mul(h, k));
    fault_sweep(h, x, 20, out);
}

void fault_batched_products(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 3, SHAPE(2, 3, 4), fault_data));
    ad_tensor w = fault_leaf(tape, 4, 3), v = OP(ad_leaf(tape, AD_F64, 1, SHAPE(3), fault_data));
    ad_tensor h = OP(ad_matmul(x, w));
    ad_tensor k = OP(ad_permute(h, SHAPE(0, 2, 1), 3));
    h = OP(ad_matmul(h, k));
    h = OP(ad_matmul(h, v));
    k = OP(ad_select(h, 0, 0));
    h = OP(ad_select(h, 0, 1));
    ad_tensor square = OP(ad_outer(h, k));
    h = OP(ad_dot(h, k));
    h = OP(ad_mul(h, square));
    fault_sweep(h, x, 24, out);
    fault_read_gradient(w, 12, out);
    fault_read_gradient(v, 3, out);
}

void fault_casts(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 5);
    ad_tensor h = OP(ad_transpose(x));
    h = OP(ad_cast(h, AD_F32));
    h = OP(ad_exp(h));
    h = OP(ad_cast(h, AD_F64));
    fault_sweep(h, x, 20, out);
}

void fault_second_of_reductions(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = fault_leaf(tape, 2, 3);
    ad_tensor h = OP(ad_prod_axes(x, SHAPE(1), 1, AD_KEEPDIM));
    ad_tensor k = OP(ad_norm(x, 2));
    h = OP(ad_mul(h, k));
    k = OP(ad_softmax(x, 1));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    fault_sweep(g, x, 6, out);
}

static ad_tensor smooth(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape, (void)n, (void)payload;
    return ad_tanh(ad_mul(ad_exp(x[0]), x[0]));
}

/* The check finds nothing, and leaves what was on the tape. */
void fault_checked(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 1, 3);
    ad_tensor h = OP(ad_square(x));
    DO(ad_retain_gradient(h));
    DO(ad_check_gradient(tape, smooth, 1, &x, 1e-6, NULL, NULL));
    fault_sweep(h, x, 3, out);
    fault_read_gradient(h, 3, out);
}

static void count(ad_tape tape, ad_status status, const char *message, void *payload)
{
    (void)tape, (void)status, (void)message;
    ++*(int *)payload;
}

/* Functions that allocate nothing: they work whatever else fails, and change nothing. */
void fault_looked_at(ad_tape tape, struct fault_results *out)
{
    int told = 0;
    ad_stats stats;
    FILE *nowhere = fopen("/dev/null", "w");
    DO(ad_tape_on_error(tape, count, &told));
    ad_tensor x = fault_leaf(tape, 3, 5);
    ad_tensor h = OP(ad_exp(x));
    if (nowhere && h.value)
        DO(ad_tensor_print(nowhere, h));
    DO(ad_tape_stats(tape, &stats));
    if (h.value)
        out->number[out->n++] = (double)ad_size(h) + ad_rank(h) + ad_dtype_of(h);
    fault_sweep(h, x, 15, out);
    /* Once, however many calls met the error. */
    if (told != (ad_tape_status(tape) != AD_OK))
        snprintf(fault_wrong, sizeof fault_wrong, "looked_at: told %d times", told);
    DO(ad_tape_on_error(tape, NULL, NULL));
    if (nowhere)
        fclose(nowhere);
}
