/* cli_terminal.c: see cli_terminal.h.
 *
 * Control sequences are those of ECMA-48 and the VT100, which all terminals of today follow: a
 * scrolling region (DECSTBM) keeps the program's output above the gauge, and the cursor is saved
 * and restored (DECSC, DECRC) around what is drawn. The region is set with every drawing, in case
 * the program has set another.
 */
#include "cli_terminal.h"

#include "base_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LEAST_ROWS = 5,
    LEAST_OUTPUT = 2,
    MOST_GAUGE = 24,
    SMALL_ROWS = 20, /* below which the gauge takes more than half */
};

/* What cannot be written is lost: the terminal is gone then. */
static void terminal_write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return;
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

static bool ask_size(struct cli_terminal *terminal)
{
    struct winsize size;
    if (ioctl(terminal->fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    const bool same = terminal->rows == size.ws_row && terminal->columns == size.ws_col;
    terminal->rows = size.ws_row;
    terminal->columns = size.ws_col;
    return !same;
}

static void terminal_divide(struct cli_terminal *terminal)
{
    const unsigned rows = terminal->rows;
    unsigned gauge = rows < SMALL_ROWS ? (2 * rows + 2) / 3 : rows / 2;
    if (gauge + LEAST_OUTPUT > rows)
        gauge = rows > LEAST_OUTPUT ? rows - LEAST_OUTPUT : 0;
    terminal->gauge = rows < LEAST_ROWS ? 0 : gauge > MOST_GAUGE ? MOST_GAUGE : gauge;
}

bool cli_terminal_open(struct cli_terminal *terminal, int fd)
{
    const char *term = secure_getenv("TERM");
    *terminal = (struct cli_terminal){.fd = fd, .keys = -1};
    if (!isatty(fd) || !term || !*term || strcmp(term, "dumb") == 0)
        return false;
    if (!ask_size(terminal))
        return false;
    terminal_divide(terminal);
    return true;
}

bool cli_terminal_resize(struct cli_terminal *terminal)
{
    if (!ask_size(terminal))
        return false;
    cli_terminal_hide(terminal);
    terminal_divide(terminal);
    return true;
}

void cli_terminal_take_keys(struct cli_terminal *terminal, int fd)
{
    terminal->keys = fd;
}

/* Blocked, SIGTTOU does not stop us where the terminal has become another job's meanwhile. */
static bool terminal_set_modes(int fd, const struct termios *modes)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &before);
    int status;
    do
        status = tcsetattr(fd, TCSANOW, modes);
    while (status != 0 && errno == EINTR);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

/* Signals of the terminal (Ctrl-C, Ctrl-Z) and its output stay as they are. */
static void terminal_begin_keys(struct cli_terminal *terminal)
{
    if (terminal->keys < 0 || terminal->keyed || tcgetattr(terminal->keys, &terminal->modes) != 0)
        return;
    struct termios modes = terminal->modes;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    terminal->keyed = terminal_set_modes(terminal->keys, &modes);
}

static void terminal_end_keys(struct cli_terminal *terminal)
{
    if (terminal->keyed)
        (void)terminal_set_modes(terminal->keys, &terminal->modes);
    terminal->keyed = false;
}

void cli_terminal_show(struct cli_terminal *terminal)
{
    if (terminal->shown || terminal->gauge == 0)
        return;
    char text[64 + 2 * MOST_GAUGE];
    size_t n = 0;
    for (unsigned i = 0; i < terminal->gauge; i++) {
        text[n++] = '\033'; /* down, scrolling at the end of the screen, in the same column */
        text[n++] = 'D';
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "\033[%uA\0337\033[1;%ur\0338",
                          terminal->gauge, terminal->rows - terminal->gauge);
    terminal_write_all(terminal->fd, text, n);
    terminal->shown = true;
    terminal_begin_keys(terminal);
}

void cli_terminal_hide(struct cli_terminal *terminal)
{
    static const char text[] = "\0337\033[r\0338\033[J";
    if (!terminal->shown)
        return;
    terminal_end_keys(terminal);
    terminal_write_all(terminal->fd, text, sizeof text - 1);
    terminal->shown = false;
}

/* Bytes of a character of UTF-8 that follow its first. */
static unsigned terminal_following(unsigned char c)
{
    return c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
}

static void step_escape(struct cli_terminal *terminal, unsigned char c)
{
    if (c >= 0x20 && c <= 0x2f) /* one more is to come */
        return;
    if (c == '7' || c == '8')
        terminal->saved = c == '7';
    terminal->state = c == '['                       ? CLI_TERMINAL_CONTROL
                      : c != 0 && strchr("]PX^_", c) ? CLI_TERMINAL_STRING
                                                     : CLI_TERMINAL_GROUND;
}

static void terminal_step(struct cli_terminal *terminal, unsigned char c)
{
    enum { CANCEL = 0x18, SUBSTITUTE = 0x1a, ESCAPE = 0x1b, BELL = 0x07 };
    if (c == ESCAPE) {
        terminal->state = CLI_TERMINAL_ESCAPE;
        terminal->more = 0;
    } else if (c == CANCEL || c == SUBSTITUTE) {
        terminal->state = CLI_TERMINAL_GROUND;
    } else if (terminal->state == CLI_TERMINAL_ESCAPE) {
        step_escape(terminal, c);
    } else if (terminal->state == CLI_TERMINAL_CONTROL) {
        if (c >= 0x40 && c <= 0x7e)
            terminal->state = CLI_TERMINAL_GROUND;
    } else if (terminal->state == CLI_TERMINAL_STRING) {
        if (c == BELL)
            terminal->state = CLI_TERMINAL_GROUND;
    } else if ((c & 0xc0) == 0x80) {
        terminal->more -= terminal->more > 0;
    } else {
        terminal->more = terminal_following(c);
    }
}

void cli_terminal_pass(struct cli_terminal *terminal, const void *data, size_t n)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; i++)
        terminal_step(terminal, byte[i]);
    terminal_write_all(terminal->fd, data, n);
}

bool cli_terminal_is_between(const struct cli_terminal *terminal)
{
    return terminal->state == CLI_TERMINAL_GROUND && terminal->more == 0 && !terminal->saved;
}

void cli_terminal_draw(struct cli_terminal *terminal, const char *lines)
{
    char *text = NULL;
    size_t n = 0;
    const unsigned above = terminal->rows - terminal->gauge;
    if (!terminal->shown)
        return;
    FILE *out = base_memstream_open(&text, &n);
    fprintf(out, "\0337\033[1;%ur\033[0m", above);
    for (unsigned row = 1; row <= terminal->gauge; row++) {
        const size_t length = strcspn(lines, "\n");
        /* Cleared first: behind a row that is full, the cursor stands on its last column. */
        fprintf(out, "\033[%u;1H\033[2K%.*s", above + row, (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
    fputs("\0338", out);
    base_memstream_close(out, &text);
    terminal_write_all(terminal->fd, text, n);
    free(text);
}
