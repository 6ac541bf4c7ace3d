/* test_html_bins.c: what series of events have in stretches of bins, compared with their events.
 *
 * Seeds are fixed.
 */
#include "html_bins.h"
#include "run_cases.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

enum { SERIES = 7, EVENTS = 20000, MOST = 1 << 10, PLENTY = 1 << 19 };
#define DURATION UINT64_C(1000003)

struct event {
    uint32_t series;
    uint64_t from, to;
};

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % below;
}

static bool none(const void *payload, uint32_t series)
{
    (void)payload, (void)series;
    return false;
}

static bool is_last(const void *payload, uint32_t series)
{
    return series == *(const uint32_t *)payload;
}

/* Of the cells of a series in bins from `first` to before `end`. */
static void sum_cells(const struct html_bins *bins, uint32_t series, uint64_t first, uint64_t end,
                      uint64_t *ns, uint64_t *count)
{
    *ns = *count = 0;
    for (size_t i = 0; i < bins->n_cells; i++) {
        const uint64_t bin = bins->cell[i].key & UINT32_MAX;
        if (bins->cell[i].key >> 32 != series || bin < first || bin >= end)
            continue;
        *ns += bins->cell[i].ns;
        *count += bins->cell[i].count;
    }
}

/* Compares what a series has between two edges of bins with what its events have there. */
static void compare(const struct html_bins *bins, const struct event *event, size_t n,
                    uint32_t series, uint64_t first, uint64_t end)
{
    const uint64_t from = first * bins->width_ns;
    const uint64_t to = end == bins->n ? UINT64_MAX : end * bins->width_ns;
    uint64_t want_ns = 0, want_count = 0, ns, count;
    for (size_t i = 0; i < n; i++) {
        if (event[i].series != series)
            continue;
        const uint64_t a = event[i].from > from ? event[i].from : from;
        const uint64_t b = event[i].to < to ? event[i].to : to;
        want_ns += b > a ? b - a : 0;
        want_count += event[i].from >= from && event[i].from < to;
    }
    sum_cells(bins, series, first, end, &ns, &count);
    ck_assert_uint_eq(ns, want_ns);
    ck_assert_uint_eq(count, want_count);
}

static void compare_stretches(const struct html_bins *bins, const struct event *event, size_t n)
{
    for (uint32_t series = 0; series < SERIES; series++) {
        compare(bins, event, n, series, 0, bins->n);
        for (int i = 0; i < 8; i++) {
            const uint64_t first = draw(bins->n), end = first + draw(bins->n - first) + 1;
            compare(bins, event, n, series, first, end);
        }
    }
}

static void add_all(struct html_bins *bins, struct event *event, uint64_t longest)
{
    for (size_t i = 0; i < EVENTS; i++) {
        const uint64_t from = draw(DURATION);
        event[i] = (struct event){(uint32_t)draw(SERIES), from, from + draw(longest)};
        html_bins_add(bins, event[i].series, event[i].from, event[i].to, 1);
    }
}

TEST_EACH(stretches_have_what_their_events_had, 3)
{
    static const uint64_t longest[] = {1, 40, 3000};
    static struct event event[EVENTS];
    struct html_bins bins;
    state = 1;
    html_bins_open(&bins, DURATION, PLENTY);
    add_all(&bins, event, longest[_i]);
    ck_assert_uint_eq(bins.n, 1 << 14);
    html_bins_sort(&bins, none, NULL);
    for (size_t i = 1; i < bins.n_cells; i++)
        ck_assert_uint_lt(bins.cell[i - 1].key, bins.cell[i].key);
    compare_stretches(&bins, event, EVENTS);
    html_bins_free(&bins);
}

TEST(bins_that_are_joined_are_exact_as_well)
{
    static struct event event[EVENTS];
    struct html_bins bins;
    state = 2;
    html_bins_open(&bins, DURATION, MOST);
    add_all(&bins, event, 900);
    ck_assert_uint_le(bins.n_cells, MOST);
    ck_assert_uint_ge(bins.n, 64);
    ck_assert_uint_ge(bins.n * bins.width_ns, DURATION);
    html_bins_sort(&bins, none, NULL);
    compare_stretches(&bins, event, EVENTS);
    html_bins_free(&bins);
}

/* Sweeps one after the other, within each of which most time is that of pullbacks. */
TEST_EACH(a_sweep_has_what_nothing_within_it_had, 2)
{
    static struct event event[EVENTS];
    struct html_bins bins;
    const uint32_t inner = SERIES;
    size_t n = 0;
    uint64_t at = 0;
    state = 3;
    html_bins_open(&bins, DURATION, (size_t)(_i ? MOST : PLENTY));
    while (at < DURATION && n < EVENTS - 100) {
        const uint64_t begun = at;
        for (uint64_t k = draw(20); k > 0; k--) {
            event[n] = (struct event){0, at, at + draw(7)};
            at = event[n].to;
            n++;
            const uint64_t end = at + draw(90);
            html_bins_add(&bins, 1, at, end, 1);
            html_bins_add(&bins, inner, at, end, 0);
            at = end;
        }
        event[n] = (struct event){0, at, at + draw(12)};
        at = event[n].to;
        n++;
        html_bins_add_outer(&bins, 0, inner, begun, at, 0);
        at += draw(60);
    }
    html_bins_sort(&bins, is_last, &inner);
    for (size_t i = 0; i < bins.n_cells; i++)
        ck_assert_uint_ne(bins.cell[i].key >> 32, inner);
    for (int i = 0; i < 40; i++) {
        const uint64_t first = draw(bins.n), end = first + draw(bins.n - first) + 1;
        const uint64_t from = first * bins.width_ns;
        const uint64_t to = end == bins.n ? UINT64_MAX : end * bins.width_ns;
        uint64_t want = 0, ns, count;
        for (size_t k = 0; k < n; k++) {
            const uint64_t a = event[k].from > from ? event[k].from : from;
            const uint64_t b = event[k].to < to ? event[k].to : to;
            want += b > a ? b - a : 0;
        }
        sum_cells(&bins, 0, first, end, &ns, &count);
        ck_assert_uint_eq(ns, want);
        ck_assert_uint_eq(count, 0);
    }
    html_bins_free(&bins);
}

/* As a forged profile may have them: all events are as long as it is, or begin behind its end. */
TEST_EACH(events_that_overlap_take_bounded_work, 2)
{
    struct html_bins bins;
    uint64_t ns, count;
    const uint64_t duration = _i ? UINT64_MAX : DURATION;
    html_bins_open(&bins, duration, PLENTY);
    for (int i = 0; i < 100000; i++)
        html_bins_add(&bins, 3, 0, DURATION, 1);
    html_bins_add(&bins, 3, UINT64_MAX - 5, UINT64_MAX, 1);
    html_bins_add(&bins, 3, 70, 60, 1);
    if (!_i)
        ck_assert_uint_lt(bins.n, 1 << 14);
    html_bins_sort(&bins, none, NULL);
    sum_cells(&bins, 3, 0, bins.n, &ns, &count);
    ck_assert_uint_eq(ns, 100000 * DURATION + 5);
    ck_assert_uint_eq(count, 100002);
    html_bins_free(&bins);
}

/* Series s is s % bound; the bound is halved each time that there is no room. */
struct folding {
    struct html_bins bins;
    uint32_t bound;
};

static bool fold_series(void *payload)
{
    enum { ALL = 2000 };
    struct folding *folding = payload;
    uint32_t to[ALL];
    folding->bound /= 2;
    for (uint32_t i = 0; i < ALL; i++)
        to[i] = i % folding->bound;
    html_bins_map(&folding->bins, to);
    return true;
}

TEST(series_become_fewer_before_bins_do)
{
    enum { ALL = 2000, NS = 10 };
    struct folding folding = {.bound = ALL};
    html_bins_open(&folding.bins, DURATION, MOST);
    const uint32_t n = folding.bins.n;
    folding.bins.least = n;
    folding.bins.fewer = fold_series;
    folding.bins.payload = &folding;
    for (uint32_t i = 0; i < ALL; i++) {
        const uint64_t from = i % 3 * folding.bins.width_ns;
        html_bins_add(&folding.bins, i % folding.bound, from, from + NS, 1);
    }
    ck_assert_uint_eq(folding.bins.n, n); /* not one was joined */
    ck_assert_uint_lt(folding.bound, ALL);
    html_bins_sort(&folding.bins, none, NULL);
    uint64_t ns = 0, count = 0;
    for (size_t i = 0; i < folding.bins.n_cells; i++) {
        ns += folding.bins.cell[i].ns;
        count += folding.bins.cell[i].count;
    }
    ck_assert_uint_eq(ns, (uint64_t)ALL * NS);
    ck_assert_uint_eq(count, ALL);
    html_bins_free(&folding.bins);
}

RUN_TESTS(NULL, NULL)
