/* cli_options.h: a command as data: its options, their kinds and where their values go.
 *
 * Invariant: an option is described in one place, from which it is parsed, explained by --help,
 * completed by the shell and listed in the manual page.
 */
#ifndef PROFILER_CLI_CLI_OPTIONS_H
#define PROFILER_CLI_CLI_OPTIONS_H

#include "cli.h"

#include <stddef.h>
#include <stdint.h>

/* What an option takes, and the type of its target. */
enum cli_kind {
    CLI_FLAG,     /* nothing; bool: becomes true */
    CLI_CONSTANT, /* nothing; int: becomes `constant` */
    CLI_TEXT,     /* const char * */
    CLI_COUNT,    /* a whole number; size_t */
    CLI_NUMBER,   /* a number that is not negative; double */
    CLI_BYTES,    /* a size: 4096, 64KiB, 1.5MiB; uint64_t */
    CLI_PERCENT,  /* 2% or 0.5%; double: the fraction */
    CLI_CHOICE,   /* one of `choice`, a unique beginning is enough; int: its place */
    CLI_SET,      /* some of `choice`, separated by commas; unsigned: a bit for each place */
    CLI_LIST,     /* any text, as often as it is given; struct cli_list */
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* '\0': none */
    enum cli_kind kind;
    const char *value;         /* what --help calls the value; NULL where there is none */
    const char *text;          /* for --help; the names of `choice` are added */
    size_t at;                 /* of the target within the command's struct of arguments */
    const char *const *choice; /* ends with NULL; the first is the default of CLI_CHOICE */
    int constant;              /* of CLI_CHOICE: -1 where none is the default */
};

/* Its first choice is the default. */
static inline bool cli_has_default(const struct cli_option *option)
{
    return option->kind == CLI_CHOICE && option->constant >= 0;
}

enum { CLI_LIST_MOST = 64 };
struct cli_list {
    const char *item[CLI_LIST_MOST]; /* belong to argv */
    size_t n;
};

struct cli_command {
    const char *name;
    const char *summary;  /* for the list of commands: a few words */
    const char *operands; /* for the usage line, after the options; "" for none */
    const char *about;    /* what it does, a sentence or two */
    const struct cli_option *option;
    size_t n_options;
    unsigned shared;   /* which of cli_shared_options() it has, as bits of enum cli_shared */
    const char *notes; /* for --help, below the options; NULL: none */
    bool runs_program; /* its first operand is a program, and all behind it the program's */
    int (*run)(int argc, char **argv);
};

#define CLI_OPTIONS(table) .option = (table), .n_options = sizeof(table) / sizeof *(table)

/* All commands; *n of them. */
const struct cli_command *const *cli_commands(size_t *n);

/* The command of this name; NULL: there is none. */
const struct cli_command *cli_command_named(const char *name);
/* The same; where there is none, says which name is the nearest. */
const struct cli_command *cli_find_command(const char *name);

/* The heading above the i-th of them, of a group that begins with it; NULL: none begins there. */
const char *cli_heading(size_t i);

/* Called with each option of a command, its own first, then the shared ones and --help. */
typedef void cli_option_fn(void *payload, const struct cli_option *option);
void cli_each_option(const struct cli_command *command, cli_option_fn *each, void *payload);

/* Writes what the command's --help says, to at most `width` columns where words allow. */
void cli_put_help(FILE *out, const struct cli_command *command, unsigned width);

/* Writes what `tapescope --help` says: the commands by groups. */
void cli_put_overview(FILE *out, unsigned width);

/* The shells of `help --completion`, and the script by which one of them completes commands,
 * options and their choices. */
extern const char *const cli_shells[];
void cli_put_completion(FILE *out, int shell);

/* Writes tapescope(1) in the man macros of troff (man(7)): every command with every option. */
void cli_put_manual(FILE *out, const char *version);

/* Stores the value of an option at `target` (of the option's kind). Returns true, or says what is
 * wrong with it. */
bool cli_store(const char *command, const struct cli_option *option, const char *value,
               void *target);

/* Writes text broken between words: `column` columns are taken already, lines after the first
 * begin at `indent`, no line is longer than `width` unless a word is. */
void cli_put_wrapped(FILE *out, const char *text, unsigned column, unsigned indent, unsigned width);

#endif
