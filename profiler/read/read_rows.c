/* read_rows.c: unpacks the packets of a tape's state, of which a large profile is made.
 *
 * As protobuf-c does, which takes several times as long for messages with so many fields. It is
 * left what is not a row: it also says what is damaged there. Invariant: what is unpacked is what
 * protobuf-c would unpack.
 */
#include "read_rows.h"

#include <string.h>

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5, VARINT_BYTES = 10 };
enum { FIELD_LEDGER = 3, FIELD_ROW = 4 };

struct wire {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t wire_varint(struct wire *wire)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < VARINT_BYTES && wire->at < wire->end; i++) {
        const uint8_t byte = *wire->at++;
        n |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return n;
    }
    wire->bad = true;
    return 0;
}

/* Goes past n bytes, and returns where they are. */
static const uint8_t *wire_bytes(struct wire *wire, uint64_t n)
{
    const uint8_t *from = wire->at;
    if (n > (uint64_t)(wire->end - wire->at)) {
        wire->bad = true;
        return NULL;
    }
    wire->at += n;
    return from;
}

/* A tag: number and type of the field that follows. */
static uint32_t wire_tag(struct wire *wire, unsigned *type)
{
    const uint64_t tag = wire_varint(wire);
    *type = (unsigned)(tag & 7);
    wire->bad |= tag < 8 || tag > UINT32_MAX;
    return (uint32_t)(tag >> 3);
}

static void wire_skip(struct wire *wire, unsigned type)
{
    if (type == VARINT)
        (void)wire_varint(wire);
    else if (type == BYTES)
        (void)wire_bytes(wire, wire_varint(wire));
    else if (type == FIXED_64 || type == FIXED_32)
        (void)wire_bytes(wire, type == FIXED_64 ? 8 : 4);
    else
        wire->bad = true;
}

static char *rows_text(struct wire *wire, unsigned type, ProtobufCAllocator *allocator)
{
    const size_t n = type == BYTES ? (size_t)wire_varint(wire) : 0;
    const uint8_t *from = wire_bytes(wire, n);
    wire->bad |= type != BYTES;
    char *text = wire->bad ? NULL : allocator->alloc(allocator->allocator_data, n + 1);
    if (!text) {
        wire->bad = true;
        return NULL;
    }
    memcpy(text, from, n);
    text[n] = 0;
    return text;
}

/* Sets the field of a number; returns whether a row has it. */
static bool rows_set(Tapescope__Row *row, uint32_t field, uint64_t n)
{
    switch (field) {
    case 1:
        row->index = (uint32_t)n;
        return true;
    case 2:
        row->pc = n;
        return true;
    case 3:
        row->line = (uint32_t)n;
        return true;
    case 5:
        row->kept_by = (uint32_t)n;
        return true;
    case 6:
        row->kept_others = n != 0;
        return true;
    case 21:
        row->path = (uint32_t)n;
        return true;
    case 24:
        row->scope = (uint32_t)n;
        return true;
    case 36:
        row->thread = n;
        return true;
#define ROW(X, name, field, ...)                                                                   \
    case field:                                                                                    \
        row->name = n;                                                                             \
        return true;
        COUNTERS(ROW, COUNTER_NONE, )
#undef ROW
    default:
        return false;
    }
}

static void rows_unpack(Tapescope__Row *row, struct wire *wire, ProtobufCAllocator *allocator)
{
    tapescope__row__init(row);
    while (wire->at < wire->end && !wire->bad) {
        unsigned type;
        const uint32_t field = wire_tag(wire, &type);
        if (field == 4)
            row->op = rows_text(wire, type, allocator);
        else if (field == 26)
            row->shape = rows_text(wire, type, allocator);
        else if (type != VARINT) {
            Tapescope__Row none;
            wire->bad |= rows_set(&none, field, 0);
            wire_skip(wire, type);
        } else {
            (void)rows_set(row, field, wire_varint(wire));
        }
    }
}

/* Copies what is not a row to `rest`, and counts the rows, whose bytes are known to be there. */
static size_t rows_part(struct wire wire, uint8_t *rest, size_t *n_rest, bool *bad)
{
    size_t n_rows = 0;
    *n_rest = 0;
    while (wire.at < wire.end && !wire.bad) {
        const uint8_t *from = wire.at;
        unsigned type;
        const bool is_row = wire_tag(&wire, &type) == FIELD_ROW && type == BYTES;
        wire_skip(&wire, type);
        n_rows += is_row;
        if (is_row || wire.bad)
            continue;
        memcpy(rest + *n_rest, from, (size_t)(wire.at - from));
        *n_rest += (size_t)(wire.at - from);
    }
    *bad = wire.bad;
    return n_rows;
}

static Tapescope__Ledger *rows_ledger(struct wire wire, ProtobufCAllocator *allocator)
{
    void *const payload = allocator->allocator_data;
    uint8_t *rest = allocator->alloc(payload, (size_t)(wire.end - wire.at) + 1);
    size_t n_rest;
    bool bad;
    if (!rest)
        return NULL;
    const size_t n = rows_part(wire, rest, &n_rest, &bad);
    if (bad)
        return NULL;
    Tapescope__Ledger *ledger = tapescope__ledger__unpack(allocator, n_rest, rest);
    Tapescope__Row *row = allocator->alloc(payload, (n + 1) * sizeof *row);
    Tapescope__Row **rows = allocator->alloc(payload, (n + 1) * sizeof *rows);
    if (!ledger || !row || !rows)
        return NULL;
    for (size_t i = 0; i < n;) {
        unsigned type;
        if (wire_tag(&wire, &type) != FIELD_ROW || type != BYTES) {
            wire_skip(&wire, type);
            continue;
        }
        const size_t bytes = (size_t)wire_varint(&wire);
        const uint8_t *from = wire_bytes(&wire, bytes);
        struct wire within = {from, from + bytes, false};
        rows_unpack(&row[i], &within, allocator);
        if (within.bad)
            return NULL;
        rows[i] = &row[i];
        i++;
    }
    ledger->n_row = n;
    ledger->row = rows;
    return ledger;
}

Tapescope__Packet *read_rows_unpack(const uint8_t *data, size_t n, ProtobufCAllocator *allocator)
{
    struct wire wire = {data, data + n, false};
    unsigned type;
    const bool is_ledger = n > 0 && wire_tag(&wire, &type) == FIELD_LEDGER && type == BYTES;
    const uint64_t bytes = is_ledger ? wire_varint(&wire) : 0;
    if (!is_ledger || wire.bad || bytes != (uint64_t)(wire.end - wire.at))
        return tapescope__packet__unpack(allocator, n, data);
    Tapescope__Packet *packet = allocator->alloc(allocator->allocator_data, sizeof *packet);
    Tapescope__Ledger *ledger = packet ? rows_ledger(wire, allocator) : NULL;
    if (!ledger)
        return NULL;
    tapescope__packet__init(packet);
    packet->kind_case = TAPESCOPE__PACKET__KIND_LEDGER;
    packet->ledger = ledger;
    return packet;
}
