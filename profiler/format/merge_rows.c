/* merge_rows.c: the rows of all tapes as those of one.
 *
 * May include: merge_state.h.
 * Invariant: the sums of the merged rows are the sums of all rows, and the merged tape's counters
 * those of all tapes: times are rounded to ns as running sums, so that nothing is lost between.
 */
#include "merge_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_IN_PACKET = 4096 };

/* A sum of ticks, and what that is in ns. */
struct running {
    uint64_t ticks, ns;
};

/* The difference in ns that one more term makes. */
static uint64_t next_ns(const struct prof_profile *profile, struct running *sum, uint64_t more)
{
    const uint64_t before = sum->ns;
    sum->ticks += more;
    sum->ns = prof_profile_ns(profile, sum->ticks);
    return sum->ns - before;
}

/* Forward, backward and recomputation. */
enum { TIMES = 3 };

static void take_rows(struct merge *merge, size_t i, const struct prof_tape *tape, size_t number,
                      bool at_peak, struct running *time)
{
    const struct prof_profile *profile = merge->profile[i];
    for (size_t j = 0; j < tape->n_rows; j++) {
        struct merge_row *to = &merge->source[merge->n_sources++];
        *to = (struct merge_row){.row = tape->row[j], .tape = number, .index = tape->row[j].index};
        struct prof_row *row = &to->row;
        row->pc = merge_move(merge, i, row->pc);
        row->path = merge_path(merge, i, row->path);
        row->scope = merge_scope(merge, i, row->scope);
        row->forward_ticks = next_ns(profile, &time[0], row->forward_ticks);
        row->backward_ticks = next_ns(profile, &time[1], row->backward_ticks);
        row->recompute_ticks = next_ns(profile, &time[2], row->recompute_ticks);
        if (!at_peak)
            row->peak_bytes = 0;
    }
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void take_tape(struct prof_tape *sum, const struct prof_profile *profile,
                      const struct prof_tape *tape, bool at_peak, struct running *time)
{
    sum->forward_ticks += next_ns(profile, &time[0], tape->forward_ticks);
    sum->backward_ticks += next_ns(profile, &time[1], tape->backward_ticks);
    sum->recompute_ticks += next_ns(profile, &time[2], tape->recompute_ticks);
    sum->handed_out_bytes = prof_add(sum->handed_out_bytes, tape->handed_out_bytes);
    sum->live_bytes = prof_add(sum->live_bytes, tape->live_bytes);
    sum->sweeps = prof_add(sum->sweeps, tape->sweeps);
    sum->records = prof_add(sum->records, tape->records);
    sum->tapes = prof_add(sum->tapes, tape->tapes);
    sum->reserved_bytes = greater(sum->reserved_bytes, tape->reserved_bytes);
    sum->touched_bytes = greater(sum->touched_bytes, tape->touched_bytes);
    if (at_peak) {
        sum->peak_bytes = tape->peak_bytes;
        sum->peak_count = tape->peak_count;
    }
}

/* Finds the tape of all profiles whose peak is the greatest. */
static void find_peak(struct merge *merge)
{
    size_t number = 0;
    for (size_t i = 0; i < merge->n; i++) {
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++, number++) {
            const struct prof_tape *tape = &merge->profile[i]->tape[j];
            if (!merge->peak || tape->peak_bytes > merge->peak->peak_bytes) {
                merge->peak = tape;
                merge->peak_number = number;
            }
        }
    }
}

static const char *shape_of(const struct prof_row *row)
{
    return row->shape ? row->shape : "";
}

static bool same_row(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_row *a = &merge->sum[place].row, *b = key;
    return a->pc == b->pc && a->line == b->line && a->path == b->path && a->scope == b->scope &&
           strcmp(a->op, b->op) == 0 && strcmp(shape_of(a), shape_of(b)) == 0;
}

static uint64_t hash_row(const struct prof_row *row)
{
    uint64_t h = merge_mix(merge_mix(0, row->pc), row->line);
    h = merge_mix(merge_mix(h, row->path), row->scope);
    return merge_mix_text(merge_mix_text(h, row->op), shape_of(row));
}

static int compare_places(const void *x, const void *y)
{
    const struct merge_row *a = x, *b = y;
    if (a->tape != b->tape)
        return a->tape < b->tape ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void add_row(struct prof_row *to, const struct prof_row *from)
{
#define X(name) to->name = prof_add(to->name, from->name);
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
        const struct merge_row *source = &merge->source[i];
        struct prof_row *row = &merge->sum[source->merged].row;
        if (source->row.kept_by_index == 0)
            continue;
        const struct merge_row key = {.tape = source->tape, .index = source->row.kept_by_index - 1};
        const struct merge_row *keeper =
            bsearch(&key, merge->source, merge->n_sources, sizeof *merge->source, compare_places);
        uint32_t index = keeper ? (uint32_t)keeper->merged + 1 : 0;
        if (row->kept_by_index == 0)
            row->kept_by_index = index;
        else if (index != 0 && index != row->kept_by_index)
            row->kept_others = true;
    }
}

/* In the order of the tapes: that in which a line's ops are named. */
static void sum_rows(struct merge *merge, const struct merge_set *set)
{
    for (size_t i = 0; i < merge->n_sources; i++) {
        struct merge_row *source = &merge->source[i];
        uint32_t *slot = merge_set_find(set, hash_row(&source->row), same_row, merge, &source->row);
        if (*slot == 0) {
            merge->sum[merge->n_sums] = *source;
            merge->sum[merge->n_sums].row.kept_by_index = 0;
            *slot = (uint32_t)++merge->n_sums;
        } else {
            add_row(&merge->sum[*slot - 1].row, &source->row);
        }
        source->merged = *slot - 1;
        merge->row_of[i] = *slot - 1;
    }
    name_keepers(merge);
}

bool merge_open_rows(struct merge *merge)
{
    size_t rows = 0, tapes = 0, number = 0;
    for (size_t i = 0; i < merge->n; i++) {
        tapes += merge->profile[i]->n_tapes;
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++)
            rows += merge->profile[i]->tape[j].n_rows;
    }
    merge->source = calloc(rows + 1, sizeof *merge->source);
    merge->sum = calloc(rows + 1, sizeof *merge->sum);
    merge->first_row = calloc(tapes + 1, sizeof *merge->first_row);
    merge->row_of = calloc(rows + 1, sizeof *merge->row_of);
    struct merge_set set = {0};
    if (!merge_set_open(&set, rows) || !merge->source || !merge->sum || !merge->first_row ||
        !merge->row_of) {
        free(set.slot);
        return false;
    }
    find_peak(merge);
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        struct running of_rows[TIMES] = {{0}}, of_tapes[TIMES] = {{0}};
        for (size_t j = 0; j < profile->n_tapes; j++, number++) {
            const bool at_peak = number == merge->peak_number;
            merge->first_row[number] = merge->n_sources;
            take_rows(merge, i, &profile->tape[j], number, at_peak, of_rows);
            take_tape(&merge->tape, profile, &profile->tape[j], at_peak, of_tapes);
        }
    }
    sum_rows(merge, &set);
    free(set.slot);
    return true;
}

void merge_put_rows(const struct merge *merge, struct writer *writer)
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
            to->shape = (char *)shape_of(row);
            to->path = row->path;
            to->scope = row->scope;
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
