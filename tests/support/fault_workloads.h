/* fault_workloads.h: small uses of the library, each of whose calls is checked to leave the tape as
 * it was if it fails.
 *
 * A workload goes on after a failure as a user's program would that looks at the status in the
 * end, so that every later call meets the error.
 */
#ifndef FAULT_WORKLOADS_H
#define FAULT_WORKLOADS_H

#include <tapescope/ad.h>

enum { FAULT_RESULTS = 512 };

/* What a workload reads back: values and gradients. */
struct fault_results {
    double number[FAULT_RESULTS];
    int n;
};

struct fault_workload {
    const char *name;
    void (*run)(ad_tape tape, struct fault_results *out);
};

extern const struct fault_workload fault_workloads[];
extern const int fault_workload_count;

/* Runs a workload and returns the tape's status in the end. */
ad_status fault_run(const struct fault_workload *w, ad_tape tape, struct fault_results *out);

/* What was first seen to be wrong in the last run, or "": a call that failed and left a trace. No
 * assertion, so that processes may use it that Check does not run. */
extern char fault_wrong[512];

/* ---- for the workloads themselves ---- */

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
/* One call, made between two looks at the tape; nested calls would look in the wrong order. */
#define OP(call) (fault_look(), fault_tensor_done(call))
#define DO(call) (fault_look(), fault_status_done(call))

void fault_look(void);
ad_tensor fault_tensor_done(ad_tensor result);
ad_status fault_status_done(ad_status status);
/* Reads a gradient or value of n doubles. */
void fault_read_gradient(ad_tensor x, int n, struct fault_results *out);
void fault_read_value(ad_tensor x, int n, struct fault_results *out);
extern const double *const fault_data; /* [144] */
/* A leaf [rows,columns] of that. */
ad_tensor fault_leaf(ad_tape tape, int64_t rows, int64_t columns);
/* Sweeps from the sum of y, and reads the gradient of x [n]. */
void fault_sweep(ad_tensor y, ad_tensor x, int n, struct fault_results *out);

/* fault_workloads_ops.c */
typedef void fault_run_function(ad_tape tape, struct fault_results *out);
fault_run_function fault_choices, fault_functions, fault_moved_parts, fault_rows_by_index,
    fault_more_reductions, fault_shares, fault_batched_products, fault_casts,
    fault_second_of_reductions, fault_checked, fault_looked_at;
/* fault_workloads_memory.c */
fault_run_function fault_frames, fault_releasing_sweep;

/* fault_workloads_checkpoint.c */
fault_run_function fault_checkpoints, fault_loops, fault_real_checkpoints, fault_real_loops,
    fault_disk_loops;

/* fault_workloads_custom.c */
fault_run_function fault_custom, fault_checked_custom, fault_listened, fault_roots;

/* fault_workloads_functional.c */
fault_run_function fault_value_and_gradient, fault_pullbacks, fault_visits, fault_directional,
    fault_matrices, fault_sparse_tensors;

/* fault_workloads_file.c */
fault_run_function fault_files, fault_visited_files;
/* It opens files of its own, and fails where none can be opened. */
bool fault_opens_files(const struct fault_workload *w);
bool fault_grows_files(const struct fault_workload *w);

/* fault_workloads_complex.c */
fault_run_function fault_complex, fault_einsum;
/* fault_workloads_sequence.c */
fault_run_function fault_recurrence, fault_attention;
/* fault_workloads_matrices.c */
fault_run_function fault_linear_systems, fault_second_of_linear_systems, fault_decompositions,
    fault_second_of_decompositions;

/* fault_workloads_shape.c */
fault_run_function fault_scans, fault_moved_elements, fault_repeated, fault_ordered, fault_indexed;
/* fault_workloads_network.c */
fault_run_function fault_losses, fault_normalized, fault_embedded, fault_convolved, fault_pooled,
    fault_forms;
/* fault_workloads_real.c */
fault_run_function fault_reals, fault_forks, fault_bridges, fault_trapped, fault_recorded;
/* fault_workloads_program.c */
fault_run_function fault_program, fault_sparse_hessian, fault_tensor_program;
/* fault_workloads_sparse.c */
fault_run_function fault_sparse_jacobian;
/* fault_workloads_fused_loops.c */
fault_run_function fault_fused_loops;
/* fault_workloads_preaccumulate.c */
fault_run_function fault_sections;

#endif
