/* reader_bound.c: the numbers of a profile as far as they can be added up.
 *
 * See there for the invariant. A forged file may say 2^64 - 1 of anything. Each counter is cut so
 * that it is at most PROF_MOST in the sum over all rows (tapes, classes, scopes, samples and so
 * on): then no sum of parts, in whatever order and of however many kinds of time or bytes, runs
 * over 64 bits. What programs count is far from it, and stays as it is.
 */
#include "reader_state.h"

/* Cuts *n to what is left, and takes it from there. */
static void cut(uint64_t *n, uint64_t *left)
{
    *n = *n < *left ? *n : *left;
    *left -= *n;
}

static void cut_alone(uint64_t *n)
{
    *n = *n < PROF_MOST ? *n : PROF_MOST;
}

/* What is left of each counter. */
struct left {
    struct prof_row row;
    struct prof_residual_counts residual;
    struct prof_tape tape;
    struct prof_scope scope;
    struct prof_sample sample;
    struct prof_thread thread;
    uint64_t change, times;
};

static void fill(struct left *left)
{
    *left = (struct left){.change = PROF_MOST, .times = PROF_MOST, .tape.tapes = PROF_MOST};
#define X(name) left->row.name = PROF_MOST;
    PROF_ROW_COUNTERS(X)
#undef X
#define X(name) left->residual.name = PROF_MOST;
    PROF_RESIDUAL_COUNTERS(X)
#undef X
#define X(name) left->tape.name = PROF_MOST;
    PROF_TAPE_COUNTERS(X)
#undef X
#define X(name) left->scope.name = PROF_MOST;
    PROF_SCOPE_COUNTERS(X)
#undef X
#define X(name) left->sample.name = PROF_MOST;
    PROF_SAMPLE_COUNTERS(X)
#undef X
#define X(name) left->thread.name = PROF_MOST;
    PROF_THREAD_COUNTERS(X)
#undef X
}

static void cut_change(int64_t *delta, uint64_t *left)
{
    const bool is_negative = *delta < 0;
    uint64_t size = is_negative ? -(uint64_t)*delta : (uint64_t)*delta;
    cut(&size, left);
    *delta = is_negative ? -(int64_t)size : (int64_t)size;
}

static void cut_tape(struct prof_tape *tape, struct left *left)
{
    cut(&tape->tapes, &left->tape.tapes);
#define X(name) cut(&tape->name, &left->tape.name);
    PROF_TAPE_COUNTERS(X)
#undef X
    for (size_t i = 0; i < tape->n_rows; i++) {
#define X(name) cut(&tape->row[i].name, &left->row.name);
        PROF_ROW_COUNTERS(X)
#undef X
    }
    for (size_t i = 0; i < tape->n_residuals; i++) {
        /* Times of the clock are not added up. */
        const uint64_t first = tape->residual[i].first_ticks, last = tape->residual[i].last_ticks;
#define X(name) cut(&tape->residual[i].name, &left->residual.name);
        PROF_RESIDUAL_COUNTERS(X)
#undef X
        tape->residual[i].first_ticks = first;
        tape->residual[i].last_ticks = last;
    }
    for (size_t i = 0; i < tape->n_changes; i++)
        cut_change(&tape->change[i].delta, &left->change);
    for (size_t i = 0; i < tape->n_moments; i++) {
        cut_alone(&tape->moment[i].most_bytes);
        cut_alone(&tape->moment[i].least_bytes);
    }
}

void reader_bound(struct prof_profile *profile)
{
    struct left left;
    fill(&left);
    for (size_t i = 0; i < profile->n_tapes; i++)
        cut_tape(&profile->tape[i], &left);
    for (size_t i = 0; i < profile->n_scopes; i++) {
#define X(name) cut(&profile->scope[i].name, &left.scope.name);
        PROF_SCOPE_COUNTERS(X)
#undef X
    }
    for (size_t i = 0; i < profile->n_expectations; i++)
        cut(&profile->expectation[i].times, &left.times);
    for (size_t i = 0; i < profile->n_samples; i++) {
#define X(name) cut(&profile->sample[i].name, &left.sample.name);
        PROF_SAMPLE_COUNTERS(X)
#undef X
    }
    for (size_t i = 0; i < profile->n_threads; i++) {
#define X(name) cut(&profile->thread[i].name, &left.thread.name);
        PROF_THREAD_COUNTERS(X)
#undef X
    }
    cut_alone(&profile->runs);
    cut_alone(&profile->overhead_ticks);
    cut_alone(&profile->paths_refused);
    cut_alone(&profile->lost_scopes);
    cut_alone(&profile->events_left_out);
    cut_alone(&profile->process_cpu_ns);
}
