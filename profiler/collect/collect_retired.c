/* collect_retired.c: destroyed tapes, merged into one ledger (tape 0 of the profile).
 *
 * Rows are merged by {path, pc, line, op, scope, shape} and by the first threads, so that the
 * memory and the file grow with the program's source and not with the number of its tapes.
 * profile.proto says what each merged field means.
 */
#include "collect.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_SLOTS = 64 };

static uint32_t hash_site(const struct collect_row *row)
{
    uint64_t h = ((uint64_t)row->pc ^ ((uint64_t)row->line << 40) ^ ((uint64_t)row->scope << 20)) *
                 UINT64_C(0x9E3779B97F4A7C15);
    h += (uintptr_t)row->shape + (row->thread << 32);
    h ^= row->path * UINT64_C(0xC2B2AE3D27D4EB4F);
    return (uint32_t)(h >> 32);
}

static bool same_site(const struct collect_row *a, const struct collect_row *b)
{
    return a->pc == b->pc && a->line == b->line && a->scope == b->scope && a->path == b->path &&
           a->shape == b->shape && a->thread == b->thread &&
           (a->op == b->op || strcmp(a->op, b->op) == 0);
}

/* The slot of the row with this site, or the empty one where it belongs. */
static uint32_t *retired_find_slot(const struct collect_retired *retired,
                                   const struct collect_row *row)
{
    uint32_t mask = retired->n_slots - 1;
    uint32_t i = hash_site(row) & mask;
    while (retired->slot[i] != 0 && !same_site(&retired->ledger.row[retired->slot[i] - 1], row))
        i = (i + 1) & mask;
    return &retired->slot[i];
}

static bool retired_reserve_slots(struct collect_retired *retired, uint32_t n_rows)
{
    if (2 * (uint64_t)n_rows <= retired->n_slots)
        return true;
    uint32_t n_slots = retired->n_slots < LEAST_SLOTS ? LEAST_SLOTS : retired->n_slots;
    while (n_slots < 2 * (uint64_t)n_rows) {
        if (n_slots > UINT32_MAX / 2)
            return false;
        n_slots *= 2;
    }
    uint32_t *slot = calloc(n_slots, sizeof *slot);
    if (slot == NULL)
        return false;
    free(retired->slot);
    retired->slot = slot;
    retired->n_slots = n_slots;
    for (uint32_t i = 0; i < retired->ledger.n_rows; i++)
        *retired_find_slot(retired, &retired->ledger.row[i]) = i + 1;
    return true;
}

static bool retired_reserve(struct collect_retired *retired, uint32_t n_more)
{
    if (n_more > UINT32_MAX - retired->ledger.n_rows)
        return false;
    if (n_more > retired->n_places) {
        uint32_t *place = realloc(retired->place, n_more * sizeof *place);
        if (place == NULL)
            return false;
        retired->place = place;
        retired->n_places = n_more;
    }
    return collect_ledger_reserve(&retired->ledger, retired->ledger.n_rows + n_more) &&
           retired_reserve_slots(retired, retired->ledger.n_rows + n_more);
}

/* The thread's number while it is one of the first, else 0. */
static uint64_t retired_thread(struct collect_retired *retired, uint64_t thread)
{
    for (uint32_t i = 0; i < retired->n_threads; i++)
        if (retired->thread[i] == thread)
            return thread;
    if (retired->n_threads == COLLECT_RETIRED_THREADS)
        return 0;
    return retired->thread[retired->n_threads++] = thread;
}

static uint32_t retired_place_of(struct collect_retired *retired, const struct collect_row *row,
                                 uint64_t thread)
{
    const struct collect_row site = {.pc = row->pc,
                                     .op = row->op,
                                     .shape = row->shape,
                                     .thread = thread,
                                     .line = row->line,
                                     .path = row->path,
                                     .scope = row->scope,
                                     .changed = 1};
    uint32_t *slot = retired_find_slot(retired, &site);
    if (*slot == 0) {
        struct collect_ledger *ledger = &retired->ledger;
        ledger->row[ledger->n_rows] = site;
        *slot = ++ledger->n_rows;
    }
    return *slot - 1;
}

/* What the row says of its keepers, in terms of the merged rows: the first known stays the
 * first. */
static void merge_keepers(struct collect_row *to, const struct collect_row *from, uint32_t kept_by)
{
    if (to->kept_by == 0)
        to->kept_by = kept_by;
    else if (kept_by != 0 && kept_by != to->kept_by)
        to->kept_others = 1;
    if (from->kept_others)
        to->kept_others = 1;
}

static void merge_row(struct collect_row *to, const struct collect_row *from, bool has_peak)
{
    uint64_t peak = has_peak ? to->peak_bytes + from->peak_bytes : to->peak_bytes;
#define X(name) to->name += from->name;
    ROW_COUNTERS(X)
#undef X
    to->peak_bytes = peak;
    to->live_bytes = 0;
    to->changed = 1;
}

static void take_peak(struct collect_ledger *to, const struct collect_ledger *from)
{
    to->peak_bytes = from->peak_bytes;
    to->peak_count = from->peak_count;
    for (uint32_t i = 0; i < to->n_rows; i++) {
        if (to->row[i].peak_bytes != 0)
            to->row[i].changed = 1;
        to->row[i].peak_bytes = 0;
    }
}

static uint64_t retired_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void merge_totals(struct collect_ledger *to, const struct collect_ledger *from)
{
    to->forward_ticks += from->forward_ticks;
    to->backward_ticks += from->backward_ticks;
    to->recompute_ticks += from->recompute_ticks;
    to->handed_out_bytes += from->handed_out_bytes;
    to->sweeps += from->sweeps;
    to->records += from->records;
    to->reserved_bytes = retired_greater(to->reserved_bytes, from->reserved_bytes);
    to->touched_bytes = retired_greater(to->touched_bytes, from->touched_bytes);
    to->spilled_bytes += from->spilled_bytes;
    to->memory_peak_bytes = retired_greater(to->memory_peak_bytes, from->memory_peak_bytes);
    to->disk_write_ticks += from->disk_write_ticks;
    to->disk_read_ticks += from->disk_read_ticks;
    to->ticks = retired_greater(to->ticks, from->ticks);
    to->tapes++;
    to->changed = true;
}

bool collect_retired_merge(struct collect_retired *retired, const struct collect_ledger *tape)
{
    if (!retired_reserve(retired, tape->n_rows))
        return false;
    struct collect_ledger *to = &retired->ledger;
    const uint64_t thread = retired_thread(retired, tape->thread);
    for (uint32_t i = 0; i < tape->n_rows; i++)
        retired->place[i] = retired_place_of(retired, &tape->row[i], thread);
    bool has_peak = to->tapes == 0 || tape->peak_bytes > to->peak_bytes;
    if (!collect_residuals_merge(to, tape, retired->place, has_peak))
        return false;
    if (has_peak)
        take_peak(to, tape);
    for (uint32_t i = 0; i < tape->n_rows; i++) {
        const struct collect_row *from = &tape->row[i];
        struct collect_row *row = &to->row[retired->place[i]];
        bool kept = from->kept_by != 0 && from->kept_by <= tape->n_rows;
        merge_keepers(row, from, kept ? retired->place[from->kept_by - 1] + 1 : 0);
        merge_row(row, from, has_peak);
    }
    merge_totals(to, tape);
    return true;
}

static void retired_clear(struct collect_retired *retired)
{
    struct collect_ledger *ledger = &retired->ledger;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        struct collect_row *row = &ledger->row[i];
#define X(name) row->name = 0;
        ROW_COUNTERS(X)
#undef X
        row->kept_by = row->kept_others = 0;
        row->changed = 1;
    }
#define X(name) ledger->name = 0;
    TAPE_COUNTERS(X)
#undef X
    collect_residuals_free(&ledger->residuals); /* a reader drops them where there are no tapes */
    ledger->tapes = 0;
    retired->n_threads = 0;
    ledger->changed = true;
}

bool collect_drop_all(struct collect_buffer *out, struct collect_tapes *tapes,
                      struct collect_retired *retired, struct collect_path_map *paths)
{
    const size_t before = out->n;
    bool ok = true;
    for (size_t i = 0; ok && i < tapes->n; i++)
        ok = !tapes->tape[i]->written || collect_put_final(out, tapes->tape[i]);
    const bool known = retired->ledger.written || out->n > before;
    collect_tapes_free(tapes);
    retired_clear(retired);
    return ok && (!known || (collect_put_paths(out, paths, &retired->ledger, true) &&
                             collect_put_ledger(out, &retired->ledger, paths, true)));
}

void collect_retired_free(struct collect_retired *retired)
{
    collect_ledger_free(&retired->ledger);
    free(retired->slot);
    free(retired->place);
    *retired = (struct collect_retired){0};
}
