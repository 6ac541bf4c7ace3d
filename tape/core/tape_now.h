/* tape_now.h: threads publish what they do with their tapes, while samples of their time are taken.
 *
 * A function that begins with TAPE_DOING(...) says so until it returns, however it returns; then
 * what was published before holds again. t->now is NULL unless samples are taken, and nothing is
 * written then.
 */
#ifndef TAPE_NOW_H
#define TAPE_NOW_H

#include "tape.h"

/* Where the calling thread publishes, after the hook has been told; NULL: no memory, or the hook
 * observes no more. Called while samples are taken (hook->thread is set). */
struct tape_now *tape_now_here(struct tape_hook *hook);

/* ---- looks at statements, where times are exact ---- */

/* A store at each statement, to say where a sweep is, takes 0.3 ns of 2.5. So a sweep is asked: it
 * says so from its next part on, until the look has been taken (decisions/060). */

/* Whether the calling thread is asked where it is in a sweep. */
bool tape_look_asks(const struct tape_now *now);
/* The calling thread sweeps statements, and does not say which. */
void tape_look_hides(struct tape_now *now);

/* A look: the thread was at a statement. */
struct tape_look {
    const uint32_t *at; /* swept: the statement that is swept; else the last one recorded, behind
                         * which the next was being computed */
    uint64_t ticks;     /* that the look stands for; 0: swept */
};
/* That wait for their thread at most, a power of 2; from so many on it should take them out. */
enum { TAPE_LOOKS = 256, TAPE_LOOKS_MANY = 64 };

/* Where the calling thread is looked at; NULL: nobody looks, or there is no memory. cursor: the
 * thread's, which lives as long as it; NULL: it records nothing. t->hook is set. */
struct tape_now *tape_look_here(struct tape_hook *hook, const struct tape_cursor *cursor);

/* The calling thread's last statement was at `from`, and what comes next lies below `to`, in
 * another block: so does a look that has been begun. */
void tape_look_moved(struct tape_now *now, const uint32_t *from, const uint32_t *to);

/* How many looks wait for the calling thread. */
uint32_t tape_look_waiting(const struct tape_now *now);

/* Takes the looks out that the calling thread had at words above `low`, up to `high`; swept: those
 * of a sweep, at words from `low` on, below `high`. How many there are. */
uint32_t tape_look_take(struct tape_now *now, const uint32_t *low, const uint32_t *high, bool swept,
                        struct tape_look look[TAPE_LOOKS]);

/* Threads of the kernels' pool say the same as the thread whose loop they share, from here on, or
 * no more. */
void tape_now_watch(bool begin);

static inline void tape_now_set(struct tape_now *now, uint32_t phase, struct tape_site site,
                                const char *op, uint32_t path)
{
    const struct tape_doing doing = {
        .phase = phase, .line = site.line, .pc = site.pc, .op = op, .path = path};
    tape_doing_write(now, &doing);
}

/* That a sweep (TAPE_PHASE_BACKWARD) or a replay is at a record of this row. */
static inline void tape_now_row(const struct tape *t, enum tape_phase phase, uint32_t row)
{
#ifdef TAPE_UNPROFILED
    return;
#endif
    if (__builtin_expect(t->now == NULL, 1))
        return;
    const struct tape_row *r = tape_ledger_row(&t->ledger, row);
    tape_now_set(t->now, phase, (struct tape_site){r->pc, r->line}, r->op, r->path);
}

/* That what is done is on the call path of this row, once that is known. */
static inline void tape_now_path(const struct tape *t, uint32_t row)
{
#ifdef TAPE_UNPROFILED
    return;
#endif
    if (__builtin_expect(t->now != NULL, 0))
        __atomic_store_n(&t->now->doing.path, tape_ledger_row(&t->ledger, row)->path,
                         __ATOMIC_RELAXED);
}

/* The row of what TAPE_DOING has said, whose call path is published from here on. */
uint32_t tape_now_own(struct tape *t, struct tape_site site, const char *op);

struct tape_now_scope {
    struct tape_now *now; /* NULL: nothing was published */
    struct tape_doing before;
};

static inline struct tape_now_scope tape_now_begin(struct tape_now *now, uint32_t phase,
                                                   struct tape_site site, const char *op)
{
    struct tape_now_scope scope = {.now = now};
    if (__builtin_expect(now != NULL, 0)) {
        scope.before = now->doing;
        tape_now_set(now, phase, site, op, 0);
    }
    return scope;
}

static inline void tape_now_end(const struct tape_now_scope *scope)
{
    if (__builtin_expect(scope->now != NULL, 0))
        tape_doing_write(scope->now, &scope->before);
}

/* After tape_observed(t), which finds out whether anybody asks. */
#ifdef TAPE_UNPROFILED
#define TAPE_DOING(t, phase, site, op) (void)0
#else
#define TAPE_DOING(t, phase, site, op)                                                             \
    const struct tape_now_scope tape_now_scope __attribute__((cleanup(tape_now_end), unused)) =    \
        tape_now_begin((t)->now, (phase), (site), (op))
#endif

#endif
