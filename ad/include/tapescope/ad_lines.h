/* ad_lines.h: with gcc, calls of the functions of ad.h give their line; why, says ad_site.h.
 *
 * Included by ad.h at its end; nothing here is for direct use. The ops' macros are in ad_ops.h.
 */
#include <tapescope/ad.h> /* which includes this one where its types are there */

#ifndef TAPESCOPE_AD_LINES_H
#define TAPESCOPE_AD_LINES_H

/* Types of elements, with their ad_dtype; 99: none has them. What is no such type is not judged. */
#define AD_ELEMENT_TYPES_(X)                                                                       \
    X(float, AD_F32)                                                                               \
    X(double, AD_F64)                                                                              \
    X(long, AD_I64)                                                                                \
    X(unsigned long, AD_I64)                                                                       \
    X(long long, AD_I64)                                                                           \
    X(unsigned long long, AD_I64)                                                                  \
    X(short, 99)                                                                                   \
    X(unsigned short, 99)                                                                          \
    X(int, 99)                                                                                     \
    X(unsigned, 99)                                                                                \
    X(long double, 99)

/* In C an array is compared with the dtype that it is given under, if that is a constant. With gcc
 * the call stands outside of what compares: what the user writes in braces lives as long as his own
 * block, for leaves and constants borrow it. */
#ifndef __cplusplus
#define AD_OTHER_ELEMENTS_ "the elements of the array are of another type than its ad_dtype says"
#ifdef __clang__
/* No macro, so that editors show the function. An array of another type than a constant dtype says
 * meets an overload that there is not; all others, and NULL, meet the function of ad.h. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wgcc-compat"
#define AD_GIVEN_(name, type, is)                                                                  \
    ad_tensor name(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape, const type *data) \
        __attribute__((overloadable,                                                               \
                       enable_if((int)dtype != is && !(__builtin_constant_p(!data) && !data),      \
                                 AD_OTHER_ELEMENTS_),                                              \
                       unavailable(AD_OTHER_ELEMENTS_)));
#define AD_ELEMENTS_(type, is)                                                                     \
    AD_GIVEN_(ad_leaf, type, is)                                                                   \
    AD_GIVEN_(ad_leaf_copy, type, is)                                                              \
    AD_GIVEN_(ad_constant, type, is)
AD_ELEMENT_TYPES_(AD_ELEMENTS_)
#undef AD_ELEMENTS_
#undef AD_GIVEN_
#pragma GCC diagnostic pop
#else
/* The comma takes the array's type: lists in braces may have made several arguments of one before
 * it. */
#define AD_ELEMENT_CHOICE_(type, is) type * : is, const type * : is,
#define AD_ELEMENTS_(pointer)                                                                      \
    _Generic((pointer), AD_ELEMENT_TYPES_(AD_ELEMENT_CHOICE_) default : -1)
#define AD_IS_CONSTANT_(x) (sizeof(int) == sizeof(*(8 ? ((void *)((long)(x)*0L)) : (int *)8)))
#define AD_GIVEN_(call, dtype, ...)                                                                \
    (__extension__({                                                                               \
         _Pragma("GCC diagnostic push")                                                            \
             _Pragma("GCC diagnostic ignored \"-Wunused-value\"") enum {                           \
                 ad_said_ = __builtin_choose_expr(AD_IS_CONSTANT_(dtype), (int)(dtype), -1),       \
                 ad_is_ = AD_ELEMENTS_((__VA_ARGS__))                                              \
             };                                                                                    \
         _Pragma("GCC diagnostic pop") _Static_assert((int)ad_said_ < 0 || (int)ad_is_ < 0 ||      \
                                                          (int)ad_said_ == (int)ad_is_,            \
                                                      AD_OTHER_ELEMENTS_);                         \
         (void)0;                                                                                  \
     }),                                                                                           \
     call)
#define AD_WITH_LINE_(name, ...) name##_at(__VA_ARGS__, __LINE__)
#define ad_leaf(tape, dtype, ...)                                                                  \
    AD_GIVEN_(AD_WITH_LINE_(ad_leaf, tape, dtype, __VA_ARGS__), dtype, __VA_ARGS__)
#define ad_leaf_copy(tape, dtype, ...)                                                             \
    AD_GIVEN_(AD_WITH_LINE_(ad_leaf_copy, tape, dtype, __VA_ARGS__), dtype, __VA_ARGS__)
#define ad_constant(tape, dtype, ...)                                                              \
    AD_GIVEN_(AD_WITH_LINE_(ad_constant, tape, dtype, __VA_ARGS__), dtype, __VA_ARGS__)
#endif
#else
/* In C++ by overloading. gcc knows a constant dtype where it optimises; else the call fails. */
extern "C++" {
template <typename T> struct ad_elements_ {
    enum { dtype = -1 };
};
#define AD_ELEMENTS_(type, is)                                                                     \
    template <> struct ad_elements_<type> {                                                        \
        enum { dtype = is };                                                                       \
    };
AD_ELEMENT_TYPES_(AD_ELEMENTS_)
#undef AD_ELEMENTS_
#define AD_MISMATCH_(dtype_)                                                                       \
    ((int)ad_elements_<T>::dtype >= 0 && (int)ad_elements_<T>::dtype != (int)(dtype_))
#ifdef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wgcc-compat"
#define AD_REFUSED_                                                                                \
    __attribute__((diagnose_if(                                                                    \
        AD_MISMATCH_(dtype),                                                                       \
        "the elements of the array are of another type than its ad_dtype says", "error")))
#define AD_REFUSE_(dtype) ((void)0)
#else
__attribute__((error("the elements of the array are of another type than its ad_dtype says"))) void
ad_elements_are_of_another_type_(void);
#define AD_REFUSED_
#define AD_REFUSE_(dtype)                                                                          \
    (__builtin_constant_p(AD_MISMATCH_(dtype)) && AD_MISMATCH_(dtype)                              \
         ? ad_elements_are_of_another_type_()                                                      \
         : (void)0)
#endif
#define AD_GIVEN_(name)                                                                            \
    template <typename T>                                                                          \
    AD_INLINE ad_tensor name(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,         \
                             const T *data AD_LINE_PARAMETER_) AD_REFUSED_;                        \
    template <typename T>                                                                          \
    AD_INLINE ad_tensor name(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,         \
                             const T *data, unsigned ad_line_)                                     \
    {                                                                                              \
        AD_REFUSE_(dtype);                                                                         \
        if (AD_MISMATCH_(dtype))                                                                   \
            return ad_elements_mismatch_at(tape, dtype, (ad_dtype)ad_elements_<T>::dtype,          \
                                           ad_line_);                                              \
        return name##_at(tape, dtype, rank, shape, data, ad_line_);                                \
    }
AD_GIVEN_(ad_leaf)
AD_GIVEN_(ad_leaf_copy)
AD_GIVEN_(ad_constant)
#ifdef __clang__
#pragma GCC diagnostic pop
#endif
#undef AD_GIVEN_
#undef AD_REFUSED_
#undef AD_REFUSE_
#undef AD_MISMATCH_
}
#endif

#if AD_LINE_MACROS
#define ad_tape_create(...) ad_tape_create_at(__VA_ARGS__, __LINE__)
#define ad_tape_destroy(...) ad_tape_destroy_at(__VA_ARGS__, __LINE__)
#define ad_tape_reset(...) ad_tape_reset_at(__VA_ARGS__, __LINE__)
#define ad_tape_mark(...) ad_tape_mark_at(__VA_ARGS__, __LINE__)
#define ad_tape_rewind(...) ad_tape_rewind_at(__VA_ARGS__, __LINE__)
#define ad_tape_of(...) ad_tape_of_at(__VA_ARGS__, __LINE__)
#define ad_tape_stats(...) ad_tape_stats_at(__VA_ARGS__, __LINE__)
#define ad_tape_reset_peak(...) ad_tape_reset_peak_at(__VA_ARGS__, __LINE__)
#define ad_tape_saved_for_backward(...) ad_tape_saved_for_backward_at(__VA_ARGS__, __LINE__)
#define ad_leaf_changed(...) ad_leaf_changed_at(__VA_ARGS__, __LINE__)
#define ad_scalar_f64(...) ad_scalar_f64_at(__VA_ARGS__, __LINE__)
#define ad_scalar_f32(...) ad_scalar_f32_at(__VA_ARGS__, __LINE__)
#define ad_scalar_i64(...) ad_scalar_i64_at(__VA_ARGS__, __LINE__)
#define ad_detach(...) ad_detach_at(__VA_ARGS__, __LINE__)
#define ad_tape_no_grad_begin(...) ad_tape_no_grad_begin_at(__VA_ARGS__, __LINE__)
#define ad_tape_no_grad_end(...) ad_tape_no_grad_end_at(__VA_ARGS__, __LINE__)
#define ad_frame_begin(...) ad_frame_begin_at(__VA_ARGS__, __LINE__)
#define ad_frame_end(...) ad_frame_end_at(__VA_ARGS__, __LINE__)
#define ad_release(...) ad_release_at(__VA_ARGS__, __LINE__)
#define ad_rank(...) ad_rank_at(__VA_ARGS__, __LINE__)
#define ad_size(...) ad_size_at(__VA_ARGS__, __LINE__)
#define ad_shape(...) ad_shape_at(__VA_ARGS__, __LINE__)
#define ad_dtype_of(...) ad_dtype_of_at(__VA_ARGS__, __LINE__)
#define ad_value(...) ad_value_at(__VA_ARGS__, __LINE__)
#define ad_item(...) ad_item_at(__VA_ARGS__, __LINE__)
#define ad_einsum(...) ad_einsum_at(__VA_ARGS__, __LINE__)
#define ad_backward(...) ad_backward_at(__VA_ARGS__, __LINE__)
#define ad_backward_seed(...) ad_backward_seed_at(__VA_ARGS__, __LINE__)
#define ad_backward_release(...) ad_backward_release_at(__VA_ARGS__, __LINE__)
#define ad_backward_seed_release(...) ad_backward_seed_release_at(__VA_ARGS__, __LINE__)
#define ad_gradient(...) ad_gradient_at(__VA_ARGS__, __LINE__)
#define ad_gradients(...) ad_gradients_at(__VA_ARGS__, __LINE__)
#define ad_gradient_buffer(...) ad_gradient_buffer_at(__VA_ARGS__, __LINE__)
#define ad_retain_gradient(...) ad_retain_gradient_at(__VA_ARGS__, __LINE__)
#define ad_tape_zero_gradients(...) ad_tape_zero_gradients_at(__VA_ARGS__, __LINE__)
#define ad_create_graph(...) ad_create_graph_at(__VA_ARGS__, __LINE__)
#define ad_tape_trap(...) ad_tape_trap_at(__VA_ARGS__, __LINE__)
#define ad_tape_on_error(...) ad_tape_on_error_at(__VA_ARGS__, __LINE__)
#define ad_set_threads(...) ad_set_threads_at(__VA_ARGS__, __LINE__)
#define ad_tensor_print(...) ad_tensor_print_at(__VA_ARGS__, __LINE__)
#define ad_check_gradient(...) ad_check_gradient_at(__VA_ARGS__, __LINE__)
#endif

#endif
