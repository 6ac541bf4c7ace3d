/* tape_statement_sweep.c: see tape_statement_sweep.h.
 *
 * May include: tape_statement_sweep.h. One loop for one seed, one template for several, which are
 * the lanes of a vector.
 */
#include "tape_statement_sweep.h"

static void one(const struct tape_run *run, double *adjoint)
{
    const double *p = run->partial_end;
    uint32_t result = run->first + run->n;
    for (const uint32_t *w = run->word_end; w < run->word_begin;) {
        const uint32_t n = w[0], *index = w + 2;
        const double y = adjoint[--result];
        w += n + 2;
        p -= n;
        if (y == 0)
            continue;
        /* The counts of one line repeat, so that the branch is foreseen where a loop's end is not. */
        switch (n) {
        case 3:
            adjoint[index[2]] += p[2] * y; /* fall through */
        case 2:
            adjoint[index[1]] += p[1] * y; /* fall through */
        case 1:
            adjoint[index[0]] += p[0] * y;
            break;
        default:
            for (uint32_t k = 0; k < n; k++)
                adjoint[index[k]] += p[k] * y;
        }
    }
}

#define LANES(width)                                                                               \
    typedef double lanes##width                                                                    \
        __attribute__((vector_size(width * sizeof(double)), aligned(sizeof(double)), may_alias));  \
    static void several##width(const struct tape_run *run, double *adjoint)                        \
    {                                                                                              \
        const double *p = run->partial_end;                                                        \
        uint32_t result = run->first + run->n;                                                     \
        for (const uint32_t *w = run->word_end; w < run->word_begin;) {                            \
            const uint32_t n = w[0], *index = w + 2;                                               \
            const lanes##width y = *(const lanes##width *)&adjoint[(size_t)--result * width];      \
            bool any = false;                                                                      \
            for (int k = 0; k < width; k++)                                                        \
                any |= y[k] != 0;                                                                  \
            w += n + 2;                                                                            \
            p -= n;                                                                                \
            for (uint32_t k = 0; k < n && any; k++)                                                \
                *(lanes##width *)&adjoint[(size_t)index[k] * width] += p[k] * y;                   \
        }                                                                                          \
    }
LANES(2)
LANES(4)
LANES(8)

void tape_run_pullback(const struct tape_run *run, double *adjoint, uint32_t width)
{
    if (width == 1)
        one(run, adjoint);
    else if (width == 2)
        several2(run, adjoint);
    else if (width == 4)
        several4(run, adjoint);
    else
        several8(run, adjoint);
}
