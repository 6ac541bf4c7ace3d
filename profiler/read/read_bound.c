/* read_bound.c: the numbers of a profile as far as they can be added up.
 *
 * See there for the invariant. A forged file may say 2^64 - 1 of anything. Each counter is cut so
 * that it is at most READ_MOST in the sum over all rows (tapes, classes, scopes, samples and so
 * on): then no sum of parts, in whatever order and of however many kinds of time or bytes, runs
 * over 64 bits. What programs count is far from it, and stays as it is.
 */
#include "read_state.h"

/* Cuts *n to what is left, and takes it from there. */
static void bound_cut(uint64_t *n, uint64_t *left)
{
    *n = *n < *left ? *n : *left;
    *left -= *n;
}

static void cut_alone(uint64_t *n)
{
    *n = *n < READ_MOST ? *n : READ_MOST;
}

/* What is left of each counter. */
struct left {
    struct read_row row;
    struct read_residual_counts residual;
    struct read_tape tape;
    struct read_scope scope;
    struct read_sample sample;
    struct read_thread thread;
    uint64_t change, times, found;
};

static void bound_fill(struct left *left)
{
    *left = (struct left){
        .change = READ_MOST, .times = READ_MOST, .found = READ_MOST, .tape.tapes = READ_MOST};
#define X(name) left->row.name = READ_MOST;
    ROW_COUNTERS(X)
#undef X
#define X(name) left->residual.name = READ_MOST;
    CLASS_COUNTERS(X)
#undef X
#define X(name) left->tape.name = READ_MOST;
    TAPE_COUNTERS(X)
#undef X
#define X(name) left->scope.name = READ_MOST;
    READ_SCOPE_COUNTERS(X)
#undef X
#define X(name) left->sample.name = READ_MOST;
    SAMPLE_COUNTERS(X)
    SAMPLE_TIMES(X)
#undef X
#define X(name) left->thread.name = READ_MOST;
    THREAD_COUNTERS(X)
#undef X
}

static void cut_change(int64_t *delta, uint64_t *left)
{
    const bool is_negative = *delta < 0;
    uint64_t size = is_negative ? -(uint64_t)*delta : (uint64_t)*delta;
    bound_cut(&size, left);
    *delta = is_negative ? -(int64_t)size : (int64_t)size;
}

static void cut_tape(struct read_tape *tape, struct left *left)
{
    bound_cut(&tape->tapes, &left->tape.tapes);
#define X(name) bound_cut(&tape->name, &left->tape.name);
    TAPE_COUNTERS(X)
#undef X
    for (size_t i = 0; i < tape->n_rows; i++) {
#define X(name) bound_cut(&tape->row[i].name, &left->row.name);
        ROW_COUNTERS(X)
#undef X
    }
    for (size_t i = 0; i < tape->n_residuals; i++) {
        /* Times of the clock are not added up. */
        const uint64_t first = tape->residual[i].first_ticks, last = tape->residual[i].last_ticks;
#define X(name) bound_cut(&tape->residual[i].name, &left->residual.name);
        CLASS_COUNTERS(X)
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

void read_bound(struct read_profile *profile)
{
    struct left left;
    bound_fill(&left);
    for (size_t i = 0; i < profile->n_tapes; i++)
        cut_tape(&profile->tape[i], &left);
    for (size_t i = 0; i < profile->n_scopes; i++) {
#define X(name) bound_cut(&profile->scope[i].name, &left.scope.name);
        READ_SCOPE_COUNTERS(X)
#undef X
    }
    for (size_t i = 0; i < profile->n_expectations; i++)
        bound_cut(&profile->expectation[i].times, &left.times);
    for (size_t i = 0; i < profile->n_patterns; i++)
        bound_cut(&profile->pattern[i].calls, &left.found);
    for (size_t i = 0; i < profile->n_samples; i++) {
#define X(name) bound_cut(&profile->sample[i].name, &left.sample.name);
        SAMPLE_COUNTERS(X)
        SAMPLE_TIMES(X)
#undef X
    }
    for (size_t i = 0; i < profile->n_threads; i++) {
#define X(name) bound_cut(&profile->thread[i].name, &left.thread.name);
        THREAD_COUNTERS(X)
#undef X
    }
    cut_alone(&profile->runs);
    cut_alone(&profile->overhead_ticks);
    cut_alone(&profile->paths_refused);
    cut_alone(&profile->lost_scopes);
    cut_alone(&profile->patterns_left_out);
    cut_alone(&profile->events_left_out);
    cut_alone(&profile->messages_left_out);
    cut_alone(&profile->process_cpu_ns);
}
