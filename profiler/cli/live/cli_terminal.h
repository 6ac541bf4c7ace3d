/* cli_terminal.h: a gauge in the lower rows of a terminal, below what a program writes there.
 *
 * Invariant: the program's bytes reach the terminal unchanged and in order; the gauge is drawn
 * between two of its characters or control sequences, by one write, and leaves the cursor where
 * the program has it. Once hidden, nothing of it is left on the screen, and the terminal's modes
 * are what they were.
 */
#ifndef PROFILER_CLI_CLI_TERMINAL_H
#define PROFILER_CLI_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

struct cli_terminal {
    int fd;
    int keys; /* the descriptor that keys are read from; -1: none */
    unsigned rows, columns;
    unsigned gauge; /* rows of the gauge; 0: the terminal is too small for one */
    bool shown;
    bool keyed;           /* `keys` gives each key at once, and shows none */
    struct termios modes; /* if it is keyed: those before */
    /* Where the program's output stands: within a control sequence or a character. */
    enum {
        CLI_TERMINAL_GROUND,
        CLI_TERMINAL_ESCAPE,
        CLI_TERMINAL_CONTROL,
        CLI_TERMINAL_STRING
    } state;
    unsigned more; /* bytes of a character that are to come */
    bool saved;    /* the program has saved the cursor, and not gone back to it */
};

/* Takes the terminal at the descriptor. False: it is none, or one that cannot move its cursor. */
bool cli_terminal_open(struct cli_terminal *terminal, int fd);

/* Keys are read from that descriptor while the gauge is shown. */
void cli_terminal_take_keys(struct cli_terminal *terminal, int fd);

/* Asks for the size; true: it is another, and what was shown is hidden. */
bool cli_terminal_resize(struct cli_terminal *terminal);

/* Keeps rows free for the gauge, below what is on the screen; what scrolls goes on above them. */
void cli_terminal_show(struct cli_terminal *terminal);
void cli_terminal_hide(struct cli_terminal *terminal);

/* The program's output. */
void cli_terminal_pass(struct cli_terminal *terminal, const void *data, size_t n);
/* Whether that stands between two characters and control sequences. */
bool cli_terminal_is_between(const struct cli_terminal *terminal);

/* Draws the gauge: lines that end with line ends, of which there are as many as it has rows. */
void cli_terminal_draw(struct cli_terminal *terminal, const char *lines);

#endif
