/* test_network_cases.c: gradients of the single ops that the benchmarks measure against PyTorch's,
 * and what batch_norm takes on the tape.
 *
 * The cases' sums are PyTorch's in f64, from benchmarks/peers/peer_libtorch.
 */
#include "common_network.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

static void open_case(struct workload *w, const struct workload_case *spec, ad_dtype dtype)
{
    ck_assert_msg(workload_create(w, spec, dtype) == AD_OK, "%s: %s", spec->name,
                  ad_tape_message(w->tape));
}

START_TEST(gradient_sums_equal_those_of_pytorch)
{
    const struct workload_case *spec = &network_cases[_i / 2];
    const ad_dtype dtype = _i % 2 ? AD_F64 : AD_F32;
    const double bound = dtype == AD_F64 ? 1e-12 : 1e-3, want = spec->gradient_sum;
    struct workload w;
    open_case(&w, spec, dtype);
    ck_assert_msg(workload_backward(&w, workload_forward(&w)) == AD_OK, "%s: %s", spec->name,
                  ad_tape_message(w.tape));
    const double sum = workload_gradient_sum(&w);
    ck_assert_msg(fabs(sum - want) <= bound * (fabs(want) + 0.01), "%s: %.17g, PyTorch has %.17g",
                  spec->name, sum, want);
    workload_destroy(&w);
}
END_TEST

/* Beside the result, the mean and the variance of a channel, and records. */
START_TEST(batch_norm_keeps_two_numbers_a_channel)
{
    const struct workload_case *spec = network_find("batchnorm");
    const ad_dtype dtype = _i ? AD_F64 : AD_F32;
    const uint64_t element = dtype == AD_F64 ? sizeof(double) : sizeof(float);
    const uint64_t channels = (uint64_t)spec->width * element;
    struct workload w;
    ad_stats before, after;
    ad_saved saved;
    open_case(&w, spec, dtype);
    ck_assert_int_eq(ad_tape_stats(w.tape, &before), AD_OK);
    const ad_tensor y = workload_forward(&w);
    ck_assert_int_eq(ad_tape_saved_for_backward(w.tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffer_bytes, 2 * channels);
    ck_assert_int_eq(ad_tape_stats(w.tape, &after), AD_OK);
    const uint64_t result = (uint64_t)ad_size(y) * element;
    ck_assert_uint_le(after.live_bytes - before.live_bytes, result + 2 * channels + 2048);
    workload_destroy(&w);
}
END_TEST

int main(void)
{
    int n_cases = 0;
    while (network_cases[n_cases].name)
        n_cases++;
    TCase *tests = tcase_create("network cases");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, gradient_sums_equal_those_of_pytorch, 0, 2 * n_cases);
    tcase_add_loop_test(tests, batch_norm_keeps_two_numbers_a_channel, 0, 2);
    return run_cases("network cases", tests);
}
