/* common_options.h: the command line of the programs of this folder, and its usage message.
 *
 * Invariant: what a program does not know as an option, or as a case, ends it with status 2.
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Exactly those that the program names in `known` can differ from its defaults. */
struct options {
    const char *case_name, *dtype, *peer, *metric, *data;
    bool no_huge_pages, quick;
    int threads; /* the least is the default */
    int rounds;
    double seconds;
};

struct options_program {
    const char *name;
    const char *known;                  /* first letters, "cdptrsq"; i: data, h: no-huge-pages */
    const char *(*case_name)(size_t k); /* NULL behind the last */
    const char *more;                   /* a line of the usage, such as "peers: a b"; or NULL */
    struct options defaults;
    double quick_seconds; /* of a round of --quick, which has three; 0: it changes neither */
};

/* Reads the command line, or prints what is wrong and the usage on standard error and exits. */
struct options options_read(int argc, char **argv, const struct options_program *program);

/* Whether an option that names a thing, or is NULL for all, names this one. */
bool options_want(const char *option, const char *name);

#endif
