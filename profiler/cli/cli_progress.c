/* cli_progress.c: see cli_progress.h.
 *
 * Invariant: the signal's handler calls functions alone that handlers may call.
 */
#include "cli_progress.h"

#include "base_json.h"
#include "read.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_ROOM = 200, LINE_ROOM = TEXT_ROOM + 64, TAIL = 16, USUAL_COLUMNS = 80 };

static struct {
    volatile sig_atomic_t is_on, is_shown;
    char text[TEXT_ROOM];
    struct timespec start;
} progress;

static size_t progress_put(char *line, size_t n, const char *text)
{
    while (*text)
        line[n++] = *text++;
    return n;
}

static size_t progress_put_number(char *line, size_t n, unsigned long number)
{
    char digits[24];
    size_t i = sizeof digits - 1;
    digits[i] = '\0';
    do
        digits[--i] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return progress_put(line, n, digits + i);
}

static void progress_show(int signal)
{
    char line[LINE_ROOM];
    struct timespec now;
    (void)signal;
    if (!progress.is_on)
        return;
    const int error = errno;
    const int part = read_percent();
    size_t n = progress_put(line, 0, "\r\033[K");
    n = progress_put(line, n, progress.text);
    if (part >= 0) {
        n = progress_put(line, n, " ");
        n = progress_put_number(line, n, (unsigned long)part);
        n = progress_put(line, n, " %");
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    const bool borrows = now.tv_nsec < progress.start.tv_nsec;
    n = progress_put(line, n, ", ");
    n = progress_put_number(line, n, (unsigned long)(now.tv_sec - progress.start.tv_sec - borrows));
    n = progress_put(line, n, " s");
    progress.is_shown = write(STDERR_FILENO, line, n) > 0;
    errno = error;
}

/* Seconds until the line is there, and between two states of it; 0: never. */
static void progress_set_timer(long first_us, long next_us)
{
    const struct itimerval timer = {
        .it_value = {.tv_sec = first_us / 1000000, .tv_usec = first_us % 1000000},
        .it_interval = {.tv_usec = next_us},
    };
    setitimer(ITIMER_REAL, &timer, NULL);
}

static bool progress_begin(void)
{
    const struct sigaction action = {.sa_handler = progress_show, .sa_flags = SA_RESTART};
    const char *term = secure_getenv("TERM");
    if (!isatty(STDERR_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
        return false;
    sigaction(SIGALRM, &action, NULL);
    clock_gettime(CLOCK_MONOTONIC, &progress.start);
    progress_set_timer(1000000, 250000);
    return true;
}

void cli_progress(const char *format, ...)
{
    struct winsize size;
    va_list arguments;
    const bool goes_on = progress.is_on;
    progress.is_on = false;
    if (!goes_on && !progress_begin())
        return;
    int n = snprintf(progress.text, TEXT_ROOM, "tapescope: ");
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    vsnprintf(progress.text + n, TEXT_ROOM - (size_t)n, format, arguments);
    va_end(arguments);
    size_t room = USUAL_COLUMNS;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > TAIL)
        room = size.ws_col;
    room -= TAIL;
    char *at = base_json_shown(progress.text);
    for (; *at && ((*at & 0xc0) == 0x80 || room-- > 0); at++) {
    }
    *at = '\0';
    progress.is_on = true;
}

void cli_progress_clear(void)
{
    static const char clear[] = "\r\033[K";
    const bool was_on = progress.is_on;
    progress.is_on = false;
    if (progress.is_shown)
        progress.is_shown = write(STDERR_FILENO, clear, sizeof clear - 1) < 0;
    progress.is_on = was_on;
}

void cli_progress_end(void)
{
    if (!progress.is_on)
        return;
    progress_set_timer(0, 0);
    cli_progress_clear();
    progress.is_on = false;
}
