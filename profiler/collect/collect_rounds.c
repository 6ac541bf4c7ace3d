/* collect_rounds.c: what goes to the file and when: rounds, and the tapes that live and die.
 *
 * All of it is called with the collector's mutex held.
 *
 * Writing goes in rounds: when hook.due has passed, every tape whose thread calls within a window
 * of 1/256 of the interval is written once, so that one busy thread does not keep the others from
 * the file. The interval starts at 1 ms and doubles up to 1 s, or what the options say. A call
 * outside of a round (the observation ends) is written at once. What a call says is kept in memory
 * in any case, and written by close() at the latest.
 */
#include "collect_state.h"

enum {
    WINDOW_SHARE = 256,
    NEW_TAPES =
        16, /* that a round may bring into the file, where short-lived ones would swell it */
};

void collect_fail(struct collector *c, const char *reason)
{
    c->out.n = 0;
    if (c->failed != NULL)
        return;
    c->failed = reason;
    collect_warn(c->base.log, c->path, reason);
}

/* Writes the call's frames. */
void collect_send_frames(struct collector *c)
{
    if (c->failed == NULL && c->out.n > 0) {
        const char *reason = collect_file_write(&c->file, c->out.data, c->out.n);
        if (reason != NULL)
            collect_fail(c, reason);
    }
    c->out.n = 0;
}

static void put_modules(struct collector *c)
{
    if (!c->modules.changed || c->failed != NULL)
        return;
    if (collect_put_modules(&c->out, &c->modules))
        c->modules.changed = false;
    else
        collect_fail(c, COLLECT_NO_MEMORY);
}

void collect_write_scopes(struct collector *c)
{
    if (c->failed == NULL && !collect_put_scopes(&c->out, &c->scopes, false))
        collect_fail(c, COLLECT_NO_MEMORY);
}

void collect_write_patterns(struct collector *c)
{
    if (c->failed == NULL && !collect_put_patterns(&c->out, &c->patterns, false))
        collect_fail(c, COLLECT_NO_MEMORY);
}

/* What changed in a tape's state since it was last written, its modules, scopes and paths first. */
void collect_write_ledger(struct collector *c, struct collect_ledger *ledger)
{
    ledger->round = c->round;
    const bool last = c->closing && ledger->residuals.n > 0;
    if ((!ledger->changed && !last) || c->failed != NULL)
        return;
    put_modules(c);
    if (collect_scopes_are_new(&c->scopes))
        collect_write_scopes(c);
    if (c->failed != NULL)
        return;
    if (!collect_put_paths(&c->out, &c->paths, ledger, false) ||
        !collect_put_ledger(&c->out, ledger, &c->paths, false) ||
        !collect_put_residuals(&c->out, &c->scratch, ledger, false, c->closing)) {
        collect_fail(c, COLLECT_NO_MEMORY);
        return;
    }
    ledger->changed = false;
    ledger->written = true;
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        ledger->row[i].changed = 0;
}

void collect_write_clock(struct collector *c)
{
    struct collect_stamp now = collect_clock_stamp(&c->clock);
    collect_clock_refine(&c->clock, &now);
    if (c->failed == NULL && !collect_put_clock(&c->out, &now))
        collect_fail(c, COLLECT_NO_MEMORY);
}

/* A packet of a tape 0 that has never merged a tape would say nothing. */
void collect_write_retired(struct collector *c)
{
    if (c->retired.ledger.tapes > 0)
        collect_write_ledger(c, &c->retired.ledger);
}

/* Scopes that they are in come first. */
void collect_write_events(struct collector *c, bool all)
{
    if (c->events == NULL)
        return;
    if (collect_scopes_are_new(&c->scopes))
        collect_write_scopes(c);
    if (c->failed == NULL && !collect_put_events(&c->out, c->events, all))
        collect_fail(c, COLLECT_NO_MEMORY);
}

void collect_write_messages(struct collector *c, bool all)
{
    if (c->failed == NULL && !collect_put_messages(&c->out, c->messages, all))
        collect_fail(c, COLLECT_NO_MEMORY);
}

void collect_round_begin(struct collector *c, uint64_t now)
{
    c->round_open = true;
    c->round++;
    c->new_tapes = 0;
    c->window_end = now + collect_clock_ticks(&c->clock, c->interval_ns / WINDOW_SHARE);
    put_modules(c);
    collect_write_clock(c);
    collect_write_scopes(c);
    collect_write_patterns(c);
    collect_write_events(c, false);
    collect_write_messages(c, false);
    collect_write_retired(c);
}

void collect_round_end(struct collector *c, uint64_t now)
{
    c->round_open = false;
    c->interval_ns =
        2 * c->interval_ns < c->most_interval_ns ? 2 * c->interval_ns : c->most_interval_ns;
    __atomic_store_n(&c->base.hook.due,
                     c->sampler.untimed ? UINT64_MAX
                                        : now + collect_clock_ticks(&c->clock, c->interval_ns),
                     __ATOMIC_RELAXED);
}

void collect_write_samples(struct collector *c)
{
    if (c->failed != NULL)
        return;
    put_modules(c);
    if (!collect_sampler_put(&c->sampler, &c->out, &c->paths, false))
        collect_fail(c, COLLECT_NO_MEMORY);
}

void collect_round_keep(struct collector *c, const struct tape_ledger *from, uint64_t now,
                        bool in_round)
{
    struct collect_ledger *ledger = collect_tapes_find(&c->tapes, from->tape);
    if (ledger == NULL)
        ledger = collect_tapes_add(&c->tapes, from->tape);
    if (ledger == NULL || !collect_ledger_read(ledger, from, now)) {
        c->lost = true;
        collect_fail(c, COLLECT_NO_MEMORY);
        return;
    }
    if (!in_round) {
        collect_write_ledger(c, ledger);
    } else if (ledger->round != c->round && (ledger->written || c->new_tapes < NEW_TAPES)) {
        c->new_tapes += !ledger->written;
        collect_write_ledger(c, ledger);
    }
}

/* A tape that never had a packet waits in tape 0 for the next round: there may be millions of
 * them. */
void collect_round_retire(struct collector *c, const struct tape_ledger *from, uint64_t now)
{
    struct collect_ledger *known = collect_tapes_find(&c->tapes, from->tape);
    struct collect_ledger *ledger = known != NULL ? known : &c->dying;
    if (known == NULL)
        c->dying.n_rows = 0;
    if (!collect_ledger_read(ledger, from, now) || !collect_retired_merge(&c->retired, ledger)) {
        c->lost = true;
        collect_fail(c, COLLECT_NO_MEMORY);
        return;
    }
    if (known == NULL)
        return;
    if (known->written && c->failed == NULL) {
        put_modules(c);
        if (!collect_put_final(&c->out, known))
            collect_fail(c, COLLECT_NO_MEMORY);
        collect_write_retired(c);
    }
    collect_tapes_remove(&c->tapes, known);
}
