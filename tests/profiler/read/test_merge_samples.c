/* test_merge_samples.c: call paths, samples and threads of several profiles as those of one. */
#include "profile_maker.h"
#include "profile_seeds.h"
#include "read_merge.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void setup(void)
{
    strcpy(path, "/tmp/tapescope-merge-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

/* A path of each number: its parent and its return address in the library. */
struct made_path {
    uint32_t id, parent;
    uint64_t offset;
};

static void put_paths(struct maker_bytes *bytes, uint64_t base, const struct made_path *from,
                      size_t n)
{
    Tapescope__Path made[8], *list[8];
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    for (size_t i = 0; i < n; i++) {
        tapescope__path__init(&made[i]);
        made[i].id = from[i].id;
        made[i].parent = from[i].parent;
        made[i].pc = from[i].offset ? base + from[i].offset : 0;
        list[i] = &made[i];
    }
    paths.path = list;
    paths.n_path = n;
    paths.refused = n;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_PATHS, &paths);
}

static void put_threads(struct maker_bytes *bytes, const char *const *name, size_t n)
{
    Tapescope__Thread made[8], *list[8];
    Tapescope__Threads threads = TAPESCOPE__THREADS__INIT;
    for (size_t i = 0; i < n; i++) {
        tapescope__thread__init(&made[i]);
        made[i].index = (uint32_t)i;
        made[i].tid = 100 + i;
        made[i].name = (char *)(uintptr_t)name[i];
        made[i].fired = 10 + i;
        made[i].recorded = 6 + i;
        made[i].partial = 3;
        made[i].lost = 1;
        made[i].wall_ns = 500;
        made[i].cpu_ns = 400;
        list[i] = &made[i];
    }
    threads.thread = list;
    threads.n_thread = n;
    threads.process_cpu_ns = 1234;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_THREADS, &threads);
}

/* A sample of code, and one within an op; both are of `thread`. */
static void put_samples(struct maker_bytes *bytes, uint64_t base, uint32_t thread, uint32_t path_id,
                        uint64_t period)
{
    uint64_t stack[] = {base, base + 0x801};
    Tapescope__Sample code = TAPESCOPE__SAMPLE__INIT, op = TAPESCOPE__SAMPLE__INIT;
    Tapescope__Sample *list[] = {&code, &op};
    Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
    code.index = 4;
    code.thread = thread;
    code.op = (char *)"";
    code.stack = stack;
    code.n_stack = 2;
    code.count = 5;
    code.partial = 2;
    code.wall_ns = 50;
    code.cpu_ns = 40;
    op = code;
    op.index = 5;
    op.phase = 2;
    op.pc = base + 0x301;
    op.line = 7;
    op.op = (char *)"matmul";
    op.path = path_id;
    op.n_stack = 0;
    op.count = 3;
    samples.period_ns = period;
    samples.sample = list;
    samples.n_sample = 2;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_SAMPLES, &samples);
}

static struct read_profile *merge(const struct read_profile *a, const struct read_profile *b)
{
    char error[1024] = "";
    const struct read_profile *both[] = {a, b};
    const struct read_symbol *symbol[] = {NULL, NULL};
    const size_t n_symbols[] = {0, 0};
    ck_assert_msg(read_merge(path, both, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    struct read_profile *sum = read_profile(path, error, sizeof error);
    ck_assert_msg(sum != NULL, "%s", error);
    ck_assert(sum->complete);
    ck_assert_ptr_null(sum->warning);
    return sum;
}

static const char *const names[] = {"fit", "worker", "worker"};
static const struct made_path near_paths[] = {{1, 0, 0x101}, {2, 1, 0x201}, {3, 2, 0x301}};
/* Other numbers, with gaps; the frames of 9 are those of 3 above; 11 has no parent in the file. */
static const struct made_path far_paths[] = {
    {4, 0, 0x101}, {5, 4, 0x201}, {7, 5, 0x401}, {9, 5, 0x301}, {11, 10, 0x301}};

static struct read_profile *make_near(uint64_t period)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "monotonic", 1);
    maker_put_module(&bytes, "/lib/a.so", 0x10000, 0x10000);
    put_paths(&bytes, 0x10000, near_paths, 3);
    put_threads(&bytes, names, 3);
    put_samples(&bytes, 0x10000, 2, 3, period);
    return maker_read(&bytes);
}

static struct read_profile *make_far(uint32_t path_id, uint64_t period)
{
    static const char *const other[] = {"fit", "io", "worker", "worker"};
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "monotonic", 1);
    maker_put_module(&bytes, "/lib/a.so", 0x70000, 0x70000);
    put_paths(&bytes, 0x70000, far_paths, 5);
    put_threads(&bytes, other, 4);
    put_samples(&bytes, 0x70000, 3, path_id, period);
    return maker_read(&bytes);
}

static void free_all(struct read_profile *a, struct read_profile *b, struct read_profile *c)
{
    read_profile_free(a);
    read_profile_free(b);
    read_profile_free(c);
}

TEST(equal_paths_are_one_and_others_stay_apart)
{
    struct read_profile *a = make_near(7), *b = make_far(9, 7), *sum = merge(a, b);
    static const struct made_path want[] = {
        {1, 0, 0x101}, {2, 1, 0x201}, {3, 2, 0x301}, {4, 2, 0x401}, {5, 0, 0x301}};
    ck_assert_uint_eq(sum->n_call_paths, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(sum->call_path[i].id, want[i].id);
        ck_assert_uint_eq(sum->call_path[i].parent, want[i].parent);
        ck_assert_uint_eq(sum->call_path[i].pc, 0x10000 + want[i].offset);
    }
    ck_assert_uint_eq(sum->paths_refused, 3 + 5);
    free_all(a, b, sum);
}

TEST(what_is_signalled_adds_up_thread_by_thread)
{
    struct read_profile *a = make_near(7), *b = make_far(9, 7), *sum = merge(a, b);
    static const struct {
        const char *name;
        uint64_t tid, fired;
    } want[] = {{"fit", 100, 20}, {"worker", 0, 11 + 12}, {"worker", 0, 12 + 13}, {"io", 101, 11}};
    ck_assert_uint_eq(sum->n_threads, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct read_thread *thread = &sum->thread[i];
        ck_assert_str_eq(thread->name, want[i].name);
        ck_assert_uint_eq(thread->tid, want[i].tid);
        ck_assert_uint_eq(thread->fired, want[i].fired);
        ck_assert_uint_eq(thread->fired,
                          thread->recorded + thread->partial + thread->lost + thread->outside);
    }
    ck_assert_uint_eq(sum->thread[1].wall_ns, 1000);
    ck_assert_uint_eq(sum->thread[1].cpu_ns, 800);
    ck_assert_uint_eq(sum->process_cpu_ns, 2 * 1234);
    ck_assert_uint_eq(sum->sample_period_ns, 7);
    ck_assert(sum->is_sampled);
    free_all(a, b, sum);
}

TEST(samples_that_say_the_same_are_one)
{
    struct read_profile *a = make_near(7), *b = make_far(9, 7), *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_samples, 2);
    const struct read_sample *code = &sum->sample[0], *op = &sum->sample[1];
    ck_assert_uint_eq(code->thread, 2);
    ck_assert_uint_eq(code->n_stack, 2);
    ck_assert_uint_eq(code->stack[0], 0x10000); /* the module's first byte */
    ck_assert_uint_eq(code->stack[1], 0x10801);
    ck_assert_uint_eq(code->count, 10);
    ck_assert_uint_eq(code->partial, 4);
    ck_assert_uint_eq(code->wall_ns, 100);
    ck_assert_uint_eq(code->cpu_ns, 80);
    ck_assert_uint_eq(op->phase, READ_PHASE_BACKWARD);
    ck_assert_uint_eq(op->pc, 0x10301);
    ck_assert_uint_eq(op->path, 3);
    ck_assert_uint_eq(op->count, 6);
    free_all(a, b, sum);
}

/* As a collector writes them, without times: 5 samples of code, 2 of which found the thread at
 * work, and 3 of an op, all at work. */
static struct read_profile *make_counted(void)
{
    static uint64_t stack[] = {0x10000};
    struct maker_bytes bytes = {0};
    Tapescope__Sample code = TAPESCOPE__SAMPLE__INIT, op = TAPESCOPE__SAMPLE__INIT;
    Tapescope__Sample *list[] = {&code, &op};
    Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
    code.op = (char *)"";
    code.stack = stack;
    code.n_stack = 1;
    code.count = 5;
    code.working = 2;
    op.index = 1;
    op.phase = 1;
    op.pc = 0x10301;
    op.op = (char *)"matmul";
    op.count = op.working = 3;
    samples.sample = list;
    samples.n_sample = 2;
    maker_put_header(&bytes, "monotonic", 1);
    maker_put_module(&bytes, "/lib/a.so", 0x10000, 0x10000);
    put_threads(&bytes, names, 1);
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_SAMPLES, &samples);
    return maker_read(&bytes);
}

/* The thread has 500 ns, 400 of them on a processor. */
TEST(each_sample_has_an_equal_part_of_its_threads_time)
{
    struct read_profile *a = make_counted(), *b = make_counted(), *sum = merge(a, b);
    ck_assert_uint_eq(a->sample[0].cpu_ns, 400 * 2 / 5);
    ck_assert_uint_eq(a->sample[1].cpu_ns, 400 * 3 / 5);
    ck_assert_uint_eq(a->sample[0].wall_ns, 500 * 5 / 8);
    ck_assert_uint_eq(a->sample[0].wall_ns + a->sample[1].wall_ns, 500);
    for (size_t i = 0; i < 2; i++) { /* which a sum is not divided into anew */
        ck_assert_uint_eq(sum->sample[i].cpu_ns, 2 * a->sample[i].cpu_ns);
        ck_assert_uint_eq(sum->sample[i].wall_ns, 2 * a->sample[i].wall_ns);
        ck_assert_uint_eq(sum->sample[i].working, 2 * a->sample[i].working);
    }
    free_all(a, b, sum);
}

TEST(samples_on_other_paths_stay_apart)
{
    struct read_profile *a = make_near(7), *b = make_far(7, 7), *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_samples, 3);
    ck_assert_uint_eq(sum->sample[1].path, 3);
    ck_assert_uint_eq(sum->sample[2].path, 4);
    ck_assert_uint_eq(sum->sample[2].count, 3);
    free_all(a, b, sum);
}

TEST(of_two_periods_the_mean_is_by_signals)
{
    struct read_profile *a = make_near(1000), *b = make_far(9, 2000), *sum = merge(a, b);
    /* 10 + 11 + 12 signals, and 10 + 11 + 12 + 13. */
    ck_assert_uint_eq(sum->sample_period_ns, (33 * 1000 + 46 * 2000 + 39) / 79);
    free_all(a, b, sum);
}

TEST(a_sum_is_added_up_as_its_parts_would_be)
{
    struct read_profile *a = make_near(7), *b = make_far(7, 7), *sum = merge(a, b);
    struct read_profile *again = merge(sum, a);
    ck_assert_uint_eq(again->n_call_paths, sum->n_call_paths);
    ck_assert_uint_eq(again->n_samples, 3);
    ck_assert_uint_eq(again->sample[0].count, 15);
    ck_assert_uint_eq(again->sample[1].count, 6);
    ck_assert_uint_eq(again->thread[0].fired, 30);
    read_profile_free(again);
    free_all(a, b, sum);
}

struct counts {
    uint64_t fired, recorded, partial, lost, count, cpu_ns, calls;
    uint64_t scope_calls, scope_records, stated, lost_scopes, bytes, dropped;
};

static void count(struct counts *counts, const struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_threads; i++) {
        counts->fired += profile->thread[i].fired;
        counts->recorded += profile->thread[i].recorded;
        counts->partial += profile->thread[i].partial;
        counts->lost += profile->thread[i].lost;
    }
    for (size_t i = 0; i < profile->n_samples; i++) {
        counts->count += profile->sample[i].count;
        counts->cpu_ns += profile->sample[i].cpu_ns;
    }
    for (size_t i = 0; i < profile->n_tapes; i++) {
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            counts->calls += profile->tape[i].row[j].calls;
        for (size_t j = 0; j < profile->tape[i].n_residuals; j++) {
            counts->bytes += profile->tape[i].residual[j].bytes;
            counts->dropped += profile->tape[i].residual[j].by_destroy;
        }
    }
    for (size_t i = 0; i < profile->n_scopes; i++) {
        counts->scope_calls += profile->scope[i].calls;
        counts->scope_records += profile->scope[i].records;
    }
    for (size_t i = 0; i < profile->n_expectations; i++)
        counts->stated += profile->expectation[i].times;
    counts->lost_scopes += profile->lost_scopes;
}

/* Of the events, whose order and numbers are known. */
enum { MOST_HEARD = 1 << 14 };
struct heard {
    uint64_t n, ops, records, again, parts, frames;
    uint32_t most_process;
};
static uint32_t heard_path[MOST_HEARD]; /* by event, as the file has it */

static void hear(void *payload, const struct read_profile *profile, const struct read_event *event)
{
    struct heard *heard = payload;
    (void)profile;
    ck_assert_uint_lt(heard->n, MOST_HEARD);
    ck_assert(read_percent() > 0 && read_percent() <= 100);
    heard_path[heard->n++] = event->path;
    heard->again += event->again;
    heard->parts += event->part;
    heard->ops += *event->op != '\0';
    heard->records += event->record;
    heard->most_process =
        event->process > heard->most_process ? event->process : heard->most_process;
}

static struct heard hear_all(const char *name)
{
    char error[1024] = "";
    struct heard heard = {0};
    struct read_profile *profile = read_profile_events(name, hear, &heard, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_int_eq(read_percent(), -1);
    for (uint64_t i = 0; i < heard.n; i++) {
        size_t at = read_profile_path_numbered(profile, heard_path[i]);
        for (; at != SIZE_MAX; at = read_profile_path(profile, profile->call_path[at].parent))
            heard.frames++;
    }
    read_profile_free(profile);
    return heard;
}

/* Those that it has told of; one that has no number is the only one. */
static uint32_t processes(const struct heard *heard)
{
    return heard->most_process > 1 ? heard->most_process : 1;
}

static void seed_path(char *to, size_t room, unsigned i)
{
    ck_assert_int_lt(snprintf(to, room, "%s-%u", path, i), (int)room);
}

static struct read_profile *open_seed(unsigned i)
{
    static struct maker_bytes seed;
    char name[96], error[1024] = "";
    profile_seed_make(i, &seed);
    seed_path(name, sizeof name, i);
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(seed.data, 1, seed.n, file), seed.n);
    ck_assert_int_eq(fclose(file), 0);
    struct read_profile *profile = read_profile(name, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

/* Profiles of every kind: numbers that repeat, threads and paths that are not there. */
TEST(any_two_profiles_add_up)
{
    struct read_profile *one[PROFILE_SEEDS];
    uint64_t frames = 0;
    for (unsigned i = 0; i < PROFILE_SEEDS; i++)
        one[i] = open_seed(i);
    for (unsigned i = 0; i < PROFILE_SEEDS; i++) {
        for (unsigned j = 0; j < PROFILE_SEEDS; j++) {
            struct read_profile *sum = merge(one[i], one[j]);
            struct counts want = {0}, got = {0};
            count(&want, one[i]);
            count(&want, one[j]);
            count(&got, sum);
            ck_assert_msg(memcmp(&want, &got, sizeof want) == 0, "seeds %u and %u", i, j);
            ck_assert(sum->is_sampled == (one[i]->is_sampled || one[j]->is_sampled));
            ck_assert_uint_eq(sum->runs, one[i]->runs + one[j]->runs);
            const struct heard a = hear_all(one[i]->path), b = hear_all(one[j]->path);
            const struct heard all = hear_all(path);
            ck_assert_uint_eq(all.n, a.n + b.n);
            ck_assert_uint_eq(all.ops, a.ops + b.ops);
            ck_assert_uint_eq(all.records, a.records + b.records);
            ck_assert_uint_eq(all.again, a.again + b.again);
            ck_assert_uint_eq(all.parts, a.parts + b.parts);
            ck_assert_uint_eq(all.frames, a.frames + b.frames);
            frames += all.frames;
            ck_assert_uint_eq(all.most_process, b.n > 0   ? processes(&a) + processes(&b)
                                                : a.n > 0 ? processes(&a)
                                                          : 0);
            ck_assert_uint_eq(sum->n_events, all.n);
            ck_assert_uint_eq(sum->events_left_out,
                              one[i]->events_left_out + one[j]->events_left_out);
            read_profile_free(sum);
        }
    }
    ck_assert_uint_gt(frames, 0);
    for (unsigned i = 0; i < PROFILE_SEEDS; i++) {
        unlink(one[i]->path);
        read_profile_free(one[i]);
    }
}

TEST(what_cannot_be_read_again_is_said)
{
    struct read_profile *a = open_seed(1), *b = open_seed(9);
    char error[1024] = "";
    const struct read_profile *both[] = {a, b};
    const struct read_symbol *symbol[] = {NULL, NULL};
    const size_t n_symbols[] = {0, 0};
    unlink(path);
    unlink(b->path);
    ck_assert_int_eq(read_merge(path, both, symbol, n_symbols, 2, error, sizeof error), -1);
    ck_assert_msg(strstr(error, b->path) && strstr(error, "No such file"), "%s", error);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(rename(a->path, b->path), 0); /* another profile, with more events */
    ck_assert_int_eq(symlink(b->path, a->path), 0);
    ck_assert_msg(read_merge(path, both, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    ck_assert_uint_eq(hear_all(path).n, a->n_events + b->n_events);
    a->n_events += 1;
    ck_assert_int_eq(read_merge(path, both, symbol, n_symbols, 2, error, sizeof error), -1);
    ck_assert_msg(strstr(error, "has changed meanwhile") != NULL, "%s", error);
    unlink(a->path);
    unlink(b->path);
    read_profile_free(a);
    read_profile_free(b);
}

RUN_TESTS(setup, teardown)
