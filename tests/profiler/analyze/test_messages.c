/* test_messages.c: what calls have waited, of logs written by hand, and clocks whose offset and
 * drift are known.
 */
#include "analyze_messages.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>

enum { MS = 1000000 };

static struct analyze_message collective(enum analyze_message_kind kind, uint64_t number,
                                         int64_t start, int64_t end)
{
    return (struct analyze_message){.kind = kind,
                                    .comm = 7,
                                    .number = number,
                                    .ranks = 3,
                                    .to = -1,
                                    .from = -1,
                                    .start_ns = start,
                                    .end_ns = end};
}

static struct analyze_message letter(enum analyze_message_kind kind, int to, int from,
                                     int64_t start, int64_t end)
{
    return (struct analyze_message){.kind = kind,
                                    .comm = 7,
                                    .to = to,
                                    .to_tag = 5,
                                    .from = from,
                                    .from_tag = 5,
                                    .start_ns = start,
                                    .end_ns = end};
}

#define LOG(rank, array)                                                                           \
    {                                                                                              \
        rank, array, sizeof(array) / sizeof *(array), false                                        \
    }

static void check_waits(const struct analyze_message *m, int64_t ns)
{
    ck_assert(m->measured);
    ck_assert_int_eq(m->waiting_ns, ns);
}

/* ---- collective calls ---- */

TEST(all_wait_for_the_last)
{
    struct analyze_message a[] = {collective(MESSAGE_ALL, 1, 10, 105)},
                           b[] = {collective(MESSAGE_ALL, 1, 100, 110)},
                           c[] = {collective(MESSAGE_ALL, 1, 40, 104)};
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    check_waits(a, 90);
    check_waits(b, 0);
    check_waits(c, 60);
    /* An arrow to each that has waited for it. */
    ck_assert(b->sends == 1 && b->n_sends == 2 && b->gets == 0);
    ck_assert(a->gets == 1 && c->gets == 2 && a->n_sends == 0 && c->n_sends == 0);
}

TEST(all_but_the_root_wait_for_a_late_root)
{
    struct analyze_message a[] = {collective(MESSAGE_FROM_ROOT, 1, 10, 105)},
                           b[] = {collective(MESSAGE_FROM_ROOT, 1, 100, 110)},
                           c[] = {collective(MESSAGE_FROM_ROOT, 1, 140, 150)};
    a->root = b->root = c->root = 1;
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    check_waits(a, 90);
    check_waits(b, 0);
    check_waits(c, 0);
    ck_assert(b->sends == 1 && b->n_sends == 1 && a->gets == 1 && c->gets == 0);
}

TEST(the_root_of_an_early_reduce_waits)
{
    struct analyze_message a[] = {collective(MESSAGE_TO_ROOT, 1, 10, 12)},
                           b[] = {collective(MESSAGE_TO_ROOT, 1, 5, 110)},
                           c[] = {collective(MESSAGE_TO_ROOT, 1, 80, 90)};
    a->root = b->root = c->root = 1;
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    check_waits(a, 0);
    check_waits(b, 75);
    check_waits(c, 0);
}

/* The same call forward, and in two sweeps. */
TEST(sweeps_are_apart_from_the_way_forward_and_from_each_other)
{
    struct analyze_message a[3], b[3], c[3];
    for (int i = 0; i < 3; i++) {
        a[i] = collective(MESSAGE_ALL, 4, 1000 * i, 1000 * i + 500);
        b[i] = collective(MESSAGE_ALL, 4, 1000 * i + 10 * (i + 1), 1000 * i + 500);
        c[i] = collective(MESSAGE_ALL, 4, 1000 * i, 1000 * i + 500);
        a[i].backward = b[i].backward = c[i].backward = i > 0;
    }
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    for (int i = 0; i < 3; i++) {
        check_waits(&a[i], 10 * (i + 1));
        check_waits(&b[i], 0);
    }
}

TEST(a_call_without_one_rank_is_not_measured)
{
    struct analyze_message a[] = {collective(MESSAGE_ALL, 1, 10, 105),
                                  collective(MESSAGE_TO_ROOT, 2, 200, 210)},
                           b[] = {collective(MESSAGE_ALL, 1, 100, 110),
                                  collective(MESSAGE_TO_ROOT, 2, 300, 310)};
    a[1].root = b[1].root = 0;
    struct analyze_log log[] = {LOG(0, a), LOG(1, b)};
    analyze_waiting(log, 2);
    ck_assert(!a[0].measured && !b[0].measured && !a[1].measured);
    check_waits(&b[1], 0); /* it waits for nobody */
    analyze_waiting(log, 1);
    ck_assert(!a[0].measured && a[0].waiting_ns == 0);
}

/* ---- from rank to rank ---- */

TEST(a_receive_waits_for_a_late_sender)
{
    struct analyze_message a[] = {letter(MESSAGE_SEND, 1, -1, 100, 102)},
                           b[] = {letter(MESSAGE_SEND, -1, 0, 30, 104)};
    struct analyze_log log[] = {LOG(0, a), LOG(1, b)};
    analyze_waiting(log, 2);
    check_waits(a, 0);
    check_waits(b, 70);
}

TEST(a_send_waits_for_a_late_receiver_unless_it_is_buffered)
{
    struct analyze_message a[] = {letter(MESSAGE_SEND, 1, -1, 10, 95),
                                  letter(MESSAGE_SEND, 1, -1, 100, 101)},
                           b[] = {letter(MESSAGE_SEND, -1, 0, 90, 96),
                                  letter(MESSAGE_SEND, -1, 0, 200, 201)};
    struct analyze_log log[] = {LOG(0, a), LOG(1, b)};
    analyze_waiting(log, 2);
    check_waits(&a[0], 80);
    check_waits(&b[0], 0);
    check_waits(&a[1], 0);
    check_waits(&b[1], 0);
}

TEST(an_exchange_waits_for_the_later_of_both)
{
    struct analyze_message a[] = {letter(MESSAGE_SEND, 1, 2, 10, 95)},
                           b[] = {letter(MESSAGE_SEND, 2, 0, 50, 90)},
                           c[] = {letter(MESSAGE_SEND, 0, 1, 80, 95)};
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    check_waits(a, 70);
    check_waits(b, 30);
    check_waits(c, 0);
    ck_assert(a->sends == b->gets && b->sends == c->gets && c->sends == a->gets);
    ck_assert(a->sends + b->sends + c->sends == 6); /* 1, 2, 3 */
}

/* Two receives from anybody, of which the second is waited for first: whom they are from stands at
 * the waits. */
TEST(messages_under_way_wait_in_their_waits)
{
    struct analyze_message a[] = {letter(MESSAGE_BEGIN, -1, -2, 1, 2),
                                  letter(MESSAGE_BEGIN, -1, -2, 3, 4),
                                  letter(MESSAGE_END, -1, 2, 10, 55),
                                  letter(MESSAGE_END, -1, 1, 60, 105)},
                           b[] = {letter(MESSAGE_SEND, 0, -1, 100, 101)},
                           c[] = {letter(MESSAGE_SEND, 0, -1, 50, 51)};
    a[0].number = a[3].number = 1;
    a[1].number = a[2].number = 2;
    struct analyze_log log[] = {LOG(0, a), LOG(1, b), LOG(2, c)};
    analyze_waiting(log, 3);
    check_waits(&a[0], 0);
    check_waits(&a[1], 0);
    check_waits(&a[2], 40);
    check_waits(&a[3], 40);
    check_waits(b, 0);
    ck_assert(a[3].gets > 0 && a[3].gets == b->sends); /* what came ends with the wait */
    ck_assert(a[2].gets > 0 && a[2].gets == c->sends && a[2].gets != a[3].gets);
    ck_assert(a[0].gets == 0 && a[1].gets == 0 && b->gets == 0 && a[2].sends == 0);
}

TEST(what_has_no_partner_is_not_measured)
{
    struct analyze_message a[] = {letter(MESSAGE_SEND, 1, -1, 10, 20),
                                  letter(MESSAGE_SEND, 1, -1, 100, 110)},
                           b[] = {letter(MESSAGE_SEND, -1, 0, 5, 25)};
    struct analyze_log log[] = {LOG(0, a), LOG(1, b)};
    analyze_waiting(log, 2);
    ck_assert(!a[0].measured && !a[1].measured && !b[0].measured);
    ck_assert(a[0].sends == 0 && a[1].sends == 0 && b[0].gets == 0);
    log[1].cut = true; /* what is there stands at the begin */
    analyze_waiting(log, 2);
    ck_assert(a[0].sends == 1 && b[0].gets == 1 && a[1].sends == 0);
    check_waits(&a[0], 0);
    check_waits(b, 5);
    ck_assert(!a[1].measured);
    analyze_waiting(log, 1);
    ck_assert(!a[0].measured && !a[1].measured);
}

TEST(a_message_to_nobody_waits_for_nobody)
{
    struct analyze_message a[] = {letter(MESSAGE_SEND, -1, -1, 10, 20)};
    struct analyze_log log[] = {LOG(0, a)};
    analyze_waiting(log, 1);
    check_waits(a, 0);
}

/* ---- clocks ---- */

TEST(an_offset_and_a_drift_are_found)
{
    /* This rank is 3 ms behind, and loses 20 ns in each ms. */
    struct analyze_meeting m[6];
    for (int i = 0; i < 6; i++) {
        const int64_t own = i < 3 ? i * MS : INT64_C(10000) * MS + i * MS;
        m[i] = (struct analyze_meeting){own, own + 3 * MS + own / MS * 20, 4000};
    }
    m[0].width = m[5].width = 90000; /* disturbed: */
    m[0].theirs += 30000;
    m[5].theirs -= 30000;
    const struct analyze_offset offset = analyze_offset_of(m, 6);
    ck_assert(offset.known && offset.drift_known);
    ck_assert_double_eq_tol(offset.drift, 20e-6, 1e-12);
    ck_assert_int_eq(offset.error_ns, 2000);
    ck_assert_int_eq(analyze_offset_apply(&offset, 0), 3 * MS);
    const int64_t late = analyze_offset_apply(&offset, INT64_C(5000) * MS);
    ck_assert_int_le(llabs(late - (INT64_C(5003) * MS + 5000 * 20)), 1);
}

TEST(one_meeting_tells_no_drift_and_none_tells_nothing)
{
    const struct analyze_meeting m[] = {{100, 80, 10}, {200, 190, 4}};
    const struct analyze_offset offset = analyze_offset_of(m, 2);
    ck_assert(offset.known && !offset.drift_known);
    ck_assert_int_eq(offset.offset_ns, -10);
    ck_assert_int_eq(analyze_offset_apply(&offset, 1000), 990);
    ck_assert(!analyze_offset_of(m, 0).known);
}

/* Meetings of a forged profile, neither in order nor of one time, leave sums that fit. */
TEST(a_drift_that_no_clock_has_is_none)
{
    const int64_t most = INT64_C(1) << 58;
    const struct analyze_meeting back[] = {{0, most, 9}, {2000 * MS, -most, 8}, {0, -most, 1}},
                                 far[] = {{0, -most, 1}, {2000 * MS, most, 1}};
    const struct analyze_offset a = analyze_offset_of(back, 3), b = analyze_offset_of(far, 2);
    ck_assert(a.known && !a.drift_known && b.known && !b.drift_known);
    ck_assert_int_eq(analyze_offset_apply(&a, most), 2 * most);
    ck_assert_int_eq(analyze_offset_apply(&b, -most), -2 * most);
}

RUN_TESTS(NULL, NULL)
