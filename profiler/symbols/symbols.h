/* symbols.h: from addresses in a process to functions and source lines, through debug information.
 *
 * Invariant: every compilation unit is walked at most once, however many addresses it answers for.
 *
 * A site is the return address of a call that an always_inline wrapper of <tapescope/...> makes
 * in the user's function. Such wrappers are skipped: the place of a site is where the user wrote
 * the call.
 */
#ifndef PROFILER_SYMBOLS_H
#define PROFILER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An executable mapping of the process. */
struct symbols_module {
    const char *path;        /* "[vdso]" and the like: of no file, of which nothing is asked */
    const uint8_t *build_id; /* may be NULL: not checked */
    size_t build_id_bytes;
    uint64_t start, end; /* run-time addresses, end exclusive */
    uint64_t bias;       /* run-time address minus address in the file */
};

/* Where an address lies. Strings belong to the symbols and live until it is closed. */
struct symbols_place {
    const char *function;   /* NULL: unknown */
    const char *file;       /* absolute and normalised; NULL: no line information */
    uint32_t line;          /* 0: unknown */
    uint32_t function_line; /* where the function is declared; 0: unknown */
    const char *module;     /* path; NULL: the address lies in no module */
    bool wrapped;           /* code of <tapescope/...> that is inlined at this place */
    uint64_t offset; /* without `file`: from the start of `function`, or in the module, or 0 where
                      * the module is no file, as "[vdso]" */
};

enum { SYMBOLS_INLINED = 32 }; /* functions within each other that one address may have */

struct symbols;

/* Called once for each file that cannot be used, with one line of text. */
typedef void symbols_warn_fn(void *payload, const char *message);

/* Opens a set of modules (copied); files are opened when an address first needs them. Where two
 * modules overlap, the later one counts. `warn` may be NULL. Returns NULL only when memory is
 * exhausted. One thread at a time may use a symbols. */
struct symbols *symbols_open(const struct symbols_module *modules, size_t n, symbols_warn_fn *warn,
                             void *payload);

/* The same beside other symbols, whose files it shares: what both have is opened and walked once.
 * The other may be closed before. Both are then of one thread at a time. beside: NULL for none. */
struct symbols *symbols_open_beside(const struct symbols_module *modules, size_t n,
                                    symbols_warn_fn *warn, void *payload,
                                    const struct symbols *beside);

/* Resolves the return address pc; the call is looked up at pc - 1. line: __LINE__ of the call if
 * it is known, else 0; it replaces the line of the debug information. Fills *place in every
 * case; returns 0 if it has a file and a line, 1 if it has less. */
int symbols_resolve(struct symbols *symbols, uint64_t pc, uint32_t line,
                    struct symbols_place *place);

/* The same with the functions that the call's own was inlined into: place[0] is what
 * symbols_resolve gives, place[1] the call in its caller, up to the function that has the
 * code. Returns how many of at most `room`, 1 or more, were filled. */
size_t symbols_chain(struct symbols *symbols, uint64_t pc, uint32_t line,
                     struct symbols_place *place, size_t room);

/* The path of the module that the address lies in, which is not opened for it; or NULL. */
const char *symbols_module(const struct symbols *symbols, uint64_t pc);

/* Whether memory was exhausted in any call: a place may then lack what the debug information
 * has. */
bool symbols_no_memory(const struct symbols *symbols);

/* How many compilation units were walked so far. */
uint64_t symbols_units_walked(const struct symbols *symbols);

void symbols_close(struct symbols *symbols);

#endif
