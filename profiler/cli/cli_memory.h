/* cli_memory.h: the end of the program where its memory ends. */
#ifndef PROFILER_CLI_CLI_MEMORY_H
#define PROFILER_CLI_CLI_MEMORY_H

/* From now on the end of memory ends the process: with one line on standard error and the status
 * CLI_NO_MEMORY. What standard output has not taken yet is left out, a file that was not whole is
 * removed, and a program that is being recorded runs to its end. */
void cli_end_without_memory(void);

/* What else is done first, such as giving back a terminal; NULL: nothing. */
extern void (*cli_before_end)(void);

#endif
