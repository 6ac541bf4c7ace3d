/* tape_scalars.c: see tape_scalars.h. */
#include "tape_scalars.h"

#include "tape_adjoints.h"
#include "tape_bridge.h"
#include "tape_fork.h"
#include "tape_preaccumulate.h"

static void forks_reset(struct tape *t)
{
    tape_fork_drop(t, 0);
}

static void forks_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    (void)end;
    tape_fork_drop(t, tape_cursor_next(&mark->statements.rest));
}

const struct tape_part tape_forks_part = {
    .reset = forks_reset, .rewind = forks_rewind, .end = tape_fork_end};

static void scalars_begin(struct tape *t)
{
    tape_statement_begin(t);
    t->no_grad = t->fork.no_grad;
}

static bool scalars_reserve(struct tape *t)
{
    return !t->statements.slot || tape_statement_reserve_tags(t, t->n_marks + t->sections.n + 3);
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
    t->statements.uncharged = 0;
    for (const struct tape_block *b = t->statements.block; b; b = b->previous) {
        tape_account_block(t, b);
        tape_account_tail(t, b->padding);
    }
}

static enum tape_status scalars_sweep_refuse(struct tape *t, const char *what,
                                             struct tape_site site)
{
    return t->sections.n > 0 ? tape_section_refuse(t, what, site) : TAPE_OK;
}

/* A sweep from a tensor comes to scalars through tensors that were made of them. */
static bool scalars_sweep_begin(struct tape *t, uint32_t own)
{
    return t->statements.n_gathers == 0 || tape_adjoints_begin(t, 1, own);
}

static void scalars_sweep_end(struct tape *t)
{
    if (t->statements.adjoint)
        tape_adjoints_end(t);
}

const struct tape_part tape_scalars_part = {.begin = scalars_begin,
                                            .end = tape_statement_end,
                                            .settle = tape_statement_close,
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
