/* tape.c: a tape's life: create, mark, rewind, reset, destroy. */
#include "tape.h"

#include "tape_disk.h"
#include "tape_guard.h"
#include "tape_no_grad.h"
#include "tape_observer.h"
#include "tape_part.h"

#include <stdio.h>
#include <string.h>

static void site_describe_plainly(struct tape_site site, char *buf, size_t n)
{
    if (site.line)
        snprintf(buf, n, "line %u", site.line);
    else
        snprintf(buf, n, "%p", (void *)site.pc);
}

static uintptr_t site_locate_plainly(uint32_t low, uintptr_t near)
{
    return near + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)near);
}

/* Entry 0 stands for the result of an op that failed; it is part of the tape, not handed out. */
static void tape_begin(struct tape *t)
{
    t->n_values = 1;
    t->n_records = 0;
    t->last_record = UINT32_MAX;
    t->last_guard = TAPE_NO_GUARD;
    t->open = UINT32_MAX;
    t->n_frames = 0;
    t->has_released = false;
    t->arena.entry_top += sizeof(struct tape_value);
    t->no_grad = 0;
    TAPE_PARTS_CALL(begin, t);
}

/* All that parts keep, rounded so that each may hold any type. */
enum { TAPE_PART_ALIGNMENT = 16 };

static size_t part_bytes(size_t bytes)
{
    return (bytes + TAPE_PART_ALIGNMENT - 1) / TAPE_PART_ALIGNMENT * TAPE_PART_ALIGNMENT;
}

/* A tape of zeros, and what its parts keep behind it. */
static struct tape *tape_make(const struct tape_memory *memory)
{
    size_t bytes = part_bytes(sizeof(struct tape));
    for (const struct tape_part *const *part = tape_parts; *part; part++)
        bytes += part_bytes((*part)->bytes);
    struct tape *t = memory->resize(NULL, bytes, memory->payload);
    if (!t)
        return NULL;
    memset(t, 0, bytes);
    char *state = (char *)t + part_bytes(sizeof *t);
    for (const struct tape_part *const *part = tape_parts; *part; part++) {
        if ((*part)->attach)
            (*part)->attach(t, state);
        state += part_bytes((*part)->bytes);
    }
    return t;
}

/* The tape itself, which holds the functions that release it. */
static void tape_release_memory(struct tape *t)
{
    const struct tape_memory memory = t->own_memory;
    memory.release(t, memory.payload);
}

struct tape *tape_create(const struct tape_options *options)
{
    const struct tape_memory *memory = options->memory ? options->memory : &tape_memory_system;
    struct tape *t = tape_make(memory);
    if (!t)
        return NULL;
    t->own_memory = *memory;
    memory = t->memory = &t->own_memory;
    t->describe = options->describe ? options->describe : site_describe_plainly;
    t->locate = options->locate ? options->locate : site_locate_plainly;
    t->whole_bytes = options->whole_bytes;
    t->generation = 1;
    t->gradient_epoch = 1;
    t->n_seeds = 1;
    uint64_t budget = options->budget_bytes ? options->budget_bytes : tape_memory_default_budget();
    if (tape_arena_open(&t->arena, memory, options->reserve_bytes, budget,
                        !options->no_huge_pages) != 0)
        goto failed;
    t->entries = (struct tape_value *)(void *)t->arena.entry_base;
    tape_begin(t);
    if (tape_account_open(t) != 0)
        goto failed;
    t->unlisted = options->unlisted;
    if (!options->unlisted)
        tape_observer_add(t);
    return t;
failed:
    tape_account_close(t);
    tape_arena_close(&t->arena);
    tape_release_memory(t);
    return NULL;
}

void tape_destroy(struct tape *t)
{
    tape_observed(t);
    tape_account_moment(t);
    TAPE_PARTS_CALL(end, t);
    tape_observer_cause(t, TAPE_BY_DESTROY);
    tape_account_drop_all(t);
    tape_observer_remove(t);
    tape_account_close(t);
    tape_arena_close(&t->arena);
    if (t->marks)
        t->memory->release(t->marks, t->memory->payload);
    if (t->frames)
        t->memory->release(t->frames, t->memory->payload);
    if (t->calls.read)
        t->memory->release(t->calls.read, t->memory->payload);
    tape_release_memory(t);
}

void tape_reset(struct tape *t)
{
    tape_observed(t);
    tape_account_moment(t);
    tape_settle(t);
    TAPE_PARTS_CALL(reset, t);
    const enum tape_release_cause before = tape_observer_cause(t, TAPE_BY_RESET);
    tape_account_drop_all(t);
    tape_observer_cause(t, before);
    tape_observer_dropped(t);
    tape_arena_reset(&t->arena);
    tape_begin(t);
    t->generation++;
    t->gradient_epoch++;
    t->n_marks = 0;
    t->error.code = TAPE_OK;
    t->error.message[0] = 0;
}

struct tape_mark tape_mark_here(struct tape *t)
{
    tape_settle(t);
    struct tape_mark mark = {.arena = tape_arena_take_mark(&t->arena),
                             .generation = t->generation,
                             .n_values = t->n_values,
                             .last_record = t->last_record,
                             .last_guard = t->last_guard,
                             .n_records = t->n_records,
                             .frame = t->frame,
                             .no_grad = t->no_grad,
                             .no_grad_begun = t->no_grad_begun};
    TAPE_PARTS_CALL(mark, t, &mark);
    return mark;
}

uint32_t tape_mark(struct tape *t)
{
    bool ready = true;
    TAPE_PARTS_ALL(ready, reserve, t);
    if (!ready)
        return UINT32_MAX;
    struct tape_mark *marks =
        tape_array_reserve(t->memory, t->marks, t->n_marks + 1, &t->marks_size, sizeof *marks);
    if (!marks)
        return UINT32_MAX;
    t->marks = marks;
    t->marks[t->n_marks] = tape_mark_here(t);
    return t->n_marks++;
}

/* Buffers that a dropped value took from a block before the mark go back to the free lists. */
static void value_give_back(struct tape *t, const struct tape_value *v, const char *end)
{
    uint64_t n = tape_value_bytes(v);
    if ((v->flags & TAPE_OWNS_DATA) && (char *)v->array.data < end) {
        tape_disk_value_drop(t, v);
        tape_arena_free(&t->arena, v->array.data, n);
    }
    void *gradient = NULL;
    if (v->flags & TAPE_LEAF)
        gradient = v->adjoint;
    else if (v->flags & TAPE_RETAIN)
        gradient = tape_retained_of(t, v)->buffer;
    if (gradient && (char *)gradient < end)
        tape_arena_free(&t->arena, gradient, n);
}

void tape_drop_behind(struct tape *t, const struct tape_mark *mark)
{
    tape_settle(t);
    tape_account_drop_values(t, mark->n_values);
    for (uint32_t i = mark->n_values; i < t->n_values; i++)
        value_give_back(t, &t->entries[i], mark->arena.buffer_top);
    tape_account_drop_records(t, mark->last_record);
    TAPE_PARTS_CALL(rewind, t, mark, mark->arena.buffer_top);
    tape_account_drop_guards(t, mark->last_guard);
    tape_guard_drop(t, mark->last_guard);
    t->phase++;
    tape_arena_rewind(&t->arena, &mark->arena);
    t->n_values = mark->n_values;
    t->last_record = mark->last_record;
    t->n_records = mark->n_records;
    tape_no_grad_restore(t, mark);
    while (t->n_frames > 0 && t->frames[t->n_frames - 1].number > mark->frame)
        t->n_frames--;
}

void tape_rewind(struct tape *t, uint32_t level)
{
    tape_observed(t);
    tape_account_moment(t);
    const enum tape_release_cause before = tape_observer_cause(t, TAPE_BY_REWIND);
    tape_settle(t);
    tape_observer_rewinds(t, t->marks[level].n_records);
    tape_drop_behind(t, &t->marks[level]);
    tape_observer_cause(t, before);
    tape_observer_dropped(t);
    t->n_marks = level + 1;
    t->generation++;
    t->gradient_epoch++;
}
