/* ad_tensor_sparse.h: Jacobians and Hessians of functions of tensors that are mostly zeros, in
 * compressed rows. Included by the user beside ad_functional.h.
 *
 *     ad_sparse_pattern p;
 *     ad_jacobian_pattern(tape, function, 1, &x, &data, &p);      // which are no zeros: once
 *     double *values = malloc(p.n_values * sizeof *values);
 *     ad_jacobian_sparse(tape, function, 1, &x, &data, &p, values, p.n_values); // at each x
 *     ad_sparse_free(&p);
 *
 * What ad_functional.h says of its functions holds for these: `function` is called once by each
 * call, x[n] are leaves, nothing stays on the tape. Rows are elements of the function's result,
 * columns the elements of all x[n], one x[i] behind the other. ad_sparse_pattern: see ad_sparse.h.
 *
 * A pattern is read from what was recorded and from shapes and indices, never from the values of
 * derivatives: what is 0 at one point only is in it. Where an op does not say which elements depend
 * on which, all of its results depend on all of its operands (docs/how-to/sparse.md has a list), so
 * do those of custom ops and checkpoints.
 */
#ifndef TAPESCOPE_AD_TENSOR_SPARSE_H
#define TAPESCOPE_AD_TENSOR_SPARSE_H

#include <tapescope/ad_functional.h>
#include <tapescope/ad_sparse.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The pattern of the Jacobian of the function's result y by all x[n]: [elements of y, elements of
 * x]. Takes 4 bytes for each element that was recorded and for each of the sets of columns that
 * differ, beside the tape. After an error it is zeros. Errors: those of ad_jacobian;
 * AD_ERROR_STATE: the function makes tensors of numbers (ad_real), of which it is not known. */
AD_INLINE ad_status ad_jacobian_pattern(ad_tape tape, ad_function *function, int n,
                                        const ad_tensor *x, void *payload,
                                        ad_sparse_pattern *pattern AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_jacobian_pattern,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   ad_sparse_pattern *pattern),
                  (tape, function, n, x, payload, pattern))

/* Overwrites values[count], count = pattern->n_values, of x's dtype, with the Jacobian's elements
 * in the pattern: one recording, and a sweep for each colour, rows of which have no column in
 * common, up to 16 at once as by ad_jacobian. If the function records something else than what the
 * pattern was found of, that recording's own is found, and has to lie within the pattern. After an
 * error values are NaN. Errors: those of ad_jacobian; AD_ERROR_ARGUMENT: the pattern is none, or of
 * another shape or kind, or count is not its number of values; AD_ERROR_STATE: a derivative that is
 * not in the pattern, which was found for another recording. */
AD_INLINE ad_status ad_jacobian_sparse(ad_tape tape, ad_function *function, int n,
                                       const ad_tensor *x, void *payload,
                                       const ad_sparse_pattern *pattern, void *values,
                                       int64_t count AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_jacobian_sparse,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   const ad_sparse_pattern *pattern, void *values, int64_t count),
                  (tape, function, n, x, payload, pattern, values, count))

/* The same of the Hessian of the function, whose result has size 1: [elements of x, elements of x],
 * both triangles, which may differ by rounding. The gradient is recorded, and its Jacobian is
 * found. Errors: those of ad_hessian, and as above. */
AD_INLINE ad_status ad_hessian_pattern(ad_tape tape, ad_function *function, int n,
                                       const ad_tensor *x, void *payload,
                                       ad_sparse_pattern *pattern AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_hessian_pattern,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   ad_sparse_pattern *pattern),
                  (tape, function, n, x, payload, pattern))
/* The Hessian of that pattern, as above. */
AD_INLINE ad_status ad_hessian_sparse(ad_tape tape, ad_function *function, int n,
                                      const ad_tensor *x, void *payload,
                                      const ad_sparse_pattern *pattern, void *values,
                                      int64_t count AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_hessian_sparse,
                  (ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                   const ad_sparse_pattern *pattern, void *values, int64_t count),
                  (tape, function, n, x, payload, pattern, values, count))

#if AD_LINE_MACROS
#define AD_EXTRA_8_(a, b, c, d, e, f, g, h, i, ...) i
#define AD_SPARSE_FILLS_(name)                                                                     \
    AD_INLINE AD_MUST_USE ad_status name##_typed_(ad_tape tape, ad_function *function, int n,      \
                                                  const ad_tensor *x, void *payload,               \
                                                  const ad_sparse_pattern *pattern, void *values,  \
                                                  int64_t count, int elements, unsigned line)      \
    {                                                                                              \
        const ad_status status =                                                                   \
            elements && x && n > 0                                                                 \
                ? ad_elements_check_at(x[0], &#name[3], elements, (void *)0, 0, line)              \
                : AD_OK;                                                                           \
        return status != AD_OK                                                                     \
                   ? status                                                                        \
                   : name##_at(tape, function, n, x, payload, pattern, values, count, line);       \
    }
AD_SPARSE_FILLS_(ad_jacobian_sparse)
AD_SPARSE_FILLS_(ad_hessian_sparse)
#undef AD_SPARSE_FILLS_
#define AD_TYPED_8_(name, tape, function, n, x, payload, pattern, values, count)                   \
    name##_typed_(tape, function, n, x, payload, pattern, values, count, AD_BUFFER_(values),       \
                  __LINE__)
#define AD_OF_8_(name, ...)                                                                        \
    AD_IF_NO_MORE_(AD_TYPED_8_, AD_WITH_LINE_, AD_EXTRA_8_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define ad_jacobian_sparse(...) AD_OF_8_(ad_jacobian_sparse, __VA_ARGS__)
#define ad_hessian_sparse(...) AD_OF_8_(ad_hessian_sparse, __VA_ARGS__)
#elif defined(__cplusplus)
extern "C++" {
#define AD_SPARSE_FILLS_(name)                                                                     \
    template <typename T>                                                                          \
    AD_INLINE AD_MUST_USE ad_status name(                                                          \
        ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,             \
        const ad_sparse_pattern *pattern, T *values, int64_t count AD_LINE_PARAMETER_)             \
    {                                                                                              \
        const ad_status status =                                                                   \
            x && n > 0 ? ad_elements_of_(x[0], &#name[3], values, false, 0, ad_line_) : AD_OK;     \
        return status != AD_OK                                                                     \
                   ? status                                                                        \
                   : name##_at(tape, function, n, x, payload, pattern, values, count, ad_line_);   \
    }
AD_SPARSE_FILLS_(ad_jacobian_sparse)
AD_SPARSE_FILLS_(ad_hessian_sparse)
#undef AD_SPARSE_FILLS_
}
#endif

#if AD_LINE_MACROS
#define ad_jacobian_pattern(...) ad_jacobian_pattern_at(__VA_ARGS__, __LINE__)
#define ad_hessian_pattern(...) ad_hessian_pattern_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
