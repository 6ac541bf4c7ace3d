/* run_cases.c: how every test program ends. */
#include "run_cases.h"

#include <stdlib.h>

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
