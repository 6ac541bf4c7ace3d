/* cli_sizes.h: the size of the problem that each of several profiles is of. */
#ifndef PROFILER_CLI_CLI_SIZES_H
#define PROFILER_CLI_CLI_SIZES_H

#include "cli_args.h"
#include "report_many.h"

/* How the user says what the size is: none of these, or one. */
struct cli_size_args {
    const char *list; /* --sizes 10,20,40 */
    const char *key;  /* --size-key n: of n=…, --n=…, --n … or -n …, or of a scope's n */
    size_t argument;  /* --size-arg K: the program's K-th argument; 0: not given */
};

#define CLI_SIZE_OPTIONS(type, member)                                                             \
    {"sizes", 0, CLI_TEXT, "N,N,...", "the size of each profile", offsetof(type, member.list),     \
     NULL,    0},                                                                                  \
        {"size-key",                                                                               \
         0,                                                                                        \
         CLI_TEXT,                                                                                 \
         "NAME",                                                                                   \
         "the size is what NAME is in each program's arguments, or in its scopes",                 \
         offsetof(type, member.key),                                                               \
         NULL,                                                                                     \
         0},                                                                                       \
    {                                                                                              \
        "size-arg", 0, CLI_COUNT, "K", "the size is each program's K-th argument",                 \
            offsetof(type, member.argument), NULL, 0                                               \
    }

/* Finds the size of every profile; if nothing was said, the only argument that is a number in all
 * of them and not always the same. `size` has room for opened->n, `name` for n bytes. Returns
 * CLI_OK, or says what is missing. */
int cli_find_sizes(const struct cli_size_args *args, const char *command,
                   const struct cli_profiles *opened, double *size, char *name, size_t n);

#endif
