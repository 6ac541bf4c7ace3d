/* cli_tapes.h: the .tape files of `tapescope annotate --write`. */
#ifndef PROFILER_CLI_CLI_TAPES_H
#define PROFILER_CLI_CLI_TAPES_H

#include "cli_args.h"

#define CLI_TAPE_SUFFIX ".tape"

/* Says so if a source was changed after the program was built: line numbers are those of the
 * source that was compiled. */
void cli_check_age(const struct read_profile *profile, const char *file);

/* Writes SOURCE.tape for every source of the profile that can be read, beside it, or into `folder`
 * if it is not NULL. A file that is there and was not written by this command stays as it is.
 * Returns an exit status; what is not written is said. */
int cli_write_tapes(const struct cli_profile *opened, const struct report_style *style,
                    const char *folder);

#endif
