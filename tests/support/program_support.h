/* program_support.h: for tests that compile small programs against the library, run them, and read
 * what their profile says.
 *
 * Every test has a folder of its own, removed when it passes. Commands are run without a shell, so
 * that paths may hold any character.
 */
#ifndef PROGRAM_SUPPORT_H
#define PROGRAM_SUPPORT_H

#include "analyze.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_ARGS = 64 };

/* The test's folder, and what the last command printed (standard output and error together). */
extern char program_folder[PATH_MAX];
extern char program_output[1 << 16];

void program_setup(void);
void program_teardown(void);

/* program_folder/name, in one of a few buffers that are used in turn. */
const char *program_path(const char *name);
/* The source of that name in tests/programs. */
const char *program_source(const char *name);

/* A command; argv ends with NULL. */
struct program_command {
    const char *argv[PROGRAM_ARGS];
    int n;
};
void program_add(struct program_command *command, const char *argument);
/* Adds arguments up to NULL. */
void program_add_all(struct program_command *command, ...);
/* Flags that find the headers; that link the shared library; that link the static one. */
void program_add_includes(struct program_command *command);
void program_add_shared(struct program_command *command);
void program_add_static(struct program_command *command);
/* Returns the status of wait(); 127 << 8 if it cannot be run. */
int program_run(const struct program_command *command);
/* The same, which must exit with 0. */
void program_must(const struct program_command *command);
/* Compiles tests/programs/NAME.c as C by the build's compiler into program_path(name). */
void program_build(const char *name);
/* A compiler or linker of that name is on PATH. */
bool program_exists(const char *name);
/* Runs `tapescope record -o PROFILE program [argument]`; returns the status of wait(). */
int program_record(const char *profile, const char *program, const char *argument);

/* Text of a file; the caller frees it. */
char *program_text(const char *path);
/* Number of the line of `text` that ends in "// @label", from 1. */
unsigned program_line(const char *text, const char *label);

/* A profile that must be readable, joined with its symbols. */
struct program_profile {
    struct read_profile *profile;
    struct analyze_result *analysis;
};
struct program_profile program_open(const char *path);
void program_close(struct program_profile *opened);
/* The analysis' entry of this file (its last part), line and op, or NULL; line 0: the tape's
 * own. */
const struct analyze_line *program_find(const struct analyze_result *analysis, const char *file,
                                        unsigned line, const char *op);
/* Rows add up to the tapes' own totals: bytes, ticks, what is live and what was live at the
 * peak. */
void program_check_sums(const struct analyze_result *analysis);

#endif
