/* cmd_live.c: `tapescope live`: runs a program and shows what it does while it runs.
 *
 * The program's output to the terminal comes through a pseudo-terminal, whose bytes are passed on
 * unchanged; what goes elsewhere, and its input, are its own. Invariant: whatever becomes of the
 * program, the terminal is as it was, and the exit status is the program's.
 */
#include "cli_args.h"

#include "base_memory.h"
#include "cli_memory.h"
#include "cli_recorded.h"
#include "cli_run.h"
#include "cli_terminal.h"
#include "read_follow.h"
#include "report_live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Samples with the tape's bytes cost little and say all that is shown; paths are not shown. What is
 * in the environment, or given as an option, comes behind it and counts. */
#define DEFAULTS "time=sampled,tape=on,depth=0,interval=125"

enum {
    MILLISECOND = 1000000,
    FRAME_NS = 125 * MILLISECOND,
    POLL_MS = 40,
    GRACE_MS = 200,   /* for output that is on its way when the program has ended */
    COST_FACTOR = 20, /* frames take at most this part of one processor's time */
    CPU_READINGS = 16,
    CPU_FIELD = 12, /* of /proc/PID/stat, behind the name */
    BYTES = 1 << 16
};
#define SECOND UINT64_C(1000000000)
#define LATE_NS (2 * SECOND) /* a control sequence that takes longer is none */

struct live_args {
    struct cli_args cli;
    const char *output;
    bool pack, input;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "PROFILE", "where to write (default " CLI_DEFAULT_PROFILE ")",
     offsetof(struct live_args, output), NULL, 0},
    {"pack", 0, CLI_FLAG, NULL, "at the end, pack it: compress it and put the symbols in",
     offsetof(struct live_args, pack), NULL, 0},
    {"input", 0, CLI_FLAG, NULL, "what is typed is the program's; live has no keys then",
     offsetof(struct live_args, input), NULL, 0},
};

const struct cli_command cli_live = {
    .name = "live",
    .summary = "run a program and show what it does",
    .operands = "[--] PROGRAM [ARGUMENTS]...",
    .about = "Runs a program as record does, and shows in the lower half of the terminal what it "
             "does: phase, line, tape bytes, and the costliest lines so far. The program's output "
             "goes on above. Where neither standard output nor error is a terminal: as record.",
    CLI_OPTIONS(options),
    .shared = CLI_RECORDING | CLI_WARMUP | CLI_COLOR,
    .notes = "Keys: t, f, b and p sort the lines by time, forward, backward and bytes at the peak; "
             "space holds the picture, while the program goes on; ? shows the keys. So that keys "
             "reach live, the program's standard input is /dev/null where ours is this terminal, "
             "unless --input is given.\n"
             "The defaults are --time sampled --tape on --depth 0 --interval 125. The exit status "
             "is the program's, or 128 + n if signal n ended it; 126 or 127: it could not be run.",
    .runs_program = true,
    .run = cmd_live,
};

/* Processor time of the program at some time. */
struct cpu {
    uint64_t at_ns, cpu_ns;
};

struct live {
    const char *program, *path;
    struct cli_terminal terminal;
    struct report_style style;
    int master; /* the program's terminal, seen from its other side; -1: closed */
    struct read_follow *follow, *rank; /* rank: the same if it is of rank 0, or NULL */
    struct analyze_live *model;
    uint64_t start_ns, next_ns, passed_ns, cost_ns;
    struct cpu cpu[CPU_READINGS]; /* the oldest first */
    unsigned n_cpu;
    struct report_live gauge; /* as it was drawn last */
};

static volatile sig_atomic_t resized, stopped;

static void note_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopped = 1; /* SIGCHLD: it has ended the waiting, no more */
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Without SA_RESTART, so that waiting ends. What was ignored stays so. */
static void live_watch(int number)
{
    struct sigaction action = {.sa_handler = note_signal}, before;
    if (sigaction(number, NULL, &before) == 0 &&
        (before.sa_handler != SIG_IGN || number == SIGCHLD))
        sigaction(number, &action, NULL);
}

/* ---- the program's terminal ---- */

static void set_size(const struct live *live)
{
    const struct cli_terminal *terminal = &live->terminal;
    const struct winsize size = {
        .ws_row = (unsigned short)(terminal->rows - terminal->gauge),
        .ws_col = (unsigned short)terminal->columns,
    };
    if (live->master >= 0)
        (void)ioctl(live->master, TIOCSWINSZ, &size);
}

/* The other side of a new pseudo-terminal, which changes nothing of what is written; -1: errno. */
static int open_slave(int master)
{
    char name[64];
    if (grantpt(master) != 0 || unlockpt(master) != 0 || ptsname_r(master, name, sizeof name) != 0)
        return -1;
    const int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios modes;
    if (slave >= 0 && tcgetattr(slave, &modes) == 0) {
        modes.c_oflag &= ~(tcflag_t)OPOST;
        (void)tcsetattr(slave, TCSANOW, &modes);
    }
    return slave;
}

/* Whether the descriptor is the gauge's terminal. */
static bool is_same(int fd, int terminal)
{
    struct stat a, b;
    return isatty(fd) && fstat(fd, &a) == 0 && fstat(terminal, &b) == 0 && a.st_rdev == b.st_rdev;
}

static int live_start(void *payload, char **argv, const char *path)
{
    struct live *live = payload;
    const int fd = live->terminal.fd;
    int slave = -1;
    live->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (live->master >= 0)
        slave = open_slave(live->master);
    if (slave < 0) {
        cli_message("live: no pseudo-terminal: %s; nothing is shown", strerror(errno));
        if (live->master >= 0)
            close(live->master);
        live->master = -1;
        live->terminal.gauge = 0;
        return cli_start_program(argv, path);
    }
    set_size(live);
    live->start_ns = clock_ns(CLOCK_MONOTONIC);
    const int nowhere = live->gauge.has_keys ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    const int error =
        cli_start_program_at(argv, path,
                             (const int[]){nowhere, is_same(STDOUT_FILENO, fd) ? slave : -1,
                                           is_same(STDERR_FILENO, fd) ? slave : -1});
    if (nowhere >= 0)
        close(nowhere);
    close(slave);
    return error;
}

/* In the background the terminal is another's. */
static bool is_foreground(const struct live *live)
{
    const pid_t group = tcgetpgrp(live->terminal.fd);
    return group < 0 || group == getpgrp();
}

static void live_press(struct report_live *gauge, char key)
{
    static const char keys[] = "tfbp";
    static const enum report_sort order[] = {REPORT_SORT_TOTAL, REPORT_SORT_FORWARD,
                                             REPORT_SORT_BACKWARD, REPORT_SORT_PEAK};
    const char *at = key ? strchr(keys, key) : NULL;
    if (at)
        gauge->sort = (int)order[at - keys];
    else if (key == '?')
        gauge->shows_keys = !gauge->shows_keys;
    else if (key == ' ')
        gauge->is_paused = !gauge->is_paused && gauge->view;
}

static void live_take_keys(struct live *live)
{
    char key[64];
    if (!is_foreground(live)) {
        cli_terminal_hide(&live->terminal);
        return;
    }
    const ssize_t n = read(live->terminal.keys, key, sizeof key);
    for (ssize_t i = 0; i < n; i++)
        live_press(&live->gauge, key[i]);
    live->next_ns = 0;
    if (n == 0 || (n < 0 && errno != EINTR)) {
        cli_terminal_hide(&live->terminal);
        live->terminal.keys = -1;
        live->gauge.has_keys = false;
    }
}

/* Passes on what is there; at the end of it, or of the program's terminal, returns false. */
static bool pass_output(struct live *live, int wait_ms)
{
    static char data[BYTES];
    struct pollfd fd[] = {
        {.fd = live->master, .events = POLLIN},
        {.fd = live->terminal.keyed ? live->terminal.keys : -1, .events = POLLIN}};
    if (poll(fd, 2, wait_ms) <= 0)
        return false;
    if (fd[1].revents != 0)
        live_take_keys(live);
    if (fd[0].revents == 0)
        return false;
    const ssize_t got = read(live->master, data, sizeof data);
    if (got > 0) {
        cli_terminal_pass(&live->terminal, data, (size_t)got);
        live->passed_ns = clock_ns(CLOCK_MONOTONIC);
    } else if (got == 0 || errno != EINTR) { /* nobody has it open any more */
        close(live->master);
        live->master = -1;
    }
    return got > 0;
}

/* ---- what is shown ---- */

/* Processor time that the program has used, in all its threads. */
static uint64_t program_cpu(void)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)cli_program());
    FILE *file = fopen(path, "re");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *at = strrchr(text, ')');      /* the name may hold anything */
    for (int i = 0; at && i < CPU_FIELD; i++) /* to the word before the time in the program */
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    char *end;
    const unsigned long long user = strtoull(at, &end, 10), system = strtoull(end, NULL, 10);
    const long ticks = sysconf(_SC_CLK_TCK);
    return ticks > 0 ? (user + system) * (SECOND / (uint64_t)ticks) : 0;
}

/* Processors used over about the last second. */
static double read_cores(struct live *live, uint64_t now_ns, uint64_t *cpu_ns)
{
    if (live->n_cpu == CPU_READINGS) {
        memmove(live->cpu, live->cpu + 1, (CPU_READINGS - 1) * sizeof *live->cpu);
        live->n_cpu--;
    }
    *cpu_ns = program_cpu();
    live->cpu[live->n_cpu++] = (struct cpu){now_ns, *cpu_ns};
    unsigned base = live->n_cpu - 1;
    while (base > 0 && now_ns - live->cpu[base].at_ns < SECOND)
        base--;
    const struct cpu before =
        base > 0 || live->n_cpu == CPU_READINGS ? live->cpu[base] : (struct cpu){live->start_ns, 0};
    if (now_ns <= before.at_ns || *cpu_ns < before.cpu_ns)
        return 0;
    return (double)(*cpu_ns - before.cpu_ns) / (double)(now_ns - before.at_ns);
}

/* A launcher of MPI writes no profile, but its ranks do, which are new: the first is shown. */
static void live_find_rank(struct live *live)
{
    if (live->rank || read_follow_bytes(live->follow) > 0 || access(live->path, F_OK) == 0)
        return;
    char *first = base_asprintf("%s.0", live->path);
    live->rank = access(first, F_OK) == 0 ? read_follow_new(first) : NULL;
    free(first);
    if (!live->rank)
        return;
    read_follow_free(live->follow);
    live->follow = live->rank;
    live->program = "rank 0";
}

static void live_read(struct live *live, uint64_t now_ns)
{
    live_find_rank(live);
    if (read_follow_take(live->follow) != READ_FOLLOW_NEW)
        return;
    const struct read_profile *state = read_follow_state(live->follow);
    if (state && (state->n_tapes > 0 || state->n_samples > 0))
        analyze_live_take(live->model, state, now_ns);
}

static void live_draw(struct live *live, uint64_t now_ns)
{
    char *lines = NULL;
    size_t n = 0;
    struct report_style style = live->style;
    struct report_live *gauge = &live->gauge;
    if (!gauge->is_paused) {
        live_read(live, now_ns);
        gauge->view = analyze_live_view(live->model);
        gauge->program = live->program;
        gauge->now_ns = now_ns;
        gauge->running_ns = now_ns - live->start_ns;
        gauge->cores = read_cores(live, now_ns, &gauge->cpu_ns);
    }
    gauge->rows = live->terminal.gauge;
    style.width = live->terminal.columns;
    style.out = base_memstream_open(&lines, &n);
    report_live(gauge, &style);
    base_memstream_close(style.out, &lines);
    cli_terminal_draw(&live->terminal, lines);
    free(lines);
}

static void show_frame(struct live *live)
{
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (now_ns < live->next_ns || live->terminal.gauge == 0 || !is_foreground(live))
        return;
    if (!cli_terminal_is_between(&live->terminal) && now_ns - live->passed_ns < LATE_NS)
        return;
    cli_terminal_show(&live->terminal);
    live_draw(live, now_ns);
    /* On average: symbols are opened once. */
    live->cost_ns = (3 * live->cost_ns + clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 4;
    const uint64_t pause = live->cost_ns * COST_FACTOR;
    live->next_ns = now_ns + (pause > FRAME_NS ? pause : FRAME_NS);
}

/* The user has stopped the program from the terminal, or somebody us: both stop. */
static void stop_here(struct live *live)
{
    const pid_t program = cli_program();
    cli_terminal_hide(&live->terminal);
    if (program > 0)
        kill(program, SIGTSTP);
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    live_watch(SIGTSTP); /* it goes on */
    if (program > 0)
        kill(program, SIGCONT);
    stopped = 0;
    resized = 1;
    live->next_ns = 0;
}

/* Whether the program has ended: then nothing is shown any more. A signal that would end us waits
 * until that is so. */
static bool end_here(struct live *live, int *status)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const bool ended = cli_program_ended(status);
    if (ended) {
        cli_terminal_hide(&live->terminal);
        signal(SIGWINCH, SIG_DFL);
        signal(SIGTSTP, SIG_DFL);
        signal(SIGCHLD, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ended;
}

/* While the program runs: the live view that is shown. */
static struct live *shown;

/* What it writes is passed on to its end, with no gauge. */
static void give_terminal_back(void)
{
    cli_terminal_hide(&shown->terminal);
    int status;
    while (shown->master >= 0 && !cli_program_ended(&status))
        (void)pass_output(shown, POLL_MS);
}

static int wait_program(void *payload)
{
    struct live *live = payload;
    int status = 0;
    if (live->terminal.gauge == 0 && live->master < 0)
        return cli_wait_program();
    live_watch(SIGWINCH);
    live_watch(SIGTSTP);
    live_watch(SIGCHLD);
    cli_before_end = give_terminal_back;
    while (!end_here(live, &status)) {
        (void)pass_output(live, POLL_MS);
        if (stopped)
            stop_here(live);
        if (resized) {
            resized = 0;
            if (cli_terminal_resize(&live->terminal))
                live->next_ns = 0;
            set_size(live);
        }
        show_frame(live);
    }
    cli_before_end = NULL;
    while (live->master >= 0 && pass_output(live, GRACE_MS)) {
    }
    if (live->master >= 0)
        close(live->master);
    return status;
}

/* ---- the command ---- */

/* Puts the defaults of this command before what the environment has. */
static void live_set_defaults(void)
{
    const char *given = secure_getenv("TAPESCOPE_OPTIONS");
    char *text = base_asprintf("%s%s%s", DEFAULTS, given && *given ? "," : "", given ? given : "");
    if (setenv("TAPESCOPE_OPTIONS", text, 1) != 0)
        base_no_memory();
    free(text);
}

/* The terminal of the gauge: standard error's, or else standard output's. */
static bool open_terminal(struct live *live, const struct live_args *args)
{
    const char *no_color = secure_getenv("NO_COLOR");
    if (!cli_terminal_open(&live->terminal, STDERR_FILENO) &&
        !cli_terminal_open(&live->terminal, STDOUT_FILENO))
        return false;
    live->style = args->cli.style;
    live->style.color = args->cli.color >= 0 ? args->cli.color == 1 : !(no_color && *no_color);
    return true;
}

static int live_run(const struct live_args *args, char **argv, const char *path)
{
    struct live live = {
        .program = argv[0], .path = path, .master = -1, .terminal.keys = -1, .gauge.sort = -1};
    struct cli_recorded recorded = {.argv = argv,
                                    .profile = args->output,
                                    .path = path,
                                    .pack = args->pack,
                                    .utf8 = args->cli.style.utf8,
                                    .payload = &live};
    if (open_terminal(&live, args)) {
        live.gauge.has_keys = !args->input && live.terminal.gauge > 0 &&
                              is_same(STDIN_FILENO, live.terminal.fd) && is_foreground(&live);
        if (live.gauge.has_keys)
            cli_terminal_take_keys(&live.terminal, STDIN_FILENO);
        live.follow = read_follow_new(path);
        live.model = analyze_live_new();
        recorded.start = live_start;
        recorded.wait = wait_program;
        shown = &live;
    }
    const int status = cli_run_recorded(&recorded);
    analyze_live_free(live.model);
    read_follow_free(live.follow);
    return status;
}

int cmd_live(int argc, char **argv)
{
    struct live_args args = {.output = CLI_DEFAULT_PROFILE};
    int status = cli_parse(&cli_live, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (optind == argc) {
        cli_message("live: name the program to run, as in: tapescope live -- ./program");
        return CLI_USAGE;
    }
    char *path = cli_absolute_path(args.output);
    if (!path) {
        cli_message("cannot write %s: %s", args.output, strerror(errno));
        return CLI_FAILED;
    }
    live_set_defaults();
    cli_export_recording(&args.cli);
    status = live_run(&args, argv + optind, path);
    free(path);
    return status;
}
