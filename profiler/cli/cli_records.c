/* cli_records.c: see cli_records.h. */
#include "cli_records.h"

#include "report_dump.h"

static void records_take(void *payload, const struct read_profile *profile,
                         const struct read_event *event)
{
    (void)profile; /* the one that was read before has all */
    report_dump_event(payload, event);
}

static int records_write(const struct cli_profile *opened, const struct report_dump_options *what,
                         const struct report_style *style)
{
    const char *path = read_profile_stored(opened->profile);
    char error[4096];
    struct report_dump *made = report_dump_open(opened->analysis, what, style);
    struct read_profile *again = read_profile_events(path, records_take, made, error, sizeof error);
    report_dump_close(made, again != NULL);
    const int status = cli_finish();
    if (!again)
        cli_message("%s", error);
    read_profile_free(again);
    return again ? status : CLI_BAD_PROFILE;
}

/* In ns; what is beyond all times is the end. */
static uint64_t records_ns(double ms)
{
    return ms < 1e12 ? (uint64_t)(ms * 1e6 + 0.5) : UINT64_MAX;
}

int cli_show_records(const struct cli_profile *opened, const struct cli_records *what,
                     const struct report_style *style)
{
    const struct report_dump_options how = {
        .limit = what->limit, .from_ns = records_ns(what->from), .to_ns = records_ns(what->to)};
    if (opened->profile->n_events > 0)
        return records_write(opened, &how, style);
    cli_message("tape: %s has no timeline; one is made by: tapescope record --timeline 64MiB "
                "-- ./program",
                opened->profile->path);
    return CLI_USAGE;
}
