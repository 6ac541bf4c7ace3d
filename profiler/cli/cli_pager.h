/* cli_pager.h: a report on a terminal goes through $PAGER, as git's do. */
#ifndef PROFILER_CLI_CLI_PAGER_H
#define PROFILER_CLI_CLI_PAGER_H

/* From here on standard output goes to $PAGER (default less, which ends by itself where the report
 * fits the screen), if it is a terminal; not if PAGER is "" or "cat". Progress is shown no more. */
void cli_pager_begin(void);

/* Gives standard output back, and waits until the user leaves the pager. Returns whether there was
 * one: its end before that of the report is no failure. */
int cli_pager_end(void);

#endif
