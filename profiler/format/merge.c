/* merge.c: see merge.h.
 *
 * May include: merge_state.h. What the profiles have is added up part by part, each in a file of
 * its own; here are the parts that are of the whole.
 */
#include "merge_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_header(const struct merge *merge, struct writer *writer)
{
    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    const struct prof_profile *first = merge->profile[0];
    header.version = 1;
    header.library_version = first->library_version;
    header.program = first->program;
    header.argument = first->argument;
    header.n_argument = first->n_arguments;
    header.working_directory = first->working_directory;
    header.pid = first->pid;
    header.start_unix_ns = merge->start_unix_ns;
    header.clock = (char *)"monotonic";
    header.collector = (char *)"tapescope merge";
    header.options = first->options;
    for (size_t i = 0; i < merge->n; i++)
        header.runs = prof_add(header.runs, merge->profile[i]->runs);
    packet.kind_case = TAPESCOPE__PACKET__KIND_HEADER;
    packet.header = &header;
    writer_put_packet(writer, &packet);
}

static void put_modules(const struct merge *merge, struct writer *writer)
{
    for (size_t i = 0; i < merge->n_mappings; i++) {
        const struct prof_mapping *mapping = &merge->mapping[i];
        Tapescope__Module module = TAPESCOPE__MODULE__INIT, *list[] = {&module};
        Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        module.path = mapping->path;
        module.build_id = (ProtobufCBinaryData){mapping->build_id_bytes, mapping->build_id};
        module.start = mapping->start;
        module.end = mapping->end;
        module.bias = mapping->bias;
        modules.module = list;
        modules.n_module = 1;
        packet.kind_case = TAPESCOPE__PACKET__KIND_MODULES;
        packet.modules = &modules;
        writer_put_packet(writer, &packet);
    }
}

static void put_clock(struct writer *writer, uint64_t ns)
{
    Tapescope__Clock clock = TAPESCOPE__CLOCK__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    clock.ticks = clock.monotonic_ns = ns;
    packet.kind_case = TAPESCOPE__PACKET__KIND_CLOCK;
    packet.clock = &clock;
    writer_put_packet(writer, &packet);
}

/* From the first start to the last end of all. */
static uint64_t whole_duration(const struct merge *merge)
{
    uint64_t most = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        const uint64_t end = profile->start_unix_ns - merge->start_unix_ns + profile->duration_ns;
        most = end > most ? end : most;
    }
    return most;
}

/* It has been taken off the rows. */
static void put_overhead(const struct merge *merge, struct writer *writer)
{
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    for (size_t i = 0; i < merge->n; i++)
        overhead.taken_ticks =
            prof_add(overhead.taken_ticks,
                     prof_profile_ns(merge->profile[i], merge->profile[i]->overhead_ticks));
    packet.kind_case = TAPESCOPE__PACKET__KIND_OVERHEAD;
    packet.overhead = &overhead;
    writer_put_packet(writer, &packet);
}

static void put_end(const struct merge *merge, struct writer *writer)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    end.reason = (char *)"merge";
    for (size_t i = 0; i < merge->n; i++)
        if (merge->profile[i]->end_unix_ns > end.unix_ns)
            end.unix_ns = merge->profile[i]->end_unix_ns;
    packet.kind_case = TAPESCOPE__PACKET__KIND_END;
    packet.end = &end;
    writer_put_packet(writer, &packet);
}

static int write_sum(const struct merge *merge, const char *to)
{
    struct writer writer;
    writer_open(&writer, to);
    if (writer.error == 0) {
        put_header(merge, &writer);
        put_modules(merge, &writer);
        put_clock(&writer, 0);
        put_overhead(merge, &writer);
        merge_put_paths(merge, &writer);
        merge_put_scopes(merge, &writer);
        merge_put_rows(merge, &writer);
        merge_put_residuals(merge, &writer);
        merge_put_samples(merge, &writer);
        merge_put_events(merge, &writer);
        put_clock(&writer, whole_duration(merge));
        writer_put_symbols(&writer, merge->symbol, merge->n_symbols);
        put_end(merge, &writer);
    }
    return writer_close(&writer);
}

static bool same_site(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_symbol *a = &merge->symbol[place], *b = key;
    return a->pc == b->pc && a->line == b->line;
}

/* The symbols of an address, which follow each other: those of the first profile that has it. */
static void take_symbols(struct merge *merge, const struct merge_set *set, size_t i,
                         const struct prof_symbol *from, size_t n)
{
    bool taken = false;
    for (size_t j = 0; j < n; j++) {
        struct prof_symbol made = from[j];
        made.pc = merge_move(merge, i, made.pc);
        if (j == 0 || from[j].pc != from[j - 1].pc || from[j].line != from[j - 1].line) {
            uint32_t *slot = merge_set_find(set, merge_mix(merge_mix(0, made.pc), made.line),
                                            same_site, merge, &made);
            taken = *slot == 0;
            if (taken)
                *slot = (uint32_t)merge->n_symbols + 1;
        }
        if (taken)
            merge->symbol[merge->n_symbols++] = made;
    }
}

static bool open_symbols(struct merge *merge, const struct prof_symbol *const *symbol,
                         const size_t *n_symbols)
{
    size_t all = 0;
    for (size_t i = 0; i < merge->n; i++)
        all += n_symbols[i];
    merge->symbol = calloc(all + 1, sizeof *merge->symbol);
    struct merge_set set;
    const bool ok = merge_set_open(&set, all) && merge->symbol;
    for (size_t i = 0; ok && i < merge->n; i++)
        take_symbols(merge, &set, i, symbol[i], n_symbols[i]);
    free(set.slot);
    return ok;
}

static void close_all(struct merge *merge)
{
    free(merge->mapping);
    free(merge->mapping_of);
    free(merge->first_mapping);
    free(merge->source);
    free(merge->sum);
    free(merge->path);
    free(merge->path_of);
    free(merge->first_path);
    free(merge->paths.slot);
    free(merge->scope);
    free(merge->scope_of);
    free(merge->first_scope);
    free(merge->expectation);
    free(merge->first_row);
    free(merge->row_of);
    free(merge->residual);
    free(merge->change);
    free(merge->moment);
    free(merge->thread);
    free(merge->thread_of);
    free(merge->sample);
    free(merge->stack);
    free(merge->symbol);
}

uint64_t merge_time(const struct merge *merge, size_t i, uint64_t ticks)
{
    const struct prof_profile *profile = merge->profile[i];
    const uint64_t since = ticks > profile->start_ticks ? ticks - profile->start_ticks : 0;
    return profile->start_unix_ns - merge->start_unix_ns + prof_profile_ns(profile, since);
}

int prof_merge(const char *to, const struct prof_profile *const *profile,
               const struct prof_symbol *const *symbol, const size_t *n_symbols, size_t n,
               char *error, size_t room)
{
    struct merge merge = {
        .profile = profile, .n = n, .start_unix_ns = UINT64_MAX, .error = error, .room = room};
    int why = ENOMEM;
    error[0] = '\0';
    for (size_t i = 0; i < n; i++)
        if (profile[i]->start_unix_ns < merge.start_unix_ns)
            merge.start_unix_ns = profile[i]->start_unix_ns;
    if (merge_open_modules(&merge) && merge_open_paths(&merge) && merge_open_scopes(&merge) &&
        merge_open_rows(&merge) && merge_open_residuals(&merge) && merge_open_samples(&merge) &&
        open_symbols(&merge, symbol, n_symbols))
        why = write_sum(&merge, to);
    close_all(&merge);
    if (why != 0 && error[0] == '\0')
        snprintf(error, room, "%s: %s", to, strerror(why));
    return why != 0 ? -1 : 0;
}
