/* cli_recording.h: the options of a recording, as the commands that run programs have them.
 *
 * Invariant: what is given travels to the program in TAPESCOPE_OPTIONS, behind what is there
 * already (so that it counts); what is not given does not appear there.
 */
#ifndef PROFILER_CLI_CLI_RECORDING_H
#define PROFILER_CLI_CLI_RECORDING_H

#include "cli_options.h"

/* -1, SIZE_MAX, UINT64_MAX and NULL: not given. Names are those of TAPESCOPE_OPTIONS. */
struct cli_recording {
    int time, tape, frames, unwind, shapes, snapshot_signal;
    size_t freq, interval, depth, warmup;
    uint64_t timeline;
    const char *steps;
    bool follow_fork;
};

#define CLI_RECORDING_DEFAULTS                                                                     \
    {                                                                                              \
        .time = -1, .tape = -1, .frames = -1, .unwind = -1, .shapes = -1, .snapshot_signal = -1,   \
        .freq = SIZE_MAX, .interval = SIZE_MAX, .depth = SIZE_MAX, .warmup = SIZE_MAX,             \
        .timeline = UINT64_MAX                                                                     \
    }

enum { CLI_TIME_SAMPLED = 1 }; /* place in cli_recording_time */
extern const char *const cli_recording_time[], *const cli_recording_tape[],
                                                   *const cli_recording_frames[],
                                                       *const cli_recording_unwind[],
                                                           *const cli_recording_shapes[],
                                                               *const cli_recording_signal[];

#define CLI_RECORDING_AT(base, member) ((base) + offsetof(struct cli_recording, member))

/* The options of a command whose struct cli_recording lies at offset `base` of its arguments. */
#define CLI_RECORDING_OPTIONS(base)                                                                \
    {"time",                                                                                       \
     0,                                                                                            \
     CLI_CHOICE,                                                                                   \
     "HOW",                                                                                        \
     "how time is measured",                                                                       \
     CLI_RECORDING_AT(base, time),                                                                 \
     cli_recording_time,                                                                           \
     0},                                                                                           \
        {"tape",                                                                                   \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "WHETHER",                                                                                \
         "whether bytes are counted",                                                              \
         CLI_RECORDING_AT(base, tape),                                                             \
         cli_recording_tape,                                                                       \
         0},                                                                                       \
        {"freq",                                                                                   \
         0,                                                                                        \
         CLI_COUNT,                                                                                \
         "HZ",                                                                                     \
         "samples a second and thread (default 250)",                                              \
         CLI_RECORDING_AT(base, freq),                                                             \
         NULL,                                                                                     \
         0},                                                                                       \
        {"interval",                                                                               \
         0,                                                                                        \
         CLI_COUNT,                                                                                \
         "MS",                                                                                     \
         "milliseconds between two writings of the profile, at most (default 1000)",               \
         CLI_RECORDING_AT(base, interval),                                                         \
         NULL,                                                                                     \
         0},                                                                                       \
        {"depth",                                                                                  \
         0,                                                                                        \
         CLI_COUNT,                                                                                \
         "N",                                                                                      \
         "frames of a call path at most (default 64; samples: 0)",                                 \
         CLI_RECORDING_AT(base, depth),                                                            \
         NULL,                                                                                     \
         0},                                                                                       \
        {"frames",                                                                                 \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "WHOSE",                                                                                  \
         "whose frames a call path keeps",                                                         \
         CLI_RECORDING_AT(base, frames),                                                           \
         cli_recording_frames,                                                                     \
         0},                                                                                       \
        {"unwind",                                                                                 \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "HOW",                                                                                    \
         "how call paths are found",                                                               \
         CLI_RECORDING_AT(base, unwind),                                                           \
         cli_recording_unwind,                                                                     \
         0},                                                                                       \
        {"shapes",                                                                                 \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "WHETHER",                                                                                \
         "whether ops are told apart by their shapes (top --by shape)",                            \
         CLI_RECORDING_AT(base, shapes),                                                           \
         cli_recording_shapes,                                                                     \
         0},                                                                                       \
        {"timeline",                                                                               \
         0,                                                                                        \
         CLI_BYTES,                                                                                \
         "BYTES",                                                                                  \
         "keep single events, in at most so many bytes",                                           \
         CLI_RECORDING_AT(base, timeline),                                                         \
         NULL,                                                                                     \
         0},                                                                                       \
        {"steps",                                                                                  \
         0,                                                                                        \
         CLI_TEXT,                                                                                 \
         "A:B",                                                                                    \
         "measure steps A to B only, counted from 0",                                              \
         CLI_RECORDING_AT(base, steps),                                                            \
         NULL,                                                                                     \
         0},                                                                                       \
        {"snapshot-signal",                                                                        \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "SIGNAL",                                                                                 \
         "a signal that asks for a snapshot",                                                      \
         CLI_RECORDING_AT(base, snapshot_signal),                                                  \
         cli_recording_signal,                                                                     \
         0},                                                                                       \
    {                                                                                              \
        "follow-fork", 0, CLI_FLAG, NULL, "a child process has a profile of its own",              \
            CLI_RECORDING_AT(base, follow_fork), NULL, 0                                           \
    }

/* Puts what was given into the environment of programs to be started. */
void cli_export_recording(const struct cli_recording *recording);

#endif
