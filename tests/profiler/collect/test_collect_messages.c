/* test_collect_messages.c: the log of messages keeps its bound in bytes; every call is either in
 * it or counted as left out.
 *
 * The log's file is driven by hand; packets are put by the functions below.
 */
#include "collect.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* What is in a buffer. */
static uint64_t messages, calls, meetings, left_out, last_start, sum_of_bytes;
static bool again;

bool collect_put_bytes(struct collect_buffer *out, const void *data, size_t n)
{
    out->data = realloc(out->data, out->n + n + 1);
    ck_assert_ptr_nonnull(out->data);
    memcpy(out->data + out->n, data, n);
    out->n += n;
    return true;
}

/* The size of a message, and the message. */
bool collect_put_packet(struct collect_buffer *out, int kind, void *message)
{
    const size_t n = tapescope__messages__get_packed_size(message);
    uint8_t *data = malloc(n + 1);
    ck_assert_int_eq(kind, TAPESCOPE__PACKET__KIND_MESSAGES);
    ck_assert_uint_eq(tapescope__messages__pack(message, data), n);
    (void)collect_put_bytes(out, &n, sizeof n);
    (void)collect_put_bytes(out, data, n);
    free(data);
    return true;
}

static void count(const Tapescope__Messages *m)
{
    uint64_t start = 0;
    messages += m->n_message_call;
    calls += m->n_call;
    meetings += m->n_meeting;
    left_out = m->left_out > left_out ? m->left_out : left_out;
    again = again || m->again;
    for (size_t i = 0; i < m->n_message_call; i++) {
        start += (uint64_t)m->message_start[i];
        sum_of_bytes += m->message_bytes[i];
        ck_assert_uint_lt(m->message_call[i], m->n_call);
    }
    if (m->n_message_call > 0)
        last_start = start;
}

/* Writes what there is, counts it, and returns its bytes. */
static size_t put(struct collect_messages *log)
{
    struct collect_buffer out = {0};
    messages = calls = meetings = left_out = last_start = sum_of_bytes = 0;
    again = false;
    ck_assert(collect_put_messages(&out, log, true));
    for (size_t at = 0, n; at < out.n; at += sizeof n + n) {
        memcpy(&n, out.data + at, sizeof n);
        Tapescope__Messages *m = tapescope__messages__unpack(NULL, n, out.data + at + sizeof n);
        ck_assert_ptr_nonnull(m);
        count(m);
        tapescope__messages__free_unpacked(m, NULL);
    }
    free(out.data);
    return out.n;
}

static void take(struct collect_messages *log, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const struct tape_message m = {.kind = TAPE_MESSAGE_SEND,
                                       .line = (uint32_t)(i % 3),
                                       .pc = 0x1000,
                                       .op = "mpi_send",
                                       .comm = 1,
                                       .ranks = 2,
                                       .root = -1,
                                       .to =
                                           (int32_t)(i % 400), /* more than a packet has room for */
                                       .from = -1,
                                       .bytes = 2,
                                       .start = 100 * i,
                                       .end = 100 * i + 7};
        collect_messages_take(log, &m);
    }
}

TEST(all_that_is_taken_is_put)
{
    struct collect_messages *log = collect_messages_open(COLLECT_MESSAGE_BYTES);
    take(log, 5000);
    collect_messages_meet(log, &(struct tape_meeting){1, 2, 3});
    (void)put(log);
    ck_assert_uint_eq(messages, 5000);
    ck_assert_uint_eq(sum_of_bytes, 10000);
    ck_assert_uint_eq(last_start, 499900);
    ck_assert_uint_eq(meetings, 1);
    ck_assert_uint_eq(left_out, 0);
    ck_assert_uint_eq(put(log), 0); /* once */
    collect_messages_close(log);
    free(log);
}

TEST(beyond_the_bound_calls_are_counted)
{
    enum { BOUND = 100000, MANY = 50000 };
    struct collect_messages *log = collect_messages_open(BOUND);
    take(log, MANY);
    ck_assert_uint_lt(put(log), BOUND + 100);
    ck_assert_uint_gt(messages, 1000);
    ck_assert_uint_lt(messages, MANY);
    ck_assert_uint_eq(messages + left_out, MANY);
    ck_assert_uint_eq(last_start, 100 * (messages - 1)); /* a begin of all */
    collect_messages_close(log);
    take(log, 1); /* late */
    free(log);
}

TEST(a_new_observation_makes_void_what_was_before)
{
    struct collect_messages *log = collect_messages_open(COLLECT_MESSAGE_BYTES);
    take(log, 10);
    collect_messages_clear(log);
    (void)put(log);
    ck_assert_uint_eq(messages, 0);
    ck_assert(!again); /* the file has nothing of it */
    take(log, 10);
    (void)put(log);
    ck_assert_uint_eq(messages, 10);
    collect_messages_clear(log);
    (void)put(log);
    ck_assert(again);
    ck_assert_uint_eq(messages, 0);
    collect_messages_close(log);
    free(log);
}

RUN_TESTS(NULL, NULL)
