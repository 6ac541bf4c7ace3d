/* test_live.c: `tapescope live` in a terminal: what it shows, that it leaves nothing behind, and
 * that the program's output, signals and exit status are its own.
 *
 * The terminal is a pseudo-terminal whose stream is rendered (screen.h). A shell of a few lines is
 * between the two, since only a job of a session with a leader can be stopped. Nothing is said of
 * time: each case waits for what has to come.
 */
#include "program_support.h"
#include "report_units.h"
#include "run_cases.h"
#include "screen.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 32, DEADLINE_S = 120, STOPPED = 's', ENDED = 'e', CHANGED = 'c' };

static struct session {
    pid_t shell;
    int master, said, told; /* the terminal; what the shell says, and is told */
    struct screen screen;
    bool hung_up; /* nobody has the terminal any more: nothing will come */
    char *raw;    /* all that came */
    size_t n_raw;
} s;

static unsigned dear_line, cheap_line;
static bool has_keys; /* what is typed is for the command, not the program */

static void setup(void)
{
    program_setup();
    ck_assert_int_eq(chdir(program_folder), 0);
    program_build("live");
    char *text = program_text(program_source("live.c"));
    dear_line = program_line(text, "dear");
    cheap_line = program_line(text, "cheap");
    free(text);
    unsetenv("TAPESCOPE_OPTIONS");
    unsetenv("TAPESCOPE_CLOCK"); /* one that stands still between ops would end no round */
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
}

static void teardown(void)
{
    program_teardown();
}

/* ---- the shell ---- */

static void be_job(char **argv)
{
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    signal(SIGTTOU, SIG_DFL);
    execvp(argv[0], argv);
    _exit(127);
}

/* What the shell says of a job that has stopped or ended. */
static char word(char otherwise, const struct termios *modes)
{
    struct termios now;
    memset(&now, 0, sizeof now);
    if (tcgetattr(STDIN_FILENO, &now) != 0 || now.c_iflag != modes->c_iflag ||
        now.c_oflag != modes->c_oflag || now.c_cflag != modes->c_cflag ||
        now.c_lflag != modes->c_lflag || memcmp(now.c_cc, modes->c_cc, sizeof now.c_cc) != 0)
        return CHANGED;
    return otherwise;
}

static void be_shell(char **argv, int say, int hear)
{
    int status;
    char c;
    signal(SIGTTOU, SIG_IGN);
    struct termios modes = {0};
    if (tcgetattr(STDIN_FILENO, &modes) == 0) { /* what is typed would come between */
        modes.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    }
    const pid_t job = fork();
    if (job == 0)
        be_job(argv);
    setpgid(job, job);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        tcsetpgrp(STDIN_FILENO, getpid());
        if (write(say, &(char){word(STOPPED, &modes)}, 1) != 1 || read(hear, &c, 1) != 1)
            break;
        tcsetpgrp(STDIN_FILENO, job);
        kill(-job, SIGCONT);
    }
    if (write(say, &(char){word(ENDED, &modes)}, 1) != 1 || write(say, &status, sizeof status) < 0)
        _exit(1);
    _exit(0);
}

/* Arguments of `tapescope live` up to NULL. */
static void begin(unsigned rows, unsigned columns, ...)
{
    char *argv[MOST_ARGUMENTS] = {(char *)TAPESCOPE_PROGRAM, (char *)"live", (char *)"--input"};
    int n = has_keys ? 2 : 3, say[2], tell[2];
    va_list arguments;
    va_start(arguments, columns);
    while (n + 1 < MOST_ARGUMENTS && (argv[n] = va_arg(arguments, char *)) != NULL)
        n++;
    va_end(arguments);
    s = (struct session){.shell = -1};
    screen_open(&s.screen, rows, columns);
    ck_assert(pipe(say) == 0 && pipe(tell) == 0);
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    s.shell = forkpty(&s.master, NULL, NULL, &size);
    ck_assert_int_ge(s.shell, 0);
    if (s.shell == 0) {
        close(say[0]);
        close(tell[1]);
        be_shell(argv, say[1], tell[0]);
    }
    close(say[1]);
    close(tell[0]);
    s.said = say[0];
    s.told = tell[1];
}

/* ---- the terminal ---- */

/* Takes what comes next; false: there is nothing within so many ms (-1: any time), or any more. */
static bool take_within(int ms)
{
    char data[4096];
    struct pollfd fd = {.fd = s.master, .events = POLLIN};
    if (poll(&fd, 1, ms) <= 0)
        return false;
    const ssize_t n = read(s.master, data, sizeof data);
    if (n <= 0) {
        s.hung_up = true;
        return false;
    }
    screen_write(&s.screen, data, (size_t)n);
    s.raw = realloc(s.raw, s.n_raw + (size_t)n + 1);
    ck_assert_ptr_nonnull(s.raw);
    memcpy(s.raw + s.n_raw, data, (size_t)n);
    s.n_raw += (size_t)n;
    s.raw[s.n_raw] = '\0';
    return true;
}

static bool take(void)
{
    return take_within(50);
}

/* Of a clock that nobody sets. */
static time_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* The deadline is for what never comes: what was there is said then, which Check would not. */
static void wait_for(bool (*there)(void), const char *what)
{
    const time_t begun = seconds();
    /* What came before the terminal was left is looked at once more. */
    for (bool over = false; !there(); over = s.hung_up) {
        (void)take();
        if (over || seconds() - begun > DEADLINE_S) {
            char *text = screen_text(&s.screen);
            ck_abort_msg("no %s:\n%s", what, text);
        }
    }
}

static bool has_said(void)
{
    struct pollfd fd = {.fd = s.said, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

static char hear(void)
{
    char c = 0;
    wait_for(has_said, "word of the shell");
    ck_assert_int_eq(read(s.said, &c, 1), 1);
    return c;
}

static void type(const char *text)
{
    ck_assert_int_eq(write(s.master, text, strlen(text)), (ssize_t)strlen(text));
}

/* The exit status as a shell has it. Nothing of the gauge may be left. */
static int end(void)
{
    int status;
    ck_assert_int_eq(hear(), ENDED);
    ck_assert_int_eq(read(s.said, &status, sizeof status), sizeof status);
    while (take_within(-1)) { /* until nobody has the terminal any more */
    }
    ck_assert_int_eq(waitpid(s.shell, NULL, 0), s.shell);
    char *text = screen_text(&s.screen);
    ck_assert_msg(screen_find(&s.screen, "phase ") < 0, "%s", text);
    ck_assert_msg(screen_find(&s.screen, "peak ") < 0, "%s", text);
    ck_assert_uint_eq(s.screen.top, 0);
    ck_assert_uint_eq(s.screen.bottom, s.screen.rows - 1);
    ck_assert_uint_eq(s.screen.n_wrapped_below, 0);
    free(text);
    close(s.master);
    close(s.said);
    close(s.told);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void forget(void)
{
    screen_close(&s.screen);
    free(s.raw);
}

/* ---- what is on it ---- */

/* A gauge of a program that is in its steps: with the dear line in its table. */
static bool shows_steps(void)
{
    char place[32];
    const int phase = screen_find(&s.screen, "phase "), tape = screen_find(&s.screen, "tape  ");
    if (phase < 0 || tape < 0 || s.screen.n_sequence > 0)
        return false;
    snprintf(place, sizeof place, "live.c:%u", dear_line);
    bool in_table = false;
    for (unsigned i = (unsigned)tape + 1; i < s.screen.rows; i++)
        in_table |= strstr(screen_row(&s.screen, i), place) != NULL;
    const char *share = strstr(screen_row(&s.screen, (unsigned)phase), "%");
    const char *peak = strstr(screen_row(&s.screen, (unsigned)tape), "peak");
    return in_table && share && peak && s.screen.row <= s.screen.bottom;
}

static void check_gauge(unsigned rows, unsigned above)
{
    ck_assert_uint_eq(s.screen.rows, rows);
    ck_assert_uint_eq(s.screen.bottom, above - 1);
    ck_assert_int_eq(screen_find(&s.screen, "phase "), (int)above + 2);
    ck_assert_ptr_nonnull(strstr(screen_row(&s.screen, above), "live "));
    ck_assert_int_eq(strncmp(screen_row(&s.screen, above + 1), "now   ", 6), 0);
}

/* Bytes at the peak, of the profile that was left. */
static void check_peak(const char *gauge)
{
    char peak[REPORT_UNITS_ROOM];
    struct program_profile opened = program_open(program_path("tapescope.prof"));
    report_units_bytes(peak, opened.analysis->total.peak_bytes);
    ck_assert_uint_gt(opened.analysis->total.peak_bytes, 4 * 800000);
    ck_assert_ptr_nonnull(program_find(opened.analysis, "live.c", dear_line, "tanh"));
    ck_assert_msg(strstr(gauge, peak) != NULL, "no %s in\n%s", peak, gauge);
    program_close(&opened);
}

/* And of one that has swept more than once. */
static bool has_swept(void)
{
    if (!shows_steps())
        return false;
    const char *title = screen_row(&s.screen, s.screen.bottom + 1);
    const char *sweeps = strstr(title, " sweeps");
    while (sweeps && sweeps > title && sweeps[-1] != ' ')
        sweeps--;
    return sweeps && strtoul(sweeps, NULL, 10) > 1;
}

/* Whether some row has these words in this order, whatever is between them. */
static bool has_words(const char *const *word)
{
    for (unsigned i = 0; i < s.screen.rows; i++) {
        const char *at = screen_row(&s.screen, i);
        for (int j = 0; at && word[j]; j++) {
            at = strstr(at, word[j]);
            at = at ? at + strlen(word[j]) : NULL;
        }
        if (at)
            return true;
    }
    return false;
}

static const struct size {
    unsigned rows, columns, above;
    const char *phase, *title[8];
} sizes[] = {
    {24, 80, 12, "~backward ", {"~share", "~forward", "~backward", "live at peak line, op, f"}},
    {50, 200, 26, "~backward ", {"~share", "~forward", "~backward", "live at peak line, op, f"}},
    {10, 40, 3, "~bwd ", {"~fwd", "~bwd at peak line, op, "}},
};

TEST_EACH(the_gauge_fits_the_terminal_and_says_what_is_done, sizeof sizes / sizeof *sizes)
{
    const struct size *size = &sizes[_i];
    begin(size->rows, size->columns, "--", "./live", "3", "40", NULL);
    wait_for(has_swept, "gauge with steps");
    char *gauge = screen_text(&s.screen);
    check_gauge(size->rows, size->above);
    ck_assert_msg(has_words(size->title), "%s", gauge);
    ck_assert_msg(strstr(gauge, size->phase) != NULL, "%s", gauge);
    ck_assert_uint_gt(s.screen.n_colors, 1);
    type("q\n");
    ck_assert_int_eq(end(), 3);
    check_peak(gauge);
    const int told = screen_find(&s.screen, "the end");
    ck_assert_int_ge(told, 0);
    ck_assert_ptr_nonnull(strstr(screen_row(&s.screen, (unsigned)told + 1),
                                 "tapescope: ./live exited with status 3;"));
    free(gauge);
    forget();
}

/* The launcher itself writes no profile. */
TEST(of_a_launcher_the_first_rank_is_shown)
{
    begin(24, 80, "--", "sh", "-c",
          "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 exec ./live 0 40", NULL);
    wait_for(has_swept, "gauge with steps");
    ck_assert_ptr_nonnull(strstr(screen_row(&s.screen, s.screen.bottom + 1), "rank 0"));
    type("q\n");
    ck_assert_int_eq(end(), 0);
    ck_assert_int_eq(access(program_path("tapescope.prof.0"), R_OK), 0);
    ck_assert_int_ne(access(program_path("tapescope.prof"), R_OK), 0);
    forget();
}

TEST(all_that_the_program_writes_is_there_and_in_order)
{
    enum { LINES = 20000 };
    char line[64], count[16];
    snprintf(count, sizeof count, "%d", LINES);
    begin(24, 80, "--", "./live", "0", count, NULL);
    wait_for(shows_steps, "gauge");
    type("q\n");
    ck_assert_int_eq(end(), 0);
    const char *at = s.screen.gone;
    ck_assert_ptr_nonnull(at);
    for (int i = 1; i <= LINES - 24; i++) {
        const int n = snprintf(line, sizeof line, "output %d\n", i);
        ck_assert_msg(strncmp(at, line, (size_t)n) == 0, "'%.20s' is not %s", at, line);
        at += n;
    }
    ck_assert_ptr_nonnull(strstr(s.raw, "caf\303\251 \033[1mbold\033[0m\r\n"));
    ck_assert_int_ge(screen_find(&s.screen, "caf? bold"), 0);
    forget();
}

TEST(times_may_be_exact_and_colours_left_out)
{
    setenv("NO_COLOR", "1", 1);
    setenv("TAPESCOPE_OPTIONS", "time=exact", 1);
    setenv("LC_ALL", "C", 1);
    begin(24, 80, "-o", "other.prof", "--", "./live", NULL);
    wait_for(has_swept, "gauge with steps");
    ck_assert_ptr_nonnull(strstr(screen_row(&s.screen, 12), "exact"));
    char *gauge = screen_text(&s.screen);
    ck_assert_msg(has_words((const char *[]){"share ", "forward ", "backward ", " live ", NULL}),
                  "%s", gauge);
    free(gauge);
    type("q\n");
    ck_assert_int_eq(end(), 0);
    ck_assert_uint_eq(s.screen.n_colors, 1); /* the program's own */
    for (size_t i = 0; i < s.n_raw; i++)
        ck_assert((unsigned char)s.raw[i] < 0x80 || strstr(s.raw, "caf") == s.raw + i - 3 ||
                  strstr(s.raw, "caf") == s.raw + i - 4);
    ck_assert_int_eq(access(program_path("other.prof"), R_OK), 0);
    forget();
}

/* A gauge of the new size: what was under way for the old one may come before. */
static bool shows_steps_below_five(void)
{
    return shows_steps() && s.screen.bottom == 4 && screen_find(&s.screen, "phase ") == 7;
}

TEST(a_terminal_that_changes_its_size_has_a_gauge_of_that_size)
{
    begin(24, 80, "--", "./live", NULL);
    wait_for(shows_steps, "gauge");
    check_gauge(24, 12);
    struct winsize size = {.ws_row = 16, .ws_col = 50};
    screen_resize(&s.screen, 16, 50);
    ck_assert_int_eq(ioctl(s.master, TIOCSWINSZ, &size), 0);
    wait_for(shows_steps_below_five, "gauge of another size");
    check_gauge(16, 5);
    s.screen.n_wrapped_below = 0;
    type("q\n");
    ck_assert_int_eq(end(), 0);
    forget();
}

TEST(a_program_that_crashes_leaves_the_terminal_as_it_was)
{
    begin(24, 80, "--", "./live", "crash", NULL);
    wait_for(shows_steps, "gauge");
    type("q\n");
    ck_assert_int_eq(end(), 128 + SIGSEGV);
    ck_assert_int_ge(screen_find(&s.screen, "./live was killed by SIGSEGV"), 0);
    forget();
}

TEST_EACH(control_c_and_signals_to_the_command_end_the_program, 2)
{
    begin(24, 80, "--", "./live", NULL);
    wait_for(shows_steps, "gauge");
    if (_i == 0) {
        type("\003");
    } else {
        const pid_t job = tcgetpgrp(s.master); /* the command is its leader */
        ck_assert_int_gt(job, 0);
        ck_assert_int_eq(kill(job, SIGTERM), 0);
    }
    ck_assert_int_eq(end(), 128 + (_i == 0 ? SIGINT : SIGTERM));
    forget();
}

static bool shows_no_gauge(void)
{
    return screen_find(&s.screen, "phase ") < 0 && s.screen.bottom == s.screen.rows - 1;
}

TEST(a_program_that_is_stopped_has_no_gauge_until_it_goes_on)
{
    begin(24, 80, "--", "./live", NULL);
    wait_for(shows_steps, "gauge");
    type("\032");
    ck_assert_int_eq(hear(), STOPPED);
    wait_for(shows_no_gauge, "terminal as it was");
    ck_assert_int_eq(write(s.told, "c", 1), 1);
    wait_for(shows_steps, "gauge again");
    type("q\n");
    ck_assert_int_eq(end(), 0);
    forget();
}

/* ---- keys ---- */

static const char *gauge_title(void)
{
    return screen_row(&s.screen, s.screen.bottom + 1);
}

static const char *wanted; /* in the title */
static bool title_says(void)
{
    return shows_steps() && strstr(gauge_title(), wanted) != NULL;
}

static void press(const char *key, const char *says)
{
    type(key);
    wanted = says;
    wait_for(title_says, says);
}

/* The row below the table's heading. */
static const char *first_row(void)
{
    const int heading = screen_find(&s.screen, "line, op, function");
    ck_assert_int_ge(heading, 0);
    return screen_row(&s.screen, (unsigned)heading + 1);
}

static void check_first(unsigned line)
{
    char place[32];
    snprintf(place, sizeof place, " live.c:%u ", line);
    char *text = screen_text(&s.screen);
    ck_assert_msg(strstr(first_row(), place) != NULL, "not%sfirst:\n%s", place, text);
    free(text);
}

static bool shows_keys(void)
{
    return shows_steps() && screen_find(&s.screen, "keys  t time  f forward  b backward") >= 0 &&
           screen_find(&s.screen, "Ctrl-C end") >= 0;
}

static bool shows_no_keys(void)
{
    return shows_steps() && screen_find(&s.screen, "t time") < 0;
}

TEST(keys_sort_hold_and_are_shown)
{
    has_keys = true;
    setenv("TAPESCOPE_OPTIONS", "time=exact", 1);
    begin(24, 110, "--", "./live", NULL);
    wait_for(has_swept, "gauge with steps");
    ck_assert_ptr_nonnull(strstr(gauge_title(), ", ? keys"));
    ck_assert_ptr_null(strstr(gauge_title(), ", by "));
    type("?");
    wait_for(shows_keys, "keys");
    check_first(dear_line);
    press("p", ", by at peak,");
    press("b", ", by backward,");
    check_first(dear_line);
    press("f", ", by forward,");
    press("\033[At", ", by total,"); /* an arrow key is none of them */
    type("?");
    wait_for(shows_no_keys, "gauge without keys");
    press(" ", "live paused ");
    char *before = screen_text(&s.screen);
    press("p", ", by at peak,"); /* drawn anew, of the same numbers */
    press("t", ", by total,");
    char *after = screen_text(&s.screen);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    press(" ", "live ");
    type("\003");
    ck_assert_int_eq(end(), 128 + SIGINT);
    ck_assert_ptr_null(strstr(s.raw, "tt"));
    forget();
}

/* As it is left where the command is stopped, the size changes, or the program crashes. */
TEST(a_terminal_whose_keys_were_taken_is_given_back)
{
    has_keys = true;
    begin(24, 80, "--", "./live", NULL);
    wait_for(shows_steps, "gauge");
    type("\032");
    ck_assert_int_eq(hear(), STOPPED);
    ck_assert_int_eq(write(s.told, "c", 1), 1);
    wait_for(shows_steps, "gauge again");
    struct winsize size = {.ws_row = 16, .ws_col = 50};
    screen_resize(&s.screen, 16, 50);
    ck_assert_int_eq(ioctl(s.master, TIOCSWINSZ, &size), 0);
    wait_for(shows_steps_below_five, "gauge of another size");
    s.screen.n_wrapped_below = 0;
    press("f", ", by forward"); /* still taken */
    ck_assert_int_eq(kill(tcgetpgrp(s.master), SIGTERM), 0);
    ck_assert_int_eq(end(), 128 + SIGTERM);
    forget();
}

TEST(what_goes_elsewhere_is_the_programs_own)
{
    begin(24, 80, "--", "sh", "-c", "exec ./live 0 3 >out", NULL);
    wait_for(shows_steps, "gauge");
    type("q\n");
    ck_assert_int_eq(end(), 0);
    char *text = program_text(program_path("out"));
    ck_assert_str_eq(text, "output 1\noutput 2\noutput 3\nthe end\n");
    ck_assert_int_ge(screen_find(&s.screen, "caf? bold"), 0);
    free(text);
    forget();
}

RUN_TESTS(setup, teardown)
