/* cli_args.h: options, messages, and opening a profile, for all commands. */
#ifndef PROFILER_CLI_CLI_ARGS_H
#define PROFILER_CLI_CLI_ARGS_H

#include "cli_options.h"

#include <getopt.h>

/* One line on standard error, after "tapescope: ". */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether an option of the recording, "name=value" with commas between, has this value. */
bool cli_has_option(const char *text, const char *wanted);

/* Options that several commands have. */
enum cli_shared {
    CLI_EXACT = 1 << 0,     /* --exact */
    CLI_JSON = 1 << 1,      /* --json */
    CLI_COLOR = 1 << 2,     /* --color, --no-color */
    CLI_FILTER = 1 << 3,    /* --focus, --ignore */
    CLI_PHASE = 1 << 4,     /* --phase */
    CLI_MAP = 1 << 5,       /* --map, --libraries, --threads */
    CLI_RECORDING = 1 << 6, /* those of a recording */
    CLI_WARMUP = 1 << 7,    /* --warmup: of a recording's steps */
    CLI_SIZES = 1 << 8,     /* --sizes, --size-key, --size-arg */
    CLI_PAGE = 1 << 9,      /* --source, --theme, --base */
    CLI_RANK = 1 << 10,     /* --rank: of what reads a set of ranks */
    CLI_CSV = 1 << 11,      /* --csv */
};

/* The options of a recording; -1, SIZE_MAX, UINT64_MAX and NULL: not given. */
struct cli_recording {
    int time, tape, frames, unwind, shapes, snapshot_signal;
    size_t freq, interval, depth, warmup;
    uint64_t timeline;
    const char *steps;
    bool follow_fork;
};
/* How the user says what the size is: none of these, or one. */
struct cli_size_args {
    const char *list; /* --sizes 10,20,40 */
    const char *key;  /* --size-key n: of n=…, --n=…, --n … or -n …, or of a scope's n */
    size_t argument;  /* --size-arg K: the program's K-th argument; 0: not given */
};

/* What the user says of a page. */
struct cli_page_args {
    struct cli_list base;
    int sources, theme;
};

enum { CLI_TIME_SAMPLED = 1 }; /* of the choices of --time */

/* The values of the shared options: the first member of every command's struct of arguments. */
struct cli_args {
    struct report_style style;
    int color;     /* 1, 0, or -1: by the terminal */
    bool terminal; /* that is standard output, before a pager */
    const char *focus, *ignore;
    bool callers;     /* the report also shows callers, which may match those */
    const char *rank; /* "0,2"; NULL: all */
    struct cli_list map;
    bool libraries, threads;
    struct cli_recording recording;
    struct cli_size_args sizes;
    struct cli_page_args page;
};

/* Shared option i and the bit of enum cli_shared it belongs to; NULL after the last. */
const struct cli_option *cli_shared_option(size_t i, unsigned *bit);

/* Reads the command's options into `args`, whose own members have their defaults already, and the
 * shared ones, which get theirs here. Returns -1 if the command should go on, with optind at the
 * first operand; else an exit status: usage, or --help was given. */
int cli_parse(const struct cli_command *command, struct cli_args *args, int argc, char **argv);

/* The choices of what one cost is said to be, and of --by where shapes are not. */
extern const char *const cli_metrics[], *const cli_places[];

/* The choices of whose frames are levels of a call path. */
enum { CLI_FRAMES_ALL = 1 };
extern const char *const cli_frames[];

/* Puts what was given of a recording into TAPESCOPE_OPTIONS, behind what is there already (so that
 * it counts), for programs to be started. */
void cli_export_recording(const struct cli_args *args);

/* The place of name among n names, or -1. A unique beginning is enough. */
int cli_choice(const char *name, const char *const *names, int n);

/* How many choices an option of kind CLI_CHOICE or CLI_SET has. */
int cli_choices(const struct cli_option *option);

/* The known name nearest to a mistyped one, or NULL if none is near. */
const char *cli_nearest(const char *name, const char *const *names, int n);
/* Puts a name behind n names, unless it is one of them; how many there are then. */
size_t cli_name_add(const char **names, size_t n, const char *name);

/* Columns of the output: COLUMNS, the terminal's width, or 80; at least 40. */
unsigned cli_width(void);

struct cli_filter;

/* A profile with its analysis; warnings were printed. */
struct cli_profile {
    struct read_profile *profile;
    struct analyze_result *analysis;
    struct cli_filter *filter; /* of the analysis' lines; NULL: all are kept */
    int stored;                /* descriptor of the sum of a set of ranks; 0: there is none */
    int kept;                  /* and of the file in which lie those that a sum keeps */
    struct cli_profile *part;  /* of such a sum: each rank's, by rank */
    size_t n_parts;            /* of a sum that keeps its ranks, from cli_ranks_unpack on */
    /* Of cli_open_apart: */
    const struct analyze_result **part_analysis;
    struct analyze_ranks *ranks;
};

/* Opens path, or the default profile if it is NULL, as the shared options say. Returns CLI_OK, or
 * prints why not. */
int cli_open(struct cli_profile *opened, const struct cli_args *args, const char *path);
void cli_close(struct cli_profile *opened);

/* Of a set of ranks, or a sum that keeps them: also analyses each, and what they waited for in
 * messages. The analysis of the sum then has both (`ranks`). Nothing is done for other profiles.
 * Returns an exit status. */
int cli_open_apart(struct cli_profile *opened, const struct cli_args *args);

/* Several profiles; what could be opened is closed again if one cannot. */
struct cli_profiles {
    struct cli_profile *one;
    const struct analyze_result **analysis;
    size_t n;
};
int cli_open_all(struct cli_profiles *opened, const struct cli_args *args, char *const *path,
                 size_t n);
void cli_close_all(struct cli_profiles *opened);

/* Whether the times of two profiles are of one kind: exact, sampled, or none. If not, says that
 * they cannot be compared, and what can, which may be "". */
bool cli_times_alike(const char *command, const struct read_profile *a,
                     const struct read_profile *b, const char *what_can);
/* Whether bytes were counted in the profile; if not, says so. */
bool cli_has_bytes(const char *command, const struct read_profile *profile);

/* Opens the only operand that a command takes, or the default profile. */
int cli_open_only(struct cli_profile *opened, const struct cli_args *args, int argc, char **argv);

/* Runs a command on its only operand, which is open while report() gets it. `check` says what is
 * wrong with the arguments before that, or is NULL. Returns an exit status, as both do. */
int cli_run_only(const struct cli_command *command, struct cli_args *args, int argc, char **argv,
                 int (*check)(struct cli_args *args),
                 int (*report)(struct cli_args *args, struct cli_profile *opened));

/* Ends a report: whether standard output took all of it. Returns an exit status. */
int cli_finish(void);

#endif
