/* normalize.c: normalization and its gradient. Where no long runs of a channel lie together it goes
 * through the elementwise loops, block by block of the channels, so that what the passes over a
 * block share stays in cache; normalize_runs.c has the rest.
 */
#include "normalize.h"
#include "dense.h"
#include "elementwise.h"
#include "kernel_ops.h"

#include <math.h>

enum {
    BLOCK_BYTES = 1 << 16,
    LEAST_BLOCK = 64, /* channels, where there are so many */
    OUTER = 1,
    KEPT = 2,
    INNER = 4,
    ALL = 7
};

struct normalization normalize_rows(kernel_ref x, kernel_ref w, bool centered)
{
    struct normalization n = {.dtype = x->dtype,
                              .centered = centered,
                              .outer = 1,
                              .kept = 1,
                              .inner = w->size,
                              .lead = x->rank - w->rank};
    for (int axis = 0; axis < x->rank - w->rank; axis++)
        n.kept *= x->shape[axis];
    return n;
}

struct normalization normalize_channels(kernel_ref x)
{
    struct normalization n = {.dtype = x->dtype,
                              .centered = true,
                              .by_channel = true,
                              .outer = x->shape[0],
                              .kept = x->shape[1],
                              .inner = 1};
    for (int axis = 2; axis < x->rank; axis++)
        n.inner *= x->shape[axis];
    return n;
}

int normalize_rows_check(const struct kernel_call *call, kernel_ref x, kernel_ref w)
{
    const int lead = x->rank - w->rank;
    bool fits = w->rank > 0 && lead >= 0;
    for (int axis = 0; axis < w->rank && fits; axis++)
        fits = w->shape[axis] == x->shape[lead + axis];
    return fits ? 0 : kernel_refuse_operands(call, ", ", "w must have the last extents of x");
}

int normalize_eps_check(const struct kernel_call *call, double eps)
{
    return eps >= 0 ? 0 : kernel_refuse_real(call, "eps", eps, "a number of at least 0");
}

void normalize_rows_statistics(kernel_ref x, kernel_ref w, struct kernel_shape *out)
{
    kernel_shape_begin(out, x->dtype, x->rank - w->rank);
    for (int axis = 0; axis < x->rank - w->rank; axis++)
        out->extent[axis] = x->shape[axis];
}

static int64_t count_of(const struct normalization *n)
{
    return n->outer * n->inner;
}

/* Extent of the kept axis in a block. */
static int64_t block_of(const struct normalization *n)
{
    const int64_t each = count_of(n) * (int64_t)kernel_dtype_bytes(n->dtype);
    const int64_t fitting = each > 0 ? BLOCK_BYTES / each : n->kept;
    const int64_t block = fitting < LEAST_BLOCK ? LEAST_BLOCK : fitting;
    return block < n->kept ? block : n->kept;
}

/* The part from..from+block along the kept axis of an array that has the axes in the mask and
 * `kept` indices of the kept one. */
static struct kernel_array *part(struct kernel_view *view, const struct normalization *n,
                                 const void *data, unsigned axes, int64_t kept, int64_t from,
                                 int64_t block)
{
    const int64_t inner = axes & INNER ? n->inner : 1;
    const size_t elem = kernel_dtype_bytes(n->dtype);
    view->shape[0] = axes & OUTER ? n->outer : 1;
    view->shape[1] = axes & KEPT ? block : 1;
    view->shape[2] = inner;
    view->strides[0] = kept * inner;
    view->strides[1] = inner;
    view->strides[2] = 1;
    view->array = (struct kernel_array){
        .data = (char *)data + (axes & KEPT ? (size_t)(from * inner) * elem : 0),
        .size = view->shape[0] * view->shape[1] * inner,
        .dtype = (uint8_t)n->dtype,
        .rank = 3,
        .contiguous = view->shape[0] <= 1 || !(axes & KEPT) || block == kept};
    kernel_view_bind(view);
    return &view->array;
}

static void run1(enum kernel_loop_id loop, struct kernel_array *out, kernel_ref a,
                 const double *parameter)
{
    kernel_elementwise(loop, out, 1, &a, parameter, false);
}

static void run3(enum kernel_loop_id loop, struct kernel_array *out, kernel_ref a, kernel_ref b,
                 kernel_ref c)
{
    kernel_elementwise(loop, out, 3, (const kernel_ref[]){a, b, c}, NULL, false);
}

static void run2(enum kernel_loop_id loop, struct kernel_array *out, kernel_ref a, kernel_ref b)
{
    kernel_elementwise(loop, out, 2, (const kernel_ref[]){a, b}, NULL, false);
}

/* out = share * the sum of loop(a, b) over out's axes of extent 1; b may be NULL. */
static void mean(enum kernel_loop_id loop, struct kernel_array *out, kernel_ref a, kernel_ref b,
                 double share)
{
    kernel_fill(out, 0);
    kernel_elementwise(loop, out, b ? 2 : 1, (const kernel_ref[]){a, b}, NULL, true);
    run1(LOOP_scale, out, out, &share);
}

double normalize_value_put(int dtype, void *data, int64_t i, double value)
{
    kernel_store(dtype, data, i, value);
    return kernel_load(dtype, data, i);
}

bool normalize_is_far(const struct normalization *n, double mean, double var, double eps)
{
    const double least = n->dtype == KERNEL_F32 ? 0x1p-100 : 0x1p-960;
    return !isfinite(mean) || !isfinite(var) || var + eps < least;
}

/* The greatest magnitude, or a negative number if one is not finite; *equal: all are one number. */
static double greatest(const struct normalization *n, const void *x, int64_t kept, bool *equal)
{
    double most = 0, first = 0;
    *equal = true;
    for (int64_t o = 0; o < n->outer; o++)
        for (int64_t i = 0; i < n->inner; i++) {
            const double value = kernel_load(n->dtype, x, (o * n->kept + kept) * n->inner + i);
            if (!isfinite(value))
                return -1;
            if (o == 0 && i == 0)
                first = value;
            *equal = *equal && value == first;
            most = fmax(most, fabs(value));
        }
    return most;
}

/* The mean of (x scale - shift)^power, for a power of 1 or 2. */
static double scaled_mean(const struct normalization *n, const void *x, int64_t kept, double scale,
                          double shift, int power)
{
    double sum = 0;
    for (int64_t o = 0; o < n->outer; o++)
        for (int64_t i = 0; i < n->inner; i++) {
            const double value = kernel_load(n->dtype, x, (o * n->kept + kept) * n->inner + i);
            const double apart = value * scale - shift;
            sum += power == 2 ? apart * apart : apart;
        }
    return sum / (double)count_of(n);
}

bool normalize_rescale(const struct normalization *n, const void *x, int64_t kept, double eps,
                       struct normalize_statistics *found)
{
    bool equal = true;
    int exponent = 0;
    const double most = greatest(n, x, kept, &equal), root = sqrt(eps);
    if (most < 0 || count_of(n) == 0)
        return false;
    (void)frexp(fmax(most, root), &exponent);
    exponent = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : exponent;
    const double scale = ldexp(1, -exponent);
    double mean = 0;
    if (n->centered && equal)
        mean = kernel_load(n->dtype, x, kept * n->inner);
    else if (n->centered)
        mean = scaled_mean(n, x, kept, scale, 0, 1) / scale;
    if (n->dtype == KERNEL_F32)
        mean = (double)(float)mean;
    const double var = scaled_mean(n, x, kept, scale, mean * scale, 2);
    *found = (struct normalize_statistics){mean, var / scale / scale,
                                           scale / hypot(sqrt(var), root * scale)};
    return true;
}

void normalize_rescale_into(const struct normalization *n, const struct normalize_forward *data,
                            int64_t kept, double *mean, double *rstd)
{
    struct normalize_statistics found;
    if (!normalize_rescale(n, data->x, kept, data->eps, &found))
        return;
    if (data->mean != NULL)
        *mean = normalize_value_put(n->dtype, data->mean, kept, found.mean);
    if (data->var != NULL)
        (void)normalize_value_put(n->dtype, data->var, kept, found.var);
    *rstd = normalize_value_put(n->dtype, data->rstd, kept, found.rstd);
}

/* The forward's statistics of the kept indices from..end that are far, again. */
static void block_rescale(const struct normalization *n, const struct normalize_forward *data,
                          int64_t from, int64_t end)
{
    for (int64_t k = from; k < end; k++) {
        double mean = kernel_load(n->dtype, data->mean, k), rstd;
        if (normalize_is_far(n, mean, kernel_load(n->dtype, data->var, k), data->eps))
            normalize_rescale_into(n, data, k, &mean, &rstd);
    }
}

void normalize_forward(const struct normalization *n, const struct normalize_forward *data)
{
    if (normalize_has_runs(n)) {
        normalize_runs_forward(n, data);
        return;
    }
    const int64_t step = block_of(n);
    const double share = 1 / (double)count_of(n);
    for (int64_t from = 0; from < n->kept; from += step) {
        const int64_t block = n->kept - from < step ? n->kept - from : step;
        struct kernel_view views[7];
        const kernel_ref x = part(&views[0], n, data->x, ALL, n->kept, from, block);
        const kernel_ref w = part(&views[1], n, data->w, KEPT, n->kept, from, block);
        struct kernel_array *y = part(&views[2], n, data->y, ALL, n->kept, from, block);
        struct kernel_array *rstd = part(&views[3], n, data->rstd, KEPT, n->kept, from, block);
        struct kernel_array *var = part(&views[4], n, data->var, KEPT, n->kept, from, block);
        struct kernel_array *m = part(&views[5], n, data->mean, KEPT, n->kept, from, block);
        const kernel_ref b = part(&views[6], n, data->b, KEPT, n->kept, from, block);
        mean(LOOP_copy, m, x, NULL, share);
        mean(LOOP_squared_difference, var, x, m, share);
        run1(LOOP_offset, rstd, var, &data->eps);
        run1(LOOP_rsqrt, rstd, rstd, NULL);
        block_rescale(n, data, from, from + block);
        run3(LOOP_standardize, y, x, m, rstd);
        run3(LOOP_multiply_add, y, y, w, b);
    }
}

/* z and q of a block, and their two means. */
static size_t block_bytes(const struct normalization *n)
{
    return dense_rounded((size_t)(count_of(n) * block_of(n)) * kernel_dtype_bytes(n->dtype));
}

static size_t mean_bytes(const struct normalization *n)
{
    return dense_rounded((size_t)block_of(n) * kernel_dtype_bytes(n->dtype));
}

size_t normalize_gradient_space(const struct normalization *n)
{
    if (normalize_has_runs(n))
        return normalize_runs_space(n);
    return 2 * block_bytes(n) + 2 * mean_bytes(n);
}

/* The block's rstd, in `room` if a variance has left the range, from which it was computed. */
static kernel_ref block_rstd(const struct normalization *n, const struct normalize_gradient *data,
                             int64_t from, kernel_ref rstd, struct kernel_array *room)
{
    bool far = false;
    for (int64_t k = 0; k < rstd->size && !far; k++) {
        const double value = kernel_load(n->dtype, rstd->data, k);
        far = value == 0 || isinf(value);
    }
    if (!far)
        return rstd;
    for (int64_t k = 0; k < rstd->size; k++) {
        const double value = kernel_load(n->dtype, rstd->data, k);
        struct normalize_statistics found = {.rstd = value};
        if (value == 0 || isinf(value))
            (void)normalize_rescale(n, data->x, from + k, 0, &found);
        (void)normalize_value_put(n->dtype, room->data, k, found.rstd);
    }
    return room;
}

void normalize_gradient(const struct normalization *n, const struct normalize_gradient *data,
                        void *space)
{
    if (normalize_has_runs(n)) {
        normalize_runs_gradient(n, data, space);
        return;
    }
    const int64_t step = block_of(n);
    const double share = 1 / (double)count_of(n);
    char *const buffer = space, *const means = buffer + 2 * block_bytes(n);
    for (int64_t from = 0; from < n->kept; from += step) {
        const int64_t block = n->kept - from < step ? n->kept - from : step;
        struct kernel_view views[12];
        const kernel_ref g = part(&views[0], n, data->g, ALL, n->kept, from, block);
        const kernel_ref x = part(&views[1], n, data->x, ALL, n->kept, from, block);
        const kernel_ref w = part(&views[2], n, data->w, KEPT, n->kept, from, block);
        const kernel_ref m = part(&views[3], n, data->mean, KEPT, n->kept, from, block);
        const kernel_ref rstd = part(&views[4], n, data->rstd, KEPT, n->kept, from, block);
        struct kernel_array *gx = part(&views[5], n, data->gx, ALL, n->kept, from, block);
        struct kernel_array *gw = part(&views[6], n, data->gw, KEPT, n->kept, from, block);
        struct kernel_array *gb = part(&views[7], n, data->gb, KEPT, n->kept, from, block);
        struct kernel_array *z = part(&views[8], n, buffer, ALL, block, 0, block);
        struct kernel_array *q = part(&views[9], n, buffer + block_bytes(n), ALL, block, 0, block);
        struct kernel_array *of_q = part(&views[10], n, means, KEPT, block, 0, block);
        struct kernel_array *of_qz =
            part(&views[11], n, means + mean_bytes(n), KEPT, block, 0, block);
        run3(LOOP_standardize, z, x, m, block_rstd(n, data, from, rstd, of_q));
        mean(LOOP_mul, gw, g, z, 1);
        mean(LOOP_copy, gb, g, NULL, 1);
        run2(LOOP_mul, q, g, w);
        mean(LOOP_mul, of_qz, q, z, share);
        mean(LOOP_copy, of_q, q, NULL, share);
        run2(LOOP_mul, z, z, of_qz);
        run2(LOOP_sub, q, q, of_q);
        run3(LOOP_standardize, gx, q, z, block_rstd(n, data, from, rstd, of_q));
    }
}

struct kernel_cost normalize_forward_cost(const struct kernel_call *call,
                                          const struct normalization *n)
{
    const uint64_t size = (uint64_t)call->in[0]->size, kept = (uint64_t)n->kept;
    return (struct kernel_cost){.flops = n->centered ? 8 * size + 11 * kept : 4 * size + 10 * kept,
                                .bytes = kernel_moved_bytes(call)};
}

struct kernel_cost normalize_gradient_cost(const struct kernel_call *call,
                                           const struct normalization *n)
{
    const uint64_t size = (uint64_t)call->in[1]->size, kept = (uint64_t)n->kept;
    return (struct kernel_cost){.flops = n->centered ? 13 * size + 2 * kept : 9 * size + kept,
                                .bytes = kernel_moved_bytes(call)};
}

static kernel_ref product(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_mul, a, b);
}

/* The attributes {keepdim, axes...} of a reduction over all axes but the kept ones. */
static int reduction(const struct normalization *n, int rank, bool keep, int64_t *attr)
{
    int count = 0;
    attr[count++] = keep;
    for (int axis = 0; axis < rank; axis++)
        if (n->by_channel ? axis != 1 : axis >= n->lead)
            attr[count++] = axis;
    return count;
}

kernel_ref normalize_emit_kept(struct kernel_rule *rule, const struct normalization *n,
                               kernel_ref value, kernel_ref x)
{
    int64_t shape[KERNEL_MAX_RANK];
    if (value == NULL)
        return NULL;
    for (int axis = 0; axis < x->rank; axis++)
        shape[axis] = (n->by_channel ? axis == 1 : axis < n->lead) ? x->shape[axis] : 1;
    return kernel_emit_shape(rule, &kernel_op_reshape, value, x->rank, shape);
}

void normalize_accumulate_sum(struct kernel_rule *rule, const struct normalization *n, int input,
                              kernel_ref value)
{
    int64_t attr[KERNEL_MAX_ATTR];
    if (value != NULL)
        kernel_accumulate(rule, input, &kernel_op_sum, 1, &value,
                          reduction(n, value->rank, false, attr), attr);
}

/* rstd = (var + eps)^(-1/2), so its derivative by x is -rstd^2 z / n. */
void normalize_accumulate_rstd(struct kernel_rule *rule, const struct normalization *n,
                               kernel_ref mean, kernel_ref rstd, kernel_ref g)
{
    const kernel_ref x = rule->in[0];
    const double each = -1 / (double)n->inner;
    const kernel_ref kept = normalize_emit_kept(rule, n, rstd, x);
    const kernel_ref cube = product(rule, kernel_emit1(rule, &kernel_op_square, kept), kept);
    const kernel_ref share =
        kernel_emit_real(rule, &kernel_op_scale, each, normalize_emit_kept(rule, n, g, x));
    kernel_ref in[] = {x, product(rule, cube, share)};
    if (n->centered)
        in[0] = kernel_emit2(rule, &kernel_op_sub, x, normalize_emit_kept(rule, n, mean, x));
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

/* Adds a value of x's shape to the adjoint of weights. */
static void accumulate_weights(struct kernel_rule *rule, const struct normalization *n, int input,
                               kernel_ref a, kernel_ref b)
{
    const kernel_ref in[] = {a, b};
    if (n->by_channel)
        normalize_accumulate_sum(rule, n, input, kernel_emit2(rule, &kernel_op_mul, a, b));
    else
        kernel_accumulate(rule, input, &kernel_op_mul, 2, in, 0, NULL);
}

/* The mean of a b, kept; b may be NULL. */
static kernel_ref emit_mean(struct kernel_rule *rule, const struct normalization *n, kernel_ref a,
                            kernel_ref b)
{
    int64_t attr[KERNEL_MAX_ATTR];
    const kernel_ref value = b ? product(rule, a, b) : a;
    const int count = reduction(n, rule->in[1]->rank, true, attr);
    return kernel_emit(rule, &kernel_op_mean, 1, &value, count, attr);
}

/* total + term, where total may be NULL: nothing yet. */
static kernel_ref plus(struct kernel_rule *rule, kernel_ref total, kernel_ref term)
{
    return total == NULL ? term : kernel_emit2(rule, &kernel_op_add, total, term);
}

/* With h, hw, hb the adjoints of gx, gw, gb: through gx, with k = h rstd and P k = k - mean of k -
 * z mean of (k z), to q goes P k, and to z -(k mean of (q z) + q mean of (k z)). */
void normalize_gradient_pullback(struct kernel_rule *rule, const struct normalization *n)
{
    const kernel_ref g = rule->in[0], x = rule->in[1], h = rule->adjoint[0];
    const kernel_ref hw = rule->adjoint[1], hb = n->centered ? rule->adjoint[2] : NULL;
    const int at_rstd = n->centered ? 4 : 3;
    const kernel_ref rstd = normalize_emit_kept(rule, n, rule->in[at_rstd], x);
    const kernel_ref m = n->centered ? normalize_emit_kept(rule, n, rule->in[3], x) : NULL;
    const kernel_ref apart = n->centered ? kernel_emit2(rule, &kernel_op_sub, x, m) : x;
    const kernel_ref z = product(rule, apart, rstd);
    kernel_ref to_z = NULL;
    if (count_of(n) == 0)
        return;
    if (h != NULL) {
        const kernel_ref w =
            n->by_channel ? normalize_emit_kept(rule, n, rule->in[2], x) : rule->in[2];
        const kernel_ref q = product(rule, g, w), k = product(rule, h, rstd);
        const kernel_ref of_kz = emit_mean(rule, n, k, z), of_qz = emit_mean(rule, n, q, z);
        kernel_ref to_q = kernel_emit2(rule, &kernel_op_sub, k, product(rule, z, of_kz));
        if (n->centered)
            to_q = kernel_emit2(rule, &kernel_op_sub, to_q, emit_mean(rule, n, k, NULL));
        kernel_accumulate(rule, 0, &kernel_op_mul, 2, (const kernel_ref[]){to_q, w}, 0, NULL);
        accumulate_weights(rule, n, 2, to_q, g);
        to_z = kernel_emit1(rule, &kernel_op_neg,
                            plus(rule, product(rule, k, of_qz), product(rule, q, of_kz)));
        /* rstd as the factor in front: the sum of h gx, divided by it. */
        const kernel_ref in[] = {product(rule, h, rule->out[0]), rstd};
        normalize_accumulate_sum(rule, n, at_rstd,
                                 kernel_emit2(rule, &kernel_op_div, in[0], in[1]));
    }
    if (hw != NULL) {
        const kernel_ref v = n->by_channel ? normalize_emit_kept(rule, n, hw, x) : hw;
        kernel_accumulate(rule, 0, &kernel_op_mul, 2, (const kernel_ref[]){z, v}, 0, NULL);
        to_z = plus(rule, to_z, product(rule, g, v));
    }
    if (hb != NULL) {
        const kernel_ref v = n->by_channel ? normalize_emit_kept(rule, n, hb, x) : hb;
        kernel_accumulate(rule, 0, &kernel_op_broadcast_to, 1, &v, x->rank, x->shape);
    }
    if (to_z == NULL)
        return;
    normalize_accumulate_sum(rule, n, at_rstd, product(rule, to_z, apart));
    const kernel_ref to_x = product(rule, to_z, rstd);
    kernel_accumulate_value(rule, 1, to_x);
    if (n->centered)
        normalize_accumulate_sum(rule, n, 3, kernel_emit1(rule, &kernel_op_neg, to_x));
}

void normalize_rows_depends(const struct kernel_call *call, int o, int i, int w,
                            struct kernel_depends *d)
{
    const kernel_ref in = call->in[i], out = call->out[o];
    const int outer = call->in[w == 1 ? 0 : 1]->rank - call->in[w]->rank;
    if (w == 1 && i >= w && o == 0)
        kernel_depends_elements(call, o, i, d);
    else if (w == 1 && i >= w)
        kernel_depends_all(call, o, i, d);
    else
        kernel_depends_within(in, in->rank - outer, out, out->rank - outer, d);
}
