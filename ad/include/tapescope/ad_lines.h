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

/* Types of the elements of buffers, by numbers that the library knows; 0: any other, not judged. */
#define AD_BUFFER_TYPES_(X) X(double, 2) AD_BUFFER_TYPES_BUT_DOUBLE_(X)
#define AD_BUFFER_TYPES_BUT_DOUBLE_(X)                                                             \
    X(float, 1)                                                                                    \
    X(long, 3)                                                                                     \
    X(unsigned long, 4)                                                                            \
    X(long long, 5)                                                                                \
    X(unsigned long long, 6)                                                                       \
    X(int, 7)                                                                                      \
    X(unsigned, 8)                                                                                 \
    X(long double, 9)

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
/* A buffer is compared with its tensor's dtype when the call runs: with clang one of any type but
 * double, which meets the function of ad.h, and its comment in editors. */
#define AD_FILLS_(attribute, name, type, number, of_errors)                                        \
    AD_INLINE attribute __attribute__((overloadable)) ad_status name(ad_tensor x, type *buffer,    \
                                                                     int64_t count)                \
    {                                                                                              \
        const ad_status status =                                                                   \
            ad_elements_check_at(x, &#name[3], number, of_errors, count, AD_LINE_HERE_);           \
        return status != AD_OK ? status : name##_at(x, buffer, count, AD_LINE_HERE_);              \
    }
#define AD_BUFFER_(type, number)                                                                   \
    AD_FILLS_(, ad_value, type, number, buffer)                                                    \
    AD_FILLS_(AD_MUST_USE, ad_gradient, type, number, buffer)                                      \
    AD_FILLS_(, ad_gradient_buffer, type, number, (void *)0)
AD_BUFFER_TYPES_BUT_DOUBLE_(AD_BUFFER_)
#undef AD_BUFFER_
#undef AD_FILLS_
/* 0 as a null pointer */
AD_INLINE __attribute__((overloadable)) ad_status ad_gradient_buffer(ad_tensor x, int null,
                                                                     int64_t count)
{
    (void)null;
    return ad_gradient_buffer_at(x, (void *)0, count, AD_LINE_HERE_);
}
#pragma GCC diagnostic pop
#else
/* By a pointer to elements, or to rows of them. */
#define AD_ELEMENT_CHOICE_(type, is)                                                               \
    type * : is, const type * : is, type(*)[] : is, const type(*)[] : is,
#define AD_ELEMENTS_(pointer)                                                                      \
    _Generic((pointer), AD_ELEMENT_TYPES_(AD_ELEMENT_CHOICE_) default : -1)
/* The comma takes the array's type: lists in braces may have made several arguments of one before
 * it. */
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

/* A buffer is compared with its tensor's dtype when the call runs. Its type is known where the call
 * has as many arguments as the function has parameters; a list in braces makes more, and the call
 * is made without. `extra` is empty where there are no more. */
#define AD_BUFFER_CHOICE_(type, number) type * : number, type(*)[] : number,
#define AD_BUFFER_(pointer) _Generic((pointer), AD_BUFFER_TYPES_(AD_BUFFER_CHOICE_) default : 0)
#define AD_COMMA_(...) ,
#define AD_THIRD_(a, b, c, ...) c
#define AD_CHOSEN_(...) AD_THIRD_(__VA_ARGS__, )
#define AD_IF_NO_MORE_(then, otherwise, extra)                                                     \
    AD_CHOSEN_(AD_COMMA_ extra(), AD_CHOSEN_(AD_COMMA_ extra, otherwise, then), otherwise)
#define AD_EXTRA_3_(a, b, c, d, ...) d
#define AD_OF_3_(name, ...)                                                                        \
    AD_IF_NO_MORE_(AD_TYPED_3_, AD_WITH_LINE_, AD_EXTRA_3_(__VA_ARGS__, , ))(name, __VA_ARGS__)
#define AD_TYPED_3_(name, x, buffer, count)                                                        \
    name##_typed_(x, buffer, count, AD_BUFFER_(buffer), __LINE__)
#define AD_FILLS_(attribute, name, of_errors)                                                      \
    AD_INLINE attribute ad_status name##_typed_(ad_tensor x, void *buffer, int64_t count,          \
                                                int elements, unsigned line)                       \
    {                                                                                              \
        const ad_status status =                                                                   \
            elements ? ad_elements_check_at(x, &#name[3], elements, of_errors, count, line)        \
                     : AD_OK;                                                                      \
        return status != AD_OK ? status : name##_at(x, buffer, count, line);                       \
    }
AD_FILLS_(, ad_value, buffer)
AD_FILLS_(AD_MUST_USE, ad_gradient, buffer)
AD_FILLS_(, ad_gradient_buffer, (void *)0)
#undef AD_FILLS_
#define ad_value(...) AD_OF_3_(ad_value, __VA_ARGS__)
#define ad_gradient(...) AD_OF_3_(ad_gradient, __VA_ARGS__)
#define ad_gradient_buffer(...) AD_OF_3_(ad_gradient_buffer, __VA_ARGS__)
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
template <typename T, decltype(sizeof 0) n> struct ad_elements_<T[n]> : ad_elements_<T> {
};
template <typename T> struct ad_buffer_ {
    enum { number = 0 };
};
#define AD_BUFFER_(type, number_)                                                                  \
    template <> struct ad_buffer_<type> {                                                          \
        enum { number = number_ };                                                                 \
    };
AD_BUFFER_TYPES_(AD_BUFFER_)
#undef AD_BUFFER_
template <typename T, decltype(sizeof 0) n> struct ad_buffer_<T[n]> : ad_buffer_<T> {
};
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
/* A buffer is compared with its tensor's dtype when the call runs. */
template <typename T>
AD_INLINE ad_status ad_elements_of_(ad_tensor x, const char *call, T *buffer, bool spoil,
                                    int64_t count, unsigned line)
{
    return (int)ad_buffer_<T>::number
               ? ad_elements_check_at(x, call, ad_buffer_<T>::number,
                                      spoil ? (void *)buffer : nullptr, count, line)
               : AD_OK;
}
#define AD_FILLS_(attribute, name, spoil)                                                          \
    template <typename T>                                                                          \
    AD_INLINE attribute ad_status name(ad_tensor x, T *buffer, int64_t count AD_LINE_PARAMETER_)   \
    {                                                                                              \
        const ad_status status = ad_elements_of_(x, &#name[3], buffer, spoil, count, ad_line_);    \
        return status != AD_OK ? status : name##_at(x, buffer, count, ad_line_);                   \
    }
AD_FILLS_(, ad_value, true)
AD_FILLS_(AD_MUST_USE, ad_gradient, true)
AD_FILLS_(, ad_gradient_buffer, false)
#undef AD_FILLS_
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
#define ad_item(...) ad_item_at(__VA_ARGS__, __LINE__)
#define ad_einsum(...) ad_einsum_at(__VA_ARGS__, __LINE__)
#define ad_backward(...) ad_backward_at(__VA_ARGS__, __LINE__)
#define ad_backward_seed(...) ad_backward_seed_at(__VA_ARGS__, __LINE__)
#define ad_backward_release(...) ad_backward_release_at(__VA_ARGS__, __LINE__)
#define ad_backward_seed_release(...) ad_backward_seed_release_at(__VA_ARGS__, __LINE__)
#define ad_gradients(...) ad_gradients_at(__VA_ARGS__, __LINE__)
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
