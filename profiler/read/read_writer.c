/* read_writer.c: see read_writer.h. */
#include "read_writer.h"

#include "base_memory.h"
#include "profile_frame.h"
#include "read_aside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS_IN_PACKET = 1024, PIECE = 1 << 18 };

/* What zlib's last failure was about. */
static int gzip_error(gzFile to)
{
    int status;
    gzerror(to, &status);
    if (status == Z_MEM_ERROR)
        base_no_memory();
    return errno ? errno : EIO;
}

static void writer_put_piece(struct read_writer *writer)
{
    uint8_t *piece = writer->piece;
    Tapescope__Part part = TAPESCOPE__PART__INIT;
    part.place = writer->place;
    part.piece = (ProtobufCBinaryData){.data = piece, .len = writer->n_piece};
    writer->piece = NULL;
    read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_PART, &part);
    writer->piece = piece;
    writer->n_piece = 0;
}

static void writer_put_part(struct read_writer *writer, const uint8_t *data, size_t n)
{
    while (n > 0) {
        const size_t room = PIECE - writer->n_piece, step = n < room ? n : room;
        memcpy(writer->piece + writer->n_piece, data, step);
        writer->n_piece += step;
        data += step;
        n -= step;
        if (writer->n_piece == PIECE)
            writer_put_piece(writer);
    }
}

static void writer_put(struct read_writer *writer, const void *data, size_t n)
{
    if (writer->piece) {
        writer_put_part(writer, data, n);
        return;
    }
    errno = 0;
    if (writer->error == 0 && n > 0 && gzwrite(writer->to, data, (unsigned)n) != (int)n)
        writer->error = gzip_error(writer->to);
}

void read_writer_open(struct read_writer *writer, const char *path)
{
    *writer = (struct read_writer){.path = path};
    int fd;
    writer->aside = read_aside_make(path, &fd);
    if (!writer->aside) {
        writer->error = errno;
        return;
    }
    read_aside_note(writer->aside);
    writer->to = gzdopen(fd, "wb6");
    if (!writer->to)
        base_no_memory();
    writer_put(writer, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
}

void read_writer_put_frame(struct read_writer *writer, const void *payload, size_t n)
{
    uint8_t head[PROFILE_FRAME_BYTES];
    profile_frame_put(head, payload, (uint32_t)n);
    writer_put(writer, head, sizeof head);
    writer_put(writer, payload, n);
}

void read_writer_put_packet(struct read_writer *writer, Tapescope__Packet__KindCase kind,
                            void *message)
{
    const Tapescope__Packet packet = profile_packet(kind, message);
    if (writer->error != 0)
        return;
    size_t n = tapescope__packet__get_packed_size(&packet);
    uint8_t *payload = base_malloc(n + 1);
    tapescope__packet__pack(&packet, payload);
    read_writer_put_frame(writer, payload, n);
    free(payload);
}

static char *writer_text(char *text)
{
    return text ? text : (char *)"";
}

void read_writer_put_symbols(struct read_writer *writer, const struct read_symbol *symbol, size_t n)
{
    Tapescope__Symbol **list = profile_list(&tapescope__symbol__descriptor, SYMBOLS_IN_PACKET);
    if (!list) {
        base_no_memory();
        return;
    }
    for (size_t i = 0; i < n && writer->error == 0;) {
        Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
        for (; i < n && symbols.n_symbol < SYMBOLS_IN_PACKET; i++) {
            Tapescope__Symbol *to = list[symbols.n_symbol++];
            to->pc = symbol[i].pc;
            to->line = symbol[i].line;
            to->depth = symbol[i].depth;
            to->outermost = symbol[i].outermost;
            to->wrapped = symbol[i].wrapped;
            to->function = writer_text(symbol[i].function);
            to->file = writer_text(symbol[i].file);
            to->module = writer_text(symbol[i].module);
            to->source_line = symbol[i].source_line;
            to->function_line = symbol[i].function_line;
            to->offset = symbol[i].offset;
        }
        symbols.symbol = list;
        read_writer_put_packet(writer, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
    }
    free(list);
}

void read_writer_begin_part(struct read_writer *writer, uint32_t place)
{
    writer->piece = base_malloc(PIECE);
    writer->n_piece = 0;
    writer->place = place;
    writer_put(writer, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
}

void read_writer_end_part(struct read_writer *writer)
{
    writer_put_piece(writer);
    free(writer->piece);
    writer->piece = NULL;
}

int read_writer_close(struct read_writer *writer)
{
    errno = 0;
    int closed = writer->to ? gzclose(writer->to) : Z_OK;
    if (closed == Z_MEM_ERROR)
        base_no_memory();
    if (closed != Z_OK && writer->error == 0)
        writer->error = errno ? errno : EIO;
    writer->error = read_aside_settle(writer->aside, writer->path, writer->error);
    writer->aside = NULL;
    return writer->error;
}
