/* ad_profile.c: where tape and profiler meet: opens the collector, by call or by TAPESCOPE_PROFILE.
 *
 * The collector is a module opened at the first profile; the library itself links nothing that
 * only a profile needs. A failure of the profiler never changes a result.
 */
#include "ad_internal.h"

#include "ranks.h"
#include "tape_poison.h"
#include "tape_scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REASON_BYTES = 400 };

const char ad_profile_linked = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tape_collector *collector;
static bool
    observing; /* not before the first of the steps that are asked for, nor after the last */

/* Of the profile being taken, or of the last one; guarded by the lock. */
static char *base_path; /* of the process that began it */
static char *own_path, *own_options;
static bool follow;          /* children have profiles of their own */
static char *wished_options; /* ad_profile_init */

static ad_status fail(ad_status code, const char *what, const char *reason)
{
    return ad_fail(code, (struct tape_site){0, 0}, "%s: %s", what, reason);
}

/* In the child of a fork the profile is the parent's. */
static void forget(void)
{
    tape_observe_forget();
    ad_profiling_ = 0;
    observing = false;
    tape_sweep_watch = NULL;
    *tape_scope_steps() = (struct tape_steps){0};
    pthread_mutex_init(&lock, NULL);
    ad_log_forget();
    tape_poison_forget();
    collector = NULL;
}

static tape_collect_open_fn *open_function(char *reason)
{
    static tape_collect_open_fn *function;
    if (!function) {
        void *module = ad_module_open("tapescope-collect", reason, REASON_BYTES);
        if (module) {
            *(void **)&function = dlsym(module, TAPE_COLLECT_OPEN);
            pthread_atfork(NULL, NULL, forget);
        }
        if (module && !function)
            snprintf(reason, REASON_BYTES, "the collector module lacks %s", TAPE_COLLECT_OPEN);
    }
    return function;
}

/* Begins or ends the observation of all tapes. */
static void observe(bool begin)
{
    if (begin)
        tape_observe_begin(&collector->hook);
    else
        tape_observe_end();
    observing = begin;
    __atomic_store_n(&ad_profiling_, begin, __ATOMIC_RELAXED);
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Takes over what a profile that has begun is about. Without memory it can be neither cleared nor
 * followed. */
static void remember(const char *path, const char *text, bool follows)
{
    char *path_copy = copy(path), *text_copy = copy(text ? text : "");
    free(own_path);
    free(own_options);
    own_path = path_copy;
    own_options = text_copy;
    if (!base_path)
        base_path = copy(path);
    follow = follows && base_path && own_options;
}

static pthread_once_t following = PTHREAD_ONCE_INIT;
static void watch_children(void);

/* A step has ended. The first call of ad_profile_step shows that sweeps are no steps: steps that
 * sweeps began are dropped. */
static void step(bool by_call)
{
    pthread_mutex_lock(&lock);
    struct tape_steps *steps = tape_scope_steps();
    if (collector && steps->asked && (by_call || !steps->by_call)) {
        if (by_call && !steps->by_call) {
            if (observing && steps->first > 0)
                observe(false);
            __atomic_store_n(&steps->seen, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&steps->by_call, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&tape_sweep_watch, NULL, __ATOMIC_RELAXED);
        }
        const uint64_t next = steps->seen + 1;
        __atomic_store_n(&steps->seen, next, __ATOMIC_RELAXED);
        const bool wanted = next >= steps->first && next <= steps->last;
        if (wanted != observing)
            observe(wanted);
    }
    pthread_mutex_unlock(&lock);
}

static void sweep_ended(void)
{
    step(false);
}

void ad_profile_step(void)
{
    if (__builtin_expect(__atomic_load_n(&tape_scope_steps()->asked, __ATOMIC_RELAXED) != 0, 0))
        step(true);
}

/* Observes from the first step that is wanted on: where the options name none, at once. */
static void begin_steps(const struct tape_collect_options *options)
{
    struct tape_steps *steps = tape_scope_steps();
    const uint64_t most = UINT64_MAX - options->warmup;
    steps->first = options->first_step < most ? options->first_step + options->warmup : UINT64_MAX;
    steps->last = options->last_step < most ? options->last_step + options->warmup : UINT64_MAX;
    steps->seen = steps->by_call = 0;
    __atomic_store_n(&steps->asked, tape_collect_steps(options), __ATOMIC_RELAXED);
    __atomic_store_n(&tape_sweep_watch, steps->asked ? sweep_ended : NULL, __ATOMIC_RELAXED);
    if (steps->first == 0)
        observe(true);
}

static void end_steps(void)
{
    if (!observing && tape_scope_steps()->asked &&
        tape_scope_steps()->seen < tape_scope_steps()->first)
        observe(true); /* so that the profile says which steps it lacks */
    __atomic_store_n(&tape_sweep_watch, NULL, __ATOMIC_RELAXED);
    observe(false);
}

/* A pipe would hold the program up until somebody reads from it, and its reader could not go back
 * to what is written again. */
static bool is_pipe(const char *path, char *reason)
{
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISFIFO(file.st_mode))
        return false;
    snprintf(reason, REASON_BYTES, "cannot write %.300s: it is a pipe, and a profile needs a file",
             path);
    return true;
}

static ad_status start(const char *path, const char *text, char *reason)
{
    struct tape_collect_options options;
    if (!ad_profile_options_read(&options, text, reason, REASON_BYTES))
        return AD_ERROR_ARGUMENT;
    if (is_pipe(path, reason))
        return AD_ERROR_PROFILE;
    tape_collect_open_fn *open = open_function(reason);
    if (!open)
        return AD_ERROR_PROFILE;
    options.log = ad_log_tell;
    options.locate = ad_locate;
    options.calibrate = ad_calibrate;
    collector = open(path, ad_version(), &options, reason, REASON_BYTES);
    if (!collector)
        return AD_ERROR_PROFILE;
    if (collector->hook.abi != TAPE_HOOK_ABI) {
        snprintf(reason, REASON_BYTES, "the collector is of another version");
        collector->close(collector, NULL, 0);
        collector = NULL;
        return AD_ERROR_PROFILE;
    }
    remember(path, text, options.follow_fork);
    if (follow)
        pthread_once(&following, watch_children);
    begin_steps(&options);
    return AD_OK;
}

/* Starts the child's own profile, after the collector's and our own handlers of the fork. */
static void start_in_child(void)
{
    char reason[REASON_BYTES] = "", path[PATH_MAX + 32];
    if (!follow)
        return;
    snprintf(path, sizeof path, "%s.%ld", base_path, (long)getpid());
    char *options = copy(own_options);
    if (!options || start(path, options, reason) != AD_OK) {
        char message[REASON_BYTES + 100];
        snprintf(message, sizeof message, "no profile of process %ld: %s", (long)getpid(), reason);
        ad_log_say(AD_LOG_WARNING, message);
    }
    free(options);
}

static void watch_children(void)
{
    pthread_atfork(NULL, NULL, start_in_child);
}

ad_status ad_profile_start(const char *path)
{
    if (ad_log_telling()) /* the lock may be this thread's */
        return fail(AD_ERROR_STATE, "profile_start", "not while the log callback runs");
    pthread_mutex_lock(&lock);
    char *wished = copy(wished_options);
    pthread_mutex_unlock(&lock);
    const ad_status status =
        ad_profile_start_with(path, wished ? wished : secure_getenv("TAPESCOPE_OPTIONS"));
    free(wished);
    return status;
}

ad_status ad_profile_init(const char *options)
{
    char reason[REASON_BYTES] = "";
    struct tape_collect_options read;
    if (ad_log_telling())
        return fail(AD_ERROR_STATE, "profile_init", "not while the log callback runs");
    if (options && !ad_profile_options_read(&read, options, reason, REASON_BYTES))
        return fail(AD_ERROR_ARGUMENT, "profile_init", reason);
    char *text = copy(options);
    if (options && !text)
        return fail(AD_ERROR_MEMORY, "profile_init", "out of memory");
    pthread_mutex_lock(&lock);
    free(wished_options);
    wished_options = text;
    pthread_mutex_unlock(&lock);
    return AD_OK;
}

ad_status ad_profile_start_with(const char *path, const char *options)
{
    char own[PATH_MAX];
    path = ranks_path(own, sizeof own, path ? path : "tapescope.prof");
    if (!path)
        return fail(AD_ERROR_ARGUMENT, "profile_start", "the name is too long");
    return ad_profile_start_at(path, options);
}

ad_status ad_profile_start_at(const char *path, const char *options)
{
    char reason[REASON_BYTES] = "";
    if (ad_log_telling())
        return fail(AD_ERROR_STATE, "profile_start", "not while the log callback runs");
    pthread_mutex_lock(&lock);
    ad_status status = collector ? AD_ERROR_STATE : start(path, options, reason);
    pthread_mutex_unlock(&lock);
    if (status == AD_ERROR_STATE)
        return fail(status, "profile_start", "a profile is being taken already");
    return status == AD_OK ? status : fail(status, "profile_start", reason);
}

ad_status ad_profile_stop(void)
{
    char reason[REASON_BYTES] = "";
    ad_status status = AD_OK;
    if (ad_log_telling())
        return fail(AD_ERROR_STATE, "profile_stop", "not while the log callback runs");
    pthread_mutex_lock(&lock);
    if (!collector) {
        status = AD_ERROR_STATE;
        snprintf(reason, sizeof reason, "no profile is being taken");
    } else {
        end_steps();
        if (collector->close(collector, reason, sizeof reason) != 0)
            status = AD_ERROR_PROFILE;
        collector = NULL;
        __atomic_store_n(&tape_scope_steps()->asked, 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return status == AD_OK ? status : fail(status, "profile_stop", reason);
}

ad_status ad_profile_clear(void)
{
    char reason[REASON_BYTES] = "";
    ad_status status = AD_OK;
    if (ad_log_telling())
        return fail(AD_ERROR_STATE, "profile_clear", "not while the log callback runs");
    pthread_mutex_lock(&lock);
    char *path = copy(own_path), *options = copy(own_options);
    if (!collector) {
        status = AD_ERROR_STATE;
        snprintf(reason, sizeof reason, "no profile is being taken");
    } else if (!path || !options) {
        status = AD_ERROR_MEMORY;
        snprintf(reason, sizeof reason, "out of memory");
    } else {
        observe(false);
        (void)collector->close(collector, reason, sizeof reason);
        collector = NULL;
        status = start(path, options, reason);
    }
    pthread_mutex_unlock(&lock);
    free(path);
    free(options);
    return status == AD_OK ? status : fail(status, "profile_clear", reason);
}

/* All of a file that was just written; NULL: it cannot be had. */
static void *read_all(int fd, size_t *bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    char *data = malloc((size_t)st.st_size + 1);
    size_t n = 0;
    while (data && n < (size_t)st.st_size) {
        const ssize_t got = pread(fd, data + n, (size_t)st.st_size - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(data);
            return NULL;
        }
        n += (size_t)got;
    }
    *bytes = n;
    return data;
}

ad_status ad_profile_fetch(void **data, size_t *bytes)
{
    char path[64];
    if (!data || !bytes)
        return fail(AD_ERROR_ARGUMENT, "profile_fetch", "a result is a null pointer");
    *data = NULL;
    const int fd = memfd_create("tapescope", MFD_CLOEXEC);
    if (fd < 0)
        return fail(AD_ERROR_PROFILE, "profile_fetch", "no file in memory can be had");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ad_status status = ad_profile_write(path);
    if (status == AD_OK && !(*data = read_all(fd, bytes)))
        status = fail(AD_ERROR_MEMORY, "profile_fetch", "out of memory");
    close(fd);
    return status;
}

ad_status ad_profile_write(const char *path)
{
    char reason[REASON_BYTES] = "";
    ad_status status = AD_OK;
    if (!path)
        return fail(AD_ERROR_ARGUMENT, "profile_write", "path is a null pointer");
    if (ad_log_telling())
        return fail(AD_ERROR_STATE, "profile_write", "not while the log callback runs");
    char own[PATH_MAX];
    path = ranks_path(own, sizeof own, path);
    if (!path)
        return fail(AD_ERROR_ARGUMENT, "profile_write", "the name is too long");
    pthread_mutex_lock(&lock);
    if (!collector) {
        status = AD_ERROR_STATE;
        snprintf(reason, sizeof reason, "no profile is being taken");
    } else if (is_pipe(path, reason)) {
        status = AD_ERROR_PROFILE;
    } else {
        tape_observe_flush();
        if (collector->snapshot(collector, path, reason, sizeof reason) != 0)
            status = AD_ERROR_PROFILE;
    }
    pthread_mutex_unlock(&lock);
    return status == AD_OK ? status : fail(status, "profile_write", reason);
}

static void wait_for_attach(const char *text)
{
    char reason[REASON_BYTES];
    struct tape_collect_options options;
    if (!text || !ad_profile_options_read(&options, text, reason, REASON_BYTES) || !options.attach)
        return;
    ad_attach_wait((int)options.attach, text);
}

__attribute__((constructor)) static void start_from_environment(void)
{
    const char *path = secure_getenv("TAPESCOPE_PROFILE");
    char reason[REASON_BYTES] = "", own[PATH_MAX + 16], of_rank[PATH_MAX];
    wait_for_attach(secure_getenv("TAPESCOPE_OPTIONS"));
    if (!path || !*path || !(path = ranks_path(of_rank, sizeof of_rank, path)))
        return;
    /* `tapescope record` removed the file: if it is there, another process of the program that is
     * recorded has written it, and a second one must not take its place. */
    struct stat file;
    if (secure_getenv("TAPESCOPE_RECORD") && stat(path, &file) == 0 && S_ISREG(file.st_mode)) {
        snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
        char message[2 * PATH_MAX + 100];
        snprintf(message, sizeof message, "%s holds another process, process %ld writes %s", path,
                 (long)getpid(), own);
        ad_log_say(AD_LOG_INFO, message);
        path = own;
    }
    if (start(path, secure_getenv("TAPESCOPE_OPTIONS"), reason) != AD_OK) {
        char message[REASON_BYTES + 100];
        snprintf(message, sizeof message, "no profile: %s", reason);
        ad_log_say(AD_LOG_WARNING, message);
    }
    /* The programs that this one starts would overwrite the file. */
    unsetenv("TAPESCOPE_PROFILE");
}

__attribute__((destructor)) static void stop_at_exit(void)
{
    if (collector)
        (void)ad_profile_stop();
}
