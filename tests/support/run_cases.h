/* run_cases.h: how every test program ends, and the tests of a file that is one group:
 *
 *     TEST(a_name_that_is_a_sentence) { … }
 *     TEST_EACH(it_holds_for_each_of_them, n) { … _i … }
 *     RUN_TESTS(setup, teardown)
 *
 * Invariant: main runs each test of the file, in the order in which they stand there.
 */
#ifndef RUN_CASES_H
#define RUN_CASES_H

#include "check_quietly.h"

#include <stddef.h>

/* A test of a file, run once for each _i from first() up to end(). */
struct file_test {
    const TTest *const *test;
    int (*first)(void), (*end)(void);
    struct file_test *next;
};

struct file_tests {
    struct file_test *head, *tail;
};

__attribute__((unused)) static struct file_tests file_tests;

/* The tests register themselves before main. */
void file_tests_add(struct file_tests *tests, struct file_test *test);

#define TEST_RANGE(name_, first_, end_)                                                            \
    static const TTest *name_;                                                                     \
    static int name_##_first(void)                                                                 \
    {                                                                                              \
        return (int)(first_);                                                                      \
    }                                                                                              \
    static int name_##_end(void)                                                                   \
    {                                                                                              \
        return (int)(end_);                                                                        \
    }                                                                                              \
    __attribute__((constructor)) static void name_##_add(void)                                     \
    {                                                                                              \
        static struct file_test entry = {&name_, name_##_first, name_##_end, NULL};                \
        file_tests_add(&file_tests, &entry);                                                       \
    }                                                                                              \
    START_TEST(name_)
#define TEST_EACH(name_, n_) TEST_RANGE(name_, 0, n_)
#define TEST(name_) TEST_EACH(name_, 1)

/* The file's tests as a case. A test is ended after 300 s, by CTest before. */
TCase *file_cases(const struct file_tests *tests, void (*setup)(void), void (*teardown)(void));

/* main of a file whose tests have this fixture, or NULL. */
#define RUN_TESTS(setup_, teardown_)                                                               \
    int main(void)                                                                                 \
    {                                                                                              \
        return run_cases(__FILE__, file_cases(&file_tests, setup_, teardown_));                    \
    }

/* Runs a suite, and gives what main returns. Check prints as much as CK_VERBOSITY says. */
int run_suite(Suite *suite);

/* The same with these cases alone, as a suite of this name. */
int run_cases(const char *name, TCase *cases);

#endif
