/* ad_kernel.c: kernels without a tape; see ad_kernel.h. */
#include <tapescope/ad_kernel.h>

#include "ad_internal.h"

#include "kernel.h"

_Static_assert((int)AD_KERNEL_RANK == (int)KERNEL_MAX_RANK, "a layout has room for all axes");

const char *ad_kernels_ready(int version)
{
    static const char other[] = "the kernels are of another version of libtapescope than the file "
                                "was written with: write it again";
    static const char full[] = "no memory for OpenBLAS' buffers";
    char error[KERNEL_ERROR_BYTES];
    if (version != AD_KERNELS_VERSION)
        return other;
    return ad_prime(error, sizeof error) ? NULL : full;
}

static struct kernel_array array_of(const ad_kernel_array *layout, const void *data)
{
    return (struct kernel_array){.data = (void *)(uintptr_t)data,
                                 .shape = layout->shape,
                                 .strides = layout->strides,
                                 .size = layout->size,
                                 .dtype = (uint8_t)layout->dtype,
                                 .rank = (uint8_t)layout->rank,
                                 .contiguous = layout->dense != 0};
}

static bool call_fits(const struct kernel_op *op, const ad_kernel_call *call)
{
    return op && call->n_out == op->n_out && call->n_in <= TAPE_MAX_IN &&
           (op->variadic ? call->n_in >= op->n_in : call->n_in == op->n_in);
}

int ad_kernel_run(const ad_kernel_call *call, void *const *out, const void *const *in,
                  void *workspace)
{
    char error[KERNEL_ERROR_BYTES];
    struct kernel_array operand[TAPE_MAX_IN], result[KERNEL_MAX_OUT], *to[KERNEL_MAX_OUT];
    kernel_ref from[TAPE_MAX_IN];
    const struct kernel_op *op = kernel_op_find(call->op, call->at);
    const struct tape_site here = {
        (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)), 0};
    if (!call_fits(op, call)) {
        ad_fail(AD_ERROR_ARGUMENT, here, "kernel_run: there is no %s of %d operands", call->op,
                call->n_in);
        return -1;
    }
    for (int o = 0; o < call->n_out; o++) {
        result[o] = array_of(call->array[o], out[o]);
        to[o] = &result[o];
    }
    for (int i = 0; i < call->n_in; i++) {
        operand[i] = array_of(call->array[call->n_out + i], in[i]);
        from[i] = &operand[i];
    }
    const struct kernel_call run = {.op = op,
                                    .in = from,
                                    .out = to,
                                    .attr = call->attr,
                                    .n_in = call->n_in,
                                    .n_out = call->n_out,
                                    .n_attr = call->n_attr,
                                    .accumulate = call->adds != 0,
                                    .workspace = workspace ? workspace : KERNEL_NO_WORKSPACE,
                                    .error = error};
    if (op->workspace && op->workspace(&run) > call->workspace) {
        ad_fail(AD_ERROR_ARGUMENT, here, "kernel_run: %s wants a larger workspace", call->op);
        return -1;
    }
    if (kernel_run(&run) == 0)
        return 0;
    ad_fail(AD_ERROR_VALUE, here, "%s", error);
    return -1;
}
