/* tape_account.c: rows found by their key, their byte counters, and what is live at the peak.
 *
 * See tape_hook.h for what the counters mean.
 */
#include "tape_account.h"

#include "tape_class.h"
#include "tape_kind.h"
#include "tape_now.h"
#include "tape_part.h"
#include "tape_scope.h"
#include "tape_trace.h"

#include <string.h>

/* Into what counts an op, a buffer at a time. */
#define INLINE __attribute__((always_inline)) inline

enum {
    TABLE_LEAST = 64,
    ROWS = TAPE_ROW_CHUNK * TAPE_ROW_CHUNKS,
    ROWS_OF_PATHS = ROWS / 8 * 6, /* whoever comes first */
    ROWS_LATE = ROWS / 8, /* of paths that come later, and often; the others: of what is left */
    LATE_LEAST = 32       /* times that such a path comes before it has a row */
};

/* What makes a row: no two have the same. */
struct tape_row_key {
    uintptr_t pc;
    const char *op;
    uint32_t line, scope, path;
    const char *shape;
};

static struct tape_row_key row_key(const struct tape_row *row)
{
    return (struct tape_row_key){row->pc, row->op, row->line, row->scope, row->path, row->shape};
}

static bool row_has_key(const struct tape_row *row, const struct tape_row_key *key)
{
    return row->pc == key->pc && row->op == key->op && row->line == key->line &&
           row->scope == key->scope && row->path == key->path && row->shape == key->shape;
}

static uint64_t account_hash_of(const struct tape_row_key *key)
{
    uint64_t h = (key->pc + (uintptr_t)key->shape) ^ ((uint64_t)key->line << 40);
    h *= 0x9e3779b97f4a7c15u;
    h ^= ((uintptr_t)key->op ^ ((uint64_t)key->scope << 44) ^ ((uint64_t)key->path << 20)) *
         0xc2b2ae3d27d4eb4fu;
    return h ^ (h >> 29);
}

/* Appends a row, or returns TAPE_ROW_OTHER. */
static uint32_t rows_append(struct tape *t, const struct tape_row_key *key)
{
    uint32_t i = t->ledger.n_rows, c = i / TAPE_ROW_CHUNK;
    if (c >= TAPE_ROW_CHUNKS)
        return TAPE_ROW_OTHER;
    if (!t->ledger.chunk[c]) {
        size_t n = TAPE_ROW_CHUNK * sizeof(struct tape_row);
        void *p = t->memory->resize(NULL, n, t->memory->payload);
        if (!p)
            return TAPE_ROW_OTHER;
        memset(p, 0, n);
        t->ledger.chunk[c] = p;
    }
    *tape_row(t, i) = (struct tape_row){.pc = key->pc,
                                        .op = key->op,
                                        .line = key->line,
                                        .path = key->path,
                                        .scope = key->scope,
                                        .shape = key->shape,
                                        .peak_stamp = t->ledger.peak_count};
    /* Another thread that reads n_rows must find the row filled. */
    __atomic_store_n(&t->ledger.n_rows, i + 1, __ATOMIC_RELEASE);
    return i;
}

static int table_grow(struct tape *t)
{
    struct tape_table *old = &t->sites;
    uint32_t size = old->size ? old->size * 2 : TABLE_LEAST;
    uint32_t *slot = t->memory->resize(NULL, size * sizeof *slot, t->memory->payload);
    if (!slot)
        return -1;
    memset(slot, 0, size * sizeof *slot);
    for (uint32_t k = 0; k < old->size; k++) {
        if (!old->slot[k])
            continue;
        const struct tape_row_key key = row_key(tape_row(t, old->slot[k] - 1));
        uint64_t h = account_hash_of(&key);
        while (slot[h & (size - 1)])
            h++;
        slot[h & (size - 1)] = old->slot[k];
    }
    t->memory->release(old->slot, t->memory->payload);
    old->slot = slot;
    old->size = size;
    return 0;
}

int tape_account_open(struct tape *t)
{
    rows_append(t, &(struct tape_row_key){.op = "padding"});
    rows_append(t, &(struct tape_row_key){.op = "other"});
    rows_append(t, &(struct tape_row_key){.op = "block not yet filled"});
    return t->ledger.n_rows == 3 && table_grow(t) == 0 ? 0 : -1;
}

void tape_account_close(struct tape *t)
{
    tape_residual_close(t);
    for (uint32_t c = 0; c < TAPE_ROW_CHUNKS && t->ledger.chunk[c]; c++)
        t->memory->release(t->ledger.chunk[c], t->memory->payload);
    if (t->sites.slot)
        t->memory->release(t->sites.slot, t->memory->payload);
    if (t->sites.late)
        t->memory->release(t->sites.late, t->memory->payload);
}

static uint32_t table_insert(struct tape *t, uint64_t h, const struct tape_row_key *key)
{
    /* A table that cannot grow still finds what it holds; it only takes nothing new when full. */
    if (t->sites.used * 2 >= t->sites.size && table_grow(t) != 0 &&
        t->sites.used + 1 >= t->sites.size)
        return TAPE_ROW_OTHER;
    uint32_t i = rows_append(t, key);
    if (i == TAPE_ROW_OTHER)
        return i;
    while (t->sites.slot[h & (t->sites.size - 1)])
        h++;
    t->sites.slot[h & (t->sites.size - 1)] = i + 1;
    t->sites.used++;
    return i;
}

static uint32_t table_look_up(const struct tape *t, uint64_t h, const struct tape_row_key *key)
{
    for (;; h++) {
        const uint32_t slot = t->sites.slot[h & (t->sites.size - 1)];
        if (!slot)
            return TAPE_ROW_NONE;
        if (row_has_key(tape_row(t, slot - 1), key))
            return slot - 1;
    }
}

/* Whether a path that has no row comes so often that it gets one of those that are kept for that.
 * The fewer there are, the oftener it has to come. Of paths with one place the most frequent stays
 * there: each call of another one takes a call of it away. */
static bool late_is_frequent(struct tape *t, uint64_t h)
{
    struct tape_table *sites = &t->sites;
    if (!sites->late) {
        const size_t n = TAPE_LATE * sizeof *sites->late;
        sites->late = t->memory->resize(NULL, n, t->memory->payload);
        if (!sites->late)
            return false;
        memset(sites->late, 0, n);
    }
    struct tape_late *late = &sites->late[h % TAPE_LATE];
    if (late->key != h && late->n > 0) {
        late->n--;
        return false;
    }
    late->key = h;
    late->n++;
    return sites->n_late < ROWS_LATE && late->n >= (uint64_t)LATE_LEAST
                                                       << (8 * sites->n_late / ROWS_LATE);
}

/* Where there is no room for more paths: as many of the outermost callers as there is room for, and
 * at last the line's own row, so that it is told apart from all others. */
static uint32_t table_find_cut(struct tape *t, struct tape_row_key key)
{
    static const unsigned keep[] = {TAPE_PATH_KEPT, TAPE_PATH_KEPT - 2, 0};
    struct tape_hook *paths = tape_path_hook(t);
    const uint32_t path = key.path, used = t->ledger.n_rows - t->sites.n_late;
    uint32_t room = (ROWS - ROWS_LATE - ROWS_OF_PATHS) / 2;
    for (size_t k = 0;; k++, room /= 2) {
        if (path && paths && paths->path_cut)
            key.path = paths->path_cut(paths, path, key.pc, keep[k]);
        const uint64_t h = account_hash_of(&key);
        const uint32_t i = table_look_up(t, h, &key);
        if (i != TAPE_ROW_NONE)
            return i;
        if (keep[k] == 0 || used + room < ROWS - ROWS_LATE)
            return table_insert(t, h, &key);
    }
}

static uint32_t table_find(struct tape *t, const struct tape_row_key *key)
{
    const uint64_t h = account_hash_of(key);
    const uint32_t i = table_look_up(t, h, key);
    if (__builtin_expect(i != TAPE_ROW_NONE, 1))
        return i;
    if (t->ledger.n_rows - t->sites.n_late < ROWS_OF_PATHS)
        return table_insert(t, h, key);
    if (!late_is_frequent(t, h))
        return table_find_cut(t, *key);
    t->sites.n_late++;
    return table_insert(t, h, key);
}

static uint32_t row_known_at(struct tape_site site)
{
    return (site.pc ^ site.pc >> 5) % TAPE_KNOWN;
}

/* The row that was found last for a site like this one, if it is of this site: in an account that
 * nobody observes rows differ by site and op alone. */
static uint32_t row_known(const struct tape *t, struct tape_site site, const char *op)
{
    const uint32_t i = t->sites.known[row_known_at(site)];
    const struct tape_row *row = tape_row(t, i);
    return row->pc == site.pc && row->op == op && row->line == site.line &&
                   (row->scope | row->path) == 0 && row->shape == t->shape
               ? i
               : TAPE_ROW_NONE;
}

/* The row of a site that is observed, or was not looked for of late. */
INLINE static uint32_t row_look_up(struct tape *t, struct tape_site site, const char *op)
{
    struct tape_row_key key = {.pc = site.pc, .op = op, .line = site.line, .shape = t->shape};
    if (t->hook == NULL && t->now == NULL)
        return t->sites.known[row_known_at(site)] = table_find(t, &key);
    struct tape_hook *paths = tape_path_hook(t);
    if (__builtin_expect(t->hook != NULL, 0))
        key.scope = tape_scope_now;
    if (__builtin_expect(paths != NULL, 0))
        key.path = t->path ? t->path - 1 : paths->path(paths, site.pc, t->root);
    uint32_t *known = &t->sites.known[(row_known_at(site) ^ key.path) % TAPE_KNOWN];
    if (row_has_key(tape_row(t, *known), &key))
        return *known;
    t->sites.searched++;
    return *known = table_find(t, &key);
}

/* Behind a tail call, so that the usual way saves no registers. */
static __attribute__((noinline)) uint32_t row_look_up_apart(struct tape *t, struct tape_site site,
                                                            const char *op)
{
    return row_look_up(t, site, op);
}

uint32_t tape_account_row(struct tape *t, struct tape_site site, const char *op)
{
    if (__builtin_expect(t->hook == NULL && t->now == NULL, 1)) {
        const uint32_t i = row_known(t, site, op);
        if (__builtin_expect(i != TAPE_ROW_NONE, 1))
            return i;
    }
    return row_look_up_apart(t, site, op);
}

uint32_t tape_account_row_beside(struct tape *t, uint32_t row, struct tape_site site,
                                 const char *op)
{
    const struct tape_row *known = tape_row(t, row);
    const struct tape_row_key key = {site.pc, op, site.line, known->scope, known->path, NULL};
    return table_find(t, &key);
}

uint32_t tape_account_row_of_line(struct tape *t, uint32_t row)
{
    struct tape_row_key key = row_key(tape_row(t, row));
    struct tape_hook *paths = tape_path_hook(t);
    if (key.path && paths && paths->path_cut)
        key.path = paths->path_cut(paths, key.path, key.pc, 0);
    const uint64_t h = account_hash_of(&key);
    const uint32_t i = table_look_up(t, h, &key);
    return i != TAPE_ROW_NONE ? i : table_insert(t, h, &key);
}

uint32_t tape_account_row_like(struct tape *t, const struct tape_row *other)
{
    const struct tape_row_key key = row_key(other);
    return table_find(t, &key);
}

/* What a row holds changes: what it held at the peak is remembered first. */
INLINE static void row_holds(const struct tape *t, struct tape_row *row, uint64_t delta)
{
    const struct tape_ledger *l = &t->ledger;
    if (row->peak_stamp != l->peak_count) {
        __atomic_store_n(&row->peak_bytes, row->live_bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&row->peak_stamp, l->peak_count, __ATOMIC_RELAXED);
    }
    TAPE_ADD(row->live_bytes, delta);
}

/* What the tape holds in memory may be the most yet, once some of it lies in its file. */
static void memory_holds(struct tape *t)
{
    struct tape_ledger *l = &t->ledger;
    if (l->memory_peak_bytes > 0 && l->live_bytes - l->disk_bytes > l->memory_peak_bytes)
        __atomic_store_n(&l->memory_peak_bytes, l->live_bytes - l->disk_bytes, __ATOMIC_RELAXED);
}

/* And so does what the tape holds, after the rows and classes. */
INLINE static void tape_holds(struct tape *t, uint64_t delta)
{
    struct tape_ledger *l = &t->ledger;
    TAPE_ADD(l->live_bytes, delta);
    if (l->live_bytes > l->peak_bytes && (int64_t)delta > 0) {
        __atomic_store_n(&l->peak_bytes, l->live_bytes, __ATOMIC_RELAXED);
        TAPE_ADD(l->peak_count, 1);
        if (t->residual)
            tape_history_peak(t);
    }
    if (t->residual)
        tape_history_tape(t);
    /* What is dropped is no longer on disk before it is no longer live. */
    if (__builtin_expect(l->memory_peak_bytes > 0, 0) && (int64_t)delta > 0)
        memory_holds(t);
}

INLINE static void row_live(struct tape *t, struct tape_row *row, uint64_t delta)
{
    row_holds(t, row, delta);
    tape_holds(t, delta);
}

INLINE static uint64_t *counter_of(struct tape_row *row, enum tape_residual_kind kind)
{
    return kind == TAPE_RECORD    ? &row->record_bytes
           : kind == TAPE_ADJOINT ? &row->adjoint_bytes
                                  : &row->value_bytes;
}

/* The class is told before the row: a peak comes after both. */
INLINE static void row_take(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n)
{
    if (n == 0)
        return;
    struct tape_row *r = tape_row(t, row);
    TAPE_ADD(*counter_of(r, kind), n);
    TAPE_ADD(t->ledger.handed_out_bytes, n);
    tape_residual_take(t, tape_residual_of_row(t, row, kind), n);
    row_live(t, r, n);
}

INLINE static void row_give(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n)
{
    if (n == 0)
        return;
    tape_residual_give(t, tape_residual_of_row(t, row, kind), n);
    row_live(t, tape_row(t, row), 0 - n);
}

static uint64_t padding_of(uint64_t n)
{
    return tape_arena_class_bytes(n) - n;
}

/* A buffer of n bytes takes its size class: the rest is padding. */
static void buffer_take(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n)
{
    __atomic_store_n(&t->ledger.touched_bytes, t->arena.touched, __ATOMIC_RELAXED);
    row_take(t, row, kind, n);
    row_take(t, TAPE_ROW_PADDING, kind, padding_of(n));
}

static void buffer_give(struct tape *t, uint32_t row, uint64_t n)
{
    row_give(t, row, TAPE_ADJOINT, n);
    row_give(t, TAPE_ROW_PADDING, TAPE_ADJOINT, padding_of(n));
}

/* A value's class is its own. */
static void account_value_take(struct tape *t, const struct tape_value *v)
{
    const uint64_t n = tape_value_bytes(v);
    struct tape_row *row = tape_row(t, v->row);
    __atomic_store_n(&t->ledger.touched_bytes, t->arena.touched, __ATOMIC_RELAXED);
    TAPE_ADD(row->value_bytes, n);
    TAPE_ADD(t->ledger.handed_out_bytes, n);
    tape_residual_value_made(t, v);
    row_live(t, row, n);
    row_take(t, TAPE_ROW_PADDING, TAPE_VALUE, padding_of(n));
}

static void value_give(struct tape *t, const struct tape_value *v, enum tape_release_cause cause,
                       uint32_t row)
{
    const uint64_t n = tape_value_bytes(v);
    tape_residual_value_gone(t, v, cause, row);
    row_live(t, tape_row(t, v->row), 0 - n);
    row_give(t, TAPE_ROW_PADDING, TAPE_VALUE, padding_of(n));
}

void tape_account_value(struct tape *t, const struct tape_value *v)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    row_take(t, v->row, TAPE_RECORD, tape_entry_bytes(v, v->flags));
    if (v->flags & TAPE_OWNS_DATA)
        account_value_take(t, v);
    if (v->flags & (TAPE_LEAF | TAPE_RETAIN))
        buffer_take(t, v->row, TAPE_ADJOINT, tape_value_bytes(v));
    tape_trace_value(t, v);
}

INLINE static void row_kept_by(struct tape_row *row, uint32_t keeper, bool newest_first)
{
    if (row->kept_by && row->kept_by != keeper + 1)
        __atomic_store_n(&row->kept_others, 1, __ATOMIC_RELAXED);
    if (!row->kept_by || newest_first)
        __atomic_store_n(&row->kept_by, keeper + 1, __ATOMIC_RELAXED);
}

/* newest_first: records come in reverse, so that each is older than the keeper known so far. */
static void value_keep(struct tape *t, struct tape_value *v, uint32_t keeper, bool newest_first)
{
    struct tape_value *root = &t->entries[v->root];
    if (!(root->flags & TAPE_OWNS_DATA))
        return;
    struct tape_row *row = tape_row(t, root->row);
    tape_residual_kept(t, root, keeper, newest_first || !(root->flags & TAPE_KEPT));
    if (!(root->flags & TAPE_KEPT)) {
        root->flags |= TAPE_KEPT;
        TAPE_ADD(row->kept_bytes, tape_value_bytes(root));
    }
    row_kept_by(row, keeper, newest_first);
}

static void account_keep(struct tape *t, struct tape_record *r, uint32_t touches, bool newest_first)
{
    const uint64_t saves = tape_record_saves_out(r);
    if (!tape_record_is_swept(t, r))
        return;
    for (int i = 0; (i = tape_record_next(r, touches, i)) < r->n_in; i++)
        value_keep(t, &t->entries[tape_record_in(r)[i]], r->row, newest_first);
    for (int o = 0; o < r->n_out; o++)
        if (saves >> o & 1)
            value_keep(t, &t->entries[tape_record_out(r)[o]], r->row, newest_first);
}

/* What an op's results take. */
struct account_results {
    uint64_t entries, buffers, padding, largest; /* bytes */
    unsigned n, n_buffers, n_padded;
};

/* Their classes are told before the rows. */
INLINE static void results_charge(struct tape *t, uint32_t first, uint32_t end,
                                  const struct account_results *all)
{
    const uint32_t row = t->entries[first].row, values = tape_residual_of_row(t, row, TAPE_VALUE);
    tape_class_take(t, tape_residual_of_row(t, row, TAPE_RECORD), all->n, all->entries);
    for (uint32_t x = first; x < end; x++)
        if (t->entries[x].flags & TAPE_OWNS_DATA)
            tape_residual_value_noted(t, x, values);
    if (all->buffers > 0) {
        struct tape_class *c = tape_class_take(t, values, all->n_buffers, all->buffers);
        if (all->largest > c->largest_bytes)
            TAPE_CLASS_SET(c->largest_bytes, all->largest);
    }
    if (all->padding > 0)
        tape_class_take(t, tape_residual_of_row(t, TAPE_ROW_PADDING, TAPE_VALUE), all->n_padded,
                        all->padding);
}

/* Rows and the tape, after the classes. */
INLINE static void results_hold(struct tape *t, struct tape_row *line, uint64_t entries,
                                uint64_t buffers, uint64_t padding)
{
    const uint64_t sum = entries + buffers + padding;
    __atomic_store_n(&t->ledger.touched_bytes, t->arena.touched, __ATOMIC_RELAXED);
    TAPE_ADD(t->ledger.handed_out_bytes, sum);
    TAPE_ADD(line->record_bytes, entries);
    TAPE_ADD(line->value_bytes, buffers);
    row_holds(t, line, entries + buffers);
    if (padding > 0) {
        struct tape_row *rest = tape_row(t, TAPE_ROW_PADDING);
        TAPE_ADD(rest->value_bytes, padding);
        row_holds(t, rest, padding);
    }
    tape_holds(t, sum);
}

INLINE static void class_take_buffer(struct tape *t, uint32_t class_, uint64_t n)
{
    struct tape_class *c = tape_class_take(t, class_, 1, n);
    if (n > c->largest_bytes)
        TAPE_CLASS_SET(c->largest_bytes, n);
}

/* The one result of an op, with its record. If the op's own pullback reads it, it is of that class
 * from the beginning. Returns whether it is. */
INLINE static bool result_charge(struct tape *t, struct tape_value *v, const struct tape_record *r)
{
    const bool owns = v->flags & TAPE_OWNS_DATA;
    const uint64_t n = owns ? tape_value_bytes(v) : 0, rest = owns ? padding_of(n) : 0,
                   entries = r->bytes + tape_entry_bytes(v, v->flags);
    const uint32_t row = r->row;
    struct tape_row *line = tape_row(t, row);
    uint32_t own = 0; /* its class; 0: it is of none, or there was no memory for it */
    tape_class_take(t, tape_residual_of_row(t, row, TAPE_RECORD), 2, entries);
    if (n > 0) {
        if (r->op->saves_out != 0 &&
            (t->replays == TAPE_REPLAYS_NOTHING || v->flags & TAPE_NEEDS_GRADIENT))
            own = tape_residual_of_row(t, row, TAPE_SAVED);
        const uint32_t class_ = own ? own : tape_residual_of_row(t, row, TAPE_VALUE);
        tape_residual_value_noted(t, tape_value_index(t, v), class_);
        class_take_buffer(t, class_, n);
    }
    if (rest > 0)
        tape_class_take(t, tape_residual_of_row(t, TAPE_ROW_PADDING, TAPE_VALUE), 1, rest);
    results_hold(t, line, entries, n, rest);
    if (own == 0)
        return false;
    v->flags |= TAPE_KEPT;
    TAPE_ADD(line->kept_bytes, n);
    row_kept_by(line, row, false);
    return true;
}

/* What an op has made is of one row, and all of it was handed out before anything is given back:
 * entries and record change one class, results' buffers another, and their padding a third. */
static void results_take(struct tape *t, uint32_t first, uint32_t end, const struct tape_record *r)
{
    struct account_results all = {.entries = r ? r->bytes : 0, .n = end - first + (r != NULL)};
    for (uint32_t x = first; x < end; x++) {
        const struct tape_value *v = &t->entries[x];
        all.entries += tape_entry_bytes(v, v->flags);
        if (!(v->flags & TAPE_OWNS_DATA))
            continue;
        const uint64_t n = tape_value_bytes(v), rest = padding_of(n);
        all.n_buffers += n > 0;
        all.n_padded += rest > 0;
        all.buffers += n;
        all.padding += rest;
        all.largest = n > all.largest ? n : all.largest;
    }
    if (t->residual)
        results_charge(t, first, end, &all);
    results_hold(t, tape_row(t, t->entries[first].row), all.entries, all.buffers, all.padding);
}

void tape_account_op(struct tape *t, uint32_t first, int n_out, uint32_t last_guard,
                     struct tape_record *r)
{
    const uint32_t end = first + (uint32_t)n_out;
    const bool plain = r && tape_record_kind(r) == &tape_op_kind;
    bool kept = false;
    tape_account_settle(t);
    if (__builtin_expect(plain && n_out == 1 && t->residual, 1))
        kept = result_charge(t, &t->entries[first], r);
    else
        results_take(t, first, end, r);
    if (!r) {
        for (uint32_t x = first; x < end; x++)
            tape_trace_value(t, &t->entries[x]);
        return;
    }
    const bool reads = !plain || r->op->saves_in;
    const uint32_t touches = reads ? tape_record_touches(t, r) : 0;
    tape_trace_op(t, r, touches);
    if (last_guard != t->last_guard)
        tape_account_guards(t, last_guard);
    if (touches != 0 || (!kept && tape_record_saves_out(r) != 0))
        account_keep(t, r, touches, false);
}

void tape_account_drop_value(struct tape *t, const struct tape_value *v)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    tape_trace_settle(t);
    row_give(t, v->row, TAPE_RECORD, tape_entry_bytes(v, v->flags));
    if (v->flags & TAPE_OWNS_DATA)
        value_give(t, v, t->residual ? t->residual->cause : TAPE_BY_CALL, TAPE_ROW_NONE);
    if (v->flags & (TAPE_LEAF | TAPE_RETAIN))
        buffer_give(t, v->row, tape_value_bytes(v));
}

void tape_account_record(struct tape *t, struct tape_record *r)
{
    tape_account_settle(t);
    if (!t->hook)
        return;
    row_take(t, r->row, TAPE_RECORD, r->bytes);
    if (tape_record_kind(r) == &tape_op_kind)
        tape_trace_record(t, r);
    else
        tape_trace_bytes(t, r->row, r->bytes);
}

void tape_account_drop_record(struct tape *t, struct tape_record *r)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    tape_trace_drops(t, r);
    row_give(t, r->row, TAPE_RECORD, r->bytes);
    const struct record_kind *kind = tape_record_kind(r);
    if (kind->account_drop)
        kind->account_drop(t, r);
}

/* What a rewind drops of a class, which is not given back yet. */
enum { DROPS = 16 };
struct account_drops {
    struct {
        uint64_t bytes;
        uint32_t row, class_;
    } of[DROPS];
};

static void drops_give(struct tape *t, struct account_drops *drops, uint32_t slot)
{
    const uint64_t n = drops->of[slot].bytes;
    if (n == 0)
        return;
    tape_residual_give(t, drops->of[slot].class_, n);
    row_live(t, tape_row(t, drops->of[slot].row), 0 - n);
    drops->of[slot].bytes = 0;
}

static void drops_end(struct tape *t, struct account_drops *drops)
{
    for (uint32_t slot = 0; slot < DROPS; slot++)
        drops_give(t, drops, slot);
}

INLINE static void drops_add(struct tape *t, struct account_drops *drops, uint32_t row,
                             uint32_t class_, uint64_t n)
{
    const uint32_t slot = class_ % DROPS;
    if (drops->of[slot].class_ != class_ || drops->of[slot].row != row) {
        drops_give(t, drops, slot);
        drops->of[slot].class_ = class_;
        drops->of[slot].row = row;
    }
    drops->of[slot].bytes += n;
}

INLINE static void drops_add_bytes(struct tape *t, struct account_drops *drops, uint32_t row,
                                   enum tape_residual_kind kind, uint64_t n)
{
    if (n > 0)
        drops_add(t, drops, row, tape_residual_of_row(t, row, kind), n);
}

void tape_account_drop_values(struct tape *t, uint32_t first)
{
    if (!t->hook)
        return;
    struct account_drops drops = {.of = {{0}}};
    tape_account_settle(t);
    if (first < t->n_values)
        tape_trace_settle(t);
    for (uint32_t i = first; i < t->n_values; i++) {
        const struct tape_value *v = &t->entries[i];
        if (!t->residual || (v->flags & (TAPE_LEAF | TAPE_RETAIN))) {
            tape_account_drop_value(t, v);
            continue;
        }
        drops_add_bytes(t, &drops, v->row, TAPE_RECORD, tape_entry_bytes(v, v->flags));
        if ((v->flags & TAPE_OWNS_DATA) && v->array.size > 0) {
            const uint64_t n = tape_value_bytes(v);
            drops_add(t, &drops, v->row, tape_residual_value_drop(t, v), n);
            drops_add_bytes(t, &drops, TAPE_ROW_PADDING, TAPE_VALUE, padding_of(n));
        }
    }
    drops_end(t, &drops);
}

void tape_account_drop_records(struct tape *t, uint32_t end)
{
    if (!t->hook)
        return;
    struct account_drops drops = {.of = {{0}}};
    tape_account_settle(t);
    for (uint32_t at = t->last_record; at != end; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        if (t->residual && tape_record_kind(r) == &tape_op_kind) {
            drops_add_bytes(t, &drops, r->row, TAPE_RECORD, r->bytes);
        } else {
            drops_end(t, &drops);
            tape_account_drop_record(t, r);
        }
    }
    drops_end(t, &drops);
}

void tape_account_guards(struct tape *t, uint32_t last)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    for (uint32_t at = t->last_guard; at != last; at = tape_guard_at(t, at)->previous)
        tape_account_bytes(t, tape_guard_at(t, at)->row, sizeof(struct tape_guard));
}

void tape_account_drop_guards(struct tape *t, uint32_t last)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    for (uint32_t at = t->last_guard; at != last; at = tape_guard_at(t, at)->previous)
        row_give(t, tape_guard_at(t, at)->row, TAPE_RECORD, sizeof(struct tape_guard));
}

void tape_account_bytes(struct tape *t, uint32_t row, uint64_t n)
{
    tape_account_settle(t);
    if (!t->hook)
        return;
    row_take(t, row, TAPE_RECORD, n);
    if (row != TAPE_ROW_PADDING)
        tape_trace_bytes(t, row, n);
}

/* Room that no statement fills yet becomes more or less. It was never handed out to a line. */
static void room_change(struct tape *t, uint64_t delta)
{
    tape_residual_shift(t, tape_residual_of_row(t, TAPE_ROW_ROOM, TAPE_RECORD), delta);
    row_live(t, tape_row(t, TAPE_ROW_ROOM), delta);
}

void tape_account_block(struct tape *t, const struct tape_block *b)
{
    if (!t->hook)
        return;
    tape_account_bytes(t, TAPE_ROW_PADDING, sizeof *b);
    room_change(t, b->bytes - sizeof *b);
}

/* In both: first what grows less, or the sum would seem to be at a peak. */
void tape_account_tail(struct tape *t, uint64_t n)
{
    if (!t->hook || n == 0)
        return;
    tape_account_settle(t);
    room_change(t, 0 - n);
    row_take(t, TAPE_ROW_PADDING, TAPE_RECORD, n);
}

void tape_account_tail_back(struct tape *t, uint64_t n)
{
    if (!t->hook || n == 0)
        return;
    tape_account_settle(t);
    row_give(t, TAPE_ROW_PADDING, TAPE_RECORD, n);
    room_change(t, n);
}

void tape_account_drop_block(struct tape *t, const struct tape_block *b)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    row_give(t, TAPE_ROW_PADDING, TAPE_RECORD, sizeof *b + b->padding);
    room_change(t, 0 - (b->bytes - sizeof *b - b->padding));
}

/* Like live, of what was so when the peak came. */
static void row_live_at_peak(const struct tape *t, struct tape_row *row, uint64_t delta)
{
    if (row->peak_stamp == t->ledger.peak_count)
        TAPE_ADD(row->peak_bytes, delta);
    TAPE_ADD(row->live_bytes, delta);
}

void tape_account_filled(struct tape *t, uint32_t row, uint64_t n, uint64_t peaks,
                         enum tape_filled how)
{
    tape_account_settle(t);
    struct tape_row *line = tape_row(t, row), *room = tape_row(t, TAPE_ROW_ROOM);
    const uint32_t class_ = tape_residual_of_row(t, row, TAPE_RECORD),
                   room_class = tape_residual_of_row(t, TAPE_ROW_ROOM, TAPE_RECORD);
    /* First what grows less, or the sum would seem to be at a peak. */
    if (how != TAPE_FILLED) {
        if (how == TAPE_FILLED_NO_MORE) {
            tape_residual_give(t, class_, n);
        } else {
            TAPE_ADD(line->record_bytes, 0 - n);
            TAPE_ADD(t->ledger.handed_out_bytes, 0 - n);
            tape_residual_uncharge(t, class_, n);
        }
        row_live(t, line, 0 - n);
        tape_residual_shift(t, room_class, n);
        row_live(t, room, n);
        return;
    }
    TAPE_ADD(line->record_bytes, n);
    TAPE_ADD(t->ledger.handed_out_bytes, n);
    tape_residual_charge(t, class_, n);
    if (peaks < t->ledger.peak_count) {
        row_live_at_peak(t, room, 0 - n);
        row_live_at_peak(t, line, n);
        tape_residual_shift_at_peak(t, room_class, 0 - n);
        tape_residual_shift_at_peak(t, class_, n);
    } else {
        tape_residual_shift(t, room_class, 0 - n);
        row_live(t, room, 0 - n);
        tape_residual_shift(t, class_, n);
        row_live(t, line, n);
    }
}

/* False: it has to be counted now. */
static bool booking_note(struct tape *t, uint32_t row, uint64_t n, enum tape_booked what)
{
    if (!t->hook->apart || t->activity != TAPE_PHASE_BACKWARD)
        return false;
    if (t->n_bookings == TAPE_BOOKINGS)
        tape_account_settle_bookings(t);
    t->booking[t->n_bookings++] =
        (struct tape_booking){t->charges_wait ? t->ticks : 0, n, row, what};
    return true;
}

bool tape_account_wait(struct tape *t, const struct tape_record *r)
{
    uint32_t n = t->n_bookings;
    if (!t->hook->apart || t->charges_wait || n >= TAPE_BOOKINGS_WAIT)
        return false;
    for (uint32_t i = n; i > 0 && t->booking[i - 1].ticks == 0; i--)
        t->booking[i - 1].ticks = t->ticks;
    if (r->op->saves_in || r->op->saves_out) {
        const uint64_t place = (uint64_t)((const char *)r - t->arena.record_base) / 8;
        t->booking[n++] = (struct tape_booking){t->ticks, place, r->row, TAPE_BOOKED_READ};
        t->n_bookings = n;
    }
    return true;
}

void tape_account_settle_bookings(struct tape *t)
{
    if (t->charges_wait)
        TAPE_PARTS_CALL(charge, t);
    const uint64_t now = t->ticks;
    for (uint32_t i = 0; i < t->n_bookings; i++) {
        const struct tape_booking *b = &t->booking[i];
        t->ticks = b->ticks ? b->ticks : now;
        if (b->what == TAPE_BOOKED_TAKEN)
            buffer_take(t, b->row, TAPE_ADJOINT, b->bytes);
        else if (b->what == TAPE_BOOKED_GIVEN)
            buffer_give(t, b->row, b->bytes);
        else
            tape_residual_read(t, tape_record_at(t, (uint32_t)b->bytes));
    }
    t->n_bookings = 0;
    t->ticks = now;
}

/* A processor reads its time-stamp counter before loads that stand before it have ended: those of
 * the profiler's tables are waited for, or they would be time of the op that follows. */
static inline void own_work_ends(void)
{
#ifdef __x86_64__
    __builtin_ia32_lfence();
#endif
}

void tape_account_own(struct tape *t, uint64_t *stamp)
{
    own_work_ends();
    const uint64_t now = tape_clock(t);
    t->own_ticks += now - *stamp;
    tape_scope_own += now - *stamp;
    *stamp = now;
}

void tape_account_buffer(struct tape *t, uint32_t row, uint64_t n)
{
    if (t->hook && !booking_note(t, row, n, TAPE_BOOKED_TAKEN))
        buffer_take(t, row, TAPE_ADJOINT, n);
}

void tape_account_copy(struct tape *t, uint32_t row, uint64_t n)
{
    tape_account_settle(t);
    if (t->hook)
        buffer_take(t, row, TAPE_VALUE, n);
}

void tape_account_drop_copy(struct tape *t, uint32_t row, uint64_t n)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    row_give(t, row, TAPE_VALUE, n);
    row_give(t, TAPE_ROW_PADDING, TAPE_VALUE, padding_of(n));
}

void tape_account_free(struct tape *t, uint32_t row, uint64_t n)
{
    if (t->hook && !booking_note(t, row, n, TAPE_BOOKED_GIVEN))
        buffer_give(t, row, n);
}

void tape_account_free_value(struct tape *t, const struct tape_value *v, uint32_t row)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    const bool swept = t->residual && t->residual->cause == TAPE_BY_SWEEP;
    value_give(t, v, swept ? TAPE_BY_SWEEP : TAPE_BY_FRAME, row);
}

void tape_account_kept(struct tape *t, struct tape_record *r)
{
    if (t->hook)
        account_keep(t, r, tape_record_touches(t, r), false);
}

/* Before the first byte goes to the file, all that is live is memory. */
static void disk_begin(struct tape *t, enum tape_disk_how how)
{
    tape_account_settle(t);
    if (how != TAPE_DISK_BACK && t->ledger.memory_peak_bytes == 0)
        __atomic_store_n(&t->ledger.memory_peak_bytes, t->ledger.peak_bytes, __ATOMIC_RELAXED);
}

/* n bytes of a row are elsewhere now. */
static void disk_moved(struct tape *t, uint32_t row, uint64_t n, enum tape_disk_how how)
{
    if (how == TAPE_DISK_OUT) {
        TAPE_ADD(tape_row(t, row)->spilled_bytes, n);
        TAPE_ADD(t->ledger.spilled_bytes, n);
    } else if (how == TAPE_DISK_BACK) {
        memory_holds(t);
    }
}

void tape_account_disk(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n,
                       enum tape_disk_how how)
{
    if (!t->hook)
        return;
    disk_begin(t, how);
    disk_moved(t, row, tape_residual_disk(t, row, kind, n, how != TAPE_DISK_BACK), how);
}

void tape_account_disk_value(struct tape *t, const struct tape_value *v, enum tape_disk_how how)
{
    if (!t->hook)
        return;
    disk_begin(t, how);
    disk_moved(t, v->row, tape_residual_value_disk(t, v, how != TAPE_DISK_BACK), how);
}

void tape_account_drop_all(struct tape *t)
{
    if (!t->hook)
        return;
    tape_account_settle(t);
    tape_residual_drop_all(t);
    for (uint32_t i = 0; i < t->ledger.n_rows; i++)
        row_live(t, tape_row(t, i), 0 - tape_row(t, i)->live_bytes);
}

struct tape_hook *tape_account_attach(struct tape *t, struct tape_hook *hook)
{
    uint32_t session;
    if (t->unlisted)
        return NULL;
    const bool observes = tape_session_of(hook, &session);
    if (observes && hook->thread)
        t->now = tape_now_here(hook);
    if (!observes || hook->unaccounted)
        return NULL;
    if (t->session == session)
        return hook;
    t->entered.is = false;
    /* A new profile: count from zero, then charge what is on the tape already. */
    for (uint32_t i = 0; i < t->ledger.n_rows; i++) {
        struct tape_row *row = tape_row(t, i);
#define X(name) __atomic_store_n(&row->name, 0, __ATOMIC_RELAXED);
        ROW_COUNTERS(X)
#undef X
        row->kept_by = row->kept_others = 0;
        row->peak_stamp = 0;
    }
#define X(name) __atomic_store_n(&t->ledger.name, 0, __ATOMIC_RELAXED);
    TAPE_COUNTERS(X)
#undef X
    __atomic_store_n(&t->ledger.reserved_bytes, t->arena.reserved, __ATOMIC_RELAXED);
    __atomic_store_n(&t->ledger.touched_bytes, t->arena.touched, __ATOMIC_RELAXED);
    t->ticks = hook->clock();
    tape_residual_open(t);
    __atomic_store_n(&t->session, session, __ATOMIC_RELEASE);
    t->hook = hook;
    for (uint32_t v = 1; v < t->n_values; v++) {
        t->entries[v].flags &= ~(uint32_t)TAPE_KEPT;
        tape_account_value(t, &t->entries[v]);
    }
    TAPE_PARTS_CALL(account, t);
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        tape_account_record(t, r);
        const struct record_kind *kind = tape_record_kind(r);
        if (kind->account)
            kind->account(t, r);
        account_keep(t, r, tape_record_touches(t, r), true);
    }
    tape_account_guards(t, TAPE_NO_GUARD);
    return hook;
}

void tape_account_flush(struct tape *t, struct tape_hook *hook, uint64_t now)
{
    if (!tape_account_due(hook, now))
        return;
    tape_account_settle(t);
    if (!tape_account_counts(t))
        return;
    uint64_t start = hook->apart ? tape_clock(t) : 0;
    hook->flush(hook, &t->ledger, false);
    if (hook->apart && t->hook)
        tape_account_own(t, &start);
}

void tape_account_enter_observed(struct tape *t, struct tape_site site, const char *op)
{
    struct tape_hook *hook = t->hook;
    const uint32_t path = t->path, searched = t->sites.searched;
    t->entered.is = true;
    if (hook->path && !path)
        t->path = hook->path(hook, site.pc, t->root) + 1;
    t->entered.path = t->path;
    t->entered.row = hook->shapes ? TAPE_ROW_NONE : row_look_up(t, site, op);
    t->path = path;
    /* What was known of late lies in a near cache. */
    if (hook->apart && t->sites.searched != searched)
        own_work_ends();
    t->entered.start = tape_account_start(t);
}

void tape_account_ran(struct tape *t, uint32_t row, uint64_t start,
                      const struct tape_record *record, unsigned calls)
{
    if (!t->hook)
        return;
    const uint64_t now = t->hook->clock();
    start = tape_account_until(t, tape_row(t, row), start, now, calls);
    tape_account_event(t, TAPE_EVENT_FORWARD, row, record, start, now, calls == 0);
}

void tape_account_called(struct tape *t, uint32_t row)
{
    if (!t->hook)
        return;
    if (t->activity == TAPE_PHASE_RECOMPUTE)
        TAPE_ADD(tape_row(t, row)->recompute_calls, 1);
    else
        TAPE_ADD(tape_row(t, row)->calls, 1);
}

void tape_account_adopt(struct tape *t, const struct tape_value *v, struct tape_age age)
{
    tape_account_settle(t);
    if (t->hook)
        tape_residual_value_adopted(t, v, age);
}

struct tape_age tape_account_hand_over(struct tape *t, const struct tape_value *v)
{
    tape_account_settle(t);
    return t->hook ? tape_residual_value_left(t, v) : (struct tape_age){0, 0};
}

void tape_account_released(struct tape *t, const struct tape_value *v)
{
    tape_trace_released(t, v);
}

void tape_account_used(struct tape *t, uint32_t value)
{
    if (t->hook)
        tape_trace_used(t, 1, &value);
}
