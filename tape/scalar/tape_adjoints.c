/* tape_adjoints.c: see tape_adjoints.h. */
#include "tape_adjoints.h"

#include "tape_disk.h"
#include "tape_fork.h"
#include "tape_program.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Of `bytes` bytes. */
static double *adjoints_take(struct tape *t, uint64_t bytes, uint32_t own)
{
    double *adjoint = tape_arena_buffer(&t->arena, bytes);
    if (adjoint)
        tape_account_buffer(t, own, bytes);
    return adjoint;
}

static void adjoints_give(struct tape *t, double *adjoint, uint64_t bytes, uint32_t own)
{
    tape_arena_free(&t->arena, adjoint, bytes);
    tape_account_free(t, own, bytes);
}

static void lent_end(struct tape *t)
{
    struct tape_statements *s = t->statements;
    if (!s->adjoint_lent)
        return;
    tape_disk_lend_end(t, s->adjoint_lent);
    s->adjoint_lent = 0;
    s->adjoint_passed = NULL;
}

static uint64_t adjoints_wanted(const struct tape *t, uint32_t width)
{
    return ((uint64_t)tape_statement_next(t) * width + t->statements->fused_loops.room[width > 1]) *
           sizeof(double);
}

/* Sets n numbers to 0. More than a cache may hold are written past it. So memory is not read
 * before it is written, and what was recorded last stays in the cache: the sweep comes to it
 * first. */
static void adjoints_zero(double *adjoint, size_t n)
{
#ifdef __SSE2__
    enum { PAST_CACHES = 1 << 20, LINE = 8 };
    if (n >= PAST_CACHES) {
        for (; (uintptr_t)adjoint % (LINE * sizeof *adjoint) != 0; n--)
            *adjoint++ = 0;
        for (; n >= LINE; n -= LINE, adjoint += LINE)
            for (int k = 0; k < LINE; k += 2)
                _mm_stream_pd(adjoint + k, _mm_setzero_pd());
        _mm_sfence();
    }
#endif
    memset(adjoint, 0, n * sizeof *adjoint);
}

/* Whether the system has just given this memory, of which the arena had handed out `touched` bytes
 * before: then it is zeros. */
static bool adjoints_fresh(const struct tape *t, const double *adjoint, uint64_t touched)
{
    const uint64_t at = (uint64_t)((const char *)adjoint - t->arena.buffer_base);
    return t->memory->reserve == tape_memory_system.reserve && at >= touched;
}

double *tape_adjoints_begin(struct tape *t, uint32_t width, uint32_t own)
{
    tape_program_slopes(t);
    struct tape_statements *s = t->statements;
    const uint64_t bytes = adjoints_wanted(t, width), touched = t->arena.touched;
    s->adjoint = adjoints_take(t, bytes, own);
    if (!s->adjoint)
        return NULL;
    if (s->adjoint_lent)
        tape_disk_clear(t, s->adjoint, bytes);
    else if (!adjoints_fresh(t, s->adjoint, touched))
        adjoints_zero(s->adjoint, (size_t)tape_statement_next(t) * width);
    s->adjoint_bytes = bytes;
    s->adjoint_row = own;
    s->width = width;
    t->fork->swept = UINT32_MAX;
    return s->adjoint;
}

double *tape_adjoints_begin_passing(struct tape *t, uint32_t own)
{
    struct tape_statements *s = t->statements;
    double *adjoint = tape_adjoints_begin(t, 1, own);
    if (adjoint || !t->disk->on)
        return adjoint;
    s->adjoint_lent = tape_arena_class_bytes(adjoints_wanted(t, 1));
    tape_disk_lend(t, s->adjoint_lent);
    adjoint = tape_adjoints_begin(t, 1, own);
    t->arena.refused = adjoint ? 0 : t->arena.refused;
    if (adjoint)
        s->adjoint_passed = (char *)(adjoint + tape_statement_next(t));
    else
        lent_end(t);
    return adjoint;
}

void tape_adjoints_passed(struct tape *t, uint32_t first)
{
    struct tape_statements *s = t->statements;
    char *from = (char *)(s->adjoint + first);
    if (!s->adjoint_passed || s->adjoint_passed - from < TAPE_HUGE_PAGE)
        return;
    from += (TAPE_HUGE_PAGE - (uintptr_t)from % TAPE_HUGE_PAGE) % TAPE_HUGE_PAGE;
    tape_disk_clear(t, from, (uint64_t)(s->adjoint_passed - from));
    s->adjoint_passed = from;
}

void tape_adjoints_end(struct tape *t)
{
    struct tape_statements *s = t->statements;
    if (s->adjoint_lent)
        tape_disk_clear(t, s->adjoint, s->adjoint_bytes);
    adjoints_give(t, s->adjoint, s->adjoint_bytes, s->adjoint_row);
    lent_end(t);
    s->adjoint = NULL;
}

bool tape_adjoints_grow(struct tape *t, uint32_t first)
{
    struct tape_statements *s = t->statements;
    const uint64_t bytes = adjoints_wanted(t, s->width),
                   known = (uint64_t)first * s->width * sizeof(double);
    s->adjoint_passed = NULL; /* of what is computed again some is read later */
    if (bytes > s->adjoint_bytes) {
        double *more = adjoints_take(t, bytes, s->adjoint_row);
        if (!more)
            return false;
        memcpy(more, s->adjoint, known);
        adjoints_give(t, s->adjoint, s->adjoint_bytes, s->adjoint_row);
        lent_end(t);
        s->adjoint = more;
        s->adjoint_bytes = bytes;
    }
    const size_t n = (size_t)(tape_statement_next(t) - first) * s->width;
    adjoints_zero(s->adjoint + (size_t)first * s->width, n);
    return true;
}
