/* tape_sweep_scalars.c: reverse sweeps that begin at scalars: gradients and Jacobians. */
#include "tape_adjoints.h"
#include "tape_bridge.h"
#include "tape_listen.h"
#include "tape_now.h"
#include "tape_observer.h"
#include "tape_statement_sweep.h"
#include "tape_sweep.h"
#include "tape_user_gradient.h"

static bool sweep_statements(struct tape *t, struct tape_sweep *s)
{
    tape_user_gradient_begin(t);
    double *adjoint = tape_listen_begin(t) ? tape_adjoints_begin_passing(t, s->own) : NULL;
    for (int64_t i = 0; i < s->n_roots && adjoint; i++)
        adjoint[s->root[i]] += s->seeds ? s->seeds[i] : 1;
    tape_sweep_own(t, s);
    const bool ok =
        adjoint && tape_sweep_behind(t, UINT32_MAX, &s->stamp) && tape_listen_leaves(t, &s->stamp);
    tape_listen_end(t);
    tape_now_row(t, TAPE_PHASE_BACKWARD, s->own);
    if (adjoint)
        tape_adjoints_end(t);
    if (ok)
        tape_user_gradient_add(t);
    return ok;
}

enum tape_status tape_sweep_statements(struct tape *t, int64_t n, const uint32_t *y,
                                       const double *seed, struct tape_site site)
{
    return tape_sweep_drive(
        t, &(struct tape_sweep){.run = sweep_statements,
                                .what = "real_backward",
                                .site = site,
                                .root = y,
                                .n_roots = n,
                                .reads_values = n > 0 && t->statements->n_elements > 0,
                                .seeds = seed,
                                .grows_gradients = true});
}

/* dy[m]/dx[n], row-major. */
struct jacobian {
    int64_t m, n;
    const uint32_t *y, *x;
    double *entry;
};

/* Reads rows [i, i + rows) of it, which lanes of the adjoints have. Index 0 is that of constants:
 * it has gathered what statements with constants gave it. */
static inline void jacobian_read_rows(const struct jacobian *j, double *adjoint, int64_t i,
                                      int64_t rows, uint32_t width)
{
    const uint32_t *const x = j->x;
    const int64_t n = j->n;
    for (int64_t k = 0; k < rows; k++)
        adjoint[k] = 0;
    for (int64_t c = 0; c < n; c++) {
        const double *const lane = &adjoint[(size_t)x[c] * width];
        double *const entry = &j->entry[i * n + c];
        for (int64_t k = 0; k < rows; k++)
            entry[k * n] = lane[k];
    }
}

/* A tiny tape's Jacobian takes as long to read as to compute, so lanes of a few rows are written
 * out. */
static void jacobian_read(const struct jacobian *j, double *adjoint, int64_t i, int64_t rows,
                          uint32_t width)
{
    if (rows == 2 && width == 2)
        jacobian_read_rows(j, adjoint, i, 2, 2);
    else if (rows == 3 && width == 4)
        jacobian_read_rows(j, adjoint, i, 3, 4);
    else if (rows == 4 && width == 4)
        jacobian_read_rows(j, adjoint, i, 4, 4);
    else
        jacobian_read_rows(j, adjoint, i, rows, width);
}

/* Rows [i, i + rows) of it, by one sweep of `width` seeds. */
static bool jacobian_rows(struct tape *t, struct tape_sweep *s, int64_t i, int64_t rows,
                          uint32_t width)
{
    const struct jacobian *j = s->of;
    double *adjoint = tape_adjoints_begin(t, width, s->own);
    if (!adjoint)
        return false;
    for (int64_t k = 0; k < rows; k++)
        adjoint[(size_t)j->y[i + k] * width + (size_t)k] = 1;
    const bool ok = tape_sweep_behind(t, UINT32_MAX, &s->stamp);
    s->sweeps++;
    tape_now_row(t, TAPE_PHASE_BACKWARD, s->own);
    adjoint = t->statements->adjoint; /* a checkpoint may have moved them */
    jacobian_read(j, adjoint, i, rows, width);
    tape_adjoints_end(t);
    return ok;
}

static bool sweep_jacobian(struct tape *t, struct tape_sweep *s)
{
    const struct jacobian *j = s->of;
    const bool crosses = tape_bridge_crosses(t);
    if (crosses)
        tape_bridge_detach_retained(t);
    else
        t->reading = true;
    bool ok = true;
    uint32_t width = crosses ? 1 : TAPE_MAX_WIDTH; /* of a tensor there is one adjoint at a time */
    for (int64_t i = 0; i < j->m && ok; i += width) {
        while (width > 1 && width / 2 >= j->m - i)
            width /= 2;
        ok = jacobian_rows(t, s, i, j->m - i < width ? j->m - i : width, width);
    }
    t->reading = false;
    if (crosses)
        tape_bridge_attach_retained(t);
    return ok;
}

enum tape_status tape_jacobian_statements(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                          const uint32_t *x, double *jacobian,
                                          struct tape_site site)
{
    struct jacobian j = {m, n, y, x, jacobian};
    /* Without a way through tensors it reads nothing that could be gone or changed. */
    return tape_sweep_drive(t, &(struct tape_sweep){.run = sweep_jacobian,
                                                    .what = "real_jacobian",
                                                    .site = site,
                                                    .root = y,
                                                    .n_roots = tape_bridge_crosses(t) ? m : 0,
                                                    .reads_values = tape_bridge_crosses(t),
                                                    .of = &j});
}
