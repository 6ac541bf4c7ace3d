/* cli_paths.h: the profiles that operands stand for: a folder stands for those in it. */
#ifndef PROFILER_CLI_CLI_PATHS_H
#define PROFILER_CLI_CLI_PATHS_H

#include <stddef.h>

struct cli_paths {
    char **path; /* owned */
    size_t n, room;
};

/* Adds an operand: itself, or where it is a folder all FOLDER/NAME.prof, in the order of their
 * numbers (`stat -o FOLDER` writes them). Returns CLI_OK, or says that there are none. The caller
 * frees them in any case. */
int cli_paths_add(struct cli_paths *paths, const char *command, const char *operand);
void cli_paths_free(struct cli_paths *paths);

#endif
