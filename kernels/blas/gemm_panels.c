/* gemm_panels.c: which products go by panels, and their division among threads.
 *
 * Measured against OpenBLAS 0.3.21 on a Zen 3 (AVX2), one thread, over 5800 products of extents
 * from 1 to 1500, of all three kinds and both dtypes: by panels they take 0.55 of the time on
 * average (docs/decisions/102-products-go-by-panels.md). BLAS is faster where the result is narrower
 * than a vector, where a long first operand is read across its rows, where the rows of a second
 * operand come from beyond the second-level cache, and where the product is so large that it pays to
 * copy the first operand as well.
 */
#include "gemm_panels.h"

#include "elementwise.h"
#include "threads.h"

enum {
    LARGEST = 1 << 27, /* multiplications */
    WORTH_SHARING = 8 << 20,
    FAR_DEPTH = 128,
    FAR_ELEMENTS = 1 << 15,
    NEAR_BYTES = 1 << 19
};

static gemm_panels_function *choose(int dtype, const struct gemm_panels *all)
{
    const bool a_is_far = all->a_row == 1 && all->m > 1 && all->k >= FAR_DEPTH &&
                          (int64_t)all->m * all->k > FAR_ELEMENTS;
    const bool b_is_far = !all->b_transposed &&
                          all->k * all->b_leading * (int64_t)kernel_dtype_bytes(dtype) > NEAR_BYTES;
    const int lanes = dtype == KERNEL_F32 ? 8 : 4;
    if (all->n < lanes || a_is_far || b_is_far || (double)all->m * all->n * all->k > LARGEST)
        return NULL;
    return kernel_isa_get()->gemm_panels[dtype];
}

struct panels_shares {
    gemm_panels_function *loops;
    const struct gemm_panels *all;
    int64_t bytes; /* of an element */
    bool by_rows;
    int unit;
};

/* From where a part goes: parts are as equal as whole units allow. */
static int part_begins(int extent, int unit, int part, int parts)
{
    const int64_t units = (extent + unit - 1) / unit, at = units * part / parts * unit;
    return at < extent ? (int)at : extent;
}

static void run_part(void *job, int part, int parts)
{
    const struct panels_shares *shares = job;
    struct gemm_panels mine = *shares->all;
    const int extent = shares->by_rows ? mine.m : mine.n;
    const int first = part_begins(extent, shares->unit, part, parts);
    const int count = part_begins(extent, shares->unit, part + 1, parts) - first;
    if (count == 0)
        return;
    if (shares->by_rows) {
        mine.a = (const char *)mine.a + first * mine.a_row * shares->bytes;
        mine.c = (char *)mine.c + first * mine.c_leading * shares->bytes;
        mine.m = count;
    } else {
        mine.b =
            (const char *)mine.b + first * (mine.b_transposed ? mine.b_leading : 1) * shares->bytes;
        mine.c = (char *)mine.c + first * shares->bytes;
        mine.n = count;
    }
    shares->loops(&mine);
}

bool gemm_panels_run(int dtype, const struct gemm_panels *all)
{
    gemm_panels_function *const loops = choose(dtype, all);
    if (loops == NULL)
        return false;
    const int threads = (double)all->m * all->n * all->k < WORTH_SHARING ? 1 : kernel_threads();
    if (threads <= 1) {
        loops(all);
        return true;
    }
    /* Each part copies the panels that it multiplies with: parts of columns have none in common. */
    const int panel = GEMM_PANELS_VECTORS * (dtype == KERNEL_F32 ? 8 : 4);
    struct panels_shares shares = {.loops = loops,
                                   .all = all,
                                   .bytes = (int64_t)kernel_dtype_bytes(dtype),
                                   .by_rows = all->n < 2 * threads * panel,
                                   .unit = panel};
    if (shares.by_rows)
        shares.unit = GEMM_PANELS_ROWS;
    threads_run(threads, run_part, &shares);
    return true;
}
