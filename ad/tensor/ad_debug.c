/* ad_debug.c: where a debugger is to stop, and the user's function that is told of records. */
#include "ad_internal.h"

#include "tape_record_watch.h"
#include "tape_statement.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_break_on_line
#undef ad_break_on_op
#undef ad_break_on_nan
#undef ad_on_record
#endif

enum { WHERE_BYTES = 160, TOLD_MOST = 64 };

_Static_assert(TAPE_BREAKS <= 32, "struct tape_record_watch.seen has a bit for each");

static const char *file_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- stopping ---- */

/* A debugger stops below here. */
static void break_stop(const char *what)
{
    ad_log_say(AD_LOG_INFO, what);
    (void)raise(SIGTRAP);
}

static void where_write(struct tape *t, struct tape_site site, char *where)
{
    where[0] = 0;
    if (site.pc || site.line)
        t->describe(site, where, WHERE_BYTES);
}

/* Which breaks are at the line of a site, a bit each. */
static uint32_t line_hits(struct tape *t, struct tape_site site)
{
    struct tape_record_watch *s = t->record_watch;
    const size_t at = (site.pc ^ site.pc >> 8 ^ site.line) % TAPE_BREAKS_SEEN;
    char where[WHERE_BYTES];
    if (s->seen[at].site.pc == site.pc && s->seen[at].site.line == site.line && site.pc)
        return s->seen[at].hits;
    where_write(t, site, where);
    char *const colon = strchr(where, ':');
    uint32_t hits = 0;
    if (colon) {
        *colon = 0;
        const unsigned long line = strtoul(colon + 1, NULL, 10);
        for (uint32_t i = 0; i < s->n_breaks; i++)
            if (s->breaks[i].line && s->breaks[i].line == line &&
                strcmp(s->breaks[i].of, file_base(where)) == 0)
                hits |= UINT32_C(1) << i;
    }
    s->seen[at].site = site;
    s->seen[at].hits = hits;
    return hits;
}

static bool watched_hits(struct tape *t, const struct tape_watched *w, int now)
{
    const struct tape_record_watch *s = t->record_watch;
    bool lines = false;
    for (uint32_t i = 0; i < s->n_breaks; i++) {
        const struct tape_break *b = &s->breaks[i];
        if (!(b->when & now))
            continue;
        if (b->line)
            lines = true;
        else if (strcmp(b->of, w->op) == 0)
            return true;
    }
    const uint32_t hits = lines ? line_hits(t, w->site) : 0;
    for (uint32_t i = 0; i < s->n_breaks; i++)
        if (hits >> i & 1 && s->breaks[i].when & now)
            return true;
    return false;
}

/* ---- telling ---- */

static void array_show(const struct tape_value *v, ad_custom_array *a)
{
    *a = (ad_custom_array){.data = v->array.contiguous ? v->array.data : NULL,
                           .size = v->array.size,
                           .dtype = (ad_dtype)v->array.dtype,
                           .rank = v->array.rank};
    for (int d = 0; d < v->array.rank; d++)
        a->shape[d] = v->array.shape[d];
}

static void record_show(struct tape *t, const struct tape_watched *w, const char *where)
{
    const struct tape_record_watch *s = t->record_watch;
    ad_custom_array in[TOLD_MOST], out[TOLD_MOST];
    ad_tensor result[TOLD_MOST];
    ad_recorded r = {.op = w->op,
                     .where = where,
                     .n_in = w->n_in < TOLD_MOST ? w->n_in : TOLD_MOST,
                     .n_out = w->n_out < TOLD_MOST ? w->n_out : TOLD_MOST,
                     .in = in,
                     .out = out,
                     .result = result,
                     .n_numbers = w->n_numbers,
                     .index = w->index,
                     .value = w->value};
    for (int i = 0; i < r.n_in; i++)
        array_show(&t->entries[w->in[i]], &in[i]);
    for (int o = 0; o < r.n_out; o++) {
        array_show(&t->entries[w->out[o]], &out[o]);
        result[o] = ad_handle_of(t, s->slot, s->generation, w->out[o]);
    }
    const bool calling = t->statements->calling;
    const uint64_t owner = ad_calls_begin(s->slot);
    t->statements->calling = true;
    ((ad_record_callback *)s->callback)(&r, s->payload);
    t->statements->calling = calling;
    ad_calls_end(s->slot, owner);
}

static void record_tell(struct tape *t, const struct tape_watched *w)
{
    char where[WHERE_BYTES], text[WHERE_BYTES + 128];
    const int now = w->backward ? AD_BREAK_BACKWARD : AD_BREAK_FORWARD;
    if (t->record_watch->callback && !w->backward) {
        where_write(t, w->site, where);
        record_show(t, w, where);
    }
    if (!watched_hits(t, w, now))
        return;
    where_write(t, w->site, where);
    (void)snprintf(text, sizeof text, "break: %s at %s, %s", w->op, where,
                   w->backward ? "backward" : "forward");
    break_stop(text);
}

static void nonfinite_tell(struct tape *t)
{
    char text[TAPE_MESSAGE_BYTES + 16];
    const bool backward = t->activity == TAPE_PHASE_BACKWARD;
    if (!(t->record_watch->when_nonfinite & (backward ? AD_BREAK_BACKWARD : AD_BREAK_FORWARD)))
        return;
    (void)snprintf(text, sizeof text, "break: %s", t->error.message);
    break_stop(text);
}

/* ---- the tape's own ---- */

/* Lines that were looked up were so for other breaks; who asks for nothing pays for nothing. */
static void watch_changed(struct tape *t)
{
    struct tape_record_watch *s = t->record_watch;
    memset(s->seen, 0, sizeof s->seen);
    s->tell = record_tell;
    s->nonfinite = nonfinite_tell;
    tape_nonfinite_set(t, TAPE_TRAP_RECORDS | TAPE_TRAP_BREAK,
                       (s->n_breaks > 0 || s->callback ? TAPE_TRAP_RECORDS : 0) |
                           (s->when_nonfinite ? TAPE_TRAP_BREAK : 0));
}

void ad_record_watch_inherit(const struct tape *parent, struct tape *child, ad_tape handle)
{
    if (!(parent->nonfinite & (TAPE_TRAP_RECORDS | TAPE_TRAP_BREAK)))
        return;
    *child->record_watch = *parent->record_watch;
    child->record_watch->slot = handle.slot;
    child->record_watch->generation = handle.generation;
}

static struct tape *debug_enter(ad_tape tape, const char *what, int when, struct tape_site site,
                                ad_status *status)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    *status = t ? AD_OK : ad_failed();
    if (!t || !(when & ~(int)AD_BREAK_BOTH))
        return t;
    *status = (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %d is no ad_break_when", what,
                                   when);
    return NULL;
}

static ad_status break_put(struct tape *t, const char *what, const char *of, unsigned line,
                           int when, struct tape_site site)
{
    struct tape_record_watch *s = t->record_watch;
    uint32_t i = 0;
    if (!of)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: a null pointer", what);
    if (!of[0] || strlen(of) >= TAPE_BREAK_TEXT)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "%s: a name of %llu characters, from 1 to %d are possible",
                                    what, (unsigned long long)strlen(of), TAPE_BREAK_TEXT - 1);
    while (i < s->n_breaks && (s->breaks[i].line != line || strcmp(s->breaks[i].of, of) != 0))
        i++;
    if (i == s->n_breaks && when == AD_BREAK_OFF)
        return AD_OK;
    if (i == TAPE_BREAKS)
        return (ad_status)tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: the tape has %d breaks already",
                                    what, TAPE_BREAKS);
    if (i == s->n_breaks)
        s->n_breaks++;
    if (when == AD_BREAK_OFF) {
        s->breaks[i] = s->breaks[--s->n_breaks];
    } else {
        (void)snprintf(s->breaks[i].of, sizeof s->breaks[i].of, "%s", of);
        s->breaks[i].line = line;
        s->breaks[i].when = when;
    }
    watch_changed(t);
    return AD_OK;
}

ad_status ad_break_on_line_site(ad_tape tape, const char *file, unsigned line, int when,
                                unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = debug_enter(tape, "break_on_line", when, site, &status);
    if (!t)
        return status;
    if (line == 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "break_on_line: line 0");
    return break_put(t, "break_on_line", file ? file_base(file) : NULL, line, when, site);
}

ad_status ad_break_on_op_site(ad_tape tape, const char *op, int when, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = debug_enter(tape, "break_on_op", when, site, &status);
    return t ? break_put(t, "break_on_op", op, 0, when, site) : status;
}

ad_status ad_break_on_nan_site(ad_tape tape, int when, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = debug_enter(tape, "break_on_nan", when, site, &status);
    if (!t)
        return status;
    t->record_watch->when_nonfinite = when;
    watch_changed(t);
    return AD_OK;
}

ad_status ad_on_record_site(ad_tape tape, ad_record_callback *callback, void *payload,
                            unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = debug_enter(tape, "on_record", 0, site, &status);
    if (!t)
        return status;
    t->record_watch->callback = (void (*)(void))callback;
    t->record_watch->payload = payload;
    t->record_watch->slot = tape.slot;
    t->record_watch->generation = tape.generation;
    watch_changed(t);
    return AD_OK;
}
