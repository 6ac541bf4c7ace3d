/* export_events.h: the timeline of a profile, in the order in which things began.
 *
 * Private to profiler/export. Invariant: the events of a thread are nested: one that begins within
 * another ends within it.
 */
#ifndef PROFILER_EXPORT_EVENTS_H
#define PROFILER_EXPORT_EVENTS_H

#include "export_places.h"

/* Of a set of ranks there are also its messages, on a row of their own for each rank, with what
 * they waited and transferred within them; so there may be some without a timeline. */
enum export_event_kind {
    EXPORT_TRANSFER = READ_EVENT_KINDS,
    EXPORT_WAITS,
    EXPORT_MESSAGE,
    EXPORT_EVENT_KINDS
};

/* What events have in common. */
struct export_site {
    unsigned kind;    /* an enum read_event_kind, or of those above */
    uint32_t process; /* as in struct read_event */
    uint64_t thread, tape;
    uint64_t pc;
    uint32_t call_line, scope;
    char *name;               /* of the op or scope, as the profile has it */
    struct analyze_line line; /* where the call stands; of a scope: nothing */
};

struct export_event {
    uint64_t start, end; /* ns since the profile began */
    uint64_t record;     /* as in struct read_event */
    uint32_t site;
    uint32_t flow; /* equal for an op and its pullbacks, and for a message and the transfer that
                     * it ends in on another rank; from 1; 0: it has none */
    uint32_t
        flows; /* so many from `flow` on begin here: more than 1 where several ranks have waited
                     * for this one in a collective call; 0: none begins */
    uint32_t order; /* place in the profile */
};

/* Of one thread: n events from `first` on. */
struct export_thread {
    uint32_t process;
    bool messages; /* it is no thread but a rank's messages; tid is 0 */
    uint64_t tid;
    size_t first, n;
};

struct export_events {
    struct export_event *event; /* thread by thread; what begins earlier, or is around it, first */
    size_t n, room;
    struct export_site *site;
    size_t n_sites, room_sites;
    struct export_thread *thread;
    size_t n_threads;
    uint32_t n_flows;
};

/* Whether it has events, or messages. */
bool export_has_events(const struct export_job *job);

/* Reads the job's profile once more for its events. Returns 0, or 1 with a line in
 * job->error: it has none. The caller frees them in any case. */
int export_events_read(struct export_events *events, const struct export_job *job);
void export_events_free(struct export_events *events);

/* What happened: "matmul", "matmul backward", "sweep", "layer index=1". Returns buf. */
char *export_event_name(char buf[EXPORT_NAME_ROOM], const struct export_site *site);
/* "file.c:12" of the call, or "". */
char *export_event_place(char buf[EXPORT_NAME_ROOM], const struct export_site *site);
/* Both. */
char *export_event_label(char buf[EXPORT_NAME_ROOM], const struct export_site *site);
/* What its row is called. Returns buf. */
enum { EXPORT_THREAD_ROOM = 64 };
char *export_thread_name(char buf[EXPORT_THREAD_ROOM], const struct export_job *job,
                         const struct export_thread *thread);
/* What a process is called: the program, and which rank of it. Returns buf. */
char *export_process_name(char buf[EXPORT_NAME_ROOM], const struct export_job *job,
                          uint32_t process);
/* The number that tells processes apart: the system's, or that of a merged profile. */
uint64_t export_pid(const struct export_job *job, uint32_t process);
/* The category of each kind of event. */
extern const char *const export_event_kinds[EXPORT_EVENT_KINDS];
/* It is of an op or a sweep, and so of a tape. */
bool export_has_tape(const struct export_site *site);
/* An arrow ends here. */
bool export_is_arrow_end(const struct export_site *site);

/* Called with each beginning and each end of a thread, in their order. */
typedef void export_edge_fn(void *payload, const struct export_event *event, bool is_end);
void export_each_edge(const struct export_events *events, const struct export_thread *thread,
                      export_edge_fn *each, void *payload);

#endif
