/* test_faults_limits.c: the limit on address space leaves no room for OpenBLAS, or for a tape.
 *
 * Each case is a program of its own, this one started again, since OpenBLAS keeps what it has once
 * had; an alarm ends it where OpenBLAS would hang.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 240, BUFFER_MIB = 128 };

static long size_of_process_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmSize:", 7) == 0)
            kib = atol(line + 7);
    if (f)
        fclose(f);
    return kib;
}

/* From now on the process may grow by so much; by any size if it is negative. */
static void allow_kib(long kib)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = kib < 0 ? limit.rlim_max : (rlim_t)(size_of_process_kib() + kib) * 1024;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(90);
}

static void allow(long mib)
{
    allow_kib(mib * 1024);
}

/* A product that OpenBLAS shares among its threads, and its gradient. 0, or where it went wrong. */
static int work(ad_tape tape)
{
    static double x[128 * 128], g[128 * 128];
    for (int i = 0; i < 128 * 128; i++)
        x[i] = 1;
    ad_tensor a = ad_leaf(tape, AD_F64, 2, (int64_t[]){128, 128}, x);
    if (ad_backward(ad_sum(ad_matmul(a, a))) != AD_OK || ad_gradient(a, g, 128 * 128) != AD_OK)
        return 30;
    for (int i = 0; i < 128 * 128; i++)
        if (g[i] != 256)
            return 31;
    return 0;
}

static int failed_for_openblas(ad_tape *tape)
{
    if (ad_tape_create(tape, NULL) != AD_ERROR_MEMORY || tape->slot != 0)
        return 10;
    const char *message = ad_tape_message(*tape);
    if (!strstr(message, "no memory for OpenBLAS") || !strstr(message, "OPENBLAS_NUM_THREADS"))
        return 11;
    ad_tape_clear_error(*tape);
    return 0;
}

/* The buffers do not fit: an error each time, and none as soon as they do. */
static int child_refused(long mib)
{
    ad_tape tape;
    allow(mib);
    for (int i = 0; i < 3; i++) {
        int wrong = failed_for_openblas(&tape);
        if (wrong)
            return wrong;
    }
    allow(-1);
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 12;
    int wrong = work(tape);
    return wrong ? wrong : (int)ad_tape_destroy(tape);
}

/* Buffers and tape fit; nothing that is done later needs more than the tape has reserved. Whether a
 * worker of OpenBLAS has its buffer by now is not known, so that mib must have one to spare. */
static int child_tight(long mib)
{
    ad_tape tape;
    allow(mib);
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 20;
    allow(0);
    int wrong = work(tape);
    return wrong ? wrong : (int)ad_tape_destroy(tape);
}

/* After OpenBLAS has its buffers, tapes are refused for want of a reservation, and later not. */
static int child_reservation(long mib)
{
    ad_tape tape, second;
    if (ad_tape_create(&tape, &(ad_tape_options){.reserve_bytes = 64 << 20}) != AD_OK)
        return 40;
    allow(mib);
    if (ad_tape_create(&second, NULL) != AD_ERROR_MEMORY || second.slot != 0)
        return 41;
    if (!strstr(ad_tape_message(second), "no memory for a tape"))
        return 42;
    int wrong = work(tape);
    if (wrong)
        return wrong;
    allow(-1);
    if (ad_tape_create(&second, NULL) != AD_OK)
        return 43;
    wrong = work(second);
    return wrong ? wrong : (int)ad_tape_destroy(second);
}

/* An error when all memory is taken but for so many KiB: its message is made with them, if need be
 * without the source line, although libdw would end the process where it lacks memory. */
static int child_message(long kib)
{
    ad_tape tape;
    if (ad_tape_create(&tape, &(ad_tape_options){.reserve_bytes = 2 << 20}) != AD_OK)
        return 50;
    ad_tape_of((ad_tensor){tape.slot, tape.generation, 9, 9}); /* loads the module, asks no line */
    ad_tape_clear_error(tape);
    const long full = size_of_process_kib() + 1024;
    allow(1);
    void *volatile taken = NULL; /* volatile: or the compiler leaves the allocations out */
    for (size_t n = 4096; n >= 16; n /= 2)
        do
            taken = malloc(n);
        while (taken);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)(full + kib) * 1024;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 93;
    ad_leaf(tape, AD_F64, 99, NULL, NULL);
    if (ad_tape_status(tape) != AD_ERROR_SHAPE ||
        !strstr(ad_tape_message(tape), "rank 99 is not in"))
        return 51;
    if (!strstr(ad_tape_message(tape), " at "))
        return 52;
    return (int)ad_tape_destroy(tape);
}

static const struct {
    const char *name;
    int (*run)(long mib);
} children[] = {{"refused", child_refused},
                {"tight", child_tight},
                {"reservation", child_reservation},
                {"message", child_message}};

static int child(const char *name, long mib)
{
    alarm(SECONDS);
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        if (strcmp(children[i].name, name) == 0)
            return children[i].run(mib);
    return 91;
}

/* Runs a case with so many threads in OpenBLAS and requires that it ends well. */
static void check_child(const char *name, int threads, long mib)
{
    char program[PATH_MAX] = "", count[16], room[32];
    int status;
    ck_assert_int_gt(readlink("/proc/self/exe", program, sizeof program - 1), 0);
    snprintf(count, sizeof count, "%d", threads);
    snprintf(room, sizeof room, "%ld", mib);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setenv("OPENBLAS_NUM_THREADS", count, 1);
        execl(program, program, name, room, (char *)NULL);
        _exit(92);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "%s, %d threads, %ld MiB: ended by signal %d", name, threads,
                  mib, WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "%s, %d threads, %ld MiB: %d", name, threads, mib,
                  WEXITSTATUS(status));
}

TEST(without_room_for_openblas_no_tape_is_made_and_nothing_hangs)
{
    static const long room[] = {0, 1, 20, 64, 100, BUFFER_MIB - 1, BUFFER_MIB};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        for (int threads = 1; threads <= 2; threads++)
            check_child("refused", threads, room[i]);
}

TEST(with_room_for_openblas_a_tape_works_though_no_more_can_be_had)
{
    check_child("tight", 1, BUFFER_MIB + 40);
    check_child("tight", 2, 3 * BUFFER_MIB + 40);
}

TEST(without_room_for_a_reservation_the_tapes_that_exist_go_on)
{
    check_child("reservation", 1, 1);
    check_child("reservation", 2, 1);
}

TEST(an_error_is_reported_when_there_is_no_memory_left_to_report_it)
{
    for (long kib = 0; kib < 100000; kib += kib < 2048 ? 64 : 4096)
        check_child("message", 1, kib);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return child(argv[1], atol(argv[2]));
    if (TEST_SANITIZE_FLAGS[0]) {
        puts("skipped: a sanitizer's own address space is beyond any limit");
        return 0;
    }
    return run_cases("faults_limits", file_cases(&file_tests, NULL, NULL));
}
