/* reader_ledger.c: joins the packets of each tape into its last state.
 *
 * May include: profiler/file, protobuf-c. See reader_state.h for the invariant.
 * Counters are running totals, so a row's last packet replaces what came before. A destroyed
 * tape says so in a last packet (`final`); the next packet of tape 0 holds its rows, so the tape
 * is dropped then and not before: a profile that ends between the two loses nothing.
 */
#include "reader_state.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Names whose hashes collide get the next free number. */
const char *reader_intern_op(struct reader_state *state, const char *name)
{
    struct prof_profile *profile = state->profile;
    uint64_t key = hash_text(name);
    for (int64_t at; (at = reader_map_find(&state->ops, key)) >= 0; key++)
        if (strcmp(profile->op[at], name) == 0)
            return profile->op[at];
    char **op = reader_grow(profile->op, profile->n_ops, &state->room_ops, sizeof *op);
    char *copy = op ? strdup(name) : NULL;
    if (op)
        profile->op = op;
    if (!copy || reader_map_add(&state->ops, key, (uint32_t)profile->n_ops) != READER_OK) {
        free(copy);
        return NULL;
    }
    return profile->op[profile->n_ops++] = copy;
}

static enum reader_status apply_row(struct reader_state *state, struct reader_tape *tape,
                                    const Tapescope__Row *from)
{
    int64_t at = reader_map_find(&tape->rows, from->index);
    if (at < 0) {
        struct prof_row *row =
            reader_grow(tape->tape.row, tape->tape.n_rows, &tape->room, sizeof *row);
        if (!row)
            return READER_NO_MEMORY;
        tape->tape.row = row;
        at = (int64_t)tape->tape.n_rows;
        enum reader_status status = reader_map_add(&tape->rows, from->index, (uint32_t)at);
        if (status != READER_OK)
            return status;
        row[at].op = NULL;
        tape->tape.n_rows++;
    }
    struct prof_row *row = &tape->tape.row[at];
    const char *op =
        row->op && strcmp(row->op, from->op) == 0 ? row->op : reader_intern_op(state, from->op);
    const char *shape = *from->shape ? reader_intern_op(state, from->shape) : NULL;
    *row = (struct prof_row){.pc = from->pc,
                             .op = op ? op : "",
                             .shape = shape,
                             .line = from->line,
                             .path = from->path,
                             .index = from->index,
                             .kept_by_index = from->kept_by,
                             .kept_others = from->kept_others,
                             .scope = from->scope,
#define X(name) .name = from->name,
                             PROF_ROW_COUNTERS(X)
#undef X
    };
    return op && (shape || !*from->shape) ? READER_OK : READER_NO_MEMORY;
}

struct reader_tape *reader_find_tape(struct reader_state *state, uint64_t number)
{
    int64_t at = reader_map_find(&state->tapes, number);
    if (at >= 0)
        return &state->tape[at];
    struct reader_tape *tape =
        reader_grow(state->tape, state->n_tapes, &state->room_tapes, sizeof *tape);
    if (!tape)
        return NULL;
    state->tape = tape;
    if (reader_map_add(&state->tapes, number, (uint32_t)state->n_tapes) != READER_OK)
        return NULL;
    tape += state->n_tapes++;
    *tape = (struct reader_tape){.tape = {.tape = number}};
    return tape;
}

/* Tape 0 has arrived: what was destroyed before is in it. */
static enum reader_status drop_final(struct reader_state *state)
{
    if (state->n_final == 0)
        return READER_OK;
    size_t kept = 0;
    state->n_final = 0;
    reader_map_free(&state->tapes);
    for (size_t i = 0; i < state->n_tapes; i++) {
        if (state->tape[i].tape.final) {
            reader_tape_free(&state->tape[i]);
            continue;
        }
        if (kept != i)
            state->tape[kept] = state->tape[i];
        kept++;
    }
    state->n_tapes = kept;
    for (size_t i = 0; i < kept; i++)
        if (reader_map_add(&state->tapes, state->tape[i].tape.tape, (uint32_t)i) != READER_OK)
            return READER_NO_MEMORY;
    return READER_OK;
}

/* Tape 0 stands for no tape: what was said of it before is void. Its rows follow, with zeros. */
static void drop_residuals(struct reader_tape *tape)
{
    reader_map_free(&tape->residuals);
    tape->tape.n_residuals = tape->tape.n_changes = tape->tape.n_moments = 0;
    tape->tape.peak_ticks = 0;
}

enum reader_status reader_apply_ledger(struct reader_state *state, const Tapescope__Ledger *ledger)
{
    if (ledger->tape == 0 && drop_final(state) != READER_OK)
        return READER_NO_MEMORY;
    struct reader_tape *tape = reader_find_tape(state, ledger->tape);
    if (!tape)
        return READER_NO_MEMORY;
    if (ledger->ticks > state->last_ledger_ticks)
        state->last_ledger_ticks = ledger->ticks;
    bool final = ledger->final && ledger->tape != 0;
    if (final && !tape->tape.final)
        state->n_final++;
    tape->tape.final |= final;
    tape->tape.thread = ledger->thread;
    tape->tape.tapes = ledger->tape == 0 ? ledger->tapes : 1;
    if (tape->tape.tapes == 0)
        drop_residuals(tape);
    for (size_t i = 0; i < ledger->n_row; i++) {
        enum reader_status status = apply_row(state, tape, ledger->row[i]);
        if (status != READER_OK)
            return status;
    }
    /* The last packet of a destroyed tape need not repeat its counters. */
    if (final && ledger->n_row == 0)
        return READER_OK;
#define X(name) tape->tape.name = ledger->name;
    PROF_TAPE_COUNTERS(X)
#undef X
    return READER_OK;
}

void reader_tape_free(struct reader_tape *tape)
{
    free(tape->tape.row);
    free(tape->tape.residual);
    free(tape->tape.change);
    free(tape->tape.moment);
    reader_map_free(&tape->rows);
    reader_map_free(&tape->residuals);
    *tape = (struct reader_tape){0};
}
