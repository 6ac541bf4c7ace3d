/* test_follow.c: a profile that grows is read as the whole frames that are there, whatever the
 * pieces in which it comes; damage ends it.
 */
#include "read_follow.h"

#include "profile_seeds.h"
#include "run_cases.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/test_follow.XXXXXX";
static int file = -1;
static struct maker_bytes seed;

static void setup(void)
{
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
}

static void teardown(void)
{
    close(file);
    unlink(path);
}

static void append(size_t from, size_t to)
{
    ck_assert_int_eq(write(file, seed.data + from, to - from), (ssize_t)(to - from));
}

static void check_tape(const struct read_tape *is, const struct read_tape *wanted)
{
    ck_assert_uint_eq(is->tape, wanted->tape);
    ck_assert_int_eq(is->final, wanted->final);
    ck_assert_uint_eq(is->n_rows, wanted->n_rows);
#define X(name) ck_assert_uint_eq(is->name, wanted->name);
    TAPE_COUNTERS(X)
#undef X
    for (size_t i = 0; i < is->n_rows; i++) {
        ck_assert_uint_eq(is->row[i].pc, wanted->row[i].pc);
        ck_assert_str_eq(is->row[i].op, wanted->row[i].op);
        ck_assert_uint_eq(is->row[i].scope + is->row[i].path, 0);
#define X(name) ck_assert_uint_eq(is->row[i].name, wanted->row[i].name);
        ROW_COUNTERS(X)
#undef X
    }
}

/* Compares a state with what the reader makes of the first n bytes. */
static void check_state(const struct read_profile *state, size_t n)
{
    char error[256];
    FILE *stream = fmemopen(seed.data, n, "r");
    ck_assert_ptr_nonnull(stream);
    struct read_profile *wanted = read_profile_stream(stream, "x", error, sizeof error);
    fclose(stream);
    ck_assert_int_eq(state != NULL, wanted != NULL);
    if (!wanted)
        return;
    ck_assert_uint_eq(state->n_packets, wanted->n_packets);
    ck_assert_int_eq(state->complete, wanted->complete);
    ck_assert_str_eq(state->end_reason, wanted->end_reason);
    ck_assert_uint_eq(state->duration_ns, wanted->duration_ns);
    ck_assert_int_eq(state->clock_is_uncalibrated, wanted->clock_is_uncalibrated);
    ck_assert_uint_eq(state->overhead_ticks, wanted->overhead_ticks);
    ck_assert_uint_eq(state->n_mappings, wanted->n_mappings);
    ck_assert_uint_eq(state->seen_steps, wanted->seen_steps);
    ck_assert_uint_eq(state->n_samples, wanted->n_samples);
    for (size_t i = 0; i < state->n_samples; i++)
        ck_assert_uint_eq(state->sample[i].count, wanted->sample[i].count);
    ck_assert_uint_eq(state->n_tapes, wanted->n_tapes);
    for (size_t i = 0; i < state->n_tapes; i++)
        check_tape(&state->tape[i], &wanted->tape[i]);
    read_profile_free(wanted);
}

static struct read_follow *follow_new(void)
{
    struct read_follow *follow = read_follow_new(path);
    ck_assert_ptr_nonnull(follow);
    return follow;
}

TEST_EACH(each_frame_is_read_once_it_is_whole, PROFILE_SEEDS)
{
    profile_seed_make((unsigned)_i, &seed);
    struct read_follow *follow = follow_new();
    for (size_t at = 0, frame = 1; at < seed.n; at++) {
        append(at, at + 1);
        const bool whole = frame <= seed.n_frames && at + 1 == seed.frame[frame];
        ck_assert_int_eq(read_follow_take(follow), whole ? READ_FOLLOW_NEW : READ_FOLLOW_SAME);
        ck_assert_uint_eq(read_follow_bytes(follow), at + 1);
        if (whole) {
            check_state(read_follow_state(follow), at + 1);
            frame++;
        }
    }
    ck_assert_int_eq(read_follow_take(follow),
                     _i < PROFILE_SEEDS_COMPLETE ? READ_FOLLOW_ENDED : READ_FOLLOW_SAME);
    read_follow_free(follow);
}

TEST_EACH(pieces_of_any_size_give_the_same, PROFILE_SEEDS)
{
    profile_seed_make((unsigned)_i, &seed);
    for (size_t step = 2; step < seed.n; step = 2 * step + 1) {
        ck_assert_int_eq(ftruncate(file, 0), 0);
        ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
        struct read_follow *follow = follow_new();
        for (size_t at = 0; at < seed.n; at += step) {
            append(at, at + step < seed.n ? at + step : seed.n);
            (void)read_follow_take(follow);
            (void)read_follow_state(follow); /* asking changes nothing */
        }
        check_state(read_follow_state(follow), seed.n);
        read_follow_free(follow);
    }
}

TEST_EACH(damage_ends_it_with_what_came_before, PROFILE_SEEDS)
{
    profile_seed_make((unsigned)_i, &seed);
    const size_t from = seed.frame[seed.n_frames / 2], to = seed.frame[seed.n_frames / 2 + 1];
    for (size_t at = from; at < to; at++) {
        ck_assert_int_eq(ftruncate(file, 0), 0);
        ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
        seed.data[at] ^= 4;
        append(0, seed.n);
        seed.data[at] ^= 4;
        struct read_follow *follow = follow_new();
        (void)read_follow_take(follow);
        const struct read_profile *state = read_follow_state(follow);
        check_state(state, from);
        read_follow_free(follow);
    }
}

TEST(a_file_that_is_not_there_yet_is_waited_for)
{
    profile_seed_make(0, &seed);
    unlink(path);
    struct read_follow *follow = follow_new();
    ck_assert_int_eq(read_follow_take(follow), READ_FOLLOW_SAME);
    ck_assert_ptr_null(read_follow_state(follow));
    close(file);
    file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(file, 0);
    append(0, seed.n);
    ck_assert_int_eq(read_follow_take(follow), READ_FOLLOW_NEW);
    check_state(read_follow_state(follow), seed.n);
    read_follow_free(follow);
}

TEST(what_is_no_profile_has_no_state)
{
    static const char text[] = "a text of more than eight bytes";
    ck_assert_int_eq(write(file, text, sizeof text), (ssize_t)sizeof text);
    struct read_follow *follow = follow_new();
    ck_assert_int_eq(read_follow_take(follow), READ_FOLLOW_ENDED);
    ck_assert_ptr_null(read_follow_state(follow));
    read_follow_free(follow);
}

RUN_TESTS(setup, teardown)
