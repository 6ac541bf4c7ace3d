/* test_arena.c: bump allocation, size classes, marks, budget, and memory that is refused.
 *
 * Random operations are compared with a shadow model that fills every block with a pattern of its
 * own, so that a block handed out twice is seen.
 */
#include "ad_internal.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

enum { MIB = 1 << 20, MOST_BLOCKS = 400, MOST_MARKS = 12 };

/* A memory that counts, refuses reservations above a size, and fails its n-th call. */
struct fake {
    size_t largest;
    int calls, fail_at, live, reservations;
};

static bool refused(struct fake *f)
{
    return ++f->calls == f->fail_at;
}

static void *fake_reserve(size_t n, void *payload)
{
    struct fake *f = payload;
    f->reservations++;
    if (refused(f) || (f->largest && n > f->largest))
        return NULL;
    void *p = tape_memory_system.reserve(n, NULL);
    f->live += p != NULL;
    return p;
}

static void fake_unreserve(void *p, size_t n, void *payload)
{
    ((struct fake *)payload)->live--;
    tape_memory_system.unreserve(p, n, NULL);
}

static void *fake_resize(void *p, size_t n, void *payload)
{
    struct fake *f = payload;
    if (refused(f))
        return NULL;
    f->live += p == NULL;
    return realloc(p, n);
}

static void fake_release(void *p, void *payload)
{
    ((struct fake *)payload)->live -= p != NULL;
    free(p);
}

static struct tape_memory memory_of(struct fake *f)
{
    return (struct tape_memory){.reserve = fake_reserve,
                                .unreserve = fake_unreserve,
                                .resize = fake_resize,
                                .release = fake_release,
                                .payload = f};
}

static uint64_t seed = 20240229;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static void check_class(uint64_t n)
{
    uint64_t c = tape_arena_class_bytes(n);
    ck_assert_uint_ge(c, n);
    ck_assert_uint_eq(c % 64, 0);
    ck_assert_uint_eq(tape_arena_class_bytes(c), c);
    if (n > 1024)
        ck_assert_uint_le(c - n, n / 8);
    else
        ck_assert_uint_lt(c - n, n ? 64 : 65);
}

TEST(a_size_class_wastes_at_most_an_eighth)
{
    uint64_t last = 0;
    for (uint64_t n = 0; n < 20000; n++) {
        check_class(n);
        ck_assert_uint_ge(tape_arena_class_bytes(n), last);
        last = tape_arena_class_bytes(n);
    }
    for (int shift = 14; shift < 62; shift++) {
        uint64_t power = (uint64_t)1 << shift;
        check_class(power - 1);
        check_class(power);
        check_class(power + 1);
        check_class(power + draw(power));
    }
}

TEST(buffers_are_aligned_and_a_freed_one_serves_its_class_again)
{
    struct tape_arena a;
    ck_assert_int_eq(tape_arena_open(&a, &tape_memory_system, 16 * MIB, MIB, false), 0);
    for (uint64_t n = 0; n < 3000; n += 97)
        ck_assert_uint_eq((uintptr_t)tape_arena_buffer(&a, n) % 64, 0);
    void *p = tape_arena_buffer(&a, 1000), *q = tape_arena_buffer(&a, 2000);
    uint64_t live = a.live, touched = a.touched;
    tape_arena_free(&a, p, 1000);
    tape_arena_free(&a, q, 2000);
    ck_assert_ptr_eq(tape_arena_buffer(&a, 1999), q);
    ck_assert_ptr_eq(tape_arena_buffer(&a, 1024), p);
    ck_assert_uint_eq(a.live, live);
    ck_assert_uint_eq(a.touched, touched);
    tape_arena_close(&a);
}

/* ---- the shadow model ---- */

struct block {
    unsigned char *p;
    uint64_t n;
    int level;
    unsigned char pattern;
};

struct model {
    struct tape_arena arena;
    struct block block[MOST_BLOCKS];
    int n_blocks, n_marks;
    uint64_t bump; /* entries and records */
    struct {
        struct tape_arena_mark mark;
        uint64_t bump;
    } marks[MOST_MARKS];
};

static void check_block(const struct block *b)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < b->n; i++)
        kept += b->p[i] == b->pattern;
    ck_assert_msg(kept == b->n, "a block of %llu bytes was handed out twice",
                  (unsigned long long)b->n);
}

static void model_allocate(struct model *m)
{
    uint64_t n = draw(4) ? draw(700) : draw(40000);
    if (m->n_blocks == MOST_BLOCKS)
        return;
    unsigned char *p = tape_arena_buffer(&m->arena, n);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % 64, 0);
    unsigned char pattern = (unsigned char)draw(256);
    memset(p, pattern, n);
    m->block[m->n_blocks++] = (struct block){p, n, m->n_marks, pattern};
}

/* As the tape does: what was allocated before a mark is not freed behind it. */
static void model_free(struct model *m)
{
    if (m->n_blocks == 0)
        return;
    int i = (int)draw((uint64_t)m->n_blocks);
    struct block *b = &m->block[i];
    if (b->level != m->n_marks)
        return;
    check_block(b);
    tape_arena_free(&m->arena, b->p, b->n);
    *b = m->block[--m->n_blocks];
}

static void model_mark(struct model *m)
{
    if (m->n_marks == MOST_MARKS)
        return;
    m->marks[m->n_marks].bump = m->bump;
    m->marks[m->n_marks++].mark = tape_arena_take_mark(&m->arena);
}

static void model_rewind(struct model *m)
{
    if (m->n_marks == 0)
        return;
    int level = (int)draw((uint64_t)m->n_marks);
    const struct tape_arena_mark *mark = &m->marks[level].mark;
    int kept = 0;
    for (int i = 0; i < m->n_blocks; i++) {
        check_block(&m->block[i]);
        if (m->block[i].level <= level)
            m->block[kept++] = m->block[i];
        else if ((char *)m->block[i].p < mark->buffer_top)
            tape_arena_free(&m->arena, m->block[i].p, m->block[i].n);
    }
    m->n_blocks = kept;
    tape_arena_rewind(&m->arena, mark);
    m->bump = m->marks[level].bump;
    m->n_marks = level + (int)draw(2); /* the mark itself may stay */
}

static void model_bump(struct model *m)
{
    size_t n = 8 * (size_t)draw(12);
    char *p = draw(2) ? tape_arena_entry(&m->arena, n) : tape_arena_record(&m->arena, n);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % 8, 0);
    memset(p, 0xee, n);
    m->bump += n;
}

static void model_reset(struct model *m)
{
    if (draw(200))
        return;
    tape_arena_reset(&m->arena);
    m->n_blocks = m->n_marks = 0;
    m->bump = 0;
}

static void model_check(const struct model *m)
{
    uint64_t live = m->bump;
    for (int i = 0; i < m->n_blocks; i++)
        live += tape_arena_class_bytes(m->block[i].n);
    ck_assert_uint_eq(m->arena.live, live);
    ck_assert_uint_ge(m->arena.peak, live);
}

TEST(random_operations_never_hand_out_a_block_twice)
{
    static void (*const step[])(struct model *) = {model_allocate, model_allocate, model_allocate,
                                                   model_free,     model_free,     model_mark,
                                                   model_rewind,   model_bump,     model_reset};
    static struct model m;
    ck_assert_int_eq(tape_arena_open(&m.arena, &tape_memory_system, 256 * MIB, 256 * MIB, false),
                     0);
    for (int i = 0; i < 20000; i++) {
        step[draw(sizeof step / sizeof step[0])](&m);
        model_check(&m);
    }
    for (int i = 0; i < m.n_blocks; i++)
        check_block(&m.block[i]);
    tape_arena_close(&m.arena);
}

/* ---- limits ---- */

TEST(the_budget_is_never_exceeded_and_a_refusal_changes_nothing)
{
    struct tape_arena a;
    ck_assert_int_eq(tape_arena_open(&a, &tape_memory_system, 16 * MIB, 4096, false), 0);
    void *p = tape_arena_buffer(&a, 2048);
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_nonnull(tape_arena_record(&a, 1024));
    ck_assert_ptr_nonnull(tape_arena_entry(&a, 1024));
    ck_assert_uint_eq(a.live, 4096);
    struct tape_arena before = a;
    ck_assert_ptr_null(tape_arena_buffer(&a, 1));
    ck_assert_ptr_null(tape_arena_record(&a, 16));
    ck_assert_ptr_null(tape_arena_entry(&a, 8));
    ck_assert_ptr_null(tape_arena_buffer(&a, UINT64_MAX));
    ck_assert_ptr_null(tape_arena_buffer(&a, (uint64_t)1 << 62));
    a.refused = before.refused; /* for the message alone */
    ck_assert_mem_eq(&a, &before, sizeof a);
    tape_arena_free(&a, p, 2048);
    ck_assert_ptr_null(tape_arena_buffer(&a, 2049));
    ck_assert_ptr_eq(tape_arena_buffer(&a, 2048), p);
    ck_assert_uint_eq(a.peak, 4096);
    tape_arena_close(&a);
}

TEST(each_part_of_the_reservation_ends_where_the_next_begins)
{
    struct tape_arena a;
    ck_assert_int_eq(tape_arena_open(&a, &tape_memory_system, 1, UINT64_MAX, false), 0);
    ck_assert_uint_eq(a.reserved, 2 * MIB);
    char *p, *end = a.base;
    while ((p = tape_arena_entry(&a, 64)))
        memset(end = p, 1, 64);
    ck_assert(end + 64 <= a.record_base);
    while ((p = tape_arena_record(&a, 64)))
        memset(end = p, 2, 64);
    ck_assert(end + 64 <= a.buffer_base);
    while ((p = tape_arena_buffer(&a, 4096)))
        memset(end = p, 3, 4096);
    ck_assert(end + 4096 <= a.base + a.reserved);
    ck_assert_int_eq(a.entry_base[0], 1);
    ck_assert_int_eq(a.record_base[0], 2);
    tape_arena_close(&a);
}

TEST(a_reservation_is_halved_until_it_succeeds)
{
    struct fake f = {.largest = 8 * MIB};
    struct tape_memory memory = memory_of(&f);
    struct tape_arena a;
    ck_assert_int_eq(tape_arena_open(&a, &memory, 0, MIB, true), 0);
    ck_assert_uint_eq(a.reserved, 8 * MIB);
    ck_assert_int_eq(f.reservations, 14); /* 64 GiB is 2^13 times 8 MiB */
    tape_arena_close(&a);
    ck_assert_int_eq(f.live, 0);
}

TEST(a_reservation_that_never_succeeds_is_an_error)
{
    struct fake f = {.largest = 1};
    struct tape_memory memory = memory_of(&f);
    struct tape_arena a;
    ck_assert_int_eq(tape_arena_open(&a, &memory, 0, MIB, true), -1);
    ck_assert_ptr_null(tape_create(&(struct tape_options){.memory = &memory}));
    ck_assert_int_eq(f.live, 0);
}

TEST(a_tape_whose_nth_allocation_fails_leaks_nothing)
{
    struct tape *t = NULL;
    int n;
    for (n = 1; !t && n < 100; n++) {
        struct fake f = {.fail_at = n, .largest = 2 * MIB};
        struct tape_memory memory = memory_of(&f);
        t = tape_create(&(struct tape_options){.memory = &memory, .reserve_bytes = 2 * MIB});
        ck_assert(t || f.live == 0);
        if (!t)
            continue;
        ck_assert_int_lt(f.calls, n); /* it succeeds only where nothing has failed */
        tape_destroy(t);
        ck_assert_int_eq(f.live, 0);
    }
    ck_assert_int_gt(n, 3);
    ck_assert_ptr_nonnull(t);
}

TEST(a_mark_whose_table_cannot_grow_is_refused_and_the_tape_lives)
{
    struct fake f = {0};
    struct tape_memory memory = memory_of(&f);
    struct tape *t =
        tape_create(&(struct tape_options){.memory = &memory, .reserve_bytes = 2 * MIB});
    uint32_t level = 0, out;
    const double one = 1;
    ck_assert_ptr_nonnull(t);
    f.fail_at = f.calls + 3;
    for (int i = 0; i < 40 && level != UINT32_MAX; i++)
        level = tape_mark(t);
    ck_assert_uint_eq(level, UINT32_MAX);
    ck_assert_int_eq(tape_scalar(t, KERNEL_F64, &one, (struct tape_site){0, 0}, &out), TAPE_OK);
    tape_rewind(t, 0);
    ck_assert_uint_eq(t->n_values, 1);
    tape_destroy(t);
    ck_assert_int_eq(f.live, 0);
}

/* ---- the memory of whole tapes ---- */

/* A training step, a second derivative in it. */
static ad_status step(ad_tape tape)
{
    static double matrix[24 * 24];
    ad_tensor g, x = ad_leaf(tape, AD_F64, 2, SHAPE(24, 24), matrix);
    ad_tensor h = ad_tanh(ad_matmul(x, ad_transpose(x)));
    ad_tensor y = ad_mean(ad_square(ad_add(h, x)));
    ad_status status = ad_create_graph(y, (ad_tensor){0}, 1, &x, &g);
    return status == AD_OK ? ad_backward(ad_add(ad_sum(ad_square(g)), y)) : status;
}

static ad_status step_within(uint64_t budget)
{
    ad_tape tape;
    ad_stats before, after;
    ad_tape_options options = {.reserve_bytes = 2 * MIB, .budget_bytes = budget};
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ad_mark mark = ad_tape_mark(tape);
    ad_status status = step(tape);
    if (status != AD_OK) {
        ck_assert_msg(status == AD_ERROR_MEMORY, "%s", ad_tape_message(tape));
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "out of memory: "));
        ad_tape_clear_error(tape);
    }
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_uint_le(after.peak_bytes, budget);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    return status;
}

TEST(each_budget_below_what_a_step_needs_is_an_error_and_no_more)
{
    int failures = 0;
    for (uint64_t budget = 256; step_within(budget) != AD_OK; budget += 512)
        failures++;
    ck_assert_int_gt(failures, 50);
}

static void cycle(ad_tape tape, int i, ad_tensor x, ad_mark mark)
{
    static double data[500];
    int64_t n = 1 + i % 97, m = 1 + i % 5;
    ad_mark inner = {0, 0, 0, 0};
    ad_tensor late = ad_leaf(tape, AD_F64, 2, SHAPE(m, n), data);
    ad_tensor h = ad_tanh(ad_add(late, ad_broadcast_to(ad_sum(x), SHAPE(m, n), 2)));
    if (i % 3 == 0)
        ad_retain_gradient(h);
    if (i % 2 == 0)
        inner = ad_tape_mark(tape);
    ck_assert_int_eq(ad_backward(ad_sum(ad_matmul(h, ad_transpose(h)))), AD_OK);
    if (i % 2 == 0)
        ad_tape_rewind(tape, inner);
    ck_assert_int_eq(ad_backward(ad_mean(ad_exp(h))), AD_OK);
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    if (i % 7 == 0) {
        ad_transpose(x);
        ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
        ad_tape_clear_error(tape);
    }
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
}

static int free_blocks(const struct tape_arena *a)
{
    int n = 0;
    for (uint32_t k = 0; k < a->n_classes; k++)
        for (const struct tape_arena_block *b = a->free[k]; b; b = b->next)
            n++;
    return n;
}

TEST(memory_does_not_grow_over_cycles_of_mark_record_sweep_rewind)
{
    enum { PERIOD = 97 * 5 * 6 * 7 };
    static const double three[3] = {1, 2, 3};
    ad_tape tape;
    ad_stats first, now = {0};
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const struct tape_arena *arena = &ad_slots[tape.slot].tape->arena;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), three);
    ck_assert_int_eq(ad_backward(ad_sum(ad_exp(x))),
                     AD_OK); /* leaves free blocks before the mark */
    ad_mark mark = ad_tape_mark(tape);
    int n_free = free_blocks(arena);
    ad_tape_stats(tape, &first);
    uint64_t peak = 0, touched = 0;
    for (int i = 0; i < 2 * PERIOD; i++) {
        if (i == PERIOD) {
            peak = now.peak_bytes;
            touched = arena->touched;
        }
        cycle(tape, i, x, mark);
        ad_tape_stats(tape, &now);
        ck_assert(now.live_bytes == first.live_bytes && now.values == first.values);
        ck_assert_int_eq(free_blocks(arena), n_free);
        ck_assert(now.records == first.records && now.reserved_bytes == first.reserved_bytes);
    }
    ck_assert_uint_eq(now.peak_bytes, peak);
    ck_assert_uint_eq(arena->touched, touched);
    ck_assert_uint_lt(touched, MIB);
    ck_assert_int_gt(n_free, 0);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

RUN_TESTS(NULL, NULL)
