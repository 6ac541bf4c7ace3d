/* trace.h: what a tape made in the stretch with its peak, one by one: the words of a trace.
 *
 * An entry is {kind | number of its words << TRACE_KIND_BITS, class of the tape's that it is
 * charged to, ...}. Values are named by their places in the tape's table, which a rewind gives to
 * others; statements' results by their indices. What is named and was not made in the trace is
 * older.
 */
#ifndef CONTRACT_TRACE_H
#define CONTRACT_TRACE_H

enum {
    TRACE_KIND_BITS = 4,
    TRACE_ENTRY_LEAST = 2, /* words of an entry */
    /* More is not kept: the trace is cut. */
    TRACE_MOST = 1 << 18,
};

enum trace_kind {
    /* {value, the one that owns its buffer, bytes of its entry, buffer and adjoint in units of
     * 8 bytes, as the arena hands them out, 1: it is a leaf} */
    TRACE_VALUE,
    /* {bytes, how many results, which of them the pullback reads, results, operands}: an op's */
    TRACE_RECORD,
    TRACE_BYTES,     /* {bytes}: another record, or a part of one */
    TRACE_RELEASE,   /* {value}: no handle names it from now on */
    TRACE_REWIND,    /* {value}: those from this one on are dropped */
    TRACE_SWEEP,     /* a sweep begins */
    TRACE_STATEMENT, /* {result, bytes, operands}; statements of a run come newest first */
    /* {bytes, first result, how many, for each operand its first index and how many}; likewise */
    TRACE_FUSED_LOOP,
    /* {values}: handles that the program has used, other than as operands of an op with a record;
     * those of leaves and of what is older than the trace may lack. Where more was recorded when
     * the trace had ended, what was still there then counts as used. */
    TRACE_USE,
    TRACE_KINDS
};

/* An operand that the pullback reads has this bit. */
#define TRACE_READS 0x80000000u

#endif
