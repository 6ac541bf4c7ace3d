/* collect_write.c: packets of profile.proto as frames in a buffer.
 *
 * A buffer holds whole frames at any time: a packet that cannot be added leaves it as it was.
 */
#include "collect.h"

#include "collect_paths.h"
#include "collect_sampler.h"
#include "profile_frame.h"
#include "ranks.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FORMAT_VERSION = 1,
    ROWS_PER_PACKET = 1 << 16, /* some 16 MiB at most, well below PROFILE_MAX_PAYLOAD */
    PATHS_PER_PACKET = 1 << 16,
    ARGUMENT_BYTES = 1 << 20, /* of the command line, what is more is left out */
};

static bool write_reserve(struct collect_buffer *out, size_t more)
{
    if (more <= out->capacity - out->n)
        return true;
    size_t capacity = 2 * out->capacity > out->n + more ? 2 * out->capacity : out->n + more;
    uint8_t *data = realloc(out->data, capacity);
    if (data == NULL)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

bool collect_put_bytes(struct collect_buffer *out, const void *data, size_t n)
{
    if (!write_reserve(out, n))
        return false;
    if (n > 0)
        memcpy(out->data + out->n, data, n);
    out->n += n;
    return true;
}

bool collect_put_packet(struct collect_buffer *out, int kind, void *message)
{
    const Tapescope__Packet packet = profile_packet((Tapescope__Packet__KindCase)kind, message);
    size_t n = tapescope__packet__get_packed_size(&packet);
    if (n > PROFILE_MAX_PAYLOAD || !write_reserve(out, PROFILE_FRAME_BYTES + n))
        return false;
    uint8_t *head = out->data + out->n;
    tapescope__packet__pack(&packet, head + PROFILE_FRAME_BYTES);
    profile_frame_put(head, head + PROFILE_FRAME_BYTES, (uint32_t)n);
    out->n += PROFILE_FRAME_BYTES + n;
    return true;
}

struct arguments {
    struct collect_buffer text; /* each ended by a zero byte */
    char **at;
    size_t n;
};

/* The process's arguments, read from the system: a module has no main(). What cannot be read is
 * left out. False: no memory. */
static bool read_arguments(struct arguments *arguments)
{
    struct collect_buffer *text = &arguments->text;
    if (collect_file_read(text, "/proc/self/cmdline", ARGUMENT_BYTES) == ENOMEM)
        return false;
    if (text->n > 0)
        text->data[text->n - 1] = '\0';
    size_t n = 0;
    for (size_t i = 0; i < text->n; i++)
        n += text->data[i] == '\0';
    arguments->at = calloc(n + 1, sizeof *arguments->at);
    if (arguments->at == NULL)
        return false;
    for (size_t i = 0; i < text->n; i += strlen((char *)text->data + i) + 1)
        arguments->at[arguments->n++] = (char *)text->data + i;
    return true;
}

bool collect_put_head(struct collect_buffer *out, const char *library_version, const char *program,
                      const char *clock, const char *options)
{
    char directory[PATH_MAX];
    struct arguments arguments = {0};
    bool ok = read_arguments(&arguments);
    if (getcwd(directory, sizeof directory) == NULL)
        directory[0] = '\0';

    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    header.version = FORMAT_VERSION;
    header.library_version = (char *)library_version;
    header.program = (char *)program;
    header.n_argument = arguments.n;
    header.argument = arguments.at;
    header.working_directory = directory;
    header.pid = (uint64_t)getpid();
    header.start_unix_ns = collect_time_unix();
    header.clock = (char *)clock;
    header.collector = (char *)"tapescope-collect";
    header.options = (char *)options;
    const struct ranks_here here = ranks_of_environment();
    header.ranked = here.known;
    header.rank = here.known ? here.rank : 0;
    header.ranks = here.known ? here.size : 0;
    size_t before = out->n;
    ok = ok && collect_put_bytes(out, PROFILE_MAGIC, PROFILE_MAGIC_BYTES) &&
         collect_put_packet(out, TAPESCOPE__PACKET__KIND_HEADER, &header);
    if (!ok)
        out->n = before;
    free(arguments.at);
    free(arguments.text.data);
    return ok;
}

bool collect_put_modules(struct collect_buffer *out, const struct collect_modules *modules)
{
    Tapescope__Module **list = profile_list(&tapescope__module__descriptor, modules->n);
    Tapescope__Modules message = TAPESCOPE__MODULES__INIT;
    message.n_module = modules->n;
    message.module = list;
    for (size_t i = 0; list != NULL && i < modules->n; i++) {
        const struct collect_module *from = &modules->module[i];
        list[i]->path = from->path;
        list[i]->build_id.len = from->n_build_id;
        list[i]->build_id.data = (uint8_t *)from->build_id;
        list[i]->start = from->start;
        list[i]->end = from->end;
        list[i]->bias = from->bias;
    }
    const bool ok =
        list != NULL && collect_put_packet(out, TAPESCOPE__PACKET__KIND_MODULES, &message);
    free(list);
    return ok;
}

bool collect_put_overhead(struct collect_buffer *out, const struct collect_overhead *from)
{
    if (from->forward_ticks == 0 && from->backward_ticks == 0)
        return true;
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    overhead.forward_ticks = from->forward_ticks;
    overhead.backward_ticks = from->backward_ticks;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_OVERHEAD, &overhead);
}

bool collect_put_clock(struct collect_buffer *out, const struct collect_stamp *stamp)
{
    Tapescope__Clock clock = TAPESCOPE__CLOCK__INIT;
    clock.ticks = stamp->ticks;
    clock.monotonic_ns = stamp->monotonic_ns;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_CLOCK, &clock);
}

/* n paths that the file does not have yet. */
static bool put_path_packet(struct collect_buffer *out, const struct collect_path_map *map,
                            uint32_t n)
{
    Tapescope__Path **list = profile_list(&tapescope__path__descriptor, n);
    Tapescope__Paths message = TAPESCOPE__PATHS__INIT;
    message.n_path = n;
    message.path = list;
    message.refused = map->refused;
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        struct collect_path from = collect_path_at(map->listed[map->written + i]);
        list[i]->id = map->written + i + 1;
        list[i]->parent = collect_path_map_id(map, from.parent);
        list[i]->pc = from.pc;
        list[i]->number = map->listed[map->written + i];
    }
    const bool ok =
        list != NULL && collect_put_packet(out, TAPESCOPE__PACKET__KIND_PATHS, &message);
    free(list);
    return ok;
}

/* Call paths that were added to the map since the last packet. */
static bool put_new_paths(struct collect_buffer *out, struct collect_path_map *map)
{
    size_t before = out->n;
    const uint64_t refused = collect_paths_refused() - map->refused_before;
    const uint32_t written = map->written;
    if (map->written == map->n && refused == map->refused)
        return true;
    map->refused = refused;
    do {
        uint32_t n = map->n - map->written;
        n = n < PATHS_PER_PACKET ? n : PATHS_PER_PACKET;
        if (!put_path_packet(out, map, n)) {
            out->n = before;
            map->written = written;
            return false;
        }
        map->written += n;
    } while (map->written < map->n);
    return true;
}

bool collect_put_paths(struct collect_buffer *out, struct collect_path_map *map,
                       const struct collect_ledger *ledger, bool all)
{
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if ((all || ledger->row[i].changed) && !collect_path_map_add(map, ledger->row[i].path))
            return false;
    return put_new_paths(out, map);
}

static void fill_row(Tapescope__Row *to, const struct collect_row *from, uint32_t index,
                     const struct collect_path_map *paths)
{
    to->index = index;
    to->pc = from->pc;
    to->line = from->line;
    to->path = collect_path_map_id(paths, from->path);
    to->op = (char *)from->op;
    to->shape = (char *)(from->shape ? from->shape : "");
    to->kept_by = from->kept_by;
    to->kept_others = from->kept_others != 0;
    to->thread = from->thread;
#define X(name) to->name = from->name;
    ROW_COUNTERS(X)
#undef X
    to->scope = from->scope;
}

static void fill_totals(Tapescope__Ledger *to, const struct collect_ledger *from)
{
    to->tape = from->tape;
    to->thread = from->thread;
    to->tapes = from->tapes;
    to->ticks = from->ticks;
#define X(name) to->name = from->name;
    TAPE_COUNTERS(X)
#undef X
}

static bool put_rows(struct collect_buffer *out, const struct collect_ledger *ledger,
                     Tapescope__Row **list, size_t n)
{
    Tapescope__Ledger message = TAPESCOPE__LEDGER__INIT;
    fill_totals(&message, ledger);
    message.n_row = n;
    message.row = list;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_LEDGER, &message);
}

bool collect_put_ledger(struct collect_buffer *out, const struct collect_ledger *ledger,
                        const struct collect_path_map *paths, bool all)
{
    uint32_t most = ledger->n_rows < ROWS_PER_PACKET ? ledger->n_rows : ROWS_PER_PACKET;
    Tapescope__Row **list = profile_list(&tapescope__row__descriptor, most);
    bool ok = list != NULL;
    size_t before = out->n, n = 0;
    for (uint32_t i = 0; ok && i < ledger->n_rows; i++) {
        if (!all && !ledger->row[i].changed)
            continue;
        if (n == most) {
            ok = put_rows(out, ledger, list, n);
            n = 0;
        }
        fill_row(list[n++], &ledger->row[i], i, paths);
    }
    ok = ok && put_rows(out, ledger, list, n);
    if (!ok)
        out->n = before;
    free(list);
    return ok;
}

bool collect_put_final(struct collect_buffer *out, const struct collect_ledger *ledger)
{
    Tapescope__Ledger message = TAPESCOPE__LEDGER__INIT;
    message.tape = ledger->tape;
    message.thread = ledger->thread;
    message.ticks = ledger->ticks;
    message.final = true;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_LEDGER, &message);
}

bool collect_put_end(struct collect_buffer *out, uint64_t ticks, const char *reason)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    end.ticks = ticks;
    end.unix_ns = collect_time_unix();
    end.reason = (char *)reason;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_END, &end);
}

/* Samples and threads are in one packet: a process that is killed leaves a file in which they
 * agree. */
static void fill_sample(Tapescope__Sample *to, const struct collect_samples *samples, uint32_t i,
                        const struct collect_path_map *paths)
{
    const struct collect_aggregate *from = &samples->aggregate[i];
    to->index = i;
    to->thread = from->thread;
    to->phase = from->phase;
    to->pc = from->pc;
    to->line = from->line;
    to->op = (char *)(from->op != NULL ? from->op : "");
    to->path = collect_path_map_id(paths, from->path);
    to->shared = from->shared;
    to->n_stack = from->n_pcs;
    to->stack = from->n_pcs > 0 ? samples->pc + from->first_pc : NULL;
    to->waiting = from->waiting;
#define X(name) to->name = from->name;
    SAMPLE_COUNTERS(X)
#undef X
}

/* As many as there may be are below PROFILE_MAX_PAYLOAD, with all their callers. */
static bool put_aggregates(struct collect_buffer *out, const struct collect_samples *samples,
                           Tapescope__Samples *message, const struct collect_path_map *paths,
                           bool all)
{
    Tapescope__Sample **list = profile_list(&tapescope__sample__descriptor, samples->n);
    size_t n = 0;
    for (uint32_t i = 0; list != NULL && i < samples->n; i++)
        if (all || samples->aggregate[i].changed)
            fill_sample(list[n++], samples, i, paths);
    message->n_sample = n;
    message->sample = list;
    const bool ok =
        list != NULL && collect_put_packet(out, TAPESCOPE__PACKET__KIND_SAMPLES, message);
    free(list);
    return ok;
}

static void fill_threads(Tapescope__Threads *message, Tapescope__Thread *thread,
                         Tapescope__Thread **list, const struct collect_samples *samples, bool all)
{
    for (uint32_t i = 0; i < samples->n_threads; i++) {
        const struct collect_thread_total *from = &samples->thread[i];
        if (!all && !from->changed)
            continue;
        Tapescope__Thread *to = &thread[message->n_thread];
        tapescope__thread__init(to);
        to->index = i;
        to->tid = (uint64_t)from->tid;
        to->name = (char *)from->name;
#define X(name) to->name = from->name;
        THREAD_COUNTERS(X)
#undef X
        list[message->n_thread++] = to;
    }
    message->thread = list;
}

bool collect_put_samples(struct collect_buffer *out, const struct collect_samples *samples,
                         uint64_t period_ns, uint64_t process_ns, struct collect_path_map *paths,
                         bool all)
{
    const size_t before = out->n;
    for (uint32_t i = 0; i < samples->n; i++)
        if ((all || samples->aggregate[i].changed) &&
            !collect_path_map_add(paths, samples->aggregate[i].path))
            return false;
    if (!put_new_paths(out, paths))
        return false;
    Tapescope__Thread thread[COLLECT_NAMED_THREADS + 1], *list[COLLECT_NAMED_THREADS + 1];
    Tapescope__Threads threads = TAPESCOPE__THREADS__INIT;
    Tapescope__Samples message = TAPESCOPE__SAMPLES__INIT;
    fill_threads(&threads, thread, list, samples, all);
    threads.process_cpu_ns = process_ns;
    message.period_ns = period_ns;
    message.threads = &threads;
    const bool ok = put_aggregates(out, samples, &message, paths, all);
    if (!ok)
        out->n = before;
    return ok;
}

static void fill_class(Tapescope__ResidualClass *to, const struct collect_class *from,
                       uint32_t index)
{
    tapescope__residual_class__init(to);
    to->index = index;
    to->producer = from->producer;
    to->consumer = from->consumer;
    to->kind = from->kind;
    to->shared = from->shared != 0;
    to->released_by = from->released_by;
    to->released_others = from->released_others != 0;
#define X(name) to->name = from->name;
    CLASS_COUNTERS(X)
#undef X
    to->byte_ticks = from->byte_ticks;
}

/* Room for n bytes, which the next call takes again, or NULL. */
static void *scratch_of(struct collect_buffer *scratch, size_t n)
{
    if (n <= scratch->capacity)
        return scratch->data;
    uint8_t *data = realloc(scratch->data, 2 * n);
    if (data == NULL)
        return NULL;
    scratch->data = data;
    scratch->capacity = 2 * n;
    return data;
}

enum {
    CHANGE_BYTES = 24,
    MOMENT_BYTES = 28
}; /* of the columns, whose elements are 8 bytes first */

static void fill_stretch(Tapescope__Stretch *to, const struct collect_residuals *r, void *columns)
{
    const size_t n = r->n_changes;
    tapescope__stretch__init(to);
    to->ticks = columns;
    to->delta = (int64_t *)(void *)(to->ticks + n);
    to->part = (uint32_t *)(void *)(to->delta + n);
    to->flags = to->part + n;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tape_change *c = &r->change[i];
        to->ticks[i] = c->ticks > before ? c->ticks - before : 0;
        before += to->ticks[i];
        to->delta[i] = c->delta;
        to->part[i] = c->class_;
        to->flags[i] = c->flags;
    }
    to->n_ticks = to->n_delta = to->n_part = to->n_flags = n;
    to->merged = r->merged;
    to->truncated = r->truncated;
    to->trace = r->trace;
    to->n_trace = r->n_trace;
    to->trace_cut = (r->trace_flags & TAPE_TRACE_CUT) != 0;
    to->trace_hides = (r->trace_flags & TAPE_TRACE_HIDDEN) != 0;
    to->trace_uses = true;
}

/* At the end those that are live count as changed: time has passed. */
static bool is_wanted(const struct collect_class *c, bool all, bool last)
{
    return all || c->changed || (last && c->live_bytes > 0);
}

static bool put_classes(struct collect_buffer *out, struct collect_buffer *scratch,
                        const struct collect_ledger *ledger, bool all, bool last, bool with_stretch)
{
    const struct collect_residuals *r = &ledger->residuals;
    const size_t columns = with_stretch ? (size_t)r->n_changes * CHANGE_BYTES : 0;
    Tapescope__ResidualClass *class_ =
        scratch_of(scratch, r->n * (sizeof *class_ + sizeof(void *)) + columns);
    if (class_ == NULL)
        return false;
    Tapescope__ResidualClass **list = (Tapescope__ResidualClass **)(void *)(class_ + r->n);
    Tapescope__Residuals message = TAPESCOPE__RESIDUALS__INIT;
    Tapescope__Stretch stretch;
    message.tape = ledger->tape;
    message.part = list;
    for (uint32_t i = 0; i < r->n; i++) {
        if (!is_wanted(&r->class_[i], all, last))
            continue;
        fill_class(&class_[message.n_part], &r->class_[i], i);
        list[message.n_part] = &class_[message.n_part];
        message.n_part++;
    }
    if (with_stretch) {
        fill_stretch(&stretch, r, list + r->n);
        message.stretch = &stretch;
    }
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_RESIDUALS, &message);
}

static bool put_moments(struct collect_buffer *out, struct collect_buffer *scratch,
                        const struct collect_ledger *ledger, uint64_t after)
{
    const struct collect_residuals *r = &ledger->residuals;
    const size_t n = r->n_moments;
    Tapescope__Timeline message = TAPESCOPE__TIMELINE__INIT;
    message.ticks = scratch_of(scratch, n * MOMENT_BYTES);
    if (message.ticks == NULL)
        return n == 0;
    message.tape = ledger->tape;
    message.peak_ticks = r->peak_ticks;
    message.most_bytes = message.ticks + n;
    message.least_bytes = message.most_bytes + n;
    message.phase = (uint32_t *)(void *)(message.least_bytes + n);
    size_t k = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tape_moment *m = &r->moment[i];
        if (m->ticks < after)
            continue;
        message.ticks[k] = m->ticks > before ? m->ticks - before : 0;
        before += message.ticks[k];
        message.most_bytes[k] = m->most_bytes;
        message.least_bytes[k] = m->least_bytes;
        message.phase[k++] = m->backward != 0;
    }
    message.n_ticks = message.n_most_bytes = message.n_least_bytes = message.n_phase = k;
    return k == 0 || collect_put_packet(out, TAPESCOPE__PACKET__KIND_TIMELINE, &message);
}

/* A stretch is long: of a peak that keeps rising only every eighth more is written. */
static bool is_worth_it(const struct collect_ledger *ledger)
{
    const struct collect_residuals *r = &ledger->residuals;
    return r->stretch_changed && ledger->peak_bytes - r->stretch_peak / 8 > r->stretch_peak;
}

bool collect_put_residuals(struct collect_buffer *out, struct collect_buffer *scratch,
                           struct collect_ledger *ledger, bool all, bool last)
{
    struct collect_residuals *r = &ledger->residuals;
    if (r->n == 0)
        return true;
    const bool with_stretch = all || (last && r->stretch_changed) || is_worth_it(ledger);
    /* Tapes that were destroyed since may have lived before the last packet of tape 0. */
    const bool again = all || (last && ledger->tape == 0);
    if (!put_classes(out, scratch, ledger, all, last, with_stretch) ||
        !put_moments(out, scratch, ledger, again ? 0 : r->written_ticks))
        return false;
    if (all)
        return true;
    for (uint32_t i = 0; i < r->n; i++)
        r->class_[i].changed = 0;
    if (with_stretch) {
        r->stretch_changed = false;
        r->stretch_peak = ledger->peak_bytes;
    }
    if (r->n_moments > 0)
        r->written_ticks = r->moment[r->n_moments - 1].ticks + 1;
    return true;
}
