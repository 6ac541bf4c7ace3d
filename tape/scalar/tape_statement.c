/* tape_statement.c: runs of statements: opened, closed, marked, rewound; leaves and tags.
 *
 * Blocks are buffers of the arena, each a quarter of what the statements before it take, from
 * BLOCK_LEAST up to BLOCK_MOST: at most a fifth of all blocks is room that is not filled yet, and a
 * long tape has few blocks.
 */
#include "tape_statement.h"

#include "tape_call.h"
#include "tape_disk.h"
#include "tape_fork.h"
#include "tape_nonfinite_scalars.h"
#include "tape_now.h"
#include "tape_preaccumulate.h"
#include "tape_record_watch.h"
#include "tape_scope.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

enum { BLOCK_LEAST = TAPE_BLOCK_LEAST, BLOCK_MOST = TAPE_BLOCK_MOST };

/* ---- the cursor ---- */

void tape_statement_attach(struct tape *t, struct tape_cursor *cursor)
{
    t->statements->cursor = cursor;
    tape_statement_shut(t->statements);
}

void tape_statement_detach(struct tape *t)
{
    tape_settle(t);
    *t->statements->cursor = (struct tape_cursor){.result = 0};
    t->statements->cursor = NULL;
}

uint64_t tape_run_bytes(const struct tape_run *run)
{
    return (uint64_t)((const char *)run->partial_end - (const char *)run->partial_begin) +
           (uint64_t)((const char *)run->word_begin - (const char *)run->word_end);
}

/* The run was given room for one statement alone, at the low end of the block's, and as many bytes
 * as rounding up may take were asked for besides. */
static void go_on_behind(struct tape_statements *s, const struct tape_run *run)
{
    s->rest.partial = (double *)(void *)(((uintptr_t)run->word_begin + 7) / 8 * 8);
    s->gaps += (uintptr_t)s->rest.partial - (uintptr_t)run->word_begin;
    s->rest.result = s->cursor->result;
}

static void run_close(struct tape *t, struct tape_run *run)
{
    struct tape_statements *s = t->statements;
    run->n = tape_cursor_next(&s->rest) - run->first;
    s->n += run->n;
    s->bytes += tape_run_bytes(run);
    tape_statement_shut(s);
    s->uncharged += t->hook != NULL;
}

/* Field by field: statements have just written them one by one, and a vector of two would have to
 * wait until they have reached the cache. What the cursor accepts of an older tag is not gone on
 * with in another run. */
static void cursor_follow(struct tape_cursor *to, const struct tape_cursor *from)
{
    to->partial = from->partial;
    to->word = from->word;
    to->result = from->result;
}

static void end_run(struct tape *t)
{
    struct tape_statements *s = t->statements;
    struct tape_run *run = tape_run_of(tape_record_at(t, t->open));
    t->open = UINT32_MAX;
    run->partial_end = s->cursor->partial;
    run->word_end = s->cursor->word;
    if (run->word_begin == s->rest.word)
        cursor_follow(&s->rest, s->cursor);
    else
        go_on_behind(s, run);
    run_close(t, run);
    if (t->nonfinite)
        tape_nonfinite_run(t, run);
}

void tape_run_end(struct tape *t, struct tape_run *run)
{
    run->partial_end = t->statements->rest.partial;
    run->word_end = t->statements->rest.word;
    run_close(t, run);
    tape_statement_charge(t);
}

void tape_statement_close(struct tape *t)
{
    tape_observed(t);
    end_run(t);
    if (t->hook && t->hook->apart && t->activity == TAPE_PHASE_BACKWARD)
        tape_statement_charge_later(t);
    else
        tape_statement_charge(t);
}

/* ---- records ---- */

static size_t statement_room_of(const struct tape_cursor *c)
{
    return (size_t)((char *)c->word - (char *)c->partial);
}

/* A block with room for `bytes`; little: no larger than need be. */
static bool block_take(struct tape *t, uint64_t bytes, bool little)
{
    struct tape_statements *s = t->statements;
    uint64_t size = little ? BLOCK_LEAST : s->bytes / 4;
    size = size < BLOCK_LEAST ? BLOCK_LEAST : size > BLOCK_MOST ? BLOCK_MOST : size;
    if (t->disk->on && size > t->disk->budget / TAPE_DISK_BLOCKS)
        size = t->disk->budget / TAPE_DISK_BLOCKS / BLOCK_LEAST * BLOCK_LEAST + BLOCK_LEAST;
    size = tape_arena_class_bytes(size); /* so that nothing is lost */
    struct tape_block *b = NULL;
    if (size < bytes + sizeof *b)
        size = (bytes + sizeof *b + 7) / 8 * 8;
    /* Near the budget's end a small one will do. */
    for (; !b && size >= BLOCK_LEAST && size >= bytes + sizeof *b; size /= 2)
        if ((b = tape_arena_buffer(&t->arena, size)))
            *b = (struct tape_block){.previous = s->block, .bytes = size};
    if (!b)
        return false;
    if (s->block) {
        s->block->padding = statement_room_of(&s->rest);
        tape_account_tail(t, s->block->padding);
    }
    tape_account_block(t, b);
    if (t->hook)
        __atomic_store_n(&t->ledger.touched_bytes, t->arena.touched, __ATOMIC_RELAXED);
    s->block = b;
    s->rest.partial = (double *)(void *)(b + 1);
    s->rest.word = (uint32_t *)(void *)((char *)b + b->bytes);
    return true;
}

struct tape_run *tape_run_begin(struct tape *t, struct tape_site site, uint32_t row)
{
    const struct tape_cursor *at = &t->statements->rest;
    const uint64_t peaks = t->ledger.peak_count;
    struct tape_record *r =
        tape_record_of_kind(t, &tape_statement_kind, sizeof(struct tape_run), 0, row);
    if (!r)
        return NULL;
    *tape_run_of(r) = (struct tape_run){.partial_begin = at->partial,
                                        .partial_end = at->partial,
                                        .word_begin = at->word,
                                        .word_end = at->word,
                                        .near = site.pc,
                                        .first = tape_cursor_next(at),
                                        .peaks = peaks};
    return tape_run_of(r);
}

bool tape_statement_open(struct tape *t, uint64_t bytes, const char *what, struct tape_site site)
{
    const uint32_t row = tape_account_row(t, site, tape_statement_kind.op.name);
    return tape_statement_open_row(t, bytes, what, site, row);
}

bool tape_statement_open_row(struct tape *t, uint64_t bytes, const char *what,
                             struct tape_site site, uint32_t row)
{
    struct tape_statements *s = t->statements;
    struct tape_hook *hook = t->hook;
    const uint64_t now = tape_clock(t);
    const uint32_t *const from = s->cursor->word;
    if (t->open != UINT32_MAX)
        end_run(t);
    struct tape_now *looks = hook ? tape_look_here(hook, s->cursor) : NULL;
    if (hook &&
        (tape_account_due(hook, now) || (looks && tape_look_waiting(looks) >= TAPE_LOOKS_MANY)))
        tape_statement_charge(t);
    const struct tape_cursor rest = s->rest; /* block_take changes these alone */
    struct tape_block *const block = s->block;
    const uint64_t peaks = t->ledger.peak_count;
    struct tape_run *run = NULL;
    /* A block must not have room for more statements than there are indices, by more than
     * TAPE_INDEX_LIMIT allows for. */
    const uint64_t left =
        (TAPE_INDEX_LIMIT - tape_cursor_next(&s->rest)) * (uint64_t)TAPE_STATEMENT_LEAST;
    const bool last = left < BLOCK_MOST;
    const uint64_t asked = bytes + (t->nonfinite ? sizeof(uint32_t) : 0);
    if ((s->block && !last && statement_room_of(&s->rest) >= asked) || block_take(t, asked, last))
        run = tape_run_begin(t, site, row);
    if (!run) {
        if (s->block && s->block != block)
            tape_block_drop(t, s->block, NULL);
        s->block = block;
        s->rest = rest;
        tape_statement_charge(t);
        tape_fail_memory(t, site, what);
        return false;
    }
    run->peaks = peaks;
    if (t->nonfinite) { /* room for this alone */
        run->word_begin = (uint32_t *)(void *)s->rest.partial + bytes / sizeof(uint32_t);
        run->word_end = run->word_begin;
    }
    t->open = t->last_record;
    cursor_follow(s->cursor, &s->rest);
    s->cursor->word = (uint32_t *)(uintptr_t)run->word_begin;
    if (looks)
        tape_look_moved(looks, from, run->word_begin);
    if (hook)
        tape_account_flush(t, hook, now);
    return true;
}

uint32_t tape_statement_results(struct tape *t, uint32_t n)
{
    struct tape_statements *s = t->statements;
    const uint32_t first = tape_cursor_next(&s->rest);
    s->rest.result += n;
    tape_statement_shut(s);
    return first;
}

bool tape_statement_room(struct tape *t, uint64_t bytes, struct tape_site site, uintptr_t caller)
{
    struct tape_statements *s = t->statements;
    tape_observed(t);
    if (t->no_grad || t->error.code != TAPE_OK) {
        tape_settle(t);
        return false;
    }
    if (__builtin_expect(!tape_call_takes_scalars(t), 0)) {
        tape_call_refuse_scalars(t, tape_statement_kind.op.name, site);
        return false;
    }
    if (s->calling) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "statement: recorded by a callback, while the tape calls it");
        return false;
    }
    if (tape_statement_next(t) >= TAPE_INDEX_LIMIT) {
        tape_settle(t);
        tape_fail(t, TAPE_ERROR_LIMIT, site, "statement: the tape has all of its %u indices",
                  (unsigned)TAPE_INDEX_LIMIT);
        return false;
    }
    struct tape_hook *paths = tape_path_hook(t);
    if (paths)
        t->path = paths->path(paths, caller, t->root) + 1;
    const bool open = tape_statement_open(t, bytes, tape_statement_kind.op.name, site);
    tape_path_end(t);
    return open;
}

void tape_statement_count(const struct tape *t, uint64_t *n, uint64_t *bytes)
{
    const struct tape_statements *s = t->statements;
    *n = s->n;
    *bytes = s->bytes;
    if (t->open == UINT32_MAX)
        return;
    struct tape_run run = *tape_run_of(tape_record_at(t, t->open));
    run.partial_end = s->cursor->partial;
    run.word_end = s->cursor->word;
    *n += tape_cursor_next(s->cursor) - run.first;
    *bytes += tape_run_bytes(&run);
}

uint64_t tape_statement_unused(const struct tape *t)
{
    const struct tape_statements *s = t->statements;
    if (!s->block)
        return 0;
    uint64_t room = statement_room_of(&s->rest) + s->gaps;
    if (t->open != UINT32_MAX) {
        struct tape_run run = *tape_run_of(tape_record_at(t, t->open));
        run.partial_end = s->cursor->partial;
        run.word_end = s->cursor->word;
        room -= tape_run_bytes(&run);
    }
    return room;
}

/* ---- leaves ---- */

static bool range_append(struct tape *t, struct tape_leaf_range range)
{
    struct tape_statements *s = t->statements;
    struct tape_leaf_range *leaves =
        tape_array_reserve(t->memory, s->leaves, s->n_leaves + 1, &s->leaves_size, sizeof *leaves);
    if (!leaves)
        return false;
    s->leaves = leaves;
    s->leaves[s->n_leaves++] = range;
    return true;
}

enum tape_status tape_statement_leaves(struct tape *t, int64_t n, const double *values,
                                       struct tape_site site, uint32_t *first)
{
    struct tape_statements *s = t->statements;
    tape_observed(t);
    tape_settle(t);
    if (t->sections->n > 0)
        return tape_section_refuse(t, "real_leaves", site);
    const uint32_t next = tape_cursor_next(&s->rest), left = tape_statement_left(t);
    if (n > (int64_t)left)
        return tape_fail(t, TAPE_ERROR_LIMIT, site, "real_leaves: %lld, and %u indices are left",
                         (long long)n, (unsigned)left);
    if (t->nonfinite && tape_nonfinite_numbers(t, "real_leaves", "x", n, values, site) != TAPE_OK)
        return t->error.code;
    const struct tape_point point = tape_point_take(t);
    uint32_t value;
    enum tape_status status =
        tape_borrow(t, KERNEL_F64, 1, &n, values, TAPE_GIVEN_LEAF, site, &value);
    if (status != TAPE_OK)
        return status;
    struct tape_value *v = &t->entries[value];
    v->array.data = NULL; /* nobody reads it: the elements know their values */
    struct tape_record *r =
        tape_record_of_kind(t, &tape_leaves_kind, sizeof(struct tape_leaves), 0, v->row);
    if (!r || !range_append(t, (struct tape_leaf_range){next, (uint32_t)n, value})) {
        if (r) {
            tape_account_drop_record(t, r);
            t->last_record = r->previous;
            t->n_records--;
        }
        tape_account_drop_value(t, v);
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, "real_leaves");
    }
    *tape_leaves_of(r) = (struct tape_leaves){next, (uint32_t)n};
    tape_record_in(r)[0] = value;
    *first = tape_statement_results(t, (uint32_t)n);
    tape_watch_numbers(t, tape_leaves_kind.op.name, site, *first, (uint32_t)n,
                       n > 0 ? values[0] : (double)NAN);
    return TAPE_OK;
}

bool tape_statement_leaf(const struct tape *t, uint32_t index, uint32_t *value, uint32_t *element)
{
    const struct tape_statements *s = t->statements;
    uint32_t low = 0, high = s->n_leaves; /* the last range that begins at or before the index */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->leaves[middle].first <= index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || index - s->leaves[low - 1].first >= s->leaves[low - 1].n)
        return false;
    *value = s->leaves[low - 1].value;
    *element = index - s->leaves[low - 1].first;
    return true;
}

/* ---- the tape's life ---- */

void tape_statement_begin(struct tape *t)
{
    struct tape_statements *s = t->statements;
    t->open = UINT32_MAX;
    s->rest = (struct tape_cursor){.result = (uint64_t)t->fork->base + 1};
    s->block = NULL;
    s->n = s->bytes = s->gaps = 0;
    s->n_leaves = s->n_elements = s->n_gathers = s->n_lines = s->fixed_lines = 0;
    s->adjoint = NULL;
    t->sections->n = 0;
    s->n_epochs = 0;
    s->fused_loops.life++;
    s->fused_loops.room[0] = s->fused_loops.room[1] = 0;
    if (s->slot)
        tape_statement_retag(t);
}

void tape_statement_end(struct tape *t)
{
    struct tape_statements *s = t->statements;
    tape_settle(t);
    if (s->tags)
        t->memory->release(s->tags, t->memory->payload);
    if (s->leaves)
        t->memory->release(s->leaves, t->memory->payload);
    tape_sections_end(t);
    if (s->lines)
        t->memory->release(s->lines, t->memory->payload);
    if (s->charge)
        t->memory->release(s->charge, t->memory->payload);
    if (s->fused_loops.seen)
        t->memory->release(s->fused_loops.seen, t->memory->payload);
}

struct tape_statement_mark tape_statement_mark_here(const struct tape *t)
{
    const struct tape_statements *s = t->statements;
    return (struct tape_statement_mark){.rest = s->rest,
                                        .block = s->block,
                                        .n = s->n,
                                        .bytes = s->bytes,
                                        .gaps = s->gaps,
                                        .n_leaves = s->n_leaves,
                                        .n_elements = s->n_elements,
                                        .n_gathers = s->n_gathers,
                                        .n_lines = s->n_lines,
                                        .section = t->sections->number};
}

void tape_block_drop(struct tape *t, struct tape_block *b, const char *end)
{
    tape_account_drop_block(t, b);
    tape_disk_forget(t, b);
    if (b->previous) {
        tape_account_tail_back(t, b->previous->padding);
        b->previous->padding = 0;
    }
    if (!end || (char *)b < end)
        tape_arena_free(&t->arena, b, b->bytes);
}

void tape_statement_rewind(struct tape *t, const struct tape_statement_mark *mark, const char *end)
{
    struct tape_statements *s = t->statements;
    tape_settle(t);
    tape_sections_drop(t, mark->section);
    for (struct tape_block *b = s->block, *previous; b != mark->block; b = previous) {
        previous = b->previous;
        tape_block_drop(t, b, end);
    }
    if (mark->block)
        tape_disk_take(t, mark->block);
    const bool more = tape_cursor_next(&s->rest) != tape_cursor_next(&mark->rest);
    s->fused_loops.life++;
    s->block = mark->block;
    s->n = mark->n;
    s->bytes = mark->bytes;
    s->gaps = mark->gaps;
    s->n_leaves = mark->n_leaves;
    s->n_elements = mark->n_elements;
    s->n_gathers = mark->n_gathers;
    s->n_lines = mark->n_lines > s->fixed_lines ? mark->n_lines : s->fixed_lines;
    const uint64_t tag = s->rest.result >> 32;
    s->rest = mark->rest;
    s->rest.result = tag << 32 | tape_cursor_next(&mark->rest);
    if (more && s->slot)
        tape_statement_retag(t);
    tape_statement_shut(s);
}
