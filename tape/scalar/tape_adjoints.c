/* tape_adjoints.c: see tape_adjoints.h. */
#include "tape_adjoints.h"

#include "tape_fork.h"
#include <string.h>

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

static uint64_t adjoints_wanted(const struct tape *t, uint32_t width)
{
    return ((uint64_t)tape_statement_next(t) * width + t->statements->fused_loops.room[width > 1]) *
           sizeof(double);
}

double *tape_adjoints_begin(struct tape *t, uint32_t width, uint32_t own)
{
    struct tape_statements *s = t->statements;
    const uint64_t bytes = adjoints_wanted(t, width);
    s->adjoint = adjoints_take(t, bytes, own);
    if (!s->adjoint)
        return NULL;
    memset(s->adjoint, 0, (size_t)tape_statement_next(t) * width * sizeof *s->adjoint);
    s->adjoint_bytes = bytes;
    s->adjoint_row = own;
    s->width = width;
    t->fork->swept = UINT32_MAX;
    return s->adjoint;
}

void tape_adjoints_end(struct tape *t)
{
    struct tape_statements *s = t->statements;
    adjoints_give(t, s->adjoint, s->adjoint_bytes, s->adjoint_row);
    s->adjoint = NULL;
}

bool tape_adjoints_grow(struct tape *t, uint32_t first)
{
    struct tape_statements *s = t->statements;
    const uint64_t bytes = adjoints_wanted(t, s->width),
                   known = (uint64_t)first * s->width * sizeof(double);
    if (bytes > s->adjoint_bytes) {
        double *more = adjoints_take(t, bytes, s->adjoint_row);
        if (!more)
            return false;
        memcpy(more, s->adjoint, known);
        adjoints_give(t, s->adjoint, s->adjoint_bytes, s->adjoint_row);
        s->adjoint = more;
        s->adjoint_bytes = bytes;
    }
    const size_t n = (size_t)(tape_statement_next(t) - first) * s->width;
    memset(s->adjoint + (size_t)first * s->width, 0, n * sizeof *s->adjoint);
    return true;
}
