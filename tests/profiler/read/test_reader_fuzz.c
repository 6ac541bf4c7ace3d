/* test_reader_fuzz.c: ten small profiles cut at every byte, with every bit flipped as it is and
 * behind a valid checksum, read and reported all the same. The tests take one bit of each byte
 * (exhaustive.h).
 */
#include "analyze.h"
#include "exhaustive.h"
#include "profile.pb-c.h"
#include "profile_frame.h"
#include "profile_seeds.h"
#include "read.h"
#include "read_rows.h"
#include "report.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the bits one in so many is flipped: of every byte one, and another one of the next. */
enum { STEP = 39 };

static struct maker_bytes seed;

static void make(int number)
{
    profile_seed_make((unsigned)number, &seed);
    ck_assert_uint_gt(seed.n_frames, 0);
    ck_assert_uint_eq(seed.frame[seed.n_frames], seed.n);
}

/* NULL: not usable, and the error is one line that names the file. */
static struct read_profile *read_bytes(uint8_t *data, size_t n)
{
    char error[1024] = "";
    FILE *stream = n > 0 ? fmemopen(data, n, "r") : fopen("/dev/null", "r");
    ck_assert_ptr_nonnull(stream);
    struct read_profile *profile = read_profile_stream(stream, "x.prof", error, sizeof error);
    fclose(stream);
    if (profile) {
        ck_assert_str_eq(error, "");
        ck_assert(!profile->warning || !strchr(profile->warning, '\n'));
    } else {
        ck_assert_int_eq(strncmp(error, "x.prof: ", 8), 0);
        ck_assert_ptr_null(strchr(error, '\n'));
    }
    return profile;
}

/* Everything that is said of the tapes' bytes. */
static void report_all_space(const struct analyze_result *analysis,
                             const struct report_style *style)
{
    struct analyze_space space;
    struct report_space_options options = {.limit = 20};
    for (int by = ANALYZE_SPACE_BY_CLASS; by <= ANALYZE_SPACE_BY_OP; by++) {
        options.by = (enum analyze_space_by)by;
        ck_assert_int_eq(analyze_space_make(&space, analysis, options.by, ANALYZE_AT_PEAK, 0), 0);
        for (int what = REPORT_HOLDERS; what <= REPORT_LEAKS; what++) {
            options.what = (enum report_space)what;
            report_space(analysis, &space, &options, style);
        }
        analyze_space_free(&space);
    }
    ck_assert_int_ge(analyze_space_make(&space, analysis, options.by, ANALYZE_AT_TIME, 50), 0);
    analyze_space_free(&space);
    struct analyze_whatif whatif;
    const int made = analyze_whatif_make(&whatif, analysis, false);
    ck_assert_int_ge(made, 0);
    if (made == 0) {
        bool is_optimal;
        report_whatif(analysis, &whatif, 0, style);
        ck_assert_int_ge(analyze_whatif_fit(&whatif, 100, &is_optimal), 0);
        report_whatif_choice(analysis, &whatif, 100, is_optimal, style);
    }
    analyze_whatif_free(&whatif);
}

/* All reports of a profile, as text that the caller frees. */
static char *report(const struct read_profile *profile)
{
    char *text = NULL;
    size_t n;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct report_style style = {.out = open_memstream(&text, &n), .width = 80};
    ck_assert_ptr_nonnull(style.out);
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TAPE, 20, &style);
    report_top(analysis, ANALYZE_BY_OP, REPORT_SORT_TOTAL, 0, &style);
    report_top(analysis, ANALYZE_BY_SHAPE, REPORT_SORT_PEAK, 0, &style);
    analyze_call_through(analysis);
    report_scopes(analysis, REPORT_SORT_TOTAL, 0, &style);
    report_scopes_csv(analysis, &style);
    report_info(analysis, &style);
    report_summary(analysis, &style);
    report_all_space(analysis, &style);
    fclose(style.out);
    analyze_free(analysis);
    return text;
}

static uint64_t calls_of(const struct read_profile *profile)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            calls += profile->tape[i].row[j].calls;
    return calls;
}

static _Alignas(16) uint8_t arena[1 << 16];
static size_t arena_used;

static void *arena_take(void *data, size_t n)
{
    (void)data;
    ck_assert_uint_le(n, sizeof arena - arena_used);
    void *const at = arena + arena_used;
    arena_used += (n + 15) / 16 * 16;
    return at;
}

static void arena_leave(void *data, void *at)
{
    (void)data, (void)at;
}

/* What is unpacked is packed again, for members that nobody looks at are not equal. */
static void check_unpacked_alike(const uint8_t *payload, size_t n)
{
    static uint8_t ours[PROFILE_SEED_BYTES], theirs[PROFILE_SEED_BYTES];
    ProtobufCAllocator allocator = {arena_take, arena_leave, NULL};
    arena_used = 0;
    Tapescope__Packet *mine = read_rows_unpack(payload, n, &allocator);
    Tapescope__Packet *other = tapescope__packet__unpack(&allocator, n, payload);
    ck_assert(mine && other);
    const size_t size = tapescope__packet__get_packed_size(other);
    ck_assert_uint_le(size, sizeof theirs);
    ck_assert_uint_eq(tapescope__packet__get_packed_size(mine), size);
    tapescope__packet__pack(mine, ours);
    tapescope__packet__pack(other, theirs);
    ck_assert_mem_eq(ours, theirs, size);
}

TEST_EACH(packets_are_unpacked_as_protobuf_c_does, PROFILE_SEEDS)
{
    make(_i);
    for (size_t i = 0; i < seed.n_frames; i++)
        check_unpacked_alike(seed.data + seed.frame[i] + PROFILE_FRAME_BYTES,
                             seed.frame[i + 1] - seed.frame[i] - PROFILE_FRAME_BYTES);
}

TEST(every_field_of_a_row_is_unpacked)
{
    struct maker_bytes bytes = {0};
    struct maker_ledger *made = maker_new_ledger(7);
    Tapescope__Row *row = maker_add_row(made, 0, 0, "op");
    const ProtobufCMessageDescriptor *const type = row->base.descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        void *at = (uint8_t *)row + type->fields[i].offset;
        switch (type->fields[i].type) {
        case PROTOBUF_C_TYPE_UINT32:
            *(uint32_t *)at = 1000 + i;
            break;
        case PROTOBUF_C_TYPE_UINT64:
            *(uint64_t *)at = (UINT64_C(1) << 40) + i;
            break;
        case PROTOBUF_C_TYPE_BOOL:
            *(protobuf_c_boolean *)at = 1;
            break;
        case PROTOBUF_C_TYPE_STRING:
            *(const char **)at = "text";
            break;
        default:
            ck_abort_msg("%s is of a type that rows have not had", type->fields[i].name);
        }
    }
    maker_put_ledger(&bytes, made);
    check_unpacked_alike(bytes.data + PROFILE_FRAME_BYTES, bytes.n - PROFILE_FRAME_BYTES);
}

TEST_EACH(a_seed_is_a_valid_profile_of_at_most_2_kib, PROFILE_SEEDS)
{
    make(_i);
    bool complete = _i < PROFILE_SEEDS_COMPLETE;
    struct read_profile *profile = read_bytes(seed.data, seed.n);
    ck_assert_ptr_nonnull(profile);
    ck_assert_uint_eq(profile->n_packets, seed.n_frames);
    ck_assert(profile->complete == complete);
    ck_assert((profile->warning == NULL) == complete);
    char *text = report(profile);
    ck_assert_uint_gt(strlen(text), 0);
    free(text);
    read_profile_free(profile);
}

/* A profile that ends inside a frame says what the one that ends before the frame says. */
TEST_EACH(a_profile_cut_at_any_byte_is_its_whole_frames, PROFILE_SEEDS)
{
    make(_i);
    size_t frames = 0;
    uint64_t calls = 0;
    for (size_t n = 0; n < seed.n; n++) {
        bool boundary = frames < seed.n_frames && n == seed.frame[frames + 1];
        frames += boundary;
        struct read_profile *profile = read_bytes(seed.data, n);
        if (frames == 0) {
            ck_assert_ptr_null(profile);
            continue;
        }
        ck_assert_ptr_nonnull(profile);
        ck_assert_uint_eq(profile->n_packets, frames);
        ck_assert(!profile->complete);
        ck_assert_ptr_nonnull(profile->warning);
        ck_assert_ptr_nonnull(strstr(profile->warning, "was killed or is still running"));
        ck_assert_ptr_nonnull(strstr(profile->warning, boundary ? "no end" : "truncated"));
        if (boundary)
            calls = calls_of(profile);
        ck_assert_uint_eq(calls_of(profile), calls);
        free(report(profile));
        read_profile_free(profile);
    }
    ck_assert_uint_eq(frames, seed.n_frames - 1);
}

TEST_EACH(a_flipped_bit_ends_the_profile_before_its_frame, PROFILE_SEEDS)
{
    make(_i);
    size_t frame = 0;
    for (size_t bit = 0; bit < 8 * seed.n; bit += exhaustive_step(STEP)) {
        while (bit / 8 >= seed.frame[frame + 1])
            frame++;
        seed.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct read_profile *profile = read_bytes(seed.data, seed.n);
        if (frame == 0) {
            ck_assert_ptr_null(profile);
        } else {
            ck_assert_msg(profile != NULL, "bit %zu", bit);
            ck_assert(!profile->complete);
            ck_assert_ptr_nonnull(profile->warning);
            ck_assert_uint_eq(profile->n_packets, frame);
        }
        read_profile_free(profile);
        seed.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* What the bytes then mean is not known, but they are read, and reported if there is a header. */
static void use(uint8_t *data, size_t n)
{
    struct read_profile *profile = read_bytes(data, n);
    if (!profile)
        return;
    ck_assert_uint_le(profile->n_packets, n / (PROFILE_FRAME_BYTES + 1));
    free(report(profile));
    read_profile_free(profile);
}

TEST_EACH(a_flipped_bit_behind_a_valid_checksum_reaches_the_parser_and_is_survived, PROFILE_SEEDS)
{
    make(_i);
    for (size_t i = 0; i < seed.n_frames; i++) {
        uint8_t *head = seed.data + seed.frame[i], *payload = head + PROFILE_FRAME_BYTES;
        uint32_t n = (uint32_t)(seed.frame[i + 1] - seed.frame[i] - PROFILE_FRAME_BYTES);
        for (size_t bit = 0; bit < 8 * (size_t)n; bit += exhaustive_step(STEP)) {
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
            profile_frame_put(head, payload, n);
            use(seed.data, seed.n);
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        profile_frame_put(head, payload, n);
    }
    use(seed.data, seed.n);
}

/* Lengths too: frames then begin in the middle of others, and all have their checksums. */
TEST_EACH(a_flipped_bit_of_a_length_with_checksums_after_it_is_survived, PROFILE_SEEDS)
{
    static uint8_t copy[PROFILE_SEED_BYTES];
    make(_i);
    for (size_t i = 0; i < seed.n_frames; i++) {
        for (size_t bit = 0; bit < 32; bit++) {
            memcpy(copy, seed.data, seed.n);
            copy[seed.frame[i] + bit / 8] ^= (uint8_t)(1u << bit % 8);
            profile_seed_repair(copy, seed.n);
            use(copy, seed.n);
        }
    }
}

TEST_EACH(repair_leaves_a_seed_as_it_is_and_mends_checksums, PROFILE_SEEDS)
{
    static uint8_t copy[PROFILE_SEED_BYTES];
    make(_i);
    memcpy(copy, seed.data, seed.n);
    for (size_t i = 0; i < seed.n_frames; i++)
        copy[seed.frame[i] + 4] ^= 1;
    copy[0] ^= 1;
    profile_seed_repair(copy, seed.n);
    ck_assert_mem_eq(copy, seed.data, seed.n);
}

/* ---- nothing that a profile may hold is left out ---- */

enum { MOST_FIELDS = 512 };

/* The fields that some seed has, by their descriptors. */
static const ProtobufCFieldDescriptor *seen[MOST_FIELDS];
static size_t n_seen;

static bool has_seen(const ProtobufCFieldDescriptor *field)
{
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i] == field)
            return true;
    return false;
}

/* Whether a field that is no list is there, in a schema where what is not written is zero. */
static bool is_there(const ProtobufCFieldDescriptor *field, const void *at)
{
    static const uint8_t zero[sizeof(ProtobufCBinaryData)];
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return *(const char *const *)at && **(const char *const *)at;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len > 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)at != NULL;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return memcmp(at, zero, 8) != 0;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_BOOL:
        return memcmp(at, zero, 4) != 0;
    default:
        ck_abort_msg("%s: a type that is new here", field->name);
    }
}

static void see(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const uint8_t *base = (const uint8_t *)message;
        const void *at = base + field->offset;
        size_t n = field->label == PROTOBUF_C_LABEL_REPEATED
                       ? *(const size_t *)(const void *)(base + field->quantifier_offset)
                       : 1;
        const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        const bool is_kind = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        const bool there =
            is_kind
                ? *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id
            : is_list ? n > 0
                      : is_there(field, at);
        if (!there)
            continue;
        if (!has_seen(field)) {
            ck_assert_uint_lt(n_seen, MOST_FIELDS);
            seen[n_seen++] = field;
        }
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        for (size_t j = 0; j < n; j++)
            see(is_list ? (*(ProtobufCMessage *const *const *)at)[j]
                        : *(const ProtobufCMessage *const *)at);
    }
}

/* Fails at the first field of this message, or of those in it, that no seed has. */
static void check_seen(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        ck_assert_msg(has_seen(&type->fields[i]), "no seed has %s.%s", type->short_name,
                      type->fields[i].name);
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            check_seen(type->fields[i].descriptor);
    }
}

TEST(every_field_of_every_packet_is_in_a_seed)
{
    for (int number = 0; number < PROFILE_SEEDS; number++) {
        make(number);
        for (size_t i = 0; i < seed.n_frames; i++) {
            const size_t at = seed.frame[i] + PROFILE_FRAME_BYTES;
            Tapescope__Packet *packet =
                tapescope__packet__unpack(NULL, seed.frame[i + 1] - at, seed.data + at);
            ck_assert_ptr_nonnull(packet);
            see(&packet->base);
            tapescope__packet__free_unpacked(packet, NULL);
        }
    }
    check_seen(&tapescope__packet__descriptor);
}

RUN_TESTS(NULL, NULL)
