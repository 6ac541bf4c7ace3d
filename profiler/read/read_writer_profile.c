/* read_writer_profile.c: a profile as packets. See read_writer.h.
 *
 * What the profile's strings and arrays hold is written as the reader has it: a profile that is
 * read again is the same.
 */
#include "base_number.h"
#include "read_writer.h"

#include "base_memory.h"
#include "profile_frame.h"

#include <stdlib.h>
#include <string.h>

enum {
    PATHS_IN_PACKET = 1 << 14,
    MOMENTS_IN_PACKET = 1 << 14,
    OTHERS_IN_PACKET = 4096,
    PATTERNS_IN_PACKET = 64, /* of some 40 KB at most */
    STACKS_IN_PACKET = 1 << 17
};

/* See profile_list(). */
static void *new_list(const ProtobufCMessageDescriptor *type, size_t n)
{
    void *list = profile_list(type, n);
    if (!list)
        base_no_memory();
    return list;
}

/* The message in packets of at most `most` of its list, one at least; list_at and n_at are the
 * message's members. Frees the list. */
static void writer_put_list(struct read_writer *writer, Tapescope__Packet__KindCase kind,
                            void *message, void *list_at, size_t *n_at, void *list, size_t n,
                            size_t most)
{
    size_t at = 0;
    do {
        void **part = (void **)list + at;
        memcpy(list_at, &part, sizeof part);
        *n_at = base_lesser(n - at, most);
        read_writer_put_packet(writer, kind, message);
        at += *n_at;
    } while (at < n);
    free(list);
}

static char *writer_text_of(const char *text)
{
    return (char *)(text ? text : "");
}

static void put_header(struct read_writer *writer, const struct read_profile *profile)
{
    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    header.version = 1;
    header.library_version = profile->library_version;
    header.program = profile->program;
    header.argument = profile->argument;
    header.n_argument = profile->n_arguments;
    header.working_directory = profile->working_directory;
    header.pid = profile->pid;
    header.start_unix_ns = profile->start_unix_ns;
    header.clock = profile->clock;
    header.collector = profile->collector;
    header.options = profile->options;
    header.runs = profile->runs;
    header.ranks = profile->ranks;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_HEADER, &header);
}

static void writer_profile_put_modules(struct read_writer *writer,
                                       const struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct read_mapping *mapping = &profile->mapping[i];
        Tapescope__Module module = TAPESCOPE__MODULE__INIT, *list[] = {&module};
        Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
        module.path = mapping->path;
        module.build_id = (ProtobufCBinaryData){mapping->build_id_bytes, mapping->build_id};
        module.start = mapping->start;
        module.end = mapping->end;
        module.bias = mapping->bias;
        modules.module = list;
        modules.n_module = 1;
        read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_MODULES, &modules);
    }
}

static void put_clock(struct read_writer *writer, uint64_t ns)
{
    Tapescope__Clock clock = TAPESCOPE__CLOCK__INIT;
    clock.ticks = clock.monotonic_ns = ns;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_CLOCK, &clock);
}

static void put_overhead(struct read_writer *writer, const struct read_profile *profile)
{
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    overhead.taken_ticks = profile->overhead_ticks;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_OVERHEAD, &overhead);
}

static void put_paths(struct read_writer *writer, const struct read_profile *profile)
{
    const size_t n = profile->n_call_paths;
    if (n == 0 && profile->paths_refused == 0)
        return;
    Tapescope__Path **list = new_list(&tapescope__path__descriptor, n);
    for (size_t i = 0; i < n; i++) {
        list[i]->id = profile->call_path[i].id;
        list[i]->number = profile->call_path[i].number;
        list[i]->parent = profile->call_path[i].parent;
        list[i]->pc = profile->call_path[i].pc;
    }
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    paths.refused = profile->paths_refused;
    writer_put_list(writer, TAPESCOPE__PACKET__KIND_PATHS, &paths, &paths.path, &paths.n_path, list,
                    n, PATHS_IN_PACKET);
}

static void fill_expectation(Tapescope__Expectation *to, const struct read_expectation *from,
                             size_t place)
{
    to->id = (uint32_t)place + 1;
    to->kind = from->kind;
    to->pc = from->pc;
    to->line = from->line;
    to->scope = from->scope;
    to->bound = from->bound;
    to->times = from->times;
}

static void fill_scope(Tapescope__Scope *to, const struct read_scope *from, size_t place)
{
    to->id = (uint32_t)place + 1;
    to->parent = from->parent;
    to->thread = from->thread;
    to->name = from->name;
#define X(name) to->name = from->name;
    READ_SCOPE_COUNTERS(X)
#undef X
}

/* Packets of scopes; the last one has what is not a scope. */
static void writer_profile_put_scopes(struct read_writer *writer,
                                      const struct read_profile *profile)
{
    const size_t n = profile->n_scopes, n_stated = profile->n_expectations;
    Tapescope__Scopes whole = TAPESCOPE__SCOPES__INIT;
    Tapescope__Steps steps = TAPESCOPE__STEPS__INIT;
    if (n == 0 && n_stated == 0 && profile->lost_scopes == 0 && !profile->has_steps)
        return;
    steps.first = profile->first_step;
    steps.last = profile->last_step;
    steps.seen = profile->seen_steps;
    steps.by_call = profile->steps_by_call;
    Tapescope__Scope **list = new_list(&tapescope__scope__descriptor, n);
    Tapescope__Expectation **statements = new_list(&tapescope__expectation__descriptor, n_stated);
    for (size_t i = 0; i < n; i++)
        fill_scope(list[i], &profile->scope[i], i);
    for (size_t i = 0; i < n_stated; i++)
        fill_expectation(statements[i], &profile->expectation[i], i);
    whole.lost = profile->lost_scopes;
    whole.steps = profile->has_steps ? &steps : NULL;
    whole.expectation = statements;
    whole.n_expectation = n_stated;
    size_t at = 0;
    do {
        Tapescope__Scopes scopes = TAPESCOPE__SCOPES__INIT;
        const size_t some = base_lesser(n - at, OTHERS_IN_PACKET);
        if (at + some == n)
            scopes = whole;
        scopes.scope = list + at;
        scopes.n_scope = some;
        read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_SCOPES, &scopes);
        at += some;
    } while (at < n);
    free(list);
    free(statements);
}

static void writer_profile_fill_pattern(Tapescope__Pattern *to, const struct read_pattern *from,
                                        size_t place)
{
    to->id = (uint32_t)place + 1;
    to->kind = from->kind;
    to->pc = from->pc;
    to->line = from->line;
    to->rows = from->rows;
    to->columns = from->columns;
    to->values = from->values;
    to->coloured = from->coloured;
    to->colours = from->colours;
    to->calls = from->calls;
    to->cell = from->cell;
    to->n_cell = (size_t)from->height * from->width;
}

static void writer_profile_put_patterns(struct read_writer *writer,
                                        const struct read_profile *profile)
{
    const size_t n = profile->n_patterns;
    if (n == 0 && profile->patterns_left_out == 0)
        return;
    Tapescope__Pattern **list = new_list(&tapescope__pattern__descriptor, n);
    for (size_t i = 0; i < n; i++)
        writer_profile_fill_pattern(list[i], &profile->pattern[i], i);
    Tapescope__Patterns patterns = TAPESCOPE__PATTERNS__INIT;
    patterns.left_out = profile->patterns_left_out;
    writer_put_list(writer, TAPESCOPE__PACKET__KIND_PATTERNS, &patterns, &patterns.pattern,
                    &patterns.n_pattern, list, n, PATTERNS_IN_PACKET);
}

static void writer_profile_fill_row(Tapescope__Row *to, const struct read_row *from)
{
    to->index = from->index;
    to->pc = from->pc;
    to->line = from->line;
    to->op = writer_text_of(from->op);
    to->shape = writer_text_of(from->shape);
    to->path = from->path;
    to->thread = from->thread;
    to->scope = from->scope;
    to->kept_by = from->kept_by_index;
    to->kept_others = from->kept_others;
#define X(name) to->name = from->name;
    ROW_COUNTERS(X)
#undef X
}

static void writer_profile_put_rows(struct read_writer *writer, const struct read_tape *tape)
{
    const size_t n = tape->n_rows;
    Tapescope__Row **list = new_list(&tapescope__row__descriptor, n);
    for (size_t i = 0; i < n; i++)
        writer_profile_fill_row(list[i], &tape->row[i]);
    Tapescope__Ledger ledger = TAPESCOPE__LEDGER__INIT;
    ledger.tapes = tape->tapes;
#define X(name) ledger.name = tape->name;
    TAPE_COUNTERS(X)
#undef X
    writer_put_list(writer, TAPESCOPE__PACKET__KIND_LEDGER, &ledger, &ledger.row, &ledger.n_row,
                    list, n, OTHERS_IN_PACKET);
}

static void writer_profile_fill_class(Tapescope__ResidualClass *to,
                                      const struct read_residual *from)
{
    to->index = from->index;
    to->producer = from->producer ? from->producer - 1 : UINT32_MAX; /* which no row is */
    to->consumer = from->consumer;
    to->released_by = from->released_by;
    to->kind = from->kind;
    to->shared = from->shared;
    to->released_others = from->released_others;
    to->byte_ticks = from->byte_ticks;
#define X(name) to->name = from->name;
    CLASS_COUNTERS(X)
#undef X
}

static void writer_profile_put_classes(struct read_writer *writer, const struct read_tape *tape)
{
    const size_t n = tape->n_residuals;
    if (n == 0)
        return;
    Tapescope__ResidualClass **list = new_list(&tapescope__residual_class__descriptor, n);
    for (size_t i = 0; i < n; i++)
        writer_profile_fill_class(list[i], &tape->residual[i]);
    Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
    writer_put_list(writer, TAPESCOPE__PACKET__KIND_RESIDUALS, &residuals, &residuals.part,
                    &residuals.n_part, list, n, OTHERS_IN_PACKET);
}

static void put_stretch(struct read_writer *writer, const struct read_tape *tape)
{
    const size_t n = tape->n_changes;
    Tapescope__Stretch stretch = TAPESCOPE__STRETCH__INIT;
    Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
    if (n == 0)
        return;
    stretch.part = base_calloc(n, sizeof *stretch.part);
    stretch.delta = base_calloc(n, sizeof *stretch.delta);
    stretch.ticks = base_calloc(n, sizeof *stretch.ticks);
    stretch.flags = base_calloc(n, sizeof *stretch.flags);
    stretch.n_part = stretch.n_delta = stretch.n_ticks = stretch.n_flags = n;
    stretch.merged = tape->merged;
    stretch.truncated = tape->stretch_is_truncated;
    stretch.trace = tape->trace;
    stretch.n_trace = tape->n_trace;
    stretch.trace_cut = tape->trace_is_cut;
    stretch.trace_hides = tape->trace_hides;
    stretch.trace_uses = tape->trace_has_uses;
    for (size_t i = 0; i < n; i++) {
        const struct read_change *change = &tape->change[i];
        stretch.part[i] = change->residual;
        stretch.delta[i] = change->delta;
        stretch.ticks[i] = change->ticks - (i > 0 ? change[-1].ticks : 0);
        stretch.flags[i] = (change->ends ? 1 : 0) | (change->backward ? 2 : 0);
    }
    residuals.stretch = &stretch;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_RESIDUALS, &residuals);
    free(stretch.part);
    free(stretch.delta);
    free(stretch.ticks);
    free(stretch.flags);
}

static void writer_profile_put_moments(struct read_writer *writer, const struct read_tape *tape)
{
    const size_t n = tape->n_moments;
    uint64_t *ticks = base_calloc(n, sizeof *ticks), *most = base_calloc(n, sizeof *most);
    uint64_t *least_bytes = base_calloc(n, sizeof *least_bytes);
    uint32_t *phase = base_calloc(n, sizeof *phase);
    for (size_t i = 0; i < n; i++) {
        const struct read_moment *moment = &tape->moment[i];
        ticks[i] = moment->ticks - (i % MOMENTS_IN_PACKET > 0 ? moment[-1].ticks : 0);
        most[i] = moment->most_bytes;
        least_bytes[i] = moment->least_bytes;
        phase[i] = moment->backward;
    }
    for (size_t at = 0; at < n; at += MOMENTS_IN_PACKET) {
        Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
        timeline.n_ticks = timeline.n_most_bytes = timeline.n_least_bytes = timeline.n_phase =
            base_lesser(n - at, MOMENTS_IN_PACKET);
        timeline.ticks = ticks + at;
        timeline.most_bytes = most + at;
        timeline.least_bytes = least_bytes + at;
        timeline.phase = phase + at;
        timeline.peak_ticks = tape->peak_ticks;
        read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_TIMELINE, &timeline);
    }
    free(ticks);
    free(most);
    free(least_bytes);
    free(phase);
}

static void fill_thread(Tapescope__Thread *to, const struct read_thread *from)
{
    to->index = from->index;
    to->tid = from->tid;
    to->name = from->name;
#define X(name) to->name = from->name;
    THREAD_COUNTERS(X)
#undef X
}

static void put_threads(struct read_writer *writer, const struct read_profile *profile)
{
    const size_t n = profile->n_threads;
    Tapescope__Thread **list = new_list(&tapescope__thread__descriptor, n);
    for (size_t i = 0; i < n; i++)
        fill_thread(list[i], &profile->thread[i]);
    Tapescope__Threads threads = TAPESCOPE__THREADS__INIT;
    threads.process_cpu_ns = profile->process_cpu_ns;
    writer_put_list(writer, TAPESCOPE__PACKET__KIND_THREADS, &threads, &threads.thread,
                    &threads.n_thread, list, n, OTHERS_IN_PACKET);
}

static void writer_profile_fill_sample(Tapescope__Sample *to, const struct read_sample *from,
                                       size_t index)
{
    to->index = (uint32_t)index;
    to->thread = from->thread;
    to->phase = from->phase;
    to->pc = from->pc;
    to->line = from->line;
    to->op = writer_text_of(from->op);
    to->path = from->path;
    to->shared = from->shared;
    to->waiting = from->waiting;
    to->stack = from->stack;
    to->n_stack = from->n_stack;
#define X(name) to->name = from->name;
    SAMPLE_COUNTERS(X)
    SAMPLE_TIMES(X)
#undef X
}

static void writer_profile_put_samples(struct read_writer *writer,
                                       const struct read_profile *profile)
{
    const size_t n = profile->n_samples;
    if (!profile->is_sampled)
        return;
    put_threads(writer, profile);
    Tapescope__Sample **list = new_list(&tapescope__sample__descriptor, n);
    for (size_t i = 0; i < n; i++)
        writer_profile_fill_sample(list[i], &profile->sample[i], i);
    size_t at = 0;
    do {
        Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
        samples.sample = list + at;
        for (size_t stacks = 0;
             at < n && samples.n_sample < OTHERS_IN_PACKET && stacks < STACKS_IN_PACKET; at++) {
            samples.n_sample++;
            stacks += list[at]->n_stack;
        }
        samples.period_ns = profile->sample_period_ns;
        read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_SAMPLES, &samples);
    } while (at < n);
    free(list);
}

void read_writer_put_profile(struct read_writer *writer, const struct read_profile *profile)
{
    put_header(writer, profile);
    writer_profile_put_modules(writer, profile);
    put_clock(writer, 0);
    put_overhead(writer, profile);
    put_paths(writer, profile);
    writer_profile_put_scopes(writer, profile);
    writer_profile_put_patterns(writer, profile);
    for (size_t i = 0; i < profile->n_tapes; i++) {
        writer_profile_put_rows(writer, &profile->tape[i]);
        writer_profile_put_classes(writer, &profile->tape[i]);
        put_stretch(writer, &profile->tape[i]);
        writer_profile_put_moments(writer, &profile->tape[i]);
    }
    writer_profile_put_samples(writer, profile);
}

void read_writer_put_end(struct read_writer *writer, const struct read_profile *profile)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    put_clock(writer, profile->duration_ns);
    read_writer_put_symbols(writer, profile->symbol, profile->n_symbols);
    end.reason = profile->end_reason;
    end.unix_ns = profile->end_unix_ns;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_END, &end);
}
