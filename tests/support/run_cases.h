/* run_cases.h: how every test program ends. */
#ifndef RUN_CASES_H
#define RUN_CASES_H

#include <check.h>

/* Runs a suite, and gives what main returns. Check prints as much as CK_VERBOSITY says. */
int run_suite(Suite *suite);

/* The same with these cases alone, as a suite of this name. */
int run_cases(const char *name, TCase *cases);

#endif
