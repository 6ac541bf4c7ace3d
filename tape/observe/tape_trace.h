/* tape_trace.h: what was made since the tape was last nearly empty, one by one, for who asks what
 * would be live if parts of it were checkpoints. trace.h says what the words are.
 *
 * For the tape's own thread. Nothing below does anything unless the tape has residuals and is
 * observed. What functions of checkpoints and sections record is left out, and a flag says so.
 */
#ifndef TAPE_TRACE_H
#define TAPE_TRACE_H

#include "tape_residual.h"

/* A value; an op's record; an op that has just left its record, with its results (reads: operands
 * that its pullback touches); n bytes of another record. */
void tape_trace_value(struct tape *t, const struct tape_value *v);
void tape_trace_record(struct tape *t, struct tape_record *r);
void tape_trace_op(struct tape *t, struct tape_record *r, uint32_t reads);
void tape_trace_bytes(struct tape *t, uint32_t row, uint64_t n);

/* The program uses handles of n values; an op without a record, which has made its results, has
 * these operands. */
void tape_trace_used(struct tape *t, uint32_t n, const uint32_t *x);
void tape_trace_operands(struct tape *t, uint32_t n, const uint32_t *x);
/* What was made since the trace began and is still there may be used when it has ended. */
void tape_trace_ends(struct tape *t);

/* No handle names the value any more; values were dropped; a sweep begins. */
void tape_trace_released(struct tape *t, const struct tape_value *v);
void tape_trace_rewound(struct tape *t);
void tape_trace_sweep(struct tape *t);

/* Where that is wanted: a statement of so many bytes and n operands; a fused loop of so many bytes
 * and results, and of n ranges of operands {first index, how many}. */
void tape_trace_statement(struct tape *t, uint32_t row, uint32_t result, uint64_t bytes,
                          const uint32_t *operand, uint32_t n);
void tape_trace_fused_loop(struct tape *t, uint32_t row, uint64_t bytes, uint32_t first,
                           uint32_t results, const uint32_t *range, uint32_t n);

/* A run of statements, which take so many words at most, is put off, as ops are: only the stretch
 * with the peak is ever read, and most others have none. The trace has it as soon as the peak comes
 * to the stretch, or before the run is dropped, by the run's kind. False: it is to be traced
 * now. */
bool tape_trace_put_off(struct tape *t, struct tape_record *run, uint64_t words);
/* What was put off comes to the trace; if this record may be among it, which is to be dropped. */
void tape_trace_settle(struct tape *t);
void tape_trace_drops(struct tape *t, const struct tape_record *r);
/* A rewind begins that leaves so many records: what was put off behind them need not come, if all
 * of the stretch is dropped. */
void tape_trace_rewinds(struct tape *t, uint32_t n_records);

/* Something is left out, so that what the trace says of calls is a lower bound. */
void tape_trace_hides(struct tape *t);

/* Whether more is wanted; and whether what comes now belongs to the trace. */
bool tape_trace_open(const struct tape *t);
bool tape_trace_wants(struct tape *t);

#endif
