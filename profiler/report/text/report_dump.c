/* report_dump.c: see report_dump.h.
 *
 * Events come when they end: a scope after what it holds, a sweep after its pullbacks. Where one
 * begins is seen by the first event that is within it; so a bracket opens there, and closes with
 * the time of the whole.
 */
#include "report_dump.h"

#include "base_array.h"
#include "base_memory.h"
#include "report_json.h"
#include "report_text.h"
#include "report_units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64, INDENT = 2, MOST_INDENT = 24, PLACE_ROOM = 1024, WIDE = 66, NARROW = 50 };

/* What the rows of one line and op have, of all tapes. */
struct dump_site {
    struct read_row row; /* the first; counters are sums, a shape is that of all */
    struct analyze_line line;
};

/* A thread of a process, and the brackets that are open in it. */
struct dump_thread {
    uint64_t thread;
    uint32_t process;
    bool sweep;                    /* the innermost bracket is a sweep's */
    uint32_t n, scope[MOST_DEPTH]; /* places plus 1, from the outermost on */
};

struct report_dump {
    const struct analyze_result *analysis;
    struct report_dump_options options;
    const struct report_style *style;
    struct dump_site *site; /* by pc, line, op */
    size_t n_sites;
    struct dump_thread *thread;
    size_t n_threads, room_threads;
    size_t shown; /* the place of the thread whose events were printed last */
    size_t n_printed;
    uint64_t n_left;
    struct base_json json;
};

static int dump_compare_rows(const struct read_row *a, const struct read_row *b)
{
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return strcmp(a->op, b->op);
}

static int compare_sites(const void *x, const void *y)
{
    return dump_compare_rows(&((const struct dump_site *)x)->row,
                             &((const struct dump_site *)y)->row);
}

static void unite_sites(struct report_dump *dump)
{
    size_t kept = 0;
    qsort(dump->site, dump->n_sites, sizeof *dump->site, compare_sites);
    for (size_t i = 0; i < dump->n_sites; i++) {
        struct read_row *to = kept > 0 ? &dump->site[kept - 1].row : NULL;
        const struct read_row *from = &dump->site[i].row;
        if (!to || dump_compare_rows(to, from) != 0) {
            dump->site[kept++] = dump->site[i];
            continue;
        }
#define X(name) to->name += from->name;
        ROW_COUNTERS(X)
#undef X
        if (to->shape != from->shape)
            to->shape = NULL;
    }
    dump->n_sites = kept;
    for (size_t i = 0; i < kept; i++)
        analyze_line_of_row(dump->analysis, &dump->site[i].row, &dump->site[i].line);
}

static void take_sites(struct report_dump *dump)
{
    const struct read_profile *profile = dump->analysis->profile;
    size_t all = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        all += profile->tape[i].n_rows;
    dump->site = base_calloc(all + 1, sizeof *dump->site);
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            dump->site[dump->n_sites++].row = profile->tape[i].row[j];
    unite_sites(dump);
}

/* Of an event whose row the profile lacks: a site without counters, in `room`. */
static const struct dump_site *dump_site_of(const struct report_dump *dump,
                                            const struct read_event *event, struct dump_site *room)
{
    *room = (struct dump_site){.row = {.pc = event->pc, .line = event->line, .op = event->op}};
    const struct dump_site *found =
        bsearch(room, dump->site, dump->n_sites, sizeof *dump->site, compare_sites);
    if (found)
        return found;
    analyze_line_of_row(dump->analysis, &room->row, &room->line);
    return room;
}

/* The place of the event's thread, made if it is new. */
static size_t dump_thread_of(struct report_dump *dump, const struct read_event *event)
{
    const struct dump_thread *shown = dump->n_threads > 0 ? &dump->thread[dump->shown] : NULL;
    if (shown && shown->thread == event->thread && shown->process == event->process)
        return dump->shown;
    for (size_t i = dump->n_threads; i-- > 0;)
        if (dump->thread[i].thread == event->thread && dump->thread[i].process == event->process)
            return i;
    BASE_ARRAY_GROW(dump->thread, dump->n_threads, &dump->room_threads);
    dump->thread[dump->n_threads] =
        (struct dump_thread){.thread = event->thread, .process = event->process};
    return dump->n_threads++;
}

static bool dump_is_wanted(const struct report_dump *dump, const struct read_event *event)
{
    const unsigned phases = dump->style->phases;
    const bool backward = event->kind == READ_EVENT_BACKWARD || event->kind == READ_EVENT_SWEEP;
    if (phases && event->kind != READ_EVENT_SCOPE &&
        !(phases & (backward ? REPORT_BACKWARD : REPORT_FORWARD | REPORT_RECOMPUTE)))
        return false;
    return read_profile_since(dump->analysis->profile, event->start_ticks) <= dump->options.to_ns &&
           read_profile_since(dump->analysis->profile, read_event_end(event)) >=
               dump->options.from_ns;
}

/* Columns before the last one. */
static unsigned put_columns(const struct report_dump *dump, const char *const cell[6])
{
    static const unsigned wide[6] = {8, 7, 8, 8, 8, 8};
    const struct report_style *style = dump->style;
    const unsigned width = style->width;
    const unsigned n = width == 0 || width >= WIDE ? 6 : width >= NARROW ? 4 : 2;
    unsigned used = 0;
    for (unsigned i = 0; i < n; i++) {
        const unsigned room = style->exact && i != 2 ? 14 : wide[i];
        const unsigned columns = report_text_columns(cell[i]);
        const char *color = style->color ? report_table_phase_color(cell[i]) : NULL;
        fprintf(style->out, "%*s", columns < room ? (int)(room - columns) : 0, "");
        fprintf(style->out, color ? "\033[%s%s%s\033[0m " : "%s%s%s ", color ? color : "",
                color ? "m" : "", cell[i]);
        used += (columns < room ? room : columns) + 1;
    }
    return used;
}

/* The last column, cut to what is left of the width. */
static void put_last(const struct report_dump *dump, unsigned used, unsigned depth,
                     const char *text)
{
    const struct report_style *style = dump->style;
    unsigned indent = depth * INDENT < MOST_INDENT ? depth * INDENT : MOST_INDENT;
    if (style->width > 0 && used + indent + 16 > style->width)
        indent = style->width > used + 16 ? style->width - used - 16 : 0;
    fprintf(style->out, "%*s", (int)indent, "");
    used += indent;
    report_table_put_text(style->out, text,
                          style->width == 0         ? 0
                          : style->width > used + 1 ? style->width - used
                                                    : 1,
                          style->utf8);
    putc('\n', style->out);
}

static void put_open(const struct report_dump *dump, unsigned depth, const char *name)
{
    static const char *const none[6] = {"", "", "", "", "", ""};
    char text[PLACE_ROOM];
    snprintf(text, sizeof text, "%s {", name);
    put_last(dump, put_columns(dump, none), depth, text);
}

static const char *scope_name(const struct report_dump *dump, uint32_t scope)
{
    return dump->analysis->profile->scope[scope - 1].name;
}

/* Opens the brackets of the scopes from the outermost on that are not open yet. */
static void open_scopes(const struct report_dump *dump, struct dump_thread *thread, uint32_t scope)
{
    const struct read_profile *profile = dump->analysis->profile;
    uint32_t chain[MOST_DEPTH], n = 0;
    for (; scope != 0 && n < MOST_DEPTH; scope = profile->scope[scope - 1].parent)
        chain[n++] = scope;
    uint32_t common = 0;
    while (common < n && common < thread->n && thread->scope[common] == chain[n - 1 - common])
        common++;
    /* What ended beyond the limit in bytes has no event. */
    thread->n = common;
    while (thread->n < n) {
        const uint32_t next = chain[n - 1 - thread->n];
        put_open(dump, thread->n, scope_name(dump, next));
        thread->scope[thread->n++] = next;
    }
}

static uint64_t per_call(uint64_t sum, uint64_t calls)
{
    return calls ? (sum + calls / 2) / calls : 0;
}

static uint64_t dump_bytes_of(const struct read_row *row)
{
    return row->record_bytes + row->value_bytes;
}

/* What is computed again is on the tape again. */
static uint64_t dump_calls_of(const struct read_row *row)
{
    return row->calls + row->recompute_calls;
}

/* Events have no shapes of their own: it is known where all ops of the line had one. */
static const char *dump_shape_of(const struct read_event *event, const struct dump_site *site)
{
    const bool is_op = event->kind == READ_EVENT_FORWARD || event->kind == READ_EVENT_BACKWARD;
    return site && is_op ? site->line.shape : NULL;
}

#define ROW(X, NAME, number, name, ...) [READ_EVENT_##NAME] = (name),
static const char *const kind_name[READ_EVENT_KINDS] = {EVENT_LIST(ROW, )};
#undef ROW

static void dump_put_text(struct report_dump *dump, const struct dump_thread *thread,
                          const struct read_event *event, const struct dump_site *site)
{
    const struct report_style *style = dump->style;
    const uint64_t from = read_profile_since(dump->analysis->profile, event->start_ticks);
    const uint64_t ns = read_profile_since(dump->analysis->profile, read_event_end(event)) - from;
    char start[REPORT_UNITS_ROOM], time[REPORT_UNITS_ROOM], place[REPORT_UNITS_ROOM] = "-",
                                                            saved[REPORT_UNITS_ROOM] = "";
    char bytes[REPORT_UNITS_ROOM] = "", text[PLACE_ROOM + 8] = "} ";
    const bool closes = event->kind == READ_EVENT_SWEEP || event->kind == READ_EVENT_SCOPE;
    if (style->exact) {
        report_units_exact(start, from);
        report_units_exact(time, ns);
    } else {
        report_units_time(start, from, style->utf8);
        report_units_time(time, ns, style->utf8);
    }
    if (event->record > 0)
        snprintf(place, sizeof place, "%" PRIu64, event->record - 1);
    if (site && event->kind == READ_EVENT_FORWARD && dump_calls_of(&site->row) > 0) {
        const uint64_t kept = per_call(site->row.kept_bytes, dump_calls_of(&site->row));
        const uint64_t all = per_call(dump_bytes_of(&site->row), dump_calls_of(&site->row));
        if (style->exact) {
            report_units_exact(saved, kept);
            report_units_exact(bytes, all);
        } else {
            report_units_bytes(saved, kept);
            report_units_bytes(bytes, all);
        }
    }
    if (event->kind == READ_EVENT_SCOPE)
        snprintf(text, sizeof text, "} %s", event->scope ? scope_name(dump, event->scope) : "");
    else
        report_text_where(text + (closes ? 2 : 0), PLACE_ROOM, dump->analysis, &site->line,
                          ANALYZE_BY_LINE);
    if (dump_shape_of(event, site)) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, " %s", dump_shape_of(event, site));
    }
    const char *const cell[6] = {start, time, kind_name[event->kind], closes ? "" : place,
                                 saved, bytes};
    put_last(dump, put_columns(dump, cell), thread->n + thread->sweep, text);
}

static void json_place_of(struct base_json *json, const char *name, uint64_t record)
{
    if (record > 0)
        base_json_u64(json, name, record - 1);
    else
        base_json_null(json, name);
}

static void dump_put_json(struct report_dump *dump, const struct read_event *event,
                          const struct dump_site *site)
{
    struct base_json *json = &dump->json;
    const uint64_t from = read_profile_since(dump->analysis->profile, event->start_ticks);
    const bool known = site && event->kind == READ_EVENT_FORWARD && dump_calls_of(&site->row) > 0;
    base_json_object(json, NULL);
    base_json_text(json, "kind", kind_name[event->kind]);
    base_json_bool(json, "again", event->again);
    base_json_bool(json, "part", event->part);
    base_json_u64(json, "start_ns", from);
    base_json_u64(json, "ns",
                  read_profile_since(dump->analysis->profile, read_event_end(event)) - from);
    json_place_of(json, "place", event->record);
    base_json_u64(json, "tape", event->tape);
    base_json_u64(json, "thread", event->thread);
    json_place_of(json, "process", event->process ? event->process + UINT64_C(1) : 0);
    base_json_text(json, "scope", event->scope ? scope_name(dump, event->scope) : NULL);
    base_json_text(json, "op", event->kind == READ_EVENT_SCOPE ? NULL : event->op);
    base_json_text(json, "shape", dump_shape_of(event, site));
    base_json_text(json, "file", site ? site->line.file : NULL);
    base_json_u64(json, "line", site ? site->line.line : 0);
    base_json_text(json, "function", site ? site->line.function : NULL);
    if (known) {
        base_json_u64(json, "saved_bytes_per_op",
                      per_call(site->row.kept_bytes, dump_calls_of(&site->row)));
        base_json_u64(json, "tape_bytes_per_op",
                      per_call(dump_bytes_of(&site->row), dump_calls_of(&site->row)));
    } else {
        base_json_null(json, "saved_bytes_per_op");
        base_json_null(json, "tape_bytes_per_op");
    }
    base_json_end(json);
}

/* A heading where another thread's events begin. */
static void dump_put_thread(struct report_dump *dump, size_t place)
{
    const struct dump_thread *thread = &dump->thread[place];
    const struct report_style *style = dump->style;
    const bool first = dump->n_printed == 0;
    if (!first && dump->shown == place)
        return;
    dump->shown = place;
    if (first && thread->process == 0) /* the only one, most often */
        return;
    if (thread->process > 0)
        fprintf(style->out, "process %" PRIu32 ", ", thread->process);
    fprintf(style->out, "thread %" PRIu64 ":\n", thread->thread);
}

/* The brackets that the event is in, or ends. */
static void put_brackets(const struct report_dump *dump, struct dump_thread *thread,
                         const struct read_event *event)
{
    if (event->kind == READ_EVENT_SCOPE || event->kind == READ_EVENT_FORWARD) {
        /* What is computed again within a sweep stands where it was recorded. */
        if (!(event->kind == READ_EVENT_FORWARD && thread->sweep))
            open_scopes(dump, thread, event->scope);
        if (event->kind == READ_EVENT_SCOPE && thread->n > 0)
            thread->n--;
    } else if (!thread->sweep) {
        if (event->kind == READ_EVENT_SWEEP)
            open_scopes(dump, thread, event->scope);
        put_open(dump, thread->n, "sweep");
    }
    thread->sweep =
        event->kind == READ_EVENT_BACKWARD || (thread->sweep && event->kind == READ_EVENT_FORWARD);
}

void report_dump_event(struct report_dump *dump, const struct read_event *of_file)
{
    struct dump_site room;
    struct read_event known = *of_file, *event = &known;
    if (event->scope > dump->analysis->profile->n_scopes) /* the file has changed since */
        event->scope = 0;
    if (!dump_is_wanted(dump, event))
        return;
    if (dump->options.limit > 0 && dump->n_printed >= dump->options.limit) {
        dump->n_left++;
        return;
    }
    const struct dump_site *site =
        event->kind == READ_EVENT_SCOPE ? NULL : dump_site_of(dump, event, &room);
    if (dump->style->json) {
        dump_put_json(dump, event, site);
    } else {
        const size_t place = dump_thread_of(dump, event);
        dump_put_thread(dump, place);
        put_brackets(dump, &dump->thread[place], event);
        dump_put_text(dump, &dump->thread[place], event, site);
    }
    dump->n_printed++;
}

struct report_dump *report_dump_open(const struct analyze_result *analysis,
                                     const struct report_dump_options *options,
                                     const struct report_style *style)
{
    static const char *const title[6] = {"start", "time", "kind", "place", "saved/op", "bytes/op"};
    struct report_dump *dump = base_calloc(1, sizeof *dump);
    dump->analysis = analysis;
    dump->options = *options;
    dump->style = style;
    take_sites(dump);
    if (style->json) {
        report_json_begin(&dump->json, style->out, "records");
        report_json_profile(&dump->json, "profile", analysis->profile);
        base_json_array(&dump->json, "events");
    } else {
        put_last(dump, put_columns(dump, title), 0, report_text_where_title(ANALYZE_BY_LINE));
    }
    return dump;
}

void report_dump_close(struct report_dump *dump, bool whole)
{
    const struct report_style *style = dump->style;
    const uint64_t left_out = dump->analysis->profile->events_left_out;
    if (style->json && whole) {
        base_json_end(&dump->json);
        base_json_u64(&dump->json, "events_not_shown", dump->n_left);
        base_json_u64(&dump->json, "events_left_out", left_out);
        base_json_finish(&dump->json);
    } else if (whole) {
        if (dump->n_left > 0)
            fprintf(style->out, "%" PRIu64 " more event%s; -n 0 shows everything.\n", dump->n_left,
                    dump->n_left == 1 ? "" : "s");
        if (left_out > 0)
            fprintf(style->out, "%" PRIu64 " more were beyond the recording's limit in bytes.\n",
                    left_out);
    }
    free(dump->site);
    free(dump->thread);
    free(dump);
}
