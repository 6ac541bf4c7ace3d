/* pack.c: see pack.h. */
#include "pack.h"

#include "profile.pb-c.h"
#include "profile_frame.h"
#include "reader_inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SYMBOLS_IN_PACKET = 1024, LEVEL = 6 };

/* The file under way. `error` is an errno, 0 while all is well. */
struct packer {
    FILE *from;
    gzFile to;
    uint8_t *payload;
    size_t room;
    int error;
};

/* What zlib's last failure was about. */
static int gzip_error(gzFile to)
{
    int status;
    gzerror(to, &status);
    return status == Z_MEM_ERROR ? ENOMEM : errno ? errno : EIO;
}

static void put(struct packer *packer, const void *data, size_t n)
{
    errno = 0;
    if (packer->error == 0 && n > 0 && gzwrite(packer->to, data, (unsigned)n) != (int)n)
        packer->error = gzip_error(packer->to);
}

static void put_frame(struct packer *packer, const void *payload, size_t n)
{
    uint8_t head[PROFILE_FRAME_BYTES];
    profile_frame_put(head, payload, (uint32_t)n);
    put(packer, head, sizeof head);
    put(packer, payload, n);
}

static size_t get(struct packer *packer, void *to, size_t n)
{
    size_t got = fread(to, 1, n, packer->from);
    while (got < n && ferror(packer->from)) {
        if (errno != EINTR) {
            packer->error = errno ? errno : EIO;
            break;
        }
        clearerr(packer->from);
        got += fread((uint8_t *)to + got, 1, n - got, packer->from);
    }
    return got;
}

/* Room that grows with what is really read. */
static bool reserve(struct packer *packer, size_t n)
{
    if (n <= packer->room)
        return true;
    uint8_t *payload = realloc(packer->payload, n);
    if (!payload) {
        packer->error = ENOMEM;
        return false;
    }
    packer->payload = payload;
    packer->room = n;
    return true;
}

/* The next whole frame into the payload; 0: there is none. */
static size_t next_frame(struct packer *packer)
{
    enum { STEP = 1 << 20 };
    uint8_t head[PROFILE_FRAME_BYTES];
    uint32_t n, crc;
    if (get(packer, head, sizeof head) < sizeof head || !profile_frame_get(head, &n, &crc))
        return 0;
    for (size_t have = 0; have < n;) {
        size_t step = n - have < STEP ? n - have : STEP;
        if (!reserve(packer, have + step) || get(packer, packer->payload + have, step) < step)
            return 0;
        have += step;
    }
    return profile_crc(packer->payload, n) == crc ? n : 0;
}

/* Whether the payload is a packet of this kind: its first field has that number and is a message
 * (in the encoding of Protocol Buffers, for numbers below 16: number times 8, plus 2). */
static bool is_kind(const uint8_t *payload, Tapescope__Packet__KindCase kind)
{
    return payload[0] == (unsigned)kind * 8 + 2;
}

static void pack_packet(struct packer *packer, Tapescope__Packet *packet)
{
    size_t n = tapescope__packet__get_packed_size(packet);
    uint8_t *payload = malloc(n + 1);
    if (!payload) {
        packer->error = ENOMEM;
        return;
    }
    tapescope__packet__pack(packet, payload);
    put_frame(packer, payload, n);
    free(payload);
}

static char *text(char *text)
{
    return text ? text : (char *)"";
}

static void put_symbols(struct packer *packer, const struct prof_symbol *symbol, size_t n)
{
    Tapescope__Symbol *made = calloc(SYMBOLS_IN_PACKET, sizeof *made);
    Tapescope__Symbol **list = calloc(SYMBOLS_IN_PACKET, sizeof(Tapescope__Symbol *));
    if (!made || !list)
        packer->error = ENOMEM;
    for (size_t i = 0; i < n && packer->error == 0;) {
        Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        for (; i < n && symbols.n_symbol < SYMBOLS_IN_PACKET; i++) {
            Tapescope__Symbol *to = list[symbols.n_symbol] = &made[symbols.n_symbol];
            tapescope__symbol__init(to);
            to->pc = symbol[i].pc;
            to->line = symbol[i].line;
            to->function = text(symbol[i].function);
            to->file = text(symbol[i].file);
            to->module = text(symbol[i].module);
            to->source_line = symbol[i].source_line;
            to->function_line = symbol[i].function_line;
            to->offset = symbol[i].offset;
            symbols.n_symbol++;
        }
        symbols.symbol = list;
        packet.kind_case = TAPESCOPE__PACKET__KIND_SYMBOLS;
        packet.symbols = &symbols;
        pack_packet(packer, &packet);
    }
    free(list);
    free(made);
}

/* Everything behind the magic. */
static void copy_packets(struct packer *packer, const struct prof_symbol *symbol, size_t n)
{
    size_t frame;
    bool ended = false;
    put(packer, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    while (!ended && packer->error == 0 && (frame = next_frame(packer)) > 0) {
        ended = is_kind(packer->payload, TAPESCOPE__PACKET__KIND_END);
        if (ended)
            put_symbols(packer, symbol, n);
        if (!is_kind(packer->payload, TAPESCOPE__PACKET__KIND_SYMBOLS)) /* ours take their place */
            put_frame(packer, packer->payload, frame);
    }
    if (!ended && packer->error == 0)
        put_symbols(packer, symbol, n);
}

/* Opens `from` behind its magic; *inflated: what the caller closes as well. */
static int open_profile(struct packer *packer, FILE *raw, FILE **inflated)
{
    uint8_t magic[PROFILE_MAGIC_BYTES];
    packer->from = raw;
    size_t got = get(packer, magic, sizeof magic);
    if (reader_is_compressed(magic, got)) {
        packer->from = *inflated = reader_inflate(raw, magic, got);
        if (!packer->from)
            return ENOMEM;
        got = get(packer, magic, sizeof magic);
    }
    if (packer->error == 0 && (got < sizeof magic || memcmp(magic, PROFILE_MAGIC, got) != 0))
        return EINVAL;
    return packer->error;
}

/* Packs the stream into a new file at `path`, which stays only on success. */
static int pack_to(FILE *raw, const char *path, int fd, const struct prof_symbol *symbol, size_t n)
{
    struct packer packer = {.error = 0};
    FILE *inflated = NULL;
    mode_t mask = umask(0);
    umask(mask);
    packer.error = open_profile(&packer, raw, &inflated);
    if (packer.error == 0 && fchmod(fd, 0666 & ~mask) != 0)
        packer.error = errno;
    errno = 0;
    packer.to = packer.error == 0 ? gzdopen(fd, "wb6") : NULL;
    if (packer.to) {
        copy_packets(&packer, symbol, n);
        errno = 0;
        int closed = gzclose(packer.to);
        if (closed != Z_OK && packer.error == 0)
            packer.error = closed == Z_MEM_ERROR ? ENOMEM : errno ? errno : EIO;
    } else {
        packer.error = packer.error ? packer.error : ENOMEM;
        close(fd);
    }
    if (inflated)
        fclose(inflated);
    free(packer.payload);
    if (packer.error != 0)
        unlink(path);
    return packer.error;
}

int prof_pack(const char *from, const char *to, const struct prof_symbol *symbol, size_t n,
              char *error, size_t room)
{
    char *aside = NULL;
    FILE *raw;
    do
        raw = fopen(from, "re");
    while (!raw && errno == EINTR);
    if (!raw) {
        snprintf(error, room, "%s: %s", from, strerror(errno));
        return -1;
    }
    int why = asprintf(&aside, "%s.XXXXXX", to) < 0 ? ENOMEM : 0;
    if (why != 0)
        aside = NULL;
    int fd = aside ? mkostemp(aside, O_CLOEXEC) : -1;
    if (aside && fd < 0)
        why = errno;
    if (fd >= 0)
        why = pack_to(raw, aside, fd, symbol, n);
    if (fd >= 0 && why == 0 && rename(aside, to) != 0) {
        why = errno;
        unlink(aside);
    }
    fclose(raw);
    free(aside);
    if (why != 0)
        snprintf(error, room, "%s: %s", to, strerror(why));
    return why != 0 ? -1 : 0;
}
