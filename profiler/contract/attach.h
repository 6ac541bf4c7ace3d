/* attach.h: how `tapescope attach` and the program that it asks for a profile speak to each other.
 * ad_attach.c is the program's side, cmd_attach.c the other; neither knows a name that is not here.
 *
 * 1. The program, started with the option attach=usr1 or usr2, has a thread of the name
 * ATTACH_THREAD, which waits for that signal. Whoever has no such thread is sent no signal. 2. The
 * asker leaves a request, the file PID, in a folder that belongs to the user alone, and sends the
 * signal. 3. The program takes the request away and writes PID.said: ATTACH_BEGUN, or why not. 4.
 * When the profile ends, after the time that was asked for or by a request of 0 ms, the program
 * writes PID.ended: ATTACH_ENDED, or what went wrong. A file gets its name when it is whole.
 */
#ifndef PROFILER_CONTRACT_ATTACH_H
#define PROFILER_CONTRACT_ATTACH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTACH_NAME_ROOM = 64 };

#define ATTACH_SAID ".said"
#define ATTACH_OVER ".ended"
#define ATTACH_BEGUN "begun"
#define ATTACH_ENDED "ended"

/* Of the thread that waits for SIGUSR1 or SIGUSR2. */
#define ATTACH_THREAD_USR1 "tapescope-usr1"
#define ATTACH_THREAD_USR2 "tapescope-usr2"

/* The folder of a user's requests; mode 0700. */
static inline void attach_folder(char name[ATTACH_NAME_ROOM], unsigned long user)
{
    snprintf(name, ATTACH_NAME_ROOM, "/tmp/tapescope-%lu", user);
}

/* A file there; suffix: "" for the request, else ATTACH_SAID or ATTACH_OVER. */
static inline void attach_file(char name[ATTACH_NAME_ROOM], long process, const char *suffix)
{
    snprintf(name, ATTACH_NAME_ROOM, "%ld%s", process, suffix);
}

/* What is asked for: a profile at `path` for `ms`, 0: the end of the one that is taken. */
struct attach_request {
    uint64_t ms;
    const char *options, *path; /* without line ends */
};

/* Three lines. False: they could not be written. */
static inline bool attach_request_write(FILE *out, const struct attach_request *request)
{
    return fprintf(out, "%llu\n%s\n%s\n", (unsigned long long)request->ms, request->options,
                   request->path) > 0;
}

/* Of such a text, which is changed and has the request's strings then. False: it is none. */
static inline bool attach_request_read(struct attach_request *request, char *text)
{
    char *end;
    errno = 0;
    request->ms = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\n')
        return false;
    request->options = end + 1;
    char *path = strchr(end + 1, '\n');
    char *last = path ? strchr(path + 1, '\n') : NULL;
    if (!last)
        return false;
    *path = *last = '\0';
    request->path = path + 1;
    return true;
}

#endif
