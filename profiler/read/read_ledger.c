/* read_ledger.c: joins the packets of each tape into its last state.
 *
 * See read_state.h for the invariant. Counters are running totals, so a row's last packet
 * replaces what came before. A destroyed tape says so in a last packet (`final`); the next packet
 * of tape 0 holds its rows, so the tape is dropped then and not before: a profile that ends
 * between the two loses nothing.
 */
#include "read_state.h"

#include <stdlib.h>
#include <string.h>

const char *read_intern_op(struct read_state *state, const char *name)
{
    struct read_profile *profile = state->profile;
    const uint64_t key = base_hash_text(name);
    size_t walk;
    for (int64_t at = base_table_first(&state->ops, key, &walk); at >= 0;
         at = base_table_next(&state->ops, key, &walk))
        if (strcmp(profile->op[at], name) == 0)
            return profile->op[at];
    BASE_ARRAY_GROW(profile->op, profile->n_ops, &state->room_ops);
    base_table_add(&state->ops, key, profile->n_ops);
    return profile->op[profile->n_ops++] = base_strdup(name);
}

int64_t read_row_place(const struct read_tape_state *tape, uint32_t index)
{
    const struct read_tape *t = &tape->tape;
    if (index < t->n_rows && t->row[index].index == index)
        return index;
    return base_table_find(&tape->rows, index);
}

static void apply_row(struct read_state *state, struct read_tape_state *tape,
                      const Tapescope__Row *from)
{
    int64_t at = read_row_place(tape, from->index);
    if (at < 0) {
        BASE_ARRAY_GROW(tape->tape.row, tape->tape.n_rows, &tape->room);
        at = (int64_t)tape->tape.n_rows++;
        if (at != (int64_t)from->index)
            base_table_add(&tape->rows, from->index, (size_t)at);
        tape->tape.row[at].op = NULL;
    }
    struct read_row *row = &tape->tape.row[at];
    const char *op =
        row->op && strcmp(row->op, from->op) == 0 ? row->op : read_intern_op(state, from->op);
    const char *shape = *from->shape ? read_intern_op(state, from->shape) : NULL;
    *row = (struct read_row){.pc = from->pc,
                             .op = op,
                             .shape = shape,
                             .line = from->line,
                             .path = from->path,
                             .thread = from->thread,
                             .index = from->index,
                             .kept_by_index = from->kept_by,
                             .kept_others = from->kept_others,
                             .scope = from->scope,
#define X(name) .name = from->name,
                             ROW_COUNTERS(X)
#undef X
    };
}

struct read_tape_state *read_find_tape(struct read_state *state, uint64_t number)
{
    int64_t at = base_table_find(&state->tapes, number);
    if (at >= 0)
        return &state->tape[at];
    BASE_ARRAY_GROW(state->tape, state->n_tapes, &state->room_tapes);
    base_table_add(&state->tapes, number, state->n_tapes);
    struct read_tape_state *tape = &state->tape[state->n_tapes++];
    *tape = (struct read_tape_state){.tape = {.tape = number}};
    return tape;
}

/* Tape 0 has arrived: what was destroyed before is in it. */
static void drop_final(struct read_state *state)
{
    if (state->n_final == 0)
        return;
    size_t kept = 0;
    state->n_final = 0;
    base_table_free(&state->tapes);
    for (size_t i = 0; i < state->n_tapes; i++) {
        if (state->tape[i].tape.final) {
            read_tape_state_free(&state->tape[i]);
            continue;
        }
        if (kept != i)
            state->tape[kept] = state->tape[i];
        kept++;
    }
    state->n_tapes = kept;
    for (size_t i = 0; i < kept; i++)
        base_table_add(&state->tapes, state->tape[i].tape.tape, i);
}

/* Tape 0 stands for no tape: what was said of it before is void. Its rows follow, with zeros. */
static void drop_residuals(struct read_tape_state *tape)
{
    base_table_free(&tape->residuals);
    tape->tape.n_residuals = tape->tape.n_changes = tape->tape.n_moments = 0;
    tape->tape.peak_ticks = 0;
}

void read_apply_ledger(struct read_state *state, const Tapescope__Ledger *ledger)
{
    if (ledger->tape == 0)
        drop_final(state);
    struct read_tape_state *tape = read_find_tape(state, ledger->tape);
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
    for (size_t i = 0; i < ledger->n_row; i++)
        apply_row(state, tape, ledger->row[i]);
    /* The last packet of a destroyed tape need not repeat its counters. */
    if (final && ledger->n_row == 0)
        return;
#define X(name) tape->tape.name = ledger->name;
    TAPE_COUNTERS(X)
#undef X
}

void read_tape_state_free(struct read_tape_state *tape)
{
    free(tape->tape.row);
    free(tape->tape.residual);
    free(tape->tape.change);
    free(tape->tape.trace);
    free(tape->tape.moment);
    base_table_free(&tape->rows);
    base_table_free(&tape->residuals);
    *tape = (struct read_tape_state){0};
}
