/* test_pack.c: compressed profiles and such as bring their symbols along. */
#include "analyze.h"
#include "profile_frame.h"
#include "profile_maker.h"
#include "read_pack.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64], plain[96], packed[96];

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-pack-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(packed, sizeof packed, "%s/packed", folder);
}

static void teardown(void)
{
    unlink(plain);
    unlink(packed);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

static void compress_file(const char *path, const void *data, size_t n)
{
    gzFile file = gzopen(path, "wb9");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, data, (unsigned)n), (int)n);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

static struct read_profile *read_good(const char *path)
{
    char error[1024] = "";
    struct read_profile *profile = read_profile(path, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

/* Two sites of one function; the end is left to the caller. */
static void put_body(struct maker_bytes *bytes)
{
    maker_put_header(bytes, "monotonic", 1);
    struct maker_ledger *made = maker_new_ledger(0);
    Tapescope__Row *row = maker_add_row(made, 0, 0x2001, "matmul");
    row->calls = 3;
    row->value_bytes = 64;
    row = maker_add_row(made, 1, 0x3001, "tanh");
    row->calls = 4;
    maker_put_ledger(bytes, made);
}

TEST(a_compressed_profile_reads_as_the_plain_one)
{
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    maker_put_end(&bytes);
    compress_file(packed, bytes.data, bytes.n);
    struct read_profile *profile = read_good(packed);
    ck_assert(profile->complete);
    ck_assert_ptr_null(profile->warning);
    ck_assert_uint_eq(profile->n_packets, 3);
    ck_assert_uint_eq(profile->tape[0].row[0].value_bytes, 64);
    read_profile_free(profile);
}

TEST(cut_or_damaged_compression_never_does_harm)
{
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    maker_put_symbols(&bytes, 0x2001, 0, 0x3001);
    maker_put_end(&bytes);
    compress_file(packed, bytes.data, bytes.n);
    static uint8_t data[4096];
    FILE *file = fopen(packed, "r");
    size_t n = fread(data, 1, sizeof data, file), whole = 0;
    fclose(file);
    ck_assert_uint_lt(n, sizeof data);
    for (size_t i = 0; i < 9 * n; i++) { /* cut at byte i, or bit i - n flipped */
        char error[1024] = "";
        size_t length = i < n ? i : n;
        if (i >= n)
            data[(i - n) / 8] ^= (uint8_t)(1 << (i - n) % 8);
        FILE *stream = length > 0 ? fmemopen(data, length, "r") : fopen("/dev/null", "r");
        struct read_profile *profile = read_profile_stream(stream, "x.gz", error, sizeof error);
        fclose(stream);
        ck_assert_int_eq(profile == NULL, error[0] != '\0');
        if (profile) {
            ck_assert(profile->complete || profile->warning);
            whole += profile->complete;
        }
        read_profile_free(profile);
        if (i >= n)
            data[(i - n) / 8] ^= (uint8_t)(1 << (i - n) % 8);
    }
    ck_assert_uint_gt(whole, 8); /* what lies behind the last packet, and the file's own time */
}

/* Frames of zeros with right checksums, hundreds of megabytes of them in a small file. */
TEST(what_expands_beyond_all_measure_is_refused)
{
    enum { ZEROS = 16 << 20, FRAMES = 20 };
    struct maker_bytes bytes = {0};
    uint8_t *zeros = calloc(ZEROS, 1), head[PROFILE_FRAME_BYTES];
    char error[1024] = "";
    ck_assert_ptr_nonnull(zeros);
    put_body(&bytes);
    /* Field 15, which no reader knows, and the length of its bytes, in five. */
    uint32_t inner = ZEROS - 6;
    zeros[0] = 15 * 8 + 2;
    for (int i = 0; i < 5; i++)
        zeros[1 + i] = (uint8_t)((inner >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
    profile_frame_put(head, zeros, ZEROS);
    gzFile file = gzopen(packed, "wb9");
    ck_assert_int_eq(gzwrite(file, bytes.data, (unsigned)bytes.n), (int)bytes.n);
    for (int i = 0; i < FRAMES; i++) {
        ck_assert_int_eq(gzwrite(file, head, sizeof head), sizeof head);
        ck_assert_int_eq(gzwrite(file, zeros, ZEROS), ZEROS);
    }
    ck_assert_int_eq(gzclose(file), Z_OK);
    ck_assert_ptr_null(read_profile(packed, error, sizeof error));
    ck_assert_msg(strstr(error, "File too large") != NULL, "%s", error);
    free(zeros);
}

static void check_symbols(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_uint_eq(analysis->n_lines, 2);
    ck_assert_str_eq(analysis->line[0].file, "/src/mlp.c");
    ck_assert_uint_eq(analysis->line[0].line, 41);
    ck_assert_uint_eq(analysis->line[0].function_line, 30);
    ck_assert_str_eq(analysis->line[0].function, "dense");
    ck_assert_str_eq(analysis->line[0].module, "/bin/mlp");
    ck_assert_ptr_null(analysis->line[1].file);
    ck_assert_ptr_eq(analysis->line[1].function, analysis->line[0].function);
    ck_assert_uint_eq(analysis->line[1].offset, 16);
    analyze_free(analysis);
}

TEST(symbols_in_the_profile_need_no_program)
{
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    maker_put_symbols(&bytes, 0x2001, 0, 0x3001);
    maker_put_end(&bytes);
    write_file(plain, bytes.data, bytes.n);
    struct read_profile *profile = read_good(plain);
    check_symbols(profile);
    ck_assert_ptr_null(read_profile_symbol(profile, 0x2001, 5, 0));
    ck_assert_ptr_null(read_profile_symbol(profile, 0x2002, 0, 0));
    read_profile_free(profile);
}

static void pack(const char *from, const char *to, const struct read_symbol *symbol, size_t n)
{
    char error[1024] = "";
    ck_assert_msg(read_pack(from, to, symbol, n, error, sizeof error) == 0, "%s", error);
}

TEST(packing_keeps_every_packet_and_puts_symbols_before_the_end)
{
    struct maker_bytes bytes = {0};
    static const uint8_t unknown[] = {15 * 8 + 2, 1, 7};
    uint8_t head[PROFILE_FRAME_BYTES];
    put_body(&bytes);
    profile_frame_put(head, unknown, sizeof unknown);
    maker_put(&bytes, head, sizeof head);
    maker_put(&bytes, unknown, sizeof unknown);
    maker_put_end(&bytes);
    write_file(plain, bytes.data, bytes.n);
    const struct read_symbol symbol[] = {
        {.pc = 0x2001,
         .function = (char *)"dense",
         .file = (char *)"/src/mlp.c",
         .module = (char *)"/bin/mlp",
         .source_line = 41,
         .function_line = 30},
        {.pc = 0x3001, .function = (char *)"dense", .offset = 16},
    };
    pack(plain, packed, symbol, 2);
    for (int i = 0; i < 2; i++) { /* packed once more onto itself it is the same */
        struct read_profile *profile = read_good(packed);
        ck_assert(profile->complete);
        ck_assert_uint_eq(profile->n_packets, 5);
        ck_assert_uint_eq(profile->n_symbols, 2);
        check_symbols(profile);
        read_profile_free(profile);
        pack(packed, packed, symbol, 2);
    }
}

TEST(what_was_cut_off_stays_cut_off)
{
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    maker_put_end(&bytes);
    write_file(plain, bytes.data, bytes.n - 1);
    pack(plain, packed, NULL, 0);
    struct read_profile *profile = read_good(packed);
    ck_assert(!profile->complete);
    ck_assert_uint_eq(profile->n_packets, 2);
    read_profile_free(profile);
}

TEST(more_symbols_than_a_packet_holds_come_in_several)
{
    enum { MANY = 2500 };
    static struct read_symbol symbol[MANY];
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    maker_put_end(&bytes);
    write_file(plain, bytes.data, bytes.n);
    for (size_t i = 0; i < MANY; i++)
        symbol[i] = (struct read_symbol){.pc = i + 1, .source_line = (uint32_t)i + 7};
    pack(plain, packed, symbol, MANY);
    struct read_profile *profile = read_good(packed);
    ck_assert_uint_eq(profile->n_symbols, MANY);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(read_profile_symbol(profile, i + 1, 0, 0)->source_line, i + 7);
    read_profile_free(profile);
}

TEST(what_cannot_be_packed_leaves_nothing)
{
    char error[1024] = "", nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/no/where", folder);
    ck_assert_int_eq(read_pack(plain, packed, NULL, 0, error, sizeof error), -1);
    ck_assert_msg(strstr(error, "/plain: No such file") != NULL, "%s", error);
    write_file(plain, "hello, world", 12);
    ck_assert_int_eq(read_pack(plain, packed, NULL, 0, error, sizeof error), -1);
    ck_assert_int_ne(access(packed, F_OK), 0);
    struct maker_bytes bytes = {0};
    put_body(&bytes);
    write_file(plain, bytes.data, bytes.n);
    ck_assert_int_eq(read_pack(plain, nowhere, NULL, 0, error, sizeof error), -1);
    ck_assert_msg(strstr(error, "/no/where: No such file") != NULL, "%s", error);
}

RUN_TESTS(setup, teardown)
