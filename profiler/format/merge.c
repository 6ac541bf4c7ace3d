/* merge.c: see merge.h.
 *
 * Invariant: the sums of the merged rows are the sums of all rows, and the merged tape's counters
 * those of all tapes: times are rounded to ns as running sums, so that nothing is lost between.
 */
#include "merge.h"

#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_IN_PACKET = 4096, PAGE = 4096 };

/* A row on its way into the sum. */
struct source_row {
    struct prof_row row; /* its pc moved, its times in ns */
    size_t tape;         /* among all tapes, and its place in that */
    uint32_t index;
    size_t merged; /* its place in the sum */
};

struct merge {
    const struct prof_profile *const *profile;
    size_t n;
    struct prof_mapping *mapping; /* of the sum; strings are borrowed */
    size_t n_mappings;
    struct source_row *source;
    size_t n_sources;
    struct source_row *sum;
    size_t n_sums;
    struct prof_symbol *symbol;
    size_t n_symbols;
    struct prof_tape tape;
};

static bool same_module(const struct prof_mapping *a, const struct prof_mapping *b)
{
    if (a->build_id_bytes > 0 && b->build_id_bytes > 0)
        return a->build_id_bytes == b->build_id_bytes &&
               memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
    return strcmp(a->path, b->path) == 0;
}

static const struct prof_mapping *program_of(const struct prof_profile *profile)
{
    for (size_t i = 0; i < profile->n_mappings; i++)
        if (strcmp(profile->mapping[i].path, profile->program) == 0)
            return &profile->mapping[i];
    return NULL;
}

bool prof_may_merge(const struct prof_profile *a, const struct prof_profile *b)
{
    const struct prof_mapping *x = program_of(a), *y = program_of(b);
    return x && y ? same_module(x, y) : strcmp(a->program, b->program) == 0;
}

/* The mapping that a return address lies in: the last of them counts. */
static const struct prof_mapping *find_mapping(const struct prof_mapping *mapping, size_t n,
                                               uint64_t pc)
{
    for (size_t i = n; i-- > 0;)
        if (pc - 1 >= mapping[i].start && pc - 1 < mapping[i].end)
            return &mapping[i];
    return NULL;
}

static bool is_free(const struct merge *merge, const struct prof_mapping *mapping)
{
    for (size_t i = 0; i < merge->n_mappings; i++)
        if (mapping->start < merge->mapping[i].end && merge->mapping[i].start < mapping->end)
            return false;
    return true;
}

/* The mapping of the sum that stands for one of a profile, made if need be: where its addresses
 * are taken, behind all others. */
static const struct prof_mapping *counterpart(struct merge *merge,
                                              const struct prof_mapping *mapping)
{
    uint64_t end = 0;
    for (size_t i = 0; i < merge->n_mappings; i++) {
        const struct prof_mapping *known = &merge->mapping[i];
        if (same_module(known, mapping) &&
            known->start - known->bias == mapping->start - mapping->bias &&
            known->end - known->bias == mapping->end - mapping->bias)
            return known;
        end = known->end > end ? known->end : end;
    }
    struct prof_mapping *made = &merge->mapping[merge->n_mappings];
    *made = *mapping;
    if (!is_free(merge, mapping)) {
        uint64_t shift = (end + PAGE) / PAGE * PAGE - mapping->start / PAGE * PAGE;
        made->start += shift;
        made->end += shift;
        made->bias += shift;
    }
    merge->n_mappings++;
    return made;
}

/* An address of profile i as one of the sum. */
static uint64_t move(struct merge *merge, size_t i, uint64_t pc)
{
    const struct prof_profile *profile = merge->profile[i];
    const struct prof_mapping *from =
        pc ? find_mapping(profile->mapping, profile->n_mappings, pc) : NULL;
    return from ? pc - from->bias + counterpart(merge, from)->bias : pc;
}

/* The difference that one more term makes to a rounded running sum. */
static uint64_t next_ns(const struct prof_profile *profile, uint64_t *ticks, uint64_t *ns,
                        uint64_t more)
{
    uint64_t before = *ns;
    *ticks += more;
    *ns = prof_profile_ns(profile, *ticks);
    return *ns - before;
}

static void take_rows(struct merge *merge, size_t i, const struct prof_tape *tape, size_t number,
                      bool at_peak)
{
    const struct prof_profile *profile = merge->profile[i];
    uint64_t forward = 0, forward_ns = 0, backward = 0, backward_ns = 0;
    for (size_t j = 0; j < tape->n_rows; j++) {
        struct source_row *to = &merge->source[merge->n_sources++];
        *to = (struct source_row){.row = tape->row[j], .tape = number, .index = tape->row[j].index};
        struct prof_row *row = &to->row;
        row->pc = move(merge, i, row->pc);
        row->forward_ticks = next_ns(profile, &forward, &forward_ns, row->forward_ticks);
        row->backward_ticks = next_ns(profile, &backward, &backward_ns, row->backward_ticks);
        if (!at_peak)
            row->peak_bytes = 0;
    }
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void take_tape(struct prof_tape *sum, const struct prof_profile *profile,
                      const struct prof_tape *tape, bool at_peak)
{
    sum->forward_ticks += prof_profile_ns(profile, tape->forward_ticks);
    sum->backward_ticks += prof_profile_ns(profile, tape->backward_ticks);
    sum->handed_out_bytes += tape->handed_out_bytes;
    sum->live_bytes += tape->live_bytes;
    sum->sweeps += tape->sweeps;
    sum->records += tape->records;
    sum->tapes += tape->tapes;
    sum->reserved_bytes = greater(sum->reserved_bytes, tape->reserved_bytes);
    sum->touched_bytes = greater(sum->touched_bytes, tape->touched_bytes);
    if (at_peak) {
        sum->peak_bytes = tape->peak_bytes;
        sum->peak_count = tape->peak_count;
    }
}

/* The tape of all profiles whose peak is the greatest. */
static const struct prof_tape *peak_tape(const struct merge *merge)
{
    const struct prof_tape *best = NULL;
    for (size_t i = 0; i < merge->n; i++)
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++)
            if (!best || merge->profile[i]->tape[j].peak_bytes > best->peak_bytes)
                best = &merge->profile[i]->tape[j];
    return best;
}

static int compare_rows(const void *x, const void *y)
{
    const struct prof_row *a = &((const struct source_row *)x)->row;
    const struct prof_row *b = &((const struct source_row *)y)->row;
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return strcmp(a->op, b->op);
}

static int compare_places(const void *x, const void *y)
{
    const struct source_row *a = x, *b = y;
    if (a->tape != b->tape)
        return a->tape < b->tape ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void add_row(struct prof_row *to, const struct prof_row *from)
{
#define X(name) to->name += from->name;
    PROF_ROW_COUNTERS(X)
#undef X
    to->kept_others |= from->kept_others;
}

/* Names the keepers: the first that any of a row's sources has; if others have others, so it
 * says. */
static void name_keepers(struct merge *merge)
{
    qsort(merge->source, merge->n_sources, sizeof *merge->source, compare_places);
    for (size_t i = 0; i < merge->n_sources; i++) {
        const struct source_row *source = &merge->source[i];
        struct prof_row *row = &merge->sum[source->merged].row;
        if (source->row.kept_by_index == 0)
            continue;
        const struct source_row key = {.tape = source->tape,
                                       .index = source->row.kept_by_index - 1};
        const struct source_row *keeper =
            bsearch(&key, merge->source, merge->n_sources, sizeof *merge->source, compare_places);
        uint32_t index = keeper ? (uint32_t)keeper->merged + 1 : 0;
        if (row->kept_by_index == 0)
            row->kept_by_index = index;
        else if (index != 0 && index != row->kept_by_index)
            row->kept_others = true;
    }
}

static void sum_rows(struct merge *merge)
{
    qsort(merge->source, merge->n_sources, sizeof *merge->source, compare_rows);
    for (size_t i = 0; i < merge->n_sources; i++) {
        struct source_row *source = &merge->source[i];
        size_t n = merge->n_sums;
        if (n > 0 && compare_rows(&merge->sum[n - 1], source) == 0) {
            add_row(&merge->sum[n - 1].row, &source->row);
        } else {
            merge->sum[n] = *source;
            merge->sum[n].row.kept_by_index = 0;
            merge->n_sums++;
        }
        source->merged = merge->n_sums - 1;
    }
    name_keepers(merge);
}

static bool reserve(struct merge *merge, const size_t *n_symbols)
{
    size_t rows = 0, mappings = 0, symbols = 0;
    for (size_t i = 0; i < merge->n; i++) {
        mappings += merge->profile[i]->n_mappings;
        symbols += n_symbols[i];
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++)
            rows += merge->profile[i]->tape[j].n_rows;
    }
    merge->mapping = calloc(mappings + 1, sizeof *merge->mapping);
    merge->source = calloc(rows + 1, sizeof *merge->source);
    merge->sum = calloc(rows + 1, sizeof *merge->sum);
    merge->symbol = calloc(symbols + 1, sizeof *merge->symbol);
    return merge->mapping && merge->source && merge->sum && merge->symbol;
}

static void take_all(struct merge *merge, const struct prof_symbol *const *symbol,
                     const size_t *n_symbols)
{
    const struct prof_tape *peak = peak_tape(merge);
    size_t number = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        for (size_t j = 0; j < profile->n_tapes; j++) {
            const struct prof_tape *tape = &profile->tape[j];
            take_rows(merge, i, tape, number++, tape == peak);
            take_tape(&merge->tape, profile, tape, tape == peak);
        }
        for (size_t j = 0; j < n_symbols[i]; j++) {
            struct prof_symbol *to = &merge->symbol[merge->n_symbols++];
            *to = symbol[i][j];
            to->pc = move(merge, i, to->pc);
        }
    }
}

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
    header.start_unix_ns = first->start_unix_ns;
    for (size_t i = 1; i < merge->n; i++)
        if (merge->profile[i]->start_unix_ns < header.start_unix_ns)
            header.start_unix_ns = merge->profile[i]->start_unix_ns;
    header.clock = (char *)"monotonic";
    header.collector = (char *)"tapescope merge";
    header.options = first->options;
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
    uint64_t start = UINT64_MAX, end = 0;
    for (size_t i = 0; i < merge->n; i++) {
        uint64_t from = merge->profile[i]->start_unix_ns;
        start = from < start ? from : start;
        end = greater(end, from + merge->profile[i]->duration_ns);
    }
    return end > start ? end - start : 0;
}

static void put_rows(const struct merge *merge, struct writer *writer)
{
    Tapescope__Row *made = calloc(ROWS_IN_PACKET, sizeof *made);
    Tapescope__Row **list = calloc(ROWS_IN_PACKET, sizeof(Tapescope__Row *));
    if ((!made || !list) && writer->error == 0)
        writer->error = ENOMEM;
    for (size_t i = 0; writer->error == 0;) {
        Tapescope__Ledger ledger = TAPESCOPE__LEDGER__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        for (; i < merge->n_sums && ledger.n_row < ROWS_IN_PACKET; i++) {
            const struct prof_row *row = &merge->sum[i].row;
            Tapescope__Row *to = list[ledger.n_row] = &made[ledger.n_row];
            tapescope__row__init(to);
            to->index = (uint32_t)i;
            to->pc = row->pc;
            to->line = row->line;
            to->op = (char *)row->op;
            to->kept_by = row->kept_by_index;
            to->kept_others = row->kept_others;
#define X(name) to->name = row->name;
            PROF_ROW_COUNTERS(X)
#undef X
            ledger.n_row++;
        }
        ledger.row = list;
        ledger.tapes = merge->tape.tapes;
#define X(name) ledger.name = merge->tape.name;
        PROF_TAPE_COUNTERS(X)
#undef X
        packet.kind_case = TAPESCOPE__PACKET__KIND_LEDGER;
        packet.ledger = &ledger;
        writer_put_packet(writer, &packet);
        if (i == merge->n_sums)
            break;
    }
    free(list);
    free(made);
}

static void put_end(const struct merge *merge, struct writer *writer)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    end.reason = (char *)"merge";
    for (size_t i = 0; i < merge->n; i++)
        end.unix_ns = greater(end.unix_ns, merge->profile[i]->end_unix_ns);
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
        put_rows(merge, &writer);
        put_clock(&writer, whole_duration(merge));
        writer_put_symbols(&writer, merge->symbol, merge->n_symbols);
        put_end(merge, &writer);
    }
    return writer_close(&writer);
}

int prof_merge(const char *to, const struct prof_profile *const *profile,
               const struct prof_symbol *const *symbol, const size_t *n_symbols, size_t n,
               char *error, size_t room)
{
    struct merge merge = {.profile = profile, .n = n};
    int why = ENOMEM;
    if (reserve(&merge, n_symbols)) {
        take_all(&merge, symbol, n_symbols);
        sum_rows(&merge);
        why = write_sum(&merge, to);
    }
    free(merge.mapping);
    free(merge.source);
    free(merge.sum);
    free(merge.symbol);
    if (why != 0)
        snprintf(error, room, "%s: %s", to, strerror(why));
    return why != 0 ? -1 : 0;
}
