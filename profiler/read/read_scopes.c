/* read_scopes.c: joins the packets of scopes into the forest as it was last known.
 *
 * See read_state.h for the invariant. Counters are running totals: the last packet of a node
 * wins. A node whose parent is not known yet, which no collector writes, stands at the top; so a
 * parent's place is always less than its child's.
 */
#include "read_state.h"

#include <stdlib.h>
#include <string.h>

/* "layer index=3 width=128"; the caller frees it. */
static char *full_name(const Tapescope__Scope *from)
{
    char *text = NULL;
    size_t n;
    FILE *to = base_memstream_open(&text, &n);
    fputs(from->name, to);
    for (size_t i = 0; i < from->n_key; i++)
        fprintf(to, " %s=%lld", from->key[i]->key, (long long)from->key[i]->value);
    base_memstream_close(to, &text);
    return text;
}

static void apply_scope(struct read_state *state, const Tapescope__Scope *from)
{
    struct read_profile *profile = state->profile;
    int64_t at = base_table_find(&state->scopes, from->id);
    if (at < 0) {
        struct read_scope *scope =
            BASE_ARRAY_GROW(profile->scope, profile->n_scopes, &state->room_scopes);
        at = (int64_t)profile->n_scopes;
        base_table_add(&state->scopes, from->id, (size_t)at);
        scope[at] = (struct read_scope){
            .parent = (uint32_t)(base_table_find(&state->scopes, from->parent) + 1),
            .thread = from->thread,
            .name = full_name(from),
        };
        if (scope[at].parent > at || from->parent == 0)
            scope[at].parent = 0;
        profile->n_scopes++;
    }
#define X(name) profile->scope[at].name = from->name;
    READ_SCOPE_COUNTERS(X)
#undef X
}

static void apply_expectation(struct read_state *state, const Tapescope__Expectation *from)
{
    struct read_profile *profile = state->profile;
    int64_t at = base_table_find(&state->expectations, from->id);
    if (from->kind > READ_EXPECT_TAPE_BYTES) /* a later writer's */
        return;
    if (at < 0) {
        BASE_ARRAY_GROW(profile->expectation, profile->n_expectations, &state->room_expectations);
        at = (int64_t)profile->n_expectations++;
        base_table_add(&state->expectations, from->id, (size_t)at);
    }
    profile->expectation[at] = (struct read_expectation){
        .kind = (enum read_expected)from->kind,
        .pc = from->pc,
        .line = from->line,
        .scope = from->scope,
        .bound = from->bound,
        .times = from->times,
    };
}

void read_apply_scopes(struct read_state *state, const Tapescope__Scopes *scopes)
{
    struct read_profile *profile = state->profile;
    for (size_t i = 0; i < scopes->n_scope; i++)
        apply_scope(state, scopes->scope[i]);
    for (size_t i = 0; i < scopes->n_expectation; i++)
        apply_expectation(state, scopes->expectation[i]);
    profile->lost_scopes = scopes->lost;
    if (scopes->steps) {
        profile->has_steps = true;
        profile->steps_by_call = scopes->steps->by_call;
        profile->first_step = scopes->steps->first;
        profile->last_step = scopes->steps->last;
        profile->seen_steps = scopes->steps->seen;
    }
}

uint32_t read_scope_place(const struct read_state *state, uint32_t number)
{
    return number == 0 ? 0 : (uint32_t)(base_table_find(&state->scopes, number) + 1);
}

void read_place_scopes(struct read_state *state)
{
    for (size_t i = 0; i < state->n_tapes; i++) {
        struct read_tape *tape = &state->tape[i].tape;
        for (size_t j = 0; j < tape->n_rows; j++)
            tape->row[j].scope = read_scope_place(state, tape->row[j].scope);
    }
    for (size_t i = 0; i < state->profile->n_expectations; i++) {
        struct read_expectation *expectation = &state->profile->expectation[i];
        expectation->scope = read_scope_place(state, expectation->scope);
    }
}
