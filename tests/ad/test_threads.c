/* test_threads.c: tapes in several threads, observed or not, and handles in the wrong thread.
 *
 * Threads count their failures; the test's own thread asserts.
 */
#include <tapescope/ad.h>

#include "run_cases.h"
#include "tape.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 60, STORM = 300, SIZE = 64 };

static const ad_tape_options small = {.budget_bytes = 16 << 20, .reserve_bytes = 16 << 20};

/* ---- an observer ---- */

static uint64_t ticks, flushes, finals, wrong_sums;

static uint64_t read_clock(void)
{
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

static uint64_t read_counter(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    uint64_t bytes = 0, live = 0;
    uint32_t n = __atomic_load_n(&ledger->n_rows, __ATOMIC_ACQUIRE);
    __atomic_store_n(&hook->due, read_clock() + 50, __ATOMIC_RELAXED);
    __atomic_add_fetch(&flushes, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        bytes += read_counter(&row->record_bytes) + read_counter(&row->value_bytes) +
                 read_counter(&row->adjoint_bytes);
        live += read_counter(&row->live_bytes);
    }
    if (!final)
        return; /* an op may be under way */
    __atomic_add_fetch(&finals, 1, __ATOMIC_RELAXED);
    if (bytes != read_counter(&ledger->handed_out_bytes) || live != 0)
        __atomic_add_fetch(&wrong_sums, 1, __ATOMIC_RELAXED);
}

static struct tape_hook hook = {.abi = TAPE_HOOK_ABI, .clock = read_clock, .flush = flush};

/* ---- work ---- */

struct worker {
    pthread_t thread;
    int number, wrong;
    ad_tape tape;
    ad_tensor x;
    ad_status status[16];
    char message[256];
    ad_tape made[STORM];
};

static struct worker workers[THREADS];

static void start_all(void *(*run)(void *))
{
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
}

static void join_all(void)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_msg(workers[i].wrong == 0, "thread %d: %d failures: %s", i, workers[i].wrong,
                      workers[i].message);
}

static void run_one(void *(*run)(void *), struct worker *w)
{
    ck_assert_int_eq(pthread_create(&w->thread, NULL, run, w), 0);
    pthread_join(w->thread, NULL);
}

/* d/dx of sum(tanh(x)^2 x) against its closed form. */
static int differentiate(ad_tape tape, int number)
{
    double data[SIZE], gradient[SIZE];
    int wrong = 0;
    for (int i = 0; i < SIZE; i++)
        data[i] = 0.01 * (i + number);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){SIZE}, data);
    ad_tensor y = ad_sum(ad_mul(ad_square(ad_tanh(x)), x));
    wrong += ad_backward(y) != AD_OK;
    wrong += ad_gradient(x, gradient, SIZE) != AD_OK;
    for (int i = 0; i < SIZE; i++) {
        double t = tanh(data[i]);
        double want = t * t + 2 * t * (1 - t * t) * data[i];
        wrong += !(fabs(gradient[i] - want) < 1e-12);
    }
    return wrong;
}

static void *work(void *payload)
{
    struct worker *w = payload;
    ad_tape tape;
    w->wrong += ad_tape_create(&tape, &small) != AD_OK;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < ROUNDS; i++) {
        w->wrong += differentiate(tape, w->number + i);
        if (i % 3 == 0)
            w->wrong += ad_tape_rewind(tape, mark) != AD_OK;
    }
    w->wrong += ad_tape_destroy(tape) != AD_OK;
    return NULL;
}

TEST(eight_threads_differentiate_on_tapes_of_their_own)
{
    start_all(work);
    join_all();
}

TEST(an_observer_sees_the_bytes_of_all_threads)
{
    ck_assert(tape_observe_begin(&hook));
    ck_assert(!tape_observe_begin(&hook));
    start_all(work);
    tape_observe_flush();
    join_all();
    tape_observe_end();
    ck_assert_uint_eq(finals, THREADS);
    ck_assert_uint_gt(flushes, THREADS);
    ck_assert_uint_eq(wrong_sums, 0);
}

TEST(an_observer_that_comes_and_goes_changes_no_result)
{
    start_all(work);
    for (int i = 0; i < 30; i++) {
        ck_assert(tape_observe_begin(&hook));
        tape_observe_flush();
        for (int k = 0; k < 2000; k++)
            read_clock();
        tape_observe_end();
    }
    join_all();
    ck_assert_uint_eq(wrong_sums, 0);
}

/* ---- the wrong thread ---- */

/* Every function, with a tape and a tensor of another thread's. */
static void *trespass(void *payload)
{
    struct worker *w = payload;
    double buffer[SIZE];
    int64_t shape[AD_MAX_RANK];
    ad_stats stats;
    ad_status got[] = {ad_backward(w->x),
                       ad_backward_seed(w->x, w->x),
                       ad_value(w->x, buffer, SIZE),
                       ad_gradient(w->x, buffer, SIZE),
                       ad_gradient_buffer(w->x, buffer, SIZE),
                       ad_retain_gradient(w->x),
                       ad_shape(w->x, shape),
                       ad_tape_zero_gradients(w->tape),
                       ad_tape_no_grad_begin(w->tape),
                       ad_tape_no_grad_end(w->tape),
                       ad_tape_reset(w->tape),
                       ad_tape_stats(w->tape, &stats),
                       ad_tape_rewind(w->tape, (ad_mark){1, 1, 0, 1}),
                       ad_tape_destroy(w->tape),
                       ad_tape_status(w->tape),
                       ad_create_graph(w->x, (ad_tensor){0}, 1, &w->x, &(ad_tensor){0})};
    ad_tape_clear_error(w->tape);
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
        w->wrong += got[i] != AD_ERROR_THREAD;
    ad_tensor z[] = {ad_square(w->x), ad_matmul(w->x, w->x), ad_detach(w->x),
                     ad_leaf(w->tape, AD_F64, 0, NULL, buffer), ad_scalar_f64(w->tape, 1)};
    for (size_t i = 0; i < sizeof z / sizeof z[0]; i++)
        w->wrong += z[i].value != 0;
    w->wrong += ad_tape_mark(w->tape).tape != 0;
    w->wrong += ad_rank(w->x) != -1 || ad_size(w->x) != -1 || ad_dtype_of(w->x) != -1;
    w->wrong += !isnan(ad_item(w->x)) || ad_tape_of(w->x).slot != 0;
    ad_tape_clear_error((ad_tape){0, 0});
    w->wrong += ad_tape_status((ad_tape){0, 0}) != AD_OK;
    (void)ad_square(w->x);
    w->status[0] = ad_tape_status((ad_tape){0, 0});
    strncpy(w->message, ad_tape_message((ad_tape){0, 0}), sizeof w->message - 1);
    return NULL;
}

static void *trespass_often(void *payload)
{
    for (int i = 0; i < 100; i++)
        trespass(payload);
    return NULL;
}

TEST(a_foreign_thread_is_refused_and_the_tape_does_not_notice)
{
    double data[SIZE] = {1, 2};
    struct worker w = {0};
    ad_stats before, after;
    ck_assert_int_eq(ad_tape_create(&w.tape, &small), AD_OK);
    w.x = ad_leaf(w.tape, AD_F64, 1, (int64_t[]){SIZE}, data);
    ck_assert_int_eq(ad_tape_stats(w.tape, &before), AD_OK);
    run_one(trespass, &w);
    ck_assert_msg(w.wrong == 0, "%d answers were wrong", w.wrong);
    ck_assert_int_eq(w.status[0], AD_ERROR_THREAD);
    ck_assert_ptr_nonnull(strstr(w.message, "square"));
    ck_assert_ptr_nonnull(strstr(w.message, "another thread"));
    ck_assert_ptr_nonnull(strstr(w.message, "test_threads.c:"));
    ck_assert_int_eq(ad_tape_stats(w.tape, &after), AD_OK);
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_int_eq(ad_tape_status(w.tape), AD_OK);
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_OK);

    /* While its owner works: a thread sanitizer would see a touch. */
    ck_assert_int_eq(pthread_create(&w.thread, NULL, trespass_often, &w), 0);
    for (int i = 0; i < ROUNDS; i++)
        ck_assert_int_eq(differentiate(w.tape, i), 0);
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.wrong, 0);
    ck_assert_int_eq(ad_tape_destroy(w.tape), AD_OK);
}

/* What is told of ops composed in a foreign thread is the thread, not the zeros between. */
static void *trespass_nested(void *payload)
{
    struct worker *w = payload;
    (void)ad_sum(ad_square(w->x));
    w->status[0] = ad_tape_status((ad_tape){0, 0});
    strncpy(w->message, ad_tape_message((ad_tape){0, 0}), sizeof w->message - 1);
    return NULL;
}

TEST(composed_ops_in_a_foreign_thread_tell_the_first_cause)
{
    double data[SIZE] = {1, 2};
    struct worker w = {0};
    ck_assert_int_eq(ad_tape_create(&w.tape, &small), AD_OK);
    w.x = ad_leaf(w.tape, AD_F64, 1, (int64_t[]){SIZE}, data);
    run_one(trespass_nested, &w);
    ck_assert_msg(w.status[0] == AD_ERROR_THREAD, "%s", w.message);
    ck_assert_int_eq(ad_tape_destroy(w.tape), AD_OK);
}

/* ---- slots ---- */

static void *storm(void *payload)
{
    struct worker *w = payload;
    double one = 1;
    for (int i = 0; i < STORM; i++) {
        ad_tape tape;
        w->wrong += ad_tape_create(&tape, &small) != AD_OK;
        w->made[i] = tape;
        ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, &one);
        w->wrong += x.value == 0;
        w->wrong += ad_tape_destroy(tape) != AD_OK;
        w->wrong += ad_tape_destroy(tape) != AD_ERROR_HANDLE;
        w->wrong += ad_square(x).value != 0;
        int earlier = i / 2; /* its slot may be another thread's by now */
        w->wrong += ad_tape_status(w->made[earlier]) != AD_ERROR_HANDLE;
    }
    return NULL;
}

/* The newest handle whose tape is destroyed, slot and generation in one; 0: it is over. */
static uint64_t destroyed;

static void *ask_often(void *payload)
{
    struct worker *w = payload;
    for (uint64_t both; (both = __atomic_load_n(&destroyed, __ATOMIC_ACQUIRE)) != 0;) {
        const ad_tape tape = {(uint32_t)(both >> 32), (uint32_t)both};
        w->wrong += ad_tape_status(tape) != AD_ERROR_HANDLE;
        ad_tape_clear_error((ad_tape){0, 0});
    }
    return NULL;
}

/* The slot just given up is the one that the next tape takes, while others ask for the old one. */
TEST(a_destroyed_tape_is_never_taken_for_the_next_in_its_slot)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    destroyed = (uint64_t)tape.slot << 32 | tape.generation;
    start_all(ask_often);
    for (int i = 0; i < STORM * 20; i++) {
        ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
        ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
        __atomic_store_n(&destroyed, (uint64_t)tape.slot << 32 | tape.generation, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&destroyed, 0, __ATOMIC_RELEASE);
    join_all();
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(ad_tape));
}

TEST(slots_are_used_again_with_new_generations)
{
    static ad_tape all[THREADS * STORM];
    start_all(storm);
    join_all();
    for (int i = 0; i < THREADS; i++)
        memcpy(&all[(ptrdiff_t)i * STORM], workers[i].made, sizeof workers[i].made);
    qsort(all, THREADS * STORM, sizeof all[0], compare);
    for (int i = 0; i < THREADS * STORM; i++) {
        ck_assert_uint_le(all[i].slot, THREADS);
        ck_assert_uint_ne(all[i].generation, 0);
        if (i > 0)
            ck_assert_int_ne(compare(&all[i - 1], &all[i]), 0);
    }
}

static void *leave_a_tape(void *payload)
{
    struct worker *w = payload;
    static double one = 1;
    w->wrong += ad_tape_create(&w->tape, &small) != AD_OK;
    w->x = ad_leaf(w->tape, AD_F64, 0, NULL, &one);
    w->wrong += ad_square(w->x).value == 0;
    return NULL;
}

TEST(a_tape_outlives_its_thread_and_belongs_to_no_other)
{
    struct worker w = {0};
    ck_assert(tape_observe_begin(&hook));
    run_one(leave_a_tape, &w);
    ck_assert_int_eq(w.wrong, 0);
    run_one(trespass, &w);
    ck_assert_msg(w.wrong == 0, "%s", w.message);
    ck_assert_int_eq(ad_tape_destroy(w.tape), AD_ERROR_THREAD);
    ad_tape next;
    ck_assert_int_eq(ad_tape_create(&next, &small), AD_OK);
    ck_assert_uint_ne(next.slot, w.tape.slot);
    ck_assert_int_eq(differentiate(next, 1), 0);
    ck_assert_int_eq(ad_tape_destroy(next), AD_OK);
    flushes = 0;
    tape_observe_end();
    ck_assert_uint_eq(flushes, 1); /* the tape that was left */
}

/* ---- errors of a thread ---- */

static pthread_barrier_t barrier;

static void *err(void *payload)
{
    struct worker *w = payload;
    ad_tape none = {0, 0};
    w->wrong += ad_tape_status(none) != AD_OK || strcmp(ad_tape_message(none), "") != 0;
    pthread_barrier_wait(&barrier);
    if (w->number % 2)
        (void)ad_square((ad_tensor){0, 0, 0, 0});
    else if (w->number % 4)
        (void)ad_tape_create(NULL, NULL);
    pthread_barrier_wait(&barrier);
    ad_status want = w->number % 2 ? AD_ERROR_HANDLE : w->number % 4 ? AD_ERROR_ARGUMENT : AD_OK;
    w->wrong += ad_tape_status(none) != want;
    const char *text = w->number % 2 ? "square" : w->number % 4 ? "tape_create" : "";
    w->wrong += strstr(ad_tape_message(none), text) == NULL;
    ad_tape_clear_error(none);
    w->wrong += ad_tape_status(none) != AD_OK || strcmp(ad_tape_message(none), "") != 0;
    return NULL;
}

TEST(each_thread_has_an_error_of_its_own)
{
    pthread_barrier_init(&barrier, NULL, THREADS);
    start_all(err);
    join_all();
    pthread_barrier_destroy(&barrier);
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_OK);
}

RUN_TESTS(NULL, NULL)
