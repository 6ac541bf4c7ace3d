/* cli_browser.h: a page shown in the user's browser. */
#ifndef PROFILER_CLI_CLI_BROWSER_H
#define PROFILER_CLI_CLI_BROWSER_H

#include <stdbool.h>

/* Asks the programs that BROWSER names (a list separated by colons, %s standing for the file), then
 * xdg-open, to show a file; if BROWSER is set or there is a display. Returns whether one of them
 * was started. No shell reads the path, no process of ours is left to be waited for, and what a
 * browser prints is not shown. */
bool cli_open_browser(const char *path);

#endif
