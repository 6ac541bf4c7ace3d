/* statement_bytes.h: what a statement takes on the tape. */
#ifndef STATEMENT_BYTES_H
#define STATEMENT_BYTES_H

/* Of up to 12 operands: `general` with a derivative that is stored, `units` with one of 1 or -1. */
#define STATEMENT(general, units) (12 * (general) + 4 * (units) + 4)

#endif
