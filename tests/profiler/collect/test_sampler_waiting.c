/* test_sampler_waiting.c: what samples make of threads that wait: the handler's own function, told
 * the system call that a thread is in.
 */
#include "collect_sampler.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>
#include <sys/syscall.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

static struct collect_sampler sampler;
static struct collect_thread thread;
static struct tape_now now;
static struct collect_module module[2];
static struct collect_modules modules = {.module = module, .n = 2};

/* In the collector, to the user. */
void collect_say(bool (*log)(int level, const char *message), const char *path, const char *format,
                 const char *reason)
{
    (void)log;
    ck_abort_msg("%s, %s, %s", path, format, reason);
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
    sampler.samples.n_threads = 2;
    thread.number = 1;
    thread.now = &now;
    collect_take_begin(&thread, 4 * MS, 11, &begin);
}

static void teardown(void)
{
    collect_samples_free(&sampler.samples);
}

static const struct collect_thread_total *total(void)
{
    const struct collect_thread_total *t = &sampler.samples.thread[1];
    ck_assert_uint_eq(t->fired, t->recorded + t->partial + t->lost + t->outside);
    return t;
}

/* The only sample with this reason to wait, of the thread that take_in makes. */
static const struct collect_aggregate *waiting(enum collect_waiting why)
{
    const struct collect_aggregate *found = NULL;
    for (uint32_t i = 0; i < sampler.samples.n; i++)
        if (sampler.samples.aggregate[i].waiting == (uint32_t)why) {
            ck_assert_ptr_null(found);
            found = &sampler.samples.aggregate[i];
        }
    return found;
}

/* One sample: so many ms later, of which so many us on a processor, in a system call or in none. */
static void take_in(long call, uint64_t ms, uint64_t us)
{
    static uint64_t wall = 7 * MS, cpu = 3 * MS;
    const struct collect_moment moment = {.wall_ns = wall += ms * MS,
                                          .cpu_ns = cpu += us * US,
                                          .pc = 0x2000,
                                          .call = (uint32_t)(call + 1),
                                          .caller = 0x21000};
    collect_take(&thread, &moment, &sampler.publishers);
    collect_drain(&sampler, &thread, &modules);
    (void)total();
}

enum { NO_CALL = -1 };

TEST(what_waits_is_not_at_work_and_all_time_counts)
{
    thread.now = NULL;
    take_in(SYS_clock_nanosleep, 10, 4000);
    take_in(SYS_futex, 10, 1000);
    take_in(SYS_read, 10, 2000);
    take_in(NO_CALL, 10, 3000);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_OTHER)->working, 0);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_LOCK)->working, 0);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_INPUT_OUTPUT)->working, 0);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_NONE)->working, 1);
    ck_assert_uint_eq(total()->cpu_ns, 10 * MS);
    ck_assert_uint_eq(total()->wall_ns, 40 * MS);
}

/* What percentage of the samples at work is this op's. */
static double share_of(const char *op)
{
    uint64_t n = 0, all = 0;
    for (uint32_t i = 0; i < sampler.samples.n; i++) {
        const struct collect_aggregate *a = &sampler.samples.aggregate[i];
        n += a->op == op ? a->working : 0;
        all += a->working;
    }
    return 100. * (double)n / (double)all;
}

/* Two ops and a wait, again and again: `before` is the op that the wait comes before. Signals
 * end the wait and begin it anew, as in a program that sleeps until a time. */
struct turns {
    uint64_t period_ns, wait_ns, length_ns[2];
    int before;
    double share; /* of the first op, in percent */
};
static const struct turns turns[] = {
    {MS, 2 * MS, {100 * US, 300 * US}, 0, 25},
    {MS, 2 * MS, {100 * US, 300 * US}, 1, 25},
    {4 * MS, 2100 * US, {1000 * US, 2300 * US}, 0, 30.3},
    {4 * MS, 2100 * US, {1000 * US, 2300 * US}, 1, 30.3},
};

/* Until a time, in an op or waiting, with the samples that come meanwhile. */
static void pass_until(struct collect_moment *at, uint64_t end, uint64_t *next, const char *op)
{
    const struct tape_doing doing = {
        .phase = op ? TAPE_PHASE_FORWARD : TAPE_PHASE_NONE, .pc = op ? 0x1234 : 0, .op = op};
    tape_doing_write(&now, &doing);
    at->call = op ? 0 : SYS_clock_nanosleep + 1;
    while (true) {
        const uint64_t until = *next < end ? *next : end;
        at->cpu_ns += op ? until - at->wall_ns : 0;
        at->wall_ns = until;
        if (until < *next)
            break;
        collect_take(&thread, at, &sampler.publishers);
        *next += collect_take_interval(&thread);
    }
}

TEST_EACH(ops_before_and_behind_a_wait_have_their_share, sizeof turns / sizeof *turns)
{
    static const char *const op[2] = {"first", "second"};
    const struct turns *is = &turns[_i];
    struct collect_moment at = {.wall_ns = 7 * MS, .cpu_ns = 3 * MS, .pc = 0x2000};
    collect_take_begin(&thread, is->period_ns, 11, &at);
    uint64_t next = at.wall_ns + collect_take_interval(&thread);
    for (int round = 0; round < 40000; round++) {
        for (int i = 0; i < 2; i++) {
            if (i == is->before)
                pass_until(&at, at.wall_ns + is->wait_ns, &next, NULL);
            pass_until(&at, at.wall_ns + is->length_ns[i], &next, op[i]);
        }
        collect_drain(&sampler, &thread, &modules);
    }
    ck_assert_uint_eq(total()->lost, 0);
    const double share = share_of(op[0]);
    ck_assert_msg(share > is->share - 1 && share < is->share + 1, "%.2f %%", share);
}

TEST(a_call_that_uses_the_processor_is_at_work)
{
    thread.now = NULL;
    take_in(SYS_read, 10, 9000);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_INPUT_OUTPUT)->working, 1);
    take_in(SYS_nanosleep, 10, 9000); /* which does not */
    ck_assert_uint_eq(waiting(COLLECT_WAITING_OTHER)->working, 0);
}

/* Of 10 ms so many us on a processor before this sample, which comes so late, in a call that the
 * signal has ended or in none. */
static uint64_t working_of(long call, bool interrupted, uint64_t late_us, uint64_t us)
{
    struct collect_moment moment = {.wall_ns = 17 * MS,
                                    .cpu_ns = 3 * MS + us * US,
                                    .pc = 0x2000,
                                    .call = (uint32_t)(call + 1),
                                    .interrupted = interrupted};
    thread.now = NULL;
    thread.due_ns = 17 * MS - late_us * US;
    collect_take(&thread, &moment, &sampler.publishers);
    collect_drain(&sampler, &thread, &modules);
    (void)total();
    ck_assert_uint_eq(sampler.samples.n, 1);
    return sampler.samples.aggregate[0].working;
}

static const struct {
    long call;
    bool interrupted;
    uint64_t late_us, us, working;
} lone[] = {
    {SYS_futex, true, 10, 9000, 0}, /* however much it worked before */
    {SYS_futex, false, 10, 9000, 1}, {NO_CALL, false, 10, 1000, 1}, /* the signal came at once */
    {NO_CALL, false, 6000, 3500, 0}, /* when it had a processor again */
    {NO_CALL, false, 6000, 9900, 1}, /* which it had: in the system */
};

TEST_EACH(a_sample_says_whether_its_thread_had_a_processor, sizeof lone / sizeof *lone)
{
    ck_assert_uint_eq(
        working_of(lone[_i].call, lone[_i].interrupted, lone[_i].late_us, lone[_i].us),
        lone[_i].working);
}

TEST(time_outside_of_the_measured_steps_does_not_count)
{
    thread.now = NULL;
    take_in(SYS_nanosleep, 10, 4000);
    thread.outside = 1;
    take_in(NO_CALL, 10, 4000);
    thread.outside = 0;
    take_in(NO_CALL, 10, 3000);
    ck_assert_uint_eq(waiting(COLLECT_WAITING_NONE)->working, 1);
    ck_assert_uint_eq(total()->cpu_ns, 7 * MS);
}

TEST_EACH(a_thread_of_the_product_library_without_work_is_told_from_others, 3)
{
    static const struct {
        bool publishes;
        uintptr_t caller;
        enum collect_waiting expected;
    } is[] = {{false, 0x21000, COLLECT_WAITING_BLAS},
              {false, 0x2100, COLLECT_WAITING_OTHER},
              {true, 0x21000, COLLECT_WAITING_OTHER}};
    const struct collect_moment moment = {.wall_ns = 17 * MS,
                                          .cpu_ns = 12 * MS,
                                          .pc = 0x2000,
                                          .call = SYS_sched_yield + 1,
                                          .caller = is[_i].caller};
    if (!is[_i].publishes)
        thread.now = NULL;
    collect_take(&thread, &moment, &sampler.publishers);
    collect_drain(&sampler, &thread, &modules);
    ck_assert_ptr_nonnull(waiting(is[_i].expected));
    ck_assert_uint_eq(waiting(is[_i].expected)->working, 1); /* it spins */
}

#if defined(__x86_64__)
TEST_EACH(the_number_of_a_system_call_is_in_the_code_before_it, 7)
{
    static const struct {
        uint8_t code[24];
        uint8_t n; /* of the bytes before the call */
        uint32_t expected;
    } is[] = {
        {{0xb8, 0xe6, 0, 0, 0}, 5, 230 + 1},                               /* mov $230, %eax */
        {{0x31, 0xc0}, 2, 0 + 1},                                          /* xor %eax, %eax */
        {{0xb8, 0x2d, 0, 0, 0, 0x48, 0x8b, 0x54, 0x24, 0x10}, 10, 45 + 1}, /* mov 16(%rsp), %rdx */
        {{0x41, 0xb8, 0xca, 0, 0, 0, 0x44, 0x89, 0xc0}, 9, 202 + 1},       /* by %r8d */
        {{0x41, 0xb8, 0xca, 0, 0, 0}, 6, COLLECT_CALL_UNKNOWN},            /* of %r8d alone */
        {{0xb8, 0, 0, 1, 0}, 5, COLLECT_CALL_UNKNOWN},                     /* no call has that */
        {{0x90}, 1, COLLECT_CALL_UNKNOWN},
    };
    static uint8_t page[3 * 4096];
    uint8_t *const begin = (uint8_t *)(((uintptr_t)page + 4095) / 4096 * 4096);
    for (int edge = 0; edge < 2; edge++) { /* in the middle of a page, and at its very begin */
        uint8_t *const at = begin + (edge ? 0 : 1000);
        memset(page, 0, sizeof page);
        memcpy(at, is[_i].code, is[_i].n);
        ck_assert_uint_eq(collect_call_before(at + is[_i].n), is[_i].expected);
    }
    ck_assert_uint_eq(collect_call_before(begin), COLLECT_CALL_UNKNOWN);
}
#endif

RUN_TESTS(setup, teardown)
