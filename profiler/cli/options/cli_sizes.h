/* cli_sizes.h: the size of the problem that each of several profiles is of. */
#ifndef PROFILER_CLI_CLI_SIZES_H
#define PROFILER_CLI_CLI_SIZES_H

#include "cli_args.h"
#include "report_many.h"

/* Finds the size of every profile; if nothing was said, the only argument that is a number in all
 * of them and not always the same. `size` has room for opened->n, `name` for n bytes. Returns
 * CLI_OK, or says what is missing. */
int cli_find_sizes(const struct cli_size_args *args, const char *command,
                   const struct cli_profiles *opened, double *size, char *name, size_t n);

#endif
