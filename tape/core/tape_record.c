/* tape_record.c: see tape_record.h. */
#include "tape_record.h"

#include "tape_account.h"

#include <string.h>

struct tape_record *tape_record_append(struct tape *t, const struct record_kind *kind,
                                       uint16_t n_in, uint8_t n_out, size_t attr, size_t more,
                                       uint32_t row)
{
    const size_t head =
        sizeof(struct tape_record) + attr + ((size_t)n_in + (size_t)n_out) * sizeof(uint32_t);
    const size_t n = (head + more + 7) / 8 * 8;
    const size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    struct tape_record *r = offset < UINT32_MAX ? tape_arena_record(&t->arena, n) : NULL;
    if (!r)
        return NULL;
    memset(r, 0, head);
    *r = (struct tape_record){.op = &kind->op,
                              .previous = t->last_record,
                              .row = row,
                              .n_in = n_in,
                              .n_out = n_out,
                              .n_attr = (uint8_t)(attr / sizeof(int64_t)),
                              .bytes = (uint32_t)n};
    t->last_record = (uint32_t)offset;
    t->n_records++;
    tape_account_record(t, r);
    if (t->hook)
        TAPE_ADD(t->ledger.records, 1);
    return r;
}

struct tape_record *tape_record_of_kind(struct tape *t, const struct record_kind *kind, size_t attr,
                                        size_t more, uint32_t row)
{
    return tape_record_append(t, kind, (uint16_t)kind->op.n_in, (uint8_t)kind->op.n_out, attr, more,
                              row);
}
