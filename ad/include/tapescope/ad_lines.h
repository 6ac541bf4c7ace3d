/* ad_lines.h: with gcc, calls of the functions of ad.h give their line; why, says ad_site.h.
 *
 * Included by ad.h at its end; nothing here is for direct use. The ops' macros are in ad_ops.h.
 */
#ifndef TAPESCOPE_AD_LINES_H
#define TAPESCOPE_AD_LINES_H

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
#define ad_leaf(...) ad_leaf_at(__VA_ARGS__, __LINE__)
#define ad_constant(...) ad_constant_at(__VA_ARGS__, __LINE__)
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
