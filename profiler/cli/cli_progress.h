/* cli_progress.h: what a command does, on a line of standard error, where it takes long. */
#ifndef PROFILER_CLI_CLI_PROGRESS_H
#define PROFILER_CLI_CLI_PROGRESS_H

/* What is done from here on, such as "reading a.prof". After a second it is shown with the time
 * that went by, and with the part of a profile that was read, if standard error is a terminal.
 * SIGALRM is used for that. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The line goes away, if it is there; it comes again when a quarter of a second went by. */
void cli_progress_clear(void);

/* Nothing is shown any more. */
void cli_progress_end(void);

#endif
