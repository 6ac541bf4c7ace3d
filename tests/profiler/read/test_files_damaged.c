/* test_files_damaged.c: what is damaged behind right checksums is added up, packed and dumped as
 * anything else: no numbers of a file lead out of what was read.
 */
#include "exhaustive.h"
#include "profile_seeds.h"
#include "read_merge.h"
#include "read_pack.h"
#include "report_dump.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One bit in so many is turned over, and in the tests one in SHARE of these (exhaustive.h). Both
 * are primes, so that all places in a byte come. */
enum { EVERY = 29, SHARE = 15 };

static char folder[64], part[96], whole[96];

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(part, sizeof part, "%s/part", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
}

static void teardown(void)
{
    unlink(part);
    unlink(whole);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct read_profile *write_and_read(const uint8_t *data, size_t n)
{
    char error[1024] = "";
    FILE *file = fopen(part, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    struct read_profile *profile = read_profile(part, error, sizeof error);
    ck_assert_int_eq(profile == NULL, error[0] != '\0');
    return profile;
}

static uint64_t calls_of(const struct read_profile *profile)
{
    uint64_t n = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            n += profile->tape[i].row[j].calls;
    return n;
}

static struct read_profile *whole_profile(void)
{
    char error[1024] = "";
    struct read_profile *profile = read_profile(whole, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

static void add_up(const struct read_profile *profile)
{
    char error[1024] = "";
    const struct read_profile *twice[] = {profile, profile};
    const struct read_symbol *symbol[] = {profile->symbol, profile->symbol};
    const size_t n_symbols[] = {profile->n_symbols, profile->n_symbols};
    ck_assert_msg(read_merge(whole, twice, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    struct read_profile *sum = whole_profile();
    ck_assert_uint_eq(calls_of(sum), 2 * calls_of(profile));
    ck_assert_uint_eq(sum->n_events, 2 * profile->n_events);
    ck_assert_uint_eq(sum->lost_scopes, 2 * profile->lost_scopes);
    read_profile_free(sum);
}

static void take_event(void *payload, const struct read_profile *profile,
                       const struct read_event *event)
{
    (void)profile;
    report_dump_event(payload, event);
}

static void dump(const struct analyze_result *analysis, bool json)
{
    char *text = NULL, error[1024] = "";
    size_t n;
    const struct report_dump_options options = {.to_ns = UINT64_MAX};
    const struct report_style style = {.out = open_memstream(&text, &n), .width = 40, .json = json};
    struct report_dump *made = report_dump_open(analysis, &options, &style);
    ck_assert_ptr_nonnull(made);
    struct read_profile *again = read_profile_events(part, take_event, made, error, sizeof error);
    ck_assert_msg(again != NULL, "%s", error);
    report_dump_close(made, true);
    read_profile_free(again);
    fclose(style.out);
    for (size_t i = 0; i < n; i++)
        ck_assert(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f));
    free(text);
}

static void pack(struct read_profile *profile)
{
    char error[1024] = "";
    size_t n;
    const size_t n_mappings = profile->n_mappings;
    profile->n_mappings = 0; /* no file that it names is opened */
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct read_symbol *symbol = analyze_symbols(analysis, &n);
    ck_assert_ptr_nonnull(symbol);
    ck_assert_msg(read_pack(part, whole, symbol, n, error, sizeof error) == 0, "%s", error);
    struct read_profile *packed = whole_profile();
    /* A damaged packet of symbols, at which a reader stops, is gone. */
    ck_assert_uint_ge(packed->n_packets + 1, profile->n_packets);
    read_profile_free(packed);
    if (profile->n_events > 0) {
        dump(analysis, false);
        dump(analysis, true);
    }
    free(symbol);
    analyze_free(analysis);
    profile->n_mappings = n_mappings;
}

TEST_EACH(any_bit_may_be_wrong, PROFILE_SEEDS)
{
    static struct maker_bytes seed;
    unsigned read = 0;
    profile_seed_make((unsigned)_i, &seed);
    for (size_t bit = (size_t)_i; bit < 8 * seed.n; bit += EVERY * exhaustive_step(SHARE)) {
        uint8_t data[PROFILE_SEED_BYTES];
        memcpy(data, seed.data, seed.n);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        profile_seed_repair(data, seed.n);
        struct read_profile *profile = write_and_read(data, seed.n);
        if (!profile)
            continue;
        read++;
        add_up(profile);
        pack(profile);
        read_profile_free(profile);
    }
    ck_assert_uint_gt(read, 0);
}

RUN_TESTS(setup, teardown)
