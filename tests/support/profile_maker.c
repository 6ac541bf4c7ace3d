/* profile_maker.c: profiles made packet by packet. */
#include "profile_maker.h"
#include "profile_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void maker_demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "profile_maker: %s\n", what);
    abort();
}

void maker_put(struct maker_bytes *bytes, const void *data, size_t n)
{
    maker_demand(n <= sizeof bytes->data - bytes->n, "no room");
    memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
}

void maker_put_frame(struct maker_bytes *bytes, const void *payload, size_t n)
{
    uint8_t head[PROFILE_FRAME_BYTES];
    maker_demand(bytes->n_frames < MAKER_FRAMES, "no room for a frame");
    profile_frame_put(head, payload, (uint32_t)n);
    bytes->frame[bytes->n_frames++] = bytes->n;
    maker_put(bytes, head, sizeof head);
    maker_put(bytes, payload, n);
    bytes->frame[bytes->n_frames] = bytes->n;
}

void maker_put_packet(struct maker_bytes *bytes, Tapescope__Packet__KindCase kind, void *message)
{
    const Tapescope__Packet packet = profile_packet(kind, message);
    uint8_t payload[MAKER_BYTES];
    maker_demand(tapescope__packet__get_packed_size(&packet) <= sizeof payload, "too large");
    maker_put_frame(bytes, payload, tapescope__packet__pack(&packet, payload));
}

void maker_put_header(struct maker_bytes *bytes, const char *clock, uint32_t version)
{
    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    char *argument[] = {(char *)"./program", (char *)"a\033[31m b"};
    header.version = version;
    header.library_version = (char *)"0.1";
    header.program = (char *)"/nowhere/program";
    header.argument = argument;
    header.n_argument = 2;
    header.clock = (char *)(uintptr_t)clock;
    header.start_unix_ns = 1700000000000000000u;
    maker_put(bytes, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_HEADER, &header);
}

void maker_put_clock(struct maker_bytes *bytes, uint64_t ticks, uint64_t ns)
{
    Tapescope__Clock clock = TAPESCOPE__CLOCK__INIT;
    clock.ticks = ticks;
    clock.monotonic_ns = ns;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_CLOCK, &clock);
}

void maker_put_overhead(struct maker_bytes *bytes, double forward, double backward)
{
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    overhead.forward_ticks = forward;
    overhead.backward_ticks = backward;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_OVERHEAD, &overhead);
}

void maker_put_modules(struct maker_bytes *bytes)
{
    uint8_t id[] = {1, 2, 3, 4};
    Tapescope__Module module = TAPESCOPE__MODULE__INIT;
    Tapescope__Module *list[] = {&module};
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    module.path = (char *)"/nowhere/program";
    module.build_id = (ProtobufCBinaryData){sizeof id, id};
    module.start = 0x1000;
    module.end = 0x9000;
    modules.module = list;
    modules.n_module = 1;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_MODULES, &modules);
}

void maker_put_module(struct maker_bytes *bytes, const char *path, uint64_t start, uint64_t bias)
{
    Tapescope__Module module = TAPESCOPE__MODULE__INIT, *list[] = {&module};
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    module.path = (char *)(uintptr_t)path;
    module.start = start;
    module.end = start + 0x1000;
    module.bias = bias;
    modules.module = list;
    modules.n_module = 1;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_MODULES, &modules);
}

void maker_put_symbols(struct maker_bytes *bytes, uint64_t known_pc, uint32_t known_line,
                       uint64_t other_pc)
{
    Tapescope__Symbol known = TAPESCOPE__SYMBOL__INIT, other = TAPESCOPE__SYMBOL__INIT;
    Tapescope__Symbol *list[] = {&known, &other};
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    known.pc = known_pc;
    known.line = known_line;
    known.function = (char *)"dense";
    known.file = (char *)"/src/mlp.c";
    known.module = (char *)"/bin/mlp";
    known.source_line = 41;
    known.function_line = 30;
    other.pc = other_pc;
    other.function = (char *)"dense";
    other.offset = 16;
    symbols.symbol = list;
    symbols.n_symbol = 2;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
}

void maker_put_end(struct maker_bytes *bytes)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    end.reason = (char *)"stop";
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_END, &end);
}

struct maker_ledger *maker_new_ledger(uint64_t tape)
{
    struct maker_ledger *made = calloc(1, sizeof *made);
    maker_demand(made, "no memory");
    tapescope__ledger__init(&made->ledger);
    made->ledger.row = made->list;
    made->ledger.tape = tape;
    return made;
}

Tapescope__Row *maker_add_row(struct maker_ledger *made, uint32_t index, uint64_t pc,
                              const char *op)
{
    Tapescope__Row *row = &made->row[made->ledger.n_row];
    tapescope__row__init(row);
    row->index = index;
    row->pc = pc;
    row->op = (char *)(uintptr_t)op;
    made->list[made->ledger.n_row++] = row;
    return row;
}

void maker_put_ledger(struct maker_bytes *bytes, struct maker_ledger *made)
{
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_LEDGER, &made->ledger);
    free(made);
}

struct read_profile *maker_read(struct maker_bytes *bytes)
{
    char error[1024] = "";
    maker_put_end(bytes);
    FILE *stream = fmemopen(bytes->data, bytes->n, "r");
    maker_demand(stream, "no stream");
    struct read_profile *profile = read_profile_stream(stream, "x", error, sizeof error);
    fclose(stream);
    *bytes = (struct maker_bytes){0};
    maker_demand(profile, error);
    maker_demand(!profile->warning, "a warning");
    return profile;
}
