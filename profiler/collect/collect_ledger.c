/* collect_ledger.c: the states of the living tapes, as last read.
 *
 * The tape's owner may be writing while its rows are read: every counter is loaded once, relaxed,
 * and n_rows with acquire, as tape_hook.h says. What is kept here belongs to the collector's mutex.
 */
#include "collect.h"

#include <stdlib.h>
#include <string.h>

/* Rows are compared as bytes, so that they may have no padding. */
#define X(name) +1
_Static_assert(sizeof(struct collect_row) == sizeof(uintptr_t) + 2 * sizeof(char *) +
                                                 sizeof(uint64_t) + 6 * sizeof(uint32_t) +
                                                 (0 ROW_COUNTERS(X)) * sizeof(uint64_t),
               "struct collect_row has padding");
#undef X

#define LOAD(place) __atomic_load_n((place), __ATOMIC_RELAXED)

bool collect_ledger_reserve(struct collect_ledger *ledger, uint32_t n_rows)
{
    if (n_rows <= ledger->capacity)
        return true;
    uint32_t capacity = ledger->capacity < 8 ? 8 : 2 * ledger->capacity;
    if (capacity < n_rows)
        capacity = n_rows;
    struct collect_row *row = realloc(ledger->row, capacity * sizeof *row);
    if (row == NULL)
        return false;
    ledger->row = row;
    ledger->capacity = capacity;
    return true;
}

/* Returns whether the row differs from what was known of it. */
static bool read_row(struct collect_row *to, const struct tape_row *from, uint64_t peak_count)
{
    struct collect_row now = {.pc = LOAD(&from->pc),
                              .op = LOAD(&from->op),
                              .shape = LOAD(&from->shape),
                              .line = LOAD(&from->line),
                              .path = LOAD(&from->path),
                              .kept_by = LOAD(&from->kept_by),
                              .kept_others = LOAD(&from->kept_others),
                              .changed = to->changed,
                              .scope = LOAD(&from->scope),
#define X(name) .name = LOAD(&from->name),
                              ROW_COUNTERS(X)
#undef X
    };
    if (now.op == NULL)
        now.op = "";
    if (LOAD(&from->peak_stamp) != peak_count)
        now.peak_bytes = now.live_bytes;
    if (memcmp(&now, to, sizeof now) == 0)
        return false;
    now.changed = 1;
    memcpy(to, &now, sizeof now);
    return true;
}

bool collect_ledger_read(struct collect_ledger *to, const struct tape_ledger *from, uint64_t ticks)
{
    /* Classes first: whatever rows they name are then among those that are read. */
    if (!collect_residuals_read(to, from, ticks))
        return false;
    uint32_t n_rows = __atomic_load_n(&from->n_rows, __ATOMIC_ACQUIRE);
    if (n_rows > TAPE_ROW_CHUNK * TAPE_ROW_CHUNKS)
        n_rows = TAPE_ROW_CHUNK * TAPE_ROW_CHUNKS;
    if (!collect_ledger_reserve(to, n_rows))
        return false;
    if (n_rows > to->n_rows)
        memset(to->row + to->n_rows, 0, (n_rows - to->n_rows) * sizeof *to->row);
    to->n_rows = n_rows;
    to->tape = from->tape;
    to->thread = from->tid;
    to->ticks = ticks;
#define X(name)                                                                                    \
    {                                                                                              \
        uint64_t now = LOAD(&from->name);                                                          \
        to->changed |= now != to->name;                                                            \
        to->name = now;                                                                            \
    }
    TAPE_COUNTERS(X)
#undef X
    for (uint32_t i = 0; i < n_rows; i++)
        to->changed |= read_row(&to->row[i], tape_ledger_row(from, i), to->peak_count);
    return true;
}

void collect_ledger_free(struct collect_ledger *ledger)
{
    free(ledger->row);
    collect_residuals_free(&ledger->residuals);
    *ledger = (struct collect_ledger){0};
}

/* Index of the first tape whose number is not below `tape`. */
static size_t lower_bound(const struct collect_tapes *tapes, uint64_t tape)
{
    size_t low = 0, high = tapes->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tapes->tape[middle]->tape < tape)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct collect_ledger *collect_tapes_find(const struct collect_tapes *tapes, uint64_t tape)
{
    size_t i = lower_bound(tapes, tape);
    return i < tapes->n && tapes->tape[i]->tape == tape ? tapes->tape[i] : NULL;
}

struct collect_ledger *collect_tapes_add(struct collect_tapes *tapes, uint64_t tape)
{
    if (tapes->n == tapes->capacity) {
        size_t capacity = tapes->capacity == 0 ? 8 : 2 * tapes->capacity;
        struct collect_ledger **list = realloc(tapes->tape, capacity * sizeof *list);
        if (list == NULL)
            return NULL;
        tapes->tape = list;
        tapes->capacity = capacity;
    }
    struct collect_ledger *ledger = calloc(1, sizeof *ledger);
    if (ledger == NULL)
        return NULL;
    ledger->tape = tape;
    ledger->changed = true;
    size_t i = lower_bound(tapes, tape);
    memmove(tapes->tape + i + 1, tapes->tape + i, (tapes->n - i) * sizeof(struct collect_ledger *));
    tapes->tape[i] = ledger;
    tapes->n++;
    return ledger;
}

void collect_tapes_remove(struct collect_tapes *tapes, struct collect_ledger *ledger)
{
    size_t i = lower_bound(tapes, ledger->tape);
    tapes->n--;
    memmove(tapes->tape + i, tapes->tape + i + 1, (tapes->n - i) * sizeof(struct collect_ledger *));
    collect_ledger_free(ledger);
    free(ledger);
}

void collect_tapes_free(struct collect_tapes *tapes)
{
    for (size_t i = 0; i < tapes->n; i++) {
        collect_ledger_free(tapes->tape[i]);
        free(tapes->tape[i]);
    }
    free(tapes->tape);
    *tapes = (struct collect_tapes){0};
}
