/* test_timeline.c: timelines of any length are read in little memory and time.
 *
 * TAPESCOPE_EVENTS is the number of events (default 1 000 000; a tenth under a sanitizer), of
 * which scripts/soak asks for ten times as many. The bound is 16 MiB of resident memory, whatever
 * the number.
 */
#include "profile_frame.h"
#include "profile_maker.h"
#include "read.h"
#include "run_cases.h"
#include "sanitizers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SANITIZED = SANITIZED_ADDRESS || SANITIZED_THREAD };

enum { BATCH = 2048, MOST_BYTES = 16 << 20, BYTES_A_RECORD = 64 };

static uint64_t events_wanted(void)
{
    const char *text = getenv("TAPESCOPE_EVENTS");
    return text && *text ? strtoull(text, NULL, 10) : SANITIZED ? 100000 : 1000000;
}

/* A packet of n events from number `first` on: an op and its pullback in turn. */
static void put_batch(FILE *to, uint64_t first, size_t n)
{
    static uint32_t site[BATCH];
    static int64_t record[BATCH], start[BATCH];
    static uint64_t ticks[BATCH];
    static uint8_t payload[64 * BATCH];
    Tapescope__EventSite sites[2], *list[2] = {&sites[0], &sites[1]};
    Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
    uint8_t head[PROFILE_FRAME_BYTES];
    for (uint32_t i = 0; i < 2; i++) {
        tapescope__event_site__init(&sites[i]);
        sites[i].kind = i;
        sites[i].thread = 4711;
        sites[i].tape = 1;
        sites[i].pc = 0x2001;
        sites[i].op = (char *)"matmul";
    }
    for (size_t i = 0; i < n; i++) {
        site[i] = (uint32_t)(i % 2);
        record[i] = i == 0 ? 1 : i % 2 ? 0 : 9;
        start[i] = i == 0 ? (int64_t)(first * 1000) : 1000;
        ticks[i] = 700 + i % 200;
    }
    timeline.site = list;
    timeline.n_site = 2;
    timeline.event_site = site;
    timeline.event_record = record;
    timeline.event_start = start;
    timeline.event_ticks = ticks;
    timeline.n_event_site = timeline.n_event_record = timeline.n_event_start =
        timeline.n_event_ticks = n;
    const Tapescope__Packet packet = profile_packet(TAPESCOPE__PACKET__KIND_TIMELINE, &timeline);
    const size_t bytes = tapescope__packet__get_packed_size(&packet);
    ck_assert_uint_le(bytes, sizeof payload);
    tapescope__packet__pack(&packet, payload);
    profile_frame_put(head, payload, (uint32_t)bytes);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, to), sizeof head);
    ck_assert_uint_eq(fwrite(payload, 1, bytes, to), bytes);
}

/* The pages that the process holds in memory. */
static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%llu %llu", &pages, &resident), 2);
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct sum {
    uint64_t n, ticks, last_start, most_resident;
    bool in_order;
};

static void add(void *payload, const struct read_profile *profile, const struct read_event *event)
{
    struct sum *sum = payload;
    (void)profile;
    sum->in_order = sum->in_order && event->start_ticks == sum->n * 1000;
    sum->ticks += event->ticks;
    sum->last_start = event->start_ticks;
    if (sum->n++ % 1000000 == 0) {
        const uint64_t now = resident_bytes();
        sum->most_resident = now > sum->most_resident ? now : sum->most_resident;
    }
}

TEST(millions_of_events_pass_in_bounded_memory)
{
    const uint64_t events = events_wanted();
    struct maker_bytes head = {0}, end = {0};
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    maker_put_header(&head, "tsc", 1);
    maker_put_end(&end);
    ck_assert_uint_eq(fwrite(head.data, 1, head.n, file), head.n);
    for (uint64_t at = 0; at < events; at += BATCH)
        put_batch(file, at, events - at < BATCH ? (size_t)(events - at) : BATCH);
    ck_assert_uint_eq(fwrite(end.data, 1, end.n, file), end.n);
    const uint64_t bytes = (uint64_t)ftell(file);
    ck_assert_uint_lt(bytes, events / 2 * BYTES_A_RECORD);
    rewind(file);

    const uint64_t before = resident_bytes();
    struct sum sum = {.in_order = true};
    char error[1024] = "";
    struct read_profile *profile =
        read_profile_events_stream(file, "x.prof", add, &sum, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert(profile->complete);
    ck_assert_ptr_null(profile->warning);
    ck_assert_uint_eq(profile->n_events, events);
    ck_assert_uint_eq(sum.n, events);
    ck_assert(sum.in_order);
    ck_assert_uint_eq(sum.last_start, (events - 1) * 1000);
    const uint64_t after = resident_bytes();
    sum.most_resident = after > sum.most_resident ? after : sum.most_resident;
    if (!SANITIZED)
        ck_assert_uint_lt(sum.most_resident, before + MOST_BYTES);
    read_profile_free(profile);
    fclose(file);
}

RUN_TESTS(NULL, NULL)
