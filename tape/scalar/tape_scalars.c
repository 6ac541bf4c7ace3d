/* tape_scalars.c: see tape_scalars.h. */
#include "tape_scalars.h"

#include "tape_adjoints.h"
#include "tape_bridge.h"
#include "tape_fork.h"
#include "tape_preaccumulate.h"
#include "tape_reach.h"
#include "tape_record.h"
#include "tape_sweep.h"
#include "tape_value.h"

static void forks_reset(struct tape *t)
{
    tape_fork_drop(t, 0);
}

static void forks_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    (void)end;
    tape_fork_drop(t, tape_cursor_next(&mark->statements.rest));
}

static enum tape_status forks_leaf(struct tape *t, const struct tape_value *leaf,
                                   struct tape_site site)
{
    (void)leaf;
    if (!t->fork->base)
        return TAPE_OK;
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "leaf: a fork has no leaves: make them on its parent before the fork");
}

static void forks_attach(struct tape *t, void *state)
{
    t->fork = state;
}

const struct tape_part tape_forks_part = {.bytes = sizeof(struct tape_fork),
                                          .attach = forks_attach,
                                          .leaf = forks_leaf,
                                          .reset = forks_reset,
                                          .rewind = forks_rewind,
                                          .end = tape_fork_end};

struct scalars {
    struct tape_statements statements;
    struct tape_sections sections;
};

static void scalars_attach(struct tape *t, void *state)
{
    struct scalars *scalars = state;
    t->statements = &scalars->statements;
    t->sections = &scalars->sections;
}

static void scalars_begin(struct tape *t)
{
    tape_statement_begin(t);
    t->no_grad = t->fork->no_grad;
    t->no_grad_levels[0] = (struct tape_no_grad_level){t->fork->no_grad_site, 0};
}

static bool scalars_reserve(struct tape *t)
{
    return !t->statements->slot || tape_statement_reserve_tags(t, t->n_marks + t->sections->n + 3);
}

static void scalars_mark(const struct tape *t, struct tape_mark *mark)
{
    mark->statements = tape_statement_mark_here(t);
}

static void scalars_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    tape_statement_rewind(t, &mark->statements, end);
}

/* The runs are charged with their records. */
static void scalars_account(struct tape *t)
{
    t->statements->uncharged = 0;
    for (const struct tape_block *b = t->statements->block; b; b = b->previous) {
        tape_account_block(t, b);
        tape_account_tail(t, b->padding);
    }
}

static enum tape_status scalars_sweep_refuse(struct tape *t, const char *what,
                                             struct tape_site site)
{
    return t->sections->n > 0 ? tape_section_refuse(t, what, site) : TAPE_OK;
}

/* A sweep from a tensor comes to scalars through tensors that were made of them. */
static bool scalars_sweep_begin(struct tape *t, uint32_t own)
{
    return t->statements->n_gathers == 0 || tape_adjoints_begin(t, 1, own);
}

static void scalars_sweep_end(struct tape *t)
{
    if (t->statements->adjoint)
        tape_adjoints_end(t);
}

/* The statements through which y depends on what is flagged have no pullbacks that could be
 * recorded. */
static enum tape_status scalars_graph_refuse(struct tape *t, uint32_t y, struct tape_site site)
{
    if (!tape_bridge_crosses(t))
        return TAPE_OK;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, "create_graph");
    enum tape_status status = TAPE_OK;
    unsigned reads;
    for (uint32_t at = t->last_record; at != tape_sweep_oldest(t) && status == TAPE_OK;) {
        struct tape_record *r = tape_record_at(t, at);
        char made[160];
        if (tape_reach(t, r, TAPE_NEEDS_GRADIENT, &reads) && tape_record_kind(r)->gives_scalars &&
            (t->entries[tape_record_in(r)[0]].flags & TAPE_STARTS)) {
            t->describe(tape_row_site(t, r->row), made, sizeof made);
            status = tape_fail(t, TAPE_ERROR_STATE, site,
                               "create_graph: y depends on x through statements over ad_real, from "
                               "%s at %s; they have first derivatives alone, so use ad_backward, "
                               "or ops instead of statements; the call is",
                               r->op->name, made);
        }
        at = r->previous;
    }
    tape_reach_end(t);
    return status;
}

const struct tape_part tape_scalars_part = {.bytes = sizeof(struct scalars),
                                            .attach = scalars_attach,
                                            .graph_refuse = scalars_graph_refuse,
                                            .begin = scalars_begin,
                                            .end = tape_statement_end,
                                            .settle = tape_statement_close,
                                            .charge = tape_statement_charge,
                                            .reserve = scalars_reserve,
                                            .mark = scalars_mark,
                                            .rewind = scalars_rewind,
                                            .account = scalars_account,
                                            .unused = tape_statement_unused,
                                            .sweep_refuse = scalars_sweep_refuse,
                                            .sweep_begin = scalars_sweep_begin,
                                            .sweep_end = scalars_sweep_end,
                                            .reach_begin = tape_bridge_reach_begin,
                                            .reach_end = tape_bridge_reach_end};
