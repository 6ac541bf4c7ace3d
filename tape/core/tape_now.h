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

/* That a sweep is at a record of this row. */
static inline void tape_now_row(const struct tape *t, uint32_t row)
{
#ifdef TAPE_UNPROFILED
    return;
#endif
    if (__builtin_expect(t->now == NULL, 1))
        return;
    const struct tape_row *r = tape_ledger_row(&t->ledger, row);
    tape_now_set(t->now, TAPE_PHASE_BACKWARD, (struct tape_site){r->pc, r->line}, r->op, r->path);
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
