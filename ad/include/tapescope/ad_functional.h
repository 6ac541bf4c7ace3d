/* ad_functional.h: derivatives of a function of tensors as a whole, by calls that leave nothing on
 * the tape. Included by the user beside ad.h.
 *
 *     static ad_tensor loss(ad_tape tape, const ad_tensor *x, int n, void *payload)
 *     {
 *         return ad_mean(ad_square(ad_sub(ad_matmul(*(ad_tensor *)payload, x[0]), x[1])));
 *     }
 *
 *     ad_value_and_gradient(tape, loss, 2, x, &data, &value, gradients, counts);
 *
 * What holds for every function here. `function` is called once, with x[n] as they are given: n >=
 * 1 different leaves of the tape, of f32 or f64 and any shapes. They alone are variables. Whatever
 * else is on the tape counts as constant, also where it was computed from x before, and so do
 * leaves that the function makes. The function may use all of the library but for what would change
 * or drop what is older than the call: that is refused with AD_ERROR_STATE by the function's own
 * line, as while ad_check_gradient runs. A function may call others of these.
 *
 * Afterwards the tape's values, records and marks are what they were, and handles that the function
 * made are stale (ad_pullback_begin keeps them until its end). Gradients of the tape, and buffers
 * given by ad_gradient_buffer, are not touched: ad_gradient reads what it would have read before.
 *
 * Results go to the caller's buffers: row-major, of x[i]'s dtype where they are gradients, with
 * their number of elements beside each. They may not overlap arrays that the function reads. One
 * whose elements are of another type is refused as by ad_value, but not with clang in C, and stays
 * as it is.
 *
 * Errors, kept in the tape, after which every buffer whose place and room are known is filled with
 * NaN and the tape serves on after ad_tape_clear_error: those of the function itself, by its own
 * line; AD_ERROR_ARGUMENT (n, a null pointer, a count, an x[i] that is no leaf or is there twice),
 * AD_ERROR_HANDLE, AD_ERROR_TAPE, AD_ERROR_SHAPE, AD_ERROR_DTYPE (the function's result),
 * AD_ERROR_STATE (under no_grad, while a checkpoint's function runs, or if the function's result
 * does not depend on x), AD_ERROR_MEMORY. Without a tape the error is the thread's. A call that
 * finds the tape in error returns that.
 *
 * Threads: as for the tape.
 *
 * A profile has the function's ops and their pullbacks on the function's own lines, the gradients
 * of x on the leaves' lines, and what a call does by itself on the line of the call.
 */
#ifndef TAPESCOPE_AD_FUNCTIONAL_H
#define TAPESCOPE_AD_FUNCTIONAL_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradients ---- */

/* The value of the function, whose result has size 1, and its gradients by x[n]: one recording and
 * one sweep. value: NULL if it is not wanted. gradients[i]: [shape of x[i]], counts[i] elements;
 * zeros where the result does not depend on x[i]. */
AD_INLINE ad_status ad_value_and_gradient(ad_tape tape, ad_function *function, int n,
                                          const ad_tensor *x, void *payload, double *value,
                                          void *const *gradients,
                                          const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_value_and_gradient,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   double *value, void *const *gradients, const int64_t *counts),
                  (tape, function, n, x, payload, value, gradients, counts))

/* ---- pullbacks ---- */

/* A recording of a function that is kept, by value: a vector-Jacobian product for any number of
 * seeds. Zero is none. A handle whose recording was dropped is refused, never followed. */
typedef struct ad_pullback {
    uint32_t tape, tape_generation, level, generation;
} ad_pullback;

/* Records function(x) and keeps it. The recording lies on the tape, behind a mark of its own, until
 * ad_pullback_end, or until a reset or a rewind to an older mark. The arrays of x must not change
 * as long as it is called (see ad_leaf_changed). Pullbacks nest like marks. After an error the
 * result is no pullback. */
AD_INLINE ad_pullback ad_pullback_begin(ad_tape tape, ad_function *function, int n,
                                        const ad_tensor *x, void *payload AD_LINE_PARAMETER_);
AD_SITED(ad_pullback, ad_pullback_begin,
         (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload),
         (tape, function, n, x, payload))

/* What the function returned, a live tensor: for its shape, its value and further ops. */
AD_INLINE ad_tensor ad_pullback_result(ad_pullback pullback AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_pullback_result, (ad_pullback pullback), (pullback))

/* gradients[i] = seed^T dy/dx[i], for the x[n] of the begin: one sweep, as often as wanted. seed:
 * [shape of y], n_seed elements of y's dtype; NULL for ones, where y has size 1. Errors:
 * AD_ERROR_STATE for a pullback that was ended, or dropped by a reset or a rewind, and where an
 * array of x was changed; AD_ERROR_HANDLE where the result y was released. */
AD_INLINE ad_status ad_pullback_call(ad_pullback pullback, const void *seed, int64_t n_seed,
                                     void *const *gradients,
                                     const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_pullback_call,
                  (ad_pullback pullback, const void *seed, int64_t n_seed, void *const *gradients,
                   const int64_t *counts),
                  (pullback, seed, n_seed, gradients, counts))
/* Not for direct use: ad_elements_check of the pullback's result, for its seed. */
AD_INLINE ad_status ad_seed_check(ad_pullback pullback, int elements AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_seed_check, (ad_pullback pullback, int elements), (pullback, elements))

/* Drops the recording, and everything that was recorded after it, as a rewind to its begin does;
 * but gradients that the tape holds stay. Pullbacks and marks begun since are ended with it.
 * Errors: AD_ERROR_STATE as above, and while a function is differentiated that is younger. */
AD_INLINE ad_status ad_pullback_end(ad_pullback pullback AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_pullback_end, (ad_pullback pullback), (pullback))

/* ---- derivatives in a direction ---- */

/* The derivative of the function's result y in the direction v: the sum of J_i v_i over the x[n].
 * direction[i]: v_i, [shape of x[i]], counts[i] elements. derivative: [shape of y], n_y elements.
 * value: y, or NULL if it is not wanted. y and all x[n] have one dtype, that of the buffers.
 *
 * J v is the gradient of <J^T u, v> by u: J^T u is recorded once with u as a variable, and swept
 * once. So it takes about two gradients' time, and the memory of two recordings. A function that
 * cannot be differentiated twice, such as one over ad_real, is refused as by ad_create_graph. */
AD_INLINE ad_status ad_jvp(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                           void *payload, const void *const *direction, const int64_t *counts,
                           void *value, void *derivative, int64_t n_y AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_jvp,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   const void *const *direction, const int64_t *counts, void *value,
                   void *derivative, int64_t n_y),
                  (tape, function, n, x, payload, direction, counts, value, derivative, n_y))

/* The Hessian of the function, whose result has size 1, times the direction v: product[i] = the sum
 * of H_ij v_j over the x[n]. direction[i], product[i]: [shape of x[i]], counts[i] elements; they
 * may be the same buffers. The gradients are recorded once, and <gradient, v> is swept once. The
 * result and all x[n] have one dtype. */
AD_INLINE ad_status ad_hvp(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                           void *payload, const void *const *direction, void *const *product,
                           const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_hvp,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   const void *const *direction, void *const *product, const int64_t *counts),
                  (tape, function, n, x, payload, direction, product, counts))

/* ---- whole matrices ---- */

/* In which order ad_jacobian computes. */
typedef enum ad_jacobian_order {
    AD_JACOBIAN_BY_SHAPE, /* as ad_jacobian_choice says */
    AD_JACOBIAN_ROWS,     /* a seed an element of the result */
    AD_JACOBIAN_COLUMNS   /* J^T u is recorded once, then a seed an element of x[n] */
} ad_jacobian_order;

/* AD_JACOBIAN_COLUMNS where a result of n_results elements depends on fewer variables in all, else
 * AD_JACOBIAN_ROWS. A seed of either kind takes about as long. */
AD_API ad_jacobian_order ad_jacobian_choice(int64_t n_results, int64_t n_variables);

/* The Jacobians of the function's result y by each x[n]: jacobian[i], [shape of y, shape of x[i]],
 * counts[i] elements, those of y times those of x[i]. One recording, swept from up to 16 seeds at
 * once where its records take several (docs/how-to/functional.md), whose adjoints then take up to
 * 16 times the memory, each at most 1 MiB; else from one at a time. y and all x[n] have one dtype.
 * Other errors: AD_ERROR_ARGUMENT for an order that is none. By columns also those of ad_jvp. */
AD_INLINE ad_status ad_jacobian(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                void *payload, ad_jacobian_order order, void *const *jacobian,
                                const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_jacobian,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   ad_jacobian_order order, void *const *jacobian, const int64_t *counts),
                  (tape, function, n, x, payload, order, jacobian, counts))

/* The Hessian of the function, whose result has size 1, by the N elements of all x[n], one x[i]
 * behind the other: hessian [N,N], count = N * N elements. One recording of the gradient, then
 * sweeps as for ad_jacobian, from the N elements of the gradient. It is not made symmetric: by
 * rounding [i,j] and [j,i] may differ. The result and all x[n] have one dtype. */
AD_INLINE ad_status ad_hessian(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                               void *payload, void *hessian, int64_t count AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_hessian,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   void *hessian, int64_t count),
                  (tape, function, n, x, payload, hessian, count))

/* Its diagonal: diagonal[i] [shape of x[i]], counts[i] elements. As many sweeps, without the memory
 * of the whole. */
AD_INLINE ad_status ad_hessian_diagonal(ad_tape tape, ad_function *function, int n,
                                        const ad_tensor *x, void *payload, void *const *diagonal,
                                        const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_hessian_diagonal,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   void *const *diagonal, const int64_t *counts),
                  (tape, function, n, x, payload, diagonal, counts))

/* ---- structs of tensors and numbers ---- */

/* A model is a struct of arrays and numbers with a handle for each; the user writes one function
 * that names every member once:
 *
 *     struct model { double w[12], b[3], rate; ad_tensor w_leaf, b_leaf, rate_leaf; };
 *
 *     static void visit(void *model, ad_visitor *v)
 *     {
 *         struct model *m = model;
 *         ad_visit(v, "w", &m->w_leaf, AD_F64, 2, (int64_t[]){4, 3}, m->w);
 *         ad_visit(v, "b", &m->b_leaf, AD_F64, 1, (int64_t[]){3}, m->b);
 *         ad_visit(v, "rate", &m->rate_leaf, AD_F64, 0, NULL, &m->rate);
 *     }
 *
 * A struct of the same type receives the gradients: in `w`, `b` and `rate`. */
typedef struct ad_visitor ad_visitor;
typedef void ad_visit_function(void *model, ad_visitor *visitor);

/* Only within a visit: a member by its name, which must live as long as the visit; where the handle
 * of its leaf is; its array [shape] of dtype, AD_F32 or AD_F64. Errors: of ad_leaf;
 * AD_ERROR_SHAPE where its leaf is another's; AD_ERROR_STATE where a member of the gradients is not
 * that of the model; AD_ERROR_MEMORY. */
AD_INLINE ad_status ad_visit(ad_visitor *visitor, const char *name, ad_tensor *leaf, ad_dtype dtype,
                             int rank, const int64_t *shape, void *data AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_visit,
         (ad_visitor * visitor, const char *name, ad_tensor *leaf, ad_dtype dtype, int rank,
          const int64_t *shape, void *data),
         (visitor, name, leaf, dtype, rank, shape, data))

/* Makes a leaf of each member, over its array, and sets its handle: one visit. On an error none is
 * left. A profile has each leaf on the line of its ad_visit. */
AD_INLINE ad_status ad_visit_leaves(ad_tape tape, ad_visit_function *visit,
                                    void *model AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_visit_leaves, (ad_tape tape, ad_visit_function *visit, void *model),
         (tape, visit, model))

/* Copies the gradient of each member of `model` to the array of the same member of `gradients`,
 * another struct of that type, whose handles do not matter: as ad_gradients, after a sweep. Two
 * visits, which must name the same members. After an error all of `gradients` is NaN. */
AD_INLINE ad_status ad_visit_gradients(ad_tape tape, ad_visit_function *visit, void *model,
                                       void *gradients AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_visit_gradients,
                  (ad_tape tape, ad_visit_function *visit, void *model, void *gradients),
                  (tape, visit, model, gradients))

/* Arrays of one type are compared with x's dtype when the call runs, as those of ad_value
 * (ad_lines.h); in C with gcc alone. */
#if AD_LINE_MACROS
#define ad_visit(visitor, name, leaf, dtype, ...)                                                  \
    AD_GIVEN_(AD_WITH_LINE_(ad_visit, visitor, name, leaf, dtype, __VA_ARGS__), dtype, __VA_ARGS__)

#define AD_EXTRA_5_(a, b, c, d, e, f, ...) f
#define AD_EXTRA_7_(a, b, c, d, e, f, g, h, ...) h
#define AD_EXTRA_10_(a, b, c, d, e, f, g, h, i, j, k, ...) k

#define AD_SEED_CHOICE_(type, number) const type * : number,
#define AD_SEED_(pointer)                                                                          \
    _Generic((pointer), AD_BUFFER_TYPES_(AD_SEED_CHOICE_) default : AD_BUFFER_(pointer))
AD_INLINE AD_MUST_USE ad_status ad_pullback_call_typed_(ad_pullback pullback, const void *seed,
                                                        int64_t n_seed, void *const *gradients,
                                                        const int64_t *counts, int elements,
                                                        unsigned line)
{
    const ad_status status = elements ? ad_seed_check_at(pullback, elements, line) : AD_OK;
    return status != AD_OK ? status
                           : ad_pullback_call_at(pullback, seed, n_seed, gradients, counts, line);
}
#define AD_TYPED_5_(name, pullback, seed, n_seed, gradients, counts)                               \
    name##_typed_(pullback, seed, n_seed, gradients, counts, AD_SEED_(seed), __LINE__)
#define AD_OF_5_(name, ...)                                                                        \
    AD_IF_NO_MORE_(AD_TYPED_5_, AD_WITH_LINE_, AD_EXTRA_5_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define ad_pullback_call(...) AD_OF_5_(ad_pullback_call, __VA_ARGS__)

/* A buffer of as many elements as it may be is compared with the first of x[n]. */
AD_INLINE ad_status ad_elements_of_first_(int n, const ad_tensor *x, const char *call, int elements,
                                          unsigned line)
{
    return elements && x && n > 0 ? ad_elements_check_at(x[0], call, elements, (void *)0, 0, line)
                                  : AD_OK;
}

AD_INLINE AD_MUST_USE ad_status ad_jvp_typed_(ad_tape tape, ad_function *function, int n,
                                              const ad_tensor *x, void *payload,
                                              const void *const *direction, const int64_t *counts,
                                              void *value, void *derivative, int64_t n_y,
                                              int value_elements, int elements, unsigned line)
{
    ad_status status = AD_OK;
    if (value)
        status = ad_elements_of_first_(n, x, "jvp", value_elements, line);
    if (status == AD_OK)
        status = ad_elements_of_first_(n, x, "jvp", elements, line);
    return status != AD_OK ? status
                           : ad_jvp_at(tape, function, n, x, payload, direction, counts, value,
                                       derivative, n_y, line);
}
#define AD_TYPED_10_(name, tape, function, n, x, payload, direction, counts, value, derivative,    \
                     n_y)                                                                          \
    name##_typed_(tape, function, n, x, payload, direction, counts, value, derivative, n_y,        \
                  AD_BUFFER_(value), AD_BUFFER_(derivative), __LINE__)
#define AD_OF_10_(name, ...)                                                                       \
    AD_IF_NO_MORE_(AD_TYPED_10_, AD_WITH_LINE_, AD_EXTRA_10_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define ad_jvp(...) AD_OF_10_(ad_jvp, __VA_ARGS__)

AD_INLINE AD_MUST_USE ad_status ad_hessian_typed_(ad_tape tape, ad_function *function, int n,
                                                  const ad_tensor *x, void *payload, void *hessian,
                                                  int64_t count, int elements, unsigned line)
{
    const ad_status status = ad_elements_of_first_(n, x, "hessian", elements, line);
    return status != AD_OK ? status
                           : ad_hessian_at(tape, function, n, x, payload, hessian, count, line);
}
#define AD_TYPED_7_(name, tape, function, n, x, payload, array, count)                             \
    name##_typed_(tape, function, n, x, payload, array, count, AD_BUFFER_(array), __LINE__)
#define AD_OF_7_(name, ...)                                                                        \
    AD_IF_NO_MORE_(AD_TYPED_7_, AD_WITH_LINE_, AD_EXTRA_7_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define ad_hessian(...) AD_OF_7_(ad_hessian, __VA_ARGS__)
#elif defined(__cplusplus)
extern "C++" {
template <typename T>
AD_INLINE AD_MUST_USE ad_status ad_pullback_call(ad_pullback pullback, const T *seed,
                                                 int64_t n_seed, void *const *gradients,
                                                 const int64_t *counts AD_LINE_PARAMETER_)
{
    const ad_status status = (int)ad_buffer_<T>::number
                                 ? ad_seed_check_at(pullback, ad_buffer_<T>::number, ad_line_)
                                 : AD_OK;
    return status != AD_OK
               ? status
               : ad_pullback_call_at(pullback, seed, n_seed, gradients, counts, ad_line_);
}
template <typename T>
AD_INLINE AD_MUST_USE ad_status ad_jvp(ad_tape tape, ad_function *function, int n,
                                       const ad_tensor *x, void *payload,
                                       const void *const *direction, const int64_t *counts,
                                       void *value, T *derivative, int64_t n_y AD_LINE_PARAMETER_)
{
    const ad_status status =
        x && n > 0 ? ad_elements_of_(x[0], "jvp", derivative, false, 0, ad_line_) : AD_OK;
    return status != AD_OK ? status
                           : ad_jvp_at(tape, function, n, x, payload, direction, counts, value,
                                       derivative, n_y, ad_line_);
}
template <typename T, typename U>
AD_INLINE AD_MUST_USE ad_status ad_jvp(ad_tape tape, ad_function *function, int n,
                                       const ad_tensor *x, void *payload,
                                       const void *const *direction, const int64_t *counts,
                                       T *value, U *derivative, int64_t n_y AD_LINE_PARAMETER_)
{
    const ad_status status =
        value && x && n > 0 ? ad_elements_of_(x[0], "jvp", value, false, 0, ad_line_) : AD_OK;
    return status != AD_OK ? status
                           : ad_jvp(tape, function, n, x, payload, direction, counts, (void *)value,
                                    derivative, n_y, ad_line_);
}
template <typename T>
AD_INLINE AD_MUST_USE ad_status ad_hessian(ad_tape tape, ad_function *function, int n,
                                           const ad_tensor *x, void *payload, T *hessian,
                                           int64_t count AD_LINE_PARAMETER_)
{
    const ad_status status =
        x && n > 0 ? ad_elements_of_(x[0], "hessian", hessian, false, 0, ad_line_) : AD_OK;
    return status != AD_OK ? status
                           : ad_hessian_at(tape, function, n, x, payload, hessian, count, ad_line_);
}
}
#endif

#if AD_LINE_MACROS
#define ad_value_and_gradient(...) ad_value_and_gradient_at(__VA_ARGS__, __LINE__)
#define ad_pullback_begin(...) ad_pullback_begin_at(__VA_ARGS__, __LINE__)
#define ad_pullback_result(...) ad_pullback_result_at(__VA_ARGS__, __LINE__)
#define ad_pullback_end(...) ad_pullback_end_at(__VA_ARGS__, __LINE__)
#define ad_hvp(...) ad_hvp_at(__VA_ARGS__, __LINE__)
#define ad_jacobian(...) ad_jacobian_at(__VA_ARGS__, __LINE__)
#define ad_visit_leaves(...) ad_visit_leaves_at(__VA_ARGS__, __LINE__)
#define ad_visit_gradients(...) ad_visit_gradients_at(__VA_ARGS__, __LINE__)
#define ad_hessian_diagonal(...) ad_hessian_diagonal_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
