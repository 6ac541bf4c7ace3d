/* cli_recording.c: see cli_recording.h. */
#include "cli_recording.h"

#include "base_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const cli_recording_time[] = {"exact", "sampled", "off", NULL};
const char *const cli_recording_tape[] = {"on", "off", NULL};
const char *const cli_recording_frames[] = {"user", "all", "none", NULL};
const char *const cli_recording_unwind[] = {"libunwind", "fp", NULL};
const char *const cli_recording_shapes[] = {"off", "on", NULL};
const char *const cli_recording_signal[] = {"off", "usr1", "usr2", NULL};

static void put_choice(FILE *out, const char *name, int place, const char *const *choice)
{
    if (place >= 0)
        fprintf(out, ",%s=%s", name, choice[place]);
}

static void put_count(FILE *out, const char *name, size_t n)
{
    if (n != SIZE_MAX)
        fprintf(out, ",%s=%zu", name, n);
}

void cli_export_recording(const struct cli_recording *recording)
{
    const char *before = secure_getenv("TAPESCOPE_OPTIONS");
    char *text = NULL;
    size_t n = 0;
    FILE *out = base_memstream_open(&text, &n);
    fputs(before ? before : "", out);
    put_choice(out, "time", recording->time, cli_recording_time);
    put_choice(out, "tape", recording->tape, cli_recording_tape);
    put_count(out, "freq", recording->freq);
    put_count(out, "interval", recording->interval);
    put_count(out, "depth", recording->depth);
    put_choice(out, "frames", recording->frames, cli_recording_frames);
    put_choice(out, "unwind", recording->unwind, cli_recording_unwind);
    put_choice(out, "shapes", recording->shapes, cli_recording_shapes);
    if (recording->timeline != UINT64_MAX)
        fprintf(out, ",timeline=%" PRIu64, recording->timeline);
    if (recording->steps)
        fprintf(out, ",steps=%s", recording->steps);
    put_count(out, "warmup", recording->warmup);
    put_choice(out, "snapshot_signal", recording->snapshot_signal, cli_recording_signal);
    if (recording->follow_fork)
        fputs(",follow_fork=on", out);
    base_memstream_close(out, &text);
    const char *options = *text == ',' ? text + 1 : text;
    if (*options && setenv("TAPESCOPE_OPTIONS", options, 1) != 0)
        base_no_memory();
    free(text);
}
