/* reverse_written.h: a program of numbers that was written as C, compiled and measured in times its
 * objective of plain C.
 */
#ifndef REVERSE_WRITTEN_H
#define REVERSE_WRITTEN_H

#include "common_options.h"

/* The only case. */
extern const char written_name[];

/* Its rows of the suite reverse. Without a C compiler (`cc`, found as the shell does) there are
 * none, which standard error says. False, having said why there, if something failed or a
 * derivative is wrong. */
bool written_compare(const struct options *options);

#endif
