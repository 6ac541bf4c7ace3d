/* cli_memory.c: see cli_memory.h. Nothing here asks for memory. */
#include "cli_memory.h"

#include "base_memory.h"
#include "cli.h"
#include "cli_run.h"
#include "read_aside.h"

#include <stdio.h>
#include <unistd.h>

void (*cli_before_end)(void);

static void memory_end(void)
{
    base_memory_ended = NULL;
    if (cli_before_end)
        cli_before_end();
    dprintf(STDERR_FILENO, "tapescope: out of memory\n");
    read_aside_drop();
    if (cli_program() > 0)
        (void)cli_wait_program();
    _exit(CLI_NO_MEMORY);
}

void cli_end_without_memory(void)
{
    base_memory_ended = memory_end;
}
