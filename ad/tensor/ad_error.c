/* ad_error.c: statuses by name, the errors of tapes and threads, and the place in their messages.
 *
 * Reporting never allocates; only the symbol module, asked once per error, may, and without it a
 * message still has what the caller's line macro or the dynamic linker knows.
 */
#include "ad_internal.h"
#include "plain_format.h"

#include "tape_nonfinite.h"
#include "tape_poison.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name, text) _Static_assert((int)AD_##name == (int)TAPE_##name, "one vocabulary");
AD_STATUS_MAP(X)
#undef X

/* The calling thread's own error: the first since the last that was read. */
static _Thread_local struct {
    struct tape_error error;
    ad_tape tape;     /* what it was about, if that is no tape of the thread's; else zero */
    ad_status newest; /* code of the newest failure, kept or not */
    bool kept;        /* the newest is the one that is kept */
    bool read;        /* the user has seen it: the next may take its place */
    uint32_t seen;    /* how often, ever */
} own;

#define STATUSES (sizeof status_names / sizeof status_names[0])
static const char *const status_names[] = {
#define X(name, text) "AD_" #name,
    AD_STATUS_MAP(X)
#undef X
};
static const char *const status_texts[] = {
#define X(name, text) text,
    AD_STATUS_MAP(X)
#undef X
};

const char *ad_status_name(ad_status status)
{
    return (size_t)status < STATUSES ? status_names[status] : "not a status";
}

const char *ad_status_text(ad_status status)
{
    return (size_t)status < STATUSES ? status_texts[status] : "not a status";
}

static void error_write(struct tape_error *error, ad_status code, struct tape_site site,
                        const char *format, va_list list)
{
    char *text = error->message;
    int n = plain_vformat(text, TAPE_MESSAGE_BYTES, format, list);
    error->code = (enum tape_status)code;
    error->number = 0;
    if (n < 0 || n > TAPE_MESSAGE_BYTES - 64)
        n = n < 0 ? 0 : TAPE_MESSAGE_BYTES - 64;
    if (site.pc) {
        memcpy(text + n, " at ", 5);
        ad_describe(site, text + n + 4, (size_t)(TAPE_MESSAGE_BYTES - n - 4));
    }
}

void ad_error_make(struct tape_error *error, ad_status code, struct tape_site site,
                   const char *format, ...)
{
    va_list list;
    va_start(list, format);
    error_write(error, code, site, format, list);
    va_end(list);
}

ad_status ad_fail(ad_status code, struct tape_site site, const char *format, ...)
{
    own.newest = code;
    own.kept = own.error.code == TAPE_OK || own.read;
    if (!own.kept)
        return code;
    own.read = false;
    own.tape = (ad_tape){0, 0};
    va_list list;
    va_start(list, format);
    error_write(&own.error, code, site, format, list);
    va_end(list);
    return code;
}

ad_status ad_fail_as(const struct tape_error *error)
{
    own.newest = (ad_status)error->code;
    own.kept = own.error.code == TAPE_OK || own.read;
    if (own.kept) {
        own.read = false;
        own.tape = (ad_tape){0, 0};
        own.error = *error;
    }
    return own.newest;
}

uint32_t ad_poison(struct tape *t)
{
    return tape_poison(t && t->error.code != TAPE_OK ? &t->error : &own.error);
}

ad_status ad_failed(void)
{
    return own.newest;
}

const char *ad_own_message(void)
{
    return own.kept ? own.error.message : ad_status_text(own.newest);
}

uint32_t ad_errors_seen(void)
{
    return own.seen;
}

void ad_fail_about(ad_tape tape)
{
    if (own.kept)
        own.tape = tape;
}

const char *ad_unread(void)
{
    bool unread = own.error.code != TAPE_OK && !own.read;
    own.read = own.read || unread;
    own.seen += unread;
    return unread ? own.error.message : NULL;
}

/* The error that belongs to a handle: the tape's own, or the thread's for the zero handle and for
 * one whose tape is not the thread's. That is a failure too, unless the thread's error says so
 * already or was shown for this handle before: status and message are of one error. */
static struct tape_error *error_of(ad_tape tape, const char *what)
{
    struct tape *t = ad_tape_behind((ad_tensor){tape.slot, tape.generation, 0, 0});
    if (t) {
        tape_nonfinite_settle(t);
        t->error.heard = true;
        return &t->error;
    }
    const bool shown = own.error.code != TAPE_OK && own.tape.slot == tape.slot &&
                       own.tape.generation == tape.generation;
    if (tape.slot && !shown)
        ad_tape_find(tape.slot, tape.generation, what, (struct tape_site){0, 0});
    if (tape.slot)
        own.tape = tape;
    own.seen += !own.read;
    own.read = true;
    return &own.error;
}

ad_status ad_tape_status(ad_tape tape)
{
    return (ad_status)error_of(tape, "tape_status")->code;
}

const char *ad_tape_message(ad_tape tape)
{
    return error_of(tape, "tape_message")->message;
}

void ad_tape_clear_error(ad_tape tape)
{
    struct tape_error *error = error_of(tape, "tape_clear_error");
    if (tape.slot && error == &own.error)
        return;
    error->code = TAPE_OK;
    error->message[0] = 0;
}

/* Hands the tape's failure to the user's callback. The tape may be half way through an op, so its
 * slot is nobody's meanwhile and every handle is refused. */
static void tell(const struct tape *t)
{
    const struct tape_error_watch *watch = &t->watch;
    struct ad_slot *slot = &ad_slots[watch->slot];
    uint64_t owner = __atomic_load_n(&slot->thread, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->thread, AD_THREAD_TOLD, __ATOMIC_RELAXED);
    ((ad_error_callback *)watch->callback)((ad_tape){watch->slot, watch->generation},
                                           (ad_status)t->error.code, t->error.message,
                                           watch->payload);
    __atomic_store_n(&slot->thread, owner, __ATOMIC_RELAXED);
}

ad_status ad_tape_on_error_site(ad_tape tape, ad_error_callback *callback, void *payload,
                                unsigned ad_line_)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tape_on_error", AD_HERE);
    if (!t)
        return ad_failed();
    t->watch = (struct tape_error_watch){.tell = callback ? tell : NULL,
                                         .callback = (void (*)(void))callback,
                                         .payload = payload,
                                         .slot = tape.slot,
                                         .generation = tape.generation};
    return AD_OK;
}

static bool readable(const char *path)
{
    FILE *f = fopen(path, "re");
    if (f)
        fclose(f);
    return f != NULL;
}

void *ad_module_open(const char *name, char *error, size_t n)
{
    char path[PATH_MAX] = "";
    const char *dir = secure_getenv("TAPESCOPE_MODULE_DIR");
    Dl_info info;
    if (dir) {
        snprintf(path, sizeof path, "%s/%s.so", dir, name);
    } else if (dladdr((void *)(uintptr_t)&ad_module_open, &info) && info.dli_fname) {
        /* Beside the library; beside the program's lib folder if the library is linked
         * statically. */
        const char *slash = strrchr(info.dli_fname, '/');
        int length = slash ? (int)(slash - info.dli_fname) : 1;
        const char *from = slash ? info.dli_fname : ".";
        snprintf(path, sizeof path, "%.*s/tapescope/%s.so", length, from, name);
        if (!readable(path))
            snprintf(path, sizeof path, "%.*s/../lib/tapescope/%s.so", length, from, name);
    }
    /* `tapescope record` knows where its own installation has them. */
    const char *hint = secure_getenv("TAPESCOPE_MODULE_HINT");
    if (!dir && hint && !readable(path))
        snprintf(path, sizeof path, "%s/%s.so", hint, name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module && error) {
        const char *why = dlerror();
        snprintf(error, n, "%s", why ? why : path);
    }
    return module;
}

static tape_symbol_describe_fn *symbol_describe;

static void open_symbols(void)
{
    void *module = ad_module_open("tapescope-symbols", NULL, 0);
    if (module)
        *(void **)&symbol_describe = dlsym(module, TAPE_SYMBOL_DESCRIBE);
}

void ad_describe(struct tape_site site, char *buf, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_symbols);
    if (symbol_describe && symbol_describe(site.pc, site.line, buf, (unsigned)n) == 0)
        return;
    Dl_info info = {0};
    const char *name = "?";
    uintptr_t base = 0;
    if (dladdr((void *)site.pc, &info)) {
        name = info.dli_sname ? info.dli_sname : info.dli_fname;
        base = (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
    }
    if (site.line)
        snprintf(buf, n, "line %u in %s+0x%zx", site.line, name, (size_t)(site.pc - base));
    else
        snprintf(buf, n, "%s+0x%zx", name, (size_t)(site.pc - base));
}

const char *ad_dropped_at(const struct tape *t, char *buf, size_t n)
{
    char where[160];
    buf[0] = 0;
    if (!t->dropped.pc)
        return buf;
    ad_describe(t->dropped, where, sizeof where);
    (void)snprintf(buf, n, " (the newest is at %s)", where);
    return buf;
}
