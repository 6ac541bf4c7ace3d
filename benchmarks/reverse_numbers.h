/* reverse_numbers.h: programs of numbers, measured in gradients of the same function recorded as
 * statements and swept.
 */
#ifndef REVERSE_NUMBERS_H
#define REVERSE_NUMBERS_H

#include "common_options.h"

/* The cases, ended by NULL. */
extern const char *const numbers_cases[];

/* Rows of the suite reverse for one of them. False, having said why on standard error, if something
 * failed or a derivative is wrong. */
bool numbers_compare(const struct options *options, const char *name);

#endif
