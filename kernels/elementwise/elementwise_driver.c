/* elementwise_driver.c: feeds the unit-stride loops with operands of any strides.
 *
 * Axes that the strides of all operands let appear as one are joined; what is left is walked row
 * by row, the innermost axis being a row. Operands that are not dense along a row are gathered
 * into blocks on the stack, results that are not are written from there.
 *
 * Invariant: with accumulate, every output element receives a sum whose error does not grow with
 * the number of its terms (but with that of blocks).
 */
#include "elementwise.h"
#include "op_rules.h"
#include "strided_rows.h"
#include "threads.h"
#include "transposed_copy.h"

#include <math.h>
#include <string.h>

enum {
    OPERANDS = 1 + KERNEL_MAX_IN, /* number 0 is the output */
    BLOCK_BYTES = 2048,
    ROWS_TOGETHER = 64 /* rows summed in a block before they are added to the output */
};

struct plan {
    int rank, operands;
    int64_t extent[KERNEL_MAX_RANK];
    int64_t stride[KERNEL_MAX_RANK][OPERANDS]; /* elements */
    char *data[OPERANDS];
};

struct loop_job {
    const struct kernel_isa *isa;
    kernel_loop *loop;   /* writes or accumulates, as the call asks */
    kernel_loop *assign; /* what is summed up along a row */
    const double *parameters;
    size_t elem;
    int dtype, operands;
    int flops; /* of an element */
    enum kernel_reduce how;
    bool accumulate, is_copy;
    bool dense;                   /* all operands have stride 1 along a row */
    const int64_t *stride;        /* along a row */
    int64_t fill;                 /* elements of a block that a row can want */
    const void *filled[OPERANDS]; /* the one value that a block is full of */
    char *target;                 /* the element that `sum` is for */
    double sum, lost;
    _Alignas(64) char block[OPERANDS][BLOCK_BYTES];
    _Alignas(64) char upper[BLOCK_BYTES]; /* sum of blocks of rows */
};

/* Extent and stride of an array along an axis counted from the last one. */
static int64_t axis_of(kernel_ref array, int from_last, int64_t *stride)
{
    *stride = 0;
    if (from_last >= array->rank)
        return 1;
    const int axis = array->rank - 1 - from_last;
    if (array->shape[axis] != 1)
        *stride = array->strides[axis];
    return array->shape[axis];
}

/* True if the last two axes of the plan can be walked as one. */
static bool axes_join(const struct plan *plan, const int64_t *stride, int64_t extent)
{
    for (int k = 0; k < plan->operands; k++)
        if (plan->stride[plan->rank - 1][k] != stride[k] * extent)
            return false;
    return true;
}

/* Returns false if there is nothing to do. */
static bool plan_make(struct plan *plan, const struct kernel_array *out, int n_in,
                      const kernel_ref *in)
{
    int rank = out->rank;
    plan->operands = 1 + n_in;
    plan->rank = 0;
    plan->data[0] = out->data;
    for (int k = 0; k < n_in; k++) {
        plan->data[1 + k] = in[k]->data;
        if (in[k]->rank > rank)
            rank = in[k]->rank;
    }
    for (int from_last = rank - 1; from_last >= 0; from_last--) {
        int64_t stride[OPERANDS] = {0};
        int64_t extent = axis_of(out, from_last, &stride[0]);
        for (int k = 0; k < n_in; k++) {
            const int64_t e = axis_of(in[k], from_last, &stride[1 + k]);
            if (e != 1)
                extent = e;
        }
        if (extent == 0)
            return false;
        if (extent == 1)
            continue;
        if (plan->rank > 0 && axes_join(plan, stride, extent))
            plan->extent[plan->rank - 1] *= extent;
        else
            plan->extent[plan->rank++] = extent;
        memcpy(plan->stride[plan->rank - 1], stride, sizeof stride[0] * (size_t)plan->operands);
    }
    if (plan->rank == 0) {
        plan->rank = 1;
        plan->extent[0] = 1;
        for (int k = 0; k < plan->operands; k++)
            plan->stride[0][k] = 1;
    }
    return true;
}

/* Elements from..from+n of operand k's row, dense. */
static const void *row_operand(struct loop_job *job, int k, const char *row, int64_t from,
                               int64_t n)
{
    const int64_t stride = job->stride[k];
    if (stride == 1)
        return row + (size_t)from * job->elem;
    if (stride != 0) {
        strided_gather(n, job->elem, job->block[k], row + (size_t)(from * stride) * job->elem,
                       stride);
    } else if (job->filled[k] != row) {
        /* All constants that a row may need, so that its remaining elements and later rows find
         * them. */
        strided_spread(job->fill, job->elem, job->block[k], row);
        job->filled[k] = row;
    }
    return job->block[k];
}

/* Adds what was summed for the target to it. */
static void sum_flush(struct loop_job *job)
{
    if (job->target == NULL)
        return;
    const double sum = isfinite(job->sum) ? job->sum + job->lost : job->sum;
    if (job->dtype == KERNEL_F32) {
        float *x = (void *)job->target;
        const double old = (double)*x;
        if (job->how == KERNEL_REDUCE_SUM)
            *x = (float)(old + sum);
        else if (!(old >= job->sum || isnan(old)))
            *x = (float)job->sum;
    } else {
        double *x = (void *)job->target;
        if (job->how == KERNEL_REDUCE_SUM)
            *x += sum;
        else if (!(*x >= job->sum || isnan(*x)))
            *x = job->sum;
    }
    job->target = NULL;
}

/* Combines n dense results with the target's running value. */
static void sum_add(struct loop_job *job, char *target, int64_t n, const void *x)
{
    const int f = job->dtype;
    if (job->target != target) {
        sum_flush(job);
        job->target = target;
        job->sum = job->how == KERNEL_REDUCE_SUM ? 0 : -INFINITY;
        job->lost = 0;
    }
    if (job->how == KERNEL_REDUCE_MAX) {
        const double most = job->isa->max[f](n, x);
        if (!(job->sum >= most || isnan(job->sum)))
            job->sum = most;
        return;
    }
    const double part = job->isa->sum[f](n, x), next = job->sum + part;
    job->lost += fabs(job->sum) >= fabs(part) ? (job->sum - next) + part : (part - next) + job->sum;
    job->sum = next;
}

/* One row, or a part of it: n elements of every operand, from row[k] on. */
static void row_run(struct loop_job *job, char *const *row, int64_t n)
{
    const int64_t out_stride = job->stride[0];
    if (job->dense && out_stride == 1) {
        const void *in[KERNEL_MAX_IN];
        for (int k = 1; k < job->operands; k++)
            in[k - 1] = row[k];
        job->loop(n, row[0], in, job->parameters);
        return;
    }
    if (job->is_copy && !job->accumulate && out_stride == 1 && job->stride[1] == 0) {
        job->isa->fill[job->dtype](n, row[0], row[1]);
        return;
    }
    const bool direct = out_stride == 1, reduced = out_stride == 0;
    const bool whole = job->dense && reduced && job->is_copy;
    const int64_t step = whole ? n : BLOCK_BYTES / (int64_t)job->elem;
    for (int64_t from = 0; from < n; from += step) {
        const int64_t count = n - from < step ? n - from : step;
        const void *in[KERNEL_MAX_IN] = {NULL};
        for (int k = 1; k < job->operands; k++)
            in[k - 1] = row_operand(job, k, row[k], from, count);
        char *out = row[0] + (size_t)(from * out_stride) * job->elem;
        if (direct) {
            job->loop(count, out, in, job->parameters);
        } else if (reduced) {
            const void *result = in[0];
            if (!job->is_copy) {
                job->assign(count, job->block[0], in, job->parameters);
                result = job->block[0];
            }
            sum_add(job, row[0], count, result);
        } else {
            if (job->accumulate)
                strided_gather(count, job->elem, job->block[0], out, out_stride);
            job->loop(count, job->block[0], in, job->parameters);
            strided_scatter(count, job->elem, out, out_stride, job->block[0]);
        }
    }
}

/* to += from, dense. */
static void dense_add(const struct loop_job *job, int64_t n, void *to, const void *from)
{
    job->isa->loop[LOOP_copy][job->dtype][true](n, to, &from, NULL);
}

/* Many rows that fall on one dense row of the output: summed in blocks, and those in blocks. */
static void rows_fold(struct loop_job *job, char *const *first, int64_t rows,
                      const int64_t *row_stride, int64_t columns)
{
    const int64_t step = BLOCK_BYTES / (int64_t)job->elem;
    const int64_t blocks_together = (int64_t)ROWS_TOGETHER * ROWS_TOGETHER;
    for (int64_t from = 0; from < columns; from += step) {
        const int64_t n = columns - from < step ? columns - from : step;
        char *out = first[0] + (size_t)from * job->elem;
        for (int64_t r = 0; r < rows; r += ROWS_TOGETHER) {
            const int64_t count = rows - r < ROWS_TOGETHER ? rows - r : ROWS_TOGETHER;
            if (job->is_copy && job->dense && rows <= blocks_together) {
                const char *x = first[1] + (r * row_stride[1] + from) * (int64_t)job->elem;
                job->isa->fold[job->dtype](count, n, x, row_stride[1], out);
                continue;
            }
            memset(job->block[0], 0, (size_t)n * job->elem);
            for (int64_t i = r; i < r + count; i++) {
                char *row[OPERANDS];
                memcpy(row, first, sizeof row[0] * (size_t)job->operands);
                row[0] = job->block[0];
                for (int k = 1; k < job->operands; k++)
                    row[k] =
                        first[k] + (i * row_stride[k] + from * job->stride[k]) * (int64_t)job->elem;
                row_run(job, row, n);
            }
            if (rows <= blocks_together) {
                dense_add(job, n, out, job->block[0]);
                continue;
            }
            if (r % blocks_together == 0)
                memset(job->upper, 0, (size_t)n * job->elem);
            dense_add(job, n, job->upper, job->block[0]);
            if ((r + ROWS_TOGETHER) % blocks_together == 0 || r + ROWS_TOGETHER >= rows)
                dense_add(job, n, out, job->upper);
        }
    }
}

/* A dense row copied to `rows` dense rows, one behind the other: what is there is copied behind
 * itself, so that few calls do it. */
static void row_repeat(char *to, const char *from, size_t row_bytes, int64_t rows)
{
    const size_t all = row_bytes * (size_t)rows;
    memcpy(to, from, row_bytes);
    for (size_t done = row_bytes; done < all; done *= 2)
        memcpy(to + done, to, done < all - done ? done : all - done);
}

/* Dense rows that fall on an element each: what row_run does, without a row's running value. */
static void rows_sum(const struct loop_job *job, char *const *first, int64_t rows,
                     const int64_t *row_stride, int64_t columns)
{
    const int f = job->dtype;
    for (int64_t r = 0; r < rows; r++) {
        const char *x = first[1] + r * row_stride[1] * (int64_t)job->elem;
        char *out = first[0] + r * row_stride[0] * (int64_t)job->elem;
        kernel_store(f, out, 0, kernel_load(f, out, 0) + job->isa->sum[f](columns, x));
    }
}

/* What to do with the last two axes at once, where that beats row after row. */
enum loop_pair { PAIR_NONE, PAIR_FOLD, PAIR_SUM, PAIR_REPEAT, PAIR_TRANSPOSE };

static enum loop_pair pair_of(const struct plan *plan, const struct loop_job *job)
{
    const int last = plan->rank - 1;
    if (last == 0)
        return PAIR_NONE;
    const int64_t *outer = plan->stride[last - 1], *inner = plan->stride[last];
    const int64_t rows = plan->extent[last - 1], columns = plan->extent[last];
    if (job->accumulate && job->how != KERNEL_REDUCE_SUM)
        return PAIR_NONE;
    if (job->accumulate && inner[0] == 0 && outer[0] != 0 && job->is_copy && job->dense)
        return PAIR_SUM;
    if (job->accumulate)
        return inner[0] == 1 && outer[0] == 0 && rows > ROWS_TOGETHER / 8 ? PAIR_FOLD : PAIR_NONE;
    if (!job->is_copy || inner[0] != 1)
        return PAIR_NONE;
    if (inner[1] == 1 && outer[1] == 0 && outer[0] == columns)
        return PAIR_REPEAT;
    return inner[1] > 1 && outer[1] == 1 && rows > 1 ? PAIR_TRANSPOSE : PAIR_NONE;
}

/* Walks all axes but the last one or two, and runs what those span at each step. */
static void plan_walk(const struct plan *plan, struct loop_job *job)
{
    const int last = plan->rank - 1;
    const enum loop_pair pair = pair_of(plan, job);
    const int outer = pair == PAIR_NONE ? last : last - 1;
    const int64_t rows = last > 0 ? plan->extent[last - 1] : 1, columns = plan->extent[last];
    const int64_t *row_stride = plan->stride[last > 0 ? last - 1 : 0];
    int64_t index[KERNEL_MAX_RANK] = {0};
    char *row[OPERANDS];
    memcpy(row, plan->data, sizeof row[0] * (size_t)plan->operands);
    for (;;) {
        if (pair == PAIR_FOLD)
            rows_fold(job, row, rows, row_stride, columns);
        else if (pair == PAIR_SUM)
            rows_sum(job, row, rows, row_stride, columns);
        else if (pair == PAIR_REPEAT)
            row_repeat(row[0], row[1], (size_t)columns * job->elem, rows);
        else if (pair == PAIR_TRANSPOSE)
            kernel_transpose(job->elem, rows, columns, row[1], plan->stride[last][1], row[0],
                             row_stride[0]);
        else
            row_run(job, row, columns);
        int axis = outer - 1;
        for (; axis >= 0; axis--) {
            const int64_t *stride = plan->stride[axis];
            const int64_t back = ++index[axis] < plan->extent[axis] ? 0 : plan->extent[axis];
            for (int k = 0; k < plan->operands; k++)
                row[k] += (stride[k] - back * stride[k]) * (int64_t)job->elem;
            if (back == 0)
                break;
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* A plan and the job of its parts. */
struct share {
    const struct plan *plan;
    const struct loop_job *job;
};

static void plan_run(const struct plan *plan, struct loop_job *job)
{
    job->operands = plan->operands;
    job->stride = plan->stride[plan->rank - 1];
    job->target = NULL;
    job->dense = true;
    for (int k = 1; k < plan->operands; k++)
        job->dense = job->dense && job->stride[k] == 1;
    const int64_t columns = plan->extent[plan->rank - 1], block = BLOCK_BYTES / (int64_t)job->elem;
    job->fill = columns < block ? columns : block;
    memset(job->filled, 0, sizeof job->filled);
    plan_walk(plan, job);
    sum_flush(job);
    job->stride = NULL;
}

/* A part of the first axis. */
static void share_part(void *of, int part, int parts)
{
    const struct share *share = of;
    const int64_t extent = share->plan->extent[0], from = extent * part / parts;
    struct plan plan = *share->plan;
    struct loop_job job = {.isa = share->job->isa,
                           .loop = share->job->loop,
                           .assign = share->job->assign,
                           .parameters = share->job->parameters,
                           .elem = share->job->elem,
                           .dtype = share->job->dtype,
                           .how = share->job->how,
                           .accumulate = share->job->accumulate,
                           .is_copy = share->job->is_copy};
    plan.extent[0] = extent * (part + 1) / parts - from;
    for (int k = 0; k < plan.operands; k++)
        plan.data[k] += from * plan.stride[0][k] * (int64_t)job.elem;
    plan_run(&plan, &job);
}

/* Threads divide the first axis if each of its indices has output elements of its own. So the value
 * of an element does not depend on the number of threads. */
static void run(struct loop_job *job, struct kernel_array *out, int n_in, const kernel_ref *in)
{
    struct plan plan;
    if (!plan_make(&plan, out, n_in, in))
        return;
    uint64_t bytes = job->elem;
    for (int axis = 0; axis < plan.rank; axis++)
        bytes *= (uint64_t)plan.extent[axis];
    int parts = plan.rank > 1 && plan.stride[0][0] != 0
                    ? threads_parts(threads_ns(bytes, 1 + n_in, job->flops))
                    : 1;
    if (parts > plan.extent[0])
        parts = (int)plan.extent[0];
    if (parts > 1)
        threads_run(parts, share_part, &(struct share){&plan, job});
    else
        plan_run(&plan, job);
}

/* A dense loop over equal arrays. */
struct dense {
    kernel_loop *loop;
    int64_t size;
    size_t elem;
    char *out;
    int n_in;
    const void *const *in;
    const double *parameters;
};

/* Parts begin at whole vectors; what an element becomes does not depend on its place. */
static void dense_part(void *of, int part, int parts)
{
    enum { TOGETHER = 64 };
    const struct dense *d = of;
    const int64_t groups = (d->size + TOGETHER - 1) / TOGETHER;
    const int64_t from = groups * part / parts * TOGETHER;
    int64_t to = groups * (part + 1) / parts * TOGETHER;
    const void *in[KERNEL_MAX_IN];
    if (to > d->size)
        to = d->size;
    for (int k = 0; k < d->n_in; k++)
        in[k] = (const char *)d->in[k] + (size_t)from * d->elem;
    d->loop(to - from, d->out + (size_t)from * d->elem, in, d->parameters);
}

/* kernel_elementwise of any arrays. */
static void strided_run(enum kernel_loop_id loop, struct kernel_array *out, int n_in,
                        const kernel_ref *in, const double *parameters, bool accumulate)
{
    const struct kernel_isa *isa = kernel_isa_get();
    struct loop_job job;
    job.isa = isa;
    job.loop = isa->loop[loop][out->dtype][accumulate];
    job.assign = isa->loop[loop][out->dtype][false];
    job.parameters = parameters;
    job.elem = kernel_dtype_bytes(out->dtype);
    job.dtype = out->dtype;
    job.how = KERNEL_REDUCE_SUM;
    job.accumulate = accumulate;
    job.is_copy = loop == LOOP_copy;
    job.flops = kernel_loop_flops[loop];
    run(&job, out, n_in, in);
}

void kernel_elementwise(enum kernel_loop_id loop, struct kernel_array *out, int n_in,
                        const kernel_ref *in, const double *parameters, bool accumulate)
{
    /* Without accumulate the output has the broadcast shape, so equal sizes are equal shapes. */
    const void *data[KERNEL_MAX_IN];
    bool plain = out->contiguous;
    for (int k = 0; k < n_in && plain; k++) {
        data[k] = in[k]->data;
        plain = in[k]->contiguous && in[k]->size == out->size &&
                (!accumulate || kernel_same_extents(in[k], in[0]));
    }
    if (!plain) {
        strided_run(loop, out, n_in, in, parameters, accumulate);
        return;
    }
    kernel_loop *f = kernel_isa_get()->loop[loop][out->dtype][accumulate];
    const size_t elem = kernel_dtype_bytes(out->dtype);
    const int parts = threads_parts(
        threads_ns((uint64_t)out->size * elem, 1 + n_in + accumulate, kernel_loop_flops[loop]));
    if (__builtin_expect(parts > 1, 0))
        threads_run(parts, dense_part,
                    &(struct dense){f, out->size, elem, out->data, n_in, data, parameters});
    else
        f(out->size, out->data, data, parameters);
}

void kernel_reduce(enum kernel_reduce how, struct kernel_array *out, kernel_ref in)
{
    const struct kernel_isa *isa = kernel_isa_get();
    struct loop_job job;
    job.isa = isa;
    job.loop = how == KERNEL_REDUCE_SUM ? isa->loop[LOOP_copy][out->dtype][true]
                                        : isa->max_into[out->dtype];
    job.assign = isa->loop[LOOP_copy][out->dtype][false];
    job.parameters = NULL;
    job.elem = kernel_dtype_bytes(out->dtype);
    job.dtype = out->dtype;
    job.how = how;
    job.accumulate = true;
    job.is_copy = true;
    job.flops = 1;
    run(&job, out, 1, &in);
}

void kernel_fill(struct kernel_array *array, double value)
{
    const float narrow = (float)value;
    struct kernel_array one = {.size = 1, .dtype = array->dtype, .contiguous = true};
    if (array->dtype == KERNEL_F32)
        one.data = (void *)&narrow;
    else
        one.data = (void *)&value;
    const kernel_ref in = &one;
    kernel_elementwise(LOOP_copy, array, 1, &in, NULL, false);
}
