/* test_sampler.c: samples without timers: the handler's own function, told the time and what the
 * thread does.
 *
 * A program is simulated whose lines take a known part of its time; what samples make of it must
 * be near that, at periods that are the sampling period's own, parts and multiples of it, as well
 * as at others.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"
#include "run_cases.h"
#include "sanitizers.h"
#include "unwind.h"

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

enum { PERIOD = 4000000, SAMPLES = 40000 };

static struct collect_sampler sampler;
static struct collect_thread thread;
static struct tape_now now;
static struct collect_module module[2];
static struct collect_modules modules = {.module = module, .n = 2};
static char said[256];

/* In the collector, to the user. */
void collect_say(bool (*log)(int level, const char *message), const char *path, const char *format,
                 const char *reason)
{
    (void)log;
    ck_assert_str_eq(format, "%s: %s");
    snprintf(said, sizeof said, "%s: %s", path, reason);
}

static uintptr_t locate(uint32_t low, uintptr_t near)
{
    return near + low;
}

static void setup(void)
{
    const struct collect_moment begin = {.wall_ns = 7 * MS, .cpu_ns = 3 * MS};
    memset(&sampler, 0, sizeof sampler);
    memset(&thread, 0, sizeof thread);
    memset(&now, 0, sizeof now);
    module[0] = (struct collect_module){.path = (char *)"/bin/fit", .start = 0x1000, .end = 0x9000};
    module[1] = (struct collect_module){
        .path = (char *)"/lib/libopenblas.so.0", .start = 0x20000, .end = 0x30000};
    sampler.locate = locate;
    sampler.samples.n_threads = 2;
    thread.number = 1;
    thread.now = &now;
    said[0] = '\0';
    collect_take_begin(&thread, PERIOD, 11, &begin);
}

static void teardown(void)
{
    collect_samples_free(&sampler.samples);
}

static void take(uint64_t wall_ns, uint64_t cpu_ns, uintptr_t pc)
{
    const struct collect_moment moment = {.wall_ns = wall_ns, .cpu_ns = cpu_ns, .pc = pc};
    collect_take(&thread, &moment, &sampler.publishers);
}

static const struct collect_thread_total *total(void)
{
    const struct collect_thread_total *t = &sampler.samples.thread[1];
    ck_assert_uint_eq(t->fired, t->recorded + t->partial + t->lost + t->outside);
    return t;
}

/* How much processor time is said to be a line's in this phase: the part of it that its samples
 * at work are of all. */
static uint64_t time_of(uint32_t phase, uintptr_t pc)
{
    uint64_t n = 0, all = 0;
    for (uint32_t i = 0; i < sampler.samples.n; i++) {
        const struct collect_aggregate *a = &sampler.samples.aggregate[i];
        n += a->phase == phase && a->pc == pc ? a->working : 0;
        all += a->working;
    }
    return all > 0 ? total()->cpu_ns * n / all : 0;
}

/* ---- a program of four parts: two lines forward, the same two backward ---- */

static const unsigned part[4] = {30, 10, 15, 45}; /* percent of the period */
static const uintptr_t site[2] = {0x1234, 0x1240};

static unsigned part_at(uint64_t ns, uint64_t period)
{
    const uint64_t percent = ns % period * 100 / period;
    unsigned at = 0;
    for (unsigned end = part[0]; percent >= end; end += part[at])
        at++;
    return at;
}

/* What the tape publishes of a part; as statements that are swept, or as ops. */
static void publish(unsigned at, bool scalar)
{
    static uint32_t word[2][1] = {{0x1234 << TAPE_SHAPE_BITS | 2}, {0x1240 << TAPE_SHAPE_BITS | 2}};
    const struct tape_doing doing = {.phase = at < 2 ? TAPE_PHASE_FORWARD : TAPE_PHASE_BACKWARD,
                                     .pc = scalar ? 0 : site[at % 2],
                                     .op = scalar ? "statement" : "matmul"};
    tape_doing_write(&now, &doing);
    now.statement = scalar ? word[at % 2] : NULL;
}

/* The greatest difference, in percentage points, between what a part takes and what it is said to.
 * jitter: as the timers are armed; else at a fixed period. */
static double worst_split(uint64_t period, bool scalar, bool jitter)
{
    uint64_t ns = 7 * MS;
    double worst = 0;
    for (int i = 0; i < SAMPLES; i++) {
        /* Handlers that run at once: a delay that is always the same would do a jitter's work. */
        ns += jitter ? collect_take_interval(&thread) : PERIOD;
        publish(part_at(ns, period), scalar);
        take(ns, ns, 0x2000);
        collect_drain(&sampler, &thread, &modules);
    }
    ck_assert_uint_eq(total()->recorded, SAMPLES);
    for (unsigned at = 0; at < 4; at++) {
        const uint32_t phase = at < 2 ? TAPE_PHASE_FORWARD : TAPE_PHASE_BACKWARD;
        const double percent =
            100. * (double)time_of(phase, site[at % 2]) / (double)total()->cpu_ns;
        const double off = percent > part[at] ? percent - part[at] : part[at] - percent;
        worst = off > worst ? off : worst;
    }
    return worst;
}

static const uint64_t periods[12] = {40 * US, 100 * US,  250 * US, 500 * US, 1 * MS, 1333 * US,
                                     2 * MS,  2667 * US, 4 * MS,   5 * MS,   6 * MS, 8 * MS};

TEST_EACH(lines_of_tensor_ops_get_their_share_within_2_points, 12)
{
    const double worst = worst_split(periods[_i], false, true);
    ck_assert_msg(worst < 2, "period %llu ns: %.2f points", (unsigned long long)periods[_i], worst);
}

TEST_EACH(lines_of_scalar_statements_get_their_share_within_5_points, 12)
{
    const double worst = worst_split(periods[_i], true, true);
    ck_assert_msg(worst < 5, "period %llu ns: %.2f points", (unsigned long long)periods[_i], worst);
}

TEST(a_fixed_period_would_be_far_off)
{
    ck_assert_double_gt(worst_split(4 * MS, false, false), 20);
}

TEST(intervals_are_spread_evenly_around_the_period)
{
    enum { N = 100000, BINS = 10 };
    unsigned bin[BINS] = {0};
    for (int i = 0; i < N; i++) {
        const uint64_t ns = collect_take_interval(&thread);
        ck_assert_uint_ge(ns, PERIOD / 1024);
        ck_assert_uint_lt(ns, 2 * PERIOD - PERIOD / 1024);
        bin[(ns - PERIOD / 1024) * BINS / (2 * PERIOD - PERIOD / 512)]++;
    }
    for (int i = 0; i < BINS; i++) {
        ck_assert_uint_gt(bin[i], N / BINS * 95 / 100);
        ck_assert_uint_lt(bin[i], N / BINS * 105 / 100);
    }
}

/* ---- counting ---- */

TEST(each_signal_is_recorded_partial_or_lost)
{
    const uint64_t n = 3 * COLLECT_RING + 7;
    for (uint64_t i = 1; i <= n; i++) {
        publish((unsigned)(i % 4), false);
        if (i % 5 == 0)
            tape_doing_write(&now, &(struct tape_doing){0});
        take(7 * MS + i * MS, 3 * MS + i * MS / 2, 0x2000);
        if (i == COLLECT_RING / 2)
            collect_drain(&sampler, &thread, &modules);
    }
    ck_assert_uint_eq(thread.fired, n);
    collect_drain(&sampler, &thread, &modules);
    (void)total();
    collect_drain_last(&sampler, &thread, &modules);
    const uint64_t kept = COLLECT_RING / 2 + COLLECT_RING;
    ck_assert_uint_eq(total()->fired, n);
    ck_assert_uint_eq(total()->lost, n - kept);
    ck_assert_uint_eq(total()->lost, thread.lost);
    ck_assert_uint_eq(total()->partial, kept / 5);
    ck_assert_uint_eq(total()->recorded, kept - kept / 5);
}

TEST(samples_stand_for_all_time_up_to_the_last_of_them)
{
    for (uint64_t i = 1; i <= 2 * COLLECT_RING; i++) {
        publish(0, false);
        take(7 * MS + i * i, 3 * MS + 2 * i, 0x2000);
    }
    collect_drain(&sampler, &thread, &modules);
    /* The time of those that were lost counts in the whole. */
    publish(1, false);
    take(7 * MS + 9 * MS, 3 * MS + 5 * MS, 0x2000);
    collect_drain(&sampler, &thread, &modules);
    ck_assert_uint_eq(total()->lost, COLLECT_RING);
    ck_assert_uint_eq(total()->wall_ns, 9 * MS);
    ck_assert_uint_eq(total()->cpu_ns, 5 * MS);
    ck_assert_uint_eq(sampler.samples.n, 2);
    ck_assert_uint_eq(sampler.samples.aggregate[0].working, COLLECT_RING);
    ck_assert_uint_eq(sampler.samples.aggregate[1].working, 1);
}

TEST(samples_outside_of_the_steps_are_counted_apart_and_have_no_time)
{
    for (uint64_t i = 1; i <= 30; i++) {
        thread.outside = i <= 10 || i > 25;
        if (i == 11) { /* in the middle between two samples */
            thread.from_wall_ns = 7 * MS + 10 * MS + MS / 2;
            thread.from_cpu_ns = 3 * MS + 10 * US + US / 4;
        }
        publish(0, false);
        take(7 * MS + i * MS, 3 * MS + i * US, 0x2000);
    }
    collect_drain(&sampler, &thread, &modules);
    ck_assert_uint_eq(total()->outside, 15);
    ck_assert_uint_eq(total()->recorded, 15);
    ck_assert_uint_eq(total()->wall_ns, 14 * MS + MS / 2);
    ck_assert_uint_eq(total()->cpu_ns, 14 * US + US * 3 / 4);
    ck_assert_uint_eq(time_of(TAPE_PHASE_FORWARD, site[0]), total()->cpu_ns);
    /* What was measured turns out not to be wanted. */
    collect_samples_void(&sampler.samples);
    ck_assert_uint_eq(total()->outside, 30);
    ck_assert_uint_eq(total()->wall_ns + total()->cpu_ns, 0);
    ck_assert_uint_eq(time_of(TAPE_PHASE_FORWARD, site[0]), 0);
}

TEST(samples_of_too_many_kinds_are_lost_and_the_user_is_told_once)
{
    for (uint64_t i = 1; i <= 70000; i++) {
        take(7 * MS + i, 3 * MS + i, 0x100000 + i);
        collect_drain(&sampler, &thread, &modules);
    }
    ck_assert_uint_eq(total()->fired, 70000);
    ck_assert_uint_eq(total()->lost, 70000 - sampler.samples.n);
    ck_assert_uint_gt(total()->lost, 0);
    collect_sampler_tell(&sampler, NULL, "a.prof");
    ck_assert_ptr_nonnull(strstr(said, "a.prof: too many different samples"));
    said[0] = '\0';
    collect_sampler_tell(&sampler, NULL, "a.prof");
    ck_assert_str_eq(said, "");
}

/* ---- threads that publish nothing ---- */

static struct tape_now other[2];

/* A sample of a worker thread at pc while two others publish these phases. */
static const struct collect_aggregate *sample_worker(uintptr_t pc, uint32_t a, uint32_t b)
{
    memset(other, 0, sizeof other);
    tape_doing_write(&other[0], &(struct tape_doing){.phase = a, .pc = 0x1500, .op = "matmul"});
    tape_doing_write(&other[1], &(struct tape_doing){.phase = b, .pc = 0x1600, .op = "matmul"});
    sampler.publishers.n = 2;
    sampler.publishers.now[0] = &other[0];
    sampler.publishers.now[1] = &other[1];
    thread.now = NULL;
    take(8 * MS, 4 * MS, pc);
    collect_drain(&sampler, &thread, &modules);
    (void)total();
    ck_assert_uint_eq(sampler.samples.n, 1);
    return &sampler.samples.aggregate[0];
}

TEST(a_worker_of_the_product_library_is_at_work_for_the_only_op)
{
    const struct collect_aggregate *a =
        sample_worker(0x21000, TAPE_PHASE_NONE, TAPE_PHASE_BACKWARD);
    ck_assert(a->shared);
    ck_assert_uint_eq(a->phase, TAPE_PHASE_BACKWARD);
    ck_assert_uint_eq(a->pc, 0x1600);
    ck_assert_uint_eq(total()->recorded, 1);
}

TEST(a_worker_is_at_work_for_no_op_if_there_are_two)
{
    const struct collect_aggregate *a =
        sample_worker(0x21000, TAPE_PHASE_FORWARD, TAPE_PHASE_FORWARD);
    ck_assert(!a->shared);
    ck_assert_uint_eq(a->phase, TAPE_PHASE_NONE);
}

TEST(a_thread_elsewhere_than_in_the_product_library_is_at_work_for_itself)
{
    const struct collect_aggregate *a = sample_worker(0x2100, TAPE_PHASE_FORWARD, TAPE_PHASE_NONE);
    ck_assert(!a->shared);
    ck_assert_uint_eq(a->phase, TAPE_PHASE_NONE);
    ck_assert_uint_eq(total()->partial, 1);
}

/* ---- stacks ---- */

static uintptr_t stack[64];

static const struct collect_aggregate *sample_stack(uintptr_t frame, uintptr_t low, uintptr_t high)
{
    const struct collect_moment moment = {.wall_ns = 8 * MS,
                                          .cpu_ns = 4 * MS,
                                          .pc = 0x2000,
                                          .frame = frame,
                                          .stack = (uintptr_t)&stack[2]};
    thread.low = low;
    thread.high = high;
    collect_take(&thread, &moment, &sampler.publishers);
    collect_drain(&sampler, &thread, &modules);
    (void)total();
    ck_assert_uint_eq(sampler.samples.n, 1);
    return &sampler.samples.aggregate[0];
}

static void put_frame(unsigned at, unsigned next, uintptr_t pc)
{
    stack[at] = (uintptr_t)&stack[next];
    stack[at + 1] = pc;
}

#define LOW ((uintptr_t)stack)
#define HIGH ((uintptr_t)(stack + 64))

TEST(callers_are_followed_by_frame_pointers_as_far_as_the_stack_goes)
{
    put_frame(4, 10, 0x3000);
    put_frame(10, 62, 0x4000);
    put_frame(62, 64, 0x5000); /* the next would lie beyond the stack */
    const struct collect_aggregate *a = sample_stack((uintptr_t)&stack[4], LOW, HIGH);
    const uint64_t *pc = sampler.samples.pc + a->first_pc;
    ck_assert_uint_eq(a->n_pcs, 3);
    ck_assert_uint_eq(pc[0], 0x2000);
    ck_assert_uint_eq(pc[1], 0x3000);
    ck_assert_uint_eq(pc[2], 0x4000);
    ck_assert_uint_eq(total()->recorded, 1);
}

TEST(frames_that_do_not_rise_end_the_walk)
{
    put_frame(4, 4, 0x3000);
    ck_assert_uint_eq(sample_stack((uintptr_t)&stack[4], LOW, HIGH)->n_pcs, 2);
}

TEST_EACH(a_register_that_is_no_frame_pointer_leaves_the_address_alone, 5)
{
    static const struct {
        intptr_t frame;
        bool known;
    } wrong[] = {{0, true}, {-8, true}, {5 * 8 + 4, true}, {8 * 8, false}, {63 * 8, true}};
    const uintptr_t frame = LOW + (uintptr_t)wrong[_i].frame;
    const struct collect_aggregate *a = sample_stack(frame, LOW, wrong[_i].known ? HIGH : 0);
    ck_assert_uint_eq(a->n_pcs, 1);
    ck_assert_uint_eq(total()->partial, 1);
}

TEST(an_address_that_is_no_code_ends_the_callers)
{
    put_frame(4, 10, 0x3000);
    put_frame(10, 20, 0xdead0000);
    put_frame(20, 30, 0x4000);
    ck_assert_uint_eq(sample_stack((uintptr_t)&stack[4], LOW, HIGH)->n_pcs, 2);
}

TEST(another_stack_than_the_threads_own_is_not_followed)
{
    put_frame(4, 10, 0x3000);
    ck_assert_uint_eq(sample_stack((uintptr_t)&stack[4], LOW + 512, HIGH + 512)->n_pcs, 1);
}

#if defined(__x86_64__) && !SANITIZED_ADDRESS && !SANITIZED_THREAD

/* ---- callers of a library ---- */

/* One instruction of libm after the other is interrupted. At the first of a call the return
 * address is on the top of the stack; it must be found at each. */
static struct {
    uintptr_t from, to; /* libm */
    uintptr_t expected;
    unsigned n, n_wrong;
} steps;

static void on_step(int number, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    const uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP],
                    sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
    (void)number;
    (void)info;
    if (pc < steps.from || pc >= steps.to)
        return;
    struct unwind_copy copy = {.pc = pc,
                               .at = sp,
                               .fp = (uintptr_t)u->uc_mcontext.gregs[REG_RBP],
                               .fp_known = true,
                               .sp = sp,
                               .word = (const uintptr_t *)sp, // NOLINT
                               .n_words = COLLECT_WORDS};
    if (steps.expected == 0)
        steps.expected = *copy.word;
    bool found = true;
    while (found && copy.pc >= steps.from && copy.pc < steps.to)
        found = unwind_caller(&copy);
    steps.n++;
    steps.n_wrong += !found || copy.pc != steps.expected;
}

__attribute__((noinline)) static double step_through(double (*f)(double), double x)
{
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    const double y = f(x);
    __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    return y;
}

static int find_libm(struct dl_phdr_info *info, size_t size, void *payload)
{
    const uintptr_t *const within = payload;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && *within >= begin &&
            *within - begin < info->dlpi_phdr[i].p_memsz) {
            steps.from = begin;
            steps.to = begin + info->dlpi_phdr[i].p_memsz;
            return 1;
        }
    }
    return 0;
}

TEST_EACH(the_caller_of_a_library_is_found_at_each_of_its_instructions, 6)
{
    static const char *const name[] = {"sin", "exp", "tanh", "log1p", "erf", "lgamma"};
    const struct sigaction stepping = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    ck_assert_msg(libm != NULL, "%s", dlerror());
    double (*f)(double);
    *(void **)&f = dlsym(libm, name[_i]);
    ck_assert_ptr_nonnull(*(void **)&f);
    const uintptr_t within = (uintptr_t)f;
    ck_assert_int_eq(dl_iterate_phdr(find_libm, (void *)(uintptr_t)&within), 1);
    const double wanted = f(0.7);
    ck_assert_int_eq(sigaction(SIGTRAP, &stepping, &before), 0);
    steps.n = steps.n_wrong = 0;
    steps.expected = 0;
    const double got = step_through(f, 0.7);
    ck_assert_int_eq(sigaction(SIGTRAP, &before, NULL), 0);
    ck_assert(got == wanted);
    ck_assert_uint_gt(steps.n, 10);
    ck_assert_msg(steps.n_wrong == 0, "%s: %u of %u", name[_i], steps.n_wrong, steps.n);
    dlclose(libm);
}
#endif

TEST(what_the_next_owner_of_a_place_does_is_not_the_ending_threads)
{
    publish(2, true);
    take(10 * MS, 5 * MS, 0x2000);
    now.owner++; /* the thread has given it back, and ends; another publishes there */
    publish(3, true);
    take(14 * MS, 9 * MS, 0x2000);
    collect_drain(&sampler, &thread, &modules);
    ck_assert_uint_eq(total()->recorded, 1);
    ck_assert_uint_eq(total()->partial, 1);
    ck_assert_uint_eq(time_of(TAPE_PHASE_BACKWARD, site[0]), 3 * MS); /* a half of 6 ms */
    ck_assert_uint_eq(time_of(TAPE_PHASE_BACKWARD, site[1]), 0);
}

RUN_TESTS(setup, teardown)
