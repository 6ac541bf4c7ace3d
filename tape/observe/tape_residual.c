/* tape_residual.c: classes of what a tape holds: {line that made it, op that needs it, kind}.
 *
 * See tape_residuals.h for what the counters mean.
 */
#include "tape_residual.h"

#include "tape_class.h"
#include "tape_kind.h"

#include <string.h>

enum {
    LEAST_SLOTS = 64,
    LEAST_VALUES = 64,
    LEAST_ROWS = 32,
    ROWS = TAPE_ROW_CHUNK * TAPE_ROW_CHUNKS,
    CLASSES_OF_ROWS = TAPE_CLASS_CHUNK * TAPE_CLASS_CHUNKS / 8 * 7, /* the others: of lines */
    CLASS_NONE = -1
};

/* Class 0, those of the padding row, which every buffer needs, and that of blocks' room. */
enum { CLASS_OTHER, CLASS_PADDING, CLASS_ROOM = CLASS_PADDING + TAPE_RESIDUAL_KINDS };

static uint64_t residual_hash_of(uint32_t producer, uint32_t consumer, uint32_t kind)
{
    /* The upper half depends on all bits. */
    return ((uint64_t)producer << 34 ^ (uint64_t)consumer << 2 ^ kind) * 0x9e3779b97f4a7c15u >> 32;
}

/* Appends a class. UINT32_MAX: there is no memory, or no room. */
static uint32_t classes_append(struct tape *t, struct tape_residual_state *s, uint32_t producer,
                               uint32_t consumer, uint32_t kind)
{
    struct tape_residuals *r = &s->shared;
    const uint32_t i = r->n_classes, c = i / TAPE_CLASS_CHUNK;
    if (c >= TAPE_CLASS_CHUNKS)
        return UINT32_MAX;
    if (!r->chunk[c]) {
        const size_t n = TAPE_CLASS_CHUNK * sizeof(struct tape_class);
        void *p = t->memory->resize(NULL, n, t->memory->payload);
        if (!p)
            return UINT32_MAX;
        memset(p, 0, n);
        r->chunk[c] = p;
    }
    struct tape_class *class_ = tape_class_at(r, i);
    class_->producer = producer;
    class_->consumer = consumer;
    class_->kind = kind;
    class_->peak_stamp = t->ledger.peak_count;
    class_->changed_ticks = t->ticks;
    __atomic_store_n(&r->n_classes, i + 1, __ATOMIC_RELEASE);
    return i;
}

static bool grow_slots(struct tape *t, struct tape_residual_state *s)
{
    const uint32_t n = s->n_slots ? 2 * s->n_slots : LEAST_SLOTS;
    uint32_t *slot = t->memory->resize(NULL, n * sizeof *slot, t->memory->payload);
    if (!slot)
        return false;
    memset(slot, 0, n * sizeof *slot);
    for (uint32_t k = 0; k < s->n_slots; k++) {
        if (!s->slot[k])
            continue;
        const struct tape_class *c = tape_class_at(&s->shared, s->slot[k] - 1);
        uint64_t h = residual_hash_of(c->producer, c->consumer, c->kind);
        while (slot[h & (n - 1)])
            h++;
        slot[h & (n - 1)] = s->slot[k];
    }
    if (s->slot)
        t->memory->release(s->slot, t->memory->payload);
    s->slot = slot;
    s->n_slots = n;
    return true;
}

static void residual_release(struct tape *t, struct tape_residual_state *s)
{
    const struct tape_memory *m = t->memory;
    for (uint32_t c = 0; c < TAPE_CLASS_CHUNKS && s->shared.chunk[c]; c++)
        m->release(s->shared.chunk[c], m->payload);
    tape_history_close(t, s);
    if (s->slot)
        m->release(s->slot, m->payload);
    if (s->of_row)
        m->release(s->of_row, m->payload);
    if (s->line_of)
        m->release(s->line_of, m->payload);
    if (s->value)
        m->release(s->value, m->payload);
    m->release(s, m->payload);
}

static struct tape_residual_state *residual_create(struct tape *t)
{
    struct tape_residual_state *s = t->memory->resize(NULL, sizeof *s, t->memory->payload);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    tape_history_clear(s);
    bool ok =
        grow_slots(t, s) && classes_append(t, s, TAPE_ROW_OTHER, 0, TAPE_RECORD) == CLASS_OTHER;
    for (uint32_t kind = 0; ok && kind < TAPE_RESIDUAL_KINDS; kind++)
        ok = classes_append(t, s, TAPE_ROW_PADDING, 0, kind) == CLASS_PADDING + kind;
    if (ok && classes_append(t, s, TAPE_ROW_ROOM, 0, TAPE_RECORD) == CLASS_ROOM)
        return s;
    residual_release(t, s);
    return NULL;
}

/* Classes keep their places, since a thread that looked at the last observation may read them. */
static void residual_clear(struct tape *t, struct tape_residual_state *s)
{
    for (uint32_t i = 0; i < s->shared.n_classes; i++) {
        struct tape_class *c = tape_class_at(&s->shared, i);
#define X(name) TAPE_CLASS_SET(c->name, 0);
        CLASS_COUNTERS(X)
#undef X
        tape_class_set_byte_ticks(c, 0);
        TAPE_CLASS_SET(c->shared, 0);
        TAPE_CLASS_SET(c->released_by, 0);
        TAPE_CLASS_SET(c->released_others, 0);
        TAPE_CLASS_SET(c->peak_stamp, 0);
        TAPE_CLASS_SET(c->changed_ticks, t->ticks);
    }
    s->full = s->refused = false;
    s->cause = TAPE_BY_CALL;
    tape_history_clear(s);
}

void tape_residual_open(struct tape *t)
{
    if (t->residual) {
        residual_clear(t, t->residual);
        return;
    }
    t->residual = residual_create(t);
    __atomic_store_n(&t->ledger.residuals, t->residual ? &t->residual->shared : NULL,
                     __ATOMIC_RELEASE);
}

void tape_residual_close(struct tape *t)
{
    if (t->residual)
        residual_release(t, t->residual);
    t->residual = NULL;
}

/* Notes the class of a row where it is found without a search. */
static uint32_t value_note(struct tape *t, uint32_t row, uint32_t kind, uint32_t class_)
{
    struct tape_residual_state *s = t->residual;
    if (row >= s->n_of_row) {
        const uint32_t n = row < LEAST_ROWS ? LEAST_ROWS : 2 * row;
        void *p = t->memory->resize(s->of_row, n * sizeof *s->of_row, t->memory->payload);
        if (!p)
            return class_;
        s->of_row = p;
        memset(s->of_row + s->n_of_row, 0, (n - s->n_of_row) * sizeof *s->of_row);
        s->n_of_row = n;
    }
    s->of_row[row][kind] = class_ + 1;
    return class_;
}

static int64_t class_find(const struct tape_residual_state *s, uint32_t producer, uint32_t consumer,
                          uint32_t kind)
{
    for (uint64_t h = residual_hash_of(producer, consumer, kind); s->slot[h & (s->n_slots - 1)];
         h++) {
        const uint32_t i = s->slot[h & (s->n_slots - 1)] - 1;
        const struct tape_class *c = tape_class_at(&s->shared, i);
        if (c->producer == producer && c->consumer == consumer && c->kind == kind)
            return i;
    }
    return CLASS_NONE;
}

static int64_t class_make(struct tape *t, uint32_t producer, uint32_t consumer, uint32_t kind)
{
    struct tape_residual_state *s = t->residual;
    if (s->shared.n_classes * 2 >= s->n_slots && !grow_slots(t, s))
        return CLASS_NONE;
    const uint32_t i = classes_append(t, s, producer, consumer, kind);
    if (i == UINT32_MAX)
        return CLASS_NONE;
    uint64_t h = residual_hash_of(producer, consumer, kind);
    while (s->slot[h & (s->n_slots - 1)])
        h++;
    s->slot[h & (s->n_slots - 1)] = i + 1;
    return i;
}

/* The row of the same line without its callers; the same at every call. */
static uint32_t residual_line_of(struct tape *t, uint32_t row)
{
    struct tape_residual_state *s = t->residual;
    if (s->line_of[row] == 0)
        s->line_of[row] = 1 + tape_account_row_of_line(t, row);
    return s->line_of[row] - 1;
}

/* Where rows have no class any more: that of their lines, so that a line still has its bytes. */
static uint32_t class_of_line(struct tape *t, uint32_t producer, uint32_t consumer, uint32_t kind)
{
    struct tape_residual_state *s = t->residual;
    if (!s->line_of && !s->refused && kind != TAPE_DISK) {
        s->line_of = t->memory->resize(NULL, ROWS * sizeof *s->line_of, t->memory->payload);
        if (s->line_of)
            memset(s->line_of, 0, ROWS * sizeof *s->line_of);
        s->refused = s->line_of == NULL;
    }
    if (!s->line_of || kind == TAPE_DISK)
        return CLASS_OTHER;
    producer = residual_line_of(t, producer);
    consumer = consumer ? 1 + residual_line_of(t, consumer - 1) : 0;
    int64_t i = class_find(s, producer, consumer, kind);
    if (i == CLASS_NONE && !s->refused)
        i = class_make(t, producer, consumer, kind);
    s->refused |= i == CLASS_NONE;
    return i == CLASS_NONE ? CLASS_OTHER : (uint32_t)i;
}

uint32_t tape_residual_class(struct tape *t, uint32_t producer, uint32_t consumer,
                             enum tape_residual_kind kind)
{
    struct tape_residual_state *s = t->residual;
    if (!s)
        return CLASS_OTHER;
    if (producer == TAPE_ROW_PADDING)
        return CLASS_PADDING + kind;
    if (producer == TAPE_ROW_ROOM)
        return CLASS_ROOM;
    int64_t i = class_find(s, producer, consumer, kind);
    const bool known = i != CLASS_NONE;
    /* What is given back must find the class that it was taken for: no class after a refusal. */
    if (!known && !s->full) {
        if (s->shared.n_classes < CLASSES_OF_ROWS)
            i = class_make(t, producer, consumer, kind);
        s->full = i == CLASS_NONE;
    }
    const uint32_t class_ =
        i != CLASS_NONE ? (uint32_t)i : class_of_line(t, producer, consumer, kind);
    const bool own = consumer == (kind == TAPE_SAVED ? producer + 1 : 0);
    return own && (known || s->full) ? value_note(t, producer, kind, class_) : class_;
}

static inline void class_shift_at_peak(struct tape *t, struct tape_class *c, uint32_t class_,
                                       uint64_t delta)
{
    tape_class_settle(t, c);
    if (c->peak_stamp == t->ledger.peak_count)
        TAPE_ADD(c->peak_bytes, delta);
    TAPE_ADD(c->live_bytes, delta);
    tape_history_class(t, class_, delta);
}

void tape_residual_shift_at_peak(struct tape *t, uint32_t class_, uint64_t delta)
{
    if (t->residual)
        class_shift_at_peak(t, tape_class_at(&t->residual->shared, class_), class_, delta);
}

void tape_residual_uncharge(struct tape *t, uint32_t class_, uint64_t n)
{
    if (!t->residual)
        return;
    struct tape_class *c = tape_class_at(&t->residual->shared, class_);
    TAPE_ADD(c->count, UINT64_MAX);
    TAPE_ADD(c->bytes, 0 - n);
    tape_class_change(t, class_, 0 - n);
}

/* ---- values ---- */

/* What is known of a value, or NULL: there was no memory. */
static struct tape_residual_value *value_known(const struct tape *t, uint32_t x)
{
    const struct tape_residual_state *s = t->residual;
    return x < s->n_values && s->value[x].class_ != UINT32_MAX ? &s->value[x] : NULL;
}

bool tape_residual_reserve(struct tape *t, uint32_t n)
{
    struct tape_residual_state *s = t->residual;
    if (n <= s->n_values)
        return true;
    uint64_t room = s->n_values ? s->n_values : LEAST_VALUES;
    while (room < n)
        room *= 2;
    if (room > UINT32_MAX)
        return false;
    void *p = t->memory->resize(s->value, room * sizeof *s->value, t->memory->payload);
    if (!p)
        return false;
    s->value = p;
    for (uint32_t i = s->n_values; i < room; i++)
        s->value[i].class_ = UINT32_MAX;
    s->n_values = (uint32_t)room;
    return true;
}

static struct tape_age age_now(const struct tape *t)
{
    return (struct tape_age){t->ticks, (uint32_t)t->ledger.peak_count};
}

/* Notes a value that is of this class from now on. */
static void note_value(struct tape *t, const struct tape_value *v, uint32_t class_,
                       struct tape_age age)
{
    const uint32_t x = tape_value_index(t, v);
    if (tape_residual_reserve(t, x + 1))
        t->residual->value[x] =
            (struct tape_residual_value){.born = age.born, .class_ = class_, .peaks = age.peaks};
}

void tape_residual_value_adopted(struct tape *t, const struct tape_value *v, struct tape_age age)
{
    if (t->residual)
        note_value(t, v, tape_residual_of_row(t, v->row, TAPE_VALUE), age);
}

void tape_residual_value_made(struct tape *t, const struct tape_value *v)
{
    if (!t->residual)
        return;
    const uint32_t class_ = tape_residual_of_row(t, v->row, TAPE_VALUE);
    const uint64_t n = tape_value_bytes(v);
    tape_residual_value_noted(t, tape_value_index(t, v), class_);
    tape_residual_take(t, class_, n);
    struct tape_class *c = tape_class_at(&t->residual->shared, class_);
    if (n > c->largest_bytes)
        TAPE_CLASS_SET(c->largest_bytes, n);
}

/* ---- the tape's file ---- */

/* From one class to another: first what grows less. */
static void disk_shift(struct tape *t, uint32_t of, uint32_t disk, uint64_t n, bool out)
{
    tape_class_change(t, out ? of : disk, 0 - n);
    tape_class_change(t, out ? disk : of, n);
    TAPE_ADD(t->ledger.disk_bytes, out ? n : 0 - n);
}

/* Where there was no memory for the class of what lies on disk, the bytes stay where they are. */
uint64_t tape_residual_disk(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n,
                            bool out)
{
    if (!t->residual || n == 0)
        return 0;
    const uint32_t of = tape_residual_of_row(t, row, kind),
                   disk = tape_residual_of_row(t, row, TAPE_DISK);
    if (disk == CLASS_OTHER || of == CLASS_OTHER || disk == of)
        return 0;
    disk_shift(t, of, disk, n, out);
    return n;
}

static uint64_t value_disk(struct tape *t, struct tape_residual_value *value, uint64_t n)
{
    const struct tape_class *of = tape_class_at(&t->residual->shared, value->class_);
    const uint32_t disk = tape_residual_class(t, of->producer, of->consumer, TAPE_DISK);
    if (disk == CLASS_OTHER || value->class_ == CLASS_OTHER)
        return 0;
    disk_shift(t, value->class_, disk, n > 0 ? n : value->disk, n > 0);
    n = n > 0 ? n : value->disk;
    value->disk = value->disk > 0 ? 0 : n;
    return n;
}

uint64_t tape_residual_value_disk(struct tape *t, const struct tape_value *v, bool out)
{
    struct tape_residual_value *value = t->residual ? value_known(t, tape_value_index(t, v)) : NULL;
    if (!value || out == (value->disk > 0))
        return 0;
    return value_disk(t, value, out ? tape_value_bytes(v) : 0);
}

/* What is about to change its class is of its own. */
static void value_from_disk(struct tape *t, struct tape_residual_value *value)
{
    if (__builtin_expect(value->disk > 0, 0))
        value_disk(t, value, 0);
}

uint32_t tape_residual_value_drop(struct tape *t, const struct tape_value *v)
{
    struct tape_residual_value *value = value_known(t, tape_value_index(t, v));
    if (!value)
        return tape_residual_of_row(t, v->row, TAPE_VALUE);
    value_from_disk(t, value);
    const uint32_t class_ = value->class_;
    if (value->read)
        TAPE_ADD(tape_class_at(&t->residual->shared, class_)->read_live_bytes,
                 0 - tape_value_bytes(v));
    value->class_ = UINT32_MAX;
    return class_;
}

void tape_residual_value_gone(struct tape *t, const struct tape_value *v,
                              enum tape_release_cause cause, uint32_t row)
{
    const uint64_t n = tape_value_bytes(v);
    if (!t->residual || n == 0)
        return;
    const uint32_t class_ = tape_residual_value_drop(t, v);
    struct tape_class *c = tape_class_give(t, class_, cause, n);
    if (row == TAPE_ROW_NONE)
        return;
    if (c->released_by && c->released_by != row + 1)
        TAPE_CLASS_SET(c->released_others, 1);
    else
        TAPE_CLASS_SET(c->released_by, row + 1);
}

/* The value was never of its old class. */
static void value_move(struct tape *t, struct tape_residual_value *value, uint32_t to, uint64_t n)
{
    struct tape_residuals *r = &t->residual->shared;
    const uint32_t from = value->class_;
    struct tape_class *a = tape_class_at(r, from), *b = tape_class_at(r, to);
    if (value->peaks != (uint32_t)t->ledger.peak_count) {
        class_shift_at_peak(t, a, from, 0 - n);
        class_shift_at_peak(t, b, to, n);
    } else {
        tape_class_change(t, from, 0 - n);
        tape_class_change(t, to, n);
    }
    const double byte_ticks = (double)n * tape_class_since(t, value->born);
    tape_class_add_byte_ticks(a, -byte_ticks);
    tape_class_add_byte_ticks(b, byte_ticks);
    if (b->bytes == 0 || value->born < b->first_ticks)
        TAPE_CLASS_SET(b->first_ticks, value->born);
    TAPE_ADD(a->count, -1);
    TAPE_ADD(a->bytes, 0 - n);
    TAPE_ADD(b->count, 1);
    TAPE_ADD(b->bytes, n);
    if (n > b->largest_bytes)
        TAPE_CLASS_SET(b->largest_bytes, n);
    value->class_ = to;
}

struct tape_age tape_residual_value_left(struct tape *t, const struct tape_value *v)
{
    const uint64_t n = tape_value_bytes(v);
    struct tape_residual_value *value =
        t->residual && n > 0 ? value_known(t, tape_value_index(t, v)) : NULL;
    if (!value)
        return age_now(t);
    const struct tape_age age = {value->born, value->peaks};
    const uint32_t to = tape_residual_of_row(t, v->row, TAPE_VALUE);
    value_from_disk(t, value);
    if (value->class_ != to && value->class_ != CLASS_OTHER) {
        struct tape_class *from = tape_class_at(&t->residual->shared, value->class_);
        if (value->read) {
            TAPE_ADD(from->read_live_bytes, 0 - n);
            TAPE_ADD(from->read_bytes, 0 - n);
        }
        value_move(t, value, to, n);
    }
    value->class_ = UINT32_MAX;
    return age;
}

void tape_residual_kept(struct tape *t, const struct tape_value *v, uint32_t keeper, bool first)
{
    const uint64_t n = tape_value_bytes(v);
    struct tape_residual_value *value =
        t->residual && n > 0 ? value_known(t, tape_value_index(t, v)) : NULL;
    if (!value || value->class_ == CLASS_OTHER)
        return;
    struct tape_class *c = tape_class_at(&t->residual->shared, value->class_);
    if (c->kind == TAPE_SAVED &&
        (c->consumer == keeper + 1 ||
         (t->residual->full &&
          value->class_ == tape_residual_class(t, v->row, keeper + 1, TAPE_SAVED))))
        return;
    if (c->kind == TAPE_SAVED)
        TAPE_CLASS_SET(c->shared, 1);
    const bool shared = c->kind == TAPE_SAVED;
    if (!first)
        return;
    const uint32_t to = tape_residual_class(t, v->row, keeper + 1, TAPE_SAVED);
    if (to == CLASS_OTHER)
        return;
    const bool on_disk = value->disk > 0;
    value_from_disk(t, value);
    value_move(t, value, to, n);
    if (on_disk)
        value_disk(t, value, n);
    if (shared)
        TAPE_CLASS_SET(tape_class_at(&t->residual->shared, to)->shared, 1);
}

static void value_mark_read(struct tape *t, const struct tape_value *v)
{
    const struct tape_value *root = &t->entries[v->root];
    if (!(root->flags & TAPE_OWNS_DATA))
        return;
    struct tape_residual_value *value = value_known(t, v->root);
    if (!value || value->read)
        return;
    struct tape_class *c = tape_class_at(&t->residual->shared, value->class_);
    if (c->kind != TAPE_SAVED)
        return;
    value->read = 1;
    TAPE_ADD(c->read_bytes, tape_value_bytes(root));
    TAPE_ADD(c->read_live_bytes, tape_value_bytes(root));
}

void tape_residual_read(struct tape *t, struct tape_record *r)
{
    if (!t->residual)
        return;
    const uint32_t touches = tape_record_touches(t, r);
    for (int i = 0; (i = tape_record_next(r, touches, i)) < r->n_in; i++)
        value_mark_read(t, &t->entries[tape_record_in(r)[i]]);
    const uint64_t saves = tape_record_saves_out(r);
    for (int o = 0; o < r->n_out; o++)
        if (saves >> o & 1)
            value_mark_read(t, &t->entries[tape_record_out(r)[o]]);
}

/* What is given back is given back as what it was; all that no value has are records. */
static void all_from_disk(struct tape *t, struct tape_residual_state *s)
{
    for (uint32_t x = 0; x < s->n_values; x++)
        if (s->value[x].class_ != UINT32_MAX)
            value_from_disk(t, &s->value[x]);
    for (uint32_t i = 0; i < s->shared.n_classes; i++) {
        const struct tape_class *c = tape_class_at(&s->shared, i);
        if (c->kind == TAPE_DISK && c->live_bytes > 0)
            disk_shift(t, tape_residual_of_row(t, c->producer, TAPE_RECORD), i, c->live_bytes,
                       false);
    }
}

void tape_residual_drop_all(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    if (s && t->ledger.disk_bytes > 0)
        all_from_disk(t, s);
    for (uint32_t i = 0; s && i < s->shared.n_classes; i++) {
        struct tape_class *c = tape_class_at(&s->shared, i);
        TAPE_CLASS_SET(c->read_live_bytes, 0);
        if (c->live_bytes > 0)
            tape_class_give(t, i, s->cause, c->live_bytes);
    }
    for (uint32_t x = 0; s && x < s->n_values; x++)
        s->value[x].class_ = UINT32_MAX;
}
