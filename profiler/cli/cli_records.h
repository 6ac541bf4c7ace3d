/* cli_records.h: the records of a tape and the pullbacks of its sweeps, one by one: the events of a
 * profile with a timeline.
 */
#ifndef PROFILER_CLI_CLI_RECORDS_H
#define PROFILER_CLI_CLI_RECORDS_H

#include "cli_args.h"

struct cli_records {
    size_t limit;    /* 0: all */
    double from, to; /* ms since the start */
};

/* Returns an exit status, after saying why there are none. */
int cli_show_records(const struct cli_profile *opened, const struct cli_records *what,
                     const struct report_style *style);

#endif
