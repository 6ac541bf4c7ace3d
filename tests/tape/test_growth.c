/* test_growth.c: what is done again and again does not make the process grow.
 *
 * TAPESCOPE_CYCLES is the number of cycles (default 40 000; a part of it for tapes that come and
 * go). The bound is 1 MiB of resident memory and of address space, whatever the number of cycles.
 * The sanitizers keep freed memory back and watch for leaks themselves: there the cycles are fewer
 * and the size is not looked at.
 */
#include "program_support.h"
#include "run_cases.h"
#include "sanitizers.h"

#include <tapescope/ad.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SANITIZED = SANITIZED_ADDRESS || SANITIZED_THREAD };

enum { SIZE = 32, WARM = 2000, BOUND = 1 << 20 };

static const ad_tape_options small = {.budget_bytes = 16 << 20, .reserve_bytes = 16 << 20};
static double x_data[SIZE], w_data[SIZE * SIZE];

static long cycles(long share)
{
    const char *text = getenv("TAPESCOPE_CYCLES");
    long n = text && *text ? strtol(text, NULL, 10) : SANITIZED ? 5000 : 40000;
    return n / share > 1 ? n / share : 1;
}

struct size {
    long space, resident; /* bytes */
};

/* The kernel's sum over all pages; what statm says may be off by hundreds of pages for each
 * processor. 0: this kernel has no such sum. */
static long resident_now(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "Rss:", 4) == 0)
            kib = strtol(line + 4, NULL, 10);
    if (file)
        fclose(file);
    return kib * 1024;
}

static struct size size_now(void)
{
    struct size size = {0};
    FILE *file = fopen("/proc/self/statm", "re");
    ck_assert_ptr_nonnull(file);
    int n = fscanf(file, "%ld %ld", &size.space, &size.resident);
    fclose(file);
    ck_assert_int_eq(n, 2);
    size.space *= sysconf(_SC_PAGESIZE);
    const long exact = resident_now();
    size.resident = exact > 0 ? exact : size.resident * sysconf(_SC_PAGESIZE);
    return size;
}

/* Records a layer, sweeps, reads the gradient. */
static void use(ad_tape tape)
{
    double gradient[SIZE * SIZE];
    ad_tensor x = ad_constant(tape, AD_F64, 2, (int64_t[]){1, SIZE}, x_data);
    ad_tensor w = ad_leaf(tape, AD_F64, 2, (int64_t[]){SIZE, SIZE}, w_data);
    ad_tensor y = ad_sum(ad_square(ad_tanh(ad_matmul(x, w))));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(w, gradient, SIZE * SIZE), AD_OK);
    ck_assert(gradient[0] != 0);
}

static void record_and_reset(ad_tape *tape)
{
    use(*tape);
    ck_assert_int_eq(ad_tape_reset(*tape), AD_OK);
}

static void record_and_rewind(ad_tape *tape)
{
    ad_mark mark = ad_tape_mark(*tape);
    use(*tape);
    ck_assert_int_eq(ad_tape_rewind(*tape, mark), AD_OK);
    ck_assert_int_eq(ad_tape_reset(*tape), AD_OK);
}

static void fail_and_reset(ad_tape *tape)
{
    ad_tensor x = ad_leaf(*tape, AD_F64, 1, (int64_t[]){SIZE}, x_data);
    ad_tensor y = ad_leaf(*tape, AD_F64, 1, (int64_t[]){SIZE - 1}, x_data);
    ck_assert_int_eq(ad_backward(ad_sum(ad_add(x, y))), AD_ERROR_SHAPE);
    ck_assert_int_eq(ad_tape_reset(*tape), AD_OK);
    ck_assert_int_eq(ad_tape_status(*tape), AD_OK);
}

static void create_and_destroy(ad_tape *tape)
{
    ad_tape other;
    (void)tape;
    ck_assert_int_eq(ad_tape_create(&other, &small), AD_OK);
    use(other);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

/* Sixteen tapes at a time, destroyed in another order. */
static void create_and_destroy_many(ad_tape *tape)
{
    enum { MANY = 16, STEP = 5 };
    ad_tape many[MANY];
    (void)tape;
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(ad_tape_create(&many[i], &small), AD_OK);
    for (int i = 0; i < MANY; i += 4)
        use(many[i]);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(ad_tape_destroy(many[i * STEP % MANY]), AD_OK);
}

/* Runs `cycle` n times, after a few that bring in what is used at all. */
static void check_growth(void (*cycle)(ad_tape *), long n)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    long warm = n < WARM ? n : WARM;
    for (long i = 0; i < warm; i++)
        cycle(&tape);
    struct size before = size_now();
    for (long i = 0; i < n; i++)
        cycle(&tape);
    struct size after = size_now();
    long grown = after.resident - before.resident, space = after.space - before.space;
    printf("%ld cycles: %+ld KiB resident, %+ld KiB of address space\n", n, grown / 1024,
           space / 1024);
    if (!SANITIZED) {
        ck_assert_int_lt(grown, BOUND);
        ck_assert_int_lt(space, BOUND);
    }
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static void setup(void)
{
    program_setup();
    /* The kernel makes huge pages of small ones when it likes, and each is 2 MiB. */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (int i = 0; i < SIZE; i++)
        x_data[i] = 0.01 * (i + 1);
    for (int i = 0; i < SIZE * SIZE; i++)
        w_data[i] = 0.001 * (i % 17 - 8);
}

static void (*const on_a_tape[])(ad_tape *) = {record_and_reset, record_and_rewind, fail_and_reset};
static void (*const with_tapes[])(ad_tape *) = {create_and_destroy, create_and_destroy_many};

TEST_EACH(recording_again_and_again_takes_no_more_memory, 3)
{
    check_growth(on_a_tape[_i], cycles(1));
}

TEST_EACH(tapes_that_come_and_go_leave_nothing, 2)
{
    check_growth(with_tapes[_i], cycles(20));
}

TEST_EACH(a_profile_of_the_same_lines_takes_no_more_memory, 2)
{
    ck_assert_int_eq(ad_profile_start(program_path("growth.prof")), AD_OK);
    if (_i == 0)
        check_growth(record_and_reset, cycles(2));
    else
        check_growth(create_and_destroy, cycles(40));
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct program_profile opened = program_open(program_path("growth.prof"));
    ck_assert(opened.profile->complete);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

int main(void)
{
    TCase *tests = file_cases(&file_tests, setup, program_teardown);
    tcase_set_timeout(tests, 0); /* as many cycles as are asked for */
    return run_cases("growth", tests);
}
