/* collect.c: the collector: keeps the last state of every tape and writes what changed to the
 * profile.
 *
 * Exports tapescope_collect_open alone.
 *
 * When something is written is said in collect_rounds.c. A child process made by fork() has no part
 * in the profile: there the collector does nothing.
 */
#include "collect_state.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool collect_is_ours(const struct collector *c)
{
    return c->pid == getpid(); /* asked, because a raw clone() runs no handlers */
}

/* In a child process: closes its copy of the descriptor, and with it its hold on the file's
 * lock. */
static void collect_forget(struct collect_open *open)
{
    struct collector *c =
        (struct collector *)(void *)((char *)open - offsetof(struct collector, open));
    c->pid = 0;
    __atomic_store_n(&c->base.hook.due, UINT64_MAX, __ATOMIC_RELAXED);
    (void)collect_file_close(&c->file);
    collect_sampler_forget(&c->sampler);
    collect_helper_forget(&c->watch.helper);
}

/* What a call from the tape has to restore. */
struct collect_entry {
    int error;
    int cancel;
};

/* The host's errno stays, and its threads are not cancelled while they hold our mutex. */
static struct collect_entry collect_enter(struct collector *c)
{
    struct collect_entry entry = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &entry.cancel);
    pthread_mutex_lock(&c->mutex);
    return entry;
}

static void collect_leave(struct collector *c, struct collect_entry entry)
{
    pthread_mutex_unlock(&c->mutex);
    pthread_setcancelstate(entry.cancel, NULL);
    errno = entry.error;
}

/* The tape's side has begun to call: `thread` of the hook. */
static void collect_publish(struct tape_hook *hook, const struct tape_now *now)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    if (!c->closed)
        collect_sampler_publish(&c->sampler, now);
    collect_leave(c, entry);
}

/* A path that is new may lead through a library that is new, and gone before the next flush. */
static void see_paths(struct collector *c, uint32_t n)
{
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    const char *reason = c->closed ? NULL : collect_modules_refresh(&c->modules);
    if (reason != NULL)
        collect_fail(c, reason);
    __atomic_store_n(&c->paths_seen, n, __ATOMIC_RELAXED);
    collect_leave(c, entry);
}

/* The mapping of the library, unless the program was linked with it whole. Under the mutex. */
static void find_library(struct collector *c, uintptr_t pc)
{
    for (size_t i = 1; i < c->modules.n; i++)
        if (pc >= c->modules.module[i].start && pc < c->modules.module[i].end) {
            c->library_from = c->modules.module[i].start;
            c->library_to = c->modules.module[i].end;
        }
}

static uint32_t path_here(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root)
{
    struct collector *c = (struct collector *)(void *)hook;
    const struct collect_path_root here = {root ? root->pc : 0, c->library_from, c->library_to,
                                           root ? root->path : 0};
    const uint32_t path = collect_path_here(c->unwinder, c->depth, site, root ? &here : NULL);
    const uint32_t n = collect_paths_count();
    if (__builtin_expect(n != __atomic_load_n(&c->paths_seen, __ATOMIC_RELAXED), 0))
        see_paths(c, n);
    return path;
}

static uint32_t path_cut(struct tape_hook *hook, uint32_t path, uintptr_t site, unsigned keep)
{
    (void)hook; /* the modules have been seen with the path, which was asked for before */
    if (keep == TAPE_PATH_KEPT)
        collect_path_refuse();
    return collect_path_cut(path, site, keep);
}

static void take_event(struct tape_hook *hook, const struct tape_event *event)
{
    collect_events_take(((struct collector *)(void *)hook)->events, event);
}

static void take_pattern(struct tape_hook *hook, const struct tape_pattern *pattern)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    const struct tape_scopes *scopes = c->scopes.from;
    if (!c->closed && scopes != NULL && tape_steps_wanted(&scopes->steps)) {
        (void)collect_modules_refresh(&c->modules); /* its line may be in a library that goes */
        collect_patterns_take(&c->patterns, pattern);
    }
    collect_leave(c, entry);
}

static bool messages_wanted(const struct collector *c)
{
    const struct tape_scopes *scopes = c->scopes.from;
    return scopes != NULL && tape_steps_wanted(&scopes->steps);
}

static void take_message(struct tape_hook *hook, const struct tape_message *message)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (messages_wanted(c))
        collect_messages_take(c->messages, message);
}

static void take_meeting(struct tape_hook *hook, const struct tape_meeting *meeting)
{
    collect_messages_meet(((struct collector *)(void *)hook)->messages, meeting);
}

/* See struct tape_hook. Its thread is begun here, not with the collector: programs that record no
 * statements have none. */
static void collect_look(struct tape_hook *hook,
                         enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now))
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    const char *reason = c->closed ? NULL : collect_watch_begin(&c->watch, &c->clock, look);
    if (reason != NULL)
        collect_say(c->base.log, c->path, "%s: no times of statements are estimated: %s", reason);
    collect_leave(c, entry);
}

static double to_ns(const struct tape_hook *hook, uint64_t ticks)
{
    return collect_clock_ns(&((const struct collector *)(const void *)hook)->clock, ticks);
}

static bool put_all(struct collect_buffer *out, struct collect_buffer *scratch,
                    struct collect_ledger *ledger, struct collect_path_map *paths)
{
    return collect_put_paths(out, paths, ledger, true) &&
           collect_put_ledger(out, ledger, paths, true) &&
           collect_put_residuals(out, scratch, ledger, true, true);
}

static bool build_snapshot(struct collector *c, struct collect_buffer *out)
{
    struct collect_stamp now = collect_clock_stamp(&c->clock);
    bool ok =
        collect_put_bytes(out, c->head.data, c->head.n) && collect_put_modules(out, &c->modules) &&
        collect_put_clock(out, &c->clock.start) && collect_put_overhead(out, &c->overhead) &&
        collect_put_scopes(out, &c->scopes, true) && collect_put_patterns(out, &c->patterns, true);
    struct collect_path_map paths = {.refused_before = c->paths.refused_before};
    for (size_t i = 0; ok && i < c->tapes.n; i++)
        ok = put_all(out, &c->scratch, c->tapes.tape[i], &paths);
    if (ok && c->retired.ledger.tapes > 0)
        ok = put_all(out, &c->scratch, &c->retired.ledger, &paths);
    collect_sampler_scan(&c->sampler, &c->modules);
    ok = ok && collect_sampler_put(&c->sampler, out, &paths, true);
    collect_path_map_free(&paths);
    return ok && collect_put_clock(out, &now) && collect_put_end(out, now.ticks, "snapshot");
}

static const char *write_snapshot(struct collector *c, const char *path)
{
    struct collect_buffer out = {0};
    const char *reason = collect_modules_refresh(&c->modules);
    if (reason == NULL && (c->lost || !build_snapshot(c, &out)))
        reason = COLLECT_NO_MEMORY;
    if (reason == NULL)
        reason = collect_file_put(path, &out);
    free(out.data);
    return reason;
}

/* PROFILE.1, PROFILE.2, ... for the signals that have come. */
static void answer_signal(struct collector *c)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.%u", c->path, ++c->n_answered);
    const char *reason = write_snapshot(c, path);
    if (reason != NULL)
        collect_say(c->base.log, path, "cannot write %s: %s", reason);
}

/* On the helper thread, many times a second. */
static uint64_t collect_tick(void *payload)
{
    struct collector *c = payload;
    if (!collect_is_ours(c))
        return COLLECT_TICK_NS;
    struct collect_entry entry = collect_enter(c);
    if (!c->closed) {
        (void)collect_modules_refresh(&c->modules);
        collect_sampler_scan(&c->sampler, &c->modules);
        collect_sampler_tell(&c->sampler, c->base.log, c->path);
        if (collect_sampler_is_due(&c->sampler)) {
            collect_write_samples(c);
            collect_write_patterns(c);
            collect_write_messages(c, false);
            collect_write_clock(c);
            collect_send_frames(c);
            __atomic_store_n(&c->base.hook.due, 0, __ATOMIC_RELAXED);
        }
        /* Without rows no op comes here that would. */
        if (c->base.hook.unaccounted && collect_signal_taken(&c->base.hook.due))
            answer_signal(c);
    }
    collect_leave(c, entry);
    return COLLECT_TICK_NS;
}

static void collect_flush(struct tape_hook *hook, const struct tape_ledger *from, bool final)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    if (c->closed) {
        collect_leave(c, entry);
        return;
    }
    uint64_t now = c->clock.peek();
    bool in_round = now >= __atomic_load_n(&hook->due, __ATOMIC_RELAXED);
    const char *reason = collect_modules_refresh(&c->modules);
    if (reason != NULL)
        collect_fail(c, reason);
    if (final)
        collect_round_retire(c, from, now);
    if (in_round && !c->round_open)
        collect_round_begin(c, now);
    if (!final)
        collect_round_keep(c, from, now, in_round);
    collect_send_frames(c);
    if (in_round && now >= c->window_end)
        collect_round_end(c, now);
    if (collect_signal_taken(&hook->due))
        answer_signal(c);
    collect_leave(c, entry);
}

/* See struct tape_hook. */
static void begin_observation(struct tape_hook *hook, const struct tape_scopes *scopes)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    if (!c->closed) {
        if (!collect_drop_all(&c->out, &c->tapes, &c->retired, &c->paths) && c->failed == NULL)
            collect_fail(c, COLLECT_NO_MEMORY);
        collect_send_frames(c);
        if (c->events != NULL)
            collect_events_clear(c->events);
        collect_patterns_clear(&c->patterns);
        collect_messages_clear(c->messages);
        c->scopes.from = scopes;
        find_library(c, (uintptr_t)__builtin_return_address(0));
        collect_sampler_begin(&c->sampler, &c->modules, tape_steps_wanted(&scopes->steps));
        const char *reason = c->signal ? collect_signal_watch(c->signal, &hook->due) : NULL;
        if (reason != NULL)
            collect_say(c->base.log, c->path, "%s: no snapshots: %s", reason);
    }
    collect_leave(c, entry);
}

static void end_observation(struct tape_hook *hook)
{
    struct collector *c = (struct collector *)(void *)hook;
    if (!collect_is_ours(c))
        return;
    struct collect_entry entry = collect_enter(c);
    if (!c->closed) {
        collect_sampler_end(&c->sampler);
        collect_watch_end(&c->watch);
    }
    collect_leave(c, entry);
}

static int collect_explain(const char *path, const char *reason, char *error, unsigned n)
{
    if (reason == NULL)
        return 0;
    snprintf(error, n, "cannot write %s: %s", path, reason);
    return -1;
}

static int collect_snapshot(struct tape_collector *base, const char *path, char *error, unsigned n)
{
    struct collector *c = (struct collector *)(void *)base;
    if (!collect_is_ours(c))
        return collect_explain(path, "the profile belongs to the parent process", error, n);
    struct collect_entry entry = collect_enter(c);
    const char *reason = write_snapshot(c, path);
    collect_leave(c, entry);
    return collect_explain(path, reason, error, n);
}

static void collect_release(struct collector *c)
{
    collect_modules_free(&c->modules);
    collect_tapes_free(&c->tapes);
    collect_retired_free(&c->retired);
    collect_scopes_free(&c->scopes);
    collect_patterns_free(&c->patterns);
    collect_events_close(c->events);
    collect_messages_close(c->messages);
    collect_ledger_free(&c->dying);
    collect_path_map_free(&c->paths);
    collect_sampler_free(&c->sampler);
    free(c->head.data);
    free(c->out.data);
    free(c->scratch.data);
    free(c->path);
}

/* As its parent's memory may have been copied while in use, a child leaves everything where it
 * is. */
static int close_collector(struct tape_collector *base, char *error, unsigned n)
{
    struct collector *c = (struct collector *)(void *)base;
    if (!collect_is_ours(c))
        return 0;
    collect_helper_join(&c->sampler.helper);
    collect_helper_join(&c->watch.helper);
    struct collect_entry entry = collect_enter(c);
    c->closing = true;
    (void)collect_modules_refresh(&c->modules);
    collect_sampler_stop(&c->sampler, &c->modules);
    collect_sampler_tell(&c->sampler, c->base.log, c->path);
    for (size_t i = 0; i < c->tapes.n; i++)
        collect_write_ledger(c, c->tapes.tape[i]);
    collect_write_samples(c);
    collect_write_retired(c);
    collect_write_scopes(c);
    collect_write_patterns(c);
    collect_write_events(c, true);
    collect_write_messages(c, true);
    collect_write_clock(c);
    if (c->failed == NULL && !collect_put_end(&c->out, c->clock.peek(), "stop"))
        collect_fail(c, COLLECT_NO_MEMORY);
    collect_send_frames(c);
    collect_leave(c, entry);
    const char *reason = collect_file_close(&c->file);
    if (reason != NULL)
        collect_fail(c, reason);
    int status = collect_explain(c->path, c->failed, error, n);
    /* Another thread may have taken up the hook just before the observation ended: the collector
     * itself stays where it is, and a late call finds it closed. */
    pthread_mutex_lock(&c->mutex);
    c->closed = true;
    collect_signal_forget(&c->base.hook.due);
    collect_release(c);
    pthread_mutex_unlock(&c->mutex);
    collect_open_remove(&c->open);
    errno = entry.error;
    return status;
}

static const char *collect_prepare(struct collector *c, const char *library_version,
                                   const struct tape_collect_options *options)
{
    const char *reason = collect_clock_open(&c->clock);
    if (reason != NULL)
        return reason;
    if (options->timeline > 0 && (c->events = collect_events_open(options->timeline)) == NULL)
        return COLLECT_NO_MEMORY;
    if ((c->messages = collect_messages_open(COLLECT_MESSAGE_BYTES)) == NULL)
        return COLLECT_NO_MEMORY;
    reason = collect_modules_refresh(&c->modules);
    if (reason != NULL)
        return reason;
    collect_overhead_measure(&c->overhead, &c->clock, options);
    if (!collect_put_head(&c->head, library_version, c->modules.module[0].path, c->clock.name,
                          options->text) ||
        !collect_put_bytes(&c->out, c->head.data, c->head.n) ||
        !collect_put_modules(&c->out, &c->modules) ||
        !collect_put_clock(&c->out, &c->clock.start) ||
        !collect_put_overhead(&c->out, &c->overhead))
        return COLLECT_NO_MEMORY;
    c->modules.changed = false;
    reason = collect_file_open(&c->file, c->path);
    if (reason != NULL)
        return reason;
    reason = collect_file_write(&c->file, c->out.data, c->out.n);
    if (reason != NULL)
        (void)collect_file_close(&c->file);
    c->out.n = 0;
    return reason;
}

static void set_paths(struct collector *c, const struct tape_collect_options *options)
{
    uint64_t depth = options->frames != TAPE_FRAMES_NONE ? options->depth : 0;
    c->depth = depth < COLLECT_PATH_DEPTH ? (unsigned)depth : COLLECT_PATH_DEPTH;
    c->unwinder = options->unwind == TAPE_UNWIND_FRAME_POINTERS ? COLLECT_UNWIND_FRAME_POINTERS
                                                                : COLLECT_UNWIND_LIBUNWIND;
    c->paths.refused_before = collect_paths_refused();
    if (c->depth > 0)
        collect_paths_open(c->unwinder);
}

__attribute__((visibility("default"))) struct tape_collector *
tapescope_collect_open(const char *path, const char *library_version,
                       const struct tape_collect_options *options, char *error, unsigned n);

/* See tape_collect_open_fn. Any thread may open a collector; one at a time is meant to be open. */
struct tape_collector *tapescope_collect_open(const char *path, const char *library_version,
                                              const struct tape_collect_options *options,
                                              char *error, unsigned n)
{
    const struct tape_collect_options defaults = tape_collect_defaults();
    if (options == NULL)
        options = &defaults;
    struct collector *c = calloc(1, sizeof *c);
    if (c == NULL || (c->path = strdup(path)) == NULL) {
        free(c);
        collect_explain(path, COLLECT_NO_MEMORY, error, n);
        return NULL;
    }
    pthread_mutex_init(&c->mutex, NULL);
    c->file.fd = -1;
    const char *reason =
        collect_prepare(c, library_version != NULL ? library_version : "", options);
    if (reason != NULL) {
        collect_explain(path, reason, error, n);
        collect_release(c);
        free(c->events);
        free(c->messages);
        pthread_mutex_destroy(&c->mutex);
        free(c);
        return NULL;
    }
    c->pid = getpid();
    c->interval_ns = FIRST_INTERVAL_NS;
    c->most_interval_ns = options->interval * INTERVAL_UNIT_NS;
    set_paths(c, options);
    c->signal = (int)options->snapshot_signal;
    c->base = (struct tape_collector){
        .hook = {.abi = TAPE_HOOK_ABI,
                 .clock = c->clock.read,
                 .due = c->clock.start.ticks + collect_clock_ticks(&c->clock, FIRST_INTERVAL_NS),
                 .flush = collect_flush,
                 .begin = begin_observation,
                 .end = end_observation,
                 .event = c->events != NULL ? take_event : NULL,
                 .pattern = take_pattern,
                 .message = take_message,
                 .meeting = take_meeting,
                 .ns = to_ns,
                 .path = c->depth > 0 ? path_here : NULL,
                 .path_cut = c->depth > 0 ? path_cut : NULL,
                 .watch = options->time == TAPE_TIME_EXACT && c->clock.read == c->clock.peek
                              ? collect_look
                              : NULL,
                 .apart = options->time == TAPE_TIME_EXACT && c->clock.read == c->clock.peek,
                 .shapes = options->shapes != 0},
        .snapshot = collect_snapshot,
        .close = close_collector,
        .log = options->log,
        .locate = options->locate,
    };
    c->open.forget = collect_forget;
    collect_open_add(&c->open);
    /* Its thread may tick at once, and must not find it half begun. */
    struct collect_entry entry = collect_enter(c);
    const bool ticks =
        collect_sampler_open(&c->sampler, &c->base.hook, options, c->path, collect_tick, c);
    collect_leave(c, entry);
    if (ticks && options->time == TAPE_TIME_SAMPLED) {
        c->base.hook.thread = collect_publish;
        (void)collect_tick(c);
    }
    return &c->base;
}
