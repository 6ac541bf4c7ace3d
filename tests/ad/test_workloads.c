/* test_workloads.c: gradients of the benchmarks' computations against another library's.
 *
 * The reference sums are PyTorch's in f64; the workloads' own, from quadruple precision, are
 * compared as well.
 */
#include "common_workloads.h"
#include "exhaustive.h"
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* saved: bytes of the distinct storages that PyTorch 1.13 saves, f32 and f64, as
 * benchmarks/peers/peer_torch.py counts them. */
static const struct {
    const char *name;
    double sum;
    uint64_t saved[2];
} references[] = {
    {"chain1", 1.7671712168787738e-13, {1332, 2664}},
    {"chain64", -0.0034701157240798865, {85248, 170496}},
    {"chainp1", 4.5116997426621488, {2664, 5328}},
    {"chainp64", -36.480207279757558, {170496, 340992}},
    {"mlp32", 0.45982911883590971, {24580, 49160}},
    {"mlp128", 0.030311921051277571, {98308, 196616}},
    {"mlp512", 0.23925787679427654, {393220, 786440}},
    {"mlp1024", -0.707568598648845, {786436, 1572872}},
    {"lstm", 0.0056438950624852638, {5726208, 11452416}},
    {"attn", 6.3873340460612058e-05, {589832, 1179656}},
    {"gp512", 494.71732276122333, {2107456, 4214872}},
};

enum { REFERENCES = sizeof references / sizeof *references };

static void open_workload(struct workload *w, const char *name, ad_dtype dtype)
{
    const struct workload_case *spec = workload_find(name);
    ck_assert_msg(spec != NULL, "there is no workload %s", name);
    ck_assert_msg(workload_create(w, spec, dtype) == AD_OK, "%s: %s", name,
                  ad_tape_message(w->tape));
}

/* One step; the gradients stay on the tape. */
static double step(const struct workload *w)
{
    ad_status status = ad_backward(workload_forward(w));
    ck_assert_msg(status == AD_OK, "%s: %s", w->spec->name, ad_tape_message(w->tape));
    return workload_gradient_sum(w);
}

START_TEST(gradient_sums_equal_the_reference)
{
    struct workload w;
    open_workload(&w, references[_i].name, AD_F64);
    const double sum = step(&w), want = references[_i].sum, exact = w.spec->gradient_sum;
    printf("%-9s %.17g, reference %.17g: relative difference %.1e\n", references[_i].name, sum,
           want, fabs(sum / want - 1));
    ck_assert_msg(fabs(sum - want) <= 1e-12 * fabs(want), "%s: %.17g, but the reference is %.17g",
                  references[_i].name, sum, want);
    ck_assert_msg(fabs(sum - exact) <= 1e-12 * fabs(exact), "%s: %.17g, but exactly it is %.17g",
                  references[_i].name, sum, exact);
    workload_destroy(&w);
}
END_TEST

START_TEST(repeated_steps_give_the_same_sum)
{
    struct workload w;
    open_workload(&w, references[_i].name, AD_F64);
    const double first = step(&w);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(ad_tape_rewind(w.tape, w.mark), AD_OK);
        const double again = step(&w);
        ck_assert_msg(memcmp(&first, &again, sizeof first) == 0, "%s: %.17g, then %.17g",
                      references[_i].name, first, again);
    }
    workload_destroy(&w);
}
END_TEST

START_TEST(f32_sums_are_near)
{
    struct workload w;
    open_workload(&w, references[_i].name, AD_F32);
    const double sum = step(&w), want = references[_i].sum;
    ck_assert_msg(fabs(sum - want) <= 1e-3 * (fabs(want) + 1e-2), "%s f32: %.9g, but f64 %.9g",
                  references[_i].name, sum, want);
    workload_destroy(&w);
}
END_TEST

START_TEST(no_more_bytes_are_saved_than_by_pytorch)
{
    for (int dtype = AD_F32; dtype <= AD_F64; dtype++) {
        struct workload w;
        ad_saved before, after;
        open_workload(&w, references[_i].name, (ad_dtype)dtype);
        ck_assert_int_eq(ad_tape_saved_for_backward(w.tape, &before), AD_OK);
        ck_assert_uint_eq(before.buffer_bytes, 0);
        workload_forward(&w);
        ck_assert_int_eq(ad_tape_saved_for_backward(w.tape, &after), AD_OK);
        const uint64_t theirs = references[_i].saved[dtype == AD_F64];
        ck_assert_uint_gt(after.buffer_bytes, 0);
        ck_assert_msg(after.buffer_bytes <= theirs, "%s: %llu bytes, PyTorch saves %llu",
                      references[_i].name, (unsigned long long)after.buffer_bytes,
                      (unsigned long long)theirs);
        workload_destroy(&w);
    }
}
END_TEST

/* Copies every gradient of the workload, one after the other; the caller frees. */
static void *gradients(const struct workload *w, size_t *bytes)
{
    const size_t element = w->dtype == AD_F32 ? sizeof(float) : sizeof(double);
    size_t n = 0;
    for (int k = 0; k < w->n_parameters; k++)
        n += (size_t)ad_size(w->parameter[k]);
    char *all = malloc(n * element), *next = all;
    ck_assert_ptr_nonnull(all);
    for (int k = 0; k < w->n_parameters; k++) {
        const int64_t size = ad_size(w->parameter[k]);
        ck_assert_int_eq(ad_gradient(w->parameter[k], next, size), AD_OK);
        next += (size_t)size * element;
    }
    *bytes = n * element;
    return all;
}

START_TEST(a_profile_changes_no_bit)
{
    char path[] = TEST_BINARY_DIR "/test_workloads.XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    for (int dtype = AD_F32; dtype <= AD_F64; dtype++) {
        struct workload w;
        size_t bytes, again_bytes;
        open_workload(&w, references[_i].name, (ad_dtype)dtype);
        step(&w);
        void *plain = gradients(&w, &bytes);
        ck_assert_int_eq(ad_tape_rewind(w.tape, w.mark), AD_OK);
        ck_assert_msg(ad_profile_start(path) == AD_OK, "%s", ad_tape_message((ad_tape){0}));
        step(&w);
        void *profiled = gradients(&w, &again_bytes);
        ck_assert_msg(ad_profile_stop() == AD_OK, "%s", ad_tape_message((ad_tape){0}));
        ck_assert_uint_eq(bytes, again_bytes);
        ck_assert_msg(memcmp(plain, profiled, bytes) == 0, "%s: the profile changed a gradient",
                      references[_i].name);
        free(plain);
        free(profiled);
        workload_destroy(&w);
    }
    unlink(path);
}
END_TEST

/* ---- memory of loops ---- */

static int calls; /* of an allocator's functions */

static void *count_reserve(size_t n, void *payload)
{
    calls++;
    return tape_memory_system.reserve(n, payload);
}

static void count_unreserve(void *p, size_t n, void *payload)
{
    tape_memory_system.unreserve(p, n, payload);
}

static void *count_resize(void *p, size_t n, void *payload)
{
    calls++;
    return tape_memory_system.resize(p, n, payload);
}

static void count_release(void *p, void *payload)
{
    tape_memory_system.release(p, payload);
}

static const ad_allocator counted = {.reserve = count_reserve,
                                     .unreserve = count_unreserve,
                                     .resize = count_resize,
                                     .release = count_release};

/* How far into its reservation the tape has ever been: memory that was never touched is taken from
 * the system with the first touch. */
static uint64_t touched(const struct workload *w)
{
    observe_begin(UINT64_MAX);
    ck_assert_int_eq(ad_tape_rewind(w->tape, w->mark), AD_OK);
    uint64_t bytes = observe_ledger()->touched_bytes;
    tape_observe_end();
    return bytes;
}

static void step_in_frame(const struct workload *w, int kind)
{
    ad_frame frame = kind ? ad_frame_begin(w->tape) : (ad_frame){0, 0, 0, 0};
    ad_tensor y = workload_forward(w);
    if (kind)
        ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ad_status status = kind == 2 ? ad_backward_release(y) : ad_backward(y);
    ck_assert_msg(status == AD_OK, "%s: %s", w->spec->name, ad_tape_message(w->tape));
}

/* Every workload, plain, in a frame, and in a frame with a sweep that releases; in f32 and f64, or
 * in one of them in turn. */
START_TEST(a_loop_takes_nothing_from_the_system_after_its_second_step)
{
    const int i = exhaustive_is_asked() ? _i : 2 * _i + _i % 2;
    const struct workload_case *spec = &workload_cases[i / 6];
    const int kind = i / 2 % 3;
    struct workload w;
    const ad_tape_options options = {.allocator = &counted};
    w = (struct workload){.spec = spec, .dtype = i % 2 ? AD_F64 : AD_F32};
    ck_assert_int_eq(ad_tape_create(&w.tape, &options), AD_OK);
    ck_assert_msg(spec->create(&w) == AD_OK, "%s", ad_tape_message(w.tape));
    w.mark = ad_tape_mark(w.tape);
    ad_stats first, later;
    int calls_then = 0;
    uint64_t touched_then = 0;
    for (int k = 0; k < 5; k++) {
        step_in_frame(&w, kind);
        ck_assert_int_eq(ad_tape_rewind(w.tape, w.mark), AD_OK);
        if (k == 1) {
            touched_then = touched(&w);
            calls_then = calls;
            ck_assert_int_eq(ad_tape_stats(w.tape, &first), AD_OK);
        }
    }
    ck_assert_int_eq(calls, calls_then);
    ck_assert_uint_eq(touched(&w), touched_then);
    ck_assert_int_eq(ad_tape_stats(w.tape, &later), AD_OK);
    ck_assert_uint_eq(later.live_bytes, first.live_bytes);
    ck_assert_uint_eq(later.peak_bytes, first.peak_bytes);
    workload_destroy(&w);
}
END_TEST

/* The peak of a step, and what it saves. */
START_TEST(frames_and_releasing_sweeps_lower_the_peak_of_a_perceptron)
{
    uint64_t peak[3];
    for (int kind = 0; kind < 3; kind++) {
        struct workload w;
        ad_stats stats;
        ck_assert_int_eq(workload_create(&w, workload_find("mlp128"), AD_F64), AD_OK);
        ck_assert_int_eq(ad_tape_reset_peak(w.tape), AD_OK);
        step_in_frame(&w, kind);
        ck_assert_int_eq(ad_tape_stats(w.tape, &stats), AD_OK);
        peak[kind] = stats.peak_bytes;
        printf("mlp128 f64, %s: peak %llu bytes\n",
               kind == 0   ? "plain"
               : kind == 1 ? "in a frame"
                           : "in a frame, released",
               (unsigned long long)stats.peak_bytes);
        workload_destroy(&w);
    }
    ck_assert_uint_lt(peak[1], peak[0]);
    ck_assert_uint_le(peak[2], peak[1]);
}
END_TEST

int main(void)
{
    int n_cases = 0;
    while (workload_cases[n_cases].name)
        n_cases++;
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    Suite *suite = suite_create("workloads");
    TCase *tests = tcase_create("gradients");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, gradient_sums_equal_the_reference, 0, REFERENCES);
    tcase_add_loop_test(tests, repeated_steps_give_the_same_sum, 0, REFERENCES);
    tcase_add_loop_test(tests, f32_sums_are_near, 0, REFERENCES);
    tcase_add_loop_test(tests, no_more_bytes_are_saved_than_by_pytorch, 0, REFERENCES);
    tcase_add_loop_test(tests, a_profile_changes_no_bit, 0, REFERENCES);
    suite_add_tcase(suite, tests);
    TCase *memory = tcase_create("memory");
    tcase_set_timeout(memory, 300);
    tcase_add_loop_test(memory, a_loop_takes_nothing_from_the_system_after_its_second_step, 0,
                        n_cases * 6 / (int)exhaustive_step(2));
    tcase_add_test(memory, frames_and_releasing_sweeps_lower_the_peak_of_a_perceptron);
    suite_add_tcase(suite, memory);
    return run_suite(suite);
}
