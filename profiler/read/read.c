/* read.c: the stream of frames: lengths, checksums, what to say when it breaks off.
 *
 * See read.h for the invariant.
 */
#include "read.h"

#include "profile_frame.h"
#include "read_inflate.h"
#include "read_range.h"
#include "read_rows.h"
#include "read_state.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Unpacked messages are larger than packed ones; those that a collector writes stay far below
 * this factor, and a forged packet of empty rows does not. */
enum { UNPACK_FACTOR = 40, UNPACK_BASE = 1 << 16, READ_STEP = 1 << 16 };

/* The frame under way; the buffer grows with what was really read, never with what a length
 * claims. */
struct read_frame {
    uint8_t *data;
    size_t n, room;
    uint64_t offset; /* of the frame in the file */
};

/* A message that is unpacked has very many small parts. They are cut from few blocks, which the
 * next message has again. `left`: bytes that this one may still have. */
enum { BLOCK_ROOM = 1 << 20, BLOCK_ALIGN = 16 };
struct read_block {
    struct read_block *next;
    size_t room;
    _Alignas(BLOCK_ALIGN) char bytes[];
};

struct read_blocks {
    struct read_block *block; /* the one that is cut from comes first */
    size_t used, left;
};

static void *blocks_alloc(void *payload, size_t n)
{
    struct read_blocks *blocks = payload;
    if (n > blocks->left)
        return NULL;
    blocks->left -= n;
    n = (n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    if (!blocks->block || n > blocks->block->room - blocks->used) {
        const size_t room = n > BLOCK_ROOM ? n : BLOCK_ROOM;
        struct read_block *made = base_malloc(sizeof *made + room);
        made->next = blocks->block;
        made->room = room;
        blocks->block = made;
        blocks->used = 0;
    }
    void *memory = blocks->block->bytes + blocks->used;
    blocks->used += n;
    return memory;
}

static void blocks_keep(void *payload, void *memory)
{
    (void)payload;
    (void)memory;
}

/* All but the last block, if that is of the usual size, go. */
static void blocks_reset(struct read_blocks *blocks, bool keep)
{
    struct read_block *block = blocks->block, *kept = NULL;
    while (block) {
        struct read_block *next = block->next;
        if (keep && !kept && block->room == BLOCK_ROOM)
            kept = block;
        else
            free(block);
        block = next;
    }
    if (kept)
        kept->next = NULL;
    blocks->block = kept;
    blocks->used = 0;
}

enum read_status read_apply_bytes(struct read_state *state, const uint8_t *data, size_t n)
{
    if (!state->blocks)
        state->blocks = base_calloc(1, sizeof *state->blocks);
    state->blocks->left = UNPACK_BASE + UNPACK_FACTOR * n;
    ProtobufCAllocator allocator = {blocks_alloc, blocks_keep, state->blocks};
    Tapescope__Packet *packet = read_rows_unpack(data, n, &allocator);
    const enum read_status status = packet ? read_apply(state, packet) : READ_BAD;
    blocks_reset(state->blocks, true);
    return status;
}

/* As fread() of bytes, which a signal does not end. What ended it early, if not the file's end, is
 * in *error, which is 0 before. */
static size_t read_bytes(FILE *stream, void *to, size_t n, int *error)
{
    size_t got = fread(to, 1, n, stream);
    while (got < n && ferror(stream)) {
        if (errno != EINTR) {
            *error = errno ? errno : EIO;
            break;
        }
        clearerr(stream);
        got += fread((char *)to + got, 1, n - got, stream);
    }
    return got;
}

/* Reads up to n bytes into the frame's buffer. Returns how many. */
static size_t read_payload(FILE *stream, struct read_frame *frame, size_t n, int *error)
{
    frame->n = 0;
    while (frame->n < n) {
        size_t step = n - frame->n < READ_STEP ? n - frame->n : READ_STEP;
        while (frame->n + step > frame->room) {
            size_t room = frame->room ? 2 * frame->room : READ_STEP;
            frame->data = base_reallocarray(frame->data, room, 1);
            frame->room = room;
        }
        size_t got = read_bytes(stream, frame->data + frame->n, step, error);
        frame->n += got;
        if (got < step)
            break;
    }
    return frame->n;
}

static void read_warn(struct read_profile *profile, char *line)
{
    free(profile->warning);
    profile->warning = line;
}

static void warn_truncated(struct read_profile *profile, uint64_t have, uint64_t want)
{
    static const char why[] =
        "the program was killed or is still running; showing what was written before";
    unsigned long long n = profile->n_packets;
    if (have == want)
        read_warn(profile,
                  base_asprintf("%s: no end after %llu packet%s (%llu bytes): %s", profile->path, n,
                                n == 1 ? "" : "s", (unsigned long long)have, why));
    else
        read_warn(profile,
                  base_asprintf("%s: truncated after %llu packet%s (%llu of %llu bytes): %s",
                                profile->path, n, n == 1 ? "" : "s", (unsigned long long)have,
                                (unsigned long long)want, why));
}

static void warn_damaged(struct read_profile *profile, const char *what)
{
    read_warn(profile,
              base_asprintf("%s: packet %llu is damaged (%s); showing what was written "
                            "before",
                            profile->path, (unsigned long long)profile->n_packets + 1, what));
}

/* Reads frames up to the end packet or up to the first that is not whole. *error: why the file
 * could not be read further. */
static void read_frames(struct read_state *state, FILE *stream, int *error)
{
    struct read_profile *profile = state->profile;
    struct read_frame frame = {.offset = PROFILE_MAGIC_BYTES};
    while (!profile->complete && !(state->only_header && state->has_header)) {
        uint8_t head[PROFILE_FRAME_BYTES];
        uint32_t n, crc;
        size_t got = read_bytes(stream, head, sizeof head, error);
        if (*error)
            break;
        if (got < sizeof head) {
            warn_truncated(profile, frame.offset + got, frame.offset + (got > 0 ? sizeof head : 0));
            break;
        }
        if (!profile_frame_get(head, &n, &crc)) {
            warn_damaged(profile, "length");
            break;
        }
        got = read_payload(stream, &frame, n, error);
        if (*error)
            break;
        if (got < n) {
            warn_truncated(profile, frame.offset + sizeof head + got,
                           frame.offset + sizeof head + n);
            break;
        }
        if (profile_crc(frame.data, n) != crc) {
            warn_damaged(profile, "checksum");
            break;
        }
        if (read_apply_bytes(state, frame.data, frame.n) != READ_OK) {
            warn_damaged(profile, "content");
            break;
        }
        profile->n_packets++;
        frame.offset += sizeof head + n;
    }
    char more;
    if (profile->complete && read_bytes(stream, &more, 1, error) == 1)
        read_warn(profile, base_asprintf("%s: bytes after its end are ignored", profile->path));
    free(frame.data);
}

void read_state_free(struct read_state *state)
{
    for (size_t i = 0; i < state->n_tapes; i++)
        read_tape_state_free(&state->tape[i]);
    free(state->tape);
    base_table_free(&state->tapes);
    base_table_free(&state->ops);
    base_table_free(&state->scopes);
    base_table_free(&state->expectations);
    base_table_free(&state->patterns);
    base_table_free(&state->samples);
    base_table_free(&state->threads);
    if (state->blocks)
        blocks_reset(state->blocks, false);
    free(state->blocks);
}

/* Reads everything after the magic. On failure `error` is set. */
static bool read_packets(struct read_state *state, FILE *stream, char *error, size_t n)
{
    const char *name = state->profile->path;
    int why = 0;
    read_frames(state, stream, &why);
    if (why) {
        snprintf(error, n, "%s: %s", name, strerror(why));
        return false;
    }
    if (!state->has_header) {
        snprintf(error, n,
                 "%s: not usable: it has no readable header (damaged, truncated, or written by "
                 "another version)",
                 name);
        return false;
    }
    if (!state->profile->end_reason)
        state->profile->end_reason = base_strdup("");
    read_finish(state);
    return true;
}

struct read_how {
    read_event_fn *each;     /* NULL: events are counted alone */
    read_part_fn *each_part; /* NULL: likewise */
    void *payload;
    bool only_header;
};

/* Everything behind the magic, of which `got` bytes were there. */
static struct read_profile *profile_read_frames(FILE *stream, const uint8_t *magic, size_t got,
                                                const char *name, const struct read_how *how,
                                                char *error, size_t n)
{
    if (got < PROFILE_MAGIC_BYTES || memcmp(magic, PROFILE_MAGIC, PROFILE_MAGIC_BYTES) != 0) {
        const bool other = got == PROFILE_MAGIC_BYTES &&
                           memcmp(magic, PROFILE_MAGIC, PROFILE_MAGIC_BYTES - 1) == 0;
        snprintf(error, n, "%s: %s%s", name,
                 other ? "a profile of another version of tapescope, whose program reads it"
                       : "not a tapescope profile",
                 got == 0 ? " (empty)" : "");
        return NULL;
    }
    struct read_state state = {.profile = base_calloc(1, sizeof *state.profile),
                               .each_event = how->each,
                               .each_part = how->each_part,
                               .payload = how->payload,
                               .only_header = how->only_header};
    state.profile->path = base_strdup(name);
    bool ok = read_packets(&state, stream, error, n);
    read_state_free(&state);
    if (ok)
        return state.profile;
    read_profile_free(state.profile);
    return NULL;
}

static struct read_profile *read_stream(FILE *stream, const char *name, const struct read_how *how,
                                        char *error, size_t n)
{
    uint8_t magic[PROFILE_MAGIC_BYTES];
    int why = 0;
    FILE *inflated = NULL;
    struct read_profile *profile = NULL;
    size_t got = read_bytes(stream, magic, sizeof magic, &why);
    if (why == 0 && read_is_compressed(magic, got)) {
        inflated = read_inflate(stream, magic, got);
        got = read_bytes(inflated, magic, sizeof magic, &why);
    }
    if (why == 0)
        profile =
            profile_read_frames(inflated ? inflated : stream, magic, got, name, how, error, n);
    else
        snprintf(error, n, "%s: %s", name, strerror(why));
    if (inflated)
        fclose(inflated);
    return profile;
}

struct read_profile *read_profile_events_stream(FILE *stream, const char *name, read_event_fn *each,
                                                void *payload, char *error, size_t n)
{
    return read_stream(stream, name, &(struct read_how){.each = each, .payload = payload}, error,
                       n);
}

struct read_profile *read_profile_stream(FILE *stream, const char *name, char *error, size_t n)
{
    return read_profile_events_stream(stream, name, NULL, NULL, error, n);
}

/* The file that is read by its path; of several threads the last one's. */
static atomic_int path_descriptor = -1;
static atomic_llong path_bytes;

int read_percent(void)
{
    const int fd = path_descriptor;
    const long long all = path_bytes;
    const off_t at = fd >= 0 && all > 0 ? lseek(fd, 0, SEEK_CUR) : -1;
    return at >= 0 && at <= all ? (int)(at * 100 / all) : -1;
}

static struct read_profile *read_path(const char *path, const struct read_how *how, char *error,
                                      size_t n)
{
    struct stat status;
    FILE *stream = read_range_open(path);
    if (!stream) {
        snprintf(error, n, "%s: %s", path, strerror(errno));
        return NULL;
    }
    struct read_profile *profile = NULL;
    const int fd = fileno(stream); /* -1: a part of a file */
    const bool known = fd >= 0 && fstat(fd, &status) == 0;
    if (known && S_ISDIR(status.st_mode)) {
        snprintf(error, n, "%s: %s", path, strerror(EISDIR));
    } else {
        path_bytes = known && S_ISREG(status.st_mode) ? status.st_size : 0;
        path_descriptor = fd;
        profile = read_stream(stream, path, how, error, n);
        path_descriptor = -1;
    }
    fclose(stream);
    return profile;
}

struct read_profile *read_profile_events(const char *path, read_event_fn *each, void *payload,
                                         char *error, size_t n)
{
    return read_path(path, &(struct read_how){.each = each, .payload = payload}, error, n);
}

struct read_profile *read_profile_parts(const char *path, read_part_fn *each, void *payload,
                                        char *error, size_t n)
{
    return read_path(path, &(struct read_how){.each_part = each, .payload = payload}, error, n);
}

struct read_profile *read_profile(const char *path, char *error, size_t n)
{
    return read_profile_events(path, NULL, NULL, error, n);
}

struct read_profile *read_profile_header(const char *path, char *error, size_t n)
{
    return read_path(path, &(struct read_how){.only_header = true}, error, n);
}

bool read_profile_has_bytes(const struct read_profile *profile)
{
    return !profile->is_sampled || profile->n_tapes > 0;
}

uint64_t read_whole(double x)
{
    return x >= 0x1p63 ? UINT64_C(1) << 63 : x > 0 ? (uint64_t)(x + 0.5) : 0;
}

uint64_t read_profile_ns(const struct read_profile *profile, uint64_t ticks)
{
    const uint64_t ns =
        profile->ticks_per_ns == 1 ? ticks : read_whole((double)ticks / profile->ticks_per_ns);
    return ns < READ_MOST ? ns : READ_MOST;
}

uint64_t read_profile_since(const struct read_profile *profile, uint64_t ticks)
{
    return read_profile_ns(profile,
                           ticks > profile->start_ticks ? ticks - profile->start_ticks : 0);
}

static void free_tape(struct read_tape *tape)
{
    free(tape->row);
    free(tape->residual);
    free(tape->change);
    free(tape->trace);
    free(tape->moment);
}

void read_profile_free(struct read_profile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->n_arguments; i++)
        free(profile->argument[i]);
    for (size_t i = 0; i < profile->n_tapes; i++)
        free_tape(&profile->tape[i]);
    for (size_t i = 0; i < profile->n_mappings; i++) {
        free(profile->mapping[i].path);
        free(profile->mapping[i].build_id);
    }
    for (size_t i = 0; i < profile->n_ops; i++)
        free(profile->op[i]);
    for (size_t i = 0; i < profile->n_scopes; i++)
        free(profile->scope[i].name);
    free(profile->scope);
    free(profile->expectation);
    read_free_patterns(profile);
    read_free_messages(profile);
    read_free_symbols(profile);
    free(profile->argument);
    free(profile->tape);
    free(profile->mapping);
    free(profile->op);
    free(profile->call_path);
    free(profile->path_by_number);
    free(profile->path);
    free(profile->stored);
    free(profile->library_version);
    free(profile->program);
    free(profile->working_directory);
    free(profile->clock);
    free(profile->collector);
    free(profile->options);
    free(profile->end_reason);
    read_samples_free(profile);
    free(profile->warning);
    free(profile);
}
