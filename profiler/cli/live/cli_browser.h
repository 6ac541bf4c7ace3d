/* cli_browser.h: an address shown in the user's browser. */
#ifndef PROFILER_CLI_CLI_BROWSER_H
#define PROFILER_CLI_CLI_BROWSER_H

/* Asks the programs that BROWSER names (a list separated by colons, %s standing for the address),
 * then xdg-open, to show an address; if there is a display, and a terminal for standard output. No
 * shell reads the address, no process of ours is left to be waited for, and what a browser prints
 * is not shown. */
void cli_open_browser(const char *address);

#endif
