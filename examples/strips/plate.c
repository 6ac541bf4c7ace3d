/* plate.c: see plate.h.
 *
 * Invariant: an element's adjoint is added up in the same order, whoever has its neighbours. What
 * comes over a message comes where it would within a strip, so the gradient is the same to the last
 * bit on any number of ranks.
 */
#include "plate.h"

int64_t plate_first(const struct plate *p, int rank)
{
    return p->rows * rank / ad_mpi_size(p->comm);
}

void plate_divide(struct plate *p, ad_mpi_comm comm)
{
    p->comm = comm;
    p->first = plate_first(p, ad_mpi_rank(comm));
    p->own = plate_first(p, ad_mpi_rank(comm) + 1) - p->first;
}

/* u moved by one row down (to = +1) or up (-1). The row that is missing comes from the strip
 * behind, where there is none it is zero; the row that leaves goes to the strip before. */
static ad_tensor moved(const struct plate *p, ad_tensor u, int to)
{
    const int rank = ad_mpi_rank(p->comm), size = ad_mpi_size(p->comm);
    const int before = rank + to, behind = rank - to;
    const int64_t last = to > 0 ? p->own - 1 : 0, row[2] = {1, p->columns};
    const ad_tensor leaving = ad_slice(u, 0, last, last + 1, 1);
    const ad_tensor missing = ad_mpi_sendrecv(
        p->comm, leaving, before < 0 || before == size ? MPI_PROC_NULL : before, to + 1, AD_F64, 2,
        row, behind < 0 || behind == size ? MPI_PROC_NULL : behind, to + 1);
    if (to > 0)
        return ad_concat((ad_tensor[]){missing, ad_slice(u, 0, 0, p->own - 1, 1)}, 2, 0);
    return ad_concat((ad_tensor[]){ad_slice(u, 0, 1, p->own, 1), missing}, 2, 0);
}

ad_tensor plate_after(const struct plate *p, ad_tensor u)
{
    const int64_t n = p->columns, widths[4] = {0, 0, 1, 1};
    for (int i = 0; i < p->steps; i++) {
        const ad_frame frame = ad_frame_begin(p->tape);
        const ad_tensor along = ad_add(moved(p, u, 1), moved(p, u, -1));
        const ad_tensor wide = ad_pad(u, widths, 4, 0);
        const ad_tensor across = ad_add(ad_slice(wide, 1, 0, n, 1), ad_slice(wide, 1, 2, n + 2, 1));
        const ad_tensor flows = ad_sub(ad_add(along, across), ad_scale(u, 4));
        u = ad_add(u, ad_scale(flows, p->ratio));
        ad_frame_end(frame, &u, 1);
    }
    return u;
}

bool plate_gradient(const struct plate *p, const double *u, double *cost, double *gradient)
{
    const int64_t shape[2] = {p->own, p->columns};
    ad_tape_reset(p->tape);
    const ad_tensor begin = ad_leaf(p->tape, AD_F64, 2, shape, u);
    const ad_tensor seen = ad_constant(p->tape, AD_F64, 2, shape, p->observed);
    const ad_tensor end = plate_after(p, begin);
    const ad_tensor far = ad_sum(ad_square(ad_sub(end, seen)));
    const ad_tensor own = ad_add(far, ad_scale(ad_sum(ad_square(begin)), p->weight));
    *cost = ad_item(own);
    /* Each rank gives its strip's: what is swept is their sum. */
    return ad_mpi_backward(p->comm, p->tape, own) == AD_OK &&
           ad_gradient(begin, gradient, p->own * p->columns) == AD_OK;
}
