/* cli_recorded.h: a recording of a program, from the file that is made room for to the line on what
 * it left.
 *
 * Invariant: a profile that was there before is never taken for the program's, and stays if that
 * cannot be run.
 */
#ifndef PROFILER_CLI_CLI_RECORDED_H
#define PROFILER_CLI_CLI_RECORDED_H

#include <stdbool.h>

struct cli_recorded {
    char **argv;
    const char *profile; /* as the user wrote it */
    const char *path;    /* absolute */
    bool pack, utf8;
    /* Start the program and wait for its end, as cli_start_program and cli_wait_program do; NULL:
     * those. */
    int (*start)(void *payload, char **argv, const char *path);
    int (*wait)(void *payload);
    void *payload;
    /* Set: whether the program left a profile, or wrote it to a device. */
    bool left;
};

/* Runs the program. Returns its exit status (128 + n after signal n), or that of a program that
 * never started. */
int cli_run_recorded(struct cli_recorded *recording);

#endif
