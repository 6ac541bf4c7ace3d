/* op_rules.h: what the shape rules, pullbacks, costs and samples of several ops have in common.
 *
 * Internal to kernels/.
 */
#ifndef OP_RULES_H
#define OP_RULES_H

#include "kernel.h"

/* Writes the reason into call->error, "NAME: reason", and returns -1. */
int kernel_refuse(const struct kernel_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, "NAME: f64 [3,4] x f64 [5]: reason" with the call's operands joined by `between`. */
int kernel_refuse_operands(const struct kernel_call *call, const char *between, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

/* The extents of an op whose n_attr attributes are a shape, "[3,-1]"; returns buf. */
const char *kernel_describe_wanted(const struct kernel_call *call, char *buf, size_t n);

/* Refuses a number that no shape would make fit, "NAME: p is 0.5: a number of at least 1 is
 * wanted", and returns KERNEL_REFUSED_ATTRIBUTE. */
int kernel_refuse_real(const struct kernel_call *call, const char *name, double value,
                       const char *wanted);

/* Refuses input i unless it is f32 or f64: "NAME takes f32 or f64, not i64". */
int kernel_refuse_dtype(const struct kernel_call *call, int i);
static inline int kernel_require_float(const struct kernel_call *call, int i)
{
    return __builtin_expect(call->in[i]->dtype == KERNEL_I64, 0) ? kernel_refuse_dtype(call, i) : 0;
}

/* Refuses input i unless it is i64: "NAME: what must be i64, not f64", KERNEL_REFUSED_DTYPE. */
int kernel_require_i64(const struct kernel_call *call, int i, const char *what);

/* Refuses, naming row and label, unless every element of the i64 vector `labels` is in
 * [0, classes): what is accepted forward may have changed when a sweep comes. */
int kernel_require_labels(const struct kernel_call *call, kernel_ref labels, int64_t classes);

/* Begins a shape: dtype, and no input that it equals or views. */
static inline void kernel_shape_begin(struct kernel_shape *out, int dtype, int rank)
{
    out->dtype = (uint8_t)dtype;
    out->rank = (uint8_t)rank;
    out->same_as = -1;
    out->view_of = -1;
    out->offset = 0;
}

/* Shape rules of ops whose result has dtype and extents of input 0: whatever that is; of floats; of
 * floats that have the axes which the attributes name. */
int kernel_shape_same(const struct kernel_call *call, struct kernel_shape *out);
int kernel_shape_floats(const struct kernel_call *call, struct kernel_shape *out);
int kernel_shape_axes(const struct kernel_call *call, struct kernel_shape *out);

/* Broadcasts the operands' extents into out. False, with the two extents that differ, if they do
 * not broadcast. Sets same_as where an operand has the result's shape. */
bool kernel_broadcast_unequal(int n_in, const kernel_ref *in, struct kernel_shape *out,
                              int64_t differ[2]);
static inline bool kernel_broadcast(int n_in, const kernel_ref *in, struct kernel_shape *out,
                                    int64_t differ[2])
{
    for (int i = 1; i < n_in; i++)
        if (!kernel_same_extents(in[i], in[0]))
            return kernel_broadcast_unequal(n_in, in, out, differ);
    kernel_shape_begin(out, in[0]->dtype, in[0]->rank);
    out->same_as = 0;
    return true;
}

/* An axis that was checked, counted from the end where negative. */
static inline int kernel_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* A set of axes as a bit mask: attributes from `first` on, counted from the end where negative; all
 * axes where there are none. Returns 0, or -1 with call->error. */
int kernel_axes(const struct kernel_call *call, int first, unsigned *mask);

/* Shape of a reduction with attributes {keepdim, axes...}. */
int kernel_reduction_shape(const struct kernel_call *call, struct kernel_shape *out);

/* The same where the axes are the attributes from `first` on. */
int kernel_reduction_shape_at(const struct kernel_call *call, int first, struct kernel_shape *out);

/* Refuses a reduction over an axis of extent 0: "... is empty and has no `what`". */
int kernel_require_filled(const struct kernel_call *call, int first, const char *what);

/* Number of elements that fall on one element of a reduction's output. */
int64_t kernel_axes_count(kernel_ref x, unsigned axes);

/* A view of a reduction's output with the reduced axes as extents of 1 and strides of 0. */
struct kernel_view {
    struct kernel_array array;
    int64_t shape[KERNEL_MAX_RANK], strides[KERNEL_MAX_RANK];
};
void kernel_keep_axes(struct kernel_view *view, const struct kernel_array *out, kernel_ref in,
                      unsigned axes);

/* Points array.shape and array.strides at the view's own words after a copy. */
void kernel_view_bind(struct kernel_view *view);

/* Dense row-major view of `data`. */
void kernel_view_dense(struct kernel_view *view, void *data, int dtype, int rank,
                       const int64_t *shape);

/* The value `reduced`, which an op with attributes {keepdim, axes...} made of input 0, with the
 * reduced axes kept as extents of 1. */
kernel_ref kernel_emit_kept(struct kernel_rule *rule, kernel_ref reduced);
kernel_ref kernel_emit_kept_at(struct kernel_rule *rule, kernel_ref reduced, int first);

/* A reduction `op` with attributes {keepdim, axes...} of x, which has the shape of input 0, over
 * the rule's axes, which are its attributes from `first` on; the axes are kept. */
kernel_ref kernel_emit_reduction(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x,
                                 int first);

/* ties * share, where `x` has the shape of input 0, `most` is its maximum or minimum, kept, and
 * `share` is to be divided among the elements of x that equal it. The ties are constant. */
kernel_ref kernel_emit_tied(struct kernel_rule *rule, kernel_ref x, kernel_ref most,
                            kernel_ref share, int first);

/* One operand, two operands, one real attribute and one operand. */
kernel_ref kernel_emit1(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x);
kernel_ref kernel_emit2(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref a,
                        kernel_ref b);
kernel_ref kernel_emit_real(struct kernel_rule *rule, const struct kernel_op *op, double c,
                            kernel_ref x);
/* a + b, either of which may be NULL: it then counts as 0. */
kernel_ref kernel_emit_sum(struct kernel_rule *rule, kernel_ref a, kernel_ref b);
/* An op whose attributes are a shape. */
kernel_ref kernel_emit_shape(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref x,
                             int rank, const int64_t *shape);
/* Adds a value to an input's adjoint. */
void kernel_accumulate_value(struct kernel_rule *rule, int input, kernel_ref value);
/* Adds output o of `op` to the adjoint of input o, for all its outputs. They have the inputs'
 * shapes. */
void kernel_accumulate_all(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                           const kernel_ref *in, int n_attr, const int64_t *attr);

/* Element `at` of floats, and a number stored there. */
static inline double kernel_load(int dtype, const void *data, int64_t at)
{
    return dtype == KERNEL_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static inline void kernel_store(int dtype, void *data, int64_t at, double x)
{
    if (dtype == KERNEL_F32)
        ((float *)data)[at] = (float)x;
    else
        ((double *)data)[at] = x;
}

/* Number of elements that the array's strides really reach, in bytes. */
uint64_t kernel_touched_bytes(kernel_ref array);

/* Every operand read once and every output written once, an accumulating one read as well. */
uint64_t kernel_moved_bytes(const struct kernel_call *call);

/* Cost of an op that takes elements of input 0 by the indices of input 1, and of one that adds all
 * of input 0 by them to a result that begins as zeros. */
struct kernel_cost kernel_cost_take(const struct kernel_call *call);
struct kernel_cost kernel_cost_add(const struct kernel_call *call);

/* Cost of an op that puts input 0 into zeros, or adds it there. */
struct kernel_cost kernel_cost_put(const struct kernel_call *call);

/* Cost of an op that only makes a view. */
struct kernel_cost kernel_cost_view(const struct kernel_call *call);

/* Forward of an op that only makes a view: nothing is to be done. */
int kernel_forward_view(const struct kernel_call *call);

/* A pullback that hands nothing on, and that of a linear op that is its own adjoint. */
void kernel_pullback_none(struct kernel_rule *rule);
void kernel_pullback_self(struct kernel_rule *rule);

/* Copies the k-th of n samples; the op's file gives them as an array. */
bool kernel_sample_from(const struct kernel_sample *samples, int n, int k,
                        struct kernel_sample *sample);

/* Extents of a sample that stand in parentheses: {KERNEL_EXTENTS (3, 5)}. */
#define KERNEL_EXTENTS(...) __VA_ARGS__

/* The function sample() of an op's file, from its array `samples`, which may not be empty; and
 * NAME_sample(), from NAME_samples, where the ops of a file have samples of their own. */
#define KERNEL_SAMPLE_FUNCTION(name, samples)                                                      \
    static bool name(int k, struct kernel_sample *s)                                               \
    {                                                                                              \
        _Static_assert(sizeof(samples) >= sizeof *s, "an op needs a sample");                      \
        return kernel_sample_from(samples, (int)(sizeof(samples) / sizeof *s), k, s);              \
    }
#define KERNEL_SAMPLES(samples) KERNEL_SAMPLE_FUNCTION(sample, samples)
#define KERNEL_SAMPLES_OF(name) KERNEL_SAMPLE_FUNCTION(name##_sample, name##_samples)

#endif
