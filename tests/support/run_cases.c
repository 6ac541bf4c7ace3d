/* run_cases.c: how every test program ends. */
#include "run_cases.h"

#include <stdlib.h>

void file_tests_add(struct file_tests *tests, struct file_test *test)
{
    *(tests->tail ? &tests->tail->next : &tests->head) = test;
    tests->tail = test;
}

TCase *file_cases(const struct file_tests *tests, void (*setup)(void), void (*teardown)(void))
{
    TCase *cases = tcase_create("file");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 300);
    for (const struct file_test *t = tests->head; t; t = t->next)
        tcase_add_loop_test(cases, *t->test, t->first(), t->end());
    return cases;
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_cases(const char *name, TCase *cases)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
